/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_data.c - libnccl: collectives, sends and receives.
 *
 * Whether data is exchanged depends on type and size alone, so all ranks decide alike. A collective
 * waits for the others; a receive does not: its data is fetched when somebody looks at it, as ranks
 * may receive and send in any order on different streams. */
#include "nullgpu/nccl.h"
#include "nullgpu/null.h"
#include "nullgpu/reduce.h"

#include <pthread.h>

/* Numbers of floating point up to this size may be a loss or a norm; larger ones are gradients and
 * activations, which nobody computed. */
#define FLOAT_MAX 16384
/* What a thousand equal ranks say together. */
#define EQUAL_MAX ((size_t)64 << 20)

struct arrival {
	struct vc_nccl *c;
	void *to;
	size_t size;
	uint64_t number;
	int from;
	bool whole; /* numbers */
	struct arrival *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct arrival *arrivals; /* not there yet, oldest first */

static bool decides(const struct vc_nccl *c, size_t size, int type, void *stream)
{
	return !c->x.alone && !vc_null_stream(stream)->capture &&
		(!c->x.equal || size <= EQUAL_MAX / (size_t)c->ranks) &&
		size <= (vc_reduce_is_float(type) ? FLOAT_MAX : vc_null_card()->copy_max);
}

bool vc_nccl_gather(struct vc_nccl *c, const void *mine, size_t size, void *all)
{
	uint64_t number = c->calls++;
	for (int i = 0; c->x.equal && i < c->ranks; i++)
		memcpy((char *)all + (size_t)i * size, mine, size);
	if (c->x.equal)
		return true;
	bool good = vc_exchange_put(&c->x, number, VC_TO_ALL, mine, size);
	for (int i = 0; good && i < c->ranks; i++)
		good = vc_exchange_get(&c->x, number, i, VC_TO_ALL,
				       (char *)all + (size_t)i * size, size, true);
	return good;
}

/* ---- equal ranks: what other ranks would have said ---- */

/* Whole numbers of which nobody knows whether other ranks hold the same. */
static void note(const struct vc_nccl *c, const void *to, size_t size, int type, const char *what,
		 bool sure)
{
	if (c->x.equal)
		vc_null_made_up(to, size, sure || c->ranks < 2 || vc_reduce_is_float(type) ?
			NULL : what);
}

/* As vc_nccl_gather, of whole numbers. Who was not played is taken to hold what the next one below
 * holds. True: all are known, or several, and they hold the same. */
static bool gather_played(struct vc_nccl *c, const void *mine, size_t size, char *all)
{
	uint64_t number = c->calls++;
	int others = 0, from = -1, next = 0;
	bool same = true;
	for (int i = 0; c->x.own && i < c->ranks; i++)
		memcpy(all + (size_t)i * size, mine, size);
	if (c->x.own)
		return true;
	vc_exchange_say(&c->x, number, VC_TO_ALL, mine, size, true);
	for (int i = 0; i < c->ranks; i++) {
		char *at = all + (size_t)i * size;
		bool played = next < c->x.n_played && c->x.played[next].rank == i;
		next += played;
		bool heard = played &&
			vc_exchange_hear(&c->x, number, i, VC_TO_ALL, at, size);
		others += heard;
		if (i == c->rank)
			memcpy(at, mine, size);
		if (i == c->rank || heard) {
			same = same && !memcmp(at, mine, size);
			for (int k = from < 0 ? 0 : i; k < i; k++)
				memcpy(all + (size_t)k * size, at, size);
			from = i;
		} else if (from >= 0) {
			memcpy(at, all + (size_t)from * size, size);
		}
	}
	return others == c->ranks - 1 || (others && same);
}

/* ---- receives ---- */

/* Takes the oldest arrival that lies in the range out of the list. */
static struct arrival *take_in(const char *from, size_t size)
{
	pthread_mutex_lock(&lock);
	struct arrival **at = &arrivals, *a;
	while (*at && ((const char *)(*at)->to + (*at)->size <= from ||
		       (const char *)(*at)->to >= from + size))
		at = &(*at)->next;
	a = *at;
	if (a)
		__atomic_store_n(at, a->next, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return a;
}

/* An equal rank that was not played sends what this one sends to itself; otherwise nothing is
 * known. */
static bool receive(const struct arrival *a, bool wait)
{
	struct vc_exchange *x = &a->c->x;
	if (x->own && vc_exchange_hear(x, a->number, x->rank, x->rank, a->to, a->size))
		return true;
	if (x->equal && vc_exchange_hear(x, a->number, a->from, x->rank, a->to, a->size))
		return true;
	bool there = vc_exchange_get(x, a->number, a->from, a->c->rank, a->to, a->size, wait);
	if (x->equal && a->whole && (wait || there) && a->from != x->rank)
		vc_null_made_up(a->to, a->size, "a message of another rank");
	return there;
}

/* Somebody is about to look at these bytes. */
static void fetch(const void *from, size_t size)
{
	struct arrival *a;
	while (__atomic_load_n(&arrivals, __ATOMIC_ACQUIRE) && (a = take_in(from, size)) != NULL) {
		receive(a, true);
		free(a);
	}
}

/* What is there by now, before its place is used for something else. */
static void fetch_ready(void)
{
	if (!__atomic_load_n(&arrivals, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&lock);
	for (struct arrival **at = &arrivals; *at; ) {
		struct arrival *a = *at;
		if (!receive(a, false)) {
			at = &a->next;
			continue;
		}
		__atomic_store_n(at, a->next, __ATOMIC_RELEASE);
		free(a);
	}
	pthread_mutex_unlock(&lock);
}

void vc_nccl_forget(const struct vc_nccl *c)
{
	pthread_mutex_lock(&lock);
	for (struct arrival **at = &arrivals; *at; ) {
		struct arrival *a = *at;
		if (a->c != c) {
			at = &a->next;
			continue;
		}
		*at = a->next;
		free(a);
	}
	pthread_mutex_unlock(&lock);
}

static int expect(struct vc_nccl *c, void *to, size_t size, int from, bool whole)
{
	struct arrival *a = calloc(1, sizeof *a);
	if (!a)
		return NCCL_SYSTEM_ERROR;
	*a = (struct arrival){ c, to, size, c->received[from]++, from, whole, NULL };
	pthread_mutex_lock(&lock);
	struct arrival **at = &arrivals;
	while (*at)
		at = &(*at)->next;
	__atomic_store_n(at, a, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	vc_null_on_read(fetch);
	fetch_ready();
	return 0;
}

/* ---- collectives ---- */

/* What lies between two of these is one operation on a card: its messages go both ways at once. */
static __thread unsigned depth, messages;

VC_API(int, ncclGroupStart, void)
{
	messages = depth++ ? messages : 0;
	return 0;
}

VC_API(int, ncclGroupEnd, void)
{
	depth -= depth > 0;
	return 0;
}

static int node_of(const struct vc_nccl *c, int rank)
{
	const char *ranks = getenv("LOCAL_WORLD_SIZE");
	int each = ranks ? (int)strtol(ranks, NULL, 10) : 0;
	return c->job && each > 0 ? c->job[rank] / each : 0;
}

/* size: of the whole buffer. */
static int work(const char *name, const struct vc_nccl *c, double size, void *stream)
{
	uint64_t beside = 0;
	for (int i = 0; c->job && i < c->ranks; i++)
		beside += node_of(c, i) == node_of(c, c->rank);
	vc_null_collective(stream);
	return vc_null_known_work(name, stream, &(struct vc_kernel_work){
		.kind = VC_WORK_COLLECTIVE, .type = "-", .read = size, .written = size,
		.dim = { (uint64_t)c->ranks, (uint64_t)c->rank, c->number, beside } });
}

static uint64_t of_job(const struct vc_nccl *c, int rank)
{
	return (uint64_t)(c->job ? c->job[rank] : rank);
}

/* One to one. Its type: whether it is alone, the first of a group, or another one of it; and
 * whether it goes to another node. */
static int message(const char *name, const struct vc_nccl *c, double size, int peer, void *stream)
{
	bool over = node_of(c, peer) != node_of(c, c->rank);
	vc_null_collective(stream);
	return vc_null_known_work(name, stream, &(struct vc_kernel_work){
		.kind = VC_WORK_COLLECTIVE, .read = size, .written = size,
		.type = { depth ? messages++ ? 'n' : 'f' : '-', over ? 'o' : 0 },
		.dim = { (uint64_t)c->ranks, of_job(c, c->rank), c->number, of_job(c, peer) } });
}

static void move(void *to, const void *from, size_t size, void *stream)
{
	if (!vc_null_stream(stream)->capture)
		vc_null_copy(to, from, size);
}

/* The ranks' contributions, `size` bytes each; NULL when they are not exchanged. To be freed. */
static char *contributions(struct vc_nccl *c, const void *from, size_t size, int type, void *stream,
			   bool *sure)
{
	*sure = false;
	if (c->ranks < 2 || !decides(c, size, type, stream))
		return NULL;
	fetch(from, size);
	char *all = malloc((size_t)c->ranks * size + 1);
	if (all && c->x.equal && !vc_reduce_is_float(type)) {
		*sure = gather_played(c, from, size, all);
		return all;
	}
	if (all && vc_nccl_gather(c, from, size, all))
		return all;
	free(all);
	return NULL;
}

/* The sum, or whatever `op` is, of `n` elements from `first` on. */
static void reduce(void *to, char *all, int ranks, size_t size, size_t first, size_t n, int type,
		   int op)
{
	char *sum = all + first * vc_reduce_width(type);
	for (int i = 1; i < ranks; i++)
		vc_reduce_add(sum, sum + (size_t)i * size, n, type, op);
	vc_reduce_finish(sum, n, type, op, ranks);
	vc_null_wash(to, n * vc_reduce_width(type));
	memcpy(to, sum, n * vc_reduce_width(type));
}

VC_API(int, ncclAllReduce, const void *from, void *to, size_t n, int type, int op,
       struct vc_nccl *c, void *stream)
{
	size_t size = n * vc_reduce_width(type);
	bool sure;
	char *all = contributions(c, from, size, type, stream, &sure);
	if (all)
		reduce(to, all, c->ranks, size, 0, n, type, op);
	else
		move(to, from, size, stream);
	note(c, to, size, type, "all-reduce", sure);
	free(all);
	return work("ncclAllReduce", c, (double)size, stream);
}

VC_API(int, ncclReduce, const void *from, void *to, size_t n, int type, int op, int root,
       struct vc_nccl *c, void *stream)
{
	size_t size = n * vc_reduce_width(type);
	bool sure;
	char *all = contributions(c, from, size, type, stream, &sure);
	if (all && c->rank == root)
		reduce(to, all, c->ranks, size, 0, n, type, op);
	else if (c->rank == root)
		move(to, from, size, stream);
	if (c->rank == root)
		note(c, to, size, type, "reduce", sure);
	free(all);
	return work("ncclReduce", c, (double)size, stream);
}

/* To ranks that run, or that may be played later. */
static void post(struct vc_nccl *c, uint64_t number, int to, const void *from, size_t size,
		 int type)
{
	if (!c->x.equal)
		vc_exchange_put(&c->x, number, to, from, size);
	else if (!vc_reduce_is_float(type) || to == c->rank)
		vc_exchange_say(&c->x, number, to, from, size, false);
}

static bool hear(struct vc_nccl *c, uint64_t number, int from, int to, void *data, size_t size)
{
	return c->x.equal ? vc_exchange_hear(&c->x, number, from, to, data, size) :
		vc_exchange_get(&c->x, number, from, to, data, size, true);
}

/* Only the root has something to say, and does not wait. */
VC_API(int, ncclBroadcast, const void *from, void *to, size_t n, int type, int root,
       struct vc_nccl *c, void *stream)
{
	size_t size = n * vc_reduce_width(type);
	bool exchanged = c->ranks > 1 && decides(c, size, type, stream), heard = c->rank == root;
	uint64_t number = exchanged ? c->calls++ : 0;
	if (exchanged && c->rank == root) {
		fetch(from, size);
		post(c, number, VC_TO_ALL, from, size, type);
	} else if (exchanged) {
		heard = hear(c, number, root, VC_TO_ALL, to, size);
	}
	if (!exchanged || c->rank == root || !heard)
		move(to, from, size, stream);
	note(c, to, size, type, "broadcast", heard);
	return work("ncclBroadcast", c, (double)size, stream);
}

VC_API_RETURNS(ncclBcast, (void *data, size_t n, int type, int root, struct vc_nccl *c,
       void *stream),
	ncclBroadcast(data, data, n, type, root, c, stream))

static void gather(const void *from, char *to, size_t size, int type, struct vc_nccl *c,
		   void *stream)
{
	bool sure;
	char *all = contributions(c, from, size, type, stream, &sure);
	if (all && to) {
		vc_null_wash(to, (size_t)c->ranks * size);
		memcpy(to, all, (size_t)c->ranks * size);
	}
	for (int i = 0; !all && to && i < c->ranks; i++)
		move(to + (size_t)i * size, from, size, stream);
	if (to)
		note(c, to, (size_t)c->ranks * size, type, "all-gather", sure);
	free(all);
}

VC_API(int, ncclAllGather, const void *from, void *to, size_t n, int type, struct vc_nccl *c,
       void *stream)
{
	size_t size = n * vc_reduce_width(type);
	gather(from, to, size, type, c, stream);
	return work("ncclAllGather", c, (double)size * c->ranks, stream);
}

VC_API(int, ncclGather, const void *from, void *to, size_t n, int type, int root, struct vc_nccl *c,
       void *stream)
{
	size_t size = n * vc_reduce_width(type);
	gather(from, c->rank == root ? to : NULL, size, type, c, stream);
	return work("ncclGather", c, (double)size * c->ranks, stream);
}

VC_API(int, ncclScatter, const void *from, void *to, size_t n, int type, int root,
       struct vc_nccl *c, void *stream)
{
	size_t size = n * vc_reduce_width(type);
	bool exchanged = c->ranks > 1 && decides(c, size, type, stream), heard = c->rank == root;
	uint64_t number = exchanged ? c->calls++ : 0;
	const char *mine = from ? (const char *)from + (size_t)c->rank * size : to;
	if (exchanged && c->rank == root)
		fetch(from, size * (size_t)c->ranks);
	for (int i = 0; exchanged && c->rank == root && i < c->ranks; i++)
		post(c, number, i, (const char *)from + (size_t)i * size, size, type);
	if (exchanged && c->rank != root)
		heard = hear(c, number, root, c->rank, to, size);
	if (!exchanged || c->rank == root || !heard)
		move(to, mine, size, stream);
	note(c, to, size, type, "scatter", heard);
	return work("ncclScatter", c, (double)size, stream);
}

VC_API(int, ncclReduceScatter, const void *from, void *to, size_t n, int type, int op,
       struct vc_nccl *c, void *stream)
{
	size_t part = n * vc_reduce_width(type), size = part * (size_t)c->ranks;
	bool sure;
	char *all = contributions(c, from, size, type, stream, &sure);
	if (all)
		reduce(to, all, c->ranks, size, n * (size_t)c->rank, n, type, op);
	else
		move(to, (const char *)from + (size_t)c->rank * part, part, stream);
	note(c, to, part, type, "reduce-scatter", sure);
	free(all);
	return work("ncclReduceScatter", c, (double)size, stream);
}

VC_API(int, ncclAlltoAll, const void *from, void *to, size_t n, int type, struct vc_nccl *c,
       void *stream)
{
	size_t part = n * vc_reduce_width(type), size = part * (size_t)c->ranks;
	bool sure;
	char *all = contributions(c, from, size, type, stream, &sure);
	if (all)
		vc_null_wash(to, size);
	for (int i = 0; all && i < c->ranks; i++)
		memcpy((char *)to + (size_t)i * part,
		       all + (size_t)i * size + (size_t)c->rank * part, part);
	if (!all)
		move(to, from, size, stream);
	note(c, to, size, type, "all-to-all", sure);
	free(all);
	return work("ncclAlltoAll", c, (double)size, stream);
}

/* ---- one to one ---- */

VC_API(int, ncclSend, const void *from, size_t n, int type, int to, struct vc_nccl *c, void *stream)
{
	size_t size = n * vc_reduce_width(type);
	if (to < 0 || to >= c->ranks)
		return NCCL_INVALID_ARGUMENT;
	vc_nccl_meet(c, to);
	if (decides(c, size, type, stream)) {
		fetch(from, size);
		post(c, c->sent[to]++, to, from, size, type);
	}
	return message("ncclSend", c, (double)size, to, stream);
}

VC_API(int, ncclRecv, void *to, size_t n, int type, int from, struct vc_nccl *c, void *stream)
{
	size_t size = n * vc_reduce_width(type);
	int rc = 0;
	if (from < 0 || from >= c->ranks)
		return NCCL_INVALID_ARGUMENT;
	vc_nccl_meet(c, from);
	if (decides(c, size, type, stream))
		rc = expect(c, to, size, from, !vc_reduce_is_float(type));
	return rc ? rc : message("ncclRecv", c, (double)size, from, stream);
}
