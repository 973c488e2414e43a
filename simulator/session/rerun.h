/* SPDX-License-Identifier: Apache-2.0 */
/* rerun.h - the program itself answers: it is run at the values that are asked for, without a card,
 * and what such a run is off by is what it was off by at the recorded values. */
#pragma once

#include "simulator/replay/cards.h"
#include "simulator/session/control_run.h"

enum { VC_RERUN_WHY = 400, VC_RERUN_PATH = 600, VC_RERUN_SEEDS = 16, VC_RERUN_VALUES = 16 };

struct vc_run_options; /* request.h */

/* One run of the program of a recording. */
struct vc_run_wish {
	struct vc_recording *of;
	const struct vc_param_value *at; size_t n; /* all values that its command line takes */
	const struct vc_list *made;                /* changes as -x names them; NULL: none */
	const struct vc_card *card;                /* NULL: the recorded one */
	unsigned seed;                             /* another run of the same */
	uint64_t capacity;                         /* 0: the memory of the card, ... */
	bool once;                                 /* ... and no run with more where that is
						    * too little */
	const char *conf;                          /* settings; NULL: its own */
};

/* What came of it. */
struct vc_ran {
	char path[VC_RERUN_PATH];   /* of its recording, which stays */
	bool oom;                   /* it ended there */
	uint64_t flushes;           /* of the allocator's cache */
	char unknown[VC_RERUN_WHY]; /* what only a card knows and the run met, in words; "": none */
};

/* Of the command: only commands run something. Both may be called from several threads. */
struct vc_runner {
	/* Can the program of that recording be run with those values? `why`: "", or why not. A
	 * value that stands in its command line and was not recorded becomes one that was. */
	int (*may)(const struct vc_run_options *o, const struct vc_run_wish *wish,
		   char why[VC_RERUN_WHY], struct vc_error *err);
	int (*run)(const struct vc_run_options *o, const struct vc_run_wish *wish,
		   struct vc_ran *out, struct vc_error *err);
};

/* What a session keeps of the program that answers for it. */
struct vc_rerun {
	const struct vc_run_options *opt;
	struct vc_recording *of, control;
	struct vc_ran control_ran;
	struct vc_control_run found;
	unsigned seeds; /* how often it is run at each value; 1: all runs are the same */
	bool twice;     /* at the recorded values it was run twice, which shows that */
	bool once;      /* who asks runs it once all the same */
	struct vc_list made; /* the first of -x, which the program is run with */
};

/* How many of -x, from the first on, can be made in a program. Errors are others' to tell. */
size_t vc_rerun_makes(const struct vc_run_options *opt);

/* Run it as it was recorded. NULL with *why filled: it cannot be asked, by what --by says. NULL
 * with *err filled: a failure. at: what is asked for. */
struct vc_rerun *vc_rerun_open(const struct vc_run_options *opt, struct vc_recording *of,
			       const struct vc_param_value *at, size_t n,
			       char why[VC_RERUN_WHY], struct vc_error *err);
void vc_rerun_close(struct vc_rerun *r); /* NULL is fine */

/* Run it at those values: once or, where the data decide, several times. rec: the one whose peak
 * is in the middle. vc_trace_fini(&out->high) when done. */
struct vc_reran {
	struct vc_ran ran;
	bool whole;                 /* on the memory of the card that is asked about */
	uint64_t peak, least, most; /* reserved: of rec; where one more run may end */
	bool carried;               /* what the control run differs in stands in it: ... */
	struct vc_trace high;       /* ... the other end of that (carry.h) */
};
int vc_rerun_at(const struct vc_rerun *r, const struct vc_param_value *at, size_t n,
		const struct vc_card *card, struct vc_recording *rec, struct vc_reran *out,
		struct vc_error *err);

struct vc_plan; /* request.h */
struct vc_result;
/* [low, high] of *out, which is what that run needs under the plan: what the control run disagreed
 * on, carried over where that can be done, and what other runs of the same values were off by. */
int vc_rerun_interval(const struct vc_rerun *r, const struct vc_recording *run,
		      const struct vc_reran *ran, const struct vc_plan *plan,
		      struct vc_result *out, struct vc_error *err);

/* The recorded values, with those that are asked for in their place; returns how many. */
size_t vc_rerun_values(const struct vc_recording *of, const struct vc_param_value *at, size_t n,
		       struct vc_param_value out[VC_RERUN_VALUES]);

/* Is that what --by says? */
bool vc_rerun_asked(const struct vc_run_options *opt, const char *by);

/* "the program was run at this value without a card; ..." Returns buf. */
char *vc_rerun_words(const struct vc_rerun *r, const char *unknown, char *buf, size_t n);
