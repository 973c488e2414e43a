/* SPDX-License-Identifier: Apache-2.0 */
/* test_visual.c - every picture is well-formed, small, legible, and tells the truth about the
 * peak. */
#include "tests/support/test.h"

#include "common/io.h"
#include "tests/support/svgcheck.h"
#include "tests/support/synth.h"
#include "tests/support/told.h"
#include "visualize/ownergraph.h"
#include "visualize/raster.h"
#include "visualize/sink.h"
#include "common/format.h"
#include "visualize/spark.h"

static const struct synth_options training = { 12, 4, 160u << 20, 40ull << 30, true, true, false };

/* A picture as text; the caller frees it. */
static char *draw(const char *sink, const char *params, const struct vc_result *r, size_t n,
		  size_t *len)
{
	const struct vc_sink_type *t = vc_sink_by_name(sink);
	struct vc_error err = { 0 };
	void *cfg;

	assert_non_null(t);
	cfg = calloc(1, t->config_size + 1);
	assert_int_equal(vc_params_parse(t->params, cfg, params, &err), 0);
	struct vc_output *out = vc_output_memory(&err);
	assert_non_null(out);
	if (t->write(r, n, cfg, out, &err))
		fail_msg("%s: %s", sink, err.message);
	char *text = vc_output_take(out, len);
	vc_output_close(out);
	free(cfg);
	return text;
}

/* Is it an SVG that this build can make? */
static bool is_picture(const struct vc_sink_type *t)
{
	return !strcmp(t->extension, "svg");
}

static void judge(const char *what, const char *text, size_t n)
{
	static struct svg_seen seen;

	if (n > 1000000)
		fail_msg("%s: %zu bytes", what, n);
	if (!svg_read(text, &seen))
		fail_msg("%s: %s", what, seen.why);
	if (!svg_labels_are_apart(&seen))
		fail_msg("%s: %s", what, seen.why);
	if (seen.most_children > 200) /* browsers need time by the square of siblings */
		fail_msg("%s: %d children in one group", what, seen.most_children);
	if (seen.titles > 2000)
		fail_msg("%s: %zu tooltips", what, seen.titles);
}

static const char *const looks[] = { "theme=auto", "theme=dark,width=600", "theme=print,x=event",
	"theme=light,width=900", "width=2000,footer=false" };

static void every_picture_is_well_formed_and_legible(void **unused)
{
	static const uint64_t capacity[] = { 40ull << 30, 17ull << 30, 600ull << 30, 0 };

	(void)unused;
	for (size_t k = 0; k < 4; k++) {
		struct synth_options o = training;
		o.capacity = capacity[k];
		o.sites = k != 2;
		o.times = k != 1;
		struct synth *s = synth_new(&o);
		for (size_t i = 0; vc_sinks[i]; i++)
			for (size_t l = 0; l < 5 && is_picture(vc_sinks[i]); l++) {
				size_t n;
				char what[80],
					*text = draw(vc_sinks[i]->name, looks[l], &s->r, 1, &n);
				snprintf(what, sizeof(what), "%s %s, case %zu", vc_sinks[i]->name,
					 looks[l], k);
				judge(what, text, n);
				free(text);
			}
		synth_fini(s);
	}
}

/* Copies of one run, as a sweep of a batch size would give them. */
static void many_runs_stay_legible(void **unused)
{
	static struct vc_result run[70];
	struct synth *s = synth_new(&training);

	(void)unused;
	for (size_t i = 0; i < 70; i++) {
		run[i] = s->r;
		run[i].info.vary = "batch";
		run[i].info.value = (double)(i + 1) * 2;
		run[i].info.device = (uint16_t)i;
		run[i].info.conf = i % 2 ? "expandable_segments:True,max_split_size_mb:512" : "";
		run[i].stats.peak_reserved = run[i].stats.peak_used = (uint64_t)(i + 1) << 30;
		run[i].stats.flushes = i > 30 && i < 36;
		run[i].stats.ooms = i > 40;
		run[i].stats.predicted_ns = 1000000000ull + i * 10000000;
	}
	for (size_t i = 0; vc_sinks[i]; i++)
		for (size_t l = 0; l < 2 && is_picture(vc_sinks[i]); l++) {
			size_t n;
			char what[80], *text = draw(vc_sinks[i]->name, looks[l], run, 70, &n);
			snprintf(what, sizeof(what), "%s of 70 runs, %s", vc_sinks[i]->name,
				 looks[l]);
			judge(what, text, n);
			free(text);
		}
	synth_fini(s);
}

