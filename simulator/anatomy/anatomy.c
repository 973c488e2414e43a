/* SPDX-License-Identifier: Apache-2.0 */
/* anatomy.c - where iterations begin, where backward begins, and what each block is.
 *
 * Iterations: the lag at which most allocations repeat (size and call site) AND live memory is
 * the same as one lag before; a layer repeats too, but memory grows from layer to layer. The
 * boundary is where live memory is lowest. Phases: names of the frames where the recording has
 * them (backward, optimizer), else the deaths of long-lived blocks. (docs/rooms/anatomy.md) */
#include "common/torch_names.h"
#include "simulator/anatomy/anatomy.h"

#include "common/vec.h"
#include "simulator/anatomy/period.h"
#include "simulator/replay/memo.h"

enum { MICROS = 512 }; /* micro-batches of an iteration; bounds a table */

/* ---- blocks ---- */

static int read_blocks(struct vc_anatomy_work *w, uint16_t device, struct vc_error *err)
{
	struct vc_anatomy *a = w->a;
	uint64_t top = 0, live = 0;
	size_t n = 0;
	uint32_t *of_id;

	for (size_t i = 0; i < w->n; i++)
		if (w->ev[i].kind == VC_EV_ALLOC && w->ev[i].device == device) {
			n++;
			top = w->ev[i].id > top ? w->ev[i].id : top;
		}
	a->block = calloc(n + 1, sizeof(*a->block));
	w->token = calloc(n + 1, sizeof(*w->token));
	w->before = calloc(n + 1, sizeof(*w->before));
	of_id = calloc(top + 1, sizeof(*of_id));
	if (!a->block || !w->token || !w->before || !of_id) {
		free(of_id);
		return vc_nomem(err, "the blocks of a trace");
	}
	for (size_t i = 0; i < w->n; i++) {
		const struct vc_event *e = &w->ev[i];

		if (e->device != device)
			continue;
		if (e->kind == VC_EV_ALLOC) {
			a->block[a->n] = (struct vc_block_life){ .id = e->id,
								.size = e->size, .event = i,
								.died_event = SIZE_MAX,
								.born = (uint32_t)a->n,
								.died = UINT32_MAX,
								.iteration = UINT32_MAX };
			w->token[a->n] = (e->size * 0x9e3779b97f4a7c15ull) ^
					 vc_site_leaf(w->meta, e->site);
			w->before[a->n] = live;
			live += e->size;
			of_id[e->id] = (uint32_t)++a->n;
		} else if (e->kind == VC_EV_FREE && e->id <= top && of_id[e->id]) {
			struct vc_block_life *b = &a->block[of_id[e->id] - 1];
			if (b->died_event == SIZE_MAX) {
				b->died_event = i;
				b->died = (uint32_t)a->n;
				live -= b->size;
			}
		}
	}
	free(of_id);
	return VC_OK;
}

/* What ran between two iterations (an evaluation) lies behind the mark that ended the first of
 * them: the second begins where it looks like the others, as long before its end as they are
 * long. */
static void skip_others(struct vc_anatomy_work *w)
{
	size_t model = SIZE_MAX;

	for (size_t k = 1; k + 1 < w->starts && model == SIZE_MAX; k++)
		if ((w->start[k + 1] - w->start[k]) * 20 <= w->lag * 21)
			model = w->start[k];
	for (size_t k = 1; k < w->starts && model != SIZE_MAX; k++) {
		size_t end = k + 1 < w->starts ? w->start[k + 1] : w->end, off = w->lag / 16 + 2,
		       at = SIZE_MAX;

		if (end - w->start[k] <= w->lag + w->lag / 16)
			continue;
		for (size_t i = w->start[k]; i + VC_SIGNATURE < end; i++) {
			size_t length = end - i,
			       d = length > w->lag ? length - w->lag : w->lag - length;

			if (d < off && w->before[i] <= w->before[model] + VC_SLACK &&
			    vc_alike_with_gaps(w, i, model) >= VC_SIGNATURE - 1) {
				off = d;
				at = i;
			}
		}
		if (at != SIZE_MAX)
			w->start[k] = at;
	}
}

