/* SPDX-License-Identifier: Apache-2.0 */
/* test_arena.c - planned places are followed, and never given out twice. */
#include "allocator/arena.h"
#include "allocator/areas.h"
#include "tests/support/test.h"

/* Two that stay, then a step of four that repeats, on two streams. */
static struct vc_arena *sample(void)
{
	static const struct vc_plan_request step[] = { { 1024, 0, 0 }, { 2048, 1024, 0 },
		{ 512, 3072, 0 }, { 4096, 4096, 0 }, { 512, 8192, 1 }, { 1024, 3072, 0 } };
	struct vc_memory_plan p = { .arena = 8704, .first = 2, .last = 6, .areas = 2, .n = 6 };
	struct vc_error err = { 0 };

	p.area = calloc(2, sizeof(*p.area));
	p.area[0] = (struct vc_plan_area){ 0, 8192, 8192, 0 };
	p.area[1] = (struct vc_plan_area){ 8192, 512, 512, 0 };
	p.request = calloc(6, sizeof(*p.request));
	memcpy(p.request, step, sizeof(step));
	return vc_arena_new(&p, &err);
}

static void the_sequence_is_served_and_repeats(void **state)
{
	struct vc_arena *a = sample();

	(void)state;
	assert_int_equal(vc_arena_take(a, 1000, 77), 0);
	assert_int_equal(vc_arena_take(a, 2048, 77), 1024);
	for (int step = 0; step < 5; step++) {
		assert_int_equal(vc_arena_take(a, 512, 77), 3072);
		assert_int_equal(vc_arena_take(a, 4096, 77), 4096);
		assert_int_equal(vc_arena_give(a, 3072), 512);
		assert_int_equal(vc_arena_take(a, 100, 88), 8192); /* the other stream */
		assert_int_equal(vc_arena_give(a, 8192), 512);
		assert_int_equal(vc_arena_take(a, 1024, 77), 3072);
		assert_int_equal(vc_arena_give(a, 3072), 1024);
		assert_int_equal(vc_arena_give(a, 4096), 4096);
	}
	assert_int_equal(vc_arena_counts(a)->served, 22);
	assert_int_equal(vc_arena_counts(a)->differs, 0);
	assert_int_equal(vc_arena_give(a, 4096), 0);
	vc_arena_free(a);
}

static void an_occupied_place_is_not_given_out(void **state)
{
	struct vc_arena *a = sample();

	(void)state;
	vc_arena_take(a, 1024, 1);
	vc_arena_take(a, 2048, 1);
	vc_arena_take(a, 512, 1); /* at 3072, and never freed */
	vc_arena_take(a, 4096, 1);
	vc_arena_take(a, 512, 2);
	assert_int_equal(vc_arena_take(a, 1024, 1), VC_PLAN_NOWHERE);
	assert_int_equal(vc_arena_counts(a)->occupied, 1);
	vc_arena_free(a);
}

/* What was found and cannot be given out is as if it had been occupied. */
static void a_place_that_is_refused_is_free_again(void **state)
{
	struct vc_arena *a = sample();

	(void)state;
	assert_int_equal(vc_arena_take(a, 1024, 1), 0);
	vc_arena_refuse(a, 0);
	assert_int_equal(vc_arena_counts(a)->served, 0);
	assert_int_equal(vc_arena_counts(a)->occupied, 1);
	assert_int_equal(vc_arena_counts(a)->requests, 1);
	assert_int_equal(vc_arena_give(a, 0), 0);
	assert_int_equal(vc_arena_take(a, 2048, 1), 1024);
	assert_int_equal(vc_arena_counts(a)->served, 1);
	vc_arena_free(a);
}

static void another_stream_gets_no_planned_place(void **state)
{
	struct vc_arena *a = sample();

	(void)state;
	assert_int_equal(vc_arena_take(a, 1024, 1), 0);
	assert_int_equal(vc_arena_take(a, 2048, 2), VC_PLAN_NOWHERE);
	assert_int_equal(vc_arena_counts(a)->differs, 1);
	assert_int_equal(vc_arena_take(a, 2048, 1), 1024);
	vc_arena_free(a);
}

/* What is not in the plan is passed over; what the program leaves out is found behind it. */
static void the_thread_is_found_again(void **state)
{
	struct vc_arena *a = sample();

	(void)state;
	assert_int_equal(vc_arena_take(a, 1024, 1), 0);
	assert_int_equal(vc_arena_take(a, 99999, 1), VC_PLAN_NOWHERE);
	assert_int_equal(vc_arena_take(a, 2048, 1), 1024);
	/* without the 4096 */
	assert_int_equal(vc_arena_take(a, 512, 1), 3072);
	assert_int_equal(vc_arena_take(a, 512, 2), VC_PLAN_NOWHERE);
	vc_arena_give(a, 3072);
	assert_int_equal(vc_arena_take(a, 1024, 1), VC_PLAN_NOWHERE);
	assert_int_equal(vc_arena_take(a, 512, 1), VC_PLAN_NOWHERE);
	assert_int_equal(vc_arena_take(a, 4096, 1), 4096);
	vc_arena_free(a);
}

