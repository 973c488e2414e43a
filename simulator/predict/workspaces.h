/* SPDX-License-Identifier: Apache-2.0 */
/* workspaces.h - where a recording asks for workspace buffers that a kernel's launch arithmetic
 * decides, or would at another size: sums over rows (bias gradients), places of extremes (argmin
 * over rows) and batch normalisation of rows. */
#pragma once

#include "simulator/predict/allocations.h"
#include "simulator/anatomy/reduction.h"

enum vc_workspace_kind {
	VC_WORKSPACE_SUM,
	VC_WORKSPACE_PLACE, /* where the largest or the least of float rows stand */
	VC_WORKSPACE_NORM, VC_WORKSPACE_NORM_BACK
};

struct vc_workspace {
	enum vc_workspace_kind kind;
	uint32_t owner; /* allocation of the sums; with workspace, the next two are the buffers */
	uint32_t source;   /* allocation of the rows, or VC_UNMATCHED */
	uint32_t width;    /* values per row */
	uint64_t row;      /* bytes of a row of the source: source size / row = rows */
	bool present;      /* the recording has the buffers */
	uint64_t least, most; /* rows, as far as the buffers tell */
	enum vc_limit limit;  /* present: what decided the buffers' size */
};

struct vc_workspaces { struct vc_workspace *at; size_t n; };

/* Bytes of the two buffers (false: none) where the sums have so many bytes and what is summed as
 * many: sums of each sample's own rows (the mean of a picture) are more where there are more
 * samples, and their rows are not. */
bool vc_workspace_at(const struct vc_workspace *s, uint64_t sums, uint64_t source,
		     const struct vc_reduction_card *card, uint64_t *partial,
		     uint64_t *semaphores);

/* Do two buffers follow this allocation that are given back at once, the second first? */
bool vc_workspace_follows(const struct vc_allocations *m, uint32_t owner);

/* Say which allocations are buffers of a sum over rows, whoever's rows they are: they are no
 * data, and are not to be taken for any of another recording. */
void vc_workspace_mark(const struct vc_allocations *m, const struct vc_reduction_card *card,
		       bool *buffer);

/* All of them, in order. grows[i]: the factor by which allocation i would grow with the parameter
 * (1: it does not). The caller frees out->at. Errors: VC_ENOMEM. */
int vc_workspace_find(const struct vc_allocations *m, const double *grows,
		    const struct vc_reduction_card *card, struct vc_workspaces *out,
		    struct vc_error *err);

/* The card whose launch arithmetic explains most of the buffers of these recordings: a snapshot
 * does not name its card. Where none does, that of the H100 and H200, and *known is false. */
struct vc_reduction_card vc_workspace_card(const struct vc_allocations *m, size_t n, bool *known);
