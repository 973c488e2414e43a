/* SPDX-License-Identifier: Apache-2.0 */
/* test_transforms.c - every what-if transform on a small training run made by hand: 4 layers of one
 * million float parameters, AdamW with foreach temporaries, 4 iterations. */
#include "tests/support/test.h"

#include "simulator/replay/transform.h"
#include "simulator/anatomy/anatomy.h"

enum { LAYERS = 4, STEPS = 4 };
#define MB 1000000ull
#define P (4 * MB)   /* bytes of one layer's parameters */
static uint64_t weight = P; /* ... in tests of boundaries another size */
#define A (3 * MB)   /* ... of its first kept activation; 5 MB the second */

struct build { struct vc_trace t; uint64_t id; };

static uint64_t put(struct build *b, uint64_t size)
{
	struct vc_event e = {
		.kind = VC_EV_ALLOC, .id = ++b->id, .size = size, .time_ns = b->id * 1000 };

	assert_int_equal(vc_trace_append(&b->t, &e, 1, NULL), 0);
	return b->id;
}

static void drop(struct build *b, uint64_t id)
{
	struct vc_event e = { .kind = VC_EV_FREE, .id = id, .time_ns = b->id * 1000 };

	assert_int_equal(vc_trace_append(&b->t, &e, 1, NULL), 0);
}

static int micros = 1; /* of a step; gradients of the others are added to those of the first */

static void micro(struct build *b, uint64_t *grad, bool add)
{
	uint64_t act[LAYERS][2], g = 0, old;

	for (int l = 0; l < LAYERS; l++) {
		uint64_t t = put(b, 2 * MB + 4);
		act[l][0] = put(b, A);
		drop(b, t);
		act[l][1] = put(b, 5 * MB);
		drop(b, put(b, MB + 8));
	}
	for (int l = LAYERS; l-- > 0;) {
		uint64_t made;

		old = g;
		g = put(b, A + 16);
		drop(b, act[l][1]);
		made = put(b, weight);
		drop(b, act[l][0]);
		if (old)
			drop(b, old);
		if (add)
			drop(b, made);
		else
			grad[l] = made;
	}
	drop(b, g);
}

static void step(struct build *b, bool first)
{
	uint64_t in = put(b, 777216), grad[LAYERS], temp[LAYERS];

	put(b, 600); /* what a careless loop keeps of every step */
	for (int m = 0; m < micros; m++) {
		if (m) {
			drop(b, in);
			in = put(b, 777216);
		}
		micro(b, grad, m > 0);
	}
	for (int l = 0; l < LAYERS && first; l++) {
		put(b, weight);
		put(b, weight);
	}
	for (int l = 0; l < LAYERS; l++)
		temp[l] = put(b, weight);
	for (int l = 0; l < LAYERS; l++)
		drop(b, temp[l]);
	for (int l = 0; l < LAYERS; l++)
		drop(b, grad[l]);
	drop(b, in);
}

static struct vc_trace training(void)
{
	struct build b = { .t = { .meta = vc_meta_new(NULL) } };

	for (int l = 0; l < LAYERS; l++)
		put(&b, weight);
	for (int k = 0; k < STEPS; k++)
		step(&b, !k);
	b.t.meta->max_id = b.id;
	return b.t;
}

static struct vc_source *put_behind(struct vc_source *up, const struct vc_source_type *type,
				    const char *params, struct vc_error *err)
{
	struct vc_transform_use u;

	return vc_transform_set(&u, type, params, err) < 0 ? NULL : vc_transform_open(&u, up, err);
}

/* The trace after one transform; checks that it is a trace: no block asked for twice, none given
 * back that is not alive. peak: largest sum of live bytes. */
static struct vc_trace after(const char *name, const char *params, uint64_t *peak)
{
	struct vc_trace in = training(), out = { 0 };
	struct vc_source *m = vc_source_memory(&in, NULL), *s;
	struct vc_error err = { 0 };
	uint64_t *size, live = 0;

