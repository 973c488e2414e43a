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
	uint64_t micro, played; /* micro-batches of a step, where the program is told; these ran */
	uint64_t more;          /* bytes of used that only a replay of all of them takes */
	bool whole;             /* time and more are of all */
	bool begun, open;       /* a trial has begun; it is worth one */
	bool early;             /* it stopped before it asked for device memory */
	/* Of what failed: the degree that does it, which it ran with; layouts left out for that. */
	int by;
	uint64_t beside; size_t refuses;
};

/* In the command line: samples of a step, and how many micro-batches each card makes of them. */
#define VC_WAYS_BATCH "global-batch"
#define VC_WAYS_MICRO "microbatches"

/* vc_way.by besides a degree: nothing shows it. */
enum { VC_WAY_NOT_SHOWN = VC_LAYOUT_NAMES };

struct vc_ways {
	const struct vc_fit_ask *ask;
	const struct vc_card *card;
	uint64_t capacity;
	bool named[VC_LAYOUT_NAMES];    /* {name} stands in the arguments */
	struct vc_vary vary;
	bool by_batch;        /* {global-batch} or {microbatches} stands there */
	double seq, price;    /* of --tokens: tokens of a sample; an hour of a card */
	bool quiet, stopped;  /* the latter by an interrupt */
	struct vc_way *way; size_t n, tried;
	char folder[200];     /* one of its own in it for each layout */
	size_t argc; char **argv;
	size_t slower;        /* not tried, because none takes less than: */
	double least;         /* ns for the work of a step of the fastest */
	size_t larger;        /* not tried: they hold no less than one that ran out of memory */
	size_t refused;       /* not tried: the program refuses others like them */
	size_t uneven;        /* not tried: --global-batch is no multiple of what they take */
	struct vc_progress *progress;
	pthread_mutex_t lock; /* of all that changes while several are tried */
	pthread_cond_t ended; /* one of them */
};

extern const char *const vc_layout_names[VC_LAYOUT_NAMES];

/* Say in `open` which may still be tried. */
void vc_ways_mark(struct vc_ways *f);
/* One that is spread more than another, which runs: that will say whether it can be faster. */
bool vc_ways_hold(const struct vc_ways *f, const struct vc_way *w);
/* What a layout can save at least, itself counted: those that hold more, if it runs out of memory;
 * those that are spread more, if it fits. By what it costs: every stage is a run, and
 * what fits in fewer is seldom slower. Last those of whose like one failed. */
double vc_ways_save(const struct vc_ways *f, const struct vc_way *w);
/* Count what was left out, and why. */
void vc_ways_count(struct vc_ways *f);

/* Fill in what a dry run in that folder shows of w->l. */
int vc_way_try(const struct vc_ways *f, const char *folder, struct vc_way *w, struct vc_error *err);
/* The samples at a time of a layout, where --vary says them; 0: it does not. */
double vc_ways_samples(const struct vc_ways *f, const struct vc_way *w, size_t *key);

/* Of --tokens: is it said well? Columns of a layout, and the line below the table. */
int vc_ways_cost_check(struct vc_ways *f, size_t argc, char **argv, struct vc_error *err);
void vc_ways_cost_say(struct vc_emit *e, const struct vc_ways *f, const struct vc_way *w);
void vc_ways_cost_line(struct vc_emit *e, const struct vc_ways *f);

/* "tp=2 dp=4 micro=1" */
const char *vc_ways_name(const struct vc_ways *f, const struct vc_way *w, char buf[200]);
/* "fits" */
const char *vc_ways_word(const struct vc_way *w);
/* The table, in the order in which they stand. */
int vc_ways_say(const struct vc_ways *f, struct vc_error *err);
