/* SPDX-License-Identifier: Apache-2.0 */
/* fold.h - what must be known of the past so that a recording can begin here: the heap with the
 * call sites of its blocks, and the settings in force. Records go in; out come records that,
 * decoded in front of those that follow, give a warm start. They can be folded again. */
#pragma once

#include "common/journal.h"

struct vc_fold;
struct vc_fold *vc_fold_new(void);
void vc_fold_free(struct vc_fold *f); /* NULL is fine */
/* false: memory is short. */
bool vc_fold_put(struct vc_fold *f, const struct vc_record *rec);
/* The state as records, malloc'ed; NULL: memory is short. */
struct vc_record *vc_fold_records(struct vc_fold *f, uint64_t time_ns, size_t *n);

struct vc_fold_totals {
	uint64_t allocated, reserved; /* now, of all devices */
	uint64_t total;               /* memory of the device that was sampled last; 0: unknown */
	uint64_t free;                /* and what was free of it then */
	size_t blocks;
};
struct vc_fold_totals vc_fold_totals(const struct vc_fold *f);
