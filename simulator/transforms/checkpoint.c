/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint.c - what-if: activation checkpointing. Segments are layers of the forward pass
 * (simulator/anatomy/layers.h); what a segment keeps for its backward pass is given back as soon as
 * it was used, but for its output, and asked for again in the same order just before the segment's
 * backward pass begins. */

#include "common/vec.h"
#include "simulator/replay/transform.h"
#include "simulator/rewrite/copies.h"
#include "simulator/rewrite/releases.h"
#include "simulator/anatomy/layers.h"

enum { USED = 8, USED_WIDE = 2 }; /* allocations until a block has been used; chosen of 1 to 8 */
enum { HANDED = 4 };              /* segments that are over and may still hand something on */
enum bound { BEST, LOW, HIGH };
struct config {
	struct vc_choice which;
	uint64_t least, bound;
	bool all;
	char module[VC_PARAM_TEXT], seen[VC_PARAM_TEXT];
};

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "every", VC_P_UINT, AT(which.every), "1", "layers per checkpointed segment", NULL },
	{ "stride", VC_P_UINT, AT(which.stride), "1",
	  "selective: only each so-many-th layer, the others keep theirs", NULL },
	{ "least", VC_P_SIZE, AT(least), "0", "selective: keep blocks smaller than this", NULL },
	{ "module", VC_P_TEXT, AT(module), "",
	  "only layers whose function is there: part of FILE:LINE, see info", NULL },
	{ "first", VC_P_UINT, AT(which.first), "0", "leave out so many layers at the beginning",
	  NULL },
	{ "count", VC_P_UINT, AT(which.count), "0", "checkpoint so many layers (0: all)", NULL },
	{ "layers", VC_P_TEXT, AT(which.list), "",
	  "these alone: 0/2..5/8-11 are 0 and 2 to 5 one by one, 8 to 11 together", NULL },
	{ "all", VC_P_BOOL, AT(all), "false",
	  "layers of every kind, not those alone that hand on one shape", NULL },
	{ "seen", VC_P_TEXT, AT(seen), "",
	  "a recording of the same run with all layers computed twice, which shows when blocks go",
	  NULL },
	{ "last", VC_P_BOOL, AT(which.last), "true", "checkpoint the last segment too", NULL },
	{ "bound", VC_P_ENUM, AT(bound), "best",
	  "low: layers of every kind; high: none, where it is not sure what the layers are",
	  "best,low,high" },
	VC_PARAM_END };

static const char *unmade(const void *config)
{
	const struct config *c = config;

	return c->all || c->least || c->module[0] || c->seen[0] ?
		       "only whole layers of the stack can be chosen from outside" : NULL;
}

static int checkpoint_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;
	int r = vc_choice_check(&c->which, err);

	return r < 0 ? vc_wrap(err, "checkpoint") : r;
}

/* A stretch of one forward pass: blocks [from, to); its recomputation comes before event `again`.
 */
struct segment {
	size_t from, to, end_event, again;
	uint64_t output;
	uint64_t result; /* what it hands on, if nothing but the next segment's recomputation
			  * needs it so long: until this segment's own; 0: none */
	uint64_t held;   /* that block, once the recording gave it back */
	size_t first, n; /* its recomputation, of those that were seen; n = 0: it was not */
};

/* What was seen of the recomputation of one layer. */
struct look { size_t first, n; };

struct plan {
	struct vc_clone *c;
	const struct config *cfg;
	struct segment *at;
	size_t n;
	uint64_t saved, layers;
	size_t found;              /* layers that the forward passes have, whatever is asked for */
	size_t most;               /* of one pass, those to choose from */
	uint64_t *held;            /* by block: it, where the input of a layer holds it */
	struct copy { size_t block; uint64_t id; } *copy; /* by what was asked for again there */
	struct vc_releases seen;   /* of `seen`; n = 0: nobody says when blocks go */
};

/* What block b is known to do; VC_RELEASE_UNKNOWN: nothing. */
static uint32_t release_of(const struct plan *p, const struct vc_block_life *b)
{
	return p->seen.n ? p->seen.until[b - p->c->a.block] : VC_RELEASE_UNKNOWN;
}

static int push(struct plan *p, struct segment s, struct vc_error *err)
{
	if (!(p->n & (p->n - 1))) {
		struct segment *at = realloc(p->at, (p->n ? 2 * p->n : 1) * sizeof(*at));
		VC_HAVE(at, "checkpointed segments", err);
		p->at = at;
	}
	p->at[p->n++] = s;
	return VC_OK;
}

