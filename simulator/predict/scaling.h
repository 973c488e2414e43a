/* SPDX-License-Identifier: Apache-2.0 */
/* scaling.h - what one recording of a family knows through the others; shared by family.c
 * (opening, asking), scaling.c (laws, counterparts, workspace) and synthesis.c (events). */
#ifndef VC_SCALING_H
#define VC_SCALING_H

#include <pthread.h>

#include "simulator/predict/convolutions.h"
#include "simulator/predict/family.h"
#include "simulator/predict/full_turns.h"
#include "simulator/predict/lengths.h"
#include "simulator/predict/loops.h"
#include "simulator/predict/modes.h"
#include "simulator/predict/plans.h"
#include "simulator/predict/workspaces.h"
#include "simulator/predict/single.h"
#include "simulator/predict/sorting.h"
#include "simulator/predict/spread.h"

/* How the size of an allocation at another value is known. */
enum vc_origin {
	VC_BY_LAW, VC_BY_COUNTERPART, VC_BY_ROWS, VC_BY_SORT, VC_ALONE,
	VC_OPEN /* one recording: may depend or not */
};

/* part: where the axis acts, for recordings that differ in a training and an evaluation parameter
 * at once. counts: see vc_single_counts(). */
struct vc_axis {
	const char *name;
	unsigned side; /* see vc_law_fit */
	enum vc_mode part;
	bool counts;
};

enum { VC_OUTLINES = 8 }; /* that are kept, the newest */

enum { VC_TURN_RECORDINGS = 64 }; /* whose loops are counted, at most */

/* Values asked for by axis. apart: training and evaluation differ; named: the evaluation's was
 * said. */
struct vc_target {
	double train[VC_AXES], eval[VC_AXES];
	double constant; /* factor of what did not differ; 0: 1 */
	bool apart, named[VC_AXES];
	bool elsewhere;  /* another card than the recorded one will run it, ... */
	uint64_t cublas; /* see struct vc_family_ask */
	const struct vc_answers *there; /* ... whose plans these say; NULL: nobody does */
};

/* What one recording, taken as the base, knows through the others. */
struct vc_scaling {
	bool ready;
	bool settled;              /* what follows is known, whether or not anybody has asked */
	unsigned side[VC_AXES];    /* see vc_law_fit */
	uint32_t **match; /* per recording, per allocation of the base; NULL for the base itself */
	struct vc_law *law;      /* per axis and allocation */
	uint8_t *origin;         /* enum vc_origin by allocation */
	uint32_t *counterpart;   /* VC_BY_COUNTERPART: whose law; VC_BY_SORT: which of `sorts` */
	uint32_t *other;         /* VC_BY_COUNTERPART: one that says otherwise, or VC_UNMATCHED */
	uint8_t *single;         /* VC_OPEN: enum vc_single by axis and allocation */
	uint8_t *part;           /* enum vc_mode by allocation; NULL: nobody asked */
	bool parted;             /* an evaluation was found */
	struct vc_lengths lengths; /* steps as long as their samples happen to be */
	struct vc_loops loops;   /* that turn more often at a larger value of the only parameter */
	bool counted;            /* they are the family's, with a law for how often */
	struct vc_workspaces workspace;
	struct vc_sorts sorts;
	uint32_t **conv;         /* per recording: its key of each convolution of the base (see
				  * convolutions.h); NULL: nobody asked */
	bool rounds;             /* some law may be a unit off: see vc_scaling_miss */
	uint64_t bytes, matched, unsettled;
	uint64_t alone;          /* bytes of the largest allocation that is not settled */
	double residual, share; /* of the bytes, that have a counterpart */
};

struct vc_family {
	struct vc_allocations *m;
	size_t n;
	struct vc_axis axis[VC_AXES];
	size_t axes;
	double (*x)[VC_AXES];    /* parameter values by recording */
	struct vc_scaling *view;
	struct vc_spread *spread; /* by recording; read with the first view, for one axis */
	bool spread_read;
	bool **plan;             /* by recording and allocation: see plans.h */
	struct vc_convolutions *conv; /* by recording */
	const struct vc_answers *answers; /* lent, or NULL */
	bool simulated;          /* all of them were made on the null GPU, which asks cuDNN, too */
	struct vc_conv_answers held; /* these, held against the recordings; from NULL: not yet */
	bool *skipped;           /* by recording: all steps of the optimizer, see skipped.h */
	struct vc_loops *loops;  /* by recording; with a law for how often they turn */
	bool counted;            /* some recording has such */
	double turn_x[VC_TURN_RECORDINGS]; /* the only parameter, by recording */
	struct vc_outline *outline[VC_OUTLINES]; /* see outline.h */
	size_t outlined;         /* ever */
	struct vc_full_turns *full; /* what full turns of them ask for; NULL: none */
	struct vc_pinned { double *size; size_t n; } *pinned; /* by recording: see pinned.h */
	struct vc_reduction_card recorded;
	bool card_known;
	bool edited;               /* lines of the script differ between the recordings */
	bool force;
	bool aligned;            /* each with each, for their views */
	bool precise;            /* they are of one precision: looked at once */
	bool tied;               /* some parameters never differ alone: phases tell them apart */
	pthread_mutex_t lock;    /* views are opened when they are first needed */
};

/* Does another recording differ from `recording` in this axis alone? */
bool vc_family_has_partner(const struct vc_family *f, size_t recording, size_t axis);

/* Fill f->view[base]; the caller holds f->lock. Refuses recordings of another configuration. */
int vc_scaling_open(struct vc_family *f, size_t base, struct vc_error *err);
void vc_scaling_fini(struct vc_scaling *v, size_t recordings);

/* Bytes of allocation i of `base`, which has a law, at the values at[] by axis. */
double vc_scaling_law(const struct vc_family *f, const struct vc_scaling *v, size_t base, size_t i,
		   const double *at);

/* Which allocations of `base` are of training, which of an evaluation: fills part and parted
 * once; the caller holds f->lock. */
int vc_scaling_parts(struct vc_family *f, size_t base, struct vc_error *err);

/* By what factor allocation i may be larger at at[] than its laws say, where others explain the
 * recordings as well; 1: none does. */
double vc_scaling_steep(const struct vc_family *f, const struct vc_scaling *v, size_t base,
			size_t i, const double *at);

/* The largest miss of a law of that allocation on the recordings, as a share of its size there. */
double vc_scaling_miss(const struct vc_family *f, const struct vc_scaling *v, size_t base,
		       size_t i);

/* The share of the bytes that have a counterpart, or do what those do that have. */
void vc_scaling_account(const struct vc_allocations *b, const struct vc_spread *s,
			const bool *plan, struct vc_scaling *v);

/* Write the events at *target, in the order of recording `base`, whose scaling is open (and its
 * parts, where the target is apart). */
int vc_synthesis(struct vc_family *f, size_t base, const struct vc_family_ask *ask,
		 const struct vc_target *target, struct vc_trace *out, struct vc_family_report *rep,
		 struct vc_error *err);
/* The same with ask->bare as a source, which has no meta. NULL: failure. */
struct vc_source *vc_synthesis_source(struct vc_family *f, size_t base,
				      const struct vc_family_ask *ask,
				      const struct vc_target *target, struct vc_error *err);

#endif
