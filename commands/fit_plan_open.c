/* SPDX-License-Identifier: Apache-2.0 */
/* fit_plan_open.c - fit --find plan: which layouts are worth a dry run, by what others showed:
 * that they cannot be faster, hold too much, or are refused by the program. */
#include "commands/fit_plan.h"

/* A layout that computes more than SAME of what the least does trains on more samples a step, where
 * nobody says how many: its time counts for as many. */
#define SAME 1.25

static void set_paces(struct vc_ways *f)
{
	double least = INFINITY;

	for (size_t i = 0; i < f->n; i++)
		if (f->way[i].flops > 0 && f->way[i].time.step_ns)
			least = fmin(least, f->way[i].flops);
	for (size_t i = 0; i < f->n; i++) {
		struct vc_way *w = &f->way[i];
		double more = !f->by_batch && w->flops > SAME * least ? w->flops / least : 1;

		w->pace = w->time.step_ns ? (double)w->time.step_ns / more : INFINITY;
		w->l.own = w->within[0] / more;
		w->l.waits = w->within[0] > 0 ? fmax(0, w->within[1] / w->within[0] - 1) : 0;
	}
}

/* ns for equal work of the fastest that fits. *step: of one step of it, 1 for equal work. */
static double fastest(const struct vc_ways *f, double *step)
{
	double best = INFINITY;

	*step = 1;
	for (size_t i = 0; i < f->n; i++) {
		const struct vc_way *w = &f->way[i];

		if (w->end == VC_WAY_RAN && w->verdict == VC_FITS && w->pace < best) {
			best = w->pace;
			*step = (double)w->time.step_ns / best;
		}
	}
	return best;
}

/* What cannot be GAP faster than the fastest so far is left out. */
#define GAP 1.05

/* ns for equal work that it takes at least, says what was played. */
static double least_of(const struct vc_ways *f, const struct vc_way *w)
{
	double least = 0;

	for (size_t i = 0; i < f->n; i++) {
		const struct vc_layout *other = &f->way[i].l;

		if (f->way[i].end == VC_WAY_RAN)
			least = fmax(least, vc_layout_least(&w->l, &other, 1));
	}
	return least;
}

/* A card holds no less of it than of `o`. Experts are seldom split as tensors are, and the states
 * of their optimizer lie on the fewer cards, the more work on one sample. */
static bool holds(const struct vc_ways *f, const struct vc_way *w, const struct vc_way *o)
{
	return vc_layout_holds(&w->l, &o->l) &&
		(!f->named[VC_EP] || w->l.at[VC_TP] == o->l.at[VC_TP]);
}

/* Holds no less on a card than one that runs out of memory. */
static bool is_too_large(const struct vc_ways *f, const struct vc_way *w)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->way[i].end == VC_WAY_RAN && f->way[i].verdict == VC_OOM &&
		    holds(f, w, &f->way[i]))
			return true;
	return false;
}

/* It came to its end, or as far as its steps were asked for, or at least past where `o` stopped. */
static bool has_passed(const struct vc_way *w, const struct vc_way *o)
{
	return w->end == VC_WAY_RAN && (w->verdict != VC_OOM || o->early);
}

/* Every degree is a multiple of that of `o`: what does not divide by one does not by the other. */
static bool is_multiple(const struct vc_way *w, const struct vc_way *o)
{
	bool all = w->l.with == o->l.with;

	for (int i = 0; i < VC_DP; i++)
		all = all && w->l.at[i] % o->l.at[i] == 0;
	return all;
}

/* The one degree, but for data, by which they differ; VC_DP: not one. */
static int difference(const struct vc_way *w, const struct vc_way *o)
{
	int name = VC_DP;

	for (int i = 0; i < VC_DP; i++) {
		if (w->l.at[i] == o->l.at[i])
			continue;
		if (name != VC_DP)
			return VC_DP;
		name = i;
	}
	return name;
}