/* The event at which the backward pass of a segment begins: when the first operation whose saved
 * tensors are the segment's asks for memory, just behind what was given back before. */
static size_t begins(const struct plan *p, size_t forward, size_t death)
{
	const struct vc_anatomy *a = &p->c->a;
	size_t at = death;

	for (size_t i = death; i-- > a->span[forward + 1].first;) {
		const struct vc_event *e = &p->c->w->in[i];
		const struct vc_block_life *b = e->kind == VC_EV_ALLOC || e->kind == VC_EV_FREE ?
						vc_clone_block(p->c, e->id) : NULL;

		if (b && e->kind == VC_EV_FREE && b->event < a->span[forward].end)
			break;
		at = b && e->kind == VC_EV_ALLOC ? i : at;
	}
	return at;
}

/* Segment of layers [y, z): ends where the next allocation behind it is. */
static int add_segment(struct plan *p, const struct vc_layer *y, const struct vc_layer *z,
		       size_t forward, const struct look *look, struct vc_error *err)
{
	const struct vc_anatomy *a = &p->c->a;
	struct vc_layer all = { .from = y->from, .to = z[-1].to };
	struct segment s = { .from = all.from,
			    .to = all.to, .again = SIZE_MAX,
			    .end_event = all.to < a->n ? a->block[all.to].event :
							 a->span[forward].end };
	size_t output = vc_layers_output(&all, a, forward);

	if (s.end_event > a->span[forward].end)
		s.end_event = a->span[forward].end;
	s.output = output == SIZE_MAX ? 0 : a->block[output].id;
	size_t result = output == SIZE_MAX ? vc_layers_result(&all, a, forward) : SIZE_MAX;

	s.result = result == SIZE_MAX || p->cfg->which.stride > 1 ||
		   release_of(p, &a->block[result]) != VC_RELEASE_UNKNOWN ? 0 :
		   a->block[result].id;
	for (size_t i = s.from; i < s.to; i++)
		if (i != output && vc_layers_kept(a, &a->block[i], forward) &&
		    a->block[i].died_event < s.again)
			s.again = a->block[i].died_event;
	if (s.again == SIZE_MAX)
		return VC_OK;
	s.again = begins(p, forward, s.again);
	if (z == y + 1 && look->n) {
		s.first = look->first;
		s.n = look->n;
		s.again = a->block[p->seen.again[s.first].before].event;
	}
	return push(p, s, err);
}

static bool is_at(const struct vc_meta *m, const struct vc_layer *y, const char *module)
{
	const struct vc_frame *f = y->frame && y->frame < m->frames ? &m->frame[y->frame] : NULL;
	char at[VC_PARAM_TEXT * 4];

	if (!f || f->file >= m->strings)
		return false;
	snprintf(at, sizeof(at), "%s:%u", m->string[f->file], (unsigned)f->line);
	return strstr(at, module) != NULL;
}

/* Guessed from what repeats, and most of the model is something else: they may be no layers. */
static bool unsure(const struct vc_layers *l)
{
	size_t n = 0;

	for (size_t k = 0; k < l->n; k++)
		n += l->at[k].to - l->at[k].from;
	return !l->named && 2 * n < l->model_to - l->model_from;
}

/* Those that may be asked for. */
static void choose(struct plan *p, const struct vc_meta *m, size_t forward, struct vc_layers *l)
{
	const struct config *c = p->cfg;
	size_t n = 0;

	if (l->n < 2 || (c->bound == HIGH && unsure(l)))
		l->n = 0;
	p->found += l->n;
	if (!c->all && !c->module[0] && (c->bound != LOW || c->which.list[0]))
		vc_layers_stacks(l, &p->c->a, forward);
	for (size_t k = 0; k < l->n; k++)
		if (!c->module[0] || is_at(m, &l->at[k], c->module))
			l->at[n++] = l->at[k];
	l->n = n;
	p->most = l->n > p->most ? l->n : p->most;
}

static void say(const struct plan *p, struct vc_source *s)
{
	const struct vc_anatomy *a = &p->c->a;
	size_t passes = (size_t)a->iterations * (a->micro ? a->micro : 1);

	vc_meta_note(s->meta,
		     "checkpoint: %zu segments of %llu layers per pass give back %.2f GiB until "
		     "their backward pass; their forward pass runs twice",
		     p->n / (passes ? passes : 1), (unsigned long long)p->layers,
		     (double)p->saved / (1u << 30));
}

