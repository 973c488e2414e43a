/* SPDX-License-Identifier: Apache-2.0 */
/* plans.c - see plans.h
 *
 * Such workspace is given back before anything else is asked for, is asked for by a layer of
 * torch.nn (but no linear one) or in the backward pass of a program that has such layers or
 * convolutions (whose forward pass may need none), and has a size that no block has that lives
 * longer: that one would be a tensor's. */
#include "simulator/predict/plans.h"

#include <math.h>
#include <stdlib.h>

#include "common/torch_names.h"
#include "common/vec.h"
#include "simulator/predict/workspaces.h"

enum {
	LEAST = 512, /* bytes: the allocator gives no less, so all of these are one */
	NAMED = 2,   /* innermost frames, one of which is of a convolution's module */
};

/* What workspace at 24 samples was of that at 12 and in proportion, on an H100
 * (docs/measurements/gpu.md): none, then the least, the 2nd, 5th, 10th, 25th, 50th, 75th, 90th and
 * 95th of a hundred. */
static const double seen[] = { 0, 0.08, 0.25, 0.47, 0.53, 0.88, 0.98, 1, 1.07, 1.85 };

/* Of a hundred kinds of workspace, how many are at another number of samples what the recordings
 * say: 90 of those on one line through three, and 73 through two (12 programs with the plans that
 * cuDNN 9.19 names for an H100). Two that stay or are in proportion say more than two on another
 * line with whole bytes for each sample: of the blocks of 59 programs on an H100 96, 95 and 60 of a
 * hundred were so in a third. All of it is in docs/measurements/calibration.md. */
enum { KEPT = 90, KEPT_TWO = 73, KEPT_WHOLE = 60, AGREED = 3 };

static bool is_borrowed(const struct vc_allocations *m, uint32_t i)
{
	return m->died[i] != VC_NEVER && m->died[i] == m->born[i] + 1 &&
	       m->take[i].size > LEAST && !(i > 1 && vc_workspace_follows(m, i - 2));
}

/* Asked for by the code of a layer itself, called to compute, and not by a function that it
 * calls. */
static bool by_layer(const struct vc_allocations *m, uint32_t i)
{
	return vc_allocations_called(m, i, 1, VC_NAME_MODULE) &&
	       vc_allocations_called(m, i, 2, VC_NAME_FORWARD) &&
	       !vc_allocations_called(m, i, 1, VC_NAME_LINEAR) &&
	       !vc_allocations_called(m, i, 1, VC_NAME_TRANSFORMER);
}

int vc_plans_mark(const struct vc_allocations *m, bool *plan, bool *layers, struct vc_error *err)
{
	uint64_t *tensor = malloc((m->n + 1) * sizeof(*tensor));
	size_t n = 0;

	VC_HAVE(tensor, "the workspace of a recording", err);
	for (uint32_t i = 0; i < m->n; i++)
		if (!is_borrowed(m, i))
			tensor[n++] = m->take[i].size;
	vc_sort_u64(tensor, n);
	for (uint32_t i = 0; i < m->n; i++) {
		bool fits = is_borrowed(m, i) && !vc_find_u64(tensor, n, m->take[i].size);
		bool layer = fits && m->take[i].site && by_layer(m, i);

		plan[i] = layer || (fits && !m->take[i].site);
		*layers |= layer || vc_allocations_called(m, i, NAMED, VC_NAME_CONV);
	}
	free(tensor);
	return VC_OK;
}

void vc_plans_match(const struct vc_allocations *a, const bool *in_a,
		    const struct vc_allocations *b, const bool *in_b, uint32_t *match)
{
	uint32_t j = 0;

	for (uint32_t i = 0; i < a->n; i++) {
		if (!in_a[i]) {
			j = match[i] == VC_UNMATCHED ? VC_UNMATCHED : match[i] + 1;
			continue;
		}
		if (j >= b->n || !in_b[j] || a->take[i].site != b->take[j].site)
			continue;
		match[i] = j++;
	}
}

static bool is_whole(double v)
{
	return v == floor(v);
}

bool vc_plans_shows(const struct vc_law *l, size_t recordings)
{
	switch (l->kind) {
	case VC_LAW_CONST:
	case VC_LAW_LINEAR:
	case VC_LAW_QUADRATIC:
	case VC_LAW_PADDED:
		return true;
	case VC_LAW_AFFINE:
		return l->a >= 0 && (recordings >= AGREED || is_whole(l->b));
	default:
		return false;
	}
}

unsigned vc_plans_kept(const struct vc_law *l, size_t recordings)
{
	if (recordings < 2 || l->residual > 0)
		return 0;
	if (l->kind == VC_LAW_CONST || l->kind == VC_LAW_LINEAR)
		return recordings >= AGREED ? KEPT : KEPT_TWO;
	if (l->kind != VC_LAW_AFFINE || l->a < 0 || l->c > 0)
		return 0;
	return recordings >= AGREED ? KEPT : is_whole(l->b) ? KEPT_WHOLE : 0;
}

double vc_plans_factor(unsigned draw, uint64_t bytes, unsigned kept)
{
	enum { SEEN = sizeof(seen) / sizeof(*seen) };
	uint64_t x = (bytes ^ (uint64_t)draw << 48) * 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9ull; /* Steele, Lea and Flood's splitmix64 */
	if (!draw || (x >> 8) % 100 < kept)
		return 1;
	return seen[(x >> 32) % SEEN];
}
