/* SPDX-License-Identifier: Apache-2.0 */
/* test_family.c - events at a value nobody recorded, from small recordings made by hand. */
#include "tests/support/test.h"

#include "common/torch_sizes.h"
#include "simulator/predict/align.h"
#include "simulator/predict/family.h"

/* A toy training step: parameter, input, activation, score matrix, loss; extra: a buffer that only
 * larger sizes have. */
static struct vc_trace toy(double batch, double seq, bool extra)
{
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	uint64_t b = (uint64_t)batch, s = (uint64_t)seq;
	const uint64_t size[] = { 1000000, b * s * 8, b * s * 4096, b * s * s * 64, extra ? 777 : 0,
				  b * (s - 1) * 400 };
	struct vc_event e = { .kind = VC_EV_ALLOC };

	for (size_t i = 0; i < 6; i++) {
		e.id = i + 1;
		e.size = size[i];
		if (e.size)
			assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	}
	e.kind = VC_EV_FREE;
	for (size_t i = 6; i-- > 1;) {
		e.id = i + 1;
		if (size[i])
			assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	}
	t.meta->max_id = 6;
	vc_meta_param(t.meta, "batch", batch);
	vc_meta_param(t.meta, "seq", seq);
	return t;
}

static uint64_t allocated(const struct vc_trace *t, size_t k)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->ev[i].kind == VC_EV_ALLOC && !k--)
			return t->ev[i].size;
	return 0;
}

/* On a card of another kind cuBLAS's workspace is another; no tensor has its size. */
static void a_handle_of_cublas_is_that_of_the_card(void **unused)
{
	struct vc_trace a = toy(7, 128, false), b = toy(11, 128, false), o;
	const struct vc_trace *t[] = { &a, &b };
	struct vc_event e = { .kind = VC_EV_ALLOC, .id = 7, .size = vc_torch_workspace_on(8, 11) };
	struct vc_param_value at = { "batch", 64 };
	struct vc_family_ask ask = { .at = &at, .n = 1 };

	(void)unused;
	assert_int_equal(vc_torch_workspace_on(9, 0), 32 << 20);
	assert_true(vc_torch_workspace_on(10, 11) == e.size);
	assert_int_equal(vc_torch_workspace_on(10, 12), 32 << 20);
	for (int i = 0; i < 2; i++) {
		struct vc_trace *one = i ? &b : &a;

		assert_int_equal(vc_trace_append(one, &e, 1, NULL), 0);
		one->meta->max_id = 7;
	}
	struct vc_family *f = vc_family_new(t, 2, 0, 0, NULL);

	for (int other = 0; other < 2; other++) {
		ask.cublas = other ? 32 << 20 : 0;
		assert_int_equal(vc_family_at(f, &ask, &o, NULL, NULL), 0);
		assert_true(allocated(&o, 5) == (other ? ask.cublas : e.size));
		vc_trace_fini(&o);
	}
	vc_family_free(f);
	vc_trace_fini(&a);
	vc_trace_fini(&b);
}

/* The k-th allocations of a prediction at that batch are those of `want`, for the first n. */
static struct vc_family_report same_sizes(struct vc_trace *a, struct vc_trace *b, double batch,
					  struct vc_trace *want, size_t n)
{
	const struct vc_trace *t[] = { a, b };
	struct vc_family *f = vc_family_new(t, 2, 0, 0, NULL);
	struct vc_param_value at = { "batch", batch };
	struct vc_family_ask ask = { .at = &at, .n = 1 };
	struct vc_family_report rep;
	struct vc_trace o;

