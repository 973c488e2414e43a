/* SPDX-License-Identifier: Apache-2.0 */
/* several.c - what there is to say about runs beside each other; see findings.h. */

#include "common/emit.h"
#include "common/format.h"
#include "simulator/findings/findings.h"

#define ADD(...) used += (size_t)(used < cap ? snprintf(buf + used, cap - used, __VA_ARGS__) : 0)

void vc_brief_text(const struct vc_result *r, bool by_time, char *buf, size_t cap)
{
	uint64_t all = r->info.capacity;
	char a[VC_FORMAT], b[VC_FORMAT];
	const char *word = vc_verdict_word(r, NULL);

	if (vc_result_verdict(r) == VC_UNDECIDED && r->has_interval && all)
		snprintf(buf, cap, "%s, %s to %s", word,
			 vc_format_percent(r->trust.used_low, all, a),
			 vc_format_percent(r->trust.used_high, all, b));
	else if (r->moment.at_oom && by_time)
		snprintf(buf, cap, "out of memory at %s", vc_format_ns(r->moment.elapsed_ns, a));
	else if (vc_result_verdict(r) == VC_OOM || vc_result_replayed(r) == VC_OOM)
		snprintf(buf, cap, "out of memory");
	else if (all)
		snprintf(buf, cap, "%s, peak %s", word,
			 vc_format_percent(r->stats.peak_used, all, a));
	else
		snprintf(buf, cap, "peak %s", vc_format_bytes(r->stats.peak_reserved, a));
}

void vc_best_text(const struct vc_named *of, size_t n, bool by_time, char *buf, size_t cap)
{
	const struct vc_named *best = of;
	size_t fit = 0, cards = 0;
	char a[VC_FORMAT];

	for (size_t i = 0; i < n; i++) {
		enum vc_verdict v = vc_result_verdict(of[i].r), w = vc_result_verdict(best->r);

		fit += v == VC_FITS;
		cards += of[i].r->info.capacity > 0;
		if (v < w || (v == w && of[i].r->stats.peak_used < best->r->stats.peak_used))
			best = &of[i];
	}
	vc_format_bytes(best->r->stats.peak_used, a);
	if (n == 1)
		vc_answer_text(best->r, by_time, buf, cap);
	else if (cards == n && fit == 1)
		snprintf(buf, cap, "Of %zu only %.120s fits: %s used", n, best->name, a);
	else if (cards == n)
		snprintf(buf, cap, "%zu of %zu fit. Least is needed by %.120s: %s", fit, n,
			 best->name, a);
	else
		snprintf(buf, cap, "Least is needed by %.120s: %s", best->name, a);
	if (n > 1 && best->r->leak.steps)
		snprintf(buf + strlen(buf), cap - strlen(buf), ", and it grows every step");
}

struct vc_spread vc_spread_of(const struct vc_named *of, size_t n)
{
	struct vc_spread s = { .least = UINT64_MAX };

	for (size_t i = 0; i < n; i++) {
		uint64_t peak = of[i].r->stats.peak_reserved;
		enum vc_verdict v = vc_result_verdict(of[i].r);

		s.mean += peak / n;
		s.least = peak < s.least ? peak : s.least;
		s.worst = peak > s.most ? i : s.worst;
		s.most = peak > s.most ? peak : s.most;
		s.ooms += v == VC_OOM;
		s.flushes += v == VC_FLUSHES;
		s.open += v == VC_UNDECIDED;
	}
	return s;
}

void vc_uneven_text(const struct vc_named *of, size_t n, bool by_time, char *buf, size_t cap)
{
	struct vc_spread s = vc_spread_of(of, n);
	uint64_t percent = vc_muldiv(s.most - s.mean, 100, s.mean ? s.mean : 1);
	size_t used = 0;

	if (n == 1) {
		vc_answer_text(of->r, by_time, buf, cap);
		return;
	}
	if (percent)
		ADD("%.120s peaks %" PRIu64 " %% above the mean of %zu", of[s.worst].name, percent,
		    n);
	else
		ADD("All %zu peak within 1 %% of their mean", n);
	if (s.ooms == n)
		ADD(percent ? "; all of them run out of memory" : ", and run out of memory");
	else if (s.ooms == 1 && percent && vc_result_verdict(of[s.worst].r) == VC_OOM)
		ADD(", and runs out of memory");
	else if (s.ooms)
		ADD("; %zu of them run%s out of memory", s.ooms, s.ooms == 1 ? "s" : "");
}

