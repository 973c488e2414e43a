/* SPDX-License-Identifier: Apache-2.0 */
/* loops.h - loops of the program that turn as often as the parameter says (a cell over the frames
 * of a video, the words of a sentence): a larger value asks for more blocks, not for larger ones.
 */
#ifndef VC_LOOPS_H
#define VC_LOOPS_H

#include "simulator/predict/allocations.h"
#include "simulator/predict/family.h"
#include "simulator/predict/laws.h"

/* Allocations [from, to) of one recording are turns of `period` allocations, all alike; another
 * recording has fewer or more. */
struct vc_loop {
	uint32_t from, to, period;
	double per;              /* turns by unit of the parameter, where `count` is NULL */
	struct vc_sample *count; /* turns of each of `counts` recordings, by the parameter */
	size_t counts;
	double turns;            /* of its own; first and last ones may stand outside [from, to) */
	double share;            /* of the turns more or less that fall to this piece of it */
};

struct vc_loops {
	struct vc_loop *at;
	size_t n;
	uint32_t *like;    /* by allocation of a loop: that of its first turn, or VC_UNMATCHED */
};

/* Turns of `b`, recorded at x, that another recording `o`, at y < x, has not: match[i] of b's
 * allocations in it, or VC_UNMATCHED. The caller frees with vc_loops_fini. Errors: VC_ENOMEM. */
int vc_loops_find(const struct vc_allocations *b, double x, const struct vc_allocations *o,
		  double y, const uint32_t *match, struct vc_loops *out, struct vc_error *err);
void vc_loops_fini(struct vc_loops *l);

/* Say which allocations are of all turns but the first, of those with a count. */
void vc_loops_once(const struct vc_loops *l, bool *skip);

/* Say which allocations of b are of the turns that a recording `more` units below it has not. */
void vc_loops_skip(const struct vc_loops *l, double more, bool *skip);

/* How many turns more (or, below zero, fewer) each loop makes at x than at `own`, where it was
 * recorded; low, high: by the laws that leave the fewest and the most. more: l->n entries. May the
 * last turn of one of them not be full? */
bool vc_loops_more(const struct vc_loops *l, double own, double x, enum vc_bound bound,
		   int64_t *more);

/* Is allocation i of the last turn (first: of the first) of a loop with a count that makes at least
 * two of them? Where blocks of one size lie together it does not matter which turn is not full. */
bool vc_loops_at_end(const struct vc_loops *l, uint32_t i, bool first);

/* The events of b with so many turns more of each loop, or fewer. */
struct vc_looped {
	struct vc_trace trace;  /* events only */
	uint32_t *of;           /* of block id - from: the allocation of b it repeats */
	uint64_t from, ids;     /* ids [from, ids) are new */
	uint64_t turns;         /* all that were added or left out */
};

int vc_loops_repeat(const struct vc_loops *l, const struct vc_allocations *b, const int64_t *more,
		    struct vc_looped *out, struct vc_error *err);
void vc_looped_fini(struct vc_looped *t);

#endif