/* It failed, and ran with a divisor of one degree. */
static void show_degree(const struct vc_ways *f, struct vc_way *o)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct vc_way *w = &f->way[i];
		int by = difference(w, o);

		if (!has_passed(w, o))
			continue;
		if (is_multiple(w, o)) {
			o->by = VC_WAY_NOT_SHOWN;
			return;
		}
		if (by != VC_DP && w->l.with == o->l.with && o->l.at[by] % w->l.at[by] == 0 &&
		    (o->by == VC_WAY_NOT_SHOWN || w->l.at[by] > o->beside)) {
			o->by = by;
			o->beside = w->l.at[by];
		}
	}
}

/* Why did the program stop? */
static void find_causes(struct vc_ways *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct vc_way *o = &f->way[i];

		o->by = VC_WAY_NOT_SHOWN;
		if (o->end == VC_WAY_FAILED)
			show_degree(f, o);
	}
}

/* One that did not run, which shows that it will not either; NULL: none. */
static struct vc_way *refuser(struct vc_ways *f, const struct vc_way *w)
{
	for (size_t i = 0; i < f->n; i++) {
		struct vc_way *o = &f->way[i];

		if (o->end == VC_WAY_FAILED && o->by != VC_WAY_NOT_SHOWN &&
		    is_multiple(w, o))
			return o;
	}
	return NULL;
}

/* One like it failed; why will be seen. */
static bool is_doubtful(const struct vc_ways *f, const struct vc_way *w)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->way[i].end == VC_WAY_FAILED && is_multiple(w, &f->way[i]))
			return true;
	return false;
}

/* What the runs so far show; as fastest. */
static double look(struct vc_ways *f, double *step)
{
	set_paces(f);
	find_causes(f);
	return fastest(f, step);
}

void vc_ways_mark(struct vc_ways *f)
{
	double step, best = look(f, &step);

	for (size_t i = 0; i < f->n; i++) {
		struct vc_way *w = &f->way[i];

		w->open = w->end == VC_WAY_UNTRIED && !w->begun;
		if (w->open && !f->ask->counted)
			w->open = !refuser(f, w) && !is_too_large(f, w) &&
				GAP * least_of(f, w) < best;
	}
}

bool vc_ways_hold(const struct vc_ways *f, const struct vc_way *w)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct vc_way *o = &f->way[i];

		if (!f->ask->counted && o->begun && o->end == VC_WAY_UNTRIED &&
		    holds(f, o, w))
			return true;
	}
	return false;
}

#define LAST 1e-9 /* of those of whose like one failed */

double vc_ways_save(const struct vc_ways *f, const struct vc_way *w)
{
	size_t larger = 0, spread = 0;
	double stages = (double)w->l.at[VC_PP];

	if (f->ask->counted)
		return 1;
	for (size_t i = 0; i < f->n; i++) {
		const struct vc_way *o = &f->way[i];

		larger += o->open && holds(f, o, w);
		spread += o->open && o->l.at[VC_EP] == w->l.at[VC_EP] &&
			vc_layout_holds(&w->l, &o->l);
	}
	return (double)(larger < spread ? larger : spread) / (1 + stages * stages) *
	       (is_doubtful(f, w) ? LAST : 1);
}

void vc_ways_count(struct vc_ways *f)
{
	double step, best = look(f, &step);

	for (size_t i = 0; i < f->n; i++) {
		const struct vc_way *w = &f->way[i];
		struct vc_way *by = refuser(f, w);
		double least;

		if (w->end != VC_WAY_UNTRIED || w->begun || f->ask->counted)
			continue;
		least = least_of(f, w);
		if (by) {
			by->refuses++;
			f->refused++;
		} else if (is_too_large(f, w)) {
			f->larger++;
		} else if (GAP * least >= best) {
			f->least = f->slower++ ? fmin(f->least, least * step) : least * step;
		}
	}
}

