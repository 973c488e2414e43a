/* SPDX-License-Identifier: Apache-2.0 */
/* torch_arena.c - the plan behind PyTorch's own CUDA allocator.
 *
 * A copy of the allocator's vtable with our functions in front takes its place before the first
 * allocation. A request that the plan has a place for gets it; every other one goes to the original
 * function, and is PyTorch's business from then on: caching, private pools, running out. Its
 * statistics come with ours added. Calling conventions: tracer/torch_hook.c says them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "allocator/served.h"
#include "allocator/slots.h"

#define VC_EXPORT __attribute__((visibility("default")))
#define FUNCTION(f) (*(void **)&(void (*[]) (void)){ (void (*)(void))(f) }[0])

enum { BEFORE = 2, SLOTS = 96, ALLOCATE = 2, CUDA = 1, DEVICES = 64,
       SMALL = 1 << 20 /* kSmallSize: requests up to it are of the small pool */ };

typedef uint64_t word;
typedef word call6(word, word, word, word, word, word);
struct cuda_stream { uint64_t device; int64_t id; }; /* c10::cuda::CUDAStream */
typedef void report_fn(void *, int64_t, size_t, size_t, uint16_t);

/* What both allocators hold together, as far as statistics need it. */
struct sums { int64_t native, native_reserved, peak, peak_reserved; };

static struct {
	pthread_mutex_t lock;
	_Atomic int state; /* 0: not yet, 1: there, -1: not possible */
	const struct vc_slots *slots;
	void **original;
	void *table[BEFORE + SLOTS];
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
		     (uint16_t)(CUDA | device << 8));
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

	if (!s.id || !g.handle)
		return (uint64_t)s.id;
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

	if (!size || !g.current)
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
		result[1] = FUNCTION(delete_any);
		result[3] = (void *)(uintptr_t)(CUDA | device << 8);
		return result;
	}
	*(void **)&real = g.original[ALLOCATE];
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
	return FUNCTION(delete_any);
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

struct mapped { uintptr_t at, end; };

static int find_mapped(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct mapped *m = arg;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type == PT_LOAD && m->at >= at &&
		    m->at < at + info->dlpi_phdr[i].p_memsz)
			m->end = at + info->dlpi_phdr[i].p_memsz;
	}
	return m->end != 0;
}

/* 9 of "__version__ = '2.9.1+cu128'" in .../torch/version.py, beside the library at `inside`. */
static int minor_version(const void *inside)
{
	char path[1100], text[4096], *p;
	Dl_info info;
	ssize_t n;
	int fd;

	if (!dladdr(inside, &info) || strlen(info.dli_fname) > 1000)
		return -1;
	snprintf(path, sizeof(path), "%s", info.dli_fname);
	p = strrchr(path, '/');
	if (!p)
		return -1;
	snprintf(p, sizeof(path) - (size_t)(p - path), "/../version.py");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	for (p = strstr(text, "__version__"); p; p = strstr(p + 1, "__version__")) {
		char *q = p + strcspn(p, "'\"\n");

		if (strncmp(q + (*q != '\n'), "2.", 2) == 0 && *q != '\n' && strchr(p, '=') < q)
			return (int)strtol(q + 3, NULL, 10);
	}
	return -1;
}

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
	g.table[BEFORE + slot] = function;
}

static void fill_table(void)
{
	const struct vc_slots *s = g.slots;
	struct mapped m = { (uintptr_t)g.original, 0 };
	size_t n, all = (size_t)s->size;

	dl_iterate_phdr(find_mapped, &m);
	n = m.end ? (m.end - m.at) / sizeof(void *) : 0;
	memcpy(g.table, g.original - BEFORE, sizeof(void *) * (BEFORE + (n < all ? n : all)));
	set(ALLOCATE, FUNCTION(hook_allocate));
	set(s->deleter, FUNCTION(hook_deleter));
	set(s->raw_alloc, FUNCTION(hook_raw_alloc));
	set(s->raw_alloc_with_stream, FUNCTION(hook_raw_alloc_with_stream));
	set(s->raw_delete, FUNCTION(hook_raw_delete));
	set(s->stats, FUNCTION(hook_stats));
	set(s->reset_peaks, FUNCTION(hook_reset_peaks));
	set(s->use, FUNCTION(hook_use));
	set(s->trim, FUNCTION(hook_trim));
	set(s->pool_begin, FUNCTION(hook_pool_begin));
	set(s->pool_end, FUNCTION(hook_pool_end));
}

/* A DataPtr is { data, deleter, context, device }: a request of no bytes shows the deleter, and
 * whether that is so. */
static bool find_deleter(void *object)
{
	void *(*allocate)(void **, void *, size_t), *result[4] = { object, object, object, object };
	Dl_info home, theirs;

	*(void **)&allocate = g.original[ALLOCATE];
	allocate(result, object, 0);
	g.deleter = result[1];
	return !result[0] && !result[2] && ((uintptr_t)result[3] & 0xff) == CUDA &&
	       dladdr(g.deleter, &theirs) && dladdr(g.original[ALLOCATE], &home) &&
	       theirs.dli_fbase == home.dli_fbase;
}

static bool install(void)
{
	void **slot = symbol(library, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
	Dl_info function, home;
	void **object;

	if (!slot || !*slot)
		return false;
	object = *slot;
	g.original = *object;
	if (!dladdr(g.original[ALLOCATE], &function) || !dladdr(slot, &home) ||
	    function.dli_fbase != home.dli_fbase)
		return false; /* a pluggable one: its own functions are called */
	g.slots = vc_slots(minor_version(slot));
	*(void **)&g.current = symbol(library, "_ZN3c104cuda20getCurrentCUDAStreamEa");
	*(void **)&g.handle = symbol(library, "_ZNK3c104cuda10CUDAStream6streamEv");
	if (!g.slots || !g.current || !g.handle || !find_deleter(object))
		return false;
	vc_served_open(home.dli_fname);
	find_report();
	fill_table();
	*object = g.table + BEFORE;
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
	if ((device & 0xff) == CUDA && atomic_load(&g.state) == 1) {
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
