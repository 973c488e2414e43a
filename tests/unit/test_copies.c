/* SPDX-License-Identifier: Apache-2.0 */
/* test_copies.c - stretches of a small run once more: which blocks are new, which are handed over,
 * which come once; where a run is steady and where it ends; sizes of other amounts of data. */
#include "tests/support/test.h"

#include "simulator/rewrite/copies.h"

enum { MOST = 32, NEW = 20 }; /* ids of the recording are below NEW */

#define MIB (1ull << 20)

static struct vc_event in[MOST];
static struct vc_block_life block[MOST];
static struct vc_span span[MOST];
static struct vc_whole w;
static struct vc_clone c;

/* "+1:100 u1 -1": block 1 of 100 bytes, used, and given back; "o": a mark, "s": a
 * sample of the device. */
static void run(const char *text, uint32_t iterations)
{
	char *end;

	w = (struct vc_whole){ .in = in, .next_id = NEW };
	c = (struct vc_clone){ .w = &w, .ids = NEW,
			       .a = { .block = block, .span = span, .iterations = iterations } };
	c.of_id = calloc(NEW, sizeof(*c.of_id));
	c.alias = calloc(NEW, sizeof(*c.alias));
	for (uint64_t i = 0; i < NEW; i++)
		c.alias[i] = i;
	for (; *text; text += *text == ' ') {
		static const char marks[] = "+u-os";
		static const uint8_t kinds[] = { VC_EV_ALLOC, VC_EV_USE, VC_EV_FREE,
						 VC_EV_MARK, VC_EV_DEVICE_SAMPLE };
		struct vc_event *e = &in[w.n];

		*e = (struct vc_event){ .kind = kinds[strchr(marks, *text) - marks], .addr = 4096,
					.time_ns = w.n, .device = 1 };
		e->id = text[1] != ' ' ? strtoull(text + 1, &end, 10) : 0;
		end = text[1] != ' ' ? end : (char *)(uintptr_t)text + 1;
		if (*end == ':')
			e->size = strtoull(end + 1, &end, 10);
		if (e->kind == VC_EV_ALLOC) {
			block[c.a.n] = (struct vc_block_life){ .id = e->id, .size = e->size,
				.event = w.n, .died_event = SIZE_MAX, .iteration = iterations - 1,
				.category = VC_CAT_ACTIVATION };
			c.of_id[e->id] = (uint32_t)++c.a.n;
		} else if (e->kind == VC_EV_FREE && c.of_id[e->id]) {
			block[c.of_id[e->id] - 1].died_event = w.n;
		}
		w.n++;
		text = end;
	}
}

static void done(void)
{
	free(c.of_id);
	free(c.alias);
	free(c.weight);
	free(w.out);
}

/* What came out since the last time. */
static void gives(const char *want)
{
	char got[512] = "";
	size_t n = 0;

	for (; w.at < w.m; w.at++) {
		const struct vc_event *e = &w.out[w.at];

		n += (size_t)snprintf(got + n, sizeof(got) - n, "%s%c%llu", n ? " " : "",
				      e->kind == VC_EV_ALLOC ? '+' : e->kind == VC_EV_FREE ? '-' :
				      e->kind == VC_EV_USE ? 'u' : 'o', (unsigned long long)e->id);
		if (e->kind == VC_EV_ALLOC)
			n += (size_t)snprintf(got + n, sizeof(got) - n, ":%llu",
					      (unsigned long long)e->size);
	}
	assert_string_equal(got, want);
}

static void steps(size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		assert_int_equal(vc_clone_event(&c, &in[i], NULL), VC_OK);
}

static void again(size_t first, size_t end)
{
	assert_int_equal(vc_clone_range(&c, first, end, NULL, NULL, NULL), VC_OK);
}

