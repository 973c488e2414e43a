/* SPDX-License-Identifier: Apache-2.0 */
/* test_longer.c - steps with more micro-batches than were recorded, and those that have them. */
#include "tests/support/test.h"

#include <unistd.h>

#include "simulator/search/longer.h"

enum { MIB = 1 << 20 };

struct script { FILE *f; unsigned id, first[512]; };

/* A forward pass keeps five blocks; a backward pass frees them, with others of its own. keeps: one
 * stays until the step ends. */
static void forward(struct script *s, unsigned i)
{
	s->first[i] = s->id;
	for (unsigned k = 0; k < 5; k++)
		fprintf(s->f, "m %u %u 0\n", s->id++, (3 + 7 * k) * MIB + 4096 * k);
	fprintf(s->f, "m %u %u 0\nf %u\n", s->id, 11 * MIB, s->id);
	s->id++;
}

static void backward(struct script *s, unsigned i, bool keeps)
{
	for (unsigned k = 5; k-- > 0;) {
		fprintf(s->f, "m %u %u 0\n", s->id, (2 + 5 * k) * MIB);
		if (k || !keeps)
			fprintf(s->f, "f %u\n", s->first[i] + k);
		fprintf(s->f, "f %u\n", s->id++);
	}
}

/* The first of so many stages. */
static void write_step(const char *path, unsigned stages, unsigned count, bool keeps)
{
	struct script s = { .f = fopen(path, "w"), .id = 1 };

	assert_non_null(s.f);
	fprintf(s.f, "vramcast-golden 1\ntotal %llu\nproptotal %llu\nva up\n", 80ull << 30,
		80ull << 30);
	for (unsigned k = 0; k < 9; k++)
		fprintf(s.f, "m %u %u 0\n", s.id++, (1 + k) * 9 * MIB);
	for (unsigned i = 0; i < stages - 1; i++)
		forward(&s, i);
	for (unsigned i = stages - 1; i < count; i++) {
		forward(&s, i);
		backward(&s, i - stages + 1, keeps);
	}
	for (unsigned i = count - stages + 1; i < count; i++)
		backward(&s, i, keeps);
	fprintf(s.f, "m %u %u 0\nf %u\n", s.id, 33 * MIB, s.id);
	fclose(s.f);
}

static uint64_t peak_of(const struct vc_session *s)
{
	struct vc_error err = { 0 };
	struct vc_plan *plan;
	struct vc_result r;
	uint64_t peak;
	size_t n;

	assert_int_equal(vc_session_plans(s, &plan, &n, &err), VC_OK);
	assert_int_equal(vc_session_replay(s, plan, NULL, &r, &err), VC_OK);
	peak = r.stats.peak_reserved;
	vc_result_fini(&r);
	free(plan);
	return peak;
}

static void compare(unsigned stages, unsigned have, unsigned want, bool keeps, bool known)
{
	char path[] = "/tmp/vramcast-longer-XX" "XX" "XX";
	struct vc_run_options o = vc_run_options_none();
	struct vc_error err = { 0 };
	struct vc_longer longer;
	uint64_t peak[2];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	for (int all = 0; all < 2; all++) {
		struct vc_session s;

		write_step(path, stages, all ? want : have, keeps);
		assert_int_equal(vc_session_open_one(&s, &o, path, 0, &err), VC_OK);
		peak[all] = peak_of(&s);
		if (!all)
			assert_int_equal(vc_longer_find(&s, have, want, stages, &longer, &err),
					 VC_OK);
		vc_session_close(&s);
	}
	unlink(path);
	assert_int_equal(longer.known, known);
	if (known)
		assert_true(peak[0] + longer.more == peak[1]);
}

static void test_as_those_that_have_them(void **state)
{
	(void)state;
	compare(1, 2, 100, false, true);
	compare(1, 4, 100, false, true);
	compare(2, 6, 101, false, true);
	compare(4, 12, 300, false, true);
	compare(8, 24, 300, false, true);
}

static void test_what_is_not_known(void **state)
{
	(void)state;
	compare(8, 9, 100, false, false); /* a stage does not do the same twice */
	compare(1, 4, 100, true, false);  /* each leaves something behind */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_those_that_have_them),
		cmocka_unit_test(test_what_is_not_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
