/* SPDX-License-Identifier: Apache-2.0 */
/* test_time.c - the time of a step from kernels: on recordings made here, whose laws are known. */
#include "tests/support/test.h"

#include <math.h>

#include "simulator/time/time.h"
#include "simulator/time/time_cost.h"
#include "simulator/time/time_tempo.h"

/* ---- a program on a GPU: it launches, the GPU works the queue off ---- */

struct toy {
	struct vc_meta *meta;
	struct vc_event ev[20000];
	size_t n;
	double host, gpu;     /* ns */
	uint64_t id;
	double x;             /* the batch */
	double launch;        /* ns of the program per launch */
	unsigned layers;
	bool other_tiles;     /* the library picks another kernel */
	bool split;           /* and splits a product in two kernels */
	double load;          /* ns the loader takes for a batch, beside the program */
	double ready;         /* when the next batch is there */
	bool sync;            /* the program reads the loss */
};

static void op(struct toy *t, uint8_t kind, const char *name, double ns)
{
	t->host += t->launch;
	double start = fmax(t->host, t->gpu);

	assert_true(t->n < sizeof(t->ev) / sizeof(*t->ev));
	t->ev[t->n++] = (struct vc_event){ .kind = kind,
					  .time_ns = (uint64_t)(start + 0.5),
					  .size = (uint64_t)(ns + 0.5),
					  .id = ++t->id,
					  .label = vc_meta_string(t->meta, name, strlen(name)) };
	t->gpu = start + ns;
}

static void kernel(struct toy *t, const char *name, double a, double b)
{
	op(t, VC_EV_KERNEL, name, fmax(2000, a + b * t->x));
}

static void layer(struct toy *t, bool back)
{
	kernel(t, back ? "layer_norm_backward" : "layer_norm_forward", 1500, 90);
	if (t->split && !back) {
		kernel(t, "splitKreduce_kernel", 500, 300);
	}
	kernel(t, t->other_tiles ? "ampere_sgemm_128x64_tn" : "ampere_sgemm_32x32_sliced1x4_tn",
	       4000, back ? 2600 : 1300);
	kernel(t, back ? "gelu_backward" : "gelu_forward", 0, 210);
}

static void step(struct toy *t, double x, unsigned number)
{
	struct vc_event mark = { .kind = VC_EV_MARK,
				.flags = VC_MARK_STEP,
				.time_ns = (uint64_t)t->host,
				.device = UINT16_MAX };

	t->x = x;
	t->ev[t->n++] = mark;
	if (t->load > 0) {
		t->host = fmax(t->host, t->ready);
		t->ready = fmax(t->ready, 0) + t->load * x;
	}
	op(t, VC_EV_COPY, "Memcpy HtoD (Pinned -> Device)", 1000 + 50 * x);
	kernel(t, "embedding_forward", 1000, 120);
	for (unsigned i = 0; i < t->layers; i++)
		layer(t, false);
	kernel(t, "nll_loss_forward", 2500, 0);
	kernel(t, "nll_loss_backward", 2500, 4);
	for (unsigned i = 0; i < t->layers; i++)
		layer(t, true);
	if (!number) /* the optimizer makes its state in the first step */
		for (unsigned i = 0; i < 3 * t->layers; i++)
			kernel(t, "FillFunctor", 3000, 0);
	for (unsigned i = 0; i < 4; i++)
		kernel(t, "multi_tensor_apply_kernel", 30000, 0);
	if (t->sync) {
		op(t, VC_EV_COPY, "Memcpy DtoH (Device -> Pinned)", 1000);
		t->host = fmax(t->host, t->gpu);
	}
}

static void run(struct toy *t, double x, unsigned steps)
{
	struct vc_error err = { 0 };

	if (!t->meta)
		t->meta = vc_meta_new(&err);
	t->launch = t->launch > 0 ? t->launch : 4000;
	t->layers = t->layers ? t->layers : 12;
	for (unsigned i = 0; i < steps; i++)
		step(t, x, i);
}