/* Which of the recomputations that were seen are those of the layers: the last layer is computed
 * first. Each is the beginning of what the layer asks for, as far as something is needed. */
static void look_for(const struct plan *p, const struct vc_layers *l, size_t forward,
		     struct look *look)
{
	const struct vc_releases *seen = &p->seen;
	size_t r = 0;

	while (r < seen->agains && seen->again[r].span != forward)
		r++;
	for (size_t k = l->n; k-- > 0;) {
		uint64_t size = p->c->a.block[l->at[k].from].size;
		size_t run = r;

		/* where the one before ended, or where the next one begins */
		while (run < seen->agains && (seen->again[run].size != size || (run > r &&
		       seen->again[run].before == seen->again[run - 1].before)) &&
		       seen->again[run].span == forward)
			run++;
		r = run < seen->agains && seen->again[run].span == forward ? run : r;
		look[k] = (struct look){ r, 0 };
		for (size_t i = l->at[k].from; i < l->at[k].to && r < seen->agains; i++) {
			const struct vc_again *now = &seen->again[r];

			if (now->span != forward || now->before >= p->c->a.n ||
			    now->before != seen->again[look[k].first].before)
				break;
			if (now->size == p->c->a.block[i].size)
				r++;
			else if (p->c->a.block[i].category != VC_CAT_WORKSPACE)
				break;
		}
		look[k].n = r - look[k].first;
	}
}

static int plan_forward(struct plan *p, struct vc_source *src, size_t forward, struct vc_error *err)
{
	struct vc_layers l = { 0 };
	struct vc_chosen *at = NULL;
	struct look *look = NULL;
	size_t had = p->n, n = 0;
	int r = vc_whole_layers(p->c->w, src->meta, &p->c->a, forward, &l, err);

	if (r == VC_OK)
		choose(p, src->meta, forward, &l);
	at = calloc(l.n + 1, sizeof(*at));
	look = calloc(l.n + 1, sizeof(*look));
	if (r == VC_OK && (!at || !look))
		r = vc_nomem(err, "checkpointed layers");
	if (r == VC_OK) {
		n = vc_choice_of(&p->cfg->which, l.n, at);
		look_for(p, &l, forward, look);
	}
	p->layers = 0;
	for (size_t k = 0; r == VC_OK && k < n; k++) {
		p->layers += at[k].to - at[k].from;
		r = add_segment(p, &l.at[at[k].from], &l.at[at[k].to], forward,
				&look[at[k].from], err);
	}
	if (p->n > had) /* behind the last one nobody computes anything again */
		p->at[p->n - 1].result = 0;
	VC_FREE(at, look);
	vc_layers_fini(&l);
	return r;
}

/* Does something else than the backward pass of its layer hold it, the next layer above all? */
static bool handed_on(const struct plan *p, const struct segment *s, const struct vc_block_life *b)
{
	uint32_t until = release_of(p, b);

	return until == VC_RELEASE_UNKNOWN ? b->id == s->output : until == VC_RELEASE_LATER;
}

static bool dropped(const struct plan *p, const struct segment *s, const struct vc_block_life *b)
{
	return !handed_on(p, s, b) && b->size >= p->cfg->least && b->died_event >= s->end_event &&
	       b->died_event != SIZE_MAX && b->died_event >= s->again;
}

static int let_go(struct plan *p, const struct vc_block_life *b, const struct vc_event *e,
		  struct vc_error *err)
{
	VC_TRY(vc_clone_free(p->c, e, p->c->alias[b->id], err));
	p->c->alias[b->id] = 0;
	p->saved += b->iteration == (p->c->a.iterations > 1) ? b->size : 0;
	return VC_OK;
}

/* What is not kept goes as soon as the operations after it have run, not at the end of the segment:
 * nothing but the forward pass itself holds it. */
static int release(struct plan *p, const struct segment *s, size_t from, size_t to,
		   const struct vc_event *e, struct vc_error *err)
{
	for (size_t i = from; i < to; i++) {
		const struct vc_block_life *b = &p->c->a.block[i];
		if (!dropped(p, s, b) || !p->c->alias[b->id] ||
		    release_of(p, b) != VC_RELEASE_UNKNOWN)
			continue;
		VC_TRY(let_go(p, b, e, err));
	}
	return VC_OK;
}

