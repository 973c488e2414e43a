/* SPDX-License-Identifier: Apache-2.0 */
/* test_convolutions.c - convolutions of recordings, their sizes elsewhere, and the workspace that
 * cuDNN names for them. */
#include "tests/support/test.h"

#include <unistd.h>

#include "common/plan_table.h"
#include "simulator/predict/convolutions.h"

#define KEY "forward f32 nchw 4x3x9x9 16x3x3x3 4x16x5x5 2x2 1x1 1x1"

/* ---- texts ---- */

static void a_key_is_read_as_it_is_written(void **unused)
{
	static const char *const wrong[] = {
		"", "forward", KEY " 1x1",
		"backward f32 nchw 4x3x9x9 16x3x3x3 4x16x5x5 2x2 1x1 1x1",
		"forward f33 nchw 4x3x9x9 16x3x3x3 4x16x5x5 2x2 1x1 1x1",
		"forward f32 nchw 4x3x9x9 16x3x3 4x16x5x5 2x2 1x1 1x1",
		"forward f32 nchw 4x3x9x9 16x3x3x3 4x16x5x5 2x2x2 1x1 1x1",
		"forward f32 nchw 4x3x9x9x9x9 16x3x3x3x3x3 4x16x5x5x5x5 2x2x2x2 1x1x1x1 1x1x1x1",
		"forward f32 nchw 4x3x9x-9 16x3x3x3 4x16x5x5 2x2 1x1 1x1",
		"forward f32 nchw 4x3x9x 16x3x3x3 4x16x5x5 2x2 1x1 1x1",
		"forward f32 nchw 4x3x9x9 16x3x3x99999999999 4x16x5x5 2x2 1x1 99999999999x1",
	};
	struct vc_convolution c;
	char text[VC_PLANS_KEY];

	(void)unused;
	assert_true(vc_convolution_read(KEY, &c));
	assert_int_equal(c.n, 4);
	assert_int_equal(c.y[3], 5);
	assert_int_equal(c.stride[1], 2);
	vc_convolution_text(&c, "", text);
	assert_string_equal(text, KEY);
	assert_true(vc_convolution_read("filter bf16 nhwc 2x8x4x6x6 8x1x3x3x3 2x8x4x6x6 1x1x1 "
					"1x1x1 1x1x1", &c));
	assert_true(c.channels_last && c.n == 5 && c.direction == VC_CONVOLUTION_FILTER);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (vc_convolution_read(wrong[i], &c))
			fail_msg("read: %s", wrong[i]);
}

static void outputs_follow_from_inputs(void **unused)
{
	struct vc_convolution c;
	int64_t y[VC_CONVOLUTION_SIZES];

	(void)unused;
	assert_true(vc_convolution_read(KEY, &c));
	assert_true(vc_convolution_output(&c, y));
	assert_memory_equal(y, c.y, sizeof(y));
	c.x[2] = 0; /* smaller than the kernel */
	c.pad[0] = 0;
	assert_false(vc_convolution_output(&c, y));
}

static void a_table_has_the_rows_of_one_card_and_version(void **unused)
{
	static const char rows[] = "# comment\n"
				   "8.0/108@1410,1593 9.19.0 " KEY " 512:t,0\n"
				   "8.0 9.19 " KEY " 99\n" /* the first row counts */
				   "9.0 9.19.0 forward f64 nchw 1x1x1 1x1x1 1x1x1 1 0 1 7\n"
				   "* 9.2 data f64 nchw 1x1x1 1x1x1 1x1x1 1 0 1 7\n"
				   "* * data f32 nchw 1x1x1 1x1x1 1x1x1 1 0 1 8 # more\n"
				   "8.0/108 * wrong\n";
	char path[64];
	struct vc_plan_table t = { .n = 0 };
	struct vc_cudnn_plans p;
	size_t wrong = 0;

	(void)unused;
	snprintf(path, sizeof(path), "/tmp/plan_table.%d", (int)getpid());
	FILE *f = fopen(path, "w");

	assert_true(f && fputs(rows, f) >= 0 && !fclose(f));
	assert_true(vc_plan_table_read(&t, path, "8.0/108@1410,1593", "9.19.0", &wrong));
	unlink(path);
	assert_int_equal(wrong, 7);
	assert_true(vc_plan_table_find(&t, KEY, &p));
	assert_int_equal(p.n, 2);
	assert_int_equal(p.at[0].bytes, 512);
	assert_int_equal(p.at[0].notes, 1);
	assert_false(vc_plan_table_find(&t, "forward f64 nchw 1x1x1 1x1x1 1x1x1 1 0 1", &p));
	assert_false(vc_plan_table_find(&t, "data f64 nchw 1x1x1 1x1x1 1x1x1 1 0 1", &p));
	assert_true(vc_plan_table_find(&t, "data f32 nchw 1x1x1 1x1x1 1x1x1 1 0 1", &p));
	assert_true(vc_plan_table_add(&t, "new", "3"));
	assert_true(vc_plan_table_find(&t, "new", &p) && p.at[0].bytes == 3);
	vc_plan_table_fini(&t);
	assert_true(vc_plan_table_read(&t, "/none/such", "8.0", "9", NULL) && !t.n);
}

