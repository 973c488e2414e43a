/* SPDX-License-Identifier: Apache-2.0 */
/* budget_splice.c - the recording that a choice would leave, from recordings of runs in which all
 * units were done the same way.
 *
 * Marks cut each run into the same parts. One of a unit comes from the run in which all were
 * done as it is now, every other one from the run in which all were kept. Blocks of two runs are
 * the same where a part asks for the same ones in the same order; in a backward pass, which may
 * compute something again, those that outlive the part and end alike. A block goes when the last
 * who needs it lets go: in each run that is seen of one of them, so of all runs the latest of those
 * counts that happens in a part which is taken from that run. */
#include "simulator/search/budget.h"

#include "common/vec.h"

#define NONE SIZE_MAX
#define NEVER UINT32_MAX

struct cut { size_t from; char what; size_t unit; }; /* a part begins at that event */
struct end { uint32_t cut; size_t event; };          /* where a block is freed */

struct run {
	const struct vc_trace *t;
	uint16_t device;
	struct cut *cut; size_t cuts;
	uint64_t *same;         /* the block of the spliced run, by id */
	struct end *end;        /* by id */
};

struct splice {
	const struct vc_budget *b;
	const uint8_t *how;
	struct run run[VC_BUDGET_WAYS];
	bool used[VC_BUDGET_WAYS];
	uint64_t next;          /* block of the spliced run */
	uint64_t *id[VC_BUDGET_WAYS]; /* of a run, by block */
	struct end *goes;       /* by block: event NONE: at the end of the part */
	bool *live;
	struct late { uint64_t *at; size_t n; } *late; /* by part: what goes at its end */
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

static int follow(struct run *r, struct vc_error *err)
{
	size_t ids = r->t->meta->max_id + 1;

	VC_TRY(cut(r, err));
	r->same = calloc(ids, sizeof(*r->same));
	r->end = calloc(ids, sizeof(*r->end));
	VC_HAVE(r->same && r->end, "the blocks of a run", err);
	for (size_t i = 0; i < ids; i++)
		r->end[i] = (struct end){ NEVER, NONE };
	for (size_t k = 0; k < r->cuts; k++)
		for (size_t i = r->cut[k].from; i < cut_end(r, k); i++) {
			const struct vc_event *e = &r->t->ev[i];

			if (is_block(r, e) && e->kind == VC_EV_FREE)
				r->end[e->id] = (struct end){ (uint32_t)k, i };
		}
	return VC_OK;
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

/* Where the block goes that part k of that run asks for. */
static struct end goes(const struct splice *s, size_t way, size_t k, uint64_t block)
{
	struct end own = s->run[way].end[s->id[way][block]];
	uint32_t last = k;

	if (own.cut == k)
		return own;
	for (size_t x = 0; x < VC_BUDGET_WAYS; x++) {
		uint64_t id = s->used[x] ? s->id[x][block] : 0;

		if (!id || holder_of(s, s->run[x].end[id].cut) != x || s->run[x].end[id].cut <= k ||
		    s->run[x].end[id].cut < last)
			continue;
		last = s->run[x].end[id].cut;
	}
	last = last == k ? own.cut : last;
	const struct run *r = &s->run[way_of(s, last)];
	uint64_t id = s->id[way_of(s, last)][block];
	return id && r->end[id].cut == last ? r->end[id] : (struct end){ last, NONE };
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

static int put_alloc(struct splice *s, size_t way, size_t k, const struct vc_event *e,
		     struct vc_error *err)
{
	uint64_t block = s->run[way].same[e->id];
	struct end last = goes(s, way, k, block);

	s->goes[block] = last;
	s->live[block] = true;
	if (last.event == NONE && last.cut != NEVER) {
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

static int put_all(struct splice *s, struct vc_error *err)
{
	for (size_t k = 0; k < s->run[0].cuts; k++) {
		size_t way = way_of(s, k), to = cut_end(&s->run[way], k);
		size_t from = s->run[way].cut[k].from;

		s->before = from < s->run[way].t->n ? s->run[way].t->ev[from].time_ns : 0;
		for (size_t i = from; i < to; i++)
			VC_TRY(put_event(s, way, k, i, err));
		for (size_t i = 0; i < s->late[k].n; i++) {
			struct vc_event e = { .kind = VC_EV_FREE, .device = s->run[0].device,
					      .time_ns = s->before };

			VC_TRY(put(s, &e, s->late[k].at[i], err));
			s->live[s->late[k].at[i]] = false;
		}
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
		VC_FREE(s.run[way].cut, s.run[way].same, s.run[way].end, s.id[way]);
	VC_FREE(s.goes, s.live, s.late);
	return r;
}
