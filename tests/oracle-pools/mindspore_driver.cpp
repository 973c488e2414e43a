// SPDX-License-Identifier: Apache-2.0
// mindspore_driver.cpp SCRIPT RESULT... - scripts through MindSpore's own memory pool.
//
// libmindspore_backend.so of the wheel exports the class; the wheel has no header of it, so here stands what the library was compiled
// with: the order of its virtual functions and of its fields. What lies below the pool on a GPU (GPUMemoryAllocator, CudaDriver) is in
// a plugin that needs CUDA: AllocDeviceMem and free_mem_size do what their source says, on the scripted device.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

extern "C" {
#include "simulator/replay/device.h"
}

namespace mindspore {
namespace device {
struct DynamicMemBuf;
class DynamicMemBlock;

struct MemStatusManager {
	size_t unit_size_ = 1024 << 20; /* DYNAMIC_MEM_ALLOC_UNIT_SIZE */
	size_t total_mem_size_ = 0, total_used_mem_size_ = 0, used_mem_peak_size_ = 0;
	std::vector<std::shared_ptr<DynamicMemBlock>> mem_block_list_;
	std::multimap<size_t, std::shared_ptr<DynamicMemBuf>> idle_mem_buf_map_;
};

class DynamicMemPoolBestFit {
public:
	DynamicMemPoolBestFit()
		: persistent_mem_(std::make_shared<MemStatusManager>()), common_mem_(std::make_shared<MemStatusManager>()) {}
	virtual ~DynamicMemPoolBestFit();
	void *AllocTensorMem(size_t size, bool from_persistent_mem = false);
	void FreeTensorMem(void *const &addr);
	void SetMemAllocUintSize(size_t common, size_t persistent);
	virtual size_t AllocDeviceMem(size_t size, void **addr) = 0;
	virtual bool FreeDeviceMem(void *const &addr) = 0;
	virtual size_t free_mem_size() = 0;
	virtual void SetMemPoolBlockSize(size_t available);

protected:
	virtual size_t AlignMemorySize(size_t size) const;
	virtual size_t CalMemBlockAllocSize(size_t size, bool from_persistent_mem);

	std::mutex mutex_;
	std::shared_ptr<MemStatusManager> persistent_mem_, common_mem_;
	size_t config_unit_size_ = 1024 << 20;
};
} // namespace device
} // namespace mindspore

using namespace mindspore::device;

class Pool : public DynamicMemPoolBestFit {
public:
	struct vc_device *device;
	size_t left;
	FILE *out;

	bool malloc_once(size_t size, uint64_t *at)
	{
		bool ok = vc_device_alloc(device, size, at);

		if (ok)
			fprintf(out, "R %" PRIx64 " %zu\n", *at, size);
		else
			fprintf(out, "X %zu\n", size);
		return ok;
	}
	/* CudaDriver::AllocDeviceMem of cuda_driver.cc */
	size_t AllocDeviceMem(size_t size, void **addr) override
	{
		uint64_t at = 0;
		bool ok = malloc_once(size, &at);

		for (int k = 0; !ok && k < 11; k++) {
			size = (size_t)((float)size * 0.99f) / 4 * 4;
			ok = size && malloc_once(size, &at);
		}
		if (!ok)
			return 0;
		left -= size;
		*addr = (void *)at;
		return size;
	}
	bool FreeDeviceMem(void *const &) override { return true; }
	size_t free_mem_size() override
	{
		size_t n = vc_device_available(device);

		return n < left ? n : left;
	}
	size_t used() const { return common_mem_->total_used_mem_size_; }
	size_t total() const { return common_mem_->total_mem_size_; }
};

static void play(const char *script, const char *result)
{
	static const char *const names[] = { "inc", "dec", "fit", "mix" };
	FILE *in = fopen(script, "r"), *out = fopen(result, "w");
	size_t total, limit, unit;
	char policy[8], line[256];
	struct vc_device_config cfg = {};
	struct vc_error err;
	std::map<uint64_t, void *> live;
	Pool *pool = new Pool;

	if (!in || !out || fscanf(in, "total %zu limit %zu unit %zu va %7s ", &total, &limit, &unit, policy) != 4)
		exit(2);
	cfg.total = total;
	for (int v = 0; v < 4; v++)
		if (!strcmp(names[v], policy))
			cfg.va = (vc_va_policy)v;
	pool->device = ::vc_device_new(&cfg, &err);
	pool->left = limit ? limit : (size_t)1 << 40;
	pool->out = out;
	pool->SetMemAllocUintSize(unit, unit);
	fprintf(out, "release 2.0.0\n");
	while (fgets(line, sizeof(line), in)) {
		uint64_t id = 0, size = 0;
		char op;

		sscanf(line, "%c %" SCNu64 " %" SCNu64, &op, &id, &size);
		if (op == 'a') {
			size_t before = pool->used();
			void *at = pool->AllocTensorMem(size);

			if (at) {
				live[id] = at;
				fprintf(out, "a %" PRIx64 " %zu\n", (uint64_t)at, pool->used() - before);
			} else {
				fprintf(out, "-\n");
			}
		} else if (op == 'f' && live.count(id)) {
			pool->FreeTensorMem(live[id]);
			live.erase(id);
		} else if (op == 'o') {
			vc_device_set_others(pool->device, id);
		}
		fprintf(out, ". %zu %zu\n", pool->used(), pool->total());
	}
	fclose(in);
	fclose(out);
}

int main(int argc, char **argv)
{
	for (int k = 1; k + 1 < argc; k += 2)
		play(argv[k], argv[k + 1]);
	fflush(NULL);
	_Exit(0); /* the library's own end needs a whole MindSpore */
}
