/* SPDX-License-Identifier: Apache-2.0 */
/* served.c - see served.h. */
#define _GNU_SOURCE
#include "allocator/served.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "allocator/arena.h"
#include "allocator/areas.h"
#include "common/map.h"

enum { USES = 8 /* other streams of one block */, WAITING = 256 /* blocks that wait for them */,
       DISABLE_TIMING = 2 /* cudaEventDisableTiming */ };

/* A block that other streams use; freed, it waits for their events. */
struct used {
	uint64_t at; /* 1 + offset; 0: this entry is free */
	uint64_t stream[USES];
	void *event[USES];
	int n;
	bool freed, recorded, lasts; /* lasts: more streams than fit: its place is never reused */
};

static struct {
	pthread_mutex_t lock;
	bool opened;
	char library[1024];
	struct vc_arena *arena;
	struct vc_areas areas;
	int device;             /* whose arena it is; -1: nobody's yet */
	_Atomic int scopes;
	struct used used[WAITING]; int uses;
	struct vc_map requested; /* offset + 1 -> bytes asked for */
	struct vc_served_totals totals;
	FILE *learn;
	struct vc_map seen;     /* address -> number in the log */
	uint64_t numbers;
	unsigned char *check;   /* a bit per 512 bytes that are given out, in test mode */
	uint64_t overlaps;
	bool refused;
	int (*record)(void *, void *), (*query)(void *), (*create)(void **, unsigned),
		(*destroy)(void *), (*last_error)(void);
	char report[1024];
} g = { .lock = PTHREAD_MUTEX_INITIALIZER, .device = -1 };

void *vc_served_function(const char *name)
{
	void *p = dlsym(RTLD_DEFAULT, name), *h;

	if (p || !*g.library)
		return p;
	h = dlopen(g.library, RTLD_NOLOAD | RTLD_NOW);
	return h ? dlsym(h, name) : NULL;
}

static void read_plan(const char *path)
{
	struct vc_memory_plan plan;
	struct vc_error err = { 0 };
	FILE *from = fopen(path, "r");

	if (!from)
		return;
	if (vc_memory_plan_read(&plan, from, path, &err) == VC_OK) {
		if (vc_areas_init(&g.areas, &plan, vc_served_function, &err) == VC_OK)
			g.arena = vc_arena_new(&plan, &err);
		vc_memory_plan_fini(&plan); /* empty when the arena has taken it over */
	}
	fclose(from);
}

/* A plan of its own for this rank, where there is one: train.rank1.vcp for train.vcp. */
static void find_plan(const char *path)
{
	const char *rank = getenv("RANK"), *dot = strrchr(path, '.');
	char own[1100];

	if (rank && *rank && dot && !strchr(dot, '/')) {
		snprintf(own, sizeof(own), "%.*s.rank%s%s", (int)(dot - path), path, rank, dot);
		if (access(own, R_OK) == 0)
			path = own;
	}
	read_plan(path);
}

static void open_files(void)
{
	const char *dir = getenv("VRAMCAST_PLAN_DIR"), *learn = getenv("VRAMCAST_PLAN_LEARN");
	char path[1100];

	if (dir)
		snprintf(g.report, sizeof(g.report), "%s/%ld.report", dir, (long)getpid());
	if (!dir || !learn)
		return;
	snprintf(path, sizeof(path), "%s/%ld.ops", dir, (long)getpid());
	g.learn = fopen(path, "w");
	if (g.learn) {
		setvbuf(g.learn, NULL, _IOLBF, 0); /* a process may end without a word */
		fprintf(g.learn, "vramcast-golden 1\nevents manual\n");
	}
}

void vc_served_open(const char *library)
{
	const char *path = getenv("VRAMCAST_PLAN");

	pthread_mutex_lock(&g.lock);
	if (!g.opened) {
		g.opened = true;
		if (library)
			snprintf(g.library, sizeof(g.library), "%s", library);
		if (path && *path)
			find_plan(path);
		open_files();
		*(void **)&g.record = vc_served_function("cudaEventRecord");
		*(void **)&g.query = vc_served_function("cudaEventQuery");
		*(void **)&g.create = vc_served_function("cudaEventCreateWithFlags");
		*(void **)&g.destroy = vc_served_function("cudaEventDestroy");
		*(void **)&g.last_error = vc_served_function("cudaGetLastError");
	}
	pthread_mutex_unlock(&g.lock);
}

/* The runtime remembers what it answered to us, and PyTorch would find it. */
static void forget_error(void)
{
	if (g.last_error)
		g.last_error();
}

