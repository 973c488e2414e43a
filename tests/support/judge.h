/* SPDX-License-Identifier: Apache-2.0 */
/* judge.h - what is drawn is what is reported: invariants of every picture of every result. */
#ifndef VC_JUDGE_H
#define VC_JUDGE_H

#include <math.h>

#include "common/io.h"
#include "common/param.h"
#include "common/vec.h"
#include "tests/support/drawn.h"
#include "tests/support/told.h"
#include "tests/support/questions.h"
#include "visualize/classify.h"
#include "common/format.h"
#include "visualize/instrument.h"
#include "visualize/ledger.h"
#include "visualize/sink.h"

/* ---- the numbers that pictures are made of ---- */

static void holders_hold_what_is_allocated(const char *what, const struct vc_result *r)
{
	struct vc_classes c;
	struct vc_owners o;
	struct vc_error err;

	assert_int_equal(vc_classes_init(&c, r, &err), 0);
	assert_int_equal(vc_owners_init(&o, &c, &err), 0);
	if (o.of_allocated && o.bytes != r->stats.peak_allocated)
		fail_msg("%s: %llu are held, %llu allocated at the peak", what,
			 (unsigned long long)o.bytes,
			 (unsigned long long)r->stats.peak_allocated);
	vc_owners_fini(&o);
	vc_classes_fini(&c);
}

/* Layers are made of lives: those that are alive at the peak are all that is allocated then. */
static void lives_are_what_is_allocated(const char *what, const struct vc_result *r)
{
	const struct vc_bucket *top = r->curve.n ? r->curve.at : NULL;
	uint64_t sum = 0;

	for (size_t i = 1; i < r->curve.n; i++)
		if (r->curve.at[i].allocated_max > top->allocated_max)
			top = &r->curve.at[i];
	for (size_t i = 0; top && i < r->lives.n; i++)
		if (r->lives.at[i].born <= top->peak_event && r->lives.at[i].died > top->peak_event)
			sum += r->lives.at[i].size;
	if (top && !r->lives.dropped && sum != top->allocated_max)
		fail_msg("%s: %llu live, %llu are allocated", what, (unsigned long long)sum,
			 (unsigned long long)top->allocated_max);
}

/* The heap of a run of very many segments and blocks may lag by a 256th (observers/peak.c). */
static void every_byte_of_the_card_has_a_line(const char *what, const struct vc_result *r)
{
	struct vc_classes c;
	struct vc_ledger l;
	struct vc_error err;

	assert_int_equal(vc_classes_init(&c, r, &err), 0);
	vc_ledger_make(&l, &c);
	if (l.live + l.waiting + l.returnable + l.stranded != l.reserved ||
	    l.reserved > r->stats.peak_reserved ||
	    (!l.at_oom && l.reserved + (r->lives.n > 10000 ? l.reserved / 256 : 0) <
			       r->stats.peak_reserved))
		fail_msg("%s: %llu live, %llu waiting, %llu and %llu cached of %llu", what,
			 (unsigned long long)l.live, (unsigned long long)l.waiting,
			 (unsigned long long)l.returnable, (unsigned long long)l.stranded,
			 (unsigned long long)l.reserved);
	uint64_t left = l.limited ? r->info.limit - r->moment.reserved : r->oom.device_free;
	if (l.at_oom && l.capacity && l.free != left)
		fail_msg("%s: %llu free, there were %llu for this process", what,
			 (unsigned long long)l.free, (unsigned long long)left);
	vc_classes_fini(&c);
}

static void judge_numbers(const char *what, const struct vc_result *r)
{
	holders_hold_what_is_allocated(what, r);
	lives_are_what_is_allocated(what, r);
	every_byte_of_the_card_has_a_line(what, r);
	the_moment_is_the_reported_one(what, r);
}

/* ---- the pictures themselves, read back ---- */

static char *draw(const struct vc_sink_type *t, const char *params, const struct vc_result *r,
		  size_t *n)
{
	struct vc_error err = { 0 };
	void *cfg = calloc(1, t->config_size + 1);
	struct vc_output *out = vc_output_memory(&err);

	assert_int_equal(vc_params_parse(t->params, cfg, params, &err), 0);
	if (t->write(r, 1, cfg, out, &err))
		fail_msg("%s: %s", t->name, err.message);
	char *text = vc_output_take(out, n);
	vc_output_close(out);
	free(cfg);
	return text;
}

static bool is_drawn(const struct vc_sink_type *t)
{
	return !strcmp(t->extension, "svg");
}

