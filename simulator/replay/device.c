/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - the simulated GPU: bytes, addresses, other tenants, and what driver calls cost. */
#include "simulator/replay/device.h"

#include "common/vec.h"

#define BASE  0x600000000000ull /* inc, fit and mix start here */
#define TOP   0x7f8000000000ull /* dec starts below this */
#define SLOT  (256ull << 30)    /* mix: size of a slot */
#define SLOTS 64u

/* What a driver call takes, in nanoseconds: a fixed part and a part per MiB. Orders of magnitude
 * measured with the CUDA runtime on data-centre cards (cudaMalloc 0.1 .. 1 ms, cudaFree more
 * because it waits for the device, cuMemMap per page 10 .. 50 us); good for ranking, not for
 * seconds. */
static const struct { uint32_t call, mib; } cost[VC_DRV_CALLS] = {
	[VC_DRV_MALLOC]    = { 120000, 1500 },
	[VC_DRV_FREE]      = { 150000, 1500 },
	[VC_DRV_RESERVE]   = { 20000, 0 },
	[VC_DRV_UNRESERVE] = { 20000, 0 },
	[VC_DRV_CREATE]    = { 15000, 1500 },
	[VC_DRV_RELEASE]   = { 15000, 500 },
	[VC_DRV_MAP]       = { 10000, 500 },
	[VC_DRV_UNMAP]     = { 20000, 500 },
};

struct range { uint64_t addr, size; };
struct hint { uint64_t addr, size; };

struct vc_device {
	struct vc_device_config cfg;
	uint64_t taken, others, clock_ns;
	struct vc_device_span span;
	uint64_t next, low, cursor[SLOTS];
	uint32_t request;
	struct range *used; /* fit: taken ranges by address; window: the left-over ones */
	size_t n, cap;
	size_t called;      /* of cfg.call */
	bool left;          /* these calls no longer answer */
	struct hint *hint;
	size_t hints, hint_cap, hint_at;
	bool broken;        /* our own memory ran out */
	bool scripted;      /* script decides instead of capacity and policy */
	struct vc_device_script script;
	void (*listen)(void *arg, const struct vc_device_change *);
	void *listen_arg;
};

static uint64_t granules(uint64_t n)
{
	return (n + VC_DEVICE_GRANULE - 1) / VC_DEVICE_GRANULE * VC_DEVICE_GRANULE;
}

void vc_device_free_all(struct vc_device *d)
{
	if (!d)
		return;
	VC_FREE(d->used, d->hint, d);
}

static void account(struct vc_device *d, enum vc_driver_call what, bool failed, struct range r)
{
	uint64_t ns = cost[what].call + (r.size >> 20) * cost[what].mib;

	d->clock_ns += ns;
	if (d->listen) {
		struct vc_device_change c = { what, failed, r.addr, r.size, ns };

		d->listen(d->listen_arg, &c);
	}
}

static size_t first_at(const struct vc_device *d, uint64_t addr)
{
	return vc_first_from(d->used, d->n, addr, addr);
}

static bool remember(struct vc_device *d, uint64_t addr, uint64_t size)
{
	size_t i;

	if (!vc_vec_room(d->used, d->cap, d->n + 1))
		return false;
	i = first_at(d, addr);
	memmove(d->used + i + 1, d->used + i, (d->n - i) * sizeof(*d->used));
	d->used[i] = (struct range){ addr, size };
	d->n++;
	return true;
}

struct vc_device *vc_device_new(const struct vc_device_config *cfg, struct vc_error *err)
{
	struct vc_device *d = calloc(1, sizeof(*d));

	if (!d) {
		vc_nomem(err, "the device");
		return NULL;
	}
	d->cfg = *cfg;
	if (!d->cfg.prop_total)
		d->cfg.prop_total = cfg->total;
	d->others = cfg->others;
	d->span.below = UINT64_MAX;
	d->next = BASE;
	d->low = TOP;
	if (cfg->va == VC_VA_CONTEXT) {
#define VC_RANGE(at, size) d->broken |= !remember(d, TOP + ((at##ull) << 20), (size##ull) << 20);
		VC_LEFT_OVERS(VC_RANGE)
#undef VC_RANGE
	}
	return d;
}

