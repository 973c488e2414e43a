/* SPDX-License-Identifier: Apache-2.0 */
/* budget.c - see budget.h
 *
 * At a moment inside unit u with the units before it held, as many bytes are allocated as in the
 * run in which all were done as u is, but for what those before it give back. So each moment asks
 * for a least sum of bytes given back by units before it, and the largest of a unit's is all that
 * counts. Going through the units in order, a partial choice is what it gave back and its time:
 * those that give back less for no less time go, and what remains at the end is exact. */
#include "simulator/search/budget.h"

#include <math.h>

#include "common/vec.h"

enum { BLOCK = 512 };         /* PyTorch rounds requests to it (c10/cuda: kMinBlockSize) */
enum { LABELS = 1 << 16 };    /* partial choices that are kept; of more the cheapest */
enum { PRICES = 40, PRICED = 16 }; /* tried, for a choice and for a bound */
#define PRICE 1e-3            /* of a byte of the host, to begin with: ns at 1000 GB/s */
#define NONE SIZE_MAX

const char *const vc_budget_word[VC_BUDGET_WAYS] = { "keep", "recompute", "products", "lower",
						     "offload", "recompute_offload" };

/* What a run does with a unit, pass by pass. */
struct passes { int64_t *grew; size_t n; int64_t now; double cost; bool held; };

struct walk {
	struct vc_budget *b;
	const struct vc_trace *t;
	const struct vc_budget_run *run;
	enum vc_budget_do way;      /* that all of them are done in this run */
	size_t kernel, owner;       /* the first behind the last mark, whose they are, or NONE */
	struct passes *pass;
	uint64_t *size, live, start;
	size_t in;                  /* this unit, or NONE */
	size_t last;                /* whose pass the latest was, until the next one begins */
	bool forward;
};

static const char *label_of(const struct vc_trace *t, const struct vc_event *e)
{
	return e->label < t->meta->strings ? t->meta->string[e->label] : "";
}

enum vc_budget_do vc_budget_done(const struct vc_budget *b, const uint8_t *how, size_t i)
{
	return how[i] == VC_BUDGET_PRODUCTS && b->at[i].inplace ? VC_BUDGET_RECOMPUTE : how[i];
}

size_t vc_budget_count(const struct vc_budget *b, const uint8_t *how, enum vc_budget_do way)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++)
		n += vc_budget_done(b, how, i) == way;
	return n;
}

int vc_budget_units(struct vc_budget *b, const struct vc_trace *t, struct vc_error *err)
{
	for (size_t i = 0; i < t->n; i++) {
		const char *text = t->ev[i].kind == VC_EV_MARK ? label_of(t, &t->ev[i]) : "";

		b->compiled |= !strcmp(text, "budget compiled");
		if (b->n && !strncmp(text, "budget inplace ", 15)) /* of the one just named */
			b->at[b->n - 1].inplace = true;
		if (strncmp(text, "budget unit ", 12))
			continue;
		VC_HAVE(vc_vec_one(b->at, b->n), "the modules of a program", err);
		b->at[b->n] = (struct vc_budget_unit){ .name = strdup(text + 12) };
		VC_HAVE(b->at[b->n++].name, "the modules of a program", err);
	}
	if (b->compiled) {
		vc_budget_fini(b);
		b->compiled = true;
	}
	return b->n || b->compiled ? VC_OK :
		vc_fail(err, VC_ENOSUP, "no module was seen to keep anything for a "
				      "backward pass: there is nothing to compute twice");
}

/* ---- one of the two runs ---- */

/* So many bytes are allocated now. */
static void note(struct walk *w)
{
	struct vc_budget *b = w->b;
	size_t before = 0;
	int64_t held = 0;

	while (before < b->n && w->pass[before].held && before != w->in)
		before++;
	for (size_t i = 0; i < b->n; i++)
		held += w->pass[i].held && i != w->in ? b->at[i].freed[w->way] : 0;
	uint64_t need = (int64_t)w->live + held > 0 ? (uint64_t)((int64_t)w->live + held) : 0;
	if (w->in != NONE)
		vc_raise(before >= w->in ? &b->at[w->in].need[w->way] :
					&b->at[w->in].hard[w->way], need);
	else if (w->way == VC_BUDGET_KEEP)
		vc_raise(before ? &b->at[before - 1].between : &b->elsewhere, need);
}

static int end_pass(struct passes *p, struct vc_error *err)
{
	p->held = false;
	VC_HAVE(vc_vec_one(p->grew, p->n), "the passes of a module", err);
	p->grew[p->n++] = p->now;
	p->now = 0;
	return VC_OK;
}