/* ---- sizes elsewhere ---- */

static bool at(const char *one, double x, const char *two, double y, double there, char *text)
{
	struct vc_convolution a, b, out;
	const struct vc_convolution *const seen[] = { &a, &b };
	const double value[] = { x, y };

	assert_true(vc_convolution_read(one, &a) && vc_convolution_read(two, &b));
	if (!vc_convolutions_at(seen, value, 2, there, &out))
		return false;
	vc_convolution_text(&out, "", text);
	return true;
}

static void samples_and_sides_follow_a_line(void **unused)
{
	char text[VC_PLANS_KEY];

	(void)unused;
	assert_true(at(KEY, 2, "forward f32 nchw 6x3x9x9 16x3x3x3 6x16x5x5 2x2 1x1 1x1", 3, 5,
		       text));
	assert_string_equal(text, "forward f32 nchw 10x3x9x9 16x3x3x3 10x16x5x5 2x2 1x1 1x1");
	/* a side, whose output is rounded down */
	assert_true(at(KEY, 9, "forward f32 nchw 4x3x12x12 16x3x3x3 4x16x6x6 2x2 1x1 1x1", 12, 16,
		       text));
	assert_string_equal(text, "forward f32 nchw 4x3x16x16 16x3x3x3 4x16x8x8 2x2 1x1 1x1");
	/* no whole number of samples there, or none at all */
	assert_false(at(KEY, 2, "forward f32 nchw 7x3x9x9 16x3x3x3 7x16x5x5 2x2 1x1 1x1", 4, 5,
			text));
	assert_false(at(KEY, 2, "forward f32 nchw 6x3x9x9 16x3x3x3 6x16x5x5 2x2 1x1 1x1", 8, -99,
			text));
	assert_false(at(KEY, 2, "forward f32 nchw 6x3x9x9 16x3x3x3 6x16x5x5 2x2 1x1 1x1", 3, 1e30,
			text));
}

/* ---- a prediction ---- */

/* Three convolutions: one borrows 1000 bytes a sample, one 4096 a sample from eight on, one 777 a
 * sample up to eight. */
static const char *const layer[] = {
	"forward f32 nchw %dx3x9x9 16x3x3x3 %dx16x5x5 2x2 1x1 1x1",
	"forward f32 nchw %dx16x5x5 16x16x3x3 %dx16x5x5 1x1 1x1 1x1",
	"data f32 nchw %dx16x5x5 16x16x1x1 %dx16x5x5 1x1 0x0 1x1",
};
enum { LAYERS = 3 };

static uint64_t borrowed(int which, int n)
{
	return which == 0 ? 1000u * (unsigned)n : which == 1 ? (n >= 8 ? 4096u * (unsigned)n : 0) :
							       (n <= 8 ? 777u * (unsigned)n : 0);
}

/* cuDNN, with a plan on tensor cores in front, which borrows more, and a slow one behind, which
 * borrows three times as much. */
struct library {
	uint64_t asked;
	unsigned other; /* layers, a bit each, that it names wrong, ... */
	int at;         /* ... for so many samples; 0: any number */
};

static bool names(void *arg, const char *version, const char *key, struct vc_cudnn_plans *out)
{
	struct library *l = arg;
	struct vc_convolution c;

	l->asked++;
	*out = (struct vc_cudnn_plans){ .n = 0 };
	if (strstr(key, "/fallback"))
		return true;
	if (strcmp(version, "9.19.0") != 0 || !vc_convolution_read(key, &c))
		return false;
	int n = (int)c.x[0], which = c.direction == VC_CONVOLUTION_DATA ? 2 : c.x[1] == 16;

	*out = (struct vc_cudnn_plans){ .n = 3, .at = {
		{ .bytes = 1 << 20, .notes = 1 },
		{ .bytes = (int64_t)borrowed(which, n) +
			   ((!l->at || l->at == n) && l->other >> which & 1) },
		{ .bytes = 3 * (int64_t)borrowed(which, n) } } };
	return true;
}

static unsigned more; /* layers that all borrow as the first does */

