/* SPDX-License-Identifier: Apache-2.0 */
/* time_replay.c - the recorded launches again, in time: when each kernel would have run on the card
 * that the null GPU played.
 *
 * The program launches one operation after the other; a stream takes its own in order; an
 * operation that waited for another stream waits for the same one again, and so does the program:
 * for a copy to pageable memory, at a synchronization, and where the queue is full. */
#include "common/map.h"
#include "common/vec.h"
#include "simulator/time/time_speeds.h"

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
	struct vc_costs *cost;    /* of each operation */
	struct known { uint32_t name; struct vc_costs cost; } *known; /* of the last by site */
	int64_t *after;          /* the operation on another stream that it waits for, or NONE */
	double *ready;           /* of each stream: the end of its last operation */
	uint32_t streams;
	/* the run */
	size_t at;               /* the next operation */
	double host;             /* the program's time */
	/* beside others: */
	struct mail { uint16_t peer; char type; bool in; } *mail; /* of each operation; peer: the
				  * player at the other end + 1; type: of work, 0: no message */
	struct letters { double *when; size_t n, read; } *box; /* by player, out and in */
	double begins;           /* when the messages that it has told of could begin */
	size_t told;             /* the operation behind them */
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

	y->cost[i] = (struct vc_costs){ (double)(o->end - o->start), 0.5 };
	if (o->kind != VC_OP_KERNEL || !o->work || o->work >= y->meta->frames)
		return;
	struct known *k = &y->known[o->work];
	if (k->name != o->name + 1) {
		*k = (struct known){ .name = o->name + 1 };
		if (work_of(y->meta, o->work, &w))
			k->cost = vc_speeds_cost(y->p->speeds, y->card, &w, name);
	}
	if (k->cost.ns > 0)
		y->cost[i] = k->cost;
}

/* ---- who waits for whom ---- */

/* An operation that began later than its own stream was ready, and at the very moment at which an
 * operation of another stream ended, waited for that one. Of two that ended then the later. If that
 * moment was as long before it as a launch takes, the program waited, and launched it then. A copy
 * to the host for which it did not wait is one like any other. */
static int find_waits(struct play *y, struct vc_error *err)
{
	const struct vc_profile *p = y->p;
	struct vc_map ends = { 0 };
	uint64_t *done = calloc(y->streams, sizeof(*done));
	int r = done ? VC_OK : vc_nomem(err, "the streams of a recording");

	for (size_t i = 0; r == VC_OK && i < p->n; i++) {
		const struct vc_op *o = &p->op[i];
		bool waited = o->start > done[o->stream];
		const uint64_t *at = waited ? vc_map_get(&ends, o->start) : NULL, *held;

		y->after[i] = at && p->op[*at - 1].stream != o->stream ? (int64_t)*at - 1 : NONE;
		waited = waited && i && o->start > o[-1].start + VC_NULL_SUBMIT_NS;
		held = waited ? vc_map_get(&ends, o->start - VC_NULL_SUBMIT_NS) : NULL;
		p->op[i].held = held ? (uint32_t)*held : 0;
		done[o->stream] = o->end;
		if (!vc_map_put(&ends, o->end, i + 1))
			r = vc_nomem(err, "the streams of a recording");
	}
	for (size_t i = 0; i + 1 < p->n; i++) {
		uint32_t held = p->op[i + 1].held;

		if (p->op[i].kind == VC_OP_TO_HOST &&
		    (!held || p->op[held - 1].end < p->op[i].end))
			p->op[i].kind = VC_OP_COPY;
	}
	vc_map_fini(&ends);
	free(done);
	return r;
}

/* ---- the run ---- */

struct speed { double dispatch; int bound; }; /* bound: -1 as fast as may be, 1 as slow */

static double lasts(const struct vc_costs *c, int bound)
{
	return bound < 0 ? c->ns / (1 + c->doubt) : bound > 0 ? c->ns * (1 + c->doubt) : c->ns;
}

static void start_over(struct play *y)
{
	for (uint32_t i = 0; i < y->streams; i++)
		y->ready[i] = 0;
	y->at = y->told = 0;
	y->host = 1;
}

