/* SPDX-License-Identifier: Apache-2.0 */
/* ask_cudnn.c - see ask_cudnn.h
 *
 * vcnull-cudnn-plans reads a line with a convolution and writes one with its plans, for as long as
 * there are lines. */
#define _GNU_SOURCE
#include "commands/ask_cudnn.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands/card_properties.h"
#include "commands/null_libraries.h"
#include "nullgpu/installed.h"
#include "nullgpu/plans.h"
#include "nullgpu/python.h"
#include "simulator/session/request.h"

/* Looked for once, whatever the card: python3 is asked for it. */
static struct {
	pthread_once_t once;
	char version[16];       /* "9.19.0"; "": nobody can be asked */
	char program[1200], library[1200];
} installed = { .once = PTHREAD_ONCE_INIT };

struct asking {
	const struct vc_card *card;
	bool tried;
	pid_t pid;
	FILE *to, *from;
};

static void *open_asking(const struct vc_card *card)
{
	struct asking *a = calloc(1, sizeof(*a));

	if (a)
		a->card = card;
	return a;
}

/* The library beside the PyTorch of python3, and its version. */
static void find_library(void)
{
	const char *given = getenv("VRAMCAST_NULL_CUDNN_LIBRARY");
	char folder[1100], python[1024], package[1024];
	struct vc_error ignored = { 0 };
	int v;

	if (vc_null_libraries(folder, sizeof(folder), &ignored))
		return;
	if (given)
		snprintf(installed.library, sizeof(installed.library), "%s", given);
	else if (vc_python_find("python3", python, sizeof(python), &ignored) < 0 ||
		 vc_python_package(python, package, sizeof(package), NULL, 0, &ignored) ||
		 !vc_installed_cudnn(package, installed.library, sizeof(installed.library)))
		return;
	snprintf(installed.program, sizeof(installed.program), "%s/vcnull-cudnn-plans", folder);
	v = *installed.library ? vc_installed_version(installed.program, installed.library) : 0;
	if (v >= VC_PLANS_OLDEST)
		snprintf(installed.version, sizeof(installed.version), "%d.%d.%d", v / 10000,
			 v / 100 % 100, v % 100);
}

/* A file in memory, which the child inherits; -1: there is none. */
static int write_properties(const struct asking *a)
{
	char text[4096];
	struct vc_error ignored = { 0 };
	int fd;

	if (vc_card_properties(a->card, text, sizeof(text), &ignored))
		return -1;
	fd = memfd_create("card", 0);
	if (fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* In the child. */
static void become(const struct asking *a, int properties, int in, int out)
{
	char card[64], table[1200], path[40];
	int nowhere = open("/dev/null", O_WRONLY);

	vc_card_in_table(a->card, card, sizeof(card));
	vc_plans_path(table, sizeof(table));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", properties);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(nowhere, STDERR_FILENO); /* the library's words are not ours */
	execl(installed.program, installed.program, "rows", installed.library, path, card, table,
	      (char *)NULL);
	_exit(127);
}

static void start(struct asking *a)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, properties = write_properties(a);

	if (properties >= 0 && !pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC)) {
		a->pid = fork();
		if (a->pid == 0)
			become(a, properties, in[0], out[1]);
		a->to = fdopen(in[1], "w");
		a->from = fdopen(out[0], "r");
	}
	if (properties >= 0)
		close(properties);
	if (in[0] >= 0)
		close(in[0]);
	if (out[1] >= 0)
		close(out[1]);
}

/* "CARD VERSION KEY PLANS"; what cannot be answered begins with '#'. */
static bool ask(void *asker, const char *version, const char *key, char *plans, size_t n)
{
	struct asking *a = asker;
	char line[1024 + VC_PLANS_MOST * 40];
	const char *last;

	if (!a->tried) {
		a->tried = true;
		pthread_once(&installed.once, find_library);
		if (!strcmp(installed.version, version))
			start(a);
	}
	if (!a->to || !a->from || strcmp(installed.version, version) != 0)
		return false;
	if (fprintf(a->to, "%s\n", key) < 0 || fflush(a->to) ||
	    !fgets(line, sizeof(line), a->from) || *line == '#')
		return false;
	line[strcspn(line, "\n")] = '\0';
	last = strrchr(line, ' ');
	return last && (size_t)snprintf(plans, n, "%s", last + 1) < n;
}

static void close_asking(void *asker)
{
	struct asking *a = asker;

	if (a->to)
		fclose(a->to);
	if (a->from)
		fclose(a->from);
	if (a->pid > 0)
		waitpid(a->pid, NULL, 0);
	free(a);
}

const struct vc_asker vc_installed_asker = { vc_plans_path, open_asking, ask, close_asking };

void vc_ask_cudnn(const struct vc_option *const *tables, void *config)
{
	for (; tables && *tables; tables++)
		if (*tables == vc_run_options)
			((struct vc_run_options *)config)->asker = &vc_installed_asker;
}
