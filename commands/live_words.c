/* SPDX-License-Identifier: Apache-2.0 */
/* live_words.c - see live_words.h. */
#define _GNU_SOURCE
#include "commands/live_words.h"

#include <unistd.h>

#include "simulator/findings/findings.h"

/* The folder of the journals of a process: what `record` told it. */
static bool folder_of_process(const char *pid, char *dir)
{
	char path[64], *line = NULL;
	size_t room = 0;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.20s/environ", pid);
	f = fopen(path, "re");
	while (f && !found && getdelim(&line, &room, '\0', f) > 0) {
		found = strncmp(line, "VC_DIR=", 7) == 0;
		if (found)
			snprintf(dir, VC_LIVE_PATH, "%s", line + 7);
	}
	if (f)
		fclose(f);
	free(line);
	return found;
}

int vc_live_folder(const char *what, char dir[VC_LIVE_PATH], struct vc_error *err)
{
	bool number = *what && !what[strspn(what, "0123456789")];

	snprintf(dir, VC_LIVE_PATH, "%s.journal", what);
	if (access(dir, R_OK) == 0)
		return 0;
	if (!number)
		return vc_fail(err, VC_EIO, "%s is not being recorded now: there is no folder %s",
			       what, dir);
	if (!folder_of_process(what, dir))
		return vc_fail(err, VC_EIO, "process %s is not being recorded, or is not yours "
			       "(there is no VC_DIR in its environment)", what);
	return access(dir, R_OK) == 0 ? 0 :
	       vc_fail(err, VC_EIO, "the recording of process %s has ended", what);
}

const char *vc_live_words(const struct vc_live_page *p, char *buf, size_t n)
{
	vc_forecast_text(&(struct vc_forecast){ p->growth, p->left, p->seconds_a_step,
			 p->growing ? p->site[0].name : NULL, p->site[0].growth,
			 p->marked ? "step" : "second" }, buf, n);
	return buf;
}