static bool benchmark; /* the plans of the first layer are tried before */

static void add(struct vc_trace *t, uint8_t kind, uint64_t id, uint64_t size, uint32_t label)
{
	struct vc_event e = { .kind = kind, .id = id, .size = size, .addr = 4096 * (id + 1),
			      .label = label };

	if (kind == VC_EV_PLAN) {
		e.addr = size ? e.addr : 0;
		e.id = 0;
	}
	assert_int_equal(vc_trace_append(t, &e, 1, NULL), 0);
}

static struct vc_trace run(int batch, bool simulated, const char *version)
{
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	uint64_t id = 0;

	add(&t, VC_EV_ALLOC, ++id, 1000000, 0);
	for (int i = 0; i < LAYERS; i++) {
		char text[200];
		size_t at = (size_t)snprintf(text, sizeof(text), VC_LABEL_CUDNN "%s ", version);
		uint64_t bytes = borrowed(i, batch), tensor = ++id;

		snprintf(text + at, sizeof(text) - at, layer[i], batch, batch);
		uint32_t label = vc_meta_string(t.meta, text, strlen(text));

		add(&t, VC_EV_ALLOC, tensor, (uint64_t)batch * (300000u + 1000u * (unsigned)i), 0);
		if (benchmark && !i) {
			add(&t, VC_EV_ALLOC, ++id, 3 * bytes, 0);
			for (int tries = 0; tries < 4; tries++)
				add(&t, VC_EV_PLAN, id, tries < 2 ? bytes : 3 * bytes, label);
			add(&t, VC_EV_FREE, id, 0, 0);
		}
		if (bytes)
			add(&t, VC_EV_ALLOC, ++id, bytes, 0);
		add(&t, VC_EV_PLAN, id, bytes, label);
		if (bytes)
			add(&t, VC_EV_FREE, id, 0, 0);
	}
	for (unsigned i = 0; i < more; i++) {
		char text[200];

		snprintf(text, sizeof(text), VC_LABEL_CUDNN "9.19.0 forward f32 nchw %dx3x9x9 "
			 "%ux3x3x3 %dx%ux5x5 2x2 1x1 1x1", batch, 20 + i, batch, 20 + i);
		add(&t, VC_EV_ALLOC, ++id, borrowed(0, batch), 0);
		add(&t, VC_EV_PLAN, id, borrowed(0, batch), vc_meta_string(t.meta, text,
									 strlen(text)));
		add(&t, VC_EV_FREE, id, 0, 0);
	}
	t.meta->max_id = id;
	if (simulated)
		t.meta->how[VC_CAP_NULL_GPU] = VC_HOW_RECORDED;
	vc_meta_param(t.meta, "batch", batch);
	return t;
}

static const char *version_of_b = "9.19.0";

struct scene {
	struct vc_trace a, b;
	struct vc_family *f;
	struct library library;
	struct vc_answers answers;
};

static void begin(struct scene *s, int one, int two, bool simulated)
{
	const struct vc_trace *t[] = { &s->a, &s->b };

	*s = (struct scene){ .answers = { .plans = names } };
	s->a = run(one, simulated, "9.19.0");
	s->b = run(two, simulated, version_of_b);
	s->answers.arg = &s->library;
	s->f = vc_family_new(t, 2, 0, 0, NULL);
	assert_non_null(s->f);
	vc_family_ask_cudnn(s->f, &s->answers);
}

static void end(struct scene *s)
{
	vc_family_free(s->f);
	vc_trace_fini(&s->a);
	vc_trace_fini(&s->b);
}

/* Sizes that are asked for at that batch, after the weights: "300000 1000 ..." */
static struct vc_family_report predict(struct scene *s, double batch, enum vc_bound bound,
				       char *text, size_t n)
{
	struct vc_param_value at = { "batch", batch };
	struct vc_family_ask ask = { .at = &at, .n = 1, .bound = bound };
	struct vc_family_report rep;
	struct vc_trace out;
	size_t live = 0, used = 0;

	*text = '\0';
	assert_int_equal(vc_family_at(s->f, &ask, &out, &rep, NULL), 0);
	for (size_t i = 0; i < out.n; i++) {
		const struct vc_event *e = &out.ev[i];

		live += e->kind == VC_EV_ALLOC;
		live -= e->kind == VC_EV_FREE;
		if (e->kind == VC_EV_ALLOC && e->id > 1)
			used += (size_t)snprintf(text + used, n - used, "%s%llu", used ? " " : "",
						 (unsigned long long)e->size);
	}
	assert_int_equal(live, 1 + LAYERS); /* what is borrowed is given back */
	vc_trace_fini(&out);
	return rep;
}

