/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.c - libnccl: communicators, and collectives with the right sizes.
 *
 * Data that a program may decide by (whole numbers up to a small copy, floating point up to 16
 * KiB) is really exchanged between the ranks (nccl_data.c); of larger data every rank is taken to
 * hold the same. */
#include "nullgpu/nccl.h"
#include "nullgpu/null.h"

#include <limits.h>
#include <time.h>
#include <unistd.h>

#define NCCL_VERSION 22705
#define NO_COLOR (-1)
#define NEXT_COLOR (-2) /* where PyTorch chooses the color in C++ */

VC_API(int, ncclGetVersion, int *v)
{
	*v = NCCL_VERSION;
	return 0;
}

VC_API(int, ncclGetUniqueId, struct vc_nccl_id *id)
{
	static int ids;
	struct timespec now;
	int n = __atomic_add_fetch(&ids, 1, __ATOMIC_SEQ_CST);
	pid_t pid = getpid();
	clock_gettime(CLOCK_MONOTONIC, &now);
	memset(id, 0, sizeof *id);
	memcpy(id->bytes, &n, sizeof n);
	memcpy(id->bytes + 8, &pid, sizeof pid);
	memcpy(id->bytes + 16, &now, sizeof now);
	return 0;
}

/* ---- equal ranks: the root of a communicator makes its id, the others hear one that is made of
 * the name under which the store would have it. All go by the latter. ---- */

static struct { uint64_t id, key; } names[4096];
static unsigned n_names;

VC_SHARED void vc_null_id(const struct vc_nccl_id *id, const struct vc_nccl_id *as);
void vc_null_id(const struct vc_nccl_id *id, const struct vc_nccl_id *as)
{
	unsigned i = n_names++ % (sizeof names / sizeof *names);
	names[i].id = vc_exchange_key(1, id, sizeof *id);
	names[i].key = vc_exchange_key(1, as, sizeof *as);
}

/* Who is in a communicator: ranks of the job, by the name of its id. Never given back, as the
 * processes of a dry run end soon. */
static struct { uint64_t key; const int *job; } members[4096];
static unsigned n_members;

static const int *copy_of(const int *job, int ranks)
{
	int *copy = job ? malloc((size_t)ranks * sizeof *copy) : NULL;
	return copy ? memcpy(copy, job, (size_t)ranks * sizeof *copy) : NULL;
}

static const int *members_of(uint64_t key)
{
	for (unsigned i = 0; i < n_members; i++)
		if (members[i].key == key)
			return members[i].job;
	return NULL;
}

VC_SHARED void vc_null_members(const struct vc_nccl_id *as, int ranks, const int *job);
void vc_null_members(const struct vc_nccl_id *as, int ranks, const int *job)
{
	uint64_t key = vc_exchange_key(1, as, sizeof *as);
	if (members_of(key) || n_members == sizeof members / sizeof *members)
		return;
	members[n_members].key = key;
	members[n_members++].job = copy_of(job, ranks);
}

static uint64_t key_of(const struct vc_nccl_id *id)
{
	uint64_t key = vc_exchange_key(1, id, sizeof *id);
	for (unsigned i = 0; i < n_names && i < sizeof names / sizeof *names; i++)
		if (names[i].id == key)
			return names[i].key;
	return key;
}

static int open_communicator(struct vc_nccl **out, uint64_t key, const int *job, int ranks,
			     int rank)
{
	static unsigned communicators;
	struct vc_nccl *c = calloc(1, sizeof *c);
	if (!c || !(c->sent = calloc((size_t)ranks * 3, sizeof *c->sent))) {
		free(c);
		return NCCL_SYSTEM_ERROR;
	}
	c->received = c->sent + ranks;
	c->met = c->received + ranks;
	c->device = vc_null_current();
	c->number = __atomic_add_fetch(&communicators, 1, __ATOMIC_RELAXED);
	c->ranks = ranks;
	c->rank = rank;
	c->job = job;
	vc_exchange_open(&c->x, key, key ? ranks : 1, rank);
	*out = c;
	return ranks > 1 ? vc_nccl_charge(c->device, ranks) : 0;
}

static int open_named(struct vc_nccl **out, const struct vc_nccl_id *id, int ranks, int rank)
{
	uint64_t key = key_of(id);
	return open_communicator(out, key, members_of(key), ranks, rank);
}

VC_API_RETURNS(ncclCommInitRankConfig, (struct vc_nccl **c, int ranks, struct vc_nccl_id id,
       int rank, void *config),
	open_named(c, &id, ranks, rank))
VC_API_RETURNS(ncclCommInitRank, (struct vc_nccl **c, int ranks, struct vc_nccl_id id, int rank),
	open_named(c, &id, ranks, rank))
VC_API_RETURNS(ncclCommInitRankScalable, (struct vc_nccl **c, int ranks, int rank, int ids,
       struct vc_nccl_id *id, void *config),
	open_named(c, id, ranks, rank))

/* Ranks of one process do not wait for each other: they are one thread. */
VC_API(int, ncclCommInitAll, struct vc_nccl **c, int n, const int *devices)
{
	int rc = 0, before = vc_null_current();
	for (int i = 0; i < n && !rc; i++) {
		vc_null_select(devices ? devices[i] : i);
		rc = open_communicator(&c[i], 0, NULL, n, i);
	}
	vc_null_select(before);
	return rc;
}

