/* SPDX-License-Identifier: Apache-2.0 */
/* cupti.c - a scripted libcupti: the functions the tracer asks for, and standin_* to make records
 * in the layouts of several versions (STANDIN_CUPTI: API number), to lose some, to be held by
 * another. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/tracer/cupti_standin.h"
#include "tracer/cupti_abi.h"

static struct {
	pthread_mutex_t lock;
	_Atomic(vc_cupti_callback *) callback;
	_Atomic(vc_cupti_request *) request;
	_Atomic(vc_cupti_complete *) complete;
	_Atomic bool kind[128], call[8][1024];
	uint8_t *buffer;
	size_t size, used;
	_Atomic size_t lost;
	uint32_t calls;                  /* each has a number; from 1 << 30 on */
	bool hoard;                      /* full buffers are kept */
	bool busy;                       /* a record is not complete: nothing is flushed */
	struct { uint8_t *at; size_t size, used; } kept[4096];
	int n;
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t wall(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint32_t api(void)
{
	const char *v = getenv("STANDIN_CUPTI");

	return v ? (uint32_t)atoi(v) : 130001;
}

/* Sizes of the records by version, from the headers of 11.2, 11.6, 11.8, 12.4, 12.5 and 13.0. */
static size_t stride(uint32_t kind)
{
	if (kind == VC_CUPTI_KERNEL)
		return api() < 18 ? 160 : api() < 23 ? 176 : api() < 130000 ? 200 : 216;
	if (kind == VC_CUPTI_MEMORY2)
		return api() < 16 ? 112 : api() < 24 ? 120 : 128;
	if (kind == VC_CUPTI_MEMORY_POOL)
		return api() < 16 ? 64 : api() < 130000 ? 72 : 80;
	if (kind == VC_CUPTI_OVERHEAD)
		return api() < 22 ? 40 : api() < 27 ? 48 : 56;
	if (kind == VC_CUPTI_RUNTIME)
		return 40;
	return kind == VC_CUPTI_MEMCPY ? (api() < 18 ? 80 : 96) : kind == VC_CUPTI_MEMSET ? 88 : 64;
}

int cuptiGetVersion(uint32_t *v);
int cuptiGetResultString(int r, const char **s);
int cuptiSubscribe(void **handle, vc_cupti_callback *f, void *user);
int cuptiEnableCallback(uint32_t on, void *handle, int domain, uint32_t id);
int cuptiActivityRegisterCallbacks(vc_cupti_request *r, vc_cupti_complete *c);
int cuptiUnsubscribe(void *handle);
int cuptiEnableDomain(uint32_t on, void *handle, int domain);
int cuptiActivityDisable(int kind);
int cuptiActivityRegisterTimestampCallback(vc_cupti_clock *clock);
int cuptiActivityEnableRuntimeApi(uint32_t id, uint8_t on);
int cuptiActivityEnableDriverApi(uint32_t id, uint8_t on);
int cuptiFinalize(void);
int cuptiActivityEnable(int kind);
int cuptiActivityFlushAll(uint32_t how);
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record);
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *n);
int cuptiActivitySetAttribute(int a, size_t *n, void *v);
int cuptiGetStreamIdEx(void *context, void *stream, uint8_t per_thread, uint32_t *id);

int cuptiGetVersion(uint32_t *v)
{
	*v = api();
	return 0;
}

int cuptiGetResultString(int r, const char **s)
{
	*s = r == VC_CUPTI_BUSY ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" :
				  "CUPTI_SUCCESS";
	return 0;
}

int cuptiSubscribe(void **handle, vc_cupti_callback *f, void *user)
{
	(void)user;
	if (getenv("STANDIN_SUBSCRIBE"))
		return atoi(getenv("STANDIN_SUBSCRIBE"));
	if (g.callback)
		return VC_CUPTI_BUSY;
	g.callback = f;
	*handle = &g;
	return 0;
}

int cuptiEnableCallback(uint32_t on, void *handle, int domain, uint32_t id)
{
	(void)handle;
	if (domain >= 0 && domain < 8 && id < 1024)
		g.call[domain][id] = on;
	return 0;
}

int cuptiEnableDomain(uint32_t on, void *handle, int domain)
{
	for (uint32_t id = 0; id < 1024; id++)
		cuptiEnableCallback(on, handle, domain, id);
	return 0;
}

int cuptiUnsubscribe(void *handle)
{
	(void)handle;
	g.callback = NULL;
	memset((void *)g.call, 0, sizeof(g.call));
	return 0;
}

int cuptiFinalize(void)
{
	memset((void *)g.kind, 0, sizeof(g.kind));
	g.request = NULL;
	return cuptiUnsubscribe(NULL);
}

int cuptiActivityRegisterTimestampCallback(vc_cupti_clock *clock)
{
	(void)clock; /* who makes the records stamps them */
	return 0;
}

/* Single calls: from 12.5 (API 23) on. */
int cuptiActivityEnableRuntimeApi(uint32_t id, uint8_t on)
{
	if (api() < 23)
		return 1;
	if (id == VC_CUPTI_RT_LAUNCH)
		g.kind[VC_CUPTI_RUNTIME] = on;
	return 0;
}

