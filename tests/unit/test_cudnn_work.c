/* SPDX-License-Identifier: Apache-2.0 */
/* test_cudnn_work.c - plans of the stand-in cuDNN: what they are told to need, what they do, and
 * the calls of the graph interface. */
#include "tests/support/test.h"

#include "nullgpu/cudnn_graph.c"
#include "nullgpu/plans_wire.c"

#include "tests/support/cudnn_graphs.h"

static node plan_of_config(node config)
{
	node plan = make(PLAN);

	hand_one(plan, A_PLAN_CONFIG, config);
	return plan;
}

static void what_attention_may_need(void **unused)
{
	const bool yes = true, no = false;
	node op[2] = { make(POINTWISE), make(POINTWISE) }, list[2],
		virtual = four(false, 9, 9, 9, 9);

	cudnnBackendSetAttribute(virtual, A_TENSOR_VIRTUAL, A_BOOL, 1, &yes);
	hand_one(op[0], 1, virtual);
	list[0] = four(false, 2, 3, 4, 5);
	list[1] = four(false, 2, 3, 4, 6); /* the largest that is really there */
	cudnnBackendSetAttribute(list[1], A_TENSOR_VIRTUAL, A_BOOL, 1, &no);
	hand(op[0], 2, 2, list);
	hand_one(op[1], 1, four(false, 2, 3, 4, 4));
	seen.answer.n = 0;
	*seen.row = 0;
	assert_int_equal(ask(graph_of(2, op), -1, 0, NULL), 1);
	assert_string_equal(seen.named, "cuDNN graphs without a convolution (attention)");
	assert_true(seen.range.least == 0 && seen.range.counted == 0 && !seen.range.measured);
	assert_int_equal(seen.range.most, (256 << 20) + 8 * 144);
	op[0] = make(POINTWISE);
	hand_one(op[0], 1, four(false, 2, 3, 4, 4));
	op[1] = make(POINTWISE);
	hand_one(op[1], 1, four(false, 2, 3, 4, 7));
	ask(graph_of(2, op), -1, 0, NULL);
	assert_int_equal(seen.range.most, (256 << 20) + 8 * 168);
}

/* Runs the i-th of the plans that are answered for the graph. */
static void run(node g, int i)
{
	node config[3], plan;

	assert_true(ask(g, -1, 3, config) > i);
	for (int k = 0; k < 3; k++)
		if (k != i)
			cudnnBackendDestroyDescriptor(config[k]);
	plan = plan_of_config(config[i]);
	assert_int_equal(cudnnBackendExecute(NULL, plan, NULL), 0);
	cudnnBackendDestroyDescriptor(plan);
}

/* cmocka's own comparison goes by parts of the larger one. */
static void near(double have, double want)
{
	if (!(fabs(have - want) < 0.5))
		fail_msg("%.1f, not %.1f", have, want);
}

static void does(double sums, double bytes, double written, int rate)
{
	near(seen.ran.operations, sums);
	near(seen.ran.bytes, bytes);
	near(seen.ran.written, written);
	assert_int_equal(seen.ran.rate, rate);
}

static void is_product(uint64_t m, uint64_t n, uint64_t k, uint64_t groups)
{
	const uint64_t want[] = { m, n, k, groups };

	assert_memory_equal(seen.ran.dim, want, sizeof want);
}

/* Two groups of 8 and 12 channels: x 16384, w 1728, y 21600 numbers; each output is a sum of 72. */
static node grouped(int type, int first, int kind)
{
	node op = convolution(type, first, tensor_in(kind, false, SIZES(24, 8, 3, 3)),
			      tensor_in(kind, false, SIZES(1, 16, 32, 32)),
			      tensor_in(kind, false, SIZES(1, 24, 30, 30)));

	return graph_of(1, &op);
}

