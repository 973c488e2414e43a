/* SPDX-License-Identifier: Apache-2.0 */
/* census.c - see census.h */
#include "simulator/replay/census.h"

#include "common/pages.h"

struct known { uint64_t size; uint8_t live; };

struct counting { struct vc_pages size; uint64_t streams[VC_CENSUS_DEVICES]; };

static struct counting *counting_of(struct vc_census *c)
{
	struct counting *k = c->private_sizes;

	if (!k && (k = c->private_sizes = calloc(1, sizeof(*k))))
		vc_pages_init(&k->size, sizeof(struct known));
	return k;
}

void vc_census_fini(struct vc_census *c)
{
	if (c->private_sizes)
		vc_pages_fini(&((struct counting *)c->private_sizes)->size);
	free(c->private_sizes);
	*c = (struct vc_census){ 0 };
}

static struct vc_device_census *device_of(struct vc_census *c, uint16_t device)
{
	for (size_t i = 0; i < c->devices; i++)
		if (c->device[i].device == device)
			return &c->device[i];
	if (c->devices == VC_CENSUS_DEVICES)
		return &c->device[VC_CENSUS_DEVICES - 1];
	c->device[c->devices] = (struct vc_device_census){ .device = device, .seen = true };
	return &c->device[c->devices++];
}

static int block_born(struct counting *k, struct vc_device_census *d, const struct vc_event *ev,
		      struct vc_error *err)
{
	struct known *b = vc_pages_get(&k->size, ev->id);

	if (b && b->live) /* the same id twice: the engine will say so */
		return VC_OK;
	b = vc_pages_put(&k->size, ev->id);
	VC_HAVE(b, "the census", err);
	*b = (struct known){ ev->size, 1 };
	d->live_requested += ev->size;
	if (d->live_requested > d->peak_requested)
		d->peak_requested = d->live_requested;
	return VC_OK;
}

static void block_died(struct counting *k, struct vc_device_census *d, const struct vc_event *ev)
{
	struct known *b = vc_pages_get(&k->size, ev->id);

	if (!b || !b->live) {
		d->unmatched_frees++;
		return;
	}
	d->live_requested -= b->size;
	vc_pages_drop(&k->size, ev->id);
}

static void segment_grows(struct vc_device_census *d, uint64_t size)
{
	d->reserved += size;
	if (d->reserved > d->peak_reserved)
		d->peak_reserved = d->reserved;
}

static int heap_event(struct counting *k, struct vc_device_census *d, const struct vc_event *ev,
		      struct vc_error *err)
{
	bool final = ev->flags & VC_EVF_FINAL;

	if (final) {
		d->has_final = true;
		d->final_segments += ev->kind == VC_EV_HEAP_SEGMENT;
		return VC_OK;
	}
	d->has_start = true;
	if (ev->kind == VC_EV_HEAP_SEGMENT) {
		d->start_segments++;
		d->start_reserved += ev->size;
		segment_grows(d, ev->size);
	} else if (ev->id && (ev->flags & VC_EVF_LIVE)) {
		d->preexisting++;
		return block_born(k, d, ev, err);
	}
	return VC_OK;
}

/* Names that are more than there is room for count as the last one. */
static void add_overhead(struct vc_census *c, const struct vc_event *ev)
{
	size_t i = 0;

	while (i < c->overheads && c->overhead[i].label != ev->label)
		i++;
	if (i == VC_CENSUS_OVERHEADS)
		i--;
	else if (i == c->overheads)
		c->overhead[c->overheads++].label = ev->label;
	c->overhead[i].ns += ev->size;
}

/* What is beside the allocator's memory and the device's work. */
static void count_beside(struct vc_census *c, struct vc_device_census *d, const struct vc_event *ev)
{
	if (ev->kind == VC_EV_LAUNCH) {
		c->launches++;
	} else if (ev->kind == VC_EV_OVERHEAD) {
		add_overhead(c, ev);
	} else {
		d->driver_pools += ev->flags == VC_DRIVER_POOL_CREATED;
		d->pool_reserved = ev->size > d->pool_reserved ? ev->size : d->pool_reserved;
		d->pool_used = ev->id > d->pool_used ? ev->id : d->pool_used;
	}
}

/* Bytes of segments with memory behind them. */
static uint64_t there(const struct vc_device_census *d)
{
	return d->reserved > d->away ? d->reserved - d->away : 0;
}

static void saw_outside(struct vc_device_census *d, const struct vc_event *ev)
{
	d->outside = d->total - ev->addr - there(d);
	d->outside_ns = ev->time_ns;
}

static void count_oom(struct vc_device_census *d, const struct vc_event *ev)
{
	d->ooms++;
	d->oom_event = d->events - 1;
	d->oom_request = ev->size;
	d->oom_free = ev->addr;
	d->oom_reserved = d->reserved;
	d->ends_in_oom = true;
	if (d->total > ev->addr + there(d))
		saw_outside(d, ev);
}

