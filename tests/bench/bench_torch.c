/* SPDX-License-Identifier: Apache-2.0 */
/* bench_torch.c - speed of the torch model: events per second, cost by number of free blocks,
 * bytes per live block. Prints "bench NAME VALUE UNIT". TRACE=FILE in the environment: replay
 * that file. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "simulator/replay/engine.h"
#include "world.h"

enum { ROUNDS = 20 }; /* of the made-up training in a trace */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* whatever runs beside it */
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void open_world(struct world *w, const char *conf, const char *version, uint32_t slots)
{
	const struct vc_model_type *type = vc_model_by_name("torch");
	struct vc_error err = { 0 };
	void *config = calloc(1, type->config_size);

	*w = (struct world){ .device = { .total = 1ull << 44 }, .streams = { default_stream, 1 } };
	w->m = (struct vc_model){ .type = type,
				 .config = config,
				 .streams = &w->streams,
				 .version = version,
				 .conf = conf,
				 .state = calloc(1, type->state_size),
				 .device = vc_device_new(&w->device, &err) };
	w->block = calloc(slots, sizeof(*w->block));
	if (!config || !w->m.state || !w->m.device || !w->block ||
	    vc_params_parse(type->params, config, NULL, &err) < 0 || type->init(&w->m, &err) < 0) {
		fprintf(stderr, "bench: %s\n", err.message);
		exit(2);
	}
}

/* The best of several rounds: what the machine can do when nobody else disturbs it. */
static void measure(const char *name, const char *conf, const char *version,
		    const struct program *p)
{
	double best = 0;

	for (int round = 0; round < 7; round++) {
		struct world w;
		double t;
		int repeat = 6;

		open_world(&w, conf, version, p->slots);
		play(&w, p);
		t = now();
		for (int k = 0; k < repeat; k++)
			play(&w, p);
		t = (double)p->n * repeat / (now() - t) * 1e-6;
		if (t > best)
			best = t;
		close_world(&w);
	}
	printf("bench %s %.2f Mevents/s\n", name, best);
}

/* n free blocks of many sizes, each between two live ones, then requests and frees at random. */
static void by_free_blocks(uint32_t n)
{
	struct program p = { .random = 1234567 }, q = { .random = 7654321 };
	struct world w;
	double t;

	for (uint32_t i = 0; i < 2 * n; i++)
		training_add(&p, i, 512 * (1 + training_dice(&p, 2000)));
	for (uint32_t i = 0; i < 2 * n; i += 2)
		training_add(&p, i, 0);
	for (uint32_t k = 0; k < 200000; k++) {
		training_add(&q, 2 * n + k % 64, 512 * (1 + training_dice(&q, 2000)));
		if (k >= 32)
			training_add(&q, 2 * n + (k - 32) % 64, 0);
	}
	open_world(&w, NULL, "2.9", 2 * n + 64);
	play(&w, &p);
	t = now();
	play(&w, &q);
	t = (now() - t) / (double)q.n * 1e9;
	printf("bench replay.torch.free_blocks.%u %.1f ns/event\n", n, t);
	close_world(&w);
	free(p.s);
	free(q.s);
}

/* ---- through the engine ---- */
static double through_engine(const struct vc_trace *trace, const char *version, const char *conf)
{
	double best = 0;

	for (int round = 0; round < 5; round++) {
		struct vc_error err = { 0 };
		struct vc_result out = { 0 };
		struct vc_run run = { .model = vc_model_by_name("torch"),
				     .version = version,
				     .conf = conf,
				     .device = { .total = 1ull << 44 },
				     .fraction = -1,
				     .start = trace->meta->conf &&
							      strcmp(trace->meta->conf, conf) ?
						      VC_START_REBUILD :
						      VC_START_WARM };
		double t = now();

		run.source = vc_source_memory(trace, &err);
		if (!run.source || vc_run(&run, &out, &err) < 0) {
			fprintf(stderr, "bench: %s\n", err.message);
			exit(1);
		}
		t = (double)trace->n / (now() - t) * 1e-6;
		if (t > best)
			best = t;
		vc_result_fini(&out);
		vc_source_free(run.source);
	}
	return best;
}

