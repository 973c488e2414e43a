/* SPDX-License-Identifier: Apache-2.0 */
/* kept_store.c - where kept runs lie (kept_run.h): what is known of each, which there are, and how
 * much they may take together. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "commands/kept_run.h"
#include "commands/own_program.h"
#include "commands/trial.h"
#include "common/value.h"
#include "common/vec.h"

/* ---- what is known of it ---- */

void vc_kept_beside(const char *path, const char *ending, char out[VC_RERUN_PATH])
{
	snprintf(out, VC_RERUN_PATH, "%.*s%s", (int)(strlen(path) - 4), path, ending);
}

static uint64_t count_in(const struct vc_value *v, const char *key)
{
	uint64_t n = 0;

	vc_value_count(vc_value_get(v, key), &n);
	return n;
}

static void text_in(const struct vc_value *v, const char *key, char *out, size_t n)
{
	const char *text = vc_value_text(v, key);

	snprintf(out, n, "%s", text ? text : "");
}

/* Is what the program imported of its user's still the same? */
static bool is_current(const struct vc_value *files)
{
	char hash[17];

	for (const struct vc_value *f = files ? files->first : NULL; f; f = f->next)
		if (!vc_program_hash(f->key, hash) || strcmp(hash, f->text))
			return false;
	return true;
}

static const char *const endings[] = { ".vct", ".json", ".run", VC_KEPT_FAILED };
#define ENDINGS (sizeof(endings) / sizeof(*endings))

static uint64_t bytes_of(const char *path)
{
	char file[VC_RERUN_PATH];
	struct stat st;
	uint64_t bytes = 0;

	for (size_t i = 0; i < ENDINGS; i++) {
		vc_kept_beside(path, endings[i], file);
		bytes += stat(file, &st) ? 0 : (uint64_t)st.st_size;
	}
	return bytes;
}

bool vc_kept_read(const char *path, bool current, struct vc_kept *k)
{
	char file[VC_RERUN_PATH];
	struct stat st = { 0 }, used = { 0 };
	struct vc_value *v;
	bool fine;

	vc_kept_beside(path, ".run", file);
	v = !stat(path, &used) && used.st_size && !stat(file, &st) ?
		    vc_value_load(file, &(struct vc_error){ 0 }) : NULL;
	fine = v && (!current || is_current(vc_value_get(v, "files")));
	if (fine) {
		const struct vc_value *oom = vc_value_get(v, "oom");

		*k = (struct vc_kept){ .when = st.st_mtim.tv_sec, .reused = true,
				       .last = used.st_mtim.tv_sec,
				       .bytes = bytes_of(path),
				       .oom = oom && oom->kind == VC_J_TRUE,
				       .requested = count_in(v, "peak_requested"),
				       .allocated = count_in(v, "peak_allocated"),
				       .reserved = count_in(v, "peak_reserved"),
				       .flushes = count_in(v, "flushes"),
				       .workspace = count_in(v, "workspace"),
				       .used = count_in(v, "peak_used") };
		snprintf(k->path, sizeof(k->path), "%s", path);
		snprintf(k->id, sizeof(k->id), "%.16s", strrchr(path, '/') + 1);
		text_in(v, "verdict", k->verdict, sizeof(k->verdict));
		text_in(v, "torch", k->torch, sizeof(k->torch));
		text_in(v, "card", k->card, sizeof(k->card));
		text_in(v, "with", k->with, sizeof(k->with));
		text_in(v, "command", k->line, sizeof(k->line));
	}
	if (fine && current) /* when it was used last */
		utimensat(AT_FDCWD, path, NULL, 0);
	vc_value_free(v);
	return fine;
}

/* What a process that was killed has left. */
void vc_kept_clean(const char *folder)
{
	char pattern[600];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/*.vct.*.vct*", folder);
	if (glob(pattern, 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++) {
			const char *name = strrchr(found.gl_pathv[i], '/') + 1;
			long pid = strtol(strstr(name, ".vct.") + 5, NULL, 10);
			bool said = strstr(name, ".log") != NULL;

			/* what a program said before it failed is there to be read */
			if (pid > 0 && !said && kill((pid_t)pid, 0) < 0 && errno == ESRCH &&
			    unlink(found.gl_pathv[i]) < 0)
				vc_trial_remove(found.gl_pathv[i]);
		}
	globfree(&found);
}

