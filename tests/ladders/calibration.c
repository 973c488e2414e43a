/* SPDX-License-Identifier: Apache-2.0 */
/* calibration.c - do intervals hold? Every pair and every triple of the rungs of each ladder
 * predicts every other rung; per ladder and in total: how many truths lie inside, how many above
 * (unsafe), widths and errors, beside a straight line through the peaks. In the end those of which
 * the answer says that data decide sizes, and all others: of the former the truth itself varies.
 *
 * Usage: calibration [-n MOST] [-o FILE] [-p NAME] [-w RULE] [-3] DIR...
 * MOST predictions of each ladder and number of recordings, spread evenly over all there are (0:
 * all); FILE gets one line for each; NAME: only ladders whose name has it; RULE: of vc_rule_names,
 * is left out (an empty one: all of them are listed). -3: from two recordings
 * only the three pairs of each triple are asked, and for the same values, so that the errors of
 * both can be compared. TAP on stdout. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulator/session/whatif.h"
#include "tests/ladders/rungs.h"

/* The goals, in percent: truths inside, values that get a number. */
#define INSIDE 97.0
#define SHARE 60.0
#define TOLD 0.20 /* of the best guess: no number where the interval is wider */

struct list { double *at; size_t n, cap; };
struct score {
	struct list error, width, line, told; /* told: widths of those that get a number */
	size_t inside, unsafe, refused, told_inside, told_unsafe;
};

static FILE *lines;
static size_t most = 60;
static bool same_values; /* -3 */
static size_t worse_than_line[2], worse_than_two, families[2]; /* from two, from three */

static struct score by_kind[VC_EVIDENCES]; /* of all ladders */
static const char *kind_names[VC_EVIDENCES];

