/* SPDX-License-Identifier: Apache-2.0 */
/* period.c - the length of an iteration, in allocations, and where iterations begin. */
#include "simulator/anatomy/period.h"

#include "common/vec.h"

enum { CANDIDATES = 48 }; /* lags that are looked at; bounds a table */

/* ---- the lag of an iteration ---- */

struct seen { uint64_t token; size_t at; };
struct lag { size_t lag, count; };

VC_COMPARE(by_token, struct seen, VC_THEN(VC_ORDER(x->token, y->token), VC_ORDER(x->at, y->at)))
VC_COMPARE(by_lag, struct lag, VC_ORDER(x->lag, y->lag))
VC_COMPARE(by_count, struct lag, VC_THEN(VC_ORDER(y->count, x->count), VC_ORDER(x->lag, y->lag)))

/* Distances between equal allocations, the most frequent first. Of an allocation made many times
 * per iteration each distance up to eight occurrences on counts. */
static size_t candidates(const struct vc_anatomy_work *w, struct lag *out, struct vc_error *err)
{
	size_t n = w->a->n, m = 0, k = 0;
	struct seen *s = malloc((n + 1) * sizeof(*s));
	struct lag *l = malloc((n * 2 + 1) * sizeof(*l));

	if (!s || !l) {
		vc_nomem(err, "the period of a trace");
	} else {
		for (size_t i = 0; i < n; i++)
			s[i] = (struct seen){ w->token[i], i };
		vc_sort(s, n, sizeof(*s), by_token);
		for (size_t i = 0; i < n; i++) {
			size_t run = i;
			while (run + 1 < n && s[run + 1].token == s[i].token)
				run++;
			for (size_t j = i; run - i < 64 && j < run; j++)
				if (s[j + 1].at - s[j].at >= VC_SHORTEST && m < n * 2)
					l[m++] = (struct lag){ s[j + 1].at - s[j].at, 1 };
			i = run;
		}
		vc_sort(l, m, sizeof(*l), by_lag);
		for (size_t i = 0; i < m; i++)
			if (k && l[k - 1].lag == l[i].lag)
				l[k - 1].count++;
			else
				l[k++] = l[i];
		vc_sort(l, k, sizeof(*l), by_count);
		k = k < CANDIDATES ? k : CANDIDATES;
		memcpy(out, l, k * sizeof(*l));
	}
	VC_FREE(s, l);
	return k;
}

static bool repeats(const struct vc_anatomy_work *w, size_t i, size_t lag)
{
	uint64_t a = w->before[i], b = w->before[i + lag];

	return w->token[i] == w->token[i + lag] && (a > b ? a - b : b - a) <= VC_SLACK + a / 200;
}

/* Live bytes between lowest and highest over [from, to). */
static uint64_t swing(const struct vc_anatomy_work *w, size_t from, size_t to)
{
	uint64_t lo = UINT64_MAX, hi = 0;

	for (size_t i = from; i < to && i < w->a->n; i++) {
		lo = w->before[i] < lo ? w->before[i] : lo;
		hi = w->before[i] > hi ? w->before[i] : hi;
	}
	return hi > lo ? hi - lo : 0;
}

/* How many allocations come again one lag later; none where memory hardly moves in between (the
 * loop of an optimizer over its tensors repeats as well). */
static size_t score(const struct vc_anatomy_work *w, size_t lag, uint64_t whole)
{
	size_t good = 0, looked = 0, wide = 0;

	for (size_t i = 0; i + lag < w->a->n; i++)
		good += repeats(w, i, lag);
	for (size_t i = 0, k = 0; i + lag < w->a->n && looked < 24; i++)
		if (repeats(w, i, lag) && k++ % (good / 24 + 1) == 0) {
			looked++;
			wide += swing(w, i, i + lag) * 4 >= whole;
		}
	return wide * 2 >= looked ? good : 0;
}

/* Bytes between the lowest moment after the parameters exist and the highest of all. */
static uint64_t whole_swing(const struct vc_anatomy_work *w)
{
	uint64_t hi = 0, lo = UINT64_MAX;
	size_t peak = 0;

	for (size_t i = 0; i < w->a->n; i++)
		if (w->before[i] > hi) {
			hi = w->before[i];
			peak = i;
		}
	for (size_t i = peak; i < w->a->n; i++)
		lo = w->before[i] < lo ? w->before[i] : lo;
	return hi > lo ? hi - lo : 0;
}

void vc_period_lag(struct vc_anatomy_work *w, struct vc_error *err)
{
	struct lag c[CANDIDATES];
	size_t n = candidates(w, c, err), best = 0;
	uint64_t whole = whole_swing(w);

	for (size_t i = 0; i < n; i++) {
		c[i].count = score(w, c[i].lag, whole);
		best = c[i].count > best ? c[i].count : best;
	}
	/* A multiple of the period repeats as well, a little less often: the shortest of the
	 * good. */
	for (size_t i = 0; i < n; i++)
		if (c[i].count * 10 >= best * 9 && c[i].count >= VC_SHORTEST &&
		    (!w->lag || c[i].lag < w->lag))
			w->lag = c[i].lag;
}