/* The share of the iterations that are about as long as the others; at most 0.9: nobody named
 * them. */
static double regular(const struct vc_anatomy_work *w)
{
	size_t good = 0;

	for (size_t k = 1; k + 1 < w->starts; k++) {
		size_t length = w->start[k + 1] - w->start[k];

		good += length * 10 >= w->lag * 9 &&
			length <= w->lag * 3; /* an evaluation between them */
	}
	if (w->starts > 2)
		return 0.9 * (double)good / (double)(w->starts - 2);
	/* Two: steps fill the recording, two stretches that happen to look alike do not. */
	size_t all = w->a->n - (w->starts ? w->start[0] : 0);
	return 2 * w->lag * 10 >= all * 7 ? 0.7 : 0.3;
}

/* What comes behind the last mark has no backward pass, while the step before it has one. */
static bool evaluation_last(const struct vc_anatomy_work *w)
{
	size_t last = w->start[w->starts - 1];
	struct vc_pass p;

	return vc_pass_next(w, w->start[w->starts - 2], last, &p) &&
	       !vc_pass_next(w, last, w->a->n, &p);
}

/* A mark stands where an iteration ends (our tracer, vramcast_step) or begins (a profiler's):
 * both cut between iterations. What comes before the first mark is searched for the first
 * iteration, what comes behind the last one is an iteration only when it is long enough. */
static int marks(struct vc_anatomy_work *w, const size_t *mark, size_t n, struct vc_error *err)
{
	int r = vc_period_start(w, 0, err);

	for (size_t i = 0; r == VC_OK && i < n; i++)
		if (w->start[w->starts - 1] != mark[i])
			r = vc_period_start(w, mark[i], err);
	n = w->starts;
	if (r < 0 || n < 3) {
		w->starts = 0;
		return r;
	}
	w->lag = w->start[2] - w->start[1];
	for (size_t k = 2; k < n; k++)
		w->lag = w->start[k] - w->start[k - 1] < w->lag ? w->start[k] - w->start[k - 1] :
								  w->lag;
	if ((w->a->n - w->start[n - 1]) * 10 < w->lag * 7 || evaluation_last(w))
		w->end = w->start[--w->starts];
	skip_others(w);
	if (!vc_named_first(w)) {
		memmove(w->start, w->start + 1, --w->starts * sizeof(*w->start));
		if (w->starts && w->end == w->a->n && !w->start[0])
			w->starts = 0;
	}
	w->a->from = "marks";
	w->a->confidence = 1;
	return r;
}

/* Names say more than marks do, where both see as many iterations, and where an iteration has no
 * mark because a scaler left its step out. */
static int marks_or_names(struct vc_anatomy_work *w, struct vc_error *err)
{
	size_t named = w->starts, *mark, n;
	int r = vc_step_marks(w, &mark, &n, err);

	if (r == VC_OK && !(named && (n < 2 || (named <= n + 1 && n <= named + 1) ||
				      vc_steps_left_out(w, mark, n)))) {
		w->starts = 0;
		w->named = false;
		w->end = w->a->n;
		r = marks(w, mark, n, err);
	}
	free(mark);
	return r;
}

/* ---- phases ---- */

/* Bytes of blocks born since `from` that will live long: what backward gives back. */
static bool lasting(const struct vc_block_life *b, size_t from, size_t end, size_t least)
{
	return b->born >= from && b->died != UINT32_MAX && b->died <= end &&
	       b->died - b->born >= least;
}

/* The block at which backward begins between blocks [from, end): named, or where the first block
 * dies that is older than a quarter of the way. */
