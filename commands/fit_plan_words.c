/* SPDX-License-Identifier: Apache-2.0 */
/* fit_plan_words.c - what fit --find plan found. */
#include "commands/fit_plan.h"
#include "common/param.h"
#include "simulator/replay/cards.h"

const char *const vc_layout_names[VC_LAYOUT_NAMES] = { "tp", "cp", "pp", "ep", "dp" };

/* "tp=2 dp=4 micro=1" */
const char *vc_ways_name(const struct vc_ways *f, const struct vc_way *w, char buf[200])
{
	size_t n = 0;

	for (int i = 0; i < VC_LAYOUT_NAMES; i++)
		if (f->named[i] || i == VC_DP)
			n += (size_t)snprintf(buf + n, 200 - n, "%s%s=%llu", n ? " " : "",
					      vc_layout_names[i], (unsigned long long)w->l.at[i]);
	for (size_t k = 0; k < f->vary.keys && n < 200; k++)
		n += (size_t)snprintf(buf + n, 200 - n, " %s=%s", f->vary.key[k].name,
				      vc_vary_value(&f->vary, w->l.with, k));
	return buf;
}

const char *vc_ways_word(const struct vc_way *w)
{
	if (w->end == VC_WAY_FAILED)
		return "did not run";
	return w->verdict == VC_FITS ? "fits" : w->verdict == VC_OOM ? "out of memory" :
		w->verdict == VC_FLUSHES ? "at the limit" : "too close to call";
}

static uint64_t two_digits(uint64_t ns)
{
	uint64_t unit = 1;

	while (ns / unit >= 100)
		unit *= 10;
	return (ns + unit / 2) / unit * unit;
}

double vc_ways_samples(const struct vc_ways *f, const struct vc_way *w, size_t *key)
{
	double x;

	for (*key = 0; *key < f->vary.keys; ++*key)
		if ((!strcmp(f->vary.key[*key].name, "micro") ||
		     !strcmp(f->vary.key[*key].name, "batch")) &&
		    vc_parse_real(vc_vary_value(&f->vary, w->l.with, *key), &x, NULL) == 0)
			return x;
	return 0;
}

static bool is_same_but(const struct vc_ways *f, const struct vc_way *x, const struct vc_way *y,
			size_t key)
{
	bool same = !memcmp(x->l.at, y->l.at, sizeof(x->l.at));

	for (size_t k = 0; k < f->vary.keys; k++)
		same &= k == key || !strcmp(vc_vary_value(&f->vary, x->l.with, k),
					    vc_vary_value(&f->vary, y->l.with, k));
	return same;
}

/* So many more samples at a time fit, by what the nearest number that ran needs less or more.
 * False: it is not known. */
static bool more_samples(const struct vc_ways *f, const struct vc_way *w, uint64_t *more)
{
	const struct vc_way *best = NULL;
	double own, other, nearest = INFINITY, each;
	size_t key;

	own = vc_ways_samples(f, w, &key);
	for (size_t i = 0; own && w->end == VC_WAY_RAN && i < f->tried; i++) {
		const struct vc_way *o = &f->way[i];

		other = vc_ways_samples(f, o, &key);
		if (o->end == VC_WAY_RAN && o->rank == w->rank && other != own &&
		    is_same_but(f, w, o, key) && fabs(other - own) < nearest) {
			nearest = fabs(other - own);
			best = o;
		}
	}
	if (!best || w->verdict != VC_FITS)
		return false;
	each = ((double)w->used - (double)best->used) / (own - vc_ways_samples(f, best, &key));
	*more = w->left > w->margin ? (uint64_t)((double)(w->left - w->margin) / each) : 0;
	return each > 0;
}

