/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_streams.c - libcudart: streams, events, stream capture, graphs. */
#include "nullgpu/runtime.h"

/* ---- streams ---- */

VC_API(int, cudaStreamCreateWithPriority, void **stream, unsigned flags, int priority)
{
	vc_runtime_start();
	*stream = vc_null_stream_new(flags, priority);
	return *stream ? 0 : vc_runtime_result(VC_NULL_MEMORY);
}

VC_API(int, cudaStreamCreateWithFlags, void **stream, unsigned flags)
{
	return cudaStreamCreateWithPriority(stream, flags, 0);
}

VC_API(int, cudaStreamCreate, void **stream)
{
	return cudaStreamCreateWithPriority(stream, 0, 0);
}

VC_API(int, cudaStreamDestroy, void *stream)
{
	return vc_runtime_result(vc_null_stream_free(stream));
}

VC_API(int, cudaStreamQuery, void *stream)
{
	return vc_runtime_result(vc_null_stream_query(stream));
}

VC_API(int, cudaStreamSynchronize, void *stream)
{
	return vc_runtime_result(vc_null_stream_sync(stream));
}

VC_API(int, cudaStreamWaitEvent, void *stream, void *event, unsigned flags)
{
	return vc_runtime_result(vc_null_stream_wait(stream, event));
}

VC_API(int, cudaStreamGetPriority, void *stream, int *priority)
{
	*priority = vc_null_stream(stream)->priority;
	return 0;
}

VC_API(int, cudaStreamGetFlags, void *stream, unsigned *flags)
{
	*flags = vc_null_stream(stream)->flags;
	return 0;
}

VC_API(int, cudaStreamGetDevice, void *stream, int *device)
{
	*device = vc_null_stream(stream)->device;
	return 0;
}

VC_API(int, cudaStreamGetId, void *stream, unsigned long long *id)
{
	*id = vc_null_stream(stream)->id;
	return 0;
}

VC_API(int, cudaLaunchHostFunc, void *stream, void (*fn)(void *), void *arg)
{
	return vc_null_host_call(stream, fn, arg);
}

VC_API(int, cudaStreamAddCallback, void *stream, void (*fn)(void *, int, void *), void *arg,
       unsigned flags)
{
	fn(stream, 0, arg);
	return 0;
}

/* ---- capture ---- */

VC_API(int, cudaStreamIsCapturing, void *stream, int *status)
{
	*status = vc_null_stream(stream)->capture != 0;
	return 0;
}

VC_API(int, cudaStreamBeginCapture, void *stream, int mode)
{
	return vc_runtime_result(vc_null_capture_begin(stream));
}

VC_API(int, cudaStreamEndCapture, void *stream, void **graph)
{
	struct vc_null_graph *g;
	int rc = vc_null_capture_end(stream, &g);
	*graph = g;
	return vc_runtime_result(rc);
}

VC_API(int, cudaStreamGetCaptureInfo_v2, void *stream, int *status, unsigned long long *id,
       void **graph, const void ***dependencies, size_t *n)
{
	const struct vc_null_stream *s = vc_null_stream(stream);
	*status = s->capture != 0;
	if (id)
		*id = s->capture;
	if (graph)
		*graph = s->graph;
	if (dependencies)
		*dependencies = NULL;
	if (n)
		*n = 0;
	return 0;
}

VC_API(int, cudaStreamGetCaptureInfo_v3, void *stream, int *status, unsigned long long *id,
       void **graph, const void ***dependencies, const void **edges, size_t *n)
{
	if (edges)
		*edges = NULL;
	return cudaStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, n);
}

#if VC_CUDA_MAJOR >= 13
VC_API(int, cudaStreamGetCaptureInfo, void *stream, int *status, unsigned long long *id,
       void **graph, const void ***dependencies, const void **edges, size_t *n)
{
	return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, edges, n);
}
#else
VC_API(int, cudaStreamGetCaptureInfo, void *stream, int *status, unsigned long long *id)
{
	return cudaStreamGetCaptureInfo_v2(stream, status, id, NULL, NULL, NULL);
}
#endif

VC_API(int, cudaThreadExchangeStreamCaptureMode, int *mode)
{
	static __thread int current;
	int before = current;
	current = *mode;
	*mode = before;
	return 0;
}

/* ---- graphs: an executable is the graph, counted ---- */

VC_API(int, cudaGraphCreate, void **graph, unsigned flags)
{
	*graph = vc_null_graph_new();
	return *graph ? 0 : vc_runtime_result(VC_NULL_MEMORY);
}

/* The driver keeps about 10 kB a kernel node on the device (NVIDIA/cccl#3768), before CUDA 12.4 3.3
 * times that (vllm-project/vllm#5517): outside of PyTorch's allocator, and not counted. */
#define NODE_BYTES 34000

VC_API(int, cudaGraphInstantiate, void **executable, void *graph, unsigned long long flags)
{
	vc_null_at_most("memory of instantiated CUDA graphs",
			((const struct vc_null_graph *)graph)->nodes * (uint64_t)NODE_BYTES);
	vc_null_graph_hold(graph);
	*executable = graph;
	return 0;
}

VC_API(int, cudaGraphInstantiateWithFlags, void **executable, void *graph, unsigned long long flags)
{
	return cudaGraphInstantiate(executable, graph, flags);
}

VC_API(int, cudaGraphLaunch, void *executable, void *stream)
{
	return vc_runtime_result(vc_null_graph_launch(executable, stream));
}

VC_API(int, cudaGraphDestroy, void *graph)
{
	vc_null_graph_drop(graph);
	return 0;
}

VC_API(int, cudaGraphExecDestroy, void *executable)
{
	vc_null_graph_drop(executable);
	return 0;
}

/* The number of nodes is right; the nodes themselves have no handles. */
VC_API(int, cudaGraphGetNodes, void *graph, void **nodes, size_t *n)
{
	*n = ((const struct vc_null_graph *)graph)->nodes;
	return 0;
}

/* ---- events ---- */

VC_API(int, cudaEventCreateWithFlags, void **event, unsigned flags)
{
	vc_runtime_start();
	*event = vc_null_event_new(flags);
	return *event ? 0 : vc_runtime_result(VC_NULL_MEMORY);
}

VC_API(int, cudaEventCreate, void **event)
{
	return cudaEventCreateWithFlags(event, 0);
}

VC_API(int, cudaEventDestroy, void *event)
{
	return vc_runtime_result(vc_null_event_free(event));
}

VC_API(int, cudaEventRecord, void *event, void *stream)
{
	return vc_runtime_result(vc_null_event_record(event, stream));
}

VC_API(int, cudaEventRecordWithFlags, void *event, void *stream, unsigned flags)
{
	return cudaEventRecord(event, stream);
}

VC_API(int, cudaEventQuery, void *event)
{
	return vc_runtime_result(vc_null_event_query(event));
}

VC_API(int, cudaEventSynchronize, void *event)
{
	return vc_runtime_result(vc_null_event_sync(event));
}

VC_API(int, cudaEventElapsedTime, float *ms, void *a, void *b)
{
	return vc_runtime_result(vc_null_event_elapsed(a, b, ms));
}

#if VC_CUDA_MAJOR >= 13
VC_API(int, cudaEventElapsedTime_v2, float *ms, void *a, void *b)
{
	return cudaEventElapsedTime(ms, a, b);
}
#endif
