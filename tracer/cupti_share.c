/* SPDX-License-Identifier: Apache-2.0 */
/* cupti_share.c - one CUPTI for two clients: the tracer, and a profiler that the program starts.
 *
 * CUPTI knows one subscriber, one pair of buffer callbacks and one set of enabled kinds for the
 * whole process; torch.profiler (Kineto) takes them when a profile starts and would either be
 * refused or take ours away. Its calls go through the linker, so they arrive here first: the
 * callbacks that CUPTI knows are ours from the first call on, each client's wishes are kept
 * apart, and while the profiler collects, the buffers are its own. We read them on the way, and
 * take out only records of kinds that it did not ask for.
 *
 * No lock is held while CUPTI or the other client is called. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "tracer/cuda_calls.h"
#include "tracer/cupti.h"
#include "tracer/recorder.h"

/* Small buffers bound what a crash loses: at 5000 kernels/s 256 KiB are a quarter of a second. */
enum { BUFFER = 256 << 10, BUFFERS = 64, LENT = 4096 };
/* Of them CUPTI may hold 40 MiB; from 12.9 (API 27) on it takes a no and counts what it loses. */
enum { MOST = 160, TAKES_NO = 27 };
enum { KINDS = 128, DOMAINS = 8, CALLS = 2048 };

static struct {
	pthread_mutex_t lock;
	void *spare[BUFFERS];         /* buffers of ours */
	int spares;
	uint8_t *lent[LENT];          /* theirs, that CUPTI holds: open addressing, 1 = deleted */
	_Atomic int out;              /* ours, that CUPTI holds */
	_Atomic bool returned;        /* it has given one back */

	void *handle;                 /* of the one subscription; NULL: none */
	_Atomic(vc_cupti_callback *) callback[VC_CUPTI_CLIENTS];
	void *_Atomic user;           /* theirs */
	_Atomic uint8_t call[DOMAINS][CALLS]; /* who wants it: a bit per client */
	_Atomic uint8_t kind[KINDS];
	_Atomic bool asked[KINDS];    /* by them, since they began: buffers come after they ended */

