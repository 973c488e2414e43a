/* SPDX-License-Identifier: Apache-2.0 */
/* fit_find.h - what `fit --find` looks for besides parameters that recordings differ in. */
#pragma once

#include "commands/rehearsal.h"
#include "common/opt.h"
#include "simulator/session/session.h"

struct vc_fit_ask {
	const struct vc_run_options *run;
	bool json;
	uint64_t most; /* combinations at most */
	uint64_t world, trials; /* cards of the job, VC_NOT_GIVEN: not said; dry runs at most */
};

struct vc_fit_find {
	const char *name; /* --find NAME */
	int (*run)(const struct vc_fit_ask *ask, size_t argc, char **argv,
		   struct vc_console *con);
};

extern const struct vc_fit_find vc_fit_checkpoint, vc_fit_anything, vc_fit_plan;

/* What a row does with a recording, or with a program, of which a whole run is recorded first. */
struct vc_fit_steps {
	/* h: how to run the program, whose first run the recording at `path` is; NULL: there is
	 * none. */
	int (*search)(void *find, char *path, const struct vc_run_options *opt,
		      struct vc_rehearsal *h, struct vc_error *err);
	int (*prove)(void *find, struct vc_rehearsal *h, struct vc_error *err); /* in dry runs */
	int (*say)(const void *find, struct vc_error *err);
	int (*code)(const void *find);
};

int vc_fit_take(const struct vc_fit_steps *steps, void *find, const struct vc_fit_ask *ask,
		size_t argc, char **argv, struct vc_console *con);

/* The row of that name, or NULL: a parameter. */
const struct vc_fit_find *vc_fit_find(const char *name);