static void the_same_run_gives_the_same_bytes(void **unused)
{
	struct synth *a = synth_new(&training), *b = synth_new(&training);

	(void)unused;
	for (size_t i = 0; vc_sinks[i]; i++) {
		size_t n, m;
		if (!strcmp(vc_sinks[i]->extension, "svg") && !is_picture(vc_sinks[i]))
			continue;
		char *x = draw(vc_sinks[i]->name, NULL, &a->r, 1, &n);
		char *y = draw(vc_sinks[i]->name, NULL, &b->r, 1, &m);
		assert_int_equal(n, m);
		assert_memory_equal(x, y, n);
		free(x);
		free(y);
	}
	synth_fini(a);
	synth_fini(b);
}

static void nothing_to_draw_is_said_in_a_valid_picture(void **unused)
{
	struct vc_result empty = { 0 };

	(void)unused;
	for (size_t i = 0; vc_sinks[i]; i++)
		for (size_t runs = 0; runs < 2; runs++) {
			size_t n;
			if (!is_picture(vc_sinks[i]))
				continue;
			char *text = draw(vc_sinks[i]->name, NULL, &empty, runs, &n);
			judge(vc_sinks[i]->name, text, n);
			assert_non_null(strstr(text, "nothing to draw"));
			free(text);
		}
}

/* One spike of one event in a million must stand as high as the scale says. */
static void a_spike_of_one_event_keeps_its_height(void **unused)
{
	enum { N = 4000 };
	struct vc_bucket *b = calloc(N, sizeof(*b));
	struct vc_result r = { .curve = { b, N } };
	const uint64_t peak = 1000 * VC_MIB;

	(void)unused;
	for (size_t i = 0; i < N; i++)
		b[i] = (struct vc_bucket){ .first_event = i * 250, .last_event = i * 250 + 249,
			.allocated_min = 100 * VC_MIB, .allocated_max = 100 * VC_MIB,
			.reserved_min = peak, .reserved_max = peak, .peak_event = i * 250 };
	b[1777].allocated_max = peak;
	r.stats.peak_allocated = r.stats.peak_reserved = peak;
	size_t n;
	char *text = draw("timeline", "x=event", &r, 1, &n),
	     *at = strstr(text, "<path class=\"co ar\"");
	assert_non_null(at);
	/* Plot of 350 px; the top of the scale is peak + peak / 11. The tallest vertical stroke
	 * of the area, from 100 MiB up to the peak, is 900/1090.9 of it. */
	double best = 0;
	for (char *p = at, *end = strchr(at, '>'); p < end; p++)
		if (*p == 'v' && strtod(p + 1, NULL) < best)
			best = strtod(p + 1, NULL);
	assert_true(best < -288.0 && best > -289.5);
	free(text);
	free(b);
}

static void a_line_of_text_shows_the_spike_too(void **unused)
{
	struct vc_bucket b[3] = { { .first_event = 0, .last_event = 499, .reserved_max = 100 },
		{ .first_event = 500, .last_event = 500, .reserved_max = 900 },
		{ .first_event = 501, .last_event = 999, .reserved_max = 100 } };
	struct vc_result r = { .curve = { b, 3 }, .stats = { .peak_reserved = 900 } }, none = { 0 };
	char line[31];

	(void)unused;
	assert_string_equal(vc_spark(&r, 10, true, line), ".....@....");
	assert_string_equal(vc_spark(&r, 4, false, line),
			    "\xe2\x96\x82\xe2\x96\x82\xe2\x96\x88\xe2\x96\x82");
	assert_string_equal(vc_spark(&none, 10, true, line), "");
}

