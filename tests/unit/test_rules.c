/* SPDX-License-Identifier: Apache-2.0 */
/* test_rules.c - what a family of recordings shows besides sizes: loops, counts, whose sums are
 * of which type. */
#include "tests/support/test.h"

#include "simulator/predict/family.h"
#include "simulator/anatomy/reduction.h"
#include "simulator/anatomy/anatomy.h"

/* A recording made by hand. */
struct script { struct vc_trace t; uint64_t id; uint32_t site; };

static struct script begin(const char *name, double value)
{
	struct script s = { .t = { .meta = vc_meta_new(NULL) } };

	vc_meta_param(s.t.meta, name, value);
	return s;
}

/* Later blocks are asked for from that file; NULL: from nowhere known. */
static void from(struct script *s, const char *file)
{
	struct vc_frame f = { .file = 0, .line = 1 };

	s->site = 0;
	if (!file)
		return;
	f.file = vc_meta_string(s->t.meta, file, strlen(file));
	const char *function = !strcmp(file, "_tensor.py")    ? "backward" :
			       !strcmp(file, "functional.py") ? "einsum" : "forward";
	f.function = vc_meta_string(s->t.meta, function, strlen(function));
	s->site = vc_meta_frame(s->t.meta, f);
}

static uint64_t get(struct script *s, double size)
{
	struct vc_event e = {
		.kind = VC_EV_ALLOC, .id = ++s->id, .size = (uint64_t)size, .site = s->site };

	assert_int_equal(vc_trace_append(&s->t, &e, 1, NULL), 0);
	s->t.meta->max_id = s->id;
	return s->id;
}

static void drop(struct script *s, uint64_t id)
{
	struct vc_event e = { .kind = VC_EV_FREE, .id = id };

	assert_int_equal(vc_trace_append(&s->t, &e, 1, NULL), 0);
}

/* Most bytes alive at once. */
static uint64_t peak(const struct vc_trace *t)
{
	uint64_t *size = calloc(t->n + 4096, sizeof(*size)), live = 0, most = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct vc_event *e = &t->ev[i];

		assert_true(e->id < t->n + 4096);
		if (e->kind == VC_EV_ALLOC)
			live += size[e->id] = e->size;
		else if (e->kind == VC_EV_FREE)
			live -= size[e->id];
		most = live > most ? live : most;
	}
	assert_true(live < most);
	free(size);
	return most;
}

static size_t requests(const struct vc_trace *t, uint64_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += t->ev[i].kind == VC_EV_ALLOC && (!size || t->ev[i].size == size);
	return n;
}

/* Predict `name` = value from two recordings, which are given up. */
static struct vc_trace predict(struct script a, struct script b, const char *name, double value,
			       struct vc_family_report *rep)
{
	const struct vc_trace *t[] = { &a.t, &b.t };
	struct vc_family *f = vc_family_new(t, 2, 0, false, NULL);
	struct vc_param_value at = { (char *)(uintptr_t)name, value };
	struct vc_family_ask ask = { .at = &at, .n = 1 };
	struct vc_error err = { 0 };
	struct vc_trace o;

	assert_non_null(f);
	if (vc_family_at(f, &ask, &o, rep, &err) != 0)
		fail_msg("%s", err.message);
	vc_family_free(f);
	vc_trace_fini(&a.t);
	vc_trace_fini(&b.t);
	return o;
}

/* A cell over the frames, three steps: each turn keeps two blocks for its own backward turn, and
 * hands one on. */
static struct script cell(int frames)
{
	struct script s = begin("frames", frames);
	uint64_t kept[64][2];

