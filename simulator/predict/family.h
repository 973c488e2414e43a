/* SPDX-License-Identifier: Apache-2.0 */
/* family.h - several recordings of one program at different parameter values, and the events it
 * would make at a value nobody recorded. */
#ifndef VC_FAMILY_H
#define VC_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/meta.h"
#include "simulator/predict/laws.h"
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
					  * the nearest recording. train_X and eval_X set X for
					  * one kind of phase only */
	size_t n;
	enum vc_bound bound;
	bool has_order;
	size_t order;      /* has_order: take the events' order from this recording */
	unsigned draw;     /* above 0: data of steps and workspace as in this of the draws (see
			    * spread.h and plans.h) */
	double rest;       /* above 0: the last turn of loops is so much of a full one; below 0 that
			    * much of the first, as backward passes have it */
	bool bare;         /* what an allocator sees will do: *out has neither dictionaries nor,
			    * once requests have begun, events that are evidence or marks */
	bool as_planned;   /* but workspace as its law says, whatever the draw */
	struct vc_reduction_card card; /* that will run it; all zero: the recorded one */
	uint64_t cublas;   /* bytes of cuBLAS's workspace on it, where that is another; 0: as it was
			    * recorded */
	const struct vc_answers *there; /* that card's plans, where it makes others; NULL: the
					 * recorded card's, where `card` is no other one */
};

/* How far an answer can be trusted. */
struct vc_family_report {
	size_t recordings;            /* recordings that were used */
	size_t base;               /* the one whose order of events is used */
	uint64_t allocs, bytes;    /* of the base */
	uint64_t matched_bytes;    /* their part found in every other recording, or explained */
	uint64_t kind[VC_LAW_KINDS]; /* allocations by law */
	uint64_t moving;           /* bytes whose law is not constant */
	uint64_t borrowed;         /* unmatched, but of a size whose law is known */
	uint64_t workspace,
		scratch_new; /* buffers of row sums: recognised, appearing only at the target */
	uint64_t unsettled_bytes;  /* of blocks kept as they were, for want of anything better */
	uint64_t alone;            /* of the largest of these, if it grows with what is asked for */
	double residual;           /* largest miss of a law on the recordings, share of that size */
	uint64_t turns;            /* of loops, that no recording made */
	bool partly;               /* a loop's last turn is not full */
	bool one_turn;             /* and the base has no second one that shows what is asked */
	bool rounded;              /* some sizes may be a unit off: see vc_scaling_miss */
	bool lengths;              /* samples are as long as they happen to be: see lengths.h */
	bool plans;                /* workspace may be of another plan: see plans.h */
	uint64_t convolutions;     /* times that one was computed, in the order that is used */
	uint64_t named;            /* of these, whose plans cuDNN names: see convolutions.h */
	char cudnn[16];            /* its version */
	uint64_t states;           /* of an optimizer that no recording shows: see skipped.h */
	bool drawn;                /* of their data: see spread.h */
	bool edited;               /* lines differ between the recordings: see call_sites.h */
	double noise;              /* of the bytes of steps that the data decide: see spread.h */
	uint64_t lasting;          /* bytes of blocks that are there to the end: weights, states */
	uint64_t varying;          /* of its largest blocks, which may find no hole */
	uint64_t loose;            /* bytes of the largest buffer that no formula explains */
	double tells;              /* value that would tell it from one that is rounded up; 0 */
	const char *telling;       /* of which parameter */
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

/* Traces are lent and must outlive the family; events of other devices are left out. Recordings
 * whose bytes do not match (another dtype, other kernels) are refused with the share that differs,
 * unless `force`. NULL on failure. */
struct vc_family *vc_family_new(const struct vc_trace *const *t, size_t n, uint16_t device,
				bool force, struct vc_error *err);
void vc_family_free(struct vc_family *f); /* NULL is fine */

/* The card that was recorded on: it decides some workspace sizes. Unless told it is the card whose
 * sizes the recordings show, and 132 multiprocessors when they show none. */
void vc_family_recorded(struct vc_family *f, const struct vc_reduction_card *card);
struct vc_reduction_card vc_family_card(const struct vc_family *f);
/* Did somebody tell, or do the recordings show it? */
bool vc_family_card_known(const struct vc_family *f);

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

/* Value of a parameter in one recording, NaN when it has none. */
double vc_family_value(const struct vc_family *f, size_t recording, const char *name);

#endif