static void count_sample(struct vc_device_census *d, const struct vc_event *ev)
{
	uint64_t known = ev->addr + there(d);

	d->total = ev->size;
	if (d->segment_allocs && !d->ooms && d->total > known && d->total - known > d->outside)
		saw_outside(d, ev);
}

static void count_pages(struct vc_device_census *d, const struct vc_event *ev)
{
	if (ev->kind == VC_EV_PAGES_OUT)
		d->away += ev->size;
	else
		d->away -= ev->size < d->away ? ev->size : d->away;
	d->slept = true;
}

static int count(struct vc_census *c, struct counting *k, const struct vc_event *ev,
		 struct vc_error *err)
{
	struct vc_device_census *d = device_of(c, ev->device);

	if (ev->kind >= VC_EV_HEAP_SEGMENT)
		return heap_event(k, d, ev, err);
	d->events++;
	c->events++;
	if (ev->time_ns > c->last_ns)
		c->last_ns = ev->time_ns;
	switch (ev->kind) {
	case VC_EV_ALLOC:
		d->allocs++;
		c->allocs++;
		d->ends_in_oom = false;
		k->streams[d - c->device] |= 1ull << (ev->stream & 63);
		return block_born(k, d, ev, err);
	case VC_EV_FREE:
		d->frees++;
		c->frees++;
		block_died(k, d, ev);
		break;
	case VC_EV_FREE_DONE: d->deferred++; break;
	case VC_EV_USE: d->uses++; break;
	case VC_EV_TRIM: d->trims++; break;
	case VC_EV_OOM:
		count_oom(d, ev);
		break;
	case VC_EV_DEVICE_SAMPLE:
		count_sample(d, ev);
		break;
	case VC_EV_KERNEL: case VC_EV_COPY: d->kernels++; break;
	case VC_EV_MARK:
		c->marks++;
		c->steps += ev->flags == VC_MARK_STEP;
		break;
	case VC_EV_LAUNCH: case VC_EV_OVERHEAD: case VC_EV_DRIVER_POOL:
		count_beside(c, d, ev);
		break;
	case VC_EV_SEGMENT_ALLOC: case VC_EV_SEGMENT_MAP:
		if (ev->kind == VC_EV_SEGMENT_ALLOC && !d->segment_allocs && !d->has_start)
			d->first_segment = ev->addr;
		d->segment_allocs++;
		segment_grows(d, ev->size);
		break;
	case VC_EV_SEGMENT_FREE: case VC_EV_SEGMENT_UNMAP:
		d->segment_frees++;
		d->reserved -= ev->size < d->reserved ? ev->size : d->reserved;
		break;
	case VC_EV_PAGES_OUT: case VC_EV_PAGES_IN:
		count_pages(d, ev);
		break;
	default:
		break;
	}
	return VC_OK;
}

int vc_census_add(struct vc_census *c, const struct vc_event *ev, size_t n, struct vc_error *err)
{
	struct counting *k = counting_of(c);
	int r = k ? VC_OK : vc_nomem(err, "the census");

	for (size_t i = 0; i < n && r == VC_OK; i++)
		r = count(c, k, &ev[i], err);
	for (size_t i = 0; k && i < c->devices; i++) {
		c->device[i].streams = 0;
		for (uint64_t bits = k->streams[i]; bits; bits &= bits - 1)
			c->device[i].streams++;
	}
	return r;
}

static uint64_t requests(const struct vc_device_census *d)
{
	return d->allocs + d->frees + d->preexisting;
}

/* How full it was: of its total where both are known. */
static double fill(const struct vc_device_census *d, bool share)
{
	uint64_t peak = d->peak_reserved > d->peak_requested ? d->peak_reserved : d->peak_requested;

	return share ? (double)peak / (double)d->total : (double)peak;
}

/* Is `a` rather than `b` the device that decides? */
static bool decides(const struct vc_device_census *a, const struct vc_device_census *b)
{
	bool share = a->total && b->total;

	if (!requests(a) != !requests(b))
		return requests(a) > 0;
	if (a->ends_in_oom != b->ends_in_oom)
		return a->ends_in_oom;
	if (!a->ooms != !b->ooms)
		return a->ooms > 0;
	if (fill(a, share) != fill(b, share))
		return fill(a, share) > fill(b, share);
	return requests(a) > requests(b);
}

const struct vc_device_census *vc_census_deciding(const struct vc_census *c)
{
	const struct vc_device_census *best = NULL;

	for (size_t i = 0; i < c->devices; i++)
		if (!best || decides(&c->device[i], best))
			best = &c->device[i];
	return best;
}

const struct vc_device_census *vc_census_of(const struct vc_census *c, uint16_t device)
{
	for (size_t i = 0; i < c->devices; i++)
		if (c->device[i].device == device)
			return &c->device[i];
	return NULL;
}