static void push(struct list *l, double v)
{
	if (l->n == l->cap) {
		double *more = realloc(l->at, (l->cap = l->cap * 2 + 64) * sizeof(*more));

		if (!more)
			abort();
		l->at = more;
	}
	l->at[l->n++] = v;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double quantile(const struct list *l, double q)
{
	if (!l->n)
		return 0;
	qsort(l->at, l->n, sizeof(*l->at), by_value);
	return l->at[(size_t)(q * (double)(l->n - 1))];
}

static void join(struct list *to, const struct list *from)
{
	for (size_t i = 0; i < from->n; i++)
		push(to, from->at[i]);
}

/* Through the two rungs nearest to the target. */
static double straight(const struct ladder *l, const size_t *from, size_t k, double at)
{
	double far[RUNGS];
	size_t a = 0, b = 1;

	for (size_t i = 0; i < k; i++)
		far[i] = fabs(log(l->rung[from[i]].x / at));
	if (far[b] < far[a])
		a = 1, b = 0;
	for (size_t i = 2; i < k; i++)
		if (far[i] < far[a])
			b = a, a = i;
		else if (far[i] < far[b])
			b = i;
	const struct rung *p = &l->rung[from[a]], *q = &l->rung[from[b]];

	return (double)p->reserved + ((double)q->reserved - (double)p->reserved) /
					     (q->x - p->x) * (at - p->x);
}

static void write_line(const struct ladder *l, const size_t *from, size_t k, double at,
		       const double *figure, const struct vc_prediction *p)
{
	const struct vc_family_report *r = &p->report;

	if (!lines)
		return;
	fprintf(lines, "%s\t%zu\t", l->name, k);
	for (size_t i = 0; i < k; i++)
		fprintf(lines, "%s%g", i ? "," : "", l->rung[from[i]].x);
	fprintf(lines, "\t%g", at);
	for (int i = 0; i < 5; i++)
		fprintf(lines, "\t%.0f", figure[i]);
	fprintf(lines, "\t%.5f\t%.5f\t%.5f\t%d\t%d\t%d\t%.6f\t%.0f\t%.0f\t%s\n",
		(double)r->explained / (double)(r->bytes ? r->bytes : 1), r->unmatched, r->unsure,
		r->plans, r->steps_known, r->data, p->missed, (double)p->said_low,
		(double)p->said_high, p->evidence ? p->evidence->name : "same");
}

/* Take down one prediction: truth, line, best guess, both ends. */
static void count(struct score *sc, const double *figure)
{
	double truth = figure[0], line = figure[1], best = figure[2];
	double low = figure[3], high = figure[4];

	sc->inside += truth >= low && truth <= high;
	sc->unsafe += truth > high;
	if (high - low <= TOLD * best) {
		sc->told_inside += truth >= low && truth <= high;
		sc->told_unsafe += truth > high;
		push(&sc->told, 100 * (high - low) / best);
	}
	push(&sc->error, 100 * fabs(best - truth) / truth);
	push(&sc->line, 100 * fabs(line - truth) / truth);
	push(&sc->width, 100 * (high - low) / best);
}

/* Its place among the kinds: their names differ. */
static size_t kind_index(const struct vc_evidence *e)
{
	static const struct vc_evidence *seen[VC_EVIDENCES];
	size_t i = 0;

	while (i + 1 < VC_EVIDENCES && seen[i] && seen[i] != e)
		i++;
	seen[i] = e;
	kind_names[i] = e->name;
	return i;
}

static void predict(const struct ladder *l, const size_t *from, size_t k, size_t at,
		    struct vc_session *base, struct score *sc)
{
	struct vc_param_value value = { (char *)l->knob, l->rung[at].x };
	double truth = (double)l->rung[at].reserved, line = straight(l, from, k, value.value);
	struct vc_error err = { 0 };
	struct vc_session s = { 0 };
	struct vc_result r;

	if (!base || vc_session_at(base, &value, 1, "", &s, &err) < 0 ||
	    replay_rung(&s, &r, &err) < 0) {
		sc->refused++;
		if (base)
			vc_session_close(&s);
		return;
	}
	double best = (double)r.stats.peak_reserved;
	double low = r.has_interval ? (double)r.low : best;
	double high = r.has_interval ? (double)r.high : best;
	double figure[] = { truth, line, best, low, high };

	write_line(l, from, k, value.value, figure, &s.whatif->as_asked);
	count(sc, figure);
	if (s.whatif->as_asked.evidence)
		count(&by_kind[kind_index(s.whatif->as_asked.evidence)], figure);
	vc_result_fini(&r);
	vc_session_close(&s);
}

/* The next choice of k of n, in order; false: that was the last. */
static bool next_choice(size_t *from, size_t k, size_t n)
{
	size_t i = k;

	while (i-- > 0)
		if (from[i] < n - k + i) {
			from[i]++;
			for (size_t j = i + 1; j < k; j++)
				from[j] = from[j - 1] + 1;
			return true;
		}
	return false;
}

static size_t choices(size_t n, size_t k)
{
	size_t c = 1;

	for (size_t i = 0; i < k; i++)
		c = c * (n - i) / (i + 1);
	return c;
}

static bool is_in(size_t x, const size_t *from, size_t k)
{
	for (size_t i = 0; i < k; i++)
		if (from[i] == x)
			return true;
	return false;
}

/* What a triple was asked, by each of its pairs. */
static void ask_pairs(const struct ladder *l, const size_t *three, size_t at, struct score *sc)
{
	for (size_t out = 0; out < 3; out++) {
		size_t pair[] = { three[out == 0], three[out == 2 ? 1 : 2] };
		struct opening o;
		struct vc_session base = { 0 };
		struct vc_error err = { 0 };
		bool opened = open_rungs(&o, l, pair, 2, &base, &err) == 0;

		predict(l, pair, 2, at, opened ? &base : NULL, sc);
		vc_session_close(&base);
	}
}

/* pairs: what -3 asks of them (or NULL). */
static void all_from(const struct ladder *l, size_t k, struct score *sc, struct score *pairs)
{
	size_t from[RUNGS], total = l->n > k ? choices(l->n, k) * (l->n - k) : 0, seen = 0;
	double step = most && total > most ? (double)total / (double)most : 1, next = 0;

	if (!total)
		return;
	for (size_t i = 0; i < k; i++)
		from[i] = i;
	do {
		struct opening o;
		struct vc_session base = { 0 };
		struct vc_error err = { 0 };
		int opened = 1;

		for (size_t at = 0; at < l->n; at++) {
			if (is_in(at, from, k) || (double)seen++ < next)
				continue;
			next += step;
			if (opened > 0)
				opened = open_rungs(&o, l, from, k, &base, &err);
			predict(l, from, k, at, opened < 0 ? NULL : &base, sc);
			if (pairs)
				ask_pairs(l, from, at, pairs);
		}
		if (opened < 0)
			printf("# %s from %g, %g: %s\n", l->name, l->rung[from[0]].x,
			       l->rung[from[1]].x, err.message);
		if (opened <= 0)
			vc_session_close(&base);
	} while (next_choice(from, k, l->n));
}

static double mean_of(const struct list *l)
{
	double mean = 0;

	for (size_t i = 0; i < l->n; i++)
		mean += l->at[i] / (double)l->n;
	return mean;
}

/* More than what rounding to a segment makes. */
static bool worse(const struct list *a, const struct list *b)
{
	return mean_of(a) > mean_of(b) + 0.05;
}

static void say(const char *name, size_t k, struct score *s)
{
	double mean = mean_of(&s->error), line = mean_of(&s->line);
	size_t n = s->error.n;

	printf("# %-34.34s %zu %5zu %3zu %6.1f %4zu %7.2f %6.1f %6.2f %6.2f %6.1f %6.1f %6.1f%s\n",
	       name, k, n, s->refused, n ? 100 * (double)s->inside / (double)n : 100, s->unsafe,
	       quantile(&s->width, 0.5), quantile(&s->width, 0.9), quantile(&s->error, 0.5),
	       quantile(&s->error, 0.9), quantile(&s->error, 1), mean, line,
	       worse(&s->error, &s->line) ? "  worse than a line" : "");
}

static void sum(struct score *to, const struct score *from)
{
	to->inside += from->inside;
	to->unsafe += from->unsafe;
	to->refused += from->refused;
	join(&to->error, &from->error);
	join(&to->width, &from->width);
	join(&to->line, &from->line);
	join(&to->told, &from->told);
	to->told_inside += from->told_inside;
	to->told_unsafe += from->told_unsafe;
}

static bool judge(int test, const char *what, struct score *s)
{
	size_t all = s->error.n + s->refused;
	double share = all ? 100 * (double)s->told.n / (double)all : 0;
	double in = s->told.n ? 100 * (double)s->told_inside / (double)s->told.n : 100;
	bool good = in >= INSIDE && !s->told_unsafe && share >= SHARE;

	printf("%s %d - %s: %.1f %% of %zu values get a number: of these %.2f %% inside, %zu "
	       "unsafe; width %.2f %% in the middle, %.1f %% at the ninth tenth; ",
	       good ? "ok" : "not ok", test, what, share, all, in, s->told_unsafe,
	       quantile(&s->told, 0.5), quantile(&s->told, 0.9));
	printf("all: %.2f %% inside, %zu unsafe\n",
	       s->error.n ? 100 * (double)s->inside / (double)s->error.n : 100, s->unsafe);
	return good;
}

static void ladder(struct ladder *l, struct score *two, struct score *three)
{
	struct score s[2] = { 0 };

	measure_rungs(l);
	if (!same_values)
		all_from(l, 2, &s[0], NULL);
	all_from(l, 3, &s[1], same_values ? &s[0] : NULL);
	for (size_t i = 0; i < 2; i++) {
		if (s[i].error.n + s[i].refused)
			say(l->name, i + 2, &s[i]);
		families[i] += s[i].error.n > 0;
		worse_than_line[i] += s[i].error.n && worse(&s[i].error, &s[i].line);
	}
	if (same_values && s[0].error.n && worse(&s[1].error, &s[0].error)) {
		worse_than_two++;
		printf("# %s: from three worse than from two\n", l->name);
	}
	sum(two, &s[0]);
	sum(three, &s[1]);
	fflush(stdout);
}

static void leave_out(const char *rule)
{
	for (unsigned i = 0; i < VC_RULES; i++) {
		if (!*rule)
			printf("%s\n", vc_rule_names[i]);
		without_rules |= !strcmp(rule, vc_rule_names[i]) ? 1u << i : 0;
	}
	if (!without_rules) {
		fprintf(stderr, "calibration: these are the rules\n");
		exit(*rule != '\0');
	}
}

int main(int argc, char **argv)
{
	static struct ladder all[LADDERS];
	static struct score two, three, both;
	const char *only = "";
	size_t n = 0;

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "-3"))
			same_values = true;
		else if (argv[i][0] == '-' && i + 1 < argc) {
			if (argv[i][1] == 'n')
				most = strtoul(argv[++i], NULL, 10);
			else if (argv[i][1] == 'w')
				leave_out(argv[++i]);
			else if (argv[i][1] == 'o')
				lines = fopen(argv[++i], "w");
			else
				only = argv[++i];
		} else
			n = find_ladders(all, n, argv[i], NULL);
	if (!n) {
		fprintf(stderr, "calibration: no recordings of ladders there\n");
		return 1;
	}
	printf("# %-34s %s %5s %3s %6s %4s %7s %6s %6s %6s %6s %6s %6s\n", "ladder", "k", "asked",
	       "ref", "inside", "uns.", "width50", "90", "err50", "90", "worst", "mean", "line");
	for (size_t i = 0; i < n; i++)
		if (strstr(all[i].name, only))
			ladder(&all[i], &two, &three);
	sum(&both, &two);
	sum(&both, &three);
	say("all", 2, &two);
	say("all", 3, &three);
	for (int i = 0; i < VC_EVIDENCES; i++)
		if (by_kind[i].error.n)
			say(kind_names[i], 0, &by_kind[i]);
	if (lines)
		fclose(lines);
	printf("# worse than a line: from two %zu of %zu ladders, from three %zu of %zu\n",
	       worse_than_line[0], families[0], worse_than_line[1], families[1]);
	if (same_values)
		printf("# from three worse than from two, on the same values: %zu of %zu\n",
		       worse_than_two, families[1]);
	bool a = judge(1, "from two", &two), b = judge(2, "from three", &three);

	return judge(3, "in all", &both) && a && b ? 0 : 1;
}