/* The segment of a block; NULL: none. */
static const struct segment *segment_of(const struct plan *p, size_t block)
{
	size_t k = vc_first_above(p->at, p->n, to, block);

	return k < p->n && p->at[k].from <= block ? &p->at[k] : NULL;
}

/* The recording gives back a block that a layer that is computed twice keeps as its input: it goes
 * when it was seen to go. */
static void hold_seen(struct plan *p, const struct vc_event *e, size_t at)
{
	const struct vc_anatomy *a = &p->c->a;
	const struct vc_block_life *b = p->seen.n ? vc_clone_block(p->c, e->id) : NULL;
	size_t i = b ? (size_t)(b - a->block) : 0, next;

	if (!b || !p->seen.dies[i] || at >= a->block[p->seen.dies[i]].event)
		return;
	next = vc_first_above(p->at, p->n, from, i);
	if (next == p->n || a->block[p->at[next].from].event > at)
		return; /* no such layer began in between */
	p->held[i] = p->c->alias[e->id];
	p->c->alias[e->id] = 0;
}

/* Those that were seen to go before block b is asked for. */
static int release_seen(struct plan *p, const struct vc_block_life *b, const struct vc_event *e,
			bool early, struct vc_error *err)
{
	uint32_t i = p->seen.n ? p->seen.first[b - p->c->a.block] : 0;

	for (; i; i = p->seen.next[i - 1]) {
		const struct vc_block_life *y = &p->c->a.block[i - 1];
		const struct segment *s = segment_of(p, i - 1);

		if (early && !p->seen.early[i - 1])
			continue;
		VC_TRY(vc_clone_free(p->c, e, p->held[i - 1], err));
		p->held[i - 1] = 0;
		if (s && dropped(p, s, y) && p->c->alias[y->id])
			VC_TRY(let_go(p, y, e, err));
	}
	i = p->seen.n ? p->seen.last[b - p->c->a.block] : 0;
	for (; i; i = p->seen.again[i - 1].next) {
		const struct copy *y = &p->copy[i - 1];
		const struct vc_block_life *of = &p->c->a.block[y->block];

		if (early && !p->seen.again[i - 1].early)
			continue;
		if (!y->id || of->died_event <= b->event || p->c->alias[of->id] != y->id)
			continue;
		VC_TRY(vc_clone_free(p->c, e, y->id, err));
		p->c->alias[of->id] = 0;
	}
	return VC_OK;
}

/* When block b is asked for: what is larger than the layer's output (hidden values) was used by the
 * operation behind it, what the layers hand on is used longer. */
static int release_used(struct plan *p, const struct segment *s, const struct vc_block_life *b,
			const struct vc_event *e, struct vc_error *err)
{
	uint64_t output = s->output ? vc_clone_block(p->c, s->output)->size : 0;
	int r = VC_OK;

	for (uint32_t back = USED_WIDE; r == VC_OK && back <= USED && b->born >= s->from + back;
	     back++) {
		size_t i = b->born - back;

		if (back == USED || p->c->a.block[i].size > output)
			r = release(p, s, i, i + 1, e, err);
	}
	return r;
}

/* The last block that has to be there again: PyTorch stops recomputing behind it. */
static size_t last_needed(const struct plan *p, const struct segment *s)
{
	size_t last = s->from;

	for (size_t i = s->from; i < s->to; i++)
		last = dropped(p, s, &p->c->a.block[i]) ? i : last;
	return last;
}

/* Once more, forward: temporaries as they were, kept blocks anew, the output for the moment only.
 */
