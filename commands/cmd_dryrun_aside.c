/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dryrun_aside.c - what a run that was killed left where the next one wants to record. */
#define _GNU_SOURCE /* asprintf, glob */
#include <dirent.h>
#include <glob.h>
#include <unistd.h>

#include "commands/cmd_dryrun.h"

enum { MOST_ASIDE = 1000 };

/* One that has ended and was not waited for yet is none. */
static bool is_alive(long pid)
{
	char path[64], line[512] = "";
	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	FILE *f = fopen(path, "r");
	if (!f)
		return false;
	const char *name = fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
	fclose(f);
	return !name || strncmp(name, ") Z", 3) != 0;
}

/* Journals are called by the process that writes them: PID-START.N.vcj. */
static bool is_abandoned(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	bool any = false, alive = false;

	while (d && (e = readdir(d)) != NULL) {
		if (!strstr(e->d_name, ".vcj"))
			continue;
		any = true;
		alive = alive || is_alive(strtol(e->d_name, NULL, 10));
	}
	if (d)
		closedir(d);
	return any && !alive;
}

static void set_aside(const char *folder)
{
	char *to = NULL;

	for (int i = 1; i < MOST_ASIDE; i++) {
		free(to);
		if (asprintf(&to, "%s.%d", folder, i) < 0)
			return;
		if (access(to, F_OK) < 0)
			break;
	}
	if (rename(folder, to) == 0)
		fprintf(stderr, "vramcast: %s holds a recording that was cut off; it lies in %s "
			"now ('vramcast recover' finishes it)\n", folder, to);
	free(to);
}

void vc_dryrun_set_aside(const char *out)
{
	const char *dot = strrchr(out, '.'), *slash = strrchr(out, '/');
	char *pattern[2] = { NULL, NULL };
	glob_t found;

	if (!dot || dot < slash)
		dot = out + strlen(out);
	if (asprintf(&pattern[0], "%s.journal", out) < 0 ||
	    asprintf(&pattern[1], "%.*s.rank*%s.journal", (int)(dot - out), out, dot) < 0)
		return;
	for (int k = 0; k < 2; k++) {
		if (glob(pattern[k], 0, NULL, &found) == 0) {
			for (size_t i = 0; i < found.gl_pathc; i++)
				if (is_abandoned(found.gl_pathv[i]))
					set_aside(found.gl_pathv[i]);
			globfree(&found);
		}
		free(pattern[k]);
	}
}