static void what_convolutions_do(void **unused)
{
	const double sums = 21600.0 * 72, all = 16384 + 1728 + 21600;

	run(grouped(D_FORWARD, A_FORWARD_CONV, T_FLOAT), 0);
	does(2 * sums, 4 * all, 4 * 21600, VC_NULL_TF32);
	is_product(900, 12, 72, 2);
	assert_int_equal(seen.ran.kind, VC_WORK_CONV);
	run(grouped(D_DATA, A_DATA_CONV, T_HALF), 0);
	does(2 * sums, 2 * all, 2 * 16384, VC_NULL_FP16);
	is_product(1024, 8, 108, 2);
	run(grouped(D_FILTER, A_FILTER_CONV, T_BFLOAT16), 0);
	does(2 * sums, 2 * all, 2 * 1728, VC_NULL_BF16);
	is_product(12, 72, 900, 2);
	/* who measures must find the first to be the fastest */
	run(grouped(D_FORWARD, A_FORWARD_CONV, T_FLOAT), 1);
	does(1.01 * 2 * sums, 1.01 * 4 * all, 1.01 * 4 * 21600, VC_NULL_TF32);
	run(grouped(D_FORWARD, A_FORWARD_CONV, 1), 0);
	assert_int_equal(seen.ran.rate, VC_NULL_FP64);
	run(grouped(D_FORWARD, A_FORWARD_CONV, 3), 0); /* an integer of 8 bits */
	does(2 * sums, all, 21600, VC_NULL_FP8);
	run(grouped(D_FORWARD, A_FORWARD_CONV, 5), 0); /* four of them */
	assert_int_equal(seen.ran.rate, VC_NULL_FP8);
}

/* By the notes of a plan, where it has some. */
static void floats_on_tensor_cores(void **unused)
{
	*seen.row = 0;
	seen.answer = three_plans(1u << N_TENSOR_CORE, 0);
	seen.answer.at[2].behavior = 2;
	for (int i = 0; i < 3; i++) {
		run(grouped(D_FORWARD, A_FORWARD_CONV, T_FLOAT), i);
		assert_int_equal(seen.ran.rate, i < 2 ? VC_NULL_TF32 : VC_NULL_FP32);
	}
	seen.answer.n = 0;
}

/* Nothing that a program can write into a descriptor divides by zero. */
static void sizes_of_zero(void **unused)
{
	node op = convolution(D_DATA, A_DATA_CONV, four(false, 0, 0, 3, 3), four(false, 1, 0, 5, 5),
			      four(false, 1, 0, 3, 3));

	run(graph_of(1, &op), 0);
	is_product(0, 0, 0, 1);
	op = forward(four(false, 0, 4, 3, 3), four(false, 1, 4, 5, 5), four(false, 1, 0, 3, 3));
	run(graph_of(1, &op), 0);
	is_product(0, 0, 36, 1);
}

/* ---- attention ---- */

/* 2 x 4 heads, 16 queries of 64, `keys` keys, values of 32. */
static node fused(int64_t keys, bool causal)
{
	node op[2] = { make(D_ATTENTION), make(POINTWISE) };

	hand_one(op[0], A_ATTENTION_Q, tensor_in(T_BFLOAT16, false, SIZES(2, 4, 16, 64)));
	hand_one(op[0], A_ATTENTION_K, tensor_in(T_BFLOAT16, false, SIZES(2, 4, keys, 64)));
	hand_one(op[0], A_ATTENTION_V, tensor_in(T_BFLOAT16, false, SIZES(2, 4, keys, 32)));
	if (causal)
		hand_one(op[1], A_POINTWISE_CHOICE, make(TENSOR));
	return graph_of(2, op);
}

static node product(node a, node c)
{
	node op = make(D_MATMUL);

	hand_one(op, A_MATMUL_A, a);
	hand_one(op, A_MATMUL_C, c);
	return op;
}

