/* SPDX-License-Identifier: Apache-2.0 */
/* time_tempo.c - see time_tempo.h */
#include "simulator/time/time_tempo.h"
#include "simulator/time/time_speeds.h"
#include "common/vec.h"

#define WAITING                                                                                  \
	0.02 /* a step that waits longer than this share for data is bound by the loader */
#define AHEAD 0.95         /* so busy a GPU never waits for launches */
#define HARDLY 0.5         /* of its time grows with the data, at the largest recorded value */
#define COMMON 0.5         /* share of kernel time that must have a counterpart */

/* One prediction being put together from the step of recording `base`. */
struct work {
	struct vc_tempo *t;
	const struct vc_tempo_ask *ask;
	const struct vc_profile *p;
	size_t base;
	struct vc_queued *host;    /* the program's side, per beat */
	uint8_t *phase;
	bool phases;
	struct vc_queued *q; size_t queued, room;
	double floor;
	double rest;               /* of the GPU between kernels of a full queue, in q */
	double optimizer;          /* the kernels of the optimizer together, ns */
};

static size_t only_axis(const struct vc_tempo *t, size_t i, size_t j)
{
	size_t found = t->axes;

	for (size_t a = 0; a < t->axes; a++) {
		if (t->x[i][a] == t->x[j][a])
			continue;
		if (found < t->axes)
			return VC_TEMPO_AXES;
		found = a;
	}
	return found < t->axes ? found : VC_TEMPO_AXES;
}

static size_t nearest(const struct vc_tempo *t, const double *x)
{
	size_t best = 0;
	double least = INFINITY;

	for (size_t i = 0; i < t->n; i++) {
		double d = 0;

		for (size_t a = 0; a < t->axes; a++) {
			bool partner = x[a] == t->x[i][a];

			for (size_t k = 0; k < t->n && !partner; k++)
				partner = k != i && only_axis(t, i, k) == a;
			d += fabs(log(x[a] / t->x[i][a])) + (partner ? 0 : 1e6);
		}
		if (d < least || (d == least && t->x[i][0] > t->x[best][0])) {
			least = d;
			best = i;
		}
	}
	return best;
}

static int match(struct vc_tempo *t, size_t a, size_t b, struct vc_error *err)
{
	if (t->match[a][b])
		return VC_OK;
	t->match[a][b] = calloc(t->at[a]->beats + 1, sizeof(uint32_t));
	VC_HAVE(t->match[a][b], "the kernels of two recordings", err);
	return vc_beats_match(t->at[a], t->at[b], t->match[a][b], err);
}

static int match_all(struct work *w, struct vc_error *err)
{
	for (size_t k = 0; k < w->t->n; k++)
		if (k != w->base)
			VC_TRY(match(w->t, w->base, k, err));
	return VC_OK;
}

/* ---- one kernel ---- */

static void insert(struct vc_pace_sample *s, size_t *n, double x, double ns)
{
	size_t at = (*n)++;

	for (; at && s[at - 1].x > x; at--)
		s[at] = s[at - 1];
	s[at] = (struct vc_pace_sample){ x, ns };
}

static struct vc_pace_law law_of(const struct work *w, size_t i, size_t axis)
{
	const struct vc_tempo *t = w->t;
	struct vc_pace_sample s[16];
	size_t n = 0;

	insert(s, &n, t->x[w->base][axis], w->p->beat[i].ns);
	for (size_t k = 0; k < t->n; k++) {
		if (k == w->base || only_axis(t, w->base, k) != axis)
			continue;
		uint32_t j = t->match[w->base][k][i];
		if (j != VC_BEAT_ALONE)
			insert(s, &n, t->x[k][axis], t->at[k]->beat[j].ns);
	}
	struct vc_pace_law l = vc_pace_fit(s, n, w->floor);
	/* One recording does not show it, but an optimizer moves the parameters, not the batch. */
	if (n == 1 && w->phases && w->phase[i] == VC_KERNEL_OPTIMIZER) {
		l.a = l.ns;
		l.b = 0;
	}
	/* A product that hardly grows yet reads its weights all that time: at some size its work
	 * takes longer than that, and from there on it grows in proportion. */
	if (n > 1 && (l.b + 2 * l.c * l.x) * l.x < HARDLY * l.ns &&
	    vc_kernel_bound(w->p->beat[i].name) != VC_BOUND_BYTES) {
		l.high_b = fmax(l.high_b, l.ns / l.x);
		l.open = true;
	}
	return l;
}