	s = put_behind(m, vc_transform_by_name(name), params, &err);
	if (!s)
		fail_msg("%s: %s", name, err.message);
	if (vc_trace_read(&out, s, &err) < 0)
		fail_msg("%s: %s", name, err.message);
	vc_source_free(s);
	vc_trace_fini(&in);
	size = calloc(out.meta->max_id + 2, sizeof(*size));
	*peak = 0;
	for (size_t i = 0; i < out.n; i++) {
		const struct vc_event *e = &out.ev[i];
		if (e->kind == VC_EV_ALLOC) {
			assert_true(e->id && e->id <= out.meta->max_id && e->size && !size[e->id]);
			live += size[e->id] = e->size;
		} else if (e->kind == VC_EV_FREE) {
			if (!size[e->id])
				fail_msg("%s(%s): event %zu frees block %llu, which is not alive",
					 name, params ? params : "", i,
					 (unsigned long long)e->id);
			live -= size[e->id];
			size[e->id] = 0;
		}
		*peak = live > *peak ? live : *peak;
		if (i && e->time_ns < out.ev[i - 1].time_ns)
			fail_msg("%s(%s): event %zu is before the one before it", name,
				 params ? params : "", i);
	}
	free(size);
	return out;
}

static uint64_t peak_of(const char *name, const char *params)
{
	uint64_t peak;
	struct vc_trace t = after(name, params, &peak);

	vc_trace_fini(&t);
	return peak;
}

static size_t count(const char *name, const char *params, uint8_t kind, uint64_t size)
{
	uint64_t peak;
	struct vc_trace t = after(name, params, &peak);
	size_t n = 0;

	for (size_t i = 0; i < t.n; i++)
		n += t.ev[i].kind == kind && (!size || t.ev[i].size == size);
	vc_trace_fini(&t);
	return n;
}

static void the_pattern_shows_iterations_phases_and_categories(void **unused)
{
	struct vc_trace t = training();
	struct vc_anatomy a;
	size_t states = 0;

	(void)unused;
	assert_int_equal(vc_anatomy_read(&a, t.ev, t.n, 0, t.meta, NULL), 0);
	assert_int_equal(a.iterations, STEPS);
	assert_string_equal(a.from, "pattern");
	assert_true(a.parameters == LAYERS * P);
	assert_true(a.gradients == LAYERS * P);
	for (size_t i = 0; i < a.n; i++)
		states += a.block[i].category == VC_CAT_STATE;
	assert_int_equal(states, 2 * LAYERS);
	vc_anatomy_fini(&a);
	vc_trace_fini(&t);
}

static void accumulation_keeps_gradients_and_repeats_the_passes(void **unused)
{
	(void)unused;
	assert_int_equal(count("accumulate", "k=1", VC_EV_ALLOC, A), STEPS * LAYERS);
	assert_int_equal(count("accumulate", "k=3", VC_EV_ALLOC, A), 3 * STEPS * LAYERS);
	/* all gradients are alive in the second forward pass */
	assert_true(peak_of("accumulate", "k=2") > peak_of("accumulate", "k=1") + 2 * P);
	assert_true(peak_of("accumulate", "k=4") <= peak_of("accumulate", "k=3") + STEPS * 600);
}

static void optimizer_states_are_exact(void **unused)
{
	uint64_t base = peak_of("window", NULL);

	(void)unused;
	assert_true(peak_of("optimizer", "to=adamw,step=foreach") == base);
	/* at the peak, in the backward or the optimizer phase: two states of P per layer less */
	assert_int_equal(count("optimizer", "to=sgd,step=fused", VC_EV_ALLOC, P),
			 LAYERS + STEPS * LAYERS);
	assert_int_equal(count("optimizer", "to=momentum,step=fused", VC_EV_ALLOC, P),
			 2 * LAYERS + STEPS * LAYERS);
	/* 8 bit: 1e6 values, a byte each and a float per 256, twice */
	assert_int_equal(count("optimizer", "to=adam8bit", VC_EV_ALLOC, 1000000), 2 * LAYERS);
	assert_int_equal(count("optimizer", "to=adam8bit", VC_EV_ALLOC, 2031256 / 2 - 1000000),
			 2 * LAYERS);
	/* rows and columns of each; in every step a mean over either */
	assert_int_equal(count("optimizer", "to=adafactor", VC_EV_ALLOC, 4 * 1000),
			 2 * LAYERS * (1 + STEPS));
}

