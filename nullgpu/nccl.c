/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.c - libnccl: communicators of ranks that never talk.
 *
 * Every rank is taken to hold the same data: collectives copy the caller's own contribution, so
 * sizes are right and small host-visible values agree. The buffers of NCCL itself lie outside
 * PyTorch's allocator and depend on topology and version; VRAMCAST_NULL_NCCL bytes are charged for
 * each communicator of more than one rank (0 unless set, and then named in the run's report). */
#include "nullgpu/null.h"

#include <stdlib.h>
#include <string.h>

#define NCCL_VERSION 22705
#define NCCL_SYSTEM_ERROR 2

struct unique_id {
	char bytes[128];
};

struct communicator {
	int ranks, rank, device;
};

VC_API(int, ncclGetVersion, int *v)
{
	*v = NCCL_VERSION;
	return 0;
}

VC_API(int, ncclGetUniqueId, struct unique_id *id)
{
	static int ids;
	memset(id, 0, sizeof *id);
	id->bytes[0] = (char)__atomic_add_fetch(&ids, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static int open_communicator(struct communicator **out, int ranks, int rank)
{
	static unsigned char seen;
	struct communicator *c = calloc(1, sizeof *c);
	if (!c)
		return NCCL_SYSTEM_ERROR;
	*c = (struct communicator){ .ranks = ranks, .rank = rank, .device = vc_null_current() };
	*out = c;
	const char *s = getenv("VRAMCAST_NULL_NCCL");
	size_t size = s ? strtoull(s, NULL, 0) : 0;
	uint64_t at;
	if (ranks < 2)
		return 0;
	if (!size)
		vc_null_bound("ncclCommInitRank (buffers of NCCL itself are not counted)", &seen);
	return size && vc_null_alloc(c->device, size, &at) ? 1 : 0; /* ncclUnhandledCudaError */
}

VC_API(int, ncclCommInitRankConfig, struct communicator **c, int ranks, struct unique_id id,
       int rank, void *config)
{
	return open_communicator(c, ranks, rank);
}

VC_API(int, ncclCommInitRank, struct communicator **c, int ranks, struct unique_id id, int rank)
{
	return open_communicator(c, ranks, rank);
}

VC_API(int, ncclCommInitRankScalable, struct communicator **c, int ranks, int rank, int ids,
       struct unique_id *id, void *config)
{
	return open_communicator(c, ranks, rank);
}

VC_API(int, ncclCommInitAll, struct communicator **c, int n, const int *devices)
{
	int rc = 0;
	for (int i = 0; i < n && !rc; i++)
		rc = open_communicator(&c[i], n, i);
	return rc;
}

/* Without talking to the others the new size is unknown: the parent's is the upper bound, which
 * DeviceMesh never notices because it counts ranks itself. */
VC_API(int, ncclCommSplit, const struct communicator *parent, int color, int key,
       struct communicator **c, void *config)
{
	return open_communicator(c, parent->ranks, parent->rank);
}

VC_API(int, ncclCommDestroy, struct communicator *c)
{
	free(c);
	return 0;
}

VC_API(int, ncclCommAbort, struct communicator *c)
{
	free(c);
	return 0;
}

VC_API(int, ncclCommGetAsyncError, const struct communicator *c, int *e)
{
	*e = 0;
	return 0;
}

VC_API(int, ncclCommCount, const struct communicator *c, int *n)
{
	*n = c->ranks;
	return 0;
}

VC_API(int, ncclCommUserRank, const struct communicator *c, int *n)
{
	*n = c->rank;
	return 0;
}

VC_API(int, ncclCommCuDevice, const struct communicator *c, int *n)
{
	*n = c->device;
	return 0;
}

VC_API(const char *, ncclGetErrorString, int e)
{
	return e ? "NCCL error" : "no error";
}

VC_API(const char *, ncclGetLastError, const struct communicator *c)
{
	return "";
}

/* ---- collectives ---- */

/* ncclDataType_t */
static size_t width_of(int type)
{
	static const unsigned char widths[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };
	return type >= 0 && type < (int)sizeof widths ? widths[type] : 4;
}

static int move(const char *name, void *to, const void *from, size_t size, void *stream)
{
	bool captured = vc_null_stream(stream)->capture != 0;
	if (!captured)
		vc_null_copy(to, from, size);
	return vc_null_library_work(name, stream, 2 * (double)size, 0);
}

VC_API(int, ncclAllReduce, const void *from, void *to, size_t n, int type, int op,
       const struct communicator *c, void *stream)
{
	return move("ncclAllReduce", to, from, n * width_of(type), stream);
}

VC_API(int, ncclReduce, const void *from, void *to, size_t n, int type, int op, int root,
       const struct communicator *c, void *stream)
{
	return c->rank == root ? move("ncclReduce", to, from, n * width_of(type), stream) : 0;
}

VC_API(int, ncclBroadcast, const void *from, void *to, size_t n, int type, int root,
       const struct communicator *c, void *stream)
{
	return move("ncclBroadcast", to, from, n * width_of(type), stream);
}

VC_API(int, ncclAllGather, const void *from, void *to, size_t n, int type,
       const struct communicator *c, void *stream)
{
	size_t size = n * width_of(type);
	for (int i = 0; i < c->ranks; i++)
		move("ncclAllGather", (char *)to + (size_t)i * size, from, size, stream);
	return 0;
}

VC_API(int, ncclReduceScatter, const void *from, void *to, size_t n, int type, int op,
       const struct communicator *c, void *stream)
{
	size_t size = n * width_of(type);
	return move("ncclReduceScatter", to, (const char *)from + (size_t)c->rank * size, size, stream);
}

VC_API(int, ncclMemAlloc, void **p, size_t n)
{
	uint64_t at;
	int rc = vc_null_alloc(vc_null_current(), n, &at);
	*p = rc ? NULL : (void *)at;
	return rc ? 1 : 0;
}

VC_API(int, ncclMemFree, void *p)
{
	return vc_null_free((uint64_t)p) ? 1 : 0;
}
