/* SPDX-License-Identifier: Apache-2.0 */
/* test_kernel_work.c - what a kernel computes, as text; how long that takes on a card; and recorded
 * launches played again with it. */
#include "tests/support/test.h"

#include "simulator/time/time_cost.h"
#include "simulator/time/time_profile.h"

static void work_is_written_and_read(void **unused)
{
	struct vc_kernel_work w = { VC_WORK_GEMM, "bf16", 2e12, 3e9, 4e9, { 8, 9, 10, 1 } }, b;
	char text[VC_WORK_TEXT];

	(void)unused;
	vc_kernel_work_text(&w, text);
	assert_string_equal(text, "gemm bf16 2000000000000 3000000000 4000000000 8 9 10 1");
	assert_true(vc_kernel_work_parse(text, &b));
	assert_int_equal(b.kind, VC_WORK_GEMM);
	assert_string_equal(b.type, "bf16");
	assert_true(b.flops == w.flops && b.read == w.read && b.written == w.written);
	assert_memory_equal(b.dim, w.dim, sizeof(w.dim));
}

static void other_texts_are_no_work(void **unused)
{
	static const char *const texts[] = {
		"", "gemm", "forward", "gemm bf16 1 2 3 4 5 6", "gemm bf16 1 2 3 4 5 6 x",
		"gemm bf16 1 2 3 4 5 6 7 8", "gemmm bf16 1 2 3 4 5 6 7", "gemm bf16 -1 2 3 4 5 6 7",
		"gemm bf16 1e30 2 3 4 5 6 7",
	};
	struct vc_kernel_work w;

	(void)unused;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (vc_kernel_work_parse(texts[i], &w))
			fail_msg("\"%s\" was read", texts[i]);
}

static struct vc_kernel_work product(double m, double n, double k)
{
	return (struct vc_kernel_work){ VC_WORK_GEMM, "bf16", 2 * m * n * k, 2 * (m + n) * k,
		2 * m * n, { (uint64_t)m, (uint64_t)n, (uint64_t)k, 1 } };
}

static double ns_of(const char *card, struct vc_kernel_work w, const char *name)
{
	return vc_cost_of(vc_card_by_name(card), &w, name).ns;
}

static void one_tile_more_is_a_wave_more(void **unused)
{
	/* an H100 has 132 multiprocessors: 66 x 2 tiles of 128 x 256, and one column more */
	double full = ns_of("h100-80g-sxm", product(66 * 128, 512, 65536), "gemm"),
	       more = ns_of("h100-80g-sxm", product(66 * 128 + 128, 512, 65536), "gemm"),
	       twice = ns_of("h100-80g-sxm", product(2 * 66 * 128, 512, 65536), "gemm");

	(void)unused;
	assert_true(more > 1.2 * full && more <= 1.001 * twice && twice < 2.01 * full);
}

static void time_is_the_larger_of_computing_and_moving(void **unused)
{
	const struct vc_card *c = vc_card_by_name("h100-80g-sxm");
	double large = ns_of("h100-80g-sxm", product(8192, 8192, 8192), "gemm"),
	       thin = ns_of("h100-80g-sxm", product(1, 16384, 16384), "gemm");
	struct vc_kernel_work add = { VC_WORK_ELEMENTWISE, "bf16", 0, 2e9, 1e9, { 1, 128 } };
	double fast = ns_of("h100-80g-sxm", add, "vectorized_elementwise_kernel"),
	       slow = ns_of("h100-80g-sxm", add, "elementwise_kernel");

	(void)unused;
	assert_true(large > 2.0 * 8192 * 8192 * 8192 / (1e3 * c->half_tflops));
	assert_true(large < 1.5 * 2.0 * 8192 * 8192 * 8192 / (1e3 * c->half_tflops));
	assert_true(thin > 2.0 * 16384 * 16384 / c->bandwidth_gbs);
	assert_true(fast > 3e9 / c->bandwidth_gbs && fast < 1.3 * 3e9 / c->bandwidth_gbs);
	assert_true(slow > 1.2 * fast);
	assert_true(ns_of("a100-40g-sxm", add, "vectorized_elementwise_kernel") > 1.8 * fast);
}