/* ---- all of them ---- */

VC_COMPARE(newest_first, struct vc_kept, VC_THEN(VC_ORDER(y->when, x->when), strcmp(x->id, y->id)))

int vc_kept_list(struct vc_kept **out, size_t *n, struct vc_error *err)
{
	char folder[512], pattern[600];
	glob_t found;

	*out = NULL;
	*n = 0;
	VC_TRY(vc_own_folder("runs", folder, sizeof(folder), err));
	snprintf(pattern, sizeof(pattern), "%s/????????????????.vct", folder);
	if (glob(pattern, 0, NULL, &found) == 0) {
		*out = calloc(found.gl_pathc, sizeof(**out));
		for (size_t i = 0; *out && i < found.gl_pathc; i++)
			*n += vc_kept_read(found.gl_pathv[i], false, &(*out)[*n]);
	}
	bool failed = found.gl_pathc && !*out;
	globfree(&found);
	VC_HAVE(!failed, "the runs that are kept", err);
	if (*n)
		vc_sort(*out, *n, sizeof(**out), newest_first);
	return VC_OK;
}

int vc_kept_find(const char *name, char path[VC_RERUN_PATH], struct vc_error *err)
{
	char folder[512], pattern[640];
	size_t n = strlen(name);
	glob_t found;
	bool several = false;

	snprintf(path, VC_RERUN_PATH, "%s", name);
	if (n < 4 || n > 16 || strspn(name, "0123456789abcdef") != n || !access(name, F_OK))
		return VC_OK;
	VC_TRY(vc_own_folder("runs", folder, sizeof(folder), err));
	snprintf(pattern, sizeof(pattern), "%s/%s*.vct", folder, name);
	if (glob(pattern, 0, NULL, &found) == 0) {
		several = found.gl_pathc > 1;
		snprintf(path, VC_RERUN_PATH, "%s", found.gl_pathv[0]);
	}
	globfree(&found);
	return several ? vc_fail(err, VC_EUSAGE, "%s: several runs of 'vramcast history' begin so",
				 name) : VC_OK;
}

/* ---- how much they may take ---- */

static int limit_file(char path[VC_RERUN_PATH], struct vc_error *err)
{
	char folder[512];

	VC_TRY(vc_own_folder("runs", folder, sizeof(folder), err));
	snprintf(path, VC_RERUN_PATH, "%s/limit", folder);
	return VC_OK;
}

int vc_kept_limit(uint64_t *most, struct vc_error *err)
{
	char path[VC_RERUN_PATH];
	FILE *f;

	*most = VC_KEPT_MOST;
	VC_TRY(limit_file(path, err));
	f = fopen(path, "r");
	if (f && fscanf(f, "%" SCNu64, most) != 1)
		*most = VC_KEPT_MOST;
	if (f)
		fclose(f);
	return VC_OK;
}

int vc_kept_set_limit(uint64_t most, struct vc_error *err)
{
	char path[VC_RERUN_PATH];
	FILE *f;

	VC_TRY(limit_file(path, err));
	f = fopen(path, "w");
	if (!f || fprintf(f, "%" PRIu64 "\n", most) < 0 || fclose(f))
		return vc_fail(err, VC_EIO, "cannot write %s: %s", path, strerror(errno));
	return VC_OK;
}

VC_COMPARE(longest_unused_first, struct vc_kept,
	   VC_THEN(VC_ORDER(x->last, y->last), strcmp(x->id, y->id)))

int vc_kept_prune(int64_t spare, struct vc_error *err)
{
	struct timespec now = { 0 };
	uint64_t most, bytes = 0;
	char file[VC_RERUN_PATH];
	struct vc_kept *k;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	VC_TRY(vc_kept_limit(&most, err));
	VC_TRY(vc_kept_list(&k, &n, err));
	for (size_t i = 0; i < n; i++)
		bytes += k[i].bytes;
	if (bytes > most)
		vc_sort(k, n, sizeof(*k), longest_unused_first);
	for (size_t i = 0; i < n && bytes > most && k[i].last <= now.tv_sec - spare; i++) {
		for (size_t e = 0; e < ENDINGS; e++) {
			vc_kept_beside(k[i].path, endings[e], file);
			unlink(file);
		}
		bytes -= k[i].bytes;
	}
	free(k);
	return VC_OK;
}