static void checkpointing_gives_activations_back_and_runs_the_layers_twice(void **unused)
{
	uint64_t base = peak_of("window", NULL), less = peak_of("checkpoint", NULL);

	(void)unused;
	assert_true(less < base);
	assert_true(count("checkpoint", NULL, VC_EV_ALLOC, A) >
		    STEPS * LAYERS + STEPS * (LAYERS - 2));
	assert_true(peak_of("checkpoint", "least=4MB") >= less);
	assert_int_equal(peak_of("checkpoint", "layers=0..1"), peak_of("checkpoint", "count=2"));
	assert_int_equal(peak_of("checkpoint", "layers=0-1"),
			 peak_of("checkpoint", "count=2,every=2"));
	assert_true(peak_of("checkpoint", "layers=0") > less);
}

static void zero_shards_what_its_stage_says(void **unused)
{
	(void)unused;
	/* torch's ZeroRedundancyOptimizer: states and temporaries of each tensor in quarters */
	assert_int_equal(count("zero", "stage=1,ranks=4,bucket=0", VC_EV_ALLOC, P / 4),
			 2 * LAYERS + STEPS * LAYERS);
	/* DeepSpeed: an eighth of the flat model: its float copy, what initialises the states,
	 * the states; in each step what is left of the gradients, that in float, and the
	 * optimizer's temporary */
	assert_int_equal(count("zero", "stage=1,ranks=8", VC_EV_ALLOC, LAYERS * P / 8),
			 4 + 3 * STEPS);
	assert_int_equal(count("zero", "stage=2,ranks=8", VC_EV_ALLOC, LAYERS * P / 8),
			 4 + 3 * STEPS);
	/* a bucket in each backward pass; all of the gradients in it once more when it is reduced
	 */
	assert_int_equal(count("zero", "stage=2,ranks=8", VC_EV_ALLOC, UINT64_C(2000000000)),
			 STEPS);
	assert_int_equal(count("zero", "stage=2,ranks=8", VC_EV_ALLOC, LAYERS * P), 1 + STEPS);
	assert_int_equal(count("zero", "stage=2,ranks=8,bucket=1500000", VC_EV_ALLOC, 6000000),
			 STEPS);
	/* stage 3: a bucket for good, shards of parameters and of gradients beside */
	assert_int_equal(count("zero", "stage=3,ranks=8", VC_EV_ALLOC, UINT64_C(2000000000)), 1);
	assert_int_equal(count("zero", "stage=3,ranks=8", VC_EV_ALLOC, LAYERS * P / 8),
			 6 + 2 * STEPS);
	assert_int_equal(
		count("zero", "stage=2,ranks=8,offload=optimizer", VC_EV_ALLOC, LAYERS * P / 8),
		0);
	assert_true(peak_of("zero", "stage=3,ranks=4,offload=all") <
		    peak_of("zero", "stage=3,ranks=4"));
	/* parameters, states and temporaries in halves; gradients too, one block for each unit */
	assert_true(count("fsdp", "ranks=2", VC_EV_ALLOC, P / 2) >= 3 * LAYERS + STEPS * LAYERS);
	assert_true(peak_of("fsdp", "ranks=4") < peak_of("fsdp", "ranks=2"));
	assert_true(peak_of("fsdp", "ranks=2") < peak_of("window", NULL));
	assert_true(peak_of("fsdp", "ranks=2,wrap=whole") > peak_of("fsdp", "ranks=2"));
	assert_int_equal(count("fsdp", "version=1,ranks=2,wrap=whole", VC_EV_ALLOC, 4 * P),
			 2 + 2 * STEPS);
	/* all gradients once more, in buckets of at least 1 and 25 MiB: 4 MB and 12 MB */
	assert_int_equal(count("ddp", NULL, VC_EV_ALLOC, P), 3 * LAYERS + 2 * STEPS * LAYERS + 1);
	assert_int_equal(count("ddp", NULL, VC_EV_ALLOC, 3 * P), 1);
}

