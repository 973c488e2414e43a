/* SPDX-License-Identifier: Apache-2.0 */
/* bench_plot.c - how long pictures take and how much memory, from files as a user has them.
 * Prints "bench NAME VALUE UNIT". VRAMCAST names the program, BUILD where the traces are kept. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/codec.h"
#include "common/io.h"
#include "tests/support/extremes.h"

enum { LAYERS = 2500, BATCH = 512 };

struct writer { struct vc_encoder *enc; struct vc_event ev[BATCH]; size_t n; uint64_t id, now; };

static void die(const char *what)
{
	fprintf(stderr, "bench_plot: %s\n", what);
	exit(1);
}

static void put(struct writer *w, uint8_t kind, uint64_t id, uint64_t size)
{
	struct vc_error err = { 0 };

	w->ev[w->n++] = (struct vc_event){
		.time_ns = w->now += 1500, .id = id, .size = size, .kind = kind };
	if (w->n < BATCH)
		return;
	if (vc_encoder_append(w->enc, w->ev, w->n, &err) < 0)
		die(err.message);
	w->n = 0;
}

static uint64_t alloc(struct writer *w, uint64_t size)
{
	put(w, VC_EV_ALLOC, ++w->id, size);
	return w->id;
}

/* Forward: activations that stay and temporaries that do not; backward in the opposite order. */
static void write_step(struct writer *w, uint64_t *act)
{
	for (int i = 0; i < LAYERS; i++) {
		act[i] = alloc(w, (uint64_t)(1 + i % 7) << 18);
		put(w, VC_EV_FREE, alloc(w, (uint64_t)(1 + i % 3) << 17), 0);
	}
	for (int i = LAYERS; i-- > 0;) {
		put(w, VC_EV_FREE, alloc(w, (uint64_t)(1 + i % 5) << 18), 0);
		put(w, VC_EV_FREE, act[i], 0);
	}
}

static void write_trace(const char *path, uint64_t events)
{
	struct vc_error err = { 0 };
	struct vc_meta *meta = vc_meta_new(&err);
	struct vc_encoder_options o = { .level = 1 };
	struct vc_output *out = vc_output_open(path, &err);
	struct writer w = { .enc = meta && out ? vc_encoder_new(out, meta, &o, &err) : NULL };
	static uint64_t act[LAYERS];

	if (!w.enc)
		die(err.message);
	meta->how[VC_CAP_REQUESTS] = meta->how[VC_CAP_TIMES] = VC_HOW_RECORDED;
	vc_meta_set(&meta->torch, "2.9");
	meta->complete = true;
	while (w.id * 2 < events)
		write_step(&w, act);
	if ((w.n && vc_encoder_append(w.enc, w.ev, w.n, &err) < 0) ||
	    vc_encoder_finish(w.enc, &err) < 0 || vc_output_commit(out, &err) < 0)
		die(err.message);
	vc_encoder_free(w.enc);
	vc_output_close(out);
	vc_meta_free(meta);
}

static void become(const char *program, const char *trace, const char *type, const char *out)
{
	if (strcmp(type, "sim"))
		execl(program, "vramcast", "plot", trace, "--capacity", "24GiB", "-t", type, "-o",
		      out, (char *)NULL);
	else if (freopen("/dev/null", "w", stdout))
		execl(program, "vramcast", "sim", trace, "--capacity", "24GiB", (char *)NULL);
	_exit(127);
}

/* The best of some runs: seconds, and the most memory of any of them. */
static void measure(const char *trace, const char *type, const char *out, int runs, double *best,
		    double *mib)
{
	const char *program = getenv("VRAMCAST");
	struct rusage u;
	struct timespec a, b;

	*best = 1e9;
	for (int i = 0; i < runs; i++) {
		int status = 0;
		clock_gettime(CLOCK_MONOTONIC, &a);
		pid_t pid = fork();
		if (pid == 0)
			become(program ? program : "build/vramcast", trace, type, out);
		if (pid < 0 || waitpid(pid, &status, 0) < 0 || status)
			die("vramcast plot failed");
		clock_gettime(CLOCK_MONOTONIC, &b);
		double s = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
		*best = s < *best ? s : *best;
	}
	getrusage(RUSAGE_CHILDREN, &u);
	*mib = (double)u.ru_maxrss / 1024;
}

/* A million events with call stacks: that of the tests, whose name has no place in a path. */
static void write_stacks(const char *path)
{
	for (size_t i = 0; i < sizeof(extremes) / sizeof(*extremes); i++)
		if (!strcmp(extremes[i].name, "a million events"))
			extreme_write(&extremes[i], path);
}

static double cpu_of_children(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* A run of months: 10^8 events, which take 36 MB, once each. */
static void large(const char *build)
{
	static const char *const type[] = { "sim", "timeline" }; /* memory only grows */
	char path[1024], out[1024];
	struct stat st;
	double s, mib;

	snprintf(path, sizeof(path), "%s/tests/bench-100000000.vct", build);
	snprintf(out, sizeof(out), "%s/tests/bench-large.svg", build);
	if (stat(path, &st))
		write_trace(path, 100000000);
	for (size_t i = 0; i < sizeof(type) / sizeof(*type); i++) {
		double before = cpu_of_children();
		measure(path, type[i], out, 1, &s, &mib);
		printf("bench large.%s.s %.1f s\n", type[i], s);
		printf("bench large.%s.cpu.s %.1f s\n", type[i], cpu_of_children() - before);
		printf("bench large.%s.rss %.1f MiB\n", type[i], mib);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name, *type;
		uint64_t events; /* 0: a million, with call stacks */
		double scale;
		const char *unit;
	} row[] = {
		{ "plot.timeline.10M", "timeline", 10000000, 1,
		 "s" }, /* first: memory only grows */
		{ "plot.flame.1M.s", "flame", 0, 1, "s" },
		{ "report.1M.s", "html", 0, 1, "s" },
	};
	const char *build = getenv("BUILD");
	char path[1024], out[1024];
	double s, mib;

	if (argc > 1 && !strcmp(argv[1], "large")) {
		large(build ? build : "build");
		return 0;
	}
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct stat st;
		snprintf(path, sizeof(path), "%s/tests/bench-%llu.vct", build ? build : "build",
			 (unsigned long long)row[i].events);
		snprintf(out, sizeof(out), "%s/tests/bench-%s.%s", build ? build : "build",
			 row[i].type, strcmp(row[i].type, "html") ? "svg" : "html");
		if (stat(path, &st) && !row[i].events)
			write_stacks(path);
		else if (stat(path, &st))
			write_trace(path, row[i].events);
		measure(path, row[i].type, out, 3, &s, &mib);
		if (strstr(row[i].name, "10M"))
			printf("bench %s.s %.3f s\nbench %s.rss %.1f MiB\n", row[i].name, s,
			       row[i].name, mib);
		else
			printf("bench %s %.3f %s\n", row[i].name, s * row[i].scale, row[i].unit);
		if (!stat(out, &st))
			printf("bench plot.%s.bytes %lld B\n", row[i].type, (long long)st.st_size);
	}
	return 0;
}
