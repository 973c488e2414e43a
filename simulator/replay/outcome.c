/* SPDX-License-Identifier: Apache-2.0 */
/* outcome.c - the numbers of a run for programs: the same from sim, sweep and the sinks. */
#include "common/vec.h"
#include "simulator/replay/result.h"

#include "common/emit.h"
#include "common/site.h"
#include "simulator/replay/model.h"

#define MAX_HOLDERS 64

/* ---- who holds the memory ---- */

/* A holder with what its line of code says: many call stacks end in the same line, in frames that
 * differ only in their callers. */
struct keyed { uint32_t function, file, line; struct vc_holder h; };

VC_COMPARE(by_place, struct keyed,
	   VC_THEN(VC_ORDER(x->file, y->file), VC_THEN(VC_ORDER(x->line, y->line),
		   VC_THEN(VC_ORDER(x->function, y->function),
		   VC_THEN(VC_ORDER(x->h.label, y->h.label), VC_ORDER(x->h.held, y->h.held))))))

VC_COMPARE(by_bytes, struct keyed, VC_THEN(VC_ORDER(y->h.bytes, x->h.bytes), by_place(x, y)))

static size_t collect(const struct vc_heap_map *map, const struct vc_meta *meta, struct keyed *k)
{
	size_t n = 0;

	for (size_t i = 0; i < map->n; i++) {
		const struct vc_heap_extent *x = &map->at[i];

		if (x->what != VC_X_LIVE && x->what != VC_X_PENDING)
			continue;
		k[n].h = (struct vc_holder){ .label = x->label, .bytes = x->size, .blocks = 1,
			.held = x->site || x->label ? VC_HELD_AT :
				x->at_start         ? VC_HELD_BEFORE : VC_HELD_NOWHERE };
		if (x->site && x->site < meta->frames) {
			const struct vc_frame *f;

			k[n].h.site = vc_site_shown(meta, x->site);
			f = &meta->frame[k[n].h.site];
			k[n].function = f->function;
			k[n].file = f->file;
			k[n].line = f->line;
		}
		n++;
	}
	return n;
}

int vc_holders_of(const struct vc_heap_map *map, const struct vc_meta *meta,
		       struct vc_holder **holders, size_t *n, struct vc_error *err)
{
	struct keyed *k = calloc(map->n ? map->n : 1, sizeof(*k));
	struct vc_holder *h = calloc(MAX_HOLDERS, sizeof(*h));
	size_t all, m = 0;

	if (!k || !h) {
		VC_FREE(k, h);
		return vc_nomem(err, "the list of holders");
	}
	all = collect(map, meta, k);
	vc_sort(k, all, sizeof(*k), by_place);
	for (size_t i = 0; i < all; i++) { /* merge equal places */
		if (m && !by_place(&k[m - 1], &k[i])) {
			k[m - 1].h.bytes += k[i].h.bytes;
			k[m - 1].h.blocks++;
		} else {
			k[m++] = k[i];
		}
	}
	vc_sort(k, m, sizeof(*k), by_bytes);
	for (size_t i = MAX_HOLDERS; i < m; i++) {
		k[MAX_HOLDERS - 1].h.bytes += k[i].h.bytes;
		k[MAX_HOLDERS - 1].h.blocks += k[i].h.blocks;
	}
	for (*n = 0; *n < m && *n < MAX_HOLDERS; (*n)++)
		h[*n] = k[*n].h;
	if (m > MAX_HOLDERS)
		h[MAX_HOLDERS - 1] = (struct vc_holder){ .held = VC_HELD_OTHERS,
			.bytes = h[MAX_HOLDERS - 1].bytes, .blocks = h[MAX_HOLDERS - 1].blocks };
	free(k);
	*holders = h;
	return VC_OK;
}

const char *vc_holder_text(const struct vc_meta *m, const struct vc_holder *h, char *buf, size_t n)
{
	static const char *const words[] = { [VC_HELD_BEFORE] = "there at the start",
					    [VC_HELD_NOWHERE] = "no call site recorded",
					    [VC_HELD_OTHERS] = "others" };

	if (h->site)
		vc_site_text(m, h->site, buf, n);
	else
		snprintf(buf, n, "%s", h->label ? vc_label_text(m, h->label) : words[h->held]);
	return buf;
}

void vc_result_emit_interval(struct vc_emit *e, bool there, uint64_t low, uint64_t high)
{
	if (!there) {
		vc_emit_null(e, "interval", NULL);
		return;
	}
	vc_emit_array(e, "interval", NULL);
	vc_emit_uint(e, NULL, NULL, low);
	vc_emit_uint(e, NULL, NULL, high);
	vc_emit_end(e);
}

void vc_result_emit_answer(struct vc_emit *e, const struct vc_result *r)
{
	static const char *const assumed[] = { NULL, "low", "best", "high" };
	const struct vc_trust *a = &r->trust;

	vc_result_emit_interval(e, r->has_interval, r->low, r->high);
	vc_emit_text(e, "level", NULL, vc_level_name(a->level));
	vc_emit_bool(e, "checked", NULL, a->checked);
	vc_emit_bool(e, "reproduced", NULL, a->reproduced);
	vc_emit_text(e, "cannot_tell", NULL, a->cannot[0] ? a->cannot : NULL);
	vc_emit_text(e, "verdict_low", NULL, vc_verdict_name(a->low));
	vc_emit_text(e, "verdict_high", NULL, vc_verdict_name(a->high));
	vc_emit_text(e, "assumed", NULL, assumed[a->assumed]);
}

