/* SPDX-License-Identifier: Apache-2.0 */
/* words.c - what a picture says in words: titles, settings, verdicts. */
#include <stdarg.h>

#include "common/event.h"
#include "visualize/scene.h"

static void append(char *buf, size_t cap, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void append(char *buf, size_t cap, const char *fmt, ...)
{
	size_t n = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	if (n < cap)
		vsnprintf(buf + n, cap - n, fmt, ap);
	va_end(ap);
}

/* The file's name without its folders: pictures are shared, paths are nobody's business. */
void vc_trace_name(const struct vc_result *r, char *buf, size_t cap)
{
	const char *path = r->info.trace            ? r->info.trace :
			   r->meta && r->meta->path ? r->meta->path :
						      "trace";
	const char *slash = strrchr(path, '/');

	snprintf(buf, cap, "%s", slash && slash[1] ? slash + 1 : path);
}

void vc_place_text(const struct vc_result *r, char *buf, size_t cap)
{
	char name[160], run[512];

	vc_trace_name(r, name, sizeof(name));
	vc_run_text(r, run, sizeof(run));
	snprintf(buf, cap, "%s, GPU %u \xC2\xB7 %s", name, (unsigned)r->info.device, run);
}

void vc_run_text(const struct vc_result *r, char *buf, size_t cap)
{
	char tmp[VC_FORMAT];
	const struct vc_run_info *i = &r->info;

	snprintf(buf, cap, "simulated%s%s%s: ", r->trust.level ? " (" : "",
		 r->trust.level ? vc_level_name(r->trust.level) : "", r->trust.level ? ")" : "");
	if (i->owner && i->torch)
		append(buf, cap, "%s %s allocator", i->owner, i->torch);
	else
		append(buf, cap, "model %s", i->model ? i->model : "unknown");
	append(buf, cap, ", %s", i->conf && *i->conf ? i->conf : "default settings");
	append(buf, cap, ", %s", i->change && *i->change ? i->change : "workload as recorded");
	if (i->gpu)
		append(buf, cap, ", on %s", i->gpu);
	if (i->capacity)
		append(buf, cap, " with %s", vc_format_bytes(i->capacity, tmp));
	if (i->warm)
		append(buf, cap, ", from the heap at the first event");
	else if (i->rebuilt)
		append(buf, cap, ", blocks of the first event's heap asked for anew");
}

void vc_conf_text(const struct vc_result *r, char *buf, size_t cap)
{
	const char *conf = r->info.conf;

	if (r->info.model && !r->info.torch)
		snprintf(buf, cap, "model %s", r->info.model);
	else
		snprintf(buf, cap, "PYTORCH_CUDA_ALLOC_CONF=%s",
			 conf && *conf ? conf : "(default)");
}

void vc_trust_text(const struct vc_result *r, char *buf, size_t cap)
{
	static const char *const words[] = {
		[VC_LEVEL_NONE] = "",
		[VC_EXACT] = "exact: the model reproduces the recording, and no request of it was "
			     "changed",
		[VC_RERUN] = "rerun: the program was run at this value without a card",
		[VC_ALLOCATOR_ONLY] = "allocator only: the requests are those of the recording, "
				      "which another version or framework would make differently",
		[VC_EXTRAPOLATED] = "extrapolated from recordings at other values",
		[VC_BOUNDS] = "bounds: what was changed was not recorded",
		[VC_UNVERIFIED] = "unverified: the recording was not checked, or not reproduced",
		[VC_UNKNOWN] = "unknown: how far off the change may be was never measured" };

	snprintf(buf, cap, "%s", words[r->trust.level]);
}

/* "the run fits", "the run may fit: ..." */
static const char *predicate(const struct vc_result *r)
{
	if (vc_result_verdict(r) != VC_UNDECIDED || r->trust.endless)
		return vc_verdict_word(r, NULL);
	return r->trust.high == VC_FLUSHES ? "may fit only by flushing the cache" :
					     "may fit or run out of memory";
}

void vc_verdict_text(const struct vc_result *r, char *buf, size_t cap)
{
	char a[VC_FORMAT], b[VC_FORMAT], c[VC_FORMAT];

	vc_format_bytes(r->stats.peak_reserved, a);
	if (r->info.capacity || r->info.has_limit || vc_result_verdict(r) != VC_FITS)
		snprintf(buf, cap, "The run %s: peak reserved %s", predicate(r), a);
	else
		snprintf(buf, cap, "The run needs %s reserved (no card given)", a);
	if (r->has_interval)
		append(buf, cap, " (between %s and %s)", vc_format_bytes(r->low, a),
		       vc_format_bytes(r->high, b));
	append(buf, cap, ", peak allocated %s", vc_format_bytes(r->stats.peak_allocated, b));
	if (r->info.capacity)
		append(buf, cap, ", capacity %s", vc_format_bytes(r->info.capacity, c));
	if (r->oom.happened)
		append(buf, cap, "; a request of %s failed at event %llu",
		       vc_format_bytes(r->oom.request, a), (unsigned long long)r->oom.event);
	append(buf, cap, ".");
}

/* ---- the answer ---- */

/* The phase that an event lies in: as the program marks it, else as it was found. "" unknown. */
static const char *phase_at(const struct vc_result *r, uint64_t event)
{
	const struct vc_steps *t = &r->steps;
	const char *name = "";
	size_t depth = 0;

	for (size_t i = 0; i < t->phases && t->phase[i].event <= event; i++)
		name = t->phase[i].end_event > event ? t->phase[i].name : "";
	for (size_t i = 0; i < t->marks && t->mark[i].event <= event && !t->phases; i++) {
		if (t->mark[i].kind == VC_MARK_BEGIN && !depth++)
			name = vc_label_text(r->meta, t->mark[i].label);
		else if (t->mark[i].kind == VC_MARK_END && depth && !--depth)
			name = "";
	}
	return name;
}

void vc_phase_text(const struct vc_result *r, uint64_t event, char *buf, size_t cap)
{
	const char *name = phase_at(r, event);

	*buf = '\0';
	if (!strcmp(name, "forward") || !strcmp(name, "backward"))
		append(buf, cap, " in the %s pass", name);
	else if (!strcmp(name, "optimizer"))
		append(buf, cap, " in the optimizer step");
	else if (*name)
		append(buf, cap, " in %.60s", name);
}

static uint64_t live_of(const struct vc_heap_map *h)
{
	uint64_t live = 0;

	for (size_t i = 0; i < h->n; i++)
		live += h->at[i].what == 1 || h->at[i].what == 2 ? h->at[i].size : 0;
	return live;
}

static void failure_text(const struct vc_result *r, bool by_time, char *buf, size_t cap)
{
	char a[2 * VC_FORMAT];
	uint64_t live = r->last.n ? live_of(&r->last) : r->stats.peak_allocated;

	snprintf(buf, cap, "Runs out of memory at %s", vc_moment_text(r, by_time, r->oom.event, a));
	vc_phase_text(r, r->oom.event, a, sizeof(a));
	append(buf, cap, "%s", a);
	if (r->info.capacity)
		append(buf, cap, ": %s in use", vc_format_of(live, r->info.capacity, a));
	else
		append(buf, cap, ": %s in use", vc_format_bytes(live, a));
	append(buf, cap, ", %s asked for", vc_format_bytes(r->oom.request, a));
}

/* What it takes of the card, with the band of an estimate. */
static void append_need(const struct vc_result *r, char *buf, size_t cap)
{
	char a[2 * VC_FORMAT];

	if (r->trust.endless)
		append(buf, cap, "at least %s", vc_format_of(r->stats.peak_used, r->info.capacity,
							     a));
	else if (r->has_interval)
		append(buf, cap, "%s", vc_format_band(r->trust.used_low, r->trust.used_high, a));
	else
		append(buf, cap, "%s", vc_format_of(r->stats.peak_used, r->info.capacity, a));
	if (r->has_interval && !r->trust.endless)
		append(buf, cap, " of %s", vc_format_bytes(r->info.capacity, a));
}

static void verdict_title(const struct vc_result *r, char *buf, size_t cap)
{
	enum vc_verdict v = vc_result_verdict(r);
	char a[VC_FORMAT];

	if (v == VC_UNDECIDED)
		snprintf(buf, cap, "May fit or run out of memory: ");
	else if (v == VC_OOM)
		snprintf(buf, cap, "Runs out of memory: needs ");
	else if (v == VC_FLUSHES)
		snprintf(buf, cap, "Fits only by emptying the cache %s time%s: ",
			 vc_format_count(r->stats.flushes, a), r->stats.flushes == 1 ? "" : "s");
	else
		snprintf(buf, cap, "%s: ", r->stats.cut_short ? "Fits as far as recorded" : "Fits");
	append_need(r, buf, cap);
	append(buf, cap, v == VC_OOM ? "" : " used");
}

void vc_answer_text(const struct vc_result *r, bool by_time, char *buf, size_t cap)
{
	char a[2 * VC_FORMAT];

	if (!r->stats.allocs && !r->stats.peak_reserved) {
		snprintf(buf, cap, "Nothing was asked for");
	} else if (r->oom.happened && vc_result_verdict(r) == VC_OOM) {
		failure_text(r, by_time, buf, cap);
	} else if (r->info.capacity) {
		verdict_title(r, buf, cap);
	} else {
		snprintf(buf, cap, "%s %s", r->stats.allocs ? "Needs" : "Holds",
			 r->has_interval ? vc_format_band(r->low, r->high, a) :
					   vc_format_bytes(r->stats.peak_reserved, a));
		if (r->has_interval)
			append(buf, cap, ", most likely %s",
			       vc_format_bytes(r->stats.peak_reserved, a));
	}
}
