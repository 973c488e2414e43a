/* SPDX-License-Identifier: Apache-2.0 */
/* cupti.c - a scripted libcupti: the functions the tracer asks for, and standin_* to make records in
 * the layouts of several versions (STANDIN_CUPTI: API number), to lose some, to be held by another. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/cupti_abi.h"

static struct {
	pthread_mutex_t lock;
	vc_cupti_callback *callback;
	vc_cupti_request *request;
	vc_cupti_complete *complete;
	bool kind[128], call[1024];
	uint8_t *buffer;
	size_t size, used, lost;
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint32_t api(void)
{
	const char *v = getenv("STANDIN_CUPTI");

	return v ? (uint32_t)atoi(v) : 130001;
}

/* Sizes of the records by version, from the headers of 11.2, 11.8, 12.5 and 13.0. */
static size_t stride(uint32_t kind)
{
	if (kind == VC_CUPTI_KERNEL)
		return api() < 18 ? 160 : api() < 23 ? 176 : api() < 130000 ? 200 : 216;
	if (kind == VC_CUPTI_MEMORY2)
		return api() < 18 ? 112 : api() < 24 ? 120 : 128;
	return kind == VC_CUPTI_MEMCPY ? (api() < 18 ? 80 : 96) : kind == VC_CUPTI_MEMSET ? 88 : 64;
}

int cuptiGetVersion(uint32_t *v);
int cuptiGetResultString(int r, const char **s);
int cuptiSubscribe(void **handle, vc_cupti_callback *f, void *user);
int cuptiEnableCallback(uint32_t on, void *handle, int domain, uint32_t id);
int cuptiActivityRegisterCallbacks(vc_cupti_request *r, vc_cupti_complete *c);
int cuptiActivityEnable(int kind);
int cuptiActivityFlushAll(uint32_t how);
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record);
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *n);
int cuptiActivitySetAttribute(int a, size_t *n, void *v);
int cuptiGetStreamIdEx(void *context, void *stream, uint8_t per_thread, uint32_t *id);
void standin_kernel(const char *name, uint64_t start, uint64_t end, uint32_t stream);
void standin_copy(uint64_t bytes, uint64_t start, uint64_t end);
void standin_fill(uint64_t bytes, uint64_t start, uint64_t end);
void standin_memory(uint32_t op, uint32_t where, uint64_t at, uint64_t bytes, uint32_t context);
void standin_call(uint32_t id, const void *params, int result);
void standin_stream(void *handle);
void standin_lose(size_t n);

int cuptiGetVersion(uint32_t *v)
{
	*v = api();
	return 0;
}

int cuptiGetResultString(int r, const char **s)
{
	*s = r == VC_CUPTI_BUSY ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : "CUPTI_SUCCESS";
	return 0;
}

int cuptiSubscribe(void **handle, vc_cupti_callback *f, void *user)
{
	(void)user;
	if (getenv("STANDIN_BUSY"))
		return VC_CUPTI_BUSY;
	g.callback = f;
	*handle = &g;
	return 0;
}

int cuptiEnableCallback(uint32_t on, void *handle, int domain, uint32_t id)
{
	(void)handle;
	if (domain == VC_CUPTI_DRIVER_API && id < 1024)
		g.call[id] = on;
	return 0;
}

int cuptiActivityRegisterCallbacks(vc_cupti_request *r, vc_cupti_complete *c)
{
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
	if (b)
		g.complete(NULL, 0, b, g.size, g.used);
}

int cuptiActivityFlushAll(uint32_t how)
{
	(void)how;
	pthread_mutex_lock(&g.lock);
	deliver();
	pthread_mutex_unlock(&g.lock);
	return 0;
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
	*n = g.lost;
	g.lost = 0;
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

/* A record of that kind, or NULL when it is off or no buffer can be had. Call with the lock held. */
static void *record(uint32_t kind)
{
	size_t n = stride(kind), most = 0;
	void *p;

	if (!g.kind[kind])
		return NULL;
	if (g.buffer && g.used + n > g.size)
		deliver();
	if (!g.buffer) {
		g.request(&g.buffer, &g.size, &most);
		g.used = 0;
		if (!g.buffer)
			return NULL;
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
		*k = (struct vc_cupti_fill){ .kind = VC_CUPTI_MEMSET, .bytes = bytes, .start = start,
			.end = end, .stream = 7 };
	pthread_mutex_unlock(&g.lock);
}

void standin_memory(uint32_t op, uint32_t where, uint64_t at, uint64_t bytes, uint32_t context)
{
	pthread_mutex_lock(&g.lock);
	struct vc_cupti_memory *m = record(VC_CUPTI_MEMORY2);

	if (m)
		*m = (struct vc_cupti_memory){ .kind = VC_CUPTI_MEMORY2, .operation = op,
			.memory = where, .correlation = (uint32_t)(at >> 12) + op, .address = at,
			.bytes = bytes, .timestamp = 1, .context = context, .stream = UINT32_MAX };
	pthread_mutex_unlock(&g.lock);
}

void standin_call(uint32_t id, const void *params, int result)
{
	struct vc_cupti_call call = { .site = VC_CUPTI_API_EXIT, .params = params, .result = &result };

	if (g.callback && g.call[id])
		g.callback(NULL, VC_CUPTI_DRIVER_API, id, &call);
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