/* Along several axes the factors multiply, except for a common constant part (the launch). */
static double kernel_at(const struct work *w, size_t i, const double *x, int bound)
{
	double ns = w->p->beat[i].ns, factor = 1, fixed = 0;
	double here[VC_TEMPO_AXES], there[VC_TEMPO_AXES];
	size_t moving = 0;

	for (size_t a = 0; a < w->t->axes; a++) {
		if (x[a] == w->t->x[w->base][a])
			continue;
		struct vc_pace_law l = law_of(w, i, a);
		here[moving] = vc_pace_at(&l, w->t->x[w->base][a], 0);
		there[moving] = vc_pace_at(&l, x[a], bound);
		fixed = moving ? fmin(fixed, l.a) : l.a;
		moving++;
	}
	if (!moving)
		return ns;
	if (moving == 1)
		return here[0] > 0 ? ns * there[0] / here[0] : ns;
	fixed = fmax(0, fixed);
	for (size_t a = 0; a < moving; a++) {
		if (here[a] <= fixed * 1.0001)
			continue; /* does not depend on it */
		factor *= (there[a] - fixed) / (here[a] - fixed);
	}
	return fmax(fmin(ns, w->floor), fixed + (ns - fixed) * factor);
}

/* How many times faster a kernel is on the other card, by what it computes; 0: not known. */
static double between_cards(const struct work *k, const struct vc_beat *b)
{
	const struct vc_tempo_ask *a = k->ask;
	const struct vc_speeds *s = k->p->speeds;
	struct vc_costs here, there;
	struct vc_kernel_work w;

	if (!a->here || !a->there || !vc_kernel_work_parse(b->work, &w) ||
	    !vc_kernel_work_is_known(&w))
		return 0;
	here = vc_speeds_cost(s, a->here, &w, b->name);
	there = vc_speeds_cost(s, a->there, &w, b->name);
	return here.ns > 0 && there.ns > 0 ? here.ns / there.ns : 0;
}

/* On another card, in another precision, without gradients of the weights. */
static double on_card(const struct work *w, size_t i, double ns)
{
	const struct vc_tempo_ask *a = w->ask;
	const struct vc_beat *b = &w->p->beat[i];
	enum vc_kernel_bound by = vc_kernel_bound(b->name);
	enum vc_kernel_call work = vc_kernel_call(b->name);
	/* products that take TF32 already gain what convolutions do, which take it by default */
	enum vc_kernel_call like = work == VC_CALL_PRODUCT && strstr(b->name, "tf32") ?
					   VC_CALL_CONVOLUTION : work;
	double cards = between_cards(w, b);
	double faster = cards > 0 ? cards : by == VC_BOUND_HALF ? a->half :
		by == VC_BOUND_TF32 ? a->tf32 :
		by == VC_BOUND_FP32 ? a->fp32 : a->bytes;

	if (b->kind == VC_OP_TO_DEVICE || b->kind == VC_OP_TO_HOST || !(faster > 0))
		return ns; /* over the bus */
	if (a->cast && w->phase[i] != VC_KERNEL_OPTIMIZER && by != VC_BOUND_HALF)
		faster *= a->cast->by[like];
	if (w->phase[i] == VC_KERNEL_BACKWARD && work == VC_CALL_PRODUCT && a->weights > 0)
		faster /= a->weights;
	if (w->phase[i] == VC_KERNEL_OPTIMIZER && a->optimizer_ns > 0 && w->optimizer > 0)
		faster = w->optimizer / a->optimizer_ns;
	if (a->cast && w->phase[i] != VC_KERNEL_OPTIMIZER &&
	    (by == VC_BOUND_FP32 || by == VC_BOUND_TF32) &&
	    work != VC_CALL_ATTENTION)
		return fmax(fmin(ns, a->cast->least), ns / faster) + a->cast->copies;
	return fmax(a->there ? 0 : fmin(ns, w->floor), ns / faster);
}

/* ---- the program's side ---- */

/* When each beat of a step starts, ns since the first. */
static double *starts(const struct vc_profile *p)
{
	double *at = calloc(p->beats + 1, sizeof(*at)), now = 0;

	for (size_t i = 0; at && i < p->beats; i++) {
		now += i ? p->beat[i].gap : 0;
		at[i] = now;
		now += p->beat[i].front;
	}
	if (at)
		at[p->beats] = now + p->beat[0].gap; /* of the next step */
	return at;
}

static double between(const double *at, size_t n, size_t i, size_t j)
{
	return j > i ? at[j] - at[i] : at[n] - at[i] + at[j];
}

