/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.c - libnccl where one process is a rank of many equal ones, as a TAP program. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct comm;
struct id { char bytes[128]; };
int ncclGetUniqueId(struct id *id);
int ncclCommInitRank(struct comm **c, int ranks, struct id id, int rank);
int ncclCommCount(const struct comm *c, int *n);
int ncclCommUserRank(const struct comm *c, int *n);
int ncclCommSplit(struct comm *parent, int color, int key, struct comm **c, void *config);
int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, struct comm *c, void *s);
int ncclAllGather(const void *from, void *to, size_t n, int type, struct comm *c, void *s);
int ncclBroadcast(const void *from, void *to, size_t n, int type, int root, struct comm *c,
		  void *s);
int ncclSend(const void *from, size_t n, int type, int to, struct comm *c, void *s);
int ncclRecv(void *to, size_t n, int type, int from, struct comm *c, void *s);
void vc_null_id(const struct id *id, const struct id *as);
void vc_null_on_made_up(void (*tell)(const char *what));
void vc_null_group(int color, int ranks, int rank, const int *job);
int cudaMalloc(void **p, size_t n);
int cudaMemsetAsync(void *to, int value, size_t n, void *stream);
int cudaDeviceSynchronize(void);
int cudaEventCreateWithFlags(void **event, unsigned flags);
int cudaEventRecord(void *event, void *stream);
int cudaEventQuery(void *event);
int cudaMemcpy(void *to, const void *from, size_t n, int kind);

enum { RANKS = 1024, MINE = 7, INT64 = 4, FLOAT = 7, SUM = 0, MAX = 2, AVG = 4 };

static int bad;

static void check(int good, const char *what)
{
	printf("%s - %s\n", good ? "ok" : "not ok", what);
	bad += !good;
}

static void *device(size_t n)
{
	void *p = NULL;
	return cudaMalloc(&p, n) ? NULL : p;
}

static void collectives(struct comm *c)
{
	float three = 3, got = 0, *x = device(sizeof *x), *y = device(sizeof *y);
	int64_t mine = 41, all[RANKS], *one = device(sizeof mine), *many = device(sizeof all);
	cudaMemcpy(x, &three, sizeof three, 1);
	ncclAllReduce(x, y, 1, FLOAT, SUM, c, NULL);
	cudaMemcpy(&got, y, sizeof got, 2);
	check(got == 3 * RANKS, "a sum is that of all ranks");
	ncclAllReduce(x, y, 1, FLOAT, AVG, c, NULL);
	cudaMemcpy(&got, y, sizeof got, 2);
	check(got == 3, "a mean is what this rank has");
	cudaMemcpy(one, &mine, sizeof mine, 1);
	ncclAllGather(one, many, 1, INT64, c, NULL);
	cudaMemcpy(all, many, sizeof all, 2);
	int same = 0;
	for (int i = 0; i < RANKS; i++)
		same += all[i] == 41;
	check(same == RANKS, "every rank gathers what this one gave");
	ncclBroadcast(one, one, 1, INT64, 0, c, NULL);
	mine = 0;
	cudaMemcpy(&mine, one, sizeof mine, 2);
	check(mine == 41, "a broadcast of rank 0 leaves what this rank has");
}

/* An exchange of all with all: what each sends to this rank is what this one sends to itself. */
static void all_to_all(struct comm *c)
{
	int64_t chunk[RANKS], got[RANKS], *from = device(sizeof chunk), *to = device(sizeof chunk);
	for (int i = 0; i < RANKS; i++)
		chunk[i] = 100 + i;
	cudaMemcpy(from, chunk, sizeof chunk, 1);
	for (int i = 0; i < RANKS; i++) {
		ncclSend(from + i, 1, INT64, i, c, NULL);
		ncclRecv(to + i, 1, INT64, i, c, NULL);
	}
	cudaMemcpy(got, to, sizeof got, 2);
	int same = 0;
	for (int i = 0; i < RANKS; i++)
		same += got[i] == 100 + MINE;
	check(same == RANKS, "everybody sends what this rank sends to itself");
}

/* ---- PyTorch's watchdog ---- */

#define LOOKS 30
#define ROUND_NS 100000000ll /* its sleep between two looks */
/* std::chrono's clocks, which libstdc++ has too */
int64_t _ZNSt6chrono3_V212steady_clock3nowEv(void);
int64_t _ZNSt6chrono3_V212system_clock3nowEv(void);

static struct watchdog {
	pthread_mutex_t lock;
	pthread_cond_t end;
	int ended, pending;
	void *events[LOOKS];
} dog = { .lock = PTHREAD_MUTEX_INITIALIZER, .end = PTHREAD_COND_INITIALIZER };

/* std::condition_variable::wait_for with a condition, as libstdc++ has it in PyTorch's wheels. */
static void sleep_a_round(void)
{
	int64_t until = _ZNSt6chrono3_V212steady_clock3nowEv() + ROUND_NS;
	while (!dog.ended) {
		int64_t left = until - _ZNSt6chrono3_V212steady_clock3nowEv();
		int64_t at = _ZNSt6chrono3_V212system_clock3nowEv() + left;
		struct timespec t = { at / 1000000000ll, at % 1000000000ll };
		pthread_cond_timedwait(&dog.end, &dog.lock, &t);
		if (_ZNSt6chrono3_V212system_clock3nowEv() >= at &&
		    _ZNSt6chrono3_V212steady_clock3nowEv() >= until)
			return;
	}
}