	_Atomic int registered, collecting; /* kinds that they have on */
	_Atomic(vc_cupti_request *) request; /* theirs */
	_Atomic(vc_cupti_complete *) complete;
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __thread __attribute__((tls_model("initial-exec"))) struct {
	size_t lost;                  /* of the buffer being handed over */
	bool subscribing;
	void (*postponed)(void);      /* what is to be done when that call ends */
} self;

static bool is_kind(int kind)
{
	return (unsigned)kind < KINDS;
}

/* Who wants that call; NULL: of a domain or number that CUPTI does not have. */
static _Atomic uint8_t *call_of(int domain, uint32_t id)
{
	return (unsigned)domain < DOMAINS && id < CALLS ? &g.call[domain][id] : NULL;
}

/* ---- buffers ---- */

static size_t slot_of(const void *p)
{
	return (size_t)(((uintptr_t)p >> 3) * 0x9e3779b97f4a7c15u >> 40) % LENT; /* golden ratio */
}

static bool lend(uint8_t *p)
{
	bool ok = false;

	pthread_mutex_lock(&g.lock);
	for (size_t i = slot_of(p), n = 0; n < LENT && !ok; i = (i + 1) % LENT, n++)
		if ((uintptr_t)g.lent[i] <= 1) {
			g.lent[i] = p;
			ok = true;
		}
	pthread_mutex_unlock(&g.lock);
	return ok;
}

static bool take_back(const uint8_t *p)
{
	bool found = false;

	pthread_mutex_lock(&g.lock);
	for (size_t i = slot_of(p), n = 0; n < LENT && g.lent[i] && !found; i = (i + 1) % LENT, n++)
		if (g.lent[i] == p) {
			g.lent[i] = (uint8_t *)(uintptr_t)1;
			found = true;
		}
	pthread_mutex_unlock(&g.lock);
	return found;
}

static bool they_collect(void)
{
	return atomic_load_explicit(&g.collecting, memory_order_acquire) > 0 &&
	       atomic_load(&g.request) && atomic_load(&g.complete);
}

static bool is_enough(void)
{
	static _Atomic int said;
	uint32_t version = 0;

	if (atomic_load(&g.out) < MOST || !vc_cupti()->version || vc_cupti()->version(&version) ||
	    version < TAKES_NO)
		return false;
	if (!atomic_exchange(&said, 1))
		vc_recorder_fact("note", "kernel times are missing: CUPTI held 40 MiB of buffers "
				 "and gave none back");
	return true;
}

static uint8_t *buffer_of_ours(void)
{
	void *p = NULL;

	if (is_enough())
		return NULL;
	pthread_mutex_lock(&g.lock);
	if (g.spares)
		p = g.spare[--g.spares];
	pthread_mutex_unlock(&g.lock);
	if (!p) /* mapped, not malloc'ed: this runs inside any CUDA call of the program */
		p = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	atomic_fetch_add(&g.out, 1);
	return p;
}

static void request(uint8_t **buffer, size_t *size, size_t *records)
{
	*buffer = NULL;
	*size = *records = 0;
	if (they_collect()) {
		atomic_load(&g.request)(buffer, size, records);
		if (*buffer && lend(*buffer))
			return;
	}
	if (*buffer) /* more of theirs are out than can be told apart */
		atomic_load(&g.complete)(NULL, 0, *buffer, *size, 0);
	*buffer = buffer_of_ours(); /* before 12.9 CUPTI does not survive NULL, nor would we */
	*size = *buffer ? BUFFER : 0;
	*records = 0;
}

static bool only_ours(const void *record)
{
	uint32_t kind = *(const uint32_t *)record;

	return is_kind((int)kind) && !atomic_load_explicit(&g.asked[kind], memory_order_relaxed) &&
	       atomic_load_explicit(&g.kind[kind], memory_order_relaxed) & 1 << VC_CUPTI_OURS;
}

/* Copies what they asked for, in place when to == from; returns the bytes it takes. A record is as
 * long as the way to the next one. */
static size_t without_ours(uint8_t *to, size_t room, uint8_t *from, size_t valid)
{
	const struct vc_cupti_functions *f = vc_cupti();
	void *record = NULL, *next;
	size_t kept = 0;
	bool more = valid && f->next(from, valid, &record) == 0;

	while (more) {
		next = record;
		more = f->next(from, valid, &next) == 0;
		uint8_t *end = more ? next : from + valid;
		size_t n = (size_t)(end - (uint8_t *)record);

		if (!only_ours(record) && kept + n <= room) {
			memmove(to + kept, record, n);
			kept += n;
		}
		record = next;
	}
	return kept;
}

static void hand_over(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid,
		      size_t lost)
{
	vc_cupti_complete *complete = atomic_load(&g.complete);

	self.lost = lost;
	if (complete)
		complete(context, stream, buffer, size, valid);
	self.lost = 0;
}

/* A buffer of ours that was begun before they started, and holds records they want. */
static void hand_copy(void *context, uint32_t stream, uint8_t *buffer, size_t valid)
{
	vc_cupti_request *ask = atomic_load(&g.request);
	uint8_t *to = NULL;
	size_t size = 0, records = 0;

	ask(&to, &size, &records);
	if (to && size)
		hand_over(context, stream, to, size, without_ours(to, size, buffer, valid), 0);
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	const struct vc_cupti_functions *f = vc_cupti();
	size_t lost = 0;

	if (!buffer)
		return;
	atomic_store(&g.returned, true);
	vc_cupti_read(f->next, buffer, valid);
	if (f->dropped && f->dropped(context, stream, &lost) == 0 && lost &&
	    g.callback[VC_CUPTI_OURS])
		vc_recorder_lost(lost);
	if (take_back(buffer)) {
		hand_over(context, stream, buffer, size,
			  without_ours(buffer, size, buffer, valid), lost);
		return;
	}
	atomic_fetch_sub(&g.out, 1);
	if (valid && they_collect())
		hand_copy(context, stream, buffer, valid);
	memset(buffer, 0, valid); /* a client may have told CUPTI that buffers come zeroed */
	pthread_mutex_lock(&g.lock);
	if (g.spares < BUFFERS) {
		g.spare[g.spares++] = buffer;
		buffer = NULL;
	}
	pthread_mutex_unlock(&g.lock);
	if (buffer)
		munmap(buffer, BUFFER);
}

/* ---- callbacks ---- */

static bool wants(enum vc_cupti_who who, int domain, uint32_t id)
{
	const _Atomic uint8_t *call = call_of(domain, id);

	return call && *call & 1 << who;
}

static void dispatch(void *unused, int domain, uint32_t id, const void *data)
{
	vc_cupti_callback *f;

	for (int who = 0; who < VC_CUPTI_CLIENTS; who++) {
		f = g.callback[who];
		if (f && wants((enum vc_cupti_who)who, domain, id))
			f(who == VC_CUPTI_THEIRS ? g.user : NULL, domain, id, data);
	}
}

/* The driver may start us from inside: see vc_share_postpone. */
static int subscribe(void)
{
	int r = 0;

	if (g.handle)
		return 0;
	self.subscribing = true;
	r = vc_cupti()->subscribe(&g.handle, dispatch, NULL);
	self.subscribing = false;
	if (r)
		g.handle = NULL;
	return r;
}

int vc_share_subscribe(vc_cupti_callback *ours)
{
	int r = subscribe();

	if (r == 0)
		g.callback[VC_CUPTI_OURS] = ours;
	return r;
}

bool vc_share_postpone(void (*start)(void))
{
	self.postponed = self.subscribing ? start : NULL;
	return self.subscribing;
}

static void set_call(enum vc_cupti_who who, int domain, uint32_t id, bool on)
{
	_Atomic uint8_t *call = call_of(domain, id);

	if (call && on)
		*call |= (uint8_t)(1 << who);
	else if (call)
		*call &= (uint8_t)~(1 << who);
}

int vc_share_callback(int domain, uint32_t id)
{
	const struct vc_cupti_functions *f = vc_cupti();

	if (!f->enable_callback || !g.handle)
		return VC_CUPTI_INVALID;
	set_call(VC_CUPTI_OURS, domain, id, true);
	return f->enable_callback(1, g.handle, domain, id);
}

static int set_domain(enum vc_cupti_who who, int domain, bool on)
{
	const struct vc_cupti_functions *f = vc_cupti();
	int r;

	if (!call_of(domain, 0) || !f->enable_domain)
		return VC_CUPTI_INVALID;
	for (uint32_t id = 0; id < CALLS; id++)
		set_call(who, domain, id, on);
	r = f->enable_domain(on, g.handle, domain);
	for (uint32_t id = 0; !on && f->enable_callback && id < CALLS; id++)
		if (g.call[domain][id]) /* the other client's stay */
			f->enable_callback(1, g.handle, domain, id);
	return r;
}

/* ---- kinds ---- */

int vc_share_register(void)
{
	int r = atomic_load(&g.registered) ? 0 : vc_cupti()->register_callbacks(request, complete);

	if (r == 0)
		atomic_store(&g.registered, 1);
	return r;
}

int vc_share_enable(int kind)
{
	int r = vc_cupti()->enable(kind);

	if (r == 0 && is_kind(kind))
		atomic_fetch_or(&g.kind[kind], 1 << VC_CUPTI_OURS);
	return r;
}

static void set_theirs(int kind, bool on)
{
	uint8_t bit = 1 << VC_CUPTI_THEIRS, was;

	if (!is_kind(kind))
		return;
	if (on && atomic_load(&g.collecting) == 0)
		for (int i = 0; i < KINDS; i++)
			atomic_store(&g.asked[i], false);
	if (on)
		was = atomic_fetch_or(&g.kind[kind], bit);
	else
		was = atomic_fetch_and(&g.kind[kind], (uint8_t)~bit);
	if (on)
		atomic_store(&g.asked[kind], true);
	if (!(was & bit) == on)
		atomic_fetch_add(&g.collecting, on ? 1 : -1);
}

static int disable_theirs(int kind)
{
	const struct vc_cupti_functions *f = vc_cupti();

	set_theirs(kind, false);
	if (is_kind(kind) && atomic_load(&g.kind[kind]))
		return 0; /* we still want it */
	return f->disable ? f->disable(kind) : VC_CUPTI_INVALID;
}

static void drop_callbacks(void)
{
	atomic_store(&g.callback[VC_CUPTI_THEIRS], NULL);
	g.user = NULL;
	for (int domain = 1; domain < DOMAINS; domain++) {
		bool any = false;

		for (uint32_t id = 0; id < CALLS && !any; id++)
			any = wants(VC_CUPTI_THEIRS, domain, id);
		if (any)
			set_domain(VC_CUPTI_THEIRS, domain, false);
	}
}

bool vc_share_is_busy(void)
{
	return they_collect();
}

bool vc_share_is_robbed(void)
{
	return atomic_load(&g.out) > 0 && !atomic_load(&g.returned);
}

void vc_share_leave(void)
{
	const struct vc_cupti_functions *f = vc_cupti();
	const uint8_t bit = 1 << VC_CUPTI_OURS;

	for (int kind = 0; kind < KINDS; kind++)
		if (atomic_fetch_and(&g.kind[kind], (uint8_t)~bit) == bit && f->disable)
			f->disable(kind);
	for (int domain = 1; domain < DOMAINS; domain++)
		for (uint32_t id = 0; id < CALLS; id++)
			if (atomic_fetch_and(&g.call[domain][id], (uint8_t)~bit) == bit &&
			    f->enable_callback)
				f->enable_callback(0, g.handle, domain, id);
	atomic_store(&g.callback[VC_CUPTI_OURS], NULL);
	if (!g.callback[VC_CUPTI_THEIRS] && g.handle && f->unsubscribe) {
		f->unsubscribe(g.handle);
		g.handle = NULL;
	}
	if (!they_collect())
		atomic_store(&g.registered, 0);
}

/* In a forked child CUPTI is dead, and what it held is the parent's. */
void vc_share_forget(void)
{
	pthread_mutex_init(&g.lock, NULL);
	g.spares = 0;
	memset(g.lent, 0, sizeof(g.lent));
	memset((void *)g.call, 0, sizeof(g.call));
	memset((void *)g.kind, 0, sizeof(g.kind));
	g.handle = NULL;
	g.user = NULL;
	atomic_store(&g.callback[VC_CUPTI_OURS], NULL);
	atomic_store(&g.callback[VC_CUPTI_THEIRS], NULL);
	atomic_store(&g.out, 0);
	atomic_store(&g.returned, false);
	atomic_store(&g.collecting, 0);
	atomic_store(&g.registered, 0);
	atomic_store(&g.request, NULL);
	atomic_store(&g.complete, NULL);
	vc_cupti_stamped_by(NULL);
}

/* ---- what a profiler of the program's calls ---- */

int cuptiSubscribe(void **handle, vc_cupti_callback *f, void *user);
int cuptiUnsubscribe(void *handle);
int cuptiEnableCallback(uint32_t on, void *handle, int domain, uint32_t id);
int cuptiEnableDomain(uint32_t on, void *handle, int domain);
int cuptiActivityRegisterCallbacks(vc_cupti_request *ask, vc_cupti_complete *give);
int cuptiActivityRegisterTimestampCallback(vc_cupti_clock *clock);
int cuptiActivityEnable(int kind);
int cuptiActivityDisable(int kind);
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *n);
int cuptiFinalize(void);

