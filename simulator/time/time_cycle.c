/* SPDX-License-Identifier: Apache-2.0 */
/* time_cycle.c - where the steps of a run begin among its kernels.
 *
 * The program runs ahead of the GPU, so the moment of a step mark says little about which kernels
 * belong to it. But a step launches the same kernels again: some short sequence of names occurs
 * once in every step, always as many launches apart. The sequences that do so over the longest
 * stretch give the period. Only sequences count that occur about as often as there are known to
 * be steps: a layer, or a micro-batch, cannot pass for a step. */

#include "common/vec.h"
#include "simulator/time/time_profile.h"

enum { WORD = 8, FEWEST = 4 }; /* names per sequence; sequences that must agree */

struct word { uint64_t hash; size_t at; };
struct beat_of { size_t gap, count, equal, first; }; /* a sequence: its usual distance, how often */

VC_COMPARE(by_hash, struct word,
	   VC_THEN(VC_ORDER(x->hash, y->hash), VC_ORDER(x->at, y->at)))

VC_COMPARE(by_size, size_t, VC_ORDER(*x, *y))

/* By length of the period, then by how often. */
VC_COMPARE(by_gap, struct beat_of,
	   VC_THEN(VC_ORDER(x->gap, y->gap), VC_THEN(VC_ORDER(x->count, y->count),
		   VC_ORDER(x->first, y->first))))

static struct word *words(const struct vc_profile *p, size_t n)
{
	struct word *w = calloc(n, sizeof(*w));

	for (size_t i = 0; w && i < n; i++) {
		uint64_t h = 0;

		for (size_t k = 0; k < WORD; k++)
			h = (h ^ p->op[i + k].token) * 0x9e3779b97f4a7c15ull + (h >> 31);
		w[i] = (struct word){ h, i };
	}
	if (w)
		vc_sort(w, n, sizeof(*w), by_hash);
	return w;
}

/* The usual distance of the occurrences w[0..n): that of most of them. */
static struct beat_of judge(const struct word *w, size_t n, size_t *gap)
{
	struct beat_of b = { .count = n, .first = w[0].at };

	for (size_t i = 1; i < n; i++)
		gap[i - 1] = w[i].at - w[i - 1].at;
	vc_sort(gap, n - 1, sizeof(*gap), by_size);
	for (size_t i = 0, k; i < n - 1; i = k) {
		for (k = i; k < n - 1 && gap[k] == gap[i]; k++)
			;
		if (k - i > b.equal || (k - i == b.equal && gap[i] > b.gap)) {
			b.equal = k - i;
			b.gap = gap[i];
		}
	}
	return b;
}

static bool counts(size_t n, size_t expected)
{
	return n >= 2 && n + 1 >= expected && n <= expected + 1;
}

/* All sequences that repeat at one distance in at least a third of the cases. */
static size_t candidates(const struct word *w, size_t n, size_t expected, size_t *gap,
			 struct beat_of *out)
{
	size_t found = 0;

	for (size_t i = 0, k; i < n; i = k) {
		for (k = i; k < n && w[k].hash == w[i].hash; k++)
			;
		if (!counts(k - i, expected))
			continue;
		struct beat_of b = judge(&w[i], k - i, gap);
		if (b.equal * 3 >= k - i - 1 && b.gap >= WORD)
			out[found++] = b;
	}
	vc_sort(out, found, sizeof(*out), by_gap);
	return found;
}

static double stretch(const struct beat_of *b)
{
	return (double)b->gap * (double)b->equal;
}

/* The best group of sequences of one period; at[] is sorted. */
static const struct beat_of *choose(const struct beat_of *at, size_t n)
{
	const struct beat_of *best = NULL;

	for (size_t i = 0, k; i < n; i = k) {
		for (k = i; k < n && at[k].gap == at[i].gap && at[k].count == at[i].count; k++)
			;
		if (k - i >= FEWEST && (!best || stretch(&at[i]) >= stretch(best)))
			best = &at[i];
	}
	return best;
}

