/* SPDX-License-Identifier: Apache-2.0 */
/* whatif_judge.c - is what vramcast says what the real allocator does? Rows, tables, CSV. */
#include "whatif.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIBS(bytes) ((double)(bytes) / (double)MIB)

static int rank_of(const char *verdict)
{
	return !strcmp(verdict, "fits") ? 0 : !strcmp(verdict, "flushes") ? 1 :
	       !strcmp(verdict, "oom") ? 2 : -1;
}

const char *digest_verdict(const struct digest *d)
{
	return d->oom ? "oom" : d->retries ? "flushes" : "fits";
}

/* What was reserved before the cut and given back is not in the recording, nor in the answer. */
uint64_t digest_peak(const struct digest *d)
{
	const char *of = getenv("WHATIF_TRUTH");

	return of && !strcmp(of, "whole") ? d->reserved : d->reserved_after;
}

static bool verdict_holds(const struct digest *d, const struct answer *a)
{
	int low = rank_of(a->low_verdict), high = rank_of(a->high_verdict);

	if (strcmp(a->verdict, "undecided"))
		low = high = rank_of(a->verdict);
	return low <= rank_of(digest_verdict(d)) && rank_of(digest_verdict(d)) <= high;
}

static void judge_order(const struct row *r, unsigned k, struct verdicts *v)
{
	const struct digest *d = &r->truth[k];
	const struct answer *a = &r->changed;
	bool certain = strcmp(a->verdict, "undecided") != 0, said = verdict_holds(d, a);
	uint64_t peak = digest_peak(d);
	bool in = true;

	if (!d->oom && strcmp(a->verdict, "oom")) {
		v->compared++;
		in = peak >= a->low && peak <= a->high;
		v->above |= peak > a->high;
		v->below |= peak < a->low;
	}
	v->all_in &= in;
	v->verdict_any |= !said;
	v->certain_wrong_any |= certain && !said;
	v->exact_wrong_any |= v->exact && (!in || !said);
	if (k)
		return;
	v->same_in = in;
	v->verdict_same = !said;
	v->certain_wrong = certain && !said;
	v->exact_wrong = v->exact && (!in || !said);
}

/* Orders in which the program never comes to the recorded part say nothing of it. */
void row_judge(const struct row *r, struct verdicts *v)
{
	const struct answer *a = &r->changed;

	*v = (struct verdicts){ .same_in = 1, .all_in = 1, .ok = 1 };
	if (!r->played)
		return;
	v->exact = !strcmp(a->level, "exact") && a->is_point;
	v->span = a->high > a->low && strcmp(a->verdict, "oom");
	v->width = v->span && a->best ? (double)(a->high - a->low) / (double)a->best : 0;
	for (unsigned k = 0; k < ORDERS; k++)
		if (!r->truth[k].oom_before)
			judge_order(r, k, v);
	v->impossible = r->c.change == CHANGE_CAPACITY && !r->c.changed.percent &&
			r->c.changed.total < r->recorded.reserved_after &&
			!strcmp(a->verdict, "fits");
	v->ok = v->all_in && !v->verdict_any;
}

/* ---- one line for a failing case ---- */

void row_print(const struct row *r, const struct verdicts *v)
{
	const struct answer *a = &r->changed;
	char options[256];

	case_options(&r->c, options, sizeof(options));
	printf("# seed %" PRIu64 " torch %s %s cut %u va %s recorded '%s'%s:\n#   real", r->c.seed,
	       r->c.version, family_name[r->c.family], r->c.cut, r->c.order[0], r->c.recorded.conf,
	       options);
	for (unsigned k = 0; k < ORDERS; k++)
		printf(" %.0f %s%s%s", MIBS(digest_peak(&r->truth[k])),
		       digest_verdict(&r->truth[k]), r->truth[k].oom_before ? " before" : "",
		       k + 1 < ORDERS ? "," : "");
	printf("; said %.0f [%.0f, %.0f] %s %s, start %s; recorded %.0f\n", MIBS(a->best),
	       MIBS(a->low), MIBS(a->high), a->verdict, a->level, a->start,
	       MIBS(r->recorded.reserved));
	if (v->exact_wrong || v->certain_wrong)
		printf("#   %s%s\n", v->exact_wrong ? " exact and wrong" : "",
		       v->certain_wrong ? " certain and wrong" : "");
	printf("#   vramcast sim %s --context 0%s\n", r->file, options);
}

