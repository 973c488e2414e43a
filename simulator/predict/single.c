/* SPDX-License-Identifier: Apache-2.0 */
/* single.c - what one recording alone says about its sizes at another value: hardly ever a size,
 * mostly two between which it lies.
 *
 * A size that divides by the value is no proof that it depends on it (a quarter of the varying
 * bytes of one public pair had the size of a parameter), evaluation may have a batch of its own,
 * and losses over pairs of samples and experts with a capacity grow with the square: what is open
 * is left open, and the answer is a pair of bounds. */

#include "common/torch_names.h"
#include "common/torch_sizes.h"
#include "simulator/anatomy/anatomy.h"
#include "simulator/predict/scaling.h"

enum { TELLING = 3 }; /* everything divides by 1, and by 2 nearly everything */

bool vc_family_counts(const char *name)
{
	return strstr(name, "batch") || !strcmp(name, "bs") || !strcmp(name, "n");
}

/* The side of a picture: tokens grow with its square, attention with its fourth power. */
static bool is_side(const char *name)
{
	static const char *const word[] = { "image",  "img",   "side", "res",   "size",
					   "height", "width", "crop", "patch", NULL };

	for (size_t i = 0; word[i]; i++)
		if (strstr(name, word[i]))
			return true;
	return false;
}

/* A parameter's copy of half or twice the size (autocast, master weights)? One is kept for the
 * backward pass; one of the same size hardly ever is. */
static bool is_cast(const struct vc_allocations *m, uint64_t size)
{
	return vc_allocations_has_lasting(m, 2 * size) ||
	       (size % 2 == 0 && vc_allocations_has_lasting(m, size / 2));
}

/* Of cuBLAS, where a product borrows it from the allocator and gives it back at once. */
static bool is_workspace(const struct vc_allocations *m, size_t i)
{
	return vc_is_torch_workspace(m->take[i].size) && m->died[i] == m->born[i] + 1;
}

/* Values of 1 to 8 bytes for each pair of samples (contrastive losses). */
static bool is_of_pairs(uint64_t size, double x)
{
	for (double bytes = 1; bytes <= 8; bytes *= 2)
		if (x > 4 && fabs((double)size - bytes * x * x) < 0.5)
			return true;
	return false;
}

/* einsum is how tokens are sent to experts, whose capacity grows with the batch as they do. */
static bool calls_einsum(const struct vc_allocations *m)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (vc_allocations_called(m, i, 3, VC_NAME_EINSUM))
			return true;
	return false;
}

static enum vc_single judge(const struct vc_allocations *m, const struct vc_anatomy *a, size_t i,
			    const char *name, double x)
{
	const struct vc_take *t = &m->take[i];
	bool sure = a->n == m->n && a->confidence >= VC_ANATOMY_SURE;
	const struct vc_block_life *b = sure ? &a->block[i] : NULL;
	enum vc_phase phase = b && b->span < a->spans ? a->span[b->span].phase : VC_PHASE_OTHER;
	bool like = vc_allocations_has_lasting(m, t->size) || is_cast(m, t->size),
	     divides = fmod((double)t->size, x) < 0.5;

	if (vc_allocations_lasts(m, i) || is_workspace(m, i))
		return VC_SINGLE_STAYS;
	if (like && b && (b->category == VC_CAT_GRADIENT || b->category == VC_CAT_STATE ||
			  b->category == VC_CAT_OPTIMIZER_TEMP))
		return VC_SINGLE_STAYS;
	if (b && phase != VC_PHASE_OTHER && (!strncmp(name, "eval", 4) || !strncmp(name, "val", 3)))
		return VC_SINGLE_STAYS;
	bool kept = vc_family_counts(name) && divides && b && b->category == VC_CAT_ACTIVATION &&
		    phase == VC_PHASE_FORWARD;

	if (like && kept && !is_cast(m, t->size))
		return VC_SINGLE_KEPT;
	if (like || (vc_family_counts(name) && !divides))
		return VC_SINGLE_HOLDS;
	if (vc_family_counts(name) && is_of_pairs(t->size, x))
		return VC_SINGLE_PAIRS;
	if (vc_family_counts(name) && x >= TELLING && m->died[i] != m->born[i] + 1 &&
	    (phase == VC_PHASE_FORWARD || phase == VC_PHASE_BACKWARD))
		return VC_SINGLE_GROWS;
	return kept ? VC_SINGLE_KEPT : VC_SINGLE_MOVES;
}

int vc_single_settle(const struct vc_allocations *m, const char *name, double x, uint8_t *how,
		     struct vc_error *err)
{
	bool experts = vc_family_counts(name) && calls_einsum(m);
	struct vc_anatomy a = { 0 };
	int rc = vc_anatomy_of(&a, m->trace, m->device, err);

	for (size_t i = 0; !rc && i < m->n; i++) {
		how[i] = judge(m, &a, i, name, x);
		if (experts && (how[i] == VC_SINGLE_GROWS || how[i] == VC_SINGLE_KEPT ||
				how[i] == VC_SINGLE_MOVES))
			how[i] = VC_SINGLE_SQUARES;
	}
	vc_anatomy_fini(&a);
	return rc;
}

double vc_single_factor(enum vc_single how, const char *name, double x, double at,
			enum vc_bound bound)
{
	bool squares = how == VC_SINGLE_PAIRS || how == VC_SINGLE_SQUARES;
	double ratio = at / x, near = squares ? ratio : 1,
	       far = pow(ratio, vc_family_counts(name) ? squares ? 2 : 1 : is_side(name) ? 4 : 2);

	if (how == VC_SINGLE_STAYS)
		return 1;
	if (how == VC_SINGLE_GROWS || (how == VC_SINGLE_KEPT && ratio > 1))
		return ratio;
	if (bound)
		return bound == VC_BOUND_LOW ? fmin(near, far) : fmax(near, far);
	return how == VC_SINGLE_HOLDS ? 1 :
	       how == VC_SINGLE_PAIRS || (how == VC_SINGLE_MOVES && is_side(name)) ? ratio * ratio :
										     ratio;
}
