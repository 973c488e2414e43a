/* SPDX-License-Identifier: Apache-2.0 */
/* test_past_runs.c - replays behind a past, and what else is found out about a trace for them. */
#include "tests/support/warm.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "simulator/replay/calls.h"
#include "simulator/replay/engine.h"
#include "simulator/replay/past.h"
#include "simulator/replay/sizes.h"

static struct vc_run a_run(const struct vc_past *before)
{
	return (struct vc_run){ .model = vc_model_by_name("torch"), .version = "2.5", .conf = "",
				.fraction = -1, .start = VC_START_REBUILD, .before = before,
				.device = { .total = 64ull << 30, .va = VC_VA_WINDOW } };
}

/* Returns what vc_run does. */
static int replay(struct vc_run r, const struct vc_trace *t, struct vc_stats *out)
{
	struct vc_error err = { 0 };
	struct vc_result result;
	int rc;

	r.source = vc_source_memory(t, &err);
	assert_non_null(r.source);
	rc = vc_run(&r, &result, &err);
	vc_source_free(r.source);
	if (rc == VC_OK) {
		*out = result.stats;
		vc_result_fini(&result);
	}
	return rc;
}

static uint64_t drawn = 1;

static uint64_t any(uint64_t n)
{
	drawn = drawn * 6364136223846793005u + 1442695040888963407u;
	return (drawn >> 33) % n;
}

/* Recordings that a file may hold and no program made: nothing breaks, and a past that there is
 * can be replayed or is refused with a sentence. */
static void spoil(struct vc_trace *t, void *arg)
{
	static const uint64_t odd[] = { 0, 1, 511, UINT32_MAX, UINT64_MAX, UINT64_MAX / 2,
					1ull << 62 };

	(void)arg;
	for (int i = 0; i < 30; i++) {
		struct vc_event *e = &t->ev[any(t->n)], *other = &t->ev[any(t->n)];

		switch (any(8)) {
		case 0: e->id = other->id; break;
		case 1: e->size = odd[any(7)]; break;
		case 2: e->kind = other->kind; break;
		case 3: e->flags = (uint8_t)any(256); break;
		case 4: e->device = (uint16_t)any(2); break;
		case 5: e->stream = (uint32_t)any(3); break;
		case 6: e->addr = odd[any(7)]; break;
		default: *e = *other;
		}
		for (int k = 0; k < VC_PASTS && i % 5 == 0; k++) {
			struct vc_past *p;
			struct vc_stats s;

			assert_int_equal(vc_past_of(t, (uint16_t)any(2), (enum vc_past_kind)k, &p,
						    NULL), VC_OK);
			replay(a_run(p), t, &s);
			vc_memo_put(&p->memo);
		}
	}
}

static void spoilt_recordings_break_nothing(void **unused)
{
	(void)unused;
	assert_true(each_recording(spoil, NULL) >= 40);
}

/* ---- replays ---- */

static void a_past_is_replayed_before_the_recording(void **unused)
{
	struct vc_trace t = a_step();
	struct vc_past *p[VC_PASTS];
	struct vc_stats alone, late, filled, small;
	struct vc_run r;

	(void)unused;
	for (int k = 0; k < VC_PASTS; k++)
		assert_int_equal(vc_past_of(&t, 0, (enum vc_past_kind)k, &p[k], NULL), VC_OK);
	assert_int_equal(replay(a_run(p[VC_PAST_ALONE]), &t, &alone), VC_OK);
	assert_int_equal(alone.peak_reserved, (30 + 30 + 80 + 30) * MIB);
	assert_int_equal(alone.allocs, 3); /* of the recording */
	assert_int_equal(alone.frees, 3);
	assert_int_equal(alone.final_allocated, 60 * MIB);
	assert_int_equal(replay(a_run(p[VC_PAST_LATE]), &t, &late), VC_OK);
	assert_int_equal(late.peak_reserved, (30 + 80 + 30 + 80) * MIB);
	assert_int_equal(replay(a_run(p[VC_PAST_FILLED]), &t, &filled), VC_OK);
	assert_int_equal(filled.final_allocated, 60 * MIB);
	/* It does not fit: the run ends before the recording begins. */
	r = a_run(p[VC_PAST_ALONE]);
	r.device.total = 50 * MIB;
	r.stop_at_oom = true;
	assert_int_equal(replay(r, &t, &small), VC_OK);
	assert_int_equal(small.ooms, 1);
	assert_int_equal(small.peak_reserved, 30 * MIB);
	for (int k = 0; k < VC_PASTS; k++)
		vc_memo_put(&p[k]->memo);
	vc_trace_fini(&t);
}