/* A terminal without UTF-8, one with colours, and both with and without a card. */
static void a_terminal_gets_what_it_can_show(void **unused)
{
	static const char *const look[] = { "width=70,height=14,ascii=true", "width=70,height=14",
					    "width=90,height=20,color=true",
					    "width=90,height=20,color=true,ascii=true" };

	(void)unused;
	for (size_t k = 0; k < 8; k++) {
		struct synth_options o = training;
		o.capacity = k % 2 ? 17ull << 30 : 0;
		o.oom = k % 2;
		struct synth *s = synth_new(&o);
		size_t n, high = 0;

		free(s->r.info.trace);
		s->r.info.trace = strdup("3 \xC2\xB7 4 \xC3\x97 5 \xC2\xB5s \xE6\xA8\xA1");
		char *text = draw("braille", look[k / 2], &s->r, 1, &n);

		for (size_t i = 0; i < n; i++)
			high += (unsigned char)text[i] >= 0x80;
		assert_int_equal(high > 0, !strstr(look[k / 2], "ascii"));
		assert_true(high || strstr(text, "3 - 4 x 5 us ???"));
		tell(text, n);
		free(text);
		synth_fini(s);
	}
	told_is("visual", "terminals");
}

/* Samples a second over a sweep, where the time of a step is known. */
static void a_sweep_shows_how_fast_each_is(void **unused)
{
	static struct vc_result run[6];
	struct synth *s = synth_new(&training);
	size_t n;

	(void)unused;
	for (size_t i = 0; i < 6; i++) {
		run[i] = s->r;
		run[i].info.vary = "batch";
		run[i].info.value = (double)(i + 1) * 8;
		run[i].stats.peak_reserved = run[i].stats.peak_used = (uint64_t)(i + 1) << 30;
		run[i].timing.step_ns = 100000000;
		run[i].timing.samples = i ? (double)(i + 1) * 8 : 1.25;
	}
	char *text = draw("sweep", "theme=light", run, 6, &n);

	assert_non_null(strstr(text, "samples per second"));
	assert_non_null(strstr(text, ">12.5/s<"));
	assert_non_null(strstr(text, ">480/s<"));
	tell(text, n);
	told_is("visual", "how fast");
	free(text);
	run[0].info.vary = run[1].info.vary = NULL;
	text = draw("sweep", "theme=light", run, 2, &n);
	assert_null(strstr(text, "samples per second"));
	free(text);
	synth_fini(s);
}

static void cells_are_halved_and_painted(void **unused)
{
	enum { F = VC_CELL_FREE };
	uint8_t cell[] = { 1, 1, 0, F, F, 2, 0,
			   3, 1, F, 0, F, F, F }, half[] = { 1, F, 2, 0, 3, F, F, F };
	struct vc_raster g = { cell, 7, 2 };
	struct vc_svg s = { 0 };

	(void)unused;
	assert_int_equal(vc_raster_runs(&g), 3 + 4);
	vc_raster_halve(&g);
	assert_int_equal(g.cols, 4);
	assert_memory_equal(g.cell, half, sizeof(half));
	assert_int_equal(vc_raster_runs(&g), 3 + 2);
	vc_raster_paint(&g, &s, (struct vc_box){ 100, 50, 400, 80 }, 10);
	vc_svg_raw(&s, "", 1);
	assert_non_null(strstr(s.text, "<path class=\"hx\" d=\"M20 5h10v3h-10z"
			       "M20 9h30v3h-30z\"/>"));
	assert_int_equal(s.elements, 4);
	vc_svg_fini(&s);
}

