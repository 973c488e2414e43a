/* SPDX-License-Identifier: Apache-2.0 */
/* allocators.c - see allocators.h */
#include "simulator/search/allocators.h"

bool vc_allocators_differ(const struct vc_plan *plan, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (plan[i].model != plan[0].model || strcmp(plan[i].params, plan[0].params))
			return true;
	return false;
}

static uint64_t largest_hole(const struct vc_heap_map *map)
{
	uint64_t most = 0;

	for (size_t i = 0; i < map->n; i++)
		if (map->at[i].what == VC_X_FREE && map->at[i].size > most)
			most = map->at[i].size;
	return most;
}

/* "torch 2.6", "bfc:framework=jax" */
static void name_of(const struct vc_plan *p, char *buf, size_t n)
{
	snprintf(buf, n, "%s%s%s%s%s", p->model->name, p->params[0] ? ":" : "", p->params,
		 p->torch[0] ? " " : "", p->torch);
}

static void report_first_oom(struct vc_emit *e, const struct vc_result *r)
{
	char text[64] = "-";

	if (r->oom.happened)
		snprintf(text, sizeof(text), "at event %" PRIu64, r->oom.event);
	vc_emit_text(e, NULL, "runs out", text);
	if (r->oom.happened) {
		vc_emit_uint(e, "oom_event", NULL, r->oom.event);
		vc_emit_uint(e, "oom_step", NULL, r->oom.steps);
		vc_emit_uint(e, "oom_request", NULL, r->oom.request);
	} else {
		vc_emit_null(e, "oom_event", NULL);
		vc_emit_null(e, "oom_step", NULL);
		vc_emit_null(e, "oom_request", NULL);
	}
}

static void report_row(struct vc_emit *e, const struct vc_plan *p, const struct vc_result *r)
{
	uint64_t live = r->stats.lower_bound, reserved = r->stats.peak_reserved;
	/* `direct` counts what was asked for, without a unit, so it may be a hair below. */
	double over = live > 0 && reserved > live ? (double)reserved / (double)live - 1 : 0;
	char name[320], text[32];

	name_of(p, name, sizeof(name));
	vc_emit_text(e, "allocator", "allocator", name);
	vc_emit_text(e, "settings", p->conf[0] ? "settings" : NULL, p->conf);
	vc_emit_text(e, "card", p->device ? "card" : NULL, p->device);
	vc_emit_text(e, "outcome", "verdict", vc_verdict_name(vc_result_verdict(r)));
	vc_emit_bytes(e, "peak_reserved", "peak reserved", reserved);
	vc_emit_bytes(e, "peak_live", NULL, live);
	/* Of a run that ran out it says how full it got, not what the run needs. */
	snprintf(text, sizeof(text), "%+.1f %%", 100 * over);
	vc_emit_text(e, NULL, "over what was live", text);
	vc_emit_real(e, "over_live", NULL, over);
	report_first_oom(e, r);
	vc_emit_uint(e, "driver_calls", "driver calls", r->stats.driver_calls);
	vc_emit_ns(e, "driver_ns", "their time", r->stats.driver_ns);
	vc_emit_bytes(e, "largest_hole", "largest hole at the peak", largest_hole(&r->peak));
}

void vc_allocators_report(struct vc_emit *e, const struct vc_plan *plan,
			  const struct vc_result *run, size_t n)
{
	uint64_t live = 0;
	char text[32];

	vc_emit_array(e, "allocators", "Allocators");
	for (size_t i = 0; i < n; i++) {
		vc_emit_object(e, NULL, NULL);
		report_row(e, &plan[i], &run[i]);
		vc_emit_end(e);
		live = run[i].stats.lower_bound > live ? run[i].stats.lower_bound : live;
	}
	vc_emit_end(e);
	vc_emit_line(e, "  live at the peak: %s, in units of 512 bytes; no allocator needs less",
		     vc_bytes_text(live, text));
}