	assert_non_null(f);
	assert_int_equal(vc_family_at(f, &ask, &o, &rep, NULL), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(allocated(&o, i), allocated(want, i));
	vc_family_free(f);
	vc_trace_fini(a);
	vc_trace_fini(b);
	vc_trace_fini(&o);
	vc_trace_fini(want);
	return rep;
}

static void two_recordings_give_the_exact_sizes_of_a_third(void **unused)
{
	struct vc_trace a = toy(7, 128, false), b = toy(11, 128, false),
			want = toy(64, 128, false);
	struct vc_family_report rep = same_sizes(&a, &b, 64, &want, 5);

	(void)unused;
	assert_int_equal(rep.base, 1);
	assert_true(rep.explained == rep.bytes);
}

static void batch_and_length_at_once_from_three(void **unused)
{
	struct vc_trace a = toy(8, 128, false), b = toy(16, 128, false), c = toy(8, 200, false), o;
	struct vc_trace want = toy(24, 512, false);
	const struct vc_trace *t[] = { &a, &b, &c };
	struct vc_family *f = vc_family_new(t, 3, 0, 0, NULL);
	struct vc_param_value at[] = { { "batch", 24 }, { "seq", 512 } };
	struct vc_family_ask ask = { .at = at, .n = 2, .has_order = true, .order = 0 };

	(void)unused;
	assert_non_null(f);
	assert_int_equal(vc_family_at(f, &ask, &o, NULL, NULL), 0);
	for (size_t i = 0; i < 5; i++)
		assert_true(allocated(&o, i) == allocated(&want, i));
	ask.order = 1; /* it differs from the others in the batch alone, or in both */
	vc_trace_fini(&o);
	assert_int_equal(vc_family_at(f, &ask, &o, NULL, NULL), VC_ENOSUP);
	vc_family_free(f);
	vc_trace_fini(&a);
	vc_trace_fini(&b);
	vc_trace_fini(&c);
	vc_trace_fini(&o);
	vc_trace_fini(&want);
}

static void what_only_the_nearest_has_makes_an_interval(void **unused)
{
	struct vc_trace a = toy(8, 128, false), b = toy(16, 128, true), o;
	const struct vc_trace *t[] = { &a, &b };
	struct vc_family *f = vc_family_new(t, 2, 0, 0, NULL);
	struct vc_param_value at = { "batch", 32 };
	struct vc_family_ask ask = { .at = &at, .n = 1 };
	struct vc_family_report rep;

	(void)unused;
	assert_non_null(f);
	assert_int_equal(vc_family_at(f, &ask, &o, &rep, NULL), 0);
	assert_int_equal(rep.bytes - rep.explained, 777);
	assert_int_equal(allocated(&o, 4), 777);
	vc_trace_fini(&o);
	ask.bound = VC_BOUND_HIGH;
	assert_int_equal(vc_family_at(f, &ask, &o, &rep, NULL), 0);
	assert_int_equal(allocated(&o, 4), 2 * 777);
	vc_trace_fini(&o);
	vc_family_free(f);
	vc_trace_fini(&a);
	vc_trace_fini(&b);
}

/* The backward pass of a linear layer with 512 inputs and 256 outputs; the product of its weight's
 * gradient borrows a workspace. */
static struct vc_trace linear(double rows, bool workspace)
{
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	const uint64_t r = (uint64_t)rows,
		       size[] = { r * 512 * 4, r * 256 * 4, 256 * 512 * 4, 33554432, 256 * 4 };
	struct vc_event e = { .kind = VC_EV_ALLOC };

	for (size_t i = 0; i < 5; i++) {
		e.kind = VC_EV_ALLOC;
		e.id = i + 1;
		e.size = size[i];
		if (i != 3 || workspace)
			assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
		e.kind = VC_EV_FREE;
		if (i == 3 && workspace)
			assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	}
	for (e.id = 1; e.id <= 2; e.id++)
		assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	t.meta->max_id = 5;
	vc_meta_param(t.meta, "batch", rows);
	return t;
}

static void a_borrowed_workspace_hides_no_bias_gradient(void **unused)
{
	(void)unused;
	for (int workspace = 0; workspace < 2; workspace++) {
		struct vc_trace a = linear(100, workspace), b = linear(200, workspace), o;
		const struct vc_trace *t[] = { &a, &b };
		struct vc_family *f = vc_family_new(t, 2, 0, 0, NULL);
		struct vc_param_value at = { "batch", 4096 };
		struct vc_family_ask ask = { .at = &at, .n = 1 };
		struct vc_family_report rep;

		assert_non_null(f);
		assert_int_equal(vc_family_at(f, &ask, &o, &rep, NULL), 0);
		assert_int_equal(rep.workspace_new, 1);
		assert_int_equal(allocated(&o, 4 + (size_t)workspace), 4ull * 256 * 64 * 128);
		vc_family_free(f);
		vc_trace_fini(&a);
		vc_trace_fini(&b);
		vc_trace_fini(&o);
	}
}

/* The mean of each of 256 maps of 56 by 56 pixels with the channels last: sums of each picture's
 * own rows, with the buffers that a card of 132 multiprocessors needs. */
static struct vc_trace means(double pictures)
{
	const struct vc_reduction_card card = { 132, 2048 };
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	uint64_t n = (uint64_t)pictures * 256, rows = 56ull * 56;
	uint64_t size[] = { 1000000, rows * n * 4, n * 4, 0, 0 };
	struct vc_event e = { .kind = VC_EV_ALLOC };

