/* SPDX-License-Identifier: Apache-2.0 */
/* test_control_run.c - what differs between a recording and a dry run, held against the edits that
 * were made to one of them; replays are left out. */
#include "tests/support/test.h"

#include "simulator/session/control_run.c"

enum { REQUESTS = 120, EVENTS = 4 * REQUESTS, EDITS = 12 };
enum edit { AS_IT_IS, RESIZED, LEFT_OUT, ADDED, MOVED };

static uint64_t reserved[2]; /* of the recording and of the run */
static int replays;

int vc_job_follow(const struct vc_recording *rec, const char *torch,
		  const struct vc_observer_type *const *more, struct vc_result *out,
		  struct vc_error *err)
{
	*out = (struct vc_result){ .stats = { .peak_reserved = reserved[replays++] } };
	return VC_OK;
}

void vc_result_fini(struct vc_result *r) {}

static uint64_t dice(uint64_t *seed, uint64_t sides)
{
	*seed ^= *seed << 13; /* Marsaglia's xorshift */
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed % sides;
}

struct program {
	struct vc_event ev[EVENTS];
	size_t n, requests;
	uint64_t freed;
};

static void event(struct program *p, uint8_t kind, uint64_t id, uint64_t size, uint16_t device)
{
	p->ev[p->n++] = (struct vc_event){ .kind = kind, .id = id, .size = size, .device = device };
}

/* What is done with request i: it lives for life[i] requests of the program. */
static void make(struct program *p, const enum edit *edit, const uint64_t *life, bool is_run,
		 bool others)
{
	memset(p, 0, sizeof(*p));
	for (uint64_t i = 0; i < REQUESTS; i++) {
		for (uint64_t k = 0; k < i; k++)
			if (life[k] == i - 1 - k && !(edit[k] == (is_run ? LEFT_OUT : ADDED)))
				event(p, VC_EV_FREE, 1000 + k, 0, 0);
		if (edit[i] == (is_run ? LEFT_OUT : ADDED))
			continue;
		if (others && i % 3 == 0) { /* another device, and a free of what came before */
			event(p, VC_EV_ALLOC, 2 * i + 1, 7, 1);
			event(p, VC_EV_FREE, 2 * i + 1, 7, 1);
			event(p, VC_EV_FREE, 500 + i, 7, 0);
			event(p, VC_EV_FREE, 1 << 30, 7, 0);
			event(p, VC_EV_MARK, 1000 + i - 1, 7, 0);
		}
		event(p, VC_EV_ALLOC, 1000 + i, (i + 1) * 512 + (is_run && edit[i] == RESIZED ?
			(i % 2 ? 100 * i : 0) - (i % 2 ? 0 : 200) : 0), 0);
		if (is_run && edit[i] == MOVED)
			p->ev[p->n - 1].stream = 5;
		p->requests++;
	}
}

/* Requests until it is given back, in a program that leaves some out: those between. */
static uint64_t lives(const enum edit *edit, const uint64_t *life, uint64_t i, enum edit without)
{
	uint64_t n = 0;

	if (i + life[i] + 1 >= REQUESTS)
		return UINT64_MAX;
	for (uint64_t k = i + 1; k <= i + life[i]; k++)
		n += edit[k] != without;
	return n;
}

/* Frees of the recording between requests from - 1 and i, of what the run has, too. */
static uint64_t frees(const struct program *p, const enum edit *edit, uint64_t from, uint64_t i)
{
	uint64_t n = 0;
	bool in = !from;

	for (size_t k = 0; k < p->n; k++) {
		const struct vc_event *e = &p->ev[k];

		if (e->kind == VC_EV_ALLOC && e->id == 1000 + i && !e->device)
			return n;
		if (e->kind == VC_EV_ALLOC && e->id == 1000 + from - 1)
			in = true;
		n += in && e->kind == VC_EV_FREE && !e->device && e->id >= 1000 && e->id < 2000 &&
		     (e->id < 1000 + from || e->id >= 1000 + i);
	}
	return n;
}