/* A kernel that falls short of an H100's memory may still reach that of a card with less for each
 * multiprocessor; before Ampere there is no TF32. */
static void what_one_card_falls_short_of_another_reaches(void **unused)
{
	struct vc_kernel_work norm = { VC_WORK_REDUCTION, "fp16", 0, 1e9, 1e9, { 256, 512, 1 } };
	struct vc_kernel_work conv = { VC_WORK_CONV, "tf32", 1e12, 1e8, 1e8,
				       { 4096, 512, 4608, 1 } };
	double h100 = vc_card_by_name("h100-80g-sxm")->bandwidth_gbs,
	       rtx = vc_card_by_name("rtx4090")->bandwidth_gbs, floats;

	(void)unused;
	assert_true(ns_of("h100-80g-sxm", norm, "cudnn_bn_fw_inf") > 2 * 2e9 / h100);
	assert_true(ns_of("rtx4090", norm, "cudnn_bn_fw_inf") < 1.3 * 2e9 / rtx);
	floats = ns_of("a100-80g-sxm", conv, "cudnn_plan");
	strcpy(conv.type, "fp32");
	assert_true(ns_of("a100-80g-sxm", conv, "cudnn_plan") > 2 * floats);
	floats = ns_of("v100-16g-sxm", conv, "cudnn_plan");
	strcpy(conv.type, "tf32");
	assert_true(ns_of("v100-16g-sxm", conv, "cudnn_plan") == floats);
}

/* cuDNN's attention of the published size: 0.465 ms forwards, 1.45 backwards. */
static void attention_of_cudnn_is_faster(void **unused)
{
	struct vc_kernel_work w = { VC_WORK_ATTENTION, "bf16", 2.0 * 64 * 4096 * 4097 * 128, 1.3e8,
				    6.7e7, { 64, 4096, 4096, 128 } };
	double own = ns_of("h100-80g-sxm", w, "cudnn_plan_bf16");

	(void)unused;
	assert_true(own > 0.43e6 && own < 0.51e6);
	assert_true(ns_of("h100-80g-sxm", w, "flash_fwd_kernel") > 1.5 * own);
	w.flops *= 2.5;
	own = ns_of("h100-80g-sxm", w, "cudnn_plan_bf16");
	assert_true(own > 1.3e6 && own < 1.6e6);
}

/* Attention of as many pairs takes longer where they are the half of a square: tiles on its
 * diagonal are computed whole. */
static void causal_attention_computes_whole_tiles(void **unused)
{
	struct vc_kernel_work all = { VC_WORK_ATTENTION, "bf16", 4.0 * 64 * 512 * 512 * 64, 1e6,
		1e6, { 64, 512, 512, 64 } }, half = all;
	double whole = ns_of("h100-80g-sxm", all, "flash"), causal;

	(void)unused;
	half.flops /= 2;
	causal = ns_of("h100-80g-sxm", half, "flash");
	assert_true(causal < whole && causal > 0.6 * whole);
}

static void a_sum_sends_everything_twice(void **unused)
{
	struct vc_kernel_work w = { VC_WORK_COLLECTIVE, "-", 0, 4e9, 4e9, { 8, 0, 1, 0 } };
	double spread = ns_of("h100-80g-sxm", w, "ncclAllGather"),
	       sum = ns_of("h100-80g-sxm", w, "ncclAllReduce"),
	       bus = ns_of("rtx4090", w, "ncclAllGather"), far;

	(void)unused;
	assert_true(spread > 4e9 * 7 / 8 / 450 && sum > 1.4 * spread && bus > 10 * spread);
	w.dim[0] = 64;
	far = ns_of("h100-80g-sxm", w, "ncclAllGather");
	assert_true(far > spread);
	w.dim[0] = 1;
	assert_true(ns_of("h100-80g-sxm", w, "ncclAllGather") < 1e4);
}

