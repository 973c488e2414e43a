/* SPDX-License-Identifier: Apache-2.0 */
/* fit_plan.h - what the files of fit --find plan share: the search and the words. */
#pragma once

#include <pthread.h>

#include "commands/fit_find.h"
#include "simulator/search/layouts.h"
#include "simulator/search/vary.h"
#include "simulator/time/time.h"

struct vc_way {
	struct vc_layout l;   /* with: run of --vary */
	enum { VC_WAY_UNTRIED, VC_WAY_RAN, VC_WAY_FAILED } end;
	int code;             /* of the dry run */
	enum vc_verdict verdict;
	uint64_t used, left, roles, rank, margin; /* of the role that needs most */
	struct vc_timing time;            /* step_ns 0: not known */
	double flops, pace;               /* of a step, of all cards; ns for equal work */
	double within[2];                 /* of vc_time_within */
};

struct vc_ways {
	const struct vc_fit_ask *ask;
	const struct vc_card *card;
	uint64_t capacity;
	bool named[VC_LAYOUT_NAMES];    /* {name} stands in the arguments */
	struct vc_vary vary;
	bool quiet, stopped;  /* the latter by an interrupt */
	struct vc_way *way; size_t n, tried;
	char folder[200];     /* one of its own in it for each layout */
	size_t argc; char **argv;
	size_t *next, queued; /* those that are tried beside each other */
	size_t slower;        /* not tried, because none takes less than: */
	double least;         /* ns for the work of a step of the fastest */
	struct vc_progress *progress;
	pthread_mutex_t lock; /* of stopped, tried and the progress */
};

extern const char *const vc_layout_names[VC_LAYOUT_NAMES];

/* "tp=2 dp=4 micro=1" */
const char *vc_ways_name(const struct vc_ways *f, const struct vc_way *w, char buf[200]);
/* "fits" */
const char *vc_ways_word(const struct vc_way *w);
/* The table, in the order in which they stand. */
int vc_ways_say(const struct vc_ways *f, struct vc_error *err);