/* The line's highest point is the reported peak, on the axis that stands beside it. */
static void the_line_is_as_high_as_the_peak(const char *what, const char *text,
					    const struct vc_result *r)
{
	double zero, per, drawn;

	if (!r->curve.n || !axis(&zero, &per))
		return;
	double floor_y = floor_of(text);
	drawn = (floor_y - top_of_line(text, "<path class=\"res\" d=\"M")) * per -
		(double)(r->info.context + r->info.others);
	if (fabs(drawn - (double)r->stats.peak_reserved) > 20 * per)
		fail_msg("%s: %.0f are drawn, %llu reserved", what, drawn,
			 (unsigned long long)r->stats.peak_reserved);
}

/* So does that of the part where it is decided: it reaches what was reserved at the failure, or the
 * peak, and nothing above. Cuts the part off the text. */
static void the_part_is_of_the_whole(const char *what, char *text, const struct vc_result *r)
{
	char *part = strstr(text, "<g class=\"part\">");
	uint64_t least = r->oom.happened ? r->moment.reserved : r->stats.peak_reserved;
	double zero, per, drawn;

	if (!part)
		return;
	assert_true(axis_of(true, &zero, &per));
	drawn = (floor_of(part) - top_of_line(part, "<path class=\"res\" d=\"M")) * per -
		(double)(r->info.context + r->info.others);
	if (drawn > (double)r->stats.peak_reserved + 20 * per || drawn < (double)least - 20 * per)
		fail_msg("%s: %.0f are drawn of a part, %llu to %llu reserved", what, drawn,
			 (unsigned long long)least, (unsigned long long)r->stats.peak_reserved);
	*part = '\0';
}

/* The upper edge of an area at x, in tenths; the floor where there is none. */
static double edge_at(const char *text, const char *klass, double x, double floor_y)
{
	char want[60];
	const char *at;
	double px, y;
	char *end;

	snprintf(want, sizeof(want), "<path class=\"%s ar\" d=\"M", klass);
	at = strstr(text, want);
	if (!at)
		return floor_y;
	px = strtod(at + strlen(want), &end) * 10;
	y = strtod(end, &end) * 10;
	for (const char *p = end; *p && *p != 'z' && *p != '"'; p++) {
		if (*p == 'v')
			y += strtod(p + 1, NULL) * 10;
		if (*p == 'h' && (px += strtod(p + 1, NULL) * 10) > x)
			break;
	}
	return y;
}

/* A name stands on its own layer: that begins above it, and those below begin beneath it. */
static void names_stand_on_their_layers(const char *what, const char *text)
{
	double floor_y = floor_of(text);

	for (int slot = 0; slot < VC_SLOTS; slot++) {
		char want[40];

		snprintf(want, sizeof(want), " class=\"b1 %s\"", vc_theme_on(slot));
		for (const char *name = text; (name = strstr(name, want)); name++) {
			const char *at = name;

			while (*at != '<')
				at--;
			double x = svg_tenths(at, "x"), y = svg_tenths(at, "y");

			for (int k = 0; k <= slot; k++) {
				double edge = edge_at(text, vc_theme_slot(k), x + 100, floor_y);

				if (k < slot ? edge < y : edge > y - 90)
					fail_msg("%s: a name is not on its layer: %.40s at %.0f",
						 what, strchr(at, '>'), edge);
			}
		}
	}
}

/* A card far larger than the run has its line above all that is drawn, and the cut is said. */
static void a_cut_axis_is_said_to_be_cut(const char *what, const struct vc_result *r)
{
	uint64_t used = r->stats.peak_reserved + r->info.context + r->info.others;
	const char *said = "";

	for (size_t i = 0; i < seen.labels; i++)
		if (strstr(seen.label[i].text, "the axis is cut"))
			said = seen.label[i].text;
	if (r->info.capacity && !r->info.has_limit && r->curve.n && used &&
	    (used < r->info.capacity / 10 * 6) != (*said != 0))
		fail_msg("%s: the axis is cut: \"%s\"", what, said);
}

/* In use + cached = reserved, at one moment that all of the picture speaks of. */
static void numbers_add_up(const char *what)
{
	double reserved = number(after("reserved at ")), use = number(after("in use then"));
	double cached = number(after("cached then"));

	if (fabs(use + cached - reserved) > reserved / 80 + 1024)
		fail_msg("%s: %s in use, %s cached, %s reserved", what, after("in use then"),
			 after("cached then"), after("reserved at "));
	const char *moment = "", *held = "";
	for (size_t i = 0; i < seen.labels; i++) {
		const char *t = seen.label[i].text, *at = strstr(t, " in use at ");
		moment = strncmp(t, "reserved at ", 12) ? moment : t + 12;
		held = at && strcmp(t, moment) ? at + 11 : held;
	}
	if (*held && strcmp(moment, held))
		fail_msg("%s: numbers are about %s, the table about %s", what, moment, held);
}