static void adapters_replace_gradients_and_states(void **unused)
{
	uint64_t peak;
	struct vc_trace t = after("lora", "rank=8", &peak);
	bool said = false;

	/* 8 x (1000 + 1000) values of each matrix but the first and the last */
	for (size_t i = 0; i < t.meta->notes; i++)
		said |= strstr(t.meta->note[i], "0.03 million") != NULL;
	assert_true(said);
	vc_trace_fini(&t);
	(void)unused;
	assert_int_equal(count("lora", "rank=8", VC_EV_ALLOC, P), LAYERS);
	/* weight, gradient and two states of each; the first and the last matrix have none */
	assert_int_equal(count("lora", "rank=8", VC_EV_ALLOC, 4 * 8 * 2000), 4 * (LAYERS - 2));
	assert_int_equal(count("lora", "rank=8,targets=0.5", VC_EV_ALLOC, 4 * 8 * 2000),
			 4 * (LAYERS - 2) / 2);
	assert_true(peak_of("lora", "bound=low") <= peak_of("lora", NULL));
	assert_true(peak_of("lora", NULL) <= peak_of("lora", "bound=high"));
	assert_true(peak_of("qlora", NULL) <= peak_of("lora", NULL));
}

static size_t with(uint64_t values, const char *name, const char *params, uint64_t size)
{
	size_t n;

	weight = 4 * values;
	n = count(name, params, VC_EV_ALLOC, size);
	weight = P;
	return n;
}

/* The smallest parameters that a rule is for, and one value less. */
static void small_parameters_stay_as_they_are(void **unused)
{
	(void)unused;
	assert_int_equal(with(65535, "tp", "t=2", 2 * 65535), 0);
	assert_int_equal(with(65536, "tp", "t=2", 2 * 65536), 3 * LAYERS + 2 * STEPS * LAYERS);
	/* stage3_param_persistence_threshold: smaller ones are gathered once, in one block */
	assert_int_equal(with(99999, "zero", "stage=3,ranks=8", LAYERS * 4 * 99999),
			 with(100000, "zero", "stage=3,ranks=8", LAYERS * 4 * 100000) + 1);
	/* temporaries of the optimizer that are scalars of all tensors, not values */
	assert_int_equal(with(1023, "optimizer", "to=sgd,step=fused", 4 * 1023),
			 LAYERS + 2 * STEPS * LAYERS);
	assert_int_equal(with(1024, "optimizer", "to=sgd,step=fused", 4 * 1024),
			 LAYERS + STEPS * LAYERS);
}

static void precision_halves_what_it_names(void **unused)
{
	(void)unused;
	assert_int_equal(count("precision", "to=bf16,act=1", VC_EV_ALLOC, P / 2),
			 3 * LAYERS + 2 * STEPS * LAYERS);
	assert_int_equal(count("precision", "to=bf16,act=1", VC_EV_ALLOC, A / 2), STEPS * LAYERS);
	assert_int_equal(count("precision", "to=amp,act=0", VC_EV_ALLOC, P / 2), STEPS * LAYERS);
}

static void events_of_the_device_and_the_cache_are_inserted(void **unused)
{
	(void)unused;
	assert_int_equal(count("fraction", "f=0.5", VC_EV_FRACTION, 0), 1);
	assert_int_equal(count("empty_cache", "at=iterations", VC_EV_TRIM, 0), STEPS);
	assert_true(count("empty_cache", "at=phases", VC_EV_TRIM, 0) >= 2 * STEPS);
	assert_int_equal(count("share", "n=3,each=1GiB,context=0", VC_EV_OTHERS, 2ull << 30), 1);
	assert_true(count("share", "n=2,mode=aligned", VC_EV_OTHERS, 0) > STEPS);
}

