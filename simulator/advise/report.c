/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - see report.h */
#include "simulator/advise/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "simulator/session/bounds.h"
#include "common/site.h"
#include "simulator/advise/pins.h"
#include "simulator/time/time.h"
#include "simulator/session/whatif.h"

static const char *start_name(const struct vc_run_info *i)
{
	return i->warm ? "warm" : i->rebuilt ? "rebuild" : "cold";
}

const char *vc_report_words(const struct vc_session *s)
{
	if (s->whatif)
		return s->whatif->trust;
	return vc_bounds_wanted(s->opt) ?
		       "what -x changes was not recorded: the interval is what it leaves open "
		       "and what it was found to be off by" :
		       NULL;
}

const char *vc_report_narrow(const struct vc_session *s)
{
	const char *level = vc_whatif_level(s);

	if (!strcmp(level, "extrapolated"))
		return vc_bounds_wanted(s->opt) ? "a recording of the change that -x stands for" :
		       "a recording at a value nearer to the one asked for";
	if (!strcmp(level, "bounds"))
		return s->whatif && s->whatif->report.single ?
			       "a second short recording at another value" :
			       "a recording of the change that -x stands for";
	return NULL;
}

void vc_report_trust(struct vc_emit *e, const struct vc_session *s)
{
	vc_emit_object(e, "trust", NULL);
	vc_emit_text(e, "level", NULL, vc_whatif_level(s));
	vc_emit_real(e, "matched", NULL, s->matched);
	vc_emit_uint(e, "recordings", NULL, s->whatif ? s->whatif->recordings : 1);
	vc_emit_text(e, "text", NULL, vc_report_words(s));
	vc_emit_text(e, "narrow", NULL, vc_report_narrow(s));
	vc_emit_end(e);
}

void vc_report_trace(struct vc_emit *e, const struct vc_session *s)
{
	const struct vc_device_census *d = s->device;
	const char *conf = s->meta->conf;

	vc_emit_object(e, "trace", NULL);
	vc_emit_text(e, "file", NULL, s->path);
	vc_emit_text(e, "source", NULL, s->source);
	vc_emit_uint(e, "device", NULL, d->device);
	vc_emit_uint(e, "events", NULL, d->events);
	vc_emit_uint(e, "allocs", NULL, d->allocs);
	vc_emit_uint(e, "frees", NULL, d->frees);
	vc_emit_text(e, "start", NULL, d->has_start ? "warm" : "cold");
	vc_emit_uint(e, "preexisting", NULL, d->preexisting);
	vc_emit_bool(e, "ends_in_oom", NULL, d->ends_in_oom);
	vc_emit_object(e, "params", NULL);
	for (size_t i = 0; i < s->meta->params; i++)
		vc_emit_real(e, s->meta->param[i].name, NULL, s->meta->param[i].value);
	vc_emit_end(e);
	vc_emit_text(e, "torch", NULL, s->torch[0] ? s->torch : NULL);
	vc_emit_text(e, "torch_from", NULL, s->torch_from);
	vc_emit_text(e, "conf", NULL, conf ? conf : "");
	vc_emit_uint(e, "time_ns", NULL, s->census.last_ns);
	vc_report_trust(e, s);
	vc_emit_end(e);
}

void vc_report_fidelity(struct vc_emit *e, const struct vc_session *s)
{
	const struct vc_fidelity *f = &s->fidelity;

	vc_emit_object(e, "fidelity", NULL);
	vc_emit_bool(e, "checked", NULL, f->checked);
	vc_emit_bool(e, "exact", NULL, f->exact);
	vc_emit_uint(e, "events_compared", NULL, f->events_compared);
	vc_emit_uint(e, "segments_recorded", NULL, f->segments_recorded);
	vc_emit_uint(e, "segments_simulated", NULL, f->segments_simulated);
	vc_emit_uint(e, "address_mismatches", NULL, f->address_mismatches);
	vc_emit_uint(e, "final_mismatches", NULL, f->final_mismatches);
	if (f->diverged) {
		vc_emit_object(e, "first_divergence", NULL);
		if (f->diverged_event == UINT64_MAX)
			vc_emit_null(e, "event", NULL);
		else
			vc_emit_uint(e, "event", NULL, f->diverged_event);
		vc_emit_text(e, "why", NULL, f->diverged_why);
		vc_emit_end(e);
	} else {
		vc_emit_null(e, "first_divergence", NULL);
	}
	vc_emit_end(e);
}