/* The arena, at the first request. Where the device has not so much, all goes the other way. */
static bool has_arena(int device)
{
	if (g.device >= 0 || !g.arena || g.refused)
		return g.device >= 0 && g.device == device;
	if (!vc_areas_get_all(&g.areas)) {
		g.refused = true;
		return false;
	}
	g.device = device;
	if (getenv("VRAMCAST_PLAN_CHECK"))
		g.check = calloc(vc_arena_size(g.arena) / VC_PLAN_UNIT / 8 + 1, 1);
	return true;
}

/* Of its own, and slow: no bit may be set twice. */
static void check_place(uint64_t at, uint64_t size, bool now)
{
	for (uint64_t k = at / VC_PLAN_UNIT; g.check && k < (at + size) / VC_PLAN_UNIT; k++) {
		unsigned char bit = (unsigned char)(1 << k % 8);

		if (((g.check[k / 8] & bit) != 0) == now)
			g.overlaps++;
		g.check[k / 8] ^= bit;
	}
}

static void give(uint64_t offset)
{
	vc_areas_at(&g.areas, offset)->live--;
	check_place(offset, vc_arena_give(g.arena, offset), false);
}

/* ---- other streams ---- */

static struct used *used_at(uint64_t offset, bool freed)
{
	for (int i = 0; g.uses && i < WAITING; i++)
		if (g.used[i].at == offset + 1 && g.used[i].freed == freed)
			return &g.used[i];
	return NULL;
}

static void drop(struct used *u)
{
	for (int k = 0; k < u->n; k++)
		if (u->event[k] && g.destroy)
			g.destroy(u->event[k]);
	*u = (struct used){ 0 };
	g.uses--;
}

static void record(struct used *u)
{
	for (int k = 0; k < u->n; k++)
		if (!g.create || g.create(&u->event[k], DISABLE_TIMING) ||
		    g.record(u->event[k], (void *)(uintptr_t)u->stream[k])) {
			u->lasts = true;
			forget_error();
		}
	u->recorded = true;
}

static bool has_passed(const struct used *u)
{
	for (int k = 0; k < u->n; k++)
		if (!g.query || g.query(u->event[k])) {
			forget_error(); /* cudaErrorNotReady */
			return false;
		}
	return true;
}

/* While a graph is captured no event may be asked for or recorded. */
static void look_at_events(void)
{
	for (int i = 0; g.uses && !g.scopes && i < WAITING; i++) {
		struct used *u = &g.used[i];

		if (!u->freed || u->lasts)
			continue;
		if (!u->recorded)
			record(u);
		if (!u->lasts && has_passed(u)) {
			give(u->at - 1);
			drop(u);
		}
	}
}

/* The offset in the arena of what was given out; VC_PLAN_NOWHERE: it is not from there. */
static uint64_t offset_of(const void *p)
{
	const struct vc_area *x = vc_areas_holding(&g.areas, p);

	return x ? x->at + (uint64_t)((const char *)p - x->base) : VC_PLAN_NOWHERE;
}

void vc_served_use(void *p, uint64_t stream)
{
	uint64_t offset = offset_of(p);
	struct used *u;

	pthread_mutex_lock(&g.lock);
	u = used_at(offset, false);
	for (int i = 0; !u && i < WAITING; i++)
		if (!g.used[i].at) {
			u = &g.used[i];
			u->at = offset + 1;
			g.uses++;
		}
	if (u) {
		int k = 0;

		while (k < u->n && u->stream[k] != stream)
			k++;
		if (k == u->n && k < USES)
			u->stream[u->n++] = stream;
		u->lasts = u->lasts || k == USES;
	} else {
		vc_map_put(&g.requested, offset + 1, UINT64_MAX); /* see vc_served_give */
	}
	pthread_mutex_unlock(&g.lock);
}

/* ---- requests ---- */

static void learn_alloc(const void *p, size_t size, uint64_t stream)
{
	uint64_t number = ++g.numbers;

	fprintf(g.learn, "m %llu %zu %llu\n", (unsigned long long)number, size,
		(unsigned long long)stream);
	vc_map_put(&g.seen, (uint64_t)(uintptr_t)p, number);
}

static void learn_free(const void *p)
{
	uint64_t number = vc_map_take(&g.seen, (uint64_t)(uintptr_t)p);

	if (number)
		fprintf(g.learn, "f %llu\n", (unsigned long long)number);
}