/* The same idle time before a kernel in both recordings, though from the last launch that is seen
 * in both to this one much more time went by in one of them: the program waited for the GPU. */
static int waits(struct work *w, size_t other, struct vc_error *err)
{
	const struct vc_profile *p = w->p, *o = w->t->at[other];
	const uint32_t *m = w->t->match[w->base][other];
	double *here = starts(p), *there = starts(o);
	size_t last = p->beats;
	int r = here && there ? VC_OK : vc_nomem(err, "the launches of a step");

	for (size_t k = 0; r == VC_OK && k < 2 * p->beats; k++) {
		size_t i = k % p->beats;

		if (m[i] == VC_BEAT_ALONE || !vc_queue_seen(p, i) || !vc_queue_seen(o, m[i]))
			continue;
		if (last < p->beats && last != i && k >= p->beats) {
			double a = between(here, p->beats, last, i),
			       b = between(there, o->beats, m[last], m[i]);
			double x = p->beat[i].gap, y = o->beat[m[i]].gap;
			w->host[i].waits |= fabs(a - b) > 0.1 * fmin(a, b) + 2 * fmax(x, y) &&
					    fabs(x - y) <= 0.25 * fmax(x, y);
		}
		last = i;
	}
	VC_FREE(here, there);
	return r;
}

/* The recording with the least work for the GPU shows most of the program's own time. */
static int read_host(struct work *w, struct vc_error *err)
{
	const struct vc_tempo *t = w->t;
	size_t light = w->base;
	struct vc_queued *q;

	for (size_t k = 0; k < t->n; k++)
		if (t->at[k]->busy * (double)t->at[k]->step_ns <
		    t->at[light]->busy * (double)t->at[light]->step_ns)
			light = k;
	vc_queue_read(w->p, w->host);
	if (light == w->base)
		return VC_OK;
	q = calloc(t->at[light]->beats + 1, sizeof(*q));
	VC_HAVE(q, "the launches of a step", err);
	vc_queue_read(t->at[light], q);
	for (size_t i = 0; i < w->p->beats; i++) {
		uint32_t j = t->match[w->base][light][i];

		if (j == VC_BEAT_ALONE)
			continue;
		w->host[i].host = q[j].host;
		if (w->host[i].waits && q[j].waits)
			w->host[i].after = fmin(w->host[i].after, q[j].after);
	}
	double a = w->p->busy * (double)w->p->step_ns,
	       b = t->at[light]->busy * (double)t->at[light]->step_ns;
	free(q);
	return b < 0.95 * a ? waits(w, light, err) : VC_OK;
}

/* ---- the step ---- */

static void queue(struct work *w, size_t i, const double *x, int bound, bool card)
{
	const struct vc_beat *b = &w->p->beat[i];
	double ns = kernel_at(w, i, x, bound), share = b->ns > 0 ? b->front / b->ns : 1;
	struct vc_queued *q = &w->q[w->queued++];

	*q = w->host[i];
	q->gpu = (card ? on_card(w, i, ns) : ns) * share + fmin(b->gap, w->p->quiet_ns);
	w->rest += fmin(b->gap, w->p->quiet_ns);
}

static size_t first_beat(const struct work *w)
{
	size_t n = w->p->beats;

	for (size_t i = 0; w->phases && i < n; i++)
		if (w->phase[i] != VC_KERNEL_OPTIMIZER &&
		    w->phase[(i + n - 1) % n] == VC_KERNEL_OPTIMIZER)
			return i;
	return 0;
}

/* What is launched once more waits for nothing that the first launch waited for: data, or room in
 * the queue. The program's time for it is what lay before it in the recording. */
static void launch_again(struct work *w, size_t i)
{
	size_t n = w->p->beats;
	double before = w->p->beat[i].gap + w->p->beat[(i + n - 1) % n].front;
	struct vc_queued *q = &w->q[w->queued - 1];

	q->host = fmin(q->host, fmax(before, VC_LAUNCH_NS));
}

/* The kernels of a phase, of them those between two shares of their number. */
static void queue_part(struct work *w, enum vc_kernel_phase phase, const double *x, int bound,
		       const struct vc_tempo_part *part)
{
	double from = part ? part->from : 0, to = part ? part->to : 1;
	size_t n = w->p->beats, first = first_beat(w), all = 0, at = 0;

	for (size_t i = 0; i < n; i++)
		all += w->phase[i] == phase;
	for (size_t k = 0; k < n; k++) {
		size_t i = (first + k) % n;

		if (w->phase[i] != phase)
			continue;
		if ((double)at >= from * (double)all && (double)at < to * (double)all) {
			queue(w, i, x, bound, true);
			if (part)
				launch_again(w, i);
		}
		at++;
	}
}