/* Of a group the first message bears the start, and those that come in cost nothing more. */
static void messages_of_a_group_go_both_ways_at_once(void **unused)
{
	struct vc_kernel_work w = { VC_WORK_COLLECTIVE, "f", 0, 1e9, 1e9, { 2, 0, 1, 1 } };
	double first = ns_of("h100-80g-sxm", w, "ncclSend"), next, in;

	(void)unused;
	strcpy(w.type, "n");
	next = ns_of("h100-80g-sxm", w, "ncclSend");
	in = ns_of("h100-80g-sxm", w, "ncclRecv");
	assert_true(first > next && next > 1e6 && in < 1e3);
	strcpy(w.type, "-");
	assert_true(ns_of("h100-80g-sxm", w, "ncclRecv") > 1e6);
}

/* ---- played again ---- */

struct tape {
	struct vc_meta *meta;
	struct vc_event ev[512];
	size_t n;
	uint64_t now;
};

static void kernel(struct tape *t, const char *name, const struct vc_kernel_work *w, uint64_t ns)
{
	char text[VC_WORK_TEXT];
	struct vc_frame f = { 0 };

	vc_kernel_work_text(w, text);
	f.function = vc_meta_string(t->meta, text, strlen(text));
	t->ev[t->n] = (struct vc_event){ .kind = VC_EV_KERNEL, .time_ns = t->now, .size = ns,
		.id = t->n + 1, .site = vc_meta_frame(t->meta, f),
		.label = vc_meta_string(t->meta, name, strlen(name)) };
	t->n++;
	t->now += ns;
}

static void begin(struct tape *t)
{
	*t = (struct tape){ .meta = vc_meta_new(NULL), .now = 1 };
	vc_meta_device(t->meta, 0)->name = strdup("NVIDIA H100 80GB HBM3");
	t->meta->how[VC_CAP_NULL_GPU] = t->meta->how[VC_CAP_WORK] = VC_HOW_RECORDED;
}

static void step(struct tape *t)
{
	t->ev[t->n++] = (struct vc_event){ .kind = VC_EV_MARK, .flags = VC_MARK_STEP,
		.time_ns = t->now, .device = UINT16_MAX };
}

static struct vc_profile profile(struct tape *t)
{
	struct vc_profile p = { 0 };
	struct vc_error err = { 0 };

	assert_int_equal(vc_profile_add(&p, t->ev, t->n, 0, t->meta, &err), 0);
	assert_int_equal(vc_profile_finish(&p, 0, 0, t->meta, &err), 0);
	return p;
}

/* Steps of ten kernels, each called differently, all of that work. */
static struct vc_profile played(struct vc_kernel_work w)
{
	struct tape t;
	struct vc_profile p;
	char name[32];

	begin(&t);
	for (int i = 0; i < 8; i++) {
		step(&t);
		for (int k = 0; k < 10; k++) {
			snprintf(name, sizeof(name), "kernel%c", 'a' + k);
			kernel(&t, name, &w, 2000);
		}
	}
	p = profile(&t);
	assert_int_equal(p.beats, 10);
	vc_meta_free(t.meta);
	return p;
}

/* ---- ranks that meet ---- */

/* A rank computes, and hands over to the other one: `first` sends before it receives. */
static struct vc_profile rank(struct tape *t, uint64_t me, bool first)
{
	struct vc_kernel_work w = product(8192, 8192, 8192), m = { VC_WORK_COLLECTIVE, "-", 0, 1e6,
		1e6, { 2, me, 1, 1 - me } };

	begin(t);
	t->meta->rank = (int64_t)me;
	for (int i = 0; i < 8; i++) {
		step(t);
		if (!first)
			kernel(t, "ncclRecv", &m, 2000);
		for (int k = 0; k < 8; k++)
			kernel(t, k % 2 ? "odd" : k % 4 ? "even" : "fourth", &w, 2000);
		kernel(t, "ncclSend", &m, 2000);
		if (first)
			kernel(t, "ncclRecv", &m, 2000);
	}
	return profile(t);
}

