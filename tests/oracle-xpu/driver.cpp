/* SPDX-License-Identifier: Apache-2.0 */
/* driver.cpp - plays scripts with PyTorch's own XPU allocator on a simulated device (play.c: the format).
 *
 * usage: driver SCRIPT...   writes SCRIPT.real */
#include <c10/core/Allocator.h>
#include <c10/xpu/XPUCachingAllocator.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

extern "C" {
#include "simulator/replay/device.h"
}

static struct vc_device *device;
static struct vc_device_config config;
static FILE *out;
static sycl::device card;
static sycl::context context;
enum { STREAMS = 8 };
static sycl::queue queues[STREAMS]; /* the allocator orders them by their addresses */
static uint64_t issued[STREAMS], done[STREAMS];
static int current;
static std::map<uint64_t, uint64_t> size_of;

/* ---- the names of SYCL ---- */
namespace sycl {
template <> uint64_t device::get_info<info::device::global_mem_size>() const { return config.prop_total ? config.prop_total : config.total; }
template <> uint64_t device::get_info<ext::intel::info::device::free_memory>() const { return vc_device_available(::device); }
template <> info::event_command_status event::get_info<info::event::command_execution_status>() const
{
	return number <= done[stream] ? info::event_command_status::complete : info::event_command_status::submitted;
}
void event::wait() { if (done[stream] < number) done[stream] = number; }
event queue::ext_oneapi_submit_barrier() { event e; e.stream = stream; e.number = ++issued[stream]; return e; }

void *aligned_alloc_device(size_t, size_t size, const device &, const context &)
{
	uint64_t addr;

	if (!vc_device_alloc(::device, size, &addr)) return nullptr;
	size_of[addr] = size;
	fprintf(out, "A %" PRIx64 " %zu ", addr, size);
	return reinterpret_cast<void *>(addr);
}
void free(void *p, const context &)
{
	uint64_t addr = reinterpret_cast<uint64_t>(p);

	fprintf(out, "F %" PRIx64 " ", addr);
	vc_device_free(::device, addr, size_of[addr]);
	size_of.erase(addr);
}
namespace ext::oneapi::experimental {
uintptr_t reserve_virtual_mem(size_t size, const context &)
{
	uint64_t addr;

	vc_device_reserve(::device, size, &addr);
	return addr;
}
void free_virtual_mem(uintptr_t p, size_t size, const context &) { vc_device_unreserve(::device, p, size); }
physical_mem::piece::piece(size_t n) : size(n) { if (!vc_device_create(::device, n)) throw sycl::exception(); }
physical_mem::piece::~piece() { vc_device_release(::device, size); }
void *physical_mem::map(uintptr_t p, size_t size, address_access_mode, size_t) const
{
	vc_device_map(::device, p, size);
	fprintf(out, "M %" PRIx64 " %zu ", static_cast<uint64_t>(p), size);
	return reinterpret_cast<void *>(p);
}
void unmap(const void *p, size_t size, const context &)
{
	fprintf(out, "U %" PRIx64 " %zu ", reinterpret_cast<uint64_t>(p), size);
	vc_device_unmap(::device, reinterpret_cast<uint64_t>(p), size);
}
}
}

namespace c10::xpu {
DeviceIndex current_device() { return 0; }
sycl::device &get_raw_device(DeviceIndex) { return card; }
sycl::context &get_device_context() { return context; }
void get_device_properties(DeviceProp *p, DeviceIndex) { p->global_mem_size = card.get_info<sycl::info::device::global_mem_size>(); }
XPUStream getCurrentXPUStream(DeviceIndex) { return XPUStream(current); }
sycl::queue &XPUStream::queue() const { return queues[number]; }
void syncStreamsOnDevice(DeviceIndex) { for (int i = 0; i < STREAMS; i++) done[i] = issued[i]; }
}

/* ---- scripts ---- */
namespace xpu = c10::xpu::XPUCachingAllocator;
static std::map<unsigned long, c10::DataPtr> held;

static void say_stats()
{
	const auto s = xpu::getDeviceStats(0);

	fprintf(out, "| %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", s.allocated_bytes[0].current, s.active_bytes[0].current,
		s.reserved_bytes[0].current, s.requested_bytes[0].current);
}

static void allocate(unsigned long id, size_t size, int stream)
{
	current = stream;
	try {
		held[id] = xpu::get()->allocate(size);
		fprintf(out, "m %" PRIx64 " ", reinterpret_cast<uint64_t>(held[id].get()));
	} catch (const c10::Error &e) {
		held.erase(id);
		fprintf(out, "O %s ", e.what_without_backtrace());
	}
}

static void play_line(const char *line)
{
	unsigned long id = 0;
	unsigned long long size = 0;
	int stream = 0;
	double part;

	switch (*line) {
	case 'm': sscanf(line, "m %lu %llu %d", &id, &size, &stream); allocate(id, size, stream); break;
	case 'f': sscanf(line, "f %lu", &id); held.erase(id); fprintf(out, "f "); break;
	case 'r':
		sscanf(line, "r %lu %d", &id, &stream);
		if (held.count(id)) xpu::recordStream(held[id], c10::xpu::XPUStream(stream));
		fprintf(out, "r ");
		break;
	case 'c': sscanf(line, "c %d", &stream); done[stream] = issued[stream]; fprintf(out, "c "); break;
	case 'e': xpu::emptyCache(); fprintf(out, "e "); break;
	case 'o': sscanf(line, "o %llu", &size); vc_device_set_others(device, size); fprintf(out, "o "); break;
	case 'p':
		sscanf(line, "p %lf", &part);
#if TV >= 210
		xpu::setMemoryFraction(part, 0);
#endif
		fprintf(out, "p ");
		break;
	default: return;
	}
	say_stats();
}

int main(int argc, char **argv)
{
	static char line[256];

	if (argc != 2) return 2; /* the allocator's state is the process's: one script each */
	FILE *in = fopen(argv[1], "r");
	out = fopen((std::string(argv[1]) + ".real").c_str(), "w");
	if (!in || !out || !fgets(line, sizeof(line), in)) return 2;
	unsigned long long total = 0;
	int expand = 0;
	if (sscanf(line, "x %llu %d", &total, &expand) != 2) return 2;
	setenv("PYTORCH_ALLOC_CONF", expand ? "expandable_segments:True" : "expandable_segments:False", 1);
	config.total = total;
	config.va = VC_VA_FIT;
	struct vc_error err;
	device = vc_device_new(&config, &err);
	for (int i = 0; i < STREAMS; i++) queues[i].stream = i;
	xpu::init(1);
	while (fgets(line, sizeof(line), in)) play_line(line);
	fclose(out);
	_Exit(0);
}
