/* SPDX-License-Identifier: Apache-2.0 */
/* beside.h - memory beside the allocator's, as OUTSIDE_ALLOC and OUTSIDE_FREE tell it: of other
 * libraries on the device, managed, pinned. */
#pragma once

#include "common/error.h"
#include "common/event.h"
#include "common/meta.h"

enum vc_beside_kind {
	VC_BESIDE_DEVICE,   /* of libraries, on the card */
	VC_BESIDE_PINNED,   /* of the host, page-locked */
	VC_BESIDE_MANAGED,  /* its pages lie on the card or, where that is full, on the host */
	VC_BESIDE_MOVED,    /* what a transform moves to the host */
	VC_BESIDE_RESIDENT, /* part of the process's resident memory */
	VC_BESIDE_KINDS
};

struct vc_beside_piece { uint64_t key, size; uint8_t kind; bool pinned; };

/* All zero: nothing is there. Bytes that live now. */
struct vc_beside {
	struct vc_beside_piece *at; size_t n, cap;
	uint64_t live[VC_BESIDE_KINDS];
	uint64_t pinned; /* page-locked, moved there or not */
};

enum vc_beside_kind vc_beside_kind(const struct vc_meta *m, const struct vc_event *e);
/* An OUTSIDE_ALLOC or OUTSIDE_FREE; *size gets its bytes, 0 where what is freed was never seen.
 * Error: VC_ENOMEM. */
int vc_beside_event(struct vc_beside *b, const struct vc_meta *m, const struct vc_event *e,
		    uint64_t *size, struct vc_error *err);
void vc_beside_fini(struct vc_beside *b);