/* What was asked for, and what is missing of it, are written to a hundredth. */
static void small_requests_are_written_in_their_own_unit(const char *what,
							 const struct vc_result *r)
{
	double asked = (double)r->oom.request;
	const char *said = "";

	for (size_t i = 0; i + 1 < seen.labels; i++)
		if (!strcmp(seen.label[i].text, "asked for"))
			said = seen.label[i + 1].text;
	if (r->oom.happened && seen.labels > 5 && fabs(number(said) - asked) > asked / 15)
		fail_msg("%s: %s asked for, %.0f B were", what, said, asked);
	for (size_t i = 0; r->oom.happened && i < seen.labels; i++)
		if (strstr(seen.label[i].text, "more would have been needed") &&
		    !strstr(seen.label[i].text, " bytes") &&
		    !(i + 1 < seen.labels && strstr(seen.label[i + 1].text, "bytes")))
			fail_msg("%s: \"%s\"", what, seen.label[i].text);
}

/* The rows of the ledger sum to its first, or its last, but for what lies beside: as the statistics
 * say it. */
static void the_ledger_adds_up(const char *what, const struct vc_result *r)
{
	double beside = 0, most = (double)(r->stats.managed + r->stats.pinned);
	double sum = 0, total = -1;
	bool rows = false;

	for (size_t i = 0; i + 1 < seen.labels; i++) {
		const char *t = seen.label[i].text, *v = seen.label[i + 1].text;

		rows |= !strncmp(t, "Where the bytes", 15);
		if (!rows || !strchr("0123456789", *v) || !strstr(v, "B") || strstr(t, "asked"))
			continue;
		if (strstr(t, ", at most"))
			beside += number(v);
		else if (!strcmp(t, "capacity") || !strncmp(t, "limit", 5) || !strcmp(t, "= used"))
			total = number(v);
		else if (strchr("0123456789", *t) == NULL)
			sum += number(v);
	}
	if (total < 0 || fabs(sum - total) > total / 50 + 1024)
		fail_msg("%s: the rows of the ledger sum to %.0f of %.0f", what, sum, total);
	if (fabs(beside - most) > most / 50 + 1024)
		fail_msg("%s: %.0f of %.0f managed and pinned", what, beside, most);
}

/* ---- the data of the report's instrument ---- */

/* The line "NAME value value ..." as sums of its values, in `unit`; n < 0: there is none. */
static long data_line(const char *from, const char *name, uint64_t unit, uint64_t **at)
{
	char want[40];
	const char *p;
	long n = 0;
	uint64_t sum = 0;

	snprintf(want, sizeof(want), "\n%s ", name);
	p = strstr(from, want);
	*at = malloc(p ? strcspn(p + 1, "\n") * sizeof(**at) : 8);
	if (!p)
		return -1;
	for (p += strlen(want) - 1; *p == ' '; n++) {
		char *end;

		sum += (uint64_t)strtoll(p + 1, &end, 10) * unit;
		(*at)[n] = sum;
		p = end;
	}
	return n;
}

static uint64_t data_number(const char *from, const char *name)
{
	char want[40];
	const char *p;

	snprintf(want, sizeof(want), "\n%s ", name);
	p = strstr(from, want);
	return p ? strtoull(p + strlen(want), NULL, 10) : 0;
}

/* Bytes of the layers of each column. */
static uint64_t *data_layers(const char *from, long n, uint64_t unit)
{
	uint64_t *sum = calloc((size_t)n + 1, sizeof(*sum)), *layer;

	for (const char *p = from; (p = strstr(p, "\nlayer ")); p++) {
		long k = data_line(p, "layer", unit, &layer);

		for (long i = 0; i < k && i < n; i++)
			sum[i] += layer[i];
		free(layer);
	}
	return sum;
}

struct data { uint64_t *born, *died, *size, *moment; long blocks, columns; };

/* Blocks that are held one by one are live; they are all that is in use where all are held. */
static void blocks_of_the_report_are_in_use(const char *what, const struct data *d, long column,
					    uint64_t used, bool all)
{
	uint64_t at = d->moment[column], sum = 0;

	for (long i = 0; i < d->blocks; i++) {
		if (d->born[i] > at || d->died[i] <= at)
			continue;
		sum += d->size[i];
	}
	if (sum > used || (all && sum != used))
		fail_msg("%s: the report holds %llu of %llu in use at event %llu", what,
			 (unsigned long long)sum, (unsigned long long)used,
			 (unsigned long long)at);
}

/* The whole page, which is at most 1 MB. */
static void judge_page(const char *what, const struct vc_result *r)
{
	size_t bytes;
	char *page = draw(vc_sink_by_name("html"), "", r, &bytes);

	tell(page, bytes);
	if (bytes > 1000000)
		fail_msg("%s: the report has %zu bytes", what, bytes);
	free(page);
}

