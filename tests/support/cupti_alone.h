/* SPDX-License-Identifier: Apache-2.0 */
/* cupti_alone.h - for the tracer's files about CUPTI: a recorder that writes lines, and a CUPTI
 * that does what it is told at once. The tracer is a library of its own, so its files are part of
 * these tests. */
#pragma once

#define _GNU_SOURCE
#include "tests/support/test.h"

#include <time.h>

#include "tracer/cuda_calls.h"
#include "tracer/cupti.h"
#include "tracer/names.h"
#include "tracer/recorder.h"

#define SECOND 1000000000ull
#define WALL (1700000000 * SECOND + 21)
#define NOW (5 * SECOND)

static int stopped_clock(clockid_t id, struct timespec *t)
{
	*t = (struct timespec){ .tv_sec = (time_t)(WALL / SECOND), .tv_nsec = WALL % SECOND };
	return 0;
}

#define clock_gettime stopped_clock

/* ---- the recorder ---- */

static struct {
	char text[1 << 14];      /* a line for each record */
	size_t n, lines;
	const char *name[64];    /* from 1 on */
	enum vc_how how[VC_CAPS];
	uint64_t lost;
	size_t puts;
	const char *launches;
	bool null_gpu, full;     /* full: a record is counted as lost */
	int facts;
} rec;

static uint64_t our_ns = NOW, ticks = 700;

uint64_t vc_clock_ns(void) { return our_ns; }
static uint64_t their_clock(void) { return ticks; }
bool vc_clock_is_null(void) { return rec.null_gpu; }
void vc_recorder_lost(uint64_t n) { rec.lost += n; }
enum vc_how vc_recorder_how(enum vc_capability c) { return rec.how[c]; }
void vc_recorder_capability(enum vc_capability c, enum vc_how how) { rec.how[c] = how; }
bool vc_recorder_wanted(void) { return true; }
const char *vc_recorder_stored(uint32_t at) { return rec.name[at] ? rec.name[at] : ""; }

void vc_recorder_fact(const char *key, const char *value)
{
	rec.facts++;
}

bool vc_clock_null_span(uint32_t correlation, uint64_t *at, uint64_t *ns)
{
	*at = correlation * 10;
	*ns = 7;
	return correlation != 0;
}

const char *vc_clock_null_work(uint32_t correlation)
{
	return correlation == 5 ? "gemm" : NULL;
}

const char *vc_recorder_option(const char *key, char *buf, size_t n)
{
	snprintf(buf, n, "%s", !strcmp(key, "launches") && rec.launches ? rec.launches : "");
	return buf;
}

uint32_t vc_names_put(const char *s)
{
	uint32_t i = 1;

	rec.puts++;
	while (rec.name[i] && strcmp(rec.name[i], s))
		i++;
	assert_true(i < 63);
	if (!rec.name[i])
		rec.name[i] = strdup(s);
	return i;
}

bool vc_record_put(struct vc_record r)
{
	const struct { const char *name; uint64_t value; } field[] = {
		{ "ns", r.size }, { "at", r.kind == VC_EV_KERNEL ? 0 : r.addr }, { "x", r.extra },
		{ "s", r.stream },
		{ "dev", r.device }, { "f", r.flags }, { "m", r.reserved } };

	rec.lines++;
	if (rec.n + 400 > sizeof(rec.text))
		return !rec.full;
	rec.n += (size_t)sprintf(rec.text + rec.n, "%s%s %lld", rec.n ? "\n" : "",
		r.kind == VC_EV_KERNEL ? "kernel" : r.kind == VC_EV_COPY ? "copy" :
		r.kind == VC_EV_LAUNCH ? "launch" : r.kind == VC_EV_OVERHEAD ? "overhead" :
		r.kind == VC_EV_DRIVER_POOL ? "pool" : r.kind == VC_EV_OUTSIDE_ALLOC ? "alloc" :
		r.kind == VC_EV_OUTSIDE_FREE ? "free" : "?", (long long)(r.time_ns - NOW));
	for (size_t i = 0; i < sizeof(field) / sizeof(*field); i++)
		if (field[i].value)
			rec.n += (size_t)sprintf(rec.text + rec.n, " %s=%llu", field[i].name,
						 (unsigned long long)field[i].value);
	if (r.kind == VC_EV_KERNEL && r.addr)
		rec.n += (size_t)sprintf(rec.text + rec.n, " %s", rec.name[r.addr]);
	if (r.text)
		rec.n += (size_t)sprintf(rec.text + rec.n, " %s", rec.name[r.text]);
	return !rec.full;
}

/* ---- CUPTI: records of one length, in one buffer at a time ---- */