/* Is that function of the CUPTI that we share, in a process that is recorded? */
static bool is_shared(const void *real, void *const *ours)
{
	char device[16];

	return vc_recorder_wanted() &&
	       strcmp(vc_recorder_option("device", device, sizeof(device)), "cpu") != 0 &&
	       vc_cupti_open(real) == VC_CUPTI_READY && real == *ours;
}
#define SHARED(real, field) is_shared(*(void **)&(real), (void *const *)&vc_cupti()->field)

/* The function the caller was linked with. */
#define REAL(real) \
	do { \
		static _Atomic(void *) cached; \
		void *found_ = atomic_load_explicit(&cached, memory_order_acquire); \
\
		if (!found_) { \
			found_ = vc_cuda_real(__builtin_return_address(0), __func__); \
			atomic_store_explicit(&cached, found_, memory_order_release); \
		} \
		*(void **)&(real) = found_; \
	} while (0)

VC_ENTRY int cuptiSubscribe(void **handle, vc_cupti_callback *f, void *user)
{
	int (*real)(void **, vc_cupti_callback *, void *), r;
	void (*postponed)(void);

	REAL(real);
	if (!SHARED(real, subscribe))
		return real(handle, f, user);
	if (!f || !handle)
		return VC_CUPTI_INVALID;
	if (g.callback[VC_CUPTI_THEIRS])
		return VC_CUPTI_BUSY;
	r = subscribe();
	if (r == 0) {
		g.user = user;
		g.callback[VC_CUPTI_THEIRS] = f;
		*handle = g.handle;
	}
	postponed = self.postponed;
	self.postponed = NULL;
	if (postponed)
		postponed();
	return r;
}

