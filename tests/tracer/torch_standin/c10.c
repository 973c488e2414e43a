/* SPDX-License-Identifier: Apache-2.0 */
/* c10.c - a stand-in for libc10.so of a CUDA build: what the CUDA allocator calls in it. */
#include <stdint.h>
#include <stdlib.h>

#include "tests/tracer/torch_standin/standin.h"

void *_ZN3c109alloc_cpuEm(size_t n);
void _ZN3c108free_cpuEPv(void *p);
void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *p, int64_t n, size_t total,
							   size_t reserved, uint16_t device);
void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(int64_t n, size_t total, size_t reserved,
							uint16_t device);
void _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(void *p, int64_t n, int64_t total,
							   int64_t reserved, uint16_t device);
void _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE(int64_t n, int64_t total,
							 int64_t reserved, uint16_t device);
_Atomic long standin_reports, standin_totals;

void *_ZN3c109alloc_cpuEm(size_t n)
{
	return n ? aligned_alloc(64, (n + 63) / 64 * 64) : NULL;
}

void _ZN3c108free_cpuEPv(void *p)
{
	free(p);
}

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *p, int64_t n, size_t total,
							   size_t reserved, uint16_t device)
{
	(void)p;
	(void)n;
	(void)reserved;
	(void)device;
	standin_reports++;
	standin_totals += (long)total;
}

void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(int64_t n, size_t total, size_t reserved,
							uint16_t device)
{
	(void)n;
	(void)total;
	(void)reserved;
	(void)device;
	standin_reports++;
}

/* Up to 2.1. */
void _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(void *p, int64_t n, int64_t total,
							   int64_t reserved, uint16_t device)
{
	(void)p;
	(void)n;
	(void)reserved;
	(void)device;
	standin_reports++;
	standin_totals += (long)total;
}

void _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE(int64_t n, int64_t total,
							 int64_t reserved, uint16_t device)
{
	(void)n;
	(void)total;
	(void)reserved;
	(void)device;
	standin_reports++;
}

/* As while a profiler collects: the allocator reports, too. */
void standin_profiled(size_t n)
{
	void *p = _ZN3c109alloc_cpuEm(n);

	for (int64_t bytes = (int64_t)n, k = 0; p && k < 2; k++, bytes = -bytes)
		_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(p, bytes, 0, 0, 0);
	_ZN3c108free_cpuEPv(p);
}

const char *standin_settings_seen = "";
void parse(void *object, const char *const *s) __asm__(STANDIN_PARSE); /* from 2.10 on */

void parse(void *object, const char *const *s)
{
	(void)object;
	standin_settings_seen = *s;
}
