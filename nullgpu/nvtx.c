/* SPDX-License-Identifier: Apache-2.0 */
/* nvtx.c - libnvToolsExt, as PyTorch up to 2.4 links it: calls go to the library that
 * NVTX_INJECTION64_PATH names, if there is one. Newer PyTorch has this code in itself (nvtx3).
 *
 * Numbers and layouts are those of nvtx3/nvtxDetail/nvtxTypes.h. */
#include "nullgpu/null.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

enum { CALLBACKS = 1 /* NvtxExportTableID */, CORE = 1 /* NvtxCallbackModule */ };
enum {
	MARK = 2,
	START = 5,
	RANGE_END = 7,
	PUSH = 9,
	POP = 11,
	SLOTS = 16
}; /* NvtxCallbackIdCore */

typedef void function(void);

static function *slot[SLOTS];

static int table(uint32_t module, function ****out, unsigned *n)
{
	static function **place[SLOTS];

	if (module != CORE)
		return 0;
	for (unsigned i = 0; i < SLOTS; i++)
		place[i] = i == MARK || i == START || i == RANGE_END || i == PUSH || i == POP ?
				   &slot[i] : NULL;
	*out = place;
	*n = SLOTS;
	return 1;
}

static const void *export_table(uint32_t id)
{
	static const struct {
		size_t size;
		int (*table)(uint32_t, function ****, unsigned *);
	} callbacks = { sizeof callbacks, table };

	return id == CALLBACKS ? &callbacks : NULL;
}

static void load(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *h = path && *path ? dlopen(path, RTLD_LAZY) : NULL;
	int (*start)(const void *(*)(uint32_t));

	*(void **)&start = h ? dlsym(h, "InitializeInjectionNvtx2") : NULL;
	if (start)
		start(export_table);
}

static function *tool(int i)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
	return slot[i];
}

VC_API(int, nvtxRangePushA, const char *s)
{
	int (*f)(const char *) = (int (*)(const char *))tool(PUSH);
	return f ? f(s) : 0;
}

VC_API(int, nvtxRangePop, void)
{
	int (*f)(void) = (int (*)(void))tool(POP);
	return f ? f() : 0;
}

VC_API(uint64_t, nvtxRangeStartA, const char *s)
{
	uint64_t (*f)(const char *) = (uint64_t (*)(const char *))tool(START);
	return f ? f(s) : 0;
}

VC_API(void, nvtxRangeEnd, uint64_t id)
{
	void (*f)(uint64_t) = (void (*)(uint64_t))tool(RANGE_END);
	if (f)
		f(id);
}

VC_API(void, nvtxMarkA, const char *s)
{
	void (*f)(const char *) = (void (*)(const char *))tool(MARK);
	if (f)
		f(s);
}
