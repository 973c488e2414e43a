/* SPDX-License-Identifier: Apache-2.0 */
/* sim_words.c - see sim_words.h */
#include "commands/sim_words.h"

#include "simulator/findings/findings.h"
#include "simulator/time/time.h"
#include "visualize/spark.h"

const char *vc_sim_trust_line(const struct vc_session *s, char *buf, size_t n)
{
	const struct vc_fidelity *f = &s->rec->fidelity;

	if (!s->rec->device->allocs && !s->rec->device->frees)
		snprintf(buf, n, "the trace holds the heap at one moment and no events: only its "
			 "live blocks are asked for");
	else if (!f->checked && !s->opt->verify)
		snprintf(buf, n, "not checked against the recording (--no-verify)");
	else if (!f->checked)
		snprintf(buf, n, "not checked against the recording, which has no addresses: not "
			 "verified");
	else if (f->exact && vc_recording_is_host(s->rec))
		snprintf(buf, n, "a recording of host memory: PyTorch's CPU allocator asks the C "
			 "library for every tensor, and could have made it (%" PRIu64 " events)",
			 f->events_compared);
	else if (f->exact)
		snprintf(buf, n, "the model reproduces this recording exactly (%" PRIu64
			 " events, %" PRIu64 " segments)",
			 f->events_compared, f->segments_recorded);
	else
		snprintf(buf, n, "the model does NOT reproduce this recording: %s",
			 f->diverged_why ? f->diverged_why : "it differs");
	return buf;
}

/* What the transforms have to say about their work: as much of it as the recording is long is done
 * once more for that. */
void vc_sim_say_transforms(struct vc_emit *e, const struct vc_session *s)
{
	struct vc_event ev[256];
	struct vc_error ignored;
	struct vc_source *src = s->opt->transform.n ? vc_session_source(s, &ignored) : NULL;

	for (size_t had = 0; src && had <= s->rec->trace.n; had += 256)
		if (src->type->next(src, ev, 256, &ignored) <= 0)
			break;
	for (size_t i = s->rec->meta->notes; src && i < src->meta->notes; i++)
		vc_emit_text(e, NULL, "note", src->meta->note[i]);
	vc_source_free(src);
}

/* The last recorded out-of-memory, by the number it has in a run: what was inferred and the marks
 * count, which the census does not know. */
static uint64_t oom_number(const struct vc_recording *rec)
{
	uint64_t index = 0, found = rec->device->oom_event;

	for (size_t i = 0; i < rec->trace.n; i++) {
		const struct vc_event *e = &rec->trace.ev[i];

		if (e->kind >= VC_EV_HEAP_SEGMENT ||
		    (e->device != rec->device->device && e->kind != VC_EV_MARK))
			continue;
		if (e->kind == VC_EV_OOM)
			found = index;
		index++;
	}
	return found;
}

/* What the recording says of its own end: the person who ran it wants to meet it again. */
void vc_sim_say_recorded_oom(struct vc_emit *e, const struct vc_recording *rec, bool predicted)
{
	const struct vc_device_census *d = rec->device;
	const struct vc_device_info *on = vc_meta_device_known(rec->meta, d->device);
	char line[512], asked[32], left[32], total[32];
	int n;

	if (!d->ooms)
		return;
	n = snprintf(line, sizeof(line),
		     "the recorded run itself ran out of memory%s: event %" PRIu64
		     " asked for %s with %s free",
		     d->ooms > 1 ? " (several times; the last)" : "", oom_number(rec),
		     vc_bytes_text(d->oom_request, asked), vc_bytes_text(d->oom_free, left));
	if (on && on->total)
		n += snprintf(line + n, sizeof(line) - (size_t)n, " of %s",
			      vc_bytes_text(on->total, total));
	if (on && on->name)
		n += snprintf(line + n, sizeof(line) - (size_t)n, " on %s", on->name);
	if (predicted)
		snprintf(line + n, sizeof(line) - (size_t)n, "; the prediction knows nothing of "
			 "what would have come after it: record a value that fits");
	vc_emit_text(e, NULL, "note", line);
}

