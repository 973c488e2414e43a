/* SPDX-License-Identifier: Apache-2.0 */
/* autocast.h - what type each block would have under autocast or in pure 16 bit, by call sites. */
#pragma once

#include "simulator/rewrite/resize.h"

/* What call sites leave open, as taken: as it seems, all in 16 bit, or all in float. */
enum vc_doubt { VC_DOUBT_SEEMS, VC_DOUBT_HALF, VC_DOUBT_FLOAT };

/* What is asked for: under autocast or all in 16 bit; evaluation under autocast too; losses in
 * float whatever they get, because the program says so (logits.float() of a float asks for
 * nothing, so a recording in float does not show it). */
struct vc_types { bool autocast, evaluation, float_losses; enum vc_doubt doubt; };

/* Fills r->wide (1: keeps its bytes, 0: half of them) and r->extra: what is made in the one type
 * and kept in the other, and copies that a cast leaves beside the original. Needs call sites.
 * Errors: VC_ENOMEM. */
int vc_types_find(struct vc_resize *r, const struct vc_types *t, struct vc_error *err);

/* Does a model run in that stretch beside the iterations? Not when its module is made. */
bool vc_types_evaluates(const struct vc_resize *r, const struct vc_span *p);
