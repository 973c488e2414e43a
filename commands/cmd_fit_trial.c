/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_fit_trial.c - trial runs of the user's program for vramcast fit. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands/trial.h"

enum { WORDS = 16 };

char *vc_trial_fill(const char *text, const char *key, uint64_t value)
{
	char mark[80], number[24];
	size_t cap = strlen(text) * 24 + 32, n = 0;
	char *out = malloc(cap);

	snprintf(mark, sizeof(mark), "{%s}", key);
	snprintf(number, sizeof(number), "%" PRIu64, value);
	while (out && *text && n + 24 < cap) {
		if (!strncmp(text, mark, strlen(mark))) {
			n += (size_t)snprintf(out + n, cap - n, "%s", number);
			text += strlen(mark);
		} else {
			out[n++] = *text++;
		}
	}
	if (out)
		out[n] = '\0';
	return out;
}

/* vramcast VERB [-g GPU] -o FILE --param KEY=VALUE -- PROGRAM ARG... */
static char **command(const struct vc_trial *t, uint64_t value, const char *file, const char *param)
{
	const char *fixed[WORDS] = { "/proc/self/exe", t->verb, "-o", file,
				    "--param",        param,   "-q" };
	char **argv = calloc(t->argc + WORDS, sizeof(*argv));
	size_t n = 7, at = 0;

	if (!argv)
		return NULL;
	if (t->gpu) {
		fixed[n++] = "-g";
		fixed[n++] = t->gpu;
	}
	fixed[n++] = "--";
	for (size_t i = 0; i < n; i++)
		argv[at++] = strdup(fixed[i]);
	for (size_t i = 0; i < t->argc; i++)
		argv[at++] = vc_trial_fill(t->argv[i], t->key, value);
	for (size_t i = 0; i < at; i++)
		if (!argv[i]) {
			argv[0] = NULL;
			break;
		}
	return argv;
}

static void release(char **argv)
{
	for (size_t i = 0; argv && argv[i]; i++)
		free(argv[i]);
	free(argv);
}

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

int vc_trial_execute(char **argv, const char *conf, const char *log, int *code,
		     struct vc_error *err)
{
	void (*before)(int) =
		signal(SIGINT, SIG_IGN); /* the trial ends, and the folder of trials with it */
	pid_t child = fork();
	int status = 0, lost = child < 0 ? errno : 0;

	if (!child) {
		int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);

		dup2(fd >= 0 ? fd : STDERR_FILENO, STDOUT_FILENO);
		dup2(fd >= 0 ? fd : STDERR_FILENO, STDERR_FILENO);
		signal(SIGINT, before);
		if (conf && *conf) {
			setenv("PYTORCH_CUDA_ALLOC_CONF", conf, 1);
			unsetenv("PYTORCH_ALLOC_CONF");
		}
		execv(argv[0], argv);
		_exit(127);
	}
	while (!lost && waitpid(child, &status, 0) < 0)
		lost = errno != EINTR ? errno : 0;
	signal(SIGINT, before);
	if (lost)
		return vc_fail(err, VC_EIO, "cannot start or await a trial run: %s",
			       strerror(lost));
	*code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return VC_OK;
}

int vc_trial_run(const struct vc_trial *t, uint64_t value, char *out, int *oom,
		 struct vc_error *err)
{
	char file[320], log[324], param[120];
	struct stat st;
	int code = 0;

	snprintf(file, sizeof(file), "%s/%s-%" PRIu64 ".vct", t->folder, t->key, value);
	snprintf(log, sizeof(log), "%s.log", file);
	snprintf(param, sizeof(param), "%.80s=%" PRIu64, t->key, value);
	snprintf(out, 512, "%s@%s", file, param);
	char **argv = command(t, value, file, param);
	if (!argv || !argv[0]) {
		release(argv);
		return vc_nomem(err, "the arguments of a trial run");
	}
	int r = vc_trial_execute(argv, t->conf, log, &code, err);
	release(argv);
	if (r < 0)
		return r;
	bool recorded = !stat(file, &st) && st.st_size > 0;
	if (oom)
		*oom = code != 0;
	if (!recorded || (code && !oom))
		vc_trial_show(log, t->progress);
	if (code && !(oom && recorded))
		return vc_fail(err, VC_EIO,
			       "the trial run with %s ended with code %d (try `vramcast %s%s%s "
			       "-- ...` by hand)",
			       param, code, t->verb, t->gpu ? " -g " : "", t->gpu ? t->gpu : "");
	if (!recorded)
		return vc_fail(err, VC_EIO, "the trial run with %s left no recording", param);
	return VC_OK;
}
