// SPDX-License-Identifier: Apache-2.0
// oracle.cpp - plays a script with the real allocator of one PyTorch release and writes what happens in the format of
// tests/golden/README.md.   usage: oracle SCRIPT RESULT NOTES  |  oracle --bench SCRIPT REPEAT
// Compiled once per release against its headers; TV = major * 100 + minor.
#include <c10/cuda/CUDACachingAllocator.h>
#if TV >= 202
#include <c10/cuda/CUDAAllocatorConfig.h>
#endif
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#if __has_include(<c10/cuda/PeerToPeerAccess.h>)
#include <c10/cuda/PeerToPeerAccess.h>
#define ORACLE_PEER 1
#endif

#include <ctime>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

extern "C" {
#include "gpu.h"
#include "script.h"
}

#if TV >= 201
namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*)(DeviceIndex)); // exported, in no header
}
#endif

namespace alloc = c10::cuda::CUDACachingAllocator;
using Entry = alloc::TraceEntry;
using Stats = decltype(alloc::getDeviceStats(0));

// Counters that only some releases have: the member when it exists, else -1.
#define OPTIONAL_COUNTER(name)                                                                                      \
	template <class T> static auto name##_of(const T &s, int) -> decltype((int64_t)s.name) { return s.name; }    \
	template <class T> static int64_t name##_of(const T &, long) { return -1; }
OPTIONAL_COUNTER(num_sync_all_streams)
OPTIONAL_COUNTER(num_device_alloc)
OPTIONAL_COUNTER(num_device_free)
OPTIONAL_COUNTER(num_oom_rejections)
template <class T> static auto expandable_of(const T &s, int) -> decltype((bool)s.is_expandable) { return s.is_expandable; }
template <class T> static bool expandable_of(const T &, long) { return false; }
template <class T> static auto pool_of(const T &s, int) -> decltype(s.owner_private_pool_id) { return s.owner_private_pool_id; }
template <class T> static std::pair<uint64_t, uint64_t> pool_of(const T &, long) { return {0, 0}; }

static FILE *out, *notes;
static std::vector<Entry> entries; // what the current operation caused

static void note(const char *kind, size_t op, std::string text)
{
	size_t at = text.find("INTERNAL ASSERT FAILED"); // what follows names a source file

	if (at != std::string::npos)
		text.resize(at + strlen("INTERNAL ASSERT FAILED"));
	fprintf(notes, "%s %zu ", kind, op);
	for (char c : text)
		if (c == '\n')
			fputs("\\n", notes);
		else if (!c)
			fputs("\\0", notes);
		else
			fputc(c, notes);
	fputc('\n', notes);
}

static int dev; // the current device

static void start(bool traced, int devices)
{
	alloc::init(devices);
#if TV >= 201
	c10::cuda::SetDevice(0);
	c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
#endif
#ifdef ORACLE_PEER
	c10::cuda::detail::init_p2p_access_cache(devices);
#endif
	if (!traced)
		return;
#if TV >= 202
	alloc::attachAllocatorTraceTracker([](const Entry &e) {
		if (e.action_ != Entry::SNAPSHOT)
			entries.push_back(e);
	});
#elif TV == 201
	alloc::recordHistory(true, nullptr, SIZE_MAX / 2, alloc::RecordContext::NEVER);
#else
	alloc::recordHistory(true, nullptr, SIZE_MAX / 2, false);
#endif
}

// Releases without a tracker: the history itself, emptied from time to time because reading it copies all of it.
static void collect()
{
#if TV < 202
	static size_t seen;
	auto snapshot = alloc::snapshot();
	auto &t = snapshot.device_traces[0];

	for (; seen < t.size(); seen++)
		if (t[seen].action_ != Entry::SNAPSHOT)
			entries.push_back(t[seen]);
	if (seen > 600) {
#if TV == 201
		alloc::recordHistory(false, nullptr, SIZE_MAX / 2, alloc::RecordContext::NEVER);
		alloc::recordHistory(true, nullptr, SIZE_MAX / 2, alloc::RecordContext::NEVER);
#else
		alloc::recordHistory(false, nullptr, SIZE_MAX / 2, false);
		alloc::recordHistory(true, nullptr, SIZE_MAX / 2, false);
#endif
		seen = 0;
	}
#endif
}