/* A free place by the plan, in an area that is there; VC_PLAN_NOWHERE: none. */
static uint64_t find_place(size_t size, int device, uint64_t stream)
{
	uint64_t offset = VC_PLAN_NOWHERE;
	struct vc_area *area;

	if (has_arena(device))
		offset = vc_arena_take(g.arena, size, stream);
	if (offset == VC_PLAN_NOWHERE)
		return offset;
	area = vc_areas_at(&g.areas, offset);
	if (!area || !vc_map_put(&g.requested, offset + 1, size)) {
		vc_arena_refuse(g.arena, offset);
		return VC_PLAN_NOWHERE;
	}
	area->live++;
	return offset;
}

void *vc_served_take(size_t size, int device, uint64_t stream)
{
	uint64_t offset, bytes;
	void *p = NULL;

	if (g.scopes)
		return NULL;
	pthread_mutex_lock(&g.lock);
	if (g.uses)
		look_at_events();
	offset = find_place(size, device, stream);
	if (offset != VC_PLAN_NOWHERE) {
		const struct vc_area *area = vc_areas_at(&g.areas, offset);

		p = area->base + (offset - area->at);
		bytes = (size + VC_PLAN_UNIT - 1) / VC_PLAN_UNIT * VC_PLAN_UNIT;
		check_place(offset, bytes, true);
		g.totals.bytes += bytes;
		g.totals.requested += size;
		g.totals.count++;
		if (g.learn)
			learn_alloc(p, size, stream);
	}
	pthread_mutex_unlock(&g.lock);
	return p;
}

void vc_served_trim(void)
{
	if (g.scopes) /* nothing may be released while a graph is captured */
		return;
	pthread_mutex_lock(&g.lock);
	look_at_events();
	vc_areas_trim(&g.areas);
	pthread_mutex_unlock(&g.lock);
}

bool vc_served_owns(const void *p)
{
	return vc_areas_holding(&g.areas, p) != NULL;
}

bool vc_served_give(void *p, uint64_t *size, uint64_t *requested, int *device)
{
	uint64_t offset = offset_of(p);
	struct used *u;

	if (offset == VC_PLAN_NOWHERE)
		return false;
	pthread_mutex_lock(&g.lock);
	*device = g.device;
	*requested = vc_map_take(&g.requested, offset + 1);
	u = used_at(offset, false);
	*size = *requested == UINT64_MAX ? 0 :
		(*requested + VC_PLAN_UNIT - 1) / VC_PLAN_UNIT * VC_PLAN_UNIT;
	if (u)
		u->freed = true;
	else if (*requested != UINT64_MAX) /* else nobody knows who uses it: never again */
		give(offset);
	if (g.learn)
		learn_free(p);
	g.totals.bytes -= *size;
	g.totals.requested -= *size ? *requested : 0;
	g.totals.freed_bytes += *size;
	g.totals.count--;
	g.totals.freed_count++;
	pthread_mutex_unlock(&g.lock);
	return true;
}

void vc_served_scope(int by)
{
	g.scopes += by;
}

void vc_served_saw(const void *p, size_t size, uint64_t stream)
{
	if (!g.learn || g.scopes)
		return;
	pthread_mutex_lock(&g.lock);
	learn_alloc(p, size, stream);
	pthread_mutex_unlock(&g.lock);
}

void vc_served_lost(const void *p)
{
	if (!g.learn)
		return;
	pthread_mutex_lock(&g.lock);
	learn_free(p);
	pthread_mutex_unlock(&g.lock);
}

struct vc_served_totals vc_served_totals(int device)
{
	struct vc_served_totals t = { 0 };

	pthread_mutex_lock(&g.lock);
	if (g.device >= 0 && device == g.device) {
		t = g.totals;
		t.arena = g.areas.bytes;
		t.areas = g.areas.count;
		t.given_back = g.areas.given_back;
		t.areas_given_back = g.areas.count_given_back;
	}
	pthread_mutex_unlock(&g.lock);
	return t;
}

/* One line for `vramcast run`. */
void vc_served_end(void)
{
	const struct vc_arena_counts *c = g.arena ? vc_arena_counts(g.arena) : NULL;
	FILE *to = *g.report && (c || g.learn) ? fopen(g.report, "w") : NULL;

	if (g.learn)
		fflush(g.learn);
	if (!to)
		return;
	fprintf(to, "%llu %llu %llu %llu %llu %llu %llu %d %llu %d\n",
		c ? (unsigned long long)c->requests : 0, c ? (unsigned long long)c->served : 0,
		c ? (unsigned long long)c->differs : 0, c ? (unsigned long long)c->occupied : 0,
		c ? (unsigned long long)c->left : 0, c ? (unsigned long long)c->jumps : 0,
		(unsigned long long)(g.device < 0 ? 0 : vc_arena_size(g.arena)), g.refused,
		(unsigned long long)g.overlaps,
		g.check != NULL);
	fclose(to);
}
