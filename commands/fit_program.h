/* SPDX-License-Identifier: Apache-2.0 */
/* fit_program.h - vramcast fit: what cmd_fit.c (cards, words), cmd_fit_program.c (trial runs) and
 * cmd_fit_open.c (recordings) share. */
#pragma once

#include "commands/fit_recorded.h"
#include "commands/run_and_write.h"
#include "commands/trial.h"
#include "simulator/search/fit_words.h"

enum {
	VC_FIT_CARDS = 96,
	VC_FIT_FAMILY = 8,  /* recordings of trial runs that predict, at most */
	VC_FIT_AMONG = 256,
};

struct vc_fit_config {
	struct vc_run_options run;
	const char *find, *target, *among, *at, *with, *prices;
	const char *save;
	uint64_t multiple, most, trials, world, steps, jobs, peak, host, batch;
	double tokens; uint64_t seq;
	struct vc_list vary;
	bool json, lower;
};

/* One class of cards. */
struct vc_fitting {
	const struct vc_fit_config *cfg;
	struct vc_run_options opt; /* of the session: one recording gets a --set */
	struct vc_session base;
	struct vc_fit find;
	struct vc_param_value also[VC_WHATIF_PARAMS]; /* of --set */
	char name[VC_WHATIF_PARAMS][VC_PARAM_TEXT];
	struct vc_plan *plan;
	size_t plans;
	struct vc_fit_card *card;
	struct vc_fit_proof *proof; /* one per card */
	char spec[VC_FIT_FAMILY][512];
	uint64_t recorded[VC_FIT_FAMILY]; /* their values */
	char folder[200];                 /* of their files */
	size_t specs, trials;             /* recordings; all runs, those that ran out, too */
	struct vc_list gpu;        /* cards of this family, at gpu_text */
	const char *gpu_text[VC_FIT_CARDS];
	char set[160];
	uint64_t among[VC_FIT_AMONG];     /* of --among, ascending */
	const char *set_text[VC_WHATIF_PARAMS + 1];
	struct vc_progress *progress;
	struct vc_fit_recorded *asked;    /* its program makes the trial runs; or NULL; lent */
	uint64_t most_trials;
	bool opened;
};

/* Read --target and --among. */
int vc_fitting_target(struct vc_fitting *f, struct vc_error *err);
int vc_fitting_among(struct vc_fitting *f, struct vc_error *err);

/* Find the answer of each card. */
int vc_fitting_search(struct vc_fitting *f, struct vc_error *err);

/* Predict from those recordings, on all cards; what was predicted before is forgotten, trial runs
 * are not. */
int vc_fitting_open(struct vc_fitting *f, size_t n, char **paths, struct vc_error *err);
void vc_fitting_close(struct vc_fitting *f);

/* "N,N,...", at most `cap` of them. */
int vc_fitting_numbers(const char *text, const char *option, uint64_t *v, size_t cap, size_t *n,
		       struct vc_error *err);

/* Run the program, predict from what was recorded, and (dry runs) go on with trial runs at the
 * answers until they are proved or --trials are used up. */
int vc_fitting_program(struct vc_fitting *f, size_t argc, char **argv, struct vc_error *err);
