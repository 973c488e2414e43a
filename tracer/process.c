/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - see process.h. */
#define _GNU_SOURCE
#include "tracer/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/journal.h"

#ifndef VC_LIBDIR
#define VC_LIBDIR "/usr/local/lib/vramcast"
#endif

/* The last is where `make install` was told to put it, when that was known to the build. */
char *vc_process_find(const char *name, struct vc_error *err)
{
	static const char *const beside[] = { ".", "../lib/vramcast" };
	char self[4096], *slash, *path = malloc(sizeof(self) + 64);
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (!path) {
		vc_nomem(err, "a path");
		return NULL;
	}
	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < sizeof(beside) / sizeof(*beside); i++) {
		snprintf(path, sizeof(self) + 64, "%.*s/%s/%s", (int)(slash - self), self,
			 beside[i], name);
		char *real = realpath(
			path, NULL); /* the program finds it by this name, wherever it goes */
		if (real) {
			free(path);
			return real;
		}
	}
	snprintf(path, sizeof(self) + 64, "%s/%s", VC_LIBDIR, name);
	if (access(path, R_OK) == 0)
		return path;
	vc_fail(err, VC_EIO, "%s is neither beside %s nor in ../lib/vramcast nor in %s; run make, "
		"or make install",
		name, slash ? self : "vramcast", VC_LIBDIR);
	free(path);
	return NULL;
}

char *vc_process_library(struct vc_error *err)
{
	return vc_process_find("libvramcast_trace.so", err);
}

/* Shared mappings on these are slow, incoherent or unsafe. Numbers from linux/magic.h and the
 * sources of the file systems. */
static bool is_network(const char *dir)
{
	static const unsigned long kinds[] = { 0x6969 /* NFS */, 0xff534d42 /* CIFS */,
		0xfe534d42 /* SMB2 */, 0x0bd00bd0 /* Lustre */, 0x47504653 /* GPFS */,
		0x00c36400 /* Ceph */, 0x65735546 /* FUSE */, 0x01021997 /* 9p */,
		0x6a656a63 /* virtiofs */, 0x19830326 /* BeeGFS */ };
	struct statfs fs;

	if (statfs(dir, &fs) < 0)
		return false;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (((unsigned long)fs.f_type & 0xffffffff) == kinds[i])
			return true;
	return false;
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n >= k && strcmp(s + n - k, end) == 0;
}

static bool holds_journals(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	bool found = false;

	while (d && !found && (e = readdir(d)))
		found = ends_with(e->d_name, ".vcj");
	if (d)
		closedir(d);
	return found;
}

/* In memory, under a link of the wanted name, so that recovery finds it. */
static char *folder_in_memory(const char *wanted, struct vc_error *err)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/shm/vramcast-%ld-%ld", (long)getuid(), (long)getpid());
	if (mkdir(path, 0700) < 0) {
		vc_fail(err, VC_EIO, "cannot make the folder %s: %s; use -o on a local disk", path,
			strerror(errno));
		return NULL;
	}
	unlink(wanted);
	if (symlink(path, wanted) < 0) {
		vc_fail(err, VC_EIO, "cannot write %s: %s", wanted, strerror(errno));
		return NULL;
	}
	return strdup(path);
}

char *vc_process_folder(const char *wanted, struct vc_error *err)
{
	char *real;

	if (access(wanted, F_OK) <
	    0) /* a link into the memory of another host, or of a former boot */
		unlink(wanted);
	if (mkdir(wanted, 0700) < 0 && errno != EEXIST) {
		vc_fail(err, VC_EIO, "cannot make the folder %s: %s", wanted, strerror(errno));
		return NULL;
	}
	if (holds_journals(wanted)) {
		vc_fail(err, VC_EUSAGE, "%s holds a recording that was cut off; 'vramcast "
			"recover %s' finishes it, or remove the folder", wanted, wanted);
		return NULL;
	}
	if (is_network(wanted)) {
		rmdir(wanted);
		return folder_in_memory(wanted, err);
	}
	real = realpath(wanted, NULL);
	if (!real)
		vc_fail(err, VC_EIO, "cannot use the folder %s: %s", wanted, strerror(errno));
	return real;
}

/* The files in the folder whose names end so. */
static void remove_files(const char *dir, const char *end)
{
	char path[4400];
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.' && ends_with(e->d_name, end)) {
			snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
			unlink(path);
		}
	if (d)
		closedir(d);
}

static void remove_flat(const char *dir)
{
	remove_files(dir, "");
	rmdir(dir);
}