static void what_attention_does(void **unused)
{
	const double heads = 8, sums = 16 * 40 * (64.0 + 32);
	const double d = 48; /* of keys and values, in the mean */

	run(fused(40, false), 0);
	does(2 * heads * sums, 2 * heads * d * (2 * 16 + 2 * 40), 2 * heads * d * 16, VC_NULL_BF16);
	is_product(8, 16, 40, 48);
	assert_int_equal(seen.ran.kind, VC_WORK_ATTENTION);
	/* the last query sees all keys, the first 15 fewer */
	run(fused(40, true), 0);
	does(2 * heads * sums * (40 - 7.5) / 40, 2 * heads * d * 112, 2 * heads * d * 16,
	     VC_NULL_BF16);
	run(fused(16, true), 0);
	near(seen.ran.operations, 2 * heads * 16 * 8.5 * 96);
	/* 4 keys: the i-th of the queries sees i of them, the later ones see none more; per key */
	run(fused(4, true), 0);
	near(seen.ran.operations, 2 * heads * 16 * 96 * (4 * 5 / 2.0 / 16));
}

/* The same as products: forward two of them, backward five. */
static void attention_as_products(void **unused)
{
	const double heads = 8, one = 16.0 * 40 * 48;
	node op[5];

	op[0] = product(four(false, 2, 4, 16, 48), four(false, 2, 4, 16, 40));
	op[1] = product(four(false, 2, 4, 16, 40), four(false, 2, 4, 16, 48));
	run(graph_of(2, op), 0);
	does(2 * heads * 2 * one, 4 * heads * 48 * (2 * 16 + 2 * 40), 4 * heads * 48 * 16,
	     VC_NULL_TF32);
	is_product(8, 16, 40, 48);
	op[0] = product(four(false, 2, 4, 16, 48), four(false, 2, 4, 16, 40));
	op[1] = product(four(false, 2, 4, 40, 16), four(false, 2, 4, 40, 48));
	op[2] = product(four(false, 2, 4, 16, 48), four(false, 2, 4, 16, 40));
	op[3] = product(four(false, 2, 4, 16, 40), four(false, 2, 4, 16, 48));
	op[4] = product(four(false, 2, 4, 40, 16), four(false, 2, 4, 40, 48));
	run(graph_of(5, op), 0);
	does(2 * heads * 5 * one, 4 * heads * 48 * (4 * 16 + 4 * 40), 4 * heads * 48 * (16 + 80),
	     VC_NULL_TF32);
	/* what lacks a part of it does nothing that is known */
	op[0] = make(POINTWISE);
	run(graph_of(1, op), 0);
	does(0, 0, 0, 0);
	op[0] = product(make(TENSOR), four(false, 2, 4, 16, 40));
	run(graph_of(1, op), 0);
	does(0, 0, 0, 0);
	op[0] = make(D_MATMUL);
	hand_one(op[0], A_MATMUL_A, four(false, 2, 4, 16, 48));
	run(graph_of(1, op), 0);
	does(0, 0, 0, 0);
	op[0] = product(four(false, 2, 4, 0, 48), four(false, 2, 4, 0, 40));
	run(graph_of(1, op), 0);
	is_product(8, 0, 40, 0);
}

/* ---- the calls ---- */

static void what_runs_takes_its_workspace(void **unused)
{
	seen.workspaces = 0;
	run(usual(), 0);
	assert_true(seen.workspaces == 1 && seen.workspace == 700);
	snprintf(seen.row, sizeof seen.row, "forward" REST);
	seen.in_row = three_plans(0, 0);
	run(usual(), 1); /* what was recorded on a card is sure */
	assert_int_equal(seen.workspaces, 1);
	*seen.row = 0;
}