static size_t backward_start(const struct vc_anatomy_work *w, size_t from, size_t end)
{
	const struct vc_block_life *b = w->a->block;
	size_t found = end;

	for (size_t i = from; i < end; i++)
		if (vc_named_role(w, i) == VC_ROLE_BACKWARD)
			return i;
	for (size_t i = from; i < end; i++) {
		size_t died = b[i].died;
		if (died != UINT32_MAX && died < found && died > i &&
		    (died - i) * 4 > died - from && died - i > 2 && (died - i) * 16 > end - from)
			found = died;
	}
	return found;
}

/* The block at which the optimizer begins: named, or where what the forward pass kept is gone. */
static size_t optimizer_start(const struct vc_anatomy_work *w, size_t from, size_t backward,
			      size_t end)
{
	const struct vc_block_life *b = w->a->block;
	size_t least = (backward - from) / 16 + 2, at = backward;
	uint64_t kept = 0, gone = 0;

	bool named = false;
	for (size_t i = backward; i < end; i++) {
		if (vc_named_role(w, i) == VC_ROLE_OPTIMIZER)
			return i;
		named = named || vc_named_role(w, i) == VC_ROLE_BACKWARD;
	}
	if (named) /* plain SGD asks for nothing */
		return end;
	/* What dies behind the last allocation of all is the batch, not kept by a layer. */
	for (size_t i = from; i < backward; i++)
		if (lasting(&b[i], from, end - 1, least) && b[i].died >= backward)
			kept += b[i].size;
	uint64_t *dies = calloc(end - backward + 1, sizeof(*dies));
	for (size_t i = from; dies && i < backward; i++)
		if (lasting(&b[i], from, end - 1, least) && b[i].died >= backward)
			dies[b[i].died - backward] += b[i].size;
	for (size_t t = backward; dies && t < end && gone * 50 < kept * 49; t++) {
		gone += dies[t - backward];
		at = dies[t - backward] ? t : at;
	}
	free(dies);
	return at < end ? at : end;
}

/* The guess above comes late by the last layers, whose blocks are young: what dies before the
 * optimizer was most where the forward pass ended. */
static size_t refine(const struct vc_anatomy_work *w, size_t from, size_t back, size_t end)
{
	const struct vc_block_life *b = w->a->block;
	size_t opt = optimizer_start(w, from, back, end), at = back;
	int64_t live = 0, most = 0, *change = calloc(end - from + 2, sizeof(*change));

	for (size_t i = from; change && i < back; i++)
		if (b[i].died != UINT32_MAX && b[i].died <= opt && b[i].died > i + 2) {
			change[i - from] += (int64_t)b[i].size;
			change[b[i].died - from] -= (int64_t)b[i].size;
		}
	for (size_t i = from; change && i < back; i++) {
		live += change[i - from];
		if (live > most) {
			most = live;
			at = i + 1;
		}
	}
	free(change);
	return at;
}

static int add_span(struct vc_anatomy_work *w, struct vc_span s, struct vc_error *err)
{
	struct vc_anatomy *a = w->a;

	if (s.first >= s.end)
		return VC_OK;
	VC_HAVE(vc_vec_one(a->span, a->spans), "the phases of a trace", err);
	a->span[a->spans++] = s;
	return VC_OK;
}

static size_t event_of(const struct vc_anatomy_work *w, size_t block)
{
	return block < w->a->n ? w->a->block[block].event : w->n;
}

/* Where the optimizer begins. One that asks for nothing is where its mark is: gradients are given
 * back behind it. */
static size_t event_of_optimizer(const struct vc_anatomy_work *w, size_t opt, size_t end)
{
	size_t at = event_of(w, opt);

	for (size_t i = opt && opt == end ? event_of(w, opt - 1) : at; i < at; i++)
		if (w->ev[i].kind == VC_EV_MARK && w->ev[i].flags == VC_MARK_STEP &&
		    w->ev[i].device == w->device)
			return i;
	return at;
}

