/* SPDX-License-Identifier: Apache-2.0 */
/* test_rules.c - what a family of recordings shows besides sizes: loops, counts, data. */
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
	struct vc_family *f = vc_family_new(t, 2, 0, 0, NULL);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffers_are_not_taken_for_data),
		cmocka_unit_test(an_optimizer_that_is_silent_later_ends_no_recording),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
