/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - runs as one JSON document. An element of "runs" has the names and numbers of the same
 * element of 'vramcast sim --json' (docs/reference/json.md), and the usage curve besides. */
#include "common/emit.h"
#include "visualize/record.h"
#include "visualize/sink.h"

static void number_or_null(struct vc_emit *e, const char *key, bool known, uint64_t v)
{
	if (known)
		vc_emit_uint(e, key, NULL, v);
	else
		vc_emit_null(e, key, NULL);
}

static void emit_setup(struct vc_emit *e, const struct vc_result *r)
{
	const struct vc_run_info *i = &r->info;

	vc_emit_text(e, "file", NULL, i->trace);
	vc_emit_uint(e, "device", NULL, i->device);
	vc_emit_text(e, "model", NULL, i->model);
	vc_emit_text(e, "torch", NULL, i->torch);
	vc_emit_text(e, "conf", NULL, i->conf);
	vc_emit_text(e, "gpu", NULL, i->gpu);
	vc_emit_text(e, "change", NULL, i->change);
	number_or_null(e, "capacity", i->capacity, i->capacity);
	number_or_null(e, "limit", i->has_limit, i->limit);
	vc_emit_uint(e, "context", NULL, i->context);
	vc_emit_uint(e, "others", NULL, i->others);
	vc_emit_uint(e, "events", NULL, r->stats.events);
	vc_emit_uint(e, "allocs", NULL, r->stats.allocs);
	vc_emit_uint(e, "frees", NULL, r->stats.frees);
}

static void emit_curve(struct vc_emit *e, const struct vc_curve *c)
{
	vc_emit_array(e, "curve", NULL);
	for (size_t i = 0; i < c->n; i++) {
		vc_emit_object(e, NULL, NULL);
		for (const struct vc_field *f = vc_bucket_fields; f->name; f++) {
			const char *at = (const char *)&c->at[i] + f->offset;

			vc_emit_uint(e, f->name, NULL,
				     f->type == VC_F_U32 ? *(const uint32_t *)(const void *)at :
							   *(const uint64_t *)(const void *)at);
		}
		vc_emit_end(e);
	}
	vc_emit_end(e);
}

static int json_write(const struct vc_result *runs, size_t n, const void *config,
		      struct vc_output *out, struct vc_error *err)
{
	struct vc_emit *e = vc_emit_new(out, VC_EMIT_JSON, err);

	if (!e)
		return VC_ENOMEM;
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "schema", NULL, "vramcast.result/1");
	vc_emit_array(e, "runs", NULL);
	for (size_t i = 0; i < n; i++) {
		vc_emit_object(e, NULL, NULL);
		emit_setup(e, &runs[i]);
		vc_result_emit_peaks(e, &runs[i]);
		vc_result_emit_counts(e, &runs[i]);
		vc_result_emit_answer(e, &runs[i]);
		vc_result_emit_unused(e, &runs[i].fragmentation);
		vc_result_emit_oom(e, &runs[i]);
		emit_curve(e, &runs[i].curve);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	vc_emit_end(e);
	return vc_emit_finish(e, err);
}

const struct vc_sink_type vc_sink_json = {
	.name = "json", .extension = "json",
	.summary = "runs with their numbers and usage curves as one JSON document",
	.observers = VC_READS("timeline", "oom", "moment", "peak"), .write = json_write,
};
