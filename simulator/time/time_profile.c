/* SPDX-License-Identifier: Apache-2.0 */
/* time_profile.c - see time_profile.h */
#include "simulator/time/time_profile.h"
#include "common/vec.h"
#include "simulator/time/time_speeds.h"

enum { CYCLES = 32 }; /* steps of which the typical one is the median: more change nothing */

/* ---- collecting ---- */

static uint8_t kind_of(const struct vc_event *e, const char *name)
{
	if (e->kind == VC_EV_KERNEL)
		return VC_OP_KERNEL;
	/* "memcpy HtoD" (CUPTI), "Memcpy HtoD (Pageable -> Device)" (kineto) */
	if (strstr(name, "HtoD"))
		return VC_OP_TO_DEVICE;
	if (strstr(name, "DtoH"))
		return VC_OP_TO_HOST;
	return strstr(name, "emset") ? VC_OP_FILL : VC_OP_COPY;
}

static void *room(void *at, size_t n, size_t *cap, size_t size, struct vc_error *err)
{
	size_t more = *cap ? 2 * *cap : 1024;
	void *bigger;

	if (n < *cap)
		return at;
	bigger = realloc(at, more * size);
	if (bigger)
		*cap = more;
	else
		vc_nomem(err, "the kernels of a recording");
	return bigger;
}

static int add_op(struct vc_profile *p, const struct vc_event *e, const struct vc_meta *meta,
		  struct vc_error *err)
{
	const char *name = e->label < meta->strings ? meta->string[e->label] : "";
	struct vc_op *op = room(p->op, p->n, &p->cap, sizeof(*op), err);

	if (!op)
		return VC_ENOMEM;
	p->op = op;
	op[p->n++] = (struct vc_op){ .id = e->id,
				    .start = e->time_ns, .end = e->time_ns + e->size,
				    .name = e->label, .stream = e->stream,
				    .work = e->kind == VC_EV_KERNEL ? e->site : 0,
				    .kind = kind_of(e, name) };
	return VC_OK;
}

static int add_mark(struct vc_profile *p, const struct vc_event *e, struct vc_error *err)
{
	struct vc_step_mark *m = room(p->mark, p->marks, &p->mark_cap, sizeof(*m), err);

	if (!m)
		return VC_ENOMEM;
	p->mark = m;
	m[p->marks++] = (struct vc_step_mark){ e->time_ns, e->size };
	return VC_OK;
}

int vc_profile_add(struct vc_profile *p, const struct vc_event *ev, size_t n, uint16_t device,
		   const struct vc_meta *meta, struct vc_error *err)
{
	for (size_t i = 0; i < n; i++) {
		if (ev[i].kind == VC_EV_MARK && ev[i].flags == VC_MARK_STEP)
			VC_TRY(add_mark(p, &ev[i], err));
		else if ((ev[i].kind == VC_EV_KERNEL || ev[i].kind == VC_EV_COPY) &&
			 ev[i].device == device)
			VC_TRY(add_op(p, &ev[i], meta, err));
	}
	return VC_OK;
}

/* ---- order ---- */

VC_COMPARE(by_start, struct vc_op,
	   VC_THEN(VC_ORDER(x->start, y->start), VC_ORDER(x->id, y->id)))

VC_COMPARE(by_launch, struct vc_op,
	   VC_THEN(VC_ORDER(x->id, y->id), VC_ORDER(x->start, y->start)))

/* What each operation adds to the time in which the GPU was busy, and the idle time before it. */
static void fronts(struct vc_profile *p)
{
	uint64_t front = p->n ? p->op[0].start : 0;

	for (size_t i = 0; i < p->n; i++) {
		struct vc_op *o = &p->op[i];
		uint64_t from = o->start > front ? o->start : front;

		o->gap = o->start > front ? o->start - front : 0;
		o->front = o->end > from ? o->end - from : 0;
		front = o->end > front ? o->end : front;
	}
}

static int tokens(struct vc_profile *p, const struct vc_meta *meta, struct vc_error *err)
{
	uint64_t *token = calloc(meta->strings + 1, sizeof(*token));

	VC_HAVE(token, "the kernels of a recording", err);
	for (size_t i = 0; i < p->n; i++) {
		uint32_t name = p->op[i].name < meta->strings ? p->op[i].name : 0;

		if (!token[name])
			token[name] = vc_kernel_token(meta->string[name]) | 1;
		p->op[i].token = token[name];
	}
	free(token);
	return VC_OK;
}

/* ---- measuring ---- */

VC_COMPARE(by_value, double, VC_ORDER(*x, *y))

static double median(double *at, size_t n)
{
	vc_sort(at, n, sizeof(*at), by_value);
	return n % 2 ? at[n / 2] : (at[n / 2 - 1] + at[n / 2]) / 2;
}