/* The kernels up to the next mark. */
static void take_kernels(struct walk *w, size_t next)
{
	const struct vc_budget_run *r = w->run;

	for (; w->kernel < r->kernels && !r->kernel[w->kernel].mark; w->kernel++)
		if (w->owner != NONE && w->b->timed)
			w->pass[w->owner].cost += r->kernel[w->kernel].ns;
	w->kernel++;
	w->owner = next;
}

static int mark(struct walk *w, const struct vc_event *e, struct vc_error *err)
{
	const char *text = label_of(w->t, e);
	unsigned long long at;
	char what;

	if (sscanf(text, "budget %c %llu", &what, &at) != 2 || at >= w->b->n)
		return VC_OK;
	take_kernels(w, what == 'E' ? NONE : at);
	struct passes *p = &w->pass[at];
	if (what != 'E' && w->last != NONE) { /* what its caller lets go of is given back, too */
		w->pass[w->last].now += (int64_t)w->live - (int64_t)w->start;
		w->last = NONE;
	}
	if (what == 'F') {
		w->in = at;
		w->start = w->live;
		w->forward = true;
	} else if (what == 'E') {
		w->last = at;
		p->held = true;
		w->in = NONE;
	} else if (what == 'B') {
		w->in = at;
		w->forward = false;
		return p->held ? end_pass(p, err) : VC_OK;
	}
	return VC_OK;
}

static int walk(struct walk *w, uint16_t device, struct vc_error *err)
{
	w->in = w->owner = w->last = NONE;
	w->pass = calloc(w->b->n, sizeof(*w->pass));
	w->size = calloc(w->t->meta->max_id + 1, sizeof(*w->size));
	VC_HAVE(w->pass && w->size, "the blocks of a run", err);
	for (size_t i = 0; i < w->t->n; i++) {
		const struct vc_event *e = &w->t->ev[i];

		if (e->device != device || e->id > w->t->meta->max_id)
			continue;
		if (e->kind == VC_EV_ALLOC) {
			w->size[e->id] = (e->size + BLOCK - 1) / BLOCK * BLOCK;
			w->live += w->size[e->id];
			if (w->in != NONE && w->forward && !w->b->timed)
				w->pass[w->in].cost += (double)w->size[e->id];
			note(w);
		} else if (e->kind == VC_EV_FREE) {
			w->live -= w->size[e->id];
			w->size[e->id] = 0;
		} else if (e->kind == VC_EV_MARK) {
			VC_TRY(mark(w, e, err));
			if (e->flags == VC_MARK_STEP)
				w->in = NONE;
		}
	}
	take_kernels(w, NONE);
	return VC_OK;
}

static void walk_fini(struct walk *w)
{
	for (size_t i = 0; w->pass && i < w->b->n; i++)
		free(w->pass[i].grew);
	VC_FREE(w->pass, w->size);
}

/* What that way gives back of each: the least of all passes; and what it costs a step. */
static int compare(struct vc_budget *b, const struct walk *kept, const struct walk *other,
		   struct vc_error *err)
{
	double steps = (double)(kept->run->steps ? kept->run->steps : 1);

	for (size_t i = 0; i < b->n; i++) {
		const struct passes *k = &kept->pass[i], *a = &other->pass[i];
		int64_t least = INT64_MAX;

		if (k->n != a->n)
			return vc_fail(err, VC_ENOSUP, "%s has %zu backward passes, and %zu where "
				       "modules are computed twice: the program is not the same "
				       "then", b->at[i].name, k->n, a->n);
		for (size_t j = 0; j < k->n; j++)
			least = k->grew[j] - a->grew[j] < least ? k->grew[j] - a->grew[j] : least;
		b->at[i].freed[other->way] = k->n && least > 0 ? least : 0;
		b->at[i].cost[other->way] = b->timed ? fmax(0, a->cost - k->cost) / steps :
					    k->n ? k->cost / (double)k->n : 0;
	}
	return VC_OK;
}

static int read_way(struct vc_budget *b, const struct vc_budget_run *run, const struct walk *kept,
		    enum vc_budget_do way, struct vc_error *err)
{
	struct walk a = { .b = b, .t = run->t, .run = run, .way = way }, a2 = a;
	int r = walk(&a, run->device, err); /* what it gives back, ... */

	if (r == VC_OK)
		r = compare(b, kept, &a, err);
	for (size_t i = 0; i < b->n; i++)
		b->at[i].need[way] = b->at[i].hard[way] = 0;
	if (r == VC_OK)
		r = walk(&a2, run->device, err); /* ... and with that what it needs */
	walk_fini(&a);
	walk_fini(&a2);
	return r;
}

