/* SPDX-License-Identifier: Apache-2.0 */
/* sequence.c - see sequence.h. */
#include "simulator/packing/sequence.h"

#include "common/map.h"
#include "common/vec.h"
#include "simulator/packing/packing.h"

enum { AREA = 2 << 20, /* areas begin at multiples of 2 MiB, the page of the device */
       LEAST_REPEAT = 4, /* requests */
       STEPS = 4 /* joined to one repetition */,
       TRIES = 16 /* ends from which a repetition is looked for */ };

struct request {
	uint64_t size, died; /* died: requests before its free; UINT64_MAX: lives on */
	uint64_t before; /* its predecessor came so many requests before the repetition */
	size_t heir;     /* the request of the repetition whose place it has; 0: none */
	uint32_t stream;
	bool grows;
};

struct scope { uint64_t pool; uint32_t stream; };

struct reading {
	uint16_t device;
	struct request *at; size_t n, cap;
	struct vc_map live;      /* id -> 1 + index */
	struct vc_map elsewhere; /* id -> size, in private pools */
	struct scope *scope; size_t scopes, scope_cap;
	size_t *mark; size_t marks, mark_cap; /* requests before each mark of a step */
	uint32_t *stream; size_t streams, stream_cap; /* of the recording, in order */
	size_t emptied;          /* requests before the cache was emptied for the last time */
	uint64_t elsewhere_now;
	struct vc_planned *out;
};

static uint32_t stream_of(struct reading *r, uint32_t stream)
{
	for (uint32_t i = 0; i < r->streams; i++)
		if (r->stream[i] == stream)
			return i;
	if (!vc_vec_room(r->stream, r->stream_cap, r->streams + 1))
		return UINT32_MAX;
	r->stream[r->streams] = stream;
	return (uint32_t)r->streams++;
}

static bool in_pool(const struct reading *r, uint32_t stream)
{
	for (size_t i = 0; i < r->scopes; i++)
		if (r->scope[i].stream == VC_STREAM_ALL || r->scope[i].stream == stream)
			return true;
	return false;
}

static int born(struct reading *r, const struct vc_event *e, struct vc_error *err)
{
	uint64_t size = (e->size + VC_PLAN_UNIT - 1) / VC_PLAN_UNIT * VC_PLAN_UNIT;
	uint32_t stream;

	if (!size)
		return VC_OK;
	r->out->requests++;
	if (in_pool(r, e->stream)) {
		r->out->elsewhere++;
		r->elsewhere_now += size;
		if (r->elsewhere_now > r->out->elsewhere_peak)
			r->out->elsewhere_peak = r->elsewhere_now;
		VC_HAVE(vc_map_put(&r->elsewhere, e->id, size), "live blocks", err);
		return VC_OK;
	}
	stream = stream_of(r, e->stream);
	VC_HAVE(stream != UINT32_MAX && vc_vec_room(r->at, r->cap, r->n + 1) &&
		vc_map_put(&r->live, e->id, r->n + 1), "the requests", err);
	r->at[r->n++] = (struct request){ .size = size, .died = UINT64_MAX, .stream = stream };
	return VC_OK;
}

static void died(struct reading *r, uint64_t id)
{
	uint64_t index = vc_map_take(&r->live, id);

	if (index)
		r->at[index - 1].died = r->n;
	else
		r->elsewhere_now -= vc_map_take(&r->elsewhere, id);
}

static int scope(struct reading *r, const struct vc_event *e, struct vc_error *err)
{
	if (e->kind == VC_EV_POOL_BEGIN) {
		VC_HAVE(vc_vec_room(r->scope, r->scope_cap, r->scopes + 1), "pools", err);
		r->scope[r->scopes++] = (struct scope){ e->id, e->stream };
		return VC_OK;
	}
	for (size_t i = r->scopes; i-- > 0;)
		if (r->scope[i].pool == e->id) {
			r->scope[i] = r->scope[--r->scopes];
			break;
		}
	return VC_OK;
}

static int add(struct reading *r, const struct vc_event *e, struct vc_error *err)
{
	switch (e->kind) {
	case VC_EV_HEAP_BLOCK:
		if (e->flags & VC_EVF_FINAL || !(e->flags & VC_EVF_LIVE) || !e->id)
			return VC_OK;
		r->out->at_start++;
		return born(r, e, err);
	case VC_EV_ALLOC:
		return born(r, e, err);
	case VC_EV_FREE:
		if (!(e->flags & VC_EVF_PENDING))
			died(r, e->id);
		return VC_OK;
	case VC_EV_FREE_DONE:
		died(r, e->id);
		return VC_OK;
	case VC_EV_POOL_BEGIN:
	case VC_EV_POOL_END:
		return scope(r, e, err);
	case VC_EV_TRIM:
		r->emptied = r->n;
		return VC_OK;
	case VC_EV_MARK:
		if (e->flags != VC_MARK_STEP)
			return VC_OK;
		VC_HAVE(vc_vec_room(r->mark, r->mark_cap, r->marks + 1), "marks", err);
		r->mark[r->marks++] = r->n;
		return VC_OK;
	default:
		return VC_OK;
	}
}