static void say_with(struct vc_emit *e, const struct vc_ways *f, const struct vc_way *w)
{
	if (!f->vary.keys)
		return;
	vc_emit_object(e, "with", NULL);
	for (size_t k = 0; k < f->vary.keys; k++)
		vc_emit_text(e, f->vary.key[k].name, NULL, vc_vary_value(&f->vary, w->l.with, k));
	vc_emit_end(e);
	for (size_t k = 0; k < f->vary.keys; k++)
		vc_emit_text(e, NULL, f->vary.key[k].name, vc_vary_value(&f->vary, w->l.with, k));
}

/* What the others say that it takes at least, ns for equal work; 0: nothing. */
static double least_of(const struct vc_ways *f, const struct vc_way *w)
{
	double least = 0;

	for (size_t i = 0; i < f->tried; i++) {
		const struct vc_layout *other = &f->way[i].l;

		if (&f->way[i] != w)
			least = fmax(least, vc_layout_least(&w->l, &other, 1));
	}
	return least;
}

static void say_way(struct vc_emit *e, const struct vc_ways *f, const struct vc_way *w)
{
	bool ran = w->end == VC_WAY_RAN, timed = ran && w->time.step_ns, known;
	double least = least_of(f, w);
	uint64_t more = 0;
	size_t key;

	vc_emit_object(e, NULL, NULL);
	for (int i = 0; i < VC_LAYOUT_NAMES; i++)
		vc_emit_uint(e, vc_layout_names[i],
			     f->named[i] || i == VC_DP ? vc_layout_names[i] : NULL, w->l.at[i]);
	say_with(e, f, w);
	vc_emit_uint(vc_emit_known(e, w->micro), "microbatches", NULL, w->micro);
	vc_emit_uint(vc_emit_known(e, w->micro), "played", NULL, w->played);
	vc_emit_uint(vc_emit_known(e, timed), "step_ns", NULL, w->time.step_ns);
	vc_emit_ns(vc_emit_known(e, timed), NULL, "a step", two_digits(w->time.step_ns));
	vc_emit_uint(vc_emit_known(e, timed), "step_low_ns", NULL, w->time.low_ns);
	vc_emit_uint(vc_emit_known(e, timed), "step_high_ns", NULL, w->time.high_ns);
	vc_emit_uint(vc_emit_known(e, timed && !f->by_batch), "equal_ns", NULL,
		     timed ? (uint64_t)w->pace : 0);
	vc_ways_cost_say(e, f, w);
	vc_emit_uint(vc_emit_known(e, least > 0), "least_ns", NULL, (uint64_t)least);
	vc_emit_text(e, "time_why", NULL, timed || !*w->time.why ? NULL : w->time.why);
	vc_emit_uint(vc_emit_known(e, ran && w->flops > 0), "flops", NULL, (uint64_t)w->flops);
	vc_emit_bytes(vc_emit_known(e, ran), "peak_used", "peak", w->used);
	vc_emit_bytes(vc_emit_known(e, ran && w->verdict != VC_OOM), "left", "left", w->left);
	known = more_samples(f, w, &more);
	vc_emit_uint(vc_emit_known(e, known), "more_samples",
		     vc_ways_samples(f, w, &key) ? "more samples" : NULL, more);
	vc_emit_uint(vc_emit_known(e, ran), "rank", "at rank", w->rank);
	vc_emit_uint(e, "roles", NULL, ran ? w->roles : 0);
	vc_emit_text(e, "verdict", NULL, ran ? vc_verdict_name(w->verdict) : NULL);
	vc_emit_text(e, NULL, "verdict", vc_ways_word(w));
	vc_emit_int(e, "exit_code", NULL, w->code);
	vc_emit_uint(vc_emit_known(e, w->refuses), "refuses", NULL, w->refuses);
	vc_emit_end(e);
}

/* Why the time of what fits is not known, each reason once. */
static void say_unknown(struct vc_emit *e, const struct vc_ways *f)
{
	for (size_t i = 0; i < f->tried; i++) {
		const struct vc_way *w = &f->way[i];
		bool said = w->end != VC_WAY_RAN || w->verdict == VC_OOM || w->time.step_ns ||
			!*w->time.why;
		char text[200];

		for (size_t k = 0; k < i && !said; k++)
			said = !f->way[k].time.step_ns && !strcmp(f->way[k].time.why, w->time.why);
		if (!said)
			vc_emit_line(e, "The time of %s is not known: %s.",
				     vc_ways_name(f, w, text), w->time.why);
	}
}

