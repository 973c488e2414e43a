/* SPDX-License-Identifier: Apache-2.0 */
/* whatif.h - several recordings of one program, what they predict for values nobody recorded, and
 * the interval of what is not exact. */
#pragma once

#include <pthread.h>

#include "common/workers.h"
#include "simulator/predict/family.h"
#include "simulator/session/job.h"
#include "simulator/session/named_plans.h"

enum { VC_WHATIF_CARDS = 64, VC_WHATIF_PARAMS = 16, VC_WHATIF_OTHERS = 32 };

/* A prediction and its interval are made on so many threads at most: a sweep has threads of its
 * own, and each of them makes predictions. */
enum { VC_WHATIF_THREADS = 4 };

/* Kinds of evidence, the surest first. */
enum vc_evidence_kind {
	VC_EVIDENCE_LAWS,  /* nearly all sizes follow laws that more recordings than needed show */
	VC_EVIDENCE_SAMPLE, /* a single sample, which has other strides: copies come and go */
	VC_EVIDENCE_PLANS, /* the fastest plans of convolutions, which other sizes change */
	VC_EVIDENCE_LINES, /* many are lines through two recordings, or loops run more often */
	VC_EVIDENCE_LOOSE, /* ... do not, or allocations come and go between the recordings */
	VC_EVIDENCE_DATA,  /* sizes of steps vary with their data */
	VC_EVIDENCE_UNSURE, /* most sizes follow no law that the recordings show for certain */
	VC_EVIDENCE_ONE,   /* one recording */
	VC_EVIDENCES
};
/* By what an interval is widened, by logarithms: so many times what the recordings miss of each
 * other, and at least. */
struct vc_evidence {
	const char *name;
	double up, down, least_up, least_down;
	bool needs_three; /* what it misses shows only in a recording that two others predict */
};

/* What the recordings say about one set of values on one kind of card. */
struct vc_prediction {
	struct vc_recording rec;             /* as if it had been recorded */
	struct vc_family_report report;
	struct vc_reduction_card card;       /* some workspaces depend on it */
	struct vc_named_plans *plans;        /* of that card; NULL: those of the recorded one */
	uint64_t cublas;                     /* see struct vc_family_ask */
	double matched;                      /* share of the bytes that others have */
	double missed;                       /* how far off the recordings are for each other */
	const struct vc_evidence *evidence;  /* what widened the interval, and what it was */
	uint64_t said_low, said_high;
	char trust[960];                     /* "extrapolated from 3 recordings ..." */
	pthread_mutex_t lock;                /* of what follows */
	struct vc_trace other[VC_WHATIF_OTHERS]; /* what the recordings allow besides, ... */
	enum vc_other { VC_OTHER_UNKNOWN, VC_OTHER_NONE, VC_OTHER_KNOWN } known[VC_WHATIF_OTHERS];
	struct vc_reran ran;                 /* by the program itself, where w->rerun is */
	const struct vc_card *gpu;           /* that one was run for */
	/* The last interval, for other cards and capacities: it does not depend on them. */
	char settings[256]; /* model, version and settings it holds for; "": none */
	bool open;                           /* low < high */
	uint64_t low, high;
};

/* What a session over recordings knows beyond its trace. */
struct vc_whatif {
	struct vc_recording *recording; size_t recordings;
	struct vc_family *family;
	struct vc_uncertainty *uncertainty;  /* uncertainty.h */
	unsigned without;                    /* see vc_family_new */
	struct vc_named_plans *plans;        /* named_plans.h: of the recorded card */
	const struct vc_asker *asker;        /* who is asked for others'; lent, or NULL */
	struct vc_rerun *rerun;              /* the program answers; NULL: the recordings */
	char why[VC_RERUN_WHY];              /* they do, because; "": they were asked for */
	bool borrowed;                       /* recordings and family belong to another one */
	bool any_card;                       /* neither told nor shown: it may be another */
	bool any_order;                      /* of addresses: see addresses.h */
	uint64_t outside;                    /* most bytes beside the allocator that any has */
	bool one_thread;                     /* each prediction on one: others have the rest */
	struct vc_param_value at[VC_WHATIF_PARAMS]; /* what was asked; names are in `name` */
	char name[VC_WHATIF_PARAMS][VC_PARAM_TEXT];
	size_t n;
	struct vc_prediction as_asked;
	struct vc_prediction *on[VC_WHATIF_CARDS]; /* for other cards, made when first asked for */
	size_t cards;
	pthread_mutex_t lock;                /* of on[] */
};

/* Read the recordings, verify them, build the family, predict for opt->set. NULL: failure. */
struct vc_whatif *vc_whatif_open(const struct vc_run_options *opt, size_t n, char **paths,
				 const struct vc_recording_ask *ask, struct vc_error *err);

/* The same recordings at other values; lends them from `from`, which must outlive it. NULL:
 * failure. */
struct vc_whatif *vc_whatif_again(const struct vc_whatif *from, const struct vc_param_value *at,
				  size_t n, struct vc_error *err);
void vc_whatif_close(struct vc_whatif *w); /* NULL is fine */

/* Two recordings, and sizes whose law only a third one could try. */
static inline bool vc_whatif_untried(const struct vc_whatif *w, const struct vc_prediction *p)
{
	return p->evidence && p->evidence->needs_three && w->recordings < 3;
}

/* What is asked of the recordings for a prediction, on its card. */
static inline struct vc_family_ask vc_whatif_ask(const struct vc_whatif *w,
						 const struct vc_prediction *p)
{
	return (struct vc_family_ask){ .at = w->at, .n = w->n, .card = p->card,
				       .cublas = p->cublas,
				       .there = p->plans ? vc_named_plans_answers(p->plans) :
							   NULL };
}

/* On how many threads a prediction of w and its interval are made. */
static inline size_t vc_whatif_threads(const struct vc_whatif *w)
{
	return w->one_thread ? 1 : vc_workers_most(VC_WHATIF_THREADS);
}

/* "batch=32" into a parameter; the name is copied into buf (VC_PARAM_TEXT bytes). */
int vc_whatif_parse(const char *text, struct vc_param_value *at, char *buf, struct vc_error *err);

/* The prediction for `card` (NULL: any will do), whose arithmetic decides some workspaces; it
 * belongs to w. NULL: failure. Thread-safe. */
struct vc_prediction *vc_whatif_on(struct vc_whatif *w, const struct vc_card *card,
				   struct vc_error *err);

/* Replay the alternatives of a prediction of w and set [low, high] of *out; nothing to do when
 * there are none. Thread-safe. */
int vc_whatif_interval(const struct vc_whatif *w, struct vc_prediction *p,
		       const struct vc_plan *plan, struct vc_result *out, struct vc_error *err);
