/* SPDX-License-Identifier: Apache-2.0 */
/* test_spread.c - steps whose sizes are those of their data, told from steps that only repeat. */
#include "tests/support/test.h"

#include "simulator/predict/family.h"
#include "simulator/predict/spread.h"

enum { BLOCKS = 20, SIZE = 1 << 20 };

/* The next stretch of a recording: so many blocks, the first of them of `size` bytes, that go at
 * its end, where a mark stands. */
static void stretch(struct vc_trace *t, uint64_t *id, unsigned blocks, uint64_t size)
{
	struct vc_event e = { .kind = VC_EV_ALLOC };

	for (unsigned i = 0; i < blocks; i++) {
		e.id = ++*id;
		e.size = i ? SIZE : size;
		assert_int_equal(vc_trace_append(t, &e, 1, NULL), 0);
	}
	for (e.kind = VC_EV_FREE; e.id > *id - blocks; e.id--)
		assert_int_equal(vc_trace_append(t, &e, 1, NULL), 0);
	e = (struct vc_event){ .kind = VC_EV_MARK, .flags = VC_MARK_STEP };
	assert_int_equal(vc_trace_append(t, &e, 1, NULL), 0);
}

/* Is a block of data that in each of so many steps is `size` bytes and `more[k]` drawn from? What
 * comes before them is no step, and the first of them makes handles. */
static bool varies(unsigned steps, uint64_t size, const double *more)
{
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	struct vc_allocations m;
	struct vc_spread s;
	uint64_t id = 0;

	t.meta->max_id = BLOCKS * (steps + 2);
	stretch(&t, &id, 3, SIZE);
	stretch(&t, &id, BLOCKS, size);
	for (unsigned k = 0; k < steps; k++)
		stretch(&t, &id, BLOCKS, (uint64_t)((double)size * (1 + more[k])));
	assert_int_equal(vc_allocations_init(&m, &t, 0, NULL), 0);
	assert_int_equal(vc_spread_read(&s, &m, NULL), 0);
	bool is = s.varies;

	if (is)
		assert_int_equal(s.steps, steps);
	vc_spread_fini(&s);
	vc_allocations_fini(&m);
	vc_trace_fini(&t);
	return is;
}

static void sizes_that_differ_by_a_rounding_are_one(void **unused)
{
	static const double rounding[] = { 0, .0015, -.0015, .0030, -.0030 },
			    data[] = { 0, .0030, -.0030, .0060, -.0060 };

	(void)unused;
	assert_false(varies(5, SIZE, rounding));
	assert_true(varies(5, SIZE, data));
}

static void little_that_varies_is_not_drawn(void **unused)
{
	static const double data[] = { .01, .03, -.02, .02, -.01 };

	(void)unused;
	assert_false(varies(5, SIZE * (BLOCKS - 1) / 250, data)); /* 0.4 % of the bytes */
	assert_true(varies(5, SIZE * (BLOCKS - 1) / 143, data));  /* 0.7 % */
}

static void three_sizes_are_data_and_two_take_turns(void **unused)
{
	static const double turns[] = { .1, .2, .1, .2, .1 }, data[] = { .1, .3, .2 };

	(void)unused;
	assert_false(varies(5, SIZE, turns));
	assert_true(varies(3, SIZE, data));
}

/* Lengths are whole numbers and are cut off: of many steps most are alike. */
static void of_many_steps_some_are_alike(void **unused)
{
	double data[48], turns[48], rare[48];
	uint64_t x = 88172645463325252u;

	(void)unused;
	for (unsigned k = 0; k < 48; k++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		data[k] = (double)(x >> 32 & 7) > 3 ? .4 : (double)(x >> 32 & 7) / 10;
		turns[k] = (double)(k % 5) / 10;
		rare[k] = k % 12 == 7 ? (double)k / 100 : 0;
	}
	turns[23] = turns[31] = .7; /* one that is otherwise now and then */
	assert_true(varies(48, SIZE, data));
	assert_false(varies(48, SIZE, turns));
	assert_false(varies(48, SIZE, rare));
}

static void what_only_grows_for_four_steps_follows_no_data(void **unused)
{
	static const double grows[] = { .1, .2, .3, .4 };

	(void)unused;
	assert_true(varies(3, SIZE, grows));
	assert_false(varies(4, SIZE, grows));
}

/* A step: blocks of those sizes, in units, then `more` blocks of SIZE. */
static void step(struct vc_trace *t, uint64_t *id, const double *size, unsigned n, unsigned more)
{
	uint64_t from = *id;
	struct vc_event e = { .kind = VC_EV_ALLOC };

	for (unsigned i = 0; i < n + more; i++) {
		e.id = ++*id;
		e.size = i < n ? (uint64_t)(size[i] * SIZE) : SIZE;
		assert_int_equal(vc_trace_append(t, &e, 1, NULL), 0);
	}
	for (e.kind = VC_EV_FREE; e.id > from; e.id--)
		assert_int_equal(vc_trace_append(t, &e, 1, NULL), 0);
	e = (struct vc_event){ .kind = VC_EV_MARK, .flags = VC_MARK_STEP };
	assert_int_equal(vc_trace_append(t, &e, 1, NULL), 0);
}