static void queue_phase(struct work *w, enum vc_kernel_phase phase, const double *x, int bound)
{
	queue_part(w, phase, x, bound, NULL);
}

/* The step at x, ns; with = false: as it was recorded, no other passes and no other card. */
static double step_at(struct work *w, const double *x, int bound, bool with, double *busy)
{
	double idle = 0, ns;

	w->queued = 0;
	w->rest = 0;
	if (with) {
		for (double k = 0; k < w->ask->passes; k++) {
			queue_phase(w, VC_KERNEL_FORWARD, x, bound);
			for (size_t j = 0; w->ask->recompute && j < w->ask->parts; j++)
				queue_part(w, VC_KERNEL_FORWARD, x, bound, &w->ask->part[j]);
			queue_phase(w, VC_KERNEL_BACKWARD, x, bound);
		}
		queue_phase(w, VC_KERNEL_OPTIMIZER, x, bound);
	} else {
		for (size_t i = 0; i < w->p->beats; i++)
			queue(w, i, x, bound, false);
	}
	ns = vc_queue_step(w->q, w->queued, &idle);
	if (busy)
		*busy = fmax(0, ns - idle - w->rest);
	return ns;
}

/* The loader delivers a batch in the time that a step took where the GPU waited for it. 0: it never
 * did. */
static double loader_at(const struct work *w, const double *x, int bound)
{
	const struct vc_tempo *t = w->t;
	struct vc_pace_sample s[16];
	size_t axis = 0, n = 0;

	while (axis < t->axes && x[axis] == t->x[w->base][axis])
		axis++;
	if (axis == t->axes)
		return w->p->wait > WAITING ? (double)w->p->step_ns : 0;
	for (size_t k = 0; k < t->n; k++)
		if (t->at[k]->wait > WAITING && (k == w->base || only_axis(t, w->base, k) == axis))
			insert(s, &n, t->x[k][axis], (double)t->at[k]->step_ns);
	if (!n)
		return 0;
	struct vc_pace_law l = vc_pace_fit(s, n, 0);
	return vc_pace_at(&l, x[axis], bound);
}

/* ---- how good it is ---- */

static double gpu_ns(const struct vc_profile *p)
{
	double sum = 0;

	for (size_t i = 0; i < p->beats; i++)
		sum += p->beat[i].ns;
	return sum;
}

/* Share of the kernel time of both sides that has a counterpart, the worst of the recordings. */
static void compare(const struct work *w, struct vc_tempo_answer *out)
{
	const struct vc_tempo *t = w->t;
	double all = gpu_ns(w->p);

	out->matched = 1;
	for (size_t k = 0; k < t->n; k++) {
		const uint32_t *m = t->match[w->base][k];
		double mine = 0, theirs = 0, renamed = 0, total = gpu_ns(t->at[k]);

		if (k == w->base)
			continue;
		for (size_t i = 0; i < w->p->beats; i++) {
			if (m[i] == VC_BEAT_ALONE)
				continue;
			mine += w->p->beat[i].ns;
			theirs += t->at[k]->beat[m[i]].ns;
			if (t->at[k]->beat[m[i]].exact != w->p->beat[i].exact)
				renamed += w->p->beat[i].ns;
		}
		if (all > 0 && total > 0)
			out->matched = fmin(out->matched, fmin(mine / all, theirs / total));
		if (all > 0)
			out->renamed = fmax(out->renamed, renamed / all);
	}
}

/* How far the model is off on the recordings themselves, and how much their steps vary. */
static double uncertainty(struct work *w, double scale)
{
	double worst = 0, spread;

	for (size_t k = 0; k < w->t->n; k++) {
		const struct vc_profile *p = w->t->at[k];
		double recorded = (double)p->step_ns;

		if (k == w->base || only_axis(w->t, w->base, k) >= w->t->axes || !(recorded > 0))
			continue;
		double said = fmax(scale * step_at(w, w->t->x[k], 0, false, NULL),
				   loader_at(w, w->t->x[k], 0));
		worst = fmax(worst, fabs(said - recorded) / recorded);
	}
	spread = w->p->step_ns ? (double)(w->p->step_max_ns - w->p->step_min_ns) / 2 /
					 (double)w->p->step_ns :
				 0;
	return fmin(0.5, worst + fmin(spread, 0.1));
}

