/* SPDX-License-Identifier: Apache-2.0 */
/* pinned.c - pinned memory of the host at a value nobody recorded
 *
 * A batch is pinned before it is copied to the card, so pinned memory grows with it. PyTorch's
 * allocator of it asks for powers of two (CachingHostAllocator.h, c10::llvm::PowerOf2Ceil): where
 * all that was recorded are powers of two, so is what is predicted. */
#include "simulator/predict/scaling.h"

#include "common/vec.h"
#include "common/param.h"

enum { SAMPLES = 64 };

bool vc_pinned_is(const struct vc_meta *m, const struct vc_event *e)
{
	return e->kind == VC_EV_OUTSIDE_ALLOC && e->label < m->strings &&
	       !strcmp(m->string[e->label], VC_LABEL_PINNED);
}

/* Sizes of one recording's pinned allocations, in order, and how many; NULL: nobody wants them. */
static size_t read_sizes(const struct vc_allocations *m, double *size)
{
	const struct vc_trace *t = m->trace;
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (t->ev[i].device != m->device || !vc_pinned_is(t->meta, &t->ev[i]))
			continue;
		if (size)
			size[n] = (double)t->ev[i].size;
		n++;
	}
	return n;
}

static double next_power(double v)
{
	return exp2(ceil(log2(v) - 1e-9));
}

VC_COMPARE(by_x, struct vc_sample, VC_ORDER(x->x, y->x))

/* One allocation's size by recording, at x. */
static double size_at(struct vc_sample *s, size_t n, double x)
{
	double unit = s[0].y / next_power(s[0].x);
	bool powers = true;
	struct vc_law l;

	for (size_t i = 0; i < n; i++)
		powers &= s[i].y == next_power(s[i].y) && s[i].y == unit * next_power(s[i].x);
	if (powers)
		return unit * next_power(x);
	vc_sort(s, n, sizeof(*s), by_x);
	l = vc_law_fit(s, n);
	return vc_law_at(&l, x);
}

uint64_t *vc_pinned_sizes(const struct vc_family *f, size_t base, const double *at)
{
	size_t n = read_sizes(&f->m[base], NULL);
	bool alike = f->axes == 1 && f->n > 1 && f->n <= SAMPLES && n && at[0] != f->x[base][0];

	for (size_t k = 0; alike && k < f->n; k++)
		alike = read_sizes(&f->m[k], NULL) == n;
	double *size = alike ? malloc(n * f->n * sizeof(*size)) : NULL;
	uint64_t *out = size ? malloc(n * sizeof(*out)) : NULL;

	for (size_t k = 0; out && k < f->n; k++)
		read_sizes(&f->m[k], size + k * n);
	for (size_t i = 0; out && i < n; i++) {
		struct vc_sample s[SAMPLES] = { { 0, 0 } };

		for (size_t k = 0; k < f->n; k++)
			s[k] = (struct vc_sample){ f->x[k][0], size[k * n + i] };
		out[i] = vc_size_of(size_at(s, f->n, at[0]));
	}
	free(size);
	return out;
}