static void *watch(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&dog.lock);
	while (!dog.ended) {
		sleep_a_round();
		for (int i = 0; i < LOOKS; i++)
			if (dog.events[i] && cudaEventQuery(dog.events[i]) == 0) {
				struct timespec slow = { .tv_nsec = 1000000 };
				nanosleep(&slow, NULL); /* it lets go of memory after it looked */
				dog.events[i] = NULL;
				dog.pending--;
			}
	}
	pthread_mutex_unlock(&dog.lock);
	return NULL;
}

/* A collective begins when the watchdog has let go of what was finished a while before, and does
 * not wait for it to have slept. */
static void watchdog(struct comm *c)
{
	size_t n = 64 << 20, late = 0;
	void *x = device(n), *e;
	pthread_t thread;
	int64_t start = _ZNSt6chrono3_V212steady_clock3nowEv();
	pthread_create(&thread, NULL, watch, NULL);
	for (int i = 0; i < LOOKS; i++) {
		ncclAllReduce(x, x, n / 4, FLOAT, SUM, c, NULL);
		pthread_mutex_lock(&dog.lock);
		late += dog.pending > 1; /* the one before is not over, those before that are */
		cudaEventCreateWithFlags(&e, 2);
		cudaEventRecord(e, NULL);
		dog.events[i] = e;
		dog.pending++;
		pthread_mutex_unlock(&dog.lock);
		for (int k = 0; k < 64; k++)
			cudaMemsetAsync(x, 0, n, NULL);
		cudaDeviceSynchronize();
	}
	pthread_mutex_lock(&dog.lock);
	dog.ended = 1;
	pthread_mutex_unlock(&dog.lock);
	pthread_join(thread, NULL);
	int64_t took = _ZNSt6chrono3_V212steady_clock3nowEv() - start;
	printf("# %d looks took %lld ms\n", LOOKS, (long long)took / 1000000);
	check(!late, "the watchdog has let go of what was finished before a collective begins");
	check(took < LOOKS * ROUND_NS * 2 / 3, "which does not wait for the watchdog's sleep");
}

/* ---- ranks that are played one after another ---- */

static void hear_read(const char *what)
{
	printf("read %s\n", what);
}

/* One of four, which holds `value`: the largest of all, what rank 0 holds, and what comes from the
 * rank below. */
static void play(int rank, int64_t value)
{
	struct id own, shared;
	struct comm *c = NULL;
	int64_t got = -1, *one = device(sizeof got), *other = device(sizeof got);
	setenv("VRAMCAST_NULL_WORLD", "4", 1);
	memset(&shared, 5, sizeof shared);
	ncclGetUniqueId(&own);
	vc_null_id(&own, &shared); /* what the root has, and what the others hear */
	vc_null_on_made_up(hear_read);
	ncclCommInitRank(&c, 4, rank == 0 ? own : shared, rank);
	cudaMemcpy(one, &value, sizeof value, 1);
	ncclAllReduce(one, other, 1, INT64, MAX, c, NULL);
	cudaMemcpy(&got, other, sizeof got, 2);
	printf("largest %lld\n", (long long)got);
	ncclBroadcast(one, other, 1, INT64, 0, c, NULL);
	cudaMemcpy(&got, other, sizeof got, 2);
	printf("of rank 0 %lld\n", (long long)got);
	ncclSend(one, 1, INT64, (rank + 1) % 4, c, NULL);
	ncclRecv(other, 1, INT64, (rank + 3) % 4, c, NULL);
	cudaMemcpy(&got, other, sizeof got, 2);
	printf("sent %lld\n", (long long)got);
}

int main(int argc, char **argv)
{
	static const int across[] = { 5, 7, 8, 9 }; /* two nodes of eight */
	struct id id;
	struct comm *c = NULL, *half = NULL;
	int n = 0, rank = 0;
	if (argc == 3) {
		play(atoi(argv[1]), atoi(argv[2]));
		return 0;
	}
	setenv("VRAMCAST_NULL_WORLD", "1024", 1);
	check(!ncclGetUniqueId(&id) && !ncclCommInitRank(&c, RANKS, id, MINE),
	      "a communicator of 1,024 ranks waits for nobody");
	collectives(c);
	all_to_all(c);
	watchdog(c);
	vc_null_group(123, 8, 3, NULL);
	ncclCommSplit(c, 123, MINE, &half, NULL);
	ncclCommCount(half, &n);
	ncclCommUserRank(half, &rank);
	check(n == 8 && rank == 3, "a part of a communicator is as large as PyTorch said");
	vc_null_group(-2, 4, 1, across);
	ncclCommSplit(c, 77, MINE, &half, NULL);
	ncclCommCount(half, &n);
	ncclCommUserRank(half, &rank);
	check(n == 4 && rank == 1, "also where it did not say by which color");
	float *x = device(sizeof *x);
	ncclAllReduce(x, x, 1, FLOAT, SUM, half, NULL);
	ncclSend(x, 1, FLOAT, 0, half, NULL);
	ncclSend(x, 1, FLOAT, 2, half, NULL);
	vc_null_group(-2, 2, 0, NULL);
	ncclCommSplit(c, 77, MINE, &half, NULL);
	ncclCommCount(half, &n);
	ncclCommUserRank(half, &rank);
	check(n == 2 && rank == 0, "and where two parts have the same color");
	return bad != 0;
}
