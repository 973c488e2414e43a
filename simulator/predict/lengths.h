/* SPDX-License-Identifier: Apache-2.0 */
/* lengths.h - steps whose samples are as long as the data happens to be (batches padded to their
 * longest): no law of the batch holds there, and what a larger batch needs depends on samples
 * nobody has seen. */
#ifndef VC_LENGTHS_H
#define VC_LENGTHS_H

#include "simulator/predict/family.h"
#include "simulator/predict/allocations.h"

/* What is compared: a recording, and others of the same parameter. */
struct vc_lengths_of {
	const struct vc_allocations *m;  /* the base, then the others */
	size_t n;                   /* recordings in all */
	const double *x;            /* their values of the parameter */
	uint32_t *const *match; /* of the base's allocations in each; NULL for those that cannot
				   be compared */
	const bool *plan;  /* by allocation of the base: workspace, no length (plans.h); NULL:
			    * none */
};

struct vc_lengths {
	bool vary;
	uint32_t *group;     /* step + 1 by allocation; 0: its size follows a law */
	float *power;        /* by allocation: of the length of a sample */
	double *amount;      /* by step: the base's data per sample */
	size_t groups;
	double *pool;        /* data per sample of the steps of all recordings, as at the base */
	size_t pooled;
	double most, least;  /* data per sample of any step of any recording */
	double longest;      /* and of any step of the base */
	double sigma;        /* standard deviation of the logarithm of a step's data per sample */
	double margin;       /* by how much another step may need more, or less */
	double exponent;     /* of the parameter, by which the longest step grows beside it */
};

/* Look for such steps in recordings base of o. Errors: VC_ENOMEM. */
int vc_lengths_read(struct vc_lengths *l, const struct vc_lengths_of *o, size_t base,
		    struct vc_error *err);
/* One recording alone, whose blocks `moves` says to depend on the parameter: do its steps differ,
 * and not just by taking turns? */
int vc_lengths_alone(struct vc_lengths *l, const struct vc_allocations *m, const bool *moves,
		     struct vc_error *err);
void vc_lengths_fini(struct vc_lengths *l);

/* How much more data there is per sample in the step of allocation i. */
double vc_lengths_longer(const struct vc_lengths *l, size_t i, double ratio, enum vc_bound bound);

/* Bytes of an allocation with a step when the parameter is `ratio` times that of the base; draw: as
 * long as which step (spread.h); 0: its own. */
double vc_lengths_size(const struct vc_lengths *l, uint64_t size, size_t i, double ratio,
		       enum vc_bound bound, unsigned draw);

#endif
