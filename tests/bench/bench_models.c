/* SPDX-License-Identifier: Apache-2.0 */
/* bench_models.c - speed of every row of models.def on a made-up training, events per second, and
 * the bytes of this process per live block. Prints "bench NAME VALUE UNIT". */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "world.h"

static void open_world(struct world *w, const struct vc_model_type *type, uint32_t slots)
{
	struct vc_error err = { 0 };
	void *config = calloc(1, type->config_size + 1);

	*w = (struct world){ .device = { .total = 1ull << 42 }, .streams = { default_stream, 1 } };
	w->m = (struct vc_model){ .type = type, .config = config, .streams = &w->streams,
				  .state = calloc(1, type->state_size + 1),
				  .device = vc_device_new(&w->device, &err) };
	w->block = calloc(slots, sizeof(*w->block));
	if (!config || !w->m.state || !w->m.device || !w->block ||
	    vc_params_parse(type->params, config, NULL, &err) < 0 ||
	    (type->init && type->init(&w->m, &err) < 0)) {
		fprintf(stderr, "bench: %s: %s\n", type->name, err.message);
		exit(2);
	}
}

/* Of this process, not of the wall: others may use the machine meanwhile. */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The best of several rounds: what the machine can do when nobody else disturbs it. */
static void speed(const struct vc_model_type *type, const struct program *p)
{
	double best = 0;

	for (int round = 0; round < 7; round++) {
		struct world w;
		double t;

		open_world(&w, type, p->slots);
		play(&w, p);
		t = now();
		for (int k = 0; k < 6; k++)
			play(&w, p);
		t = (double)p->n * 6 / (now() - t) * 1e-6;
		best = t > best ? t : best;
		close_world(&w);
	}
	printf("bench replay.%s %.2f Mevents/s\n", type->name, best);
}

/* What the model itself holds with almost 2^17 blocks alive: its arrays double, and are as good as
 * full then. */
static void memory(const struct vc_model_type *type)
{
	enum { BLOCKS = (1 << 17) - 4096 };
	struct world w;
	struct vc_error err;
	size_t before;

	open_world(&w, type, BLOCKS);
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	for (uint32_t i = 0; i < BLOCKS; i++) {
		struct vc_request rq = { .id = i + 1, .size = 4096 };

		w.m.type->alloc(&w.m, &rq, &w.block[i], &err);
	}
	printf("bench replay.%s.block %.0f bytes\n", type->name,
	       (double)(mallinfo2().uordblks + mallinfo2().hblkhd - before) / BLOCKS);
	close_world(&w);
}

int main(void)
{
	struct program p = { 0 };

	training(&p, 96, 20);
	for (size_t k = 0; vc_models[k]; k++) {
		speed(vc_models[k], &p);
		memory(vc_models[k]);
	}
	free(p.s);
	return 0;
}