/* Of two steps one is whole wherever it is cut, and what is done once, as making the optimizer's
 * states, lies in the first: it is cut as late as may be. */
static const struct beat_of *late(const struct beat_of *at, size_t n, const struct beat_of *best)
{
	size_t second = best->first + best->gap;
	const struct beat_of *last = best;

	for (size_t i = 0; i < n && best->count == 2; i++)
		if (at[i].count == 2 && at[i].first > last->first && at[i].first < second &&
		    at[i].first + at[i].gap >= second)
			last = &at[i];
	return last;
}

static int take(struct vc_profile *p, const struct word *w, size_t n, const struct beat_of *b,
		struct vc_error *err)
{
	size_t i = 0, k;

	while (i < n && w[i].at != b->first)
		i++;
	for (k = i; k < n && w[k].hash == w[i].hash; k++)
		;
	p->begin = calloc(k - i, sizeof(*p->begin));
	VC_HAVE(p->begin, "the steps of a recording", err);
	for (size_t j = i; j < k; j++)
		p->begin[j - i] = w[j].at;
	p->steps = k - i - 1;
	p->from = "kernels";
	return VC_OK;
}

/* One step whose beginning and end the profiler wrote down: what starts within it. */
static int single(struct vc_profile *p, struct vc_error *err)
{
	uint64_t from = p->mark[0].start, to = from + p->mark[0].duration;
	size_t first = p->n, end = 0;

	for (size_t i = 0; i < p->n; i++)
		if (p->op[i].start >= from && p->op[i].start < to) {
			first = i < first ? i : first;
			end = i + 1;
		}
	if (first >= end)
		return VC_OK;
	p->begin = calloc(2, sizeof(*p->begin));
	VC_HAVE(p->begin, "the steps of a recording", err);
	p->begin[0] = first;
	p->begin[1] = end;
	p->steps = 1;
	p->from = "profiler step";
	return VC_OK;
}

/* Nothing repeats exactly (every batch has another length): cut at the marks, unless the GPU lags
 * so far behind the program that they say nothing: then the pieces differ wildly. */
static int at_marks(struct vc_profile *p, struct vc_error *err)
{
	size_t n = 0, i = 0;

	p->begin = calloc(p->marks, sizeof(*p->begin));
	VC_HAVE(p->begin, "the steps of a recording", err);
	for (size_t k = 0; k < p->marks; k++) {
		while (i < p->n && p->op[i].start < p->mark[k].start)
			i++;
		if (i < p->n && (!n || p->begin[n - 1] < i))
			p->begin[n++] = i;
	}
	size_t least = SIZE_MAX, most = 0;
	for (size_t k = 1; k + 1 < n; k++) {
		size_t ops = p->begin[k + 1] - p->begin[k];
		least = ops < least ? ops : least;
		most = ops > most ? ops : most;
	}
	p->steps = n > 2 && most <= 2 * least ? n - 1 : 0;
	p->from = p->steps ? "marks" : NULL;
	return VC_OK;
}

int vc_profile_cycles(struct vc_profile *p, size_t iterations, struct vc_error *err)
{
	size_t expected = p->marks ? p->marks : iterations, found;
	size_t n = p->n > WORD && expected > 1 ? p->n - WORD + 1 : 0;
	struct word *w = n ? words(p, n) : NULL;
	size_t *gap = calloc(n + 1, sizeof(*gap));
	struct beat_of *at = calloc(n / 2 + 1, sizeof(*at));
	const struct beat_of *b = NULL;
	int r = (n && !w) || !gap || !at ? vc_nomem(err, "the steps of a recording") : VC_OK;

	if (r == VC_OK && n) {
		found = candidates(w, n, expected, gap, at);
		b = choose(at, found);
		if (b)
			r = take(p, w, n, late(at, found, b), err);
		else if (p->marks > 1)
			r = at_marks(p, err);
	}
	if (r == VC_OK && p->marks == 1 && p->mark[0].duration)
		r = single(p, err);
	VC_FREE(w, gap, at);
	return r;
}
