/* SPDX-License-Identifier: Apache-2.0 */
/* rehearsal.h - the user's program on the null GPU with changes that its script knows nothing of:
 * layers computed twice, settings of the allocator. */
#pragma once

#include "commands/kept_run.h"

#define VC_REHEARSE_ROOM "1TiB" /* that it runs out is known; what it needs is not */

struct vc_rehearsal {
	const char *gpu;       /* the card to play */
	const char *capacity;  /* of it, where it is another one; or NULL */
	char *const *argv;     /* program and its arguments */
	size_t argc;
	const char *recompute; /* layers to be computed twice, or NULL */
	const char *change;    /* others, as the hook takes them, or NULL */
	const char *budget;    /* modules kept or computed twice (budget_file.h), or NULL */
	uint64_t steps;        /* of its optimizer, then it is ended; 0: all */
	uint64_t world;        /* ranks of its job, of which the first is played; 0: no job */
	char room[32];         /* of `capacity`, private */
	const char *conf;      /* PYTORCH_CUDA_ALLOC_CONF, or NULL: as it is */
	char seen[VC_RERUN_PATH]; /* of vc_rehearse_layers; "": there is none */
	struct vc_progress *progress;
};

/* Run it, or take what was run before. Errors: VC_EIO; VC_EUSAGE: the change cannot be made. */
int vc_rehearse(const struct vc_rehearsal *h, struct vc_kept *out, struct vc_error *err);

struct vc_run_options; /* simulator/session/request.h */
/* The first one: with room for all that the program asks for, on the one card of -g. */
int vc_rehearse_whole(struct vc_rehearsal *h, const struct vc_run_options *opt, struct vc_kept *out,
		      struct vc_error *err);
struct vc_session; /* simulator/session/session.h */
struct vc_plan;
/* One more with that room, and all layers of the recorded one computed twice: its recording, in
 * h->seen, shows when blocks go then. Returns NULL, or why there is none: a sentence in `why`. */
int vc_rehearse_layers(struct vc_rehearsal *h, const struct vc_session *s,
		       const struct vc_plan *plan, char *why, size_t n, struct vc_error *err);
/* From here on with the memory that it has. */
void vc_rehearse_on(struct vc_rehearsal *h, const struct vc_run_options *opt);

/* A recording is one file that nobody can execute; everything else is a program. */
bool vc_is_program(size_t argc, char *const *argv);