int cuptiActivityEnableDriverApi(uint32_t id, uint8_t on)
{
	(void)id;
	(void)on;
	return api() < 23;
}

int cuptiActivityDisable(int kind)
{
	g.kind[kind] = false;
	return 0;
}

int cuptiActivityRegisterCallbacks(vc_cupti_request *r, vc_cupti_complete *c)
{
	if (getenv("STANDIN_REGISTER"))
		return atoi(getenv("STANDIN_REGISTER"));
	g.request = r;
	g.complete = c;
	return 0;
}

int cuptiActivityEnable(int kind)
{
	const char *no = getenv("STANDIN_REFUSE");

	if (no && atoi(no) == kind)
		return 1;
	g.kind[kind] = true;
	return 0;
}

static void deliver(void)
{
	uint8_t *b = g.buffer;

	g.buffer = NULL;
	if (b && g.hoard && g.n < 4096) {
		g.kept[g.n].at = b;
		g.kept[g.n].size = g.size;
		g.kept[g.n++].used = g.used;
	} else if (b) {
		g.complete(NULL, 0, b, g.size, g.used);
	}
}

/* A device so busy that no buffer comes back, until it is told to. */
void standin_hoard(bool on)
{
	pthread_mutex_lock(&g.lock);
	g.hoard = on;
	for (int i = 0; !on && i < g.n; i++)
		g.complete(NULL, 0, g.kept[i].at, g.kept[i].size, g.kept[i].used);
	g.n = on ? g.n : 0;
	pthread_mutex_unlock(&g.lock);
}

int cuptiActivityFlushAll(uint32_t how)
{
	(void)how;
	pthread_mutex_lock(&g.lock);
	if (!g.busy)
		deliver();
	pthread_mutex_unlock(&g.lock);
	return 0;
}

void standin_busy(bool on)
{
	pthread_mutex_lock(&g.lock);
	g.busy = on;
	pthread_mutex_unlock(&g.lock);
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
	uint8_t *next = buffer;

	if (*record)
		next = (uint8_t *)*record + stride(*(uint32_t *)*record);
	if (next >= buffer + valid)
		return 12; /* CUPTI_ERROR_MAX_LIMIT_REACHED */
	*record = next;
	return 0;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *n)
{
	(void)context;
	(void)stream;
	*n = atomic_exchange(&g.lost, 0);
	return 0;
}

int cuptiActivitySetAttribute(int a, size_t *n, void *v)
{
	(void)a;
	(void)n;
	(void)v;
	return 0;
}

int cuptiGetStreamIdEx(void *context, void *stream, uint8_t per_thread, uint32_t *id)
{
	(void)context;
	(void)per_thread;
	*id = (uint32_t)((uintptr_t)stream & 0xff);
	return 0;
}

/* A record of that kind, or NULL when it is off or no buffer can be had. Call with the lock held.
 */
static void *record(uint32_t kind)
{
	size_t n = stride(kind), most = 0;
	void *p;

	if (!g.kind[kind] || !g.request)
		return NULL;
	if (g.buffer && g.used + n > g.size)
		deliver();
	if (!g.buffer) {
		g.request(&g.buffer, &g.size, &most);
		g.used = 0;
		if (!g.buffer && api() < 27)
			abort(); /* those do not survive it */
		if (!g.buffer) {
			g.lost++;
			return NULL;
		}
	}
	p = g.buffer + g.used;
	g.used += n;
	memset(p, 0xee, n); /* fields the tracer must not touch hold rubbish */
	*(uint32_t *)p = kind;
	return p;
}

void standin_kernel(const char *name, uint64_t start, uint64_t end, uint32_t stream)
{
	pthread_mutex_lock(&g.lock);
	struct vc_cupti_kernel *k = record(VC_CUPTI_KERNEL);

	if (k) {
		k->start = start;
		k->end = end;
		k->device = 0;
		k->stream = stream;
		k->correlation = 5;
		k->name = name;
	}
	pthread_mutex_unlock(&g.lock);
}

void standin_graph(uint64_t start, uint64_t end, uint32_t stream)
{
	pthread_mutex_lock(&g.lock);
	struct vc_cupti_graph *k = record(VC_CUPTI_GRAPH_TRACE);

	if (k) {
		k->correlation = 8;
		k->start = start;
		k->end = end;
		k->device = 1;
		k->stream = stream;
	}
	pthread_mutex_unlock(&g.lock);
}

void standin_copy(uint64_t bytes, uint64_t start, uint64_t end)
{
	pthread_mutex_lock(&g.lock);
	struct vc_cupti_copy *k = record(VC_CUPTI_MEMCPY);

	if (k)
		*k = (struct vc_cupti_copy){ .kind = VC_CUPTI_MEMCPY, .copy = 1, .bytes = bytes,
			.start = start, .end = end, .stream = 7 };
	pthread_mutex_unlock(&g.lock);
}

