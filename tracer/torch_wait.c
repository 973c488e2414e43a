/* SPDX-License-Identifier: Apache-2.0 */
/* torch_wait.c - see torch_wait.h.
 *
 * PyTorch (insert_events, process_events in CUDACachingAllocator.cpp, 2.0 to 2.15): free()
 * records an event on each stream that used the block and then reports the free; a later malloc()
 * queries the events and frees the block when the last has passed. While a graph is captured the
 * events are recorded only by the first malloc() after it. */
#define _GNU_SOURCE
#include "tracer/torch_wait.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "tracer/recorder.h"
#include "tracer/torch.h"

enum { BLOCKS = 4096, EVENTS = 8192, STREAMS = 8, RECENT = 16 };

struct block {
	uint64_t at, stream[STREAMS];
	uint32_t streams, waits;  /* events that have not passed */
	uint32_t next;    /* of the same hash, or of those that are not in use; 0: none */
	bool freed, late; /* late: freed during a capture, its events are yet to be recorded */
};

struct event { uint64_t handle; uint32_t block, next; };

/* Number 0 of each array is not used. */
struct table { uint32_t first[BLOCKS], idle, made; };

static struct {
	pthread_mutex_t lock;
	_Atomic int blocks;       /* in use: nothing is looked at while it is 0 */
	_Atomic int scopes;
	uint32_t late;
	struct table by_address, by_handle;
	struct block block[BLOCKS + 1];
	struct event event[EVENTS + 1];
	struct old { uint64_t at, stream; uint16_t device; } *old; /* were there before */
	uint32_t olds;            /* places for them: a power of two */
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __thread __attribute__((tls_model("initial-exec"))) struct {
	uint64_t event[RECENT], stream[RECENT];
	uint32_t n;
} self;

static uint32_t *bucket(struct table *t, uint64_t key)
{
	return &t->first[key * 0x9e3779b97f4a7c15u >> 32 & (BLOCKS - 1)]; /* golden ratio */
}

static struct block *find(uint64_t at)
{
	uint32_t i = *bucket(&g.by_address, at);

	while (i && (g.block[i].at != at || g.block[i].freed))
		i = g.block[i].next;
	return i ? &g.block[i] : NULL;
}

/* NULL: there are too many; what is not seen then is counted. */
static struct block *add(uint64_t at)
{
	uint32_t i = g.by_address.idle, *first = bucket(&g.by_address, at);

	if (i)
		g.by_address.idle = g.block[i].next;
	else if (g.by_address.made < BLOCKS)
		i = ++g.by_address.made;
	if (!i) {
		vc_recorder_lost(1);
		return NULL;
	}
	g.block[i] = (struct block){ .at = at, .next = *first };
	*first = i;
	atomic_fetch_add(&g.blocks, 1);
	return &g.block[i];
}

static void drop(struct block *b)
{
	uint32_t i = (uint32_t)(b - g.block), *link = bucket(&g.by_address, b->at);

	while (*link != i)
		link = &g.block[*link].next;
	*link = b->next;
	g.late -= b->late;
	*b = (struct block){ .next = g.by_address.idle };
	g.by_address.idle = i;
	atomic_fetch_sub(&g.blocks, 1);
}

void vc_wait_use(uint64_t block, uint64_t stream)
{
	struct block *b;

	pthread_mutex_lock(&g.lock);
	b = find(block);
	if (!b)
		b = add(block);
	for (uint32_t i = 0; b && i < b->streams; i++)
		if (b->stream[i] == stream)
			b = NULL;
	if (b && b->streams < STREAMS)
		b->stream[b->streams++] = stream;
	pthread_mutex_unlock(&g.lock);
}

static void bind(struct block *b, uint64_t handle)
{
	uint32_t i = g.by_handle.idle, *first = bucket(&g.by_handle, handle);

	if (i)
		g.by_handle.idle = g.event[i].next;
	else if (g.by_handle.made < EVENTS)
		i = ++g.by_handle.made;
	if (!i) {
		vc_recorder_lost(1);
		return;
	}
	g.event[i] = (struct event){ handle, (uint32_t)(b - g.block), *first };
	*first = i;
	b->waits++;
}

static bool uses(const struct block *b, uint64_t stream)
{
	for (uint32_t i = 0; i < b->streams; i++)
		if (b->stream[i] == stream)
			return true;
	return false;
}

/* free() records its events last: an earlier one on the same stream is the program's own (FSDP
 * marks the end of a reduction so), which nobody may ever ask for. */
static bool later(uint64_t stream, uint32_t at)
{
	for (uint32_t i = at + 1; i < self.n; i++)
		if (self.stream[i] == stream)
			return true;
	return false;
}

/* ---- blocks that were there before: nobody knows who used them ---- */

static struct old *find_old(uint64_t at)
{
	uint32_t i = (uint32_t)(at * 0x9e3779b97f4a7c15u >> 32) & (g.olds - 1); /* golden ratio */