VC_ENTRY int cuptiUnsubscribe(void *handle)
{
	int (*real)(void *), r;

	REAL(real);
	if (!SHARED(real, unsubscribe))
		return real(handle);
	if (!g.callback[VC_CUPTI_THEIRS])
		return VC_CUPTI_INVALID;
	drop_callbacks();
	if (g.callback[VC_CUPTI_OURS])
		return 0;
	r = real(g.handle);
	g.handle = NULL;
	return r;
}

VC_ENTRY int cuptiEnableCallback(uint32_t on, void *handle, int domain, uint32_t id)
{
	int (*real)(uint32_t, void *, int, uint32_t);

	REAL(real);
	if (!SHARED(real, enable_callback))
		return real(on, handle, domain, id);
	set_call(VC_CUPTI_THEIRS, domain, id, on != 0);
	if (!on && wants(VC_CUPTI_OURS, domain, id))
		return 0;
	return real(on, g.handle ? g.handle : handle, domain, id);
}

VC_ENTRY int cuptiEnableDomain(uint32_t on, void *handle, int domain)
{
	int (*real)(uint32_t, void *, int);

	REAL(real);
	if (!SHARED(real, enable_domain) || !g.handle)
		return real(on, handle, domain);
	return set_domain(VC_CUPTI_THEIRS, domain, on != 0);
}

