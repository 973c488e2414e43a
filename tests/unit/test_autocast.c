/* SPDX-License-Identifier: Apache-2.0 */
/* test_autocast.c - what a product takes in a copy in 16 bit: what came last, but for blocks that
 * are no tensor of the model's width. */
#include "tests/support/test.h"

#include "common/vec.h"
#include "simulator/rewrite/autocast.h"

static uint32_t line(struct vc_meta *m, const char *file, uint32_t number)
{
	return vc_meta_frame(m, (struct vc_frame){ 0, vc_meta_string(m, "forward", 7),
						   vc_meta_string(m, file, strlen(file)), number });
}

static uint32_t site(struct vc_meta *m, const char *file)
{
	return line(m, file, 1);
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

enum { SIZE = 4000000, MOST = 16 };

/* Which blocks are in float, a digit each, behind a product of SIZE bytes: by `n` blocks of these
 * sizes, that with number `elsewhere` of another function. */
static const char *wide(const uint64_t *size, size_t n, size_t elsewhere)
{
	static char text[MOST + 1];
	struct vc_meta *m = vc_meta_new(NULL);
	struct vc_event ev[MOST] = { { .kind = VC_EV_ALLOC, .id = 1, .size = SIZE,
				       .site = site(m, "torch/nn/modules/linear.py") } };
	struct vc_block_life block[MOST];
	struct vc_span span = { .phase = VC_PHASE_FORWARD, .first = 0, .end = n + 1 };
	struct vc_whole whole = { .in = ev, .n = n + 1 };
	struct vc_resize r = { .c = { .w = &whole, .a = { .block = block, .n = n + 1, .span = &span,
							  .spans = 1, .iterations = 1 } },
			       .meta = m };

	for (size_t i = 1; i <= n; i++)
		ev[i] = (struct vc_event){ .kind = VC_EV_ALLOC, .id = i + 1, .size = size[i - 1],
					   .site = line(m, i == elsewhere ? "other.py" :
							"model.py", (uint32_t)i) };
	for (size_t i = 0; i <= n; i++)
		block[i] = (struct vc_block_life){ .id = i + 1, .size = ev[i].size, .event = i,
			.died_event = SIZE_MAX, .born = (uint32_t)i, .died = UINT32_MAX,
			.category = VC_CAT_ACTIVATION };
	assert_int_equal(vc_types_find(&r, &(struct vc_types){ .autocast = true }, NULL), VC_OK);
	for (size_t i = 0; i < n; i++)
		text[i] = (char)('0' + (r.wide[i + 1] != 0));
	text[n] = '\0';
	VC_FREE(r.wide, r.halved, r.extra);
	vc_meta_free(m);
	return text;
}

/* x.pow(2), a few small ones, x times their root, and the weight times that: in float, if they look
 * like that in every way. */
static void norms_that_are_written_out_are_in_float(void **unused)
{
	uint64_t size[MOST];

	(void)unused;
	for (size_t few = 0; few < 11; few++)
		for (int odd = 0; odd < 7; odd++) {
			size_t n = few + 3, k = few + 1;
			bool norm = few >= 2 && few <= 8 && odd < 2;

			size[0] = size[k] = size[k + 1] = SIZE;
			for (size_t i = 1; i < k; i++) /* a sixteenth at most, and a part of it */
				size[i] = odd == 1 ? 1000 : odd == 2 ? SIZE / 16 + 1 : SIZE / 16;
			if (odd == 3 && few)
				size[few] = 2000;
			if (odd == 4)
				size[k] = SIZE / 2;
			if (few < 2 && odd > 1)
				continue;
			if (odd == 6)
				n--; /* nothing comes behind it */
			const char *text = wide(size, n, odd == 5 ? k + 1 : 0);

			if ((text[0] == '1') != norm || (text[k] == '1') != norm)
				fail_msg("%zu, odd %d: %s", few, odd, text);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_larger_than_a_block_is_passed_over),
		cmocka_unit_test(norms_that_are_written_out_are_in_float),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
