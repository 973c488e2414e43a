/* SPDX-License-Identifier: Apache-2.0 */
/* torch_hook.c - PyTorch's CUDA allocator, seen from inside its own lock and unchanged.
 *
 * c10::reportMemoryUsageToProfiler is called by the allocator for each allocation and each free, in
 * allocator order, with the block's size. The size that was asked for comes from the allocator's
 * vtable: a copy of it with our functions in front takes its place. Both are plain C to call, by
 * the Itanium C++ ABI of x86-64 and of AArch64: a DataPtr comes back in memory, as a large struct
 * does; a MempoolId_t travels in two registers, and objects with destructors as pointers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tracer/cuda_calls.h"
#include "tracer/cuda_device.h"
#include "tracer/names.h"
#include "tracer/recorder.h"
#include "tracer/samples.h"
#include "tracer/stacks.h"
#include "tracer/torch.h"
#include "tracer/torch_scope.h"
#include "tracer/torch_wait.h"

struct cuda_stream { uint64_t device; int64_t id; }; /* c10::cuda::CUDAStream */
struct data_ptr { void *data, *deleter, *context; uint64_t device; }; /* c10::DataPtr */

typedef uint64_t word;
typedef word call6(word, word, word, word, word, word);

static struct {
	pthread_mutex_t lock;
	_Atomic int state;       /* 0: not yet, 1: hooked, -1: cannot be */
	_Atomic(void *) report, out_of_memory; /* PyTorch's own */
	struct cuda_stream (*current)(int8_t);
	void *(*handle)(const struct cuda_stream *);
	void (*fresh)(void *, uint64_t); /* the null GPU's, on which nobody writes results */
	const struct vc_torch_slots *slots;
	void **object;           /* its first word is the vtable pointer */
	void **original;         /* the allocator's own vtable */
	void *table[VC_TORCH_BEFORE + VC_TORCH_SLOTS];
	_Atomic uint64_t checked, wrong;
	_Atomic uint64_t devices; /* bits of those that allocated */
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __thread __attribute__((tls_model("initial-exec"))) struct {
	size_t size;             /* asked for, by the call we are in; 0 = none */
	void *seen;              /* pointer reported for it */
	bool has_stream;
	uint32_t site;           /* call stack of the call we are in */
	uint64_t stream;         /* given by the caller */
	int64_t id;              /* the last stream id that was turned into a handle ... */
	uint64_t handle;         /* ... and that handle */
} self;

static uint64_t handle_of(struct cuda_stream s)
{
	if (s.id == 0 || !g.handle)
		return (uint64_t)s.id;
	if (s.id != self.id) {
		self.handle = (uint64_t)(uintptr_t)g.handle(&s);
		self.id = s.id;
	}
	return self.handle;
}

static uint64_t stream_now(uint16_t device)
{
	if (self.has_stream)
		return self.stream;
	return g.current ? handle_of(g.current((int8_t)device)) : 0;
}

/* ---- functions that stand in the vtable ---- */

struct guard { bool outer; size_t size; };

static void leave(struct guard *was)
{
	vc_cuda_settle();
	vc_torch_enter(was->outer);
	self.size = was->size;
	self.has_stream = false;
}

static struct guard enter(size_t size)
{
	struct guard was = { .size = self.size };

	self.site = size ? vc_stacks_here() : 0; /* before the allocator takes its lock */
	was.outer = vc_torch_enter(true);
	self.size = size;
	self.seen = NULL;
	return was;
}

/* The pointer that came back must be the one that was reported: else this is not the function we
 * take it for, and requested sizes cannot be trusted. */
static void verify(const void *returned)
{
	if (!self.seen || atomic_load_explicit(&g.checked, memory_order_relaxed) >= 64)
		return;
	atomic_fetch_add_explicit(&g.checked, 1, memory_order_relaxed);
	if (returned == self.seen || atomic_fetch_add(&g.wrong, 1) < 2)
		return;
	*g.object = g.original;
	vc_recorder_capability(VC_CAP_REQUESTS, VC_HOW_PARTIAL);
	vc_recorder_fact("note", "requested sizes are block sizes: PyTorch's allocator has another "
			 "layout than expected");
}

static struct data_ptr hook_allocate(void *object, size_t size)
{
	struct data_ptr (*real)(void *, size_t), r;
	__attribute__((cleanup(leave), unused)) struct guard was = enter(size);

