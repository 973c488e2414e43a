/* SPDX-License-Identifier: Apache-2.0 */
/* family.h - several recordings of one program at different parameter values, and the events it
 * would make at a value nobody recorded. */
#pragma once

#include "common/meta.h"
#include "simulator/anatomy/reduction.h"
#include "simulator/replay/source.h"

enum { VC_AXES = 4 }; /* parameters that may differ within one family */

/* What to do with sizes that the recordings do not settle. */
enum vc_bound {
	VC_BOUND_NONE, /* the best guess */
	VC_BOUND_LOW,  /* as small as the recordings allow */
	VC_BOUND_HIGH, /* as large */
};

struct vc_answers;

struct vc_family_ask {
	const struct vc_param_value *at; /* values to predict for; parameters left out stay as in
					  * the nearest recording */
	size_t n;
	enum vc_bound bound;
	bool has_order;
	size_t order;      /* has_order: take the events' order from this recording */
	unsigned sample;   /* above 0: steps have the data of others, as in this of the samples
			    * (step_sizes.h) */
	bool bare;         /* what an allocator sees will do: *out has neither dictionaries nor,
			    * once requests have begun, events that are evidence or marks */
	struct vc_reduction_card card; /* that will run it; all zero: the recorded one */
	uint64_t cublas;   /* bytes of cuBLAS's workspace on it, where that is another; 0: as it was
			    * recorded */
	const struct vc_answers *there; /* that card's plans, where it makes others; NULL: the
					 * recorded card's, where `card` is no other one */
};

/* Above this share of the bytes that move, lines through two samples are many. */
#define VC_MANY_LINES 0.05

/* How far an answer can be trusted. */
struct vc_family_report {
	size_t recordings;         /* recordings that were used */
	size_t base;               /* the one whose order of events is used */
	uint64_t allocs, bytes;    /* of the base */
	uint64_t explained;        /* bytes found in other recordings, or computed */
	double unmatched;          /* share of allocations that only some recordings have, ... */
	double repeated;           /* ... and of those that some have more often */
	double unsure;             /* share of the bytes that move whose law is not sure, ... */
	double lines;              /* ... and is a line through two samples */
	uint64_t workspace;        /* buffers of row sums: recognised, ... */
	uint64_t workspace_new;    /* ... and appearing only at the target */
	bool plans;                /* workspace may be of another plan: see plans.c */
	uint64_t convolutions;     /* times that one was computed, in the order that is used */
	uint64_t named;            /* of these, whose plans cuDNN names: see convolutions.h */
	char cudnn[16];            /* its version */
	bool measured;             /* plans were tried, the fastest taken: another one elsewhere */
	bool data;                 /* sizes of steps vary with their data: see step_sizes.h */
	bool steps_known;          /* steps were told apart, so that it would show */
	double noise;              /* standard deviation of their bytes */
	bool same;                 /* the asked values are those of the base: nothing to predict */
	bool single;               /* one recording only: sizes follow rules, not evidence */
};

struct vc_family;
struct vc_cudnn_plans;

/* Who knows what plans cuDNN makes on the card that was recorded. */
struct vc_answers {
	/* Those of that version for a convolution, or another list of them (convolution.h). False:
	 * nobody says. Thread-safe. */
	bool (*plans)(void *arg, const char *version, const char *key, struct vc_cudnn_plans *out);
	void *arg;
};

/* Rules that an ablation leaves out (make check-rules). */
enum vc_rule {
	VC_RULE_SIMILAR,   /* what stands alone takes the law of the most similar allocation */
	VC_RULE_SUMS,      /* buffers of sums over rows */
	VC_RULE_NAMED,     /* workspace of convolutions is what cuDNN names */
	VC_RULE_STEPS,     /* sizes that vary with the data of steps are resampled */
	VC_RULES
};
extern const char *const vc_rule_names[VC_RULES];

/* Traces are lent and must outlive the family; events of other devices are left out. Recordings
 * whose bytes do not match (another dtype, other kernels) are refused with the share that differs.
 * without: bits of rules that are left out. NULL on failure. */
struct vc_family *vc_family_new(const struct vc_trace *const *t, size_t n, uint16_t device,
				unsigned without, struct vc_error *err);
void vc_family_free(struct vc_family *f); /* NULL is fine */

/* The card that was recorded on: it decides some workspace sizes. Unless told it is the card whose
 * sizes the recordings show, and 132 multiprocessors when they show none. */
void vc_family_recorded(struct vc_family *f, const struct vc_reduction_card *card);
/* known: did somebody tell, or do the recordings show it? */
struct vc_reduction_card vc_family_card(const struct vc_family *f, bool *known);

/* From now on workspace of convolutions is what these say, where that explains the recordings.
 * Lent; before the first prediction. */
void vc_family_ask_cudnn(struct vc_family *f, const struct vc_answers *answers);

/* Write the predicted trace to *out (vc_trace_fini). Safe from several threads. */
int vc_family_at(struct vc_family *f, const struct vc_family_ask *ask, struct vc_trace *out,
		 struct vc_family_report *rep, struct vc_error *err);

/* The same for whoever reads it once: a source of what ask->bare leaves, made as it is read. meta:
 * lent. f must outlive it. NULL: failure. Safe from several threads. */
struct vc_source *vc_family_source(struct vc_family *f, const struct vc_family_ask *ask,
				   const struct vc_meta *meta, struct vc_error *err);

/* Is a parameter of that name a number of samples, in which sizes are in proportion? */
bool vc_family_counts(const char *name);

/* Value of a parameter in one recording, NaN when it has none. */
double vc_family_value(const struct vc_family *f, size_t recording, const char *name);
