/* SPDX-License-Identifier: Apache-2.0 */
/* test_time_longer.c - steps of the null GPU with more micro-batches than were played, beside steps
 * that have them; and ranks without the collectives that join samples. */
#include "tests/support/test.h"

#include <math.h>

#include "simulator/time/time_profile.h"

enum { STEPS = 3, LAYERS = 5 };

/* What a rank launches. Stream 1 works beside stream 0, and waits for it. */
struct rank {
	struct vc_meta *meta;
	struct vc_event ev[20000];
	size_t n;
	uint64_t now, id;
	struct vc_profile p;
};

static uint32_t text(struct rank *r, const char *s)
{
	return vc_meta_string(r->meta, s, strlen(s));
}

static void launch(struct rank *r, uint8_t kind, const char *name, const char *work,
		   uint32_t stream)
{
	struct vc_frame f = { .function = text(r, work) };

	assert_true(r->n < sizeof(r->ev) / sizeof(*r->ev));
	r->ev[r->n++] = (struct vc_event){ .kind = kind, .time_ns = r->now, .size = 1000,
					   .id = ++r->id, .stream = stream,
					   .label = text(r, name),
					   .site = *work ? vc_meta_frame(r->meta, f) : 0 };
	r->now += 1000;
}

static void begin(struct rank *r, int number)
{
	struct vc_error err = { 0 };

	memset(r, 0, sizeof(*r));
	r->now = 1000;
	r->meta = vc_meta_new(&err);
	r->meta->rank = number;
	vc_meta_set(&vc_meta_device(r->meta, 0)->name, "h100-80g-sxm");
	r->meta->how[VC_CAP_NULL_GPU] = VC_HOW_RECORDED;
	r->meta->how[VC_CAP_WORK] = r->meta->how[VC_CAP_LAUNCHES] = VC_HOW_RECORDED;
}

static void mark(struct rank *r)
{
	r->ev[r->n++] = (struct vc_event){ .kind = VC_EV_MARK, .flags = VC_MARK_STEP,
					   .time_ns = r->now, .device = UINT16_MAX };
}

static void end(struct rank *r)
{
	struct vc_error err = { 0 };

	assert_int_equal(vc_profile_add(&r->p, r->ev, r->n, 0, r->meta, &err), VC_OK);
	assert_int_equal(vc_profile_finish(&r->p, 0, 0, r->meta, &err), VC_OK);
	assert_int_equal(r->p.steps, STEPS);
}

static void over(struct rank *r)
{
	vc_profile_fini(&r->p);
	vc_meta_free(r->meta);
}

/* ---- micro-batches ---- */

static void product(struct rank *r, unsigned n)
{
	char work[VC_WORK_TEXT];
	struct vc_kernel_work w = { .kind = VC_WORK_GEMM, .type = "bf16",
				    .flops = 2.0 * 4096 * 4096 * n, .read = 8192.0 * n,
				    .written = 4096, .dim = { 4096, 4096, n, 1 } };

	launch(r, VC_EV_KERNEL, "cublas_gemm_bf16", vc_kernel_work_text(&w, work), 0);
}

/* other: what a micro-batch does besides, which no other does. */
static void micro_batch(struct rank *r, unsigned other)
{
	launch(r, VC_EV_COPY, "Memcpy HtoD (Pageable -> Device)", "", 0);
	r->now += VC_NULL_SUBMIT_NS; /* the program waits for it */
	for (unsigned i = 0; i < LAYERS; i++)
		product(r, 512 + 64 * i);
	launch(r, VC_EV_KERNEL, "sum_of_the_loss", "reduction fp32 0 32760000 0 4 512 0 0", 1);
	for (unsigned i = LAYERS; i-- > 0;)
		product(r, 1024 + 64 * i);
	for (unsigned i = 0; i < other; i++)
		product(r, 4096 + 64 * other + i);
}

