/* SPDX-License-Identifier: Apache-2.0 */
/* copies.h - a stretch of events once more, with new blocks. */
#pragma once

#include "simulator/anatomy/anatomy.h"
#include "simulator/rewrite/rewrite.h"

struct vc_clone {
	struct vc_whole *w;
	struct vc_anatomy a;
	uint32_t *of_id;       /* block + 1 by id of the recording */
	uint64_t *alias;       /* by id: the id that stands for it now; 0: none, it was dropped */
	uint64_t ids;          /* length of both */
	uint64_t *weight; size_t weights; /* sizes of parameters, ascending */
	size_t keeps; /* copies of blocks that die at or behind this event stay for good; 0: none
			 do */
};

/* Bytes that block b asks for in this copy; 0 keeps its size. */
typedef uint64_t vc_clone_size_fn(void *arg, const struct vc_block_life *b);

int vc_clone_init(struct vc_clone *c, struct vc_source *s, struct vc_whole *w,
		  struct vc_error *err);
void vc_clone_fini(struct vc_clone *c);

const struct vc_block_life *vc_clone_block(const struct vc_clone *c, uint64_t id);

/* Emit one event of the recording as it stands now: through the aliases, what was dropped left out,
 * outdated evidence too. */
int vc_clone_event(struct vc_clone *c, const struct vc_event *e, struct vc_error *err);

/* Emit events [first, end) with fresh blocks. A block born there that the recording frees later is
 * handed over: the copy's predecessor is freed where the copy is born, the recording's free then
 * frees the copy. size may be NULL. */
int vc_clone_range(struct vc_clone *c, size_t first, size_t end, vc_clone_size_fn *size, void *arg,
		   struct vc_error *err);

/* Parts of the above. Emit an ALLOC (its id is returned through *id) or a FREE like event e. */
int vc_clone_copy(struct vc_clone *c, const struct vc_event *e, size_t first, size_t end,
		  struct vc_error *err); /* one event of such a stretch, sizes kept */
int vc_clone_alloc(struct vc_clone *c, const struct vc_event *e, uint64_t size, uint64_t *id,
		   struct vc_error *err);
int vc_clone_free(struct vc_clone *c, const struct vc_event *e, uint64_t id, struct vc_error *err);

/* Events of the last iteration that is followed by another one, so that all its blocks had the
 * chance to be given back; false: there is none. */
bool vc_clone_steady(const struct vc_clone *c, size_t *first, size_t *end, uint32_t *iteration);

/* Say so (a note) when much was alive before the recording began: no transform knows what it is
 * for, so it stays as it is. */
void vc_clone_say_heap(const struct vc_clone *c, struct vc_source *s);

/* The recording up to the end of its last iteration, before copies are put there, and what comes
 * behind (a program that ends gives everything back). *rest: events up to there. */
size_t vc_clone_end(const struct vc_clone *c); /* events up to there */
int vc_clone_steps(struct vc_clone *c, size_t *rest, struct vc_error *err);
int vc_clone_rest(struct vc_clone *c, size_t rest, struct vc_error *err);

/* Sizes of another amount of data in the same step: what depends on it times share, parameters,
 * gradients and blocks of their sizes as they are. arg: struct vc_share. */
struct vc_share { const struct vc_clone *c; double share; };
uint64_t vc_clone_share(void *arg, const struct vc_block_life *b);
