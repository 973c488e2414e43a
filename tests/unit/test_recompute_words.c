/* SPDX-License-Identifier: Apache-2.0 */
/* test_recompute_words.c - what is said of a choice of layers to compute twice, and what the hook
 * that wraps them is told. */
#include "tests/support/test.h"

#include "simulator/search/recompute_words.h"
#include "tests/support/told.h"

enum { LAYERS = 5, CHOICES = 4, MIB = 1 << 20 };

struct world {
	struct vc_meta *meta;
	struct vc_layer_cost layer[LAYERS];
	bool take[CHOICES][LAYERS];
	struct vc_recompute choice[CHOICES];
	struct vc_recompute_search q;
};

static uint32_t site(struct vc_meta *m, const char *file, uint32_t line, uint32_t parent)
{
	return vc_meta_frame(m, (struct vc_frame){
		.file = vc_meta_string(m, file, strlen(file)),
		.function = vc_meta_string(m, "forward", 7), .line = line, .parent = parent });
}

static void set(struct world *w)
{
	static const char *const change[CHOICES] = { "", "checkpoint:layers=1",
						     "checkpoint:layers=0..2,4",
						     "checkpoint:layers=0..4" };
	static const bool take[CHOICES][LAYERS] = { { false }, { false, true },
						    { true, true, true, false, true },
						    { true, true, true, true, true } };
	struct vc_error err = { 0 };

	memset(w, 0, sizeof(*w));
	w->meta = vc_meta_new(&err);
	memcpy(w->take, take, sizeof(take));
	uint32_t loop = site(w->meta, "net.py", 12, 0),
		 one = site(w->meta, "my \"own\"\\\nblock.py", 40, loop),
		 other = site(w->meta, "block.py", 7, loop);
	for (uint32_t i = 0; i < LAYERS; i++)
		w->layer[i] = (struct vc_layer_cost){ .kept = (i + 1) * 100 * MIB,
						      .ns = 1e6 * (i + 1),
						      .frame = i % 2 ? other : one,
						      .low = i % 2 ? 7 : 40,
						      .high = i % 2 ? 9 : 66 };
	for (size_t i = 0; i < CHOICES; i++) {
		struct vc_recompute *p = &w->choice[i];

		*p = (struct vc_recompute){ .take = w->take[i], .alone = true, .front = i != 1,
					    .kind = i == 3 ? VC_RECOMPUTE_UNIFORM :
						    i ? VC_RECOMPUTE_SOLVED : VC_RECOMPUTE_NONE,
					    .reserved = (20 - i) * 100 * MIB,
					    .used = (21 - i) * 100 * MIB,
					    .verdict = i > 1 ? VC_FITS : VC_OOM, .open = i == 2,
					    .low = 1800ull * MIB, .high = 1950ull * MIB };
		snprintf(p->change, sizeof(p->change), "%s", change[i]);
		for (size_t k = 0; k < LAYERS; k++) {
			p->layers += take[i][k];
			p->ns += take[i][k] ? w->layer[k].ns : 0;
		}
	}
	w->q = (struct vc_recompute_search){
		.plan = { .capacity = 2000ull * MIB }, .at = w->choice, .n = CHOICES, .best = 2,
		.sure = 3, .uniform = 3, .least = 3, .replays = 17,
		.costs = { .at = w->layer, .n = LAYERS, .total = 1500ull * MIB, .step_ns = 1e8,
			   .named = true } };
}

/* Both forms; the one for people is returned, to be freed. */
static char *said(const struct world *w, const struct vc_recompute_proof *proof, size_t proofs)
{
	char *text = NULL;

	for (int mode = VC_EMIT_JSON; mode >= VC_EMIT_TEXT; mode--) {
		struct vc_output *out = vc_output_memory(NULL);
		struct vc_emit *e = vc_emit_new(out, (enum vc_emit_mode)mode, NULL);
		size_t n;

		free(text);
		vc_emit_object(e, NULL, "");
		vc_recompute_say(e, &w->q, w->meta, proof, proofs);
		vc_emit_end(e);
		assert_int_equal(vc_emit_finish(e, NULL), VC_OK);
		text = vc_output_take(out, &n);
		vc_output_close(out);
		assert_non_null(text);
		tell(text, n);
	}
	return text;
}

static void assert_said(const struct world *w, const struct vc_recompute_proof *proof,
			size_t proofs, const char *what)
{
	char *text = said(w, proof, proofs);

	if (!strstr(text, what))
		fail_msg("not said: %s\n%s", what, text);
	free(text);
}

