// SPDX-License-Identifier: Apache-2.0
// driver.cpp - plays a script with tsl::BFCAllocator as one TensorFlow release has it in libtensorflow_framework.so.2, on a
// scripted device, and writes what happens (format: play.c). Compiled once per release against the headers of its wheel.
//   usage: driver SCRIPT [retry]      the log of the real one goes to stderr (TF_CPP_MIN_LOG_LEVEL=3: none)
#if __has_include("xla/tsl/framework/bfc_allocator.h")
#include "xla/tsl/framework/bfc_allocator.h"
#elif __has_include("tsl/framework/bfc_allocator.h")
#include "tsl/framework/bfc_allocator.h"
#else
#include "tensorflow/tsl/framework/bfc_allocator.h"
#endif

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

extern "C" {
#include "simulator/replay/device.h"
}

static struct vc_device *gpu;
static std::vector<std::string> returned; // within one operation, in the order of a hash table
static uint64_t refused;                  // the size that was refused last

static void flush_returned()
{
	std::sort(returned.begin(), returned.end(), [](const std::string &a, const std::string &b) {
		return strtoull(a.c_str() + 2, nullptr, 16) < strtoull(b.c_str() + 2, nullptr, 16);
	});
	for (const std::string &s : returned)
		puts(s.c_str());
	returned.clear();
}

struct Device : tsl::SubAllocator {
	Device() : SubAllocator({}, {}) {}
	void *Alloc(size_t, size_t n, size_t *got) override
	{
		uint64_t addr;

		flush_returned();
		if (!vc_device_alloc(gpu, n, &addr)) {
			if (refused == n) { // it asks for the same again and again
				puts("spin");
				fflush(stdout);
				_exit(0);
			}
			refused = n;
			printf("X %zu\n", n);
			return nullptr;
		}
		*got = n;
		printf("R %" PRIx64 " %zu\n", addr, n);
		return reinterpret_cast<void *>(addr);
	}
	void Free(void *p, size_t n) override
	{
		char line[64];

		vc_device_free(gpu, reinterpret_cast<uint64_t>(p), n);
		snprintf(line, sizeof(line), "r %" PRIx64 " %zu", reinterpret_cast<uint64_t>(p), n);
		returned.push_back(line);
	}
	bool SupportsCoalescing() const override { return false; }
	tsl::AllocatorMemoryType GetMemoryType() const override { return tsl::AllocatorMemoryType::kDevice; }
};

int main(int argc, char **argv)
{
	static const char *const names[] = {"inc", "dec", "fit", "mix"};
	FILE *f = argc > 1 ? fopen(argv[1], "r") : nullptr;
	unsigned long limit, total, id, n, k = 0;
	unsigned growth, gc, va = 0;
	char policy[8], line[256], op;
	double frac;

	if (!f || fscanf(f, "limit %lu total %lu growth %u gc %u fragmentation %lf va %7s\n", &limit, &total, &growth, &gc, &frac, policy) != 6)
		return 2;
	while (va < 3 && strcmp(names[va], policy))
		va++;
	struct vc_device_config d = {};
	d.total = total;
	d.va = (enum vc_va_policy)va;
	gpu = vc_device_new(&d, nullptr);
	tsl::BFCAllocator::Options o;
	o.allow_growth = growth;
	o.garbage_collection = gc;
	o.fragmentation_fraction = frac;
	o.allow_retry_on_failure = argc > 2;
	tsl::BFCAllocator a(std::make_unique<Device>(), limit, "GPU_0_bfc", o);
	std::map<unsigned long, void *> live;

	puts("release " RELEASE " backpedal " BACKPEDAL);
	while (fgets(line, sizeof(line), f) && sscanf(line, "%c %lu %lu", &op, &id, &n) >= 2) {
		refused = 0;
		if (op == 'a') {
			void *p = a.AllocateRaw(64, n, tsl::AllocationAttributes(true, false, nullptr));

			flush_returned();
			if (p) {
				live[id] = p;
				printf("a %" PRIx64 " %zu\n", reinterpret_cast<uint64_t>(p), a.AllocatedSize(p));
			} else {
				puts("-");
			}
		} else if (op == 'o') {
			vc_device_set_others(gpu, id);
		} else if (live.count(id)) {
			a.DeallocateRaw(live[id]);
			live.erase(id);
		}
		if (++k % 64 == 0) {
			auto s = a.GetStats();

			printf("S %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", (int64_t)s->bytes_in_use,
			       (int64_t)s->peak_bytes_in_use, (int64_t)*s->pool_bytes, (int64_t)s->num_allocs,
			       (int64_t)s->largest_alloc_size);
		}
	}
	fflush(stdout);
	_exit(0); // its destructor would give everything back
}