	get(&s, 500000);
	for (int step = 0; step < 3; step++) {
		uint64_t batch = get(&s, 7000.0 * frames), state = get(&s, 9000);

		for (int t = 0; t < frames; t++) {
			kept[t][0] = get(&s, 100000);
			uint64_t was = state, gone = get(&s, 3000);

			kept[t][1] = get(&s, 60000);
			state = get(&s, 9000);
			drop(&s, gone);
			drop(&s, was);
		}
		uint64_t loss = get(&s, 44);
		for (int t = frames; t-- > 0;) {
			uint64_t a = get(&s, 60000), b = get(&s, 100000), c = get(&s, 2000),
				 d = get(&s, 5000);

			drop(&s, kept[t][1]);
			drop(&s, kept[t][0]);
			drop(&s, a);
			drop(&s, b);
			drop(&s, c);
			drop(&s, d);
		}
		drop(&s, loss);
		drop(&s, state);
		drop(&s, batch);
	}
	return s;
}

static void a_loop_turns_as_often_as_the_parameter_says(void **unused)
{
	struct vc_family_report rep;
	struct vc_trace o = predict(cell(6), cell(8), "frames", 20, &rep);
	struct script want = cell(20);

	(void)unused;
	assert_int_equal(rep.turns, 3 * 2 * 12);
	assert_int_equal(requests(&o, 0), requests(&want.t, 0));
	assert_int_equal(requests(&o, 100000), requests(&want.t, 100000));
	assert_true(peak(&o) == peak(&want.t));
	vc_trace_fini(&o);
	vc_trace_fini(&want.t);
}

/* Frames that a strided convolution leaves, t = x / 4 - 1, distances between them, 2 t - 1, and
 * their product. */
static struct script speech(double x)
{
	struct script s = begin("seq", x);
	double t = x / 4 - 1;

	for (int layer = 0; layer < 10; layer++) {
		uint64_t a = get(&s, t * 4096), b = get(&s, (2 * t - 1) * 768),
			 c = get(&s, t * (2 * t - 1) * 64);
		drop(&s, c);
		drop(&s, b);
		drop(&s, a);
	}
	return s;
}

static void a_product_of_two_counts_is_one(void **unused)
{
	struct vc_trace o = predict(speech(100), speech(140), "seq", 600, NULL);

	(void)unused;
	assert_int_equal(requests(&o, 149 * 4096), 10);
	assert_int_equal(requests(&o, 297 * 768), 10);
	assert_int_equal(requests(&o, 149 * 297 * 64), 10);
	vc_trace_fini(&o);
}

/* A layer of one pixel behind one of three by three, or two linear layers with the same sizes:
 * forward, then the gradients of the second, then those of the first, whose bias is summed over
 * 4,096 rows for each sample. */
static struct script layers(double n, const char *file)
{
	struct script s = begin("batch", n);

	from(&s, file);
	uint64_t one = get(&s, n * 16 * 4096 * 4), two = get(&s, n * 32 * 64 * 4);
	from(&s, "script.py");
	uint64_t loss = get(&s, 4);
	from(&s, NULL);
	uint64_t grad = get(&s, n * 32 * 64 * 4), in = get(&s, n * 16 * 64 * 4);
	get(&s, 32 * 16 * 4);
	get(&s, 32 * 4);
	drop(&s, grad);
	uint64_t map = get(&s, n * 16 * 4096 * 4);
	drop(&s, in);
	get(&s, 16 * 27 * 4);
	get(&s, 16 * 4);
	drop(&s, map);
	drop(&s, loss);
	drop(&s, two);
	drop(&s, one);
	return s;
}

static void maps_of_a_convolution_are_no_rows(void **unused)
{
	struct vc_family_report rep;
	static const char conv[] = "torch/nn/modules/conv.py",
			  linear[] = "torch/nn/modules/linear.py";
	struct vc_trace o = predict(layers(2, conv), layers(4, conv), "batch", 64, &rep);

	(void)unused;
	assert_int_equal(rep.scratch_new, 0);
	vc_trace_fini(&o);
	o = predict(layers(2, linear), layers(4, linear), "batch", 64, &rep);
	assert_int_equal(rep.scratch_new, 1);
	vc_trace_fini(&o);
}

/* A linear layer under autocast with 192 inputs and 768 outputs: a block in float has the size
 * that the rows would have if the gradients were in float, and these are cast later. */
