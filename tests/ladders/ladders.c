/* SPDX-License-Identifier: Apache-2.0 */
/* ladders.c - predicts the upper rungs of recorded ladders from the lowest two and three, and says
 * how far off it was. Usage: ladders DIR [KIND [FILE]]; DIR holds NAME and KIND (.pickle.zst, .vct)
 * and NAME.json. TAP on stdout, the table in lines that begin with '#'; every prediction and its
 * interval go to FILE, one a line. */
#include <dirent.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulator/replay/cards.h"
#include "simulator/session/session.h"
#include "simulator/session/whatif.h"

enum { RUNGS = 16, LADDERS = 200 };

static FILE *answers; /* all predictions, when a file for them is named */

struct rung { double x; uint64_t reserved, allocated; char path[512]; bool exact; };
struct ladder {
	char name[128], knob[32], torch[16], conf[64], card[64];
	struct rung rung[RUNGS];
	size_t n;
};
struct score {
	double off[2048], width[2048];
	size_t n, unsafe, inside, asked;
	double worst, line_worst;
};

static uint64_t number(const char *json, const char *key)
{
	const char *p = strstr(json, key);

	return p ? strtoull(p + strlen(key), NULL, 10) : 0;
}

/* The first `"key": "text"` into buf. */
static void text(const char *json, const char *key, char *buf, size_t n)
{
	const char *p = strstr(json, key);
	size_t len = 0;

	*buf = '\0';
	if (!p)
		return;
	for (p += strlen(key); p[len] && p[len] != '"' && len + 1 < n; len++)
		buf[len] = p[len];
	buf[len] = '\0';
}

static char *slurp(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *s = calloc(1, 1 << 20);

	if (f && s)
		s[fread(s, 1, (1 << 20) - 1, f)] = '\0';
	if (f)
		fclose(f);
	return s;
}

/* family[-variant]_knobVALUE_torchVERSION */
static bool split(const char *name, struct ladder *l, double *x)
{
	const char *torch = strstr(name, "_torch");
	char head[256];

	if (!torch || torch - name >= (long)sizeof(head))
		return false;
	snprintf(head, sizeof(head), "%.*s", (int)(torch - name), name);
	char *digits = head + strlen(head);
	while (digits > head && digits[-1] >= '0' && digits[-1] <= '9')
		digits--;
	*x = strtod(digits, NULL);
	*digits = '\0';
	char *knob = strrchr(head, '_');
	if (!knob)
		return false;
	if (knob - head > 5 && !strncmp(knob - 5, "_eval", 5))
		knob -= 5;
	snprintf(l->name, sizeof(l->name), "%.*s %s %.*s", (int)(knob - head), head, knob + 1,
		 (int)(strcspn(torch + 6, "p") < strcspn(torch + 6, "v") ?
			       strstr(torch, ".pickle") - torch - 6 :
			       strstr(torch, ".vct") - torch - 6),
		 torch + 6);
	snprintf(l->knob, sizeof(l->knob), "%s", knob + 1);
	return *x > 0;
}

static void add(struct ladder *all, size_t *n, const char *dir, const char *file)
{
	struct ladder new = { 0 }, *l = NULL;
	char path[1024];
	double x;

	if (!split(file, &new, &x))
		return;
	for (size_t i = 0; i < *n; i++)
		if (!strcmp(all[i].name, new.name))
			l = &all[i];
	const char *end = strstr(file, ".pickle") ? strstr(file, ".pickle") : strstr(file, ".vct");
	snprintf(path, sizeof(path), "%s/%.*s.json", dir, (int)(end - file), file);
	char *json = slurp(path);
	if (!l && *n < LADDERS && json) {
		text(json, "\"torch\": \"", new.torch, sizeof(new.torch));
		new.torch[strspn(new.torch, "0123456789.")] = '\0';
		text(json, "\"conf\": \"", new.conf, sizeof(new.conf));
		text(json, "\"device_name\": \"", new.card, sizeof(new.card));
		all[*n] = new;
		l = &all[(*n)++];
	}
	if (!json || !l || l->n == RUNGS)
		return;
	struct rung r = { .x = x, .reserved = number(json, "\"peak_reserved\": "),
			  .allocated = number(json, "\"peak_allocated\": ") };
	snprintf(r.path, sizeof(r.path), "%s/%s", dir, file);
	size_t at = l->n++;
	for (; at > 0 && l->rung[at - 1].x > x; at--)
		l->rung[at] = l->rung[at - 1];
	l->rung[at] = r;
	free(json);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct ladder *)a)->name, ((const struct ladder *)b)->name);
}

