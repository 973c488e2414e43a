/* SPDX-License-Identifier: Apache-2.0 */
/* skipped.c - see skipped.h */
#include "simulator/predict/skipped.h"

#include "common/torch_names.h"

enum {
	INNERMOST = 3,
	STATES = 2,     /* exp_avg and exp_avg_sq, torch/optim/adam.py */
	FEW = 4,        /* blocks: workspace of handles stays, too */
	TELLING = 4096, /* bytes: smaller blocks are alike by chance */
};

/* GradScaler.scale is the one function of an optimizer's file that runs before the backward pass
 * (common/torch_names.def). */
static const uint32_t scale = VC_NAME_OPTIMIZER | VC_NAME_QUIET;

static bool has_scaler(const struct vc_meta *m)
{
	for (uint32_t f = 1; m && f < m->frames; f++)
		if (vc_frame_roles(m, f, scale) == scale)
			return true;
	return false;
}

/* The first request of a scaler; m->n: it makes none. */
static uint32_t first_scaled(const struct vc_allocations *m)
{
	uint32_t i = 0;

	while (i < m->n && !(m->take[i].site && vc_allocations_called(m, i, INNERMOST, scale)))
		i++;
	return i;
}

/* Did it begin in the middle of a run, whose optimizer may have made its states before? */
static bool is_late(const struct vc_trace *t)
{
	for (size_t i = 0; i < t->n && t->ev[i].kind != VC_EV_ALLOC; i++)
		if (t->ev[i].kind >= VC_EV_HEAP_SEGMENT)
			return true;
	return false;
}

/* States come after the first loss and stay, whoever made them. */
static bool has_states(const struct vc_allocations *m, uint32_t from)
{
	size_t n = 0;

	for (uint32_t i = from; i < m->n; i++)
		n += m->take[i].size > TELLING && vc_allocations_lasts(m, i);
	return n > FEW;
}

bool vc_skipped_all(const struct vc_allocations *m)
{
	if (!has_scaler(m->trace->meta) || is_late(m->trace))
		return false;
	uint32_t from = first_scaled(m);

	for (uint32_t i = from; i < m->n; i++)
		if (m->take[i].site && vc_allocations_called(m, i, INNERMOST, VC_NAME_OPTIM))
			return false;
	return from < m->n && !has_states(m, from);
}

/* Blocks of that size that come and go. */
static size_t passing(const struct vc_allocations *m, uint64_t size)
{
	size_t n = 0;

	for (uint32_t i = 0; i < m->n; i++)
		n += m->take[i].size == size && !vc_allocations_lasts(m, i);
	return n;
}

uint64_t vc_skipped_states(const struct vc_allocations *m)
{
	uint64_t bytes = 0;

	for (size_t i = 0, to; i < m->lastings; i = to) {
		size_t n = passing(m, m->lasting[i]); /* gradients among them */

		for (to = i; to < m->lastings && m->lasting[to] == m->lasting[i]; to++)
			bytes += to - i < n ? STATES * m->lasting[to] : 0;
	}
	return bytes;
}