enum vc_va_policy vc_va_of_first(uint64_t addr)
{
	return addr % VC_WINDOW ? VC_VA_CONTEXT : VC_VA_WINDOW;
}

const struct vc_va_order vc_va_order[VC_VA_ORDERS] = {
	{ VC_VA_WINDOW, 0 }, { VC_VA_DEC, 0 }, { VC_VA_MIX, 0 }, { VC_VA_MIX, 1 },
	{ VC_VA_MIX, 2 },    { VC_VA_MIX, 3 }, { VC_VA_MIX, 4 }, { VC_VA_MIX, 5 },
	{ VC_VA_MIX, 6 },    { VC_VA_MIX, 7 },
};

static bool has_windows(const struct vc_device *d)
{
	return d->cfg.va == VC_VA_WINDOW || d->cfg.va == VC_VA_UP || d->cfg.va == VC_VA_CONTEXT;
}

static void forget(struct vc_device *d, uint64_t addr)
{
	size_t i = first_at(d, addr);

	if (i == d->n || d->used[i].addr != addr)
		return;
	memmove(d->used + i, d->used + i + 1, (d->n - i - 1) * sizeof(*d->used));
	d->n--;
}

static uint64_t lowest_gap(const struct vc_device *d, uint64_t size)
{
	uint64_t a = BASE;

	for (size_t i = 0; i < d->n; i++) {
		if (d->used[i].addr + d->used[i].size <= a)
			continue;
		if (d->used[i].addr > a && d->used[i].addr - a >= size)
			break;
		a = d->used[i].addr + d->used[i].size;
	}
	return a;
}

static uint64_t next_slot(struct vc_device *d, uint64_t size)
{
	uint64_t x = (++d->request + 1000 * (uint64_t)d->cfg.order) * 0x9e3779b97f4a7c15ull;
	uint32_t s = (uint32_t)(((d->request - 1) * 29ull + 37) % SLOTS);
	uint64_t a;

	x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9ull; /* Steele, Lea and Flood's splitmix64 */
	if (d->cfg.order)
		s = (uint32_t)(x >> 32) % SLOTS;

	for (uint32_t k = 0; k < SLOTS && d->cursor[s] + size > SLOT; k++)
		s = (s + 1) % SLOTS;
	a = BASE + s * SLOT + d->cursor[s];
	d->cursor[s] += size;
	return a;
}

/* The smallest left-over range that suits, else a new window below all others (or what comes next
 * above them). */
static uint64_t from_window(struct vc_device *d, uint64_t size)
{
	uint64_t whole = (size + VC_WINDOW - 1) / VC_WINDOW * VC_WINDOW, a;
	size_t best = d->n;

	for (size_t i = 0; i < d->n; i++)
		if (d->used[i].size >= size &&
		    (best == d->n || d->used[i].size < d->used[best].size))
			best = i;
	if (best < d->n) {
		a = d->used[best].addr;
		d->used[best].addr += size;
		d->used[best].size -= size;
		if (!d->used[best].size)
			forget(d, a + size);
		return a;
	}
	if (d->cfg.va == VC_VA_UP) {
		d->next += size;
		return d->next - size;
	}
	d->low = (d->low - whole) / VC_WINDOW * VC_WINDOW;
	if (whole > size)
		d->broken |= !remember(d, d->low + size, whole - size);
	return d->low;
}

/* A range goes back to the left-over ones, joined with its neighbours. */
static void to_window(struct vc_device *d, uint64_t addr, uint64_t size)
{
	size_t i = first_at(d, addr);

	if (i < d->n && d->used[i].addr == addr + size) {
		size += d->used[i].size;
		forget(d, d->used[i].addr);
	}
	if (i && d->used[i - 1].addr + d->used[i - 1].size == addr)
		d->used[i - 1].size += size;
	else
		d->broken |= !remember(d, addr, size);
}

/* No left-over range lies from addr to end. */
static void cut_windows(struct vc_device *d, uint64_t addr, uint64_t end)
{
	for (size_t i = 0; addr < end && i < d->n;) {
		struct range r = d->used[i];
		uint64_t r_end = r.addr + r.size;

		if (r_end <= addr || r.addr >= end) {
			i++;
			continue;
		}
		forget(d, r.addr);
		if (r.addr < addr)
			d->broken |= !remember(d, r.addr, addr - r.addr);
		if (r_end > end)
			d->broken |= !remember(d, end, r_end - end);
		i = 0;
	}
}

