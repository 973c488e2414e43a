/* SPDX-License-Identifier: Apache-2.0 */
/* attach.c - see attach.h. What is executed in the process is python/attach.py; it answers in a
 * file. */
#define _GNU_SOURCE
#include "tracer/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "tracer/inject.h"
#include "tracer/stub.h"

/* What the answer says, and what to say then. Those without words are asked again. */
static const struct { const char *answer, *words; } answers[] = {
	{ "later", NULL },
	{ "busy", "its threads allocate all the while, so that its heap could not be read" },
	{ "no-torch", "it has not imported PyTorch; start it under vramcast record" },
	{ "no-room", "it found no room for a journal, or is being recorded already" },
	{ "no-calls", "calls between its libraries could not be redirected" },
};

/* STEP: how long the end of a step is waited for. */
enum { TRIES = 200, PAUSE_MS = 5, STEP_MS = 5000, PATIENCE_MS = 60000 };

/* The beginning of a file of /proc/PID, ended by a NUL; how long it is. */
static size_t read_about(pid_t pid, const char *what, char *text, size_t n)
{
	char path[64];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, what);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? 0 : read(fd, text, n - 1);
	if (fd >= 0)
		close(fd);
	text[got > 0 ? got : 0] = '\0';
	return got > 0 ? (size_t)got : 0;
}

char *vc_attach_command(pid_t pid)
{
	char text[4096];
	size_t n = read_about(pid, "cmdline", text, sizeof(text));

	for (size_t i = 0; i + 1 < n; i++)
		if (!text[i])
			text[i] = ' ';
	return strdup(text);
}

/* Its environment names the recorder that started it. */
static bool is_recorded(pid_t pid)
{
	char text[65536];
	size_t n = read_about(pid, "environ", text, sizeof(text));

	for (const char *p = text; n > 0 && p < text + n; p += strlen(p) + 1)
		if (strncmp(p, "VC_DIR=", 7) == 0 && access(p + 7, F_OK) == 0)
			return true;
	return false;
}

int vc_attach_check(pid_t pid, struct vc_error *err)
{
	VC_TRY(vc_inject_check(pid, err));
	if (is_recorded(pid))
		return vc_fail(err, VC_EUSAGE, "process %ld is being recorded already: 'vramcast "
			       "top %ld' shows it", (long)pid, (long)pid);
	return 0;
}

/* A string of Python: the characters as digits, so that none can end it. */
static void put_text(FILE *f, const char *s)
{
	fputs(", bytes.fromhex('", f);
	while (*s)
		fprintf(f, "%02x", (unsigned char)*s++);
	fputs("').decode('utf-8', 'surrogateescape')", f);
}

enum errand { JOIN, JOIN_NOW /* not when it has come to the end of a step */, LEAVE };

static int write_file(const struct vc_attach_options *o, const char *path, const char *answer,
		      enum errand what, struct vc_error *err)
{
	FILE *f = fopen(path, "we");
	bool ok;

	if (!f)
		return vc_fail(err, VC_EIO, "cannot write %s: %s", path, strerror(errno));
	fwrite(vc_attach_stub, 1, vc_attach_stub_size, f);
	fputs("\n_run(page, size", f);
	put_text(f, answer);
	fputs(what == LEAVE ? ", _try_leave" : ", _try_join", f);
	if (what != LEAVE) {
		put_text(f, o->library);
		put_text(f, o->dir);
		put_text(f, o->options);
		put_text(f, what == JOIN_NOW ? "now" : "");
	}
	fputs(")\n", f);
	ok = !ferror(f);
	ok = fclose(f) == 0 && ok;
	return ok ? 0 : vc_fail(err, VC_EIO, "cannot write %s: %s", path, strerror(errno));
}

static void nap(const struct vc_attach_options *o, unsigned milliseconds)
{
	struct timespec t = { milliseconds / 1000, milliseconds % 1000 * 1000000l };

	nanosleep(&t, NULL);
	if (o->meanwhile)
		o->meanwhile(o->who);
}

