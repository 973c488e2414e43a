/* SPDX-License-Identifier: Apache-2.0 */
/* run_start.c - see run_start.h */
#define _GNU_SOURCE
#include "commands/run_start.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

int vc_run_start(char **argv, size_t argc, struct vc_error *err)
{
	char **line = calloc(argc + 1, sizeof(*line));
	int status;
	pid_t pid;

	VC_HAVE(line, "a command line", err);
	memcpy(line, argv, argc * sizeof(*line));
	signal(SIGINT, SIG_IGN);
	pid = fork();
	if (pid == 0) {
		signal(SIGINT, SIG_DFL);
		signal(SIGPIPE, SIG_DFL); /* the front door ignores these two */
		signal(SIGXFSZ, SIG_DFL);
		execvp(line[0], line);
		fprintf(stderr, "vramcast run: cannot run %s: %s\n", line[0], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	free(line);
	if (pid < 0)
		return vc_fail(err, VC_EIO, "cannot start a process: %s", strerror(errno));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return vc_fail(err, VC_EIO, "cannot wait for %s", argv[0]);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
