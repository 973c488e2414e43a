/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.h - the recordings of a job, one per rank: each is replayed, what matters of it is kept,
 * and it is closed again. So memory does not grow with their number. */
#pragma once

#include "simulator/session/session.h"

#define VC_RANKS_NONE SIZE_MAX

struct vc_rank {
	const char *path;          /* lent */
	int64_t number;            /* as recorded, else behind "rank" in the name; -1: unknown */
	uint16_t device;
	char card[96], conf[256], torch[16]; /* "" = unknown, default, none */
	uint64_t capacity;         /* 0 = unlimited */
	uint64_t allocated, reserved, used; /* at their peaks, as far as it got */
	uint64_t need;             /* reserved where nothing limits it */
	uint64_t requests, bytes;  /* allocations, and what they ask for in all */
	bool has_interval;
	uint64_t low, high;        /* of need */
	enum vc_verdict verdict;
	enum vc_level level;
	bool checked, exact;       /* does the model reproduce the recording */
	bool cut_short;            /* more is not known: the recording ends there */
	bool died, has_steps, has_times;
	uint64_t step, time_ns, event, asked; /* where it died, and what it asked for */
	uint64_t order[2], set[2]; /* fingerprints of its requests: in their order, in any order */
	size_t group;
};

/* Ranks that asked for the same blocks on the same kind of card under the same settings. */
struct vc_rank_group {
	size_t first;              /* a rank of it, the one with the smallest number */
	size_t n;
	bool same_order;           /* and all in the same order */
	uint64_t least, most;      /* need */
};

enum vc_ranks_clock { VC_RANKS_BY_STEP, VC_RANKS_BY_TIME, VC_RANKS_BY_EVENT };
const char *vc_ranks_clock_name(enum vc_ranks_clock c); /* "step" "time" "event" */

struct vc_ranks {
	struct vc_rank *at;        /* by number, unknown ones last, as they were given */
	size_t n;
	struct vc_rank_group *group; /* the one with the most ranks first */
	size_t groups;
	size_t largest, least;     /* of need */
	double mean;               /* of need */
	size_t first_to_die;       /* VC_RANKS_NONE: nobody does */
	size_t deaths, as_early;   /* all; besides the first, those at the same moment */
	enum vc_ranks_clock clock; /* what tells who is first: the finest that all who die have */
};

/* One run of each, on so many threads (0: all). opt asks for one run a recording. On success and
 * on failure vc_ranks_fini. */
int vc_ranks_run(struct vc_ranks *r, const struct vc_run_options *opt, size_t n, char **paths,
		 size_t threads, struct vc_error *err);
void vc_ranks_fini(struct vc_ranks *r);

/* "0-6,8", or the file where a rank has no number. Returns buf. */
char *vc_ranks_members(const struct vc_ranks *r, size_t group, char *buf, size_t n);
