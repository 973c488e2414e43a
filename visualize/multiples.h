/* SPDX-License-Identifier: Apache-2.0 */
/* multiples.h - several runs as small plots on the same axes. */
#pragma once

#include "visualize/scene.h"

enum { VC_MULTIPLES = 12 };

struct vc_multiple {
	const struct vc_result *r; /* lent; it has a curve */
	char name[160];
	struct vc_classes classes;
	struct vc_columns columns;
	struct vc_plot plot;
};

struct vc_multiples {
	struct vc_page *page;
	struct vc_multiple at[VC_MULTIPLES]; /* the caller fills r and name of n */
	size_t n, per_row;
	bool by_time;
	uint64_t top, span;
};

/* Finds axes that hold them all. Also after a failure: vc_multiples_fini. */
int vc_multiples_init(struct vc_multiples *m, struct vc_page *page, const struct vc_picture *cfg,
		      struct vc_error *err);
int vc_multiples_legend(struct vc_multiples *m, int y);
int vc_multiples_draw(struct vc_multiples *m, int y); /* the y below */
void vc_multiples_fini(struct vc_multiples *m);