static bool read_answer(const char *path, char *text, size_t n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = read(fd, text, n - 1); /* without a file: -1 */

	if (fd >= 0)
		close(fd);
	text[got > 0 ? got : 0] = '\0';
	return fd >= 0;
}

/* What it answered when it had executed the file. */
static int ask(const struct vc_attach_options *o, const char *file, const char *answer,
	       enum errand what, char *text, size_t n, struct vc_error *err)
{
	unlink(answer);
	VC_TRY(write_file(o, file, answer, what, err));
	VC_TRY(vc_inject_python(o->pid, file, err));
	for (unsigned waited = 0; waited < PATIENCE_MS; waited += PAUSE_MS) {
		if (read_answer(answer, text, n))
			return 0;
		if (what == JOIN && waited >= STEP_MS)
			return ask(o, file, answer, JOIN_NOW, text, n, err);
		if (vc_attach_ended(o->pid))
			return vc_fail(err, VC_EIO, "process %ld ended", (long)o->pid);
		nap(o, PAUSE_MS);
	}
	unlink(file); /* it is not to happen when nobody waits any more */
	nap(o, 100);
	if (read_answer(answer, text, n))
		return 0;
	return vc_fail(err, VC_EIO, "process %ld did not come around to it in %d seconds: its main "
		       "thread is in one long call, or waits for another", (long)o->pid,
		       PATIENCE_MS / 1000);
}

static int judge(pid_t pid, const char *text, struct vc_error *err)
{
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
		if (strcmp(text, answers[i].answer) == 0)
			return vc_fail(err, VC_EIO, "process %ld could not be attached to: %s",
				       (long)pid, answers[i].words ? answers[i].words :
				       "it was in the middle of an optimizer or a graph each time");
	return vc_fail(err, VC_EIO, "process %ld could not be attached to: its Python said '%s'",
		       (long)pid, text);
}

static int have_done(const struct vc_attach_options *o, enum errand what, struct vc_error *err)
{
	char file[PATH_MAX], answer[PATH_MAX], text[512] = "";
	struct vc_error second;
	int rc = 0;

	snprintf(file, sizeof(file), "%s/attach.py", o->dir);
	snprintf(answer, sizeof(answer), "%s/answer", o->dir);
	for (int i = 0; i < TRIES && rc == 0; i++) {
		rc = ask(o, file, answer, i < TRIES / 4 || what != JOIN ? what : JOIN_NOW, text,
			 sizeof(text), err);
		if (rc || (strcmp(text, "later") != 0 && strcmp(text, "busy") != 0))
			break;
		nap(o, PAUSE_MS);
	}
	unlink(file);
	unlink(answer);
	if (rc == 0 && strcmp(text, what == LEAVE ? "left" : "joined") != 0) {
		rc = judge(o->pid, text, err);
		if (what != LEAVE)
			have_done(o, LEAVE, &second);
	}
	return rc;
}

int vc_attach_join(const struct vc_attach_options *o, struct vc_error *err)
{
	return have_done(o, JOIN, err);
}

int vc_attach_leave(const struct vc_attach_options *o, struct vc_error *err)
{
	int rc = vc_attach_ended(o->pid) ? 0 : have_done(o, LEAVE, err);

	return rc && vc_attach_ended(o->pid) ? 0 : rc;
}

/* A process that its parent has not asked about yet is over, too. */
bool vc_attach_ended(pid_t pid)
{
	char text[512];
	const char *end;

	read_about(pid, "stat", text, sizeof(text));
	end = strrchr(text, ')');
	return !end || end[2] == 'Z' || end[2] == 'X';
}

static void wanted_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGUSR1);
}

void vc_attach_guard(void)
{
	sigset_t set;

	wanted_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

int vc_attach_sleep(unsigned milliseconds)
{
	struct timespec t = { milliseconds / 1000, milliseconds % 1000 * 1000000l };
	sigset_t set;
	int got;

	wanted_signals(&set);
	got = sigtimedwait(&set, NULL, &t);
	return got > 0 ? got : 0;
}
