/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dryrun_plans.c - keeps a process ready that asks the installed cuDNN for its plans.
 *
 * It waits at a socket in the private folder of the run, and loads nothing until a program asks.
 * None of the stand-ins is preloaded into it. It ends with vramcast, however that ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands/card_properties.h"
#include "commands/cmd_dryrun.h"
#include "commands/put.h"
#include "nullgpu/installed.h"
#include "nullgpu/plans.h"

int vc_dryrun_cudnn(struct vc_dryrun_cudnn *c, const char *libraries, const char *torch,
		    struct vc_error *err)
{
	const char *given = getenv("VRAMCAST_NULL_CUDNN_LIBRARY");
	char why[80] = "";
	snprintf(c->asker, sizeof c->asker, "%s/vcnull-cudnn-plans", libraries);
	if (given && *given)
		snprintf(c->library, sizeof c->library, "%s", given);
	else
		vc_installed_cudnn(torch, c->library, sizeof c->library);
	int v = *c->library ? vc_installed_version(c->asker, c->library) : 0;
	if (!*c->library)
		snprintf(why, sizeof why, "no cuDNN is installed; 'vramcast doctor' says which");
	else if (!v)
		snprintf(why, sizeof why, "the cuDNN that is installed does not load");
	else if (v < VC_PLANS_OLDEST)
		snprintf(why, sizeof why, "cuDNN %d.%d cannot be asked, 9.8 and newer can",
			 v / 10000, v / 100 % 100);
	c->usable = v >= VC_PLANS_OLDEST;
	VC_TRY(vc_put("VRAMCAST_NULL_PLANS_NOT", why, err));
	return v ? vc_put_number("VRAMCAST_NULL_CUDNN", (uint64_t)v, err) : VC_OK;
}

static int write_properties(const struct vc_card *card, const char *path, struct vc_error *err)
{
	char text[4096];
	VC_TRY(vc_card_properties(card, text, sizeof text, err));
	FILE *f = fopen(path, "w");
	bool failed = !f || fputs(text, f) < 0;
	if ((f && fclose(f)) || failed)
		return vc_fail(err, VC_EIO, "cannot write %s: %s", path, strerror(errno));
	return 0;
}

/* A socket in the folder; its name may be too long for one, so it is bound from inside. */
static int listen_in(const char *dir, const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int folder = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = folder < 0 ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/%s", folder, name);
	if (fd >= 0 && (bind(fd, (const struct sockaddr *)&at, sizeof at) < 0 ||
			listen(fd, 64) < 0)) {
		close(fd);
		fd = -1;
	}
	if (folder >= 0)
		close(folder);
	return fd;
}

/* The environment is made for the program by now: no stand-in may come into this process. */
static void leave_stage(const char *dir)
{
	const char *path = getenv("LD_LIBRARY_PATH");
	size_t n = strlen(dir);
	unsetenv("LD_PRELOAD");
	if (path && !strncmp(path, dir, n) && path[n] == ':')
		setenv("LD_LIBRARY_PATH", path + n + 1, 1);
	else
		unsetenv("LD_LIBRARY_PATH");
}

/* In the child: the socket is descriptor 3, the pipe 4. */
static void become(const struct vc_dryrun_cudnn *c, const char *properties, int fd, int life)
{
	char table[1200];
	vc_plans_path(table, sizeof table);
	signal(SIGPIPE, SIG_DFL); /* the front door ignores these two */
	signal(SIGXFSZ, SIG_DFL);
	signal(SIGINT, SIG_IGN); /* it ends with the run */
	int a = fcntl(fd, F_DUPFD, 10), b = fcntl(life, F_DUPFD, 10);
	if (!getenv("VRAMCAST_NULL_LOG")) { /* the library's words are not the program's */
		int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
		dup2(nowhere, STDOUT_FILENO);
		dup2(nowhere, STDERR_FILENO);
	}
	if (dup2(a, 3) == 3 && dup2(b, 4) == 4) {
		close(a);
		close(b);
		execl(c->asker, c->asker, "serve", c->library, properties, c->card, table,
		      (char *)NULL);
	}
	_exit(127);
}

int vc_dryrun_plans_start(struct vc_dryrun_cudnn *c, const char *dir, const struct vc_card *card,
			  struct vc_error *err)
{
	char name[32], path[600], properties[600], clocks[32];
	int life[2], sm, memory;
	c->pid = 0;
	vc_card_clocks(card, &sm, &memory);
	snprintf(clocks, sizeof clocks, "%d,%d", sm, memory);
	vc_card_in_table(card, c->card, sizeof c->card);
	snprintf(name, sizeof name, "plans.%d", c->runs++);
	snprintf(path, sizeof path, "%s/%s", dir, name);
	snprintf(properties, sizeof properties, "%s/%s.json", dir, name);
	VC_TRY(vc_put("VRAMCAST_NULL_CLOCKS", clocks, err));
	VC_TRY(vc_put("VRAMCAST_NULL_PLANS", c->usable ? path : "", err));
	if (!c->usable)
		return 0;
	VC_TRY(write_properties(card, properties, err));
	int fd = listen_in(dir, name);
	if (fd < 0 || pipe2(life, O_CLOEXEC) < 0)
		return vc_fail(err, VC_EIO, "cannot listen in %s: %s", dir, strerror(errno));
	c->pid = fork();
	if (c->pid == 0) {
		leave_stage(dir);
		become(c, properties, fd, life[0]);
	}
	close(fd);
	close(life[0]);
	c->life = life[1];
	return c->pid > 0 ? 0 : vc_fail(err, VC_EIO, "cannot start %s: %s", c->asker,
					strerror(errno));
}

void vc_dryrun_plans_stop(struct vc_dryrun_cudnn *c)
{
	if (c->pid <= 0)
		return;
	close(c->life);
	waitpid(c->pid, NULL, 0);
	c->pid = 0;
}