static int recompute(struct plan *p, const struct segment *s, struct vc_error *err)
{
	struct vc_clone *c = p->c;
	size_t first = c->a.block[s->from].event, last = last_needed(p, s);
	uint64_t *temp = calloc(s->to - s->from + 1, sizeof(*temp));
	int r = temp ? VC_OK : vc_nomem(err, "a recomputation");

	for (size_t i = first; r == VC_OK && i < s->end_event; i++) {
		const struct vc_event *e = &c->w->in[i];
		const struct vc_block_life *b = e->kind == VC_EV_ALLOC || e->kind == VC_EV_FREE ?
						vc_clone_block(c, e->id) : NULL;

		if (!b || b->born < s->from || b->born >= s->to)
			continue;
		if (b->born > last && e->kind == VC_EV_ALLOC)
			break;
		if (e->kind == VC_EV_FREE) {
			r = vc_clone_free(c, e, temp[b->born - s->from], err);
			temp[b->born - s->from] = 0;
		} else if (dropped(p, s, b)) {
			r = vc_clone_alloc(c, e, e->size, &c->alias[b->id], err);
		} else if (handed_on(p, s, b) || b->died_event < s->end_event) {
			r = vc_clone_alloc(c, e, e->size, &temp[b->born - s->from], err);
		}
	}
	for (size_t i = s->from; r == VC_OK && i < s->to; i++)
		r = vc_clone_free(c, &c->w->in[s->again], temp[i - s->from], err);
	free(temp);
	return r;
}

/* The same as it was seen. What was handed on and is saved by the layer as well comes back, too. */
static int recompute_seen(struct plan *p, const struct segment *s, struct vc_error *err)
{
	const struct vc_again *again = &p->seen.again[s->first];
	struct vc_clone *c = p->c;
	const struct vc_event *e = &c->w->in[s->again];
	const struct vc_block_life **of = calloc(s->n + 1, sizeof(*of));
	uint64_t *id = calloc(s->n + 1, sizeof(*id));
	int r = of && id ? VC_OK : vc_nomem(err, "a recomputation");

	for (size_t k = 0, i = s->from; r == VC_OK && k < s->n && i < s->to; i++) {
		if (c->a.block[i].size != again[k].size)
			continue;
		for (size_t y = 0; r == VC_OK && y < k; y++)
			if (again[y].gone == s->first + k) {
				r = vc_clone_free(c, e, id[y], err);
				id[y] = 0;
			}
		of[k] = &c->a.block[i];
		if (r == VC_OK)
			r = vc_clone_alloc(c, &c->w->in[of[k]->event], again[k].size, &id[k], err);
		k++;
	}
	for (size_t k = 0; r == VC_OK && k < s->n; k++) {
		if (!id[k])
			continue;
		if (dropped(p, s, of[k]) && !c->alias[of[k]->id]) {
			c->alias[of[k]->id] = id[k];
			p->copy[s->first + k] = (struct copy){
				(size_t)(of[k] - c->a.block), id[k] };
		} else {
			r = vc_clone_free(c, e, id[k], err);
		}
	}
	VC_FREE(of, id);
	return r;
}

/* The recording gives back what a segment that is over handed on: the next one keeps it. */
static void hold(struct plan *p, const struct vc_event *e, size_t ending)
{
	for (size_t k = ending; k > 0 && ending - k < HANDED; k--) {
		struct segment *s = &p->at[k - 1];

		if (!s->result || s->result != e->id || s->held)
			continue;
		s->held = p->c->alias[e->id];
		p->c->alias[e->id] = 0;
	}
}

/* Segment s is computed again: the one behind it is through. */
static int again(struct plan *p, struct segment *s, const struct vc_event *e, struct vc_error *err)
{
	uint64_t id = s->held;

	s->held = 0;
	VC_TRY(vc_clone_free(p->c, e, id, err));
	return s->n ? recompute_seen(p, s, err) : recompute(p, s, err);
}

static void give_back(struct plan *p, const struct vc_event *e, size_t at, size_t ending)
{
	hold(p, e, ending);
	if (p->c->alias && e->id < p->c->ids && p->c->alias[e->id])
		hold_seen(p, e, at);
}

static int walk(struct plan *p, struct vc_error *err)
{
	struct vc_whole *w = p->c->w;
	size_t ending = 0;
	int r = VC_OK;

	for (size_t i = 0; r == VC_OK && i < w->n; i++) {
		const struct vc_block_life *b = w->in[i].kind == VC_EV_ALLOC ?
						vc_clone_block(p->c, w->in[i].id) : NULL;

		if (b)
			r = release_seen(p, b, &w->in[i], true, err);
		for (; r == VC_OK && ending < p->n && p->at[ending].end_event <= i; ending++)
			r = release(p, &p->at[ending], p->at[ending].from, p->at[ending].to,
				    &w->in[i], err);
		for (size_t k = ending; r == VC_OK && k-- > 0 && ending - k < 512;)
			if (p->at[k].again == i)
				r = again(p, &p->at[k], &w->in[i], err);
		if (w->in[i].kind == VC_EV_FREE)
			give_back(p, &w->in[i], i, ending);
		if (r == VC_OK && b)
			r = release_seen(p, b, &w->in[i], false, err);
		if (r == VC_OK)
			r = vc_clone_event(p->c, &w->in[i], err);
		b = ending < p->n ? b : NULL;
		if (r == VC_OK && b && b->born < p->at[ending].to)
			r = release_used(p, &p->at[ending], b, &w->in[i], err);
	}
	return r;
}

