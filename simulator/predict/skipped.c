/* SPDX-License-Identifier: Apache-2.0 */
/* skipped.c - see skipped.h */
#include "simulator/predict/skipped.h"

#include "common/torch_names.h"

enum { INNERMOST = 3, STATES = 2 }; /* exp_avg and exp_avg_sq, torch/optim/adam.py */

/* GradScaler.scale is the one function of an optimizer's file that runs before the backward pass
 * (common/torch_names.def). */
static bool has_scaler(const struct vc_meta *m)
{
	const uint32_t scale = VC_NAME_OPTIMIZER | VC_NAME_QUIET;

	for (uint32_t f = 1; m && f < m->frames; f++)
		if (vc_frame_roles(m, f, scale) == scale)
			return true;
	return false;
}

bool vc_skipped_all(const struct vc_allocations *m)
{
	if (!has_scaler(m->trace->meta))
		return false;
	for (uint32_t i = 0; i < m->n; i++)
		if (m->take[i].site && vc_allocations_called(m, i, INNERMOST, VC_NAME_OPTIM))
			return false;
	return true;
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