static void check(const struct vc_control_run *t, const struct program *a, const struct program *b,
		  const enum edit *edit, const uint64_t *life)
{
	struct vc_control_run e = { .requests = a->requests, .equal = 0 };
	size_t d = 0;

	for (uint64_t i = 0, at = 0, from = 0; i < REQUESTS; i++) {
		uint64_t was = lives(edit, life, i, ADDED), is = lives(edit, life, i, LEFT_OUT);
		uint64_t size = (i + 1) * 512, other = i % 2 ? size + 100 * i : size - 200;

		from = i && edit[i - 1] == LEFT_OUT ? from : i;
		if (edit[i] == AS_IT_IS || edit[i] == MOVED) {
			e.equal++;
			e.restreamed += edit[i] == MOVED;
			at++;
			continue;
		}
		assert_true(d < t->differ);
		const struct vc_differs *x = &t->differs[d++];

		assert_int_equal(x->at, at);
		e.resized += edit[i] == RESIZED;
		e.only_recorded += edit[i] == LEFT_OUT;
		e.only_run += edit[i] == ADDED;
		e.at_once += edit[i] == RESIZED ? !was && !is : edit[i] == ADDED ? !is : !was;
		assert_int_equal(x->recorded, edit[i] == ADDED ? 0 : size);
		assert_int_equal(x->run, edit[i] == LEFT_OUT ? 0 : edit[i] == ADDED ? size : other);
		assert_int_equal(x->life, edit[i] == ADDED ? 0 : was);
		assert_int_equal(x->frees, edit[i] == LEFT_OUT ? frees(a, edit, from, i) : 0);
		e.more = x->recorded > x->run && x->recorded - x->run > e.more ?
				 x->recorded - x->run : e.more;
		e.less = x->run > x->recorded && x->run - x->recorded > e.less ?
				 x->run - x->recorded : e.less;
		at += edit[i] != LEFT_OUT;
	}
	assert_int_equal(d, t->differ);
	assert_int_equal(t->requests, e.requests);
	assert_int_equal(t->equal, e.equal);
	assert_int_equal(t->resized, e.resized);
	assert_int_equal(t->only_recorded, e.only_recorded);
	assert_int_equal(t->only_run, e.only_run);
	assert_int_equal(t->at_once, e.at_once);
	assert_int_equal(t->restreamed, e.restreamed);
	assert_int_equal(t->more, e.more);
	assert_int_equal(t->less, e.less);
	assert_int_equal(t->placed, 0);
	assert_int_equal(t->same, !d && !e.restreamed && reserved[0] == reserved[1]);
}

static void compare_programs(const enum edit *edit, const uint64_t *life, bool others)
{
	static struct program p[2];
	struct vc_device_census device = { .has_start = false };
	struct vc_recording rec[2];
	struct vc_control_run t;

	for (int run = 0; run < 2; run++) {
		make(&p[run], edit, life, run, others && run == 0);
		rec[run] = (struct vc_recording){ .trace = { .ev = p[run].ev, .n = p[run].n },
						  .device = &device };
	}
	replays = 0;
	assert_int_equal(vc_control_compare(&rec[0], &rec[1], &t, NULL), VC_OK);
	check(&t, &p[0], &p[1], edit, life);
	vc_control_fini(&t);
}

static void edits_are_found(void **unused)
{
	uint64_t seed = 88172645463325252u, life[REQUESTS];

	(void)unused;
	for (int round = 0; round < 300; round++) {
		enum edit edit[REQUESTS] = { AS_IT_IS };

		reserved[0] = 100;
		reserved[1] = 100 + round / 20 % 2;
		for (size_t i = 0; i < REQUESTS; i++)
			life[i] = dice(&seed, 4) ? dice(&seed, 9) : 0;
		/* Each stretch of ten has one kind of edit at most, of one to three requests. */
		for (size_t i = 0; round % 20 && i + 10 <= REQUESTS; i += 10) {
			enum edit what = round % 20 == 18 ? RESIZED : (enum edit)dice(&seed, 5);
			size_t n = what == RESIZED ? 1 : 1 + dice(&seed, 3);

			for (size_t k = 0; k < n; k++)
				edit[i + 1 + k] = what;
		}
		if (round % 20 == 19) { /* nothing but two that are on another stream */
			memset(edit, 0, sizeof(edit));
			edit[3] = edit[REQUESTS - 1] = MOVED;
		}
		compare_programs(edit, life, round % 2);
	}
}

/* "ABaC": letters ask for so many hundred bytes, small ones give the last of them back. */
static void write_down(struct program *p, const char *text)
{
	uint64_t last[26] = { 0 };

	memset(p, 0, sizeof(*p));
	for (uint64_t i = 1; *text; text++, i++)
		if (*text < 'a')
			event(p, VC_EV_ALLOC, last[*text - 'A'] = i, 100 * (uint64_t)(*text - '@'),
			      0);
		else
			event(p, VC_EV_FREE, last[*text - 'a'], 0, 0);
}

static void told(const char *was, const char *is, bool has_start, const char *expected)
{
	static struct program p[2];
	struct vc_device_census device[2] = { { .has_start = has_start }, { .has_start = false } };
	struct vc_recording rec[2];
	struct vc_control_run t;
	char text[200];

	for (int run = 0; run < 2; run++) {
		write_down(&p[run], run ? is : was);
		rec[run] = (struct vc_recording){ .trace = { .ev = p[run].ev, .n = p[run].n },
						  .device = &device[run] };
	}
	replays = 0;
	reserved[0] = reserved[1] = 9;
	assert_int_equal(vc_control_compare(&rec[0], &rec[1], &t, NULL), VC_OK);
	snprintf(text, sizeof(text), "%d equal, %d placed, %d resized, -%d +%d, %d at once, %d %d",
		 (int)t.equal, (int)t.placed, (int)t.resized, (int)t.only_recorded,
		 (int)t.only_run, (int)t.at_once, (int)t.more, (int)t.less);
	assert_string_equal(text, expected);
	vc_control_fini(&t);
}

