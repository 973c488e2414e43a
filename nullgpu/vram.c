/* SPDX-License-Identifier: Apache-2.0 */
/* vram.c - device memory: capacity accounting, device addresses, physical pieces and mappings.
 *
 * Device addresses are host addresses in reservations at fixed places, so that a run sees the
 * same addresses every time; nothing is backed by memory until small data is written to it. */
#define _GNU_SOURCE
#include "nullgpu/null.h"
#include "nullgpu/usage.h"
#include "common/windows.h"
#include "nullgpu/space.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

/* The driver hands out memory in 2 MiB pages; requests up to half of one share a page, cut in
 * multiples of 512 (cudaMalloc of 1 MiB + 1 byte costs 2 MiB, seen in cudaMemGetInfo). */
#define PAGE (2 * VC_MIB)
#define SMALL (1 * VC_MIB)
#define SMALL_ROUND 512ull
/* Linux: fresh addresses come in windows of 32 MiB, see space.c. */

struct device {
	struct vc_space space, small; /* small: the unused parts of shared pages, as holes */
	struct vc_ranges blocks;  /* tag: the bytes that were asked for */
	uint64_t used;
	uint64_t n_blocks, asked; /* of both kinds: the driver's blocks and physical pieces */
};

struct piece {
	uint64_t size;
	int device, references; /* handles held and mappings */
	int held;               /* handles the program has not released */
	bool borrowed;          /* of another process, which pays for it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct device devices[VC_NULL_DEVICES];
static struct vc_ranges reserved, mapped; /* mapped: tag is the piece */
static uint64_t mapped_edge;

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

/* Address space at `place`, or anywhere when something sits there. */
static uint64_t reserve_at(uint64_t place, uint64_t size)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	void *p = mmap((void *)place, size, PROT_READ | PROT_WRITE, flags | MAP_FIXED_NOREPLACE,
		       -1, 0);
	if (p == MAP_FAILED && errno == EEXIST) {
		p = mmap(NULL, size + VC_WINDOW, PROT_READ | PROT_WRITE, flags, -1, 0);
		if (p != MAP_FAILED)
			p = (void *)round_up((uint64_t)p, VC_WINDOW);
	}
	if (p == MAP_FAILED)
		return 0;
	madvise(p, size, MADV_NOHUGEPAGE);
	return (uint64_t)p;
}

static struct device *open_device(int i)
{
	struct device *d = &devices[i];
	if (d->space.base)
		return d;
	const struct vc_null_card *card = vc_null_card();
	/* room for fragmentation: four times the card, as far as the place goes */
	uint64_t size = round_up(4 * card->total, VC_WINDOW) + VC_LEFT_OVER_SPAN;
	if (size > VC_NULL_DEVICE_SPAN)
		size = VC_NULL_DEVICE_SPAN;
	uint64_t base = reserve_at(VC_NULL_DEVICE_PLACE + (uint64_t)i * VC_NULL_DEVICE_SPAN, size);
	if (!base) {
		vc_null_log("cannot reserve %llu GiB of address space; raise ulimit -v",
			    (unsigned long long)(size >> 30));
		return NULL;
	}
	uint64_t top = base + size - VC_LEFT_OVER_SPAN;
	d->space = (struct vc_space){ .base = base, .end = base + size, .window = VC_WINDOW,
		.ascending = card->ascending, .edge = card->ascending ? base : top };
	if (!card->ascending) {
#define VC_RANGE(at, size) vc_space_give(&d->space, top + ((at##ull) << 20), (size##ull) << 20);
		VC_LEFT_OVERS(VC_RANGE)
#undef VC_RANGE
	}
	d->small.ascending = true; /* no fresh addresses of its own: only holes in shared pages */
	return d;
}

static uint64_t limit_of(int device)
{
	const struct vc_null_card *card = vc_null_card();
	uint64_t taken = card->context;
	unsigned pid;
	for (int i = 0; ; i++) {
		uint64_t size = vc_null_other(device, i, &pid);
		if (!pid)
			break;
		taken += size;
	}
	return card->total > taken ? card->total - taken : 0;
}

/* What nvidia-smi would show of this process. */
static void hold(int device, int64_t more)
{
	devices[device].used += (uint64_t)more;
	vc_null_report()->device[device].used = devices[device].used;
}

/* Takes `size` bytes of the card, or notes that they were refused. */
static bool charge(int device, uint64_t size)
{
	struct device *d = &devices[device];
	struct vc_null_report *r = vc_null_report();
	uint64_t limit = limit_of(device);
	if (d->used > limit || size > limit - d->used) {
		r->device[device].refused++;
		if (size > r->device[device].largest_refused)
			r->device[device].largest_refused = size;
		return false;
	}
	hold(device, (int64_t)size);
	if (d->used > r->device[device].peak)
		r->device[device].peak = d->used;
	vc_null_meet(device);
	return true;
}

