/* SPDX-License-Identifier: Apache-2.0 */
/* test_steps.c - what a step of training is, where call sites and marks do not say it. */
#include "tests/support/test.h"

#include "simulator/anatomy/anatomy.h"

enum { EVENTS = 1 << 14, LAYERS = 20, WEIGHT = 5 << 20 };

/* A run as it is recorded: a program of 100 lines, of which any may call the optimizer. */
struct run {
	struct vc_meta *meta;
	struct vc_event ev[EVENTS];
	size_t n;
	uint64_t id, kept[LAYERS], batch;
};

static uint32_t frame(struct run *r, uint32_t parent, const char *file, const char *function,
		      uint32_t line)
{
	struct vc_frame f = { parent, vc_meta_string(r->meta, function, strlen(function)),
			      vc_meta_string(r->meta, file, strlen(file)), line };

	return vc_meta_frame(r->meta, f);
}

static uint64_t get(struct run *r, uint64_t size, uint32_t site)
{
	r->ev[r->n++] = (struct vc_event){
		.kind = VC_EV_ALLOC, .id = ++r->id, .size = size, .site = site };
	return r->id;
}

static void give(struct run *r, uint64_t id)
{
	r->ev[r->n++] = (struct vc_event){ .kind = VC_EV_FREE, .id = id };
}

static void mark(struct run *r)
{
	r->ev[r->n++] = (struct vc_event){ .kind = VC_EV_MARK, .flags = VC_MARK_STEP };
}

static void begin(struct run *r)
{
	*r = (struct run){ .meta = vc_meta_new(NULL) };
	assert_non_null(r->meta);
	for (unsigned i = 0; i < LAYERS; i++)
		get(r, WEIGHT, frame(r, 0, "train.py", "__init__", i));
}

/* A batch at lines 1 to `batches`, and what layers keep; called from site `by`. */
static void forward(struct run *r, uint32_t by, unsigned batches)
{
	for (unsigned i = 1; i <= batches; i++) {
		uint64_t last = r->batch;

		r->batch = get(r, (2 << 20) + i, frame(r, by, "data.py", "load", i));
		if (last)
			give(r, last);
	}
	for (unsigned i = 0; i < LAYERS; i++)
		r->kept[i] = get(r, (3 << 20) + i * 512, frame(r, by, "model.py", "forward", i));
}

static void backward(struct run *r, uint32_t by)
{
	uint32_t engine = frame(r, by, "torch/autograd/graph.py", "_engine_run_backward", 1);

	for (unsigned i = LAYERS; i-- > 0;) {
		give(r, get(r, WEIGHT, i % 2 ? engine : 0)); /* its threads have no frames */
		give(r, r->kept[i]);
	}
}

static void pass(struct run *r, unsigned batches)
{
	forward(r, 0, batches);
	backward(r, 0);
}

static uint32_t optimizer(struct run *r)
{
	return frame(r, 0, "torch/optim/adam.py", "step", 1);
}

static void step(struct run *r, unsigned temporaries)
{
	uint32_t line = frame(r, optimizer(r), "torch/optim/adam.py", "_multi_tensor_adam", 2);

	for (unsigned i = 0; i < temporaries; i++)
		give(r, get(r, WEIGHT, line));
}

/* What runs between steps: the same layers, with nothing kept, and a batch that stays. */
static void evaluation(struct run *r)
{
	for (unsigned i = 0; i < 2; i++) {
		forward(r, 0, 3);
		for (unsigned k = 0; k < LAYERS; k++)
			give(r, r->kept[k]);
	}
}

static struct vc_anatomy read_run(struct run *r)
{
	struct vc_anatomy a;
	struct vc_error err = { 0 };

	assert_int_equal(vc_anatomy_read(&a, r->ev, r->n, 0, r->meta, &err), VC_OK);
	return a;
}

static void end(struct run *r, struct vc_anatomy *a)
{
	vc_anatomy_fini(a);
	vc_meta_free(r->meta);
}

/* So many iterations, each of so many micro-batches; nobody needs the run any more. */
static void ends_with(struct run *r, uint32_t iterations, uint32_t micro)
{
	struct vc_anatomy a = read_run(r);

	assert_int_equal(a.iterations, iterations);
	assert_int_equal(a.micro, micro);
	end(r, &a);
}

static void optimizers_that_step_one_after_another_end_one_iteration(void **unused)
{
	static struct run r;

	(void)unused;
	begin(&r);
	for (unsigned k = 0; k < 6; k++) {
		pass(&r, 3);
		for (unsigned i = 0; i < 3; i++) {
			step(&r, 4);
			mark(&r);
		}
	}
	ends_with(&r, 6, 1);
}

