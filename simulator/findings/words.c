/* SPDX-License-Identifier: Apache-2.0 */
/* words.c - see findings.h. Pages have three digits and one unit, terminals hundredths. */
#include <stdarg.h>

#include "common/emit.h"
#include "common/format.h"
#include "common/site.h"
#include "simulator/findings/findings.h"

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

/* ---- the moment ---- */

/* Live at the moment, with what is freed and waits for a stream: reserved less cached. */
static uint64_t in_use(const struct vc_result *r)
{
	return r->moment.looked ? r->moment.reserved - r->moment.cached : r->stats.peak_allocated;
}

static void phase_text(const struct vc_findings *f, char *buf, size_t cap)
{
	*buf = '\0';
	if (!strcmp(f->phase, "forward") || !strcmp(f->phase, "backward"))
		append(buf, cap, "in the %s pass", f->phase);
	else if (!strcmp(f->phase, "optimizer"))
		append(buf, cap, "in the optimizer%s", f->stepped ? "" : " step");
	else if (*f->phase)
		append(buf, cap, "in %.60s", f->phase);
	if (f->stepped)
		append(buf, cap, "%s step %llu", *buf ? " of" : "in", (unsigned long long)f->step);
}

static char *moment_text(const struct vc_result *r, bool by_time, char *buf)
{
	char n[VC_FORMAT];

	if (by_time)
		return vc_format_ns(r->moment.elapsed_ns, buf);
	snprintf(buf, VC_FORMAT, "event %s", vc_format_count(r->moment.event, n));
	return buf;
}

void vc_when_text(const struct vc_result *r, bool by_time, char *buf, size_t cap)
{
	struct vc_findings f = vc_findings_of(r);
	char a[VC_FORMAT], phase[120];

	phase_text(&f, phase, sizeof(phase));
	snprintf(buf, cap, "%s%s%s", r->stats.events ? moment_text(r, by_time, a) :
						       "the only moment recorded",
		 *phase ? ", " : "", phase);
}

void vc_who_text(const struct vc_result *r, char *buf, size_t cap)
{
	enum { HOLDER = 120 };
	const struct vc_moment *m = &r->moment;
	char a[2 * VC_FORMAT];

	if (m->who)
		snprintf(buf, cap, "%.*s%s, %s", HOLDER, m->who,
			 strlen(m->who) > HOLDER ? "\xE2\x80\xA6" : "",
			 vc_format_of(m->bytes, m->allocated, a));
	else
		snprintf(buf, cap, "nobody: nothing is live");
}

/* All numbers in the unit of what is reserved, as in the rest of a picture. */
void vc_stranded_text(const struct vc_result *r, char *buf, size_t cap)
{
	const struct vc_moment *m = &r->moment;
	char a[VC_FORMAT], b[VC_FORMAT];
	size_t unit;

	vc_format_in(m->stranded, m->reserved, a);
	vc_format_in(m->cached, m->reserved, b);
	unit = strcspn(a, " ");
	if (!m->cached)
		snprintf(buf, cap, "none, nothing is cached");
	else if (!m->splits)
		snprintf(buf, cap, "%s, what of it is stranded is not counted", b);
	else if (!m->stranded)
		snprintf(buf, cap, "none of %s cached", b);
	else
		snprintf(buf, cap, "%.*s of %s cached",
			 (int)(strcmp(a + unit, b + strcspn(b, " ")) ? strlen(a) : unit), a, b);
}

