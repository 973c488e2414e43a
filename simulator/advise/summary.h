/* SPDX-License-Identifier: Apache-2.0 */
/* summary.h - a model's statistics as torch.cuda.memory_stats() and memory_summary() show them. */
#pragma once

#include "common/emit.h"
#include "simulator/replay/result.h"

/* Fields "active.all.current": n, sorted by name, into an object that is open. People see lines. */
int vc_summary_stats(struct vc_emit *e, const struct vc_counters *c, struct vc_error *err);

/* The table of memory_summary(), for people. */
void vc_summary_table(struct vc_emit *e, const struct vc_counters *c, unsigned device);
