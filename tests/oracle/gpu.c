/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.c - see gpu.h. Memory and addresses are those of simulator/replay/device.c. */
#include "gpu.h"

#include "script.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STREAMS 256

struct stream { uint64_t handle, issued, done; int capturing; };
struct piece { uint64_t addr, size; }; /* addr 0: never used; size 0: given back */

static struct vc_device *devices[MAX_DEVICES], *device; /* device: the current one */
static unsigned count, current;
static struct vc_device_config config;
static struct stream stream[STREAMS];
static unsigned streams;
static struct piece *table;
static uint64_t slots, filled, faults;
static int complete_at_once;

static void fail(const char *what)
{
	fprintf(stderr, "oracle: %s\n", what);
	exit(3);
}

void gpu_open(const struct vc_device_config *cfg, int automatic, unsigned n)
{
	struct vc_error err;

	config = *cfg;
	complete_at_once = automatic;
	for (count = 0; count < n; count++) {
		devices[count] = vc_device_new(cfg, &err);
		if (!devices[count])
			fail("no memory for the device");
	}
	gpu_select(0);
}

void gpu_select(unsigned d)
{
	current = d;
	device = devices[d];
}

unsigned gpu_count(void) { return count; }
unsigned gpu_current(void) { return current; }

/* Addresses say which device they belong to. */
static uint64_t base(void) { return (uint64_t)current << DEVICE_SHIFT; }
static struct vc_device *device_of(uint64_t addr) { return devices[addr >> DEVICE_SHIFT]; }
static uint64_t inside(uint64_t addr) { return addr & ((1ull << DEVICE_SHIFT) - 1); }

void gpu_hint(uint64_t addr)
{
	struct vc_error err;

	vc_device_hint(device, addr, 0, &err);
}

void gpu_set_others(uint64_t bytes) { vc_device_set_others(device, bytes); }
uint64_t gpu_total(void) { return config.total; }
uint64_t gpu_prop_total(void) { return vc_device_config(device)->prop_total; }
uint64_t gpu_available(void) { return vc_device_available(device); }
uint64_t gpu_faults(void) { return faults; }

/* ---- which sizes were asked for at which address ---- */
static struct piece *find(uint64_t addr)
{
	uint64_t i = (addr >> 9) * 0x9e3779b97f4a7c15ull >> 20;

	for (i &= slots - 1; table[i].addr && table[i].addr != addr; i = (i + 1) & (slots - 1))
		;
	return &table[i];
}

static void grow(void)
{
	struct piece *old = table;
	uint64_t n = slots;

	slots = n ? 2 * n : 1024;
	filled = 0;
	table = calloc(slots, sizeof(*table));
	if (!table)
		fail("no memory for segments");
	for (uint64_t i = 0; i < n; i++)
		if (old[i].size) {
			*find(old[i].addr) = old[i];
			filled++;
		}
	free(old);
}

int gpu_malloc(uint64_t *addr, uint64_t size)
{
	struct piece *p;

	if (!vc_device_alloc(device, size, addr))
		return 1;
	if (2 * filled >= slots)
		grow();
	*addr += base();
	p = find(*addr);
	filled += !p->addr;
	*p = (struct piece){ *addr, size };
	return 0;
}

int gpu_free(uint64_t addr)
{
	struct piece *p = slots ? find(addr) : NULL;

	if (!p || !p->size) {
		faults++;
		return 1;
	}
	vc_device_free(device_of(addr), inside(addr), p->size);
	p->size = 0;
	return 0;
}

uint64_t gpu_reserve(uint64_t size)
{
	uint64_t addr;

	vc_device_reserve(device, size, &addr);
	return addr + base();
}

void gpu_unreserve(uint64_t addr, uint64_t size)
{
	vc_device_unreserve(device_of(addr), inside(addr), size);
}

/* Handles need no table: they say their device and their size in units of 2 MiB. */
uint64_t gpu_create(unsigned d, uint64_t size)
{
	return vc_device_create(devices[d], size) ? size / VC_DEVICE_GRANULE +
						    ((uint64_t)d << DEVICE_SHIFT) : 0;
}

void gpu_release(uint64_t handle)
{
	vc_device_release(device_of(handle), inside(handle) * VC_DEVICE_GRANULE);
}

/* ---- streams and events ---- */
/* Streams of different devices may have the same handle. */
static struct stream *stream_on(uint64_t key)
{
	for (unsigned i = 0; i < streams; i++)
		if (stream[i].handle == key)
			return &stream[i];
	if (streams == STREAMS)
		fail("too many streams");
	stream[streams] = (struct stream){ .handle = key };
	return &stream[streams++];
}

static struct stream *stream_of(uint64_t handle)
{
	return stream_on(handle + base());
}

void gpu_record(struct gpu_event *e, uint64_t handle)
{
	struct stream *s = stream_of(handle);

	*e = (struct gpu_event){ s->handle, ++s->issued };
	if (complete_at_once)
		s->done = s->issued;
}

int gpu_done(const struct gpu_event *e) { return stream_on(e->stream)->done >= e->seq; }

void gpu_wait(const struct gpu_event *e)
{
	struct stream *s = stream_on(e->stream);

	if (s->done < e->seq)
		s->done = e->seq;
}

void gpu_complete(uint64_t handle) { stream_of(handle)->done = stream_of(handle)->issued; }

void gpu_complete_all(void)
{
	for (unsigned i = 0; i < streams; i++)
		stream[i].done = stream[i].issued;
}

void gpu_set_capturing(uint64_t handle, int on) { stream_of(handle)->capturing = on; }
int gpu_capturing(uint64_t handle) { return stream_of(handle)->capturing; }

/* ---- processes ---- */
unsigned gpu_processes(void) { return (unsigned)config.processes; }

void gpu_process(unsigned i, unsigned *pid, uint64_t *bytes)
{
	*pid = config.process[i].self ? (unsigned)getpid() : config.process[i].pid;
	*bytes = config.process[i].bytes;
}
