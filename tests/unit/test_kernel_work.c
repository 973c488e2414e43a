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

/* Steps of ten kernels, each called differently, all of that work. */
static struct vc_profile played(struct vc_kernel_work w)
{
	struct tape t = { .meta = vc_meta_new(NULL), .now = 1 };
	struct vc_profile p = { 0 };
	struct vc_error err = { 0 };
	char name[32];

	vc_meta_device(t.meta, 0)->name = strdup("NVIDIA H100 80GB HBM3");
	t.meta->how[VC_CAP_NULL_GPU] = t.meta->how[VC_CAP_WORK] = VC_HOW_RECORDED;
	for (int i = 0; i < 8; i++) {
		t.ev[t.n++] = (struct vc_event){ .kind = VC_EV_MARK, .flags = VC_MARK_STEP,
			.time_ns = t.now, .device = UINT16_MAX };
		for (int k = 0; k < 10; k++) {
			snprintf(name, sizeof(name), "kernel%c", 'a' + k);
			kernel(&t, name, &w, 2000);
		}
	}
	assert_int_equal(vc_profile_add(&p, t.ev, t.n, 0, t.meta, &err), 0);
	assert_int_equal(vc_profile_finish(&p, 0, 0, t.meta, &err), 0);
	assert_int_equal(p.beats, 10);
	vc_meta_free(t.meta);
	return p;
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
		cmocka_unit_test(large_kernels_take_what_they_compute),
		cmocka_unit_test(small_kernels_wait_for_the_program),
		cmocka_unit_test(what_is_not_known_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
