/* SPDX-License-Identifier: Apache-2.0 */
/* torch_wait.c - see torch_wait.h.
 *
 * PyTorch (insert_events, process_events in CUDACachingAllocator.cpp, 2.0 to 2.15): free()
 * records an event on each stream that used the block and then reports the free; a later malloc()
 * queries the events and frees the block when the last has passed. While a graph is captured the
 * events are recorded only by the first malloc() after it. */
#include "tracer/torch_wait.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "tracer/torch.h"

enum { BLOCKS = 4096, EVENTS = 8192, STREAMS = 8, RECENT = 16 };

struct block {
	uint64_t at, stream[STREAMS];
	uint32_t streams, waits;  /* events that have not passed */
	bool freed, late; /* late: freed during a capture, its events are yet to be recorded */
};

struct event { uint64_t handle; uint32_t block; bool used; };

static struct {
	pthread_mutex_t lock;
	_Atomic int blocks;       /* in use: nothing is looked at while it is 0 */
	_Atomic int scopes;
	struct block block[BLOCKS];
	struct event event[EVENTS];
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __thread __attribute__((tls_model("initial-exec"))) struct {
	uint64_t event[RECENT], stream[RECENT];
	uint32_t n;
} self;

static struct block *find(uint64_t at, bool freed)
{
	for (int i = 0; i < BLOCKS; i++)
		if (g.block[i].at == at && g.block[i].freed == freed)
			return &g.block[i];
	return NULL;
}

static void drop(struct block *b)
{
	memset(b, 0, sizeof(*b));
	atomic_fetch_sub(&g.blocks, 1);
}

void vc_wait_use(uint64_t block, uint64_t stream)
{
	struct block *b;

	pthread_mutex_lock(&g.lock);
	b = find(block, false);
	if (!b) {
		b = find(0, false);
		if (b) {
			b->at = block;
			atomic_fetch_add(&g.blocks, 1);
		}
	}
	for (uint32_t i = 0; b && i < b->streams; i++)
		if (b->stream[i] == stream)
			b = NULL;
	if (b && b->streams < STREAMS)
		b->stream[b->streams++] = stream;
	pthread_mutex_unlock(&g.lock);
}

static void bind(struct block *b, uint64_t handle)
{
	for (int i = 0; i < EVENTS; i++)
		if (!g.event[i].used) {
			g.event[i] = (struct event){ handle, (uint32_t)(b - g.block), true };
			b->waits++;
			return;
		}
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

bool vc_wait_free(uint64_t block)
{
	struct block *b;
	bool waits = false;

	if (!atomic_load_explicit(&g.blocks, memory_order_relaxed))
		return false;
	pthread_mutex_lock(&g.lock);
	b = find(block, false);
	if (b) {
		for (uint32_t i = self.n; i-- > 0;)
			if (uses(b, self.stream[i]) && !later(self.stream[i], i))
				bind(b, self.event[i]);
		b->late = !b->waits && atomic_load(&g.scopes) > 0;
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
	for (int i = 0; i < BLOCKS && !bound; i++) {
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
	uint64_t at = 0;

	if (!atomic_load_explicit(&g.blocks, memory_order_relaxed))
		return 0;
	pthread_mutex_lock(&g.lock);
	for (int i = 0; i < EVENTS; i++)
		if (g.event[i].used && g.event[i].handle == event) {
			struct block *b = &g.block[g.event[i].block];

			g.event[i].used = false;
			if (--b->waits == 0) {
				at = b->at;
				drop(b);
			}
			break;
		}
	pthread_mutex_unlock(&g.lock);
	return at;
}

void vc_wait_forget(void)
{
	pthread_mutex_init(&g.lock, NULL);
}
