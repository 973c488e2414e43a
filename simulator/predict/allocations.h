/* SPDX-License-Identifier: Apache-2.0 */
/* allocations.h - one recording as a list of allocations with their lives. */
#pragma once

#include "common/error.h"
#include "simulator/predict/align.h"
#include "simulator/replay/source.h"

#define VC_NEVER UINT32_MAX

struct vc_allocations {
	const struct vc_trace *trace; /* lent */
	uint16_t device;
	size_t n;                     /* allocations of that device, in order */
	struct vc_take *take;
	uint32_t *event;              /* index of each ALLOC in the trace */
	uint32_t *born, *died;        /* place among the device's ALLOC and FREE events; VC_NEVER */
	uint32_t *of_id;              /* allocation + 1 by block id, 0: none */
	uint64_t ids;                 /* length of of_id */
	uint32_t steps;               /* ALLOC and FREE events in all */
	uint64_t *lasting; /* sizes of what lives to the end, sorted: parameters, states */
	size_t lastings;
};

/* Errors: VC_ENOMEM; VC_EUSAGE when the trace has no allocation on that device. */
int vc_allocations_init(struct vc_allocations *m, const struct vc_trace *t, uint16_t device,
		   struct vc_error *err);
/* Call stacks by content, so that two recordings agree; folders do not count. line: by frame, in
 * place of its lines (NULL). Errors: VC_ENOMEM. */
int vc_allocations_name(struct vc_allocations *m, const uint32_t *line, struct vc_error *err);
void vc_allocations_fini(struct vc_allocations *m);

/* Alive at the last allocation (what is freed behind it goes because the program ends), and not
 * just because the recording ended: what the last step holds is data too. */
bool vc_allocations_lasts(const struct vc_allocations *m, size_t i);
/* Is there a lasting block of that many bytes? */
bool vc_allocations_has_lasting(const struct vc_allocations *m, uint64_t size);

/* Has one of the `depth` innermost frames of allocation i all of `names` (enum vc_torch_name)?
 * False where no call sites were recorded. */
bool vc_allocations_called(const struct vc_allocations *m, uint32_t i, int depth, uint32_t names);

/* The file that they were read from, for messages. */
const char *vc_allocations_from(const struct vc_allocations *m);
