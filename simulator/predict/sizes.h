/* SPDX-License-Identifier: Apache-2.0 */
/* sizes.h - how large each allocation of a recording is at the target of a prediction: by laws, by
 * the data of its step, by the plans of kernels. */
#ifndef VC_SIZES_H
#define VC_SIZES_H

#include "simulator/predict/outline.h"

/* Of one prediction, the best guess or one draw. */
struct vc_sizes {
	struct vc_family *f;
	const struct vc_scaling *v;
	const struct vc_allocations *b;
	size_t base;
	enum vc_bound bound;
	const struct vc_target *target;
	const struct vc_outline *o;
	double growth[2];          /* product of the axes' ratios, in training and in evaluation */
	bool same;                 /* the target was recorded */
	bool data;                 /* steps have the data of others */
	uint32_t *drawn;           /* which step each step gets its data from; NULL: its own */
	unsigned plan;             /* which draw of workspace; 0: none */
	unsigned draw;             /* which draw of the lengths of steps; 0: none */
	double rest;               /* see struct vc_family_ask */
	double off;                /* of data: factor by the bound */
	const struct vc_spread_factors *factors; /* of data, where they are drawn */
	uint64_t *sized;           /* bytes + 1 by allocation, once asked for; before: 0 */
};

/* All but what vc_sizes_begin makes. The target is lent. */
struct vc_sizes vc_sizes_of_ask(struct vc_family *f, size_t base, const struct vc_family_ask *ask,
				const struct vc_target *target);
/* After a failure, too, vc_sizes_end. Errors: VC_ENOMEM. */
int vc_sizes_begin(struct vc_sizes *k, struct vc_error *err);
void vc_sizes_end(struct vc_sizes *k);

/* Bytes of allocation i. Blocks of data are as large as those of their size in the step only for
 * vc_sizes_of. */
uint64_t vc_sizes_at(const struct vc_sizes *k, size_t i);
/* For the events, of which a block has two and more. */
static inline uint64_t vc_sizes_of(struct vc_sizes *k, size_t i)
{
	if (!k->sized[i])
		k->sized[i] = vc_sizes_at(k, i) + 1;
	return k->sized[i] - 1;
}
/* How many indices an embedding has. */
uint64_t vc_sizes_indices(const struct vc_sizes *k, const struct vc_sort *s);

#endif
