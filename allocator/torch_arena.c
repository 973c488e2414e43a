/* SPDX-License-Identifier: Apache-2.0 */
/* torch_arena.c - the plan behind PyTorch's own CUDA allocator.
 *
 * A copy of the allocator's vtable with our functions in front takes its place before the first
 * allocation. A request that the plan has a place for gets it; every other one goes to the original
 * function, and is PyTorch's business from then on: caching, private pools, running out. Its
 * statistics come with ours added. Calling conventions: tracer/torch_hook.c says them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "allocator/served.h"
#include "common/torch_layout.h"

#define VC_EXPORT __attribute__((visibility("default")))

enum { DEVICES = 64 };

typedef uint64_t word;
typedef word call6(word, word, word, word, word, word);
struct cuda_stream { uint64_t device; int64_t id; }; /* c10::cuda::CUDAStream */
typedef void report_fn(void *, int64_t, size_t, size_t, uint16_t);

/* What both allocators hold together, as far as statistics need it. */
struct sums { int64_t native, native_reserved, peak, peak_reserved; };

static struct {
	pthread_mutex_t lock;
	_Atomic int state; /* 0: not yet, 1: there, -1: not possible */
	const struct vc_torch_slots *slots;
	void **original;
	void *table[VC_TORCH_BEFORE + VC_TORCH_SLOTS];
	void *deleter;     /* the allocator's own, as a DataPtr holds it */
	struct cuda_stream (*current)(int8_t);
	void *(*handle)(const struct cuda_stream *);
	report_fn *next_report; /* who reports go to: the tracer, or PyTorch */
	struct sums sums[DEVICES];
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const char library[] = "libc10_cuda.so";

static void *symbol(const char *lib, const char *name)
{
	void *h = dlopen(lib, RTLD_NOLOAD | RTLD_NOW);

	return h ? dlsym(h, name) : NULL;
}

/* ---- statistics ---- */

static void note_peak(int device)
{
	struct vc_served_totals t = vc_served_totals(device);
	struct sums *s = &g.sums[device % DEVICES];
	int64_t now = s->native + (int64_t)t.bytes;
	int64_t reserved = s->native_reserved + (int64_t)t.arena;

	s->peak = now > s->peak ? now : s->peak;
	s->peak_reserved = reserved > s->peak_reserved ? reserved : s->peak_reserved;
}

/* Tell PyTorch's profiler, and whoever listens, of a block from the arena. */
static void tell(void *p, int64_t bytes, int device)
{
	struct vc_served_totals t = vc_served_totals(device);
	struct sums *s = &g.sums[device % DEVICES];
	report_fn *next = g.next_report;

	note_peak(device);
	if (next)
		next(p, bytes, (size_t)s->native + t.bytes, (size_t)s->native_reserved + t.arena,
		     (uint16_t)(VC_TORCH_CUDA | device << 8));
}

/* c10 DeviceStats, 2.0 to 2.15: arrays of three Stats (all, small, large pool), each { current,
 * peak, allocated, freed }, in this order. */
enum { ALLOCATION, SEGMENT, ACTIVE, INACTIVE_SPLIT, ALLOCATED_BYTES, RESERVED_BYTES, ACTIVE_BYTES,
       INACTIVE_SPLIT_BYTES, REQUESTED_BYTES };
struct tally { int64_t current, peak, allocated, freed; };

static void add(struct tally *s, int64_t now, int64_t freed)
{
	s->current += now;
	s->peak += now;
	s->allocated += now + freed;
	s->freed += freed;
}

static void add_ours(struct tally (*s)[3], int device)
{
	struct vc_served_totals t = vc_served_totals(device);
	const struct sums *k = &g.sums[device % DEVICES];

	add(&s[ALLOCATION][0], (int64_t)t.count, (int64_t)t.freed_count);
	add(&s[ACTIVE][0], (int64_t)t.count, (int64_t)t.freed_count);
	add(&s[SEGMENT][0], (int64_t)t.areas, (int64_t)t.areas_given_back);
	add(&s[ALLOCATED_BYTES][0], (int64_t)t.bytes, (int64_t)t.freed_bytes);
	add(&s[ACTIVE_BYTES][0], (int64_t)t.bytes, (int64_t)t.freed_bytes);
	add(&s[REQUESTED_BYTES][0], (int64_t)t.requested, (int64_t)t.freed_bytes);
	add(&s[RESERVED_BYTES][0], (int64_t)t.arena, (int64_t)t.given_back);
	s[ALLOCATED_BYTES][0].peak = s[ACTIVE_BYTES][0].peak = k->peak;
	s[REQUESTED_BYTES][0].peak = k->peak; /* not more than that */
	s[RESERVED_BYTES][0].peak = k->peak_reserved;
}

static void *hook_stats(void *result, void *object, int device)
{
	void *(*real)(void *, void *, int);

	*(void **)&real = g.original[g.slots->stats];
	real(result, object, device);
	add_ours(result, (int8_t)device);
	return result;
}

static void hook_reset_peaks(void *object, int device)
{
	void (*real)(void *, int);
	struct sums *s = &g.sums[(uint8_t)device % DEVICES];

	*(void **)&real = g.original[g.slots->reset_peaks];
	real(object, device);
	s->peak = s->peak_reserved = 0;
	note_peak((int8_t)device);
}

/* ---- requests ---- */

static uint64_t handle_of(struct cuda_stream s)
{
	static __thread __attribute__((tls_model("initial-exec"))) struct {
		int64_t id;
		uint64_t handle;
	} last;

	if (!s.id)
		return 0;
	if (s.id != last.id) {
		last.handle = (uint64_t)(uintptr_t)g.handle(&s);
		last.id = s.id;
	}
	return last.handle;
}

/* Stands in a DataPtr of the arena, and for raw_deleter(): any block may come. */
static void delete_any(void *p)
{
	void (*native)(void *);
	uint64_t size, requested;
	int device;

	if (vc_served_give(p, &size, &requested, &device)) {
		tell(p, -(int64_t)size, device);
		return;
	}
	*(void **)&native = g.deleter;
	native(p);
}

static void *take(size_t size, uint64_t *stream, int *device, bool given)
{
	struct cuda_stream s;
	void *p;

	if (!size)
		return NULL;
	s = g.current(-1);
	*device = (int)(s.device >> 8 & 0xff);
	if (!given)
		*stream = handle_of(s);
	p = vc_served_take(size, *device, *stream);
	if (p)
		tell(p, (int64_t)((size + 511) / 512 * 512), *device);
	return p;
}

static void *hook_allocate(void **result, void *object, size_t size)
{
	void *(*real)(void **, void *, size_t), *r;
	uint64_t stream = 0;
	int device = 0;
	void *p = take(size, &stream, &device, false);

	if (p) {
		result[0] = result[2] = p;
		result[1] = VC_FUNCTION(delete_any);
		result[3] = (void *)(uintptr_t)(VC_TORCH_CUDA | device << 8);
		return result;
	}
	*(void **)&real = g.original[VC_TORCH_ALLOCATE];
	r = real(result, object, size);
	vc_served_saw(result[0], size, stream);
	return r;
}

static void *hook_raw_alloc(void *object, size_t size)
{
	void *(*real)(void *, size_t);
	uint64_t stream = 0;
	int device = 0;
	void *p = take(size, &stream, &device, false);

	if (p)
		return p;
	*(void **)&real = g.original[g.slots->raw_alloc];
	p = real(object, size);
	vc_served_saw(p, size, stream);
	return p;
}

static void *hook_raw_alloc_with_stream(void *object, size_t size, void *on)
{
	void *(*real)(void *, size_t, void *);
	uint64_t stream = (uint64_t)(uintptr_t)on;
	int device = 0;
	void *p = take(size, &stream, &device, true);

	if (p)
		return p;
	*(void **)&real = g.original[g.slots->raw_alloc_with_stream];
	p = real(object, size, on);
	vc_served_saw(p, size, stream);
	return p;
}

static void hook_raw_delete(void *object, void *p)
{
	void (*real)(void *, void *);

	if (vc_served_owns(p)) {
		delete_any(p);
		return;
	}
	*(void **)&real = g.original[g.slots->raw_delete];
	real(object, p);
}

static void *hook_deleter(const void *object)
{
	return VC_FUNCTION(delete_any);
}

static void hook_use(void *object, void *const *data, struct cuda_stream stream)
{
	void (*real)(void *, void *const *, struct cuda_stream);

	if (vc_served_owns(*data)) {
		vc_served_use(*data, handle_of(stream));
		return;
	}
	*(void **)&real = g.original[g.slots->use];
	real(object, data, stream);
}

/* empty_cache. The identifier of a pool may come with it; we have none. */
static word hook_trim(word a, word b, word c, word d, word e, word f)
{
	call6 *real;
	word r;

	*(void **)&real = g.original[g.slots->trim];
	r = real(a, b, c, d, e, f);
	vc_served_trim();
	return r;
}

static word hook_pool_begin(word a, word b, word c, word d, word e, word f)
{
	call6 *real;

	*(void **)&real = g.original[g.slots->pool_begin];
	vc_served_scope(1);
	return real(a, b, c, d, e, f);
}

static word hook_pool_end(word a, word b, word c, word d, word e, word f)
{
	call6 *real;
	word r;

	*(void **)&real = g.original[g.slots->pool_end];
	r = real(a, b, c, d, e, f);
	vc_served_scope(-1);
	return r;
}

/* ---- putting them there ---- */

static void find_report(void)
{
	static const char *const names[] = {
		"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
		"_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE" };
	void *next = NULL;

	for (int k = 0; k < 2 && !next; k++) {
		if (!symbol("libc10.so", names[k]))
			continue;
		next = dlsym(RTLD_NEXT, names[k]);
		next = next ? next : symbol("libc10.so", names[k]);
	}
	*(void **)&g.next_report = next;
}

static void set(int slot, void *function)
{
	g.table[VC_TORCH_BEFORE + slot] = function;
}

static void fill_table(void)
{
	const struct vc_torch_slots *s = g.slots;

	vc_torch_copy_table(g.table, g.original);
	set(VC_TORCH_ALLOCATE, VC_FUNCTION(hook_allocate));
	set(s->deleter, VC_FUNCTION(hook_deleter));
	set(s->raw_alloc, VC_FUNCTION(hook_raw_alloc));
	set(s->raw_alloc_with_stream, VC_FUNCTION(hook_raw_alloc_with_stream));
	set(s->raw_delete, VC_FUNCTION(hook_raw_delete));
	set(s->stats, VC_FUNCTION(hook_stats));
	set(s->reset_peaks, VC_FUNCTION(hook_reset_peaks));
	set(s->use, VC_FUNCTION(hook_use));
	set(s->trim, VC_FUNCTION(hook_trim));
	set(s->pool_begin, VC_FUNCTION(hook_pool_begin));
	set(s->pool_end, VC_FUNCTION(hook_pool_end));
}

/* A DataPtr is { data, deleter, context, device }: a request of no bytes shows the deleter, and
 * whether that is so. */
static bool find_deleter(void *object)
{
	void *(*allocate)(void **, void *, size_t), *result[4] = { object, object, object, object };
	Dl_info home, theirs;

	*(void **)&allocate = g.original[VC_TORCH_ALLOCATE];
	allocate(result, object, 0);
	g.deleter = result[1];
	return !result[0] && !result[2] && ((uintptr_t)result[3] & 0xff) == VC_TORCH_CUDA &&
	       dladdr(g.deleter, &theirs) && dladdr(g.original[VC_TORCH_ALLOCATE], &home) &&
	       theirs.dli_fbase == home.dli_fbase;
}

static bool install(void)
{
	void **slot = symbol(library, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
	Dl_info function, home;
	char version[64];
	void **object;

	if (!slot || !*slot)
		return false;
	object = *slot;
	g.original = *object;
	if (!dladdr(g.original[VC_TORCH_ALLOCATE], &function) || !dladdr(slot, &home) ||
	    function.dli_fbase != home.dli_fbase)
		return false; /* a pluggable one: its own functions are called */
	g.slots = vc_torch_slots(vc_torch_version(slot, version, sizeof(version)) ?
				 vc_torch_minor_of(version) : -1);
	*(void **)&g.current = symbol(library, "_ZN3c104cuda20getCurrentCUDAStreamEa");
	*(void **)&g.handle = symbol(library, "_ZNK3c104cuda10CUDAStream6streamEv");
	if (!g.slots->raw_alloc || !g.current || !g.handle || !find_deleter(object))
		return false;
	vc_served_open(home.dli_fname);
	find_report();
	fill_table();
	*object = g.table + VC_TORCH_BEFORE;
	return true;
}

static void install_once(void)
{
	if (atomic_load(&g.state) || (!getenv("VRAMCAST_PLAN") && !getenv("VRAMCAST_PLAN_LEARN")))
		return;
	pthread_mutex_lock(&g.lock);
	if (!atomic_load(&g.state))
		atomic_store(&g.state, install() ? 1 : -1);
	pthread_mutex_unlock(&g.lock);
}

/* ---- interposed functions ---- */

int _ZN3c104cuda28device_count_ensure_non_zeroEv(void);
report_fn _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE,
	_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE;

/* Called once when PyTorch starts to use CUDA, before the first allocation. */
VC_EXPORT int _ZN3c104cuda28device_count_ensure_non_zeroEv(void)
{
	int (*next)(void);

	install_once();
	*(void **)&next = dlsym(RTLD_NEXT, __func__);
	if (!next)
		*(void **)&next = symbol(library, __func__);
	return next();
}

/* PyTorch's allocator reports what it did. The device is two bytes: type below, index above. */
static void native_report(void *p, int64_t bytes, size_t total, size_t reserved, uint16_t device,
			  const char *name)
{
	report_fn *next = g.next_report;
	int index = device >> 8;

	if (!next) { /* not installed: the CPU's blocks come here, too */
		*(void **)&next = dlsym(RTLD_NEXT, name);
		if (!next)
			*(void **)&next = symbol("libc10.so", name);
	}
	if ((device & 0xff) == VC_TORCH_CUDA && atomic_load(&g.state) == 1) {
		struct vc_served_totals t = vc_served_totals(index);

		g.sums[index % DEVICES].native = (int64_t)total;
		g.sums[index % DEVICES].native_reserved = (int64_t)reserved;
		note_peak(index);
		if (bytes < 0)
			vc_served_lost(p);
		total += t.bytes;
		reserved += t.arena;
	}
	if (next)
		next(p, bytes, total, reserved, device);
}

#define REPORT(name) \
	VC_EXPORT void name(void *p, int64_t bytes, size_t total, size_t reserved, \
			    uint16_t device) \
	{ \
		native_report(p, bytes, total, reserved, device, #name); \
	}
REPORT(_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE)
REPORT(_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE)

__attribute__((destructor)) static void finish(void)
{
	vc_served_end();
}