enum { RECORD = 128, REFUSED = 66 };
static struct {
	vc_cupti_callback *callback;
	void *user;
	int subscribers, flushes, finals, dropped_asked, registered;
	bool kind[128], call[8][2048];
	vc_cupti_request *request;
	vc_cupti_complete *complete;
	uint8_t *buffer; size_t size, used;
	size_t lost;
	uint32_t version;
	vc_cupti_clock *clock;
	bool starts; /* us, inside of a subscription */
} cupti;

static int c_version(uint32_t *v) { *v = cupti.version; return 0; }
static int c_unsubscribe(void *h) { cupti.subscribers--; cupti.callback = NULL; return 0; }
static int c_clock(vc_cupti_clock *c) { cupti.clock = c; return 0; }

static int set_kind(int kind, bool on)
{
	if (kind >= 0 && kind < 128)
		cupti.kind[kind] = on;
	return kind == REFUSED;
}

static int c_enable(int kind) { return set_kind(kind, true); }
static int c_disable(int kind) { return set_kind(kind, false); }
static int c_finalize(void) { cupti.finals++; return 0; }

static int started;
static void start_inside(void) { started++; }

static int c_subscribe(void **handle, vc_cupti_callback *f, void *user)
{
	if (cupti.subscribers)
		return VC_CUPTI_BUSY;
	assert_true(!cupti.starts || vc_share_postpone(start_inside));
	cupti.subscribers++;
	cupti.callback = f;
	cupti.user = user;
	*handle = &cupti;
	return 0;
}

static int c_callback(uint32_t on, void *handle, int domain, uint32_t id)
{
	assert_ptr_equal(handle, &cupti);
	cupti.call[domain][id] = on;
	return 0;
}

static int c_domain(uint32_t on, void *handle, int domain)
{
	assert_ptr_equal(handle, &cupti);
	memset(cupti.call[domain], on ? 1 : 0, sizeof(cupti.call[domain]));
	return 0;
}

static int c_register(vc_cupti_request *r, vc_cupti_complete *c)
{
	cupti.registered++;
	cupti.request = r;
	cupti.complete = c;
	return 0;
}

static int c_flush(uint32_t how)
{
	uint8_t *buffer = cupti.buffer;

	cupti.flushes++;
	cupti.buffer = NULL;
	if (buffer)
		cupti.complete(NULL, 0, buffer, cupti.size, cupti.used);
	return 0;
}

static int c_next(uint8_t *buffer, size_t valid, void **record)
{
	uint8_t *to = *record ? (uint8_t *)*record + RECORD : buffer;

	if (to >= buffer + valid)
		return 1;
	*record = to;
	return 0;
}

static int c_dropped(void *context, uint32_t stream, size_t *n)
{
	cupti.dropped_asked++;
	if (n)
		*n = cupti.lost;
	cupti.lost = 0;
	return 0;
}

static const struct vc_cupti_functions functions = {
	.version = c_version, .subscribe = c_subscribe, .unsubscribe = c_unsubscribe,
	.enable_callback = c_callback, .enable_domain = c_domain,
	.register_callbacks = c_register, .register_clock = c_clock, .enable = c_enable,
	.disable = c_disable, .flush = c_flush, .next = c_next, .dropped = c_dropped,
	.finalize = c_finalize };

const struct vc_cupti_functions *vc_cupti(void) { return &functions; }
enum vc_cupti_found vc_cupti_open(const void *symbol) { return VC_CUPTI_READY; }

void *vc_cuda_real(const void *site, const char *name)
{
	void *found = NULL;
	static const struct { const char *name; void (*f)(void); } all[] = {
		{ "cuptiSubscribe", (void (*)(void))c_subscribe },
		{ "cuptiUnsubscribe", (void (*)(void))c_unsubscribe },
		{ "cuptiEnableCallback", (void (*)(void))c_callback },
		{ "cuptiEnableDomain", (void (*)(void))c_domain },
		{ "cuptiActivityRegisterCallbacks", (void (*)(void))c_register },
		{ "cuptiActivityRegisterTimestampCallback", (void (*)(void))c_clock },
		{ "cuptiActivityEnable", (void (*)(void))c_enable },
		{ "cuptiActivityDisable", (void (*)(void))c_disable },
		{ "cuptiActivityGetNumDroppedRecords", (void (*)(void))c_dropped },
		{ "cuptiFinalize", (void (*)(void))c_finalize } };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(all[i].name, name))
			memcpy(&found, &all[i].f, sizeof(found));
	assert_non_null(found);
	return found;
}

/* The tracer's files, each with its own name for its state. */
#define g clock_state
#include "tracer/cupti_clock.c"
#undef g
#define g record_state
#include "tracer/cupti_records.c"
#undef g
#define g share_state
#include "tracer/cupti_share.c"
#undef g
