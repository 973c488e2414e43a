/* SPDX-License-Identifier: Apache-2.0 */
/* cupti_layout.c - compiled only: the tracer's picture of CUPTI against the headers of a CUDA
 * toolkit. */
#include <cuda.h>
#include <cupti.h>
#include <cupti_activity_deprecated.h>
#include <stddef.h>

#include "tracer/cupti_abi.h"

#define AT(ours, f, theirs, g) \
	_Static_assert(offsetof(struct ours, f) == offsetof(theirs, g), #ours "." #f)
#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

AT(vc_cupti_kernel, start, CUpti_ActivityKernel6, start);
AT(vc_cupti_kernel, end, CUpti_ActivityKernel6, end);
AT(vc_cupti_kernel, device, CUpti_ActivityKernel6, deviceId);
AT(vc_cupti_kernel, stream, CUpti_ActivityKernel6, streamId);
AT(vc_cupti_kernel, correlation, CUpti_ActivityKernel6, correlationId);
AT(vc_cupti_kernel, name, CUpti_ActivityKernel6, name);
AT(vc_cupti_copy, copy, CUpti_ActivityMemcpy4, copyKind);
AT(vc_cupti_copy, bytes, CUpti_ActivityMemcpy4, bytes);
AT(vc_cupti_copy, start, CUpti_ActivityMemcpy4, start);
AT(vc_cupti_copy, stream, CUpti_ActivityMemcpy4, streamId);
AT(vc_cupti_copy, correlation, CUpti_ActivityMemcpy4, correlationId);
AT(vc_cupti_fill, bytes, CUpti_ActivityMemset3, bytes);
AT(vc_cupti_fill, start, CUpti_ActivityMemset3, start);
AT(vc_cupti_fill, stream, CUpti_ActivityMemset3, streamId);
AT(vc_cupti_graph, start, CUpti_ActivityGraphTrace, start);
AT(vc_cupti_graph, stream, CUpti_ActivityGraphTrace, streamId);
AT(vc_cupti_memory, operation, CUpti_ActivityMemory2, memoryOperationType);
AT(vc_cupti_memory, memory, CUpti_ActivityMemory2, memoryKind);
AT(vc_cupti_memory, address, CUpti_ActivityMemory2, address);
AT(vc_cupti_memory, correlation, CUpti_ActivityMemory2, correlationId);
AT(vc_cupti_memory, bytes, CUpti_ActivityMemory2, bytes);
AT(vc_cupti_memory, timestamp, CUpti_ActivityMemory2, timestamp);
AT(vc_cupti_memory, device, CUpti_ActivityMemory2, deviceId);
AT(vc_cupti_memory, is_async, CUpti_ActivityMemory2, isAsync);
AT(vc_cupti_memory, pool.type, CUpti_ActivityMemory2, memoryPoolConfig.memoryPoolType);
AT(vc_cupti_memory, pool.at, CUpti_ActivityMemory2, memoryPoolConfig.address);
AT(vc_cupti_memory, pool.used, CUpti_ActivityMemory3, memoryPoolConfig.utilizedSize);
AT(vc_cupti_pool, operation, CUpti_ActivityMemoryPool, memoryPoolOperationType);
AT(vc_cupti_pool, device, CUpti_ActivityMemoryPool, deviceId);
AT(vc_cupti_pool, keep, CUpti_ActivityMemoryPool, minBytesToKeep);
AT(vc_cupti_pool, address, CUpti_ActivityMemoryPool, address);
AT(vc_cupti_pool, size, CUpti_ActivityMemoryPool, size);
AT(vc_cupti_pool, timestamp, CUpti_ActivityMemoryPool, timestamp);
AT(vc_cupti_pool, used, CUpti_ActivityMemoryPool2, utilizedSize);
AT(vc_cupti_overhead, overhead, CUpti_ActivityOverhead, overheadKind);
AT(vc_cupti_overhead, start, CUpti_ActivityOverhead, start);
AT(vc_cupti_overhead, end, CUpti_ActivityOverhead, end);
AT(vc_cupti_api, start, CUpti_ActivityAPI, start);
AT(vc_cupti_api, correlation, CUpti_ActivityAPI, correlationId);
AT(vc_cupti_call, site, CUpti_CallbackData, callbackSite);
AT(vc_cupti_call, params, CUpti_CallbackData, functionParams);
AT(vc_cupti_call, result, CUpti_CallbackData, functionReturnValue);
AT(vc_cupti_call, correlation, CUpti_CallbackData, correlationId);
/* What later versions append stays behind what is read here. */
_Static_assert(offsetof(CUpti_ActivityMemory4, memoryPoolConfig.utilizedSize) == 112, "Memory4");
_Static_assert(offsetof(CUpti_ActivityMemoryPool3, utilizedSize) == 64, "MemoryPool3");
_Static_assert(offsetof(CUpti_ActivityOverhead3, end) == 32, "Overhead3");
_Static_assert(offsetof(CUpti_ActivityKernel10, name) == 104, "Kernel10");
_Static_assert(sizeof(CUpti_ActivityMemory2) == VC_CUPTI_MEMORY2_BYTES, "Memory2");
_Static_assert(sizeof(CUpti_ActivityMemory3) == VC_CUPTI_MEMORY3, "Memory3");
_Static_assert(sizeof(CUpti_ActivityMemoryPool) == VC_CUPTI_POOL_OLDEST, "MemoryPool");
SAME(VC_CUPTI_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(VC_CUPTI_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME(VC_CUPTI_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
SAME(VC_CUPTI_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER);
SAME(VC_CUPTI_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME(VC_CUPTI_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
SAME(VC_CUPTI_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY2);
SAME(VC_CUPTI_MEMORY_POOL, CUPTI_ACTIVITY_KIND_MEMORY_POOL);
SAME(VC_CUPTI_GRAPH_TRACE, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
SAME(VC_CUPTI_ATTR_HOST_PINNED, CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED);
SAME(VC_CUPTI_MEM_ALLOC, CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2);
SAME(VC_CUPTI_MEM_FREE, CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2);
SAME(VC_CUPTI_MEM_ALLOC_ASYNC, CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync);
SAME(VC_CUPTI_MEM_RESERVE, CUPTI_DRIVER_TRACE_CBID_cuMemAddressReserve);
SAME(VC_CUPTI_MEM_UNRESERVE, CUPTI_DRIVER_TRACE_CBID_cuMemAddressFree);
SAME(VC_CUPTI_MEM_CREATE, CUPTI_DRIVER_TRACE_CBID_cuMemCreate);
SAME(VC_CUPTI_MEM_RELEASE, CUPTI_DRIVER_TRACE_CBID_cuMemRelease);
SAME(VC_CUPTI_MEM_SET_ACCESS, CUPTI_DRIVER_TRACE_CBID_cuMemSetAccess);
SAME(VC_CUPTI_MEM_MAP, CUPTI_DRIVER_TRACE_CBID_cuMemMap);
SAME(VC_CUPTI_MEM_UNMAP, CUPTI_DRIVER_TRACE_CBID_cuMemUnmap);
SAME(VC_CUPTI_LAUNCH, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
SAME(VC_CUPTI_LAUNCH_EX, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx);
SAME(VC_CUPTI_LAUNCH_GRAPH, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch);
SAME(VC_CUPTI_RT_LAUNCH, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
SAME(VC_CUPTI_RT_LAUNCH_EX, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060);
SAME(VC_CUPTI_RT_LAUNCH_GRAPH, CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000);
SAME(VC_CUPTI_RT_COPY_ASYNC, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020);
SAME(VC_CUPTI_BUSY, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