static void workspace_comes_goes_and_grows_as_named(void **unused)
{
	struct vc_family_report rep;
	struct scene s;
	char text[200];

	(void)unused;
	begin(&s, 2, 6, true);
	rep = predict(&s, 4, 0, text, sizeof(text));
	assert_string_equal(text, "1200000 4000 1204000 1208000 3108");
	rep = predict(&s, 10, 0, text, sizeof(text)); /* the second borrows, the third does not */
	assert_string_equal(text, "3000000 10000 3010000 40960 3020000");
	assert_int_equal(rep.named, 3);
	assert_int_equal(rep.convolutions, 3);
	assert_string_equal(rep.cudnn, "9.19.0");
	assert_false(rep.plans || rep.measured);
	rep = predict(&s, 10, VC_BOUND_HIGH, text, sizeof(text)); /* nothing is open */
	assert_string_equal(text, "3000000 10000 3010000 40960 3020000");
	end(&s);
	begin(&s, 8, 12, true); /* from above as well */
	predict(&s, 6, 0, text, sizeof(text));
	assert_string_equal(text, "1800000 6000 1806000 1812000 4662");
	end(&s);
}

/* All of its plans are, in the room of the largest; then the fastest, which is the first. */
static void what_is_tried_takes_the_room_of_the_largest(void **unused)
{
	struct vc_family_report rep;
	struct scene s;
	char text[200];

	(void)unused;
	benchmark = true;
	begin(&s, 2, 6, true);
	rep = predict(&s, 10, 0, text, sizeof(text));
	benchmark = false;
	assert_string_equal(text, "3000000 30000 10000 3010000 40960 3020000");
	assert_int_equal(rep.convolutions, 4);
	assert_int_equal(rep.named, 4);
	assert_false(rep.plans);
	assert_true(rep.measured); /* another may be the fastest there */
	end(&s);
}

/* Neither where it does so for all, nor for one of three: by chance it is right here and there. */
static void who_names_something_else_is_not_believed(void **unused)
{
	struct vc_family_report rep;
	struct scene s;
	char text[200];

	(void)unused;
	for (unsigned other = 1; other <= 7; other += 6) {
		begin(&s, 2, 6, true);
		s.library.other = other;
		rep = predict(&s, 10, 0, text, sizeof(text));
		assert_string_equal(text, "3000000 10000 3010000 3020000 7770");
		assert_int_equal(rep.named, 0);
		assert_true(rep.plans && s.library.asked);
		end(&s);
	}
}

/* Of fifteen convolutions it is wrong about one, in both recordings or in one of them. */
static void one_that_is_named_wrong_is_left_to_its_law(void **unused)
{
	struct vc_family_report rep;
	struct scene s;
	char text[1000];

	(void)unused;
	more = 12;
	for (int wrong = 0; wrong < 3; wrong++) {
		begin(&s, 2, 6, true);
		s.library.other = 4;
		s.library.at = wrong == 2 ? 6 : 2 * wrong;
		rep = predict(&s, 10, 0, text, sizeof(text));
		assert_int_equal(rep.convolutions, 15);
		assert_int_equal(rep.named, 14);
		assert_true(rep.plans && strstr(text, " 40960 ") && strstr(text, " 7770 "));
		end(&s);
	}
	more = 0;
}

static void another_card_makes_other_plans(void **unused)
{
	struct vc_param_value at = { "batch", 10 };
	struct vc_family_ask ask = { .at = &at, .n = 1, .card = { 40, 1024 } };
	struct vc_family_report rep;
	struct vc_trace out;
	struct scene s;

	(void)unused;
	begin(&s, 2, 6, true);
	assert_int_equal(vc_family_at(s.f, &ask, &out, &rep, NULL), 0);
	assert_true(!rep.named && rep.plans && rep.convolutions == 3);
	vc_trace_fini(&out);
	end(&s);
}

/* There cuDNN may order its plans otherwise: the upper end has room for others. */
static void a_card_itself_is_not_quite_what_is_named(void **unused)
{
	struct vc_family_report rep;
	struct scene s;
	char text[200];

	(void)unused;
	begin(&s, 2, 6, false);
	rep = predict(&s, 10, 0, text, sizeof(text));
	assert_string_equal(text, "3000000 10000 3010000 40960 3020000");
	assert_true(rep.plans && rep.named == 3);
	predict(&s, 10, VC_BOUND_HIGH, text, sizeof(text));
	assert_string_equal(text, "3000000 20000 3010000 40960 3020000");
	end(&s);
}

