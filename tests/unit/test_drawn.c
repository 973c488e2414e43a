/* SPDX-License-Identifier: Apache-2.0 */
/* test_drawn.c - what is drawn is what is reported: every recording that ships, under several
 * settings, drawn and read back. */
#include "tests/support/test.h"

#include <glob.h>

#include "simulator/findings/leaks.h"
#include "simulator/session/session.h"
#include "tests/support/judge.h"

static const char *const folders[] = { "traces/*.vct", "tests/recordings/*.vct",
				       "tests/transforms/recordings/bert*.vct",
				       "tests/transforms/recordings/conv.vct",
				       NULL };
static const char *const all_folders[] = { "traces/*.vct", "tests/recordings/*.vct",
					   "tests/recordings/h100/*.vct",
					   "tests/transforms/recordings/*.vct",
					   "tests/ladders/*.vct",
					   "tests/ladders/recordings/*.vct",
					   "tests/python/recordings/*.vct", NULL };

/* What a recording is drawn under: its own card, small ones, other settings. */
static const struct setting { const char *gpu, *conf, *start; uint64_t capacity; } settings[] = {
	{ 0 },
	{ .gpu = "rtx4090" },
	{ .gpu = "a100-40g-sxm" },
	{ .conf = "expandable_segments:True" },
	{ .conf = "max_split_size_mb:64", .start = "cold" },
	{ .capacity = 700ull << 20 },
};
enum { SETTINGS = sizeof(settings) / sizeof(*settings) };

static const struct vc_observer_type *watched[32];

