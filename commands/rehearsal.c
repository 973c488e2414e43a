/* SPDX-License-Identifier: Apache-2.0 */
/* rehearsal.c - see rehearsal.h */
#define _GNU_SOURCE
#include "commands/rehearsal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* ---- the run ---- */

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
	const struct vc_hook hook = { .folder = h->folder, .recompute = h->recompute };
	char log[340], *kept = before ? strdup(before) : NULL;
	int r;

	*out = (struct vc_rehearsed){ .code = -1 };
	snprintf(out->path, sizeof(out->path), "%.200s/trial-%u.vct", h->folder, n);
	snprintf(log, sizeof(log), "%s.log", out->path);
	r = h->conf && setenv("PYTORCH_CUDA_ALLOC_CONF", h->conf, 1) < 0 ?
		    vc_nomem(err, "the environment") : VC_OK;
	vc_progress_say(h->progress, "trial run of the program on %s, with %s%s", h->gpu,
			h->recompute ? "layers computed twice" : h->conf && *h->conf ? h->conf :
			h->capacity && n == 0 ? "memory for all of it" : "nothing changed",
			h->recompute && h->conf && *h->conf ? " and other settings" : "");
	if (r == VC_OK)
		r = vc_trial_run(&(struct vc_trial){ .verb = "dryrun", .gpu = h->gpu,
				 .capacity = h->capacity, .steps = h->steps, .argv = h->argv,
				 .argc = h->argc, .hook = h->recompute ? &hook : NULL,
				 .progress = h->progress }, out->path, &out->code, err);
	vc_progress_say(h->progress, "what the trial run recorded is replayed");
	vc_hook_read(h->folder, &out->hook);
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
	if (!why[0] && r == VC_OK && (!ran.hook.applied || ran.hook.odd))
		snprintf(why, n, "the program calls %llu modules where the recording shows %zu "
			 "layers", (unsigned long long)ran.hook.calls, c.n);
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