	assert_true(vc_reduction(n, rows, &card, &size[3], &size[4]));
	for (size_t i = 0; i < 5; i++) {
		e.id = i + 1;
		e.size = size[i];
		assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	}
	e.kind = VC_EV_FREE;
	for (e.id = 5; e.id > 1; e.id--)
		assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	t.meta->max_id = 5;
	vc_meta_param(t.meta, "batch", pictures);
	return t;
}

static void buffers_of_sums_that_grow_follow_the_launch(void **unused)
{
	struct vc_trace a = means(32), b = means(48), want = means(64);

	(void)unused;
	assert_int_equal(same_sizes(&a, &b, 64, &want, 5).workspace, 1);
}

/* Which of 20,000 codes lies nearest to each of so many points: argmin over the rows of a table of
 * floats, a value beside its place for each partial result. */
static struct vc_trace codes(double points)
{
	const struct vc_reduction_card card = { 132, 2048 };
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	uint64_t n = (uint64_t)points, size[] = { 1000000, 20000 * n * 4, n * 8, 0, 0 };
	struct vc_event e = { .kind = VC_EV_ALLOC };

	assert_true(vc_reduction(n, 20000, &card, &size[3], &size[4]));
	size[3] *= 4;
	for (e.id = 1; e.id <= 5; e.id++) {
		e.size = size[e.id - 1];
		assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	}
	e.kind = VC_EV_FREE;
	for (e.id = 5; e.id > 1; e.id--)
		assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	t.meta->max_id = 5;
	vc_meta_param(t.meta, "batch", points);
	return t;
}

/* They grow with the points until they fill the card, and no further. */
static void buffers_of_places_follow_the_launch(void **unused)
{
	struct vc_trace a = codes(256), b = codes(384), want = codes(2048);

	(void)unused;
	assert_int_equal(same_sizes(&a, &b, 2048, &want, 5).workspace, 1);
	a = codes(1024);
	b = codes(2048);
	want = codes(256);
	assert_int_equal(same_sizes(&a, &b, 256, &want, 5).workspace, 1);
}

static void other_configurations_are_refused_with_the_share(void **unused)
{
	struct vc_trace a = toy(8, 128, false), b = toy(16, 128, false);
	const struct vc_trace *t[] = { &a, &b };
	struct vc_param_value at = { "batch", 32 };
	struct vc_family_ask ask = { .at = &at, .n = 1 };
	struct vc_error err;
	struct vc_trace o;

	(void)unused;
	for (size_t i = 0; i < a.n; i++)
		if (a.ev[i].size > 1000000)
			a.ev[i].size += 12345678; /* as if of another type */
	struct vc_family *f = vc_family_new(t, 2, 0, 0, &err);
	assert_non_null(f);
	assert_int_equal(vc_family_at(f, &ask, &o, NULL, &err), VC_EUSAGE);
	assert_non_null(strstr(err.message, "%"));
	vc_family_free(f);
	vc_trace_fini(&a);
	vc_trace_fini(&b);
}

/* All of the smaller one is in the larger one, not the other way round. */
static void they_are_refused_whatever_the_target(void **unused)
{
	struct vc_trace a = toy(8, 128, false), b = toy(16, 128, false), o;
	const struct vc_trace *t[] = { &a, &b };
	struct vc_event e = { .kind = VC_EV_ALLOC, .id = 7, .size = 23456789 };
	struct vc_param_value at = { "batch", 4 };
	struct vc_family_ask ask = { .at = &at, .n = 1 };

	(void)unused;
	for (b.meta->max_id = 7; e.kind <= VC_EV_FREE; e.kind++)
		assert_int_equal(vc_trace_append(&b, &e, 1, NULL), 0);
	struct vc_family *f = vc_family_new(t, 2, 0, 0, NULL);
	assert_non_null(f);
	for (at.value = 4; at.value <= 64; at.value *= 2)
		assert_int_equal(vc_family_at(f, &ask, &o, NULL, NULL), VC_EUSAGE);
	vc_family_free(f);
	vc_trace_fini(&a);
	vc_trace_fini(&b);
}

/* So many turns of a loop over one sample, beside a batch that stays. */
static struct vc_trace loop(double batch, unsigned turns, uint64_t stray)
{
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	struct vc_event e = { .kind = VC_EV_ALLOC, .id = 1, .size = (uint64_t)batch * 65536 };

	assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	for (unsigned i = 0; i < 3 * turns; i++) {
		e = (struct vc_event){ .kind = VC_EV_ALLOC, .id = i + 2,
				       .size = i == 4 && stray ? stray : (i % 3 + 1) * 1000000 };
		assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
		e.kind = VC_EV_FREE;
		assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	}
	e = (struct vc_event){ .kind = VC_EV_ALLOC, .id = 3 * turns + 2, .size = 512 };
	assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	t.meta->max_id = e.id;
	vc_meta_param(t.meta, "batch", batch);
	return t;
}

/* The turns more of a loop are no other configuration; what else one of them has is. */
static void a_loop_may_run_more_often(void **unused)
{
	const uint64_t stray[] = { 0, 7654321 };

	(void)unused;
	for (size_t i = 0; i < 2; i++) {
		struct vc_trace a = loop(8, 2, stray[i]), b = loop(16, 8, 0), o = { 0 };
		const struct vc_trace *t[] = { &a, &b };
		struct vc_param_value at = { "batch", 32 };
		struct vc_family_ask ask = { .at = &at, .n = 1 };
		struct vc_family_report rep;
		struct vc_family *f = vc_family_new(t, 2, 0, 0, NULL);

		assert_non_null(f);
		assert_int_equal(vc_family_at(f, &ask, &o, &rep, NULL), i ? VC_EUSAGE : VC_OK);
		if (!i) {
			assert_true(rep.repeated > 0.5 && rep.unmatched < 0.05);
			assert_int_equal(allocated(&o, 0), 32 * 65536);
		}
		vc_family_free(f);
		vc_trace_fini(&a);
		vc_trace_fini(&b);
		vc_trace_fini(&o);
	}
}

/* Sizes of `n` lines through two samples, offset by so much of their slope each. */
static struct vc_trace lines(double batch, unsigned n, double shift, double each)
{
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	struct vc_event e = { .kind = VC_EV_ALLOC };