void vc_heap_text(const struct vc_result *r, char *buf, size_t cap)
{
	const struct vc_heap_map *h = vc_result_heap(r);
	uint64_t part[4] = { 0 }, pieces = 0;
	char a[2 * VC_FORMAT], b[VC_FORMAT], c[VC_FORMAT], n[VC_FORMAT];

	for (size_t i = 0; i < h->n; i++) {
		part[h->at[i].what & 3] += h->at[i].size;
		pieces += h->at[i].what == 3;
	}
	vc_format_in(part[3], part[0], b);
	vc_format_count(pieces, n);
	if (h == &r->last)
		snprintf(buf, cap, "%s asked for do not fit: %s are cached in %s piece%s, the "
			 "largest %s", vc_format_in(r->oom.request, part[0], a), b, n,
			 pieces == 1 ? "" : "s",
			 vc_format_in(r->oom.largest_free, part[0], c));
	else
		snprintf(buf, cap, "%s reserved are in use at the peak, %s lie free in %s piece%s",
			 vc_format_of(part[1] + part[2], part[0], a), b, n,
			 pieces == 1 ? "" : "s");
}

/* Where the block that was refused would have been made. */
static void refused_at(const struct vc_result *r, char *buf, size_t cap)
{
	*buf = '\0';
	for (size_t i = 0; r->oom.id && i < r->lives.n; i++)
		if (r->lives.at[i].id == r->oom.id) {
			vc_site_text(r->meta, r->lives.at[i].site, buf, cap);
			return;
		}
}

void vc_failure_text(const struct vc_result *r, bool by_time, char *buf, size_t cap)
{
	char a[VC_FORMAT], b[VC_FORMAT];

	moment_text(r, by_time, a);
	snprintf(buf, cap, by_time ? "out of memory at %s (event %s)" : "out of memory at %s", a,
		 vc_format_count(r->oom.event, b));
}

void vc_refused_text(const struct vc_result *r, char *buf, size_t cap)
{
	const struct vc_oom_report *o = &r->oom;
	uint64_t all = r->moment.reserved;
	char a[VC_FORMAT], b[VC_FORMAT], who[80];

	refused_at(r, who, sizeof(who));
	snprintf(buf, cap, "%s%s%s, %s free on the device", vc_format_in(o->request, all, a),
		 *who ? " in " : "", who, vc_format_in(o->device_free, all, b));
}

/* ---- why, and what would help ---- */

/* In the unit of `all` on a page. */
static char *amount(uint64_t bytes, uint64_t all, enum vc_units u, char *buf)
{
	if (u == VC_TERMINAL)
		vc_bytes_text(bytes, buf);
	else if (all)
		vc_format_in(bytes, all, buf);
	else
		vc_format_bytes(bytes, buf);
	return buf;
}

void vc_why_text(const struct vc_findings *f, enum vc_units u, char *buf, size_t cap)
{
	uint64_t all = f->floor > f->room ? f->floor : f->room;
	char a[2 * VC_FORMAT], b[VC_FORMAT];

	amount(f->room, all, u, b);
	if (f->cause == VC_CAUSE_DEMAND && f->room)
		snprintf(buf, cap, "demand: %s must be there at once, of %s",
			 amount(f->floor, all, u, a), b);
	else if (f->cause == VC_CAUSE_DEMAND)
		snprintf(buf, cap, "demand: %s are free, in all", amount(f->free, 0, u, a));
	else if (f->cause == VC_CAUSE_IMPOSSIBLE)
		snprintf(buf, cap, "demand: one request of %s, of %s",
			 amount(f->request, all, u, a), b);
	else if (f->cause == VC_CAUSE_LIMIT)
		snprintf(buf, cap, "the limit of this process: %s must be there at once, of %s",
			 amount(f->floor, all, u, a), b);
	else if (f->cause == VC_CAUSE_FRAGMENTATION)
		snprintf(buf, cap, "fragmentation: %s are free, but not in one piece of %s",
			 amount(f->free, f->room, u, a), amount(f->piece, f->room, u, b));
	else if (f->cause == VC_CAUSE_OUTSIDE)
		snprintf(buf, cap, "other processes: they hold %s of %s",
			 amount(f->others, all, u, a), b);
	else if (f->cause == VC_CAUSE_LEAK)
		snprintf(buf, cap, "a leak: each step keeps %s", amount(f->leak, 0, u, a));
	else
		snprintf(buf, cap, "%s", f->cause ? "not known" : "");
}

