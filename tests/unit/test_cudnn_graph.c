/* SPDX-License-Identifier: Apache-2.0 */
/* test_cudnn_graph.c - graphs of the stand-in cuDNN: which row of a table each one is, and who is
 * asked for what is none. */
#include "tests/support/test.h"

#include "nullgpu/cudnn_graph.c"
#include "nullgpu/plans_wire.c"

#include "tests/support/cudnn_graphs.h"

/* The key under which an operation's plans are looked up. */
static const char *key_of(node op)
{
	seen.answer.n = 0;
	*seen.row = 0;
	ask(graph_of(1, &op), -1, 0, NULL);
	/* what has no row has no line in the log either */
	assert_string_equal(seen.logged, strncmp(seen.key, "graph", 5) ? seen.key : "");
	return seen.key;
}

static node five(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e)
{
	return tensor_in(T_HALF, false, SIZES(a, b, c, d, e));
}

static void each_direction_has_its_row(void **unused)
{
	static const struct { int type, first; const char *name; } way[] = {
		{ D_FORWARD, A_FORWARD_CONV, "forward" }, { D_DATA, A_DATA_CONV, "data" },
		{ D_FILTER, A_FILTER_CONV, "filter" } };

	for (int i = 0; i < 3; i++) {
		char want[160];

		snprintf(want, sizeof want, "%s f16 nchw 2x12x20x21x22 8x6x3x4x5 2x8x10x11x13 "
			 "1x2x3 4x5x6 7x8x9", way[i].name);
		assert_string_equal(key_of(convolution(way[i].type, way[i].first,
				five(8, 6, 3, 4, 5), five(2, 12, 20, 21, 22),
				five(2, 8, 10, 11, 13))), want);
	}
	assert_string_equal(key_of(forward(tensor_in(T_FLOAT, false, SIZES(8, 6, 3)),
					   tensor_in(T_FLOAT, false, SIZES(2, 6, 20)),
					   tensor_in(T_FLOAT, false, SIZES(2, 8, 10)))),
			    "forward f32 nchw 2x6x20 8x6x3 2x8x10 1 4 7");
	assert_string_equal(key_of(forward(four(true, 8, 6, 3, 4), four(true, 2, 6, 20, 21),
					   four(true, 2, 8, 10, 11))),
			    "forward f32 nhwc 2x6x20x21 8x6x3x4 2x8x10x11 1x2 4x5 7x8");
}

/* Of a tensor with one channel, or one place, both orders are true: that of the others counts. */
static void an_order_is_that_of_all_three(void **unused)
{
	assert_string_equal(key_of(forward(four(true, 8, 1, 3, 3), four(false, 2, 1, 20, 20),
					   four(true, 2, 8, 18, 18))),
			    "forward f32 nhwc 2x1x20x20 8x1x3x3 2x8x18x18 1x2 4x5 7x8");
	assert_string_equal(key_of(forward(four(false, 8, 6, 3, 3), four(true, 2, 6, 1, 1),
					   four(false, 2, 8, 5, 5))),
			    "forward f32 nchw 2x6x1x1 8x6x3x3 2x8x5x5 1x2 4x5 7x8");
	assert_string_equal(key_of(forward(four(false, 8, 6, 1, 1), four(false, 2, 6, 1, 1),
					   four(false, 2, 8, 1, 1))),
			    "forward f32 nhwc 2x6x1x1 8x6x1x1 2x8x1x1 1x2 4x5 7x8");
	assert_string_equal(key_of(forward(four(true, 8, 1, 1, 1), four(true, 2, 1, 1, 1),
					   four(true, 2, 8, 1, 1))),
			    "forward f32 nchw 2x1x1x1 8x1x1x1 2x8x1x1 1x2 4x5 7x8");
	/* the third has another */
	assert_string_equal(key_of(forward(four(false, 8, 6, 3, 3), four(false, 2, 6, 9, 9),
					   four(true, 2, 8, 7, 7))), "graph/0 " HASH);
	assert_string_equal(key_of(forward(four(true, 8, 6, 3, 3), four(false, 2, 6, 9, 9),
					   four(false, 2, 8, 7, 7))), "graph/0 " HASH);
	assert_string_equal(key_of(forward(four(false, 8, 6, 3, 3), four(true, 2, 6, 9, 9),
					   four(true, 2, 8, 7, 7))), "graph/0 " HASH);
}

