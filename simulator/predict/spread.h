/* SPDX-License-Identifier: Apache-2.0 */
/* spread.h - steps whose sizes vary with the data (graphs, masks, routing, padded sequences): one
 * recording is a sample of several steps, and what another value needs is drawn from them. */
#ifndef VC_SPREAD_H
#define VC_SPREAD_H

#include "simulator/predict/allocations.h"
#include "simulator/predict/laws.h"

enum { VC_SPREAD_KNOWN = 4 };
struct vc_spread_factors;

/* The steps of one recording, side by side. */
struct vc_spread {
	bool varies;
	size_t steps;    /* without the first, which makes states and handles */
	uint32_t places; /* allocations of a step */
	uint32_t *place; /* by allocation: its place in a step + 1; 0: in none */
	uint32_t *step;  /* by allocation; the first step is `steps`; UINT32_MAX: of none */
	double *size;    /* by step and place, 0: not there */
	double *mean;    /* by place; 0: the same in all steps, or in turns */
	double *sigma;   /* by place: of the logarithms of sizes */
	struct vc_twin { uint32_t i; bool like; } *twin; /* allocations that vary, by step and
							 * size; `like` the one before it */
	size_t twins;
	struct vc_spread_factors *known[VC_SPREAD_KNOWN]; /* the newest, see below */
	size_t made;     /* ever */
	double all;      /* of the logarithms of all that varies in a step */
	double spreading; /* the same of all bytes of a step */
	double noise;    /* this, where it varies with the data */
};

/* The steps of m, and which of their places are plainly data. Errors: VC_ENOMEM. */
int vc_spread_read(struct vc_spread *s, const struct vc_allocations *m, struct vc_error *err);
/* The rest. others: some recording of the family varies with its data, so that less is enough to
 * say so of a place. Errors: VC_ENOMEM. */
int vc_spread_settle(struct vc_spread *s, const struct vc_allocations *m, bool others,
		     struct vc_error *err);
void vc_spread_fini(struct vc_spread *s);

/* Does allocation i vary with the data of its step? */
bool vc_spread_has(const struct vc_spread *s, size_t i);
/* Its size in the middle of all steps; that of an allocation that does not vary is its own. */
double vc_spread_middle(const struct vc_spread *s, const struct vc_allocations *m, size_t i);

/* Is that law of an allocation, through n recordings, one of their data? An evaluation is of no
 * step, but its data are of the same kind. */
bool vc_spread_doubts(const struct vc_spread *s, const struct vc_allocations *m, size_t i,
		      const struct vc_law *l, size_t n);

/* Which step gives each step its data in the `draw`-th of the draws, for all s->steps + 1. */
enum { VC_DRAWS = 64, VC_DRAW_OWN = 1 /* in this one each step has its own */ };
void vc_spread_draw(const struct vc_spread *s, unsigned draw, uint32_t *from);
/* The draw whose peak is the `rank`-th of all VC_DRAWS, when the allocations of m have those sizes
 * in the middle. Errors: VC_ENOMEM. */
int vc_spread_choose(const struct vc_spread *s, const struct vc_allocations *m,
		     const double *middle, const struct vc_spread_factors *f, unsigned rank,
		     uint32_t *from, struct vc_error *err);

/* By what factors the data of steps differ from the middle, where the parameter is `ratio` times
 * that of the recording: sums of more samples differ less. Many draws ask for the same ones, which
 * s keeps until they are not the newest. The caller of both sees to it that no other thread is in
 * one of them. NULL: no memory. */
struct vc_spread_factors *vc_spread_factors_get(struct vc_spread *s, double ratio);
void vc_spread_factors_put(const struct vc_spread_factors *f); /* NULL is fine */
/* That of allocation i. */
double vc_spread_factor(const struct vc_spread *s, size_t i, const uint32_t *from,
			const struct vc_spread_factors *f);

/* The law of such sizes: in proportion where that misses no middle by more than three times `noise`
 * (relative, of one middle), else of the degree (0 to 2) that misses least, or the line through
 * the outer ones. */
struct vc_law vc_spread_law(const struct vc_sample *s, size_t n, double noise);

#endif