static c10::cuda::CUDAStream stream_of(uint64_t handle, int on)
{
	return c10::cuda::getStreamFromExternal((cudaStream_t)handle, on);
}

static int64_t allocated() { return alloc::getDeviceStats(dev).allocated_bytes[0].current; }

struct Player {
	const struct script *sc;
	std::vector<void *> live;
	std::string result;
	void *placed = nullptr;

	void play(const struct op &o);
	bool pools(const struct op &o);
	void report(const struct op &o, size_t index);
	void *block(uint64_t id) { return id < live.size() ? live[id] : nullptr; }
	void answer(char kind, void *p, int64_t before)
	{
		char text[64];

		snprintf(text, sizeof text, "%c %" PRIx64 " %" PRId64, kind, (uint64_t)p, allocated() - before);
		result = text;
	}
};

static void settings(const char *text)
{
#if TV >= 210
	c10::CachingAllocator::setAllocatorSettings(text);
#else
	alloc::setAllocatorSettings(text);
#endif
}

static void capture(uint64_t stream, bool on)
{
	gpu_set_capturing(stream, on);
#if TV >= 213
	if (on) {
		c10::cuda::setCurrentCUDAStream(stream_of(stream, dev));
		alloc::get()->markCaptureBegin(dev);
	} else {
		alloc::get()->markCaptureEnd(dev);
		c10::cuda::setCurrentCUDAStream(stream_of(0, dev));
	}
#endif
}

bool Player::pools(const struct op &o) // false: this release has no such operation
{
	c10::cuda::MempoolId_t id{0, o.a};
	auto *a = alloc::get();

	(void)id;
	(void)a;
	switch (o.kind) {
#if TV >= 203
	case 'b': {
		uint64_t only = o.b;

		a->beginAllocateToPool(dev, id, [only](cudaStream_t s) { return only == UINT64_MAX || only == (uint64_t)s; });
		return true;
	}
	case 'x': a->endAllocateToPool(dev, id); return true;
	case 'z': a->releasePool(dev, id); return true;
#endif
#if TV >= 208
	case 'k':
		a->createOrIncrefPool(dev, id);
		if (!strcmp(o.rest, "oom"))
#if TV >= 211
			a->setUseOnOOM(dev, id, true);
#else
			a->setUseOnOOM(dev, id);
#endif
#if TV >= 210
		if (!strcmp(o.rest, "nosplit"))
			a->setNoSplit(dev, id);
#endif
		return true;
#elif TV >= 206
	case 'k': a->ensureExistsAndIncrefPool(dev, id); return true;
#endif
#if TV >= 213
	case 'a': {
		auto p = a->allocateWithAddress(o.b, (void *)o.c);

		placed = p.get();
		p.release_context();
		return true;
	}
#endif
#if TV >= 215
	case 't': alloc::setExpandableSegmentReserveClassForStream((cudaStream_t)o.a, o.rest); return true;
#endif
	case 'g': capture(o.a, o.b); return true;
	default: return false;
	}
}

void Player::play(const struct op &o)
{
	int64_t before = allocated();

	result = ".";
	switch (o.kind) {
	case 'm':
		live[o.a] = alloc::raw_alloc_with_stream(o.b, (cudaStream_t)o.c);
		answer('m', live[o.a], before);
		break;
	case 'f':
		result = block(o.a) ? "f" : "-";
		if (void *p = block(o.a)) {
			live[o.a] = nullptr;
			alloc::raw_delete(p);
		}
		break;
	case 'r':
		if (void *p = block(o.a)) {
			int on = (uint64_t)p >> DEVICE_SHIFT;
			c10::DataPtr d(p, p, alloc::get()->raw_deleter(), c10::Device(c10::DeviceType::CUDA, on));

			alloc::recordStream(d, stream_of(o.b, on));
			d.release_context();
		} else {
			result = "-";
		}
		break;
	case 'c':
		if (o.a == UINT64_MAX)
			gpu_complete_all();
		else
			gpu_complete(o.a);
		break;
	case 'e':
#if TV >= 208
		alloc::emptyCache({0, o.a});
#else
		alloc::emptyCache();
#endif
		break;
	case 'o': gpu_set_others(o.a); break;
	case 'd':
		dev = o.a;
		c10::cuda::set_device(dev);
		break;
	case 'p': alloc::setMemoryFraction(strtod(o.line + 2, nullptr), dev); break;
	case 's': settings(o.rest); break;
	default:
		if (!pools(o))
			result = "-";
		else if (o.kind == 'a') {
			live[o.a] = placed;
			answer('a', placed, before);
		}
	}
}

