/* SPDX-License-Identifier: Apache-2.0 */
/* torch_scope.c - see torch_scope.h.
 *
 * beginAllocateToPool() takes a filter: during a capture it lets through the streams that take
 * part, under torch.cuda.use_mem_pool() the allocations of one thread. The filter is asked again
 * when an allocation is reported, in the same thread and under the same lock as the allocator
 * asked it.
 *
 * A std::function of libstdc++ is two words of functor, a manager and an invoker
 * (bits/std_function.h, part of its ABI since GCC 4); the manager makes a proper copy of the
 * functor. */
#define _GNU_SOURCE
#include "tracer/torch_scope.h"

#include <pthread.h>
#include <stdatomic.h>

#include "tracer/recorder.h"
#include "tracer/torch_wait.h"

enum { SCOPES = 16, CLONE = 2, DESTROY = 3 /* std::_Manager_operation */ };

struct function {
	uint64_t functor[2];
	bool (*manager)(uint64_t *to, const uint64_t *from, int operation);
	bool (*invoker)(const uint64_t *functor, uint64_t *stream);
};

struct scope { struct vc_scope s; struct function filter; bool used; };

static struct {
	pthread_mutex_t lock;
	_Atomic int n;
	struct scope scope[SCOPES];
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

void vc_scope_put(uint8_t kind, uint8_t flags, const struct vc_scope *s)
{
	vc_record_put((struct vc_record){ .kind = kind, .flags = flags, .device = s->device,
		.addr = s->first, .extra = s->second, .stream = s->stream });
}

static void keep_filter(struct scope *to, const void *filter)
{
	const struct function *f = filter;

	memset(&to->filter, 0, sizeof(to->filter));
	if (!f || !f->manager || !f->invoker)
		return;
	to->filter = *f;
	f->manager(to->filter.functor, f->functor, CLONE);
}

static void drop_filter(struct scope *p)
{
	if (p->filter.manager)
		p->filter.manager(p->filter.functor, p->filter.functor, DESTROY);
}

void vc_scope_begin(const struct vc_scope *s)
{
	vc_scope_put(VC_EV_POOL_BEGIN, 0, s);
	pthread_mutex_lock(&g.lock);
	for (int i = 0; i < SCOPES; i++)
		if (!g.scope[i].used) {
			g.scope[i].s = *s;
			g.scope[i].used = true;
			keep_filter(&g.scope[i], s->filter);
			atomic_fetch_add(&g.n, 1);
			break;
		}
	pthread_mutex_unlock(&g.lock);
	vc_wait_scope(1);
}

bool vc_scope_end(const struct vc_scope *s, bool by_key)
{
	struct vc_scope whole = *s;
	bool found = false;

	pthread_mutex_lock(&g.lock);
	for (int i = 0; i < SCOPES; i++) {
		struct scope *p = &g.scope[i];

		if (!p->used || p->s.device != s->device ||
		    (by_key ? p->s.key != s->key :
			      p->s.first != s->first || p->s.second != s->second))
			continue;
		whole = p->s;
		found = true;
		drop_filter(p);
		p->used = false;
		atomic_fetch_sub(&g.n, 1);
		break;
	}
	pthread_mutex_unlock(&g.lock);
	if (found) {
		vc_wait_scope(-1);
		vc_scope_put(VC_EV_POOL_END, 0, &whole);
	}
	return found;
}

uint32_t vc_scope_before(uint16_t device, uint64_t stream)
{
	uint32_t left = 0;

	if (!atomic_load_explicit(&g.n, memory_order_relaxed))
		return 0;
	pthread_mutex_lock(&g.lock);
	for (int i = 0; i < SCOPES; i++) {
		struct scope *p = &g.scope[i];
		uint64_t arg = stream;

		if (!p->used || p->s.device != device || !p->filter.invoker ||
		    p->filter.invoker(p->filter.functor, &arg))
			continue;
		vc_scope_put(VC_EV_POOL_END, 0, &p->s);
		left |= 1u << i;
	}
	pthread_mutex_unlock(&g.lock);
	return left;
}

/* Entering adds a use of the pool, which the scope has already: it is given back. */
void vc_scope_after(uint32_t left)
{
	if (!left)
		return;
	pthread_mutex_lock(&g.lock);
	for (int i = 0; i < SCOPES; i++)
		if (left & 1u << i) {
			vc_scope_put(VC_EV_POOL_BEGIN, 0, &g.scope[i].s);
			vc_scope_put(VC_EV_POOL_RELEASE, 0, &g.scope[i].s);
		}
	pthread_mutex_unlock(&g.lock);
}

void vc_scope_clear(void)
{
	pthread_mutex_lock(&g.lock);
	for (int i = 0; i < SCOPES; i++)
		if (g.scope[i].used)
			drop_filter(&g.scope[i]);
	memset(g.scope, 0, sizeof(g.scope));
	atomic_store(&g.n, 0);
	pthread_mutex_unlock(&g.lock);
}

void vc_scope_forget(void)
{
	pthread_mutex_init(&g.lock, NULL);
	memset(g.scope, 0, sizeof(g.scope));
	atomic_store(&g.n, 0);
}
