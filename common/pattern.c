/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.c - see pattern.h.
 *
 * The symbol of a moment is the order of the last eight events, allocation or free each. A step
 * is the smallest distance at which nearly all symbols come again, the beginning of the run left
 * out. Sizes are used for one thing: memory must rise and fall within a step, else it is the loop
 * of an optimizer over its tensors that repeats. */
#include "common/pattern.h"

#include "common/map.h"
#include "common/vec.h"

enum {
	EVENTS = 2000000,    /* looked at */
	COMPARED = 400000,   /* of them, when a distance is judged */
	SHORTEST = 16,       /* events of the shortest step */
	HOPS = 8,            /* equal moments before one that give a distance each */
	CANDIDATES = 64,     /* distances that are judged */
	WINDOWS = 24,        /* in which memory must rise and fall */
};

struct vc_pattern {
	uint16_t device;
	uint64_t *word;      /* per event: the last 64, 1 = allocation, the newest lowest */
	uint64_t *live;      /* per event: bytes before it */
	uint64_t *size;      /* by block id */
	size_t n, ids;
	uint64_t now, all;   /* live bytes; events, those not looked at too */
};

struct vc_pattern *vc_pattern_new(uint16_t device, struct vc_error *err)
{
	struct vc_pattern *p = calloc(1, sizeof(*p));

	if (!p)
		vc_nomem(err, "the pattern of a recording");
	else
		p->device = device;
	return p;
}

void vc_pattern_free(struct vc_pattern *p)
{
	if (!p)
		return;
	VC_FREE(p->word, p->live, p->size, p);
}

int vc_pattern_add(struct vc_pattern *p, const struct vc_event *ev, size_t n, struct vc_error *err)
{
	for (size_t i = 0; i < n; i++) {
		const struct vc_event *e = &ev[i];
		bool alloc = e->kind == VC_EV_ALLOC;

		if (e->device != p->device || (!alloc && e->kind != VC_EV_FREE))
			continue;
		p->all++;
		if (p->n == EVENTS || e->id > 16 * (uint64_t)EVENTS)
			continue;
		if (!vc_vec_one(p->word, p->n) || !vc_vec_one(p->live, p->n) ||
		    !vc_vec_zeroed(p->size, p->ids, e->id + 1))
			return vc_nomem(err, "the pattern of a recording");
		p->word[p->n] = (p->n ? p->word[p->n - 1] << 1 : 0) | alloc;
		p->live[p->n++] = p->now;
		if (alloc) {
			p->size[e->id] = e->size;
			p->now += e->size;
		} else {
			p->now -= p->size[e->id];
			p->size[e->id] = 0;
		}
	}
	return VC_OK;
}

/* ---- distances ---- */

struct lag { size_t lag, count; };

VC_COMPARE(by_count, struct lag, VC_THEN(VC_ORDER(y->count, x->count), VC_ORDER(x->lag, y->lag)))

/* For each moment the one before it whose last 64 events were the same, plus 1; 0 = none. */
static int link_equals(const struct vc_pattern *p, size_t from, uint32_t *before,
		       struct vc_error *err)
{
	struct vc_map last = { 0 };
	bool room = true;

	for (size_t i = from; room && i < p->n; i++) {
		const uint64_t *at = vc_map_get(&last, p->word[i]);

		before[i] = at ? (uint32_t)*at : 0;
		room = vc_map_put(&last, p->word[i], i + 1);
	}
	vc_map_fini(&last);
	return room ? VC_OK : vc_nomem(err, "the pattern of a recording");
}

/* The most frequent distances between equal moments. */
static int candidates(const struct vc_pattern *p, size_t from, struct lag *out, size_t *k,
		      struct vc_error *err)
{
	size_t most = (p->n - from) / 2, m = 0;
	uint32_t *before = calloc(p->n, sizeof(*before)), *count = calloc(most + 1, sizeof(*count));
	struct lag *all = NULL;
	int r = before && count ? link_equals(p, from, before, err) : VC_ENOMEM;

	for (size_t i = from; r == VC_OK && i < p->n; i++) {
		size_t at = before[i];

		for (int hop = 0; hop < HOPS && at && i + 1 - at <= most;
		     hop++, at = before[at - 1])
			count[i + 1 - at]++;
	}
	for (size_t d = SHORTEST; r == VC_OK && d <= most; d++)
		m += count[d] != 0;
	all = r == VC_OK ? malloc((m + 1) * sizeof(*all)) : NULL;
	m = 0;
	for (size_t d = SHORTEST; all && d <= most; d++)
		if (count[d])
			all[m++] = (struct lag){ d, count[d] };
	if (all) {
		vc_sort(all, m, sizeof(*all), by_count);
		*k = m < CANDIDATES ? m : CANDIDATES;
		memcpy(out, all, *k * sizeof(*all));
	}
	VC_FREE(before, count, all);
	return all ? VC_OK : vc_nomem(err, "the pattern of a recording");
}