static const char *with(int which, int name, int64_t n, const int64_t *values)
{
	node t[] = { four(false, 8, 6, 3, 3), four(false, 2, 6, 9, 9), four(false, 2, 8, 7, 7) };

	set(t[which], name, n, values);
	return key_of(forward(t[0], t[1], t[2]));
}

static void tensors_of_a_row_are_plain(void **unused)
{
	const int64_t gaps[3][4] = { { 54, 9, 3, 2 }, { 486, 90, 9, 1 }, { 400, 49, 7, 1 } };
	const int64_t eight = 8, sixteen = 16;

	for (int i = 0; i < 3; i++) {
		assert_string_equal(with(i, A_TENSOR_STRIDES, 4, gaps[i]), "graph/0 " HASH);
		assert_string_equal(with(i, A_TENSOR_ALIGNMENT, 1, &eight), "graph/0 " HASH);
		assert_memory_equal(with(i, A_TENSOR_ALIGNMENT, 1, &sixteen), "forward ", 8);
	}
}

static void what_is_no_convolution_has_a_hash(void **unused)
{
	const int64_t many[] = { 2, 6, 9, 9, 9, 9 };
	node x = make(TENSOR), two[2];

	for (int n = 0; n < 7; n++) {
		assert_string_equal(with(1, A_TENSOR_SIZES, n, many), n == 4 ? "forward f32 nchw "
				    "2x6x9x9 8x6x3x3 2x8x7x7 1x2 4x5 7x8" : "graph/0 " HASH);
		assert_int_equal(strlen(seen.named) > 0, n < 3 || n > 5);
	}
	assert_string_equal(key_of(forward(make(TENSOR), make(TENSOR), make(TENSOR))),
			    "graph/0 " HASH);
	set(x, A_TENSOR_SIZES, 4, many); /* no type */
	assert_string_equal(key_of(forward(make(TENSOR), x, make(TENSOR))), "graph/0 " HASH);
	assert_string_equal(key_of(make(POINTWISE)), "graph/0 " HASH);
	/* with something behind it, or before: the rule for the convolution answers all the same */
	for (int i = 0; i < 2; i++) {
		two[i] = forward(four(false, 8, 6, 3, 3), four(false, 2, 6, 9, 9),
				 four(false, 2, 8, 7, 7));
		two[!i] = make(POINTWISE);
		assert_int_equal(ask(graph_of(2, two), -1, 0, NULL), 2);
		assert_string_equal(seen.key, "graph/0 " HASH);
		assert_string_equal(seen.logged, "");
		assert_string_equal(seen.named, "");
		assert_false(seen.ruled.channels_last);
	}
	/* a graph of nothing is asked about nowhere */
	assert_int_equal(ask(make(GRAPH), -1, 0, NULL), 1);
	assert_string_equal(seen.key, "");
	assert_int_equal(seen.asked, 0);
}

/* ---- which list ---- */

static void modes_have_lists_of_their_own(void **unused)
{
	static const char *const list[] = { "", "/b", "/fallback", "", "", "" };
	char want[160];
	node h;

	for (int mode = -1; mode < 5; mode++) {
		snprintf(want, sizeof want, "forward%s" REST, list[mode + (mode < 0)]);
		ask(usual(), mode, 0, NULL);
		assert_string_equal(seen.key, want);
	}
	h = make(HEURISTIC);
	cudnnBackendSetAttribute(h, A_HEUR_MODE, A_INT, 0, NULL);
	assert_int_equal(mode_of(h), VC_MODE_INSTANT);
	set_int(h, A_HEUR_MODE, VC_MODE_A);
	assert_int_equal(mode_of(h), VC_MODE_A);
	cudnnBackendDestroyDescriptor(h);
	node op = make(POINTWISE);
	ask(graph_of(1, &op), VC_MODE_FALLBACK, 0, NULL);
	assert_string_equal(seen.key, "graph/2 " HASH);
}