/* Where micro-batches begin after the first, up to MICROS: they look like the beginning, and
 * gradients are there by then, all of them. Live memory that falls from one to the next is that
 * of a backward pass which computes its layers again: no micro-batches. */
static size_t micro_starts(const struct vc_anatomy_work *w, size_t from, size_t end,
			   size_t start[MICROS])
{
	size_t n = 0, at = from;

	for (size_t i = from + w->lag / 64 + VC_SIGNATURE; i + VC_SIGNATURE < end && n < MICROS;
	     i++) {
		uint64_t first = n ? w->before[start[0]] : w->before[i], now = w->before[i];

		if (i < at + w->lag / 64 + VC_SIGNATURE || i - at <= (end - from) / 40 ||
		    now <= w->before[from] + VC_SLACK / 4 ||
		    vc_alike_with_gaps(w, i, from) < VC_SIGNATURE - 1)
			continue;
		if ((now > first ? now - first : first - now) > VC_SLACK + first / 100)
			return 0;
		start[n++] = at = i;
	}
	/* One only: it must be about in the middle. */
	if (n == 1 &&
	    ((start[0] - from) * 3 < end - start[0] || (end - start[0]) * 3 < start[0] - from))
		return 0;
	return n;
}

/* Forward and backward of one micro-batch, and the optimizer behind the last one. */
static int cut_one(struct vc_anatomy_work *w, struct vc_span s, size_t next, bool last,
		   struct vc_error *err)
{
	size_t at = s.first, end = next, back = backward_start(w, at, next), opt = next;
	int r;

	if (!w->named && back < next)
		back = refine(w, at, back, next);
	if (last)
		opt = optimizer_start(w, at, back, end);
	r = add_span(w, (struct vc_span){ VC_PHASE_FORWARD, s.iteration, s.micro, event_of(w, at),
					  event_of(w, back) }, err);
	if (r == VC_OK)
		r = add_span(w,
			     (struct vc_span){ VC_PHASE_BACKWARD, s.iteration, s.micro,
					      event_of(w, back), event_of_optimizer(w, opt, end) },
			     err);
	if (r == VC_OK && last)
		r = add_span(w,
			     (struct vc_span){ VC_PHASE_OPTIMIZER, s.iteration, s.micro,
					      event_of_optimizer(w, opt, end), event_of(w, end) },
			     err);
	return r;
}

/* Forward and backward of each micro-batch, then the optimizer. */
static int cut(struct vc_anatomy_work *w, uint32_t iteration, size_t from, size_t end,
	       struct vc_error *err)
{
	size_t start[MICROS], n = micro_starts(w, from, end, start), at = from;
	int r = VC_OK;

	/* Nothing of a backward pass before it: no micro-batch. */
	if (n && backward_start(w, from, start[0]) >= start[0])
		n = 0;
	if (!n && w->named)
		n = vc_pass_starts(w, from, end, start, MICROS);
	for (uint32_t micro = 0; r == VC_OK && micro <= n; micro++) {
		size_t next = micro < n ? start[micro] : end;

		r = cut_one(w,
			    (struct vc_span){ .iteration = iteration, .micro = micro, .first = at },
			    next, micro == n, err);
		at = next;
	}
	if (n + 1 > w->a->micro)
		w->a->micro = (uint32_t)n + 1;
	return r;
}

static int phases(struct vc_anatomy_work *w, struct vc_error *err)
{
	struct vc_anatomy *a = w->a;
	int r = add_span(w, (struct vc_span){ VC_PHASE_INIT, UINT32_MAX, 0, 0,
					      w->starts ? event_of(w, w->start[0]) : w->n }, err);

	for (size_t k = 0; r == VC_OK && k < w->starts; k++) {
		size_t from = w->start[k], next = k + 1 < w->starts ? w->start[k + 1] : w->end,
		       end = next;

		/* Longer than it should be: something else ran after it. */
		if (w->named)
			end = vc_named_end(w, from, next);
		else if (end - from > w->lag + w->lag / 16 &&
			 !(k == 0 && w->starts > 1 && end - from < 2 * w->lag))
			end = from + w->lag;
		r = cut(w, a->iterations, from, end, err);
		if (r == VC_OK)
			r = add_span(
				w,
				(struct vc_span){ VC_PHASE_OTHER, UINT32_MAX, 0, event_of(w, end),
						 k + 1 < w->starts ? event_of(w, next) : w->n },
				err);
		a->iterations++;
	}
	return r;
}