static void train(struct rank *r, unsigned count, bool alike)
{
	begin(r, 0);
	for (int k = 0; k <= STEPS; k++) { /* the last one ends the one before */
		mark(r);
		for (unsigned i = 0; i < count; i++)
			micro_batch(r, alike ? 0 : 1 + 7 * i);
		for (unsigned i = 0; i < 20; i++)
			launch(r, VC_EV_KERNEL, "multi_tensor_apply_kernel",
			       "optimizer fp32 0 65536 65536 320 512 0 0", i ? 0 : 1);
	}
	end(r);
}

/* Operations of the last two steps, which are lengthened: the same, waiting for the same. */
static void assert_same_steps(const struct rank *a, const struct rank *b)
{
	size_t waits = 0, held = 0;

	for (size_t k = 1; k < STEPS; k++) {
		size_t x = a->p.begin[k], y = b->p.begin[k];

		assert_int_equal(a->p.begin[k + 1] - x, b->p.begin[k + 1] - y);
		for (size_t i = 0; x + i < a->p.begin[k + 1]; i++) {
			const struct vc_op *o = &a->p.op[x + i], *p = &b->p.op[y + i];

			assert_string_equal(a->meta->string[o->name], b->meta->string[p->name]);
			assert_string_equal(a->meta->string[a->meta->frame[o->work].function],
					    b->meta->string[b->meta->frame[p->work].function]);
			assert_int_equal(o->stream, p->stream);
			assert_int_equal(o->kind, p->kind);
			assert_int_equal(o->after ? x + i + 1 - o->after : 0,
					 p->after ? y + i + 1 - p->after : 0);
			assert_int_equal(o->held ? x + i + 1 - o->held : 0,
					 p->held ? y + i + 1 - p->held : 0);
			waits += o->after > 0;
			held += o->held > 0;
		}
	}
	assert_true(waits > 40);
	assert_int_equal(held, 2 * 12);
}

static void more_micro_batches_are_as_if_they_had_been_played(void **unused)
{
	static struct rank few, many;
	struct vc_error err = { 0 };
	double gemm = 2.0 * 4096 * 4096 * (LAYERS * (512 + 1024) + 2 * 64 * 10);
	bool done = false;

	(void)unused;
	train(&few, 4, true);
	train(&many, 12, true);
	assert_int_equal(vc_profile_lengthen(&few.p, few.meta, 4, 12, 1, &done, &err), VC_OK);
	assert_true(done);
	assert_same_steps(&few, &many);
	assert_int_equal(few.p.begin[1], many.p.begin[1] - 2 * 8 * (2 * LAYERS + 2));
	assert_true(fabs(many.p.shares.flops - 12 * gemm) < 1e-6 * gemm);
	assert_true(fabs(few.p.shares.flops - many.p.shares.flops) < 1e-6 * gemm);
	over(&few);
	over(&many);
}

static void what_does_not_repeat_is_not_lengthened(void **unused)
{
	static struct rank r;
	struct vc_error err = { 0 };
	bool done = true;
	size_t n;

	(void)unused;
	train(&r, 4, false);
	n = r.p.n;
	assert_int_equal(vc_profile_lengthen(&r.p, r.meta, 4, 12, 1, &done, &err), VC_OK);
	assert_false(done);
	assert_int_equal(r.p.n, n);
	over(&r);
	/* Two that a schedule of two stages takes together are no odd number. */
	for (uint64_t want = 4; want < 8; want++) {
		train(&r, 4, true);
		n = r.p.begin[STEPS] - r.p.begin[2];
		assert_int_equal(vc_profile_lengthen(&r.p, r.meta, 8, 6 + want, 2, &done, &err),
				 VC_OK);
		assert_int_equal(done, want % 2 == 0);
		assert_int_equal(r.p.begin[STEPS] - r.p.begin[2],
				 n + (done ? (want - 2) / 2 * (2 * LAYERS + 2) : 0));
		over(&r);
	}
}

