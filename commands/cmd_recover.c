/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_recover.c - vramcast recover: finish the traces of a recording that was cut off. */
#define _GNU_SOURCE
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/opt.h"
#include "tracer/drain.h"
#include "tracer/process.h"

struct config { const char *out; };

static const struct vc_option options[] = {
	{ 'o', "output", VC_O_FILE, offsetof(struct config, out), "FILE",
	  "the trace to write; default: the name the recording was to have", NULL },
	VC_OPTION_END
};

static int recover_one(const char *journal, const char *out, struct vc_error *err)
{
	uint64_t events = 0;
	char *path = NULL;
	int r = vc_drain_recover(journal, out, &path, &events, err);

	if (r == 0)
		printf("%s: %llu events\n", path, (unsigned long long)events);
	free(path);
	return r;
}

/* Processes that had no journal, which the recorder did not live to tell. */
static void say_lost(const char *dir)
{
	struct vc_drain_lost l = vc_drain_left(dir);
	uint64_t n = 0;

	for (size_t i = 0; i < VC_LOST_WHYS; i++)
		n += l.processes[i];
	if (n)
		fprintf(stderr, "vramcast: %llu processes more were not recorded (the last: "
			"process %lld): they could not make their journals\n",
			(unsigned long long)n, (long long)l.pid);
}

static int recover_folder(const char *dir, const char *out, struct vc_error *err)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[4400], *real;
	int r = 0, n = 0;

	if (!d)
		return vc_fail(err, VC_EIO, "cannot read the folder %s", dir);
	while (r == 0 && (e = readdir(d))) {
		size_t len = strlen(e->d_name);

		if (len < 5 || strcmp(e->d_name + len - 4, ".vcj") != 0)
			continue;
		if (n++ && out)
			r = vc_fail(err, VC_EUSAGE, "%s holds several journals: recover them "
				    "one by one, or without -o", dir);
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (r == 0)
			r = recover_one(path, out, err);
	}
	closedir(d);
	if (r == 0)
		say_lost(dir);
	if (r == 0 && !n)
		return vc_fail(err, VC_EUSAGE, "%s holds no journal: nothing to recover", dir);
	real = r == 0 ? realpath(dir, NULL) : NULL;
	if (real)
		vc_process_folder_remove(dir, real);
	free(real);
	return r;
}

static int run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *c = config;
	struct stat st;
	char path[4096];
	int r = 0;

	if (!argc)
		return vc_fail(&con->err, VC_EUSAGE,
			       "which recording? vramcast recover FILE.journal");
	for (size_t i = 0; r == 0 && i < argc; i++) {
		snprintf(path, sizeof(path), "%s.journal", argv[i]);
		if (stat(path, &st) < 0) /* else: the name of the trace was given */
			snprintf(path, sizeof(path), "%s", argv[i]);
		if (stat(path, &st) < 0)
			r = vc_fail(&con->err, VC_EIO, "there is no recording %s", argv[i]);
		else if (S_ISDIR(st.st_mode))
			r = recover_folder(path, c->out, &con->err);
		else
			r = recover_one(path, c->out, &con->err);
	}
	return r;
}

const struct vc_command vc_command_recover = {
	.name = "recover", .operands = "FILE.journal...",
	.summary = "finish the traces of a recording that was cut off",
	.details =
		"A recording keeps a folder FILE.journal beside its trace while it runs. When "
		"the machine killed both the\nprogram and the recorder, everything that was "
		"recorded is still there; this turns it into FILE.",
	.options = VC_OPTIONS(options), .config_size = sizeof(struct config), .run = run,
};