void vc_cause_text(const struct vc_result *r, enum vc_units u, char *buf, size_t cap)
{
	struct vc_findings f = vc_findings_of(r);

	vc_why_text(&f, u, buf, cap);
}

/* Where a run keeps most of what each step leaves behind. */
static void leak_site(const struct vc_result *r, enum vc_units u, char *buf, size_t cap)
{
	char a[VC_FORMAT];

	if (r->leak.site) {
		append(buf, cap, "at ");
		vc_site_text(r->meta, r->leak.site, buf + strlen(buf), cap - strlen(buf));
	} else {
		append(buf, cap, "in blocks of %s", amount(r->leak.size, 0, u, a));
	}
}

void vc_grows_text(const struct vc_result *r, enum vc_units u, char *buf, size_t cap)
{
	struct vc_findings f = vc_findings_of(r);
	char a[VC_FORMAT], b[VC_FORMAT], n[VC_FORMAT];

	*buf = '\0';
	if (!f.leak)
		return;
	append(buf, cap, "each step keeps %s that is never freed (%s in %s steps), most of it ",
	       amount(f.leak, 0, u, a), amount(r->leak.bytes, 0, u, b),
	       vc_format_count(r->leak.steps, n));
	leak_site(r, u, buf, cap);
	if (f.left == 0)
		append(buf, cap, "; the next step does not fit");
	else if (f.left != UINT64_MAX)
		append(buf, cap, "; the card is full after %s more", vc_format_count(f.left, n));
}

static const char *seconds_text(double s, char *buf, size_t n)
{
	if (s < 120)
		snprintf(buf, n, "%.0f seconds", s);
	else if (s < 7200)
		snprintf(buf, n, "%.0f minutes", s / 60);
	else
		snprintf(buf, n, "%.0f hours", s / 3600);
	return buf;
}

void vc_forecast_text(const struct vc_forecast *f, char *buf, size_t cap)
{
	char a[VC_FORMAT], when[64];

	*buf = '\0';
	if (f->growth <= 0)
		return;
	if (f->left < 0)
		append(buf, cap, "grows by %s a %s", vc_bytes_text((uint64_t)f->growth, a),
		       f->unit);
	else if (f->left < 1)
		append(buf, cap, "the next %s does not fit", f->unit);
	else
		append(buf, cap, "runs out in about %s %ss (in %s)",
		       vc_format_count((uint64_t)f->left, a), f->unit,
		       seconds_text(f->left * f->seconds, when, sizeof(when)));
	if (f->who)
		append(buf, cap, ", because %s keeps %s a %s", f->who,
		       vc_bytes_text((uint64_t)f->who_growth, a), f->unit);
}

void vc_less_text(const struct vc_findings *f, bool whole, enum vc_units u, char *buf, size_t cap)
{
	char a[VC_FORMAT], b[VC_FORMAT];

	amount(f->lacks_low, f->room, u, a);
	amount(f->lacks_high, f->room, u, b);
	if (f->lacks_low < f->lacks_high && f->lacks_low)
		snprintf(buf, cap, "%s to %s less in use", a, b);
	else
		snprintf(buf, cap, "%s%s less in use", f->lacks_low < f->lacks_high ? "up to " :
			 whole ? "" : "at least ", b);
}

static void lack_text(const struct vc_result *r, const struct vc_findings *f, char *buf, size_t cap)
{
	uint64_t unit = f->room;
	char a[VC_FORMAT], b[VC_FORMAT];

	if (f->cause == VC_CAUSE_LEAK) {
		snprintf(buf, cap, "freeing what each step keeps, ");
		leak_site(r, VC_PAGE, buf, cap);
	} else if (f->cause == VC_CAUSE_OUTSIDE) {
		snprintf(buf, cap, "%s that other processes hold",
			 vc_format_in(f->lacks_high ? f->lacks_high : r->moment.request, unit, a));
	} else if (f->lacks_high) {
		vc_less_text(f, r->has_interval || r->need, VC_PAGE, buf, cap);
	} else {
		snprintf(buf, cap, "one piece of %s: %s are free, but in smaller ones",
			 vc_format_in(r->moment.request, unit, a), vc_format_in(f->free, unit, b));
	}
}