/* Adagrad makes its states when it is made, before the first step. */
static void made_early(struct vc_anatomy_work *w)
{
	for (size_t i = 0; w->starts && i < w->start[0]; i++)
		if (vc_named_role(w, i) == VC_ROLE_OPTIMIZER)
			w->a->block[i].category = VC_CAT_STATE;
}

/* Phases that are more likely wrong than not are worse than none. */
static void forget(struct vc_anatomy *a)
{
	for (size_t i = 0; i < a->n; i++) {
		a->block[i].iteration = UINT32_MAX;
		a->block[i].category = VC_CAT_UNKNOWN;
		a->block[i].span = 0;
	}
	if (a->spans)
		a->span[0] = (struct vc_span){ VC_PHASE_INIT, UINT32_MAX, 0, 0,
					      a->span[a->spans - 1].end };
	a->spans = a->spans > 0;
	a->iterations = a->micro = 0;
	a->confidence = 0;
	a->from = NULL;
	a->parameters = a->gradients = a->states = 0;
}

int vc_anatomy_read(struct vc_anatomy *a, const struct vc_event *ev, size_t n, uint16_t device,
		    const struct vc_meta *meta, struct vc_error *err)
{
	struct vc_anatomy_work w = { .a = a, .ev = ev, .n = n, .meta = meta, .device = device };

	*a = (struct vc_anatomy){ 0 };
	int r = read_blocks(&w, device, err);

	w.end = a->n;
	if (r == VC_OK)
		r = vc_named_roles(&w, err);
	if (r == VC_OK)
		r = vc_named_iterations(&w, err);
	if (r == VC_OK)
		r = marks_or_names(&w, err);
	if (r == VC_OK && !w.starts) {
		vc_period_lag(&w, err);
		if (w.lag) {
			a->from = "pattern";
			r = vc_period_boundaries(&w, err);
			skip_others(&w);
			a->confidence *= regular(&w);
		}
	}
	if (r == VC_OK)
		r = phases(&w, err);
	if (r == VC_OK)
		made_early(&w);
	if (r == VC_OK)
		vc_purposes(a);
	/* More than a gradient for each parameter: what repeats is something else, the layers of
	 * one inference say; with names or marks it cannot be. */
	if (r == VC_OK && a->from && !strcmp(a->from, "pattern") &&
	    a->gradients > a->parameters / 2 * 5)
		a->confidence *= 0.3;
	if (r == VC_OK && a->from && !strcmp(a->from, "pattern") && a->confidence < VC_ANATOMY_SURE)
		forget(a);
	VC_FREE(w.token, w.before, w.role, w.start);
	if (r < 0)
		vc_anatomy_fini(a);
	return r;
}

void vc_anatomy_fini(struct vc_anatomy *a)
{
	if (a->lent) {
		vc_memo_put(a->lent);
	} else {
		VC_FREE(a->block, a->span);
	}
	*a = (struct vc_anatomy){ 0 };
}

const char *vc_phase_name(enum vc_phase p)
{
	static const char *const name[] = { "init", "forward", "backward", "optimizer", "other" };

	return name[p];
}

const char *vc_category_name(enum vc_category c)
{
	static const char *const name[] = { "unknown", "parameter", "gradient", "optimizer state",
		"activation", "workspace", "forward temporary", "backward temporary",
		"optimizer temporary", "other temporary" };

	return name[c];
}
