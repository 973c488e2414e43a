/* SPDX-License-Identifier: Apache-2.0 */
/* test_layers.c - the layers of models whose numbers are known, from whole and from cut stacks. */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulator/anatomy/layers.h"
#include "simulator/replay/source.h"

/* Every stack keeps its `deep` innermost frames of Python, as recordings with short stacks do. */
static void cut(struct vc_trace *t, size_t deep)
{
	size_t frames = t->meta->frames;
	uint32_t *made = calloc(frames, sizeof(*made)), chain[64];

	for (size_t i = 0; i < t->n; i++) {
		uint32_t site = t->ev[i].site;
		size_t n = 0;

		if (!site || site >= frames)
			continue;
		for (uint32_t at = site; at && n < deep; at = t->meta->frame[at].parent)
			if (strstr(t->meta->string[t->meta->frame[at].file], ".py"))
				chain[n++] = at;
		if (!made[site])
			for (uint32_t parent = 0; n-- > 0; parent = made[site]) {
				struct vc_frame f = t->meta->frame[chain[n]];

				f.parent = parent;
				made[site] = vc_meta_frame(t->meta, f);
			}
		t->ev[i].site = made[site];
	}
	free(made);
}

/* The layers of the recording's last forward pass that has a backward pass behind it. */
static size_t count(const char *path, size_t deep, char *where, size_t room)
{
	struct vc_error err = { 0 };
	struct vc_source *s = vc_source_open(path, &err);
	struct vc_trace t = { 0 };
	struct vc_layers l = { 0 };
	struct vc_anatomy a;
	size_t span = 0, n;

	assert_non_null(s);
	assert_int_equal(vc_trace_read(&t, s, &err), VC_OK);
	vc_source_free(s);
	if (deep)
		cut(&t, deep);
	assert_int_equal(vc_anatomy_read(&a, t.ev, t.n, 0, t.meta, &err), VC_OK);
	for (size_t i = 0; i + 1 < a.spans; i++)
		if (a.span[i].phase == VC_PHASE_FORWARD && !a.span[i].micro)
			span = i;
	assert_int_equal(vc_layers_find(&l, &a, t.ev, t.meta, span, &err), VC_OK);
	where[0] = '\0';
	if (l.n && l.at[0].frame) {
		const struct vc_frame *f = &t.meta->frame[l.at[0].frame];
		const char *file = t.meta->string[f->file], *slash = strrchr(file, '/');

		snprintf(where, room, "%s:%u", slash ? slash + 1 : file, (unsigned)f->line);
	}
	n = l.n;
	vc_layers_fini(&l);
	vc_anatomy_fini(&a);
	vc_trace_fini(&t);
	return n;
}

static void models_of_known_depth(void **state)
{
	/* tests/transforms/README and train.py, models.py, strangers.py; traces/README.md */
	static const struct { const char *path; size_t layers; const char *at; } model[] = {
		{ "traces/lm-medium-ctx1024.vct", 24, "model.py:382" },
		{ "traces/lm-train-ctx128.vct", 32, "model.py:380" },
		{ "tests/transforms/recordings/bert.vct", 6, NULL },
		{ "tests/transforms/recordings/gpt.vct", 8, NULL },
		{ "tests/transforms/recordings/conv.vct", 16, NULL }, /* ResNet-50 */
		{ "tests/transforms/recordings/qwen.vct", 7, NULL },
		{ "tests/transforms/recordings/distil.vct", 5, NULL },
		/* begin within a statement of several lines */
		{ "tests/transforms/recordings/encoder.eval.vct", 5, "transformer.py:948" },
		{ "tests/transforms/recordings/efficient.vct", 16, NULL }, /* EfficientNet-B0 */
		{ "tests/recordings/gpt.vct", 24, NULL },
		/* does nothing besides its three parts, which are of one class each */
		{ "tests/recordings/layers/deberta.vct", 12, "modeling_deberta_v2.py:432" },
	};
	char where[256];

	(void)state;
	for (size_t i = 0; i < sizeof(model) / sizeof(*model); i++) {
		assert_int_equal(count(model[i].path, 0, where, sizeof(where)), model[i].layers);
		if (model[i].at)
			assert_string_equal(where, model[i].at);
	}
}

static void the_same_models_with_six_frames_each(void **state)
{
	static const struct { const char *path; size_t layers; } model[] = {
		{ "traces/lm-medium-ctx1024.vct", 24 },
		{ "traces/lm-train-ctx128.vct", 32 },
		{ "tests/transforms/recordings/bert.vct", 6 },
		{ "tests/transforms/recordings/gpt.vct", 8 },
		{ "tests/transforms/recordings/qwen.vct", 7 },
		{ "tests/transforms/recordings/distil.vct", 5 },
	};
	char where[256];

	(void)state;
	for (size_t i = 0; i < sizeof(model) / sizeof(*model); i++) {
		size_t n = count(model[i].path, 6, where, sizeof(where));

		if (n != model[i].layers)
			print_message("%s: %zu at %s\n", model[i].path, n, where);
		assert_int_equal(n, model[i].layers);
		assert_string_not_equal(where, ""); /* so that one can be chosen */
	}
}

/* A forward pass that ends within the model, as where a recording breaks off. */
static void the_model_ends_where_the_pass_does(void **state)
{
	struct vc_error err = { 0 };
	struct vc_source *s = vc_source_open("tests/transforms/recordings/bert.vct", &err);
	struct vc_trace t = { 0 };
	struct vc_layers l = { 0 };
	struct vc_anatomy a;
	size_t span = 0, from = 0, to;

	(void)state;
	assert_non_null(s);
	assert_int_equal(vc_trace_read(&t, s, &err), VC_OK);
	vc_source_free(s);
	assert_int_equal(vc_anatomy_read(&a, t.ev, t.n, 0, t.meta, &err), VC_OK);
	while (a.span[span].phase != VC_PHASE_FORWARD)
		span++;
	while (a.block[from].event < a.span[span].first)
		from++;
	assert_int_equal(vc_layers_find(&l, &a, t.ev, t.meta, span, &err), VC_OK);
	assert_true(l.n == 6 && l.model_from >= from && l.model_to > l.at[3].to);
	to = l.at[3].to;
	vc_layers_fini(&l);
	a.span[span].end = a.block[to].event;
	assert_int_equal(vc_layers_find(&l, &a, t.ev, t.meta, span, &err), VC_OK);
	assert_int_equal(l.n, 4);
	assert_int_equal(l.model_to, to);
	vc_layers_fini(&l);
	vc_anatomy_fini(&a);
	vc_trace_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(models_of_known_depth),
		cmocka_unit_test(the_same_models_with_six_frames_each),
		cmocka_unit_test(the_model_ends_where_the_pass_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
