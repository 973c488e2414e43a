/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_runtime_api.h - the few names that the headers of c10/cuda need to compile. The oracle calls
 * the allocator only, so nothing of CUDA's own headers has to be fetched. */
#ifndef VC_CUDA_RUNTIME_API_H
#define VC_CUDA_RUNTIME_API_H

#include <stddef.h>

#define CUDART_VERSION ORACLE_CUDA
#define CUDA_VERSION ORACLE_CUDA

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct { unsigned char from, to, type, reserved[5]; } cudaGraphEdgeData;
typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
enum cudaError {
	cudaSuccess = 0, cudaErrorMemoryAllocation = 2, cudaErrorInvalidValue = 1,
	cudaErrorNotReady = 600, cudaErrorPeerAccessAlreadyEnabled = 704,
	cudaErrorCudartUnloading = 4, cudaErrorUnknown = 999
};
typedef enum cudaError cudaError_t;
enum cudaStreamCaptureStatus {
	cudaStreamCaptureStatusNone = 0, cudaStreamCaptureStatusActive = 1,
	cudaStreamCaptureStatusInvalidated = 2
};
enum cudaStreamCaptureMode {
	cudaStreamCaptureModeGlobal = 0, cudaStreamCaptureModeThreadLocal = 1,
	cudaStreamCaptureModeRelaxed = 2
};
enum cudaMemcpyKind {
	cudaMemcpyHostToHost,
	cudaMemcpyHostToDevice,
	cudaMemcpyDeviceToHost,
	cudaMemcpyDeviceToDevice,
	cudaMemcpyDefault
};
#define cudaEventDefault 0
#define cudaEventDisableTiming 2
#define cudaEventInterprocess 4
#define cudaStreamNonBlocking 1
struct cudaDeviceProp;
typedef struct CUuserObject_st *cudaUserObject_t;
typedef void (*cudaHostFn_t)(void *arg);
#define cudaUserObjectNoDestructorSync 1
#define cudaGraphUserObjectMove 1
#define cudaEventExternal 8
#define cudaEventRecordDefault 0
#define cudaEventRecordExternal 1
#define cudaEventWaitDefault 0
#define cudaEventWaitExternal 1
typedef struct { char reserved[64]; } cudaIpcMemHandle_t;
typedef struct { char reserved[64]; } cudaIpcEventHandle_t;

#ifdef __cplusplus
extern "C" {
#endif
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorString(cudaError_t e);
cudaError_t cudaGetDevice(int *d);
cudaError_t cudaSetDevice(int d);
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaStreamQuery(cudaStream_t s);
cudaError_t cudaStreamSynchronize(cudaStream_t s);
cudaError_t cudaStreamGetPriority(cudaStream_t s, int *p);
cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *c);
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned f);
cudaError_t cudaDeviceGetStreamPriorityRange(int *low, int *high);
cudaError_t cudaEventQuery(cudaEvent_t e);
cudaError_t cudaEventSynchronize(cudaEvent_t e);
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned f);
cudaError_t cudaEventDestroy(cudaEvent_t e);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b);
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *m);
cudaError_t cudaMemcpy(void *d, const void *s, size_t n, enum cudaMemcpyKind k);
cudaError_t cudaMemcpyAsync(void *d, const void *s, size_t n, enum cudaMemcpyKind k,
			    cudaStream_t t);
cudaError_t cudaUserObjectCreate(cudaUserObject_t *o, void *p, cudaHostFn_t f, unsigned n,
				 unsigned flags);
cudaError_t cudaUserObjectRelease(cudaUserObject_t o, unsigned n);
cudaError_t cudaGraphRetainUserObject(cudaGraph_t g, cudaUserObject_t o, unsigned n,
				      unsigned flags);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned flags);
cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode m);
cudaError_t cudaMemGetInfo(size_t *f, size_t *t);
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t a, cudaGraphNode_t *d,
					 cudaGraphEdgeData *e, size_t *n);
/* With defaults in C++, as in CUDA's own header. */
#ifdef __cplusplus
#define OPTIONAL = 0
#else
#define OPTIONAL
#endif
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, enum cudaStreamCaptureStatus *c,
				     unsigned long long *id OPTIONAL, cudaGraph_t *g OPTIONAL,
				     const cudaGraphNode_t **d OPTIONAL,
				     const cudaGraphEdgeData **e OPTIONAL, size_t *n OPTIONAL);
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t s, enum cudaStreamCaptureStatus *c,
					unsigned long long *id OPTIONAL, cudaGraph_t *g OPTIONAL,
					const cudaGraphNode_t **d OPTIONAL, size_t *n OPTIONAL);
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *h, cudaEvent_t e);
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *e, cudaIpcEventHandle_t h);
#ifdef __cplusplus
}
#endif
#endif
