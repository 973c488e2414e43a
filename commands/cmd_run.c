/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_run.c - vramcast run: a program with an allocator that serves its requests from a plan. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <unistd.h>

#include "commands/budget_file.h"
#include "commands/plan_file.h"
#include "commands/put.h"
#include "commands/run_fit.h"
#include "commands/run_start.h"
#include "common/emit.h"
#include "common/opt.h"
#include "simulator/packing/sequence.h"
#include "tracer/process.h"

struct config {
	const char *plan, *learn, *gpu, *choice;
	uint64_t effort, capacity, steps;
	bool check, fit, anyway;
};

#define AT(f) offsetof(struct config, f)
static const struct vc_option options[] = {
	{ 0, "plan", VC_O_TEXT, AT(plan), "FILE",
	  "the placement to use ('vramcast plan'); a rank takes FILE.rankN.vcp where that is there",
	  NULL },
	{ 0, "learn", VC_O_FILE, AT(learn), "FILE",
	  "write the placement that this run would have needed; further processes get .PID", NULL },
	{ 0, "effort", VC_O_UINT, AT(effort), "N", "of --learn, as with 'vramcast plan'", "15" },
	{ 0, "check", VC_O_FLAG, AT(check), NULL,
	  "check at each request, by a second account, that no place is given out twice (slow)",
	  NULL },
	{ 0, "fit", VC_O_FLAG, AT(fit), NULL,
	  "change it from outside so that it fits the card: settings, layers computed twice",
	  NULL },
	{ 'g', "gpu", VC_O_TEXT, AT(gpu), "NAME", "the card of --fit", NULL },
	{ 0, "capacity", VC_O_SIZE, AT(capacity), "SIZE", "its memory, where it is another",
	  NULL },
	{ 0, "steps", VC_O_UINT, AT(steps), "N", "steps of the optimizer in trial runs of --fit",
	  "3" },
	{ 0, "choice", VC_O_TEXT, AT(choice), "FILE",
	  "do with modules what 'fit --find budget --save FILE' chose", NULL },
	{ 0, "anyway", VC_O_FLAG, AT(anyway), NULL,
	  "with --fit: start it as it is where nothing helps", NULL },
	VC_OPTION_END
};

struct report {
	uint64_t requests, served, differs, occupied, left, jumps, arena, overlaps;
	int refused, checked;
};

static int check_plan(const char *path, char real[4096], struct vc_error *err)
{
	struct vc_memory_plan plan;
	FILE *from = fopen(path, "r");
	int r;

	if (!from || !realpath(path, real)) {
		r = vc_fail(err, VC_EIO, "%s: %s", path, strerror(errno));
		if (from)
			fclose(from);
		return r;
	}
	r = vc_memory_plan_read(&plan, from, path, err);
	fclose(from);
	vc_memory_plan_fini(&plan);
	return r;
}

static int prepare(const struct config *c, const char *dir, struct vc_error *err)
{
	char plan[4096], *library;
	int r;

	if (c->plan) {
		VC_TRY(check_plan(c->plan, plan, err));
		VC_TRY(vc_put("VRAMCAST_PLAN", plan, err));
	}
	if (c->learn)
		VC_TRY(vc_put("VRAMCAST_PLAN_LEARN", "1", err));
	if (c->check)
		VC_TRY(vc_put("VRAMCAST_PLAN_CHECK", "1", err));
	VC_TRY(vc_put("VRAMCAST_PLAN_DIR", dir, err));
	library = vc_process_find("libvramcast_plan.so", err);
	if (!library)
		return VC_EIO;
	r = vc_put("VRAMCAST_PLAN_LIBRARY", library, err);
	if (r == VC_OK && vc_process_preload(library) < 0)
		r = vc_nomem(err, "the environment");
	free(library);
	return r;
}

/* ---- afterwards ---- */

static void say(const char *path, const char *pid)
{
	struct report r = { 0 };
	FILE *f = fopen(path, "r");
	char t[32];
	int n = !f ? 0 :
		fscanf(f, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		       " %" SCNu64 " %d %" SCNu64 " %d", &r.requests, &r.served, &r.differs,
		       &r.occupied, &r.left, &r.jumps, &r.arena, &r.refused, &r.overlaps,
		       &r.checked);

	if (f)
		fclose(f);
	if (n != 10 || !r.requests)
		return;
	fprintf(stderr, "vramcast: process %s: %" PRIu64 " of %" PRIu64 " requests served from the "
		"placement, in one arena of %s\n", pid, r.served, r.requests,
		vc_bytes_text(r.arena, t));
	if (r.served < r.requests)
		fprintf(stderr, "  the others by PyTorch's allocator: %" PRIu64 " differ from the "
			"placement, of %" PRIu64 " the place was not free, %" PRIu64
			" have none; the thread was found again %" PRIu64 " times\n", r.differs,
			r.occupied, r.left, r.jumps);
	if (r.refused)
		fprintf(stderr, "  the device had no room for the arena: all went to PyTorch's "
			"allocator\n");
	if (r.checked)
		fprintf(stderr, "  checked: %" PRIu64 " places given out twice\n", r.overlaps);
}