static struct script autocast(double n, double bytes)
{
	struct script s = begin("batch", n);
	double rows = 148 * n;

	get(&s, 768 * 192 * 4);
	get(&s, 768 * 4);
	uint64_t residual = get(&s, rows * 192 * 4), out = get(&s, rows * 768 * bytes),
		 in = get(&s, rows * 192 * bytes);
	uint64_t weight = get(&s, 768 * 192 * bytes), bias = get(&s, 768 * bytes);
	drop(&s, out);
	for (int i = 0; i < 12; i++)
		drop(&s, get(&s, 100 + i));
	drop(&s, weight);
	drop(&s, bias);
	drop(&s, in);
	drop(&s, residual);
	for (int i = 0; i < 12; i++)
		drop(&s, get(&s, 100 + i));
	return s;
}

static void parameters_tell_in_which_type_sums_are(void **unused)
{
	const struct vc_reduction_card card = { 132, 2048 };
	uint64_t partial, semaphores;
	struct vc_family_report rep;
	struct vc_trace o = predict(autocast(2, 2), autocast(4, 2), "batch", 32, &rep);

	(void)unused;
	assert_true(vc_reduction(768, 148 * 32, &card, &partial, &semaphores));
	assert_int_equal(rep.scratch_new, 1);
	assert_int_equal(requests(&o, partial), 1);
	vc_trace_fini(&o);
}

/* A sum over rows that has buffers from 1,021 rows on, the first of twice the bytes of the block
 * behind it. */
static struct script beside(double n)
{
	const struct vc_reduction_card card = { 132, 2048 };
	struct script s = begin("batch", n);
	uint64_t partial = 0, semaphores = 0, twice = 0;
	double rows = 256 * n;

	assert_true(vc_reduction(128, 1024, &card, &twice, &semaphores));
	uint64_t in = get(&s, rows * 48 * 4), out = get(&s, rows * 128 * 4);
	for (int layer = 0; layer < 6; layer++) {
		uint64_t data = get(&s, rows * 48 * 4);
		get(&s, 128 * 48 * 4);
		get(&s, 128 * 4);
		if (vc_reduction(128, (uint64_t)rows, &card, &partial, &semaphores)) {
			uint64_t a = get(&s, (double)partial), b = get(&s, (double)semaphores);
			drop(&s, b);
			drop(&s, a);
		}
		get(&s, (double)twice / 2);
		drop(&s, data);
	}
	drop(&s, out);
	drop(&s, in);
	return s;
}

static void buffers_are_not_taken_for_data(void **unused)
{
	const struct vc_reduction_card card = { 132, 2048 };
	uint64_t twice, semaphores;
	struct vc_trace o = predict(beside(2), beside(4), "batch", 8, NULL);

	(void)unused;
	assert_true(vc_reduction(128, 1024, &card, &twice, &semaphores));
	assert_int_equal(requests(&o, twice / 2), 6);
	vc_trace_fini(&o);
}

/* A loss that is evaluated as often as the batch or the data ask for. */
static struct script evaluations(double n, int times)
{
	struct script s = begin("batch", n);

	get(&s, 100000);
	for (int k = 0; k < times; k++) {
		from(&s, "loss.py");
		uint64_t a = get(&s, n * 40000), b = get(&s, n * 30000);
		from(&s, NULL);
		uint64_t c = get(&s, n * 20000);
		drop(&s, get(&s, 77));
		drop(&s, c);
		drop(&s, b);
		drop(&s, a);
	}
	return s;
}

static void one_more_evaluation_is_no_other_configuration(void **unused)
{
	struct vc_trace o = predict(evaluations(4, 2), evaluations(8, 3), "batch", 32, NULL);

	(void)unused;
	assert_in_range(requests(&o, 32 * 40000), 3, 12); /* the most that was seen, a share */
	assert_int_equal(requests(&o, 32 * 20000), requests(&o, 32 * 40000));
	vc_trace_fini(&o);
	o = predict(evaluations(4, 2), evaluations(8, 4), "batch", 32, NULL);
	assert_int_equal(requests(&o, 32 * 40000), 16); /* a turn for every two of the batch */
	vc_trace_fini(&o);
}

