/* SPDX-License-Identifier: Apache-2.0 */
/* autocast.h - what type each block would have under autocast or in pure 16 bit, by call sites. */
#ifndef VC_AUTOCAST_H
#define VC_AUTOCAST_H

#include "simulator/rewrite/resize.h"

/* What call sites leave open, as taken: as it seems, all in 16 bit, or all in float. */
enum vc_doubt { VC_DOUBT_SEEMS, VC_DOUBT_HALF, VC_DOUBT_FLOAT };

/* Fills r->wide (1: keeps its bytes, 0: half of them) and r->extra: what is made in the one type
 * and kept in the other, and copies that a cast leaves beside the original. Needs call sites.
 * Errors: VC_ENOMEM. */
int vc_types_find(struct vc_resize *r, bool autocast, enum vc_doubt doubt, struct vc_error *err);

#endif
