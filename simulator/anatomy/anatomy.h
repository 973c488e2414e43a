/* SPDX-License-Identifier: Apache-2.0 */
/* anatomy.h - iterations, phases and categories of a training run, from marks or from the pattern
 * of its allocations. */
#pragma once

#include "common/error.h"
#include "common/event.h"
#include "common/meta.h"
#include "simulator/replay/source.h"

enum vc_phase {
	VC_PHASE_INIT,      /* before the first iteration */
	VC_PHASE_FORWARD, VC_PHASE_BACKWARD, VC_PHASE_OPTIMIZER,
	VC_PHASE_OTHER,     /* between iterations: evaluation, checkpoints, ... */
	VC_PHASES
};

enum vc_category {
	VC_CAT_UNKNOWN,
	VC_CAT_PARAMETER,   /* and buffers: born before the first iteration, never freed */
	VC_CAT_GRADIENT,
	VC_CAT_STATE,       /* of the optimizer */
	VC_CAT_ACTIVATION,  /* born in a forward pass, dies in a backward pass */
	VC_CAT_WORKSPACE,   /* born in an iteration, never freed: handles, scratch */
	VC_CAT_FORWARD_TEMP, VC_CAT_BACKWARD_TEMP, VC_CAT_OPTIMIZER_TEMP, VC_CAT_OTHER_TEMP,
	VC_CATS
};

struct vc_block_life {
	uint64_t id, size;         /* requested bytes */
	size_t event, died_event;  /* indices of ALLOC and FREE; SIZE_MAX: never freed */
	uint32_t born, died;       /* as counts of allocations before it; UINT32_MAX */
	uint32_t iteration;        /* UINT32_MAX: none */
	uint32_t span;             /* index into span */
	uint8_t category;          /* enum vc_category */
};

struct vc_span { /* a phase; spans tile the events */
	uint8_t phase;             /* enum vc_phase */
	uint32_t iteration;        /* UINT32_MAX: none */
	uint32_t micro;            /* forward and backward: which micro-batch of the iteration */
	size_t first, end;         /* events [first, end) */
};

struct vc_anatomy {
	struct vc_block_life
		*block; /* in order of birth; those of the starting heap are not here */
	size_t n;
	struct vc_span *span;
	size_t spans;
	uint32_t iterations;       /* 0: none found */
	uint32_t micro;            /* micro-batches per iteration (gradient accumulation) */
	double confidence;         /* 0..1 */
	const char *from;          /* "marks", "pattern", or NULL */
	uint64_t parameters, gradients, states; /* bytes of one copy each */
	struct vc_memo *lent;      /* whose block and span they are; NULL: its own */
};

/* Below this the iterations of a pattern do not stand for the run, and none are given. */
#define VC_ANATOMY_SURE 0.6

/* Errors: VC_ENOMEM. A trace without iterations is no error: one INIT span, iterations = 0. */
int vc_anatomy_read(struct vc_anatomy *a, const struct vc_event *ev, size_t n, uint16_t device,
		    const struct vc_meta *meta, struct vc_error *err);
void vc_anatomy_fini(struct vc_anatomy *a);

/* The anatomy of a trace, found out once where the trace keeps it (simulator/replay/memo.h). Not
 * to be written to. Thread-safe. Errors: VC_ENOMEM. */
int vc_anatomy_of(struct vc_anatomy *a, const struct vc_trace *t, uint16_t device,
		  struct vc_error *err);
/* Make a borrowed one the caller's own, to be written to. Errors: VC_ENOMEM. */
int vc_anatomy_own(struct vc_anatomy *a, struct vc_error *err);

/* Requested bytes by category at the moment most are live; those of the starting heap last.
 * Errors: VC_ENOMEM. */
int vc_anatomy_live(const struct vc_anatomy *a, const struct vc_trace *t, uint16_t device,
		    uint64_t bytes[VC_CATS + 1], struct vc_error *err);

/* The first block that is asked for at that event or behind it. */
size_t vc_anatomy_block_at(const struct vc_anatomy *a, size_t event);

const char *vc_phase_name(enum vc_phase p);
const char *vc_category_name(enum vc_category c);