/* As RAdam does, which is silent in its second to fifth step; nothing marks the steps. */
static void steps_of_a_silent_optimizer_are_no_micro_batches(void **unused)
{
	static struct run r;

	(void)unused;
	begin(&r);
	for (unsigned k = 0; k < 12; k++) {
		pass(&r, 3);
		step(&r, k == 0 || k > 4 ? 8 : 0);
		if (k == 7)
			evaluation(&r);
	}
	ends_with(&r, 12, 1);
}

/* The batches of a whole step are on the card before its first forward pass. */
static void micro_batches_are_alike_but_for_their_beginning(void **unused)
{
	static struct run r;

	(void)unused;
	begin(&r);
	for (unsigned k = 0; k < 6; k++) {
		pass(&r, 7);
		pass(&r, 0);
		step(&r, 8);
	}
	ends_with(&r, 6, 2);
}

/* A second pass over something else each third step is a penalty, no step of its own. */
static void another_backward_pass_is_of_the_same_iteration(void **unused)
{
	static struct run r;

	(void)unused;
	begin(&r);
	for (unsigned k = 0; k < 6; k++) {
		pass(&r, 3);
		if (k % 3 == 2) {
			forward(&r, frame(&r, 0, "penalty.py", "grad", 1), 0);
			for (unsigned i = 0; i < LAYERS; i++)
				r.ev[r.n - 1 - i].site =
					frame(&r, 0, "penalty.py", "grad", 10 + i);
			backward(&r, 0);
		}
		step(&r, 8);
	}
	ends_with(&r, 6, 1);
}

/* step(closure) calls the forward and the backward pass; an evaluation lies between two steps. */
static void what_an_optimizer_calls_back_is_not_its_own(void **unused)
{
	static struct run r;
	size_t passes = 0;

	(void)unused;
	begin(&r);
	for (unsigned k = 0; k < 6; k++) {
		uint32_t closure = frame(&r, optimizer(&r), "train.py", "closure", 1);

		forward(&r, closure, 3);
		backward(&r, closure);
		step(&r, 8);
		mark(&r);
		if (k % 3 == 2)
			evaluation(&r);
	}
	struct vc_anatomy a = read_run(&r);
	assert_int_equal(a.iterations, 6);
	assert_int_equal(a.micro, 1);
	for (size_t i = 0; i < a.n; i++)
		if (a.block[i].iteration != UINT32_MAX && (a.block[i].size >> 20) == 3) {
			passes++;
			assert_int_equal(a.span[a.block[i].span].phase, VC_PHASE_FORWARD);
		}
	assert_int_equal(passes, 6 * LAYERS);
	end(&r, &a);
}

/* Live memory is as low in an evaluation as where the next step begins, and lower than there by
 * the batch of the evaluation. */
static void a_step_begins_behind_the_evaluation_before_it(void **unused)
{
	static struct run r;
	size_t of_fifth = 0;

	(void)unused;
	begin(&r);
	for (unsigned k = 0; k < 6; k++) {
		pass(&r, 3);
		step(&r, 8);
		mark(&r);
		give(&r, r.batch);
		r.batch = 0;
		if (k == 3)
			evaluation(&r);
	}
	struct vc_anatomy a = read_run(&r);
	assert_int_equal(a.iterations, 6);
	assert_int_equal(a.micro, 1);
	for (size_t i = 0; i < a.n; i++)
		of_fifth += a.block[i].iteration == 4 && (a.block[i].size >> 20) == 3;
	assert_int_equal(of_fifth, LAYERS);
	end(&r, &a);
}

/* Long enough for a step, but without a backward pass; no name of an optimizer. */
static void an_evaluation_behind_the_last_mark_is_no_iteration(void **unused)
{
	static struct run r;

	(void)unused;
	begin(&r);
	for (unsigned k = 0; k < 6; k++) {
		pass(&r, 3);
		mark(&r);
	}
	evaluation(&r);
	evaluation(&r);
	struct vc_anatomy a = read_run(&r);
	assert_string_equal(a.from, "marks");
	assert_int_equal(a.iterations, 6);
	end(&r, &a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(optimizers_that_step_one_after_another_end_one_iteration),
		cmocka_unit_test(steps_of_a_silent_optimizer_are_no_micro_batches),
		cmocka_unit_test(micro_batches_are_alike_but_for_their_beginning),
		cmocka_unit_test(another_backward_pass_is_of_the_same_iteration),
		cmocka_unit_test(what_an_optimizer_calls_back_is_not_its_own),
		cmocka_unit_test(a_step_begins_behind_the_evaluation_before_it),
		cmocka_unit_test(an_evaluation_behind_the_last_mark_is_no_iteration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