/* When the next operation could begin. */
static double launch(struct play *y, size_t i, struct speed s)
{
	const struct vc_op *op = y->p->op;
	double start;

	if (op[i].held)
		y->host = fmax(y->host, (double)op[op[i].held - 1].end);
	y->host += s.dispatch;
	if (i >= QUEUE)
		y->host = fmax(y->host, (double)op[i - QUEUE].start);
	start = fmax(y->host, y->ready[op[i].stream] + REST_NS);
	return y->after[i] == NONE ? start : fmax(start, (double)op[y->after[i]].end);
}

static void finish(struct play *y, size_t i, double start, double ns)
{
	struct vc_op *o = &y->p->op[i];

	o->start = (uint64_t)start;
	o->end = (uint64_t)(start + ns);
	y->ready[o->stream] = (double)o->end;
	y->at = i + 1;
}

static void play(struct play *y, struct speed s)
{
	start_over(y);
	for (size_t i = 0; i < y->p->n; i++)
		finish(y, i, launch(y, i, s), lasts(&y->cost[i], s.bound));
}

/* ns of the steps behind the first, which makes its states. */
static double span(const struct vc_profile *p)
{
	size_t first = p->steps > 1, last = p->steps;
	const struct vc_op *end = &p->op[p->begin[last] < p->n ? p->begin[last] : p->n - 1];

	return (double)end->start - (double)p->op[p->begin[first]].start;
}

static double step_of(const struct vc_profile *p)
{
	return span(p) / (double)(p->steps - (p->steps > 1));
}

static const struct speed slow = { DISPATCH_MOST_NS, 1 }, usual = { DISPATCH_NS, 0 },
			  fast = { DISPATCH_LEAST_NS, -1 };

static void run(struct play *y)
{
	struct vc_profile *p = y->p;
	double low, best, high;

	play(y, fast);
	low = span(p);
	play(y, slow);
	high = span(p);
	play(y, usual);
	best = span(p);
	p->least = best > 0 ? fmin(1, low / best) : 1;
	p->most = best > 0 ? fmax(1, high / best) : 1;
	if (p->from && !strcmp(p->from, "profiler step")) {
		p->mark[0].start = p->op[p->begin[0]].start;
		p->mark[0].duration = p->op[p->begin[1] - 1].end - p->mark[0].start;
	}
}

static void close_play(struct play *y, size_t players)
{
	for (size_t i = 0; y->box && i < 2 * players; i++)
		free(y->box[i].when);
	VC_FREE(y->cost, y->after, y->ready, y->mail, y->box, y->known);
}

/* known: who waits for whom is already written beside the operations. */
static int open_play(struct play *y, bool known, struct vc_error *err)
{
	struct vc_profile *p = y->p;

	for (size_t i = 0; i < p->n; i++)
		y->streams = p->op[i].stream >= y->streams ? p->op[i].stream + 1 : y->streams;
	y->cost = calloc(p->n + 1, sizeof(*y->cost));
	y->after = calloc(p->n + 1, sizeof(*y->after));
	y->ready = calloc(y->streams + 1u, sizeof(*y->ready));
	y->known = calloc(y->meta->frames + 1, sizeof(*y->known));
	VC_HAVE(y->cost && y->after && y->ready && y->known, "the kernels of a recording", err);
	if (!known)
		VC_TRY(find_waits(y, err));
	for (size_t i = 0; i < p->n; i++) {
		if (known)
			y->after[i] = (int64_t)p->op[i].after - 1;
		p->op[i].after = (uint32_t)(y->after[i] + 1);
		if (!known)
			cost_of(y, i);
	}
	return VC_OK;
}

int vc_profile_play(struct vc_profile *p, const struct vc_meta *meta, const struct vc_card *card,
		    struct vc_error *err)
{
	struct play y = { .p = p, .meta = meta, .card = card };
	int r = open_play(&y, false, err);

	if (r == VC_OK)
		run(&y);
	close_play(&y, 0);
	return r;
}

/* ---- ranks that meet ---- */

