/* SPDX-License-Identifier: Apache-2.0 */
/* single.c - see single.h
 *
 * A size that divides by the value is no proof that it depends on it (a quarter of the varying
 * bytes of one public pair had the size of a parameter), and evaluation may have a batch of its
 * own: what is open is left open, and the answer is a pair of bounds. */
#include "simulator/predict/single.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "common/torch_names.h"
#include "common/torch_sizes.h"
#include "simulator/anatomy/anatomy.h"

#define TELLING 3     /* everything divides by 1, and by 2 nearly everything */
enum {
	SQUARES = 16,    /* sizes that may grow with the square; bounds a table */
	BESIDE = 12,     /* allocations around an einsum */
	LEAST_WIDTH = 64 /* bytes of the smallest norm */
};

#define SMALL 65536   /* bytes: blocks below do not matter when they do not divide by the value */

bool vc_single_counts(const char *name)
{
	return strstr(name, "batch") || !strcmp(name, "bs") || !strcmp(name, "n");
}

static bool is_eval(const char *name)
{
	return !strncmp(name, "eval", 4) || !strncmp(name, "val", 3);
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

/* Values of 1 to 8 bytes for each pair, or each triple, of samples (contrastive losses). */
static int degree(uint64_t size, double x)
{
	for (int power = 3; power > 1; power--)
		for (double bytes = 1; bytes <= 8; bytes *= 2)
			if (x > 4 && fabs((double)size - bytes * pow(x, power)) < 0.5)
				return power;
	return 1;
}

/* A copy in half of the bytes (autocast), or in twice as many, is kept for the backward pass; one
 * of the same size hardly ever is. */
static bool is_cast_of_parameter(const struct vc_allocations *m, uint64_t size)
{
	return vc_allocations_has_lasting(m, 2 * size) ||
	       (size % 2 == 0 && vc_allocations_has_lasting(m, size / 2));
}

/* Of a parameter's size, or its copy of half or twice the size (autocast, master weights)? */
static bool is_like_parameter(const struct vc_allocations *m, uint64_t size)
{
	return vc_allocations_has_lasting(m, size) || is_cast_of_parameter(m, size);
}

/* Of cuBLAS, where a product borrows it from the allocator and gives it back at once. */
static bool is_workspace(const struct vc_allocations *m, size_t i)
{
	return vc_is_torch_workspace(m->take[i].size) && m->died[i] == m->born[i] + 1;
}

/* What a convolution borrows and gives back at once: an algorithm's choice, at another size
 * another's. */
static bool is_borrowed(const struct vc_allocations *m, uint32_t i)
{
	return m->died[i] == m->born[i] + 1 && m->take[i].size >= SMALL &&
	       (!m->take[i].site || vc_allocations_called(m, i, 3, VC_NAME_CONV));
}

/* The sizes that a mixture of experts with a capacity makes for each token and each place in an
 * expert: s = t * c values where an einsum beside them has c rows of d values, the tokens t rows,
 * and d is the width of a norm. */
struct squares { uint64_t size[SQUARES]; size_t n; };

static bool is_width(const struct vc_allocations *m, uint64_t wide)
{
	return wide >= LEAST_WIDTH && wide <= SMALL && vc_allocations_has_lasting(m, wide);
}

static void add_square(struct squares *q, uint64_t size)
{
	for (size_t k = 0; k < q->n; k++)
		if (q->size[k] == size)
			return;
	if (q->n < SQUARES)
		q->size[q->n++] = size;
}

/* Block j, near an einsum of `rows` bytes whose tokens are `data` bytes: s * d * d = rows * data,
 * in floats. */
static void try_square(const struct vc_allocations *m, uint64_t rows, uint64_t data, size_t j,
		       struct squares *q)
{
	double s = (double)m->take[j].size, d = sqrt((double)rows * (double)data / s * 4);

	if (s >= SMALL && m->take[j].size != rows && m->take[j].size != data &&
	    fabs(d - round(d)) < 1e-6 && is_width(m, (uint64_t)d) && fmod((double)data, d) == 0 &&
	    fmod((double)rows, d) == 0)
		add_square(q, m->take[j].size);
}

static void find_squares(const struct vc_allocations *m, struct squares *q)
{
	for (uint32_t i = BESIDE; i + BESIDE < m->n; i++) {
		if (q->n == SQUARES || !vc_allocations_called(m, i, 3, VC_NAME_EINSUM))
			continue;
		for (size_t k = i - BESIDE; k < i + BESIDE; k++)
			for (size_t j = i - BESIDE; k != i && j < i + BESIDE; j++)
				try_square(m, m->take[i].size, m->take[k].size, j, q);
	}
}

static bool is_square(const struct squares *q, uint64_t size)
{
	for (size_t k = 0; k < q->n; k++)
		if (q->size[k] == size || 2 * q->size[k] == size || q->size[k] == 2 * size)
			return true;
	return false;
}

static enum vc_single judge(const struct vc_allocations *m, const struct vc_anatomy *a,
			    const struct squares *q, size_t i, const char *name, double x)
{
	const struct vc_take *t = &m->take[i];
	bool sure = a->n == m->n && a->confidence >= VC_ANATOMY_SURE;
	const struct vc_block_life *b = sure ? &a->block[i] : NULL;
	enum vc_phase phase = b && b->span < a->spans ? a->span[b->span].phase : VC_PHASE_OTHER;
	bool like = is_like_parameter(m, t->size), divides = fmod((double)t->size, x) < 0.5;

	if (vc_allocations_lasts(m, i) || is_workspace(m, i))
		return VC_SINGLE_STAYS;
	if (like && b && (b->category == VC_CAT_GRADIENT || b->category == VC_CAT_STATE ||
			  b->category == VC_CAT_OPTIMIZER_TEMP))
		return VC_SINGLE_STAYS;
	if (b && is_eval(name) && phase != VC_PHASE_OTHER)
		return VC_SINGLE_STAYS;
	if (!vc_single_counts(name)) /* lengths and sides: squares, tokens and patches, no rule of
					division */
		return like ? VC_SINGLE_HOLDS : VC_SINGLE_MOVES;
	if (degree(t->size, x) > 2)
		return VC_SINGLE_TRIPLES;
	if (is_square(q, t->size))
		return VC_SINGLE_SQUARE;
	bool kept = b && b->category == VC_CAT_ACTIVATION && phase == VC_PHASE_FORWARD && divides;
	if (kept && like && !is_cast_of_parameter(m, t->size))
		return VC_SINGLE_DATA;
	if (like)
		return VC_SINGLE_HOLDS;
	if (degree(t->size, x) > 1)
		return VC_SINGLE_PAIRS;
	if (!divides)
		return t->size < SMALL ? VC_SINGLE_STAYS : VC_SINGLE_HOLDS;
	if (x >= TELLING && b && (phase == VC_PHASE_FORWARD || phase == VC_PHASE_BACKWARD) &&
	    !is_borrowed(m, (uint32_t)i))
		return VC_SINGLE_GROWS;
	return kept ? VC_SINGLE_DATA : VC_SINGLE_MOVES;
}

int vc_single_settle(const struct vc_allocations *m, const char *name, double x, uint8_t *how,
		     struct vc_error *err)
{
	const struct vc_trace *t = m->trace;
	struct vc_anatomy a = { 0 };
	struct squares q = { .n = 0 };
	int rc = vc_anatomy_of(&a, t, m->device, err);

	if (!rc && vc_single_counts(name))
		find_squares(m, &q);
	for (size_t i = 0; !rc && i < m->n; i++)
		how[i] = judge(m, &a, &q, i, name, x);
	vc_anatomy_fini(&a);
	return rc;
}

double vc_single_factor(enum vc_single how, const char *name, double x, double at,
			enum vc_bound bound)
{
	double ratio = at / x, likely = ratio, far = ratio;

	if (how == VC_SINGLE_STAYS)
		return 1;
	if (how == VC_SINGLE_GROWS || (how == VC_SINGLE_DATA && ratio > 1))
		return ratio;
	if (how == VC_SINGLE_SQUARE)
		return bound == VC_BOUND_HIGH ? fmax(ratio, ratio * ratio) :
		       bound == VC_BOUND_LOW  ? fmin(ratio, ratio * ratio) : ratio;
	if (how == VC_SINGLE_PAIRS || how == VC_SINGLE_TRIPLES)
		likely = far = pow(ratio, how == VC_SINGLE_PAIRS ? 2 : 3);
	else if (!vc_single_counts(name)) {
		far = pow(ratio, is_side(name) ? 4 : 2);
		likely = is_side(name) ? ratio * ratio : ratio;
	}
	if (bound == VC_BOUND_LOW)
		return fmin(1, far);
	if (bound == VC_BOUND_HIGH)
		return fmax(1, far);
	return how == VC_SINGLE_HOLDS ? 1 : likely;
}
