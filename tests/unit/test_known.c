/* SPDX-License-Identifier: Apache-2.0 */
/* test_known.c - a run that is taken from another one is the run that would have been made: random
 * events under random versions, settings and devices, with the runs kept and without. */
#include "tests/support/test.h"

#include "simulator/replay/engine.h"
#include "simulator/replay/memo.h"

#define MIB (1ull << 20)

enum { TRACES = 5, RUNS = 300 };

static uint64_t seed = 1;

static uint64_t any(uint64_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % n;
}

/* Now and then a size of each class of the allocator; kinds: what else there is. */
static uint64_t any_size(void)
{
	static const uint64_t most[] = { 4096, MIB, 9 * MIB, 30 * MIB, 200 * MIB };

	return any(most[any(20) ? any(4) : 4]) + 1;
}

static void add(struct vc_trace *t, struct vc_event e)
{
	e.time_ns = t->n;
	assert_int_equal(vc_trace_append(t, &e, 1, NULL), 0);
}

static void add_other(struct vc_trace *t, unsigned kind, uint64_t id)
{
	switch (kind) {
	case 0: add(t, (struct vc_event){ .kind = VC_EV_TRIM }); break;
	case 1: add(t, (struct vc_event){ .kind = VC_EV_OOM, .size = any_size() }); break;
	case 2: add(t, (struct vc_event){ .kind = VC_EV_OTHERS, .size = any(90 * MIB) }); break;
	case 3: add(t, (struct vc_event){ .kind = VC_EV_USE, .id = id, .stream = 1 }); break;
	case 4: add(t, (struct vc_event){ .kind = VC_EV_SYNC, .stream = VC_STREAM_ALL }); break;
	case 5: add(t, (struct vc_event){ .kind = VC_EV_POOL_CREATE, .id = 9 }); break;
	default: {
		double half = 0.5;
		struct vc_event e = { .kind = VC_EV_FRACTION };

		memcpy(&e.size, &half, sizeof(half));
		add(t, e);
	}
	}
}

/* others: so many kinds of events besides requests. */
static struct vc_trace make_trace(unsigned others)
{
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	uint64_t live[16] = { 0 }, id = 0;

	assert_non_null(t.meta);
	vc_meta_stream(t.meta, 0);
	vc_meta_stream(t.meta, 77);
	for (int i = 0; i < 400; i++) {
		uint64_t k = any(16);

		if (others && !any(40))
			add_other(&t, (unsigned)any(others), live[k] ? live[k] : 1);
		if (live[k])
			add(&t, (struct vc_event){ .kind = VC_EV_FREE, .id = live[k] });
		live[k] = live[k] ? 0 : ++id;
		if (live[k])
			add(&t, (struct vc_event){ .kind = VC_EV_ALLOC, .id = id,
						   .size = any_size(), .stream = any(8) == 0 });
	}
	t.meta->max_id = id;
	return t;
}

static struct vc_run any_run(void)
{
	static const char *const version[] = { "2.1", "2.3", "2.4", "2.9", "2.11", "2.12", "2.13",
					      "2.15" };
	static const char *const conf[] = { "", "", "max_split_size_mb:32", "max_split_size_mb:64",
		"max_split_size_mb:300", "roundup_power2_divisions:1", "roundup_power2_divisions:4",
		"garbage_collection_threshold:0.6", "expandable_segments:True" };
	static const char *const model[] = { "torch", "torch", "torch", "torch", "cupy", "bfc" };
	static const uint64_t total[] = { 100 * MIB, 300 * MIB, 2000 * MIB, 3000 * MIB,
					 4000 * MIB };
	struct vc_run r = { .fraction = any(16) ? -1 : 0.5, .stop_at_oom = any(2) };

	r.model = vc_model_by_name(model[any(6)]);
	assert_non_null(r.model);
	r.version = r.model->versions ? version[any(8)] : NULL;
	r.conf = r.model->versions ? conf[any(9)] : NULL;
	r.start = any(8) ? VC_START_WARM : VC_START_COLD;
	r.device = (struct vc_device_config){ .total = total[any(5)], .context = any(3) * 7 * MIB,
					      .others = any(2) * 11 * MIB,
					      .va = any(8) ? VC_VA_WINDOW : VC_VA_DEC,
					      .more = any(8) ? 0 : (int64_t)any(80 * MIB) -
							   (int64_t)(40 * MIB) };
	return r;
}

