/* SPDX-License-Identifier: Apache-2.0 */
/* test_spread.c - where one more run of a program ends whose sizes the data decide. */
#include "tests/support/test.h"

#include "simulator/session/spread.h"

enum { RUNS = 4 };

/* In MiB. */
struct ends { double least, most; };

static struct ends ends_of(const double held[2 * RUNS + 1], const double reserved[2 * RUNS + 1],
			   unsigned *middle)
{
	struct vc_peaks p[2 * RUNS + 1];
	uint64_t least, most;

	for (int i = 0; i <= 2 * RUNS; i++)
		p[i] = (struct vc_peaks){ (uint64_t)(held[i] * 0x1p20),
					  (uint64_t)(reserved[i] * 0x1p20) };
	*middle = vc_spread(p, p + RUNS, RUNS, &least, &most);
	return (struct ends){ (double)least / 0x1p20, (double)most / 0x1p20 };
}

/* Without a cache it is Student's t: 3.499 standard deviations of one more beside four. */
static void without_a_cache_it_is_students_t(void **unused)
{
	static const double held[] = { 200, 220, 242, 220, 100, 110, 121, 110, 110 };
	double far = 3.499 * log(1.1) * sqrt(4.0 / 7 * (1 + 1.0 / 4));
	unsigned middle;
	struct ends e = ends_of(held, held, &middle);

	(void)unused;
	assert_float_equal(e.least, 220 * exp(-far), 1e-3);
	assert_float_equal(e.most, 220 * exp(far), 1e-3);
	assert_int_equal(middle, 1);
}

/* Graphs (powerful-gnns): sixteen runs reserved 784 to 840 or 1,532 to 1,536 MiB. */
static void where_the_cache_is_of_two_sizes_tensors_say_how_far(void **unused)
{
	static const double held[] = { 716, 714, 717, 748, 361, 352, 347, 366, 355 };
	static const double reserved[] = { 1532, 786, 1534, 840, 448, 506, 730, 438, 732 };
	unsigned middle;
	struct ends e = ends_of(held, reserved, &middle);

	(void)unused;
	assert_true(e.least > 600 && e.least < 784); /* else 334 to 3,735 */
	assert_true(e.most > 1536 && e.most < 2000);
}

static void what_is_reserved_alike_each_time_stays_so(void **unused)
{
	static const double held[] = { 30, 25, 35, 30, 15, 12, 18, 15, 15 };
	static const double reserved[] = { 40, 40, 40, 40, 20, 20, 20, 20, 20 };
	unsigned middle;
	struct ends e = ends_of(held, reserved, &middle);

	(void)unused;
	assert_float_equal(e.least, 40, 1e-3);
	assert_float_equal(e.most, 40, 1e-3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_cache_it_is_students_t),
		cmocka_unit_test(where_the_cache_is_of_two_sizes_tensors_say_how_far),
		cmocka_unit_test(what_is_reserved_alike_each_time_stays_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
