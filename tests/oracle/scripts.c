/* SPDX-License-Identifier: Apache-2.0 */
/* scripts.c - see scripts.h */
#include "scripts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LIVE 3000
#define MAX_SCOPES 2
#define MAX_HELD 3
#define MIB (1ull << 20)

struct live { uint64_t id; uint32_t stream, pool; bool used; uint8_t dev; };
struct scope { uint32_t pool, stream; bool capture; }; /* stream 4: all */

struct side {
	struct scope scope[MAX_SCOPES];
	uint32_t scopes, helds;
	uint32_t held[MAX_HELD];          /* pools made by k */
	bool deferred;                    /* a block waits for the end of a capture */
};

struct gen {
	char *s;
	size_t n, cap;
	uint64_t random;
	unsigned minor;
	uint64_t next_id;
	struct live live[MAX_LIVE];
	size_t lives, want; /* how many blocks should be alive */
	struct side side[2], *on;         /* of each device; on: the current one */
	uint32_t next_pool;
	/* what this script is about */
	bool rejects, expandable, pools, records, manual, settings, exact, tight, odd_settings,
		classes, lowers, two;
	unsigned streams, sizes;
	char split[64];                   /* max_split_size_mb, unless it changes at run time */
};

static const unsigned stream_handle[5] = { 0, 16, 32, 48, 0 };

static uint64_t dice(struct gen *g, uint64_t sides)
{
	g->random ^= g->random >> 12;
	g->random ^= g->random << 25;
	g->random ^= g->random >> 27;
	return (g->random * 2685821657736338717ull >> 11) % sides;
}

static bool one_in(struct gen *g, uint64_t n)
{
	return !dice(g, n);
}

static void say(struct gen *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct gen *g, const char *fmt, ...)
{
	va_list ap;

	if (g->cap - g->n < 1024) {
		g->cap = g->cap ? 2 * g->cap : 65536;
		g->s = realloc(g->s, g->cap);
		if (!g->s)
			exit(2);
	}
	va_start(ap, fmt);
	g->n += (size_t)vsnprintf(g->s + g->n, g->cap - g->n, fmt, ap);
	va_end(ap);
}

/* ---- sizes ---- */
static uint64_t near(struct gen *g, uint64_t n)
{
	static const int64_t delta[] = { -513, -512, -1, 0, 0, 1, 511, 512, 513 };
	int64_t d = delta[dice(g, 9)];

	return d < 0 && (uint64_t)-d >= n ? n : n + (uint64_t)d;
}

static uint64_t some_size(struct gen *g)
{
	static const uint64_t edge[] = { 512,      1024,     4096,     65536,    MIB,
					2 * MIB,  10 * MIB, 12 * MIB, 18 * MIB, 19 * MIB,
					20 * MIB, 21 * MIB, 30 * MIB, 40 * MIB, 64 * MIB };
	uint64_t k = dice(g, 16);

	if (k < 2)
		return near(g, edge[dice(g, 15)]);
	switch (g->sizes) {
	case 0: /* small ones */
		return 1 + dice(g, 1ull << (1 + dice(g, 21)));
	case 1: /* everything up to 64 MiB */
		return 1 + dice(g, 1ull << (6 + dice(g, 21)));
	case 2: /* few different ones, many ties */
		return (1 + dice(g, 6)) * (one_in(g, 2) ? 3 * MIB : 1536);
	case 3: /* large */
		return MIB + dice(g, (8 + dice(g, 150)) * MIB);
	default:
		return one_in(g, 40) ? 1 + dice(g, 900 * MIB) : 1 + dice(g, 30 * MIB);
	}
}

