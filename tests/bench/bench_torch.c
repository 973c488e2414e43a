/* SPDX-License-Identifier: Apache-2.0 */
/* bench_torch.c - speed of the torch model: events per second, cost by number of free blocks, bytes
 * per live block. Prints "bench NAME VALUE UNIT". TRACE=FILE in the environment: replay that file. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "simulator/engine.h"
#include "simulator/model.h"

struct step { uint32_t slot; uint32_t stream; uint64_t size; }; /* size 0: free */

struct program { struct step *s; size_t n, cap; uint32_t slots; uint64_t random; };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t dice(struct program *p, uint64_t sides)
{
	p->random ^= p->random >> 12;
	p->random ^= p->random << 25;
	p->random ^= p->random >> 27;
	return (p->random * 2685821657736338717ull >> 11) % sides;
}

static void add(struct program *p, uint32_t slot, uint64_t size)
{
	if (p->n == p->cap) {
		p->cap = p->cap ? 2 * p->cap : 4096;
		p->s = realloc(p->s, p->cap * sizeof(*p->s));
		if (!p->s)
			exit(2);
	}
	if (slot >= p->slots)
		p->slots = slot + 1;
	p->s[p->n++] = (struct step){ slot, 0, size };
}

/* Steps of a network's training: weights stay, each layer's forward keeps an activation and makes
 * temporaries, backward frees activations in reverse, sizes vary a little from step to step. */
static void training(struct program *p, uint32_t layers, uint32_t steps)
{
	uint32_t weights = layers * 3, act = weights, tmp = act + layers * 2;

	p->random = 88172645463325252ull;
	for (uint32_t i = 0; i < weights; i++)
		add(p, i, i % 3 == 2 ? 4096 * (1 + i % 5) : (6ull << 20) * (1 + i % 4));
	for (uint32_t s = 0; s < steps; s++) {
		uint64_t scale = 80 + dice(p, 41);

		for (uint32_t l = 0; l < layers; l++) {
			add(p, act + 2 * l, (6ull << 20) * scale / 100 + 512 * dice(p, 64));
			for (uint32_t k = 0; k < 3; k++)
				add(p, tmp + k, (1 + dice(p, 8 << 20)) >> (4 * k));
			add(p, act + 2 * l + 1, 2048 + dice(p, 65536));
			for (uint32_t k = 0; k < 3; k++)
				add(p, tmp + k, 0);
		}
		for (uint32_t l = layers; l-- > 0; ) {
			add(p, tmp, (6ull << 20) * scale / 100);
			add(p, tmp + 1, 1 + dice(p, 1 << 20));
			add(p, act + 2 * l, 0);
			add(p, act + 2 * l + 1, 0);
			add(p, tmp + 1, 0);
			add(p, tmp, 0);
		}
	}
	for (uint32_t i = 0; i < weights; i++)
		add(p, i, 0);
}

struct world {
	struct vc_model m;
	struct vc_device_config device;
	struct vc_streams streams;
	struct vc_block *block;
};

static const uint64_t default_stream[1] = { 0 };

static void open_world(struct world *w, const char *conf, const char *version, uint32_t slots)
{
	const struct vc_model_type *type = vc_model_by_name("torch");
	struct vc_error err = { 0 };
	void *config = calloc(1, type->config_size);

	*w = (struct world){ .device = { .total = 1ull << 44 }, .streams = { default_stream, 1 } };
	w->m = (struct vc_model){ .type = type, .config = config, .streams = &w->streams,
				  .version = version, .conf = conf, .state = calloc(1, type->state_size),
				  .device = vc_device_new(&w->device, &err) };
	w->block = calloc(slots, sizeof(*w->block));
	if (!config || !w->m.state || !w->m.device || !w->block ||
	    vc_params_parse(type->params, config, NULL, &err) < 0 || type->init(&w->m, &err) < 0) {
		fprintf(stderr, "bench: %s\n", err.message);
		exit(2);
	}
}

static void close_world(struct world *w)
{
	w->m.type->fini(&w->m);
	vc_device_free_all(w->m.device);
	free(w->m.state);
	free((void *)(uintptr_t)w->m.config);
	free(w->block);
}

static void play(struct world *w, const struct program *p)
{
	struct vc_error err;

	for (size_t k = 0; k < p->n; k++) {
		const struct step *s = &p->s[k];

		if (s->size) {
			struct vc_request rq = { .id = s->slot + 1, .size = s->size };

			w->m.type->alloc(&w->m, &rq, &w->block[s->slot], &err);
		} else {
			w->m.type->free(&w->m, &w->block[s->slot]);
		}
	}
}

/* The best of several rounds: what the machine can do when nobody else disturbs it. */
static void measure(const char *name, const char *conf, const char *version, const struct program *p)
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
		add(&p, i, 512 * (1 + dice(&p, 2000)));
	for (uint32_t i = 0; i < 2 * n; i += 2)
		add(&p, i, 0);
	for (uint32_t k = 0; k < 200000; k++) {
		add(&q, 2 * n + k % 64, 512 * (1 + dice(&q, 2000)));
		if (k >= 32)
			add(&q, 2 * n + (k - 32) % 64, 0);
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
		struct vc_run run = { .model = vc_model_by_name("torch"), .version = version, .conf = conf,
				      .device = { .total = 1ull << 44 }, .fraction = -1,
				      .start = trace->meta->conf && strcmp(trace->meta->conf, conf)
					       ? VC_START_REBUILD : VC_START_WARM };
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
	for (int round = 0; round < 20 && id && trace->meta; round++)
		for (size_t k = 0; k < p->n; k++) {
			const struct step *s = &p->s[k];
			struct vc_event ev = { .kind = s->size ? VC_EV_ALLOC : VC_EV_FREE,
					       .id = s->size ? next : id[s->slot], .size = s->size };

			if (s->size)
				id[s->slot] = next++;
			if (vc_trace_append(trace, &ev, 1, &err) < 0)
				exit(2);
		}
	free(id);
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
	printf("bench %s %.2f Mevents/s\n", path && *path ? "replay.torch.native" : "engine.torch.native",
	       through_engine(&trace, version, ""));
	printf("bench %s %.2f Mevents/s\n", path && *path ? "replay.torch.expandable"
	       : "engine.torch.expandable", through_engine(&trace, version, "expandable_segments:True"));
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