/* Whether it was replayed: its events were read. */
static bool run(struct vc_run *r, const struct vc_trace *t, struct vc_result *out, int *rc)
{
	const struct vc_event *ev;
	bool was_read;

	r->source = vc_source_memory(t, NULL);
	assert_non_null(r->source);
	*rc = vc_run(r, out, NULL);
	was_read = r->source->type->view(r->source, &ev) == 0;
	vc_source_free(r->source);
	return was_read;
}

static size_t compare_runs(const struct vc_trace *kept, const struct vc_trace *bare)
{
	static const struct vc_observer_type *const watch[] = { &vc_observer_oom,
							       &vc_observer_pace, NULL };
	size_t taken = 0;

	for (int i = 0; i < RUNS; i++) {
		struct vc_run r = any_run(), s;
		struct vc_result a = { 0 }, b = { 0 };
		int x, y;

		r.observers = any(2) ? watch : NULL;
		s = r;
		taken += !run(&r, kept, &a, &x) && x == VC_OK;
		assert_true(run(&s, bare, &b, &y) || y != VC_OK);
		assert_int_equal(x, y);
		assert_memory_equal(&a.stats, &b.stats, sizeof(a.stats));
		assert_int_equal(r.start, s.start);
		assert_int_equal(a.oom.happened, b.oom.happened);
		assert_int_equal(a.pace.n, b.pace.n);
		if (a.pace.n)
			assert_memory_equal(a.pace.at, b.pace.at, a.pace.n * sizeof(*a.pace.at));
		if (a.oom.happened)
			assert_string_equal(a.oom.message, b.oom.message);
		vc_result_fini(&a);
		vc_result_fini(&b);
	}
	return taken;
}

static void a_run_that_is_known_is_the_run_that_would_be_made(void **unused)
{
	size_t taken[2] = { 0 };

	(void)unused;
	for (unsigned others = 0; others <= 7; others++)
		for (int i = 0; i < TRACES; i++) {
			struct vc_trace kept = make_trace(others), bare = kept;

			assert_int_equal(vc_trace_keep(&kept, NULL), VC_OK);
			taken[others > 0] += compare_runs(&kept, &bare);
			vc_trace_fini(&kept);
		}
	/* Many of them hang on nothing that differs. */
	assert_true(taken[0] > TRACES * RUNS / 4);
	assert_true(taken[1] > 7 * TRACES * RUNS / 10);
}

static void what_differs_is_made(void **unused)
{
	static const struct {
		const char *a, *b, *conf_a, *conf_b;
		uint64_t less;
		bool same;
	} is[] = {
		{ "2.5", "2.9", "", "", 0, true },
		{ "2.11", "2.12", "", "", 0, false },       /* ties are ordered otherwise */
		{ "2.9", "2.9", "", "max_split_size_mb:64", 0, true },
		{ "2.9", "2.9", "", "max_split_size_mb:21", 0, false },
		{ "2.9", "2.9", "", "", 10 * MIB, true },
		{ "2.9", "2.9", "", "", 900 * MIB, false }, /* no longer enough */
	};
	const struct vc_event e[] = { { .kind = VC_EV_ALLOC, .id = 1, .size = 30 * MIB },
				     { .kind = VC_EV_ALLOC, .id = 2, .size = 40 * MIB },
				     { .kind = VC_EV_FREE, .id = 1 },
				     { .kind = VC_EV_ALLOC, .id = 3, .size = 29 * MIB } };

	(void)unused;
	for (size_t i = 0; i < sizeof(is) / sizeof(*is); i++) {
		struct vc_trace t = { .meta = vc_meta_new(NULL) };
		struct vc_run a = { .model = vc_model_by_name("torch"), .fraction = -1,
				    .version = is[i].a, .conf = is[i].conf_a,
				    .device.total = 960 * MIB }, b = a;
		struct vc_result out;
		int rc;

		assert_int_equal(vc_trace_append(&t, e, 4, NULL), 0);
		assert_int_equal(vc_trace_keep(&t, NULL), VC_OK);
		b.version = is[i].b;
		b.conf = is[i].conf_b;
		b.device.total -= is[i].less;
		assert_true(run(&a, &t, &out, &rc));
		assert_int_equal(rc, VC_OK);
		assert_int_equal(run(&b, &t, &out, &rc), !is[i].same);
		assert_int_equal(rc, VC_OK);
		vc_trace_fini(&t);
	}
}