/* Random requests and frees against a list that is looked through. */
static void nothing_ever_overlaps(void **state)
{
	enum { N = 700 };
	struct vc_memory_plan p = { .arena = 1 << 20, .first = 100, .last = N, .areas = 1, .n = N };
	struct { uint64_t at, size; } live[N * 8];
	uint64_t seed = 7, served = 0;
	struct vc_error err = { 0 };
	struct vc_arena *a;
	size_t n = 0;

	(void)state;
	p.area = calloc(2, sizeof(*p.area));
	p.area[0].size = p.arena;
	p.request = calloc(N, sizeof(*p.request));
#define DICE(k) ((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 33) % (k)
	for (size_t i = 0; i < N; i++) {
		p.request[i].size = 512 * (1 + DICE(40));
		p.request[i].offset = 512 * (DICE(1800));
	}
	struct vc_plan_request *copy = malloc(N * sizeof(*copy));
	memcpy(copy, p.request, N * sizeof(*copy));
	a = vc_arena_new(&p, &err);
	for (size_t i = 0, k = 0; i < N * 6; i++, k++) {
		if (DICE(20) == 0)
			k += DICE(30);
		uint64_t size = copy[k % N].size, at = vc_arena_take(a, size, 5);

		for (size_t j = 0; at != VC_PLAN_NOWHERE && j < n; j++)
			assert_true(at + size <= live[j].at || live[j].at + live[j].size <= at);
		if (at != VC_PLAN_NOWHERE) {
			live[n].at = at;
			live[n++].size = size;
			served++;
		}
		while (n > 20) {
			size_t j = DICE(n);

			assert_int_equal(vc_arena_give(a, live[j].at), live[j].size);
			live[j] = live[--n];
		}
	}
	assert_true(served > N);
	vc_arena_free(a);
	free(copy);
}

/* ---- the memory of it, on a device that is a counter ---- */

static struct { uint64_t free; } device;

static int get_memory(void **p, size_t size)
{
	if (size > device.free)
		return 2; /* cudaErrorMemoryAllocation */
	device.free -= size;
	*p = calloc(1, size);
	return 0;
}

/* cudaFree is not told the size: what is not held is free. */
static int release_memory(void *p)
{
	free(p);
	return 0;
}

static void *function(const char *name)
{
	void *p = NULL;

	if (!strcmp(name, "cudaMalloc"))
		*(int (**)(void **, size_t))&p = get_memory;
	if (!strcmp(name, "cudaFree"))
		*(int (**)(void *))&p = release_memory;
	return p;
}

static void an_area_in_which_nothing_lives_is_given_back(void **state)
{
	struct vc_plan_area area[] = { { 0, 8192, 0, 0 }, { 8192, 4096, 0, 1024 } };
	struct vc_memory_plan p = { .arena = 12288, .area = area, .areas = 2 };
	struct vc_areas a = { 0 };
	struct vc_error err = { 0 };
	struct vc_area *main_area, *stays, *rest;

	(void)state;
	device.free = 12288;
	assert_int_equal(vc_areas_init(&a, &p, function, &err), VC_OK);
	assert_true(vc_areas_get_all(&a));
	assert_int_equal(a.bytes, 12288);
	assert_int_equal(a.count, 3);
	main_area = vc_areas_at(&a, 8191);
	stays = vc_areas_at(&a, 8192);
	rest = vc_areas_at(&a, 9216);
	assert_true(main_area != stays && stays != rest);
	assert_ptr_equal(vc_areas_holding(&a, rest->base + 3071), rest);
	assert_ptr_not_equal(vc_areas_holding(&a, rest->base + 3072), rest);
	main_area->live = stays->live = 1;
	vc_areas_trim(&a);
	assert_int_equal(a.bytes, 8192 + 1024);
	assert_int_equal(a.given_back, 3072);
	assert_null(rest->base);
	assert_null(vc_areas_at(&a, 12287)); /* the device has nothing left */
	device.free = 3072;
	assert_null(vc_areas_at(&a, 12287)); /* and is not asked again at each request */
	vc_areas_trim(&a);
	assert_ptr_equal(vc_areas_at(&a, 12287), rest);
	assert_int_equal(a.bytes, 12288);
	main_area->live = stays->live = 0;
	vc_areas_trim(&a);
	assert_int_equal(a.bytes, 0);
	free(a.area);
}

static void a_device_that_is_too_small_gets_nothing(void **state)
{
	struct vc_plan_area area[] = { { 0, 8192, 0, 0 }, { 8192, 4096, 0, 1024 } };
	struct vc_memory_plan p = { .arena = 12288, .area = area, .areas = 2 };
	struct vc_areas a = { 0 };
	struct vc_error err = { 0 };

	(void)state;
	device.free = 12287;
	assert_int_equal(vc_areas_init(&a, &p, function, &err), VC_OK);
	assert_false(vc_areas_get_all(&a));
	assert_int_equal(a.bytes, 0);
	free(a.area);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sequence_is_served_and_repeats),
		cmocka_unit_test(an_occupied_place_is_not_given_out),
		cmocka_unit_test(a_place_that_is_refused_is_free_again),
		cmocka_unit_test(another_stream_gets_no_planned_place),
		cmocka_unit_test(the_thread_is_found_again),
		cmocka_unit_test(nothing_ever_overlaps),
		cmocka_unit_test(an_area_in_which_nothing_lives_is_given_back),
		cmocka_unit_test(a_device_that_is_too_small_gets_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
