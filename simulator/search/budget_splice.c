/* SPDX-License-Identifier: Apache-2.0 */
/* budget_splice.c - the recording that a choice would leave, from recordings of runs in which all
 * units were done the same way.
 *
 * Marks cut each run into the same parts. One of a unit comes from the run in which all were
 * done as it is now, every other one from the run in which all were kept. Blocks of two runs are
 * the same where a part asks for the same ones in the same order; in a backward pass, which may
 * compute something again, those that outlive the part and end alike. A block goes when the last
 * who needs it lets go: in each run that is seen of one of them, so of all runs the latest of those
 * counts that happens in a part which is taken from that run. Marks tell of those that let go
 * earlier. */
#include "simulator/search/budget.h"

#include "common/map.h"
#include "common/vec.h"

#define NONE SIZE_MAX
#define NEVER UINT32_MAX

struct cut { size_t from; char what; size_t unit; }; /* a part begins at that event */
/* Where a block is freed: at an event of the part, or (NONE) behind so many requests in it. */
struct end { uint32_t cut; size_t event, asked; };
/* A unit needs a block no longer. */
struct drop { uint64_t id; size_t unit; struct end at; };

struct run {
	const struct vc_trace *t;
	uint16_t device;
	struct cut *cut; size_t cuts;
	uint64_t *same;         /* the block of the spliced run, by id */
	struct end *end;        /* by id */
	struct drop *drop; size_t drops; /* in the order of ids */
};

struct splice {
	const struct vc_budget *b;
	const uint8_t *how;
	struct run run[VC_BUDGET_WAYS];
	bool used[VC_BUDGET_WAYS];
	uint64_t next;          /* block of the spliced run */
	uint64_t *id[VC_BUDGET_WAYS]; /* of a run, by block */
	struct end *goes;       /* by block */
	bool *live;
	size_t looked[VC_BUDGET_WAYS]; /* events of a run up to there, for what it asked for once */
	struct late { uint64_t *at; size_t n; } *late; /* by part: what goes at no event of it */
	struct vc_trace *out;
	uint64_t now, before;   /* times, of the spliced run and of the one it comes from */
};

/* ---- parts ---- */

static int cut(struct run *r, struct vc_error *err)
{
	const struct vc_meta *m = r->t->meta;

	r->cut = calloc(1, sizeof(*r->cut));
	VC_HAVE(r->cut, "the marks of a run", err);
	r->cut[r->cuts++] = (struct cut){ .unit = NONE };
	for (size_t i = 0; i < r->t->n; i++) {
		const struct vc_event *e = &r->t->ev[i];
		unsigned long long unit;
		char what;

		if (e->kind != VC_EV_MARK || e->label >= m->strings ||
		    sscanf(m->string[e->label], "budget %c %llu", &what, &unit) != 2)
			continue;
		VC_HAVE(vc_vec_one(r->cut, r->cuts), "the marks of a run", err);
		r->cut[r->cuts++] = (struct cut){ i, what, what == 'E' ? NONE : (size_t)unit };
	}
	return VC_OK;
}

static bool is_cut_alike(const struct run *x, const struct run *y)
{
	bool same = x->cuts == y->cuts;

	for (size_t k = 0; same && k < x->cuts; k++)
		same = x->cut[k].what == y->cut[k].what && x->cut[k].unit == y->cut[k].unit;
	return same;
}

static size_t cut_end(const struct run *r, size_t k)
{
	return k + 1 < r->cuts ? r->cut[k + 1].from : r->t->n;
}

static bool is_block(const struct run *r, const struct vc_event *e)
{
	return e->device == r->device && e->id && e->id <= r->t->meta->max_id;
}

VC_COMPARE(by_block, struct drop, VC_ORDER(x->id, y->id))

/* at: blocks by their addresses */
static int follow_event(struct run *r, size_t i, struct end here, struct vc_map *at,
			struct vc_error *err)
{
	const struct vc_event *e = &r->t->ev[i];
	unsigned long long unit, addr;
	uint64_t *id;