static void answer(struct work *w, struct vc_tempo_answer *out)
{
	const double *x0 = w->t->x[w->base], *x = w->ask->x;
	double busy = 0, recorded = (double)w->p->step_ns, scale, rest, doubt, bare;
	double said = fmax(step_at(w, x0, 0, false, NULL), loader_at(w, x0, 0));
	bool plain = w->ask->passes == 1 && !w->ask->recompute && w->ask->bytes == 1 &&
		     w->ask->fp32 == 1 && w->ask->tf32 == 1 && w->ask->half == 1 && !w->ask->cast &&
		     !(w->ask->optimizer_ns > 0) && !(w->ask->weights > 0);

	/* What is not understood of the recorded step stays; of too much understood all shrinks. */
	rest = said > 0 && recorded > 1.4 * said ? recorded - said : 0;
	scale = said > 0 && recorded > 0 && !(rest > 0) ? recorded / said : 1;
	out->at_values = true;
	for (size_t a = 0; a < w->t->axes; a++)
		out->at_values &= x[a] == x0[a];
	out->same = plain && out->at_values && !w->ask->there;
	bare = rest + scale * step_at(w, x, 0, true, &busy);
	double load = w->ask->passes * loader_at(w, x, 0);
	out->step_ns = fmax(bare, load);
	out->low_ns = fmax(rest + scale * step_at(w, x, -1, true, NULL),
			   w->ask->passes * loader_at(w, x, -1));
	out->high_ns = fmax(rest + scale * step_at(w, x, 1, true, NULL),
			    w->ask->passes * loader_at(w, x, 1));
	if (w->p->busy > AHEAD && !w->p->modelled)
		out->high_ns = fmax(out->high_ns, VC_LAUNCH_MOST_NS * (double)w->queued);
	doubt = out->same ? 0 : uncertainty(w, scale);
	if (!out->same && (rest > 0 || scale < 0.7))
		doubt = fmax(doubt, fmin(0.5, fmax(rest / recorded, 1 - scale)));
	if (out->same) {
		out->step_ns = recorded;
		out->low_ns = (double)w->p->step_min_ns;
		out->high_ns = (double)w->p->step_max_ns;
	}
	out->low_ns = fmin(out->low_ns, out->step_ns) * (1 - doubt);
	out->high_ns = fmax(out->high_ns, out->step_ns) * (1 + doubt);
	out->busy = out->same        ? w->p->busy :
		    out->step_ns > 0 ? fmin(1, scale * busy / out->step_ns) :
				       0;
	out->wait = out->same ? w->p->wait : load > bare ? (load - bare) / load : 0;
}

int vc_tempo_at(struct vc_tempo *t, const struct vc_tempo_ask *ask, struct vc_tempo_answer *out,
		struct vc_error *err)
{
	struct work w = { .t = t, .ask = ask, .base = nearest(t, ask->x) };
	int r;

	*out = (struct vc_tempo_answer){ .base = w.base };
	w.p = t->at[w.base];
	w.room = w.p->beats * ((size_t)ask->passes * 3 + 1);
	w.host = calloc(w.p->beats + 1, sizeof(*w.host));
	w.phase = calloc(w.p->beats + 1, 1);
	w.q = calloc(w.room + 1, sizeof(*w.q));
	for (size_t k = 0; k < t->n; k++)
		if (t->at[k]->floor_ns > 0 && (!(w.floor > 0) || t->at[k]->floor_ns < w.floor))
			w.floor = t->at[k]->floor_ns;
	r = w.host && w.phase && w.q ? match_all(&w, err) : vc_nomem(err, "the launches of a step");
	if (r == VC_OK)
		compare(&w, out);
	if (r == VC_OK && out->matched < COMMON)
		r = vc_fail(err, VC_ENOSUP, "%.0f %% of the kernels' time match no kernel of "
			    "the other recordings", 100 * (1 - out->matched));
	if (r == VC_OK)
		r = read_host(&w, err);
	if (r == VC_OK) {
		out->phases = w.phases = vc_profile_phases(w.p, w.phase);
		for (size_t i = 0; i < w.p->beats; i++)
			w.optimizer += w.phase[i] == VC_KERNEL_OPTIMIZER ? w.p->beat[i].ns : 0;
		answer(&w, out);
	}
	VC_FREE(w.host, w.phase, w.q);
	return r;
}

void vc_tempo_fini(struct vc_tempo *t)
{
	for (size_t i = 0; i < 16; i++)
		for (size_t k = 0; k < 16; k++)
			free(t->match[i][k]);
	*t = (struct vc_tempo){ 0 };
}
