/* SPDX-License-Identifier: Apache-2.0 */
/* plans_main.c - the program vcnull-cudnn-plans: asks an installed cuDNN which plans it would make
 * on a card that is not there.
 *
 *   vcnull-cudnn-plans version LIBRARY
 *   vcnull-cudnn-plans rows LIBRARY PROPERTIES [CARD [TABLE]] < shapes > table
 *   vcnull-cudnn-plans serve LIBRARY PROPERTIES CARD TABLE     (started by `vramcast dryrun`)
 *
 * PROPERTIES: a file with the card's properties as JSON. CARD: the first column of the table, which
 * each answer joins. Rows: an answer for each line at once, for who waits for it. Serve: the
 * programs of a dry run connect to the socket at descriptor 3. Descriptor 4 is a pipe that ends
 * with the dry run, and this process with it. The library is loaded by a child once somebody asks:
 * if it ends there, the next question gets another child. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/vec.h"
#include "nullgpu/plans_cudnn.h"
#include "nullgpu/plans_rows.h"

enum { LISTENING = 3, LIFE = 4, CLIENTS = 256, CHILDREN = 16 };

struct asker {
	struct vc_library library;
	const char *path, *properties, *card, *table;
	int opened; /* 0: not tried, 1: yes, -1: no, and why says it */
	char version[32];
	char **kept; /* keys that have their row */
	size_t n_kept;
	struct vc_error why;
};

/* Our own libcublasLt, beside this program: see plans_products.c. The loader then has a library of
 * that name already when cuDNN asks for it. */
static void load_products(void)
{
	char self[1024], path[1200];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	self[n > 0 ? n : 0] = 0;
	if (!strrchr(self, '/'))
		return;
	*strrchr(self, '/') = 0;
	for (int major = 12; major <= 13; major++) {
		snprintf(path, sizeof path, "%s/vcnull-plans-libcublasLt.so.%d", self, major);
		dlopen(path, RTLD_NOW);
	}
}

/* NVRTC as PyTorch installs it, beside cuDNN; else the system's. */
static bool load_compiler(const char *library)
{
	static const char *const beside[] = { "cu13/lib/libnvrtc.so.13",
		"cuda_nvrtc/lib/libnvrtc.so.12" };
	const char *end = strstr(library, "/cudnn/lib/");
	char path[1400];
	for (size_t i = 0; end && i < sizeof beside / sizeof *beside; i++) {
		snprintf(path, sizeof path, "%.*s/%s", (int)(end - library), library, beside[i]);
		if (dlopen(path, RTLD_NOW))
			return true;
	}
	return dlopen("libnvrtc.so.13", RTLD_NOW) || dlopen("libnvrtc.so.12", RTLD_NOW);
}

/* Engines that are compiled when they are first used are in the list where cuDNN finds a compiler
 * and a driver. The driver is the stand-in, which is asked for nothing: no module is loaded. */
static void load_prerequisites(const char *library)
{
	char self[1024], path[1200];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	self[n > 0 ? n : 0] = 0;
	if (!strrchr(self, '/') || !load_compiler(library))
		return;
	*strrchr(self, '/') = 0;
	snprintf(path, sizeof path, "%s/vcnull-libcuda.so.1", self);
	unsetenv("VRAMCAST_NULL_REPORT"); /* this is no process of the program */
	dlopen(path, RTLD_NOW);
}

static int open_library(struct asker *a)
{
	char json[8192];
	if (a->opened)
		return a->opened > 0 ? 0 : a->why.status;
	a->opened = -1;
	FILE *f = fopen(a->properties, "r");
	size_t n = f ? fread(json, 1, sizeof json - 1, f) : 0;
	if (f)
		fclose(f);
	if (!n)
		return vc_fail(&a->why, VC_EIO, "cannot read %s", a->properties);
	json[n] = 0;
	json[strcspn(json, "\n")] = 0;
	load_products();
	load_prerequisites(a->path);
	int rc = vc_library_open(&a->library, a->path, &a->why);
	if (!rc)
		rc = vc_library_card(&a->library, json, &a->why);
	if (!rc) {
		size_t v = a->library.version;
		snprintf(a->version, sizeof a->version, "%zu.%zu.%zu", v / 10000, v / 100 % 100,
			 v % 100);
		a->opened = 1;
	}
	return rc;
}

