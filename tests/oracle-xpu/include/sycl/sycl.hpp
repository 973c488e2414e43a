/* SPDX-License-Identifier: Apache-2.0 */
/* sycl.hpp - the names of SYCL that PyTorch's XPU allocator needs, on the simulated device (driver.cpp). */
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>

namespace sycl {
enum class aspect { ext_intel_free_memory };
namespace info {
namespace device { struct global_mem_size { using return_type = uint64_t; }; struct name { using return_type = const char *; }; }
enum class event_command_status { submitted, complete };
namespace event { struct command_execution_status { using return_type = event_command_status; }; }
}
namespace ext::intel::info::device { struct free_memory { using return_type = uint64_t; }; }

struct device {
	template <typename T> typename T::return_type get_info() const;
	bool has(aspect) const { return true; }
};
template <> uint64_t device::get_info<info::device::global_mem_size>() const;
template <> uint64_t device::get_info<ext::intel::info::device::free_memory>() const;
template <> inline const char *device::get_info<info::device::name>() const { return "simulated"; }
struct context {};
struct exception : std::exception {};

/* What was submitted to a queue completes when the script says so, or when somebody waits. */
struct event {
	int stream = 0;
	uint64_t number = 0;
	template <typename T> typename T::return_type get_info() const;
	void wait();
};
template <> info::event_command_status event::get_info<info::event::command_execution_status>() const;

struct queue {
	int stream = 0;
	bool operator==(const queue &o) const { return stream == o.stream; }
	event ext_oneapi_submit_barrier();
	void memcpy(void *, const void *, size_t) {}
	void memset(void *, int, size_t) {}
};

void *aligned_alloc_device(size_t align, size_t size, const device &, const context &);
void free(void *p, const context &);

namespace ext::oneapi::experimental {
enum class address_access_mode { none, read, read_write };
uintptr_t reserve_virtual_mem(size_t size, const context &);
void free_virtual_mem(uintptr_t p, size_t size, const context &);
void unmap(const void *p, size_t size, const context &);
struct physical_mem {
	struct piece { size_t size; explicit piece(size_t n); ~piece(); };
	std::shared_ptr<piece> held;
	physical_mem(const device &, const context &, size_t size) : held(std::make_shared<piece>(size)) {}
	void *map(uintptr_t p, size_t size, address_access_mode, size_t offset = 0) const;
};
}
}
