/* SPDX-License-Identifier: Apache-2.0 */
/* activity.c - hands what happens on the null device to a listener: the stand-in CUPTI. */
#include "nullgpu/null.h"

#include <pthread.h>
#include <stdatomic.h>

static _Atomic(vc_null_listener *) listener;
static _Atomic(vc_null_api_listener *) api_listener;
static atomic_uint correlation;

/* The device's own times of the latest activities, for vc_null_span. */
enum { SPANS = 1 << 20 };
static struct { uint64_t at, ns; const char *work; uint32_t correlation; } span[SPANS];

/* Texts of work, one for equal launches; those that find no place are not told. */
enum { TEXTS = 1 << 14, PROBES = 64 };
static struct { uint64_t hash; char *text; } texts[TEXTS];
static pthread_mutex_t texts_lock = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local uint64_t via;
static _Thread_local int trying; /* what it launches is only timed, so many calls deep */

void vc_null_via(uint64_t pool)
{
	via = pool;
}

void vc_null_tries(int calls)
{
	trying += calls;
}

void vc_null_listen(vc_null_listener *l)
{
	atomic_store(&listener, l);
}

bool vc_null_heard(void)
{
	return atomic_load_explicit(&listener, memory_order_relaxed) != NULL;
}

static uint64_t hash_of(const struct vc_kernel_work *w)
{
	uint64_t h = 14695981039346656037u; /* FNV-1a, by words */
	uint64_t v[] = { w->kind, 0, (uint64_t)w->flops, (uint64_t)w->read, (uint64_t)w->written,
		w->dim[0], w->dim[1], w->dim[2], w->dim[3] };

	memcpy(&v[1], w->type, sizeof w->type);
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		h = (h ^ v[i]) * 1099511628211u;
		h ^= h >> 29;
	}
	return h | 1;
}

static const char *text_of(const struct vc_kernel_work *w)
{
	char buf[VC_WORK_TEXT];
	uint64_t hash = hash_of(w);
	const char *found = NULL;

	pthread_mutex_lock(&texts_lock);
	for (size_t k = 0; k < PROBES && !found; k++) {
		size_t i = (hash + k) % TEXTS;

		if (!texts[i].hash && (texts[i].text = strdup(vc_kernel_work_text(w, buf))) != NULL)
			texts[i].hash = hash;
		if (texts[i].hash == hash)
			found = texts[i].text;
	}
	pthread_mutex_unlock(&texts_lock);
	return found;
}

void vc_null_tell(const struct vc_null_activity *activity)
{
	vc_null_listener *l = atomic_load(&listener);
	if (!l || (trying && activity->kind <= VC_NULL_SET))
		return;
	struct vc_null_activity a = *activity;
	if (!a.pool)
		a.pool = via;
	a.correlation = atomic_fetch_add(&correlation, 1) + 1;
	if (!a.start)
		a.start = a.end = vc_null_clock();
	span[a.correlation % SPANS].at = a.start;
	span[a.correlation % SPANS].ns = a.end - a.start;
	span[a.correlation % SPANS].work = a.work ? text_of(a.work) : NULL;
	span[a.correlation % SPANS].correlation = a.correlation;
	l(&a);
}

const char *vc_null_work_of(uint32_t which)
{
	return which && span[which % SPANS].correlation == which ? span[which % SPANS].work : NULL;
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
