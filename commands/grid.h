/* SPDX-License-Identifier: Apache-2.0 */
/* grid.h - one program at many points: versions of PyTorch and of packages, settings, variables,
 * values in its command line. Every point is a kept run. */
#pragma once

#include "commands/kept_run.h"
#include "simulator/search/vary.h"

enum vc_grid_axis {
	VC_GRID_TORCH, VC_GRID_PACKAGE, VC_GRID_CONF, VC_GRID_ENV, VC_GRID_VARY
};

/* On top of what a point is: one of the first three, and what it is called. */
struct vc_grid_change {
	const struct vc_made_changes *made; /* by the hook in the program */
	const char *conf;                   /* behind other settings of the allocator */
	const char *variable, *value;       /* of the environment */
	const char *words;
};

struct vc_grid_point {
	struct vc_kept kept;
	char why[600];          /* it did not run; "": it did */
	bool done;
};

struct vc_grid {
	const struct vc_program *program; /* lent, as are the rest of these */
	const char *card, *capacity;
	bool again;
	const struct vc_grid_change *change; /* made at each point; NULL: nothing */
	size_t jobs;            /* at a time */
	const struct vc_console *con;
	struct vc_vary vary;
	enum vc_grid_axis axis[VC_VARY_KEYS];
	char **path[VC_VARY_KEYS]; /* TORCH, PACKAGE: where value i is, once it is there */
	struct vc_grid_point *at;  /* vary.runs of them */
};

/* "NAME=A,B" (values apart at commas; VARY: also A..B) or, with a name, one value each. */
int vc_grid_add(struct vc_grid *g, enum vc_grid_axis axis, const char *text, struct vc_error *err);
int vc_grid_add_words(struct vc_grid *g, enum vc_grid_axis axis, const char *name,
		      const struct vc_list *values, struct vc_error *err);
/* Make the environments that are missing; their cost is said before. python: the user's. */
int vc_grid_prepare(struct vc_grid *g, const char *python, struct vc_error *err);
/* Run all points that were not run before. One that does not run says why; an interrupt ends it. */
int vc_grid_run(struct vc_grid *g, struct vc_error *err);
/* One of them into *to, on any thread. */
int vc_grid_run_one(const struct vc_grid *g, size_t i, struct vc_grid_point *to,
		    struct vc_error *err);
/* "torch=2.8 batch=16". Returns buf. */
char *vc_grid_name(const struct vc_grid *g, size_t i, char *buf, size_t n);
void vc_grid_fini(struct vc_grid *g);