/* In the steady state, from the same rules: a long run's last steps. */
static double truth(struct toy like, double x)
{
	static struct toy t;
	double before = 0;

	t = like;
	t.n = 0;
	t.id = 0;
	t.meta = NULL;
	run(&t, x, 12);
	for (size_t i = 0, k = 0; i < t.n; i++)
		if (t.ev[i].kind == VC_EV_COPY && t.ev[i].size == (uint64_t)(1000 + 50 * x + 0.5)) {
			k++;
			if (k == 8)
				before = (double)t.ev[i].time_ns;
			if (k == 12) {
				vc_meta_free(t.meta);
				return ((double)t.ev[i].time_ns - before) / 4;
			}
		}
	return 0;
}

static struct vc_profile profile(struct toy *t, double x, unsigned steps)
{
	struct vc_profile p = { 0 };
	struct vc_error err = { 0 };

	run(t, x, steps);
	assert_int_equal(vc_profile_add(&p, t->ev, t->n, 0, t->meta, &err), 0);
	assert_int_equal(vc_profile_finish(&p, 0, 0, t->meta, &err), 0);
	return p;
}

static bool near(double said, double right, double share)
{
	bool ok = fabs(said - right) <= share * right;

	if (!ok)
		print_message("# %.1f instead of %.1f (%+.3f %%)\n", said, right,
			      100 * (said - right) / right);
	return ok;
}

static struct vc_tempo_ask plain(double x)
{
	return (struct vc_tempo_ask){ .x = { x }, .passes = 1, .bytes = 1, .fp32 = 1, .tf32 = 1,
				       .half = 1 };
}

/* ---- one recording ---- */

static void steps_are_found_though_the_program_runs_ahead(void **unused)
{
	static struct toy t;
	struct vc_profile p =
		profile(&t, 64, 6); /* steps of ms, marks all within the first of them */
	double right = truth(t, 64);

	(void)unused;
	assert_string_equal(p.from, "kernels");
	assert_int_equal(p.beats, 2 * 3 * 12 + 8);
	assert_true(near((double)p.step_ns, right, 1e-4));
	assert_true(p.busy > 0.999);
	assert_true(p.floor_ns == 2500);
	vc_profile_fini(&p);
	vc_meta_free(t.meta);
}

static void two_lengths_in_turn_count_both(void **unused)
{
	static struct toy t;
	struct vc_error err = { 0 };
	struct vc_profile p = { 0 };

	(void)unused;
	run(&t, 64, 1);
	for (unsigned i = 1; i < 11; i++)
		step(&t, i % 2 ? 32 : 64, i);
	assert_int_equal(vc_profile_add(&p, t.ev, t.n, 0, t.meta, &err), 0);
	assert_int_equal(vc_profile_finish(&p, 0, 0, t.meta, &err), 0);
	assert_true(near((double)p.step_min_ns, truth(t, 32), 1e-3));
	assert_true(near((double)p.step_max_ns, truth(t, 64), 1e-3));
	assert_true(near((double)p.step_ns, (truth(t, 32) + truth(t, 64)) / 2, 0.05));
	vc_profile_fini(&p);
	vc_meta_free(t.meta);
}

/* A product that reads its weights up to 28 rows and computes from there on. */
static void what_turns_upwards_is_followed_from_the_turn(void **unused)
{
	const struct vc_pace_sample s[] = { { 16, 14090 }, { 32, 16025 }, { 64, 32051 } };
	struct vc_pace_law l = vc_pace_fit(s, 3, 2000);

	(void)unused;
	assert_true(near(vc_pace_at(&l, 256, 0), 128204, 0.02));
	assert_true(vc_pace_at(&l, 256, -1) < 128204);
}

static void a_layer_is_no_step(void **unused)
{
	static struct toy t;
	struct vc_profile p = profile(&t, 64, 1); /* one step, marked at its beginning only */

	(void)unused;
	assert_int_equal(p.steps, 0);
	vc_profile_fini(&p);
	vc_meta_free(t.meta);
}