	while (g.old[i].at && g.old[i].at != at)
		i = (i + 1) & (g.olds - 1);
	return &g.old[i];
}

/* With the lock held. Pages that were never touched stay so. */
static void clear(void)
{
	if (g.old)
		munmap(g.old, g.olds * sizeof(*g.old));
	g.old = NULL;
	atomic_store(&g.blocks, 0);
	atomic_store(&g.scopes, 0);
	if (!g.by_address.made)
		return;
	g.late = 0;
	memset(&g.by_address, 0, sizeof(g.by_address));
	memset(&g.by_handle, 0, sizeof(g.by_handle));
	memset(g.block, 0, sizeof(g.block));
	memset(g.event, 0, sizeof(g.event));
}

bool vc_wait_begin(uint64_t blocks)
{
	uint32_t places = 64;
	void *p;

	while (places < 2 * blocks)
		places *= 2;
	p = mmap(NULL, places * sizeof(*g.old), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return false;
	pthread_mutex_lock(&g.lock);
	clear();
	g.old = p;
	g.olds = places;
	pthread_mutex_unlock(&g.lock);
	return true;
}

void vc_wait_old(uint64_t block, uint64_t stream, uint16_t device)
{
	pthread_mutex_lock(&g.lock);
	if (g.old) {
		*find_old(block) = (struct old){ block, stream, device };
		atomic_fetch_add(&g.blocks, 1);
	}
	pthread_mutex_unlock(&g.lock);
}

/* What free() has just recorded, on streams that are not the block's own, says who used it: more
 * than those that were seen since. */
static struct block *use_old(uint64_t at, struct block *b)
{
	struct old *o = g.old ? find_old(at) : NULL;

	if (!o || o->at != at || o->stream == UINT64_MAX)
		return b;
	for (uint32_t i = 0; i < self.n; i++) {
		if (self.stream[i] == o->stream || later(self.stream[i], i) ||
		    (b && uses(b, self.stream[i])))
			continue;
		b = b ? b : add(at);
		if (b && b->streams < STREAMS)
			b->stream[b->streams++] = self.stream[i];
		vc_record_put((struct vc_record){ .kind = VC_EV_USE, .addr = at,
			.stream = self.stream[i], .device = o->device });
	}
	o->stream = UINT64_MAX; /* once; the place stays, so that others are found */
	atomic_fetch_sub(&g.blocks, 1);
	return b;
}

bool vc_wait_free(uint64_t block)
{
	struct block *b;
	bool waits = false;

	if (!atomic_load_explicit(&g.blocks, memory_order_relaxed))
		return false;
	pthread_mutex_lock(&g.lock);
	b = find(block);
	b = use_old(block, b);
	if (b) {
		for (uint32_t i = self.n; i-- > 0;)
			if (uses(b, self.stream[i]) && !later(self.stream[i], i))
				bind(b, self.event[i]);
		b->late = !b->waits && atomic_load(&g.scopes) > 0;
		g.late += b->late;
		waits = b->waits || b->late;
		if (waits)
			b->freed = true;
		else
			drop(b);
	}
	pthread_mutex_unlock(&g.lock);
	return waits;
}

void vc_wait_scope(int by)
{
	atomic_fetch_add(&g.scopes, by);
}

void vc_wait_next(void)
{
	self.n = 0;
}

/* Inside malloc() only events of late blocks are recorded, each block's streams in turn. */
static bool bind_late(uint64_t event, uint64_t stream)
{
	bool bound = false;

	pthread_mutex_lock(&g.lock);
	for (uint32_t i = 1; g.late && i <= g.by_address.made && !bound; i++) {
		struct block *b = &g.block[i];

		if (!b->late || !uses(b, stream))
			continue;
		bind(b, event);
		bound = true;
		for (uint32_t k = 0; k < b->streams; k++)
			if (b->stream[k] == stream)
				b->stream[k] = UINT64_MAX;
		b->late = false;
		for (uint32_t k = 0; k < b->streams; k++)
			b->late = b->late || b->stream[k] != UINT64_MAX;
		g.late -= !b->late;
	}
	pthread_mutex_unlock(&g.lock);
	return bound;
}

void vc_wait_recorded(uint64_t event, uint64_t stream)
{
	if (!atomic_load_explicit(&g.blocks, memory_order_relaxed))
		return;
	if (vc_torch_allocating() && bind_late(event, stream))
		return;
	if (self.n == RECENT) {
		memmove(self.event, self.event + 1, sizeof(self.event) - sizeof(*self.event));
		memmove(self.stream, self.stream + 1, sizeof(self.stream) - sizeof(*self.stream));
		self.n--;
	}
	self.event[self.n] = event;
	self.stream[self.n++] = stream;
}

uint64_t vc_wait_passed(uint64_t event)
{
	uint32_t *link;
	uint64_t at = 0;

	if (!atomic_load_explicit(&g.blocks, memory_order_relaxed))
		return 0;
	pthread_mutex_lock(&g.lock);
	link = bucket(&g.by_handle, event);
	while (*link && g.event[*link].handle != event)
		link = &g.event[*link].next;
	if (*link) {
		uint32_t i = *link;
		struct block *b = &g.block[g.event[i].block];

		*link = g.event[i].next;
		g.event[i].next = g.by_handle.idle;
		g.by_handle.idle = i;
		if (--b->waits == 0) {
			at = b->at;
			drop(b);
		}
	}
	pthread_mutex_unlock(&g.lock);
	return at;
}

void vc_wait_forget(void)
{
	pthread_mutex_init(&g.lock, NULL);
	clear();
}

void vc_wait_clear(void)
{
	pthread_mutex_lock(&g.lock);
	clear();
	pthread_mutex_unlock(&g.lock);
}
