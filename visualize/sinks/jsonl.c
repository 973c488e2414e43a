/* SPDX-License-Identifier: Apache-2.0 */
/* jsonl.c - one JSON object per line: each run, its usage over time, its blocks. The field "kind"
 * tells them apart, so that one file can be filtered by any tool that reads lines. */

#include "common/io.h"
#include "common/json.h"
#include "visualize/record.h"
#include "visualize/sink.h"

struct config { uint64_t what; };
enum what { ALL, CURVE, BLOCKS };

static const struct vc_param params[] = {
	{ "what", VC_P_ENUM, offsetof(struct config, what), "all",
	  "runs, buckets and blocks; or runs and one of them", "all,curve,blocks" },
	VC_PARAM_END
};

static void text_field(struct vc_output *o, const char *key, const char *value)
{
	vc_output_printf(o, ",\"%s\":", key);
	if (value)
		vc_json_quote(o, value, strlen(value));
	else
		vc_output_text(o, "null");
}

static void run_line(struct vc_output *o, size_t i, const struct vc_result *r)
{
	const struct vc_stats *s = &r->stats;

	vc_output_printf(o, "{\"kind\":\"run\",\"schema\":\"vramcast.jsonl/1\",\"run\":%zu", i);
	text_field(o, "trace", r->info.trace);
	vc_output_printf(o, ",\"device\":%u", r->info.device);
	text_field(o, "model", r->info.model);
	text_field(o, "torch", r->info.torch);
	text_field(o, "conf", r->info.conf);
	text_field(o, "gpu", r->info.gpu);
	text_field(o, "change", r->info.change);
	text_field(o, "verdict", vc_verdict_name(vc_result_verdict(r)));
	text_field(o, "level", vc_level_name(r->trust.level));
	vc_output_printf(o, ",\"checked\":%s,\"reproduced\":%s",
			 r->trust.checked ? "true" : "false",
			 r->trust.reproduced ? "true" : "false");
	if (r->has_interval)
		vc_output_printf(o, ",\"interval\":[%" PRIu64 ",%" PRIu64 "]", r->low, r->high);
	else
		vc_output_text(o, ",\"interval\":null");
	vc_output_printf(o, ",\"capacity\":%" PRIu64 ",\"events\":%" PRIu64
			 ",\"peak_requested\":%" PRIu64 ",\"peak_allocated\":%" PRIu64
			 ",\"peak_active\":%" PRIu64 ",\"peak_reserved\":%" PRIu64
			 ",\"peak_event\":%" PRIu64 ",\"blocks_left_out\":%" PRIu64 "}\n",
			 r->info.capacity, s->events, s->peak_requested, s->peak_allocated,
			 s->peak_active, s->peak_reserved, s->peak_event, r->lives.dropped);
}

static int jsonl_write(const struct vc_result *runs, size_t n, const void *config,
		       struct vc_output *out, struct vc_error *err)
{
	const struct config *c = config;
	uint64_t what = c ? c->what : ALL;

	for (size_t i = 0; i < n; i++) {
		const struct vc_result *r = &runs[i];

		run_line(out, i, r);
		for (size_t k = 0; what != BLOCKS && k < r->curve.n; k++)
			vc_record_json(out, "bucket", vc_bucket_fields, i, &r->curve.at[k],
				       r->meta);
		for (size_t k = 0; what != CURVE && k < r->lives.n; k++)
			vc_record_json(out, "block", vc_life_fields, i, &r->lives.at[k], r->meta);
	}
	return VC_OK;
}

const struct vc_sink_type vc_sink_jsonl = {
	.name = "jsonl", .extension = "jsonl",
	.summary = "one JSON object per line: runs, usage over time, blocks",
	.params = params, .config_size = sizeof(struct config),
	.observers = VC_READS("timeline", "lives"),
	.write = jsonl_write,
};
