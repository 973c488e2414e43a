/* SPDX-License-Identifier: Apache-2.0 */
/* diff.h - two recordings allocation by allocation: what is in both, what changed, where it
 * begins. */
#ifndef VC_DIFF_H
#define VC_DIFF_H

#include "simulator/replay/result.h"
#include "simulator/replay/source.h"

enum vc_diff_kind {
	VC_DIFF_NONE,
	VC_DIFF_ONLY_A,
	VC_DIFF_ONLY_B, /* an allocation that the other one lacks */
	VC_DIFF_SIZE,
	VC_DIFF_STREAM,
	VC_DIFF_LIFE, /* the same allocation is freed at another place, or never */
};
const char *vc_diff_kind_name(enum vc_diff_kind k); /* "only_in_a" */

/* One side. `run` is a replay with the observer "peak"; both are lent and must outlive the diff. */
struct vc_diff_side { const struct vc_trace *trace; const struct vc_result *run; uint16_t device; };

/* Sums of one call site; [0] is A, [1] is B. */
struct vc_diff_site {
	char *site;
	uint64_t asked[2], blocks[2], live[2];
}; /* live: at peak reserved */

struct vc_diff {
	uint64_t allocs[2], bytes[2];   /* in the recordings */
	uint64_t same, resized, restreamed,
		relived; /* of the matched: equal in size, ...; relived of same */
	uint64_t only[2], only_bytes[2];
	int64_t resized_bytes;          /* B less A */
	bool by_site;                   /* call sites were used to match */
	/* The first allocation that differs. Event numbers as 'vramcast dump' counts; UINT64_MAX:
	 * none. */
	enum vc_diff_kind first;
	uint64_t event[2], time_ns[2], size[2];
	uint32_t site[2];
	struct vc_diff_site *at; size_t n; /* the largest change of asked bytes first */
};

int vc_diff_init(struct vc_diff *d, const struct vc_diff_side side[2], struct vc_error *err);
void vc_diff_fini(struct vc_diff *d);

#endif