	if (is_block(r, e) && e->kind == VC_EV_FREE)
		r->end[e->id] = here;
	if (is_block(r, e) && e->kind == VC_EV_ALLOC)
		VC_HAVE(vc_map_put(at, e->addr, e->id), "the blocks of a run", err);
	if (e->kind != VC_EV_MARK || e->label >= r->t->meta->strings ||
	    sscanf(r->t->meta->string[e->label], "budget drops %llu %llu", &unit, &addr) != 2 ||
	    !(id = vc_map_get(at, addr)))
		return VC_OK;
	VC_HAVE(vc_vec_one(r->drop, r->drops), "what modules keep", err);
	r->drop[r->drops++] = (struct drop){ *id, unit, here };
	return VC_OK;
}

static int follow(struct run *r, struct vc_error *err)
{
	size_t ids = r->t->meta->max_id + 1;
	struct vc_map at = { 0 };
	int code = VC_OK;

	VC_TRY(cut(r, err));
	r->same = calloc(ids, sizeof(*r->same));
	r->end = calloc(ids, sizeof(*r->end));
	VC_HAVE(r->same && r->end, "the blocks of a run", err);
	for (size_t i = 0; i < ids; i++)
		r->end[i] = (struct end){ NEVER, NONE, NONE };
	for (size_t k = 0; k < r->cuts; k++)
		for (size_t i = r->cut[k].from, asked = 0; !code && i < cut_end(r, k); i++) {
			code = follow_event(r, i, (struct end){ (uint32_t)k, i, asked }, &at, err);
			asked += is_block(r, &r->t->ev[i]) && r->t->ev[i].kind == VC_EV_ALLOC;
		}
	if (r->drops)
		vc_sort(r->drop, r->drops, sizeof(*r->drop), by_block);
	vc_map_fini(&at);
	return code;
}

/* ---- which blocks are the same ---- */

/* The next request from event *i on, of a block that outlives the part where only those count.
 */
static const struct vc_event *next_block(const struct run *r, size_t k, bool outlives, size_t *i)
{
	for (; *i < cut_end(r, k); (*i)++) {
		const struct vc_event *e = &r->t->ev[*i];

		if (e->kind == VC_EV_ALLOC && is_block(r, e) &&
		    (!outlives || r->end[e->id].cut > k))
			return e;
	}
	return NULL;
}

static bool asks_the_same(const struct run *x, const struct run *y, size_t k)
{
	size_t i = x->cut[k].from, j = y->cut[k].from;

	while (true) {
		const struct vc_event *a = next_block(x, k, false, &i);
		const struct vc_event *b = next_block(y, k, false, &j);

		if (!a || !b)
			return !a && !b;
		if (a->size != b->size)
			return false;
		i++;
		j++;
	}
}

static void match(const struct run *kept, struct run *r, size_t k)
{
	bool outlives = !asks_the_same(kept, r, k);
	size_t j = r->cut[k].from;

	for (size_t i = kept->cut[k].from;; i++) {
		const struct vc_event *a = next_block(kept, k, outlives, &i), *b;
		size_t at = j;

		if (!a)
			return;
		while ((b = next_block(r, k, outlives, &at)) &&
		       (b->size != a->size || (outlives && r->end[b->id].cut !=
							   kept->end[a->id].cut)))
			at++;
		if (!b)
			continue;
		r->same[b->id] = kept->same[a->id];
		j = at + 1;
	}
}

static void number(struct splice *s, struct run *r)
{
	for (size_t i = 0; i < r->t->n; i++) {
		const struct vc_event *e = &r->t->ev[i];

		if (e->kind == VC_EV_ALLOC && is_block(r, e) && !r->same[e->id])
			r->same[e->id] = ++s->next;
	}
}

static int index_blocks(struct splice *s, struct vc_error *err)
{
	for (size_t way = 0; way < VC_BUDGET_WAYS; way++) {
		struct run *r = &s->run[way];

		if (!s->used[way])
			continue;
		s->id[way] = calloc(s->next + 1, sizeof(**s->id));
		VC_HAVE(s->id[way], "the blocks of a run", err);
		for (uint64_t id = 1; id <= r->t->meta->max_id; id++)
			s->id[way][r->same[id]] = r->same[id] ? id : 0;
	}
	s->goes = calloc(s->next + 1, sizeof(*s->goes));
	s->live = calloc(s->next + 1, sizeof(*s->live));
	s->late = calloc(s->run[0].cuts, sizeof(*s->late));
	VC_HAVE(s->goes && s->live && s->late, "the blocks of a run", err);
	return VC_OK;
}

/* ---- putting it together ---- */