static void a_trimmed_heap_keeps_what_is_in_use(void **unused)
{
	struct vc_trace t = empty();
	struct vc_run r = a_run(NULL);
	struct vc_stats warm, trimmed;

	(void)unused;
	add_segment(&t, AT, 400 * MIB, 0);
	add(&t, (struct vc_event){ .kind = VC_EV_HEAP_BLOCK, .addr = AT });
	add_whole(&t, 1, 30);
	take(&t, 2, 20);
	r.start = VC_START_WARM;
	assert_int_equal(replay(r, &t, &warm), VC_OK);
	assert_int_equal(warm.final_reserved, 430 * MIB);
	assert_int_equal(warm.flushes, 0);
	r.start = VC_START_TRIMMED;
	assert_int_equal(replay(r, &t, &trimmed), VC_OK);
	assert_int_equal(trimmed.final_reserved, 50 * MIB);
	assert_int_equal(trimmed.peak_reserved, 50 * MIB); /* since the first event */
	assert_int_equal(trimmed.flushes, 1);
	vc_trace_fini(&t);
}

/* A run behind one past is not taken for one behind another, though pasts come and go. */
static void runs_behind_pasts_are_told_apart(void **unused)
{
	struct vc_trace t = a_step();
	struct vc_stats alone, late, again;
	struct vc_past *p, copy;

	(void)unused;
	assert_int_equal(vc_trace_keep(&t, NULL), VC_OK);
	assert_int_equal(vc_past_of(&t, 0, VC_PAST_ALONE, &p, NULL), VC_OK);
	copy = *p; /* one that was not kept */
	assert_int_equal(replay(a_run(&copy), &t, &alone), VC_OK);
	vc_memo_put(&p->memo);
	assert_int_equal(vc_past_of(&t, 0, VC_PAST_LATE, &p, NULL), VC_OK);
	copy = *p; /* at the same address */
	assert_int_equal(replay(a_run(&copy), &t, &late), VC_OK);
	assert_int_not_equal(alone.peak_reserved, late.peak_reserved);
	assert_int_equal(replay(a_run(p), &t, &again), VC_OK);
	assert_memory_equal(&late, &again, sizeof(late));
	vc_memo_put(&p->memo);
	vc_trace_fini(&t);
}

/* Sizes (MiB) that are taken, of which every other one is given back, and the last one again. */
static uint64_t by_address(const uint64_t *mib, size_t n, const char *version)
{
	struct vc_trace t = empty();
	struct vc_run r = a_run(NULL);
	struct vc_stats s;

	for (uint64_t id = 1; id <= n; id++)
		take(&t, id, mib[id - 1]);
	for (uint64_t id = 1; id <= n; id += 2)
		give(&t, id);
	take(&t, n + 1, mib[0]);
	r.version = version;
	r.start = VC_START_COLD;
	assert_int_equal(replay(r, &t, &s), VC_OK);
	vc_trace_fini(&t);
	return s.by_address;
}

/* Which of two equal holes is taken hangs on the driver where they lie in two segments, of which
 * something else is in use. */
static void choices_that_hang_on_the_driver_are_counted(void **unused)
{
	static const uint64_t apart[] = { 9, 9, 9, 9 }, within[] = { 4, 4, 4, 4 },
			      whole[] = { 30, 50, 30, 50 }, other[] = { 9, 9, 8, 9 };

	(void)unused;
	assert_true(by_address(apart, 4, "2.5") > 0);
	assert_int_equal(by_address(within, 4, "2.5"), 0);
	assert_int_equal(by_address(whole, 4, "2.5"), 0);
	assert_int_equal(by_address(other, 4, "2.5"), 0);
}

/* ---- locks ---- */

static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t knock = PTHREAD_COND_INITIALIZER;
static bool compares, finds_out;
static struct vc_model_type slow;

static void tell(bool *what)
{
	pthread_mutex_lock(&door);
	*what = true;
	pthread_cond_broadcast(&knock);
	pthread_mutex_unlock(&door);
}

/* For three seconds at most. */
static void await(const bool *what)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 3;
	pthread_mutex_lock(&door);
	while (!*what && !pthread_cond_timedwait(&knock, &door, &until))
		;
	pthread_mutex_unlock(&door);
}

/* Compares with a known run, and somebody finds out about the same trace meanwhile. */
static bool slow_repeats(const struct vc_model *m, const void *witness)
{
	if (!finds_out) {
		tell(&compares);
		await(&finds_out);
	}
	return vc_model_by_name("torch")->repeats(m, witness);
}

static void drop(struct vc_memo *m)
{
	free(m);
}

static int slow_make(const struct vc_trace *t, uint64_t key, const void *arg, struct vc_memo **out,
		     struct vc_error *err)
{
	struct vc_run r = a_run(NULL);
	struct vc_stats s;

	(void)key;
	(void)err;
	tell(&finds_out);
	r.model = arg;
	assert_int_equal(replay(r, t, &s), VC_OK);
	*out = calloc(1, sizeof(**out));
	assert_non_null(*out);
	(*out)->drop = drop;
	return VC_OK;
}

