/* SPDX-License-Identifier: Apache-2.0 */
/* cupti.h - the physical and kernel planes, where a CUPTI library can be opened. */
#pragma once

#include "common/std.h"

#include "tracer/cupti_abi.h"

/* The driver calls this inside cuInit, in processes that use CUDA (CUDA_INJECTION64_PATH). */
int InitializeInjection(void);

/* Fetch what CUPTI still holds; at most a few seconds. Safe to call at any end of the process. */
void vc_cupti_finish(void);
/* Start it in a program that runs, and end that: nothing of ours is enabled or called any more. */
void vc_cupti_join(void);
void vc_cupti_leave(void);
/* In a forked child: CUPTI's threads do not exist here. */
void vc_cupti_forget(void);

/* ---- the library (cupti_library.c) ---- */

/* What the tracer needs of it; a pointer is NULL where this version has no such function. */
struct vc_cupti_functions {
	int (*version)(uint32_t *);
	int (*subscribe)(void **, vc_cupti_callback *, void *);
	int (*unsubscribe)(void *);
	int (*enable_callback)(uint32_t, void *, int, uint32_t);
	int (*enable_domain)(uint32_t, void *, int);
	int (*register_callbacks)(vc_cupti_request *, vc_cupti_complete *);
	int (*register_clock)(vc_cupti_clock *);
	int (*enable)(int);
	int (*disable)(int);
	int (*runtime_api)(uint32_t, uint8_t);
	int (*driver_api)(uint32_t, uint8_t);
	int (*flush)(uint32_t);
	vc_cupti_next *next;
	int (*dropped)(void *, uint32_t, size_t *);
	int (*stream_id)(void *, void *, uint8_t, uint32_t *);
	int (*set)(int, size_t *, void *);
	int (*explain)(int, const char **);
	int (*finalize)(void);
};
enum vc_cupti_found { VC_CUPTI_NONE, VC_CUPTI_INCOMPLETE, VC_CUPTI_READY };
/* Opens it at the first call: the copy that holds `symbol` (a function of the caller's CUPTI, may
 * be NULL), else the one PyTorch has loaded, else one that can be found. */
enum vc_cupti_found vc_cupti_open(const void *symbol);
const struct vc_cupti_functions *vc_cupti(void);

/* ---- one CUPTI for two clients (cupti_share.c) ---- */

enum vc_cupti_who { VC_CUPTI_OURS, VC_CUPTI_THEIRS, VC_CUPTI_CLIENTS };
/* Each is a result of CUPTI's, 0 = success. */
int vc_share_subscribe(vc_cupti_callback *ours);
int vc_share_callback(int domain, uint32_t id);
int vc_share_register(void);
int vc_share_enable(int kind);
/* Does a profiler of the program's collect just now? Then buffers are not fetched early. */
bool vc_share_is_busy(void);
/* CUPTI took buffers of ours and gave none back: another client went past us. */
bool vc_share_is_robbed(void);
void vc_share_forget(void);
/* What is ours ends; a profiler of the program's goes on. */
void vc_share_leave(void);
/* Was InitializeInjection called from inside a call that must end first? Then `start` follows. */
bool vc_share_postpone(void (*start)(void));

/* ---- time (cupti_clock.c) ---- */

/* A profiler of the program's has registered that clock; NULL: none. */
void vc_cupti_stamped_by(vc_cupti_clock *clock);
/* Nanoseconds of the monotonic clock that a stamp of CUPTI's stands for, by clocks read together.
 */
struct vc_cupti_times {
	uint64_t wall, mono, their_zero, our_zero;
	double speed; /* ns per tick of a profiler's clock; 0: there is none */
};
struct vc_cupti_times vc_cupti_clocks(void);
uint64_t vc_cupti_time(const struct vc_cupti_times *t, uint64_t stamp);

/* ---- records (cupti_records.c) ---- */

/* Every record of a completed buffer becomes a journal record. */
void vc_cupti_read(vc_cupti_next *next, uint8_t *buffer, size_t valid);
/* A record of memory by the call of that number says nothing new. */
void vc_cupti_told(uint32_t correlation);
/* The handle behind a stream id of CUPTI's. */
void vc_cupti_stream(uint32_t id, uint64_t handle);