/* A program that runs two plans of one list measures. */
static void who_measures_is_named(void **unused)
{
	node config[3], other[3], plan[3], again;

	seen.answer = three_plans(1, 0);
	ask(usual(), -1, 3, config);
	ask(usual(), -1, 3, other);
	for (int i = 0; i < 62; i++) /* until a place is taken again */
		ask(usual(), -1, 0, NULL);
	ask(usual(), -1, 1, &again);
	assert_int_equal(again->among.list, config[0]->among.list + 64);
	again = plan_of_config(again);
	plan[0] = plan_of_config(config[1]);
	plan[1] = plan_of_config(config[2]);
	plan[2] = plan_of_config(other[0]);
	*seen.named = 0;
	for (int i = 0; i < 3; i++) { /* one of each list, time and again */
		cudnnBackendExecute(NULL, plan[0], NULL);
		cudnnBackendExecute(NULL, plan[2], NULL);
		cudnnBackendExecute(NULL, again, NULL);
	}
	assert_string_equal(seen.named, "");
	cudnnBackendExecute(NULL, plan[0], NULL);
	cudnnBackendExecute(NULL, plan[1], NULL);
	assert_string_equal(seen.named, "cuDNN algorithms that the program chooses by measuring");
	assert_true(seen.range.least == 300 && seen.range.counted == 500 && seen.range.most == 900);
	*seen.named = 0;
	cudnnBackendExecute(NULL, plan[1], NULL);
	assert_string_equal(seen.named, "");
	cudnnBackendExecute(NULL, plan[0], NULL);
	assert_string_equal(seen.named, "cuDNN algorithms that the program chooses by measuring");
	for (int i = 0; i < 3; i++)
		cudnnBackendDestroyDescriptor(plan[i]);
	cudnnBackendDestroyDescriptor(again);
	cudnnBackendDestroyDescriptor(config[0]);
	cudnnBackendDestroyDescriptor(other[1]);
	cudnnBackendDestroyDescriptor(other[2]);
	seen.answer.n = 0;
}

/* A frontend that brings one configuration takes the answer for its length. */
static void how_many_plans(void **unused)
{
	node config[3];

	seen.answer = three_plans(1, 0);
	assert_int_equal(ask(usual(), -1, 0, NULL), 3);
	for (int n = 1; n < 4; n++) {
		assert_int_equal(ask(usual(), -1, n, config), n);
		for (int i = 0; i < n; i++) {
			assert_int_equal(config[i]->engine, i);
			cudnnBackendDestroyDescriptor(config[i]);
		}
	}
	node g = usual();
	assert_int_equal(get(g, A_GRAPH_ENGINES), 3);
	cudnnBackendDestroyDescriptor(g);
	seen.answer.n = 0;
}

/* Engines: of a configuration, with their notes; and configurations of engines, by number. */
static void engines(void **unused)
{
	node config[3], engine = make(ENGINE), by_number, graph = usual();
	int note[4] = { -1, -1, -1, -1 };
	int64_t n = 0;

	seen.answer = three_plans(0x80000011u, 2);
	ask(usual(), -1, 3, config);
	cudnnBackendGetAttribute(config[1], A_CFG_ENGINE, VC_CUDNN_DESCRIPTOR, 0, &n, &engine);
	assert_int_equal(engine->engine, 0);
	cudnnBackendGetAttribute(config[1], A_CFG_ENGINE, VC_CUDNN_DESCRIPTOR, 1, NULL, &engine);
	assert_int_equal(get(engine, A_ENGINE_INDEX), 1);
	cudnnBackendGetAttribute(engine, A_ENGINE_NOTE, A_INT, 2, &n, note);
	assert_true(n == 3 && note[0] == 0 && note[1] == 4 && note[2] == -1);
	cudnnBackendGetAttribute(engine, A_ENGINE_NOTE, A_INT, 4, &n, note);
	assert_true(n == 3 && note[2] == 31 && note[3] == -1);
	cudnnBackendGetAttribute(engine, A_ENGINE_BEHAVIOR, A_INT, 4, &n, note);
	assert_int_equal(n, 0);
	cudnnBackendGetAttribute(config[2], A_ENGINE_BEHAVIOR, A_INT, 4, &n, NULL);
	assert_int_equal(n, 1);
	for (int i = 0; i < 3; i++)
		cudnnBackendDestroyDescriptor(config[i]);
	cudnnBackendDestroyDescriptor(engine);

	seen.answer.at[3].bytes = 77; /* behind the end */
	for (int64_t i = -1; i < 4; i++) {
		node e = make(ENGINE);

		by_number = make(CONFIG);
		set(e, A_ENGINE_INDEX, 1, &i);
		cudnnBackendSetAttribute(e, A_ENGINE_GRAPH, VC_CUDNN_DESCRIPTOR, 1, &graph);
		hand_one(by_number, A_CFG_ENGINE, e);
		assert_int_equal(get(by_number, A_CFG_WORKSPACE),
				 i < 0 || i > 2 ? 0 : seen.answer.at[i].bytes);
		node plan = plan_of_config(by_number);
		assert_int_equal(get(plan, A_PLAN_WORKSPACE), get(plan, A_CFG_WORKSPACE));
		assert_int_equal(plan->engine, i);
		assert_true(plan->work.operations > 0);
		cudnnBackendDestroyDescriptor(plan);
	}
	cudnnBackendDestroyDescriptor(graph);
	seen.answer.n = 0;
}

