/* SPDX-License-Identifier: Apache-2.0 */
/* ranges.c - see ranges.h. */
#include "simulator/replay/ranges.h"

#include "common/vec.h"

enum { PAGE = 2 << 20, /* ranges grow by multiples of it: 2 MiB and 20 MiB in PyTorch */
       SMALL = 1 << 20, /* kSmallSize: requests up to it are of the small pool */
       AHEAD = 16 /* events from a mapping to the request that it was for */ };

/* A range, by its first mapped run; or one that was made later. */
struct range { uint64_t at, pool; uint32_t stream; uint16_t device; bool small, later; };

struct finding {
	struct vc_trace *t;
	struct range *range; size_t n, cap;
	struct vc_error *err;
};

/* c10 reserves 9/8 of the card for each; without a card more than any has. */
static uint64_t reach(const struct finding *f, uint16_t device)
{
	const struct vc_device_info *d = vc_meta_device_known(f->t->meta, device);

	return d && d->total ? d->total + d->total / 8 : 1ull << 40;
}

static bool is_alike(const struct range *a, const struct range *b)
{
	return a->device == b->device && a->stream == b->stream && a->small == b->small;
}

/* The range of that kind in which an address lies, as far as is known; NULL: none. */
static const struct range *range_with(const struct finding *f, const struct range *x)
{
	for (size_t i = 0; i < f->n; i++)
		if (is_alike(&f->range[i], x) && f->range[i].pool == x->pool &&
		    x->at >= f->range[i].at && x->at - f->range[i].at < reach(f, x->device))
			return &f->range[i];
	return NULL;
}

static int add(struct finding *f, const struct range *x)
{
	VC_HAVE(vc_vec_room(f->range, f->cap, f->n + 1), "virtual ranges", f->err);
	f->range[f->n++] = *x;
	return VC_OK;
}

/* Says in *x for which stream and pool of sizes the pages at that event were mapped. */
static bool asked_for(const struct vc_trace *t, size_t at, struct range *x)
{
	const struct vc_event *map = &t->ev[at];

	for (size_t i = at + 1; i < t->n && i <= at + AHEAD; i++) {
		const struct vc_event *e = &t->ev[i];

		if (e->kind != VC_EV_ALLOC || e->device != map->device || !e->addr ||
		    e->addr >= map->addr + map->size || e->addr + e->size <= map->addr)
			continue;
		*x = (struct range){ .at = map->addr, .stream = e->stream, .device = e->device,
				     .small = e->size <= SMALL, .later = true };
		return true;
	}
	return false;
}

static int note(struct finding *f, uint64_t addr, uint64_t base, uint16_t device)
{
	struct vc_meta *m = f->t->meta;

	for (size_t i = 0; i < m->bases; i++)
		if (m->base[i].addr == addr && m->base[i].device == device) {
			m->base[i].base = base < m->base[i].base ? base : m->base[i].base;
			return VC_OK;
		}
	VC_HAVE(vc_vec_one(m->base, m->bases), "virtual ranges", f->err);
	m->base[m->bases++] = (struct vc_range_base){ addr, base, device };
	return VC_OK;
}

/* Pages below the first run of a range, and in no other of that kind, are its beginning: so near
 * another one would overlap it. */
static int look_at_map(struct finding *f, size_t at)
{
	const struct range *first = NULL;
	struct range x;

	if (!asked_for(f->t, at, &x))
		return VC_OK;
	for (size_t i = 0; i < f->n; i++) {
		const struct range *r = &f->range[i];

		if (is_alike(r, &x) && x.at >= r->at && x.at - r->at < reach(f, x.device))
			return VC_OK;
		if (is_alike(r, &x) && !r->later && r->at > x.at &&
		    r->at - x.at < reach(f, x.device) && (r->at - x.at) % PAGE == 0 &&
		    (!first || r->at < first->at))
			first = r;
	}
	return first ? note(f, first->at, x.at, x.device) : add(f, &x);
}

int vc_infer_ranges(struct vc_trace *t, struct vc_error *err)
{
	struct finding f = { .t = t, .err = err };
	int rc = VC_OK;

	for (size_t i = 0; i < t->n && rc == VC_OK; i++) {
		const struct vc_event *e = &t->ev[i];
		struct range x = { e->addr, e->id, e->stream, e->device,
				   e->flags & VC_EVF_SMALL, false };

		if (e->kind == VC_EV_HEAP_SEGMENT && e->flags & VC_EVF_EXPANDABLE &&
		    !(e->flags & VC_EVF_FINAL) && !range_with(&f, &x))
			rc = add(&f, &x);
		else if (e->kind == VC_EV_SEGMENT_MAP)
			rc = look_at_map(&f, i);
	}
	free(f.range);
	return rc;
}
