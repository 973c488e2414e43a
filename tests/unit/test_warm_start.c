/* SPDX-License-Identifier: Apache-2.0 */
/* test_warm_start.c - a recording that begins in the middle becomes the run it was cut from. */
#include "tests/support/test.h"

#include "simulator/anatomy/anatomy.h"
#include "simulator/replay/memo.h"
#include "simulator/replay/source.h"
#include "simulator/rewrite/warm_start.h"

#define FOLDER "tests/transforms/recordings/"

/* The most bytes that live together; no block comes twice, none goes that never came. */
static uint64_t peak_of(const char *what, const struct vc_event *ev, size_t n, uint64_t ids)
{
	uint64_t *size = calloc(ids, sizeof(*size)), now = 0, peak = 0;

	for (size_t i = 0; i < n; i++) {
		const struct vc_event *e = &ev[i];

		bool comes = e->kind == VC_EV_ALLOC || e->kind == VC_EV_HEAP_BLOCK;

		if (!comes && e->kind != VC_EV_FREE)
			continue;
		assert_true(e->id < ids);
		if (comes == (size[e->id] > 0))
			fail_msg("%s, event %zu: a block comes or goes twice", what, i);
		now -= size[e->id];
		size[e->id] = comes ? e->size : 0;
		now += size[e->id];
		peak = now > peak ? now : peak;
	}
	free(size);
	return peak;
}

/* What a recording holds that begins with event `from`: first what lives there. */
static void begin_at(struct vc_trace *t, const struct vc_trace *whole, size_t from)
{
	bool *live = calloc(whole->meta->max_id + 1, sizeof(*live));
	struct vc_event heap;

	*t = (struct vc_trace){ .meta = vc_meta_copy(whole->meta, NULL) };
	for (size_t i = 0; i < from; i++)
		if (whole->ev[i].kind == VC_EV_ALLOC || whole->ev[i].kind == VC_EV_FREE)
			live[whole->ev[i].id] = whole->ev[i].kind == VC_EV_ALLOC;
	for (size_t i = 0; i < from; i++) {
		heap = whole->ev[i];
		if (heap.kind != VC_EV_ALLOC || !live[heap.id])
			continue;
		heap.kind = VC_EV_HEAP_BLOCK;
		heap.flags = VC_EVF_LIVE;
		assert_int_equal(vc_trace_append(t, &heap, 1, NULL), 0);
	}
	assert_int_equal(vc_trace_append(t, whole->ev + from, whole->n - from, NULL), 0);
	free(live);
}

/* Whoever means to change the run that is built changes this number. */
static uint64_t told = 14695981039346656037ull;

static void tell(const struct vc_whole *w)
{
	for (size_t i = 0; i < w->n; i++) {
		const struct vc_event *e = &w->in[i];
		const uint64_t said[] = { e->kind, e->id, e->size, e->site };

		for (size_t k = 0; k < sizeof(said) / sizeof(*said); k++)
			told = (told ^ said[k]) * 1099511628211ull;
	}
}

/* whole: a step and more is behind the place where it is cut. */
static void cut(const char *name, const struct vc_trace *all, size_t from, bool whole)
{
	const struct vc_source_type type = { .name = "cut" };
	struct vc_error err = { 0 };
	struct vc_trace t;

	begin_at(&t, all, from);
	struct vc_source s = { .type = &type, .meta = t.meta };
	struct vc_whole w = { .in = t.ev, .n = t.n, .next_id = all->meta->max_id + 1 };
	int r = vc_thaw(&s, &w, &err);
	uint64_t peak = peak_of(name, all->ev, all->n, all->meta->max_id + 1);

	if (r)
		assert_non_null(strstr(err.message, "begins in the middle of its only step"));
	if (whole && (r || peak_of(name, w.in, w.n, w.next_id) != peak))
		fail_msg("%s from %zu: %s", name, from, r ? err.message : "another peak");
	if (w.own)
		assert_non_null(strstr(t.meta->note[t.meta->notes - 1], "was rebuilt from one"));
	told += (uint64_t)r;
	tell(&w);
	if (w.from)
		vc_memo_put(w.from);
	free(w.own);
	vc_trace_fini(&t);
}

static void a_recording_from_the_middle_is_the_run(void **unused)
{
	static const char *const names[] = { "gpt", "bert_--optimizer_sgd", "conv_--precision_amp",
					     "gpt_--optimizer_adafactor" };

	(void)unused;
	for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++) {
		char path[200];
		struct vc_error err = { 0 };
		struct vc_trace all = { 0 };
		struct vc_anatomy a;

		snprintf(path, sizeof(path), FOLDER "%s.vct", names[k]);
		struct vc_source *s = vc_source_open(path, &err);
		assert_non_null(s);
		assert_int_equal(vc_trace_read(&all, s, &err), 0);
		vc_source_free(s);
		assert_int_equal(vc_anatomy_read(&a, all.ev, all.n, 0, all.meta, &err), 0);
		assert_int_equal(a.iterations, 3);
		for (size_t i = 0; i < a.spans; i++) {
			const struct vc_span *p = &a.span[i];
			bool last = p->iteration == 2;

			cut(names[k], &all, p->first, !last || p->phase == VC_PHASE_FORWARD);
			cut(names[k], &all, (p->first + p->end) / 2, !last);
		}
		vc_anatomy_fini(&a);
		vc_trace_fini(&all);
	}
	assert_int_equal(told, 0x664b17598585851c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_recording_from_the_middle_is_the_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
