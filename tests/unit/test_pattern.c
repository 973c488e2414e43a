/* SPDX-License-Identifier: Apache-2.0 */
/* test_pattern.c - steps of runs without marks, from the order of allocations and frees alone. */
#include "tests/support/test.h"

#include "common/pattern.h"

enum { LAYERS = 12, MB = 1 << 20 };

struct run {
	struct vc_pattern *p;
	uint64_t id, events;
	uint64_t kept[4096];
	size_t n;
};

static void event(struct run *r, uint8_t kind, uint64_t id, uint64_t size)
{
	const struct vc_event e[] = {
		{ .kind = VC_EV_MARK }, /* neither these nor another device's requests count */
		{ .kind = VC_EV_ALLOC, .id = id, .size = 7 * MB, .device = 4 },
		{ .kind = kind, .id = id, .size = size, .device = 3 },
	};

	assert_int_equal(vc_pattern_add(r->p, e, 3, NULL), VC_OK);
	r->events++;
}

static uint64_t put(struct run *r, uint64_t size)
{
	event(r, VC_EV_ALLOC, ++r->id, size);
	return r->id;
}

static void drop(struct run *r, uint64_t id)
{
	event(r, VC_EV_FREE, id, 0);
}

static void keep(struct run *r, uint64_t size)
{
	r->kept[r->n++] = put(r, size);
}

/* How a run is: sizes grow from step to step, and the order stays. */
struct how {
	unsigned steps, micros;
	bool states;   /* an optimizer makes its states in the first step */
	unsigned logs; /* in every so many steps something more happens */
};

static void micro(struct run *r, const struct how *h, unsigned step)
{
	uint64_t act[LAYERS][2];

	for (unsigned l = 0; l < LAYERS; l++) {
		act[l][0] = put(r, (2 + step % 5) * MB);
		drop(r, put(r, MB + l));
		if (l % 3)
			act[l][1] = put(r, 3 * MB);
	}
	for (unsigned l = LAYERS; l-- > 0;) {
		uint64_t grad = put(r, 2 * MB);

		if (l % 3)
			drop(r, act[l][1]);
		drop(r, act[l][0]);
		drop(r, grad);
	}
}

/* Events of one step, but for the first one and those with a log. */
static uint64_t play(struct run *r, const struct how *h)
{
	uint64_t grad[LAYERS], of_step = 0;

	for (unsigned l = 0; l < LAYERS; l++)
		keep(r, MB);
	for (unsigned s = 0; s < h->steps; s++) {
		uint64_t before = r->events;

		for (unsigned m = 0; m < h->micros; m++) {
			micro(r, h, s);
			for (unsigned l = 0; l < LAYERS && !m; l++)
				grad[l] = put(r, MB);
		}
		for (unsigned l = 0; l < LAYERS && h->states && !s; l++)
			keep(r, MB);
		for (unsigned l = 0; l < LAYERS; l++)
			drop(r, grad[l]);
		if (h->logs && s % h->logs == h->logs - 1)
			drop(r, put(r, 512));
		else if (s == h->steps / 2)
			of_step = r->events - before;
	}
	for (size_t i = 0; i < r->n; i++) /* what is freed at the end belongs to no step */
		drop(r, r->kept[i]);
	return of_step;
}

static struct vc_pattern_steps found(const struct how *h, uint64_t *of_step)
{
	struct run *r = calloc(1, sizeof(*r));
	struct vc_pattern_steps out[2];
	struct vc_error err = { 0 };

	r->p = vc_pattern_new(3, &err);
	assert_non_null(r->p);
	*of_step = play(r, h);
	for (int i = 0; i < 2; i++) /* asked twice it says the same */
		assert_int_equal(vc_pattern_find(r->p, &out[i], &err), VC_OK);
	assert_memory_equal(&out[0], &out[1], sizeof(out[0]));
	vc_pattern_free(r->p);
	free(r);
	return out[0];
}

static void is_found(const char *what, struct how h, double confidence)
{
	uint64_t of_step;
	struct vc_pattern_steps s = found(&h, &of_step);

	if (s.steps != h.steps || s.events != of_step || s.confidence < confidence ||
	    s.confidence > 1)
		fail_msg("%s: %u steps of %llu events: %llu of %llu, %g", what, h.steps,
			 (unsigned long long)of_step, (unsigned long long)s.steps,
			 (unsigned long long)s.events, s.confidence);
}

static void steps_are_found(void **unused)
{
	(void)unused;
	for (unsigned n = 4; n < 40; n += 7) {
		is_found("alike", (struct how){ n, 1, false, 0 }, 1);
		is_found("states", (struct how){ n, 1, true, 0 }, 0.85);
		is_found("two micro-batches", (struct how){ n, 2, true, 0 }, 0.85);
		is_found("four micro-batches", (struct how){ n, 4, false, 0 }, 0.99);
	}
	is_found("a log in each tenth", (struct how){ 100, 1, true, 10 }, 0.85);
	is_found("a log in each third", (struct how){ 90, 1, true, 3 }, 0.4);
}

static void what_repeats_is_no_step(void **unused)
{
	uint64_t of_step;

	(void)unused;
	assert_int_equal(found(&(struct how){ 2, 1, false, 0 }, &of_step).steps, 0);
	assert_int_equal(found(&(struct how){ 0, 1, false, 0 }, &of_step).steps, 0);
	assert_int_equal(found(&(struct how){ 0, 1, false, 0 }, &of_step).events, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_are_found),
		cmocka_unit_test(what_repeats_is_no_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
