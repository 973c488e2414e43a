/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.h - the scripted device behind the stand-in CUDA libraries of the oracle. The program exports
 * these functions, the stand-in libraries are thin and find them there. */
#ifndef VC_GPU_H
#define VC_GPU_H

#include <stdint.h>

#include "simulator/replay/device.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GPU_API __attribute__((visibility("default")))

struct gpu_event { uint64_t stream, seq; };

GPU_API void gpu_open(const struct vc_device_config *cfg, int automatic, unsigned devices);
GPU_API void gpu_select(unsigned device);
GPU_API unsigned gpu_count(void);
GPU_API unsigned gpu_current(void);
GPU_API void gpu_hint(uint64_t addr);
GPU_API void gpu_set_others(uint64_t bytes);
GPU_API uint64_t gpu_total(void);
GPU_API uint64_t gpu_prop_total(void);
GPU_API uint64_t gpu_available(void);

GPU_API int gpu_malloc(uint64_t *addr, uint64_t size); /* 0, or 1: out of memory */
GPU_API int gpu_free(uint64_t addr);                   /* 0, or 1: unknown */
GPU_API uint64_t gpu_reserve(uint64_t size);
GPU_API void gpu_unreserve(uint64_t addr, uint64_t size);
GPU_API uint64_t gpu_create(unsigned device, uint64_t size); /* a handle, 0: out of memory */
GPU_API void gpu_release(uint64_t handle);

GPU_API void gpu_record(struct gpu_event *e, uint64_t stream);
GPU_API int gpu_done(const struct gpu_event *e);
GPU_API void gpu_wait(const struct gpu_event *e);
GPU_API void gpu_complete(uint64_t stream);
GPU_API void gpu_complete_all(void);
GPU_API void gpu_set_capturing(uint64_t stream, int on);
GPU_API int gpu_capturing(uint64_t stream);

GPU_API unsigned gpu_processes(void);
GPU_API void gpu_process(unsigned i, unsigned *pid, uint64_t *bytes);
GPU_API uint64_t gpu_faults(void); /* calls that a correct program cannot make */

#ifdef __cplusplus
}
#endif
#endif
