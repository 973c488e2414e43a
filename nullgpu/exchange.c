/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.c - messages between processes as files that appear whole, by renaming. */
#define _GNU_SOURCE
#include "nullgpu/exchange.h"
#include "nullgpu/null.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* NCCL's own limit in PyTorch: ten minutes. */
#define PATIENCE_NS 600000000000ull
#define LOOK_NS 100000000ull /* how often a waiting rank looks whether the other still lives */

static const char *folder(void)
{
	static char path[600];
	const char *base = getenv("VRAMCAST_NULL_REPORT");
	if (path[0] || !base || !*base)
		return path[0] ? path : NULL;
	char p[600];
	snprintf(p, sizeof p, "%s/exchange", base);
	if (mkdir(p, 0700) < 0 && errno != EEXIST)
		return NULL;
	snprintf(path, sizeof path, "%s", p);
	return path;
}

static void name_of(const struct vc_exchange *x, uint64_t number, int from, int to, char *out,
		    size_t n)
{
	snprintf(out, n, "%s/%016llx.%d.%d.%llu", folder(), (unsigned long long)x->key, from, to,
		 (unsigned long long)number);
}

static bool write_whole(const char *path, const void *data, size_t size)
{
	char part[800];
	snprintf(part, sizeof part, "%s.part%d", path, (int)getpid());
	int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		return false;
	bool good = write(fd, data, size) == (ssize_t)size;
	return !close(fd) && good && rename(part, path) == 0;
}

static bool read_file(const char *path, void *data, size_t size)
{
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		return false;
	bool good = read(fd, data, size) == (ssize_t)size;
	close(fd);
	return good;
}

static void process_file(const struct vc_exchange *x, int rank, char *out, size_t n)
{
	snprintf(out, n, "%s/%016llx.rank%d", folder(), (unsigned long long)x->key, rank);
}

/* ---- ranks that are played one after another ---- */

static int by_rank(const void *a, const void *b)
{
	const struct vc_played *p = a, *q = b;
	return p->rank < q->rank ? -1 : p->rank > q->rank;
}

/* A rank without its number in the job is its own. */
static int global_rank(const struct vc_exchange *x)
{
	const char *rank = getenv("RANK");
	return rank ? (int)strtol(rank, NULL, 10) : x->rank;
}

static void add_played(struct vc_exchange *x, int rank)
{
	char path[700];
	struct vc_played *more, one = { rank, 0 };
	int fd;
	process_file(x, rank, path, sizeof path);
	if (rank == x->rank || (fd = open(path, O_RDONLY)) < 0)
		return;
	bool good = read(fd, &one.global, sizeof one.global) == sizeof one.global;
	close(fd);
	more = good ? realloc(x->played, (size_t)(x->n_played + 1) * sizeof one) : NULL;
	if (!more)
		return;
	x->played = more;
	x->played[x->n_played++] = one;
}

static void find_played(struct vc_exchange *x)
{
	char start[40], path[700];
	int n = snprintf(start, sizeof start, "%016llx.rank", (unsigned long long)x->key);
	DIR *d = opendir(folder());
	struct dirent *e;
	while (d && (e = readdir(d)) != NULL)
		if (!strncmp(e->d_name, start, (size_t)n) && !strstr(e->d_name, ".part"))
			add_played(x, (int)strtol(e->d_name + n, NULL, 10));
	if (d)
		closedir(d);
	if (x->n_played)
		qsort(x->played, (size_t)x->n_played, sizeof *x->played, by_rank);
	process_file(x, x->rank, path, sizeof path);
	int global = global_rank(x);
	write_whole(path, &global, sizeof global);
}

void vc_exchange_close(struct vc_exchange *x)
{
	free(x->played);
	x->played = NULL;
	x->n_played = 0;
}

static bool is_same(const char *path, const void *data, size_t size)
{
	struct stat st;
	void *there = NULL;
	bool same = stat(path, &st) == 0 && (size_t)st.st_size == size &&
		(there = malloc(size + 1)) != NULL && read_file(path, there, size) &&
		!memcmp(there, data, size);
	free(there);
	return same;
}

