/* SPDX-License-Identifier: Apache-2.0 */
/* memo.h - what was found out about a trace, kept with it for whoever asks next, on any thread. */
#pragma once

#include <stdatomic.h>

#include "common/error.h"

struct vc_trace; /* source.h */
struct vc_memos;

struct vc_memo; /* first member of what is kept */
/* Finds it out. On success *out is new, with `drop` set. */
typedef int vc_memo_fn(const struct vc_trace *t, uint64_t key, const void *arg,
		       struct vc_memo **out, struct vc_error *err);

struct vc_memo {
	void (*drop)(struct vc_memo *m); /* frees it, for memo.c only */
	vc_memo_fn *make;
	uint64_t key;
	size_t bytes;          /* that it holds, where that may be much; set by make */
	atomic_uint users;
	struct vc_memo *next;
};

/* From now on what is found out about t is kept until vc_trace_fini, but for what would make it
 * more than VC_MEMO_MOST bytes. Errors: VC_ENOMEM. */
#define VC_MEMO_MOST (UINT64_C(64) << 20)
int vc_trace_keep(struct vc_trace *t, struct vc_error *err);

/* What `make` finds out about t for `key` (a device, a span, ...; arg says nothing that the key
 * does not), found out once where t keeps it. Not to be written to; vc_memo_put when done. `make`
 * may ask for other memos of t. Thread-safe. Errors: those of make. */
int  vc_memo_get(const struct vc_trace *t, uint64_t key, vc_memo_fn *make, const void *arg,
		 struct vc_memo **out, struct vc_error *err);
void vc_memo_put(struct vc_memo *m); /* NULL is fine */

void vc_memos_free(struct vc_memos *m); /* NULL is fine */
