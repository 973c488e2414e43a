/* SPDX-License-Identifier: Apache-2.0 */
/* leaks.h - what a run keeps of every step: memory that grows until the card is full. */
#ifndef VC_LEAKS_H
#define VC_LEAKS_H

#include "common/emit.h"
#include "common/pattern.h"
#include "simulator/session/session.h"

struct vc_leak {
	uint64_t steps;             /* of which every one left something behind; 0: no leak */
	uint64_t bytes, blocks;     /* they left, together */
	uint32_t site;              /* the place that left most of it, 0: not recorded */
	uint64_t site_bytes, size;  /* of that; one block of it */
};

/* Never freed blocks of the same call site (or size, without sites) from every step but the first
 * and the last, of at least four; below a MiB together they are not worth a word. A recording
 * without marks, iterations or a sure pattern says nothing. */
struct vc_leak vc_leak_find(const struct vc_session *s);

/* "leak": {steps, bytes, blocks, site, site_bytes}, or null; into an open object. */
void vc_leak_report(struct vc_emit *e, const struct vc_session *s, const struct vc_leak *l);

/* What repeats is the layers of one pass when something large comes behind them that none of them
 * asks for (the scores of an inference): steps end as they began. */
bool vc_is_one_pass(const struct vc_trace *t, uint16_t device, const struct vc_pattern_steps *p);

/* "each step keeps 4.00 MiB that is never freed (24.00 MiB in 6 steps), most of it at train.py:12
 * step" with how many more steps `free` bytes last (0: not known). "" without a leak. */
const char *vc_leak_text(const struct vc_session *s, const struct vc_leak *l, uint64_t free,
			 char *buf, size_t n);

#endif
