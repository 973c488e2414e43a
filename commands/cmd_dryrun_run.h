/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dryrun_run.h - one run of the program of a dry run, and the ranks that are played beside it.
 */
#pragma once

#include "commands/cmd_dryrun.h"
#include "commands/record_keep.h"
#include "nullgpu/stage.h"

#include <limits.h>

struct vc_dryrun_config {
	struct vc_list gpus, params, used, package, conf, env, vary;
	uint64_t capacity, context, devices, ranks, world, rank, steps, max_size, jobs;
	const char *out, *report, *stacks, *torch, *addresses, *values, *exit_code, *host_weights,
		*requests, *card, *questions;
	double expert_skew;
	struct vc_record_keep keep;
	bool no_record, roles, stages, until_oom, margin, again, json;
	char program[600];             /* no option: the file that describes what is run */
	struct vc_dryrun_cudnn *cudnn; /* no option: where it was found */
	const char *of_file;           /* no option: the card that --card is of */
	char card_path[PATH_MAX];      /* no option: --card, whole */
};

struct vc_dryrun_run {
	const struct vc_dryrun_config *cfg;
	struct vc_stage *stage;
	struct vc_dryrun *d;
};

/* Until nobody tells anybody anything new; so often at most. */
enum { VC_DRYRUN_ROUNDS = 4 };

/* What --card and --questions ask for, into the configuration and the environment. */
int vc_dryrun_by_card(struct vc_dryrun_config *c, struct vc_error *err);
/* The environment that all runs share. */
int vc_dryrun_put_stage(const struct vc_dryrun_config *c, const struct vc_stage *s,
			struct vc_error *err);
/* What that command line runs, with the options that shape it (cmd_dryrun_program.c). */
struct vc_program;
int vc_dryrun_program(const struct vc_dryrun_config *c, size_t argc, char **argv,
		      struct vc_program **out, struct vc_error *err);
/* How many processes that command line starts, each on a card of its own (torchrun, accelerate,
 * deepspeed); VC_NOT_GIVEN: it does not say. */
uint64_t vc_dryrun_launched(size_t argc, char **argv);
/* Runs the program on the card of r->d, judges it and says what came out. The exit code, or < 0. */
int vc_dryrun_card(struct vc_dryrun_run *r, size_t argc, char **argv, struct vc_console *con);
