/* SPDX-License-Identifier: Apache-2.0 */
/* test_reduce.c - arithmetic on NCCL's types, held against that of the processor. */
#include "tests/support/test.h"

#include <math.h>

#include "nullgpu/reduce.c"

/* Each type that C has, every operation, each pair of values; then the average of three ranks. */
#define HOLDS(type, number, ...) \
	do { \
		static const type value[] = { __VA_ARGS__ }; \
		enum { N = sizeof(value) / sizeof(*value) }; \
\
		assert_int_equal(vc_reduce_width(number), sizeof(type)); \
		for (size_t i = 0; i < N; i++) \
			for (size_t k = 0; k < N; k++) { \
				const type a = value[i], b = value[k]; \
				const type truth[] = { \
					(type)(a + b), (type)(a * b), a > b ? a : b, \
					a < b ? a : b, (type)((type)(a + b) / (type)3) }; \
\
				for (int op = SUM; op <= AVERAGE; op++) { \
					type x[3] = { 1, a, 2 }; \
\
					vc_reduce_add(&x[1], &b, 1, number, op); \
					vc_reduce_finish(&x[1], 1, number, op, 3); \
					assert_true(x[0] == (type)1 && x[2] == (type)2); \
					if (x[1] != truth[op]) \
						fail_msg(#type " %g op %d %g: %g", (double)a, op, \
							 (double)b, (double)x[1]); \
				} \
			} \
	} while (0)

static void numbers_are_those_of_c(void **unused)
{
	(void)unused;
	HOLDS(int8_t, INT8, 0, 1, -1, 5, -7, 11, -11);
	HOLDS(uint8_t, UINT8, 0, 1, 5, 128, 200, 255);
	HOLDS(int32_t, INT32, 0, 1, -1, 30000, -30001, 7);
	HOLDS(uint32_t, UINT32, 0, 1, 30000, 3000000000u, UINT32_MAX);
	HOLDS(int64_t, INT64, 0, 1, -1, 2000000000, -2000000001, 3000000000);
	HOLDS(uint64_t, UINT64, 0, 1, 30000, UINT64_MAX, UINT64_MAX / 2 + 7);
	HOLDS(float, FLOAT, 0, 1, -1, 0.3f, 1e30f, -7e-20f);
	HOLDS(double, DOUBLE, 0, 1, -1, 0.3, 1e300, -7e-200);
}

static double half(uint16_t h)
{
	int e = h >> 10 & 31, m = h & 1023;
	double v = e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);

	return e == 31 ? (m ? 0 : 65504) : v; /* no infinity, and no NaN */
}

/* All of them: what they are, and that they come back; between two of them the smaller one. */
static void halves_are_what_ieee_says(void **unused)
{
	(void)unused;
	for (uint32_t h = 0; h < 0x7c00; h++) {
		double v = half((uint16_t)h), next = half((uint16_t)(h + 1));

		assert_true(from_half((uint16_t)h) == v);
		assert_true(from_half((uint16_t)(h | 0x8000)) == -v);
		assert_int_equal(to_half(v), h);
		assert_int_equal(to_half(-v), v > 0 ? h | 0x8000 : 0);
		assert_int_equal(to_half(v + 0.9 * (next - v)), h);
	}
	assert_true(from_half(0x7c00) == 65504 && from_half(0xfc00) == -65504);
	assert_true(from_half(0x7e00) == 0);
	assert_int_equal(to_half(1e6), 0x7bff);
	assert_int_equal(to_half(-1e6), 0xfbff);
}

static void short_floats_are_reduced_as_what_they_are(void **unused)
{
	const struct { int type; uint16_t a, b, truth[5]; } it[] = {
		/* 1.5 and -2; their average over four ranks */
		{ HALF, 0x3e00, 0xc000, { 0xb800, 0xc200, 0x3e00, 0xc000, 0xb000 } },
		{ BFLOAT16, 0x3fc0, 0xc000, { 0xbf00, 0xc040, 0x3fc0, 0xc000, 0xbe00 } } };

	(void)unused;
	for (size_t i = 0; i < 2; i++)
		for (int op = SUM; op <= AVERAGE; op++) {
			uint16_t x[2] = { it[i].a, it[i].b }, y[2] = { it[i].b, it[i].a };

			vc_reduce_add(x, y, 2, it[i].type, op);
			vc_reduce_finish(x, 2, it[i].type, op, 4);
			assert_int_equal(x[0], it[i].truth[op]);
			assert_int_equal(x[1], it[i].truth[op]);
		}
	for (int type = BFLOAT16 + 1; type < BFLOAT16 + 3; type++) { /* of 8 bits: as they are */
		uint8_t x = 77, y = 5;

		assert_int_equal(vc_reduce_width(type), 1);
		vc_reduce_add(&x, &y, 1, type, SUM);
		vc_reduce_finish(&x, 1, type, AVERAGE, 2);
		assert_int_equal(x, 77);
	}
	assert_int_equal(vc_reduce_width(-1), 4);
	assert_int_equal(vc_reduce_width(12), 4);
	for (int type = INT8; type <= BFLOAT16; type++)
		assert_int_equal(vc_reduce_is_float(type), type >= HALF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_those_of_c),
		cmocka_unit_test(halves_are_what_ieee_says),
		cmocka_unit_test(short_floats_are_reduced_as_what_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