/* One block of a step is larger than in the others while the next one is smaller, and some steps
 * ask for a block more: each block stands beside its like. */
static void one_block_of_a_step_may_grow_while_another_shrinks(void **unused)
{
	static const double data[][2] = { { 8, 30 }, { 9.1, 27 }, { 7.3, 33 },
					  { 8.6, 29 }, { 7.7, 35 }, { 9.5, 26 } };
	enum { N = sizeof(data) / sizeof(*data) };
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	struct vc_allocations m;
	struct vc_spread s;
	uint64_t id = 0, first = 3;

	(void)unused;
	t.meta->max_id = BLOCKS * (N + 2);
	stretch(&t, &id, 3, SIZE);
	for (unsigned k = 0; k < N; k++)
		step(&t, &id, data[k], 2, BLOCKS + k % 2);
	assert_int_equal(vc_allocations_init(&m, &t, 0, NULL), 0);
	assert_int_equal(vc_spread_read(&s, &m, NULL), 0);
	assert_true(s.varies);
	for (unsigned k = 0; k < N; first += 2 + BLOCKS + k++ % 2)
		for (unsigned i = 0; i < 2; i++) {
			assert_true(vc_spread_has(&s, first + i));
			assert_int_equal(s.place[first + i], s.place[3 + i]);
		}
	vc_spread_fini(&s);
	vc_allocations_fini(&m);
	vc_trace_fini(&t);
}

/* Steps whose second block is as large as the first or as the third one, of data, beside one that
 * grows with the batch. */
static void shapes(struct vc_trace *t, double batch, double spread)
{
	static const double data[] = { 1, 1.21, .83, 1.13, .92, 1.07 };
	uint64_t id = 0;

	*t = (struct vc_trace){ .meta = vc_meta_new(NULL) };
	t->meta->max_id = BLOCKS * 8;
	vc_meta_param(t->meta, "batch", batch);
	stretch(t, &id, 3, SIZE);
	for (unsigned k = 0; k < sizeof(data) / sizeof(*data); k++) {
		double large = batch * (1 + spread * (data[k] - 1)), small = .6 * large;
		double size[] = { large, k % 2 ? large : small, small, 5 * batch };

		step(t, &id, size, 4, BLOCKS);
	}
}

static void what_is_of_one_size_in_a_step_stays_so(void **unused)
{
	struct vc_trace t[2], out;
	const struct vc_trace *both[] = { &t[0], &t[1] };
	struct vc_param_value at = { "batch", 16 };
	struct vc_family_ask ask = { .at = &at, .n = 1 };
	struct vc_family_report report;
	uint64_t last[3] = { 0 };

	(void)unused;
	for (int k = 0; k < 2; k++)
		shapes(&t[k], 4 << k, 1);
	struct vc_family *f = vc_family_new(both, 2, 0, false, NULL);
	assert_non_null(f);
	for (ask.draw = 0; ask.draw < 8; ask.draw++) {
		assert_int_equal(vc_family_at(f, &ask, &out, &report, NULL), 0);
		assert_true(report.drawn);
		for (size_t e = 0, n = 0; e < out.n; e++) {
			size_t i = out.ev[e].kind == VC_EV_ALLOC ? n++ : 0, k = i - 3;

			if (i < 3 || k % (BLOCKS + 4) > 2)
				continue;
			last[k % (BLOCKS + 4)] = out.ev[e].size;
			if (k % (BLOCKS + 4) == 2)
				assert_int_equal(last[1], last[k / (BLOCKS + 4) % 2 ? 0 : 2]);
		}
		vc_trace_fini(&out);
	}
	vc_family_free(f);
	for (int k = 0; k < 2; k++)
		vc_trace_fini(&t[k]);
}

/* The steps of the nearest recording happen to be alike; those of the other one are not. */
static void what_varies_in_another_recording_varies(void **unused)
{
	struct vc_trace t[2], out;
	const struct vc_trace *both[] = { &t[0], &t[1] };
	struct vc_param_value at = { "batch", 3 };
	struct vc_family_ask ask = { .at = &at, .n = 1 };
	struct vc_family_report report;

	(void)unused;
	for (int k = 0; k < 2; k++)
		shapes(&t[k], 4 << k, k);
	struct vc_family *f = vc_family_new(both, 2, 0, false, NULL);
	assert_non_null(f);
	assert_int_equal(vc_family_at(f, &ask, &out, &report, NULL), 0);
	assert_int_equal(report.base, 0);
	assert_false(report.drawn);
	assert_true(report.noise > 0);
	vc_trace_fini(&out);
	vc_family_free(f);
	for (int k = 0; k < 2; k++)
		vc_trace_fini(&t[k]);
}

/* Samples that are cut off at a length, which most steps reach: in the one recording they are of
 * three lengths, in the other of two, and the steps that are shorter are others. */
