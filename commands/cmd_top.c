/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_top.c - vramcast top: what the processes that are being recorded hold now, once a second. */
#define _GNU_SOURCE
#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include "commands/live_words.h"
#include "common/emit.h"
#include "common/opt.h"
#include "common/vec.h"
#include "tracer/live.h"

struct config { bool once; };

static const struct vc_option options[] = {
	{ 0, "once", VC_O_FLAG, offsetof(struct config, once), NULL,
	  "one look, and no more: for scripts", NULL },
	VC_OPTION_END
};

VC_COMPARE(by_rank, struct vc_live_page,
	   VC_THEN(VC_ORDER(x->rank, y->rank), VC_ORDER(x->pid, y->pid)))

static size_t read_pages(const char *dir, struct vc_live_page **page)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	size_t n = 0;

	while (d && (e = readdir(d))) {
		size_t len = strlen(e->d_name), end = strlen(VC_LIVE_SUFFIX);
		char path[VC_LIVE_PATH + 300];

		if (len < end || strcmp(e->d_name + len - end, VC_LIVE_SUFFIX) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (!vc_vec_one(*page, n))
			break;
		n += vc_live_read(path, &(*page)[n]);
	}
	if (d)
		closedir(d);
	if (n)
		vc_sort(*page, n, sizeof(**page), by_rank);
	return n;
}

static void say_page(const struct vc_live_page *p)
{
	char a[32], b[32], c[32], d[32], rank[32] = "-", unused[16] = "-", words[512];

	if (p->rank >= 0)
		snprintf(rank, sizeof(rank), "%lld", (long long)p->rank);
	if (p->reserved > p->allocated)
		snprintf(unused, sizeof(unused), "%.0f %%",
			 100 - 100 * (double)p->allocated / (double)p->reserved);
	printf("%4s %8lld %11s %11s %11s %7s %11s %8llu\n", rank, (long long)p->pid,
	       p->reserved ? vc_bytes_text(p->reserved, a) : "-", vc_bytes_text(p->allocated, b),
	       p->total ? vc_bytes_text(p->free, c) : "-", unused,
	       vc_bytes_text(p->peak_allocated, d), (unsigned long long)p->steps);
	if (*vc_live_words(p, words, sizeof(words)))
		printf("%13s %s\n", "", words);
	for (uint32_t i = 1; i < p->growing && i < VC_LIVE_SITES; i++)
		printf("%13s and %s: %s a step\n", "", p->site[i].name,
		       vc_bytes_text((uint64_t)p->site[i].growth, a));
}

static void say_all(const char *what, const struct vc_live_page *page, size_t n, bool screen)
{
	if (screen)
		printf("\033[H\033[J"); /* to the upper left corner, clear */
	printf("%s: %zu %s\n", what, n, n == 1 ? "process" : "processes");
	printf("%4s %8s %11s %11s %11s %7s %11s %8s\n", "rank", "process", "reserved", "allocated",
	       "free", "unused", "peak", n && !page[0].marked ? "seconds" : "steps");
	for (size_t i = 0; i < n; i++)
		say_page(&page[i]);
	fflush(stdout);
}

static int run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *c = config;
	const char *what = argc ? argv[0] : "vramcast.vct";
	struct vc_live_page *page = NULL;
	char dir[VC_LIVE_PATH];
	size_t n;

	if (argc > 1)
		return vc_fail(&con->err, VC_EUSAGE, "one recording at a time: vramcast top "
			       "[FILE|PID]");
	VC_TRY(vc_live_folder(what, dir, &con->err));
	do {
		n = read_pages(dir, &page);
		say_all(what, page, n, !c->once && isatty(1));
		if (!c->once)
			nanosleep(&(struct timespec){ 1, 0 }, NULL);
	} while (!c->once && access(dir, R_OK) == 0 && !ferror(stdout));
	free(page);
	return 0;
}

const struct vc_command vc_command_top = {
	.name = "top", .operands = "[FILE|PID]",
	.summary = "what processes that are being recorded hold now, and when it runs out",
	.details =
		"FILE is the trace that `record` writes (default: vramcast.vct), PID a process "
		"that it records. Once a\nsecond: reserved, allocated, free on the device, the "
		"share of the reserved memory that is not in use, the\npeak, and, where memory "
		"grows from step to step, who keeps it and for how many steps it lasts.",
	.options = VC_OPTIONS(options), .config_size = sizeof(struct config), .run = run,
};