void vc_process_folder_remove(const char *wanted, const char *real)
{
	char path[4200];

	if (holds_journals(real))
		return;
	snprintf(path, sizeof(path), "%s/python/__pycache__", real);
	remove_flat(path);
	snprintf(path, sizeof(path), "%s/python", real);
	remove_flat(path);
	snprintf(path, sizeof(path), "%s/" VC_JOURNAL_LOST, real);
	unlink(path);
	remove_files(real, ".top");
	remove_files(real, ".program");
	snprintf(path, sizeof(path), "%s/.program", real);
	unlink(path);
	remove_files(real, ".ring"); /* their journals are gone, so their traces are whole */
	rmdir(real);
	if (unlink(wanted) < 0)
		rmdir(wanted);
}

/* NAME=value:old, or NAME=value when there was none. */
static int prepend(const char *name, const char *value)
{
	const char *old = getenv(name);
	char *both;
	int r;

	if (!old || !*old)
		return setenv(name, value, 1);
	both = malloc(strlen(old) + strlen(value) + 2);
	if (!both)
		return -1;
	snprintf(both, strlen(old) + strlen(value) + 2, "%s:%s", value, old);
	r = setenv(name, both, 1);
	free(both);
	return r;
}

/* The allocator of `vramcast run` stays in front: what it serves is recorded behind it. */
int vc_process_preload(const char *library)
{
	const char *allocator = getenv("VRAMCAST_PLAN_LIBRARY");
	int r = prepend("LD_PRELOAD", library);

	return r || !allocator || !*allocator ? r : prepend("LD_PRELOAD", allocator);
}

static int set_environment(const struct vc_process_options *o)
{
	if (setenv("VC_DIR", o->dir, 1) || setenv("VC_OPTIONS", o->options, 1) ||
	    vc_process_preload(o->library) || setenv("CUDA_INJECTION64_PATH", o->library, 1) ||
	    setenv("NVTX_INJECTION64_PATH", o->library, 1))
		return -1;
	return o->python ? prepend("PYTHONPATH", o->python) : 0;
}

enum { GUARDED = 3 };
static const int guarded[GUARDED] = { SIGINT, SIGQUIT, SIGCHLD };

static _Noreturn void child(const struct vc_process_options *o, char *const *argv, int tell)
{
	int why;

	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (size_t i = 0; i < GUARDED; i++)
		signal(guarded[i], o->before[i]);
	signal(SIGPIPE, SIG_DFL); /* the front door ignores these two */
	signal(SIGXFSZ, SIG_DFL);
	if (set_environment(o) == 0)
		execvp(argv[0], argv);
	why = errno;
	if (write(tell, &why, sizeof(why)) < 0)
		_exit(125);
	_exit(127);
}

int vc_process_start(const struct vc_process_options *o, char *const *argv, pid_t *pid,
		     struct vc_error *err)
{
	int tell[2], why = 0;
	ssize_t n;

	if (pipe2(tell, O_CLOEXEC) < 0) {
		vc_fail(err, VC_EIO, "cannot make a pipe: %s", strerror(errno));
		return 125;
	}
	*pid = fork();
	if (*pid == 0)
		child(o, argv, tell[1]);
	close(tell[1]);
	if (*pid < 0) {
		vc_fail(err, VC_EIO, "cannot start a process: %s", strerror(errno));
		close(tell[0]);
		return 125;
	}
	do /* the pipe closes at exec, or brings the reason why there was none */
		n = read(tell[0], &why, sizeof(why));
	while (n < 0 && errno == EINTR);
	close(tell[0]);
	if (n != (ssize_t)sizeof(why))
		return 0;
	waitpid(*pid, NULL, 0);
	vc_fail(err, VC_EIO, "cannot run %s: %s", argv[0], strerror(why));
	return why == ENOENT ? 127 : 126;
}

static void wanted_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGUSR1);
	sigaddset(set, SIGUSR2);
}

void vc_process_guard(struct vc_process_options *o)
{
	sigset_t set;

	wanted_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* SIGCHLD ignored by whoever started us would take the exit code away. */
	for (size_t i = 0; i < GUARDED; i++)
		o->before[i] = signal(guarded[i], guarded[i] == SIGCHLD ? SIG_DFL : SIG_IGN);
}

bool vc_process_sleep(pid_t pid, unsigned milliseconds, int own)
{
	struct timespec t = { milliseconds / 1000, milliseconds % 1000 * 1000000l };
	sigset_t set;
	int got;

	wanted_signals(&set);
	got = sigtimedwait(&set, NULL, &t);
	if (got > 0 && got == own)
		return true;
	if (got > 0 && got != SIGCHLD && pid)
		kill(pid, got);
	return false;
}

bool vc_process_ended(pid_t pid, int *code)
{
	int status;
	pid_t r = waitpid(pid, &status, WNOHANG);

	if (r == 0 || (r < 0 && errno == EINTR))
		return false;
	*code = r < 0 ? 125 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return true;
}