/* ---- what repeats ---- */

static bool same(const struct reading *r, size_t a, size_t b)
{
	return r->at[a].size == r->at[b].size && r->at[a].stream == r->at[b].stream;
}

/* The stretch in front of `end` that stands there at least twice and, repeated, reaches back the
 * farthest; 0: none. (Loops inside a step repeat, too, but not for long.) The Z function of the
 * requests read backwards. */
static size_t repeats_at(const struct reading *r, size_t end, size_t *z)
{
	size_t left = 0, right = 0, best = 0;

	for (size_t i = 1; 2 * i <= end; i++) {
		z[i] = i < right ? (z[i - left] < right - i ? z[i - left] : right - i) : 0;
		while (i + z[i] < end && same(r, end - 1 - z[i], end - 1 - i - z[i]))
			z[i]++;
		if (i + z[i] > right) {
			left = i;
			right = i + z[i];
		}
		if (z[i] >= i && i >= LEAST_REPEAT && (!best || i + z[i] > best + z[best]))
			best = i;
	}
	return best;
}

/* Bytes of the requests in the repetition whose blocks outlive it. */
static uint64_t outliving(const struct reading *r, size_t first, size_t length)
{
	uint64_t bytes = 0;

	for (size_t i = first; i < first + length; i++)
		bytes += r->at[i].died > i + length ? r->at[i].size : 0;
	return bytes;
}

/* A batch often lives until the next one is there, so both need a place: of a few steps together
 * the fewest in which no block meets its own successor. */
static void join_steps(const struct reading *r, struct vc_memory_plan *p, size_t end)
{
	size_t length = p->last - p->first, best = length;

	for (size_t n = 2; length && n <= STEPS && p->first + n * length <= end; n++)
		if (outliving(r, p->first, n * length) * best <
		    outliving(r, p->first, best) * n * length)
			best = n * length;
	p->last = p->first + best;
}

/* A block from before the repetition that dies in it is the predecessor of one that lives over its
 * end and dies at the same request: it has the same place. Else both would need one. */
static void find_heirs(struct reading *r, const struct vc_memory_plan *p)
{
	size_t length = p->last - p->first, from = 0;

	for (size_t i = p->first; i < p->last; i++) {
		const struct request *q = &r->at[i];

		if (q->died <= p->last || q->died > i + length)
			continue;
		while (from < p->first && (r->at[from].died <= p->first ||
					   r->at[from].died > p->last || r->at[from].heir))
			from++;
		for (size_t k = from; k < p->first; k++)
			if (!r->at[k].heir && same(r, k, i) && r->at[k].died == q->died - length) {
				r->at[k].heir = i;
				r->at[i].before = p->first - k;
				break;
			}
	}
}

/* Of those at the end and in front of the last marks the one that covers most requests. */
static int find_repeat(struct reading *r, struct vc_memory_plan *p, struct vc_error *err)
{
	size_t *z = calloc(r->n + 1, sizeof(*z)), best = 0, until = 0;

	VC_HAVE(z, "the repetition", err);
	p->first = p->last = 0;
	for (size_t k = 0; k < TRIES && k <= r->marks; k++) {
		size_t end = k ? r->mark[r->marks - k] : r->n;
		size_t length = repeats_at(r, end, z);
		size_t first = length ? end - length - z[length] : end;

		if (length && end - first > best) {
			best = end - first;
			until = end;
			p->first = first;
			p->last = first + length;
		}
	}
	free(z);
	if (best * 4 < r->n) /* a loop somewhere, not the run */
		p->first = p->last = 0;
	join_steps(r, p, until);
	find_heirs(r, p);
	return VC_OK;
}

/* ---- placing ---- */

static struct vc_pack_block life_of(struct reading *r, size_t i, const struct vc_memory_plan *p,
				    size_t last)
{
	struct request *q = &r->at[i];
	struct vc_pack_block b = { .lower = i, .upper = q->died, .size = q->size };
	size_t length = p->last - p->first;

	if (q->died <= last)
		return b;
	b.upper = last;
	if (!length || i < p->first)
		return b;
	q->grows = q->died > i + length;
	b.upper = q->died - length;
	b.before = q->before;
	return b;
}

/* The program empties its cache behind the last request of that stream: a warm-up on a stream of
 * its own before a graph is captured, for one. The requests before that; 0: it does not. */
static size_t emptied_after(const struct reading *r, uint32_t stream)
{
	size_t i = r->n;

	while (i && r->at[i - 1].stream != stream)
		i--;
	return r->emptied >= i ? r->emptied : 0;
}

static void collect(struct reading *r, uint32_t stream, struct vc_packing *k, uint32_t *index)
{
	const struct vc_memory_plan *p = &r->out->plan;

	k->n = 0;
	k->begin = p->first;
	k->end = p->last;
	for (size_t i = 0; i < p->n; i++) {
		struct vc_pack_block b;

		if (r->at[i].stream != stream || r->at[i].heir)
			continue;
		b = life_of(r, i, p, p->n);
		if (r->at[i].grows)
			continue;
		k->block[k->n] = b;
		index[k->n++] = (uint32_t)i;
	}
}