static void an_evaluation_in_between_is_no_step(void **unused)
{
	static struct toy t;
	struct vc_error err = { 0 };
	struct vc_profile p = { 0 };

	(void)unused;
	run(&t, 64, 3);
	for (unsigned i = 0; i < 2 * t.layers; i++)
		layer(&t, false);
	run(&t, 64, 3);
	assert_int_equal(vc_profile_add(&p, t.ev, t.n, 0, t.meta, &err), 0);
	assert_int_equal(vc_profile_finish(&p, 0, 0, t.meta, &err), 0);
	assert_true(near((double)p.step_ns, truth(t, 64), 1e-4));
	vc_profile_fini(&p);
	vc_meta_free(t.meta);
}

static void waiting_for_data_is_the_idle_time_before_copies(void **unused)
{
	static struct toy t = { .load = 60000 }, fast = { .load = 100 };
	struct vc_profile p = profile(&t, 64, 8), q = profile(&fast, 64, 8);
	double step = truth((struct toy){ .layers = 12, .launch = 4000 }, 64), load = 60000 * 64;

	(void)unused;
	assert_true(near((double)p.step_ns, load, 1e-3));
	assert_true(near(p.wait, (load - step) / load, 0.02));
	assert_true(near(p.busy, step / load, 0.02));
	assert_true(q.wait < 0.001 && q.busy > 0.999);
	vc_profile_fini(&p);
	vc_profile_fini(&q);
	vc_meta_free(t.meta);
	vc_meta_free(fast.meta);
}

/* ---- laws ---- */

static void kernels_have_a_floor_and_a_slope(void **unused)
{
	struct vc_pace_sample affine[] = { { 8, 14400 }, { 16, 24800 } },
			      flat[] = { { 8, 2000 }, { 16, 2050 } };
	struct vc_pace_sample bend[] = { { 8, 2000 }, { 16, 3360 } };
	struct vc_pace_sample square[] = { { 256, 256 * 10 + 256 * 256 },
					  { 512, 512 * 10 + 512 * 512 } };
	struct vc_pace_law l = vc_pace_fit(affine, 2, 2000);

	(void)unused;
	assert_true(near(vc_pace_at(&l, 64, 0), 4000 + 1300 * 64, 1e-9));
	assert_true(vc_pace_at(&l, 64, -1) == vc_pace_at(&l, 64, 1));
	l = vc_pace_fit(flat, 2, 2000); /* nobody knows when it starts to grow */
	assert_true(near(vc_pace_at(&l, 64, 0), 2050, 1e-9));
	assert_true(near(vc_pace_at(&l, 64, 1), 2050 * 4, 1e-9));
	l = vc_pace_fit(bend, 2, 2000); /* was at the floor, is above it: the truth lies between */
	assert_true(near(vc_pace_at(&l, 64, 0), 210 * 64, 1e-9));
	assert_true(vc_pace_at(&l, 64, -1) < 0.9 * 210 * 64);
	l = vc_pace_fit(square, 2, 2000);
	assert_true(near(vc_pace_at(&l, 2048, 0), 2048 * 10 + 2048. * 2048, 1e-9));
}

static void more_recordings_are_fitted_and_leave_a_residual(void **unused)
{
	struct vc_pace_sample exact[] = { { 4, 9200 }, { 8, 14400 }, { 16, 24800 }, { 32, 45600 } };
	struct vc_pace_sample waves[] = { { 4, 10000 }, { 8, 10100 },
					  { 16, 20300 }, { 32, 40100 } };
	struct vc_pace_law l = vc_pace_fit(exact, 4, 2000), w = vc_pace_fit(waves, 4, 2000);

	(void)unused;
	assert_true(near(vc_pace_at(&l, 128, 0), 4000 + 1300 * 128, 1e-9));
	assert_true(l.residual < 1e-9);
	assert_true(w.residual > 0.05);
	assert_true(vc_pace_at(&w, 128, -1) < vc_pace_at(&w, 128, 1));
}

