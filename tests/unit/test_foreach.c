/* SPDX-License-Identifier: Apache-2.0 */
/* test_foreach.c - what kernels over lists of tensors move, read from their packed arguments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "nullgpu/foreach.c"

#define ADD "_ZN2at6native25multi_tensor_apply_kernelINS1_18TensorListMetadataILi2EEE" \
	"NS1_14UnaryOpFunctorIfLi2ELi1ELi1EEE"
#define LERP "_ZN2at6native25multi_tensor_apply_kernelINS1_18TensorListMetadataILi2EEE" \
	"NS1_22TernaryOpScalarFunctorIdLi2ELi2ELi0EEE"
#define DIVIDE "multi_tensor_apply_kernelINS1_28TensorListScalarListMetadataIfLi3EEE" \
	"NS1_28PointwiseOpScalarListFunctorIfLi3ELi3ELi0EEE"

/* TensorListMetadata<2>: 2 x 64 addresses, 64 numbers of values, 320 bytes, 320 ints. */
struct list {
	uint64_t address[2][64];
	int64_t numel[64];
	unsigned char tensor[320];
	int chunk[320];
};
/* TensorListScalarListMetadata<float, 3>: 48 of each, and a float. */
struct scalars {
	uint64_t address[3][48];
	int64_t numel[48];
	float value[48];
	unsigned char tensor[320];
	int chunk[320];
};

static void whole_and_partial_chunks_count(void **unused)
{
	struct list l = {
		.numel = { 100, 2 * 65536 + 7 }, .tensor = { 0, 1, 1, 1 },
		.chunk = { 0, 0, 1, 2 } };

	(void)unused;
	assert_true(vc_null_foreach_bytes(ADD, &l, 4) ==
		    (100 + 2 * 65536 + 7) * 4.0 * 2); /* one read, one written */
	assert_true(vc_null_foreach_bytes(LERP, &l, 4) ==
		    (100 + 2 * 65536 + 7) * 8.0 * 3); /* doubles, two read */
	assert_true(vc_null_foreach_bytes(ADD, &l, 1) == 100 * 4.0 * 2);
}

static void lists_with_scalars_have_their_own_layout(void **unused)
{
	struct scalars l = { .numel = { 5000 }, .value = { 1.5f }, .tensor = { 0 },
			     .chunk = { 0 } };

	(void)unused;
	assert_true(vc_null_foreach_bytes(DIVIDE, &l, 1) == 5000 * 4.0 * 4);
}

static void other_kernels_and_nonsense_move_nothing(void **unused)
{
	struct list l = { .numel = { 100 }, .tensor = { 200 } };

	(void)unused;
	assert_true(vc_null_foreach_bytes("_Z6vectorILi2EE", &l, 1) == 0);
	assert_true(vc_null_foreach_bytes(ADD, &l, 1) == 0);     /* no such tensor */
	l.tensor[0] = 0;
	l.chunk[0] = 3;
	assert_true(vc_null_foreach_bytes(ADD, &l, 1) == 0);     /* nor such a chunk */
	assert_true(vc_null_foreach_bytes(ADD, NULL, 1) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_and_partial_chunks_count),
		cmocka_unit_test(lists_with_scalars_have_their_own_layout),
		cmocka_unit_test(other_kernels_and_nonsense_move_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