void vc_change_text(const struct vc_result *ra, const struct vc_result *rb,
		    const struct vc_diff *d, enum vc_units u, char *buf, size_t cap)
{
	uint64_t a = ra->stats.peak_reserved, b = rb->stats.peak_reserved;
	uint64_t by = a < b ? b - a : a - b;
	const struct vc_diff_site *s = d->n && d->at[0].live[0] != d->at[0].live[1] ? d->at : NULL;
	char x[VC_FORMAT], y[VC_FORMAT], z[VC_FORMAT];
	size_t used = 0;

	if (u == VC_PAGE) {
		vc_format_bytes(a, x);
		vc_format_bytes(b, y);
		vc_format_bytes(by, z);
	} else {
		vc_bytes_text(a, x);
		vc_bytes_text(b, y);
		vc_bytes_text(by, z);
	}
	if (a == b)
		ADD("B needs as much as A: %s%s; the requests are %sthe same", x,
		    u == VC_PAGE ? "" : " reserved at the peak",
		    d->first == VC_DIFF_NONE ? "" : "not ");
	else if (u == VC_PAGE)
		ADD("B needs %s %s than A: %s instead of %s", z, a < b ? "more" : "less", y, x);
	else
		ADD("B needs %s than A: %s -> %s reserved at the peak (%+.1f %%)",
		    b > a ? "more" : "less", x, y,
		    a ? 100.0 * ((double)b - (double)a) / (double)a : 0);
	if (u == VC_PAGE || d->first == VC_DIFF_NONE || !s)
		return;
	by = s->live[0] < s->live[1] ? s->live[1] - s->live[0] : s->live[0] - s->live[1];
	ADD("; most of the change is at %s (%s%s at the peak)", s->site,
	    s->live[0] < s->live[1] ? "+" : "-", vc_bytes_text(by, z));
}

const char *vc_parting_text(enum vc_diff_kind k)
{
	static const char *const words[] = { "", "only A makes this allocation",
		"only B makes this allocation", "another size", "another stream",
		"the same allocation, freed at another place" };

	return words[k];
}

/* ---- values that were varied ---- */

void vc_varied_text(double v, char *buf, size_t cap)
{
	double whole = floor(v);

	if (v - whole < 0.0005 || whole > 1e9)
		snprintf(buf, cap, "%llu", (unsigned long long)whole);
	else
		snprintf(buf, cap, "%llu.%02u", (unsigned long long)whole,
			 (unsigned)((v - whole) * 100 + 0.5) % 100);
}

bool vc_has_spare(const struct vc_result *r)
{
	uint64_t used = r->stats.peak_used;
	uint64_t most = r->trust.used_high > used ? r->trust.used_high : used;

	return vc_result_verdict(r) == VC_FITS &&
	       (!r->info.capacity || most <= r->info.capacity / 100 * 95);
}

/* Of one row, or of one picture. */
void vc_choice_text(const char *vary, bool largest, const struct vc_named *of, size_t n,
		    char *buf, size_t cap)
{
	char value[40];
	size_t used = 0;

	ADD("The %s %s tried that fits%s%.60s with 5 %% to spare: ",
	    largest ? "largest" : "smallest", vary, n == 1 && of->name ? " on " : "",
	    n == 1 && of->name ? of->name : "");
	for (size_t i = 0; i < n && i < 5; i++) {
		if (of[i].r)
			vc_varied_text(of[i].r->info.value, value, sizeof(value));
		else
			snprintf(value, sizeof(value), "none");
		if (n == 1)
			ADD("%s", value);
		else
			ADD("%s%.40s: %s", i ? ", " : "", of[i].name, value);
	}
	if (n > 5)
		ADD(", ...");
}

/* ---- changes that were tried ---- */

void vc_tried_text(const struct vc_tried *t, size_t number, enum vc_units u, char *buf, size_t cap)
{
	char a[2 * VC_FORMAT], low[VC_FORMAT], high[VC_FORMAT];
	size_t used = 0;

	ADD("%zu. %s: %s, ", number, t->text, t->verdict == VC_FLUSHES ? "still empties its cache" :
	    t->verdict != VC_FITS ? "may fit, undecided" : t->grows ? "fits, but grows" : "fits");
	if (u == VC_PAGE)
		ADD("%s", t->has_interval ? vc_format_band(t->low, t->high, a) :
					    vc_format_bytes(t->reserved, a));
	else if (!t->has_interval)
		ADD("%s", vc_bytes_text(t->reserved, a));
	else if (t->reserved < t->low) /* as far as the card let it */
		ADD("%s .. %s", vc_bytes_text(t->low, low), vc_bytes_text(t->high, high));
	else
		ADD("%s (%s .. %s)", vc_bytes_text(t->reserved, a), vc_bytes_text(t->low, low),
		    vc_bytes_text(t->high, high));
	ADD(" reserved%s", t->estimate ? ", an estimate" : "");
	/* no closer than such times are known: docs/measurements/fit.md, "Times of changes" */
	if (t->times > 0 && fabs(t->times - 1) < 0.05)
		ADD(", about as fast");
	else if (t->times > 0)
		ADD(", about %.1f times as long", t->times);
}