const char *vc_sim_why_device(const struct vc_session *s)
{
	if (s->rec->census.devices < 2)
		return "";
	if (s->opt->device != VC_NOT_GIVEN || s->opt->rank != VC_NOT_GIVEN)
		return ", as asked for";
	return s->rec->device->ooms ? ", which ran out of memory" : ", the fullest of several";
}

void vc_sim_say_oom(struct vc_emit *e, const struct vc_result *r)
{
	const struct vc_oom_report *o = &r->oom;
	char cause[VC_SAY];

	vc_cause_text(r, VC_TERMINAL, cause, sizeof(cause));
	vc_emit_object(e, NULL, "  when it ran out");
	vc_emit_bytes(e, NULL, "    asked for", o->request);
	vc_emit_bytes(e, NULL, "    largest free block", o->largest_free);
	vc_emit_bytes(e, NULL, "    free in the cache", o->free_in_cache);
	vc_emit_bytes(e, NULL, "    free on the device", o->device_free);
	vc_emit_text(e, NULL, *cause ? "    cause" : NULL, cause);
	vc_emit_end(e);
	if (o->message && *o->message)
		vc_emit_line(e, "\n%s would say:\n  %s", r->info.owner, o->message);
}

void vc_sim_say_spark(struct vc_emit *e, const struct vc_result *r)
{
	const char *lang = getenv("LC_ALL");
	char line[3 * 60 + 1];

	lang = lang && *lang ? lang : getenv("LC_CTYPE");
	lang = lang && *lang ? lang : getenv("LANG");
	bool utf8 = lang && (strstr(lang, "UTF-8") || strstr(lang, "utf8"));
	if (*vc_spark(r, 60, !utf8, line))
		vc_emit_line(e, "  reserved over the run  %s", line);
}

/* A profile has no segments to check the replay by, but counters that it may contradict: segments
 * that were there before it, streams, and what other threads allocated are not in it. */
void vc_sim_say_counters(struct vc_emit *e, const struct vc_session *s, const struct vc_result *r)
{
	const struct vc_device_info *on =
		vc_meta_device_known(s->rec->meta, s->rec->device->device);
	char own[2][32], ours[2][32];

	if (!on || !on->reserved || s->change[0] || s->opt->transform.n)
		return;
	bool less = r->stats.peak_reserved * 100 < on->reserved * 95 ||
		    r->stats.peak_allocated * 100 < on->allocated * 95;
	bool more = r->stats.peak_allocated * 95 > on->allocated * 100 ||
		    r->stats.peak_reserved * 95 > on->reserved * 100;

	vc_emit_line(e,
		     "  the recording's own counters say %s reserved and %s allocated at most; "
		     "the replay has %s and %s: %s",
		     vc_bytes_text(on->reserved, own[0]), vc_bytes_text(on->allocated, own[1]),
		     vc_bytes_text(r->stats.peak_reserved, ours[0]),
		     vc_bytes_text(r->stats.peak_allocated, ours[1]),
		     less ? "they contradict it, the real run needs at least what they say" :
		     more ? "they contradict it" : "within 5 %, which is not a proof");
}

void vc_sim_emit_advice(struct vc_emit *e, const struct vc_advice *a)
{
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "kind", NULL, a->kind);
	vc_emit_text(e, "text", NULL, a->text);
	vc_emit_text(e, "how", NULL, a->how[0] ? a->how : NULL);
	vc_emit_text(e, "paste", NULL, a->paste[0] ? a->paste : NULL);
	vc_emit_bytes(e, "peak_reserved", NULL, a->peak_reserved);
	vc_emit_text(e, "verdict", NULL, vc_verdict_name(a->verdict));
	vc_emit_bool(e, "estimate", NULL, a->estimate);
	vc_emit_real(vc_emit_known(e, a->times > 0), "time_factor", NULL, a->times);
	vc_result_emit_interval(e, a->has_interval, a->low, a->high);
	if (a->at_least) {
		vc_emit_uint(e, "at_least", NULL, a->at_least);
		vc_emit_uint(e, "at_most", NULL, a->at_most);
	}
	vc_emit_end(e);
}