/* The run is no longer the recorded one, or goes on behind it: addresses must not run into what it
 * was given. */
static void leave_recorded(struct vc_device *d)
{
	d->left = true;
	for (size_t i = 0; i < d->called; i++)
		if (!d->cfg.call[i].is_free)
			vc_device_avoid(d, d->cfg.call[i].addr, d->cfg.call[i].size);
}

/* The next recorded call, when it is this one. */
static bool is_recorded(struct vc_device *d, bool is_free, uint64_t size, uint64_t addr)
{
	const struct vc_device_call *c = d->cfg.call + d->called;

	if (!d->left && d->called < d->cfg.calls && c->is_free == is_free && c->size == size &&
	    (!is_free || c->addr == addr)) {
		d->called++;
		return true;
	}
	if (!d->left)
		leave_recorded(d);
	return false;
}

static void give_back(struct vc_device *d, uint64_t addr, uint64_t size)
{
	if (is_recorded(d, true, size, addr))
		return;
	if (d->cfg.va == VC_VA_FIT)
		forget(d, addr);
	else if (has_windows(d))
		to_window(d, addr, granules(size));
}

/* The next queued address that suits `size`; entries of other sizes before it stay queued. */
static bool hinted(struct vc_device *d, uint64_t size, uint64_t *addr)
{
	for (size_t i = d->hint_at; i < d->hints; i++) {
		if (d->hint[i].size && d->hint[i].size != size)
			continue;
		*addr = d->hint[i].addr;
		memmove(d->hint + d->hint_at + 1, d->hint + d->hint_at,
			(i - d->hint_at) * sizeof(*d->hint));
		d->hint_at++;
		return true;
	}
	return false;
}

static uint64_t place(struct vc_device *d, uint64_t asked)
{
	uint64_t size = granules(asked), a;

	if (is_recorded(d, false, asked, 0))
		return d->cfg.call[d->called - 1].addr;
	switch (d->cfg.va) {
	case VC_VA_DEC: return d->low -= size;
	case VC_VA_MIX: return next_slot(d, size);
	case VC_VA_FIT:
		a = lowest_gap(d, size);
		d->broken |= !remember(d, a, size);
		return a;
	case VC_VA_WINDOW:
	case VC_VA_CONTEXT:
	case VC_VA_UP: return from_window(d, size);
	case VC_VA_LIST:
		if (hinted(d, asked, &a))
			return a;
		break;
	case VC_VA_INC:
		break;
	}
	a = d->next;
	d->next += size;
	return a;
}

/* An answer about so many bytes: what had to be free at the start for it. */
static bool answer(struct vc_device *d, uint64_t size, bool fits)
{
	uint64_t more = d->others > d->cfg.others ? d->others - d->cfg.others : 0;
	uint64_t need = d->taken + more + granules(size);

	if (fits && need > d->span.least)
		d->span.least = need;
	else if (!fits && need < d->span.below)
		d->span.below = need;
	return fits;
}

struct vc_device_span vc_device_span(const struct vc_device *d)
{
	return d->span;
}

bool vc_device_alloc(struct vc_device *d, uint64_t size, uint64_t *addr)
{
	bool fits;

	if (d->scripted) {
		fits = d->script.alloc(d->script.arg, size, addr);
	} else {
		fits = size <= vc_device_limit(d, d->cfg.total) &&
		       granules(size) <= vc_device_available(d);
		if (fits)
			*addr = place(d, size);
	}
	if (answer(d, size, fits))
		d->taken += granules(size);
	account(d, VC_DRV_MALLOC, !fits, (struct range){ fits ? *addr : 0, size });
	return fits;
}

void vc_device_free(struct vc_device *d, uint64_t addr, uint64_t size)
{
	d->taken -= granules(size);
	if (d->scripted)
		d->script.free(d->script.arg, addr, size);
	else
		give_back(d, addr, size);
	account(d, VC_DRV_FREE, false, (struct range){ addr, size });
}

bool vc_device_reserve(struct vc_device *d, uint64_t size, uint64_t *addr)
{
	bool ok = true;

	if (d->scripted)
		ok = d->script.reserve(d->script.arg, size, addr);
	else
		*addr = place(d, size);
	account(d, VC_DRV_RESERVE, !ok, (struct range){ *addr, size });
	return ok;
}