/* ---- several recordings ---- */

static void predict(struct toy *a, double x, struct toy *b, double y, double at,
		    struct vc_tempo_answer *out)
{
	struct vc_profile p = profile(a, x, 6), q = profile(b, y, 6);
	struct vc_tempo t = { .at = { &p, &q }, .n = 2, .x = { { x }, { y } }, .axes = 1 };
	struct vc_tempo_ask ask = plain(at);
	struct vc_error err = { 0 };

	if (vc_tempo_at(&t, &ask, out, &err) < 0)
		fail_msg("%s", err.message);
	vc_tempo_fini(&t);
	vc_profile_fini(&p);
	vc_profile_fini(&q);
	vc_meta_free(a->meta);
	vc_meta_free(b->meta);
}

static void a_larger_batch_is_predicted_exactly(void **unused)
{
	static struct toy a, b, c, d;
	struct vc_tempo_answer r;

	(void)unused;
	predict(&a, 32, &b, 48, 256, &r); /* the GPU is the limit in all of them */
	assert_true(
		near(r.step_ns, truth((struct toy){ .layers = 12, .launch = 4000 }, 256), 0.001));
	assert_true(r.matched == 1 && r.renamed == 0 && r.phases && !r.same);
	predict(&c, 8, &d, 16, 12, &r);
	assert_true(near(r.step_ns, truth((struct toy){ .layers = 12, .launch = 4000 }, 12), 0.02));
}

static void from_where_the_program_is_the_limit_to_where_the_gpu_is(void **unused)
{
	static struct toy a = { .launch = 25000 }, b = { .launch = 25000 };
	struct vc_tempo_answer r;
	double right = truth((struct toy){ .layers = 12, .launch = 25000 }, 128), proportional;

	(void)unused;
	proportional = truth((struct toy){ .layers = 12, .launch = 25000 }, 16) * 8;
	predict(&a, 12, &b, 16, 128, &r);
	assert_true(near(r.step_ns, right, 0.05)); /* short kernels: the floor hides their slope */
	assert_true(near(r.low_ns, right, 0.01) || r.low_ns < right);
	assert_true(right <= r.high_ns);
	assert_true(fabs(proportional - right) >
		    0.2 * right); /* what scaling by the batch would say */
}

static void a_program_that_reads_its_loss_waits_at_every_size(void **unused)
{
	static struct toy a = { .sync = true, .launch = 9000 };
	static struct toy b = { .sync = true, .launch = 9000 };
	struct vc_tempo_answer r;

	(void)unused;
	predict(&a, 24, &b, 32, 96, &r);
	assert_true(near(r.step_ns,
			 truth((struct toy){ .layers = 12, .launch = 9000, .sync = true }, 96),
			 0.01));
}

static void a_loader_that_was_the_limit_stays_it(void **unused)
{
	static struct toy a = { .load = 90000 }, b = { .load = 90000 };
	struct vc_tempo_answer r;

	(void)unused;
	predict(&a, 32, &b, 48, 96, &r);
	assert_true(near(r.step_ns, 90000 * 96, 0.001));
	assert_true(r.wait > 0.2);
}

static void other_tiles_are_the_same_kernel_and_new_ones_are_counted(void **unused)
{
	static struct toy a, b = { .other_tiles = true }, c = { .split = true }, d;
	struct vc_tempo_answer r;

	(void)unused;
	predict(&a, 32, &b, 48, 96, &r);
	assert_true(r.matched > 0.999 && r.renamed > 0.5);
	assert_true(
		near(r.step_ns, truth((struct toy){ .layers = 12, .launch = 4000 }, 96), 0.001));
	predict(&c, 32, &d, 48, 96,
		&r); /* the smaller recording has kernels that the larger lacks */
	assert_true(r.matched < 0.97 && r.matched > 0.8);
	assert_true(near(r.step_ns, truth((struct toy){ .layers = 12, .launch = 4000 }, 96), 0.01));
	assert_true(r.low_ns < r.step_ns && r.high_ns > r.step_ns);
}

