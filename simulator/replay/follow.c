/* SPDX-License-Identifier: Apache-2.0 */
/* follow.c - see follow.h. Evidence waits in a queue; a driver call that finds its counterpart at
 * the head succeeds. A request that the recording answered by emptying the cache finds a release at
 * the head: the recorded driver had no memory left, so ours has none either. */
#include "simulator/replay/follow.h"

#include "common/vec.h"

struct item { uint8_t kind; bool done; uint64_t addr, size; };
struct range { uint64_t addr, size; };

struct vc_follow {
	struct vc_device *device;
	struct item *item; size_t head, n, cap;
	struct range *range; size_t ranges, range_cap; /* virtual segments handed out */
	uint64_t mapped;    /* bytes of the mapping at the head created so far */
	uint64_t spare;     /* addresses for calls that the recording does not know */
	uint64_t placed;    /* where the next reservation lies; 0: evidence says */
	uint64_t beyond;    /* and for reservations in which it maps nothing: above all others */
	bool oom;           /* the recorded request failed: refuse until the next evidence */
	struct vc_event failed; /* that request */
	struct vc_event *map; size_t maps, seen; /* all mappings of the trace; how many are past */
};

static struct item *head_of(struct vc_follow *f)
{
	while (f->head < f->n && f->item[f->head].done)
		f->head++;
	if (f->head == f->n)
		f->head = f->n = 0;
	return f->head < f->n ? &f->item[f->head] : NULL;
}

static bool known_range(const struct vc_follow *f, uint64_t addr)
{
	for (size_t i = 0; i < f->ranges; i++)
		if (addr >= f->range[i].addr && addr - f->range[i].addr < f->range[i].size)
			return true;
	return false;
}

static bool on_alloc(void *arg, uint64_t size, uint64_t *addr)
{
	struct vc_follow *f = arg;
	struct item *it = head_of(f);

	if (it && it->kind == VC_EV_SEGMENT_ALLOC && it->size == size) {
		*addr = it->addr;
		it->done = true;
		return true;
	}
	if (it || f->oom)
		return false;
	*addr = f->spare; /* not in the recording: the fidelity observer will see the address */
	f->spare += (size + VC_DEVICE_GRANULE - 1) / VC_DEVICE_GRANULE * VC_DEVICE_GRANULE;
	return true;
}

static void on_free(void *arg, uint64_t addr, uint64_t size)
{
	struct vc_follow *f = arg;

	for (size_t i = f->head; i < f->n; i++) {
		struct item *it = &f->item[i];

		if (!it->done && it->addr == addr &&
		    (it->kind == VC_EV_SEGMENT_FREE || it->kind == VC_EV_SEGMENT_UNMAP)) {
			it->done = true;
			return;
		}
	}
}

/* Pages of the small pool have 2 MiB, the others 20 MiB (c10's kSmallBuffer and kLargeBuffer). */
#define LARGE_PAGE (20ull << 20)

/* Where the next mapping outside all known ranges will be; of the failed request's stream and
 * pool. */
static uint64_t mapped_later(const struct vc_follow *f)
{
	bool small = f->failed.size <= 1u << 20;

	for (size_t i = f->seen; i < f->maps; i++)
		if (!known_range(f, f->map[i].addr) && f->map[i].stream == f->failed.stream &&
		    (small || f->map[i].size % LARGE_PAGE == 0))
			return f->map[i].addr;
	return 0;
}

/* A new virtual segment begins where the recording first mapped outside all known ones. */
static bool on_reserve(void *arg, uint64_t size, uint64_t *addr)
{
	struct vc_follow *f = arg;

	*addr = f->placed;
	f->placed = 0;
	if (*addr)
		return true;
	for (size_t i = f->head; i < f->n && !*addr; i++)
		if (!f->item[i].done && f->item[i].kind == VC_EV_SEGMENT_MAP &&
		    !known_range(f, f->item[i].addr))
			*addr = f->item[i].addr;
	if (!*addr && f->oom)
		*addr = mapped_later(f);
	if (!*addr) {
		*addr = f->beyond;
		f->beyond += size;
	}
	if (!vc_vec_room(f->range, f->range_cap, f->ranges + 1))
		return false;
	f->range[f->ranges++] = (struct range){ *addr, size };
	return true;
}

static void on_unreserve(void *arg, uint64_t addr)
{
	struct vc_follow *f = arg;

	on_free(arg, addr, 0); /* a segment without memory behind it */
	for (size_t i = 0; i < f->ranges; i++)
		if (f->range[i].addr == addr)
			f->range[i] = f->range[--f->ranges];
}

/* Pages are created one by one; the mapping at the head pays for as many as it covers. */
static bool on_create(void *arg, uint64_t size)
{
	struct vc_follow *f = arg;
	struct item *it = head_of(f);

	if (it && it->kind == VC_EV_SEGMENT_MAP && f->mapped + size <= it->size) {
		f->mapped += size;
		return true;
	}
	return !it && !f->oom;
}

static void on_map(void *arg, uint64_t addr, uint64_t size)
{
	struct vc_follow *f = arg;
	struct item *it = head_of(f);

	if (it && it->kind == VC_EV_SEGMENT_MAP && addr + size >= it->addr + it->size) {
		it->done = true;
		f->mapped = 0;
	}
}

static bool collect_maps(struct vc_follow *f, const struct vc_trace *t, uint16_t device)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += t->ev[i].kind == VC_EV_SEGMENT_MAP && t->ev[i].device == device;
	f->map = calloc(n ? n : 1, sizeof(*f->map));
	for (size_t i = 0; f->map && f->maps < n; i++)
		if (t->ev[i].kind == VC_EV_SEGMENT_MAP && t->ev[i].device == device)
			f->map[f->maps++] = t->ev[i];
	return f->map;
}

struct vc_follow *vc_follow_new(struct vc_device *d, const struct vc_trace *whole, uint16_t device,
				struct vc_error *err)
{
	struct vc_follow *f = calloc(1, sizeof(*f));

	if (!f || (whole && !collect_maps(f, whole, device))) {
		free(f);
		vc_nomem(err, "the recorded device");
		return NULL;
	}
	f->device = d;
	f->spare = 0x100000000000; /* below every address a real driver hands out */
	f->beyond = 1ull << 56;    /* above them */
	vc_device_script(d, &(struct vc_device_script){
		.arg = f, .alloc = on_alloc, .free = on_free, .reserve = on_reserve,
		.unreserve = on_unreserve, .create = on_create, .map = on_map, .unmap = on_free });
	return f;
}

void vc_follow_free(struct vc_follow *f)
{
	if (!f)
		return;
	VC_FREE(f->item, f->range, f->map, f);
}

void vc_follow_place(struct vc_follow *f, uint64_t addr)
{
	f->placed = addr;
}

int vc_follow_evidence(struct vc_follow *f, const struct vc_event *ev, struct vc_error *err)
{
	f->oom = ev->kind == VC_EV_OOM;
	if (f->oom) {
		f->failed = *ev;
		return VC_OK;
	}
	f->seen += ev->kind == VC_EV_SEGMENT_MAP;
	VC_HAVE(vc_vec_room(f->item, f->cap, f->n + 1), "the recorded device", err);
	f->item[f->n++] = (struct item){ ev->kind, false, ev->addr, ev->size };
	return VC_OK;
}
