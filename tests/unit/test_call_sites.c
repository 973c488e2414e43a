/* SPDX-License-Identifier: Apache-2.0 */
/* test_call_sites.c - recordings of a script that was edited in between. */
#include "tests/support/test.h"

#include <string.h>

#include "simulator/advise/call_sites.h"
#include "simulator/predict/family.h"

enum { LAYERS = 12, IN_LAYER = 2 };

static uint32_t text(struct vc_meta *m, const char *s)
{
	return vc_meta_string(m, s, strlen(s));
}

/* A step of layers, each of which asks twice, and a loss. added: lines above all of them; other: a
 * place of its own in the layers of this recording. */
static struct vc_trace steps(double batch, uint32_t added, bool other)
{
	struct vc_trace t = { .meta = vc_meta_new(NULL) };
	struct vc_meta *m = t.meta;
	uint32_t file = text(m, "/home/me/train.py"), layer = text(m, "forward");
	uint32_t step = vc_meta_frame(m, (struct vc_frame){ 0, file, text(m, "step"), 40 + added });
	uint32_t place[] = {
		vc_meta_frame(m, (struct vc_frame){ step, file, layer, 10 + added }),
		vc_meta_frame(m, (struct vc_frame){ step, file, layer, (other ? 13 : 11) + added }),
		vc_meta_frame(m, (struct vc_frame){ step, file, layer, 15 + added }) };
	struct vc_event e = { .kind = VC_EV_ALLOC };

	for (int i = 0; i < LAYERS * IN_LAYER + 1; i++) {
		e.id++;
		e.size = (uint64_t)batch * (i % IN_LAYER ? 512 : 4096);
		e.site = i == LAYERS * IN_LAYER ? place[2] : place[i % IN_LAYER];
		assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	}
	e.kind = VC_EV_FREE;
	for (; e.id > 0; e.id--)
		assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
	m->max_id = LAYERS * IN_LAYER + 1;
	vc_meta_param(m, "batch", batch);
	return t;
}

/* How many of the second recording's blocks have the site of the same block of the first. */
static size_t shared(const struct vc_trace *a, const struct vc_trace *b, bool by_lines)
{
	bool edited;
	struct vc_allocations m[2];
	size_t n = 0;

	assert_int_equal(vc_allocations_init(&m[0], a, 0, NULL), 0);
	assert_int_equal(vc_allocations_init(&m[1], b, 0, NULL), 0);
	assert_int_equal(vc_call_sites_settle(m, 2, &edited, NULL), 0);
	assert_int_equal(edited, !by_lines);
	for (size_t i = 0; i < m[0].n; i++)
		n += m[0].take[i].site == m[1].take[i].site;
	vc_allocations_fini(&m[0]);
	vc_allocations_fini(&m[1]);
	return n;
}

static void lines_added_above_move_no_place(void **unused)
{
	struct vc_trace a = steps(2, 0, false), b = steps(4, 3, false);

	(void)unused;
	assert_int_equal(shared(&a, &b, false), LAYERS * IN_LAYER + 1);
	vc_trace_fini(&a);
	vc_trace_fini(&b);
}

/* Counted in its function, line 13 would be the same place as line 11 of the first recording. */
static void where_most_lines_fit_they_decide(void **unused)
{
	struct vc_trace a = steps(2, 0, false), b = steps(4, 0, true);

	(void)unused;
	for (size_t i = 1; i < LAYERS * IN_LAYER - 1; i += IN_LAYER)
		b.ev[i].site = b.ev[0].site; /* all but one */
	assert_int_equal(shared(&a, &b, true), LAYERS + 1);
	vc_trace_fini(&a);
	vc_trace_fini(&b);
}

/* The line behind the loss stayed where it was: one of all blocks still fits by its line. */
static void where_few_lines_fit_their_order_decides(void **unused)
{
	struct vc_trace a = steps(2, 0, false), b = steps(4, 3, false);

	(void)unused;
	for (size_t i = 0; i < b.meta->frames; i++)
		if (b.meta->frame[i].line == 18 || b.meta->frame[i].line == 43)
			b.meta->frame[i].line -= 3;
	assert_int_equal(shared(&a, &b, false), LAYERS * IN_LAYER + 1);
	vc_trace_fini(&a);
	vc_trace_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_added_above_move_no_place),
		cmocka_unit_test(where_most_lines_fit_they_decide),
		cmocka_unit_test(where_few_lines_fit_their_order_decides),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