/* Rows without notes were recorded on a card: that is what comes. Others may come in another order:
 * that is named. */
static void a_row_of_the_table_comes_first(void **unused)
{
	node config[4];

	snprintf(seen.row, sizeof seen.row, "forward" REST);
	seen.in_row = three_plans(0, 0);
	assert_int_equal(ask(usual(), -1, 4, config), 3);
	assert_int_equal(seen.asked, 0);
	assert_string_equal(seen.named, "");
	assert_string_equal(seen.logged, seen.row);
	for (int i = 0; i < 3; i++) {
		assert_true(config[i]->plan.recorded);
		assert_int_equal(get(config[i], A_CFG_WORKSPACE), seen.in_row.at[i].bytes);
	}
	assert_int_equal(config[3]->plan.bytes, 0);
	for (int i = 0; i < 4; i++)
		cudnnBackendDestroyDescriptor(config[i]);
	for (int i = 0; i < 2; i++) {
		seen.report.convolutions = 2;
		seen.in_row = three_plans(i ? 0 : 8, i ? 4 : 0);
		ask(usual(), -1, 1, config);
		assert_false(config[0]->plan.recorded);
		assert_memory_equal(seen.named, "cuDNN convolution workspaces, as it names", 41);
		assert_true(seen.range.measured && seen.range.counted == 500);
		assert_true(seen.range.least == 300 && seen.range.most == 900);
		assert_int_equal(seen.report.convolutions, 3);
		cudnnBackendDestroyDescriptor(config[0]);
	}
}

/* The fallback list of a row that was recorded on a card is the row; no other list is. */
static void fallbacks_of_recorded_rows(void **unused)
{
	snprintf(seen.row, sizeof seen.row, "forward" REST);
	seen.in_row = three_plans(0, 0);
	assert_int_equal(ask(usual(), VC_MODE_FALLBACK, 0, NULL), 3);
	assert_string_equal(seen.key, "forward/fallback" REST);
	assert_int_equal(ask(usual(), VC_MODE_B, 0, NULL), 2);
	seen.in_row.at[0].notes = 1;
	assert_int_equal(ask(usual(), VC_MODE_FALLBACK, 0, NULL), 2);
	seen.in_row.at[0] = (struct vc_cudnn_plan){ .behavior = 1 };
	assert_int_equal(ask(usual(), VC_MODE_FALLBACK, 0, NULL), 2);
	snprintf(seen.row, sizeof seen.row, "graph/0 " HASH);
	node op = make(POINTWISE);
	assert_int_equal(ask(graph_of(1, &op), VC_MODE_FALLBACK, 0, NULL), 1);
}

static void then_the_library_is_asked(void **unused)
{
	node op = make(POINTWISE);

	*seen.row = 0;
	seen.answer = three_plans(1, 0);
	assert_int_equal(ask(usual(), -1, 0, NULL), 3);
	assert_int_equal(seen.asked, 1);
	assert_string_equal(seen.kept, "forward" REST);
	assert_memory_equal(seen.named, "cuDNN convolution", 17);
	/* of a graph without a convolution nothing is doubtful then */
	assert_int_equal(ask(graph_of(1, &op), -1, 0, NULL), 3);
	assert_string_equal(seen.named, "");
	seen.answer.n = 0;
	assert_int_equal(ask(usual(), -1, 0, NULL), 2);
	assert_string_equal(seen.kept, "");
	assert_string_equal(seen.named, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_direction_has_its_row),
		cmocka_unit_test(an_order_is_that_of_all_three),
		cmocka_unit_test(tensors_of_a_row_are_plain),
		cmocka_unit_test(what_is_no_convolution_has_a_hash),
		cmocka_unit_test(modes_have_lists_of_their_own),
		cmocka_unit_test(a_row_of_the_table_comes_first),
		cmocka_unit_test(fallbacks_of_recorded_rows),
		cmocka_unit_test(then_the_library_is_asked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
