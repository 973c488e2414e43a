/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - see progress.h. A thread of its own draws, so that work which cannot say how far it
 * is (a program in a dry run) shows that it goes on all the same. */
#include "commands/progress.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS 200000000l

struct vc_progress {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t ends;
	struct timespec began;
	char text[200];        /* "": nothing to draw */
	int drawn;             /* columns */
	bool over;
	bool at_once;          /* VRAMCAST_PROGRESS=now: whatever is said is drawn, for tests */
};

static void wipe(struct vc_progress *p)
{
	if (p->drawn)
		fprintf(stderr, "\r%*s\r", p->drawn, "");
	p->drawn = 0;
}

static void draw(struct vc_progress *p, const struct timespec *now)
{
	char took[48];
	struct winsize w;
	int columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &w) || !w.ws_col ? 80 : w.ws_col;
	long s = now->tv_sec - p->began.tv_sec - (now->tv_nsec < p->began.tv_nsec);
	int n = s < 60 ? snprintf(took, sizeof(took), ", %ld s", s) :
			 snprintf(took, sizeof(took), ", %ld min %ld s", s / 60, s % 60);
	int text = (int)strlen(p->text), room = columns - 1 - n;

	/* a job in the background leaves the terminal to others */
	if (!p->text[0] || (!p->at_once && tcgetpgrp(STDERR_FILENO) != getpgrp()))
		return;
	if (room < 0) /* a full line would break, and stay */
		return;
	text = text < room ? text : room;
	n += text;
	fprintf(stderr, "\r%.*s%s%*s", text, p->text, took, p->drawn > n ? p->drawn - n : 0, "");
	p->drawn = n;
}

static void *tick(void *arg)
{
	struct vc_progress *p = arg;
	struct timespec next = p->began;
	sigset_t all;

	sigfillset(&all); /* signals are for others */
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	next.tv_sec++; /* what is over within a second needs no line */
	pthread_mutex_lock(&p->lock);
	while (!p->over) {
		while (!p->over && !pthread_cond_timedwait(&p->ends, &p->lock, &next))
			;
		if (!p->over)
			draw(p, &next);
		next.tv_nsec += TICK_NS;
		next.tv_sec += next.tv_nsec / 1000000000l;
		next.tv_nsec %= 1000000000l;
	}
	wipe(p);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

struct vc_progress *vc_progress_open(const struct vc_console *con)
{
	const char *term = getenv("TERM"), *now = getenv("VRAMCAST_PROGRESS");
	struct vc_progress *p = NULL;
	pthread_condattr_t by;

	if (!con->quiet && isatty(STDERR_FILENO) && !(term && !strcmp(term, "dumb")))
		p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&by);
	pthread_condattr_setclock(&by, CLOCK_MONOTONIC);
	pthread_cond_init(&p->ends, &by);
	pthread_condattr_destroy(&by);
	clock_gettime(CLOCK_MONOTONIC, &p->began);
	p->at_once = now && !strcmp(now, "now");
	if (!pthread_create(&p->thread, NULL, tick, p))
		return p;
	free(p);
	return NULL;
}

void vc_progress_say(struct vc_progress *p, const char *fmt, ...)
{
	va_list ap;

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	va_start(ap, fmt);
	vsnprintf(p->text, sizeof(p->text), fmt, ap);
	va_end(ap);
	if (p->at_once)
		draw(p, &p->began);
	pthread_mutex_unlock(&p->lock);
}

void vc_progress_hush(struct vc_progress *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->text[0] = '\0';
	wipe(p);
	pthread_mutex_unlock(&p->lock);
}

void vc_progress_close(struct vc_progress *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->over = true;
	pthread_cond_signal(&p->ends);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	pthread_cond_destroy(&p->ends);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
