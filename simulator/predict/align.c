/* SPDX-License-Identifier: Apache-2.0 */
/* align.c - ordered matching of two allocation sequences.
 *
 * First Myers' O(ND) difference over pairs whose sizes a known law relates exactly, in windows so
 * that neither time nor memory depends on how different the rest is; then, inside the holes that
 * remain, a small dynamic program that also takes sizes that merely could belong together. */

#include "simulator/predict/align.h"
#include "common/vec.h"

enum {
	WINDOW = 1200,      /* differences before the best path is committed; bounds time */
	HOLE = 4000000,     /* cells of a hole for the dynamic program; bounds time */
	OTHER_LIVES = 50,   /* one in so many blocks may live longer or shorter in a counterpart */
};

#define POWERS_FROM 0.15 /* of the bytes alone: third and fourth powers are considered */

struct pair {
	const struct vc_take *a, *b;
	size_t na, nb;
	const struct vc_ratios *r;
	uint32_t *match;
};

static bool same_place(const struct vc_take *a, const struct vc_take *b)
{
	return a->site == b->site && a->stream == b->stream;
}

static bool related(const struct vc_ratios *r, uint64_t a, uint64_t b)
{
	for (size_t i = 0; i < r->n; i++)
		if (fabs((double)a * r->at[i] - (double)b) < 0.5)
			return true;
	return false;
}

static bool sure(const struct pair *p, size_t i, size_t j)
{
	return same_place(&p->a[i], &p->b[j]) && related(p->r, p->a[i].size, p->b[j].size);
}

/* ---- Myers, forwards, with the furthest x of every diagonal kept for the way back ---- */

/* What d differences reach: the furthest x of every second diagonal from -d to d. Beyond either end
 * stands NOWHERE, as on diagonals that leave the sequences. */
struct row { int32_t *x; int32_t d; };
#define NOWHERE (INT32_MIN / 2)

/* Where x of diagonal 0 stands, or would stand. */
static int32_t *middle(const struct row *r)
{
	return r->x + r->d + 2;
}

static bool is_down(const int32_t *prev, int32_t k)
{
	return prev[k + 1] > prev[k - 1];
}

static int32_t furthest(const int32_t *prev, int32_t k)
{
	return is_down(prev, k) ? prev[k + 1] : prev[k - 1] + 1;
}

/* Write the matches of the path that ends on diagonal k after d differences; cut what lies beyond
 * a-index `keep`. */
static void walk_back(const struct pair *p, size_t i0, size_t j0, const struct row *row, int32_t d,
		      int32_t k, int32_t x)
{
	for (; d >= 0; d--) {
		const int32_t *prev = d ? middle(&row[d - 1]) : NULL;
		int32_t from = d ? furthest(prev, k) : 0;
		while (x > from) {
			x--;
			p->match[i0 + (size_t)x] = (uint32_t)(j0 + (size_t)(x - k));
		}
		if (!d)
			break;
		k += is_down(prev, k) ? 1 : -1;
		x = prev[k];
	}
}

struct reach { int32_t d, k, x; bool end; };
#define APART __attribute__((noinline))

/* How far a diagonal goes on. Most do not, and inlined it would take registers from all. */
static APART int32_t slide(const struct pair *p, size_t i, size_t j, int32_t n)
{
	int32_t x = 0;

	while (x < n && sure(p, i + (size_t)x, j + (size_t)x))
		x++;
	return x;
}

/* One difference more than those of `prev`. Returns whether the end of both was reached. */
static APART bool grow_row(const struct pair *p, size_t i0, size_t j0, const int32_t *prev,
			   int32_t *now, struct reach *best)
{
	int32_t na = (int32_t)(p->na - i0), nb = (int32_t)(p->nb - j0), d = best->d;
	int32_t most = INT32_MIN;

	for (int32_t k = -d; k <= d; k += 2) {
		int32_t x = prev ? furthest(prev, k) : 0, end = na - k < nb ? na : nb + k;

		if (x < 0 || x > end) {
			now[k] = NOWHERE;
			continue;
		}
		if (x < end && p->a[i0 + (size_t)x].site == p->b[j0 + (size_t)(x - k)].site)
			x += slide(p, i0 + (size_t)x, j0 + (size_t)(x - k), end - x);
		now[k] = x;
		if (2 * x - k <= most)
			continue;
		most = 2 * x - k;
		best->k = k;
		best->x = x;
	}
	return most == na + nb;
}

/* Grow row by row until the end of both sequences or WINDOW differences. */
static int grow(const struct pair *p, size_t i0, size_t j0, struct row *row, struct reach *best)
{
	*best = (struct reach){ 0 };
	for (int32_t d = 0; d <= WINDOW && !best->end; d++) {
		row[d].d = d;
		row[d].x = malloc(sizeof(int32_t) * (size_t)(2 * d + 5));
		if (!row[d].x)
			return VC_ENOMEM;
		int32_t *now = middle(&row[d]);

		now[-d - 2] = now[d + 2] = NOWHERE;
		best->d = d;
		best->x = -1;
		best->end = grow_row(p, i0, j0, d ? middle(&row[d - 1]) : NULL, now, best);
	}
	return 0;
}

