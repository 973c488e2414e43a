/* SPDX-License-Identifier: Apache-2.0 */
/* rehearsal.c - see rehearsal.h */
#define _GNU_SOURCE
#include "commands/rehearsal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands/trial.h"
#include "simulator/search/recompute_words.h"
#include "simulator/session/session.h"

enum { SPEC = 1 << 14, LOOK = 99 }; /* bytes of a choice; the number of a trial run */

/* ---- folders ---- */

int vc_rehearsal_folder(char *path, struct vc_error *err)
{
	const char *parent = getenv("TMPDIR");

	snprintf(path, 200, "%.150s/vramcast-fit-%s", parent && *parent ? parent : "/tmp",
		 "XX" "XX" "XX");
	return mkdtemp(path) ? VC_OK : vc_fail(err, VC_EIO, "cannot make a folder for the trial "
					       "runs in %s: %s", parent && *parent ? parent :
					       "/tmp", strerror(errno));
}

void vc_rehearsal_remove(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	char at[600];

	while (d && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(at, sizeof(at), "%.300s/%.255s", path, e->d_name);
		if (unlink(at) < 0 && (errno == EISDIR || errno == EPERM))
			vc_rehearsal_remove(at);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

/* ---- the hook ---- */

static int write_hook(const char *dir, struct vc_error *err)
{
	char path[400];
	int fd;

	snprintf(path, sizeof(path), "%.300s/sitecustomize.py", dir);
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

int vc_hook_set(const char *folder, const char *recompute, struct vc_error *err)
{
	char dir[320], report[320], *text;
	const char *before = getenv("PYTHONPATH");
	int r;

	if (!recompute) {
		unsetenv("VRAMCAST_RECOMPUTE");
		unsetenv("VRAMCAST_RECOMPUTE_REPORT");
		return VC_OK;
	}
	snprintf(dir, sizeof(dir), "%.200s/hook", folder);
	VC_TRY(write_hook(dir, err));
	snprintf(report, sizeof(report), "%.200s/hooked", folder);
	if (setenv("VRAMCAST_RECOMPUTE", recompute, 1) < 0 ||
	    setenv("VRAMCAST_RECOMPUTE_REPORT", report, 1) < 0)
		return vc_nomem(err, "the environment");
	if (before && !strncmp(before, dir, strlen(dir)))
		return VC_OK;
	if (asprintf(&text, "%s%s%s", dir, before && *before ? ":" : "", before ? before : "") < 0)
		return vc_nomem(err, "the environment");
	r = setenv("PYTHONPATH", text, 1);
	free(text);
	return r < 0 ? vc_nomem(err, "the environment") : VC_OK;
}

/* ---- the run ---- */

/* What the hook says it did: of several processes the one that did most. */
void vc_hook_read(const char *folder, struct vc_rehearsed *out)
{
	struct dirent *e;
	DIR *d = opendir(folder);
	char path[600];

	while (d && (e = readdir(d))) {
		unsigned long long done = 0, odd = 0, calls = 0;
		char names[200] = "";
		FILE *f;

		if (strncmp(e->d_name, "hooked.", 7))
			continue;
		snprintf(path, sizeof(path), "%.300s/%.255s", folder, e->d_name);
		f = fopen(path, "r");
		if (f && fscanf(f, "%llu %llu %llu %199s", &done, &odd, &calls, names) == 4 &&
		    calls >= out->calls) {
			out->applied = done;
			out->odd = odd;
			out->calls = calls;
			memcpy(out->classes, names, sizeof(out->classes));
		}
		if (f)
			fclose(f);
		unlink(path);
	}
	if (d)
		closedir(d);
}

static int read_back(struct vc_rehearsed *out, struct vc_error *err)
{
	struct vc_run_options opt = vc_run_options_none();
	struct vc_session s;
	struct vc_result r;
	int rc = vc_session_open_one(&s, &opt, out->path, VC_SESSION_IN_MEMORY, err);

	if (rc == VC_OK)
		rc = vc_job_follow(s.rec, s.rec->torch, NULL, &r, err);
	if (rc == VC_OK) {
		out->reserved = r.stats.peak_reserved;
		out->flushes = r.stats.flushes;
		out->ooms = r.stats.ooms > 0;
		vc_result_fini(&r);
	}
	vc_session_close(&s);
	return rc;
}

int vc_rehearse(const struct vc_rehearsal *h, unsigned n, struct vc_rehearsed *out,
		struct vc_error *err)
{
	const char *before = getenv("PYTORCH_CUDA_ALLOC_CONF");
	char log[340], *kept = before ? strdup(before) : NULL;
	int r;

	*out = (struct vc_rehearsed){ .code = -1 };
	snprintf(out->path, sizeof(out->path), "%.200s/trial-%u.vct", h->folder, n);
	snprintf(log, sizeof(log), "%s.log", out->path);
	r = vc_hook_set(h->folder, h->recompute, err);
	if (r == VC_OK && h->conf && setenv("PYTORCH_CUDA_ALLOC_CONF", h->conf, 1) < 0)
		r = vc_nomem(err, "the environment");
	vc_progress_say(h->progress, "trial run of the program on %s, with %s%s", h->gpu,
			h->recompute ? "layers computed twice" : h->conf && *h->conf ? h->conf :
			h->capacity && n == 0 ? "memory for all of it" : "nothing changed",
			h->recompute && h->conf && *h->conf ? " and other settings" : "");
	if (r == VC_OK)
		r = vc_trial_run(&(struct vc_trial){ .verb = "dryrun", .gpu = h->gpu,
				 .capacity = h->capacity, .steps = h->steps, .argv = h->argv,
				 .argc = h->argc, .progress = h->progress }, out->path, &out->code,
				 err);
	vc_progress_say(h->progress, "what the trial run recorded is replayed");
	vc_hook_set(h->folder, NULL, err);
	vc_hook_read(h->folder, out);
	if (h->conf && kept)
		setenv("PYTORCH_CUDA_ALLOC_CONF", kept, 1);
	else if (h->conf)
		unsetenv("PYTORCH_CUDA_ALLOC_CONF");
	free(kept);
	VC_TRY(r);
	if (!vc_trial_recorded(out->path)) {
		vc_trial_show(log, h->progress);
		return vc_fail(err, VC_EIO, "a trial run of the program left no recording (it "
			       "ended with code %d); try 'vramcast dryrun -g %s -- ...' by hand",
			       out->code, h->gpu);
	}
	VC_TRY(read_back(out, err));
	if (out->code && !out->ooms) {
		vc_trial_show(log, h->progress);
		return vc_fail(err, VC_EIO, "a trial run of the program ended with code %d",
			       out->code);
	}
	return VC_OK;
}

int vc_rehearse_whole(struct vc_rehearsal *h, const struct vc_run_options *opt, char *folder,
		      struct vc_rehearsed *out, struct vc_error *err)
{
	folder[0] = '\0';
	if (opt->gpu.n != 1)
		return vc_fail(err, VC_EUSAGE, "a dry run plays a card: say which one with -g");
	h->gpu = opt->gpu.at[0];
	h->folder = folder;
	VC_TRY(vc_rehearsal_folder(folder, err));
	h->capacity = "1TiB"; /* that it runs out is known; what it needs is not */
	return vc_rehearse(h, 0, out, err);
}

int vc_rehearse_layers(struct vc_rehearsal *h, const struct vc_session *s,
		       const struct vc_plan *plan, char *why, size_t n, struct vc_error *err)
{
	struct vc_layer_costs c;
	struct vc_rehearsed ran;
	bool take[VC_LAYERS_MOST];
	char *spec = malloc(SPEC);
	int r = spec ? vc_layer_costs_read(&c, s, plan, err) : vc_nomem(err, "a choice of layers");

	why[0] = '\0';
	memset(take, 1, sizeof(take));
	if (r < 0) {
		free(spec);
		return r;
	}
	if (!vc_recompute_spec_of(&c, s->rec->meta, take, spec, SPEC)) {
		snprintf(why, n, "which modules the layers are is not known from outside of the "
			 "program");
	} else {
		h->recompute = spec;
		r = vc_rehearse(h, LOOK, &ran, err);
		h->recompute = NULL;
	}
	if (!why[0] && r == VC_OK && (!ran.applied || ran.odd))
		snprintf(why, n, "the program calls %llu modules where the recording shows %zu "
			 "layers", (unsigned long long)ran.calls, c.n);
	if (!why[0] && r == VC_OK)
		snprintf(h->seen, sizeof(h->seen), "%s", ran.path);
	vc_layer_costs_fini(&c);
	free(spec);
	return r;
}

void vc_rehearse_on(struct vc_rehearsal *h, const struct vc_run_options *opt)
{
	snprintf(h->room, sizeof(h->room), "%llu", (unsigned long long)opt->capacity);
	h->capacity = opt->capacity != VC_NOT_GIVEN ? h->room : NULL;
}

bool vc_is_program(size_t argc, char *const *argv)
{
	char path[4096];

	if (argc > 1 || !strcmp(argv[0], "-"))
		return argc > 1;
	snprintf(path, sizeof(path), "%s", argv[0]);
	if (access(path, F_OK) < 0 && strrchr(path, '@'))
		*strrchr(path, '@') = '\0'; /* TRACE@batch=8 */
	return access(path, R_OK) < 0 || access(path, X_OK) == 0;
}
