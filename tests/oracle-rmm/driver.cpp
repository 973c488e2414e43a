// SPDX-License-Identifier: Apache-2.0
// driver.cpp - plays a script with pool_memory_resource of one RMM release, compiled from its headers
// against the CUDA runtime below, which knows memory, streams and events by number only, and writes what happens (format: play.c).
//   usage: driver SCRIPT
#if __has_include("rmm/mr/pool_memory_resource.hpp")
#include "rmm/mr/cuda_memory_resource.hpp"
#include "rmm/mr/pool_memory_resource.hpp"
#define STREAM_FIRST
#if __has_include("rmm/mr/detail/pool_memory_resource_impl.hpp")
#define SINCE_26_6 // its classes are in librmm.so, the templates below them in headers
#endif
#else
#include "rmm/mr/device/cuda_memory_resource.hpp"
#include "rmm/mr/device/pool_memory_resource.hpp"
#endif

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <unistd.h>

extern "C" {
#include "simulator/replay/device.h"
}

// ---- the CUDA runtime ----
static struct vc_device *gpu;
static std::map<void *, size_t> given;
static uintptr_t events;

extern "C" {
cudaError_t cudaMalloc(void **p, size_t n)
{
	uint64_t addr;

	if (!vc_device_alloc(gpu, n, &addr)) {
		printf("X %zu\n", n);
		return cudaErrorMemoryAllocation;
	}
	*p = reinterpret_cast<void *>(addr);
	given[*p] = n;
	printf("R %" PRIx64 " %zu\n", addr, n);
	return cudaSuccess;
}
cudaError_t cudaFree(void *p)
{
	vc_device_free(gpu, reinterpret_cast<uint64_t>(p), given[p]);
	printf("r %" PRIxPTR " %zu\n", reinterpret_cast<uintptr_t>(p), given[p]);
	given.erase(p);
	return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
	*free = vc_device_available(gpu);
	*total = vc_device_config(gpu)->total;
	return cudaSuccess;
}
// The pool looks through the lists of other streams in the order of their events' handles.
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned)
{
	*e = reinterpret_cast<cudaEvent_t>(++events * 64);
	return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDevice(int *d) { return *d = 0, cudaSuccess; }
cudaError_t cudaGetDeviceCount(int *n) { return *n = 1, cudaSuccess; }
const char *cudaGetErrorName(cudaError_t e) { return e == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaError"; }
const char *cudaGetErrorString(cudaError_t e) { return e == cudaErrorMemoryAllocation ? "out of memory" : "error"; }
}

// From 25.4 on these three are in librmm.so, which has a CUDA runtime of its own inside.
#ifdef HAS_LIBRARY
#ifdef SINCE_26_6
extern "C" cudaError_t cudaStreamGetId(cudaStream_t s, unsigned long long *id)
{
	// 0: the pool's first piece is filed inside librmm.so, where no device is seen
	return *id = s == cudaStreamLegacy ? 0 : reinterpret_cast<unsigned long long>(s), cudaSuccess;
}
#endif
#ifdef RMM_NAMESPACE_BEGIN
RMM_NAMESPACE_BEGIN
#else
namespace RMM_NAMESPACE {
#endif
int get_num_cuda_devices() { return 1; }
cuda_device_id get_current_cuda_device() { return cuda_device_id{0}; }
std::pair<std::size_t, std::size_t> available_device_memory()
{
	return {vc_device_available(gpu), vc_device_config(gpu)->total};
}
#ifdef SINCE_26_6
// As in librmm.so, where it waits for the device first.
void mr::detail::arena_memory_resource_impl::defragment()
{
	for (auto &a : stream_arenas_)
		a.second.clean();
}
#endif
#ifdef RMM_NAMESPACE_BEGIN
RMM_NAMESPACE_END
#else
}
#endif
#endif

// ---- the script ----
static cudaStream_t stream_of(unsigned long n) { return reinterpret_cast<cudaStream_t>(n * 4096); }

struct Script {
	char resource[8], policy[8];
	unsigned long initial, maximum, total;
};

static std::optional<std::size_t> given_size(unsigned long n) { return n ? std::optional<std::size_t>{n} : std::nullopt; }

#ifdef SINCE_26_6
// Stands for cuda_memory_resource, which calls the runtime inside librmm.so: the same request, the same words.
struct Upstream {
	void *allocate_sync(std::size_t n, std::size_t = 256)
	{
		void *p = nullptr;

		if (cudaMalloc(&p, n) != cudaSuccess)
			throw rmm::out_of_memory{"CUDA error (failed to allocate " + std::to_string(n) +
						 " bytes) at: driver.cpp:1: cudaErrorMemoryAllocation out of memory"};
		return p;
	}
	void deallocate_sync(void *p, std::size_t, std::size_t = 256) noexcept { cudaFree(p); }
	void *allocate(cuda::stream_ref, std::size_t n, std::size_t = 256) { return allocate_sync(n); }
	void deallocate(cuda::stream_ref, void *p, std::size_t n, std::size_t = 256) noexcept { deallocate_sync(p, n); }
	bool operator==(Upstream const &) const noexcept { return true; }
	bool operator!=(Upstream const &) const noexcept { return false; }
	friend constexpr void get_property(Upstream const &, cuda::mr::device_accessible) noexcept {}
};
using Pool = rmm::mr::pool_memory_resource;
#define UP Upstream{}
#else
using Upstream = rmm::mr::cuda_memory_resource;
using Pool = rmm::mr::pool_memory_resource<Upstream>;
static Upstream up;
#define UP &up
#endif
#ifdef STREAM_FIRST
template <typename R> static void *get(R &r, size_t n, cudaStream_t s) { return r.allocate(cuda::stream_ref{s}, n, 256); }
template <typename R> static void put(R &r, void *p, size_t n, cudaStream_t s) { r.deallocate(cuda::stream_ref{s}, p, n, 256); }
#else
template <typename R> static void *get(R &r, size_t n, cudaStream_t s) { return r.allocate(n, rmm::cuda_stream_view{s}); }
template <typename R> static void put(R &r, void *p, size_t n, cudaStream_t s) { r.deallocate(p, n, rmm::cuda_stream_view{s}); }
#endif

struct Resource {
	std::unique_ptr<Pool> pool;

	void make(const Script &s)
	{
		if (!pool)
			pool = std::make_unique<Pool>(UP, s.initial, given_size(s.maximum));
	}
	void *allocate(size_t n, cudaStream_t s) { return get(*pool, n, s); }
	void deallocate(void *p, size_t n, cudaStream_t s) { put(*pool, p, n, s); }
};

// Its words without the places in the source: " at:FILE:LINE" and " at: FILE:LINE".
static void refuse(const char *what)
{
	std::string s = what;

	for (size_t at; (at = s.find(" at:")) != std::string::npos; ) {
		size_t end = s.find(':', at + 4);
		s.erase(at, s.find(':', end + 1) - at);
	}
	printf("- %s\n", s.c_str());
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"inc", "dec", "fit", "mix"};
	FILE *f = argc > 1 ? fopen(argv[1], "r") : nullptr;
	std::map<unsigned long, std::pair<void *, size_t>> live;
	Resource mr;
	unsigned long id, n, stream, k = 0;
	struct vc_device_config d = {};
	char line[256], op;
	unsigned va = 0;
	Script s;

	if (!f || fscanf(f, "%7s initial %lu maximum %lu total %lu va %7s\n", s.resource, &s.initial, &s.maximum, &s.total, s.policy) != 5)
		return 2;
	while (va < 3 && strcmp(names[va], s.policy))
		va++;
	d.total = s.total;
	d.va = (enum vc_va_policy)va;
	gpu = vc_device_new(&d, nullptr);
	puts("release " RELEASE " as " AS);
	while (fgets(line, sizeof(line), f) && (n = stream = 0, sscanf(line, "%c %lu %lu %lu", &op, &id, &n, &stream) >= 2)) {
		if (op == 'a') try {
			mr.make(s);
			void *p = mr.allocate(n, stream_of(stream));

			live[id] = {p, n};
			printf("a %" PRIxPTR "\n", reinterpret_cast<uintptr_t>(p));
		} catch (const std::exception &e) {
			refuse(e.what());
		} else if (op == 'o') {
			vc_device_set_others(gpu, id);
		} else if (live.count(id)) { // f ID STREAM
			mr.deallocate(live[id].first, live[id].second, stream_of(n));
			live.erase(id);
		}
		if (++k % 64 == 0 && !strcmp(s.resource, "pool"))
			printf("S %zu\n", mr.pool ? mr.pool->pool_size() : 0);
	}
	fflush(stdout);
	_exit(0); // its destructor would give everything back
}