static int difference(const struct pair *p, struct vc_error *err)
{
	struct row *row = calloc(WINDOW + 1, sizeof(*row));
	size_t i = 0, j = 0;
	int rc = row ? 0 : VC_ENOMEM;

	while (!rc) {
		struct reach best;
		rc = grow(p, i, j, row, &best);
		if (!rc)
			walk_back(p, i, j, row, best.d, best.k, best.x);
		for (int32_t d = 0; d <= WINDOW; d++) {
			free(row[d].x);
			row[d].x = NULL;
		}
		if (rc || best.end)
			break;
		i += (size_t)best.x;
		j += (size_t)(best.x - best.k);
		if (i >= p->na || j >= p->nb)
			break;
	}
	free(row);
	return rc ? vc_nomem(err, "the alignment of two recordings") : 0;
}

/* ---- the holes ---- */

/* How well two allocations of a hole go together; 0: not at all. A larger parameter never makes a
 * block smaller (a smaller one never larger), and nothing grows faster than the fastest law. */
static int affinity(const struct pair *p, size_t i, size_t j, double low, double high)
{
	const struct vc_take *a = &p->a[i], *b = &p->b[j];

	if (!same_place(a, b) || !a->size || !b->size)
		return 0;
	double ratio = (double)b->size / (double)a->size;
	if (ratio < low * 0.98 || ratio > high * 1.02)
		return 0;
	int good = 4; /* in a hole no two sizes are related any more: they would not be in it */
	if (a->site)
		good += 2;
	if ((a->life <= 1) == (b->life <= 1))
		good += 1;
	if (a->life == b->life)
		good += 1;
	return good;
}

struct hole { size_t i, ni, j, nj; };

static int fill_hole(const struct pair *p, const struct hole *h, struct vc_error *err)
{
	double low = 1, high = 1;
	size_t w = h->nj + 1;
	uint32_t *score = calloc((h->ni + 1) * w, sizeof(*score));

	VC_HAVE(score, "the alignment of two recordings", err);
	for (size_t k = 0; k < p->r->n; k++) {
		low = fmin(low, p->r->at[k]);
		high = fmax(high, p->r->at[k]);
	}
	for (size_t i = h->ni; i-- > 0;)
		for (size_t j = h->nj; j-- > 0;) {
			uint32_t best = score[(i + 1) * w + j], right = score[i * w + j + 1];
			int good = affinity(p, h->i + i, h->j + j, low, high);
			best = best > right ? best : right;
			if (good && score[(i + 1) * w + j + 1] + (uint32_t)good > best)
				best = score[(i + 1) * w + j + 1] + (uint32_t)good;
			score[i * w + j] = best;
		}
	for (size_t i = 0, j = 0; i < h->ni && j < h->nj;) {
		uint32_t s = score[i * w + j];
		int good = affinity(p, h->i + i, h->j + j, low, high);
		if (good && s == score[(i + 1) * w + j + 1] + (uint32_t)good)
			p->match[h->i + i++] = (uint32_t)(h->j + j++);
		else if (s == score[(i + 1) * w + j])
			i++;
		else
			j++;
	}
	free(score);
	return 0;
}

static int fill_holes(const struct pair *p, struct vc_error *err)
{
	size_t i = 0, j = 0;

	while (i < p->na) {
		if (p->match[i] != VC_UNMATCHED) {
			j = (size_t)p->match[i++] + 1;
			continue;
		}
		struct hole h = { .i = i, .j = j };
		while (i < p->na && p->match[i] == VC_UNMATCHED)
			i++;
		h.ni = i - h.i;
		h.nj = (i < p->na ? p->match[i] : p->nb) - j;
		if (h.nj && h.ni * h.nj <= HOLE)
			VC_TRY(fill_hole(p, &h, err));
	}
	return 0;
}

int vc_align(const struct vc_take *a, size_t na, const struct vc_take *b, size_t nb,
	     const struct vc_ratios *r, uint32_t *match, struct vc_error *err)
{
	const struct pair p = { .a = a, .b = b, .na = na, .nb = nb, .r = r, .match = match };

	for (size_t i = 0; i < na; i++)
		match[i] = VC_UNMATCHED;
	VC_TRY(difference(&p, err));
	return fill_holes(&p, err);
}

static size_t holes(const uint32_t *match, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		k += match[i] == VC_UNMATCHED;
	return k;
}

/* Share of the bytes of a that has no counterpart. */
static double alone(const struct vc_take *a, size_t na, const uint32_t *match)
{
	double all = 0, none = 0;

	for (size_t i = 0; i < na; i++) {
		all += (double)a[i].size;
		none += match[i] == VC_UNMATCHED ? (double)a[i].size : 0;
	}
	return all > 0 ? none / all : 0;
}

