/* SPDX-License-Identifier: Apache-2.0 */
/* test_unused.c - the classes of unused bytes add up at every moment, under every model. */
#include "tests/support/test.h"

#include "simulator/replay/engine.h"

#define MIB (1ull << 20)

static uint64_t sum_of(const struct vc_fragmentation *f)
{
	return f->rounding + f->remainders + f->pinned + f->other_streams + f->private_pools +
	       f->whole_free;
}

static void replay(const struct vc_model_type *model, struct vc_source *source,
		   struct vc_result *out)
{
	const struct vc_observer_type *const watch[] = { vc_observer_by_name("unused"), NULL };
	struct vc_run run = { .model = model, .source = source, .fraction = -1,
			      .observers = watch, .device = { .total = 1ull << 40 },
			      .start = model->seed ? VC_START_WARM : VC_START_REBUILD };
	struct vc_error err = { 0 };

	assert_non_null(source);
	assert_int_equal(vc_run(&run, out, &err), 0);
	vc_source_free(source);
}

static void assert_adds_up(const struct vc_result *r, size_t least)
{
	const struct vc_unused *u = &r->unused;

	assert_true(u->n >= least && u->n <= 513);
	assert_true(r->stats.peak_reserved > 0);
	for (size_t i = 0; i < u->n; i++) {
		uint64_t pinned = 0;

		assert_int_equal(sum_of(&u->at[i].part), u->at[i].reserved - u->at[i].requested);
		assert_true(!i || u->at[i].event > u->at[i - 1].event);
		for (size_t k = 0; k < VC_UNUSED_PINS; k++)
			pinned += u->at[i].pin[k].bytes;
		assert_true(pinned <= u->at[i].reserved);
	}
	assert_int_equal(sum_of(&u->worst.part), u->worst.reserved - u->worst.requested);
	assert_true(u->worst.event <= u->last && u->last < r->stats.events);
}

static void add_up_on_recordings_under_every_model(void **unused)
{
	static const char *const path[] = { "tests/recordings/gpt.vct", "tests/recordings/oom.vct",
					    "tests/recordings/lstm.vct", "traces/attention.vct" };

	(void)unused;
	for (size_t m = 0; vc_models[m]; m++)
		for (size_t i = 0; i < sizeof(path) / sizeof(*path); i++) {
			struct vc_result r = { 0 };

			replay(vc_models[m], vc_source_open(path[i], NULL), &r);
			assert_adds_up(&r, 32);
			vc_result_fini(&r);
		}
}

/* 3,000 blocks on three streams, every second one freed at once. */
static struct vc_source *churn(struct vc_trace *t)
{
	struct vc_error err = { 0 };

	t->meta = vc_meta_new(&err);
	vc_meta_stream(t->meta, 16);
	vc_meta_stream(t->meta, 32);
	for (uint64_t id = 1; id <= 3000; id++) {
		struct vc_event e[] = { { .kind = VC_EV_ALLOC, .id = id,
					  .size = 1 + id * 7919 % (5 * MIB),
					  .stream = (uint32_t)(id % 3) },
					{ .kind = VC_EV_FREE, .id = id % 2 ? id : id - 40 } };

		assert_int_equal(vc_trace_append(t, e, id > 40 || id % 2 ? 2 : 1, &err), 0);
	}
	return vc_source_memory(t, &err);
}

static void samples_thin_out_and_the_last_is_the_end(void **unused)
{
	const struct vc_model_type *const all[] = { vc_model_by_name("torch"),
						    vc_model_by_name("cupy") };

	(void)unused;
	for (size_t m = 0; m < 2; m++) {
		struct vc_trace t = { 0 };
		struct vc_result r = { 0 };
		uint64_t span;

		replay(all[m], churn(&t), &r);
		assert_adds_up(&r, 256);
		assert_int_equal(r.unused.at[r.unused.n - 1].event, r.stats.events - 1);
		span = r.unused.at[1].event - r.unused.at[0].event;
		for (size_t i = 1; i + 1 < r.unused.n; i++)
			assert_int_equal(r.unused.at[i].event - r.unused.at[i - 1].event, span);
		assert_true(r.unused.worst.part.other_streams > 0);
		assert_true(r.unused.pin[0].bytes >= r.unused.pin[1].bytes);
		vc_result_fini(&r);
		vc_trace_fini(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add_up_on_recordings_under_every_model),
		cmocka_unit_test(samples_thin_out_and_the_last_is_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