/* Keeps what the fullest moment looked like. */
static void add_block(int device, uint64_t asked)
{
	struct device *d = &devices[device];
	struct vc_null_report *r = vc_null_report();
	d->n_blocks++;
	d->asked += asked;
	if (d->used >= r->device[device].peak) {
		r->device[device].blocks = d->n_blocks;
		r->device[device].rounding = d->used - d->asked;
	}
}

static uint64_t take_page(int device, struct device *d, uint64_t size)
{
	if (!charge(device, size))
		return 0;
	uint64_t at = vc_space_take(&d->space, size);
	if (!at)
		hold(device, -(int64_t)size);
	return at;
}

static uint64_t take_small(int device, struct device *d, uint64_t size)
{
	uint64_t at = vc_space_take(&d->small, size);
	if (at)
		return at;
	uint64_t page = take_page(device, d, PAGE);
	if (!page)
		return 0;
	vc_space_give(&d->small, page + size, PAGE - size);
	return page;
}

/* A shared page that is empty again goes back whole. */
static void give_small(struct device *d, uint64_t at, uint64_t size)
{
	vc_space_give(&d->small, at, size);
	uint64_t page = at / PAGE * PAGE;
	long i = vc_ranges_find(&d->small.holes, page);
	if (i < 0)
		return;
	struct vc_range hole = d->small.holes.v[i];
	if (hole.at + hole.size < page + PAGE)
		return;
	vc_ranges_remove(&d->small.holes, (size_t)i);
	if (hole.at < page)
		vc_space_give(&d->small, hole.at, page - hole.at);
	if (hole.at + hole.size > page + PAGE)
		vc_space_give(&d->small, page + PAGE, hole.at + hole.size - page - PAGE);
	madvise((void *)page, PAGE, MADV_DONTNEED);
	vc_space_give(&d->space, page, PAGE);
	hold((int)(d - devices), -(int64_t)PAGE);
}

static int alloc_locked(int device, size_t size, uint64_t *out)
{
	struct device *d = open_device(device);
	if (!d)
		return VC_NULL_MEMORY;
	bool small = size <= SMALL;
	uint64_t rounded = round_up(size, small ? SMALL_ROUND : PAGE);
	uint64_t at = small ? take_small(device, d, rounded) : take_page(device, d, rounded);
	if (!at || vc_ranges_add(&d->blocks, at, rounded, size))
		return VC_NULL_MEMORY;
	add_block(device, size);
	*out = at;
	return 0;
}

int vc_null_alloc(int device, size_t size, uint64_t *out)
{
	*out = 0;
	if (!size)
		return 0;
	if (size > 1ull << 50) /* rounding up must not overflow */
		return VC_NULL_MEMORY;
	pthread_mutex_lock(&lock);
	int rc = alloc_locked(device, size, out);
	uint64_t used = devices[device].used;
	pthread_mutex_unlock(&lock);
	if (vc_null_card()->log > 1)
		vc_null_log("device %d alloc %zu -> %#llx, result %d, in use %llu", device, size,
			    (unsigned long long)*out, rc, (unsigned long long)used);
	if (!rc)
		vc_null_tell(&(struct vc_null_activity){ .kind = VC_NULL_ALLOC, .address = *out,
			.size = size, .device = (uint32_t)device });
	return rc;
}

static int free_locked(int device, uint64_t at, uint64_t *size)
{
	struct device *d = &devices[device];
	long i = vc_ranges_find(&d->blocks, at);
	if (i < 0 || d->blocks.v[i].at != at)
		return VC_NULL_INVALID;
	*size = d->blocks.v[i].size;
	d->n_blocks--;
	d->asked -= d->blocks.v[i].tag;
	vc_ranges_remove(&d->blocks, (size_t)i);
	vc_null_written((void *)at, *size); /* the next owner need not be PyTorch */
	if (*size <= SMALL) {
		give_small(d, at, *size);
		return 0;
	}
	madvise((void *)at, *size, MADV_DONTNEED);
	vc_space_give(&d->space, at, *size);
	hold((int)(d - devices), -(int64_t)*size);
	return 0;
}

