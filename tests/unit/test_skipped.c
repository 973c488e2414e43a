/* SPDX-License-Identifier: Apache-2.0 */
/* test_skipped.c - recordings in which a gradient scaler let the optimizer skip all steps. */
#include "tests/support/test.h"

#include "simulator/predict/family.h"
#include "simulator/predict/skipped.h"

enum { WEIGHTS = 1 << 20, FROZEN = 3 << 20, STEPS = 12 };

static uint32_t frame(struct vc_meta *m, const char *file, const char *name)
{
	return vc_meta_frame(m, (struct vc_frame){ 0, vc_meta_string(m, name, strlen(name)),
						   vc_meta_string(m, file, strlen(file)), 1 });
}

static void event(struct vc_trace *t, enum vc_event_kind kind, uint64_t id, uint64_t size,
		  uint32_t site)
{
	struct vc_event e = { .kind = (uint8_t)kind, .id = id, .size = size, .site = site };

	assert_int_equal(vc_trace_append(t, &e, 1, NULL), 0);
}

static void borrow(struct vc_trace *t, uint64_t size, uint32_t site)
{
	uint64_t id = ++t->meta->max_id;

	event(t, VC_EV_ALLOC, id, size, site);
	event(t, VC_EV_FREE, id, size, site);
}

static void keep(struct vc_trace *t, uint64_t size, uint32_t site)
{
	event(t, VC_EV_ALLOC, ++t->meta->max_id, size, site);
}

/* Weights and frozen ones; steps: an activation, the scaled loss, a gradient, and from `from` on
 * the optimizer of that file, which makes some states first. */
static struct vc_trace by(const char *file, double batch, bool scaled, size_t from)
{
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	uint32_t own = frame(t.meta, "train.py", "main");
	uint32_t scale = scaled ? frame(t.meta, "torch/amp/grad_scaler.py", "scale") : own;
	uint32_t adam = frame(t.meta, file, "_init_group");

	keep(&t, WEIGHTS, own);
	keep(&t, FROZEN, own);
	for (size_t s = 0; s < STEPS; s++) {
		borrow(&t, (uint64_t)batch * 409600, own);
		borrow(&t, 4, scale);
		borrow(&t, WEIGHTS, 0);
		for (int k = 0; k < 6 && s == from; k++)
			keep(&t, WEIGHTS, adam);
	}
	borrow(&t, 512, own);
	vc_meta_param(t.meta, "batch", batch);
	return t;
}

static struct vc_trace recorded(double batch, bool scaled, size_t from)
{
	return by("torch/optim/adam.py", batch, scaled, from);
}

static bool skipped_by(const char *file, bool scaled, size_t from, uint64_t *states)
{
	struct vc_trace t = by(file, 8, scaled, from);
	struct vc_allocations m;
	bool all;

	assert_int_equal(vc_allocations_init(&m, &t, 0, NULL), 0);
	all = vc_skipped_all(&m);
	*states = vc_skipped_states(&m);
	vc_allocations_fini(&m);
	vc_trace_fini(&t);
	return all;
}

static bool skipped(bool scaled, size_t from, uint64_t *states)
{
	return skipped_by("torch/optim/adam.py", scaled, from, states);
}

static void a_scaler_without_an_optimizer_skipped_all_steps(void **unused)
{
	uint64_t states;

	(void)unused;
	assert_true(skipped(true, STEPS, &states));
	assert_int_equal(states, 2 * WEIGHTS); /* none of what is frozen */
	assert_false(skipped(true, 1, &states));
	assert_false(skipped(false, STEPS, &states));
}

/* Converted snapshots have no folders, and programs have optimizers of their own. */
static void states_show_an_optimizer_of_any_name(void **unused)
{
	uint64_t states;

	(void)unused;
	assert_false(skipped_by("adam.py", true, 1, &states));
	assert_false(skipped_by("train.py", true, 1, &states));
	assert_true(skipped_by("train.py", true, STEPS, &states));
}

/* From two recordings at 16 and 24 samples for 8: which one sets the order, and what may come on
 * top. */
static struct vc_family_report ask(size_t near_from, size_t far_from)
{
	struct vc_trace near = recorded(16, true, near_from), far = recorded(24, true, far_from), o;
	const struct vc_trace *t[] = { &near, &far };
	struct vc_family *f = vc_family_new(t, 2, 0, false, NULL);
	struct vc_param_value at = { "batch", 8 };
	struct vc_family_ask a = { .at = &at, .n = 1 };
	struct vc_family_report rep;

	assert_non_null(f);
	assert_int_equal(vc_family_at(f, &a, &o, &rep, NULL), 0);
	vc_family_free(f);
	vc_trace_fini(&near);
	vc_trace_fini(&far);
	vc_trace_fini(&o);
	return rep;
}

static void a_recording_that_steps_sets_the_order(void **unused)
{
	(void)unused;
	assert_int_equal(ask(1, 1).base, 0);
	assert_int_equal(ask(STEPS, 1).base, 1);
	assert_int_equal(ask(STEPS, STEPS).base, 0);
	assert_int_equal(ask(STEPS, 1).states, 0);
	assert_int_equal(ask(STEPS, STEPS).states, 2 * WEIGHTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_scaler_without_an_optimizer_skipped_all_steps),
		cmocka_unit_test(states_show_an_optimizer_of_any_name),
		cmocka_unit_test(a_recording_that_steps_sets_the_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
