/* SPDX-License-Identifier: Apache-2.0 */
/* scaling.h - what one recording of a family knows through the others; shared by family.c
 * (opening, asking), scaling.c (laws, matched allocations, workspace) and synthesis.c (events). */
#pragma once

#include <pthread.h>

#include "simulator/predict/convolutions.h"
#include "simulator/predict/family.h"
#include "simulator/predict/laws.h"
#include "simulator/predict/step_sizes.h"
#include "simulator/predict/workspaces.h"

/* How the size of an allocation at another value is known. */
enum vc_origin {
	VC_BY_LAW, VC_BY_MATCHED, VC_BY_ROWS, VC_ALONE,
	VC_OPEN /* one recording: may depend or not */
};

/* counts: see vc_family_counts(). */
struct vc_axis { const char *name; bool counts; };

/* Values asked for by axis. */
struct vc_target {
	double at[VC_AXES];
	bool elsewhere;  /* another card than the recorded one will run it, ... */
	uint64_t cublas; /* see struct vc_family_ask */
	const struct vc_answers *there; /* ... whose plans these say; NULL: nobody does */
};

/* What one recording, taken as the base, knows through the others. */
struct vc_scaling {
	bool ready;
	uint32_t **match;        /* per recording, per allocation of the base; NULL: the base */
	struct vc_law *law;      /* per axis and allocation */
	uint8_t *origin;         /* enum vc_origin by allocation */
	uint32_t *matched;       /* VC_BY_MATCHED: whose law */
	uint32_t *other;         /* VC_BY_MATCHED: one that says otherwise, or VC_UNMATCHED */
	uint8_t *single;         /* VC_OPEN: enum vc_single by axis and allocation */
	struct vc_workspaces workspace;
	uint64_t bytes, explained; /* of these the part that others have, or that is computed */
	uint64_t again;          /* of that the part of repeats */
	bool *repeat;            /* by allocation: others have its kind, in a loop that runs less
				  * often */
	double unmatched;        /* share of the allocations of this and of others that the
				  * others and this have not, but for ... */
	double repeated;         /* ... these repeats */
	double unsure;           /* share of the bytes that move whose law is not sure, ... */
	double lines;            /* ... and is a line through two samples */
};

struct vc_family {
	struct vc_allocations *m;
	size_t n;
	struct vc_axis axis[VC_AXES];
	size_t axes;
	double (*x)[VC_AXES];    /* parameter values by recording */
	struct vc_scaling *view;
	struct vc_step_sizes *steps; /* by recording; read with the first view, for one axis */
	bool **plan;             /* by recording and allocation: see plans.h */
	struct vc_convolutions *conv; /* by recording */
	const struct vc_answers *answers; /* lent, or NULL */
	bool simulated;          /* all of them were made on the null GPU, which asks cuDNN, too */
	struct vc_conv_answers held; /* these, held against the recordings; from NULL: not yet */
	struct vc_reduction_card recorded;
	bool card_known;
	unsigned without;        /* see vc_family_new */
	pthread_mutex_t lock;    /* views are opened when they are first needed */
};

static inline bool vc_family_uses(const struct vc_family *f, enum vc_rule r)
{
	return !(f->without >> r & 1);
}

/* ---- scaling.c ---- */

/* Does another recording differ from `recording` in this axis alone? */
bool vc_family_has_partner(const struct vc_family *f, size_t recording, size_t axis);
/* Fill f->view[base]; the caller holds f->lock. Refuses recordings of another configuration. */
int vc_scaling_open(struct vc_family *f, size_t base, struct vc_error *err);
void vc_scaling_fini(struct vc_scaling *v, size_t recordings);
/* Bytes of allocation i of `base`, which has a law, at the values at[] by axis; the end that the
 * bound says. */
double vc_scaling_law(const struct vc_family *f, const struct vc_scaling *v, size_t base, size_t i,
		      const double *at, enum vc_bound bound);

/* ---- single.c: a family of one recording ---- */

enum vc_single {
	VC_SINGLE_STAYS, /* does not depend on the parameter */
	VC_SINGLE_GROWS, /* in proportion */
	VC_SINGLE_KEPT,  /* in proportion when it grows, open when it shrinks */
	VC_SINGLE_HOLDS, /* open: likely not */
	VC_SINGLE_MOVES, /* open: likely in proportion */
	VC_SINGLE_PAIRS, /* in proportion at least, likely with the square */
	VC_SINGLE_SQUARES, /* likely in proportion, perhaps with the square */
};

/* What each allocation of m does along that parameter, recorded at x. Errors: VC_ENOMEM. */
int vc_single_settle(const struct vc_allocations *m, const char *name, double x, uint8_t *how,
		     struct vc_error *err);
/* Its factor at another value. */
double vc_single_factor(enum vc_single how, const char *name, double x, double at,
			enum vc_bound bound);

/* ---- pinned.c: pinned memory of the host follows laws, too ---- */

bool vc_pinned_is(const struct vc_meta *m, const struct vc_event *e);
/* By pinned allocation of the base, the caller's; NULL: as recorded, where not all are alike. */
uint64_t *vc_pinned_sizes(const struct vc_family *f, size_t base, const double *at);

/* ---- plans.c: what a noted convolution borrows for one call. cuDNN picks one of several ways to
 * compute it (plans), another one at another size, and each needs another workspace or none: no law
 * holds it. ---- */

/* Match the workspace of a, which an alignment left out, with that of b: the one behind the same
 * allocation. */
void vc_plans_match(const struct vc_allocations *a, const bool *in_a,
		    const struct vc_allocations *b, const bool *in_b, uint32_t *match);

/* Workspace of convolutions at the target as cuDNN names it, in the order of one recording. */
struct vc_borrowed {
	uint64_t *size;   /* by allocation: bytes + 1 of its workspace, 1: none there; 0: nobody
			   * says. NULL: nobody says anything */
	struct vc_borrowed_new {
		uint32_t event;  /* PLAN of the trace, that borrowed nothing */
		uint64_t bytes;
	} *added; size_t n;
	uint64_t named;   /* times that cuDNN's plan is known */
};

/* Only where one parameter differs, and data decide nothing. The view of `base` is open; the caller
 * holds f->lock. Errors: VC_ENOMEM. */
int vc_borrowed_make(struct vc_family *f, size_t base, const struct vc_target *target,
		    struct vc_borrowed *out, struct vc_error *err);
void vc_borrowed_fini(struct vc_borrowed *p);

/* ---- synthesis.c ---- */

/* Write the events at *target, in the order of recording `base`, whose scaling is open. */
int vc_synthesis(struct vc_family *f, size_t base, const struct vc_family_ask *ask,
		 const struct vc_target *target, struct vc_trace *out, struct vc_family_report *rep,
		 struct vc_error *err);
/* The same with ask->bare as a source, which has no meta. NULL: failure. */
struct vc_source *vc_synthesis_source(struct vc_family *f, size_t base,
				      const struct vc_family_ask *ask,
				      const struct vc_target *target, struct vc_error *err);
