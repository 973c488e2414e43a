/* SPDX-License-Identifier: Apache-2.0 */
/* test_visual_fuzz.c - results that no engine should give: every picture must still be
 * well-formed, small and done in time. Runs under the sanitizers in make check. */
#include "tests/support/test.h"

#include "common/io.h"
#include "tests/support/svgcheck.h"
#include "tests/support/synth.h"
#include "visualize/sink.h"

static uint64_t noise(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 11;
}

static uint64_t odd_value(uint64_t *seed, uint64_t was)
{
	switch (noise(seed) % 8) {
	case 0: return 0;
	case 1: return 1;
	case 2: return UINT64_MAX;
	case 3: return UINT64_MAX / 2;
	case 4: return was + 1;
	case 5: return was ^ (1ull << noise(seed) % 64);
	case 6: return noise(seed);
	default: return noise(seed) % 1000;
	}
}

/* Overwrite some of the 64-bit fields of an array of structs. */
static void disturb(void *at, size_t bytes, uint64_t *seed, unsigned one_in)
{
	uint64_t *word = at;

	for (size_t i = 0; i < bytes / sizeof(*word); i++)
		if (noise(seed) % one_in == 0)
			word[i] = odd_value(seed, word[i]);
}

static void disturb_lives(struct vc_result *r, uint64_t *seed, unsigned one_in)
{
	for (size_t i = 0; i < r->lives.n; i++) {
		struct vc_life *l = &r->lives.at[i];
		if (noise(seed) % one_in)
			continue;
		l->size = odd_value(seed, l->size);
		l->born = odd_value(seed, l->born);
		l->died = odd_value(seed, l->died);
		l->addr = odd_value(seed, l->addr);
		l->id = odd_value(seed, l->id);
		l->site = (uint32_t)odd_value(seed, l->site);
		l->label = (uint32_t)odd_value(seed, l->label);
		l->lifetime = (uint8_t)noise(seed);
	}
}

static void disturb_result(struct vc_result *r, uint64_t *seed)
{
	unsigned one_in = noise(seed) % 2 ? 400 : 20;

	switch (noise(seed) % 8) {
	case 0: disturb(r->curve.at, r->curve.n * sizeof(*r->curve.at), seed, one_in); break;
	case 1: disturb(&r->stats, sizeof(r->stats) - 8, seed, 3); break;
	case 2: disturb_lives(r, seed, one_in); break;
	case 3:
		for (size_t i = 0; i < r->segments.n; i++) {
			struct vc_segment_life *g = &r->segments.at[i];
			g->size = noise(seed) % one_in ? g->size : odd_value(seed, g->size);
			g->addr = noise(seed) % one_in ? g->addr : odd_value(seed, g->addr);
			g->expandable = noise(seed) % 2;
		}
		break;
	case 4:
		for (size_t i = 0; i < r->peak.n; i++) {
			struct vc_heap_extent *x = &r->peak.at[i];
			if (noise(seed) % one_in == 0) {
				x->size = odd_value(seed, x->size);
				x->addr = odd_value(seed, x->addr);
				x->what = (uint8_t)noise(seed);
				x->site = (uint32_t)odd_value(seed, x->site);
			}
		}
		break;
	case 5:
		for (size_t i = 0; i < r->steps.marks; i++)
			if (noise(seed) % 4 == 0) {
				r->steps.mark[i].event = odd_value(seed, r->steps.mark[i].event);
				r->steps.mark[i].kind = (uint8_t)(noise(seed) % 5);
				r->steps.mark[i].time_ns =
					odd_value(seed, r->steps.mark[i].time_ns);
			}
		break;
	case 6:
		for (size_t i = 0; i < r->steps.kernels; i++)
			if (noise(seed) % one_in == 0) {
				r->steps.kernel[i].start_ns = odd_value(seed, 5);
				r->steps.kernel[i].duration_ns = odd_value(seed, 5);
			}
		break;
	default:
		r->oom.happened = true;
		r->oom.event = odd_value(seed, 3);
		r->oom.time_ns = odd_value(seed, 3);
		r->oom.id = odd_value(seed, 3);
		r->oom.alloc_size = odd_value(seed, 3);
		r->info.capacity = odd_value(seed, 1 << 30);
		r->info.context = odd_value(seed, 1 << 30);
		r->info.has_limit = true;
		r->info.limit = odd_value(seed, 1 << 30);
	}
}

static void check_all(const struct vc_result *r, unsigned round)
{
	static struct svg_seen seen;
	struct vc_error err = { 0 };

	(void)svg_labels_are_apart; /* odd numbers may be long: here only the form counts */
	for (size_t i = 0; vc_sinks[i]; i++) {
		if (!strstr("svg html txt dot", vc_sinks[i]->extension))
			continue;
		struct vc_output *out = vc_output_memory(&err);
		void *cfg = calloc(1, vc_sinks[i]->config_size + 1);
		size_t n;
		assert_int_equal(vc_params_parse(vc_sinks[i]->params, cfg, NULL, &err), 0);
		if (vc_sinks[i]->write(r, 1, cfg, out, &err))
			fail_msg("round %u, %s: %s", round, vc_sinks[i]->name, err.message);
		char *text = vc_output_take(out, &n);
		vc_output_close(out);
		if (n > 1200000)
			fail_msg("round %u, %s: %zu bytes", round, vc_sinks[i]->name, n);
		if (!strcmp(vc_sinks[i]->extension, "svg") && !svg_read(text, &seen))
			fail_msg("round %u, %s: %s", round, vc_sinks[i]->name, seen.why);
		free(text);
		free(cfg);
	}
}

static void odd_results_still_give_well_formed_pictures(void **unused)
{
	uint64_t seed = 42;

	(void)unused;
	for (unsigned round = 0; round < 60; round++) {
		struct synth_options o = { 2 + round % 9, 1 + round % 4,
					  160u << 20,    round % 3 ? 40ull << 30 : 9ull << 30,
					  round % 2,     round % 5 != 0,
					  false };
		struct synth *s = synth_new(&o);
		for (unsigned k = 0; k < 1 + round % 4; k++)
			disturb_result(&s->r, &seed);
		check_all(&s->r, round);
		synth_fini(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(odd_results_still_give_well_formed_pictures) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