static size_t way_of(const struct splice *s, size_t k)
{
	size_t unit = k < s->run[0].cuts ? s->run[0].cut[k].unit : NONE;

	return unit < s->b->n ? s->how[unit] : VC_BUDGET_KEEP;
}

/* What is done with the unit by which a block is let go of in part k: what its caller no longer
 * needs goes behind its forward pass. */
static size_t holder_of(const struct splice *s, size_t k)
{
	return way_of(s, k < s->run[0].cuts && s->run[0].cut[k].what == 'E' ? k - 1 : k);
}

static bool is_later(struct end x, struct end y)
{
	return x.cut > y.cut || (x.cut == y.cut && x.event > y.event);
}

/* Where those let go of a block that are done so in the choice, as the run shows in which all are;
 * nowhere: `none`. */
static struct end goes_in(const struct splice *s, size_t way, uint64_t block, struct end none)
{
	const struct run *r = &s->run[way];
	uint64_t id = s->used[way] ? s->id[way][block] : 0;
	struct end end = id && holder_of(s, r->end[id].cut) == way ? r->end[id] : none;

	for (size_t i = id ? vc_first_from(r->drop, r->drops, id, id) : r->drops;
	     i < r->drops && r->drop[i].id == id; i++)
		if (r->drop[i].unit < s->b->n && s->how[r->drop[i].unit] == way &&
		    is_later(r->drop[i].at, end))
			end = r->drop[i].at;
	return end;
}

/* Where the last lets go of the block that part k of that run asks for. */
static struct end goes(const struct splice *s, size_t way, size_t k, uint64_t block)
{
	struct end own = s->run[way].end[s->id[way][block]], last = { (uint32_t)k, 0, NONE };
	size_t of = way;

	if (own.cut == k)
		return own;
	for (size_t x = 0; x < VC_BUDGET_WAYS; x++) {
		struct end end = goes_in(s, x, block, (struct end){ (uint32_t)k, 0, NONE });

		if (end.cut > last.cut) {
			last = end;
			of = x;
		}
	}
	last = last.cut == k ? own : last;
	if (way_of(s, last.cut) == of)
		return last;
	last.event = NONE;
	if (last.cut < s->run[0].cuts && s->run[0].cut[last.cut].what != 'E')
		last.asked = NONE; /* each run asks for something else there */
	return last;
}

static int put(struct splice *s, const struct vc_event *e, uint64_t block, struct vc_error *err)
{
	struct vc_event now = *e;

	s->now += e->time_ns > s->before ? e->time_ns - s->before : 0;
	s->before = e->time_ns;
	now.time_ns = s->now;
	now.id = block ? block : e->id;
	now.site = now.label = 0;
	now.addr = 0;
	return vc_trace_append(s->out, &now, 1, err);
}

static bool is_free(const struct splice *s, struct end end)
{
	return end.event != NONE &&
	       s->run[way_of(s, end.cut)].t->ev[end.event].kind == VC_EV_FREE;
}

static int put_alloc(struct splice *s, size_t way, size_t k, const struct vc_event *e,
		     struct vc_error *err)
{
	uint64_t block = s->run[way].same[e->id];
	struct end last = goes(s, way, k, block);

	s->goes[block] = last;
	s->live[block] = true;
	if (last.cut != NEVER && !is_free(s, last)) {
		VC_HAVE(vc_vec_one(s->late[last.cut].at, s->late[last.cut].n),
			"the blocks of a run", err);
		s->late[last.cut].at[s->late[last.cut].n++] = block;
	}
	return put(s, e, block, err);
}

static int put_event(struct splice *s, size_t way, size_t k, size_t i, struct vc_error *err)
{
	struct run *r = &s->run[way];
	const struct vc_event *e = &r->t->ev[i];
	uint64_t block = is_block(r, e) ? r->same[e->id] : 0;

	if (e->device != r->device)
		return VC_OK;
	switch (e->kind) {
	case VC_EV_ALLOC:
		return block ? put_alloc(s, way, k, e, err) : VC_OK;
	case VC_EV_FREE:
		if (!block || !s->live[block] || s->goes[block].cut != k ||
		    s->goes[block].event != i)
			return VC_OK;
		s->live[block] = false;
		return put(s, e, block, err);
	case VC_EV_FREE_DONE:
		return block && !s->live[block] ? put(s, e, block, err) : VC_OK;
	case VC_EV_USE:
		return block && s->live[block] ? put(s, e, block, err) : VC_OK;
	case VC_EV_SYNC:
	case VC_EV_TRIM:
		return put(s, e, 0, err);
	default:
		return VC_OK;
	}
}

