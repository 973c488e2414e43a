/* SPDX-License-Identifier: Apache-2.0 */
/* source.h - anything events can be pulled from.
 *
 * A decoder reads a file; a transform reads another source. Both are the same type, so a pipeline
 * is a linked list and the engine cannot tell them apart.
 *
 * Memory: a decoder takes at most so many bytes for each byte of its input (after unpacking, which
 * common/io.h bounds): torch_snapshot, memory_viz, vct 96, ops 64, kineto 32; a journal is mapped.
 * tests/cli/memory.sh holds them to it, with files made to cost as much as they can. */
#pragma once

#include "common/error.h"
#include "common/event.h"
#include "common/meta.h"
#include "common/param.h"

struct vc_input; /* common/io.h: bytes one may peek at, decompressed */
struct vc_source;
struct vc_margin;
struct vc_step_change;
struct vc_remedy;
struct vc_whole; /* simulator/rewrite/rewrite.h */

struct vc_source_type {
	const char *name;
	const char *summary;
	const struct vc_param *params; /* NULL: none */
	size_t config_size;
	size_t state_size;

	/* Transforms only; simulator/replay/transform.h. */
	const struct vc_margin *margin; /* NULL: never measured, an answer with it is `unknown` */
	/* (opt) Where some parameters need another margin. */
	const struct vc_margin *(*margin_with)(const void *config);
	/* What it does to a step; vc_step_unchanged; NULL: not known, so no time is predicted. */
	void (*step)(const void *config, struct vc_step_change *c);
	const struct vc_remedy *remedies; /* (opt) when it is good advice; ends with kind = NULL */
	/* (opt) Can it be made in the program itself, from outside (python/change_hook.py)? NULL,
	 * or why this one cannot. */
	const char *(*unmade)(const void *config);
	/* (opt) For those that must see the whole trace first; VC_WHOLE in rewrite.h. */
	int (*rewrite)(struct vc_source *s, struct vc_whole *w, struct vc_error *err);

	/* Decoders only: bits of evidence that the input is mine; 0 = not mine. The highest wins.
	 */
	int (*probe)(struct vc_input *in);
	int (*open)(struct vc_source *s, struct vc_error *err); /* (opt) */
	/* Fill up to cap events; > 0: so many, 0: end, < 0: failed. After 0 meta is complete. */
	long (*next)(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err);
	bool whole; /* decoders: all was read before the first event came, so to read it again costs
		     * more than to keep what came */
	bool on_demand; /* transforms: there may be no end, nobody reads all of it at once */
	/* (opt) The same without a copy: events that lie in memory, valid while the source lives.
	 */
	long (*view)(struct vc_source *s, const struct vc_event **ev);
	/* (opt) The whole trace behind it, where it is in memory; valid while the source lives. */
	const struct vc_trace *(*trace)(const struct vc_source *s);
	void (*close)(struct vc_source *s); /* (opt) also called when open failed */
};

struct vc_source {
	const struct vc_source_type *type;
	struct vc_source *upstream; /* transforms: where events come from; NULL for decoders */
	struct vc_input *input;     /* decoders: owned; NULL for transforms */
	struct vc_meta *meta;       /* owned by the decoder, shared along the pipeline */
	void *config;               /* parsed parameters, laid out by type->params */
	void *state;                /* type->state_size zeroed bytes */
	/* vc_source_open where it came from a file: for transforms, which know no decoders, to
	 * read one more recording. NULL: there are none. */
	struct vc_source *(*reads)(const char *path, struct vc_error *err);
	size_t expected;            /* decoders: some more events than will come; 0: not known */
	bool lent;                  /* meta is another's: not to be written to, not freed */
	struct vc_memo *holds;      /* let go of with the source, or NULL */
};

extern const struct vc_source_type *const vc_sources[]; /* NULL-terminated */

/* Open a trace file ("-": standard input) with the decoder that recognises it.
 * "FILE@batch=8,seq=512" sets recorded parameters, unless a file of that whole name exists. NULL
 * on failure. */
struct vc_source *vc_source_open(const char *path, struct vc_error *err);
/* The same for an input at hand, which the source owns from now on, also when this fails. */
struct vc_source *vc_source_input(struct vc_input *in, struct vc_error *err);

/* A source of that type with zeroed config and state, not yet opened; for those who make sources.
 * NULL: no memory. */
struct vc_source *vc_source_new(const struct vc_source_type *type, struct vc_error *err);
void vc_source_free(struct vc_source *s); /* and everything upstream; NULL is fine */

struct vc_memos; /* simulator/replay/memo.h: what was found out about a trace, kept with it */

/* A whole trace in memory, decoded once and shared read-only by any number of runs. */
struct vc_trace {
	struct vc_meta *meta; /* owned */
	struct vc_event *ev;  /* owned, n of them */
	size_t n, cap;
	struct vc_memos *memos; /* owned; NULL: nothing is kept */
	struct vc_source *(*reads)(const char *path, struct vc_error *err); /* of its source */
};

/* Reads to the end into an empty trace and takes s->meta; `s` is then good for vc_source_free only.
 * After a failure vc_trace_fini frees what was read. */
int vc_trace_read(struct vc_trace *t, struct vc_source *s, struct vc_error *err);
/* Room for what a source expects to give, so that it need not be copied as it grows. */
int vc_trace_expect(struct vc_trace *t, const struct vc_source *s, struct vc_error *err);
int vc_trace_append_many(struct vc_trace *t, const struct vc_event *ev, size_t n,
			 struct vc_error *err);
/* Predictions add their events one by one. */
static inline int vc_trace_append(struct vc_trace *t, const struct vc_event *ev, size_t n,
				  struct vc_error *err)
{
	if (n != 1 || t->n == t->cap)
		return vc_trace_append_many(t, ev, n, err);
	t->ev[t->n++] = *ev;
	return VC_OK;
}
void vc_trace_fini(struct vc_trace *t);

/* A source over a trace in memory; both the trace and its meta are lent, and must outlive it.
 * Transforms go behind it: the first of them makes a copy of the meta, to write into. */
struct vc_source *vc_source_memory(const struct vc_trace *t, struct vc_error *err);