/* Who is at the other end of each message: a rank of the job, or the other one of two. */
static void find_peers(struct play *all, size_t n, struct play *y)
{
	for (size_t k = 0; k < y->p->n; k++) {
		const struct vc_op *o = &y->p->op[k];
		const char *name = o->name < y->meta->strings ? y->meta->string[o->name] : "";
		bool in = !strcmp(name, "ncclRecv");
		struct vc_kernel_work w;

		if ((!in && strcmp(name, "ncclSend")) || !work_of(y->meta, o->work, &w))
			continue;
		y->mail[k] = (struct mail){ 0, *w.type, in };
		for (size_t i = 0; i < n && w.dim[1] != w.dim[3]; i++)
			if (&all[i] != y && (all[i].meta->rank == (int64_t)w.dim[3] ||
					     (w.dim[0] == 2 && n == 2)))
				y->mail[k].peer = (uint16_t)(i + 1);
	}
}

static struct letters *box(struct play *y, size_t other, bool in)
{
	return &y->box[2 * other + in];
}

/* The messages from operation i on that are one operation on a card. */
static size_t group_end(const struct play *y, size_t i)
{
	size_t end = i + 1;

	while (end < y->p->n && y->mail[end].type == 'n')
		end++;
	return end;
}

static int tell(struct play *y, size_t end, struct vc_error *err)
{
	for (size_t k = y->at; k < end; k++) {
		struct letters *l;

		if (!y->mail[k].peer)
			continue;
		l = box(y, y->mail[k].peer - 1u, y->mail[k].in);
		VC_HAVE(vc_vec_one(l->when, l->n), "the messages of ranks", err);
		l->when[l->n++] = y->begins;
	}
	y->told = end;
	return VC_OK;
}

/* Whether those at the other ends have come as far; then *start is when the last of them did. */
static bool is_heard(struct play *all, struct play *y, size_t end, double *start)
{
	size_t me = (size_t)(y - all);

	for (size_t k = y->at; k < end; k++) {
		const struct mail *m = &y->mail[k];
		struct letters *mine, *theirs;

		if (!m->peer)
			continue;
		mine = box(y, m->peer - 1u, m->in);
		theirs = box(&all[m->peer - 1], me, !m->in);
		if (theirs->n <= mine->read)
			return false; /* of a group each goes to another peer, or the other way */
		*start = fmax(*start, theirs->when[mine->read]);
	}
	for (size_t k = y->at; k < end; k++)
		if (y->mail[k].peer)
			box(y, y->mail[k].peer - 1u, y->mail[k].in)->read++;
	return true;
}

/* As far as it comes without the others. alone: what it waits for does not come. Errors: VC_ENOMEM;
 * 1: it moved. */
static int advance(struct play *all, struct play *y, struct speed s, bool alone,
		   struct vc_error *err)
{
	int moved = 0;

	while (y->at < y->p->n) {
		size_t i = y->at, end = y->mail[i].type ? group_end(y, i) : i + 1;
		double start;

		if (y->told <= i || !y->mail[i].type)
			y->begins = launch(y, i, s);
		if (y->told <= i && y->mail[i].type)
			VC_TRY(tell(y, end, err));
		start = y->begins;
		if (y->mail[i].type && !is_heard(all, y, end, &start) && !alone)
			return moved;
		for (; i < end; i++, start = (double)y->p->op[i - 1].end)
			finish(y, i, start, lasts(&y->cost[i], s.bound));
		moved = 1;
		alone = false;
	}
	return moved;
}

/* ns of a step of the slowest. */
static int meet(struct play *all, size_t n, struct speed s, double *step, struct vc_error *err)
{
	bool open = true, alone = false;

	for (size_t k = 0; k < n; k++) {
		start_over(&all[k]);
		for (size_t i = 0; i < 2 * n; i++)
			all[k].box[i].n = all[k].box[i].read = 0;
	}
	while (open) {
		int moved = 0;

		open = false;
		for (size_t k = 0; k < n; k++) {
			int r = advance(all, &all[k], s, alone && all[k].at < all[k].p->n, err);

			VC_TRY(r);
			moved |= r;
			alone = alone && !r;
			open |= all[k].at < all[k].p->n;
		}
		alone = open && !moved;
	}
	*step = 0;
	for (size_t k = 0; k < n; k++)
		*step = fmax(*step, step_of(all[k].p));
	return VC_OK;
}