static void another_program_is_refused(void **unused)
{
	static struct toy a, b = { .meta = NULL };
	struct vc_error err = { 0 };
	struct vc_profile p = profile(&a, 32, 6), q;

	(void)unused;
	run(&b, 32, 6);
	for (size_t i = 0; i < b.n; i++) /* none of its names occurs in the other */
		if (b.ev[i].kind == VC_EV_KERNEL) {
			char name[96];
			snprintf(name, sizeof(name), "other_%s", b.meta->string[b.ev[i].label]);
			if (strstr(name, "gemm"))
				snprintf(name, sizeof(name), "convolve_%c", 'a');
			b.ev[i].label = vc_meta_string(b.meta, name, strlen(name));
		}
	q = (struct vc_profile){ 0 };
	vc_profile_add(&q, b.ev, b.n / 2, 0, b.meta, &err);
	vc_profile_finish(&q, 0, 0, b.meta, &err);
	assert_true(q.steps > 0);
	struct vc_tempo t = { .at = { &p, &q }, .n = 2, .x = { { 32 }, { 48 } }, .axes = 1 };
	struct vc_tempo_answer r;
	struct vc_tempo_ask ask = plain(96);
	q.beats /= 2; /* as many kernels as cannot be paired in order */
	assert_int_equal(vc_tempo_at(&t, &ask, &r, &err), VC_ENOSUP);
	assert_non_null(strstr(err.message, "match no kernel"));
	vc_tempo_fini(&t);
	vc_profile_fini(&p);
	vc_profile_fini(&q);
	vc_meta_free(a.meta);
	vc_meta_free(b.meta);
}

/* ---- changes ---- */

static double changed(struct vc_tempo_ask ask)
{
	static struct toy a;
	struct vc_error err = { 0 };
	struct vc_tempo_answer r;

	memset(&a, 0, sizeof(a));
	struct vc_profile p = profile(&a, 64, 6);
	struct vc_tempo t = { .at = { &p }, .n = 1, .x = { { 64 } }, .axes = 1 };
	assert_int_equal(vc_tempo_at(&t, &ask, &r, &err), 0);
	assert_true(r.phases);
	vc_tempo_fini(&t);
	vc_profile_fini(&p);
	vc_meta_free(a.meta);
	return r.step_ns;
}

static void accumulation_and_recomputation_repeat_their_kernels(void **unused)
{
	double forward = 1000 + 50 * 64 + 1000 + 120 * 64 + 2500 +
			 12 * (1500 + 90 * 64 + 4000 + 1300 * 64 + 210 * 64);
	double backward = 2500 + 4 * 64 + 12 * (1500 + 90 * 64 + 4000 + 2600 * 64 + 210 * 64),
	       optimizer = 4 * 30000;
	struct vc_tempo_ask ask = plain(64);

	(void)unused;
	assert_true(near(changed(ask), forward + backward + optimizer, 0.001));
	ask.passes = 4;
	assert_true(near(changed(ask), 4 * (forward + backward) + optimizer, 0.001));
	ask = plain(64);
	ask.recompute = true;
	ask.part = &(struct vc_tempo_part){ 0, 1 };
	ask.parts = 1;
	assert_true(near(changed(ask), 2 * forward + backward + optimizer, 0.001));
	ask = plain(64);
	ask.bytes = ask.fp32 = ask.half = 2;
	assert_true(near(changed(ask), (forward + backward + optimizer) / 2, 0.03));
}