/* Addresses as recorded are other answers than those of the policy. */
static void recorded_calls_are_other_answers(void **unused)
{
	static const struct vc_device_call call = { 1ull << 40, 30 * MIB, false };
	const struct vc_event e = { .kind = VC_EV_ALLOC, .id = 1, .size = 30 * MIB };
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	struct vc_run a = { .model = vc_model_by_name("torch"), .fraction = -1, .version = "2.9",
			    .device.total = 960 * MIB }, b = a;
	struct vc_result out;
	int rc;

	(void)unused;
	assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	assert_int_equal(vc_trace_keep(&t, NULL), VC_OK);
	b.device.call = &call;
	b.device.calls = 1;
	assert_true(run(&a, &t, &out, &rc));
	assert_true(run(&b, &t, &out, &rc));
	assert_false(run(&a, &t, &out, &rc));
	assert_false(run(&b, &t, &out, &rc));
	vc_trace_fini(&t);
}

static bool is_too_much(void *arg, const struct vc_stats *so_far)
{
	return so_far->peak_reserved > *(const uint64_t *)arg;
}

/* A run that is given up says so, also when it is taken from another one; and the part of it that
 * was replayed is not taken for a whole one. */
static void what_was_given_up_is_no_answer(void **unused)
{
	const struct vc_event e[] = { { .kind = VC_EV_ALLOC, .id = 1, .size = 30 * MIB },
				     { .kind = VC_EV_ALLOC, .id = 2, .size = 40 * MIB },
				     { .kind = VC_EV_ALLOC, .id = 3, .size = 50 * MIB } };
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	uint64_t most = 60 * MIB;
	const struct vc_enough enough = { &most, is_too_much };
	struct vc_run a = { .model = vc_model_by_name("torch"), .fraction = -1, .version = "2.3",
			    .device.total = 960 * MIB, .enough = &enough }, b = a;
	struct vc_result out;
	int rc;

	(void)unused;
	assert_int_equal(vc_trace_append(&t, e, 3, NULL), 0);
	assert_int_equal(vc_trace_keep(&t, NULL), VC_OK);
	run(&a, &t, &out, &rc);
	assert_true(out.given_up);
	assert_int_equal(out.stats.peak_reserved, 70 * MIB);
	assert_int_equal(out.stats.events, 2);
	b.version = "2.9";
	assert_false(run(&b, &t, &out, &rc));
	assert_true(out.given_up);
	most = 80 * MIB;
	run(&b, &t, &out, &rc);
	assert_true(out.given_up);
	assert_int_equal(out.stats.peak_reserved, 120 * MIB);
	b.enough = NULL;
	assert_true(run(&b, &t, &out, &rc));
	assert_false(out.given_up);
	assert_int_equal(out.stats.events, 3);
	b.enough = &enough;
	assert_false(run(&b, &t, &out, &rc));
	vc_trace_fini(&t);
}

/* A version is guessed by replays of the recording as it was: one for each kind of rules. */
static void versions_of_one_kind_reproduce_alike(void **unused)
{
	static const struct vc_observer_type *const watch[] = { &vc_observer_fidelity, NULL };
	static const char *const version[] = { "2.11", "2.3", "2.12", "2.13", "2.15" };
	static const bool made[] = { true, false, true, true, false };
	const struct vc_event e[] = {
		{ .kind = VC_EV_SEGMENT_ALLOC, .size = 30 * MIB, .addr = 1 << 30 },
		{ .kind = VC_EV_ALLOC, .id = 1, .size = 30 * MIB, .addr = 1 << 30 },
		{ .kind = VC_EV_SEGMENT_ALLOC, .size = 40 * MIB, .addr = 3 << 29 },
		{ .kind = VC_EV_ALLOC, .id = 2, .size = 40 * MIB, .addr = 7 },
	};
	struct vc_trace t = { .meta = vc_meta_new(NULL) };

	(void)unused;
	assert_int_equal(vc_trace_append(&t, e, 4, NULL), 0);
	assert_int_equal(vc_trace_keep(&t, NULL), VC_OK);
	for (size_t i = 0; i < 5; i++) {
		struct vc_run r = { .model = vc_model_by_name("torch"), .version = version[i],
				    .fraction = -1, .device.total = 4ull << 40, .follow = true,
				    .whole = &t, .observers = watch };
		struct vc_result out;
		int rc;

		assert_int_equal(run(&r, &t, &out, &rc), made[i]);
		assert_int_equal(rc, VC_OK);
		assert_int_equal(out.fidelity.address_mismatches, 1);
		assert_string_equal(out.fidelity.diverged_why, "41943040 bytes were placed at "
				    "60000000, the recording has them at 7");
		vc_result_fini(&out);
	}
	vc_trace_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_that_is_known_is_the_run_that_would_be_made),
		cmocka_unit_test(what_differs_is_made),
		cmocka_unit_test(recorded_calls_are_other_answers),
		cmocka_unit_test(what_was_given_up_is_no_answer),
		cmocka_unit_test(versions_of_one_kind_reproduce_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