VC_ENTRY int cuptiActivityRegisterCallbacks(vc_cupti_request *ask, vc_cupti_complete *give)
{
	int (*real)(vc_cupti_request *, vc_cupti_complete *), r;

	REAL(real);
	if (!SHARED(real, register_callbacks))
		return real(ask, give);
	if (!ask || !give)
		return VC_CUPTI_INVALID;
	r = vc_share_register();
	if (r == 0) {
		atomic_store(&g.request, ask);
		atomic_store(&g.complete, give);
	}
	return r;
}

/* What was stamped so far is of the other clock: fetched, as far as it can be. */
VC_ENTRY int cuptiActivityRegisterTimestampCallback(vc_cupti_clock *clock)
{
	int (*real)(vc_cupti_clock *), r;

	REAL(real);
	if (!SHARED(real, register_clock))
		return real(clock);
	if (atomic_load(&g.registered))
		vc_cupti()->flush(0);
	r = real(clock);
	if (r == 0)
		vc_cupti_stamped_by(clock);
	return r;
}

VC_ENTRY int cuptiActivityEnable(int kind)
{
	int (*real)(int), r;

	REAL(real);
	if (!SHARED(real, enable))
		return real(kind);
	if (!they_collect() && atomic_load(&g.registered))
		vc_cupti()->flush(0); /* what is from before is ours */
	r = real(kind);
	if (r == 0)
		set_theirs(kind, true);
	return r;
}

VC_ENTRY int cuptiActivityDisable(int kind)
{
	int (*real)(int);

	REAL(real);
	return SHARED(real, disable) ? disable_theirs(kind) : real(kind);
}

VC_ENTRY int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *n)
{
	int (*real)(void *, uint32_t, size_t *);

	REAL(real);
	if (!SHARED(real, dropped) || !n)
		return real(context, stream, n);
	*n = self.lost; /* asking again would answer 0 */
	self.lost = 0;
	return 0;
}

/* Would take CUPTI away from us too: what was theirs ends, the rest goes on. */
VC_ENTRY int cuptiFinalize(void)
{
	int (*real)(void);

	REAL(real);
	if (!SHARED(real, finalize) || !g.callback[VC_CUPTI_OURS])
		return real();
	for (int kind = 0; kind < KINDS; kind++)
		if (atomic_load(&g.kind[kind]) & 1 << VC_CUPTI_THEIRS)
			disable_theirs(kind);
	drop_callbacks();
	return 0;
}