	for (unsigned i = 0; i < n; i++) {
		e.id = i + 1;
		e.size = (uint64_t)((batch + shift + each * i) * 65536 * (i + 1));
		assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	}
	t.meta->max_id = n;
	vc_meta_param(t.meta, "batch", batch);
	return t;
}

/* Two recordings: offsets that differ are lines; many sizes that all grow by one factor, which is
 * not the parameter's, follow something else. */
static void many_sizes_of_one_factor_follow_something_else(void **unused)
{
	const double each[] = { 11.5, 0 };

	(void)unused;
	for (size_t i = 0; i < 2; i++) {
		struct vc_trace a = lines(8, 6, 20.5, each[i]), b = lines(16, 6, 20.5, each[i]),
				want = lines(32, 6, 20.5, each[i]);
		struct vc_family_report rep = same_sizes(&a, &b, 32, &want, 6);

		assert_true(i ? rep.unsure == 1 && rep.lines == 0 :
				rep.unsure == 0 && rep.lines == 1);
	}
}

static void four_parameters_may_differ_and_no_fifth(void **unused)
{
	static const char *const name[] = { "batch", "heads", "depth", "width", "rank" };
	struct vc_trace r[6];
	const struct vc_trace *t[6];
	struct vc_error err = { 0 };

	(void)unused;
	for (size_t i = 0; i < 6; i++) { /* each differs from the first in one */
		r[i] = toy(i == 1 ? 16 : 8, 128, false);
		for (size_t k = 1; k < 5; k++)
			vc_meta_param(r[i].meta, name[k], i == k + 1 ? 2 : 1);
		t[i] = &r[i];
	}
	struct vc_family *f = vc_family_new(t, 5, 0, 0, &err);
	assert_non_null(f);
	vc_family_free(f);
	assert_null(vc_family_new(t, 6, 0, 0, &err));
	assert_non_null(strstr(err.message, "more than 4 parameters"));
	for (size_t i = 0; i < 6; i++)
		vc_trace_fini(&r[i]);
}

static void an_insertion_does_not_shift_the_rest(void **unused)
{
	struct vc_take a[40], b[42];
	struct vc_ratios r = { .at = { 1, 2 }, .n = 2 };
	uint32_t m[40];

	(void)unused;
	for (size_t i = 0; i < 40; i++)
		a[i] = (struct vc_take){ .size = 1000 * (i % 7 + 1), .life = 3 };
	for (size_t i = 0, k = 0; i < 40; i++) {
		if (i == 11 || i == 30)
			b[k++] = (struct vc_take){ .size = 999999, .life = 1 };
		b[k] = a[i];
		b[k++].size *= i % 3 ? 2 : 1;
	}
	assert_int_equal(vc_align(a, 40, b, 42, &r, m, NULL), 0);
	for (size_t i = 0; i < 40; i++)
		assert_int_equal(m[i], i + (i >= 11) + (i >= 30));
}

/* A batch that is pinned, in whole powers of two as PyTorch asks for it. */
static struct vc_trace pinned(double batch, uint64_t bytes)
{
	struct vc_trace t = toy(batch, 128, false);
	struct vc_event e = { .kind = VC_EV_OUTSIDE_ALLOC, .addr = 4096, .size = bytes };

	e.label = vc_meta_string(t.meta, VC_LABEL_PINNED, sizeof(VC_LABEL_PINNED) - 1);
	assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	return t;
}

static void pinned_memory_grows_with_the_batch(void **unused)
{
	struct vc_trace a = pinned(4, 1 << 20), b = pinned(6, 2 << 20), o;
	const struct vc_trace *t[] = { &a, &b };
	struct vc_family *f = vc_family_new(t, 2, 0, 0, NULL);
	struct vc_param_value at = { "batch", 24 };
	struct vc_family_ask ask = { .at = &at, .n = 1 };

	(void)unused;
	assert_non_null(f);
	assert_int_equal(vc_family_at(f, &ask, &o, NULL, NULL), 0);
	assert_int_equal(o.ev[o.n - 1].kind, VC_EV_OUTSIDE_ALLOC);
	assert_int_equal(o.ev[o.n - 1].size, 8 << 20);
	vc_family_free(f);
	vc_trace_fini(&a);
	vc_trace_fini(&b);
	vc_trace_fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_handle_of_cublas_is_that_of_the_card),
		cmocka_unit_test(two_recordings_give_the_exact_sizes_of_a_third),
		cmocka_unit_test(batch_and_length_at_once_from_three),
		cmocka_unit_test(what_only_the_nearest_has_makes_an_interval),
		cmocka_unit_test(a_borrowed_workspace_hides_no_bias_gradient),
		cmocka_unit_test(buffers_of_sums_that_grow_follow_the_launch),
		cmocka_unit_test(buffers_of_places_follow_the_launch),
		cmocka_unit_test(other_configurations_are_refused_with_the_share),
		cmocka_unit_test(they_are_refused_whatever_the_target),
		cmocka_unit_test(a_loop_may_run_more_often),
		cmocka_unit_test(many_sizes_of_one_factor_follow_something_else),
		cmocka_unit_test(four_parameters_may_differ_and_no_fifth),
		cmocka_unit_test(an_insertion_does_not_shift_the_rest),
		cmocka_unit_test(pinned_memory_grows_with_the_batch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