/* The widest that memory spans between two moments, and the deepest that it falls. */
struct swing { uint64_t span, fall; };

static struct swing swing(const struct vc_pattern *p, size_t from, size_t end)
{
	uint64_t lo = UINT64_MAX, hi = 0;
	struct swing s = { 0 };

	for (size_t i = from; i < end; i++) {
		lo = p->live[i] < lo ? p->live[i] : lo;
		hi = p->live[i] > hi ? p->live[i] : hi;
		s.fall = hi - p->live[i] > s.fall ? hi - p->live[i] : s.fall;
	}
	s.span = hi > lo ? hi - lo : 0;
	return s;
}

/* Share of the moments that come again so much later. */
static double match(const struct vc_pattern *p, size_t from, size_t lag)
{
	size_t n = p->n - from - lag, good = 0;

	n = n < COMPARED ? n : COMPARED;
	for (size_t i = from; i < from + n; i++)
		good += (uint8_t)p->word[i] == (uint8_t)p->word[i + lag];
	return n ? (double)good / (double)n : 0;
}

/* Whether memory rises and falls within such a distance, wherever one looks. Between two moments of
 * equal level the deeper of two falls is half of what it spans; layers of a forward pass only rise,
 * but for what each needs for itself. */
static bool is_wide(const struct vc_pattern *p, size_t from, size_t lag, uint64_t whole)
{
	size_t room = p->n - from - lag, wide = 0;

	for (size_t k = 0; k < WINDOWS; k++) {
		size_t at = from + room * k / WINDOWS;
		struct swing s = swing(p, at, at + lag);

		wide += s.span >= whole / 16 && s.fall >= s.span / 3;
	}
	return wide * 4 >= WINDOWS * 3;
}

static size_t best_lag(const struct vc_pattern *p, size_t from, const struct lag *c, size_t n,
		       double *confidence)
{
	uint64_t whole = swing(p, from, p->n).span;
	double share[CANDIDATES], best = 0;
	size_t lag = 0;

	for (size_t i = 0; i < n; i++) {
		share[i] = match(p, from, c[i].lag);
		if (share[i] > best && share[i] >= 0.8 && is_wide(p, from, c[i].lag, whole))
			best = share[i];
		else if (share[i] < 0.8)
			share[i] = 0;
	}
	/* Multiples of a step repeat as well; a micro-batch does a little less. */
	for (size_t i = 0; i < n; i++)
		if (best > 0 && share[i] >= best - 0.015 && (!lag || c[i].lag < lag) &&
		    is_wide(p, from, c[i].lag, whole)) {
			lag = c[i].lag;
			*confidence = share[i];
		}
	return lag;
}

/* ---- counting ---- */

/* A landmark is an order of 64 events that is once in a step. */
struct landmark { uint64_t word; size_t last; uint32_t inside, count; };

struct marks { struct landmark *at; size_t mask; };

static struct landmark *landmark(struct marks *m, uint64_t word)
{
	size_t k = (size_t)(word * 0x9e3779b97f4a7c15u >> 32) & m->mask;

	while (m->at[k].inside && m->at[k].word != word)
		k = (k + 1) & m->mask;
	m->at[k].word = word;
	return &m->at[k];
}

/* Counts the landmarks of the step [model, model + lag), none nearer to itself than most of a
 * step. */
static bool count_landmarks(const struct vc_pattern *p, size_t model, size_t lag, struct marks *m)
{
	for (m->mask = 1; m->mask < lag * 2;)
		m->mask *= 2;
	m->at = calloc(m->mask--, sizeof(*m->at));
	for (size_t i = model; m->at && i < model + lag; i++)
		landmark(m, p->word[i])->inside++;
	for (size_t i = 64; m->at && i < p->n; i++) {
		struct landmark *l = landmark(m, p->word[i]);

		if (l->inside != 1 || (l->count && (i - l->last) * 10 < lag * 7))
			continue;
		l->count++;
		l->last = i;
	}
	return m->at;
}

static int by_size(const void *x, const void *y)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	return a > b ? -1 : a < b;
}