void row_csv(const struct row *r, const struct verdicts *v, void *file)
{
	const struct answer *a = &r->changed;
	FILE *f = file;
	char options[256];

	if (!r) {
		fprintf(f, "seed,torch,family,cut,change,kind,va,recorded_conf,options,allocs,"
			"recorded_reserved,recorded_allocated");
		for (unsigned k = 0; k < ORDERS; k++)
			fprintf(f, ",peak%u,whole%u,verdict%u", k, k, k);
		fprintf(f, ",best,low,high,verdict,low_verdict,high_verdict,level,start,reproduced,"
			"unchanged_right,seconds,unchanged_seconds,ok,same_in,all_in,above,below,"
			"verdict_wrong,verdict_wrong_any,exact,exact_wrong,exact_wrong_any,"
			"certain_wrong,certain_wrong_any,impossible,flushed_before,width,why,"
			"file\n");
		return;
	}
	case_options(&r->c, options, sizeof(options));
	fprintf(f, "%" PRIu64 ",%s,%s,%u,%s,%s,%s,\"%s\",\"%s\",%zu,%" PRIu64 ",%" PRIu64,
		r->c.seed, r->c.version, family_name[r->c.family], r->c.cut,
		change_name[r->c.change], r->c.kind, r->c.order[0], r->c.recorded.conf,
		*options ? options + 1 : "", r->allocs, r->recorded.reserved,
		r->recorded.allocated);
	for (unsigned k = 0; k < ORDERS; k++)
		fprintf(f, ",%" PRIu64 ",%" PRIu64 ",%s%s", digest_peak(&r->truth[k]),
			r->truth[k].reserved, digest_verdict(&r->truth[k]),
			r->truth[k].oom_before ? "-before" : "");
	fprintf(f, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%s,%s,%s,%s,%s,%d,%d,%.4f,%.4f,"
		"%u,%u,%u,%u,%u,%u,%u,%u,%u,%u,%u,%u,%u,%d,%.5f,%s,%s\n",
		a->best, a->low, a->high, a->verdict,
		a->low_verdict, a->high_verdict, a->level, a->start, r->unchanged.reproduced,
		r->unchanged.best == r->recorded.reserved_after, a->seconds, r->unchanged.seconds,
		v->ok, v->same_in, v->all_in, v->above, v->below, v->verdict_same, v->verdict_any,
		v->exact, v->exact_wrong, v->exact_wrong_any, v->certain_wrong,
		v->certain_wrong_any, v->impossible, r->truth[0].retries_before > 0, v->width,
		r->why, r->file);
}

/* ---- tables ---- */

struct sums {
	size_t n, same, all, above, below, exact, exact_wrong, exact_any, certain, certain_any,
		verdict_any, reproduced, unchanged, impossible;
};

static void add(struct sums *s, const struct row *r, const struct verdicts *v)
{
	s->n++;
	s->same += v->same_in && !v->verdict_same;
	s->all += v->all_in && !v->verdict_any;
	s->above += v->above;
	s->below += v->below;
	s->exact += v->exact;
	s->exact_wrong += v->exact_wrong;
	s->exact_any += v->exact_wrong_any;
	s->certain += v->certain_wrong;
	s->certain_any += v->certain_wrong_any;
	s->verdict_any += v->verdict_any;
	s->impossible += v->impossible;
	s->reproduced += r->unchanged.reproduced;
	s->unchanged += r->unchanged.best == r->recorded.reserved_after;
}

