/* SPDX-License-Identifier: Apache-2.0 */
/* test_device_window.c - the address policies that imitate the drivers of Linux and Windows. */
#include "tests/support/test.h"

#include "simulator/replay/device.h"

#define MIB (1ull << 20)

static uint64_t take(struct vc_device *d, uint64_t size)
{
	uint64_t a = 0;

	assert_true(vc_device_alloc(d, size, &a));
	return a;
}

/* The pattern of a real snapshot: 2 MiB goes behind the 90 MiB one, 12 MiB behind the lowest 20. */
static void windows_go_down_and_their_ends_are_used(void **unused)
{
	struct vc_device_config cfg = { .total = 8ull << 30, .va = VC_VA_WINDOW };
	struct vc_device *d = vc_device_new(&cfg, NULL);
	uint64_t first = take(d, 90 * MIB);

	(void)unused;
	assert_true(take(d, 20 * MIB) == first - 32 * MIB);
	assert_true(take(d, 2 * MIB) == first + 90 * MIB);
	assert_true(take(d, 20 * MIB) == first - 64 * MIB);
	assert_true(take(d, 32 * MIB) == first - 96 * MIB);
	assert_true(take(d, 12 * MIB) == first - 44 * MIB);
	assert_true(vc_device_ok(d));
	vc_device_free_all(d);
}

static void a_freed_range_is_used_again(void **unused)
{
	struct vc_device_config cfg = { .total = 8ull << 30, .va = VC_VA_WINDOW };
	struct vc_device *d = vc_device_new(&cfg, NULL);
	uint64_t a = take(d, 64 * MIB), b = take(d, 64 * MIB);

	(void)unused;
	assert_true(b == a - 64 * MIB);
	vc_device_free(d, b, 64 * MIB);
	vc_device_free(d, a, 64 * MIB);
	assert_true(take(d, 128 * MIB) == b);
	vc_device_free_all(d);
}

/* No windows: what comes next lies right above, whole granules long. */
static void addresses_go_up_as_on_windows(void **unused)
{
	struct vc_device_config cfg = { .total = 8ull << 30, .va = VC_VA_UP };
	struct vc_device *d = vc_device_new(&cfg, NULL);
	uint64_t first = take(d, 90 * MIB);

	(void)unused;
	assert_true(take(d, 20 * MIB) == first + 90 * MIB);
	assert_true(take(d, 1) == first + 110 * MIB);
	assert_true(take(d, 40 * MIB) == first + 112 * MIB);
	assert_true(vc_device_ok(d));
	vc_device_free_all(d);
}

static void going_up_the_smallest_freed_range_that_suits_comes_first(void **unused)
{
	struct vc_device_config cfg = { .total = 8ull << 30, .va = VC_VA_UP };
	struct vc_device *d = vc_device_new(&cfg, NULL);
	uint64_t a = take(d, 90 * MIB), b = take(d, 20 * MIB), c = take(d, 2 * MIB),
		 e = take(d, 40 * MIB);

	(void)unused;
	vc_device_free(d, a, 90 * MIB);
	vc_device_free(d, c, 2 * MIB);
	assert_true(take(d, 2 * MIB) == c);
	assert_true(take(d, 64 * MIB) == a);
	assert_true(take(d, 28 * MIB) == e + 40 * MIB); /* 26 MiB are left of the first */
	assert_true(take(d, 26 * MIB) == a + 64 * MIB);
	vc_device_free(d, c, 2 * MIB);
	vc_device_free(d, b, 20 * MIB);
	assert_true(take(d, 22 * MIB) == b); /* neighbours are joined */
	vc_device_free_all(d);
}

/* The first segments of a recorded run on an H100: 20 and 2 MiB lie together in what the context
 * left over, the next in the large range below, upwards; 600 MiB need a window of their own. */
static void what_the_context_left_over_comes_first(void **unused)
{
	struct vc_device_config cfg = { .total = 8ull << 30, .va = VC_VA_CONTEXT };
	struct vc_device *d = vc_device_new(&cfg, NULL);
	uint64_t first = take(d, 20 * MIB), large, window;

	(void)unused;
	assert_true(vc_va_of_first(first) == VC_VA_CONTEXT);
	assert_true(take(d, 2 * MIB) == first + 20 * MIB);
	assert_true(take(d, 2 * MIB) == first + 22 * MIB);
	large = take(d, 2 * MIB);
	assert_true(large < first);
	assert_true(take(d, 32 * MIB) == large + 2 * MIB);
	assert_true(take(d, 20 * MIB) == large + 34 * MIB);
	window = take(d, 600 * MIB);
	assert_true(window + 608 * MIB == large);
	assert_true(vc_va_of_first(window) == VC_VA_WINDOW);
	assert_true(vc_device_ok(d));
	vc_device_free_all(d);
}

/* ---- recorded calls ---- */

#define AT 0x7f8000000000ull /* where other addresses begin, above and below */