static uint64_t window(const struct vc_profile *p, size_t k, uint64_t *from)
{
	bool one = !strcmp(p->from, "profiler step");

	*from = one ? p->mark[0].start : p->op[p->begin[k]].start;
	return one ? p->mark[0].start + p->mark[0].duration : p->op[p->begin[k + 1]].start;
}

/* Busy time within [from, to) and idle time before copies to the device within (from, to], so that
 * each gap counts once though a step may begin with such a copy. op[] is in order of start. */
static void share(const struct vc_op *op, size_t n, uint64_t from, uint64_t to, double *busy,
		  double *wait)
{
	for (size_t i = 0; i < n && op[i].start <= to; i++) {
		uint64_t begin = op[i].end - op[i].front, end = op[i].end < to ? op[i].end : to;

		begin = begin > from ? begin : from;
		if (end > begin)
			*busy += (double)(end - begin);
		if (op[i].kind == VC_OP_TO_DEVICE && op[i].start > from) {
			uint64_t idle = op[i].start - from;
			*wait += (double)(op[i].gap < idle ? op[i].gap : idle);
		}
	}
}

static size_t first_end_after(const struct vc_op *op, size_t n, uint64_t t)
{
	size_t lo = 0, hi = n; /* fronts grow with the starts: what ends before t adds nothing */

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (op[mid].start < t)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo > 0 && op[lo - 1].end > t)
		lo--;
	return lo;
}

/* ---- the typical step ---- */