/* ---- the table ---- */

static bool is_kept(struct asker *a, const char *key)
{
	for (size_t i = 0; i < a->n_kept; i++)
		if (!strcmp(a->kept[i], key))
			return true;
	if (vc_vec_one(a->kept, a->n_kept) && (a->kept[a->n_kept] = strdup(key)) != NULL)
		a->n_kept++;
	return false;
}

static void make_folders(const char *path)
{
	char part[1200];
	snprintf(part, sizeof part, "%s", path);
	for (char *at = strchr(part + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		mkdir(part, 0777);
		*at = '/';
	}
}

/* One write of whole lines, alone: another dry run may do the same at the same moment. */
static void keep(struct asker *a, const char *key, const struct vc_cudnn_plans *p)
{
	char bytes[VC_PLANS_MOST * 40], *row = NULL;
	struct stat st;
	if (!*key || !p->n || is_kept(a, key))
		return;
	make_folders(a->table);
	int fd = open(a->table, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	vc_cudnn_plans_text(p, bytes, sizeof bytes);
	flock(fd, LOCK_EX);
	bool fresh = fstat(fd, &st) == 0 && st.st_size == 0;
	int n = asprintf(&row, "%s%s %s %s %s\n", fresh ? "# workspaces of convolutions, as the "
			 "installed cuDNN named them to vramcast dryrun\n" : "",
			 a->card, a->version, key, bytes);
	if (n > 0 && write(fd, row, (size_t)n) != n && !fstat(fd, &st))
		dprintf(fd, "\n"); /* a full disk: what is there of the row is no row */
	free(row);
	close(fd);
}

/* ---- serving ---- */

/* Answers one question; false: the client is gone. */
static bool answer(struct asker *a, int fd, struct vc_wire *w)
{
	struct vc_cudnn_plans plans = { 0 };
	struct vc_wire reply = { 0 };
	char key[VC_PLANS_KEY];
	struct vc_error err = { 0 };
	if (!vc_wire_receive(fd, w))
		return false;
	uint32_t mode = vc_wire_get_u32(w);
	vc_wire_get_text(w, key, sizeof key);
	int rc = open_library(a);
	if (rc)
		err = a->why;
	else if (mode > VC_MODE_A)
		rc = vc_fail(&err, VC_EFORMAT, "mode %u of the heuristics", mode);
	else
		rc = vc_library_plans(&a->library, w, (enum vc_plans_mode)mode, &plans, &err);
	vc_wire_put_u32(&reply, rc == 0);
	if (rc)
		vc_wire_put_text(&reply, err.message);
	else
		vc_wire_put(&reply, &plans, sizeof plans);
	if (!rc)
		keep(a, key, &plans);
	bool sent = vc_wire_send(fd, &reply);
	free(reply.at);
	return sent;
}

/* In the child: everybody who asks, one question at a time. */
static void serve(struct asker *a)
{
	struct pollfd p[CLIENTS + 1] = { { .fd = LISTENING, .events = POLLIN } };
	struct vc_wire w = { 0 };
	nfds_t n = 1;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (poll(p, n, -1) > 0 || errno == EINTR) {
		for (nfds_t i = n; i-- > 1;)
			if (p[i].revents && !answer(a, p[i].fd, &w)) {
				close(p[i].fd);
				p[i] = p[--n];
			}
		if (p[0].revents && n <= CLIENTS) {
			int fd = accept4(LISTENING, NULL, NULL, SOCK_CLOEXEC);
			if (fd >= 0)
				p[n++] = (struct pollfd){ .fd = fd, .events = POLLIN };
		}
	}
	_exit(0);
}

/* Waits until there is something to read at `fd`; false: the dry run is over. */
static bool wait_for(int fd)
{
	struct pollfd p[] = { { .fd = fd, .events = POLLIN }, { .fd = LIFE, .events = POLLIN } };
	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return false;
		if (p[1].revents)
			return false;
		if (p[0].revents)
			return true;
	}
}

static int serve_all(struct asker *a)
{
	for (int i = 0; i < CHILDREN && wait_for(LISTENING); i++) {
		int end[2];
		if (pipe2(end, O_CLOEXEC) < 0)
			return 1;
		pid_t pid = fork();
		if (pid == 0) {
			close(end[0]);
			serve(a);
		}
		close(end[1]);
		bool over = pid < 0 || !wait_for(end[0]); /* readable: its other end is gone */
		close(end[0]);
		if (pid > 0 && over)
			kill(pid, SIGKILL);
		if (pid > 0)
			waitpid(pid, NULL, 0);
		if (over)
			return 0;
	}
	return 0;
}

/* ---- for people ---- */

/* A row is a key, with the card and the version before it and bytes behind it where it is one of a
 * table. */
static const char *key_of(char *line, char *key, size_t size)
{
	char *field[13], *rest;
	int n = 0, from;
	size_t at = 0;
	line[strcspn(line, "#\n")] = 0;
	for (char *f = strtok_r(line, " \t", &rest); f && n < 13; f = strtok_r(NULL, " \t", &rest))
		field[n++] = f;
	from = n >= 11 ? 2 : 0;
	if (n < 9 || n == 10)
		return NULL;
	for (int i = from; i < from + 9 && at < size; i++)
		at += (size_t)snprintf(key + at, size - at, "%s%s", i > from ? " " : "", field[i]);
	return key;
}

static int rows(struct asker *a)
{
	char line[1200], key[VC_PLANS_KEY], bytes[VC_PLANS_MOST * 40];
	struct vc_error err = { 0 };
	int failed = 0;
	if (open_library(a)) {
		fprintf(stderr, "vcnull-cudnn-plans: %s\n", a->why.message);
		return 1;
	}
	while (fgets(line, sizeof line, stdin)) {
		struct vc_wire w = { 0 };
		struct vc_cudnn_plans plans;
		enum vc_plans_mode mode;
		bool shape = key_of(line, key, sizeof key) != NULL;
		if (shape && vc_rows_graph(key, &w, &mode) &&
		    !vc_library_plans(&a->library, &w, mode, &plans, &err) && plans.n) {
			vc_cudnn_plans_text(&plans, bytes, sizeof bytes);
			printf("%s %s %s %s\n", a->card, a->version, key, bytes);
			if (*a->table)
				keep(a, key, &plans);
		} else if (shape) {
			printf("# %s: %s\n", key, err.status ? err.message : "no plan");
			failed = 1;
		}
		fflush(stdout);
		free(w.at);
	}
	return failed;
}

static int version(struct asker *a)
{
	if (vc_library_open(&a->library, a->path, &a->why)) {
		fprintf(stderr, "vcnull-cudnn-plans: %s\n", a->why.message);
		return 1;
	}
	printf("%zu\n", a->library.version);
	return 0;
}

int main(int argc, char **argv)
{
	struct asker a = { .path = argc > 2 ? argv[2] : "", .properties = argc > 3 ? argv[3] : "",
		.card = argc > 4 ? argv[4] : "*", .table = argc > 5 ? argv[5] : "" };
	if (argc == 3 && !strcmp(argv[1], "version"))
		return version(&a);
	if (argc >= 4 && argc <= 6 && !strcmp(argv[1], "rows"))
		return rows(&a);
	if (argc == 6 && !strcmp(argv[1], "serve"))
		return serve_all(&a);
	fprintf(stderr, "vcnull-cudnn-plans is started by 'vramcast dryrun'; by hand: version "
		"LIBRARY, or rows LIBRARY PROPERTIES [CARD] < shapes\n");
	return 2;
}