int vc_null_free(uint64_t at)
{
	if (!at)
		return 0;
	int device = vc_null_owner(at);
	if (device < 0)
		return VC_NULL_INVALID;
	uint64_t size = 0;
	pthread_mutex_lock(&lock);
	int rc = free_locked(device, at, &size);
	pthread_mutex_unlock(&lock);
	if (vc_null_card()->log > 1)
		vc_null_log("device %d free %#llx, result %d", device, (unsigned long long)at, rc);
	if (!rc)
		vc_null_tell(&(struct vc_null_activity){ .kind = VC_NULL_FREE, .address = at,
			.size = size, .device = (uint32_t)device });
	return rc;
}

/* The tracer's samples are not the program's questions; nor are PyTorch's own of what a card is. */
static bool is_ours(const void *caller, bool torch)
{
	Dl_info in;
	const char *name;

	if (!dladdr(caller, &in) || !in.dli_fname)
		return false;
	name = strrchr(in.dli_fname, '/');
	name = name ? name + 1 : in.dli_fname;
	return strstr(name, "libvramcast_trace") ||
		(torch && (!strncmp(name, "libtorch", 8) || !strncmp(name, "libc10", 6)));
}

void vc_null_asks_total(const void *caller)
{
	if (!is_ours(caller, true))
		vc_null_report()->asked++;
}

void vc_null_meminfo(int device, const void *caller, size_t *free_bytes, size_t *total)
{
	uint64_t limit = limit_of(device);
	bool program = !is_ours(caller, false);
	pthread_mutex_lock(&lock);
	uint64_t used = devices[device].used;
	vc_null_report()->asked += program && !vc_null_report()->device[device].refused;
	pthread_mutex_unlock(&lock);
	*free_bytes = limit > used ? limit - used : 0;
	*total = vc_null_card()->total;
}

uint64_t vc_null_used(int device)
{
	pthread_mutex_lock(&lock);
	uint64_t used = devices[device].used;
	pthread_mutex_unlock(&lock);
	return used + vc_null_card()->context;
}

int vc_null_owner(uint64_t at)
{
	int n = vc_null_card()->devices, found = -1;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < n && found < 0; i++)
		if (devices[i].space.base && at >= devices[i].space.base &&
		    at < devices[i].space.end)
			found = i;
	long i = found < 0 ? vc_ranges_find(&mapped, at) : -1;
	if (i >= 0)
		found = ((struct piece *)mapped.v[i].tag)->device;
	pthread_mutex_unlock(&lock);
	return found;
}

void vc_null_fresh(void *p, uint64_t size)
{
	vc_null_made_up(p, size, NULL);
	vc_null_block(p, size);
	if (!vc_null_mark_fresh(p, size) && vc_null_owner((uint64_t)p) >= 0)
		memset(p, 0, size < VC_MIB ? size : VC_MIB); /* something sat in our place */
}

int vc_null_extent(uint64_t at, uint64_t *base, size_t *size)
{
	int device = vc_null_owner(at);
	if (device < 0)
		return VC_NULL_INVALID;
	pthread_mutex_lock(&lock);
	const struct vc_ranges *r = &devices[device].blocks;
	long i = vc_ranges_find(r, at);
	if (i < 0) {
		r = &mapped;
		i = vc_ranges_find(r, at);
	}
	if (i >= 0) {
		*base = r->v[i].at;
		*size = r->v[i].size;
	}
	pthread_mutex_unlock(&lock);
	return i < 0 ? VC_NULL_INVALID : 0;
}

/* ---- virtual memory management ---- */

int vc_null_reserve(size_t size, uint64_t *out)
{
	bool up = vc_null_card()->ascending;
	size = round_up(size, PAGE);
	pthread_mutex_lock(&lock);
	if (!mapped_edge)
		mapped_edge =
			up ? VC_NULL_MAPPED_PLACE : VC_NULL_MAPPED_PLACE + VC_NULL_MAPPED_SPAN;
	uint64_t place = up ? mapped_edge : mapped_edge - size;
	*out = size && size <= VC_NULL_MAPPED_SPAN ? reserve_at(place, size) : 0;
	if (*out && vc_ranges_add(&reserved, *out, size, 0)) {
		munmap((void *)*out, size);
		*out = 0;
	}
	if (*out == place)
		mapped_edge = up ? place + size : place;
	pthread_mutex_unlock(&lock);
	return *out ? 0 : VC_NULL_MEMORY;
}

int vc_null_unreserve(uint64_t at, size_t size)
{
	pthread_mutex_lock(&lock);
	long i = vc_ranges_find(&reserved, at);
	bool known = i >= 0 && reserved.v[i].at == at && reserved.v[i].size == round_up(size, PAGE);
	if (known) {
		munmap((void *)at, reserved.v[i].size);
		vc_ranges_remove(&reserved, (size_t)i);
	}
	pthread_mutex_unlock(&lock);
	return known ? 0 : VC_NULL_INVALID;
}

