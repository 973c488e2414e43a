/* SPDX-License-Identifier: Apache-2.0 */
/* shelf.h - recordings that stay open from one command to the next, for who runs many of them on
 * the same file. A recording never changes once it is open: the answers are the same. */
#pragma once

#include "simulator/session/recording.h"

struct vc_shelf;

struct vc_shelf *vc_shelf_new(void); /* NULL: not enough memory */
void vc_shelf_free(struct vc_shelf *s); /* with nothing taken; NULL is fine */

/* The recording as vc_recording_open and, where asked for, vc_verify leave it, until it is given
 * back. *out NULL: there is no room for one more. Errors: theirs. */
int  vc_shelf_take(struct vc_shelf *s, const char *path, const struct vc_recording_ask *ask,
		   const struct vc_recording **out, struct vc_error *err);
void vc_shelf_give_back(struct vc_shelf *s, const struct vc_recording *rec);