static void parts_and_repetitions(void **unused)
{
	size_t all = count("window", NULL, VC_EV_ALLOC, A);

	(void)unused;
	assert_int_equal(count("window", "iteration=1,iterations=2", VC_EV_ALLOC, A), all / 2);
	assert_int_equal(count("leak", "steps=5", VC_EV_ALLOC, 600), STEPS + 5);
	assert_true(peak_of("leak", "steps=5") == peak_of("window", NULL) + 5 * 600);
	assert_int_equal(count("tail_batch", "share=0.5", VC_EV_ALLOC, A / 2), LAYERS);
	assert_true(count("mixture", "low=0.5,high=1,steps=6", VC_EV_ALLOC, A) == all + LAYERS);
	assert_true(peak_of("offload", NULL) < peak_of("window", NULL));
	assert_true(peak_of("tp", "t=2") < peak_of("window", NULL));
	assert_true(peak_of("pp", "stages=2,stage=1,micro=1") < peak_of("window", NULL));
}

/* after() holds each of them to ascending times. What runs again takes its time again: the second
 * micro-batch of each step as long as the first. */
static void times_ascend_under_every_transform(void **unused)
{
	uint64_t peak, took[2];

	(void)unused;
	for (size_t i = 0; vc_transforms[i]; i++)
		peak_of(vc_transforms[i]->name, NULL);
	peak_of("fsdp", "version=1,ranks=4");
	peak_of("zero", "stage=3,ranks=4,offload=all");
	peak_of("zero", "stage=1,bucket=0");
	peak_of("accumulate", "micro=5");
	peak_of("leak", "steps=20");
	peak_of("checkpoint", "every=2");
	for (unsigned k = 0; k < 2; k++) {
		struct vc_trace t = after("accumulate", k ? "micro=3" : "micro=2", &peak);

		took[k] = t.ev[t.n - 1].time_ns;
		vc_trace_fini(&t);
	}
	struct vc_trace t = after("accumulate", "micro=1", &peak);
	uint64_t once = t.ev[t.n - 1].time_ns;

	vc_trace_fini(&t);
	assert_true(took[0] > once + once / 2);
	assert_true(took[1] - took[0] == took[0] - once);
}

/* A step that has two of them already repeats its last one, not all of them. */
static void the_last_micro_batch_is_repeated(void **unused)
{
	uint64_t peak[2];

	(void)unused;
	for (int most = 3; most < 6; most++) {
		char params[20];

		micros = 2;
		snprintf(params, sizeof(params), "micro=%d", most);
		struct vc_trace made = after("accumulate", params, &peak[0]);
		micros = most;
		struct vc_trace real = after("window", NULL, &peak[1]);
		micros = 1;
		size_t allocs[2] = { 0, 0 };

		for (size_t i = 0; i < made.n; i++)
			allocs[0] += made.ev[i].kind == VC_EV_ALLOC;
		for (size_t i = 0; i < real.n; i++)
			allocs[1] += real.ev[i].kind == VC_EV_ALLOC;
		assert_int_equal(allocs[0], allocs[1]);
		assert_int_equal(made.n, real.n);
		assert_int_equal(peak[0], peak[1]);
		vc_trace_fini(&made);
		vc_trace_fini(&real);
	}
}

static void nonsense_is_refused(void **unused)
{
	static const char *const bad[][2] = {
		{ "fraction", "f=2" },
		{ "accumulate", "k=0" },
		{ "zero", "stage=4" },
		{ "zero", "ranks=0" },
		{ "zero", "stage=1,offload=all" },
		{ "precision", "act=2" },
		{ "lora", "rank=0" },
		{ "checkpoint", "every=0" },
		{ "checkpoint", "layers=1/0" },
		{ "checkpoint", "layers=0,every=2" },
		{ "mixture", "low=0" },
		{ "tail_batch", "share=0" },
		{ "leak", "steps=0" },
		{ "share", "n=0" },
		{ "tp", "t=0" },
		{ "pp", "stage=2" },
		{ "fsdp", "ranks=0" },
		{ "optimizer", "to=magic" },
		{ "optimizer", "element=3" },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct vc_trace in = training();
		struct vc_source *m = vc_source_memory(&in, NULL);
		struct vc_error err = { 0 };

		assert_null(put_behind(m, vc_transform_by_name(bad[i][0]), bad[i][1], &err));
		assert_int_equal(err.status, VC_EUSAGE);
		vc_source_free(m);
		vc_trace_fini(&in);
	}
}