static int open_all(struct play *all, const struct vc_player *who, size_t n, struct vc_error *err)
{
	for (size_t k = 0; k < n; k++) {
		struct play *y = &all[k];

		*y = (struct play){ .p = who[k].p, .meta = who[k].meta, .card = who[k].p->card };
		VC_TRY(open_play(y, true, err));
		for (size_t i = 0; i < y->p->n; i++)
			cost_of(y, i);
		y->mail = calloc(y->p->n + 1, sizeof(*y->mail));
		y->box = calloc(2 * n, sizeof(*y->box));
		VC_HAVE(y->mail && y->box, "the messages of ranks", err);
	}
	for (size_t k = 0; k < n; k++)
		find_peers(all, n, &all[k]);
	return VC_OK;
}

int vc_profiles_meet(const struct vc_player *who, size_t n, double ns[3], struct vc_error *err)
{
	struct play *all = calloc(n, sizeof(*all));
	int r = all ? open_all(all, who, n, err) : vc_nomem(err, "the messages of ranks");

	if (r == VC_OK)
		r = meet(all, n, fast, &ns[0], err);
	if (r == VC_OK)
		r = meet(all, n, slow, &ns[2], err);
	if (r == VC_OK)
		r = meet(all, n, usual, &ns[1], err);
	for (size_t k = 0; all && k < n; k++)
		close_play(&all[k], n);
	free(all);
	return r;
}

/* ---- without what joins samples ---- */

enum { GROUPS = 64 }; /* communicators of a rank */

struct groups { uint64_t number[GROUPS], ranks[GROUPS], launches[GROUPS]; bool kept[GROUPS];
		size_t n; };

static bool is_collective(const struct play *y, size_t i, struct vc_kernel_work *w)
{
	const struct vc_op *o = &y->p->op[i];

	return !y->mail[i].type && work_of(y->meta, o->work, w) && w->kind == VC_WORK_COLLECTIVE;
}

/* GROUPS: there are too many. */
static size_t group_of(const struct groups *g, uint64_t number)
{
	size_t i = 0;

	while (i < g->n && g->number[i] != number)
		i++;
	return i;
}

static void count_groups(const struct play *y, struct groups *g)
{
	struct vc_kernel_work w;

	for (size_t k = 0; k < y->p->n; k++) {
		size_t i;

		if (!is_collective(y, k, &w) || (i = group_of(g, w.dim[2])) == GROUPS)
			continue;
		if (i == g->n) {
			g->number[g->n] = w.dim[2];
			g->ranks[g->n++] = w.dim[0];
		}
		g->launches[i]++;
	}
}

static void keep_groups(struct groups *g, const uint64_t ranks[VC_SHARED])
{
	for (size_t k = 0; k < VC_SHARED; k++) {
		size_t most = g->n;

		for (size_t i = 0; i < g->n; i++)
			if (ranks[k] > 1 && g->ranks[i] == ranks[k] && !g->kept[i] &&
			    (most == g->n || g->launches[i] > g->launches[most]))
				most = i;
		if (most < g->n)
			g->kept[most] = true;
	}
}

static void drop_others(struct play *y, const uint64_t ranks[VC_SHARED])
{
	struct groups g = { .n = 0 };
	struct vc_kernel_work w;

	count_groups(y, &g);
	keep_groups(&g, ranks);
	for (size_t k = 0; k < y->p->n; k++) {
		size_t i;

		if (!is_collective(y, k, &w))
			continue;
		i = group_of(&g, w.dim[2]);
		if (i >= g.n || !g.kept[i])
			y->cost[k] = (struct vc_costs){ 0 };
	}
}

int vc_profiles_within(const struct vc_player *who, size_t n, const uint64_t ranks[VC_SHARED],
		       double ns[2], struct vc_error *err)
{
	struct play *all = calloc(n, sizeof(*all));
	int r = all ? open_all(all, who, n, err) : vc_nomem(err, "the messages of ranks");

	ns[0] = ns[1] = 0;
	for (size_t k = 0; r == VC_OK && k < n; k++) {
		drop_others(&all[k], ranks);
		play(&all[k], usual);
		ns[0] += step_of(all[k].p) / (double)n;
	}
	if (r == VC_OK)
		r = meet(all, n, usual, &ns[1], err);
	for (size_t k = 0; all && k < n; k++)
		close_play(&all[k], n);
	free(all);
	return r;
}
