/* SPDX-License-Identifier: Apache-2.0 */
/* ladders.c - predicts the upper rungs of recorded ladders from the lowest two and three, and says
 * how far off it was. Usage: ladders DIR [KIND [FILE]], where KIND is the ending of the files that
 * are looked at (.vct; else all). TAP on stdout, the table in lines that begin with '#'; every
 * prediction and its interval go to FILE, one a line. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulator/session/whatif.h"
#include "tests/ladders/rungs.h"

static FILE *answers; /* all predictions, when a file for them is named */

struct score {
	double off[2048], width[2048];
	size_t n, unsafe, inside, asked;
	double worst, line_worst;
};

static double percent(double value, double truth)
{
	return 100 * (value - truth) / truth;
}

/* One prediction, for who compares it with that of yesterday. */
static void answer(FILE *f, const struct ladder *l, size_t k, double from, double at,
		   const struct vc_result *r)
{
	uint64_t low = r->has_interval ? r->low : r->stats.peak_reserved;
	uint64_t high = r->has_interval ? r->high : r->stats.peak_reserved;

	if (!f)
		return;
	fprintf(f, "%s, %zu from %g, at %g: ", l->name, k, from, at);
	fprintf(f, "%.0f reserved (%.0f to %.0f), %.0f allocated\n", (double)r->stats.peak_reserved,
		(double)low, (double)high, (double)r->stats.peak_allocated);
}

static void rung_of(const struct ladder *l, size_t k, struct vc_session *base, struct score *sc,
		    size_t i)
{
	struct vc_param_value at = { (char *)l->knob, l->rung[i].x };
	const struct rung *a = &l->rung[k - 2], *b = &l->rung[k - 1];
	double truth = (double)l->rung[i].reserved, line;
	struct vc_session s;
	struct vc_result r;
	struct vc_error err = { 0 };

	if (vc_session_at(base, &at, 1, "", &s, &err) < 0 || replay_rung(&s, &r, &err) < 0) {
		printf(" %g:failed(%s)", at.value, err.message);
		sc->off[sc->n++] = 100;
		sc->worst = 100;
		return;
	}
	answer(answers, l, k, l->rung[0].x, at.value, &r);
	double off = percent((double)r.stats.peak_reserved, truth);
	double high = (double)(r.has_interval ? r.high : r.stats.peak_reserved);
	line = (double)a->reserved + ((double)b->reserved - (double)a->reserved) / (b->x - a->x) *
				     (at.value - a->x);
	printf(" %g:%+.2f%s", at.value, off, percent(truth, high) > 1 ? "!" : "");
	double low = (double)(r.has_interval ? r.low : r.stats.peak_reserved);
	sc->unsafe += percent(truth, high) > 1;
	sc->inside += percent(truth, high) <= 1 && percent(truth, low) >= -1;
	sc->width[sc->asked++] = 100 * (high - low) / low;
	sc->off[sc->n++] = fabs(off);
	sc->worst = fmax(sc->worst, fabs(off));
	sc->line_worst = fmax(sc->line_worst, fabs(percent(line, truth)));
	vc_result_fini(&r);
	vc_session_close(&s);
}

static void predict(const struct ladder *l, size_t k, struct score *sc)
{
	size_t lowest[RUNGS];
	struct opening o;
	struct vc_session base;
	struct vc_error err = { 0 };

	if (l->n <= k)
		return;
	for (size_t i = 0; i < k; i++)
		lowest[i] = i;
	if (open_rungs(&o, l, lowest, k, &base, &err) < 0) {
		printf("# %-34s failed: %s\n", l->name, err.message);
		sc->worst = 100;
		sc->off[sc->n++] = 100;
		return;
	}
	printf("# %-34s", l->name);
	for (size_t i = k; i < l->n; i++)
		rung_of(l, k, &base, sc, i);
	printf("\n");
	vc_session_close(&base);
}

/* From each rung alone: is what was recorded at the others inside the bounds? */
struct bounds { size_t n, inside, above, below; double width; };

static void one_other(const struct ladder *l, size_t i, size_t j, struct vc_session *base,
		      struct bounds *all, struct bounds *here)
{
	struct vc_param_value at = { (char *)l->knob, l->rung[j].x };
	double truth = (double)l->rung[j].reserved;
	struct vc_error err = { 0 };
	struct vc_session s;
	struct vc_result r;

