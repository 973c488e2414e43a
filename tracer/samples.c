/* SPDX-License-Identifier: Apache-2.0 */
/* samples.c - see samples.h. */
#define _GNU_SOURCE
#include "tracer/samples.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tracer/cuda_device.h"
#include "tracer/marks.h"
#include "tracer/names.h"
#include "tracer/nvml.h"
#include "tracer/recorder.h"
#include "tracer/torch.h"

enum { PINNED = 4096 };

static struct {
	pthread_mutex_t lock;
	_Atomic uint64_t sampled; /* when last */
	_Atomic uint64_t seen;    /* devices that have been, a bit each */
	_Atomic uint64_t asked;   /* when other processes were asked for */
	_Atomic uint64_t others;  /* bytes of theirs that were recorded last */
	struct {
		uint64_t at, size;
	} pinned[PINNED]; /* host memory: a free does not say its size */
	uint64_t pinned_bytes;
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

void vc_cuda_pin(uint64_t at, uint64_t size)
{
	pthread_mutex_lock(&g.lock);
	for (int i = 0; i < PINNED; i++) /* more than that are recorded, and not in the sum */
		if (!g.pinned[i].at) {
			g.pinned[i].at = at;
			g.pinned[i].size = size;
			g.pinned_bytes += size;
			break;
		}
	pthread_mutex_unlock(&g.lock);
}

uint64_t vc_cuda_unpin(uint64_t at)
{
	uint64_t size = 0;

	pthread_mutex_lock(&g.lock);
	for (int i = 0; i < PINNED && !size; i++)
		if (g.pinned[i].at == at) {
			size = g.pinned[i].size;
			g.pinned_bytes -= size;
			g.pinned[i].at = 0;
		}
	pthread_mutex_unlock(&g.lock);
	return size;
}

static uint64_t resident_bytes(void)
{
	char text[64] = "";
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1); /* without a file: -1 */
	const char *second = n > 0 ? strchr(text, ' ') : NULL;

	if (fd >= 0)
		close(fd);
	return second ? strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* What changes is recorded, in front of the sample that it is a part of. */
static void sample_others(void)
{
	uint64_t bytes;

	atomic_store(&g.asked, vc_clock_ns());
	if (vc_nvml_others(vc_cuda_device(), &bytes) && atomic_exchange(&g.others, bytes) != bytes)
		vc_marks_value(VC_MARK_INSTANT, vc_names_put("other processes"), bytes);
}

static void sample(bool ask)
{
	uint64_t available, total, pinned;

	if (!vc_cuda_memory(&available, &total))
		return;
	if (ask)
		sample_others();
	pthread_mutex_lock(&g.lock);
	pinned = g.pinned_bytes;
	pthread_mutex_unlock(&g.lock);
	vc_cuda_device_fact(vc_cuda_device(), total);
	vc_record_put((struct vc_record){ .kind = VC_EV_DEVICE_SAMPLE, .addr = available,
		.size = total, .extra = total, .device = vc_cuda_device() });
	if (!vc_clock_is_null()) /* would be another figure in every dry run */
		vc_marks_value(VC_MARK_INSTANT, vc_names_put("resident memory"),
			       resident_bytes());
	if (pinned)
		vc_marks_value(VC_MARK_INSTANT, vc_names_put("pinned memory"), pinned);
	vc_recorder_capability(VC_CAP_DEVICE_SAMPLES, VC_HOW_RECORDED);
}

void vc_cuda_sample(void)
{
	sample(true);
}

void vc_cuda_sample_sometimes(void)
{
	uint64_t now, last = atomic_load(&g.sampled);

	if (!vc_torch_watching() || !last)
		return; /* asking the driver would create a context that the program did not */
	now = vc_clock_ns();
	if (now - last > 200000000u && atomic_compare_exchange_strong(&g.sampled, &last, now))
		sample(now - atomic_load(&g.asked) > 1000000000u);
}

void vc_cuda_sample_forget(void)
{
	pthread_mutex_lock(&g.lock);
	atomic_store(&g.sampled, 0);
	atomic_store(&g.seen, 0);
	atomic_store(&g.others, 0);
	memset(g.pinned, 0, sizeof(g.pinned));
	g.pinned_bytes = 0;
	pthread_mutex_unlock(&g.lock);
	vc_cuda_device_forget();
}

/* When the context of a device is new: what it and other processes hold before the first segment
 * counts. */
void vc_cuda_sample_first(void)
{
	uint64_t bit = 1ull << (vc_cuda_device() & 63);

	if (atomic_fetch_or(&g.seen, bit) & bit)
		return;
	atomic_store(&g.sampled, vc_clock_ns() + 1);
	vc_cuda_sample();
}