/* What was left out because another did not run. */
static void say_refused(struct vc_emit *e, const struct vc_ways *f)
{
	char text[200];

	for (size_t i = 0; i < f->tried; i++) {
		const struct vc_way *w = &f->way[i];

		if (w->refuses)
			vc_emit_line(e, "%zu need not be tried: each degree is a multiple of that "
				     "of %s, which did not run; with %s=%llu it did.", w->refuses,
				     vc_ways_name(f, w, text), vc_layout_names[w->by],
				     (unsigned long long)w->beside);
	}
}

int vc_ways_say(const struct vc_ways *f, struct vc_error *err)
{
	struct vc_emit *e = vc_emit_stdout(f->ask->json, err);
	size_t untried = f->n - f->tried - f->slower - f->larger - f->refused;
	char least[32];

	if (!e)
		return err->status;
	vc_emit_object(e, NULL, "");
	vc_emit_text(e, "schema", NULL, "vramcast.fit-plan/1");
	vc_emit_text(e, "gpu", NULL, f->card->name);
	vc_emit_bytes(e, "capacity", NULL, f->capacity);
	vc_emit_uint(e, "world", NULL, f->ask->world);
	vc_emit_uint(e, "untried", NULL, untried);
	vc_emit_uint(e, "slower", NULL, f->slower);
	vc_emit_uint(e, "larger", NULL, f->larger);
	vc_emit_uint(e, "refused", NULL, f->refused);
	vc_emit_uint(vc_emit_known(e, f->slower), "least_ns", NULL, (uint64_t)f->least);
	vc_emit_uint(vc_emit_known(e, !isnan(f->ask->tokens)), "tokens", NULL,
		     (uint64_t)fmax(0, f->ask->tokens));
	vc_emit_real(vc_emit_known(e, f->price >= 0 && f->ask->prices), "price", NULL, f->price);
	vc_emit_line(e, "%llu cards of %s; of those that fit the fastest first",
		     (unsigned long long)f->ask->world, f->card->title);
	vc_emit_array(e, "plans", "");
	for (size_t i = 0; i < f->tried; i++)
		say_way(e, f, &f->way[i]);
	vc_emit_end(e);
	say_unknown(e, f);
	vc_ways_cost_line(e, f);
	if (untried && !f->stopped)
		vc_emit_line(e, "%zu layouts with more cards on one sample were not tried "
			     "(--trials)", untried);
	if (f->larger)
		vc_emit_line(e, "%zu need not be tried: a card holds no less of them than of one "
			     "that runs out of memory.", f->larger);
	say_refused(e, f);
	if (f->slower)
		vc_emit_line(e, "%zu more need not be tried: by what those above compute, none "
			     "takes less than %s.", f->slower,
			     vc_ns_text((uint64_t)f->least, least));
	if (f->stopped)
		vc_emit_line(e, "Interrupted: that is what had been tried.");
	if (f->vary.keys)
		vc_emit_line(e, "More samples: as far as each needs what the nearest number that "
			     "ran did; --vary tries it.");
	if (f->by_batch)
		vc_emit_line(e, "Few micro-batches of a step were run; the others repeat in a "
			     "replay of kernels and allocator.");
	if (f->uneven)
		vc_emit_line(e, "%zu layouts cannot share %llu samples evenly.", f->uneven,
			     (unsigned long long)f->ask->batch);
	vc_emit_line(e, "Times are computed from what kernels do: rough.%s", f->by_batch ? "" :
		     " Layouts that train on more samples a step rank by the time for as many.");
	vc_emit_end(e);
	return vc_emit_done(e, err);
}
