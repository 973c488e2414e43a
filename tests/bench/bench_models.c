/* SPDX-License-Identifier: Apache-2.0 */
/* bench_models.c - speed of the models other than torch, on the same made-up training, and the
 * memory that each takes for a live block. Prints "bench NAME VALUE UNIT". */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "simulator/replay/model.h"
#include "training.h"

#define BLOCKS 400000u /* of the measurement of memory */

struct world {
	struct vc_model m;
	struct vc_device_config device;
	struct vc_block *block;
};

static const uint64_t default_stream[1] = { 0 };
static const struct vc_streams streams = { default_stream, 1 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* others use the machine, too */
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void open_world(struct world *w, const char *model, const char *params, uint32_t slots)
{
	const struct vc_model_type *type = vc_model_by_name(model);
	struct vc_error err = { 0 };
	void *config = type ? calloc(1, type->config_size + 1) : NULL;

	*w = (struct world){ .device = { .total = 1ull << 40 } };
	if (!type) {
		fprintf(stderr, "bench: no model %s\n", model);
		exit(2);
	}
	w->m = (struct vc_model){ .type = type, .config = config, .streams = &streams,
				  .state = calloc(1, type->state_size + 1),
				  .device = vc_device_new(&w->device, &err) };
	w->block = calloc(slots, sizeof(*w->block));
	if (!config || !w->m.state || !w->m.device || !w->block ||
	    vc_params_parse(type->params, config, params, &err) < 0 ||
	    (type->init && type->init(&w->m, &err) < 0)) {
		fprintf(stderr, "bench: %s\n", err.message);
		exit(2);
	}
}

static void close_world(struct world *w)
{
	if (w->m.type->fini)
		w->m.type->fini(&w->m);
	vc_device_free_all(w->m.device);
	free(w->m.state);
	free((void *)(uintptr_t)w->m.config);
	free(w->block);
}

static void ask(struct world *w, uint32_t slot, uint64_t size)
{
	struct vc_request rq = { .id = slot + 1, .size = size };
	struct vc_error err = { 0 };

	if (w->m.type->alloc(&w->m, &rq, &w->block[slot], &err) != VC_DONE) {
		fprintf(stderr, "bench: %s: %s%s\n", w->m.type->name, err.message, w->m.note);
		exit(2);
	}
}

static void play(struct world *w, const struct program *p)
{
	for (size_t k = 0; k < p->n; k++) {
		if (p->s[k].size)
			ask(w, p->s[k].slot, p->s[k].size);
		else
			w->m.type->free(&w->m, &w->block[p->s[k].slot]);
	}
}

/* The best of several rounds: what the machine can do when nobody else disturbs it. */
static double speed(const char *model, const char *params, const struct program *p)
{
	double best = 0;

	for (int round = 0; round < 7; round++) {
		struct world w;
		double t;

		open_world(&w, model, params, p->slots);
		play(&w, p);
		t = now();
		for (int k = 0; k < 6; k++)
			play(&w, p);
		t = (double)p->n * 6 / (now() - t) * 1e-6;
		best = t > best ? t : best;
		close_world(&w);
	}
	return best;
}

/* Heap bytes that the model takes for each of many live blocks. */
static double memory(const char *model, const char *params)
{
	struct program p = { .random = 1234567 };
	struct world w;
	size_t before;

	open_world(&w, model, params, BLOCKS);
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	for (uint32_t i = 0; i < BLOCKS; i++)
		ask(&w, i, 512 * (1 + training_dice(&p, 2000)));
	before = mallinfo2().uordblks + mallinfo2().hblkhd - before;
	close_world(&w);
	return (double)before / BLOCKS;
}

int main(void)
{
	static const struct { const char *name, *model, *params; } of[] = {
		{ "bfc", "bfc", "growth=true" },
		{ "cuda_async.low", "cuda_async", "bound=low" },
		{ "cuda_async.high", "cuda_async", "bound=high" },
		{ "gmlake", "gmlake", NULL },
		{ "rmm_arena", "rmm_arena", NULL },
		{ "rmm_pool", "rmm_pool", NULL },
	};
	struct program p = { 0 };

	if (getenv("TRACE") && *getenv("TRACE"))
		return 0;
	training(&p, 96, 20);
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		printf("bench replay.%s %.2f Mevents/s\n", of[i].name,
		       speed(of[i].model, of[i].params, &p));
		printf("bench replay.%s.block %.0f bytes\n", of[i].name,
		       memory(of[i].model, of[i].params));
	}
	free(p.s);
	return 0;
}
