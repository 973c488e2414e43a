/* SPDX-License-Identifier: Apache-2.0 */
/* standin.h - how a test program drives the stand-in for libc10_cuda.so. */
#ifndef VC_STANDIN_H
#define VC_STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct standin_stream { uint64_t device; int64_t id; }; /* c10::cuda::CUDAStream */
struct standin_pointer { void *data, *deleter, *context; uint64_t device; }; /* c10::DataPtr */

enum { STANDIN_STATS = 16 }; /* StatArrays of a DeviceStats, at most */

/* The vtable that the allocator has now, and the object to pass. */
void **standin_vtable(void **self);
void *standin_allocate(size_t n); /* what PyTorch calls for a tensor: the vtable's allocate */
void standin_free(void *p);
/* Reports of memory that reached PyTorch, and what they said is allocated, summed. */
extern _Atomic long standin_reports, standin_totals;
void standin_set_stream(int64_t id); /* of the calling thread */
void standin_profiled(size_t n); /* of the host, reported to a profiler and given back */
void standin_event(void *event, void *stream); /* recorded by the program's own */
void *standin_async(size_t n, void *stream);
void standin_async_free(void *p, void *stream);

/* What the stand-in for libcudnn does for the calling thread: how many configurations the
 * heuristics have, the workspace of each, and which call fails: that of an attribute, or one of
 * these. */
enum { STANDIN_DESTROY = -1, STANDIN_EXECUTE = -2 };
struct standin_cudnn { int64_t results, bytes; int fails, status; };
extern __thread struct standin_cudnn standin_cudnn;
void standin_cudnn_fork(bool now); /* around fork: the library's own lock must not be copied */

size_t cudnnGetVersion(void);
int cudnnBackendCreateDescriptor(int type, void **out);
int cudnnBackendDestroyDescriptor(void *d);
int cudnnBackendFinalize(void *d);
int cudnnBackendSetAttribute(void *d, int name, int type, int64_t count, const void *value);
int cudnnBackendGetAttribute(void *d, int name, int type, int64_t wanted, int64_t *count,
			     void *out);
int cudnnBackendExecute(void *handle, void *plan, void *pack);

/* Settings at run time, through the function that `minor` has for it; what arrived in it at last.
 */
void standin_settings(int minor, const char *text);
extern const char *standin_settings_seen;

/* How the versions spell it: std::string with both ABIs, then a class of its own. */
#define STANDIN_STRING "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#define STANDIN_SET "_ZN3c104cuda20CUDACachingAllocator20setAllocatorSettingsERK"
#define STANDIN_PARSE                                                                            \
	"_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig9parseArgsERK" STANDIN_STRING

#endif