const char *vc_report_verdict(const struct vc_plan *p, const struct vc_result *r, char *buf,
			      size_t n)
{
	uint64_t used = r->stats.peak_used;
	const char *far = r->stats.cut_short ? " as far as it was recorded" : "";
	char a[32], b[32], steps[40] = "";
	double share = p->capacity ? 100.0 * (double)used / (double)p->capacity : 0;

	if (!r->stats.allocs && vc_result_verdict(r) == VC_FITS) {
		snprintf(buf, n, "%s of live blocks at one moment: no request was recorded, so "
			 "what the run needs is not known", vc_bytes_text(used, a));
		return buf;
	}
	switch (vc_result_verdict(r)) {
	case VC_OOM:
		if (r->info.rebuilt && !r->oom.event) {
			snprintf(buf, n,
				 "out of memory: what was there before the first event does not "
				 "fit");
			break;
		}
		if (r->oom.steps)
			snprintf(steps, sizeof(steps), "after %" PRIu64 " step%s, ", r->oom.steps,
				 r->oom.steps == 1 ? "" : "s");
		snprintf(buf, n, "runs out of memory %sat event %" PRIu64
			 ": %s asked for, %s free on the device",
			 steps, r->oom.event, vc_bytes_text(r->oom.request, a),
			 vc_bytes_text(r->oom.device_free, b));
		break;
	case VC_FLUSHES:
		snprintf(buf, n, "fits%s only by emptying the cache %" PRIu64
			 " time%s: slow, and one larger request away from running out",
			 far, r->stats.flushes, r->stats.flushes == 1 ? "" : "s");
		break;
	case VC_FITS:
		if (p->capacity)
			snprintf(buf, n, "fits%s: %s of %s used at the peak (%.1f %%)", far,
				 vc_bytes_text(used, a), vc_bytes_text(p->capacity, b), share);
		else
			snprintf(buf, n,
				 "needs %s%s at the peak (no card given: memory without limit)",
				 vc_bytes_text(used, a), far);
		break;
	}
	return buf;
}

struct line { const char *key, *label; uint64_t bytes; bool shown; };

void vc_report_ledger(struct vc_emit *e, const struct vc_plan *p, const struct vc_result *r,
		      bool people)
{
	const struct vc_stats *t = &r->stats;
	uint64_t used = t->peak_used, cap = p->capacity;
	const struct line line[] = {
		{ "allocated", "    tensors (allocated)", t->allocated_at_used, true },
		{ "cached", "    cached, not in use", t->reserved_at_used - t->allocated_at_used,
		 true },
		{ "reserved", "  = reserved by PyTorch", t->reserved_at_used, true },
		{ "context", "  + CUDA context", p->context - p->libraries, true },
		{ "libraries", "  + libraries", p->libraries, p->libraries > 0 },
		{ "others", "  + other processes", t->others_at_used, t->others_at_used > 0 },
		{ "used", "  = used on the device", used, true },
		{ "free", "    free", used < cap ? cap - used : 0, cap > 0 },
		{ "over", "    more than there is", cap && used > cap ? used - cap : 0,
		 cap && used > cap },
	};

	vc_emit_object(e, "ledger", people ? "  at the peak" : NULL);
	for (size_t i = 0; i < sizeof(line) / sizeof(*line); i++)
		vc_emit_bytes(e, line[i].key, people && line[i].shown ? line[i].label : NULL,
			      line[i].bytes);
	vc_emit_end(e);
}

static void report_plan(struct vc_emit *e, const struct vc_plan *p, const struct vc_result *r)
{
	vc_emit_text(e, "model", "model", p->model->name);
	vc_emit_text(e, "params", p->params[0] ? "parameters" : NULL, p->params);
	vc_emit_text(e, "torch", "torch", p->torch[0] ? p->torch : NULL);
	vc_emit_text(e, "conf", "settings", p->conf[0] || !p->model->versions ? p->conf : "");
	vc_emit_text(e, "gpu", "card", p->card ? p->card->name : NULL);
	if (p->capacity)
		vc_emit_bytes(e, "capacity", "capacity", p->capacity);
	else
		vc_emit_null(e, "capacity", NULL);
	if (r->info.has_limit)
		vc_emit_bytes(e, "limit", "limit", r->info.limit);
	else
		vc_emit_null(e, "limit", NULL);
	vc_emit_text(e, "start", "start", start_name(&r->info));
}

void vc_report_run(struct vc_emit *e, const struct vc_session *s, const struct vc_plan *p,
		   const struct vc_result *r)
{
	(void)s;
	report_plan(e, p, r);
	vc_result_emit_peaks(e, r);
	vc_report_ledger(e, p, r, false);
	vc_result_emit_counts(e, r);
	if (r->peak.n) { /* the heap at the peak was looked at */
		vc_result_emit_unused(e, &r->fragmentation);
		vc_pins_report(e, r->meta, &r->peak, NULL);
	}
	vc_result_emit_interval(e, r->has_interval, r->low, r->high);
	vc_result_emit_oom(e, r);
	vc_time_report(e, r);
}