void vc_result_emit_unused(struct vc_emit *e, const struct vc_fragmentation *f)
{
	vc_emit_object(e, "unused_at_peak", NULL);
	vc_emit_bytes(e, "rounding", NULL, f->rounding);
	vc_emit_bytes(e, "remainders", NULL, f->remainders);
	vc_emit_bytes(e, "pinned", NULL, f->pinned);
	vc_emit_bytes(e, "whole_free", NULL, f->whole_free);
	vc_emit_bytes(e, "other_streams", NULL, f->other_streams);
	vc_emit_bytes(e, "private_pools", NULL, f->private_pools);
	vc_emit_end(e);
}

void vc_result_emit_oom(struct vc_emit *e, const struct vc_result *r)
{
	const struct vc_oom_report *o = &r->oom;
	char place[512];

	if (!o->happened) {
		vc_emit_null(e, "oom", NULL);
		return;
	}
	vc_emit_object(e, "oom", NULL);
	vc_emit_uint(e, "event", NULL, o->event);
	vc_emit_uint(e, "steps_before", NULL, o->steps);
	vc_emit_uint(e, "time_ns", NULL, o->time_ns);
	vc_emit_bytes(e, "request", NULL, o->request);
	vc_emit_bytes(e, "rounded", NULL, o->rounded);
	vc_emit_bytes(e, "alloc_size", NULL, o->alloc_size);
	vc_emit_bytes(e, "largest_free", NULL, o->largest_free);
	vc_emit_bytes(e, "free_in_cache", NULL, o->free_in_cache);
	vc_emit_bytes(e, "device_free", NULL, o->device_free);
	vc_emit_text(e, "message", NULL, o->message);
	vc_emit_array(e, "holders", NULL);
	for (size_t i = 0; i < o->holders; i++) {
		const struct vc_holder *h = &o->holder[i];

		vc_emit_object(e, NULL, NULL);
		vc_emit_text(e, "site", NULL, vc_holder_text(r->meta, h, place, sizeof(place)));
		vc_emit_bytes(e, "bytes", NULL, h->bytes);
		vc_emit_uint(e, "blocks", NULL, h->blocks);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	vc_emit_end(e);
}

void vc_result_emit_moment(struct vc_emit *e, const struct vc_result *r)
{
	const struct vc_moment *m = &r->moment;

	if (!m->looked)
		return;
	vc_emit_object(e, "moment", NULL);
	vc_emit_text(e, "what", NULL, m->at_oom ? "oom" : "peak");
	vc_emit_uint(e, "event", NULL, m->event);
	vc_emit_uint(e, "steps", NULL, m->steps);
	if (r->stats.has_times)
		vc_emit_uint(e, "elapsed_ns", NULL, m->elapsed_ns);
	else
		vc_emit_null(e, "elapsed_ns", NULL);
	vc_emit_bytes(e, "allocated", NULL, m->allocated);
	vc_emit_bytes(e, "reserved", NULL, m->reserved);
	vc_emit_bytes(e, "cached", NULL, m->cached);
	if (m->splits)
		vc_emit_bytes(e, "stranded", NULL, m->stranded);
	else
		vc_emit_null(e, "stranded", NULL);
	if (m->at_oom) {
		vc_emit_bytes(e, "request", NULL, m->request);
		vc_emit_bytes(e, "device_free", NULL, m->free);
	}
	vc_emit_text(e, "held_most_by", NULL, m->who);
	vc_emit_bytes(e, "held_most", NULL, m->bytes);
	vc_emit_end(e);
}

void vc_result_emit_peaks(struct vc_emit *e, const struct vc_result *r)
{
	const struct vc_stats *t = &r->stats;

	vc_emit_text(e, "verdict", "verdict", vc_verdict_name(vc_result_verdict(r)));
	vc_emit_bytes(e, "peak_requested", NULL, t->peak_requested);
	vc_emit_bytes(e, "peak_allocated", "peak allocated", t->peak_allocated);
	vc_emit_bytes(e, "peak_active", NULL, t->peak_active);
	vc_emit_bytes(e, "peak_reserved", "peak reserved", t->peak_reserved);
	vc_emit_bytes(e, "peak_used", "peak used", t->peak_used);
}

void vc_result_emit_counts(struct vc_emit *e, const struct vc_result *r)
{
	const struct vc_stats *t = &r->stats;

	vc_emit_bytes(e, "final_reserved", NULL, t->final_reserved);
	vc_emit_uint(e, "segments_peak", "segments", t->segments_peak);
	vc_emit_uint(e, "segment_allocs", NULL, t->segment_allocs);
	vc_emit_uint(e, "segment_frees", NULL, t->segment_frees);
	vc_emit_uint(e, "flushes", "flushes", t->flushes);
	vc_emit_uint(e, "ooms", "ooms", t->ooms);
	vc_emit_uint(e, "ooms_averted", NULL, t->ooms_averted);
	vc_emit_bool(e, "cut_short", NULL, t->cut_short);
	vc_emit_uint(e, "peak_event", NULL, t->peak_event);
	vc_emit_bytes(e, "stranded_at_peak", "unused at peak", t->stranded_at_peak);
	vc_emit_bytes(e, "lower_bound", NULL, t->lower_bound);
}
