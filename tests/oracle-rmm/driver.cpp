// SPDX-License-Identifier: Apache-2.0
// driver.cpp - plays a script with pool_memory_resource or arena_memory_resource of one RMM release, compiled from its headers
// against the CUDA runtime below, which knows memory, streams and events by number only, and writes what happens (README.md).
//   usage: driver SCRIPT
#if __has_include("rmm/mr/pool_memory_resource.hpp")
#include "rmm/mr/arena_memory_resource.hpp"
#include "rmm/mr/cuda_memory_resource.hpp"
#include "rmm/mr/pool_memory_resource.hpp"
#else
#include "rmm/mr/device/arena_memory_resource.hpp"
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

// From 25.6 on these three are in librmm.so, which has a CUDA runtime of its own inside.
#ifdef HAS_LIBRARY
namespace rmm {
int get_num_cuda_devices() { return 1; }
cuda_device_id get_current_cuda_device() { return cuda_device_id{0}; }
std::pair<std::size_t, std::size_t> available_device_memory()
{
	return {vc_device_available(gpu), vc_device_config(gpu)->total};
}
}
#endif

// ---- the script ----
static cudaStream_t stream_of(unsigned long n) { return reinterpret_cast<cudaStream_t>(n * 4096); }

struct Script {
	char resource[8], policy[8];
	unsigned long initial, maximum, total;
};

using Upstream = rmm::mr::cuda_memory_resource;
using Pool = rmm::mr::pool_memory_resource<Upstream>;
using Arena = rmm::mr::arena_memory_resource<Upstream>;

static std::unique_ptr<rmm::mr::device_memory_resource> make(const Script &s, Upstream *up)
{
	auto given = [](unsigned long n) { return n ? std::optional<std::size_t>{n} : std::nullopt; };

	if (!strcmp(s.resource, "pool"))
		return std::make_unique<Pool>(up, s.initial, given(s.maximum));
	return std::make_unique<Arena>(up, given(s.initial));
}

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
	std::unique_ptr<rmm::mr::device_memory_resource> mr;
	unsigned long id, n, stream, k = 0;
	struct vc_device_config d = {};
	char line[256], op;
	Upstream up;
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
			if (!mr)
				mr = make(s, &up);
			void *p = mr->allocate(n, rmm::cuda_stream_view{stream_of(stream)});

			live[id] = {p, n};
			printf("a %" PRIxPTR "\n", reinterpret_cast<uintptr_t>(p));
		} catch (const std::exception &e) {
			refuse(e.what());
		} else if (op == 'o') {
			vc_device_set_others(gpu, id);
		} else if (live.count(id)) { // f ID STREAM
			mr->deallocate(live[id].first, live[id].second, rmm::cuda_stream_view{stream_of(n)});
			live.erase(id);
		}
		if (++k % 64 == 0 && !strcmp(s.resource, "pool"))
			printf("S %zu\n", mr ? static_cast<Pool *>(mr.get())->pool_size() : 0);
	}
	fflush(stdout);
	_exit(0); // its destructor would give everything back
}