static void *compare(void *arg)
{
	struct vc_run r = a_run(NULL);
	struct vc_stats s;

	r.model = &slow;
	assert_int_equal(replay(r, arg, &s), VC_OK);
	return NULL;
}

/* What is found out about a trace may take a run, and a run what was found out: no two threads wait
 * for each other. */
static void no_two_threads_wait_for_each_other(void **unused)
{
	struct vc_trace t = a_step();
	struct vc_run r = a_run(NULL);
	struct vc_stats s;
	struct vc_memo *m;
	pthread_t other;

	(void)unused;
	slow = *vc_model_by_name("torch");
	r.model = &slow;
	assert_int_equal(vc_trace_keep(&t, NULL), VC_OK);
	assert_int_equal(replay(r, &t, &s), VC_OK); /* now one is known */
	slow.repeats = slow_repeats;
	alarm(20);
	assert_int_equal(pthread_create(&other, NULL, compare, &t), 0);
	await(&compares);
	assert_int_equal(vc_memo_get(&t, 0, slow_make, &slow, &m, NULL), VC_OK);
	vc_memo_put(m);
	pthread_join(other, NULL);
	alarm(0);
	vc_trace_fini(&t);
}

/* ---- calls and sizes ---- */

static struct vc_trace some_calls(void)
{
	const struct vc_event e[] = {
		{ .kind = VC_EV_SEGMENT_ALLOC, .addr = AT, .size = 2 * MIB },
		{ .kind = VC_EV_ALLOC, .id = 1, .size = 700 },
		{ .kind = VC_EV_SEGMENT_ALLOC, .addr = AT + 7, .size = 20 * MIB, .device = 1 },
		{ .kind = VC_EV_ALLOC, .id = 2, .size = 700 },
		{ .kind = VC_EV_ALLOC, .id = 3, .size = 0 },
		{ .kind = VC_EV_SEGMENT_ALLOC, .addr = AT + 64 * MIB, .size = 20 * MIB },
		{ .kind = VC_EV_FREE, .id = 1, .size = 5 },
		{ .kind = VC_EV_OOM, .size = 3 },
		{ .kind = VC_EV_SEGMENT_FREE, .addr = AT, .size = 2 * MIB },
		{ .kind = VC_EV_ALLOC, .id = 4, .size = 20, .device = 1 },
		{ .kind = VC_EV_HEAP_BLOCK, .id = 4, .size = 99, .flags = VC_EVF_FINAL },
		{ .kind = VC_EV_SEGMENT_MAP, .addr = AT, .size = 2 * MIB, .device = 2 },
		{ .kind = VC_EV_SEGMENT_ALLOC, .addr = AT, .size = 2 * MIB, .device = 2 },
	};
	struct vc_trace t = empty();

	add_live(&t, AT, 9, 600);
	for (size_t i = 0; i < sizeof(e) / sizeof(*e); i++)
		add(&t, e[i]);
	return t;
}

static void calls_come_as_they_were_made(void **unused)
{
	struct vc_trace t = some_calls();
	struct vc_calls *c;

	(void)unused;
	assert_int_equal(vc_calls_of(&t, 0, &c, NULL), VC_OK);
	assert_int_equal(c->n, 3);
	assert_true(c->at[0].addr == AT && c->at[0].size == 2 * MIB && !c->at[0].is_free);
	assert_true(c->at[1].addr == AT + 64 * MIB && c->at[1].size == 20 * MIB);
	assert_true(c->at[2].addr == AT && c->at[2].size == 2 * MIB && c->at[2].is_free);
	vc_memo_put(&c->memo);
	assert_int_equal(vc_calls_of(&t, 1, &c, NULL), VC_OK);
	assert_int_equal(c->n, 1);
	vc_memo_put(&c->memo);
	/* Segments that grow are no such calls. */
	assert_int_equal(vc_calls_of(&t, 2, &c, NULL), VC_OK);
	assert_int_equal(c->n, 0);
	vc_memo_put(&c->memo);
	vc_trace_fini(&t);
}

static void sizes_come_once_each(void **unused)
{
	struct vc_trace t = some_calls();
	struct vc_sizes *s;

	(void)unused;
	assert_int_equal(vc_sizes_of(&t, &s, NULL), VC_OK);
	assert_int_equal(s->n, 4);
	assert_true(s->at[0] == 3 && s->at[1] == 20 && s->at[2] == 600 && s->at[3] == 700);
	vc_memo_put(&s->memo);
	vc_trace_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spoilt_recordings_break_nothing),
		cmocka_unit_test(a_past_is_replayed_before_the_recording),
		cmocka_unit_test(a_trimmed_heap_keeps_what_is_in_use),
		cmocka_unit_test(runs_behind_pasts_are_told_apart),
		cmocka_unit_test(choices_that_hang_on_the_driver_are_counted),
		cmocka_unit_test(no_two_threads_wait_for_each_other),
		cmocka_unit_test(calls_come_as_they_were_made),
		cmocka_unit_test(sizes_come_once_each),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