/* What was set is answered, the newest of a name. */
static void attributes(void **unused)
{
	const int64_t before[] = { 7 }, sizes[] = { 2, 3, 4 };
	int64_t out[4] = { -1, -1, -1, -1 }, n = -1, v = -1;
	node d = make(TENSOR), none = NULL;

	set(d, A_TENSOR_SIZES, 1, before);
	set(d, A_TENSOR_SIZES, 3, sizes);
	cudnnBackendGetAttribute(d, A_TENSOR_SIZES, A_INT64, 2, &n, out);
	assert_true(n == 3 && out[0] == 2 && out[1] == 3 && out[2] == -1);
	cudnnBackendGetAttribute(d, A_TENSOR_SIZES, A_INT64, 4, &n, out);
	assert_true(n == 3 && out[2] == 4 && out[3] == -1);
	cudnnBackendGetAttribute(d, A_TENSOR_SIZES, A_INT64, 0, &n, &v);
	assert_true(n == 3 && v == -1);
	cudnnBackendGetAttribute(d, A_TENSOR_STRIDES, A_INT64, 1, &n, &v);
	assert_true(n == 0 && v == -1);
	assert_int_equal(get(d, A_CFG_SHARED), 0);
	cudnnBackendGetAttribute(d, A_CFG_SHARED, A_INT64, 0, &n, &v);
	assert_true(n == 1 && v == -1);
	cudnnBackendSetAttribute(d, A_CONV_PADS, A_INT64, 2, NULL);
	cudnnBackendGetAttribute(d, A_CONV_PADS, A_INT64, 2, &n, out);
	assert_true(n == 2 && out[0] == 0 && out[1] == 0);
	/* a descriptor that is none refers to nobody */
	cudnnBackendSetAttribute(d, A_PLAN_CONFIG, VC_CUDNN_DESCRIPTOR, 1, &none);
	cudnnBackendSetAttribute(d, A_CFG_ENGINE, VC_CUDNN_DESCRIPTOR, 1, &none);
	cudnnBackendSetAttribute(d, A_PLAN_CONFIG, VC_CUDNN_DESCRIPTOR, 0, NULL);
	set(d, A_ENGINE_INDEX, 0, NULL);
	assert_true(!linked(d, A_PLAN_CONFIG, 0) && number(d, A_ENGINE_INDEX, 0) == 0);
	assert_int_equal(cudnnBackendDestroyDescriptor(d), 0);
	assert_int_equal(cudnnBackendDestroyDescriptor(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_attention_may_need),
		cmocka_unit_test(what_convolutions_do),
		cmocka_unit_test(floats_on_tensor_cores),
		cmocka_unit_test(sizes_of_zero),
		cmocka_unit_test(what_attention_does),
		cmocka_unit_test(attention_as_products),
		cmocka_unit_test(what_runs_takes_its_workspace),
		cmocka_unit_test(who_measures_is_named),
		cmocka_unit_test(how_many_plans),
		cmocka_unit_test(engines),
		cmocka_unit_test(attributes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