/* vramcast_null_said.py marks them likewise. */
static void play_again(const struct vc_played *who)
{
	char path[700];
	snprintf(path, sizeof path, "%s/../world", folder());
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return;
	snprintf(path, sizeof path, "%s/../world/stale.%d", folder(), who->global);
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	if (fd >= 0)
		close(fd);
}

void vc_exchange_say(struct vc_exchange *x, uint64_t number, int to, const void *data, size_t size,
		     bool alike)
{
	char path[700], theirs[700];
	if (x->alone)
		return;
	vc_null_wash(data, size);
	name_of(x, number, x->rank, to, path, sizeof path);
	if (is_same(path, data, size))
		return;
	write_whole(path, data, size);
	for (int i = 0; i < x->n_played; i++) {
		int rank = x->played[i].rank;
		if (to != VC_TO_ALL && to != rank)
			continue;
		name_of(x, number, rank, to, theirs, sizeof theirs);
		if (alike ? access(theirs, F_OK) == 0 && !is_same(theirs, data, size) :
			    !is_same(theirs, data, size))
			play_again(&x->played[i]);
	}
}

bool vc_exchange_hear(struct vc_exchange *x, uint64_t number, int from, int to, void *data,
		      size_t size)
{
	char path[700];
	struct stat st;
	int i = 0;
	while (i < x->n_played && x->played[i].rank != from)
		i++;
	if (x->alone || (i == x->n_played && from != x->rank))
		return false;
	name_of(x, number, from, to, path, sizeof path);
	if (stat(path, &st) < 0 || (size_t)st.st_size != size)
		return false;
	vc_null_wash(data, size);
	return read_file(path, data, size);
}

void vc_exchange_open(struct vc_exchange *x, uint64_t key, int ranks, int rank)
{
	char path[700];
	pid_t pid = getpid();
	*x = (struct vc_exchange){ .key = key, .ranks = ranks, .rank = rank,
		.alone = ranks < 2 || !folder(), .equal = getenv("VRAMCAST_NULL_WORLD"),
		.own = getenv("VRAMCAST_NULL_OWN_WORD") };
	if (x->equal && !x->alone && key)
		find_played(x);
	if (x->alone || x->equal)
		return;
	process_file(x, rank, path, sizeof path);
	x->alone = !write_whole(path, &pid, sizeof pid);
}

bool vc_exchange_put(struct vc_exchange *x, uint64_t number, int to, const void *data, size_t size)
{
	char path[700];
	if (x->alone)
		return false;
	vc_null_wash(data, size);
	name_of(x, number, x->rank, to, path, sizeof path);
	x->alone = !write_whole(path, data, size);
	return !x->alone;
}

/* A process that is not there yet is alive. */
static bool is_alive(const struct vc_exchange *x, int rank)
{
	char path[700];
	pid_t pid;
	process_file(x, rank, path, sizeof path);
	return !read_file(path, &pid, sizeof pid) || kill(pid, 0) == 0 || errno != ESRCH;
}

static uint64_t real_time(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

bool vc_exchange_get(struct vc_exchange *x, uint64_t number, int from, int to, void *data,
		     size_t size, bool wait)
{
	char path[700];
	uint64_t start = real_time(), looked = start;
	if (x->alone)
		return false;
	vc_null_wash(data, size);
	name_of(x, number, x->equal ? x->rank : from, to, path, sizeof path);
	for (long pause = 20000; !read_file(path, data, size);
	     pause += pause < 1000000 ? pause : 0) {
		if (!wait || x->equal)
			return false;
		nanosleep(&(struct timespec){ .tv_nsec = pause }, NULL);
		uint64_t now = real_time();
		if (now - looked < LOOK_NS)
			continue;
		looked = now;
		if (is_alive(x, from) && now - start < PATIENCE_NS)
			continue;
		if (read_file(path, data, size)) /* its last words */
			return true;
		vc_null_log(
			"rank %d of %d does not answer; its data is taken to be that of rank %d",
			from, x->ranks, x->rank);
		x->alone = true;
		return false;
	}
	return true;
}

uint64_t vc_exchange_key(uint64_t seed, const void *data, size_t n)
{
	const unsigned char *p = data; /* FNV-1a, 64 bit */
	uint64_t h = 14695981039346656037ull ^ seed * 0x9E3779B97F4A7C15ull;
	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 1099511628211ull;
	return h;
}