/* What the recording gives back later stands for the copy from then on. */
static void what_outlives_a_stretch_is_handed_over(void **unused)
{
	run("+9:8 +1:100 +2:50 u2 -2 -9 u1 o -1", 2);
	steps(0, 8);
	gives("+9:8 +1:100 +2:50 u2 -2 -9 u1 o0");
	again(1, 8);
	gives("+20:100 -1 +21:50 u21 -21 u20 o0"); /* block 9 is older, and went already */
	for (int k = 1; k < 3; k++)
		assert_int_equal(vc_clone_copy(&c, &in[k], 1, 8, NULL), VC_OK);
	gives("+22:100 -20 +23:50");
	steps(8, 9);
	gives("-22");
	done();
	run("+1:100 +2:50 -2 o -1", 2);
	c.keeps = 5; /* nothing is so old */
	steps(0, 4);
	again(0, 4);
	gives("+1:100 +2:50 -2 o0 +20:100 -1 +21:50 -21 o0");
	c.keeps = 4; /* from there on copies stay */
	again(0, 4);
	gives("+22:100 +23:50 -23 o0");
	c.keeps = 0;
	again(0, 5); /* it goes in the stretch itself */
	gives("+24:100 +25:50 -25 o0 -24");
	done();
}

/* The last iteration may just have been cut off; the first one makes what lasts. */
static void what_is_never_given_back(void **unused)
{
	for (uint32_t of = 0; of < 3; of++) {
		run("+1:100 o", 3);
		block[0].iteration = of;
		again(0, 2);
		gives(of == 0 ? "o0" : of == 1 ? "+20:100 o0" : "+20:100 -1 o0");
		done();
	}
	run("+1:100 +2:50 -2 o", 3); /* what goes is no such thing */
	block[1].iteration = 0;
	again(0, 4);
	gives("+20:100 -1 +21:50 -21 o0");
	done();
	for (int workspace = 0; workspace < 2; workspace++) { /* of one iteration only these */
		run("+1:100 +2:50 -2 o", 1);
		block[0].category = block[1].category =
			workspace ? VC_CAT_WORKSPACE : VC_CAT_ACTIVATION;
		again(0, 4);
		gives(workspace ? "o0" : "+20:100 +21:50 -21 o0");
		done();
	}
}

static uint64_t half(void *arg, const struct vc_block_life *b)
{
	return b->size / *(uint64_t *)arg;
}

static void copies_of_other_sizes(void **unused)
{
	uint64_t by = 2;

	run("+1:100 +2:1 -2 -1", 1);
	assert_int_equal(vc_clone_range(&c, 0, 4, half, &by, NULL), VC_OK);
	gives("+20:50 +21:1 -21 -20"); /* none is as it was */
	assert_int_equal(vc_clone_free(&c, &in[0], 0, NULL), VC_OK);
	gives("");
	done();
}

static void what_stands_for_a_block(void **unused)
{
	run("+1:100 u1 +2:5 o1 s", 1);
	in[2].id = NEW; /* nobody's */
	c.alias[1] = 7;
	steps(0, 5); /* what the device had is so no longer */
	assert_true(w.out[0].addr == 0 && w.out[2].addr == 4096 && w.out[3].addr == 4096);
	gives("+7:100 u7 +20:5 o1");
	c.alias[1] = 0; /* it was dropped */
	in[1].kind = VC_EV_PAGES_OUT;
	steps(0, 4);
	gives("+20:5 o1");
	assert_null(vc_clone_block(&c, NEW));
	assert_null(vc_clone_block(&c, 3));
	assert_ptr_equal(vc_clone_block(&c, 1), &block[0]);
	done();
}

static void steady(uint32_t iterations, uint32_t want, size_t first, size_t end)
{
	static const uint32_t of[] = { UINT32_MAX, 0, 0, 1, 1, 2, 2, UINT32_MAX };
	size_t f, e;
	uint32_t i;

	run("o", iterations);
	for (size_t k = 0; k < 8; k++)
		span[k] = (struct vc_span){ .iteration = of[k], .first = 10 * k,
					    .end = 10 * k + 10 };
	c.a.spans = 8;
	assert_int_equal(vc_clone_steady(&c, &f, &e, &i), end > first);
	assert_true(f == first && e == end);
	if (iterations)
		assert_int_equal(i, want);
	done();
}

