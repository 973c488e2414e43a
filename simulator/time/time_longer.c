/* SPDX-License-Identifier: Apache-2.0 */
/* time_longer.c - a step with more micro-batches than were played: what repeats in it is done as
 * often as they take. */
#include "common/repeats.h"
#include "common/vec.h"
#include "simulator/time/time_speeds.h"

static uint64_t mix(uint64_t h, uint64_t x)
{
	return (h ^ x) * 0x9e3779b97f4a7c15ull + (h >> 29);
}

/* What a kernel does, without the bytes: those go by the blocks that its pointers lie in, and other
 * micro-batches get other blocks. */
static uint64_t work_of(const struct vc_meta *m, uint32_t site)
{
	struct vc_kernel_work w;
	uint64_t h = 1;

	if (!site || site >= m->frames ||
	    !vc_kernel_work_parse(m->string[m->frame[site].function], &w))
		return h;
	h = mix(mix(mix(h, w.kind), (uint64_t)*w.type), (uint64_t)w.flops);
	for (size_t i = 0; i < sizeof(w.dim) / sizeof(*w.dim); i++)
		h = mix(h, w.dim[i]);
	return h | 1;
}

/* known: of each site; 0: not looked at. */
static uint64_t symbol(const struct vc_op *o, size_t i, const struct vc_meta *m, uint64_t *known)
{
	uint32_t site = o->work < m->frames ? o->work : 0;

	if (!known[site])
		known[site] = work_of(m, site);
	return mix(mix(mix(mix(o->name, known[site]), (uint64_t)o->stream << 8 | o->kind),
		       o->after ? i + 1 - o->after : 0), o->held ? i + 1 - o->held : 0);
}

static int find(const struct vc_profile *p, const struct vc_meta *m, size_t from, size_t end,
		struct vc_repeats *r, struct vc_error *err)
{
	uint64_t *x = malloc((end - from + 1) * sizeof(*x));
	uint64_t *known = calloc(m->frames + 1, sizeof(*known));
	int rc = x && known ? VC_OK : vc_nomem(err, "the micro-batches of a step");

	for (size_t i = from; rc == VC_OK && i < end; i++)
		x[i - from] = symbol(&p->op[i], i, m, known);
	if (rc == VC_OK)
		vc_repeats_find(x, end - from, r);
	VC_FREE(x, known);
	return rc;
}

static double flops_of(const struct vc_profile *p, const struct vc_meta *m, size_t from, size_t end)
{
	struct vc_kernel_work w;
	double flops = 0;

	for (size_t i = from; i < end; i++) {
		uint32_t work = p->op[i].work, name = p->op[i].name;

		if (work && work < m->frames && name < m->strings &&
		    vc_kernel_work_parse(m->string[m->frame[work].function], &w) &&
		    (vc_kernel_work_is_known(&w) ||
		     vc_speeds_have(p->speeds, p->card, &w, m->string[name])))
			flops += w.flops;
	}
	return flops;
}

/* The `period` operations before `end` once more, `times` times. */
static int insert(struct vc_profile *p, size_t end, size_t period, size_t times,
		  struct vc_error *err)
{
	size_t more = period * times;
	struct vc_op *op = malloc((p->n + more) * sizeof(*op));

	VC_HAVE(op, "the micro-batches of a step", err);
	memcpy(op, p->op, end * sizeof(*op));
	for (size_t i = end; i < end + more; i++) {
		op[i] = op[i - period];
		op[i].after += op[i].after ? (uint32_t)period : 0;
		op[i].held += op[i].held ? (uint32_t)period : 0;
	}
	memcpy(&op[end + more], &p->op[end], (p->n - end) * sizeof(*op));
	for (size_t i = end + more; i < p->n + more; i++) {
		op[i].after += op[i].after > end - period ? (uint32_t)more : 0;
		op[i].held += op[i].held > end - period ? (uint32_t)more : 0;
	}
	free(p->op);
	p->op = op;
	p->cap = p->n += more;
	return VC_OK;
}

int vc_profile_lengthen(struct vc_profile *p, const struct vc_meta *meta, uint64_t have,
			uint64_t want, uint64_t stages, bool *done, struct vc_error *err)
{
	*done = p->steps > 0;
	for (size_t k = p->steps; *done && k-- > (p->steps > 1);) {
		size_t from = p->begin[k], n = p->begin[k + 1] - from, times;
		struct vc_repeats r;
		uint64_t each;

		VC_TRY(find(p, meta, from, p->begin[k + 1], &r, err));
		each = r.period ? vc_repeats_hold(&r, n, have, stages) : 0;
		*done = each && (want - have) % each == 0;
		if (!*done)
			break;
		times = (size_t)((want - have) / each);
		if (k + 1 == p->steps)
			p->shares.flops += (double)times *
				flops_of(p, meta, from + r.end - r.period, from + r.end);
		VC_TRY(insert(p, from + r.end, r.period, times, err));
		for (size_t i = k + 1; i <= p->steps; i++)
			p->begin[i] += r.period * times;
	}
	return VC_OK;
}