static void judge_report(const char *what, const struct vc_result *r)
{
	struct vc_svg svg = { 0 };
	struct vc_error err;
	char *from;
	struct data d;
	uint64_t unit, *reserved, *used, top = 0, most = 0;

	assert_int_equal(vc_instrument_write(&svg, r, 1, false, &err), 0);
	from = svg.text;
	tell(from, strlen(from));
	if (!strstr(from, "\nrun ")) {
		assert_int_equal(r->curve.n, 0);
		vc_svg_fini(&svg);
		return;
	}
	unit = data_number(from, "unit");
	d.columns = data_line(from, "moment", 1, &d.moment);
	assert_int_equal(data_line(from, "reserved", unit, &reserved), d.columns);
	used = data_layers(from, d.columns, unit);
	d.blocks = data_line(from, "born", 1, &d.born);
	data_line(from, "died", 1, &d.died);
	data_line(from, "size", unit, &d.size);
	for (long i = 0; i < d.columns; i++) {
		top = reserved[i] > top ? reserved[i] : top;
		most = used[i] > most ? used[i] : most;
		if (i % (d.columns / 50 + 1) == 0)
			blocks_of_the_report_are_in_use(what, &d, i, used[i],
				(uint64_t)d.blocks == data_number(from, "blocks"));
	}
	if (top != r->stats.peak_reserved || most != r->stats.peak_allocated)
		fail_msg("%s: the report holds %llu reserved and %llu in use, %llu and %llu were",
			 what, (unsigned long long)top, (unsigned long long)most,
			 (unsigned long long)r->stats.peak_reserved,
			 (unsigned long long)r->stats.peak_allocated);
	VC_FREE(reserved, used, d.born, d.died, d.size, d.moment);
	vc_svg_fini(&svg);
}

/* The kinds of several runs, which are given one. */
static bool is_of_several(const struct vc_sink_type *t)
{
	return !strcmp(t->name, "compare") || !strcmp(t->name, "ranks") ||
	       !strcmp(t->name, "sweep");
}

static size_t pictures_drawn; /* and held against what is reported */

/* Themes differ in the style sheet (test_theme.c holds its colours): what stands behind it is
 * judged once where it is the same, byte for byte, as what was judged last of this run and kind. */
static bool is_judged(const struct vc_result *r, size_t sink, const char *text)
{
	static struct { const struct vc_result *r; uint64_t hash; } last[64];
	const char *body = strstr(text, "</style>");
	uint64_t h = 14695981039346656037ull;
	bool same;

	for (; body && *body; body++)
		h = (h ^ (unsigned char)*body) * 1099511628211ull;
	assert_true(sink < 64);
	same = body && last[sink].r == r && last[sink].hash == h;
	last[sink].r = r;
	last[sink].hash = h;
	return same;
}

static void judge_look(const char *what, const struct vc_result *r, const char *look)
{
	char all[500];
	size_t n, at = 0;

	for (size_t i = 0; vc_sinks[i]; i++, at = 0) {
		const struct vc_sink_type *t = vc_sinks[i];
		if (!is_drawn(t))
			continue;
		char *text = draw(t, look, r, &n);
		tell(text, n);
		snprintf(all, sizeof(all), "%s, %s, %s", what, look, t->name);
		pictures_drawn++;
		if (is_judged(r, i, text)) {
			free(text);
			continue;
		}
		read_back(all, t->name, text, n);
		if (is_notice()) {
			free(text);
			continue;
		}
		if (is_of_several(t))
			questions_are_answered(all, r, &at);
		else
			the_picture_answers(all, r);
		if (!strcmp(t->name, "timeline") && r->curve.n) {
			the_part_is_of_the_whole(all, text, r);
			the_line_is_as_high_as_the_peak(all, text, r);
			numbers_add_up(all);
		}
		if (!strcmp(t->name, "timeline") && r->curve.n) {
			names_stand_on_their_layers(all, text);
			a_cut_axis_is_said_to_be_cut(all, r);
		}
		if (!strcmp(t->name, "ledger") && r->stats.peak_reserved)
			the_ledger_adds_up(all, r);
		if (!strcmp(t->name, "ledger"))
			small_requests_are_written_in_their_own_unit(all, r);
		free(text);
	}
}

/* ---- every width in every theme ---- */

/* Built with sanitizers, which take long. */
#ifdef __SANITIZE_ADDRESS__
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

enum { LOOKS = 16 };

/* The i-th of all looks. */
static const char *look_of(unsigned i, char buf[60])
{
	static const unsigned widths[] = { 480, 600, 1200, 1600 };
	static const char *const themes[] = { "auto", "light", "dark", "print" };

	snprintf(buf, 60, "width=%u,theme=%s", widths[i / 4 % 4], themes[i % 4]);
	return buf;
}

/* Whether everything is drawn in each of them (make check-pictures), or in turn. */
static bool all_looks(void)
{
	return getenv("LOOKS") && !strcmp(getenv("LOOKS"), "all");
}

#endif