/* The first step lacks some landmarks (an optimizer makes its state in it), and others may occur
 * outside steps: the largest count that one in a hundred agrees on, and three at least. */
static uint64_t agreed(const struct marks *m)
{
	uint32_t *count = malloc((m->mask + 1) * sizeof(*count));
	size_t n = 0, few;
	uint64_t steps = 0;

	for (size_t i = 0; count && i <= m->mask; i++)
		if (m->at[i].inside == 1)
			count[n++] = m->at[i].count;
	if (n)
		vc_sort(count, n, sizeof(*count), by_size);
	few = n / 100 + 2;
	for (size_t i = 0; i + few < n && !steps; i++)
		if (count[i] == count[i + few])
			steps = count[i];
	free(count);
	return steps;
}

/* Whether memory is as low each time at the landmark where it is lowest, of those that are in each
 * step: at the end of a step it is, at the end of a micro-batch there are gradients that the first
 * one had not. */
static bool comes_back(const struct vc_pattern *p, size_t model, size_t lag, struct marks *m,
		       uint64_t steps)
{
	size_t low = SIZE_MAX, last = 0, alike = 0, n = 0;

	for (size_t i = model; i < model + lag; i++) {
		const struct landmark *l = landmark(m, p->word[i]);

		if (l->inside == 1 && l->count == steps &&
		    (low == SIZE_MAX || p->live[i] < p->live[low]))
			low = i;
	}
	for (size_t i = p->n / 5; low != SIZE_MAX && i < p->n; i++) {
		uint64_t a = p->live[i], b = p->live[low];

		if (p->word[i] != p->word[low] || (n && (i - last) * 10 < lag * 7))
			continue;
		alike += (a > b ? a - b : b - a) <= b / 32;
		last = i;
		n++;
	}
	return n >= 3 && alike * 10 >= n * 9;
}

/* Steps of that length; 0 when it has too few landmarks. `shorter`: than one that is known to
 * repeat. */
static int count_steps(const struct vc_pattern *p, size_t from, size_t lag, bool shorter,
		       uint64_t *steps, struct vc_error *err)
{
	size_t model = from + (p->n - from - lag) / 2;
	struct marks m;

	*steps = 0;
	VC_HAVE(count_landmarks(p, model, lag, &m), "the pattern of a recording", err);
	*steps = agreed(&m);
	if (shorter && (*steps * lag * 10 < p->n * 7 || !comes_back(p, model, lag, &m, *steps)))
		*steps = 0;
	free(m.at);
	return VC_OK;
}

/* What happens in every tenth step only (a log, an evaluation) makes ten steps the smallest
 * distance at which all comes again. Then the landmarks of a shorter one are there all the time.
 */
static int refine(const struct vc_pattern *p, size_t from, const struct lag *c, size_t n,
		  struct vc_pattern_steps *out, struct vc_error *err)
{
	uint64_t whole = swing(p, from, p->n).span, steps;

	VC_TRY(count_steps(p, from, out->events, false, &out->steps, err));
	if (!out->steps)
		out->steps = p->n / out->events;
	for (size_t i = 0; i < n; i++) {
		double share = c[i].lag * 3 < out->events * 2 ? match(p, from, c[i].lag) : 0;

		if (share < 0.4 || !is_wide(p, from, c[i].lag, whole))
			continue;
		VC_TRY(count_steps(p, from, c[i].lag, true, &steps, err));
		if (steps <= out->steps)
			continue;
		*out = (struct vc_pattern_steps){ steps, c[i].lag, share };
	}
	return VC_OK;
}

int vc_pattern_find(struct vc_pattern *p, struct vc_pattern_steps *out, struct vc_error *err)
{
	struct lag c[CANDIDATES];
	size_t n = 0, from, whole = p->n, lag;

	*out = (struct vc_pattern_steps){ 0 };
	if (p->all == p->n) /* what is freed at the end belongs to no step */
		while (p->n && !(p->word[p->n - 1] & 1))
			p->n--;
	from = p->n / 5;
	if (p->n < 4 * SHORTEST + 64) {
		p->n = whole;
		return VC_OK;
	}
	from = from < 64 ? 64 : from;
	int r = candidates(p, from, c, &n, err);
	lag = r == VC_OK ? best_lag(p, from, c, n, &out->confidence) : 0;
	out->events = lag;
	if (lag)
		r = refine(p, from, c, n, out, err);
	if (out->steps && p->all > whole)
		out->steps += (p->all - whole) / out->events;
	if (out->steps < 3)
		*out = (struct vc_pattern_steps){ 0 };
	p->n = whole;
	return r;
}
