/* SPDX-License-Identifier: Apache-2.0 */
/* activity.c - hands what happens on the null device to a listener: the stand-in CUPTI. */
#include "nullgpu/null.h"

#include <stdatomic.h>

static _Atomic(vc_null_listener *) listener;
static _Atomic(vc_null_api_listener *) api_listener;
static atomic_uint correlation;

/* The device's own times of the latest activities, for vc_null_span. */
enum { SPANS = 1 << 20 };
static struct { uint64_t at, ns; uint32_t correlation; } span[SPANS];

static _Thread_local uint64_t via;

void vc_null_via(uint64_t pool)
{
	via = pool;
}

void vc_null_listen(vc_null_listener *l)
{
	atomic_store(&listener, l);
}

bool vc_null_heard(void)
{
	return atomic_load_explicit(&listener, memory_order_relaxed) != NULL;
}

void vc_null_tell(const struct vc_null_activity *activity)
{
	vc_null_listener *l = atomic_load(&listener);
	if (!l)
		return;
	struct vc_null_activity a = *activity;
	if (!a.pool)
		a.pool = via;
	a.correlation = atomic_fetch_add(&correlation, 1) + 1;
	if (!a.start)
		a.start = a.end = vc_null_clock();
	span[a.correlation % SPANS].at = a.start;
	span[a.correlation % SPANS].ns = a.end - a.start;
	span[a.correlation % SPANS].correlation = a.correlation;
	l(&a);
}

bool vc_null_span(uint32_t which, uint64_t *at, uint64_t *ns)
{
	if (!which || span[which % SPANS].correlation != which)
		return false;
	*at = span[which % SPANS].at;
	*ns = span[which % SPANS].ns;
	return true;
}

void vc_null_listen_api(vc_null_api_listener *l)
{
	atomic_store(&api_listener, l);
}

bool vc_null_heard_api(void)
{
	return atomic_load_explicit(&api_listener, memory_order_relaxed) != NULL;
}

void vc_null_tell_api(int domain, int cbid, int site, const char *name, const void *params,
		      const int *result)
{
	vc_null_api_listener *l = atomic_load(&api_listener);
	if (l)
		l(domain, cbid, site, name, params, result, atomic_load(&correlation) + 1);
}