static void one_recording_leaves_an_interval(void **unused)
{
	static struct toy a;
	struct vc_error err = { 0 };
	struct vc_tempo_answer r;
	struct vc_profile p = profile(&a, 32, 6);
	struct vc_tempo t = { .at = { &p }, .n = 1, .x = { { 32 } }, .axes = 1 };
	struct vc_tempo_ask ask = plain(128);
	double right = truth((struct toy){ .layers = 12, .launch = 4000 }, 128);

	(void)unused;
	assert_int_equal(vc_tempo_at(&t, &ask, &r, &err), 0);
	assert_true(r.low_ns < right && r.high_ns > right && r.low_ns < 0.5 * r.high_ns);
	vc_tempo_fini(&t);
	vc_profile_fini(&p);
	vc_meta_free(a.meta);
}

static void names_say_what_limits_a_kernel(void **unused)
{
	(void)unused;
	assert_int_equal(
		vc_kernel_bound("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64"),
		VC_BOUND_HALF);
	assert_int_equal(vc_kernel_bound("ampere_sgemm_128x64_tn"), VC_BOUND_FP32);
	assert_int_equal(
		vc_kernel_bound(
			"void at::native::vectorized_elementwise_kernel<4, at::native::Fill>"),
		VC_BOUND_BYTES);
	assert_true(vc_kernel_token("ampere_sgemm_128x64_tn") ==
		    vc_kernel_token("sm80_xmma_gemm_f32f32"));
	assert_true(vc_kernel_token("reduce_kernel<512, 1>") ==
		    vc_kernel_token("reduce_kernel<128, 4>"));
	assert_true(vc_kernel_token("softmax_forward") != vc_kernel_token("softmax_backward"));
}

/* us on an H100, 2026-11-26: what the card took, within the doubt. */
static void kernels_cost_what_a_card_took(void **unused)
{
	static const struct { const char *name, *work; double least, most; } took[] = {
		/* ConvNeXt-B: 85 in the mean; filters 1,056 */
		{ "cudnn_plan_fp32",
		  "conv fp32 629407744 25740288 25690112 25088 1 49 256", 60, 220 },
		{ "cudnn_plan_fp32",
		  "conv fp32 314703872 25690112 100352 1 49 6272 512", 700, 1500 },
		/* GPT-2, 50,257 words: 2,906 to 4,410 */
		{ "cublas_gemm_align1_bf16",
		  "gemm bf16 421586272256 111314944 411705344 50257 4096 1024 1", 2600, 4600 },
		{ "cublas_gemm_bf16",
		  "gemm bf16 421980536832 111411200 412090368 50304 4096 1024 1", 430, 700 },
		/* GPT-2, forwards and backwards: 76, 111 */
		{ "cudnn_plan_bf16",
		  "attention bf16 8598323200 25165824 8388608 64 1024 1024 64", 40, 110 },
		{ "cudnn_plan_bf16",
		  "attention bf16 21495808000 41943040 25165824 64 1024 1024 64", 75, 170 },
		/* Conv-TasNet: 1,625 on four blocks */
		{ "at::native::RowwiseMomentsCUDAKernel<float>",
		  "reduction fp32 0 32760000 0 4 512 0 0", 1200, 2200 },
		/* EfficientNet: 88 in the mean */
		{ "at::native::batch_norm_backward_kernel<BFloat16>",
		  "reduction bf16 0 40000000 0 192 512 0 0", 60, 180 },
	};
	const struct vc_card *card = vc_card_by_name("h100-80g-sxm");

	(void)unused;
	for (size_t i = 0; i < sizeof(took) / sizeof(*took); i++) {
		struct vc_kernel_work w;
		struct vc_costs c;

		assert_true(vc_kernel_work_parse(took[i].work, &w));
		c = vc_cost_of(card, &w, took[i].name);
		if (c.ns < 1e3 * took[i].least || c.ns > 1e3 * took[i].most)
			fail_msg("%s %s: %.0f us", took[i].name, took[i].work, c.ns / 1e3);
	}
}

