/* SPDX-License-Identifier: Apache-2.0 */
/* stop.c - see stop.h */
#define _GNU_SOURCE
#include "commands/stop.h"

#include <dirent.h>
#include <errno.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/system.h"

enum { PAUSE_MS = 10, AGAIN_MS = 100, PATIENCE_MS = 2000 };

static const struct { int number; const char *name; } stops[] = {
	{ SIGINT, "SIGINT" }, { SIGTERM, "SIGTERM" }, { SIGHUP, "SIGHUP" }, { 0, "" } };
enum { STOPS = sizeof(stops) / sizeof(*stops) };

void vc_stop_guard(sigset_t *before)
{
	struct sigaction is;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i + 1 < STOPS; i++) /* what is ignored would be pending, too */
		if (sigaction(stops[i].number, NULL, &is) == 0 && is.sa_handler != SIG_IGN)
			sigaddset(&set, stops[i].number);
	pthread_sigmask(SIG_BLOCK, &set, before);
	if (VC_PROCESSES) /* who loses its parent becomes our child, and is found */
		prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static size_t asked(void)
{
	sigset_t set;
	size_t i = 0;

	sigemptyset(&set);
	sigpending(&set);
	while (i + 1 < STOPS && sigismember(&set, stops[i].number) != 1)
		i++;
	return i;
}

int vc_stop_asked(void)
{
	return stops[asked()].number;
}

const char *vc_stop_name(void)
{
	return stops[asked()].name;
}

int vc_stop_check(struct vc_error *err)
{
	return vc_stop_asked() ? vc_fail(err, VC_ESTOPPED, "stopped by %s", vc_stop_name()) : VC_OK;
}

static void wait_a_little(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = PAUSE_MS * 1000000l }, NULL);
}

/* 0: it is over. */
static pid_t parent_of(const char *pid)
{
	char path[300], text[512] = "", state = 'Z', *end;
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	FILE *f = fopen(path, "r");

	if (!f)
		return 0;
	end = fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
	fclose(f);
	return end && sscanf(end + 1, " %c %d", &state, &parent) == 2 && state != 'Z' ? parent : 0;
}

/* All below a process get a signal; how many those are. */
static size_t signal_below(pid_t of, int number)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	size_t n = 0;

	while (d && (e = readdir(d))) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid <= 0 || parent_of(e->d_name) != of)
			continue;
		n += 1 + signal_below(pid, number);
		kill(pid, number);
	}
	if (d)
		closedir(d);
	return n;
}

/* A dry run, or a recorder, ends in order when its program has ended; each is told again and again,
 * as one told while it hands signals on to its program would go on with the next. */
int vc_stop_wait(pid_t child, int *status)
{
	pid_t got;

	for (int waited = 0; (got = waitpid(child, status, WNOHANG)) != child;) {
		if (got < 0 && errno != EINTR)
			return errno;
		if (vc_stop_asked() && waited++ % (AGAIN_MS / PAUSE_MS) == 0) {
			int late = waited / (PATIENCE_MS / PAUSE_MS);

			signal_below(child, late ? SIGKILL : SIGTERM);
			kill(child, late > 1 ? SIGKILL : SIGTERM);
		}
		wait_a_little();
	}
	return 0;
}

void vc_stop_rest(void)
{
	for (int waited = 0; waited < PATIENCE_MS; waited += PAUSE_MS) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (!signal_below(getpid(), SIGKILL))
			break;
		wait_a_little();
	}
}