/* Of several the last but one, of two the second. */
static void where_a_run_is_steady(void **unused)
{
	steady(3, 1, 30, 50);
	steady(2, 1, 30, 50);
	steady(1, 0, 10, 30);
	steady(0, 0, 0, 0);
	steady(9, 7, 0, 0); /* nobody knows where that is */
}

static void where_a_run_ends(void **unused)
{
	run("+1:1 +2:1 -1 +3:1 o -2 -3 o", 1);
	assert_int_equal(vc_clone_end(&c), 8); /* data are no end */
	block[1].category = VC_CAT_STATE;
	assert_int_equal(vc_clone_end(&c), 5);
	block[1].category = VC_CAT_ACTIVATION;
	block[2].category = VC_CAT_PARAMETER;
	assert_int_equal(vc_clone_end(&c), 6);
	block[2].category = VC_CAT_ACTIVATION;
	block[2].iteration = UINT32_MAX;
	block[0].category = VC_CAT_STATE; /* before the last request */
	assert_int_equal(vc_clone_end(&c), 6);
	in[5].id = 15; /* what was there before */
	size_t rest = 0;
	assert_int_equal(vc_clone_steps(&c, &rest, NULL), VC_OK);
	assert_int_equal(rest, 5);
	gives("+1:1 +2:1 -1 +3:1 o0");
	assert_int_equal(vc_clone_rest(&c, rest, NULL), VC_OK);
	gives("-15 -3 o0");
	done();
	run("-15 o", 1);
	assert_int_equal(vc_clone_end(&c), 0);
	done();
}

static void what_was_there_before_is_said(void **unused)
{
	static const struct vc_source_type type = { .name = "x" };

	for (uint64_t more = 0; more < 2; more++) {
		struct vc_source s = { .type = &type, .meta = vc_meta_new(NULL) };

		run("o o o o", 1);
		w.device = 1;
		for (int i = 0; i < 4; i++) {
			in[i].kind = VC_EV_HEAP_BLOCK;
			in[i].flags = VC_EVF_LIVE;
			in[i].size = 16 * MIB;
		}
		in[0].size += more;
		in[1].flags = 0;
		in[2].flags |= VC_EVF_FINAL;
		in[3].device = 2;
		vc_clone_say_heap(&c, &s);
		assert_int_equal(s.meta->notes, more);
		if (more)
			assert_memory_equal(s.meta->note[0], "x: 0.02 GiB were there", 22);
		vc_meta_free(s.meta);
		done();
	}
}

static void other_amounts_of_data(void **unused)
{
	struct vc_share s = { .c = &c, .share = 0.25 };

	run("+1:2000 +2:3000 +3:4000 +4:512 +5:513 +6:3000 +7:5001", 1);
	static const uint8_t of[] = { VC_CAT_PARAMETER, VC_CAT_ACTIVATION, VC_CAT_FORWARD_TEMP,
				      VC_CAT_BACKWARD_TEMP, VC_CAT_BACKWARD_TEMP, VC_CAT_GRADIENT,
				      VC_CAT_STATE };
	for (int i = 0; i < 7; i++)
		block[i].category = of[i];
	/* a parameter, of a gradient's size, temporary, too little, just enough; states */
	static const uint64_t want[] = { 2000, 3000, 1000, 512, 128, 3000, 5001 };
	for (int i = 0; i < 7; i++)
		assert_int_equal(vc_clone_share(&s, &block[i]), want[i]);
	block[1].size = 3002; /* rounded */
	assert_int_equal(vc_clone_share(&s, &block[1]), 751);
	done();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_outlives_a_stretch_is_handed_over),
		cmocka_unit_test(what_is_never_given_back),
		cmocka_unit_test(copies_of_other_sizes),
		cmocka_unit_test(what_stands_for_a_block),
		cmocka_unit_test(where_a_run_is_steady),
		cmocka_unit_test(where_a_run_ends),
		cmocka_unit_test(what_was_there_before_is_said),
		cmocka_unit_test(other_amounts_of_data),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
