/* SPDX-License-Identifier: Apache-2.0 */
/* census.h - one pass over a trace: what is in it, per device, without any model. */
#pragma once

#include "simulator/replay/source.h"

#define VC_CENSUS_DEVICES 64
#define VC_CENSUS_OVERHEADS 16 /* kinds; CUPTI has 10 */

struct vc_device_census {
	uint16_t device;
	bool seen, has_start, has_final;
	uint64_t events;         /* requests and evidence; the heap lists do not count */
	uint64_t allocs, frees, preexisting, unmatched_frees;
	uint64_t live_requested, peak_requested;   /* bytes */
	uint64_t start_reserved, reserved, peak_reserved; /* from the recording's own segments */
	uint64_t away;           /* of them without memory behind them now */
	bool slept;              /* that was ever more than nothing */
	uint64_t start_segments, segment_allocs, segment_frees, final_segments;
	uint64_t driver_pools, pool_reserved, pool_used; /* created; bytes at their highest */
	uint64_t streams, ooms, trims, uses, deferred, kernels;
	uint64_t total;          /* bytes of the device, from its samples; 0 = unknown */
	uint64_t outside; /* held on the device beside the segments, libraries included: at the
			     last OOM, else the most of any sample */
	uint64_t first_segment; /* its address; 0 = none was asked for */
	uint64_t outside_ns; /* when; 0 where it was not seen but inherited */
	uint64_t oom_event, oom_request,
		oom_free, oom_reserved; /* the last: index, bytes asked for, free, reserved */
	bool ends_in_oom;        /* nothing is asked for after it */
};

struct vc_census {
	struct vc_device_census device[VC_CENSUS_DEVICES];
	size_t devices;
	uint64_t events, allocs, frees, marks, steps, launches;
	/* What CUPTI and the driver took for themselves, by its name. */
	struct vc_overhead { uint32_t label; uint64_t ns; } overhead[VC_CENSUS_OVERHEADS];
	size_t overheads;
	uint64_t first_ns, last_ns;
	void *private_sizes;     /* requested bytes by id while counting */
};

/* A census starts as zeroes. */
int  vc_census_add(struct vc_census *c, const struct vc_event *ev, size_t n, struct vc_error *err);
void vc_census_fini(struct vc_census *c); /* leaves zeroes */

/* The device that ran out, else the one nearest to its limit, else the one with the most requests;
 * NULL when the trace has no event at all. */
const struct vc_device_census *vc_census_deciding(const struct vc_census *c);
const struct vc_device_census *vc_census_of(const struct vc_census *c, uint16_t device);