static void what_was_found_is_said(void **unused)
{
	struct world w;
	const struct vc_recompute_proof proof[] = { { 2, false, 2100ull * MIB, false },
						    { 3, true, 1600ull * MIB, true },
						    { 3, true, 1500ull * MIB, false } };

	(void)unused;
	set(&w);
	assert_said(&w, NULL, 0, "surely         layers=0..4: 5 of 5 layers, 15.0 ms (+15.0 %), "
				 "1.76 GiB of 1.95 GiB used");
	assert_said(&w, proof, 1, "layers=0..2,4, really done in a dry run: runs out of memory, "
				  "2.05 GiB reserved\n");
	assert_said(&w, proof, 2, "layers=0..4, really done in a dry run: fits, 1.56 GiB reserved, "
				  "inside the interval\n");
	assert_said(&w, proof + 2, 1, "1.46 GiB reserved, outside the interval\n");
	w.q.sure = w.q.uniform = SIZE_MAX;
	assert_said(&w, NULL, 0, "no choice fits with the upper end of its interval\n");
	assert_said(&w, NULL, 0, "no uniform choice (every or each n-th layer) fits\n");
	w.q.best = SIZE_MAX;
	assert_said(&w, NULL, 0, "nothing fits: layers=0..4 still needs 1.76 GiB\n");
	w.q.best = w.q.sure = 0;
	assert_said(&w, NULL, 0, "it fits as it is: 2.05 GiB of 1.95 GiB used\n");
	w.q.costs.step_ns = 0;
	assert_said(&w, NULL, 0, "times are not known (no kernels were recorded)");
	told_is("recompute_words", "what was found");
	vc_meta_free(w.meta);
}

static void what_is_proven_is_advised(void **unused)
{
	struct world w;
	const struct vc_recompute_proof proof[] = { { 2, false, 0, false }, { 3, true, 0, true } };

	(void)unused;
	set(&w);
	assert_int_equal(vc_recompute_advised(&w.q, proof, 2), 3);
	assert_int_equal(vc_recompute_advised(&w.q, proof, 1), SIZE_MAX);
	w.q.sure = 1;
	assert_int_equal(vc_recompute_advised(&w.q, NULL, 0), 1);
	w.q.sure = SIZE_MAX;
	assert_int_equal(vc_recompute_advised(&w.q, NULL, 0), 2);
	vc_meta_free(w.meta);
}

static void layers_are_pasted_as_ranges(void **unused)
{
	struct world w;
	char code[3072];

	(void)unused;
	set(&w);
	assert_non_null(strstr(vc_recompute_code(&w.q, w.meta, 2, code, sizeof(code)),
			       "TWICE = {*range(0, 3), 4}  # of 5 layers"));
	assert_non_null(strstr(code, "activation_memory_budget = 0.27"));
	w.take[2][1] = false;
	assert_non_null(strstr(vc_recompute_code(&w.q, w.meta, 2, code, sizeof(code)),
			       "TWICE = {0, 2, 4}  # of 5 layers"));
	w.take[2][1] = true;
	w.take[2][2] = w.take[2][4] = false;
	assert_non_null(strstr(vc_recompute_code(&w.q, w.meta, 2, code, sizeof(code)),
			       "TWICE = {0, 1}  # of 5 layers"));
	vc_meta_free(w.meta);
}

static void the_hook_is_told_which_modules(void **unused)
{
	static const char whole[] = "{\"take\":[0,1,2,4],\"of\":5,\"sites\":"
				    "[[\"my \\\"own\\\"\\\\\\nblock.py\",40,66],"
				    "[\"block.py\",7,9]]}\n";
	struct world w;
	char spec[sizeof(whole)];

	(void)unused;
	set(&w);
	assert_true(vc_recompute_spec(&w.q, w.meta, 2, spec, sizeof(spec)));
	assert_string_equal(spec, whole);
	assert_false(vc_recompute_spec(&w.q, w.meta, 2, spec, sizeof(spec) - 1));
	w.layer[4].high = 70; /* the last iteration of a loop reaches beyond it */
	assert_true(vc_recompute_spec(&w.q, w.meta, 2, spec, sizeof(spec)));
	assert_string_equal(spec, whole);
	w.layer[3].low = 6; /* now each of the two is one of five */
	assert_true(vc_recompute_spec(&w.q, w.meta, 2, spec, sizeof(spec)));
	assert_null(strstr(spec, "\"block.py\""));
	assert_false(vc_recompute_spec(&w.q, w.meta, 0, spec, sizeof(spec)));
	w.choice[2].alone = false;
	assert_false(vc_recompute_spec(&w.q, w.meta, 2, spec, sizeof(spec)));
	w.choice[2].alone = true;
	w.q.costs.named = false;
	assert_false(vc_recompute_spec(&w.q, w.meta, 2, spec, sizeof(spec)));
	w.q.costs.named = true;
	w.layer[1].frame = 0;
	assert_false(vc_recompute_spec(&w.q, w.meta, 2, spec, sizeof(spec)));
	vc_meta_free(w.meta);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_found_is_said),
		cmocka_unit_test(what_is_proven_is_advised),
		cmocka_unit_test(layers_are_pasted_as_ranges),
		cmocka_unit_test(the_hook_is_told_which_modules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