int vc_budget_read(struct vc_budget *b, const struct vc_budget_run *run, struct vc_error *err)
{
	struct walk k = { .b = b, .t = run->t, .run = run };
	int r;

	b->timed = true;
	for (int way = 0; way < VC_BUDGET_WAYS; way++)
		b->timed &= !run[way].t || run[way].kernels;
	r = walk(&k, run->device, err);
	b->can[VC_BUDGET_KEEP] = true;
	for (int way = VC_BUDGET_RECOMPUTE; r == VC_OK && way < VC_BUDGET_WAYS; way++) {
		/* what a copy to the host costs is not known by bytes */
		b->can[way] = run[way].t && (b->timed || way == VC_BUDGET_RECOMPUTE);
		if (!b->can[way])
			continue;
		r = read_way(b, &run[way], &k, way, err);
		b->can[way] = r == VC_OK;
		if (r == VC_ENOSUP && way != VC_BUDGET_RECOMPUTE) {
			*err = (struct vc_error){ 0 };
			r = VC_OK;
		}
	}
	walk_fini(&k);
	return r;
}

/* ---- the choice ---- */

struct label { uint64_t freed; double cost; uint32_t from; uint8_t how; };

/* Of what costs the same first what gives back more. */
VC_COMPARE(by_time, struct label, x->cost != y->cost ? (x->cost > y->cost) - (x->cost < y->cost) :
	   VC_ORDER(y->freed, x->freed))

static bool within(uint64_t need, uint64_t freed, uint64_t bytes)
{
	return need <= freed || need - freed <= bytes;
}

/* May unit u be done so behind a choice that gave back so much? */
static bool may(const struct vc_budget_unit *u, uint64_t freed, int way, uint64_t bytes)
{
	return within(u->need[way], freed, bytes) && u->hard[way] <= bytes &&
	       within(u->between, freed + (uint64_t)u->freed[way], bytes);
}

static bool can(const struct vc_budget *b, size_t i, int way)
{
	return !way || (b->can[way] && b->at[i].freed[way]);
}

/* Bytes that it sends to the host: all of it, or the arguments that computing it twice keeps. */
static uint64_t sent(const struct vc_budget_unit *u, int way)
{
	int64_t kept = way == VC_BUDGET_OFFLOAD ? 0 : u->freed[VC_BUDGET_RECOMPUTE];

	return way >= VC_BUDGET_OFFLOAD && u->freed[way] > kept ?
		       (uint64_t)(u->freed[way] - kept) : 0;
}

/* Sorted by time: those that give back no more than one before go. */
static size_t thin(struct label *l, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (!kept || l[i].freed > l[kept - 1].freed)
			l[kept++] = l[i];
	return kept;
}

/* Of two that follow each other one that costs as little as the first, and gives back as much as
 * the second. */
static size_t relax(struct label *l, size_t n)
{
	while (n > LABELS) {
		for (size_t i = 0; i < n / 2; i++) {
			l[i] = l[2 * i];
			l[i].freed = l[2 * i + 1].freed;
		}
		if (n % 2)
			l[n / 2] = l[n - 1];
		n = (n + 1) / 2;
	}
	return n;
}

static int step(struct vc_budget *b, size_t i, uint64_t bytes, struct label **layer, size_t *n,
		struct vc_error *err)
{
	const struct vc_budget_unit *u = &b->at[i];
	struct label *next = calloc(VC_BUDGET_WAYS * n[i] + 1, sizeof(*next));
	size_t m = 0;

	VC_HAVE(next, "choices", err);
	for (size_t k = 0; k < n[i]; k++)
		for (int way = 0; way < VC_BUDGET_WAYS; way++) {
			const struct label *l = &layer[i][k];

			if (can(b, i, way) && may(u, l->freed, way, bytes))
				next[m++] = (struct label){ l->freed + (uint64_t)u->freed[way],
							    l->cost + u->cost[way] +
							    b->price * (double)sent(u, way),
							    (uint32_t)k, (uint8_t)way };
		}
	if (m)
		vc_sort(next, m, sizeof(*next), by_time);
	m = thin(next, m);
	if (b->relaxed)
		m = relax(next, m);
	b->unproven |= m > LABELS;
	layer[i + 1] = next;
	n[i + 1] = m > LABELS ? LABELS : m;
	return VC_OK;
}

static int choose(struct vc_budget *b, uint64_t bytes, uint8_t *how, double *cost, bool *found,
		  struct vc_error *err)
{
	struct label **layer = calloc(b->n + 1, sizeof(*layer));
	size_t *n = calloc(b->n + 1, sizeof(*n));
	int r = layer && n ? VC_OK : vc_nomem(err, "choices");