static void cut_off(struct vc_trace *t, double batch, const double *length)
{
	uint64_t id = 0;

	*t = (struct vc_trace){ .meta = vc_meta_new(NULL) };
	t->meta->max_id = BLOCKS * 8;
	vc_meta_param(t->meta, "batch", batch);
	stretch(t, &id, 3, SIZE);
	for (unsigned k = 0; k < 6; k++) {
		double size[] = { 10 * batch * length[k], 5 * batch };

		step(t, &id, size, 2, BLOCKS);
	}
}

/* No law goes through a step that was cut off and one that was not. */
static void lengths_that_are_cut_off_are_data(void **unused)
{
	static const double of_four[] = { 1, 1, .5, 1, .8, 1 }, of_six[] = { 1, 1, 1, .5, 1, 1 };
	struct vc_trace t[2], out;
	const struct vc_trace *both[] = { &t[0], &t[1] };
	struct vc_param_value at = { "batch", 9 };
	struct vc_family_ask ask = { .at = &at, .n = 1 };
	struct vc_family_report report;

	(void)unused;
	cut_off(&t[0], 4, of_four);
	cut_off(&t[1], 6, of_six);
	struct vc_family *f = vc_family_new(both, 2, 0, false, NULL);
	assert_non_null(f);
	assert_int_equal(vc_family_at(f, &ask, &out, &report, NULL), 0);
	assert_int_equal(report.base, 1);
	assert_true(report.drawn);
	for (size_t e = 0; e < out.n; e++) /* the middle of all may be a little more than at most */
		assert_true(out.ev[e].size < (uint64_t)(1.3 * 10 * 9 * SIZE));
	vc_trace_fini(&out);
	vc_family_free(f);
	for (int k = 0; k < 2; k++)
		vc_trace_fini(&t[k]);
}

/* A source gives the requests of `whole`, read `room` at a time. */
static void gives(struct vc_family *f, const struct vc_family_ask *ask,
		  const struct vc_trace *whole, size_t room)
{
	struct vc_source *s = vc_family_source(f, ask, whole->meta, NULL);
	struct vc_event ev[100];
	size_t at = 0;
	long n;

	assert_non_null(s);
	while ((n = s->type->next(s, ev, room, NULL)) > 0)
		for (long i = 0; i < n; i++, at++) {
			while (at < whole->n && whole->ev[at].kind == VC_EV_MARK)
				at++;
			assert_true(at < whole->n);
			assert_memory_equal(&ev[i], &whole->ev[at], sizeof(ev[i]));
		}
	assert_int_equal(n, 0);
	for (; at < whole->n; at++)
		assert_int_equal(whole->ev[at].kind, VC_EV_MARK);
	vc_source_free(s);
}

/* What predictions share, and who reads them as they are made, shows in none of them. */
static void predictions_share_what_nobody_sees(void **unused)
{
	struct vc_trace t[2], out, again;
	const struct vc_trace *both[] = { &t[0], &t[1] };
	struct vc_param_value at = { "batch", 0 };
	struct vc_family_ask ask = { .at = &at, .n = 1, .has_order = true };

	(void)unused;
	for (int k = 0; k < 2; k++)
		shapes(&t[k], 4 << k, 1);
	struct vc_family *f = vc_family_new(both, 2, 0, false, NULL);
	assert_non_null(f);
	for (unsigned i = 0; i < 96; i++) {
		at.value = 2 + 3 * (i % 12); /* more values than are kept, each again */
		ask.draw = i / 12;
		ask.order = i / 24 % 2;
		ask.bound = i % 5 ? VC_BOUND_NONE : VC_BOUND_HIGH;
		struct vc_family *fresh = vc_family_new(both, 2, 0, false, NULL);

		assert_non_null(fresh);
		assert_int_equal(vc_family_at(f, &ask, &out, NULL, NULL), 0);
		assert_int_equal(vc_family_at(fresh, &ask, &again, NULL, NULL), 0);
		assert_int_equal(out.n, again.n);
		assert_memory_equal(out.ev, again.ev, out.n * sizeof(*out.ev));
		gives(f, &ask, &again, 65 + i % 36);
		vc_trace_fini(&out);
		vc_trace_fini(&again);
		vc_family_free(fresh);
	}
	vc_family_free(f);
	for (int k = 0; k < 2; k++)
		vc_trace_fini(&t[k]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_that_differ_by_a_rounding_are_one),
		cmocka_unit_test(little_that_varies_is_not_drawn),
		cmocka_unit_test(three_sizes_are_data_and_two_take_turns),
		cmocka_unit_test(of_many_steps_some_are_alike),
		cmocka_unit_test(what_only_grows_for_four_steps_follows_no_data),
		cmocka_unit_test(one_block_of_a_step_may_grow_while_another_shrinks),
		cmocka_unit_test(what_is_of_one_size_in_a_step_stays_so),
		cmocka_unit_test(what_varies_in_another_recording_varies),
		cmocka_unit_test(lengths_that_are_cut_off_are_data),
		cmocka_unit_test(predictions_share_what_nobody_sees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
