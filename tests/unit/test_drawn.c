/* SPDX-License-Identifier: Apache-2.0 */
/* test_drawn.c - what is drawn is what is reported: every recording that ships, under several
 * settings, drawn and read back. */
#include "tests/support/test.h"

#include <glob.h>
#include <math.h>

#include "common/io.h"
#include "common/param.h"
#include "simulator/session/session.h"
#include "tests/support/drawn.h"
#include "visualize/classify.h"
#include "visualize/format.h"
#include "visualize/ledger.h"
#include "visualize/packing.h"
#include "visualize/sink.h"

static const char *const folders[] = { "traces/*.vct", "tests/recordings/*.vct",
				       "tests/transforms/recordings/bert*.vct",
				       "tests/transforms/recordings/conv.vct" };

/* What a recording is drawn under: its own card, small ones, other settings. */
static const struct setting { const char *gpu, *conf, *start; uint64_t capacity; } settings[] = {
	{ 0 },
	{ .gpu = "rtx4090" },
	{ .gpu = "a100-40g-sxm" },
	{ .conf = "expandable_segments:True" },
	{ .conf = "max_split_size_mb:64", .start = "cold" },
	{ .capacity = 700ull << 20 },
};

static const struct vc_observer_type *watched[32];

static void watch_all(void)
{
	static const char *const names[] = { "timeline", "lives", "segments", "peak", "oom",
					     "steps",    "unused" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		watched[i] = vc_observer_by_name(names[i]);
}

typedef void judge_fn(const char *what, const struct vc_result *r);

static void run_one(const char *path, size_t k, judge_fn *judge)
{
	const struct setting *t = &settings[k];
	char copy[300], what[400], *paths[] = { copy };
	struct vc_run_options o = vc_run_options_none();
	struct vc_error err = { 0 };
	struct vc_session s = { 0 };
	struct vc_plan *plan = NULL;
	struct vc_result r = { 0 };
	size_t n = 0;

	snprintf(copy, sizeof(copy), "%s", path);
	snprintf(what, sizeof(what), "%s, setting %zu", path, k);
	if (t->gpu)
		o.gpu = (struct vc_list){ (const char **)(uintptr_t)&t->gpu, 1 };
	if (t->conf)
		o.conf = (struct vc_list){ (const char **)(uintptr_t)&t->conf, 1 };
	o.start = t->start;
	if (t->capacity)
		o.capacity = t->capacity;
	if (!vc_session_open(&s, &o, 1, paths, VC_SESSION_NO_REQUESTS_OK, &err) &&
	    !vc_session_plans(&s, &plan, &n, &err) &&
	    !vc_session_run(&s, plan, watched, &r, &err))
		judge(what, &r);
	else if (!strstr(err.message, "recorded"))
		print_message("%s: %s\n", what, err.message);
	vc_result_fini(&r);
	free(plan);
	vc_session_close(&s);
}

static void each(judge_fn *judge)
{
	glob_t g = { 0 };

	watch_all();
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		glob(folders[i], i ? GLOB_APPEND : 0, NULL, &g);
	assert_true(g.gl_pathc > 20);
	for (size_t i = 0; i < g.gl_pathc; i++)
		for (size_t k = 0; k < sizeof(settings) / sizeof(*settings); k++)
			run_one(g.gl_pathv[i], k, judge);
	globfree(&g);
}

/* ---- the numbers that pictures are made of ---- */

static void the_pile_is_as_high_as_what_is_reserved(const char *what, const struct vc_result *r)
{
	struct vc_packing p;
	struct vc_error err;
	uint32_t *home = malloc((r->lives.n + 1) * sizeof(*home));

	assert_int_equal(vc_packing_init(&p, r, &err), 0);
	assert_int_equal(vc_packing_homes(&p, &r->lives, home, &err), 0);
	uint64_t pile = vc_packing_stack(&p, r->stats.peak_event);
	if (!p.guessed && pile != r->stats.peak_reserved)
		fail_msg("%s: the pile is %llu high, reserved are %llu", what,
			 (unsigned long long)pile, (unsigned long long)r->stats.peak_reserved);
	for (size_t i = 0; i < r->lives.n; i++)
		if (home[i] == VC_NO_SHELF && !p.guessed)
			fail_msg("%s: block %llu lies nowhere", what,
				 (unsigned long long)r->lives.at[i].id);
	vc_packing_fini(&p);
	free(home);
}

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

static void every_byte_of_the_card_has_a_line(const char *what, const struct vc_result *r)
{
	struct vc_classes c;
	struct vc_ledger l;
	struct vc_error err;

	assert_int_equal(vc_classes_init(&c, r, &err), 0);
	vc_ledger_make(&l, &c);
	if (l.live + l.waiting + l.returnable + l.stranded != l.reserved ||
	    (!l.at_oom && l.reserved != r->stats.peak_reserved))
		fail_msg("%s: %llu live, %llu waiting, %llu and %llu cached of %llu", what,
			 (unsigned long long)l.live, (unsigned long long)l.waiting,
			 (unsigned long long)l.returnable, (unsigned long long)l.stranded,
			 (unsigned long long)l.reserved);
	if (l.at_oom && l.capacity && l.free != r->oom.device_free)
		fail_msg("%s: %llu free, the device had %llu", what, (unsigned long long)l.free,
			 (unsigned long long)r->oom.device_free);
	vc_classes_fini(&c);
}

static void judge_numbers(const char *what, const struct vc_result *r)
{
	the_pile_is_as_high_as_what_is_reserved(what, r);
	holders_hold_what_is_allocated(what, r);
	lives_are_what_is_allocated(what, r);
	every_byte_of_the_card_has_a_line(what, r);
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
#ifndef HAVE_GRAPHVIZ
	if (!strcmp(t->name, "owners"))
		return false;
#endif
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
	const char *said = after("nothing");

	for (size_t i = 0; i < seen.labels; i++)
		if (strstr(seen.label[i].text, "the axis is cut"))
			said = seen.label[i].text;
	if (r->info.capacity && !r->info.has_limit && r->curve.n &&
	    (used < r->info.capacity / 10 * 6) != (*said != 0))
		fail_msg("%s: the axis is cut: \"%s\"", what, said);
}

/* The highest cell of the map of blocks is the reported peak, to a row of cells. */
static void cells_are_as_high_as_the_peak(const char *what, const char *text,
					  const struct vc_result *r)
{
	const char *from = strstr(text, "class=\"gr\" d=\"M"), *end = strstr(text, ">Segments at ");
	double zero, per, floor_y, best;
	char *next;

	if (!from || !end || !r->segments.n || !axis(&zero, &per))
		return;
	strtod(from + 15, &next);
	floor_y = best = strtod(next, NULL);
	for (const char *p = from; (p = strstr(p, " ar\" d=\"M")) && p < end; p++)
		for (const char *q = p + 8; *q && *q != '"'; q++)
			if (*q == 'M') {
				strtod(q + 1, &next);
				best = fmin(best, strtod(next, NULL));
			}
	for (const char *p = from; (p = strstr(p, "<path class=\"hx\" d=\"M")) && p < end; p++)
		for (const char *q = p + 20; *q && *q != '"'; q++)
			if (*q == 'M') {
				strtod(q + 1, &next);
				best = fmin(best, strtod(next, NULL));
			}
	double drawn = (floor_y - best) * 10 * per, peak = (double)r->stats.peak_reserved;
	if (fabs(drawn - peak) > 40 * per)
		fail_msg("%s: the map is %.0f high, %.0f are reserved", what, drawn, peak);
}

/* In use + cached = reserved, at one moment that all of the picture speaks of. */
static void tiles_add_up(const char *what)
{
	double reserved = number(after("Reserved at ")), use = number(after("In use then"));
	double cached = number(after("Cached then"));

	if (fabs(use + cached - reserved) > reserved / 80 + 1024)
		fail_msg("%s: %s in use, %s cached, %s reserved", what, after("In use then"),
			 after("Cached then"), after("Reserved at "));
	const char *moment = "", *held = "";
	for (size_t i = 0; i < seen.labels; i++) {
		const char *t = seen.label[i].text, *at = strstr(t, " in use at ");
		moment = strncmp(t, "Reserved at ", 12) ? moment : t + 12;
		held = at && strcmp(t, moment) ? at + 11 : held;
	}
	if (*held && strcmp(moment, held))
		fail_msg("%s: tiles are about %s, the table about %s", what, moment, held);
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
	if (r->oom.happened && fabs(number(said) - asked) > asked / 15)
		fail_msg("%s: %s asked for, %.0f B were", what, said, asked);
	for (size_t i = 0; r->oom.happened && i < seen.labels; i++)
		if (strstr(seen.label[i].text, "more would have been needed") &&
		    !strstr(seen.label[i].text, " bytes"))
			fail_msg("%s: \"%s\"", what, seen.label[i].text);
}

/* The rows of the ledger sum to its first, or its last. */
static void the_ledger_adds_up(const char *what)
{
	double sum = 0, total = -1;
	bool rows = false;

	for (size_t i = 0; i + 1 < seen.labels; i++) {
		const char *t = seen.label[i].text, *v = seen.label[i + 1].text;

		rows |= !strncmp(t, "Where the bytes", 15);
		if (!rows || !strchr("0123456789", *v) || !strstr(v, "B") || strstr(t, "asked"))
			continue;
		if (!strcmp(t, "capacity") || !strncmp(t, "limit", 5) || !strcmp(t, "= used"))
			total = number(v);
		else if (strchr("0123456789", *t) == NULL)
			sum += number(v);
	}
	if (total < 0 || fabs(sum - total) > total / 50 + 1024)
		fail_msg("%s: the rows of the ledger sum to %.0f of %.0f", what, sum, total);
}

static size_t drawings;

static void judge_pictures(const char *what, const struct vc_result *r)
{
	static const char *const looks[] = { "width=1200,theme=light", "width=600,theme=dark",
					     "width=480,theme=print", "width=1600,theme=auto" };
	const char *look = looks[drawings++ % 4];
	char all[500];
	size_t n;

	snprintf(all, sizeof(all), "%s, %s", what, look);
	for (size_t i = 0; vc_sinks[i]; i++) {
		const struct vc_sink_type *t = vc_sinks[i];
		if (!is_drawn(t))
			continue;
		char *text = draw(t, look, r, &n);
		read_back(all, t->name, text, n);
		if (!strcmp(t->name, "timeline") && r->curve.n) {
			the_line_is_as_high_as_the_peak(all, text, r);
			tiles_add_up(all);
		}
		if (!strcmp(t->name, "timeline") && r->curve.n) {
			names_stand_on_their_layers(all, text);
			a_cut_axis_is_said_to_be_cut(all, r);
		}
		if (!strcmp(t->name, "blocks") && r->lives.n)
			cells_are_as_high_as_the_peak(all, text, r);
		if (!strcmp(t->name, "ledger") && r->stats.peak_reserved)
			the_ledger_adds_up(all);
		if (!strcmp(t->name, "ledger"))
			small_requests_are_written_in_their_own_unit(all, r);
		free(text);
	}
}

/* Both at once: half the time is the runs. */
static void judge(const char *what, const struct vc_result *r)
{
	judge_numbers(what, r);
	judge_pictures(what, r);
}

static void pictures_and_their_numbers_say_what_is_reported(void **unused)
{
	(void)unused;
	each(judge);
}

/* ---- results made by hand ---- */

static struct vc_result *sweep_of(const double *batch, size_t columns, const char *const *card,
				  const uint64_t *capacity, size_t rows)
{
	struct vc_result *r = calloc(rows * columns, sizeof(*r));

	for (size_t i = 0; i < rows * columns; i++) {
		uint64_t need = (uint64_t)batch[i % columns] << 30;

		r[i].info.vary = (char *)(uintptr_t)"batch";
		r[i].info.value = batch[i % columns];
		r[i].info.by = (char *)(uintptr_t)"gpu";
		r[i].info.by_value = (char *)(uintptr_t)card[i / columns];
		r[i].info.trace = (char *)(uintptr_t)"runs.jsonl";
		r[i].info.capacity = capacity[i / columns];
		r[i].stats.events = r[i].stats.allocs = 1;
		r[i].stats.peak_used = r[i].stats.peak_reserved = need;
		r[i].stats.ooms = need > capacity[i / columns];
	}
	return r;
}

static char *draw_all(const char *sink, const struct vc_result *r, size_t runs, const char *params)
{
	const struct vc_sink_type *t = vc_sink_by_name(sink);
	struct vc_error err = { 0 };
	struct vc_output *out = vc_output_memory(&err);
	void *cfg = calloc(1, t->config_size + 1);
	size_t n;

	assert_int_equal(vc_params_parse(t->params, cfg, params, &err), 0);
	assert_int_equal(t->write(r, runs, cfg, out, &err), 0);
	char *text = vc_output_take(out, &n);
	vc_output_close(out);
	free(cfg);
	read_back("by hand", sink, text, n);
	return text;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
		n++;
	return n;
}

/* A cell per pair, none on another; what is taken fits, and is the largest of its row. */
static void a_sweep_over_two_keys_is_a_map(void **unused)
{
	static const double batch[] = { 4, 8, 16, 24, 32 };
	static const char *const card[] = { "small", "large" };
	static const uint64_t capacity[] = { 20ull << 30, 40ull << 30 };
	struct vc_result *r = sweep_of(batch, 5, card, capacity, 2);

	(void)unused;
	for (size_t i = 0; i < 2; i++) {
		char *text = draw_all(i ? "sweep" : "heatmap", r, 10, "width=600,footer=false");

		assert_non_null(strstr(text, "The largest batch that fits: small: 16, large: 32"));
		assert_int_equal(count(text, ", batch "), 10);
		assert_int_equal(count(text, ">\xC3\x97 out<"), 2);
		assert_int_equal(count(text, "class=\"nf oks\""), 2 + 1); /* and the legend */
		free(text);
	}
	free(r);
}

/* Strips of ranks have a scale each, a sentence each, and the most unequal one is in the title. */
static void ranks_have_a_scale_and_tooltips(void **unused)
{
	struct vc_bucket b[2] = { { .last_event = 9, .allocated_max = 6ull << 30,
				    .reserved_max = 6ull << 30, .reserved_min = 6ull << 30 },
				  { .last_event = 9, .allocated_max = 2ull << 30,
				    .reserved_max = 2ull << 30, .reserved_min = 2ull << 30 } };
	struct vc_result r[2] = { { .curve = { &b[0], 1, false } },
				  { .curve = { &b[1], 1, false } } };

	(void)unused;
	for (uint16_t i = 0; i < 2; i++) {
		r[i].info.device = i;
		r[i].info.trace = (char *)(uintptr_t)"two.vct";
		r[i].stats.events = r[i].stats.allocs = 10;
		r[i].stats.peak_reserved = r[i].stats.peak_used = b[i].reserved_max;
	}
	for (int w = 0; w < 2; w++) {
		char *text = draw_all("ranks", r, 2, w ? "width=600,footer=false" :
							 "width=1200,footer=false");

		assert_non_null(strstr(text, ">two.vct, GPU 0 peaks 50 % above the mean of 2<"));
		assert_int_equal(count(text, ">5 GiB<"), 2);
		assert_int_equal(count(text, "<g>\n<title>two.vct, GPU "), 2);
		assert_non_null(strstr(text, "at most 6 GiB reserved and 0 B allocated"));
		/* The strip of 6 GiB is three times as high as that of 2. */
		const char *a = strstr(text, "<title>two.vct, GPU 0: ");
		const char *c = strstr(text, "<title>two.vct, GPU 1: ");
		double high[2];
		for (int k = 0; k < 2; k++) {
			const char *at = k ? c : a, *line = strstr(at, "class=\"res\" d=\"M");

			high[k] = floor_of(at) - top_of(line + 16);
		}
		assert_true(fabs(high[0] - 3 * high[1]) < 15);
		free(text);
	}
}

/* Narrow kernels that follow each other closely are one long box, not an idle lane. */
static void a_busy_stream_is_drawn_busy(void **unused)
{
	enum { KERNELS = 3000 };
	struct vc_bucket b = { .last_event = 9, .last_ns = 3000000, .allocated_max = 1 << 20,
			       .reserved_max = 1 << 20, .reserved_min = 1 << 20 };
	struct vc_kernel_at *k = calloc(KERNELS, sizeof(*k));
	struct vc_result r = { .curve = { &b, 1, false }, .steps = { .kernel = k,
								     .kernels = KERNELS } };
	double drawn = 0;

	(void)unused;
	r.stats.has_times = true;
	r.stats.events = r.stats.allocs = 10;
	r.stats.peak_reserved = 1 << 20;
	for (size_t i = 0; i < KERNELS; i++)
		k[i] = (struct vc_kernel_at){ i * 1000, 990, 0, 7, 0 };
	char *text = draw_all("steps", &r, 1, "x=time,width=1200,footer=false");
	const char *lane = strstr(text, "class=\"busy cell\" d=\"");
	assert_non_null(lane);
	for (const char *p = lane, *end = strchr(lane, '/'); p < end; p++)
		if (*p == 'h' && p[1] != '-')
			drawn += strtod(p + 1, NULL);
	assert_true(drawn > 1000); /* of 1092 px */
	free(text);
	free(k);
}

/* A peak before the first mark is not "no steps are marked", and nothing "stays" before it. */
static void a_peak_before_the_first_mark_is_said_to_be_there(void **unused)
{
	struct vc_bucket b[3] = {
		{ .last_event = 9, .allocated_max = 900, .peak_event = 5, .reserved_max = 900 },
		{ .first_event = 10, .last_event = 19, .allocated_max = 500, .allocated_min = 200,
		  .peak_event = 12, .reserved_max = 900 },
		{ .first_event = 20, .last_event = 29, .allocated_max = 500, .allocated_min = 200,
		  .peak_event = 22, .reserved_max = 900 } };
	struct vc_mark_at mark[2] = { { .event = 10, .kind = 1 }, { .event = 20, .kind = 1 } };
	struct vc_result r = { .curve = { b, 3, false },
			       .steps = { .mark = mark, .marks = 2 } };

	(void)unused;
	r.stats.events = r.stats.allocs = 30;
	r.stats.peak_reserved = 900;
	char *text = draw_all("steps", &r, 1, "footer=false");
	assert_non_null(strstr(text, "Before the first step is marked 900 B"));
	assert_null(strstr(text, "no steps are marked"));
	assert_null(strstr(text, "stays from step"));
	free(text);
	b[2].allocated_max = b[2].reserved_max = 1000;
	text = draw_all("steps", &r, 1, "footer=false");
	assert_non_null(strstr(text, "Step 1 needs 800 B on top of the 200 B that stay"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pictures_and_their_numbers_say_what_is_reported),
		cmocka_unit_test(a_sweep_over_two_keys_is_a_map),
		cmocka_unit_test(ranks_have_a_scale_and_tooltips),
		cmocka_unit_test(a_busy_stream_is_drawn_busy),
		cmocka_unit_test(a_peak_before_the_first_mark_is_said_to_be_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