	*found = false;
	if (r == VC_OK && !(layer[0] = calloc(1, sizeof(**layer))))
		r = vc_nomem(err, "choices");
	if (r == VC_OK)
		n[0] = b->elsewhere <= bytes;
	for (size_t i = 0; r == VC_OK && i < b->n; i++)
		r = step(b, i, bytes, layer, n, err);
	if (r == VC_OK && n[b->n]) {
		*found = true;
		*cost = layer[b->n][0].cost;
		for (size_t i = b->n, at = 0; i > 0; i--) {
			how[i - 1] = layer[i][at].how;
			at = layer[i][at].from;
		}
	}
	for (size_t i = 0; layer && i <= b->n; i++)
		free(layer[i]);
	VC_FREE(layer, n);
	return r;
}

uint64_t vc_budget_hosted(const struct vc_budget *b, const uint8_t *how)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < b->n; i++)
		sum += sent(&b->at[i], how[i]);
	return sum;
}

/* From too low and too high (0: not known) a price to the next one. */
static double price_of(double low, double high)
{
	return high > 0 ? (low + high) / 2 : low > 0 ? 4 * low : PRICE;
}

static int bound(struct vc_budget *b, uint64_t bytes, uint8_t *how, double *cost, bool *found,
		 struct vc_error *err)
{
	double low = 0, high = 0;

	*cost = b->price = 0;
	for (int k = 0; k < PRICED; k++) {
		double priced;

		VC_TRY(choose(b, bytes, how, &priced, found, err));
		if (!*found)
			return VC_OK;
		*cost = fmax(*cost, priced - b->price * (double)b->host);
		*(vc_budget_hosted(b, how) <= b->host ? &high : &low) = b->price;
		if (k == 0 && vc_budget_hosted(b, how) <= b->host)
			return VC_OK;
		b->price = price_of(low, high);
	}
	return VC_OK;
}

int vc_budget_bound(struct vc_budget *b, uint64_t bytes, double *cost, bool *found,
		    struct vc_error *err)
{
	uint8_t *how = calloc(b->n + 1, sizeof(*how));
	int r;

	VC_HAVE(how, "a choice of modules", err);
	b->relaxed = true;
	r = bound(b, bytes, how, cost, found, err);
	b->relaxed = false;
	free(how);
	return r;
}

/* Where the host has too little, a byte of it gets a price, the lowest that suffices. */
int vc_budget_choose(struct vc_budget *b, uint64_t bytes, uint8_t *how, double *cost, bool *found,
		     struct vc_error *err)
{
	double low = 0, high = 0;

	b->price = 0;
	for (int k = 0; k < PRICES; k++) {
		VC_TRY(choose(b, bytes, how, cost, found, err));
		if (!*found)
			return VC_OK;
		*cost = vc_budget_cost(b, how);
		if (vc_budget_hosted(b, how) <= b->host) {
			if (k == 0 || high - low < high / 64)
				return VC_OK;
			high = b->price;
		} else {
			low = b->price;
		}
		b->price = price_of(low, high);
	}
	*found = vc_budget_hosted(b, how) <= b->host;
	return VC_OK;
}

uint64_t vc_budget_peak(const struct vc_budget *b, const uint8_t *how)
{
	uint64_t most = b->elsewhere, freed = 0;

	for (size_t i = 0; i < b->n; i++) {
		const struct vc_budget_unit *u = &b->at[i];

		vc_raise(&most, u->need[how[i]] > freed ? u->need[how[i]] - freed : 0);
		vc_raise(&most, u->hard[how[i]]);
		freed += (uint64_t)u->freed[how[i]];
		vc_raise(&most, u->between > freed ? u->between - freed : 0);
	}
	return most;
}

uint64_t vc_budget_floor(const struct vc_budget *b, size_t *at, bool *behind)
{
	uint64_t most = b->elsewhere, freed = 0;

	*at = b->n;
	*behind = false;
	for (size_t i = 0; i < b->n; i++) {
		const struct vc_budget_unit *u = &b->at[i];
		uint64_t least = UINT64_MAX, own = 0;

		for (int way = 0; way < VC_BUDGET_WAYS; way++) {
			uint64_t need = u->need[way] > freed ? u->need[way] - freed : 0;

			if (!can(b, i, way))
				continue;
			vc_raise(&need, u->hard[way]);
			least = need < least ? need : least;
			vc_raise(&own, (uint64_t)u->freed[way]);
		}
		freed += own;
		uint64_t after = u->between > freed ? u->between - freed : 0;
		if (least <= most && after <= most)
			continue;
		*at = i;
		*behind = after > least;
		most = *behind ? after : least;
	}
	return most;
}

double vc_budget_cost(const struct vc_budget *b, const uint8_t *how)
{
	double sum = 0;

	for (size_t i = 0; i < b->n; i++)
		sum += b->at[i].cost[how[i]];
	return sum;
}

void vc_budget_fini(struct vc_budget *b)
{
	for (size_t i = 0; i < b->n; i++)
		free(b->at[i].name);
	free(b->at);
	*b = (struct vc_budget){ 0 };
}