static const char *letter(const Entry &e)
{
	switch (e.action_) {
	case Entry::FREE_COMPLETED: return "C";
	case Entry::SEGMENT_ALLOC: return "A";
	case Entry::SEGMENT_FREE: return "F";
#if TV >= 201
	case Entry::SEGMENT_MAP: return "M";
	case Entry::SEGMENT_UNMAP: return "U";
#endif
	case Entry::OOM: return "O";
	default: return "?";
	}
}

// The events of one operation, less those that follow from it, then its result; true: something but completions.
static bool put_entries(const struct op &o, const std::vector<void *> &live, std::string &result)
{
	bool changed = false;

	for (size_t i = 0; i < entries.size(); i++) {
		const Entry &e = entries[i];
		uint64_t addr = (uint64_t)e.addr_;

		if (e.action_ == Entry::ALLOC) {
			if (o.kind != 'm' || i + 1 != entries.size() || addr != (uint64_t)live[o.a] || (uint64_t)e.size_ != o.b)
				fprintf(out, "! alloc %" PRIx64 " %" PRId64 "\n", addr, (int64_t)e.size_);
		} else if (e.action_ == Entry::FREE_REQUESTED) {
			if (o.kind != 'f' || i)
				fprintf(out, "! free %" PRIx64 " %" PRId64 "\n", addr, (int64_t)e.size_);
			else if (entries.size() < 2 || entries[1].action_ != Entry::FREE_COMPLETED || entries[1].addr_ != e.addr_)
				result = "w";
		} else if (e.action_ != Entry::FREE_COMPLETED || o.kind != 'f' || i != 1 || entries[0].addr_ != e.addr_) {
			changed |= e.action_ != Entry::FREE_COMPLETED;
			fprintf(out, "%s %" PRIx64 " %" PRId64 " %" PRIu64 "\n", letter(e), addr, (int64_t)e.size_, (uint64_t)e.stream_);
		}
	}
	return changed;
}

static void put_totals(const Stats &s)
{
	fprintf(out, "S %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
		(int64_t)s.reserved_bytes[0].current, (int64_t)s.allocated_bytes[0].current, (int64_t)s.active_bytes[0].current,
		(int64_t)s.requested_bytes[0].current, (int64_t)s.inactive_split_bytes[0].current, (int64_t)s.inactive_split[0].current,
		(int64_t)s.segment[0].current, (int64_t)s.active[0].current, (int64_t)s.num_alloc_retries, (int64_t)s.num_ooms);
}

void Player::report(const struct op &o, size_t index)
{
	static size_t quiet;
	bool changed;

	collect();
	changed = put_entries(o, live, result);
	fprintf(out, "%s\n", result.c_str());
	if (changed || ++quiet >= 16 || result == "O" || index + 1 == sc->ops) {
		put_totals(alloc::getDeviceStats(dev));
		quiet = 0;
	}
	entries.clear();
}

template <class S> static void put_stat(const char *name, const char *klass, const S &x)
{
	fprintf(out, "T %s%s%s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", name, *klass ? "." : "", klass,
		(int64_t)x.current, (int64_t)x.peak, (int64_t)x.allocated, (int64_t)x.freed);
}

template <class A> static void put_stats(const char *name, const A &a)
{
	static const char *const klass[] = {"all", "small_pool", "large_pool"};

	for (int i = 0; i < 3; i++)
		put_stat(name, klass[i], a[i]);
}

static void put_end(int on)
{
	auto s = alloc::getDeviceStats(on);

	put_stats("allocation", s.allocation);
	put_stats("segment", s.segment);
	put_stats("active", s.active);
	put_stats("inactive_split", s.inactive_split);
	put_stats("allocated_bytes", s.allocated_bytes);
	put_stats("reserved_bytes", s.reserved_bytes);
	put_stats("active_bytes", s.active_bytes);
	put_stats("inactive_split_bytes", s.inactive_split_bytes);
	put_stats("requested_bytes", s.requested_bytes);
	put_stat("oversize_allocations", "", s.oversize_allocations);
	put_stat("oversize_segments", "", s.oversize_segments);
	fprintf(notes, "num_sync_all_streams %" PRId64 "\nnum_device_alloc %" PRId64 "\nnum_device_free %" PRId64
		"\nnum_oom_rejections %" PRId64 "\nmax_split_size %" PRId64 "\n", num_sync_all_streams_of(s, 0),
		num_device_alloc_of(s, 0), num_device_free_of(s, 0), num_oom_rejections_of(s, 0), (int64_t)s.max_split_size);
}

