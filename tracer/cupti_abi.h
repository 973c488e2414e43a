/* SPDX-License-Identifier: Apache-2.0 */
/* cupti_abi.h - the little of CUPTI that the tracer uses, so that it builds without a CUDA toolkit.
 *
 * Activity records are read through the oldest layout that holds a field: newer CUPTI versions only
 * append (checked by offsetof against the headers of 11.2 to 13.0; tests/tracer/cupti_layout.c
 * checks against those of this machine). Stepping is CUPTI's own business. */
#pragma once

#include "common/std.h"

enum { /* CUpti_ActivityKind */
	VC_CUPTI_MEMCPY = 1, VC_CUPTI_MEMSET = 2, VC_CUPTI_DRIVER = 4, VC_CUPTI_RUNTIME = 5,
	VC_CUPTI_KERNEL = 10, VC_CUPTI_OVERHEAD = 17,
	VC_CUPTI_MEMORY2 = 49, VC_CUPTI_MEMORY_POOL = 50, VC_CUPTI_GRAPH_TRACE = 51,
};
enum { VC_CUPTI_DRIVER_API = 1, VC_CUPTI_RESOURCE = 3 };           /* CUpti_CallbackDomain */
enum { VC_CUPTI_STREAM_CREATED = 3 };                              /* CUpti_CallbackIdResource */
enum { VC_CUPTI_API_ENTER = 0, VC_CUPTI_API_EXIT = 1 };            /* CUpti_ApiCallbackSite */
enum { VC_CUPTI_ATTR_HOST_PINNED = 8 };                             /* CUpti_ActivityAttribute */
enum { /* CUpti_driver_api_trace_cbid: numbers are only ever added */
	VC_CUPTI_MEM_ALLOC = 243, VC_CUPTI_MEM_FREE = 245,
	VC_CUPTI_MEM_RESERVE = 547, VC_CUPTI_MEM_UNRESERVE = 548, VC_CUPTI_MEM_CREATE = 549,
	VC_CUPTI_MEM_RELEASE = 550, VC_CUPTI_MEM_MAP = 551, VC_CUPTI_MEM_UNMAP = 552,
	VC_CUPTI_MEM_SET_ACCESS = 553,
	VC_CUPTI_MEM_ALLOC_ASYNC = 598, VC_CUPTI_LAUNCH = 307, VC_CUPTI_LAUNCH_EX = 652,
	VC_CUPTI_LAUNCH_GRAPH = 514,
};
enum { /* CUpti_runtime_api_trace_cbid */
	VC_CUPTI_RT_COPY_ASYNC = 41, VC_CUPTI_RT_LAUNCH = 211, VC_CUPTI_RT_LAUNCH_GRAPH = 311,
	VC_CUPTI_RT_LAUNCH_EX = 430,
};
enum { VC_CUPTI_INVALID = 1 };
enum { VC_CUPTI_BUSY = 39 }; /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */
enum { VC_CUPTI_FLUSH_FORCED = 1 };
enum { VC_CUPTI_KIND_PINNED = 2, VC_CUPTI_KIND_DEVICE = 3, VC_CUPTI_KIND_MANAGED = 5 };

