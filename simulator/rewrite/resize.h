/* SPDX-License-Identifier: Apache-2.0 */
/* resize.h - transforms that give blocks another size by what they are, and add some of their
 * own. */
#pragma once

#include "simulator/rewrite/copies.h"

struct vc_resize;

/* Bytes of a block; 0: it never exists. */
typedef uint64_t vc_resize_fn(struct vc_resize *r, const struct vc_block_life *b);
/* Called before the first and behind the last event of a span: may add events with vc_clone_*. */
typedef int vc_resize_hook(struct vc_resize *r, const struct vc_span *p, const struct vc_event *e,
			   struct vc_error *err);

/* A block that is asked for in another size than it is kept in, or has a companion. */
struct vc_extra {
	uint64_t
		first; /* bytes until block `turn` (a number of block) is asked for; 0: as kept */
	uint32_t turn;
	uint64_t beside;  /* bytes of the companion, asked for right behind it; 0: none */
	uint32_t pieces;  /* blocks that the companion consists of, all alike; 0: one */
	uint32_t until;   /* block before which the companion goes; UINT32_MAX: with its block */
};

struct vc_resize {
	struct vc_clone c;
	const void *config;
	vc_resize_fn *size;
	vc_resize_hook *enter, *leave;  /* may be NULL */
	/* Called before a block is asked for, behind its birth, and behind that of a gradient; may
	 * be NULL. */
	int (*asked)(struct vc_resize *r, const struct vc_block_life *b, const struct vc_event *e,
		     struct vc_error *err);
	int (*made)(struct vc_resize *r, const struct vc_block_life *b, const struct vc_event *e,
		    struct vc_error *err);
	int (*born)(struct vc_resize *r, const struct vc_block_life *b, const struct vc_event *e,
		    struct vc_error *err);
	/* Gradients are given back this many allocations after their birth; 0: as recorded. */
	unsigned gradients_live;
	/* ... and a smaller block stays in their place: its bytes per gradient block; NULL: none.
	 */
	vc_resize_fn *shard;
	/* Blocks that live so many allocations only (0: as recorded), by number of block; NULL:
	 * none. Filled by the transform in `prepare`, released here. */
	uint8_t *lives;
	const struct vc_meta *meta; /* set by the transform that wants call sites */
	uint8_t *wide, *halved;     /* by number of block, the transform's own; released here */
	struct vc_extra *extra;     /* by number of block; NULL: none; released here */
	bool float_loss;            /* losses are computed in float, by their call sites */
	int (*prepare)(struct vc_resize *r,
		       struct vc_error *err); /* when anatomy and trainable are known */
	/* Trainable tensors: the gradients of one iteration, in order of birth. */
	uint64_t *trainable; size_t trainables;
	uint64_t trainable_bytes, largest;  /* sum, and largest of them */
	uint64_t *held; size_t helds;       /* blocks added in enter, freed in leave */
	bool held_by_gradient;
	size_t gradient_at; /* held[i] goes when gradient i of the pass is there */
	uint64_t total;                     /* free for the transform's own use */
	bool own_attention;                 /* torch.nn.MultiheadAttention is in the call sites */
	bool convolutional;                 /* the model is mostly convolutions */
};

/* Everything: anatomy, rewriting, release. Errors: VC_EUSAGE when no iterations are found. */
int vc_resize_run(struct vc_resize *r, struct vc_source *s, struct vc_whole *w,
		  struct vc_error *err);

/* In a hook: add a block, remembered in held when `hold` so that vc_resize_release frees it. */
int vc_resize_add(struct vc_resize *r, const struct vc_event *e, uint64_t size, bool hold,
		  struct vc_error *err);
int vc_resize_release(struct vc_resize *r, const struct vc_event *e, struct vc_error *err);