int vc_null_create(int device, size_t size, uint64_t *handle)
{
	if (!size || size % PAGE)
		return VC_NULL_INVALID;
	struct piece *p = calloc(1, sizeof *p);
	if (!p)
		return VC_NULL_MEMORY;
	*p = (struct piece){ .size = size, .device = device, .references = 1, .held = 1 };
	pthread_mutex_lock(&lock);
	bool room = charge(device, size);
	if (room)
		add_block(device, size);
	pthread_mutex_unlock(&lock);
	if (vc_null_card()->log > 1)
		vc_null_log("device %d create %zu, result %d", device, size,
			    room ? 0 : VC_NULL_MEMORY);
	if (!room) {
		free(p);
		return VC_NULL_MEMORY;
	}
	*handle = (uint64_t)p;
	return 0;
}

static void drop_piece(struct piece *p)
{
	if (--p->references)
		return;
	if (p->borrowed) {
		free(p);
		return;
	}
	hold(p->device, -(int64_t)p->size);
	devices[p->device].asked -= p->size;
	devices[p->device].n_blocks--;
	free(p);
}

int vc_null_release(uint64_t handle)
{
	struct piece *p = (struct piece *)handle;
	pthread_mutex_lock(&lock);
	bool held = p && p->held > 0;
	if (held) {
		p->held--;
		drop_piece(p);
	}
	pthread_mutex_unlock(&lock);
	return held ? 0 : VC_NULL_INVALID;
}

int vc_null_map(uint64_t at, size_t size, uint64_t handle)
{
	struct piece *p = (struct piece *)handle;
	pthread_mutex_lock(&lock);
	long i = vc_ranges_find(&reserved, at);
	bool fits = i >= 0 && at + size <= reserved.v[i].at + reserved.v[i].size &&
		size <= p->size && vc_ranges_find(&mapped, at) < 0 &&
		!vc_ranges_add(&mapped, at, size, handle);
	if (fits)
		p->references++;
	pthread_mutex_unlock(&lock);
	return fits ? 0 : VC_NULL_INVALID;
}

int vc_null_unmap(uint64_t at, size_t size)
{
	uint64_t end = at + size;
	int rc = 0;
	pthread_mutex_lock(&lock);
	while (at < end && !rc) {
		long i = vc_ranges_find(&mapped, at);
		if (i < 0 || mapped.v[i].at != at || at + mapped.v[i].size > end) {
			rc = VC_NULL_INVALID;
			break;
		}
		struct vc_range m = mapped.v[i];
		madvise((void *)m.at, m.size, MADV_DONTNEED);
		vc_null_written((void *)m.at, m.size);
		vc_ranges_remove(&mapped, (size_t)i);
		drop_piece((struct piece *)m.tag);
		at += m.size;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

int vc_null_handle_of(uint64_t at, uint64_t *handle)
{
	pthread_mutex_lock(&lock);
	long i = vc_ranges_find(&mapped, at);
	if (i >= 0) {
		*handle = mapped.v[i].tag;
		((struct piece *)*handle)->references++;
		((struct piece *)*handle)->held++;
	}
	pthread_mutex_unlock(&lock);
	return i < 0 ? VC_NULL_INVALID : 0;
}

int vc_null_handle_facts(uint64_t handle, uint64_t *size, int *device)
{
	const struct piece *p = (const struct piece *)handle;
	if (!p)
		return VC_NULL_INVALID;
	*size = p->size;
	*device = p->device;
	return 0;
}

int vc_null_borrow_handle(int device, size_t size, uint64_t *handle)
{
	struct piece *p = calloc(1, sizeof *p);
	if (!p)
		return VC_NULL_MEMORY;
	*p = (struct piece){ .size = round_up(size, PAGE), .device = device, .references = 1,
			     .held = 1, .borrowed = true };
	*handle = (uint64_t)p;
	return 0;
}

int vc_null_borrow(int device, size_t size, uint64_t *out)
{
	struct piece *p = calloc(1, sizeof *p);
	size = round_up(size, PAGE);
	if (!p || vc_null_reserve(size, out)) {
		free(p);
		return VC_NULL_MEMORY;
	}
	*p = (struct piece){ .size = size, .device = device, .borrowed = true };
	return vc_null_map(*out, size, (uint64_t)p);
}

int vc_null_give_back(uint64_t at)
{
	uint64_t base;
	size_t size;
	if (vc_null_extent(at, &base, &size) || vc_null_unmap(base, size))
		return VC_NULL_INVALID;
	return vc_null_unreserve(base, size);
}
