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

int vc_pinned_read(struct vc_family *f, struct vc_error *err)
{
	f->pinned = calloc(f->n, sizeof(*f->pinned));
	VC_HAVE(f->pinned, "pinned memory of a recording", err);
	for (size_t k = 0; k < f->n; k++) {
		const struct vc_trace *t = f->m[k].trace;
		struct vc_pinned *p = &f->pinned[k];

		for (size_t i = 0; i < t->n; i++) {
			if (t->ev[i].device != f->m[k].device || !vc_pinned_is(t->meta, &t->ev[i]))
				continue;
			VC_HAVE(vc_vec_one(p->size, p->n), "pinned memory of a recording", err);
			p->size[p->n++] = (double)t->ev[i].size;
		}
	}
	return VC_OK;
}

void vc_pinned_fini(struct vc_family *f)
{
	for (size_t k = 0; f->pinned && k < f->n; k++)
		free(f->pinned[k].size);
	free(f->pinned);
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
	l = vc_law_fit(s, n, 0);
	return vc_law_at(&l, x);
}

uint64_t *vc_pinned_sizes(const struct vc_family *f, size_t base, const double *at)
{
	const struct vc_pinned *p = f->pinned;
	bool alike = f->axes == 1 && f->n > 1 && f->n <= SAMPLES && p[0].n;
	uint64_t *out;

	for (size_t k = 1; alike && k < f->n; k++)
		alike = p[k].n == p[0].n;
	out = alike ? malloc(p[base].n * sizeof(*out)) : NULL;
	for (size_t i = 0; out && i < p[base].n; i++) {
		struct vc_sample s[SAMPLES];

		for (size_t k = 0; k < f->n; k++)
			s[k] = (struct vc_sample){ f->x[k][0], p[k].size[i] };
		out[i] = at[0] == f->x[base][0] ? (uint64_t)p[base].size[i] :
						  vc_size_of(size_at(s, f->n, at[0]));
	}
	return out;
}
