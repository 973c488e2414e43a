/* SPDX-License-Identifier: Apache-2.0 */
/* packing.h - where segments stand in a picture of address over time: packed from the bottom, their
 * place used again once they are gone. */
#ifndef VC_PACKING_H
#define VC_PACKING_H

#include "simulator/replay/result.h"

/* A run of addresses that stays together: one segment, or the mapped pieces of one expandable
 * one. */
struct vc_shelf {
	uint64_t addr, size, born, died; /* event index; died = UINT64_MAX: to the end */
	uint64_t offset;                 /* its place in the picture, bytes from the bottom */
};
struct vc_packing {
	struct vc_shelf *at; size_t n;   /* by address, then birth */
	uint64_t height;                 /* bytes: the highest place taken */
	bool guessed;                    /* no segments were recorded: made from the blocks */
};

int  vc_packing_init(struct vc_packing *p, const struct vc_result *r, struct vc_error *err);
void vc_packing_fini(struct vc_packing *p);
/* The shelf that held `addr` at `event`, or NULL. */
const struct vc_shelf *vc_packing_find(const struct vc_packing *p, uint64_t addr, uint64_t event);

#endif
