/* SPDX-License-Identifier: Apache-2.0 */
/* test_session.c - what a session finds out about a recording, it finds out once. Linked with
 * --wrap=vc_anatomy_read. */
#include "tests/support/test.h"

#include "simulator/findings/leaks.h"
#include "simulator/anatomy/anatomy.h"
#include "simulator/session/session.h"
#include "simulator/session/shelf.h"
#include "simulator/time/time.h"

int __real_vc_anatomy_read(struct vc_anatomy *a, const struct vc_event *ev, size_t n,
			   uint16_t device, const struct vc_meta *meta, struct vc_error *err);
int __wrap_vc_anatomy_read(struct vc_anatomy *a, const struct vc_event *ev, size_t n,
			   uint16_t device, const struct vc_meta *meta, struct vc_error *err);

static const struct vc_trace *recorded;
static unsigned of_recording, others;

static bool is_recorded(const struct vc_event *ev, size_t n)
{
	return recorded && n == recorded->n &&
	       (ev == recorded->ev || !memcmp(ev, recorded->ev, n * sizeof(*ev)));
}

int __wrap_vc_anatomy_read(struct vc_anatomy *a, const struct vc_event *ev, size_t n,
			   uint16_t device, const struct vc_meta *meta, struct vc_error *err)
{
	*(is_recorded(ev, n) ? &of_recording : &others) += 1;
	return __real_vc_anatomy_read(a, ev, n, device, meta, err);
}

/* Best, low and high, the time of a step, what blocks are for, and whether it leaks. */
static void answer(const char *change)
{
	char path[] = "tests/recordings/gpt.vct", *paths[] = { path };
	const char *const transforms[] = { change };
	const struct vc_observer_type *watch[] = { &vc_observer_lives, &vc_observer_pace, NULL };
	struct vc_run_options o = vc_run_options_none();
	struct vc_session s;
	struct vc_plan *plan;
	struct vc_result r = { 0 };
	struct vc_error err = { 0 };
	size_t n;

	o.transform = (struct vc_list){ (const char **)(uintptr_t)transforms, change ? 1 : 0 };
	o.verify = true;
	of_recording = others = 0;
	assert_int_equal(vc_session_open(&s, &o, 1, paths, 0, &err), VC_OK);
	recorded = &s.rec->trace;
	assert_int_equal(vc_time_open(&s, &err), VC_OK);
	assert_int_equal(vc_session_plans(&s, &plan, &n, &err), VC_OK);
	assert_int_equal(vc_session_run(&s, plan, watch, &r, &err), VC_OK);
	assert_int_equal(vc_time_answer(&s, plan, &r, &err), VC_OK);
	vc_leak_find(&s);
	assert_true(r.stats.peak_reserved > 0 && (!change || r.has_interval));
	vc_result_fini(&r);
	free(plan);
	vc_session_close(&s);
	recorded = NULL;
}

static void the_anatomy_of_a_recording_is_read_once(void **unused)
{
	(void)unused;
	answer("lora");
	assert_int_equal(of_recording, 1);
	assert_true(others <= 3); /* best, low and high */
	answer("checkpoint");
	assert_int_equal(of_recording, 1);
	answer(NULL);
	assert_int_equal(of_recording, 1);
}

/* Opened with that version, or the recorded one. */
static struct vc_session opened(struct vc_run_options *o, const char **version, unsigned flags)
{
	char path[] = "tests/recordings/gpt.vct", *paths[] = { path };
	struct vc_session s;
	struct vc_error err = { 0 };

	o->torch = (struct vc_list){ version, *version ? 1 : 0 };
	assert_int_equal(vc_session_open(&s, o, 1, paths, flags, &err), VC_OK);
	return s;
}

static void a_shelf_lends_what_was_read_before(void **unused)
{
	struct vc_run_options o = vc_run_options_none();
	const char *none = NULL, *old = "2.4", *older = "2.2";
	struct vc_session a, b, c;
	const struct vc_recording *first;

	(void)unused;
	o.verify = true;
	o.shelf = vc_shelf_new();
	a = opened(&o, &none, 0);
	first = a.rec;
	assert_true(first != &a.own && first->fidelity.checked);
	vc_session_close(&a);
	a = opened(&o, &none, VC_SESSION_IN_MEMORY | VC_SESSION_NO_REQUESTS_OK);
	assert_ptr_equal(a.rec, first); /* who needs less, or has all of it, is content with it */
	o.verify = false;
	b = opened(&o, &none, 0);
	assert_ptr_not_equal(b.rec, first); /* but not who asks for something else */
	assert_false(b.rec->fidelity.checked);
	c = opened(&o, &old, 0); /* no room: both are in use */
	assert_null(c.lent);
	assert_string_equal(c.own.torch, "2.4");
	vc_session_close(&c);
	vc_session_close(&b);
	c = opened(&o, &older, 0); /* in the place of the one that nobody uses */
	assert_non_null(c.lent);
	assert_string_equal(c.rec->torch, "2.2");
	vc_session_close(&c);
	o.verify = true;
	b = opened(&o, &none, 0);
	assert_ptr_equal(b.rec, first);
	vc_session_close(&b);
	o.capacity = 4096; /* it tells its device */
	b = opened(&o, &none, 0);
	assert_ptr_equal(b.rec, first);
	vc_session_close(&b);
	b = opened(&o, &old, 0); /* read once, verified anew */
	assert_ptr_equal(b.rec->trace.ev, first->trace.ev);
	assert_true(b.rec->fidelity.checked);
	assert_string_equal(b.rec->torch, "2.4");
	vc_session_close(&b);
	vc_session_close(&a);
	vc_shelf_free(o.shelf);
}

/* As long a recording is: from the file, or from memory. */
static struct vc_result replayed(uint64_t keep)
{
	struct vc_recording_ask ask = { .device = VC_NOT_GIVEN, .rank = VC_NOT_GIVEN,
					.keep = keep };
	struct vc_run_options o = vc_run_options_none();
	struct vc_recording rec = { 0 };
	struct vc_job job = { .rec = &rec };
	struct vc_result r = { 0 };
	struct vc_error err = { 0 };
	struct vc_plan *plan;
	size_t n;

	assert_int_equal(vc_recording_open(&rec, "tests/recordings/gpt.vct", &ask, &err), VC_OK);
	assert_true(rec.streamed == (keep > 0));
	assert_true((rec.trace.n > 0) == !rec.streamed);
	assert_int_equal(vc_request_plans(&rec, &o, NULL, &plan, &n, &err), VC_OK);
	assert_int_equal(vc_job_run(&job, plan, NULL, &r, &err), VC_OK);
	free(plan);
	vc_recording_close(&rec);
	return r;
}

static void a_long_recording_is_streamed_and_says_the_same(void **unused)
{
	struct vc_result a = replayed(0), b = replayed(1000);

	(void)unused;
	assert_true(a.stats.peak_reserved > 0);
	assert_memory_equal(&a.stats, &b.stats, sizeof(a.stats));
	vc_result_fini(&a);
	vc_result_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_recording_is_streamed_and_says_the_same),
		cmocka_unit_test(the_anatomy_of_a_recording_is_read_once),
		cmocka_unit_test(a_shelf_lends_what_was_read_before),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
