/* SPDX-License-Identifier: Apache-2.0 */
/* classify.h - what blocks are for, from labels, call sites and lifetimes; and what to call them.
 */
#pragma once

#include "common/site.h"
#include "simulator/replay/result.h"
#include "visualize/theme.h"

/* Answers for one result. Where call sites are known for most bytes the layers are categories
 * (weights, activations, ...), else classes of lifetime; both use the same slots and colours. */
struct vc_classes {
	const struct vc_result *r;   /* lent */
	bool categories, lent;       /* lent: another's arrays */
	uint8_t *of_life;            /* enum vc_slot of each r->lives.at[i] */
	uint32_t *by_id; size_t ids; /* indices of lives, sorted by id */
};

int vc_classes_init(struct vc_classes *c, const struct vc_result *r, struct vc_error *err);
/* Those of `known`, lent, where they are of r (NULL: they are not); else made. */
int vc_classes_lend(struct vc_classes *c, const struct vc_classes *known,
		    const struct vc_result *r, struct vc_error *err);
void vc_classes_fini(struct vc_classes *c);
/* Lifetimes in place of categories: beside a run that has none, a hue must not mean two things. */
void vc_classes_to_lifetimes(struct vc_classes *c);

const char *vc_classes_name(const struct vc_classes *c, enum vc_slot slot);
enum vc_slot vc_slot_most(const uint64_t of_slot[VC_SLOTS]); /* the one with most bytes */
/* The slot of block `id`; VC_SLOT_OTHER when its life is not known. */
enum vc_slot vc_classes_of_id(const struct vc_classes *c, uint64_t id);
/* The iteration that an event lies in, as the phases of the run say. */
uint32_t vc_iteration_of(const struct vc_steps *t, uint64_t event);
const struct vc_life *vc_classes_life(const struct vc_classes *c, uint64_t id); /* or NULL */

/* Who holds bytes: blocks of one call site (or label) and slot together. */
struct vc_owner {
	uint32_t site, label;
	enum vc_slot slot;
	uint64_t bytes, blocks, largest, id; /* id: of the largest block */
	bool at_start;                       /* it existed before the first event */
};
struct vc_owners {
	struct vc_owner *at; size_t n; /* largest first, ties by name and id */
	uint64_t bytes, event, time_ns;
	bool at_oom, of_allocated;     /* heap at the OOM; at the peak of allocated (from lives) */
};
/* Of the heap at the OOM, or at the peak of reserved, or from the lives: what there is. n = 0:
 * nothing known. */
int vc_owners_init(struct vc_owners *o, const struct vc_classes *c, struct vc_error *err);
/* The same, one entry per block and with the site the block was made at, in no order. */
int vc_owners_gather(struct vc_owners *o, const struct vc_classes *c, struct vc_error *err);
void vc_owners_fini(struct vc_owners *o);
/* For each frame one that stands for all of the same line of code, however it was reached; the
 * caller's. NULL: no memory. */
uint32_t *vc_owner_frames(const struct vc_meta *m);
void vc_owner_text(const struct vc_meta *m, const struct vc_owner *o, char *buf, size_t cap);