static void put_snapshot()
{
	auto snapshot = alloc::snapshot();
	for (auto &g : snapshot.segments) {
		auto id = pool_of(g, 0);

		fprintf(out, "G %" PRIx64 " %" PRId64 " %" PRIu64 " %s %d %" PRIu64 ",%" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
			(uint64_t)g.address, (int64_t)g.total_size, (uint64_t)g.stream, g.is_large ? "large" : "small",
			(int)expandable_of(g, 0), (uint64_t)id.first, (uint64_t)id.second, (int64_t)g.allocated_size,
			(int64_t)g.active_size, (int64_t)g.requested_size);
		for (auto &b : g.blocks)
			fprintf(out, "B %" PRId64 " %" PRId64 " %c\n", (int64_t)b.size, (int64_t)b.requested_size,
				b.allocated ? 'a' : b.active ? 'p' : 'i');
	}
}

static void play_all(const struct script &sc)
{
	Player p{&sc, std::vector<void *>(sc.max_id + 1), "", nullptr};

	for (size_t i = 0; i < sc.ops; i++) {
		try {
			p.play(sc.op[i]);
		} catch (c10::OutOfMemoryError &e) {
			p.result = "O";
			note("oom", i, e.what_without_backtrace());
		} catch (c10::Error &e) {
			p.result = "E";
			note("error", i, e.what_without_backtrace());
		} catch (std::exception &e) {
			p.result = "E";
			note("error", i, e.what());
		}
		p.report(sc.op[i], i);
	}
	for (unsigned d = 0; d < sc.devices; d++)
		put_end(d);
	put_snapshot();
}

static int bench(const struct script &sc, int repeat)
{
	std::vector<void *> live(sc.max_id + 1);
	uint64_t n = 0;

	start(false, 1);
	std::clock_t from = std::clock(); /* processor time, whatever runs beside it */
	for (; repeat > 0; repeat--)
		for (size_t i = 0; i < sc.ops; i++) {
			const struct op &o = sc.op[i];

			if (o.kind == 'm')
				live[o.a] = alloc::raw_alloc_with_stream(o.b, (cudaStream_t)o.c);
			else if (o.kind == 'f')
				alloc::raw_delete(live[o.a]);
			n += o.kind == 'm' || o.kind == 'f';
		}
	double s = (double)(std::clock() - from) / CLOCKS_PER_SEC;
	printf("%.3f\n", (double)n / s * 1e-6);
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	bool benching = argc == 4 && !strcmp(argv[1], "--bench");
	struct script sc;

	if (argc != 4) {
		fprintf(stderr, "usage: oracle SCRIPT RESULT NOTES | oracle --bench SCRIPT REPEAT\n");
		return 2;
	}
	script_parse(&sc, slurp(argv[benching ? 2 : 1]), "script");
	// The settings are read when the library is loaded: start again with them in the environment.
	if (!getenv("ORACLE_READY")) {
		setenv("ORACLE_READY", "1", 1);
		unsetenv("PYTORCH_ALLOC_CONF");
		if (sc.conf)
			setenv("PYTORCH_CUDA_ALLOC_CONF", sc.conf, 1);
		else
			unsetenv("PYTORCH_CUDA_ALLOC_CONF");
		execv("/proc/self/exe", argv);
		return 2;
	}
	gpu_open(&sc.device, sc.automatic, sc.devices);
	for (size_t i = 0; i < sc.addrs; i++)
		gpu_hint(sc.addr[i]);
	if (benching)
		return bench(sc, atoi(argv[3]));
	out = fopen(argv[2], "w");
	notes = fopen(argv[3], "w");
	if (!out || !notes)
		return 2;
	try {
		start(true, sc.devices);
		play_all(sc);
	} catch (std::exception &e) {
		fprintf(notes, "fatal %s\n", e.what());
	}
	if (gpu_faults())
		fprintf(notes, "driver_faults %" PRIu64 "\n", gpu_faults());
	fclose(out);
	fclose(notes);
	_exit(0); // the allocator's own teardown is not part of the test
}
