/* SPDX-License-Identifier: Apache-2.0 */
/* call_sites.h - the places of a program that ask for memory, so that two recordings agree on them
 * even where somebody edited the script in between. */
#pragma once

#include "simulator/predict/allocations.h"

/* Gives all of n recordings of one program their call sites: by lines; or where those of one do not
 * fit those of the first (a line was added above), by the how-many-th line of its function each is
 * that asks for memory, if more of them fit so: *edited (may be NULL). Errors: VC_ENOMEM. */
int vc_call_sites_settle(struct vc_allocations *m, size_t n, bool *edited, struct vc_error *err);