/* Of a run that fits, or would on enough. */
static void room_text(const struct vc_result *r, const struct vc_findings *f, char *buf, size_t cap)
{
	uint64_t need = f->high > f->used ? f->high : f->used;
	char a[VC_FORMAT], b[VC_FORMAT];

	if (f->leak) {
		snprintf(buf, cap, "freeing what each step keeps, ");
		leak_site(r, VC_PAGE, buf, cap);
	} else if (f->at_least && r->stats.allocs) {
		snprintf(buf, cap, "a recording that goes on after the failure");
	} else if (f->verdict == VC_FLUSHES) {
		snprintf(buf, cap, "room for its cache, which is emptied %s time%s",
			 vc_format_count(r->stats.flushes, a), r->stats.flushes == 1 ? "" : "s");
	} else if (f->verdict != VC_FITS || !f->card) {
		vc_format_bytes(need, a);
		if (need > f->room && !strcmp(a, vc_format_bytes(f->room, b)))
			snprintf(buf, cap, "%s more than the card has",
				 vc_format_bytes(need - f->room, a));
		else
			snprintf(buf, cap, "a card with %s or more%s", a,
				 r->info.context ? "" : ", and its CUDA context");
	} else {
		uint64_t left = f->room > r->stats.peak_used ? f->room - r->stats.peak_used : 0;

		snprintf(buf, cap, "nothing, %s%s stay free", vc_format_bytes(left, a),
			 r->info.has_limit && f->room != r->info.capacity ? " of its limit" : "");
	}
}

void vc_help_text(const struct vc_result *r, char *buf, size_t cap)
{
	struct vc_findings f = vc_findings_of(r);

	if (f.help != VC_NO_TRY && f.verdict != VC_FITS)
		snprintf(buf, cap, "%.200s (simulated: %s)", r->tries.at[f.help].text,
			 vc_result_verdict(r->tries.at[f.help].run) == VC_FITS ? "fits" :
										 "may fit");
	else if (r->moment.at_oom && f.verdict != VC_FITS)
		lack_text(r, &f, buf, cap);
	else
		room_text(r, &f, buf, cap);
}

void vc_reason_text(const struct vc_result *r, char *buf, size_t cap)
{
	char cause[VC_SAY], help[VC_SAY];

	vc_cause_text(r, VC_PAGE, cause, sizeof(cause));
	vc_help_text(r, help, sizeof(help));
	snprintf(buf, cap, "%s%s%sWould help: %s.", *cause ? "Cause: " : "", cause,
		 *cause ? ". " : "", help);
}

/* How many there are that surely and that perhaps make it fit, and the cheapest of the former. */
void vc_tries_text(const struct vc_result *r, char *buf, size_t cap)
{
	const struct vc_tries *t = &r->tries;
	struct vc_findings f = vc_findings_of(r);
	size_t fit = 0, may = 0;

	for (size_t i = 0; i < t->n; i++) {
		enum vc_verdict v = vc_result_verdict(t->at[i].run);

		fit += v == VC_FITS;
		may += v == VC_UNDECIDED;
	}
	if (fit)
		snprintf(buf, cap, "%zu change%s would make it fit", fit, fit == 1 ? "" : "s");
	else if (may)
		snprintf(buf, cap, "%zu change%s may make it fit", may, may == 1 ? "" : "s");
	else
		snprintf(buf, cap, "No change makes it fit");
	if (fit && may)
		append(buf, cap, ", %zu more may", may);
	if (f.help != VC_NO_TRY)
		append(buf, cap, "; the cheapest: %.140s", t->at[f.help].text);
}

/* ---- the answer ---- */