/* ---- ranks ---- */

/* Two communicators join the ranks that work on a sample, one of them at every layer, and one joins
 * all samples. wait: products before a rank has something to send. */
static void rank(struct rank *r, int number, unsigned wait, bool all)
{
	char joined[VC_WORK_TEXT], seldom[VC_WORK_TEXT], sample[VC_WORK_TEXT], sent[VC_WORK_TEXT];

	snprintf(joined, sizeof(joined), "collective bf16 0 67108864 67108864 2 %d 7 2", number);
	snprintf(seldom, sizeof(seldom), "collective bf16 0 67108864 67108864 2 %d 8 2", number);
	snprintf(sample, sizeof(sample), "collective bf16 0 1073741824 1073741824 4 %d 9 4",
		 number);
	snprintf(sent, sizeof(sent), "collective - 0 1048576 1048576 2 %d 5 %d", number, !number);
	begin(r, number);
	for (int k = 0; k <= STEPS; k++) { /* the last one ends the one before */
		mark(r);
		for (unsigned i = 0; i < LAYERS + wait; i++)
			product(r, 4096);
		launch(r, VC_EV_KERNEL, number ? "ncclRecv" : "ncclSend", sent, 0);
		for (unsigned i = 0; i < LAYERS; i++) {
			product(r, 4096);
			launch(r, VC_EV_KERNEL, "ncclAllReduce", joined, 0);
		}
		if (all) {
			launch(r, VC_EV_KERNEL, "ncclAllReduce", seldom, 0);
			launch(r, VC_EV_KERNEL, "ncclAllReduce", sample, 0);
		}
	}
	end(r);
}

static void what_two_take(bool all, unsigned wait, const uint64_t ranks[VC_SHARED], double ns[2])
{
	static struct rank a, b;
	struct vc_error err = { 0 };

	rank(&a, 0, wait, all);
	rank(&b, 1, 0, all);
	const struct vc_player both[] = { { &a.p, a.meta }, { &b.p, b.meta } };

	assert_int_equal(vc_profiles_within(both, 2, ranks, ns, &err), VC_OK);
	over(&a);
	over(&b);
}

static void collectives_that_join_samples_are_left_out(void **unused)
{
	static const uint64_t pair[VC_SHARED] = { 2, 1, 1 }, none[VC_SHARED] = { 1, 1, 1 },
			      two[VC_SHARED] = { 2, 2, 1 }, four[VC_SHARED] = { 1, 2, 4 };
	double with[2], without[2], bare[2], both[2], each[2], late[2];

	(void)unused;
	what_two_take(true, 0, pair, with);
	what_two_take(false, 0, pair, without);
	what_two_take(false, 0, none, bare);
	what_two_take(true, 0, two, both);
	what_two_take(true, 0, four, each);
	/* Two launches that cost nothing take the time to launch them, no more. */
	assert_true(with[0] >= without[0] && with[0] < without[0] + 50000);
	/* What joins the ranks of a sample stays: five of 64 MiB. */
	assert_true(without[0] > bare[0] + 5 * 100000);
	/* A second communicator of as many ranks stays where two are asked for: one of 64 MiB. */
	assert_true(both[0] > with[0] + 100000 && both[0] < with[0] + 1e6);
	/* Where samples are joined by what is asked for, that stays, too: 1 GiB. */
	assert_true(each[0] > with[0] + 2e6);
	/* Who waits for a late one takes as long as that one; alone it would not. */
	what_two_take(false, 40, pair, late);
	assert_true(late[1] > late[0] + 19 * (late[0] - without[0]) / 20);
	assert_true(late[0] > without[0] && without[1] < late[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_micro_batches_are_as_if_they_had_been_played),
		cmocka_unit_test(what_does_not_repeat_is_not_lengthened),
		cmocka_unit_test(collectives_that_join_samples_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