/* ---- boundaries ---- */

static unsigned alike(const struct vc_anatomy_work *w, size_t i, size_t j)
{
	unsigned good = 0;

	for (size_t k = 0; k < VC_SIGNATURE && i + k < w->a->n && j + k < w->a->n; k++)
		good += w->token[i + k] == w->token[j + k];
	return good;
}

/* The same with up to as many others in between: workspaces of the first iteration. */
unsigned vc_alike_with_gaps(const struct vc_anatomy_work *w, size_t i, size_t j)
{
	unsigned good = 0;
	size_t at = i;

	if (w->token[i] != w->token[j])
		return 0;
	for (size_t k = 0; k < VC_SIGNATURE && j + k < w->a->n; k++)
		for (size_t x = at; x < w->a->n && x < i + 2 * VC_SIGNATURE; x++)
			if (w->token[x] == w->token[j + k]) {
				good++;
				at = x + 1;
				break;
			}
	return good;
}

/* In the longest stretch that repeats, the allocation with the least live memory before it. */
static size_t lowest(const struct vc_anatomy_work *w, double *share)
{
	size_t n = w->a->n, best_from = 0, best_len = 0, from = 0, good = 0, bad = 0;

	for (size_t i = 0; i + w->lag < n; i++) {
		if (repeats(w, i, w->lag)) {
			good++;
			bad = 0;
		} else if (++bad > 16) {
			from = i + 1;
			good = 0;
		}
		if (good > best_len) {
			best_len = good;
			best_from = from;
		}
	}
	*share = best_len >= w->lag ? 1 : (double)best_len / (double)w->lag;
	size_t at = best_from;
	for (size_t i = best_from; i < best_from + w->lag && i < n; i++)
		if (w->before[i] < w->before[at])
			at = i;
	return at;
}

int vc_period_start(struct vc_anatomy_work *w, size_t at, struct vc_error *err)
{
	VC_HAVE(vc_vec_one(w->start, w->starts), "the iterations of a trace", err);
	w->start[w->starts++] = at;
	return VC_OK;
}

/* The first iteration has no optimizer states yet: same beginning, about one lag earlier. */
static size_t first_start(const struct vc_anatomy_work *w, size_t second)
{
	size_t best = SIZE_MAX, off = w->lag;

	for (size_t i = 0; i + VC_SIGNATURE < second; i++) {
		size_t distance = second - i,
		       d = distance > w->lag ? distance - w->lag : w->lag - distance;
		if (vc_alike_with_gaps(w, i, second) >= VC_SIGNATURE - 1 &&
		    w->before[i] <= w->before[second] + VC_SLACK && d < off && d * 2 < w->lag) {
			off = d;
			best = i;
		}
	}
	return best;
}

/* The first micro-batch of an iteration looks like the others but begins with other live memory,
 * for there are no gradients yet: such a beginning one lag before the stretch found means that the
 * lag is that of a micro-batch. Gives the lag between two of them, or 0. */
static size_t longer_lag(const struct vc_anatomy_work *w, size_t model)
{
	uint64_t floor = w->before[model];
	size_t last = SIZE_MAX, lag = 0;

	for (size_t i = 0; i + w->lag + VC_SIGNATURE < w->a->n; i++) {
		uint64_t b = w->before[i], c = w->before[i + w->lag];

		if (alike(w, i, model) < VC_SIGNATURE ||
		    alike(w, i + w->lag, model) < VC_SIGNATURE ||
		    (b > floor ? b - floor : floor - b) <= VC_SLACK + floor / 200 ||
		    (c > floor ? c - floor : floor - c) > VC_SLACK + floor / 200)
			continue;
		if (last != SIZE_MAX && i - last >= 2 * w->lag && (!lag || i - last < lag))
			lag = i - last;
		last = i;
	}
	return lag;
}

int vc_period_boundaries(struct vc_anatomy_work *w, struct vc_error *err)
{
	double share;
	size_t model = lowest(w, &share), last = SIZE_MAX, longer = longer_lag(w, model);

	if (longer) {
		w->lag = longer;
		model = lowest(w, &share);
	}
	uint64_t floor = w->before[model];

	w->a->confidence = share;
	for (size_t i = 0; i < w->a->n; i++) {
		uint64_t b = w->before[i], off = b > floor ? b - floor : floor - b;
		if (alike(w, i, model) < VC_SIGNATURE - 1 || off > VC_SLACK + floor / 200 ||
		    (last != SIZE_MAX && i - last < w->lag * 7 / 10))
			continue;
		if (!w->starts) {
			size_t first = first_start(w, i);
			if (first != SIZE_MAX)
				VC_TRY(vc_period_start(w, first, err));
		}
		VC_TRY(vc_period_start(w, i, err));
		last = i;
	}
	return VC_OK;
}