const char *vc_verdict_word(const struct vc_result *r, const char **color)
{
	static const char *const word[] = { [VC_FITS] = "fits",
					   [VC_FLUSHES] = "fits only by flushing the cache",
					   [VC_UNDECIDED] = "undecided",
					   [VC_OOM] = "runs out of memory" };
	static const char *const name[] = { [VC_FITS] = "ok",
					   [VC_FLUSHES] = "warn",
					   [VC_UNDECIDED] = "open",
					   [VC_OOM] = "bad" };
	enum vc_verdict v = vc_result_verdict(r);
	bool open = v == VC_FITS && !r->info.capacity && !r->info.has_limit;
	bool grows = v == VC_FITS && r->leak.steps;

	if (color)
		*color = grows ? "warn" : open ? "mut" : name[v];
	if (grows)
		return open ? "grows" : "fits, but grows";
	if (open) /* there is nothing that it could fit into */
		return r->stats.allocs ? "no card given" : "one moment, no requests";
	if (v != VC_OOM && !r->stats.allocs && r->stats.cut_short)
		return "one moment, no requests";
	return (v == VC_FITS || v == VC_FLUSHES) && r->stats.cut_short ?
		       "fits as far as recorded" : word[v];
}

static void failure_text(const struct vc_result *r, const struct vc_findings *f, bool by_time,
			 char *buf, size_t cap)
{
	char a[2 * VC_FORMAT], phase[120];

	phase_text(f, phase, sizeof(phase));
	if (r->info.rebuilt && !r->oom.event)
		snprintf(buf, cap, "Runs out of memory before the first event");
	else
		snprintf(buf, cap, "Runs out of memory at %s%s%s", moment_text(r, by_time, a),
			 *phase ? " " : "", phase);
	if (r->info.capacity)
		append(buf, cap, ": %s in use", vc_format_of(in_use(r), r->info.capacity, a));
	else
		append(buf, cap, ": %s in use", vc_format_bytes(in_use(r), a));
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
		append(buf, cap, " of %s", vc_format_in(r->info.capacity, r->info.capacity >
			r->trust.used_high ? r->info.capacity : r->trust.used_high, a));
}

/* "Grows by 0.15 GiB every step: 10.5 of 23.5 GiB used so far, full after 86 more". */
static void growing_text(const struct vc_result *r, const struct vc_findings *f, char *buf,
			 size_t cap)
{
	char a[2 * VC_FORMAT];

	snprintf(buf, cap, "Grows by %s every step: ", vc_format_bytes(f->leak, a));
	if (r->info.capacity)
		append_need(r, buf, cap);
	else
		append(buf, cap, "%s", vc_format_bytes(r->stats.peak_used, a));
	append(buf, cap, " used so far");
	if (f->left == 0)
		append(buf, cap, ", the next step does not fit");
	else if (f->left != UINT64_MAX)
		append(buf, cap, ", full after %s more", vc_format_count(f->left, a));
}

static void fitting_text(const struct vc_result *r, const struct vc_findings *f, char *buf,
			 size_t cap)
{
	enum vc_verdict v = f->verdict;
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
	struct vc_findings f = vc_findings_of(r);
	char a[2 * VC_FORMAT];

	if (!r->stats.allocs && !r->stats.peak_reserved) {
		snprintf(buf, cap, "Nothing was asked for");
	} else if (r->trust.cannot[0]) {
		snprintf(buf, cap, "How much it needs these recordings cannot tell");
	} else if (r->oom.happened && f.verdict == VC_OOM) {
		failure_text(r, &f, by_time, buf, cap);
	} else if (f.leak && f.verdict == VC_FITS) {
		growing_text(r, &f, buf, cap);
	} else if (r->info.capacity) {
		fitting_text(r, &f, buf, cap);
	} else {
		snprintf(buf, cap, "%s %s", r->stats.allocs ? "Needs" : "Holds",
			 r->has_interval ? vc_format_band(r->low, r->high, a) :
					   vc_format_bytes(r->stats.peak_reserved, a));
		if (r->has_interval)
			append(buf, cap, ", most likely %s",
			       vc_format_bytes(r->stats.peak_reserved, a));
	}
}

