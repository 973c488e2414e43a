/* SPDX-License-Identifier: Apache-2.0 */
/* test_largest.c - what a search says ahead changes nothing of what it asks, and comes true. */
#include "tests/support/test.h"

#include "common/largest.h"
#include "simulator/search/fit.h"

enum { MOST = 4000 };

struct asked {
	uint64_t limit;      /* values up to it fit, */
	uint64_t hole;       /* but this one; 0: none */
	bool wrong;          /* guesses are */
	uint64_t at[MOST];   /* what was asked for */
	size_t n;
	uint64_t soon[64];   /* what it said last, */
	size_t soons, met;   /* and how many of them were asked for since */
	bool surely;
	size_t said, certain; /* values said ahead, those of them that were certain */
};

static bool is_fit(const struct asked *a, uint64_t units)
{
	return units <= a->limit && units != a->hole;
}

static int probe(void *arg, uint64_t units, bool *fits, struct vc_error *err)
{
	struct asked *a = arg;

	(void)err;
	if (a->met < a->soons && (a->surely || !a->wrong))
		assert_int_equal(units, a->soon[a->met++]);
	a->at[a->n++] = units;
	*fits = is_fit(a, units);
	return VC_OK;
}

static int ahead(void *arg, const uint64_t *units, size_t n, bool surely, struct vc_error *err)
{
	struct asked *a = arg;

	(void)err;
	assert_true(n > 0 && n <= 64);
	if (a->surely) /* all of them were asked for */
		assert_int_equal(a->met, a->soons);
	else if (!a->wrong && a->met < a->soons) /* it goes on as was said */
		assert_int_equal(units[0], a->soon[a->met]);
	memcpy(a->soon, units, n * sizeof(*units));
	a->soons = n;
	a->met = 0;
	a->surely = surely;
	a->said += n;
	a->certain += surely ? n : 0;
	return VC_OK;
}

static bool expect(void *arg, uint64_t units)
{
	const struct asked *a = arg;

	return is_fit(a, units) != a->wrong;
}

static struct vc_found search(struct asked *a, uint64_t start, bool says)
{
	const struct vc_search s = { .start = start, .most = 1 << 20, .arg = a, .probe = probe,
				     .ahead = says ? ahead : NULL, .expect = says ? expect : NULL };
	struct vc_found found;

	assert_int_equal(vc_search_run(&s, &found, NULL), VC_OK);
	return found;
}

static void same_questions(void **state)
{
	static const uint64_t limits[] = { 0, 1, 2, 7, 63, 64, 65, 1000, 9434, 1 << 20 };

	(void)state;
	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
		for (uint64_t start = 1; start < 5000; start = 3 * start + 1)
			for (int way = 0; way < 4; way++) {
				struct asked alone = { .limit = limits[i],
						       .hole = way & 2 ? limits[i] / 2 : 0 };
				struct asked told = alone;

				told.wrong = way & 1;
				struct vc_found a = search(&alone, start, false),
						b = search(&told, start, true);

				assert_memory_equal(&a, &b, sizeof(a));
				assert_int_equal(alone.n, told.n);
				assert_memory_equal(alone.at, told.at, alone.n * sizeof(*told.at));
				assert_true(told.said > 0);
			}
}

/* Whoever reads the largest value alone gets the same one for fewer questions. */
static void only_the_largest(void **state)
{
	static const uint64_t limits[] = { 0, 1, 2, 7, 63, 64, 65, 1000, 9434, 1 << 20 };

	(void)state;
	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
		for (uint64_t start = 1; start < 5000; start = 3 * start + 1)
			for (uint64_t hole = 0; hole <= limits[i]; hole += limits[i] / 3 + 1) {
				struct asked all = { .limit = limits[i], .hole = hole };
				struct asked fewer = all;
				const struct vc_search s = { .start = start, .most = 1 << 20,
							     .arg = &fewer, .probe = probe,
							     .only_largest = true };
				struct vc_found whole = search(&all, start, false), found;

				assert_int_equal(vc_search_run(&s, &found, NULL), VC_OK);
				assert_int_equal(found.largest, whole.largest);
				assert_true(fewer.n <= all.n);
				if (limits[i] == 9434 && start == 4) /* those below it */
					assert_true(fewer.n + 4 + 7 <= all.n);
			}
}

static void neighbours_are_certain(void **state)
{
	struct asked a = { .limit = 9434 };

	(void)state;
	search(&a, 4, true);
	assert_true(a.certain >= 4 + 4 + 7); /* above, below, across the last doubling */
}

/* Of multiples, and of values that are named: those between two, and the next one. */
static void values_lie_between_two(void **state)
{
	static const uint64_t among[] = { 2, 3, 7, 19, 20 };

	(void)state;
	for (uint64_t unit = 0; unit < 4; unit++) { /* 0: those that are named */
		struct vc_fit f = { .unit = unit, .most = 23, .among = unit ? NULL : among,
				    .amongs = 5 };
		bool is[24] = { false };

		for (uint64_t v = 1; v < 24; v++)
			for (size_t i = 0; i < 5; i++)
				is[v] = unit ? v % unit == 0 : is[v] || among[i] == v;
		uint64_t most = 23;

		while (!is[most])
			most--;
		assert_int_equal(vc_fit_most(&f), most);
		for (uint64_t low = 0, next; low < 24; low++) {
			if (low && !is[low])
				continue;
			for (next = low + 1; next < 24 && !is[next]; next++)
				;
			assert_int_equal(vc_fit_next(&f, low), next < 24 ? next : 0);
			for (uint64_t high = next; high < 24; high++) {
				uint64_t v = is[high] ? vc_fit_between(&f, low, high) : 0;

				if (is[high] && high > next)
					assert_true(v > low && v < high && is[v]);
				else
					assert_int_equal(v, 0);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(same_questions),
					    cmocka_unit_test(only_the_largest),
					    cmocka_unit_test(neighbours_are_certain),
					    cmocka_unit_test(values_lie_between_two) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