static void without_anybody_to_ask_it_is_as_before(void **unused)
{
	struct scene s;
	char text[200];

	(void)unused;
	begin(&s, 2, 6, true);
	vc_family_ask_cudnn(s.f, NULL);
	assert_int_equal(predict(&s, 10, 0, text, sizeof(text)).named, 0);
	assert_string_equal(text, "3000000 10000 3010000 3020000 7770");
	end(&s);
}

/* Gradients that begin at odd addresses have no key: cuDNN cannot be asked for them. */
static void workspace_of_a_nameless_graph_is_not_certain(void **unused)
{
	struct vc_trace t[3];
	struct vc_family_report rep;
	char low[200], high[200];

	(void)unused;
	for (int k = 0; k < 3; k++) {
		t[k] = run(2 + 2 * k, true, "9.19.0");
		for (size_t i = 0; i < t[k].n; i++)
			if (t[k].ev[i].kind == VC_EV_PLAN)
				t[k].ev[i].label = vc_meta_string(
					t[k].meta, VC_LABEL_CUDNN "9.19.0 " VC_LABEL_GRAPH, 18);
	}
	const struct vc_trace *const all[] = { &t[0], &t[1], &t[2] };
	struct scene s = { .f = vc_family_new(all, 3, 0, 0, NULL) };

	assert_non_null(s.f);
	predict(&s, 10, VC_BOUND_LOW, low, sizeof(low));
	rep = predict(&s, 10, VC_BOUND_HIGH, high, sizeof(high));
	assert_true(rep.plans);
	assert_int_equal(rep.convolutions, 2); /* those that borrow */
	assert_int_equal(rep.named, 0);
	assert_string_equal(low, "3000000 1 3010000 3020000 1");
	assert_string_equal(high, "3000000 20000 3010000 3020000 15540");
	vc_family_free(s.f);
	for (int k = 0; k < 3; k++)
		vc_trace_fini(&t[k]);
}

/* ---- which is which ---- */

static void read_all(struct vc_trace *t, struct vc_allocations *m, struct vc_convolutions *c)
{
	assert_int_equal(vc_allocations_init(m, t, 0, NULL), 0);
	assert_int_equal(vc_convolutions_read(c, m, NULL), 0);
}

static void a_longer_recording_has_the_same_convolutions(void **unused)
{
	struct vc_trace a = run(4, true, "9.19.0"), b = run(6, true, "9.19.0");
	struct vc_allocations ma, mb;
	struct vc_convolutions ca, cb;
	uint32_t other = vc_meta_string(b.meta, "cudnn/9 graph", 13);

	(void)unused;
	for (size_t i = 0, n = b.n; i < n; i++) { /* its convolutions once more */
		struct vc_event e = b.ev[i];

		if (e.kind == VC_EV_PLAN && !e.size)
			assert_int_equal(vc_trace_append(&b, &e, 1, NULL), 0);
	}
	add(&b, VC_EV_PLAN, 0, 0, other); /* of no convolution */
	add(&b, VC_EV_PLAN, 1, 77, b.ev[3].label); /* what it borrowed is not to be seen */
	read_all(&a, &ma, &ca);
	read_all(&b, &mb, &cb);
	assert_int_equal(ca.n, 3);
	assert_int_equal(cb.n, 4);
	assert_int_equal(cb.keys, 3);
	assert_int_equal(ca.call[1].block, VC_UNMATCHED);
	assert_int_equal(ca.call[2].block, 5);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(vc_convolutions_match(&ca, i, &cb), i);
		assert_int_equal(cb.key[i].c.x[0], 6);
	}
	vc_convolutions_fini(&ca);
	vc_convolutions_fini(&cb);
	vc_allocations_fini(&ma);
	vc_allocations_fini(&mb);
	vc_trace_fini(&a);
	vc_trace_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_is_read_as_it_is_written),
		cmocka_unit_test(outputs_follow_from_inputs),
		cmocka_unit_test(a_table_has_the_rows_of_one_card_and_version),
		cmocka_unit_test(samples_and_sides_follow_a_line),
		cmocka_unit_test(workspace_comes_goes_and_grows_as_named),
		cmocka_unit_test(who_names_something_else_is_not_believed),
		cmocka_unit_test(what_is_tried_takes_the_room_of_the_largest),
		cmocka_unit_test(one_that_is_named_wrong_is_left_to_its_law),
		cmocka_unit_test(another_card_makes_other_plans),
		cmocka_unit_test(a_card_itself_is_not_quite_what_is_named),
		cmocka_unit_test(without_anybody_to_ask_it_is_as_before),
		cmocka_unit_test(workspace_of_a_nameless_graph_is_not_certain),
		cmocka_unit_test(a_longer_recording_has_the_same_convolutions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
