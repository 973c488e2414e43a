/* SPDX-License-Identifier: Apache-2.0 */
/* csv.c - the usage curve, or the life of every block, for spreadsheets, pandas and duckdb. */

#include "common/io.h"
#include "visualize/record.h"
#include "visualize/sink.h"

struct config { uint64_t what; };

static const struct vc_param params[] = {
	{ "what", VC_P_ENUM, offsetof(struct config, what), "curve",
	  "usage over time, or one line per block, one per run, or what unused bytes are "
	  "over time", "curve,blocks,runs,unused" },
	VC_PARAM_END
};

enum what { CURVE, BLOCKS, RUNS, UNUSED };

static void text_cell(struct vc_output *out, const char *text)
{
	vc_output_text(out, ",");
	vc_output_csv(out, text ? text : "");
}

static void run_lines(struct vc_output *out, const struct vc_result *runs, size_t n)
{
	vc_output_text(out,
		       "run,trace,model,torch,conf,gpu,change,vary,value,capacity,verdict,peak_"
		       "requested,peak_allocated,peak_active,peak_reserved,peak_used,flushes,"
		       "ooms,segments_peak,lower_bound,low,high,step_ns,level,checked,"
		       "reproduced\n");
	for (size_t i = 0; i < n; i++) {
		const struct vc_result *r = &runs[i];
		const uint64_t number[] = { r->stats.peak_requested,
					   r->stats.peak_allocated,
					   r->stats.peak_active,
					   r->stats.peak_reserved,
					   r->stats.peak_used,
					   r->stats.flushes,
					   r->stats.ooms,
					   r->stats.segments_peak,
					   r->stats.lower_bound,
					   r->has_interval ? r->low : r->stats.peak_reserved,
					   r->has_interval ? r->high : r->stats.peak_reserved };
		const char *const text[] = { r->info.trace, r->info.model, r->info.torch,
					    r->info.conf,  r->info.gpu,   r->info.change,
					    r->info.vary };

		vc_output_printf(out, "%zu", i);
		for (size_t k = 0; k < sizeof(text) / sizeof(*text); k++)
			text_cell(out, text[k]);
		if (r->info.vary)
			vc_output_printf(out, ",%.15g", r->info.value);
		else
			vc_output_text(out, ",");
		vc_output_printf(out, ",%" PRIu64 ",%s", r->info.capacity,
				 vc_verdict_name(vc_result_verdict(r)));
		for (size_t k = 0; k < sizeof(number) / sizeof(*number); k++)
			vc_output_printf(out, ",%" PRIu64, number[k]);
		if (r->timing.step_ns)
			vc_output_printf(out, ",%" PRIu64, r->timing.step_ns);
		else
			vc_output_text(out, ",");
		text_cell(out, vc_level_name(r->trust.level));
		vc_output_printf(out, ",%d,%d\n", r->trust.checked, r->trust.reproduced);
	}
}

static int csv_write(const struct vc_result *runs, size_t n, const void *config,
		     struct vc_output *out, struct vc_error *err)
{
	const struct config *c = config;
	bool blocks = c && c->what == BLOCKS, unused = c && c->what == UNUSED;

	if (c && c->what == RUNS) {
		run_lines(out, runs, n);
		return VC_OK;
	}
	vc_record_csv_head(out, blocks ? vc_life_fields :
				unused ? vc_unused_fields : vc_bucket_fields);
	for (size_t i = 0; i < n; i++) {
		const struct vc_result *r = &runs[i];

		for (size_t k = 0; unused && k < r->unused.n; k++)
			vc_record_csv(out, vc_unused_fields, i, &r->unused.at[k], r->meta);
		for (size_t k = 0; !blocks && !unused && k < r->curve.n; k++)
			vc_record_csv(out, vc_bucket_fields, i, &r->curve.at[k], r->meta);
		for (size_t k = 0; blocks && k < r->lives.n; k++)
			vc_record_csv(out, vc_life_fields, i, &r->lives.at[k], r->meta);
	}
	return VC_OK;
}

const struct vc_sink_type vc_sink_csv = {
	.name = "csv", .extension = "csv",
	.summary =
		"usage over time (what=blocks: every block, what=runs: the totals, what=unused: "
		"what unused bytes are) as comma-separated values",
	.params = params, .config_size = sizeof(struct config),
	.observers = VC_READS("timeline", "lives", "unused"),
	.write = csv_write,
};