/* What then stays lies below all else, so that the rest of the area can be given back. Its bytes.
 */
static uint64_t put_below(const struct reading *r, uint64_t at, size_t emptied,
			  struct vc_packing *k, uint32_t *index)
{
	struct vc_memory_plan *p = &r->out->plan;
	uint64_t bytes = 0;
	size_t n = 0;

	for (size_t i = 0; i < k->n; i++)
		if (r->at[index[i]].died > emptied) {
			p->request[index[i]].offset = at + bytes;
			bytes += k->block[i].size;
		} else {
			k->block[n] = k->block[i];
			index[n++] = index[i];
		}
	k->n = n;
	return bytes;
}

static int pack_area(struct reading *r, uint32_t stream, uint64_t effort, struct vc_packing *k,
		     uint32_t *index, struct vc_error *err)
{
	struct vc_memory_plan *p = &r->out->plan;
	struct vc_plan_area *area = &p->area[stream];
	size_t emptied = emptied_after(r, stream);
	uint64_t below = 0, bound;

	collect(r, stream, k, index);
	VC_TRY(vc_pack_bound(k, err));
	bound = k->bound;
	if (emptied)
		below = put_below(r, area->at, emptied, k, index);
	VC_TRY(vc_pack(k, effort, err));
	for (size_t i = 0; i < k->n; i++)
		p->request[index[i]].offset = area->at + below + k->block[i].offset;
	for (size_t i = 0; i < p->first; i++)
		if (r->at[i].stream == stream && r->at[i].heir)
			p->request[i].offset = p->request[r->at[i].heir].offset;
	*area = (struct vc_plan_area){ area->at, (below + k->height + AREA - 1) / AREA * AREA,
				       bound, k->n ? below : 0 };
	r->out->proven = r->out->proven && (below ? below + k->height == bound : k->proven);
	r->out->bounds += bound;
	return VC_OK;
}

/* One arena for all: what lives together, whatever the stream. */
static int bound_of_all(struct reading *r, struct vc_packing *k, struct vc_error *err)
{
	const struct vc_memory_plan *p = &r->out->plan;

	k->n = 0;
	for (size_t i = 0; i < p->n; i++)
		if (!r->at[i].grows && !r->at[i].heir)
			k->block[k->n++] = life_of(r, i, p, p->n);
	VC_TRY(vc_pack_bound(k, err));
	r->out->bound = k->bound;
	return VC_OK;
}

static int place(struct reading *r, uint64_t effort, struct vc_packing *k, uint32_t *index,
		 struct vc_error *err)
{
	struct vc_memory_plan *p = &r->out->plan;
	uint64_t largest = 0;

	for (size_t i = 0; i < p->n; i++)
		p->request[i] = (struct vc_plan_request){ r->at[i].size, VC_PLAN_NOWHERE,
							  r->at[i].stream };
	r->out->proven = true;
	r->out->how = "nothing to place";
	for (uint32_t s = 0; s < p->areas; s++) {
		p->area[s].at = p->arena;
		VC_TRY(pack_area(r, s, effort, k, index, err));
		p->arena += p->area[s].size;
		if (k->height > largest) {
			largest = k->height;
			r->out->how = k->how;
		}
	}
	for (size_t i = 0; i < p->n; i++)
		if (r->at[i].grows) {
			r->out->growing++;
			r->out->growing_bytes += r->at[i].size;
		}
	return bound_of_all(r, k, err);
}

static int make_plan(struct reading *r, uint64_t effort, struct vc_error *err)
{
	struct vc_memory_plan *p = &r->out->plan;
	struct vc_packing k = { .block = calloc(r->n + 1, sizeof(*k.block)) };
	uint32_t *index = calloc(r->n + 1, sizeof(*index));
	int rc;

	p->n = r->n;
	p->areas = r->streams;
	p->request = calloc(r->n + 1, sizeof(*p->request));
	p->area = calloc(r->streams + 1, sizeof(*p->area));
	rc = k.block && index && p->request && p->area ? find_repeat(r, p, err) :
							  vc_nomem(err, "the plan");
	if (rc == VC_OK && p->last)
		p->n = p->last;
	if (rc == VC_OK)
		rc = place(r, effort, &k, index, err);
	VC_FREE(k.block, index);
	return rc;
}

int vc_sequence_plan(const struct vc_trace *t, uint16_t device, uint64_t effort,
		     struct vc_planned *out, struct vc_error *err)
{
	struct reading r = { .device = device, .out = out };
	int rc = VC_OK;

	*out = (struct vc_planned){ 0 };
	for (size_t i = 0; i < t->n && rc == VC_OK; i++)
		if (t->ev[i].device == device)
			rc = add(&r, &t->ev[i], err);
	if (rc == VC_OK)
		rc = make_plan(&r, effort, err);
	vc_map_fini(&r.live);
	vc_map_fini(&r.elsewhere);
	VC_FREE(r.at, r.scope, r.mark, r.stream);
	if (rc < 0)
		vc_planned_fini(out);
	return rc;
}

void vc_planned_fini(struct vc_planned *p)
{
	vc_memory_plan_fini(&p->plan);
}