/* What goes at that event of part k or behind so many requests in it; NONE: at its end. */
static int put_late(struct splice *s, size_t k, size_t event, size_t asked, struct vc_error *err)
{
	struct late *late = &s->late[k];

	for (size_t i = 0; i < late->n; i++) {
		struct vc_event e = { .kind = VC_EV_FREE, .device = s->run[0].device,
				      .time_ns = s->before };
		const struct end *end = &s->goes[late->at[i]];
		bool now = end->event != NONE ? end->event <= event : end->asked <= asked;

		if (!s->live[late->at[i]] || !now)
			continue;
		VC_TRY(put(s, &e, late->at[i], err));
		s->live[late->at[i]] = false;
	}
	return VC_OK;
}

/* What a library asks for once and never gives back (a workspace), where it is first used, and run
 * `way` used it in an earlier part than the choice, which takes part k from it. */
static int put_once(struct splice *s, size_t way, size_t k, struct vc_error *err)
{
	const struct run *r = &s->run[way];

	for (size_t *i = &s->looked[way]; way && *i < r->cut[k].from; (*i)++) {
		struct vc_event e = r->t->ev[*i];
		uint64_t block = is_block(r, &e) && e.kind == VC_EV_ALLOC &&
				 r->end[e.id].cut == NEVER ? r->same[e.id] : 0;

		e.time_ns = s->before;
		if (block && !s->live[block] && !s->id[VC_BUDGET_KEEP][block])
			VC_TRY(put_alloc(s, way, k, &e, err));
	}
	return VC_OK;
}

static int put_all(struct splice *s, struct vc_error *err)
{
	for (size_t k = 0; k < s->run[0].cuts; k++) {
		const struct run *r = &s->run[way_of(s, k)];
		size_t from = r->cut[k].from, asked = 0;

		s->before = from < r->t->n ? r->t->ev[from].time_ns : 0;
		VC_TRY(put_once(s, way_of(s, k), k, err));
		for (size_t i = from; i < cut_end(r, k); i++) {
			if (is_block(r, &r->t->ev[i]) && r->t->ev[i].kind == VC_EV_ALLOC)
				VC_TRY(put_late(s, k, i, asked++, err));
			VC_TRY(put_event(s, way_of(s, k), k, i, err));
		}
		VC_TRY(put_late(s, k, NONE, NONE, err));
	}
	return VC_OK;
}

static int take_runs(struct splice *s, const struct vc_budget_run *run, struct vc_error *err)
{
	s->used[VC_BUDGET_KEEP] = true;
	for (size_t i = 0; i < s->b->n; i++)
		s->used[s->how[i]] = true;
	for (size_t way = 0; way < VC_BUDGET_WAYS; way++) {
		struct run *r = &s->run[way];

		if (!s->used[way])
			continue;
		r->t = run[way].t;
		r->device = run[way].device;
		VC_TRY(follow(r, err));
		if (!is_cut_alike(&s->run[0], r))
			return vc_fail(err, VC_ENOSUP, "the runs call their modules in another "
				       "order");
		for (size_t k = 0; way && k < r->cuts; k++)
			match(&s->run[0], r, k);
		number(s, r);
	}
	return VC_OK;
}

int vc_budget_splice(const struct vc_budget *b, const struct vc_budget_run *run, const uint8_t *how,
		     struct vc_trace *out, struct vc_meta *meta, struct vc_error *err)
{
	struct splice s = { .b = b, .how = how, .out = out };
	int r = take_runs(&s, run, err);

	*meta = *run[0].t->meta;
	out->meta = meta;
	if (r == VC_OK)
		r = index_blocks(&s, err);
	if (r == VC_OK)
		r = put_all(&s, err);
	meta->max_id = s.next;
	for (size_t k = 0; s.late && k < s.run[0].cuts; k++)
		free(s.late[k].at);
	for (size_t way = 0; way < VC_BUDGET_WAYS; way++)
		VC_FREE(s.run[way].cut, s.run[way].same, s.run[way].end, s.run[way].drop,
			s.id[way]);
	VC_FREE(s.goes, s.live, s.late);
	return r;
}
