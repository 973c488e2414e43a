/* SPDX-License-Identifier: Apache-2.0 */
/* test_autocast.c - what a product takes in a copy in 16 bit: what came last, but for blocks that
 * are no tensor of the model's width. */
#include "tests/support/test.h"

#include "common/vec.h"
#include "simulator/rewrite/autocast.h"

static uint32_t site(struct vc_meta *m, const char *file)
{
	return vc_meta_frame(m, (struct vc_frame){ 0, vc_meta_string(m, "forward", 7),
						   vc_meta_string(m, file, strlen(file)), 1 });
}

/* Bytes of the copy that stands beside a kept block of 4 MB when one of `small` bytes comes between
 * it and the product. */
static uint64_t copied(uint64_t small)
{
	struct vc_meta *m = vc_meta_new(NULL);
	uint32_t model = site(m, "model.py"), other = site(m, "other.py"),
		 product = site(m, "torch/nn/modules/linear.py");
	struct vc_event ev[] = {
		{ .kind = VC_EV_ALLOC, .id = 1, .size = 4000000, .site = model },
		{ .kind = VC_EV_ALLOC, .id = 2, .size = small, .site = other },
		{ .kind = VC_EV_ALLOC, .id = 3, .size = 6000000, .site = product } };
	struct vc_block_life block[3];
	struct vc_span span = { .phase = VC_PHASE_FORWARD, .first = 0, .end = 3 };
	struct vc_whole whole = { .in = ev, .n = 3 };
	struct vc_resize r = { .c = { .w = &whole, .a = { .block = block, .n = 3, .span = &span,
							  .spans = 1, .iterations = 1 } },
			       .meta = m };
	uint64_t bytes;

	for (size_t i = 0; i < 3; i++)
		block[i] = (struct vc_block_life){ .id = i + 1, .size = ev[i].size, .event = i,
			.died_event = SIZE_MAX, .born = (uint32_t)i, .died = UINT32_MAX,
			.category = VC_CAT_ACTIVATION };
	assert_int_equal(vc_types_find(&r, &(struct vc_types){ .autocast = true }, NULL), VC_OK);
	bytes = r.extra[0].beside;
	VC_FREE(r.wide, r.halved, r.extra);
	vc_meta_free(m);
	return bytes;
}

static void what_is_no_larger_than_a_block_is_passed_over(void **unused)
{
	(void)unused;
	assert_int_equal(copied(4), 2000000);
	assert_int_equal(copied(512), 2000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_larger_than_a_block_is_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
