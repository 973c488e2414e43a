/* SPDX-License-Identifier: Apache-2.0 */
/* time_match.c - which kernel of one recording is which of another: by name and order.
 *
 * Myers' difference over names without tile sizes, after both steps were turned to begin at the
 * same place; holes of equal length are filled in order (another kernel for the same purpose). */

#include "common/vec.h"
#include "simulator/time/time_tempo.h"

enum {
	WORD = 6,
	MOST = 2500,
	NEAR = 8
}; /* names that tell a place; differences before giving up */

struct side { const struct vc_profile *p; size_t shift, n; };

static uint64_t token(const struct side *s, size_t i)
{
	return s->p->beat[(i + s->shift) % s->n].token;
}

/* ---- where both steps begin ---- */

struct place { uint64_t hash; size_t at; };

VC_COMPARE(by_hash, struct place,
	   VC_THEN(VC_ORDER(x->hash, y->hash), VC_ORDER(x->at, y->at)))

static struct place *places(const struct side *s)
{
	struct place *w = calloc(s->n + 1, sizeof(*w));

	for (size_t i = 0; w && i < s->n; i++) {
		uint64_t h = 0;

		for (size_t k = 0; k < WORD; k++)
			h = (h ^ token(s, i + k)) * 0x9e3779b97f4a7c15ull + (h >> 31);
		w[i] = (struct place){ h, i };
	}
	if (w)
		vc_sort(w, s->n, sizeof(*w), by_hash);
	return w;
}

static bool unique(const struct place *w, size_t n, size_t i)
{
	return (!i || w[i - 1].hash != w[i].hash) && (i + 1 == n || w[i + 1].hash != w[i].hash);
}

/* Turn b to begin where a does: the first place of a that occurs once in both, if the next such
 * place agrees with it (but for a few kernels more or less). seen[i]: 1 + the place in b of place
 * i of a. */
static int turn(const struct side *a, struct side *b, struct vc_error *err)
{
	struct place *x = places(a), *y = places(b);
	size_t *seen = calloc(a->n + 1, sizeof(*seen)), last = SIZE_MAX;
	int r = x && y && seen ? VC_OK : vc_nomem(err, "the kernels of two recordings");

	for (size_t i = 0, j = 0; r == VC_OK && i < a->n && j < b->n;) {
		if (x[i].hash == y[j].hash && unique(x, a->n, i) && unique(y, b->n, j))
			seen[x[i].at] = y[j].at + 1;
		if (x[i].hash <= y[j].hash)
			i++;
		else
			j++;
	}
	for (size_t i = 0; r == VC_OK && i < a->n; i++) {
		if (!seen[i])
			continue;
		size_t shift = (seen[i] - 1 + b->n - i % b->n) % b->n;
		size_t apart = last == SIZE_MAX ? b->n : (shift + b->n - last) % b->n;

		if (apart <= NEAR || (apart < b->n && b->n - apart <= NEAR)) {
			b->shift = last;
			break;
		}
		last = shift;
	}
	VC_FREE(x, y, seen);
	return r;
}

/* ---- the difference ---- */

struct diff {
	const struct side *a, *b;
	size_t from, ea, eb;    /* the part between the common beginning and end */
	int32_t *v[MOST + 1];   /* furthest points after d differences, for the way back */
};

static int32_t slide(const struct diff *d, int32_t x, int32_t y)
{
	while ((size_t)x < d->ea - d->from && (size_t)y < d->eb - d->from &&
	       token(d->a, d->from + (size_t)x) == token(d->b, d->from + (size_t)y)) {
		x++;
		y++;
	}
	return x;
}