static void what_one_rank_sends_the_other_waits_for(void **unused)
{
	static struct tape t[2];
	struct vc_profile p[2] = { rank(&t[0], 0, true), rank(&t[1], 1, false) };
	const struct vc_player who[2] = { { &p[0], t[0].meta }, { &p[1], t[1].meta } };
	double alone = (double)p[0].step_ns, ns[3], one[3];
	struct vc_error err = { 0 };

	(void)unused;
	assert_int_equal(vc_profiles_meet(who, 1, one, &err), 0);
	assert_int_equal(vc_profiles_meet(who, 2, ns, &err), 0);
	assert_true(fabs(one[1] / alone - 1) < 0.01);
	assert_true(ns[1] > 1.95 * alone && ns[1] < 2.05 * alone);
	assert_true(ns[0] < ns[1] && ns[1] < ns[2]);
	for (int i = 0; i < 2; i++) {
		vc_profile_fini(&p[i]);
		vc_meta_free(t[i].meta);
	}
}

/* Both receive first, which no card comes through: an answer all the same. */
static void ranks_that_wait_for_ever_go_on(void **unused)
{
	static struct tape t[2];
	struct vc_profile p[2] = { rank(&t[0], 0, false), rank(&t[1], 1, false) };
	const struct vc_player who[2] = { { &p[0], t[0].meta }, { &p[1], t[1].meta } };
	struct vc_error err = { 0 };
	double ns[3];

	(void)unused;
	assert_int_equal(vc_profiles_meet(who, 2, ns, &err), 0);
	assert_true(ns[1] > 0);
	for (int i = 0; i < 2; i++) {
		vc_profile_fini(&p[i]);
		vc_meta_free(t[i].meta);
	}
}

static void large_kernels_take_what_they_compute(void **unused)
{
	struct vc_kernel_work w = product(8192, 8192, 8192);
	double one = ns_of("h100-80g-sxm", w, "kernel");
	struct vc_profile p = played(w);

	(void)unused;
	assert_true((double)p.step_ns > 10 * one && (double)p.step_ns < 10.1 * one);
	assert_true(p.busy > 0.98);
	assert_true(p.step_min_ns < p.step_ns && p.step_max_ns > p.step_ns);
	assert_true((double)p.step_max_ns < 1.3 * (double)p.step_ns);
	assert_true(p.shares.flops == 10 * w.flops && p.shares.unknown == 0);
	vc_profile_fini(&p);
}

static void small_kernels_wait_for_the_program(void **unused)
{
	struct vc_kernel_work w = { VC_WORK_ELEMENTWISE, "fp32", 0, 512, 512, { 1, 128 } };
	struct vc_profile p = played(w);

	(void)unused;
	assert_true(p.busy < 0.2);
	assert_true((double)p.step_max_ns > 1.5 * (double)p.step_ns);
	assert_true((double)p.step_min_ns < 0.6 * (double)p.step_ns);
	vc_profile_fini(&p);
}

static void what_is_not_known_is_said(void **unused)
{
	struct vc_kernel_work w = { VC_WORK_OTHER, "fp32", 0, 0, 0, { 4096, 256 } };
	struct vc_profile p = played(w);

	(void)unused;
	assert_true(p.shares.unknown == p.shares.ns && p.shares.name);
	vc_profile_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_is_written_and_read),
		cmocka_unit_test(other_texts_are_no_work),
		cmocka_unit_test(one_tile_more_is_a_wave_more),
		cmocka_unit_test(time_is_the_larger_of_computing_and_moving),
		cmocka_unit_test(causal_attention_computes_whole_tiles),
		cmocka_unit_test(what_one_card_falls_short_of_another_reaches),
		cmocka_unit_test(attention_of_cudnn_is_faster),
		cmocka_unit_test(a_sum_sends_everything_twice),
		cmocka_unit_test(messages_of_a_group_go_both_ways_at_once),
		cmocka_unit_test(what_one_rank_sends_the_other_waits_for),
		cmocka_unit_test(ranks_that_wait_for_ever_go_on),
		cmocka_unit_test(large_kernels_take_what_they_compute),
		cmocka_unit_test(small_kernels_wait_for_the_program),
		cmocka_unit_test(what_is_not_known_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