void vc_device_unreserve(struct vc_device *d, uint64_t addr, uint64_t size)
{
	if (d->scripted)
		d->script.unreserve(d->script.arg, addr);
	else
		give_back(d, addr, size);
	account(d, VC_DRV_UNRESERVE, false, (struct range){ addr, size });
}

bool vc_device_create(struct vc_device *d, uint64_t size)
{
	bool fits = d->scripted ? d->script.create(d->script.arg, size)
				: granules(size) <= vc_device_available(d);

	if (answer(d, size, fits))
		d->taken += granules(size);
	account(d, VC_DRV_CREATE, !fits, (struct range){ 0, size });
	return fits;
}

void vc_device_release(struct vc_device *d, uint64_t size)
{
	d->taken -= granules(size);
	account(d, VC_DRV_RELEASE, false, (struct range){ 0, size });
}

void vc_device_map(struct vc_device *d, uint64_t addr, uint64_t size)
{
	if (d->scripted)
		d->script.map(d->script.arg, addr, size);
	account(d, VC_DRV_MAP, false, (struct range){ addr, size });
}

void vc_device_unmap(struct vc_device *d, uint64_t addr, uint64_t size)
{
	if (d->scripted)
		d->script.unmap(d->script.arg, addr, size);
	account(d, VC_DRV_UNMAP, false, (struct range){ addr, size });
}

void vc_device_adopt(struct vc_device *d, uint64_t addr, uint64_t size)
{
	uint64_t end = addr + granules(size);

	answer(d, size, true);
	d->taken += granules(size);
	vc_device_avoid(d, addr, end - addr);
}

void vc_device_avoid(struct vc_device *d, uint64_t addr, uint64_t size)
{
	uint64_t end = addr + granules(size);

	if (d->cfg.va == VC_VA_FIT)
		d->broken |= !remember(d, addr, granules(size));
	else if (has_windows(d))
		cut_windows(d, addr, end);
	/* New addresses must not run into what is already there. */
	if (end > d->next && end > addr)
		d->next = end;
	if (addr < d->low && end > BASE)
		d->low = addr;
	for (uint32_t s = 0; s < SLOTS; s++) {
		uint64_t from = BASE + s * SLOT;

		if (addr < from + SLOT && end > from + d->cursor[s])
			d->cursor[s] = end - from < SLOT ? end - from : SLOT;
	}
}

int vc_device_hint(struct vc_device *d, uint64_t addr, uint64_t size, struct vc_error *err)
{
	VC_HAVE(vc_vec_room(d->hint, d->hint_cap, d->hints + 1), "recorded addresses", err);
	d->hint[d->hints++] = (struct hint){ addr, size };
	return VC_OK;
}

void vc_device_script(struct vc_device *d, const struct vc_device_script *script)
{
	d->script = *script;
	d->scripted = true;
}

void vc_device_set_others(struct vc_device *d, uint64_t bytes)
{
	d->others = bytes;
}

uint64_t vc_device_available(const struct vc_device *d)
{
	uint64_t used = d->others + d->cfg.context + d->taken;
	uint64_t all = vc_device_limit(d, d->cfg.total);

	return used >= all ? 0 : all - used;
}

uint64_t vc_device_taken(const struct vc_device *d)
{
	return d->taken;
}

uint64_t vc_device_clock_ns(const struct vc_device *d)
{
	return d->clock_ns;
}

bool vc_device_ok(const struct vc_device *d)
{
	return !d->broken;
}

const struct vc_device_config *vc_device_config(const struct vc_device *d)
{
	return &d->cfg;
}

uint64_t vc_device_limit(const struct vc_device *d, uint64_t bytes)
{
	uint64_t off = d->cfg.more > 0 ? (uint64_t)d->cfg.more : 0;

	if (d->cfg.more < 0) /* never above 2^64: sizes are those of devices */
		return bytes + (uint64_t)-d->cfg.more;
	return bytes > off ? bytes - off : 0;
}

void vc_device_listen(struct vc_device *d, void (*fn)(void *arg, const struct vc_device_change *),
		      void *arg)
{
	d->listen = fn;
	d->listen_arg = arg;
}
