/* SPDX-License-Identifier: Apache-2.0 */
/* pinned.c - see pinned.h
 *
 * A batch is pinned before it is copied to the card, so pinned memory grows with it. PyTorch's
 * allocator of it asks for powers of two (CachingHostAllocator.h, c10::llvm::PowerOf2Ceil): where
 * all that was recorded are powers of two, so is what is predicted. */
#include "simulator/predict/pinned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 64 };

bool vc_pinned_is(const struct vc_meta *m, const struct vc_event *e)
{
	return e->kind == VC_EV_OUTSIDE_ALLOC && e->label < m->strings &&
	       !strcmp(m->string[e->label], VC_LABEL_PINNED);
}

/* Pinned allocations of a recording, on the heap. */
static double *read_pinned(const struct vc_allocations *m, size_t *n)
{
	const struct vc_trace *t = m->trace;
	double *size;

	*n = 0;
	for (size_t i = 0; i < t->n; i++)
		*n += t->ev[i].device == m->device && vc_pinned_is(t->meta, &t->ev[i]);
	size = malloc((*n + 1) * sizeof(*size));
	*n = 0;
	for (size_t i = 0; size && i < t->n; i++)
		if (t->ev[i].device == m->device && vc_pinned_is(t->meta, &t->ev[i]))
			size[(*n)++] = (double)t->ev[i].size;
	return size;
}

static bool is_power(double v)
{
	int exponent;

	return v >= 1 && frexp(v, &exponent) == 0.5;
}

/* One allocation's size by recording, at x. */
static double size_at(struct vc_sample *s, size_t n, double x)
{
	bool powers = true;
	struct vc_law l;

	for (size_t i = 0; i < n; i++)
		powers &= is_power(s[i].y);
	for (size_t i = 1; i < n; i++)
		for (size_t k = i; k > 0 && s[k - 1].x > s[k].x; k--) {
			struct vc_sample swap = s[k];

			s[k] = s[k - 1];
			s[k - 1] = swap;
		}
	l = vc_law_fit(s, n, 0);
	return powers ? exp2(ceil(log2(vc_law_at(&l, x)) - 1e-9)) : vc_law_at(&l, x);
}

uint64_t *vc_pinned_sizes(const struct vc_family *f, size_t base, const double *at)
{
	double *size[SAMPLES] = { NULL };
	size_t n[SAMPLES], there = f->axes == 1 && f->n > 1 && f->n <= SAMPLES ? f->n : 0;
	bool alike = there > 0;
	uint64_t *out = NULL;

	for (size_t k = 0; k < there; k++) {
		size[k] = read_pinned(&f->m[k], &n[k]);
		alike = alike && size[k] && n[k] && n[k] == n[0];
	}
	out = alike ? malloc(n[base] * sizeof(*out)) : NULL;
	for (size_t i = 0; out && i < n[base]; i++) {
		struct vc_sample s[SAMPLES];

		for (size_t k = 0; k < f->n; k++)
			s[k] = (struct vc_sample){ f->x[k][0], size[k][i] };
		out[i] = at[0] == f->x[base][0] ? (uint64_t)size[base][i] :
						  (uint64_t)size_at(s, f->n, at[0]);
	}
	for (size_t k = 0; k < there; k++)
		free(size[k]);
	return out;
}
