/* SPDX-License-Identifier: Apache-2.0 */
/* fit_find.h - what `fit --find` looks for besides parameters that recordings differ in. */
#pragma once

#include "commands/fit_recorded.h"
#include "commands/rehearsal.h"
#include "common/emit.h"
#include "common/opt.h"

struct vc_fit_ask {
	const struct vc_run_options *run;
	bool json;
	uint64_t most; /* combinations at most */
	uint64_t world, trials; /* cards of the job, VC_NOT_GIVEN: not said; dry runs at most */
	uint64_t steps, jobs; /* of each dry run, 0: all; at a time, 0: by the machine */
	uint64_t peak, host; const char *save; /* of --find budget; VC_NOT_GIVEN, NULL */
	const struct vc_list *vary; /* KEY=VALUES of a plan, on top of how it is spread */
	uint64_t batch; /* samples of a step of a plan, all cards together; VC_NOT_GIVEN */
	double tokens; uint64_t seq; const char *prices; /* of a plan: to train on; of a sample;
							  * of an hour of a card. NAN,
							  * VC_NOT_GIVEN, NULL: not said */
	bool lower;   /* of --find budget: precision may be lost */
	bool counted; /* trials were asked for: none is left out because another is faster */
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
	struct vc_fit_recorded asked; bool opened; /* the recorded program, once it is needed */
};

/* What a row does with a recording, or with a program, of which a whole run is recorded first. */
struct vc_fit_steps {
	const char *schema;
	/* h: how to run the program, whose first run the recording is; NULL: there is none. */
	int (*begin)(void *find, struct vc_rehearsal *h, struct vc_error *err);
	int (*search)(void *find, size_t card, struct vc_error *err);
	/* In dry runs. h: NULL: of the recorded program. */
	int (*prove)(void *find, struct vc_rehearsal *h, struct vc_error *err);
	void (*say)(const void *find, size_t card, struct vc_emit *e);
	int (*code)(const void *find);
	bool program; /* that needs a program of its own, not a recorded one */
};

/* The exit code, or < 0. vc_fit_left gives back what it made, whatever happened. */
int vc_fit_take(const struct vc_fit_steps *steps, void *find, size_t argc, char **argv,
		struct vc_console *con);
void vc_fit_left(struct vc_fit_on *on);

struct vc_fit_made {
	bool fits; /* without the cache being given back */
	uint64_t reserved, used; /* used: with what stands beside and what only a card shows */
};

/* Really make those changes, as -x names them, for the first card. VC_EUSAGE: they cannot be made
 * from outside of the program, or there is none. */
int vc_fit_make(struct vc_fit_on *on, struct vc_rehearsal *h, const char *conf,
		const struct vc_list *made, struct vc_fit_made *out, struct vc_error *err);

/* The row of that name, or NULL: a parameter. */
const struct vc_fit_find *vc_fit_find(const char *name);