/* Snapshots, or the tracer's own recordings. */
static size_t find(struct ladder *all, const char *dir, const char *kind)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	size_t n = 0;

	while (d && (e = readdir(d)))
		if (strstr(e->d_name, kind))
			add(all, &n, dir, e->d_name);
	if (d)
		closedir(d);
	qsort(all, n, sizeof(*all), by_name);
	return n;
}

/* Snapshots do not name their card; what is not taken for granted (132 multiprocessors) has to be
 * said. */
static void say_card(const struct ladder *l, struct vc_run_options *opt, const char **card)
{
	*card = l->card;
	if (*l->card && !strstr(l->card, "H200") && vc_card_by_name(l->card))
		opt->gpu = (struct vc_list){ card, 1 };
}

/* Peak reserved of a run without limits, and its interval. */
static int replay(struct vc_session *s, struct vc_result *out, struct vc_error *err)
{
	struct vc_plan *plan;
	size_t n;
	int r = vc_session_plans(s, &plan, &n, err);

	if (r < 0)
		return r;
	plan[0].capacity = 0;
	r = vc_session_run(s, &plan[0], NULL, out, err);
	free(plan);
	return r;
}

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

	if (vc_session_at(base, &at, 1, "", &s, &err) < 0 || replay(&s, &r, &err) < 0) {
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
	char spec[RUNGS][600], set[64], *path[RUNGS];
	struct vc_run_options opt = vc_run_options_none();
	const char *torch = l->torch, *sets = set, *card;
	struct vc_session base;
	struct vc_error err = { 0 };

	if (l->n <= k)
		return;
	say_card(l, &opt, &card);
	for (size_t i = 0; i < k; i++) {
		snprintf(spec[i], sizeof(spec[i]), "%s@%s=%g", l->rung[i].path, l->knob,
			 l->rung[i].x);
		path[i] = spec[i];
	}
	snprintf(set, sizeof(set), "%s=%g", l->knob, l->rung[k - 1].x);
	opt.torch = (struct vc_list){ &torch, 1 };
	opt.set = (struct vc_list){ &sets, 1 };
	if (vc_session_open(&base, &opt, k, path, 0, &err) < 0) {
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

	if (vc_session_at(base, &at, 1, "", &s, &err) < 0 || replay(&s, &r, &err) < 0) {
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
		struct vc_run_options opt = vc_run_options_none();
		char spec[600], set[64], *path = spec;
		const char *torch = l->torch, *sets = set, *card;
		struct vc_session base;
		struct vc_error err = { 0 };

		say_card(l, &opt, &card);
		snprintf(spec, sizeof(spec), "%s@%s=%g", l->rung[i].path, l->knob, l->rung[i].x);
		snprintf(set, sizeof(set), "%s=%g", l->knob, l->rung[i].x);
		opt.torch = (struct vc_list){ &torch, 1 };
		opt.set = (struct vc_list){ &sets, 1 };
		if (vc_session_open(&base, &opt, 1, &path, 0, &err) < 0)
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

/* Recorded rungs under their own settings: every segment and address the same. */
static size_t replays(const struct ladder *all, size_t n, size_t *exact)
{
	size_t total = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < all[i].n; k++, total++) {
			struct vc_run_options opt = vc_run_options_none();
			const char *torch = all[i].torch;
			char *path = (char *)all[i].rung[k].path;
			struct vc_session s;
			struct vc_error err = { 0 };
			opt.torch = (struct vc_list){ &torch, 1 };
			opt.verify = true;
			if (vc_session_open(&s, &opt, 1, &path, 0, &err) == 0 &&
			    s.rec->fidelity.exact)
				++*exact;
			else
				printf("# not exact: %s %s\n", path, err.message);
			vc_session_close(&s);
		}
	return total;
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
	size_t n = argc > 1 ? find(all, argv[1], argc > 2 ? argv[2] : ".pickle") : 0, exact = 0;

	answers = argc > 3 ? fopen(argv[3], "w") : NULL;
	if (!n) {
		printf("ok 1 - ladders # SKIP no recordings in %s\n",
		       argc > 1 ? argv[1] : "(no folder given)");
		return 0;
	}
	size_t total = replays(all, n, &exact);
	printf("%s 1 - %zu of %zu recordings replay exactly\n", exact == total ? "ok" : "not ok",
	       exact, total);
	printf("# from the two lowest: value:error of peak reserved in %%, ! = unsafe\n");
	for (size_t i = 0; i < n; i++)
		predict(&all[i], 2, &two);
	printf("# from the three lowest\n");
	for (size_t i = 0; i < n; i++)
		predict(&all[i], 3, &three);
	bool a = judge(2, 2, &two, 0, 0.5), b = judge(3, 3, &three, 0, 0.5);
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
	return exact == total && a && b && c ? 0 : 1;
}
