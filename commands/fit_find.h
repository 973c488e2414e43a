/* SPDX-License-Identifier: Apache-2.0 */
/* fit_find.h - what `fit --find` looks for besides parameters that recordings differ in. */
#pragma once

#include "commands/rehearsal.h"
#include "common/emit.h"
#include "common/opt.h"
#include "simulator/session/session.h"

struct vc_fit_ask {
	const struct vc_run_options *run;
	bool json;
	uint64_t most; /* combinations at most */
	uint64_t world, trials; /* cards of the job, VC_NOT_GIVEN: not said; dry runs at most */
	uint64_t steps, jobs; /* of each dry run, 0: all; at a time, 0: by the machine */
	uint64_t peak, host; const char *save; /* of --find budget; VC_NOT_GIVEN, NULL */
	const struct vc_list *vary; /* KEY=VALUES of a plan, on top of how it is spread */
};

struct vc_fit_find {
	const char *name; /* --find NAME */
	int (*run)(const struct vc_fit_ask *ask, size_t argc, char **argv,
		   struct vc_console *con);
};

extern const struct vc_fit_find vc_fit_checkpoint, vc_fit_anything, vc_fit_plan, vc_fit_budget;

/* What a row finds begins with this: a recording and the cards, a plan each. */
struct vc_fit_on {
	const struct vc_fit_ask *ask;
	struct vc_session s;
	struct vc_plan *plan; size_t plans;
};

/* What a row does with a recording, or with a program, of which a whole run is recorded first. */
struct vc_fit_steps {
	const char *schema;
	/* h: how to run the program, whose first run the recording is; NULL: there is none. */
	int (*begin)(void *find, struct vc_rehearsal *h, struct vc_error *err);
	int (*search)(void *find, size_t card, struct vc_error *err);
	int (*prove)(void *find, struct vc_rehearsal *h, struct vc_error *err); /* in dry runs */
	void (*say)(const void *find, size_t card, struct vc_emit *e);
	int (*code)(const void *find);
};

/* The exit code, or < 0. vc_fit_left gives back what it made, whatever happened. */
int vc_fit_take(const struct vc_fit_steps *steps, void *find, size_t argc, char **argv,
		struct vc_console *con);
void vc_fit_left(struct vc_fit_on *on);

/* The row of that name, or NULL: a parameter. */
const struct vc_fit_find *vc_fit_find(const char *name);
