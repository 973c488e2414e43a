/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - runs as one JSON document. An element of "runs" has the names and numbers of the same
 * element of 'vramcast sim --json' (docs/interop.md), and the usage curve besides. */
#include "common/emit.h"
#include "common/site.h"
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
	vc_emit_text(e, "verdict", NULL, vc_verdict_name(vc_result_verdict(r)));
}

static void emit_stats(struct vc_emit *e, const struct vc_result *r)
{
	const struct vc_stats *s = &r->stats;

	vc_emit_uint(e, "events", NULL, s->events);
	vc_emit_uint(e, "allocs", NULL, s->allocs);
	vc_emit_uint(e, "frees", NULL, s->frees);
	vc_emit_uint(e, "peak_requested", NULL, s->peak_requested);
	vc_emit_uint(e, "peak_allocated", NULL, s->peak_allocated);
	vc_emit_uint(e, "peak_active", NULL, s->peak_active);
	vc_emit_uint(e, "peak_reserved", NULL, s->peak_reserved);
	vc_emit_uint(e, "peak_used", NULL, s->peak_reserved + r->info.context + r->info.others);
	vc_emit_uint(e, "final_reserved", NULL, s->final_reserved);
	vc_emit_uint(e, "segments_peak", NULL, s->segments_peak);
	vc_emit_uint(e, "segment_allocs", NULL, s->segment_allocs);
	vc_emit_uint(e, "segment_frees", NULL, s->segment_frees);
	vc_emit_uint(e, "flushes", NULL, s->flushes);
	vc_emit_uint(e, "ooms", NULL, s->ooms);
	vc_emit_uint(e, "ooms_averted", NULL, s->ooms_averted);
	vc_emit_uint(e, "peak_event", NULL, s->peak_event);
	vc_emit_uint(e, "stranded_at_peak", NULL, s->stranded_at_peak);
	vc_emit_uint(e, "lower_bound", NULL, s->lower_bound);
	if (!r->has_interval) {
		vc_emit_null(e, "interval", NULL);
		return;
	}
	vc_emit_array(e, "interval", NULL);
	vc_emit_uint(e, NULL, NULL, r->low);
	vc_emit_uint(e, NULL, NULL, r->high);
	vc_emit_end(e);
}

static void emit_unused(struct vc_emit *e, const struct vc_fragmentation *f)
{
	vc_emit_object(e, "unused_at_peak", NULL);
	vc_emit_uint(e, "rounding", NULL, f->rounding);
	vc_emit_uint(e, "remainders", NULL, f->remainders);
	vc_emit_uint(e, "pinned", NULL, f->pinned);
	vc_emit_uint(e, "whole_free", NULL, f->whole_free);
	vc_emit_uint(e, "other_streams", NULL, f->other_streams);
	vc_emit_uint(e, "private_pools", NULL, f->private_pools);
	vc_emit_end(e);
}

static void emit_holder(struct vc_emit *e, const struct vc_result *r, const struct vc_holder *h)
{
	char place[512] = "";

	vc_emit_object(e, NULL, NULL);
	if (h->site)
		vc_site_text(r->meta, h->site, place, sizeof(place));
	if (h->site || h->label)
		vc_emit_text(e, "site", NULL, h->site ? place : vc_label_text(r->meta, h->label));
	else
		vc_emit_uint(e, "segment", NULL, h->segment);
	vc_emit_uint(e, "bytes", NULL, h->bytes);
	vc_emit_uint(e, "blocks", NULL, h->blocks);
	vc_emit_end(e);
}

static void emit_oom(struct vc_emit *e, const struct vc_result *r)
{
	const struct vc_oom_report *o = &r->oom;

	if (!o->happened) {
		vc_emit_null(e, "oom", NULL);
		return;
	}
	vc_emit_object(e, "oom", NULL);
	vc_emit_uint(e, "event", NULL, o->event);
	vc_emit_uint(e, "time_ns", NULL, o->time_ns);
	vc_emit_uint(e, "request", NULL, o->request);
	vc_emit_uint(e, "rounded", NULL, o->rounded);
	vc_emit_uint(e, "alloc_size", NULL, o->alloc_size);
	vc_emit_uint(e, "largest_free", NULL, o->largest_free);
	vc_emit_uint(e, "free_in_cache", NULL, o->free_in_cache);
	vc_emit_uint(e, "device_free", NULL, o->device_free);
	vc_emit_text(e, "message", NULL, o->message);
	vc_emit_array(e, "holders", NULL);
	for (size_t i = 0; i < o->holders; i++)
		emit_holder(e, r, &o->holder[i]);
	vc_emit_end(e);
	vc_emit_end(e);
}

static void emit_curve(struct vc_emit *e, const struct vc_curve *c)
{
	vc_emit_array(e, "curve", NULL);
	for (size_t i = 0; i < c->n; i++) {
		vc_emit_object(e, NULL, NULL);
		for (const struct vc_field *f = vc_bucket_fields; f->name; f++) {
			const char *at = (const char *)&c->at[i] + f->offset;

			vc_emit_uint(e, f->name, NULL, f->type == VC_F_U32 ? *(const uint32_t *)(const void *)at
									   : *(const uint64_t *)(const void *)at);
		}
		vc_emit_end(e);
	}
	vc_emit_end(e);
}

static int json_write(const struct vc_result *runs, size_t n, const void *config, struct vc_output *out,
		      struct vc_error *err)
{
	struct vc_emit *e = vc_emit_new(out, VC_EMIT_JSON, err);

	(void)config;
	if (!e)
		return VC_ENOMEM;
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "schema", NULL, "vramcast.result/1");
	vc_emit_array(e, "runs", NULL);
	for (size_t i = 0; i < n; i++) {
		vc_emit_object(e, NULL, NULL);
		emit_setup(e, &runs[i]);
		emit_stats(e, &runs[i]);
		emit_unused(e, &runs[i].fragmentation);
		emit_oom(e, &runs[i]);
		emit_curve(e, &runs[i].curve);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	vc_emit_end(e);
	return vc_emit_finish(e, err);
}

static const char *const reads[] = { "timeline", "oom", "peak", NULL };

const struct vc_sink_type vc_sink_json = {
	.name = "json", .extension = "json",
	.summary = "runs with their numbers and usage curves as one JSON document",
	.observers = reads, .write = json_write,
};