static void ends_and_places_are_seen(void **unused)
{
	(void)unused;
	/* what begins or ends elsewhere, and what differs at the ends */
	told("ABCDEF", "ABCDEFGH", false, "6 equal, 0 placed, 0 resized, -0 +0, 0 at once, 0 0");
	told("CDEFGH", "ABCDEFGH", false, "6 equal, 0 placed, 0 resized, -0 +2, 0 at once, 0 200");
	told("CDEFGH", "ABCDEFGH", true, "6 equal, 0 placed, 0 resized, -0 +0, 0 at once, 0 0");
	told("ABCDEF", "ABCDEG", false, "5 equal, 0 placed, 1 resized, -0 +0, 0 at once, 0 100");
	told("ABCDEG", "ABCDEF", false, "5 equal, 0 placed, 1 resized, -0 +0, 0 at once, 100 0");
	told("ABCDEFG", "ABCDE", false, "5 equal, 0 placed, 0 resized, -2 +0, 0 at once, 700 0");
	/* one of both sides is given back at once */
	told("ABCDdEFG", "ABCHEhFG", false,
	     "6 equal, 0 placed, 1 resized, -0 +0, 0 at once, 0 400");
	told("ABCDEdFG", "ABCHhEFG", false,
	     "6 equal, 0 placed, 1 resized, -0 +0, 0 at once, 0 400");
	told("ABCDdEFG", "ABCHhEFG", false,
	     "6 equal, 0 placed, 1 resized, -0 +0, 1 at once, 0 400");
	/* the nearest of several places */
	told("ABCDEABCDEABCDEFGHI", "ABCDEABCDEFGHI", false,
	     "14 equal, 0 placed, 0 resized, -5 +0, 0 at once, 500 0");
	told("ABCDEABCDEFGHI", "ABCDEABCDEABCDEFGHI", false,
	     "14 equal, 0 placed, 0 resized, -0 +5, 0 at once, 0 500");
	/* nine of ten live as long: then places say which is which */
	told("AaBbCcDdEeFfGgHhIiJj", "KkLlMmNnOoPpQqRrSsTJjt", false,
	     "0 equal, 0 placed, 0 resized, -10 +0, 10 at once, 1000 0");
	told("AaBbCcDdEeFfGgHhIiJj", "KkLlMmNnOoPpQqRrSsTt", false,
	     "0 equal, 10 placed, 10 resized, -0 +0, 10 at once, 0 1000");
	told("AaBbCcDdEeFfGgHhIiJ", "KkLlMmNnOoPpQqRrSsTt", false,
	     "0 equal, 10 placed, 10 resized, -0 +0, 9 at once, 0 1000");
	told("AaBbCcDdEeFfGgHhIJ", "KkLlMmNnOoPpQqRrSsTt", false,
	     "0 equal, 0 placed, 0 resized, -10 +0, 8 at once, 1000 0");
	told("AaBbCcDd", "AaXxCcYy", false,
	     "2 equal, 0 placed, 2 resized, -0 +0, 2 at once, 0 2200");
}

static void an_interval_has_all_that_differs(void **unused)
{
	static const struct {
		uint64_t recorded, run, more, less, peak, low, high;
		bool same;
	} it[] = {
		{ 100, 100, 10, 5, 100, 95, 110, false }, { 100, 100, 10, 5, 100, 100, 100, true },
		{ 120, 100, 0, 0, 50, 50, 70, false }, { 120, 100, 0, 0, 200, 200, 240, false },
		{ 80, 100, 0, 0, 200, 160, 200, false }, { 100, 100, 7, 60, 200, 80, 214, false },
		{ 100, 100, 0, 100, 100, 0, 100, false }, { 7, 0, 0, 0, 50, 50, 57, false } };
	uint64_t low, high;

	(void)unused;
	for (size_t i = 0; i < sizeof(it) / sizeof(*it); i++) {
		struct vc_control_run t = { .recorded = it[i].recorded, .run = it[i].run,
			.more = it[i].more, .less = it[i].less, .same = it[i].same };

		vc_control_interval(&t, it[i].peak, &low, &high);
		assert_int_equal(low, it[i].low);
		assert_int_equal(high, it[i].high);
	}
}

static void what_differs_is_said(void **unused)
{
	static const struct { struct vc_control_run t; const char *text; } it[] = {
		{ { .equal = 5, .at_once = 3 }, "" },
		{ { .resized = 1, .at_once = 1 },
		  "1 have another size, 1 of these are given back at once, as workspaces are" },
		{ { .only_recorded = 2 }, "2 only the recording makes" },
		{ { .only_run = 3, .restreamed = 4 }, "3 only the dry run makes, 4 are on another "
						      "stream" } };
	char text[200];

	(void)unused;
	for (size_t i = 0; i < sizeof(it) / sizeof(*it); i++)
		assert_string_equal(vc_control_words(&it[i].t, text, sizeof(text)), it[i].text);
	vc_control_words(&it[1].t, text, 10);
	assert_string_equal(text, "1 have an");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edits_are_found),
		cmocka_unit_test(ends_and_places_are_seen),
		cmocka_unit_test(an_interval_has_all_that_differs),
		cmocka_unit_test(what_differs_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
