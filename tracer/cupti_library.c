/* SPDX-License-Identifier: Apache-2.0 */
/* cupti_library.c - finds libcupti and the functions of it that the tracer uses.
 *
 * It is never linked: the copy that PyTorch has loaded is shared. Two copies in one process would
 * fight over the driver. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tracer/cupti.h"

static struct {
	pthread_mutex_t lock;
	_Atomic int found; /* 1 + enum vc_cupti_found; 0: not looked for yet */
	struct vc_cupti_functions f;
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *open_library(const void *symbol)
{
	static const char *const names[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8",
		"libcupti.so.11.7", "libcupti.so.11.6", "libcupti.so.11.5", "libcupti.so.11.4",
		"libcupti.so.11.3", "libcupti.so.11.2", "libcupti.so" };
	const char *given = getenv("VC_CUPTI");
	Dl_info home;
	void *h = NULL;

	if (symbol && dladdr(symbol, &home) && home.dli_fname)
		h = dlopen(home.dli_fname, RTLD_NOW | RTLD_NOLOAD);
	if (!h && given && *given)
		h = dlopen(given, RTLD_NOW);
	for (size_t i = 0; !h && i < sizeof(names) / sizeof(*names); i++)
		h = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
	for (size_t i = 0; !h && i < sizeof(names) / sizeof(*names); i++)
		h = dlopen(names[i], RTLD_NOW);
	return h;
}

static enum vc_cupti_found load(void *h)
{
	struct vc_cupti_functions *f = &g.f;

	if (!h)
		return VC_CUPTI_NONE;
	*(void **)&f->version = dlsym(h, "cuptiGetVersion");
	*(void **)&f->subscribe = dlsym(h, "cuptiSubscribe");
	*(void **)&f->unsubscribe = dlsym(h, "cuptiUnsubscribe");
	*(void **)&f->enable_callback = dlsym(h, "cuptiEnableCallback");
	*(void **)&f->enable_domain = dlsym(h, "cuptiEnableDomain");
	*(void **)&f->register_callbacks = dlsym(h, "cuptiActivityRegisterCallbacks");
	*(void **)&f->register_clock = dlsym(h, "cuptiActivityRegisterTimestampCallback");
	*(void **)&f->enable = dlsym(h, "cuptiActivityEnable");
	*(void **)&f->disable = dlsym(h, "cuptiActivityDisable");
	*(void **)&f->runtime_api = dlsym(h, "cuptiActivityEnableRuntimeApi");
	*(void **)&f->driver_api = dlsym(h, "cuptiActivityEnableDriverApi");
	*(void **)&f->flush = dlsym(h, "cuptiActivityFlushAll");
	*(void **)&f->next = dlsym(h, "cuptiActivityGetNextRecord");
	*(void **)&f->dropped = dlsym(h, "cuptiActivityGetNumDroppedRecords");
	*(void **)&f->stream_id = dlsym(h, "cuptiGetStreamIdEx");
	*(void **)&f->set = dlsym(h, "cuptiActivitySetAttribute");
	*(void **)&f->explain = dlsym(h, "cuptiGetResultString");
	*(void **)&f->finalize = dlsym(h, "cuptiFinalize");
	return f->subscribe && f->register_callbacks && f->enable && f->flush && f->next ?
	       VC_CUPTI_READY : VC_CUPTI_INCOMPLETE;
}

enum vc_cupti_found vc_cupti_open(const void *symbol)
{
	int found = atomic_load_explicit(&g.found, memory_order_acquire);

	if (found)
		return (enum vc_cupti_found)(found - 1);
	pthread_mutex_lock(&g.lock);
	found = atomic_load(&g.found);
	if (!found) {
		found = 1 + (int)load(open_library(symbol));
		atomic_store_explicit(&g.found, found, memory_order_release);
	}
	pthread_mutex_unlock(&g.lock);
	return (enum vc_cupti_found)(found - 1);
}

const struct vc_cupti_functions *vc_cupti(void)
{
	return &g.f;
}