static int learn_from(const char *ops, const char *out, uint64_t effort, struct vc_error *err)
{
	struct vc_source *s = vc_source_open(ops, err);
	struct vc_trace t = { 0 };
	struct vc_planned p = { 0 };
	char size[32];
	int r = s ? vc_trace_read(&t, s, err) : (int)err->status;

	vc_source_free(s);
	if (r == VC_OK)
		r = vc_sequence_plan(&t, 0, effort, &p, err);
	if (r == VC_OK)
		r = vc_plan_file_write(&p.plan, out, err);
	if (r == VC_OK)
		fprintf(stderr, "vramcast: %s: %" PRIu64 " requests, an arena of %s%s\n", out,
			p.requests, vc_bytes_text(p.plan.arena, size),
			p.plan.last ? ", one step repeated" : "");
	vc_planned_fini(&p);
	vc_trace_fini(&t);
	return r;
}

/* Reports and logs that processes left, one each; the first log gets the plain name. */
static int collect(const struct config *c, const char *dir, struct vc_error *err)
{
	char path[4400], out[4400];
	struct dirent *e;
	DIR *d = opendir(dir);
	int learned = 0, r = VC_OK;

	while (d && (e = readdir(d))) {
		char *dot = strrchr(e->d_name, '.');

		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (e->d_name[0] == '.' || !dot)
			continue;
		*dot = '\0';
		if (!strcmp(dot + 1, "report"))
			say(path, e->d_name);
		snprintf(out, sizeof(out), learned ? "%s.%s" : "%s", c->learn, e->d_name);
		if (!strcmp(dot + 1, "ops") && c->learn && r == VC_OK) {
			r = learn_from(path, out, c->effort, err);
			learned++;
		}
		unlink(path);
	}
	if (d)
		closedir(d);
	rmdir(dir);
	if (c->learn && !learned && r == VC_OK)
		fprintf(stderr, "vramcast: nothing was learned: no process of this run used the "
			"allocator of a PyTorch that is known\n");
	return r;
}

static int run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *c = config;
	const char *parent = getenv("TMPDIR");
	char dir[512];
	int code, r, n;

	if (c->fit && (c->plan || c->learn))
		return vc_fail(&con->err, VC_EUSAGE, "--fit excludes --plan and --learn");
	if (c->choice && (c->fit || c->plan || c->learn))
		return vc_fail(&con->err, VC_EUSAGE, "--choice excludes --fit, --plan and --learn");
	if (c->choice && argc)
		return vc_budget_run(c->choice, argc, argv, &con->err);
	if (c->fit && argc)
		return vc_run_fit(&(struct vc_run_fit_ask){ c->gpu, c->capacity, c->steps,
							    c->anyway }, argc, argv, con);
	if (!argc || (!c->plan && !c->learn))
		return vc_fail(&con->err, VC_EUSAGE, "run wants --plan FILE, --learn FILE, "
			       "--choice FILE or --fit, and a program: vramcast run --plan "
			       "train.vcp -- python train.py");
	n = snprintf(dir, sizeof(dir), "%s/vramcast-run-%s",
		     parent && *parent ? parent : P_tmpdir, "XX" "XX" "XX");
	if (n >= (int)sizeof(dir))
		return vc_fail(&con->err, VC_EIO, "the folder for temporary files has a path of "
			       "more than %zu bytes; set TMPDIR to a shorter one", sizeof(dir));
	if (!mkdtemp(dir))
		return vc_fail(&con->err, VC_EIO, "cannot make a folder in %s: %s; set TMPDIR to "
			       "one that can be written", parent && *parent ? parent : P_tmpdir,
			       strerror(errno));
	code = prepare(c, dir, &con->err);
	if (code < 0) {
		rmdir(dir);
		return code;
	}
	code = vc_run_start(argv, argc, &con->err);
	r = collect(c, dir, &con->err);
	return code < 0 ? code : r < 0 ? r : code;
}

const struct vc_command vc_command_run = {
	.name = "run", .operands = "[--] PROGRAM [ARG]...",
	.summary = "run a program with its blocks where a placement puts them",
	.details =
		"Each request of PyTorch's CUDA allocator that comes as placed is served from one "
		"arena. Everything\nelse goes to PyTorch's own allocator: another size or stream, "
		"requests in private pools (CUDA graphs),\na place that is not free. The "
		"exit code is the program's.\n\n"
		"  vramcast record -o train.vct -- python train.py\n"
		"  vramcast plan train.vct -o train.vcp\n"
		"  vramcast run --plan train.vcp -- python train.py\n"
		"  vramcast run --plan train.vcp -- vramcast dryrun -g rtx4090 -- python train.py\n"
		"\n"
		"With --fit it makes a few dry runs first and starts the program with what makes "
		"it fit at the least time.\nNothing of it changes results. It says what it "
		"changed, and "
		"how to make it permanent.\n\n"
		"  vramcast run --fit -g rtx4090 -- python train.py",
	.options = VC_OPTIONS(options),
	.config_size = sizeof(struct config), .flags = VC_CMD_PASSTHROUGH,
	.run = run,
};
