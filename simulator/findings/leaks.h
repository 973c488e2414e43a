/* SPDX-License-Identifier: Apache-2.0 */
/* leaks.h - what a run keeps of every step: memory that grows until the card is full. */
#pragma once

#include "common/emit.h"
#include "common/pattern.h"
#include "simulator/session/session.h"

/* Never freed blocks of the same call site (or size, without sites) from every step but the first
 * and the last, of at least four; below a MiB together they are not worth a word. A recording
 * without marks, iterations or a sure pattern says nothing. */
struct vc_leak vc_leak_find(const struct vc_session *s);

/* "leak": {steps, bytes, blocks, site, site_bytes}, or null; into an open object. */
void vc_leak_report(struct vc_emit *e, const struct vc_meta *m, const struct vc_leak *l);

/* What repeats is the layers of one pass when something large comes behind them that none of them
 * asks for (the scores of an inference): steps end as they began. */
bool vc_is_one_pass(const struct vc_trace *t, uint16_t device, const struct vc_pattern_steps *p);

