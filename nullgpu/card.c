/* SPDX-License-Identifier: Apache-2.0 */
/* card.c - the card that the null device plays, read once from the environment.
 *
 * `vramcast dryrun` sets the variables from the table behind `vramcast gpus`; the fallback below
 * only serves programs started by hand. */
#define _GNU_SOURCE
#include "nullgpu/architecture.h"
#include "nullgpu/null.h"

#include <pthread.h>
#include <stdarg.h>

struct other {
	uint64_t size;
	unsigned pid;
};

static struct vc_null_card card;
static struct other others[8];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread int current;

static const char *setting(const char *name)
{
	char key[64];
	snprintf(key, sizeof key, "VRAMCAST_NULL_%s", name);
	const char *s = getenv(key);
	return s && *s ? s : NULL;
}

static uint64_t number(const char *name, uint64_t fallback)
{
	const char *s = setting(name);
	return s ? strtoull(s, NULL, 0) : fallback;
}

/* "8.9" or "89" */
static int capability(const char *s)
{
	const char *dot = strchr(s, '.');
	int major = (int)strtol(s, NULL, 10);
	return dot ? major * 10 + (int)strtol(dot + 1, NULL, 10) : major;
}

static void read_architecture(void)
{
	const struct vc_architecture *a = vc_architecture(card.cc);
	card.shared_sm = a->shared_sm;
	card.shared_optin = a->shared_optin;
	card.threads_sm = a->threads_sm;
	card.blocks_sm = a->blocks_sm;
}

/* "BYTES@PID,BYTES@PID": what other processes hold, on every device alike */
static void read_others(void)
{
	const char *s = setting("OTHERS");
	for (size_t i = 0; s && i < sizeof others / sizeof *others; i++) {
		char *end;
		others[i].size = strtoull(s, &end, 0);
		others[i].pid = *end == '@' ? (unsigned)strtoul(end + 1, &end, 10) : 1;
		s = *end == ',' ? end + 1 : NULL;
	}
}

static int visible_devices(int n)
{
	const char *s = getenv("CUDA_VISIBLE_DEVICES");
	if (!s)
		return n;
	int seen = *s && *s != '-' ? 1 : 0;
	for (; seen && *s; s++)
		seen += *s == ',';
	return seen < n ? seen : n;
}

static void configure(void)
{
	/* fallback: RTX 4090, Linux, driver R580 (24081 MiB, 8.9, 128 SMs, 72 MiB L2) */
	const char *name = setting("NAME"), *cc = setting("CC"), *addresses = setting("ADDRESSES");
	snprintf(card.name, sizeof card.name, "%s", name ? name : "NVIDIA GeForce RTX 4090");
	card.total = number("TOTAL", 24081 * VC_MIB);
	card.board = number("BOARD", card.total);
	if (card.board < card.total)
		card.board = card.total;
	card.context = number("CONTEXT", 450 * VC_MIB);
	card.cc = cc ? capability(cc) : 89;
	card.sms = (int)number("SMS", 128);
	card.l2 = number("L2", 72 * VC_MIB);
	card.bandwidth = (double)number("BANDWIDTH", 1008000000000ull);
#define X(id, word, variable, fallback) \
	card.flops[VC_NULL_##id] = (double)number(variable, fallback);
	VC_NULL_RATE_TABLE(X)
#undef X
	card.devices = (int)number("DEVICES", 1);
	if (card.devices > VC_NULL_DEVICES)
		card.devices = VC_NULL_DEVICES;
	card.devices = visible_devices(card.devices);
	card.ascending = addresses && strcmp(addresses, "up") == 0;
	card.copy_max = number("COPY_MAX", VC_MIB);
	card.log = (int)number("LOG", 0);
	read_architecture();
	read_others();
}

const struct vc_null_card *vc_null_card(void)
{
	pthread_once(&once, configure);
	return &card;
}

uint64_t vc_null_other(int device, int i, unsigned *pid)
{
	(void)device; /* every device of a dry run carries the same neighbours */
	if (i < 0 || i >= (int)(sizeof others / sizeof *others) || !others[i].size) {
		*pid = 0;
		return 0;
	}
	*pid = others[i].pid;
	return others[i].size;
}

int vc_null_current(void)
{
	return current;
}

void vc_null_select(int device)
{
	current = device;
}

void vc_null_log(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	fputs("null gpu: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
}

struct fixed {
	int attribute, value;
};

/* Numbers of CUdevice_attribute (cuda.h); the values are those every card since 7.0 reports. */
static const struct fixed fixed[] = {
	{ 1, 1024 }, { 2, 1024 }, { 3, 1024 }, { 4, 64 }, { 5, 2147483647 }, { 6, 65535 },
	{ 7, 65535 }, { 8, 49152 }, { 9, 65536 }, { 10, 32 }, { 11, 2147483647 }, { 12, 65536 },
	{ 13, 1980000 }, { 14, 512 }, { 15, 1 }, { 19, 1 }, { 31, 1 }, { 36, 10501000 },
	{ 37, 384 }, { 40, 2 }, { 41, 1 }, { 78, 1 }, { 79, 1 }, { 80, 1 }, { 82, 65536 },
	{ 83, 1 }, { 89, 1 }, { 90, 1 }, { 91, 1 }, { 92, 1 }, { 93, 1 }, { 94, 1 }, { 95, 1 },
	{ 96, 1 }, { 98, 1 }, { 99, 1 }, { 102, 1 }, { 103, 1 }, { 111, 1024 }, { 115, 1 },
};

int vc_null_attribute(int attribute, int device)
{
	const struct vc_null_card *c = vc_null_card();
	switch (attribute) {
	case 16: return c->sms;
	case 33: return device + 1;
	case 38: return (int)c->l2;
	case 39: return c->threads_sm;
	case 75: return c->cc / 10;
	case 76: return c->cc % 10;
	case 81: return c->shared_sm;
	case 97: return c->shared_optin;
	case 106: return c->blocks_sm;
	case 108: return c->cc >= 80 ? (int)(c->l2 / 2) : 0; /* persisting L2, at most */
	case 120: return c->cc >= 90; /* cluster launch */
	case 132: /* multicast: boards behind an NVSwitch */
		return (c->cc == 90 || c->cc == 100 || c->cc == 103) &&
			!strstr(c->name, "PCIe") && !strstr(c->name, "NVL");
	}
	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
		if (fixed[i].attribute == attribute)
			return fixed[i].value;
	return 0;
}