static void watch_all(void)
{
	static const char *const names[] = { "timeline", "lives", "segments", "peak", "oom",
					     "moment",   "steps", "unused" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		watched[i] = vc_observer_by_name(names[i]);
}

/* A recording under one setting; the session stays open, results are lent its names. */
struct run { struct vc_session s; struct vc_result r; bool ran; };

static void make_run(struct run *to, const char *path, const struct setting *t)
{
	char copy[300], *paths[] = { copy };
	struct vc_run_options o = vc_run_options_none();
	struct vc_error err = { 0 };
	struct vc_plan *plan = NULL;
	size_t n = 0;

	snprintf(copy, sizeof(copy), "%s", path);
	if (t->gpu)
		o.gpu = (struct vc_list){ (const char **)(uintptr_t)&t->gpu, 1 };
	if (t->conf)
		o.conf = (struct vc_list){ (const char **)(uintptr_t)&t->conf, 1 };
	o.start = t->start;
	if (t->capacity)
		o.capacity = t->capacity;
	to->ran = !vc_session_open(&to->s, &o, 1, paths, VC_SESSION_NO_REQUESTS_OK, &err) &&
		  !vc_session_plans(&to->s, &plan, &n, &err) &&
		  !vc_session_run(&to->s, plan, watched, &to->r, &err);
	if (to->ran)
		to->r.leak = vc_leak_find(&to->s);
	if (!to->ran && !strstr(err.message, "recorded"))
		print_message("%s: %s\n", path, err.message);
	free(plan);
}

static unsigned turn;

/* As recorded in every look, if asked; what else a recording is drawn under in turn. */
static void judge_pictures(const char *what, const struct vc_result *r, size_t setting)
{
	bool all = all_looks() && !setting;
	char look[60];

	for (unsigned i = 0; all && i < LOOKS; i++)
		judge_look(what, r, look_of(i, look));
	if (!all) /* 5: so that themes meet all widths */
		judge_look(what, r, look_of(turn * 5, look));
	turn++;
}

/* All at once: half the time is the runs. */
static void judge(const char *what, const struct vc_result *r, size_t setting)
{
	judge_numbers(what, r);
	judge_pictures(what, r, setting);
	judge_report(what, r);
	if (turn % 6 == 0)
		judge_page(what, r);
}

static char *draw_unread(const char *sink, const struct vc_result *r, size_t runs,
			 const char *params, size_t *n)
{
	const struct vc_sink_type *t = vc_sink_by_name(sink);
	struct vc_error err = { 0 };
	struct vc_output *out = vc_output_memory(&err);
	void *cfg = calloc(1, t->config_size + 1);

	assert_int_equal(vc_params_parse(t->params, cfg, params, &err), 0);
	assert_int_equal(t->write(r, runs, cfg, out, &err), 0);
	char *text = vc_output_take(out, n);
	vc_output_close(out);
	free(cfg);
	pictures_drawn++;
	return text;
}

static char *draw_all(const char *sink, const struct vc_result *r, size_t runs, const char *params)
{
	size_t n;
	char *text = draw_unread(sink, r, runs, params, &n);

	read_back("by hand", sink, text, n);
	return text;
}

/* Each of them has its line below the picture, in the order in which they are given. */
static void each_has_its_line(const char *what, const struct vc_result *r, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		questions_are_answered(what, &r[i], &at);
}

/* Runs that have a line of their own below a sweep or a map; one at least has. */
static void those_that_are_named_are_answered(const char *what, const struct vc_result *r, size_t n)
{
	size_t from = 0, found = 0;
	char name[100];

	while (from < seen.labels &&
	       strcmp(seen.label[from].text, "At the failure, or else the peak"))
		from++;
	for (size_t i = 0; i < n; i++) {
		size_t at = from;

		snprintf(name, sizeof(name), "%s%sbatch %.0f",
			 r[i].info.by ? r[i].info.by_value : "", r[i].info.by ? ", " : "",
			 r[i].info.value);
		while (at < seen.labels && strcmp(seen.label[at].text, name))
			at++;
		if (at == seen.labels)
			continue;
		found++;
		questions_are_answered(what, &r[i], &at);
	}
	if (!found)
		fail_msg("%s: nothing is said of any run", what);
}

/* As if they were runs of a sweep over one key, or two. */
static void vary(struct vc_result *r, size_t n, bool one, bool two)
{
	for (size_t m = 0; m < n; m++) {
		r[m].info.vary = one ? (char *)(uintptr_t)"batch" : NULL;
		r[m].info.value = (double)(m + 1 - (two ? m % 2 : 0));
		r[m].info.by = two ? (char *)(uintptr_t)"conf" : NULL;
		r[m].info.by_value = two ? (char *)(uintptr_t)(m % 2 ? "expandable" : "default") :
					   NULL;
	}
}

/* The runs of one recording on one picture: side by side, as a sweep, as a map. */
static void judge_together(const char *path, struct vc_result *r, size_t n)
{
	static const char *const several[] = { "compare", "ranks", "sweep", "heatmap" };
	char look[60], what[500];
	unsigned from = all_looks() ? 0 : turn++ * 5, to = all_looks() ? LOOKS : from + 1;
	size_t bytes;

	for (unsigned i = from; i < to; i++)
		for (size_t k = 0; k < sizeof(several) / sizeof(*several); k++) {
			vary(r, n, k > 1, k > 2);
			char *text = draw_unread(several[k], r, n, look_of(i, look), &bytes);

			tell(text, bytes);
			snprintf(what, sizeof(what), "%s, %s, %s", path, several[k], look);
			if (!is_judged(r, 40 + k, text)) {
				read_back(what, several[k], text, bytes);
				if (!k)
					each_has_its_line(what, r, n);
				if (k > 1)
					those_that_are_named_are_answered(what, r, n);
			}
			free(text);
		}
	vary(r, n, false, false);
}

/* From which turn on it is drawn does not hang on who judged the others. */
static void judge_recording(const char *path, unsigned first_turn)
{
	struct run *run = calloc(SETTINGS, sizeof(*run));
	struct vc_result *r = calloc(SETTINGS, sizeof(*r));
	char what[400];
	size_t n = 0;

	turn = first_turn;
	for (size_t k = 0; k < SETTINGS; k++) {
		make_run(&run[k], path, &settings[k]);
		snprintf(what, sizeof(what), "%s, setting %zu", path, k);
		if (run[k].ran)
			judge(what, &run[k].r, k);
		if (run[k].ran && run[k].r.curve.n)
			r[n++] = run[k].r;
	}
	if (n)
		judge_together(path, r, n);
	if (!all_looks())
		told_is("drawn", path);
	if (all_looks())
		print_message("%s: %zu pictures\n", path, pictures_drawn);
	for (size_t k = 0; k < SETTINGS; k++) {
		vc_result_fini(&run[k].r);
		vc_session_close(&run[k].s);
	}
	VC_FREE(run, r);
}

/* In `make check` the copy with sanitizers takes each fourth recording, and the plain one, which is
 * four times as fast, the others; alone the plain one takes them all. */
static bool is_shared(void)
{
	return !all_looks() && (SANITIZED || getenv("SHARED"));
}

static void numbers_pictures_and_the_report_say_the_same(void **unused)
{
	const char *const *folder = all_looks() ? all_folders : folders;
	const char *only = getenv("ONLY");
	size_t part = 0, parts = is_shared() ? 4 : 1;
	bool others = is_shared() && !SANITIZED; /* all parts but that one */
	glob_t g = { 0 };

	(void)unused;
	watch_all();
	if (getenv("PART")) /* PART=1/4: some of them, for several cores */
		assert_int_equal(sscanf(getenv("PART"), "%zu/%zu", &part, &parts), 2);
	for (size_t i = 0; folder[i]; i++)
		glob(folder[i], i ? GLOB_APPEND : 0, NULL, &g);
	assert_true(g.gl_pathc > 20);
	for (size_t i = 0; i < g.gl_pathc; i++)
		if ((i % parts == part % parts) != others && (!only || strstr(g.gl_pathv[i], only)))
			judge_recording(g.gl_pathv[i], (unsigned)i * (SETTINGS + 1));
	print_message("%zu recordings, %zu pictures\n", g.gl_pathc, pictures_drawn);
	globfree(&g);
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

		assert_non_null(strstr(text, "The largest batch tried that fits with 5 % to spare: "
					     "small: 16, large: 32"));
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

/* Processes that share a card stand on one another, each with its name where its band is: here at
 * the lower edge, for nothing is allocated. */
static void names_of_a_shared_card_stand_in_their_bands(void **unused)
{
	static const char *const file[] = { "low.vct", "mid.vct", "top.vct" };
	struct vc_bucket b[3];
	struct vc_meta m[3];
	struct vc_result r[3];
	double y[3];

	(void)unused;
	for (size_t i = 0; i < 3; i++) {
		b[i] = (struct vc_bucket){ .last_event = 9, .last_ns = 100,
					   .reserved_max = (i + 1) << 30 };
		m[i] = (struct vc_meta){ .host = (char *)(uintptr_t)"here", .rank = -1,
					 .pid = (int64_t)i + 1, .start_unix_ns = 5000 };
		r[i] = (struct vc_result){ .curve = { &b[i], 1, false }, .meta = &m[i] };
		r[i].stats.has_times = true;
		r[i].stats.events = r[i].stats.allocs = 10;
		r[i].stats.peak_reserved = r[i].stats.peak_used = b[i].reserved_max;
		r[i].info.trace = (char *)(uintptr_t)file[i];
	}
	char *text = draw_all("ranks", r, 3, "width=1200,footer=false");
	for (size_t i = 0; i < 3; i++) {
		char want[40];
		const char *at;

		snprintf(want, sizeof(want), "class=\"b1 fg halo\">%s, GPU 0<", file[i]);
		at = strstr(text, want);
		assert_non_null(at);
		while (strncmp(at, " y=", 3))
			at--;
		y[i] = strtod(at + 4, NULL);
	}
	assert_true(y[0] - y[1] > 20); /* a GiB */
	assert_true(fabs(y[1] - y[2] - 2 * (y[0] - y[1])) < 0.3);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_pictures_and_the_report_say_the_same),
		cmocka_unit_test(a_sweep_over_two_keys_is_a_map),
		cmocka_unit_test(ranks_have_a_scale_and_tooltips),
		cmocka_unit_test(names_of_a_shared_card_stand_in_their_bands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
