/* SPDX-License-Identifier: Apache-2.0 */
/* time_replay.c - the recorded launches again, in time: when each kernel would have run on the card
 * that the null GPU played.
 *
 * The program launches one operation after the other; a stream takes its own in order; an
 * operation that waited for another stream waits for the same one again; a copy to the host, and a
 * full queue, make the program wait. */
#include "common/map.h"
#include "common/vec.h"
#include "simulator/time/time_cost.h"
#include "simulator/time/time_profile.h"

/* What PyTorch and Python need from one launch to the next: 5 to 10 us on a fast machine with fused
 * operations, 37 us measured on the machine of docs/measurements/gpu.md (tests/tracer/gpu_train.py,
 * 226 launches in 8.37 ms). */
#define DISPATCH_NS 20000.0
#define DISPATCH_LEAST_NS 8000.0
#define DISPATCH_MOST_NS 40000.0
/* From the end of a kernel to the start of the next one that is queued behind it. */
#define REST_NS 1000.0
enum { QUEUE = 1024, NONE = -1 }; /* a driver's queue holds about so many launches */

struct play {
	struct vc_profile *p;
	const struct vc_meta *meta;
	const struct vc_card *card;
	struct vc_cost *cost;    /* of each operation */
	int64_t *after;          /* the operation on another stream that it waits for, or NONE */
	double *ready;           /* of each stream: the end of its last operation */
	uint32_t streams;
};

/* ---- what it costs ---- */

static bool work_of(const struct vc_meta *m, uint32_t site, struct vc_kernel_work *w)
{
	return site && site < m->frames &&
	       vc_kernel_work_parse(m->string[m->frame[site].function], w);
}

static void cost_of(struct play *y, size_t i)
{
	struct vc_op *o = &y->p->op[i];
	const char *name = o->name < y->meta->strings ? y->meta->string[o->name] : "";
	struct vc_kernel_work w;

	y->cost[i] = (struct vc_cost){ (double)(o->end - o->start), 0.5 };
	if (o->kind != VC_OP_KERNEL || !work_of(y->meta, o->work, &w))
		return;
	struct vc_cost c = vc_cost_of(y->card, &w, name);
	if (c.ns > 0)
		y->cost[i] = c;
}

/* ---- who waits for whom ---- */

/* An operation that began later than its own stream was ready, and at the very moment at which an
 * operation of another stream ended, waited for that one. Of two that ended then the later. */
static int find_waits(struct play *y, struct vc_error *err)
{
	const struct vc_profile *p = y->p;
	struct vc_map ends = { 0 };
	uint64_t *done = calloc(y->streams, sizeof(*done));
	int r = done ? VC_OK : vc_nomem(err, "the streams of a recording");

	for (size_t i = 0; r == VC_OK && i < p->n; i++) {
		const struct vc_op *o = &p->op[i];
		bool waited = o->start > done[o->stream];
		const uint64_t *at = waited ? vc_map_get(&ends, o->start) : NULL;

		y->after[i] = at && p->op[*at - 1].stream != o->stream ? (int64_t)*at - 1 : NONE;
		done[o->stream] = o->end;
		if (y->streams > 1 && !vc_map_put(&ends, o->end, i + 1))
			r = vc_nomem(err, "the streams of a recording");
	}
	vc_map_fini(&ends);
	free(done);
	return r;
}

/* ---- the run ---- */

struct speed { double dispatch; int bound; }; /* bound: -1 as fast as may be, 1 as slow */

static double lasts(const struct vc_cost *c, int bound)
{
	return bound < 0 ? c->ns / (1 + c->doubt) : bound > 0 ? c->ns * (1 + c->doubt) : c->ns;
}

static void play(struct play *y, struct speed s)
{
	struct vc_op *op = y->p->op;
	double host = 1, sync = 0, start;

	for (uint32_t i = 0; i < y->streams; i++)
		y->ready[i] = 0;
	for (size_t i = 0; i < y->p->n; i++) {
		host = fmax(host + s.dispatch, sync);
		if (i >= QUEUE)
			host = fmax(host, (double)op[i - QUEUE].start);
		start = fmax(host, y->ready[op[i].stream] + REST_NS);
		if (y->after[i] != NONE)
			start = fmax(start, (double)op[y->after[i]].end);
		op[i].start = (uint64_t)start;
		op[i].end = (uint64_t)(start + lasts(&y->cost[i], s.bound));
		y->ready[op[i].stream] = (double)op[i].end;
		if (op[i].kind == VC_OP_TO_HOST)
			sync = (double)op[i].end;
	}
}

/* ns of the steps behind the first, which makes its states. */
static double span(const struct vc_profile *p)
{
	size_t first = p->steps > 1, last = p->steps;
	const struct vc_op *end = &p->op[p->begin[last] < p->n ? p->begin[last] : p->n - 1];

	return (double)end->start - (double)p->op[p->begin[first]].start;
}

static int run(struct play *y, struct vc_error *err)
{
	struct vc_profile *p = y->p;
	double low, best, high;

	VC_TRY(find_waits(y, err));
	for (size_t i = 0; i < p->n; i++)
		cost_of(y, i);
	play(y, (struct speed){ DISPATCH_LEAST_NS, -1 });
	low = span(p);
	play(y, (struct speed){ DISPATCH_MOST_NS, 1 });
	high = span(p);
	play(y, (struct speed){ DISPATCH_NS, 0 });
	best = span(p);
	p->least = best > 0 ? fmin(1, low / best) : 1;
	p->most = best > 0 ? fmax(1, high / best) : 1;
	if (p->from && !strcmp(p->from, "profiler step")) {
		p->mark[0].start = p->op[p->begin[0]].start;
		p->mark[0].duration = p->op[p->begin[1] - 1].end - p->mark[0].start;
	}
	return VC_OK;
}

int vc_profile_play(struct vc_profile *p, const struct vc_meta *meta, const struct vc_card *card,
		    struct vc_error *err)
{
	struct play y = { .p = p, .meta = meta, .card = card };
	int r;

	for (size_t i = 0; i < p->n; i++)
		y.streams = p->op[i].stream >= y.streams ? p->op[i].stream + 1 : y.streams;
	y.cost = calloc(p->n + 1, sizeof(*y.cost));
	y.after = calloc(p->n + 1, sizeof(*y.after));
	y.ready = calloc(y.streams + 1u, sizeof(*y.ready));
	r = y.cost && y.after && y.ready ? run(&y, err) :
					   vc_nomem(err, "the kernels of a recording");
	VC_FREE(y.cost, y.after, y.ready);
	return r;
}