/* Nothing to checkpoint: is it the model, or what was asked for? */
static int nothing(const struct plan *p, struct vc_error *err)
{
	const struct config *c = p->cfg;

	if (!p->found)
		return vc_fail(err, VC_EUSAGE,
			       "checkpoint: no repeating layers found in a forward pass");
	if (c->module[0])
		return vc_fail(err, VC_EUSAGE, "checkpoint: no layer is at '%s'; 'vramcast info' "
			       "lists the places of the layers, of which module= takes a part",
			       c->module);
	if (c->which.list[0]) /* those of a teacher, say */
		return vc_fail(err, VC_EUSAGE, "checkpoint: nothing of the layers %s is kept for a "
			       "backward pass", c->which.list);
	return vc_fail(err, VC_EUSAGE, "checkpoint: first, count and last leave none of the "
		       "layers over");
}

static int reaches(const struct plan *p, struct vc_error *err)
{
	const struct vc_choice *c = &p->cfg->which;

	return !c->list[0] || !p->most || vc_choice_reach(c) < p->most ? VC_OK :
	       vc_fail(err, VC_EUSAGE, "checkpoint: layers=%s, but there are %zu of them, from 0 "
		       "to %zu", c->list, p->most, p->most - 1);
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	struct vc_clone c = { 0 };
	struct plan p = { .c = &c, .cfg = s->config };
	int r = vc_clone_init(&c, s, w, err);

	if (r == VC_OK && p.cfg->seen[0])
		r = vc_releases_read(&p.seen, s, p.cfg->seen, w->same, &c.a, w->device,
				     err);
	p.copy = calloc(p.seen.agains + 1, sizeof(*p.copy));
	p.held = calloc(p.seen.n + 1, sizeof(*p.held));
	if (r == VC_OK && (!p.copy || !p.held))
		r = vc_nomem(err, "recomputations");
	for (size_t k = 0; r == VC_OK && k + 1 < c.a.spans; k++)
		if (c.a.span[k].phase == VC_PHASE_FORWARD &&
		    c.a.span[k + 1].phase == VC_PHASE_BACKWARD)
			r = plan_forward(&p, s, k, err);
	if (r == VC_OK)
		r = reaches(&p, err);
	if (r == VC_OK && !p.n && p.cfg->bound != HIGH)
		r = nothing(&p, err);
	if (r == VC_OK)
		r = walk(&p, err);
	if (r == VC_OK)
		say(&p, s);
	VC_FREE(p.at, p.copy, p.held);
	vc_releases_fini(&p.seen);
	vc_clone_fini(&c);
	return r;
}

static void step(const void *config, struct vc_step_change *c)
{
	const struct config *cfg = config;

	c->recompute = true;
	c->every_kind = cfg->all;
	c->layers = cfg->which;
}

/* Where it was seen when blocks go: docs/measurements/fit.md. */
static const struct vc_margin *margin_with(const void *config)
{
	static const struct vc_margin seen = { .down = 6, .up = 6, .layout = true },
				      guessed = { .down = 8, .up = 8, .layout = true };
	const struct config *c = config;

	return c->seen[0] ? &seen : &guessed;
}

static const struct vc_remedy remedies[] = {
	{ .cost = VC_COST_RECOMPUTE, .kind = "code", .estimate = true, .needs = VC_TRAIT_TRAINS,
	  .text = "activation checkpointing", .slower = "about a third more time per step",
	  .paste = "x = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)" },
	{ .kind = NULL } };

const struct vc_source_type vc_transform_checkpoint = {
	.name = "checkpoint",
	.summary = "activation checkpointing: recompute layers in the backward pass",
	.params = params, .config_size = sizeof(struct config),
	.margin = &(const struct vc_margin){ .down = 8, .up = 8, .layout = true },
	.margin_with = margin_with, .step = step, .remedies = remedies, .unmade = unmade,
	.open = checkpoint_open,
	VC_WHOLE(rewrite),
};