/* A row without a margin would be called unknown; those of ours all have one, and the numbers of
 * cards and of micro-batches have one name everywhere. */
static void every_row_says_how_far_off_it_may_be(void **unused)
{
	static const char *const old[][3] = { { "tp", "t=4", "ranks=4" },
					      { "pp", "stages=4,stage=1", "ranks=4,stage=1" },
					      { "share", "n=3", "processes=3" },
					      { "accumulate", "k=4", "micro=4" } };
	static const char *const cards[] = { "tp", "pp", "ddp", "fsdp", "zero" };
	struct vc_transform_use u, v;
	struct vc_error err = { 0 };

	(void)unused;
	for (size_t i = 0; vc_transforms[i]; i++) {
		assert_int_equal(vc_transform_set(&u, vc_transforms[i], NULL, &err), VC_OK);
		if (!vc_transform_margin(&u))
			fail_msg("%s gives no margin", vc_transforms[i]->name);
	}
	assert_int_equal(vc_transform_parse(&u, "zero:stage=2", &err), VC_OK);
	assert_int_equal(vc_transform_parse(&v, "zero:stage=3", &err), VC_OK);
	assert_true(vc_transform_margin(&u)->up == 12 && vc_transform_margin(&v)->up == 18);
	assert_true(vc_transform_given(&v, "stage") && !vc_transform_given(&v, "ranks"));
	for (size_t i = 0; i < sizeof(old) / sizeof(*old); i++) {
		const struct vc_source_type *t = vc_transform_by_name(old[i][0]);

		assert_int_equal(vc_transform_set(&u, t, old[i][1], &err), VC_OK);
		assert_int_equal(vc_transform_set(&v, t, old[i][2], &err), VC_OK);
		assert_memory_equal(u.config, v.config, t->config_size);
	}
	for (size_t i = 0; i < sizeof(cards) / sizeof(*cards); i++)
		assert_non_null(vc_param_find(vc_transform_by_name(cards[i])->params, "ranks"));
}

static void steps_change_as_their_rows_say(void **unused)
{
	struct vc_step_change c = { .passes = 1 };
	struct vc_transform_use u;
	struct vc_error err = { 0 };

	(void)unused;
	assert_int_equal(vc_transform_parse(&u, "accumulate:micro=3", &err), VC_OK);
	u.type->step(u.config, &c);
	assert_true(c.passes == 3 && !c.recompute);
	assert_int_equal(vc_transform_parse(&u, "checkpoint:stride=2,first=1", &err), VC_OK);
	u.type->step(u.config, &c);
	assert_true(c.recompute && c.layers.every == 1 && c.layers.stride == 2 &&
		    c.layers.first == 1 && !c.layers.count);
	assert_int_equal(vc_transform_parse(&u, "window", &err), VC_OK);
	u.type->step(u.config, &c);
	assert_true(c.passes == 3);
	assert_int_equal(vc_transform_parse(&u, "fsdp", &err), VC_OK);
	assert_null(u.type->step); /* its collectives take a time nobody knows */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_pattern_shows_iterations_phases_and_categories),
		cmocka_unit_test(every_row_says_how_far_off_it_may_be),
		cmocka_unit_test(steps_change_as_their_rows_say),
		cmocka_unit_test(accumulation_keeps_gradients_and_repeats_the_passes),
		cmocka_unit_test(optimizer_states_are_exact),
		cmocka_unit_test(checkpointing_gives_activations_back_and_runs_the_layers_twice),
		cmocka_unit_test(zero_shards_what_its_stage_says),
		cmocka_unit_test(adapters_replace_gradients_and_states),
		cmocka_unit_test(small_parameters_stay_as_they_are),
		cmocka_unit_test(precision_halves_what_it_names),
		cmocka_unit_test(events_of_the_device_and_the_cache_are_inserted),
		cmocka_unit_test(parts_and_repetitions),
		cmocka_unit_test(times_ascend_under_every_transform),
		cmocka_unit_test(the_last_micro_batch_is_repeated),
		cmocka_unit_test(nonsense_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
