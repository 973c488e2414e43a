/* SPDX-License-Identifier: Apache-2.0 */
/* trial.c - see trial.h */
#define _GNU_SOURCE /* asprintf */
#include "commands/trial.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands/own_program.h"
#include "commands/stop.h"
#include "common/meta.h"
#include "common/system.h"

enum { WORDS = 16 };

void vc_trial_show(const char *log, struct vc_progress *progress)
{
	char line[1024];
	FILE *f = fopen(log, "r");

	vc_progress_hush(progress);
	while (f && fgets(line, sizeof(line), f))
		fputs(line, stderr);
	if (f)
		fclose(f);
}

bool vc_trial_recorded(const char *file)
{
	struct stat st;

	return stat(file, &st) == 0 && st.st_size > 0;
}

/* vramcast VERB -q -o FILE [OPTION...] -- PROGRAM ARG... */
static char **command(const struct vc_trial *t, const char *file)
{
	const char *fixed[] = { "/proc/self/exe", t->verb, "-q", file ? "-o" : "--no-record",
				file };
	const struct { const char *name, *value; } option[] = { { "-g", t->gpu },
								{ "--capacity", t->capacity } };
	size_t options = t->as ? t->as->option.n : 0, n = 0, mores = 0;

	while (t->more && t->more[mores])
		mores++;
	char **line = calloc(WORDS + t->n + options + mores + t->argc, sizeof(*line));
	bool ok = line != NULL;

	for (size_t i = 0; ok && i < sizeof(fixed) / sizeof(*fixed) && fixed[i]; i++)
		ok = (line[n++] = strdup(fixed[i])) != NULL;
	for (size_t i = 0; ok && i < sizeof(option) / sizeof(*option); i++)
		if (option[i].value)
			ok = (line[n++] = strdup(option[i].name)) != NULL &&
			     (line[n++] = strdup(option[i].value)) != NULL;
	if (ok && t->steps)
		ok = asprintf(&line[n++], "--steps=%" PRIu64, t->steps) > 0;
	for (size_t i = 0; ok && i < t->n; i++)
		ok = asprintf(&line[n++], "--param=%s=%.17g", t->at[i].name, t->at[i].value) > 0;
	for (size_t i = 0; ok && i < options; i++)
		ok = (line[n++] = strdup(t->as->option.at[i].text)) != NULL;
	for (size_t i = 0; ok && i < mores; i++)
		ok = (line[n++] = strdup(t->more[i])) != NULL;
	ok = ok && (line[n++] = strdup("--")) != NULL;
	for (size_t i = 0; ok && i < t->argc; i++)
		ok = (line[n++] = strdup(t->argv[i])) != NULL;
	if (ok)
		return line;
	vc_own_free(line);
	return NULL;
}

/* In the child: where and among what it was recorded. */
static void move_in(const struct vc_trial *t)
{
	const struct vc_program *p = t->as;

	if (p && p->folder && chdir(p->folder) < 0)
		_exit(126);
	if (p)
		vc_own_environment(&p->environment);
	for (size_t i = 0; t->environment && i < t->environment->n; i++)
		setenv(t->environment->at[i].name, t->environment->at[i].text, 1);
	if (t->conf && *t->conf) {
		setenv("PYTORCH_CUDA_ALLOC_CONF", t->conf, 1);
		unsetenv("PYTORCH_ALLOC_CONF");
	}
	if (t->hook && vc_hook_set(t->hook, &(struct vc_error){ 0 }) < 0)
		_exit(126);
}

int vc_trial_run(const struct vc_trial *t, const char *file, int *code, struct vc_error *err)
{
	char **line = command(t, file), log[700];
	sigset_t before;
	int status = 0, lost;
	pid_t child;

	VC_HAVE(line, "the arguments of a trial run", err);
	snprintf(log, sizeof(log), t->log ? "%.690s" : "%.690s.log", t->log ? t->log : file);
	vc_stop_guard(&before);
	if (vc_stop_check(err) < 0) {
		vc_own_free(line);
		return VC_ESTOPPED;
	}
	child = fork();
	lost = child < 0 ? errno : 0;
	if (!child) {
		if (VC_PROCESSES)
			prctl(PR_SET_PDEATHSIG, SIGTERM); /* nobody waits for it any more */
		int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);

		dup2(fd >= 0 ? fd : STDERR_FILENO, STDOUT_FILENO);
		dup2(fd >= 0 ? fd : STDERR_FILENO, STDERR_FILENO);
		move_in(t);
		execv(line[0], line);
		_exit(127);
	}
	lost = lost ? lost : vc_stop_wait(child, &status);
	vc_own_free(line);
	VC_TRY(vc_stop_check(err));
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (lost)
		return vc_fail(err, VC_EIO, "cannot start or await a trial run: %s",
			       strerror(lost));
	*code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return VC_OK;
}

/* ---- folders ---- */

int vc_trial_folder(char *path, struct vc_error *err)
{
	const char *parent = getenv("TMPDIR");

	snprintf(path, 200, "%.150s/vramcast-fit-%s", parent && *parent ? parent : "/tmp",
		 "XX" "XX" "XX");
	return mkdtemp(path) ? VC_OK : vc_fail(err, VC_EIO, "cannot make a folder for the trial "
					       "runs in %s: %s", parent && *parent ? parent :
					       "/tmp", strerror(errno));
}

void vc_trial_remove(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	char at[600];

	while (d && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(at, sizeof(at), "%.300s/%.255s", path, e->d_name);
		if (unlink(at) < 0 && (errno == EISDIR || errno == EPERM))
			vc_trial_remove(at);
	}
	if (d)
		closedir(d);
	rmdir(path);
}