void standin_fill(uint64_t bytes, uint64_t start, uint64_t end)
{
	pthread_mutex_lock(&g.lock);
	struct vc_cupti_fill *k = record(VC_CUPTI_MEMSET);

	if (k)
		*k = (struct vc_cupti_fill){.kind = VC_CUPTI_MEMSET,
					    .bytes = bytes,
					    .start = start,
					    .end = end,
					    .stream = 7 };
	pthread_mutex_unlock(&g.lock);
}

static void memory(uint32_t op, uint32_t where, uint64_t at, uint64_t bytes, uint32_t context,
		   uint32_t correlation)
{
	pthread_mutex_lock(&g.lock);
	struct vc_cupti_memory *m = record(VC_CUPTI_MEMORY2);

	if (m) {
		memset(m, 0, VC_CUPTI_MEMORY2_BYTES);
		m->kind = VC_CUPTI_MEMORY2;
		m->operation = op;
		m->memory = where;
		m->correlation = correlation;
		m->address = at;
		m->bytes = bytes;
		m->timestamp = wall();
		m->context = context;
		m->stream = UINT32_MAX;
	}
	pthread_mutex_unlock(&g.lock);
}

void standin_memory(uint32_t op, uint32_t where, uint64_t at, uint64_t bytes, uint32_t context)
{
	memory(op, where, at, bytes, context, (uint32_t)(at >> 12) + op);
}

void standin_async(uint64_t at, uint64_t bytes, uint64_t pool, uint64_t size, uint64_t used)
{
	pthread_mutex_lock(&g.lock);
	struct vc_cupti_memory *m = record(VC_CUPTI_MEMORY2);

	if (m) {
		memset(m, 0, VC_CUPTI_MEMORY2_BYTES);
		*(uint32_t *)m = VC_CUPTI_MEMORY2;
		m->operation = 1;
		m->memory = VC_CUPTI_KIND_DEVICE;
		m->correlation = (uint32_t)(at >> 12);
		m->address = at;
		m->bytes = bytes;
		m->timestamp = wall();
		m->is_async = 1;
		m->pool.type = VC_CUPTI_POOL_LOCAL;
		m->pool.at = pool;
		m->pool.size = size;
		if (stride(VC_CUPTI_MEMORY2) >= VC_CUPTI_MEMORY3)
			m->pool.used = used;
	}
	pthread_mutex_unlock(&g.lock);
}

void standin_pool(uint32_t op, uint64_t at, uint64_t size, uint64_t used, uint64_t keep)
{
	pthread_mutex_lock(&g.lock);
	struct vc_cupti_pool *p = record(VC_CUPTI_MEMORY_POOL);

	if (p) {
		p->operation = op;
		p->type = VC_CUPTI_POOL_LOCAL;
		p->correlation = op;
		p->device = 0;
		p->keep = keep;
		p->address = at;
		p->size = size;
		p->timestamp = wall();
		if (stride(VC_CUPTI_MEMORY_POOL) > VC_CUPTI_POOL_OLDEST)
			p->used = used;
	}
	pthread_mutex_unlock(&g.lock);
}

void standin_overhead(uint32_t what, uint64_t start, uint64_t end)
{
	pthread_mutex_lock(&g.lock);
	struct vc_cupti_overhead *o = record(VC_CUPTI_OVERHEAD);

	if (o) {
		o->overhead = what;
		o->start = start;
		o->end = end;
	}
	pthread_mutex_unlock(&g.lock);
}

void standin_launch(uint32_t correlation, uint64_t start, uint64_t end)
{
	pthread_mutex_lock(&g.lock);
	struct vc_cupti_api *a = record(VC_CUPTI_RUNTIME);

	if (a) {
		a->call = VC_CUPTI_RT_LAUNCH;
		a->start = start;
		a->end = end;
		a->correlation = correlation;
	}
	pthread_mutex_unlock(&g.lock);
}

static void tell(uint32_t id, int site, const void *params, const int *result)
{
	struct vc_cupti_call call = { .site = site, .params = params, .result = result,
				      .correlation = (1u << 30) + g.calls };

	if (g.callback && g.call[VC_CUPTI_DRIVER_API][id])
		g.callback(NULL, VC_CUPTI_DRIVER_API, id, &call);
}

void standin_call(uint32_t id, const void *params, int result)
{
	g.calls++;
	tell(id, VC_CUPTI_API_ENTER, params, NULL);
	tell(id, VC_CUPTI_API_EXIT, params, &result);
}

/* A call of virtual memory that creates or releases a piece: the record carries its number. */
void standin_piece(uint32_t id, const void *params, uint32_t op, uint64_t at, uint64_t bytes)
{
	g.calls++;
	tell(id, VC_CUPTI_API_ENTER, params, NULL);
	memory(op, VC_CUPTI_KIND_DEVICE, at, bytes, 1, (1u << 30) + g.calls);
	tell(id, VC_CUPTI_API_EXIT, params, &(int){ 0 });
}

void standin_stream(void *handle)
{
	struct vc_cupti_resource r = { NULL, handle };

	if (g.callback)
		g.callback(NULL, VC_CUPTI_RESOURCE, VC_CUPTI_STREAM_CREATED, &r);
}

void standin_lose(size_t n)
{
	g.lost += n;
}