struct ticket {
	int color, key;
};

/* Where the caller comes among those of its color, by key and then by old rank. */
static void place(const struct ticket *all, int ranks, int mine, int *count, int *rank)
{
	*count = *rank = 0;
	for (int i = 0; i < ranks; i++) {
		if (all[i].color != all[mine].color)
			continue;
		++*count;
		*rank += all[i].key < all[mine].key || (all[i].key == all[mine].key && i < mine);
	}
}

/* Of ranks that do not run: what PyTorch is about to ask for, told by vramcast_null_world.py.
 * Colors that PyTorch chooses in C++ are not told, only seen; several groups of a rank may have the
 * same (2.11 takes the first rank of the group), so whatever is told next comes before those. */
static struct told { int color, ranks, rank; bool seen; const int *job; } told[1024];
static struct told next;
static int n_told;

static struct told *told_of(int color)
{
	int i = 0;
	while (i < n_told && told[i].color != color)
		i++;
	return i < n_told ? &told[i] : NULL;
}

static void keep(struct told this)
{
	struct told *at = told_of(this.color);
	if (!at && n_told < (int)(sizeof told / sizeof *told))
		at = &told[n_told++];
	if (at)
		*at = this;
}

VC_SHARED void vc_null_group(int color, int ranks, int rank, const int *job);
void vc_null_group(int color, int ranks, int rank, const int *job)
{
	struct told this = { .color = color, .ranks = ranks, .rank = rank,
			     .job = copy_of(job, ranks) };
	if (color == NEXT_COLOR)
		next = this;
	else
		keep(this);
}

static const int *place_as_told(int color, int *count, int *rank)
{
	const struct told *t = told_of(color);
	if (next.ranks && (!t || t->seen)) {
		keep((struct told){ color, next.ranks, next.rank, true, next.job });
		next.ranks = 0;
		t = told_of(color);
	}
	if (!t)
		return NULL;
	*count = t->ranks;
	*rank = t->rank;
	return t->job;
}

/* When the others do not answer, their number is unknown, and the parent's is the upper bound. */
VC_API(int, ncclCommSplit, struct vc_nccl *parent, int color, int key, struct vc_nccl **c,
       void *config)
{
	struct ticket mine = { color, key }, *all = calloc((size_t)parent->ranks, sizeof *all);
	int count = parent->ranks, rank = parent->rank, rc = 0;
	uint64_t number = parent->splits++, name[2] = { number, (uint64_t)(uint32_t)color };
	const int *job = NULL;
	if (!all)
		return NCCL_SYSTEM_ERROR;
	bool known = vc_nccl_gather(parent, &mine, sizeof mine, all);
	if (known && !parent->x.equal)
		place(all, parent->ranks, parent->rank, &count, &rank);
	else
		job = place_as_told(color, &count, &rank);
	free(all);
	*c = NULL;
	if (color != NO_COLOR)
		rc = open_communicator(
			c, known ? vc_exchange_key(parent->x.key, name, sizeof name) : 0, job,
			count, rank);
	return rc;
}

VC_API(int, ncclCommShrink, struct vc_nccl *parent, const int *without, int n, struct vc_nccl **c,
       void *config, int flags)
{
	int rank = parent->rank;
	uint64_t name[2] = { parent->splits++, UINT64_MAX };
	for (int i = 0; i < n; i++)
		rank -= without[i] < parent->rank;
	return open_communicator(
		c, parent->x.key ? vc_exchange_key(parent->x.key, name, sizeof name) : 0, NULL,
		parent->ranks - n, rank);
}

static int close_communicator(struct vc_nccl *c)
{
	vc_nccl_forget(c);
	if (c) {
		vc_exchange_close(&c->x);
		free(c->sent);
	}
	free(c);
	return 0;
}

VC_API_RETURNS(ncclCommDestroy, (struct vc_nccl *c), close_communicator(c))
VC_API_RETURNS(ncclCommAbort, (struct vc_nccl *c), close_communicator(c))
VC_API_DOES(ncclCommGetAsyncError, (const struct vc_nccl *c, int *e), *e = 0)
VC_API_DOES(ncclCommCount, (const struct vc_nccl *c, int *n), *n = c->ranks)
VC_API_DOES(ncclCommUserRank, (const struct vc_nccl *c, int *n), *n = c->rank)
VC_API_DOES(ncclCommCuDevice, (const struct vc_nccl *c, int *n), *n = c->device)

VC_API(const char *, ncclGetErrorString, int e)
{
	return e ? "NCCL error" : "no error";
}

VC_API(const char *, ncclGetLastError, const struct vc_nccl *c)
{
	return "";
}

VC_API(int, ncclMemAlloc, void **p, size_t n)
{
	uint64_t at;
	int rc = vc_null_alloc(vc_null_current(), n, &at);
	*p = rc ? NULL : (void *)at;
	return rc ? NCCL_CUDA_ERROR : 0;
}

VC_API_RETURNS(ncclMemFree, (void *p), vc_null_free((uint64_t)p) ? NCCL_CUDA_ERROR : 0)