	*(void **)&real = g.original[VC_TORCH_ALLOCATE];
	r = real(object, size);
	verify(r.data);
	return r;
}

static void *hook_raw_alloc(void *object, size_t size)
{
	void *(*real)(void *, size_t);
	__attribute__((cleanup(leave), unused)) struct guard was = enter(size);

	*(void **)&real = g.original[g.slots->raw_alloc];
	return real(object, size);
}

static void *hook_raw_alloc_with_stream(void *object, size_t size, void *stream)
{
	void *(*real)(void *, size_t, void *);
	__attribute__((cleanup(leave), unused)) struct guard was = enter(size);

	self.has_stream = true;
	self.stream = (uint64_t)(uintptr_t)stream;
	*(void **)&real = g.original[g.slots->raw_alloc_with_stream];
	return real(object, size, stream);
}

/* Recorded afterwards: what a request made the driver do stands in front of it, as with an
 * allocation that needs a segment. No device is named: the caches of all are emptied. */
static void hook_trim(void *object, word first, word second)
{
	void (*real)(void *, word, word);
	struct vc_record r = { .kind = VC_EV_TRIM };
	__attribute__((cleanup(leave), unused)) struct guard was = enter(0);

	*(void **)&real = g.original[g.slots->trim];
	real(object, first, second);
	vc_cuda_settle();
	if (g.slots->trim_takes_pool) {
		r.addr = first;
		r.extra = second;
	}
	for (uint64_t left = atomic_load(&g.devices) | 1; left; left >>= 1, r.device++)
		if (left & 1)
			vc_record_put(r);
}

static void hook_fraction(void *object, double fraction, int8_t device)
{
	void (*real)(void *, double, int8_t);
	struct vc_record r = { .kind = VC_EV_FRACTION, .device = (uint16_t)device };

	memcpy(&r.size, &fraction, sizeof(r.size));
	vc_record_put(r);
	*(void **)&real = g.original[g.slots->fraction];
	real(object, fraction, device);
}

/* A DataPtr begins with its data pointer. */
static void hook_use(void *object, void *const *data, struct cuda_stream stream)
{
	void (*real)(void *, void *const *, struct cuda_stream);

	if (*data) {
		vc_record_put((struct vc_record){ .kind = VC_EV_USE,
			.addr = (uint64_t)(uintptr_t)*data, .stream = handle_of(stream),
			.device = (uint16_t)(stream.device >> 8 & 0xff) });
		vc_wait_use((uint64_t)(uintptr_t)*data, handle_of(stream));
	}
	*(void **)&real = g.original[g.slots->use];
	real(object, data, stream);
}

static void put_pool(uint8_t kind, uint8_t flags, word device, word first, word second)
{
	vc_scope_put(kind, flags, &(struct vc_scope){ .device = (uint16_t)(device & 0xff),
		.first = first, .second = second, .stream = UINT64_MAX });
}

static word hook_pool_begin(word object, word device, word third, word fourth, word fifth,
			    word sixth)
{
	struct vc_scope s = { .device = (uint16_t)(device & 0xff), .stream = UINT64_MAX };
	call6 *real;

	if (g.slots->pool_style == VC_POOL_BY_ID) {
		s.first = third;
		s.second = fourth;
		s.filter = (const void *)(uintptr_t)fifth;
	} else {
		s.key = third;
		s.first = fourth;
		s.second = fifth;
		if (g.slots->pool_style == VC_POOL_BY_STREAM)
			s.stream = third;
	}
	vc_scope_begin(&s);
	*(void **)&real = g.original[g.slots->pool_begin];
	return real(object, device, third, fourth, fifth, sixth);
}

static word hook_pool_end(word object, word device, word third, word fourth, word fifth, word sixth)
{
	struct vc_scope s = { .device = (uint16_t)(device & 0xff), .stream = UINT64_MAX,
			      .first = third, .second = fourth, .key = third };
	call6 *real;
	word r;

	*(void **)&real = g.original[g.slots->pool_end];
	r = real(object, device, third, fourth, fifth, sixth);
	if (!vc_scope_end(&s, g.slots->pool_style != VC_POOL_BY_ID))
		vc_recorder_fact("note", "a memory pool was in use when the recording began: what "
				 "was allocated in it until then may lie elsewhere in a replay");
	return r;
}

static word hook_pool_release(word object, word device, word first, word second, word e, word f)
{
	call6 *real;

	put_pool(VC_EV_POOL_RELEASE, 0, device, first, second);
	*(void **)&real = g.original[g.slots->pool_release];
	return real(object, device, first, second, e, f);
}

/* `e` points to the pool's own allocator, or in newer versions to a std::shared_ptr of it: either
 * way to a word that is not 0, where there is one. */
static word hook_pool_create(word object, word device, word first, word second, word e, word f)
{
	bool served = e && *(const word *)(uintptr_t)e;
	call6 *real;

	put_pool(VC_EV_POOL_CREATE, served ? VC_EVF_SERVED : 0, device, first, second);
	*(void **)&real = g.original[g.slots->pool_create];
	return real(object, device, first, second, e, f);
}

/* A flag of a pool that exists: one use more, with the flag, and that use given back. */
static void put_flag(uint8_t flag, word device, word first, word second)
{
	put_pool(VC_EV_POOL_CREATE, flag, device, first, second);
	put_pool(VC_EV_POOL_RELEASE, 0, device, first, second);
}

static word hook_use_on_oom(word object, word device, word first, word second, word e, word f)
{
	call6 *real;

	put_flag(VC_EVF_USE_ON_OOM, device, first, second);
	*(void **)&real = g.original[g.slots->use_on_oom];
	return real(object, device, first, second, e, f);
}

static word hook_no_split(word object, word device, word first, word second, word e, word f)
{
	call6 *real;

	put_flag(VC_EVF_NO_SPLIT, device, first, second);
	*(void **)&real = g.original[g.slots->no_split];
	return real(object, device, first, second, e, f);
}

/* ---- putting them there ---- */

static void set_slot(int slot, void *function)
{
	if (slot)
		g.table[VC_TORCH_BEFORE + slot] = function;
}

static void fill_table(void)
{
	const struct vc_torch_slots *s = g.slots;

	vc_torch_copy_table(g.table, g.original);
	set_slot(VC_TORCH_ALLOCATE, VC_FUNCTION(hook_allocate));
	set_slot(s->raw_alloc, VC_FUNCTION(hook_raw_alloc));
	set_slot(s->raw_alloc_with_stream, VC_FUNCTION(hook_raw_alloc_with_stream));
	set_slot(s->trim, VC_FUNCTION(hook_trim));
	set_slot(s->fraction, VC_FUNCTION(hook_fraction));
	set_slot(s->use, VC_FUNCTION(hook_use));
	set_slot(s->pool_begin, VC_FUNCTION(hook_pool_begin));
	set_slot(s->pool_end, VC_FUNCTION(hook_pool_end));
	set_slot(s->pool_release, VC_FUNCTION(hook_pool_release));
	set_slot(s->pool_create, VC_FUNCTION(hook_pool_create));
	set_slot(s->use_on_oom, VC_FUNCTION(hook_use_on_oom));
	set_slot(s->no_split, VC_FUNCTION(hook_no_split));
}

/* Only the allocator that lives in libc10_cuda.so has the layout of the table above; a pluggable
 * one is left alone. */
static bool is_native(void *const *vtable, const void *symbol)
{
	const void *planned = dlsym(RTLD_DEFAULT, "vramcast_malloc"); /* of vramcast run */
	Dl_info function, home, plan = { 0 };

	if (planned && !dladdr(planned, &plan))
		plan.dli_fbase = NULL;
	return dladdr(vtable[VC_TORCH_ALLOCATE], &function) && dladdr(symbol, &home) &&
	       (function.dli_fbase == home.dli_fbase || function.dli_fbase == plan.dli_fbase);
}

static void say_capabilities(bool hooked)
{
	const struct vc_torch_slots *s = g.slots;
	enum vc_how known = hooked && s->use ? VC_HOW_RECORDED : VC_HOW_ABSENT;

	vc_torch_describe();
	vc_recorder_fact("plane", "cuda");
	if (getenv("VRAMCAST_NULL_NAME")) /* set by dryrun */
		vc_recorder_capability(VC_CAP_NULL_GPU, VC_HOW_RECORDED);
	vc_recorder_capability(VC_CAP_REQUESTS, hooked ? VC_HOW_RECORDED : VC_HOW_PARTIAL);
	vc_recorder_capability(VC_CAP_ADDRESSES, VC_HOW_RECORDED);
	vc_recorder_capability(VC_CAP_TIMES, VC_HOW_RECORDED);
	vc_recorder_capability(VC_CAP_START_HEAP, VC_HOW_RECORDED);
	vc_recorder_capability(VC_CAP_STREAMS, g.current ? VC_HOW_RECORDED : VC_HOW_ABSENT);
	vc_recorder_capability(VC_CAP_SETTINGS, VC_HOW_RECORDED);
	vc_recorder_capability(VC_CAP_USES, known);
	vc_recorder_capability(VC_CAP_COMPLETION, known);
	vc_recorder_capability(VC_CAP_TRIMS, known);
	vc_recorder_capability(VC_CAP_POOLS, known);
	if (!hooked)
		vc_recorder_fact("note", "requested sizes are block sizes: the allocator of this "
				 "process is none that the tracer knows");
}

static void hook_locked(void)
{
	static const char library[] = "libc10_cuda.so";
	void **slot = vc_torch_symbol(library, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
	void *object;
	bool ok;

	if (!slot)
		return;
	*(void **)&g.current = vc_torch_symbol(library, "_ZN3c104cuda20getCurrentCUDAStreamEa");
	*(void **)&g.handle = vc_torch_symbol(library, "_ZNK3c104cuda10CUDAStream6streamEv");
	if (!vc_recorder_passed()) /* a program that is found running computes with what it has */
		*(void **)&g.fresh = dlsym(RTLD_DEFAULT, "vc_null_fresh");
	object = *slot;
	g.slots = vc_torch_slots(vc_torch_minor());
	ok = object && is_native(*(void ***)object, slot);
	vc_torch_cpu_stop();
	if (!vc_recorder_open())
		ok = false;
	else
		say_capabilities(ok);
	if (ok) {
		g.object = object;
		g.original = *g.object;
		fill_table();
		*g.object = g.table + VC_TORCH_BEFORE;
		vc_torch_watch();
	}
	atomic_store_explicit(&g.state, ok ? 1 : -1, memory_order_release);
}

static void hook(void)
{
	char device[32];

	if (atomic_load_explicit(&g.state, memory_order_acquire))
		return;
	pthread_mutex_lock(&g.lock);
	if (!atomic_load(&g.state)) {
		vc_recorder_option("device", device, sizeof(device));
		if (strcmp(device, "cpu") == 0)
			atomic_store(&g.state, -2);
		else
			hook_locked();
	}
	pthread_mutex_unlock(&g.lock);
}

void vc_torch_hook(void)
{
	hook();
	vc_cuda_watch_driver();
}

void vc_torch_unhook(void)
{
	pthread_mutex_lock(&g.lock);
	if (atomic_load(&g.state) > 0 && *g.object == g.table + VC_TORCH_BEFORE)
		*g.object = g.original;
	atomic_store(&g.state, 0);
	atomic_store(&g.checked, 0);
	atomic_store(&g.devices, 0);
	vc_torch_unwatch();
	pthread_mutex_unlock(&g.lock);
	vc_cuda_unwatch_driver();
	vc_scope_clear();
	vc_wait_clear();
}

void vc_torch_forget(void)
{
	pthread_mutex_init(&g.lock, NULL);
	vc_scope_forget();
	vc_wait_forget();
}

/* ---- interposed functions ---- */

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *, int64_t, size_t, size_t,
							   uint16_t);
void _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(void *, int64_t, size_t, size_t,
							   uint16_t);
void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(int64_t, size_t, size_t, uint16_t);
void _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE(int64_t, size_t, size_t, uint16_t);
int _ZN3c104cuda28device_count_ensure_non_zeroEv(void);

static void note_alloc(void *p, uint64_t block, size_t reserved, uint16_t device)
{
	uint64_t stream = stream_now(device);
	uint32_t left = vc_scope_before(device, stream);
	struct vc_record *r = vc_record_begin();

	if (g.fresh)
		g.fresh(p, self.size ? self.size : block);
	if (!(atomic_load_explicit(&g.devices, memory_order_relaxed) >> (device & 63) & 1))
		atomic_fetch_or(&g.devices, 1ull << (device & 63));
	if (r) {
		r->kind = VC_EV_ALLOC;
		r->flags = self.size ? 0 : VC_RECF_BLOCK_ONLY;
		r->device = device;
		r->time_ns = vc_clock_ns();
		r->addr = (uint64_t)(uintptr_t)p;
		r->size = self.size ? self.size : block;
		r->extra = block;
		r->stream = stream;
		r->reserved = reserved;
		r->text = self.site;
		vc_record_commit(r);
	}
	self.seen = p;
	self.size = 0;
	vc_scope_after(left);
}

static void note_free(void *p, uint64_t block, size_t reserved, uint16_t device)
{
	bool waits = vc_wait_free((uint64_t)(uintptr_t)p);
	struct vc_record *r = vc_record_begin();

	if (!r)
		return;
	r->kind = VC_EV_FREE;
	r->flags = waits ? VC_EVF_PENDING : 0;
	r->device = device;
	r->time_ns = vc_clock_ns();
	r->addr = (uint64_t)(uintptr_t)p;
	r->size = r->stream = 0;
	r->extra = block;
	r->reserved = reserved;
	vc_record_commit(r);
}

static void report(void *p, int64_t bytes, size_t reserved, uint16_t device)
{
	hook();
	if (atomic_load_explicit(&g.state, memory_order_relaxed) == -2)
		return;
	if (bytes > 0)
		note_alloc(p, (uint64_t)bytes, reserved, device >> 8);
	else
		note_free(p, (uint64_t)-bytes, reserved, device >> 8);
	vc_wait_next();
}

/* The device is two bytes: the type below, the index above. Totals were signed up to 2.1. */
#define REPORT(name)                                                                             \
	VC_EXPORT void name(void *p, int64_t bytes, size_t total, size_t reserved,               \
			    uint16_t device)                                                     \
	{                                                                                        \
		void (*real)(void *, int64_t, size_t, size_t, uint16_t);                         \
                                                                                                 \
		if ((device & 0xff) == VC_TORCH_CUDA && bytes)                                   \
			report(p, bytes, reserved, device);                                      \
		else if ((device & 0xff) == 0)                                                   \
			vc_torch_cpu_report(p, bytes, __builtin_return_address(0));              \
		*(void **)&real = vc_torch_symbol_once(&g.report, "libc10.so", #name);           \
		if (real)                                                                        \
			real(p, bytes, total, reserved, device);                                 \
	}
REPORT(_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE)
REPORT(_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE)

/* Behind this stands a C++ exception that passes through our frames without their clean-up: what
 * they would have done is done here. What the attempt gave back stands in front of its failure.
 */
static void note_oom(uint64_t bytes, size_t reserved, uint16_t device)
{
	struct vc_record *r;

	vc_cuda_settle();
	r = vc_record_begin();
	if (r) {
		*r = (struct vc_record){.kind = VC_EV_OOM,
					.size = bytes, .addr = vc_cuda_free_bytes(),
					.device = device, .stream = stream_now(device),
					.reserved = reserved, .text = self.site,
					.time_ns = vc_clock_ns() };
		if (vc_stacks_only_failures()) { /* vramcast_failed, outside of the allocator's
						    lock */
			vc_record_hold(r);
		} else {
			vc_record_commit(r);
			vc_cuda_sample();
		}
	}
	vc_torch_enter(false);
	self.has_stream = false;
	self.size = 0;
}

#define REPORT_OOM(name) \
	VC_EXPORT void name(int64_t bytes, size_t total, size_t reserved, uint16_t device) \
	{ \
		void (*real)(int64_t, size_t, size_t, uint16_t); \
\
		if ((device & 0xff) == VC_TORCH_CUDA) \
			note_oom((uint64_t)bytes, reserved, device >> 8); \
		*(void **)&real = vc_torch_symbol_once(&g.out_of_memory, "libc10.so", #name); \
		if (real) \
			real(bytes, total, reserved, device); \
	}
REPORT_OOM(_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE)
REPORT_OOM(_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE)

/* Called once when PyTorch starts to use CUDA, before the first allocation. */
VC_EXPORT int _ZN3c104cuda28device_count_ensure_non_zeroEv(void)
{
	int (*real)(void);
	int n;

	*(void **)&real = vc_torch_symbol("libc10_cuda.so",
					  "_ZN3c104cuda28device_count_ensure_non_zeroEv");
	n = real();
	hook();
	vc_cuda_watch_driver();
	return n;
}

/* ---- settings changed at run time ---- */

/* A std::string begins with a pointer to its characters in both C++ ABIs. */
static void put_settings(const char *const *s)
{
	if (*s && vc_recorder_open())
		vc_record_put((struct vc_record){ .kind = VC_EV_CONFIGURE,
			.text = vc_names_put(*s) });
}

#define STRING_OLD "Ss" /* how the two ABIs spell std::string */
#define STRING_NEW "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#define SET "_ZN3c104cuda20CUDACachingAllocator20setAllocatorSettingsERK"
#define PARSE "_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig9parseArgsERK" STRING_NEW

void set_old(const char *const *s) __asm__(SET STRING_OLD);          /* up to 2.6 */
void set_new(const char *const *s) __asm__(SET STRING_NEW);          /* 2.7 to 2.9 */
void parse(void *object, const char *const *s) __asm__(PARSE);       /* from 2.10 on */

static void call_real(const char *name, const char *const *s)
{
	void (*real)(const char *const *);

	put_settings(s);
	*(void **)&real = vc_torch_symbol("libc10_cuda.so", name);
	real(s);
}

VC_EXPORT void set_old(const char *const *s)
{
	call_real(SET STRING_OLD, s);
}

VC_EXPORT void set_new(const char *const *s)
{
	call_real(SET STRING_NEW, s);
}

static bool is_environments(const char *s)
{
	static const char *const names[] = { "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *v = getenv(names[i]);

		if (v && s && strcmp(v, s) == 0)
			return true;
	}
	return false;
}

/* The configuration object parses the text of the environment too, at its start, which may come
 * after ours: that is known. */
VC_EXPORT void parse(void *object, const char *const *s)
{
	static _Atomic int parsed;
	void (*real)(void *, const char *const *);

	if (atomic_load(&g.state) && (atomic_exchange(&parsed, 1) || !is_environments(*s)))
		put_settings(s);
	*(void **)&real = vc_torch_symbol("libc10.so", PARSE);
	real(object, s);
}