/* Number of differences, -1: too many, -2: no memory. */
static int forward(struct diff *d)
{
	int32_t n = (int32_t)(d->ea - d->from), m = (int32_t)(d->eb - d->from);

	for (int step = 0; step <= MOST; step++) {
		int32_t *v = d->v[step] = malloc((2 * (size_t)step + 1) * sizeof(*v));
		const int32_t *u = step ? d->v[step - 1] : NULL;

		if (!v)
			return -2;
		for (int k = -step; k <= step; k += 2) {
			int32_t x = 0;

			/* u holds diagonals -(step-1)..step-1; diagonal k at k + step - 1 */
			if (step && (k == -step ||
				     (k != step && u[k - 1 + step - 1] < u[k + 1 + step - 1])))
				x = u[k + 1 + step - 1];
			else if (step)
				x = u[k - 1 + step - 1] + 1;
			x = x <= n ? x : n;
			x = x - k <= m && x - k >= 0 ? slide(d, x, x - k) : x;
			v[k + step] = x;
			if (x >= n && x - k >= m)
				return step;
		}
	}
	return -1;
}

static void backward(const struct diff *d, int steps, uint32_t *match)
{
	int32_t x = (int32_t)(d->ea - d->from), y = (int32_t)(d->eb - d->from);

	for (int step = steps; step >= 0; step--) {
		const int32_t *u = step ? d->v[step - 1] : NULL;
		int32_t k = x - y, px = 0, py = 0;

		if (step) {
			bool down = k == -step ||
				    (k != step && u[k - 1 + step - 1] < u[k + 1 + step - 1]);
			int32_t pk = down ? k + 1 : k - 1;
			px = u[pk + step - 1];
			py = px - pk;
		}
		while (x > px && y > py) {
			x--;
			y--;
			match[d->from + (size_t)x] = (uint32_t)(d->from + (size_t)y);
		}
		x = px;
		y = py;
	}
}

static int difference(const struct side *a, const struct side *b, uint32_t *match,
		      struct vc_error *err)
{
	struct diff d = { .a = a, .b = b, .ea = a->n, .eb = b->n };
	int steps;

	while (d.from < a->n && d.from < b->n && token(a, d.from) == token(b, d.from)) {
		match[d.from] = (uint32_t)d.from;
		d.from++;
	}
	while (d.ea > d.from && d.eb > d.from && token(a, d.ea - 1) == token(b, d.eb - 1))
		match[--d.ea] = (uint32_t)--d.eb;
	steps = forward(&d);
	if (steps >= 0)
		backward(&d, steps, match);
	for (int i = 0; i <= MOST && d.v[i]; i++)
		free(d.v[i]);
	return steps == -2 ? vc_nomem(err, "the kernels of two recordings") : VC_OK;
}

/* Between two matches as many on either side: the same places under other names. */
static void fill(const struct side *a, const struct side *b, uint32_t *match)
{
	size_t j = 0;

	for (size_t i = 0, k; i < a->n; i = k) {
		for (k = i; k < a->n && match[k] == VC_BEAT_ALONE; k++)
			;
		size_t end = k < a->n ? match[k] : b->n;

		for (size_t m = i; m < k && end - j == k - i; m++)
			if (a->p->beat[m].kind ==
			    b->p->beat[(j + m - i + b->shift) % b->n].kind)
				match[m] = (uint32_t)(j + m - i);
		j = end + 1;
		k++;
	}
}

int vc_beats_match(const struct vc_profile *pa, const struct vc_profile *pb, uint32_t *match,
		   struct vc_error *err)
{
	struct side a = { pa, 0, pa->beats }, b = { pb, 0, pb->beats };
	int r = turn(&a, &b, err);

	for (size_t i = 0; i < a.n; i++)
		match[i] = VC_BEAT_ALONE;
	if (r == VC_OK)
		r = difference(&a, &b, match, err);
	if (r == VC_OK)
		fill(&a, &b, match);
	for (size_t i = 0; i < a.n; i++)
		if (match[i] != VC_BEAT_ALONE)
			match[i] = (uint32_t)((match[i] + b.shift) % b.n);
	return r;
}
