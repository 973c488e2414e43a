/* SPDX-License-Identifier: Apache-2.0 */
/* tried.h - advice against what grew, tried by dry runs before it is given: kept runs of the one
 * that grew, each with one setting more. */
#pragma once

#include "commands/grid.h"
#include "commands/sides.h"

enum { VC_TRIED_MOST = 8 };

struct vc_advised {
	struct vc_tried { const char *setting; uint64_t reserved; char id[17]; bool helps; }
		at[VC_TRIED_MOST];
	size_t n;
	uint64_t before;               /* what the one that grew reserves */
};

/* bad is what point i of the grid came to, of two the second, and `good` what the first reserves.
 * Settings are tried from cheap to costly until one avoids it. One helps that takes half of it
 * back, and of which a dry run knows no less than of the two. */
int vc_advised_try(struct vc_advised *t, const struct vc_grid *grid, size_t i, uint64_t good,
		  const struct vc_kept *bad, const struct vc_two *two, struct vc_error *err);
/* "tried" of an open object; for people a line on what helps most, if anything does. */
void vc_advised_emit(struct vc_emit *e, const struct vc_advised *t);