static bool same(const struct vc_profile *p, size_t a, size_t b)
{
	size_t n = p->begin[a + 1] - p->begin[a];

	if (p->begin[b + 1] - p->begin[b] != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (p->op[p->begin[a] + i].name != p->op[p->begin[b] + i].name)
			return false;
	return true;
}

/* The step that most others are like, the last of them. */
static size_t typical(const struct vc_profile *p)
{
	size_t best = p->steps - 1, most = 0, from = p->steps > CYCLES ? p->steps - CYCLES : 0;

	for (size_t a = p->steps; a-- > from;) {
		size_t alike = 0;

		for (size_t b = from; b < p->steps; b++)
			alike += same(p, a, b);
		if (alike > most) {
			most = alike;
			best = a;
		}
		if (2 * alike > p->steps - from)
			break;
	}
	return best;
}

static void one_beat(struct vc_profile *p, const size_t *like, size_t n, size_t i,
		     const struct vc_meta *meta)
{
	double ns[CYCLES], front[CYCLES], gap[CYCLES];
	const struct vc_op *o = &p->op[p->begin[like[0]] + i];

	for (size_t k = 0; k < n; k++) {
		const struct vc_op *x = &p->op[p->begin[like[k]] + i];

		ns[k] = (double)(x->end - x->start);
		front[k] = (double)x->front;
		gap[k] = (double)x->gap;
	}
	p->beat[i] = (struct vc_beat){ .name = o->name < meta->strings ? meta->string[o->name] : "",
				       .token = o->token, .kind = o->kind, .ns = median(ns, n),
				       .front = median(front, n), .gap = median(gap, n) };
	p->beat[i].work = o->work < meta->frames ? meta->string[meta->frame[o->work].function] : "";
	p->beat[i].exact = vc_kernel_exact(p->beat[i].name);
	if (o->kind == VC_OP_KERNEL && (!(p->floor_ns > 0) || p->beat[i].ns < p->floor_ns))
		p->floor_ns = p->beat[i].ns;
	p->copies += o->kind == VC_OP_TO_DEVICE;
}

static int beats(struct vc_profile *p, const struct vc_meta *meta, struct vc_error *err)
{
	size_t t = typical(p), like[CYCLES] = { t }, n = 1, first = p->steps > 1;

	p->beats = p->begin[t + 1] - p->begin[t];
	p->beat = calloc(p->beats, sizeof(*p->beat));
	VC_HAVE(p->beat, "the typical step", err);
	for (size_t k = p->steps; k-- > first && n < CYCLES;)
		if (k != t && same(p, k, t))
			like[n++] = k;
	for (size_t i = 0; i < p->beats; i++)
		one_beat(p, like, n, i, meta);
	return VC_OK;
}

double vc_profile_ideal(const struct vc_profile *p, const struct vc_card *card)
{
	struct vc_kernel_work w;
	double ns = 0;

	for (size_t i = 0; i < p->beats; i++)
		if (vc_kernel_work_parse(p->beat[i].work, &w) && w.flops > 0)
			ns += w.flops / vc_cost_peak(card, w.type) * 1e9;
	return ns;
}

/* What the kernels of the typical step do, where that was recorded. */
static void shares(struct vc_profile *p)
{
	struct vc_shares *s = &p->shares;
	double longest = 0;

	*s = (struct vc_shares){ .ideal = vc_profile_ideal(p, p->card) };
	for (size_t i = 0; i < p->beats; i++) {
		const struct vc_beat *b = &p->beat[i];
		struct vc_kernel_work w;
		bool known = vc_kernel_work_parse(b->work, &w), counts;

		s->ns += b->ns;
		s->kind[known ? w.kind : VC_WORK_OTHER] += b->ns;
		counts = known && (vc_kernel_work_is_known(&w) ||
				   vc_speeds_have(p->speeds, p->card, &w, b->name));
		s->flops += counts ? w.flops : 0;
		if (counts || b->kind != VC_OP_KERNEL)
			continue;
		s->unknown += b->ns;
		if (b->ns > longest)
			s->name = b->name;
		longest = fmax(longest, b->ns);
	}
}

/* ---- where it begins ---- */

enum { TAIL = 4 }; /* operations by which the end of an optimizer is known */

static bool ends_with(const uint64_t *tail, const struct vc_op *op, size_t end)
{
	for (size_t i = 0; i < TAIL; i++)
		if (op[end - TAIL + i].token != tail[i])
			return false;
	return true;
}

/* The end of the optimizer in operations (from, to]: its last operations, and none of what
 * follows them within it (a loop over the tensors does the same for each). 0: not there, or more
 * than one. */
static size_t optimizer_end(const struct vc_profile *p, size_t from, size_t to,
			    const uint64_t *tail, uint64_t inside)
{
	size_t found = 0;

	for (size_t i = from + TAIL; i <= to && i < p->n;
	     i++) /* a step ends where the next begins */
		if (ends_with(tail, p->op, i) && p->op[i].token != inside) {
			if (found)
				return 0;
			found = i;
		}
	return found;
}

/* Of the typical step: the last operations of its optimizer, and what follows them where they are
 * not the last. */
static bool optimizer_tail(const struct vc_profile *p, const uint8_t *phase, uint64_t tail[TAIL],
			   uint64_t *inside)
{
	size_t end = p->beats, n = p->beats;

	for (size_t i = 0; i < n; i++)
		if (phase[i] == VC_KERNEL_OPTIMIZER && phase[(i + 1) % n] != VC_KERNEL_OPTIMIZER)
			end = i;
	*inside = 0;
	for (size_t k = 0; end < n && k < TAIL; k++)
		tail[k] = p->beat[(end + n + 1 - TAIL + k) % n].token;
	for (size_t i = 0; end < n && i < n; i++) {
		bool same = i != end;

		for (size_t k = 0; same && k < TAIL; k++)
			same = p->beat[(i + n + 1 - TAIL + k) % n].token == tail[k];
		if (same)
			*inside = p->beat[(i + 1) % n].token;
	}
	return end < n && n > TAIL;
}

/* Steps found by what repeats begin anywhere. Where lengths take turns, or something else runs
 * between them, that mixes one step with the next: they are made to begin where the optimizer
 * ends. */
static int align(struct vc_profile *p, bool *moved, struct vc_error *err)
{
	uint8_t *phase = calloc(p->beats + 1, 1);
	size_t *at = calloc(p->steps + 2, sizeof(*at)), n = 0;
	uint64_t tail[TAIL], inside = 0;
	int r = phase && at ? VC_OK : vc_nomem(err, "the steps of a recording");
	bool all = r == VC_OK && p->steps > 2 && vc_profile_phases(p, phase) &&
		   optimizer_tail(p, phase, tail, &inside);

	for (size_t k = 0; all && k <= p->steps; k++) {
		size_t to = k < p->steps ? p->begin[k + 1] : p->n;
		size_t end = optimizer_end(p, p->begin[k], to, tail, inside);

		if (end)
			at[n++] = end;
		else
			all = k == p->steps; /* the last step may not be whole */
	}
	*moved = all && n > 3;
	if (*moved) {
		free(p->begin);
		p->begin = at;
		p->steps = n - 1;
		at = NULL;
		free(p->beat);
		p->beat = NULL;
		p->beats = p->copies = 0;
		p->floor_ns = 0;
	}
	VC_FREE(phase, at);
	return r;
}

/* ---- how long it takes ---- */

/* The mean of the middle half: neither a pause nor the first batch of an epoch moves it, and two
 * lengths in turn count both. */
static double middle(double *at, size_t n)
{
	double from = (double)n / 4, to = (double)n - from, sum = 0;

	vc_sort(at, n, sizeof(*at), by_value);
	for (size_t i = 0; i < n; i++) {
		double a = (double)i > from ? (double)i : from,
		       b = (double)(i + 1) < to ? (double)(i + 1) : to;
		sum += b > a ? (b - a) * at[i] : 0;
	}
	return sum / (to - from);
}

/* Steps that launch about as many kernels as the typical one (an evaluation in between does not),
 * without the first where there is another. */
static bool steady(const struct vc_profile *p, size_t k, size_t others)
{
	double n = (double)(p->begin[k + 1] - p->begin[k]);

	return (k || !others) && n >= 0.95 * (double)p->beats && n <= 1.05 * (double)p->beats;
}

static int measure(struct vc_profile *p, struct vc_error *err)
{
	struct vc_op *sorted = malloc(p->n * sizeof(*sorted));
	double *step = malloc(p->steps * sizeof(*step)), sum = 0, busy = 0, wait = 0;
	size_t others = 0;

	if (!sorted || !step) {
		VC_FREE(sorted, step);
		return vc_nomem(err, "the steps of a recording");
	}
	memcpy(sorted, p->op, p->n * sizeof(*sorted));
	vc_sort(sorted, p->n, sizeof(*sorted), by_start);
	p->step_min_ns = UINT64_MAX;
	for (size_t k = 1; k < p->steps; k++)
		others += steady(p, k, 1);
	for (size_t k = 0; k < p->steps; k++) {
		uint64_t from, to = window(p, k, &from), ns = to > from ? to - from : 0;
		size_t at = first_end_after(sorted, p->n, from);

		if (!steady(p, k, others))
			continue;
		share(sorted + at, p->n - at, from, to, &busy, &wait);
		step[p->measured++] = (double)ns;
		sum += (double)ns;
		p->step_min_ns = ns < p->step_min_ns ? ns : p->step_min_ns;
		p->step_max_ns = ns > p->step_max_ns ? ns : p->step_max_ns;
	}
	p->step_ns = (uint64_t)(middle(step, p->measured) + 0.5);
	p->busy = sum > 0 ? busy / sum : 0;
	p->wait = sum > 0 ? wait / sum : 0;
	VC_FREE(sorted, step);
	return VC_OK;
}

/* Between kernels of a full queue the GPU rests for about 1 us: the gap that few are below. */
static int find_quiet(struct vc_profile *p, struct vc_error *err)
{
	double *gap = malloc(p->beats * sizeof(*gap)), most = 1500;

	VC_HAVE(gap, "the typical step", err);
	for (size_t i = 0; i < p->beats; i++)
		gap[i] = p->beat[i].gap;
	vc_sort(gap, p->beats, sizeof(*gap), by_value);
	p->quiet_ns = gap[p->beats / 20] < most ? gap[p->beats / 20] : most;
	free(gap);
	return VC_OK;
}

static const struct vc_card *card_of(const struct vc_meta *m, uint16_t device)
{
	const struct vc_device_info *d = vc_meta_device_known(m, device);
	const struct vc_card *c = d && d->name ? vc_card_by_name(d->name) : NULL;

	return c && c->bandwidth_gbs > 0 && c->sms ? c : NULL;
}

int vc_profile_finish(struct vc_profile *p, size_t iterations, uint16_t device,
		      const struct vc_meta *meta, struct vc_error *err)
{
	int r = tokens(p, meta, err);
	bool moved = false;

	p->modelled = meta->how[VC_CAP_NULL_GPU] == VC_HOW_RECORDED;
	if (r < 0 || !p->n)
		return r;
	vc_sort(p->op, p->n, sizeof(*p->op), by_launch);
	VC_TRY(vc_profile_cycles(p, iterations, err));
	if (p->steps && p->modelled && meta->how[VC_CAP_WORK] == VC_HOW_RECORDED)
		p->card = card_of(meta, device);
	if (p->card)
		VC_TRY(vc_profile_play(p, meta, p->card, err));
	vc_sort(p->op, p->n, sizeof(*p->op), by_start);
	fronts(p);
	vc_sort(p->op, p->n, sizeof(*p->op), by_launch);
	if (p->steps)
		VC_TRY(beats(p, meta, err));
	if (p->steps)
		VC_TRY(align(p, &moved, err));
	if (moved)
		VC_TRY(beats(p, meta, err));
	if (p->steps)
		VC_TRY(measure(p, err));
	if (p->card) {
		shares(p);
		p->step_min_ns = (uint64_t)(p->least * (double)p->step_ns);
		p->step_max_ns = (uint64_t)(p->most * (double)p->step_ns);
	}
	return p->steps ? find_quiet(p, err) : VC_OK;
}

void vc_profile_fini(struct vc_profile *p)
{
	free(p->op);
	free(p->mark);
	free(p->begin);
	free(p->beat);
	*p = (struct vc_profile){ 0 };
}