/* ---- settings ---- */
static void option(char *to, size_t cap, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void option(char *to, size_t cap, const char *fmt, ...)
{
	size_t n = strlen(to);
	va_list ap;

	if (n)
		n += (size_t)snprintf(to + n, cap - n, ",");
	va_start(ap, fmt);
	vsnprintf(to + n, cap - n, fmt, ap);
	va_end(ap);
}

static void divisions(struct gen *g, char *to, size_t cap)
{
	char list[256] = "";
	unsigned at = (unsigned)dice(g, 6), n = 1 + (unsigned)dice(g, 4);

	if (one_in(g, 2)) {
		option(to, cap, "roundup_power2_divisions:%u", 1u << dice(g, 6));
		return;
	}
	while (n-- && at < 17) {
		unsigned v = g->minor >= 4 && one_in(g, 6) ? 0 : 1u << dice(g, 5);

		option(list, sizeof(list), "%u:%u", 1u << at, v);
		at += 1 + (unsigned)dice(g, 3);
	}
	if (one_in(g, 2))
		option(list, sizeof(list), ">:%u", 1u << dice(g, 4));
	option(to, cap, "roundup_power2_divisions:[%s]", list);
}

static void some_settings(struct gen *g, char *to, size_t cap, bool start)
{
	unsigned lseg = 20;

	*to = '\0';
	if (g->minor >= 11 && one_in(g, 6)) {
		lseg = 12 + 2 * (unsigned)dice(g, 30);
		option(to, cap, "large_segment_size_mb:%u", lseg);
		if (g->split[0] && strtoul(g->split + 18, NULL, 10) < lseg)
			snprintf(g->split, sizeof(g->split), "max_split_size_mb:%u", lseg + 40);
	}
	if ((start || g->lowers) && one_in(g, g->lowers ? 2 : 3))
		snprintf(g->split, sizeof(g->split), "max_split_size_mb:%u",
			 (lseg > 20 ? lseg : 21) + (unsigned)dice(g, 180));
	if (g->split[0])
		option(to, cap, "%s", g->split);
	if (g->minor >= 6 && one_in(g, 8))
		option(to, cap, "max_non_split_rounding_mb:%u",
		       (lseg > 20 ? lseg : 21) + (unsigned)dice(g, 60));
	if (one_in(g, 4))
		option(to, cap, "garbage_collection_threshold:0.%u", 1 + (unsigned)dice(g, 99));
	if (one_in(g, 5))
		divisions(g, to, cap);
	/* Switching off and on again with a split limit lets the real program free a part of a
	 * segment. */
	if (g->expandable && (start || one_in(g, 3)))
		option(to, cap, "expandable_segments:%s",
		       start || (g->split[0] && !g->lowers) || one_in(g, 2) ? "True" : "False");
	if (g->minor >= 12 && one_in(g, g->rejects ? 2 : 10))
		option(to, cap, "throw_on_cudamalloc_oom:%s", one_in(g, 2) ? "True" : "False");
	if (g->minor >= 10 && one_in(g, g->rejects ? 2 : 10))
		option(to, cap, "per_process_memory_fraction:0.%u", 30 + (unsigned)dice(g, 70));
	if (g->classes && one_in(g, 2))
		option(to, cap, one_in(g, 2) ? "expandable_segments_reserve:0.%u" :
		       "expandable_segments_reserve:0.%uG", 1 + (unsigned)dice(g, 9));
	if (g->classes && one_in(g, 2))
		option(to, cap, "expandable_segments_reserve_by_class:[a:0.%u,b:0.%uG]",
		       1 + (unsigned)dice(g, 9), 1 + (unsigned)dice(g, 9));
}

/* Strings that a parser may stumble over, glued from its own vocabulary. */
static void odd_settings(struct gen *g)
{
	static const char *const word[] = { "max_split_size_mb",
					   "garbage_collection_threshold",
					   ":",
					   ":",
					   ":",
					   ":",
					   ",",
					   ",",
					   ",",
					   "[",
					   "]",
					   "roundup_power2_divisions",
					   "4",
					   "21",
					   "0",
					   "1",
					   "200",
					   "0.5",
					   "1.0",
					   "3",
					   "-1",
					   "abc",
					   ">",
					   "True",
					   "False",
					   "backend",
					   "native",
					   "max_non_split_rounding_mb",
					   "large_segment_size_mb",
					   "no_such_key",
					   "release_lock_on_cudamalloc",
					   "pinned_use_background_threads",
					   "pinned_num_register_threads",
					   "pinned_use_cuda_host_register",
					   " ",
					   "256:4",
					   "expandable_segments",
					   "per_process_memory_fraction",
					   "throw_on_cudamalloc_oom",
					   "pinned_free_catch_all",
					   "pinned_reserve_segment_size_mb",
					   "pinned_use_hip_host_register",
					   "pinned_max_cached_size_mb",
					   "pinned_max_round_threshold_mb" };
	unsigned n = 1 + (unsigned)dice(g, 8);

	say(g, "s ");
	while (n--) {
		/* mostly key:value, so that the parser gets past the first word */
		if (one_in(g, 2))
			say(g, "%s:%s%s", word[dice(g, 44)], word[12 + dice(g, 13)], n ? "," : "");
		else
			say(g, "%s", word[dice(g, 44)]);
	}
	say(g, "\n");
}

/* ---- blocks ---- */
static bool capturing(const struct gen *g)
{
	bool real = false;

	for (uint32_t k = 0; k < g->on->scopes; k++)
		real |= g->on->scope[k].capture;
	return g->minor >= 13 ? real : g->on->scopes > 0;
}

static uint32_t pool_for(const struct gen *g, uint32_t stream)
{
	for (uint32_t k = 0; k < g->on->scopes; k++) {
		const struct scope *s = &g->on->scope[g->minor >= 10 ? g->on->scopes - 1 - k : k];

		if (s->stream == 4 || s->stream == stream)
			return s->pool;
	}
	return 0;
}

static void op_alloc(struct gen *g)
{
	uint32_t stream = (uint32_t)dice(g, g->streams);

	if (g->lives == MAX_LIVE)
		return;
	if (g->exact && !capturing(g) && one_in(g, 6)) {
		say(g, "a %" PRIu64 " %" PRIu64 " %" PRIx64 "\n", g->next_id, some_size(g),
		    0x600000000000 + 512 * dice(g, one_in(g, 2) ? 4096 : 200000) +
			    (one_in(g, 20) ? 8 : 0));
		g->live[g->lives++] = (struct live){ g->next_id++, 0, pool_for(g, 0), false, 0 };
		return;
	}
	say(g, "m %" PRIu64 " %" PRIu64 " %u\n", g->next_id, some_size(g), stream_handle[stream]);
	g->live[g->lives++] = (struct live){ g->next_id++, stream, pool_for(g, stream), false,
					      (uint8_t)(g->on - g->side) };
	if (!capturing(g))
		g->on->deferred = false;
}

static void forget(struct gen *g, size_t i)
{
	g->live[i] = g->live[--g->lives];
}

/* Inside a capture a use is recorded only right before the free, and one block at most waits. */
static void op_free(struct gen *g, size_t i)
{
	bool in = capturing(g), strict = g->minor >= 9;
	const struct side *of = &g->side[g->live[i].dev];

	if (of != g->on) { /* not while one of its device is captured */
		if (of->scopes)
			return;
		in = false;
	}
	if (in && g->records && !g->live[i].used && one_in(g, 4) && !(strict && g->on->deferred)) {
		uint32_t s = (uint32_t)dice(g, g->streams);

		say(g, "r %" PRIu64 " %u\n", g->live[i].id, stream_handle[s]);
		g->live[i].used |= s != g->live[i].stream;
	}
	if (in && g->live[i].used) {
		if (strict && g->on->deferred)
			return;
		g->on->deferred = true;
	}
	say(g, "f %" PRIu64 "\n", g->live[i].id);
	forget(g, i);
}

static void op_record(struct gen *g)
{
	size_t i = g->lives ? dice(g, g->lives) : 0;
	uint32_t s = (uint32_t)dice(g, g->streams);

	if (!g->lives || g->side[g->live[i].dev].scopes)
		return;
	say(g, "r %" PRIu64 " %u\n", g->live[i].id, stream_handle[s]);
	g->live[i].used |= s != g->live[i].stream;
}

/* A capture ends on the device where it began. */
static void op_device(struct gen *g)
{
	for (uint32_t k = 0; k < g->on->scopes; k++)
		if (g->on->scope[k].capture)
			return;
	g->on = &g->side[g->on == g->side];
	say(g, "d %u\n", (unsigned)(g->on - g->side));
}

static void op_complete(struct gen *g)
{
	if (one_in(g, 3))
		say(g, "c *\n");
	else
		say(g, "c %u\n", stream_handle[dice(g, g->streams)]);
}

/* ---- pools ---- */
static bool is_empty(const struct gen *g, uint32_t pool)
{
	for (size_t i = 0; i < g->lives; i++)
		if (g->live[i].pool == pool)
			return false;
	return true;
}

static void free_pool(struct gen *g, uint32_t pool)
{
	for (size_t i = 0; i < g->lives; )
		if (g->live[i].pool == pool && !g->live[i].used) {
			say(g, "f %" PRIu64 "\n", g->live[i].id);
			forget(g, i);
		} else {
			i++;
		}
}

static void op_enter(struct gen *g)
{
	struct scope s = { .stream = one_in(g, 3) ? 4 : (uint32_t)dice(g, g->streams) };

	if (g->on->scopes == MAX_SCOPES)
		return;
	s.pool = g->on->helds && one_in(g, 2) ? g->on->held[dice(g, g->on->helds)] : ++g->next_pool;
	for (uint32_t k = 0; k < g->on->scopes; k++)
		if (g->on->scope[k].pool == s.pool)
			return;
	if (s.stream == 4)
		say(g, "b %u *\n", s.pool);
	else
		say(g, "b %u %u\n", s.pool, stream_handle[s.stream]);
	/* one real capture at a time, of one stream */
	s.capture = s.stream != 4 && one_in(g, 2) && !capturing(g);
	if (s.capture)
		say(g, "g %u 1\n", stream_handle[s.stream]);
	g->on->scope[g->on->scopes++] = s;
}

static bool is_held(const struct gen *g, uint32_t pool)
{
	for (uint32_t k = 0; k < g->on->helds; k++)
		if (g->on->held[k] == pool)
			return true;
	return false;
}

static void op_leave(struct gen *g)
{
	uint32_t k = (uint32_t)dice(g, g->on->scopes);
	struct scope s = g->on->scope[k];

	if (s.capture)
		say(g, "g %u 0\n", stream_handle[s.stream]);
	say(g, "x %u\n", s.pool);
	g->on->scope[k] = g->on->scope[g->on->scopes - 1];
	if (k == 0 && g->on->scopes == 2)
		g->on->scope[0] = g->on->scope[1];
	g->on->scopes--;
	if (is_held(g, s.pool)) {
		say(g, "z %u\n", s.pool); /* the scope's own use; the pool stays */
		return;
	}
	if (!capturing(g) && one_in(g, 2))
		free_pool(g, s.pool);
	if ((!g->expandable || is_empty(g, s.pool)) && !one_in(g, 4))
		say(g, "z %u\n", s.pool);
}

static void op_create(struct gen *g)
{
	if (g->on->helds == MAX_HELD || g->minor < 6)
		return;
	g->on->held[g->on->helds++] = ++g->next_pool;
	say(g, "k %u%s\n", g->next_pool, g->minor >= 8 && !one_in(g, 3) ? " oom"
	    : g->minor >= 10 && one_in(g, 2) ? " nosplit" : "");
}

/* The last use of a lasting pool ends; its number may come back. */
static void op_drop(struct gen *g)
{
	uint32_t k = g->on->helds ? (uint32_t)dice(g, g->on->helds) : 0, pool = g->on->held[k];

	if (!g->on->helds || g->on->scopes)
		return;
	free_pool(g, pool);
	if (g->expandable && !is_empty(g, pool))
		return;
	say(g, "z %u\n", pool);
	g->on->held[k] = g->on->held[--g->on->helds];
}

static void op_pool(struct gen *g)
{
	if (one_in(g, 6))
		op_create(g);
	else if (one_in(g, 20))
		op_drop(g);
	else if (g->on->scopes && one_in(g, 2))
		op_leave(g);
	else
		op_enter(g);
}

/* ---- the rest ---- */
static void op_setting(struct gen *g)
{
	char text[512];

	if (g->odd_settings && one_in(g, 2)) {
		odd_settings(g);
		some_settings(g, text, sizeof(text), false); /* back to something sensible */
		say(g, "s %s\n", text);
		return;
	}
	some_settings(g, text, sizeof(text), false);
	say(g, "s %s\n", text);
}

static void op_rare(struct gen *g)
{
	switch (dice(g, 6)) {
	case 0:
	case 1:
		if (g->minor >= 8 && g->next_pool && one_in(g, 3))
			say(g, "e %u\n", 1 + (unsigned)dice(g, g->next_pool));
		else
			say(g, "e\n");
		if (!capturing(g))
			g->on->deferred = false;
		break;
	case 2:
		if (g->tight)
			say(g, "o %" PRIu64 "\n", dice(g, 1500 * MIB));
		break;
	case 3:
		if (g->tight)
			say(g,
			    one_in(g, 20) ? "p 1.%02u\n" :
			    one_in(g, 5)  ? "p 1.0\n" :
					    "p 0.%02u\n",
			    10 + (unsigned)dice(g, 90));
		break;
	case 4:
		if (g->settings)
			op_setting(g);
		break;
	default:
		if (g->classes)
			say(g, "t %u %c\n", stream_handle[dice(g, g->streams)], "abc"[dice(g, 3)]);
	}
}

static void op(struct gen *g)
{
	uint64_t k = dice(g, 1000);

	if (g->settings && one_in(g, g->odd_settings || g->rejects ? 12 : 100))
		op_setting(g);
	else if (g->two && one_in(g, 15))
		op_device(g);
	else if (k < 12)
		op_rare(g);
	else if (k < 22 && g->pools)
		op_pool(g);
	else if (k < 60 && g->records)
		op_record(g);
	else if (k < 100 && g->manual)
		op_complete(g);
	else if (g->lives && (dice(g, 2 * g->want) < g->lives))
		op_free(g, one_in(g, 3) ? g->lives - 1 : one_in(g, 3) ? 0 : dice(g, g->lives));
	else
		op_alloc(g);
	if (one_in(g, 400)) /* a phase with more or fewer live blocks */
		g->want = 4 + dice(g, one_in(g, 3) ? 600 : 60);
}

static void header(struct gen *g)
{
	static const char *const va[] = { "inc", "dec", "fit", "mix" };
	uint64_t total = g->tight ? 300 * MIB + dice(g, 2500 * MIB) : (24 + dice(g, 60)) << 30;
	char conf[512];

	say(g, "vramcast-golden 1\nname random\nversions 2.0 9.9\ntotal %" PRIu64 "\n", total);
	if (g->tight && one_in(g, 4))
		say(g, "proptotal %" PRIu64 "\n", total + dice(g, 64 * MIB));
	if (g->two)
		say(g, "devices 2\n");
	say(g, "other %" PRIu64 "\n", g->tight && one_in(g, 3) ? dice(g, 200 * MIB) : 0);
	say(g, "va %s\nevents %s\n", g->exact ? "inc" : va[dice(g, 4)],
	    g->manual ? "manual" : "auto");
	some_settings(g, conf, sizeof(conf), true);
	if (g->expandable || one_in(g, 2))
		say(g, "conf %s\n", conf);
	else
		g->split[0] = '\0';
	if (one_in(g, 2))
		say(g, "proc self %" PRIu64 "\n", dice(g, 8ull << 30));
	if (one_in(g, 3))
		say(g, "proc %u %" PRIu64 "\n", 1 + (unsigned)dice(g, 99999), dice(g, 8ull << 30));
}

char *random_script(unsigned minor, uint64_t seed, size_t ops)
{
	struct gen *g = calloc(1, sizeof(*g));
	char *s;

	if (!g)
		exit(2);
	g->minor = minor;
	g->random = (seed + 1) * 0x9e3779b97f4a7c15ull;
	for (int k = 0; k < 8; k++)
		dice(g, 2);
	g->next_id = 1;
	g->on = g->side;
	g->expandable = minor >= 1 && one_in(g, 3);
	g->pools = minor >= 3 && one_in(g, 3);
	g->tight = one_in(g, 2);
	g->records = one_in(g, 2);
	g->manual = g->records && one_in(g, 2);
	g->rejects = minor >= 12 && g->tight && one_in(g, 3);
	g->lowers = one_in(g, 4);
	g->settings = g->rejects || g->lowers || one_in(g, 3);
	g->odd_settings = g->settings && !g->expandable && one_in(g, 3);
	g->exact = minor >= 13 && one_in(g, 5);
	g->two = minor >= 2 && !g->exact && one_in(g, 4);
	g->classes = minor >= 15 && g->expandable && one_in(g, 2);
	g->streams = one_in(g, 3) ? 1 : 2 + (unsigned)dice(g, 3);
	g->sizes = (unsigned)dice(g, 5);
	g->want = 4 + dice(g, 100);
	header(g);
	while (ops--)
		op(g);
	s = g->s;
	free(g);
	return s;
}
