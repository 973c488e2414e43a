/* SPDX-License-Identifier: Apache-2.0 */
/* test_anatomies.c - what is found in the recordings that ship stays what it was: iterations,
 * phases, categories, layers and steps that vary, by names of call sites and by the order alone. */
#include "tests/support/test.h"

#include <glob.h>

#include "simulator/anatomy/layer_memory.h"
#include "simulator/anatomy/layers.h"
#include "simulator/predict/step_sizes.h"
#include "simulator/replay/source.h"
#include "tests/support/told.h"

static void tell_number(uint64_t x)
{
	tell(&x, sizeof(x));
}

static void tell_layers(const struct vc_anatomy *a, const struct vc_trace *t,
			const struct vc_meta *m, size_t span)
{
	struct vc_layers l;

	assert_int_equal(vc_layers_find(&l, a, t->ev, m, span, NULL), 0);
	for (int stacks = 0; stacks < 2; stacks++) {
		for (size_t i = 0; i < l.n; i++) {
			const struct vc_layer *y = &l.at[i];

			tell_number(y->from << 32 | y->to);
			tell_number(y->kind | y->function << 8);
			tell_number(vc_layers_entered(y, a, span));
			tell_number(vc_layers_output(y, a, span));
			tell_number(vc_layers_result(y, a, span));
		}
		tell_number(l.model_from << 32 | l.model_to);
		vc_layers_stacks(&l, a, span);
	}
	vc_layers_fini(&l);
}

static void tell_anatomy(const struct vc_trace *t, const struct vc_meta *m)
{
	struct vc_layering l;
	struct vc_anatomy a;
	size_t looked = 0;

	assert_int_equal(vc_anatomy_read(&a, t->ev, t->n, 0, m, NULL), 0);
	tell_number((uint64_t)(a.confidence * 1000));
	tell_number(a.iterations | (uint64_t)a.micro << 32);
	tell_number(a.parameters ^ a.gradients << 20 ^ a.states << 40);
	for (size_t i = 0; i < a.n; i++)
		tell_number(a.block[i].category | (uint64_t)a.block[i].span << 8);
	for (size_t i = 0; i < a.spans; i++) {
		const struct vc_span *p = &a.span[i];

		tell_number(p->phase | p->micro << 8 | (uint64_t)p->iteration << 32);
		tell_number(p->first << 32 | p->end);
		if (p->phase == VC_PHASE_FORWARD && i + 1 < a.spans && p->iteration && !looked++)
			tell_layers(&a, t, m, i);
	}
	assert_int_equal(vc_layering_read(&l, &a, t, NULL), 0);
	for (size_t i = 0; i < l.n; i++) {
		tell_number(l.at[i].activations);
		tell_number(l.at[i].parameters);
	}
	vc_layering_fini(&l);
	vc_anatomy_fini(&a);
}

static void tell_steps(const struct vc_trace *t)
{
	struct vc_allocations m;
	struct vc_step_sizes s;

	struct vc_error err = { 0 };

	if (vc_allocations_init(&m, t, 0, &err)) /* nothing that a prediction could begin with */
		return;
	assert_int_equal(vc_step_sizes_read(&s, &m, &err), 0);
	tell_number(s.vary | s.steps << 1);
	for (size_t i = 0; s.vary && i < m.n; i++) {
		tell_number(s.place[i] | (uint64_t)s.step[i] << 32);
		tell_number((uint64_t)vc_step_sizes_mean(&s, &m, i));
	}
	vc_step_sizes_fini(&s);
	vc_allocations_fini(&m);
}

static void drop_marks(struct vc_trace *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		if (t->ev[i].kind != VC_EV_MARK)
			t->ev[n++] = t->ev[i];
	t->n = n;
}

static void recordings_have_the_anatomy_they_had(void **unused)
{
	static const char *const folders[] = {
		"traces/*.vct", "tests/recordings/*.vct", "tests/recordings/*/*.vct",
		"tests/transforms/recordings/*.vct", "tests/ladders/recordings/*.vct" };
	glob_t g = { 0 };

	(void)unused;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		glob(folders[i], i ? GLOB_APPEND : 0, NULL, &g);
	assert_true(g.gl_pathc > 100);
	for (size_t i = 0; i < g.gl_pathc; i += 2) { /* of all of them: twice as long */
		struct vc_error err = { 0 };
		struct vc_source *s = vc_source_open(g.gl_pathv[i], &err);
		struct vc_trace t = { 0 };

		assert_non_null(s);
		assert_int_equal(vc_trace_read(&t, s, &err), 0);
		vc_source_free(s);
		if (t.n < 6000) {
			tell_anatomy(&t, t.meta);
			tell_steps(&t);
			drop_marks(&t);
			tell_anatomy(&t, NULL);
			told_is("anatomies", g.gl_pathv[i]);
		}
		vc_trace_fini(&t);
	}
	globfree(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recordings_have_the_anatomy_they_had),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
