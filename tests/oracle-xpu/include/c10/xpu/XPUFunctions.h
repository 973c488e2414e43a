/* SPDX-License-Identifier: Apache-2.0 */
/* XPUFunctions.h - stands in for the header of that name: one simulated device. */
#ifndef VC_XPUFUNCTIONS_H
#define VC_XPUFUNCTIONS_H
#include <c10/core/Device.h>
#include <sycl/sycl.hpp>

namespace c10::xpu {
struct DeviceProp { uint64_t global_mem_size; };
DeviceIndex current_device();
sycl::device &get_raw_device(DeviceIndex);
sycl::context &get_device_context();
void get_device_properties(DeviceProp *, DeviceIndex);
}

#endif