struct vc_cupti_kernel { /* CUpti_ActivityKernel6, CUPTI 11.2 */
	uint32_t kind, unused0[3];
	uint64_t start, end;
	uint64_t unused1;
	uint32_t device, context, stream;
	uint32_t unused2[10];
	uint32_t correlation;
	uint64_t unused3;
	const char *name;
};
struct vc_cupti_copy { /* CUpti_ActivityMemcpy4 */
	uint32_t kind;
	uint8_t copy, from, to, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
};
struct vc_cupti_fill { /* CUpti_ActivityMemset3 */
	uint32_t kind, value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
};
struct vc_cupti_graph { /* CUpti_ActivityGraphTrace */
	uint32_t kind, correlation;
	uint64_t start, end;
	uint32_t device, graph, context, stream;
};
struct vc_cupti_memory { /* CUpti_ActivityMemory2: 112 bytes */
	uint32_t kind, operation, memory, correlation;
	uint64_t address, bytes, timestamp, pc;
	uint32_t process, device, context, stream;
	const char *name;
	uint32_t is_async, unused;
	struct vc_cupti_memory_pool {
		uint32_t type, unused;
		uint64_t at, threshold, size;
		uint64_t used; /* CUpti_ActivityMemory3, 11.6 */
	} pool;
};
enum { VC_CUPTI_MEMORY2_BYTES = 112, VC_CUPTI_MEMORY3 = 120 };
struct vc_cupti_pool { /* CUpti_ActivityMemoryPool, 11.2: 64 bytes */
	uint32_t kind, operation, type, correlation, process, device;
	uint64_t keep, address, size, threshold, timestamp;
	uint64_t used; /* CUpti_ActivityMemoryPool2, 11.6: behind the end of the oldest */
};
enum { VC_CUPTI_POOL_LOCAL = 1, VC_CUPTI_POOL_OLDEST = 64 };
struct vc_cupti_overhead { /* CUpti_ActivityOverhead: 40 bytes, packed */
	uint32_t kind, overhead, object;
	uint32_t id[3]; /* CUpti_ActivityObjectKindId */
	uint64_t start, end;
};
struct vc_cupti_api { /* CUpti_ActivityAPI */
	uint32_t kind, call;
	uint64_t start, end;
	uint32_t process, thread, correlation, result;
};
struct vc_cupti_call { /* CUpti_CallbackData */
	int site, unused;
	const char *function;
	const void *params;
	const int *result;
	const char *symbol;
	void *context;
	uint32_t context_uid;
	uint64_t *data;
	uint32_t correlation;
};
struct vc_cupti_resource { void *context, *handle; }; /* CUpti_ResourceData */
struct vc_cupti_map {
	uint64_t at;
	size_t size;
}; /* cuMemMap_params, cuMemUnmap_params: prefix */
struct vc_cupti_alloc { uint64_t *at; size_t size; }; /* cuMemAlloc_v2_params */
struct vc_cupti_free { uint64_t at; };                /* cuMemFree_v2_params */

_Static_assert(offsetof(struct vc_cupti_kernel, start) == 16, "CUpti_ActivityKernel6");
_Static_assert(offsetof(struct vc_cupti_kernel, device) == 40, "CUpti_ActivityKernel6");
_Static_assert(offsetof(struct vc_cupti_kernel, correlation) == 92, "CUpti_ActivityKernel6");
_Static_assert(offsetof(struct vc_cupti_kernel, name) == 104, "CUpti_ActivityKernel6");
_Static_assert(offsetof(struct vc_cupti_copy, stream) == 40, "CUpti_ActivityMemcpy4");
_Static_assert(offsetof(struct vc_cupti_fill, stream) == 40, "CUpti_ActivityMemset3");
_Static_assert(offsetof(struct vc_cupti_graph, stream) == 36, "CUpti_ActivityGraphTrace");
_Static_assert(offsetof(struct vc_cupti_memory, device) == 52, "CUpti_ActivityMemory2");
_Static_assert(offsetof(struct vc_cupti_memory, pool) == 80, "CUpti_ActivityMemory2");
_Static_assert(offsetof(struct vc_cupti_memory, pool.used) == VC_CUPTI_MEMORY2_BYTES,
	       "CUpti_ActivityMemory3");
_Static_assert(offsetof(struct vc_cupti_overhead, start) == 24, "CUpti_ActivityOverhead");
_Static_assert(offsetof(struct vc_cupti_pool, used) == VC_CUPTI_POOL_OLDEST,
	       "CUpti_ActivityMemoryPool");
_Static_assert(offsetof(struct vc_cupti_pool, timestamp) == 56, "CUpti_ActivityMemoryPool");
_Static_assert(offsetof(struct vc_cupti_api, correlation) == 32, "CUpti_ActivityAPI");
_Static_assert(offsetof(struct vc_cupti_call, correlation) == 64, "CUpti_CallbackData");

typedef uint64_t vc_cupti_clock(void);
typedef int vc_cupti_next(uint8_t *buffer, size_t valid, void **record);
typedef void vc_cupti_callback(void *user, int domain, uint32_t id, const void *data);
typedef void vc_cupti_request(uint8_t **buffer, size_t *size, size_t *records);
typedef void vc_cupti_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size,
			       size_t valid);