/* A step of the null GPU: a product, and a kernel of a program's own so many blocks large. */
static void half_known(struct toy *t, unsigned blocks, char *said, size_t n)
{
	static const char gemm[] = "gemm bf16 137438953472 100663296 33554432 4096 4096 4096 1";
	struct vc_error err = { 0 };
	struct vc_meta *m = t->meta = vc_meta_new(&err);
	struct vc_profile p = { 0 };
	char own[VC_WORK_TEXT];
	uint32_t site[2];

	t->launch = 4000;
	snprintf(own, sizeof(own), "other - 0 0 0 %u 512 0 0", blocks);
	for (int k = 0; k < 2; k++) {
		const char *text = k ? own : gemm;
		uint32_t at = vc_meta_string(m, text, strlen(text));

		site[k] = vc_meta_frame(m, (struct vc_frame){ .function = at });
	}
	vc_meta_set(&vc_meta_device(m, 0)->name, "h100-80g-sxm");
	m->how[VC_CAP_NULL_GPU] = m->how[VC_CAP_WORK] = m->how[VC_CAP_LAUNCHES] = VC_HOW_RECORDED;
	for (unsigned i = 0; i < 6; i++) {
		t->ev[t->n++] = (struct vc_event){ .kind = VC_EV_MARK, .flags = VC_MARK_STEP,
						   .time_ns = (uint64_t)t->host,
						   .device = UINT16_MAX };
		for (unsigned k = 0; k < 24; k++) {
			op(t, VC_EV_KERNEL, k % 2 ? "what_is_this" : "cublas_gemm_bf16", 2000);
			t->ev[t->n - 1].site = site[k % 2];
		}
	}
	assert_int_equal(vc_profile_add(&p, t->ev, t->n, 0, m, &err), 0);
	assert_int_equal(vc_profile_finish(&p, 0, 0, m, &err), 0);
	vc_time_profile_words(&p, said, n);
	vc_profile_fini(&p);
	vc_meta_free(m);
}

enum reads { NOTHING, IN_PASSING, AT_ONCE, AT_THE_END };

/* ns of a step of the null GPU whose program has a copy to the host, or none, and waits for it, or
 * at the end of the step for everything. */
static double reading(enum reads how, size_t *copies)
{
	static struct toy t;
	struct vc_error err = { 0 };
	struct vc_profile p = { 0 };
	double ns;

	t = (struct toy){ .launch = VC_NULL_SUBMIT_NS, .meta = vc_meta_new(&err) };
	vc_meta_set(&vc_meta_device(t.meta, 0)->name, "h100-80g-sxm");
	t.meta->how[VC_CAP_NULL_GPU] = t.meta->how[VC_CAP_WORK] = VC_HOW_RECORDED;
	for (unsigned i = 0; i < 6; i++) {
		t.ev[t.n++] = (struct vc_event){ .kind = VC_EV_MARK, .flags = VC_MARK_STEP,
						 .time_ns = (uint64_t)t.host,
						 .device = UINT16_MAX };
		for (unsigned k = 0; k < 24; k++) {
			op(&t, VC_EV_KERNEL, k < 9 ? "forward" : "backward", 50000);
			if (k == 12 && (how == IN_PASSING || how == AT_ONCE))
				op(&t, VC_EV_COPY, "memcpy DtoH", 2100);
			if (how == (k == 12 ? AT_ONCE : k == 23 ? AT_THE_END : NOTHING) && how)
				t.host = fmax(t.host, t.gpu);
		}
	}
	assert_int_equal(vc_profile_add(&p, t.ev, t.n, 0, t.meta, &err), 0);
	assert_int_equal(vc_profile_finish(&p, 0, 0, t.meta, &err), 0);
	assert_int_equal(p.steps, 5);
	ns = (double)(p.op[p.begin[4]].start - p.op[p.begin[1]].start) / 3;
	*copies = 0;
	for (size_t i = 0; i < p.beats; i++)
		*copies += p.beat[i].kind == VC_OP_TO_HOST;
	vc_profile_fini(&p);
	vc_meta_free(t.meta);
	return ns;
}