enum { LAYERS = 8 };

/* SGD with momentum: only its first step asks for anything. */
static void an_optimizer_that_is_silent_later_ends_no_recording(void **unused)
{
	struct script s = begin("batch", 8);
	struct vc_anatomy a;

	(void)unused;
	uint64_t kept[LAYERS], grad[LAYERS];
	for (int i = 0; i < LAYERS; i++)
		get(&s, 400000 + 4096 * i);
	for (int step = 0; step < 6; step++) {
		from(&s, "model.py");
		uint64_t x = get(&s, 5000);
		for (int i = 0; i < LAYERS; i++)
			kept[i] = get(&s, 70000 + 512 * i);
		uint64_t loss = get(&s, 4);
		from(&s, "_tensor.py");
		uint64_t seed = get(&s, 4);
		from(&s, NULL);
		for (int i = LAYERS; i-- > 0;) {
			grad[i] = get(&s, 400000 + 4096 * i);
			drop(&s, kept[i]);
		}
		drop(&s, seed);
		from(&s, "sgd.py");
		for (int i = 0; !step && i < LAYERS; i++)
			get(&s, 400000 + 4096 * i);
		for (int i = 0; i < LAYERS; i++)
			drop(&s, grad[i]);
		drop(&s, loss);
		drop(&s, x);
	}
	assert_int_equal(vc_anatomy_read(&a, s.t.ev, s.t.n, 0, s.t.meta, NULL), 0);
	assert_true(a.iterations > 3);
	vc_anatomy_fini(&a);
	vc_trace_fini(&s.t);
}

/* A mixture of experts with a capacity, t tokens of width 256: what sends each token to its place
 * grows with the square, which one recording cannot know, and the upper end holds. */
static struct script experts(double n)
{
	struct script s = begin("batch", n);
	double t = 128 * n, places = t / 8 * 1.25 * 8;

	get(&s, 256 * 4);
	for (int step = 0; step < 4; step++) {
		from(&s, "moe.py");
		uint64_t data = get(&s, t * 256 * 4);
		for (int i = 0; i < 6; i++)
			drop(&s, get(&s, t * 32));
		uint64_t mask = get(&s, t * places * 4);
		from(&s, "functional.py");
		uint64_t to = get(&s, places * 256 * 4);
		from(&s, "moe.py");
		for (int i = 0; i < 14; i++)
			drop(&s, get(&s, t * 32));
		drop(&s, to);
		drop(&s, mask);
		drop(&s, data);
	}
	return s;
}

static void an_upper_end_holds_experts_with_a_capacity(void **unused)
{
	struct script a = experts(3), want = experts(12);
	const struct vc_trace *t[] = { &a.t };
	struct vc_family *f = vc_family_new(t, 1, 0, false, NULL);
	struct vc_param_value at = { "batch", 12 };
	struct vc_family_ask ask = { .at = &at, .n = 1, .bound = VC_BOUND_HIGH };
	struct vc_trace o;

	(void)unused;
	assert_non_null(f);
	assert_int_equal(vc_family_at(f, &ask, &o, NULL, NULL), 0);
	assert_true(peak(&o) >= peak(&want.t));
	vc_family_free(f);
	vc_trace_fini(&a.t);
	vc_trace_fini(&want.t);
	vc_trace_fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_loop_turns_as_often_as_the_parameter_says),
		cmocka_unit_test(a_product_of_two_counts_is_one),
		cmocka_unit_test(maps_of_a_convolution_are_no_rows),
		cmocka_unit_test(parameters_tell_in_which_type_sums_are),
		cmocka_unit_test(buffers_are_not_taken_for_data),
		cmocka_unit_test(one_more_evaluation_is_no_other_configuration),
		cmocka_unit_test(an_optimizer_that_is_silent_later_ends_no_recording),
		cmocka_unit_test(an_upper_end_holds_experts_with_a_capacity),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
