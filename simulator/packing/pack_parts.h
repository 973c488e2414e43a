/* SPDX-License-Identifier: Apache-2.0 */
/* pack_parts.h - what the files of the packer share. */
#pragma once

#include "simulator/packing/packing.h"

/* A stretch of sections, one behind another: the least time that matters (see packing.c). */
struct vc_stretch { uint32_t from, to; };

/* A block in sections: one stretch, or two where it lives over the end of what repeats. */
struct vc_piece {
	struct vc_stretch at[2];
	uint32_t stretches;
	uint32_t index;  /* of the block */
	uint32_t length; /* sections */
	uint64_t size, time;
};

struct vc_pieces {
	struct vc_piece *at; size_t n;
	uint32_t sections;
	uint64_t *load;      /* per section: sizes of all blocks that live in it */
	uint64_t bound;      /* the largest of them */
};


/* Who lives together with whom. */
struct vc_near {
	struct vc_neighbours { uint32_t *at; uint32_t n; } *of; /* by piece */
	uint32_t *store;
};

/* Numbers by chance, the same on every machine (xorshift64*). */
static inline uint64_t vc_dice(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * 0x2545f4914f6cdd1du >> 32;
}

/* Offsets by piece, found by one method. */
struct vc_layout { uint64_t *offset, height; };

/* Steps that are left; negative: none. */
struct vc_budget { int64_t left; };

/* Place the pieces in that order, each at the lowest (or, `tight`, in the tightest) gap between
 * those placed before. Stops when the height reaches `give_up`: then l->height is UINT64_MAX. */
struct vc_fit;
struct vc_fit *vc_fit_new(const struct vc_pieces *s, struct vc_error *err);
void vc_fit_free(struct vc_fit *f);
int vc_fit_place(struct vc_fit *f, const uint32_t *order, bool tight, uint64_t give_up,
		 struct vc_layout *l, struct vc_budget *b, struct vc_error *err);

/* A packing of at most `capacity`. NONE: there is none (never said with `jump`, which looks at
 * less). */
enum vc_pack_found { VC_PACK_NONE, VC_PACK_FOUND, VC_PACK_TIRED };
struct vc_pack_search;
struct vc_pack_search *vc_pack_search_new(const struct vc_pieces *s, const struct vc_near *near,
				struct vc_error *err);
void vc_pack_search_free(struct vc_pack_search *x);
enum vc_pack_found vc_pack_search_run(struct vc_pack_search *x, const uint32_t *order,
				      uint64_t capacity, bool jump, struct vc_layout *l,
				      struct vc_budget *b);

/* By piece: its dead ends in the last run; those where it alone had no room count twice. */
const uint32_t *vc_pack_search_trouble(const struct vc_pack_search *x);