static void load(struct vc_trace *trace, const char *path)
{
	struct vc_error err = { 0 };
	struct vc_source *s = vc_source_open(path, &err);

	if (!s || vc_trace_read(trace, s, &err) < 0) {
		fprintf(stderr, "bench: %s\n", err.message);
		exit(1);
	}
	vc_source_free(s);
}

static void generate(struct vc_trace *trace, const struct program *p)
{
	struct vc_error err = { 0 };
	uint64_t *id = calloc(p->slots, sizeof(*id)), next = 1;

	trace->meta = vc_meta_new(&err);
	for (int round = 0; round < ROUNDS && id && trace->meta; round++)
		for (size_t k = 0; k < p->n; k++) {
			const struct step *s = &p->s[k];
			struct vc_event ev = { .kind = s->size ? VC_EV_ALLOC : VC_EV_FREE,
					      .id = s->size ? next : id[s->slot],
					      .size = s->size };

			if (s->size)
				id[s->slot] = next++;
			if (vc_trace_append(trace, &ev, 1, &err) < 0)
				exit(2);
		}
	free(id);
}

/* The model alone over the same events, from its first request to its end, as a run has it. */
static double alone(const struct program *p, const char *conf)
{
	double best = 0;

	for (int round = 0; round < 5; round++) {
		struct world w;
		double t = now();

		open_world(&w, conf, "2.9", p->slots);
		for (int k = 0; k < ROUNDS; k++)
			play(&w, p);
		close_world(&w);
		t = (double)p->n * ROUNDS / (now() - t) * 1e-6;
		best = t > best ? t : best;
	}
	return best;
}

/* What the engine takes from the speed of the model, by turns. */
static void measure_overhead(const char *name, const struct vc_trace *trace,
			     const struct program *p, const char *conf)
{
	double model = 0, engine = 0;

	for (int turn = 0; turn < 3; turn++) {
		double m = alone(p, conf), e = through_engine(trace, "2.9", conf);

		model = m > model ? m : model;
		engine = e > engine ? e : engine;
	}
	printf("bench %s.overhead %.1f %%\n", name, 100 * (1 - engine / model));
}

static void measure_engine(const char *path, const struct program *p)
{
	const char *version = path && *path ? NULL : "2.9";
	struct vc_trace trace = { 0 };

	if (path && *path)
		load(&trace, path);
	else
		generate(&trace, p);
	if (trace.meta->torch)
		version = trace.meta->torch;
	printf("bench %s %.2f Mevents/s\n",
	       path && *path ? "replay.torch.native" : "engine.torch.native",
	       through_engine(&trace, version, ""));
	printf("bench %s %.2f Mevents/s\n",
	       path && *path ? "replay.torch.expandable" : "engine.torch.expandable",
	       through_engine(&trace, version, "expandable_segments:True"));
	if (p) {
		measure_overhead("engine.torch.native", &trace, p, "");
		measure_overhead("engine.torch.expandable", &trace, p, "expandable_segments:True");
	}
	vc_trace_fini(&trace);
}

int main(void)
{
	struct program p = { 0 };
	const char *path = getenv("TRACE");

	if (path && *path) {
		measure_engine(path, NULL);
		return 0;
	}
	training(&p, 96, 20);
	measure("replay.torch.native", NULL, "2.9", &p);
	measure("replay.torch.expandable", "expandable_segments:True", "2.9", &p);
	measure("replay.torch.native.2.15", NULL, "2.15", &p);
	measure_engine(NULL, &p);
	for (uint32_t n = 100; n <= 1000000; n *= 10)
		by_free_blocks(n);
	/* One block object is one cache line; the index lives in the free blocks themselves. */
	printf("bench replay.torch.block 64 bytes\n");
	free(p.s);
	return 0;
}
