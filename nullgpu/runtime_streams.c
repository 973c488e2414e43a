/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_streams.c - libcudart: streams, events, stream capture, graphs. */
#include <pthread.h>

#include "nullgpu/runtime.h"

/* ---- streams ---- */

VC_API(int, cudaStreamCreateWithPriority, void **stream, unsigned flags, int priority)
{
	vc_runtime_start();
	*stream = vc_null_stream_new(flags, priority);
	return *stream ? 0 : vc_runtime_result(VC_NULL_MEMORY);
}

VC_API_RETURNS(cudaStreamCreateWithFlags, (void **stream, unsigned flags),
	cudaStreamCreateWithPriority(stream, flags, 0))
VC_API_RETURNS(cudaStreamCreate, (void **stream), cudaStreamCreateWithPriority(stream, 0, 0))
VC_API_RETURNS(cudaStreamDestroy, (void *stream), vc_runtime_result(vc_null_stream_free(stream)))
VC_API_RETURNS(cudaStreamQuery, (void *stream), vc_runtime_result(vc_null_stream_query(stream)))
VC_API_RETURNS(cudaStreamSynchronize, (void *stream),
	vc_runtime_result(vc_null_stream_sync(stream)))
VC_API_RETURNS(cudaStreamWaitEvent, (void *stream, void *event, unsigned flags),
	vc_runtime_result(vc_null_stream_wait(stream, event)))
VC_API_DOES(cudaStreamGetPriority, (void *stream, int *priority),
	*priority = vc_null_stream(stream)->priority)
VC_API_DOES(cudaStreamGetFlags, (void *stream, unsigned *flags),
	*flags = vc_null_stream(stream)->flags)
VC_API_DOES(cudaStreamGetDevice, (void *stream, int *device),
	*device = vc_null_stream(stream)->device)
VC_API_DOES(cudaStreamGetId, (void *stream, unsigned long long *id),
	*id = vc_null_stream(stream)->id)
VC_API_RETURNS(cudaLaunchHostFunc, (void *stream, void (*fn)(void *), void *arg),
	vc_null_host_call(stream, fn, arg))
VC_API_DOES(cudaStreamAddCallback, (void *stream, void (*fn)(void *, int, void *), void *arg,
       unsigned flags),
	fn(stream, 0, arg))

/* ---- capture ---- */

VC_API_DOES(cudaStreamIsCapturing, (void *stream, int *status),
	*status = vc_null_stream(stream)->capture != 0)
VC_API_RETURNS(cudaStreamBeginCapture, (void *stream, int mode),
	vc_runtime_result(vc_null_capture_begin(stream)))

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
VC_API_RETURNS(cudaStreamGetCaptureInfo, (void *stream, int *status, unsigned long long *id,
       void **graph, const void ***dependencies, const void **edges, size_t *n),
	cudaStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, edges, n))
#else
VC_API_RETURNS(cudaStreamGetCaptureInfo, (void *stream, int *status, unsigned long long *id),
	cudaStreamGetCaptureInfo_v2(stream, status, id, NULL, NULL, NULL))
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

/* What the driver keeps on the device, outside of PyTorch's allocator: 512 graphs of one kernel
 * took 28 pieces of 2 MiB, 128 of 200 took 57 (an H100, driver 580.159, 2026-11-26), and what
 * destroyed ones had is kept for others. Elsewhere 10 kB a kernel node (NVIDIA/cccl#3768), before
 * CUDA 12.4 3.3 times that (vllm-project/vllm#5517). */
enum { GRAPH_BYTES = 108 << 10, NODE_BYTES = 4096, NODE_MOST = 34000, PIECE = 2 << 20 };
static struct { pthread_mutex_t lock; uint64_t used, held; } graphs = {
	.lock = PTHREAD_MUTEX_INITIALIZER
};

static uint64_t graph_bytes(const struct vc_null_graph *g)
{
	return g && g->nodes ? GRAPH_BYTES + (uint64_t)NODE_BYTES * g->nodes : 0;
}

static int take_graph(const struct vc_null_graph *g)
{
	uint64_t address;
	int r = 0;

	pthread_mutex_lock(&graphs.lock);
	graphs.used += graph_bytes(g);
	while (r == 0 && graphs.held < graphs.used) {
		r = vc_null_alloc(vc_null_current(), PIECE, &address);
		graphs.held += r == 0 ? PIECE : 0;
	}
	if (r)
		graphs.used -= graph_bytes(g);
	pthread_mutex_unlock(&graphs.lock);
	return r;
}

VC_API(int, cudaGraphInstantiate, void **executable, void *graph, unsigned long long flags)
{
	uint64_t counted = graph_bytes(graph);
	uint64_t most = ((const struct vc_null_graph *)graph)->nodes * (uint64_t)NODE_MOST;
	int r = take_graph(graph);

	if (r)
		return vc_runtime_result(r);
	vc_null_beside("memory of instantiated CUDA graphs", most > counted ? most - counted : 0);
	vc_null_graph_hold(graph);
	*executable = graph;
	return 0;
}

VC_API(int, cudaGraphExecDestroy, void *executable)
{
	pthread_mutex_lock(&graphs.lock);
	graphs.used -= graph_bytes(executable);
	pthread_mutex_unlock(&graphs.lock);
	vc_null_graph_drop(executable);
	return 0;
}

VC_API_RETURNS(cudaGraphInstantiateWithFlags, (void **executable, void *graph,
       unsigned long long flags),
	cudaGraphInstantiate(executable, graph, flags))
VC_API_RETURNS(cudaGraphLaunch, (void *executable, void *stream),
	vc_runtime_result(vc_null_graph_launch(executable, stream)))
VC_API_DOES(cudaGraphDestroy, (void *graph), vc_null_graph_drop(graph))

/* The number of nodes is right; the nodes themselves have no handles. */
VC_API_DOES(cudaGraphGetNodes, (void *graph, void **nodes, size_t *n),
	*n = ((const struct vc_null_graph *)graph)->nodes)

/* ---- events ---- */

VC_API(int, cudaEventCreateWithFlags, void **event, unsigned flags)
{
	vc_runtime_start();
	*event = vc_null_event_new(flags);
	return *event ? 0 : vc_runtime_result(VC_NULL_MEMORY);
}

VC_API_RETURNS(cudaEventCreate, (void **event), cudaEventCreateWithFlags(event, 0))
VC_API_RETURNS(cudaEventDestroy, (void *event), vc_runtime_result(vc_null_event_free(event)))
VC_API_RETURNS(cudaEventRecord, (void *event, void *stream),
	vc_runtime_result(vc_null_event_record(event, stream)))
VC_API_RETURNS(cudaEventRecordWithFlags, (void *event, void *stream, unsigned flags),
	cudaEventRecord(event, stream))
VC_API_RETURNS(cudaEventQuery, (void *event), vc_runtime_result(vc_null_event_query(event)))
VC_API_RETURNS(cudaEventSynchronize, (void *event), vc_runtime_result(vc_null_event_sync(event)))
VC_API_RETURNS(cudaEventElapsedTime, (float *ms, void *a, void *b),
	vc_runtime_result(vc_null_event_elapsed(a, b, ms)))

#if VC_CUDA_MAJOR >= 13
VC_API_RETURNS(cudaEventElapsedTime_v2, (float *ms, void *a, void *b),
	cudaEventElapsedTime(ms, a, b))
#endif
