/* SPDX-License-Identifier: Apache-2.0 */
/* XPUStream.h - stands in for the header of that name: a stream is a number, with a queue each. */
#ifndef VC_XPUSTREAM_H
#define VC_XPUSTREAM_H
#include <c10/core/Stream.h>
#include <c10/core/impl/GPUTrace.h>
#include <c10/util/Exception.h>
#include <c10/xpu/XPUFunctions.h>

#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <unordered_set>

#ifndef C10_XPU_API
#define C10_XPU_API
#endif

namespace c10::xpu {
class XPUStream {
public:
	int number;
	explicit XPUStream(int n) : number(n) {}
	XPUStream(c10::Stream s) : number(static_cast<int>(s.id())) {}
	bool operator==(const XPUStream &o) const { return number == o.number; }
	sycl::queue &queue() const;
	operator sycl::queue &() const { return queue(); }
	operator c10::Stream() const { return unwrap(); }
	c10::Stream unwrap() const
	{
		c10::Device on(c10::DeviceType::XPU, 0);

		return c10::Stream(c10::Stream::UNSAFE, on, number);
	}
	DeviceIndex device_index() const { return 0; }
};
XPUStream getCurrentXPUStream(DeviceIndex = -1);
void syncStreamsOnDevice(DeviceIndex = -1);
}
template <> struct std::hash<c10::xpu::XPUStream> {
	size_t operator()(const c10::xpu::XPUStream &s) const noexcept
	{
		return static_cast<size_t>(s.number);
	}
};

#endif