static const struct vc_device_call recorded[] = {
	{ AT - 128 * MIB, 20 * MIB, false }, { AT + 40 * MIB, 2 * MIB, false },
	{ AT - 64 * MIB, 64 * MIB, false },  { AT + 40 * MIB, 2 * MIB, true },
	{ AT + 12 * MIB, 7 * MIB, false },
};
enum { RECORDED = sizeof(recorded) / sizeof(*recorded) };

struct span { uint64_t addr, size; };

/* The first n calls as recorded; what is held then. */
static size_t repeat_calls(struct vc_device *d, size_t n, struct span *held)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		const struct vc_device_call *c = &recorded[i];

		if (c->is_free) {
			size_t j = 0;

			while (held[j].addr != c->addr)
				j++;
			held[j] = held[--k];
			vc_device_free(d, c->addr, c->size);
			continue;
		}
		held[k++] = (struct span){ take(d, c->size), c->size };
		assert_true(held[k - 1].addr == c->addr);
	}
	return k;
}

static void take_apart(struct vc_device *d, struct span *held, size_t n, uint64_t size)
{
	uint64_t a = take(d, size);

	for (size_t i = 0; i < n; i++)
		assert_true(a + size <= held[i].addr || held[i].addr + held[i].size <= a);
	held[n] = (struct span){ a, size };
}

/* As recorded while the calls agree; afterwards, wherever that is, nothing overlaps. */
static void recorded_addresses_come_while_the_calls_agree(void **unused)
{
	static const enum vc_va_policy va[] = { VC_VA_INC, VC_VA_DEC, VC_VA_MIX, VC_VA_FIT,
						VC_VA_WINDOW, VC_VA_UP, VC_VA_CONTEXT };
	static const uint64_t mib[] = { 3, 2, 20, 1, 90, 64, 2, 7, 600, 32, 9, 2 };

	(void)unused;
	for (size_t p = 0; p < sizeof(va) / sizeof(*va); p++)
		for (size_t same = 0; same <= RECORDED; same++) {
			struct vc_device_config cfg = { .total = 8ull << 30, .va = va[p],
							.call = recorded, .calls = RECORDED };
			struct vc_device *d = vc_device_new(&cfg, NULL);
			struct span held[32];
			size_t n = repeat_calls(d, same, held);

			for (size_t i = 0; i < sizeof(mib) / sizeof(*mib); i++)
				take_apart(d, held, n++, mib[i] * MIB);
			vc_device_free(d, held[0].addr, held[0].size);
			held[0] = held[--n];
			for (size_t i = 0; i < 4; i++)
				take_apart(d, held, n++, (1 + i) * MIB);
			assert_true(vc_device_ok(d));
			vc_device_free_all(d);
		}
}

/* Another size, or a range given back that was not: from there on they are other calls, also where
 * they agree again. */
static void what_is_once_another_run_stays_one(void **unused)
{
	struct vc_device_config cfg = { .total = 8ull << 30, .va = VC_VA_UP, .call = recorded,
					.calls = RECORDED };
	struct vc_device *d = vc_device_new(&cfg, NULL), *e = vc_device_new(&cfg, NULL);
	uint64_t a = take(d, 20 * MIB), b, mine;

	(void)unused;
	b = take(d, 2 * MIB);
	assert_true(a == recorded[0].addr && b == recorded[1].addr);
	vc_device_free(d, b, 2 * MIB);
	assert_true(take(d, 64 * MIB) != recorded[2].addr);
	take(e, 20 * MIB);
	mine = take(e, 3 * MIB);
	assert_true(mine != recorded[1].addr);
	assert_true(take(e, 2 * MIB) != recorded[1].addr);
	vc_device_free_all(d);
	vc_device_free_all(e);

	/* Of equal size, but another range. */
	d = vc_device_new(&cfg, NULL);
	repeat_calls(d, 3, (struct span[8]){ { 0 } });
	vc_device_free(d, recorded[1].addr + MIB, 2 * MIB);
	assert_true(take(d, 7 * MIB) != recorded[4].addr);
	vc_device_free_all(d);
}

/* A call that the device refuses gives no address. */
static void a_refusal_is_no_recorded_call(void **unused)
{
	struct vc_device_config cfg = { .total = 30 * MIB, .va = VC_VA_WINDOW, .call = recorded,
					.calls = RECORDED };
	struct vc_device *d = vc_device_new(&cfg, NULL);
	uint64_t a;

	(void)unused;
	assert_false(vc_device_alloc(d, 64 * MIB, &a));
	assert_true(take(d, 20 * MIB) == recorded[0].addr);
	vc_device_free_all(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_go_down_and_their_ends_are_used),
		cmocka_unit_test(a_freed_range_is_used_again),
		cmocka_unit_test(addresses_go_up_as_on_windows),
		cmocka_unit_test(what_the_context_left_over_comes_first),
		cmocka_unit_test(going_up_the_smallest_freed_range_that_suits_comes_first),
		cmocka_unit_test(recorded_addresses_come_while_the_calls_agree),
		cmocka_unit_test(what_is_once_another_run_stays_one),
		cmocka_unit_test(a_refusal_is_no_recorded_call),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
