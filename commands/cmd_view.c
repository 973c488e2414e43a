/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_view.c - vramcast view: a report or a picture in the browser of this desktop; --live: a
 * report of what is being recorded, made again and again. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "commands/live_words.h"
#include "common/vec.h"
#include "nullgpu/python.h"

struct config { bool live, once; const char *output; };

static const struct vc_option options[] = {
	{ 0, "live", VC_O_FLAG, offsetof(struct config, live), NULL,
	  "a report of what is being recorded (FILE or PID, as for top), made anew every five "
	  "seconds", NULL },
	{ 0, "once", VC_O_FLAG, offsetof(struct config, once), NULL, "one such report, and no more",
	  NULL },
	{ 'o', "output", VC_O_FILE, offsetof(struct config, output), "FILE",
	  "where that report stands", "vramcast-live.html" },
	VC_OPTION_END
};

/* In a process of its own where somebody goes on here. */
static int show(const char *file, bool apart, struct vc_console *con)
{
	static const char *const opener[] = { "xdg-open", "wslview", "gio", "sensible-browser" };
	const char *ssh = getenv("SSH_CONNECTION"), *x = getenv("DISPLAY");
	const char *w = getenv("WAYLAND_DISPLAY");
	bool far = (ssh && *ssh) || !((x && *x) || (w && *w));
	char path[4096], program[1024];

	if (!realpath(file, path))
		return vc_fail(&con->err, VC_EIO, "cannot open %s: %s", file, strerror(errno));
	printf("%s\n", path);
	fflush(stdout);
	for (size_t i = 0; !far && i < sizeof(opener) / sizeof(*opener); i++)
		if (vc_python_path(opener[i], program, sizeof(program)) == 0) {
			if (apart && fork())
				return 0;
			execl(program, opener[i], i == 2 ? "open" : path, i == 2 ? path : NULL,
			      (char *)NULL);
			if (apart)
				_exit(1);
		}
	if (!con->quiet)
		fprintf(stderr, "vramcast: %s; open it where you sit%s\n",
			far ? "there is no desktop here" : "no program that opens files was found",
			ssh && *ssh ? ", after scp or sftp" : "");
	return 0;
}

static size_t find_journals(const char *dir, char ***journal)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[VC_LIVE_PATH + 300], *at;
	size_t n = 0;

	while (d && (e = readdir(d))) {
		size_t len = strlen(e->d_name);

		if (len < 5 || strcmp(e->d_name + len - 4, ".vcj") != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (!vc_vec_one(*journal, n) || !(at = strdup(path)))
			break;
		(*journal)[n++] = at;
	}
	if (d)
		closedir(d);
	return n;
}

/* A journal that holds nothing yet is no failure: it is read again. */
static bool write_report(const struct config *c, const char *dir, struct vc_console *con)
{
	char **journal = NULL;
	size_t n = find_journals(dir, &journal);
	bool done = n && vc_report_live(n, journal, c->output, c->once ? NULL : "5", con) == 0;

	for (size_t i = 0; i < n; i++)
		free(journal[i]);
	free(journal);
	con->next[0] = '\0';
	return done;
}

static int live(const struct config *c, const char *what, struct vc_console *con)
{
	char dir[VC_LIVE_PATH], *trace = dir, *end;
	bool shown = false;

	VC_TRY(vc_live_folder(what, dir, &con->err));
	while (access(dir, R_OK) == 0) {
		clock_t began = clock();
		bool done = write_report(c, dir, con);
		double took = (double)(clock() - began) / CLOCKS_PER_SEC;

		if (done && !shown)
			VC_TRY(show(c->output, true, con));
		shown |= done;
		if (c->once)
			return done ? 0 : con->err.status;
		/* At most a tenth of a processor. */
		nanosleep(&(struct timespec){ took < 0.5 ? 5 : (time_t)(10 * took), 0 }, NULL);
	}
	if (!con->quiet)
		fprintf(stderr, "vramcast: the recording has ended\n");
	end = strrchr(dir, '.'); /* what "l.vct.journal" became */
	if (end)
		*end = '\0';
	return access(dir, R_OK) == 0 ? vc_report_live(1, &trace, c->output, NULL, con) : 0;
}

static int view_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *c = config;

	if (argc != 1 && !(c->live && !argc))
		return vc_fail(&con->err, VC_EUSAGE, "which file? vramcast view report.html");
	if (!c->live)
		return show(argv[0], false, con);
	return live(c, argc ? argv[0] : "vramcast.vct", con);
}

const struct vc_command vc_command_view = {
	.name = "view", .operands = "FILE",
	.summary = "open a report or picture; over SSH say where it is",
	.options = VC_OPTIONS(options), .config_size = sizeof(struct config), .run = view_run,
};