/* Into pinned memory a copy is launched like a kernel; the program waits where it waited. */
static void the_null_gpu_is_waited_for_where_the_program_did(void **unused)
{
	size_t copies;
	double none = reading(NOTHING, &copies), passing, once, end;

	(void)unused;
	passing = reading(IN_PASSING, &copies);
	assert_int_equal(copies, 0);
	assert_true(fabs(passing - none - 3100) < 1); /* it, and the rest before it */
	once = reading(AT_ONCE, &copies);
	assert_int_equal(copies, 1);
	assert_true(once - passing > 15000 && once - passing < 25000); /* a launch */
	end = reading(AT_THE_END, &copies);
	assert_true(end - none > 15000 && end - none < 25000);
}

/* Of a step that comes twice in the other recording each kernel is one there, and no more. */
static void a_step_that_comes_twice_is_matched_once(void **unused)
{
	enum { N = 40 };
	struct vc_beat one[N] = { 0 }, two[2 * N] = { 0 };
	struct vc_profile a = { .beat = one, .beats = N }, b = { .beat = two, .beats = 2 * N };
	uint32_t match[N + 1];
	struct vc_error err = { 0 };

	(void)unused;
	for (size_t i = 0; i < 2 * N; i++)
		one[i % N].token = two[i].token = i % N + 1;
	match[N] = 4711;
	assert_int_equal(vc_beats_match(&a, &b, match, &err), VC_OK);
	for (size_t i = 0; i < N; i++)
		assert_int_equal(match[i] % N, i);
	assert_int_equal(match[N], 4711);
	assert_int_equal(vc_beats_match(&b, &a, (uint32_t[2 * N]){ 0 }, &err), VC_OK);
}

static void a_kernel_that_nobody_knows_is_named_where_it_matters(void **unused)
{
	static struct toy small, large;
	char said[200];

	(void)unused;
	half_known(&small, 64, said, sizeof(said));
	assert_true(!strncmp(said, "about ", 6) && strstr(said, " .. ") && !strstr(said, "known"));
	half_known(&large, 1 << 22, said, sizeof(said));
	assert_true(!strncmp(said, "unknown: ", 9) && strstr(said, "what_is_this"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_are_found_though_the_program_runs_ahead),
		cmocka_unit_test(two_lengths_in_turn_count_both),
		cmocka_unit_test(what_turns_upwards_is_followed_from_the_turn),
		cmocka_unit_test(a_layer_is_no_step),
		cmocka_unit_test(an_evaluation_in_between_is_no_step),
		cmocka_unit_test(waiting_for_data_is_the_idle_time_before_copies),
		cmocka_unit_test(kernels_have_a_floor_and_a_slope),
		cmocka_unit_test(more_recordings_are_fitted_and_leave_a_residual),
		cmocka_unit_test(a_larger_batch_is_predicted_exactly),
		cmocka_unit_test(from_where_the_program_is_the_limit_to_where_the_gpu_is),
		cmocka_unit_test(a_program_that_reads_its_loss_waits_at_every_size),
		cmocka_unit_test(a_loader_that_was_the_limit_stays_it),
		cmocka_unit_test(other_tiles_are_the_same_kernel_and_new_ones_are_counted),
		cmocka_unit_test(another_program_is_refused),
		cmocka_unit_test(accumulation_and_recomputation_repeat_their_kernels),
		cmocka_unit_test(one_recording_leaves_an_interval),
		cmocka_unit_test(names_say_what_limits_a_kernel),
		cmocka_unit_test(kernels_cost_what_a_card_took),
		cmocka_unit_test(the_null_gpu_is_waited_for_where_the_program_did),
		cmocka_unit_test(a_step_that_comes_twice_is_matched_once),
		cmocka_unit_test(a_kernel_that_nobody_knows_is_named_where_it_matters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