static void put_head(void)
{
	printf("# %-24s %6s %7s %7s %6s %6s | %6s %6s %6s | %7s %7s\n", "", "cases", "same in",
	       "all in", "above", "below", "exact", "wrong", "any", "certain", "any");
}

static void put_sums(const char *name, const struct sums *s)
{
	if (s->n)
		printf("# %-24s %6zu %7zu %7zu %6zu %6zu | %5.1f%% %6zu %6zu | %7zu %7zu\n", name,
		       s->n, s->same, s->all, s->above, s->below,
		       100.0 * (double)s->exact / (double)s->n, s->exact_wrong, s->exact_any,
		       s->certain, s->certain_any);
}

static const char *version_of(const struct row *r) { return r->c.version; }
static const char *family_of(const struct row *r) { return family_name[r->c.family]; }
static const char *kind_of(const struct row *r) { return r->c.kind; }

static const char *change_of(const struct row *r)
{
	static const char *const name[CHANGES][2] = {
		{ "capacity, whole", "capacity, cut" }, { "settings, whole", "settings, cut" },
		{ "both, whole", "both, cut" },
	};

	return name[r->c.change][r->c.cut > 0];
}

/* Rows by what `name` says of them, in order of appearance. */
static void put_table(const struct row *row, size_t n, const char *(*name)(const struct row *))
{
	const char *seen[64];
	size_t names = 0;

	put_head();
	for (size_t i = 0; i < n; i++) {
		const char *me = name(&row[i]);
		struct sums s = { 0 };
		size_t k = 0;

		while (k < names && strcmp(seen[k], me))
			k++;
		if (k < names || names == 64 || !row[i].played)
			continue;
		seen[names++] = me;
		for (size_t j = i; j < n; j++) {
			struct verdicts v;

			if (!row[j].played || strcmp(name(&row[j]), me))
				continue;
			row_judge(&row[j], &v);
			add(&s, &row[j], &v);
		}
		put_sums(me, &s);
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void put_quantiles(const char *what, double *v, size_t n, double times, const char *unit)
{
	if (!n)
		return;
	qsort(v, n, sizeof(*v), by_value);
	printf("# %s: %zu cases, median %.2f%s, nine of ten up to %.2f%s, at most %.2f%s\n",
	       what, n, times * v[n / 2], unit, times * v[n * 9 / 10], unit,
	       times * v[n - 1], unit);
}

void rows_report(const struct row *row, size_t n)
{
	double *width = calloc(n + 1, sizeof(*width)), *slower = calloc(n + 1, sizeof(*slower));
	size_t widths = 0, slow = 0, unplayed = 0, before = 0, moved = 0;
	struct sums s = { 0 };

	for (size_t i = 0; width && slower && i < n; i++) {
		struct verdicts v;

		row_judge(&row[i], &v);
		unplayed += !row[i].played;
		if (!row[i].played)
			continue;
		add(&s, &row[i], &v);
		for (unsigned k = 0; k < ORDERS; k++) {
			before += row[i].truth[k].oom_before > 0;
			moved += row[i].truth[k].reserved != row[i].truth[k].reserved_after;
		}
		if (v.span)
			width[widths++] = v.width;
		if (row[i].unchanged.seconds > 0)
			slower[slow++] = row[i].changed.seconds / row[i].unchanged.seconds;
	}
	put_table(row, n, version_of);
	put_table(row, n, family_of);
	put_table(row, n, kind_of);
	put_table(row, n, change_of);
	put_head();
	put_sums("all", &s);
	put_quantiles("width of what is no point", width, widths, 100, " %");
	put_quantiles("time of the what-if / unchanged", slower, slow, 1, "");
	printf("# \"fits\" said of a card smaller than what was reserved: %zu\n", s.impossible);
	printf("# %zu of %zu recordings reproduced, %zu unchanged peaks right; %zu cases left out; "
	       "of %zu real runs %zu end before the cut, %zu reserve most before it\n",
	       s.reproduced, s.n, s.unchanged, unplayed, ORDERS * s.n, before, moved);
	free(width);
	free(slower);
}
