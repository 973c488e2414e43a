/* SPDX-License-Identifier: Apache-2.0 */
/* change_hook.c - see change_hook.h */
#define _GNU_SOURCE /* asprintf */
#include "commands/change_hook.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_hook(const char *dir, struct vc_error *err)
{
	char path[800];
	int fd;

	snprintf(path, sizeof(path), "%.700s/sitecustomize.py", dir);
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return vc_fail(err, VC_EIO, "cannot make %s: %s", dir, strerror(errno));
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, vc_hook_text, vc_hook_size) != (ssize_t)vc_hook_size) {
		int lost = errno;
		if (fd >= 0)
			close(fd);
		return vc_fail(err, VC_EIO, "cannot write %s: %s", path, strerror(lost));
	}
	close(fd);
	return VC_OK;
}

/* NAME=value and NAME_REPORT=FOLDER/report, if there is a value. */
static int tell(const char *folder, const char *name, const char *value, const char *report,
		struct vc_error *err)
{
	char path[720], second[40];

	snprintf(path, sizeof(path), "%.690s/%s", folder, report);
	snprintf(second, sizeof(second), "%s_REPORT", name);
	if (value && (setenv(name, value, 1) < 0 || setenv(second, path, 1) < 0))
		return vc_nomem(err, "the environment");
	return VC_OK;
}

int vc_hook_set(const struct vc_hook *h, struct vc_error *err)
{
	const char *before = getenv("PYTHONPATH");
	char dir[720], *text;
	int r;

	snprintf(dir, sizeof(dir), "%.690s/hook", h->folder);
	VC_TRY(write_hook(dir, err));
	VC_TRY(tell(h->folder, "VRAMCAST_RECOMPUTE", h->recompute, "hooked", err));
	VC_TRY(tell(h->folder, "VRAMCAST_CHANGE", h->change, "changed", err));
	VC_TRY(tell(h->folder, "VRAMCAST_BUDGET", h->budget, "budgeted", err));
	if (asprintf(&text, "%s%s%s", dir, before && *before ? ":" : "", before ? before : "") < 0)
		return vc_nomem(err, "the environment");
	r = setenv("PYTHONPATH", text, 1);
	free(text);
	return r < 0 ? vc_nomem(err, "the environment") : VC_OK;
}

static void read_layers(FILE *f, struct vc_hooked *out)
{
	unsigned long long done = 0, odd = 0, calls = 0;
	char names[200] = "";

	if (fscanf(f, "%llu %llu %llu %199s", &done, &odd, &calls, names) != 4 ||
	    calls < out->calls)
		return;
	out->applied = done;
	out->odd = odd;
	out->calls = calls;
	memcpy(out->classes, names, sizeof(out->classes));
}

static void read_changes(FILE *f, struct vc_hooked *out)
{
	char line[300], name[64];
	unsigned long long times;

	while (fgets(line, sizeof(line), f)) {
		size_t n = strlen(out->made);

		if (line[0] == '!')
			snprintf(out->why, sizeof(out->why), "%.*s", (int)strcspn(line + 1, "\n"),
				 line + 1);
		else if (sscanf(line, "%63s %llu", name, &times) == 2 && times &&
			 !strstr(out->made, name))
			snprintf(out->made + n, sizeof(out->made) - n, " %s", name);
	}
}

static void read_budget(FILE *f, struct vc_hooked *out)
{
	unsigned long long units, of;

	if (fscanf(f, "%llu %llu", &units, &of) != 2 || units < out->units)
		return;
	out->units = units;
	out->of = of;
}

void vc_hook_read(const char *folder, struct vc_hooked *out)
{
	struct dirent *e;
	static const struct {
		const char *name;
		void (*read)(FILE *f, struct vc_hooked *out);
	} report[] = { { "hooked.", read_layers }, { "changed.", read_changes },
		       { "budgeted.", read_budget } };
	enum { REPORTS = sizeof(report) / sizeof(*report) };
	DIR *d = opendir(folder);
	char path[1000];

	while (d && (e = readdir(d))) {
		size_t k = 0;
		FILE *f;

		while (k < REPORTS && strncmp(e->d_name, report[k].name, strlen(report[k].name)))
			k++;
		if (k == REPORTS)
			continue;
		snprintf(path, sizeof(path), "%.700s/%.255s", folder, e->d_name);
		f = fopen(path, "r");
		if (f) {
			report[k].read(f, out);
			fclose(f);
		}
		unlink(path);
	}
	if (d)
		closedir(d);
}