	if (vc_session_at(base, &at, 1, "", &s, &err) < 0 || replay_rung(&s, &r, &err) < 0) {
		printf(" %g>%g:failed(%s)", l->rung[i].x, at.value, err.message);
		here->n++;
		here->above++;
		return;
	}
	answer(answers, l, 1, l->rung[i].x, at.value, &r);
	double low = (double)(r.has_interval ? r.low : r.stats.peak_reserved);
	double high = (double)(r.has_interval ? r.high : r.stats.peak_reserved);
	bool above = percent(truth, high) > 1, below = percent(truth, low) < -1;
	if (above || below)
		printf(" %g>%g:%+.0f%%", l->rung[i].x, at.value,
		       percent(truth, above ? high : low));
	here->n++;
	here->above += above;
	here->below += below;
	here->inside += !above && !below;
	all->width += log(high / low);
	vc_result_fini(&r);
	vc_session_close(&s);
}

static void alone(const struct ladder *l, struct bounds *all)
{
	struct bounds here = { 0 };

	printf("# %-34s", l->name);
	for (size_t i = 0; i < l->n; i++) {
		struct opening o;
		struct vc_session base;
		struct vc_error err = { 0 };

		if (open_rungs(&o, l, &i, 1, &base, &err) < 0)
			printf(" failed: %s", err.message);
		for (size_t j = 0; base.whatif && j < l->n; j++)
			if (j != i)
				one_other(l, i, j, &base, all, &here);
		vc_session_close(&base);
	}
	printf(" %zu of %zu inside\n", here.inside, here.n);
	all->n += here.n;
	all->inside += here.inside;
	all->above += here.above;
	all->below += here.below;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static bool judge(int test, size_t k, struct score *sc, double median_goal, double worst_goal)
{
	qsort(sc->off, sc->n, sizeof(double), by_value);
	double median = sc->n ? sc->off[sc->n / 2] : 100;

	qsort(sc->width, sc->asked, sizeof(double), by_value);
	if (sc->asked)
		printf("# intervals from %zu: %zu of %zu truths inside (1 %%); width %.2f %% in "
		       "the middle, %.1f %% at the ninth tenth, %.0f %% at most\n",
		       k, sc->inside, sc->asked, sc->width[sc->asked / 2],
		       sc->width[sc->asked * 9 / 10], sc->width[sc->asked - 1]);
	bool good = median <= median_goal && sc->worst <= worst_goal && !sc->unsafe;

	printf("%s %d - the lowest %zu of each ladder predict %zu others: median %.3f %%, worst "
	       "%.2f %%, %zu unsafe (a line through the peaks: worst %.0f %%)\n",
	       good ? "ok" : "not ok", test, k, sc->n, median, sc->worst, sc->unsafe,
	       sc->line_worst);
	return good;
}

int main(int argc, char **argv)
{
	static struct ladder all[LADDERS];
	static struct score two, three;
	size_t n = 0, total = 0, wrong = 0;

	if (argc > 1)
		n = find_ladders(all, 0, argv[1], argc > 2 ? argv[2] : NULL);

	answers = argc > 3 ? fopen(argv[3], "w") : NULL;
	if (!n) {
		printf("ok 1 - ladders # SKIP no recordings in %s\n",
		       argc > 1 ? argv[1] : "(no folder given)");
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		total += all[i].n;
		wrong += measure_rungs(&all[i]);
	}
	printf("%s 1 - %zu of %zu recordings replay exactly\n", wrong ? "not ok" : "ok",
	       total - wrong, total);
	printf("# from the two lowest: value:error of peak reserved in %%, ! = unsafe\n");
	for (size_t i = 0; i < n; i++)
		predict(&all[i], 2, &two);
	printf("# from the three lowest\n");
	for (size_t i = 0; i < n; i++)
		predict(&all[i], 3, &three);
	bool a = judge(2, 2, &two, 0, 1), b = judge(3, 3, &three, 0, 0.5);
	struct bounds one = { 0 };
	printf("# from each rung alone: other rungs outside the bounds, FROM>TO:distance\n");
	for (size_t i = 0; i < n; i++)
		alone(&all[i], &one);
	bool c = one.above * 100 <= one.n && one.below * 20 <= one.n;
	printf("%s 4 - each rung alone: %zu of %zu others inside the bounds, %zu need more, %zu "
	       "less; the upper end is %.1f times the lower on average\n",
	       c ? "ok" : "not ok", one.inside, one.n, one.above, one.below,
	       one.n ? exp(one.width / (double)one.n) : 1);
	if (answers)
		fclose(answers);
	return !wrong && a && b && c ? 0 : 1;
}