static void numbers_of_layers_become_a_star(void **unused)
{
	static const char *const name[][2] = { { "layers.12.attn", "layers.*.attn" },
					       { "0.conv", "*.conv" }, { "h.3", "h.*" },
					       { "conv1.bn2", "conv1.bn2" }, { "a.1x", "a.1x" },
					       { "12.7", "*.*" }, { "", "" } };
	char to[24];

	(void)unused;
	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++) {
		vc_own_collapse(name[i][0], to, sizeof(to));
		assert_string_equal(to, name[i][1]);
	}
	vc_own_collapse("abcdefghij", to, 8);
	assert_string_equal(to, "abcd");
}

static void hostile_names_stay_inside_the_text(void **unused)
{
	struct synth *s = synth_new(&training);
	size_t n;

	(void)unused;
	free(s->r.info.trace);
	s->r.info.trace = strdup("</text><script>\x01\xff\"&\xe6\xa8\xa1\xe5\x9e\x8b");
	char *text = draw("timeline", NULL, &s->r, 1, &n);
	judge("hostile names", text, n);
	assert_null(strstr(text, "<script"));
	assert_non_null(strstr(
		text, "script&gt;\xef\xbf\xbd\xef\xbf\xbd&quot;&amp;\xe6\xa8\xa1\xe5\x9e\x8b"));
	free(text);
	synth_fini(s);
}

static void sizes_and_times_read_as_people_write_them(void **unused)
{
	char b[VC_FORMAT];

	(void)unused;
	assert_string_equal(vc_format_bytes(0, b), "0 B");
	assert_string_equal(vc_format_bytes(1023, b), "1023 B");
	assert_string_equal(vc_format_bytes(24 * VC_MIB, b), "24 MiB");
	assert_string_equal(vc_format_bytes(VC_GIB, b), "1 GiB");
	assert_string_equal(vc_format_bytes(80 * VC_GIB, b), "80 GiB");
	assert_string_equal(vc_format_bytes(VC_GIB + 1, b), "1.00 GiB");
	assert_string_equal(vc_format_bytes(3 * VC_GIB / 2, b), "1.50 GiB");
	assert_string_equal(vc_format_bytes(VC_GIB * 53 / 100, b), "0.53 GiB");
	assert_string_equal(vc_format_bytes(VC_GIB * 791 / 10, b), "79.1 GiB");
	assert_string_equal(vc_format_bytes(UINT64_MAX, b), "17179869184 GiB");
	assert_string_equal(vc_format_ns(11320000000ull, b), "11.3 s");
	assert_string_equal(vc_format_ns(125000000000ull, b), "2 min 5 s");
	assert_string_equal(vc_format_count(11193, b), "11,193");
	struct vc_axis a = vc_axis_ns(2500000000ull, 8);
	assert_int_equal(a.step, 500000000);
	assert_string_equal(vc_axis_text(&a, 1500000000ull, b), "1.5");
	a = vc_axis_bytes(80 * VC_GIB, 9);
	assert_int_equal(a.step, 10 * VC_GIB);
	assert_string_equal(vc_axis_text(&a, 20 * VC_GIB, b), "20");
	assert_string_equal(vc_format_percent(956, 1000, b), "95.6 %");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_picture_is_well_formed_and_legible),
		cmocka_unit_test(many_runs_stay_legible),
		cmocka_unit_test(the_same_run_gives_the_same_bytes),
		cmocka_unit_test(nothing_to_draw_is_said_in_a_valid_picture),
		cmocka_unit_test(a_spike_of_one_event_keeps_its_height),
		cmocka_unit_test(a_line_of_text_shows_the_spike_too),
		cmocka_unit_test(a_terminal_gets_what_it_can_show),
		cmocka_unit_test(a_sweep_shows_how_fast_each_is),
		cmocka_unit_test(cells_are_halved_and_painted),
		cmocka_unit_test(numbers_of_layers_become_a_star),
		cmocka_unit_test(hostile_names_stay_inside_the_text),
		cmocka_unit_test(sizes_and_times_read_as_people_write_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