static int align_two(const struct vc_take *a, size_t na, const struct vc_take *b, size_t nb,
		     double ratio, uint32_t *match, struct vc_error *err)
{
	double square = ratio * ratio;
	const struct vc_ratios by_degree[] = {
		{ .at = { 1, ratio }, .n = 2 },
		{ .at = { 1, ratio, square }, .n = 3 },
		{ .at = { 1, ratio, square, square * ratio, square * square }, .n = 5 },
	};
	uint32_t *next = malloc(sizeof(*next) * (na + 1));
	int rc = next ? VC_OK : vc_nomem(err, "the alignment of two recordings");

	for (size_t k = 0; !rc && k < sizeof(by_degree) / sizeof(*by_degree); k++) {
		if (k && !holes(match, na))
			break; /* nothing is better */
		if (k == 2 && alone(a, na, match) < POWERS_FROM)
			break; /* small numbers are powers of small ratios by chance too often */
		rc = vc_align(a, na, b, nb, &by_degree[k], k ? next : match, err);
		if (!rc && k && holes(next, na) < holes(match, na))
			memcpy(match, next, na * sizeof(*match));
	}
	free(next);
	return rc;
}

/* Two runs that make the same requests from the same places, each of which lives as long as in the
 * other, are matched one by one. Sizes must not decide there: (1000 + 2) * 2 = 2000 + 4 looks like
 * growth in proportion between different layers. */
static bool is_same_run(const struct vc_take *a, size_t na, const struct vc_take *b, size_t nb,
			double ratio)
{
	double all = 0,
	       wrong = 0; /* bytes that shrink where the parameter grows: another configuration */
	size_t other = 0;

	if (na != nb)
		return false;
	for (size_t i = 0; i < na; i++) {
		double x = (double)a[i].size, y = (double)b[i].size;

		if (!same_place(&a[i], &b[i]) ||
		    (a[i].life == UINT32_MAX) != (b[i].life == UINT32_MAX))
			return false;
		other += a[i].life != b[i].life;
		all += x;
		wrong += ratio > 1 ? (y < 0.98 * x ? x : 0) : y > 1.02 * x ? x : 0;
	}
	/* lives: a cache emptied in the order of a hash table */
	return other * OTHER_LIVES <= na && wrong * OTHER_LIVES <= all;
}

/* What is not to be skipped, and where it stood. */
struct kept { struct vc_take *take; uint32_t *at; size_t n; };

static bool keep(const struct vc_take *t, size_t n, const bool *skip, struct kept *out)
{
	*out = (struct kept){ .take = malloc((n + 1) * sizeof(*out->take)),
			      .at = malloc((n + 1) * sizeof(*out->at)) };
	for (size_t i = 0; out->take && out->at && i < n; i++)
		if (!skip || !skip[i]) {
			out->take[out->n] = t[i];
			out->at[out->n++] = (uint32_t)i;
		}
	return out->take && out->at;
}

/* Squares of the ratio are a law of sequence lengths, hardly ever of batch sizes: they are allowed
 * only where they explain allocations that would stay alone otherwise. Where call sites do not fit
 * together (a line was added to the script in between) the order of sizes has to do. found: room
 * for two matches of x. */
static int align_kept(struct kept *x, struct kept *y, double ratio, uint32_t *found,
		      struct vc_error *err)
{
	uint32_t *without = found + x->n;

	if (is_same_run(x->take, x->n, y->take, y->n, ratio)) {
		for (size_t i = 0; i < x->n; i++)
			found[i] = (uint32_t)i;
		return VC_OK;
	}
	VC_TRY(align_two(x->take, x->n, y->take, y->n, ratio, found, err));
	if (holes(found, x->n) * 4 < x->n)
		return VC_OK;
	for (size_t i = 0; i < x->n; i++)
		x->take[i].site = 0;
	for (size_t i = 0; i < y->n; i++)
		y->take[i].site = 0;
	VC_TRY(align_two(x->take, x->n, y->take, y->n, ratio, without, err));
	if (holes(without, x->n) < holes(found, x->n))
		memcpy(found, without, x->n * sizeof(*found));
	return VC_OK;
}

int vc_align_some(const struct vc_take *a, size_t na, const bool *skip_a, const struct vc_take *b,
		  size_t nb, const bool *skip_b, double ratio, uint32_t *match,
		  struct vc_error *err)
{
	struct kept x = { 0 }, y = { 0 };
	uint32_t *found = malloc((2 * na + 1) * sizeof(*found));
	bool room = keep(a, na, skip_a, &x), rooms = keep(b, nb, skip_b, &y);
	int rc = found && room && rooms ? align_kept(&x, &y, ratio, found, err) :
					  vc_nomem(err, "the alignment of two recordings");

	for (size_t i = 0; !rc && i < na; i++)
		match[i] = VC_UNMATCHED;
	for (size_t i = 0; !rc && i < x.n; i++)
		if (found[i] != VC_UNMATCHED)
			match[x.at[i]] = y.at[found[i]];
	VC_FREE(found, x.take, x.at, y.take, y.at);
	return rc;
}