/* ---- the verdict of a terminal ---- */

static void say_oom(const struct vc_result *r, char *buf, size_t n)
{
	char a[VC_FORMAT], b[32], steps[VC_FORMAT + 20] = "";

	if (r->info.rebuilt && !r->oom.event) {
		snprintf(buf, n, "out of memory: what was there before the first event does not "
			 "fit");
		return;
	}
	if (r->oom.steps)
		snprintf(steps, sizeof(steps), "after %s step%s, ",
			 vc_format_count(r->oom.steps, a), r->oom.steps == 1 ? "" : "s");
	snprintf(buf, n, "runs out of memory %sat event %" PRIu64 ": %s asked for, %s free on the "
		 "device", steps, r->oom.event, vc_bytes_text(r->oom.request, a),
		 vc_bytes_text(r->oom.device_free, b));
}

static void say_replay(const struct vc_result *r, char *buf, size_t n)
{
	uint64_t used = r->stats.peak_used;
	const char *far = r->stats.cut_short ? " as far as it was recorded" : "";
	char a[VC_FORMAT], b[32];
	double share = r->info.capacity ? 100.0 * (double)used / (double)r->info.capacity : 0;

	if (vc_result_replayed(r) == VC_OOM)
		say_oom(r, buf, n);
	else if (!r->stats.allocs)
		snprintf(buf, n, "%s of live blocks at one moment: no request was recorded, so "
			 "what the run needs is not known", vc_bytes_text(used, a));
	else if (vc_result_replayed(r) == VC_FLUSHES)
		snprintf(buf, n, "fits%s only by emptying the cache %s time%s: slow, and one "
			 "larger request away from running out", far,
			 vc_format_count(r->stats.flushes, a), r->stats.flushes == 1 ? "" : "s");
	else if (r->info.capacity)
		snprintf(buf, n, "fits%s: %s of %s used at the peak (%.1f %%)", far,
			 vc_bytes_text(used, a), vc_bytes_text(r->info.capacity, b), share);
	else
		snprintf(buf, n, "needs %s%s at the peak (no card given: memory without limit)",
			 vc_bytes_text(used, a), far);
}

static const char *end_text(enum vc_verdict v)
{
	return v == VC_FITS ? "fits" : v == VC_FLUSHES ? "fits only by emptying the cache" :
						      "runs out of memory";
}

const char *vc_verdict_text(const struct vc_result *r, char *buf, size_t n)
{
	static const char *const by[] = { "", "lower end of the interval", "best estimate",
					 "upper end of the interval" };
	const struct vc_trust *a = &r->trust;
	char line[320], low[32], high[32], all[32];

	say_replay(r, line, sizeof(line));
	if (a->cannot[0])
		snprintf(buf, n, "%s: %s", a->verdict == VC_UNDECIDED ? "undecided" :
			 r->info.capacity ? end_text(a->verdict) : "not known", a->cannot);
	else if (!a->level || a->low == a->high)
		snprintf(buf, n, "%s", line);
	else if (a->assumed)
		snprintf(buf, n, "%s, by the %s (--assume); best estimate: %s",
			 end_text(a->verdict), by[a->assumed], line);
	else if (a->endless)
		snprintf(buf, n, "undecided: %s%s", line,
			 r->stats.allocs ? "; what comes after it is not known" : "");
	else
		snprintf(buf, n, "undecided: %s to %s of %s used, so it may %s; best estimate: %s",
			 vc_bytes_text(a->used_low, low), vc_bytes_text(a->used_high, high),
			 vc_bytes_text(r->info.capacity, all), a->high == VC_OOM ?
			 "run out of memory" : "fit only by emptying the cache", line);
	return buf;
}
