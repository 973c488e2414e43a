/* SPDX-License-Identifier: Apache-2.0 */
/* step_sizes.h - steps whose sizes vary with the data (graphs, masks, routing, padded sequences):
 * one recording is a sample of several steps, and what another value needs is resampled from them.
 */
#pragma once

#include "simulator/predict/allocations.h"

/* The steps of one recording, side by side. */
struct vc_step_sizes {
	bool vary;
	size_t steps;    /* without the first, which makes states and handles */
	uint32_t places; /* allocations of a step */
	uint32_t *place; /* by allocation: its place in a step + 1; 0: in none */
	uint32_t *step;  /* by allocation; the first step is `steps`; UINT32_MAX: of none */
	double *size;    /* by step and place, 0: not there */
	double *mean;    /* by place; 0: the same in all steps, or periodic */
	double *sigma;   /* by place: standard deviation of the logarithms of sizes */
	double noise;    /* the same of all bytes of a step, where they vary */
};

/* Errors: VC_ENOMEM. */
int vc_step_sizes_read(struct vc_step_sizes *s, const struct vc_allocations *m,
		       struct vc_error *err);
void vc_step_sizes_fini(struct vc_step_sizes *s);

/* Does allocation i vary with the data of its step? */
bool vc_step_sizes_has(const struct vc_step_sizes *s, size_t i);
/* The mean of its size in all steps; that of an allocation that does not vary is its own. */
double vc_step_sizes_mean(const struct vc_step_sizes *s, const struct vc_allocations *m, size_t i);

/* Resample: which step gives each of the s->steps + 1 its data; sample 0: each its own. */
void vc_step_sizes_sample(const struct vc_step_sizes *s, unsigned sample, uint32_t *from);
/* By what factor allocation i then differs from the mean, where the parameter is `ratio` times that
 * of the recording: sums of more samples differ less. */
double vc_step_sizes_factor(const struct vc_step_sizes *s, size_t i, const uint32_t *from,
			    double ratio);
