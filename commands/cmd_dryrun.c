/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dryrun.c - vramcast dryrun: a program on a card that is not there. */
#define _GNU_SOURCE /* asprintf */
#include <sys/wait.h>
#include <unistd.h>

#include "common/opt.h"
#include "commands/cmd_dryrun_grid.h"
#include "commands/cmd_dryrun_run.h"
#include "commands/environments.h"
#include "commands/run_and_write.h"
#include "commands/null_libraries.h"
#include "commands/put.h"
#include "commands/own_program.h"
#include "commands/progress.h"
#include "common/vec.h"
#include "nullgpu/python.h"
#include "nullgpu/stage.h"

enum { MOST_RANKS = 1 << 20 };

#define AT(f) offsetof(struct vc_dryrun_config, f)
static const struct vc_option options[] = {
	{ 'g', "gpu", VC_O_LIST, AT(gpus), "NAME",
	  "the card to play ('vramcast gpus' lists them); several: cards of one class share a "
	  "run", NULL },
	{ 0, "card", VC_O_TEXT, AT(card), "FILE",
	  "go by what a card answered to probe --questions; in place of -g", NULL },
	{ 0, "questions", VC_O_FILE, AT(questions), "FILE",
	  "write what probe --questions may ask a card", NULL },
	{ 0, "capacity", VC_O_SIZE, AT(capacity), "SIZE",
	  "total memory of the device instead of the card's", NULL },
	{ 0, "used", VC_O_LIST, AT(used), "SIZE[@PID]",
	  "memory held by another process; may be repeated", NULL },
	{ 0, "context", VC_O_SIZE, AT(context), "SIZE",
	  "memory of this process outside the allocator (CUDA context, libraries)", NULL },
	{ 0, "devices", VC_O_UINT, AT(devices), "N",
	  "how many such cards the machine has [torchrun's count, else 1; with --world 8]", NULL },
	{ 0, "ranks", VC_O_UINT, AT(ranks), "N",
	  "start the script N times, one process a card, as torchrun does", NULL },
	{ 0, "world", VC_O_UINT, AT(world), "N",
	  "play one rank of a job of N ranks; the others do not run and are taken to do as it does",
	  NULL },
	{ 0, "rank", VC_O_UINT, AT(rank), "N", "which rank of --world is played", "0" },
	{ 0, "roles", VC_O_FLAG, AT(roles), NULL,
	  "play rank 0 of --world, then each rank that the job's own groups tell apart from it",
	  NULL },
	{ 0, "stages", VC_O_FLAG, AT(stages), NULL,
	  "of --roles: stages of the pipeline only, if there is one", NULL },
	{ 0, "until-oom", VC_O_FLAG, AT(until_oom), NULL,
	  "of --roles: the first that runs out of memory is the last", NULL },
	{ 0, "addresses", VC_O_TEXT, AT(addresses), "down|up|both",
	  "order of fresh device addresses: down as on Linux, up as on Windows; both: the larger "
	  "peak counts, by a replay of the recording, else by a second run (default: both, by "
	  "replay only)", NULL },
	{ 0, "margin", VC_O_FLAG, AT(margin), NULL,
	  "where it runs out of memory, run it once more with as much more as a dry run can be "
	  "off by; if it fits then, it is too close to call", NULL },
	{ 0, "again", VC_O_FLAG, AT(again), NULL,
	  "run what is known from an earlier run, too", NULL },
	{ 0, "steps", VC_O_UINT, AT(steps), "N",
	  "end the program after N steps of its optimizer", NULL },
	{ 0, "torch", VC_O_TEXT, AT(torch), "VERSION[,VERSION...]",
	  "run by the PyTorch of 'vramcast env VERSION', which is made where it is not there, with "
	  "the packages of PROGRAM behind it; or each", NULL },
	{ 0, "package", VC_O_LIST, AT(package), "NAME[=VERSION,...]",
	  "that version of a package, or each", NULL },
	{ 0, "conf", VC_O_LIST, AT(conf), "STRING",
	  "PYTORCH_CUDA_ALLOC_CONF; repeated: each", NULL },
	{ 0, "env", VC_O_LIST, AT(env), "NAME=VALUE[,...]",
	  "an environment variable, or each of its values", NULL },
	{ 0, "vary", VC_O_LIST, AT(vary), "KEY=VALUES",
	  "batch=4..8, lr=1,2: each in place of {batch} in the command line", NULL },
	{ 'j', "jobs", VC_O_JOBS, AT(jobs), "N", "runs at a time", "2" },
	{ 0, "json", VC_O_FLAG, AT(json), NULL,
	  "of several runs (vramcast.grid/1)", NULL },
	{ 0, "values", VC_O_TEXT, AT(values), "on|off",
	  "compute small tensors, so that decisions taken from them are right", "on" },
	{ 0, "expert-skew", VC_O_REAL, AT(expert_skew), "K",
	  "the first expert of --rank gets K times its share of the tokens; 0: find the K that "
	  "dies", "1" },
	{ 0, "host-weights", VC_O_TEXT, AT(host_weights), "real|untouched",
	  "untouched: what initialises large weights in the host's memory writes nothing, so "
	  "they take none of it", "real" },
	{ 0, "requests", VC_O_TEXT, AT(requests), "FILE",
	  "of a server: play this trace of requests (as of serve) when it is ready, then end it",
	  NULL },
	{ 0, "exit-code", VC_O_TEXT, AT(exit_code), "program|verdict",
	  "verdict: 3 where requests were refused, else the program's", "program" },
	{ 'o', "output", VC_O_FILE, AT(out), "FILE", "the trace to write", "vramcast.vct" },
	{ 0, "report", VC_O_FILE, AT(report), "FILE", "write the verdicts as JSON", NULL },
	{ 0, "param", VC_O_LIST, AT(params), "NAME=VALUE",
	  "what the program runs with (batch=8), kept in the trace", NULL },
	{ 0, "stacks", VC_O_TEXT, AT(stacks), "off|py|py:N|native",
	  "call stacks of allocations; py:N: Python's for N steps, then only of requests that "
	  "fail", "py" },
	{ 0, "max-size", VC_O_SIZE, AT(max_size), "SIZE",
	  "stop recording when the trace grows beyond this; the program runs on", NULL },
	{ 0, "keep", VC_O_TEXT, AT(keep.keep), "TIME|SIZE|Nsteps",
	  "as of record: keep the end of the recording only (time is the device's)", NULL },
	{ 0, "on-oom", VC_O_TEXT, AT(keep.on_oom), "dump|stop|continue", "as of record", NULL },
	{ 0, "when", VC_O_TEXT, AT(keep.when), "NAME>VALUE", "as of record", NULL },
	{ 0, "no-record", VC_O_FLAG, AT(no_record), NULL, "only the verdict, no trace", NULL },
	VC_OPTION_END
};

/* The command line with a NULL behind it. With --ranks, python SCRIPT becomes
 * python -m torch.distributed.run ... SCRIPT. */
static char **program_line(const struct vc_dryrun_config *c, const char *python, size_t *argc,
			   char **argv, char *count, size_t count_size)
{
	char **line = calloc(*argc + 8, sizeof *line);
	size_t n = 0, from = 0;
	if (!line)
		return NULL;
	if (c->ranks != VC_NOT_GIVEN) {
		snprintf(count, count_size, "--nproc-per-node=%llu", (unsigned long long)c->ranks);
		line[n++] = (char *)(uintptr_t)python;
		line[n++] = "-m";
		line[n++] = "torch.distributed.run";
		line[n++] = "--standalone";
		line[n++] = count;
		from = strcmp(python, argv[0]) == 0 || strstr(argv[0], "python") != NULL;
	}
	for (size_t i = from; i < *argc; i++)
		line[n++] = argv[i];
	*argc = n;
	return line;
}

static int check_world(const struct vc_dryrun_config *c, struct vc_error *err)
{
	if (!(c->expert_skew >= 1) && c->expert_skew != 0)
		return vc_fail(err, VC_EUSAGE, "--expert-skew goes from 1 (each expert as often), "
			       "0 looks for the one that dies, not %g", c->expert_skew);
	if (c->world == VC_NOT_GIVEN)
		return c->rank || c->roles ?
			       vc_fail(err, VC_EUSAGE, "--rank and --roles need --world N, the "
				       "number of ranks of the job") : 0;
	if (c->ranks != VC_NOT_GIVEN)
		return vc_fail(err, VC_EUSAGE, "--ranks starts all ranks and --world one of them: "
			       "leave one out");
	if (c->world < 2 || c->world > MOST_RANKS)
		return vc_fail(err, VC_EUSAGE, "--world goes from 2 to %d", MOST_RANKS);
	if (c->rank >= c->world)
		return vc_fail(err, VC_EUSAGE, "--rank %llu: a job of %llu ranks has 0 to %llu",
			       (unsigned long long)c->rank, (unsigned long long)c->world,
			       (unsigned long long)c->world - 1);
	if (c->roles && (c->rank || c->gpus.n > 1))
		return vc_fail(err, VC_EUSAGE,
			       "--roles finds the ranks itself, and takes one card");
	return 0;
}

static int check(const struct vc_dryrun_config *c, size_t argc, struct vc_error *err)
{
	const struct vc_card *card;
	uint64_t beside = 0;

	if (!c->gpus.n)
		return vc_fail(err, VC_EUSAGE,
			       "which card? try -g rtx4090 ('vramcast gpus' lists them)");
	if (!argc)
		return vc_fail(err, VC_EUSAGE, "which program? try -- python train.py");
	if ((c->devices != VC_NOT_GIVEN && (c->devices < 1 || c->devices > 16)) ||
	    (c->ranks != VC_NOT_GIVEN && (c->ranks < 1 || c->ranks > 16)))
		return vc_fail(err, VC_EUSAGE, "--devices and --ranks go from 1 to 16");
	VC_TRY(check_world(c, err));
	VC_TRY(vc_record_words(c->stacks, &c->params, err));
	VC_TRY(vc_record_keep(&c->keep, &(struct vc_drain_options){ 0 }, &(struct vc_watch){ 0 },
			      err));
	if (c->no_record && (c->keep.keep || c->keep.on_oom))
		return vc_fail(err, VC_EUSAGE, "--no-record makes no recording, and --keep "
			       "and --on-oom say what becomes of one: leave one out");
	if (c->capacity == 0)
		return vc_fail(err, VC_EUSAGE, "--capacity 0: a device has some memory (leave it "
			       "out for the card's own)");
	for (size_t i = 0; i < c->gpus.n; i++)
		if (vc_card_find(c->gpus.at[i], &card, err) < 0)
			return VC_EUSAGE;
	return vc_dryrun_others(&c->used, &beside, err);
}

/* ---- several cards ---- */

static int prepare_cards(const struct vc_dryrun_config *c, struct vc_dryrun *d,
			 struct vc_error *err)
{
	for (size_t i = 0; i < c->gpus.n; i++) {
		VC_TRY(vc_card_find(c->gpus.at[i], &d[i].card, err));
		VC_TRY(vc_dryrun_others(&c->used, &d[i].beside, err));
		d[i].total = c->capacity == VC_NOT_GIVEN ? d[i].card->total : c->capacity;
		d[i].context = c->context == VC_NOT_GIVEN ? d[i].card->context : c->context;
		d[i].world = c->world == VC_NOT_GIVEN ? 0 : c->world;
		d[i].rank = d[i].world ? c->rank : 0;
		d[i].skew = c->expert_skew;
	}
	return 0;
}

/* The next card to run: of those without an answer the one with the most memory. */
static struct vc_dryrun *next_card(struct vc_dryrun *d, size_t n)
{
	struct vc_dryrun *best = NULL;
	for (size_t i = 0; i < n; i++)
		if (!d[i].done &&
		    (!best || d[i].total - d[i].context > best->total - best->context))
			best = &d[i];
	return best;
}

/* Cards of one class differ in what they hold only: a run that stayed below the other's limit, and
 * could not notice the difference, is the other's run as well. */
static void answer_others(const struct vc_dryrun *done, struct vc_dryrun *d, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (d[i].done || !vc_dryrun_answers(done, &d[i]))
			continue;
		d[i].done = true;
		d[i].by = done->card;
		d[i].o = done->o;
	}
}

static int run_cards(const struct vc_dryrun_config *c, struct vc_stage *stage, struct vc_dryrun *d,
		     size_t argc, char **argv, struct vc_console *con)
{
	struct vc_dryrun *next;
	int rc = prepare_cards(c, d, &con->err), worst = 0;
	while (rc >= 0 && (next = next_card(d, c->gpus.n)) != NULL) {
		struct vc_dryrun_run r = { .cfg = c, .stage = stage, .d = next };
		rc = vc_dryrun_card(&r, argc, argv, con);
		if (rc > worst)
			worst = rc;
		if (rc >= 0)
			answer_others(next, d, c->gpus.n);
	}
	if (rc >= 0 && c->gpus.n > 1 && !con->quiet)
		vc_dryrun_say_table(d, c->gpus.n);
	if (rc >= 0 && c->report)
		rc = vc_dryrun_write(d, c->gpus.n, c->report, &con->err);
	return rc < 0 ? rc : worst;
}

static int run_role(const struct vc_dryrun_config *c, struct vc_stage *stage, struct vc_dryrun *d,
		    size_t argc, char **argv, struct vc_console *con)
{
	struct vc_dryrun_run r = { .cfg = c, .stage = stage, .d = d };
	free(d->out);
	d->out = NULL;
	return vc_dryrun_card(&r, argc, argv, con);
}

/* Those that were told something new since, or went by what nobody had told. */
static int run_again(const struct vc_dryrun_config *c, struct vc_stage *stage, struct vc_dryrun *d,
		     size_t n, size_t argc, char **argv, struct vc_console *con)
{
	int rc = 0, worst = 0;
	bool again = true;
	for (int round = 0; round < VC_DRYRUN_ROUNDS && again; round++) {
		again = false;
		for (size_t i = 0; rc >= 0 && i < n; i++) {
			bool first = round == 0 && vc_dryrun_ranks_decide(&d[i]);
			if ((d[i].o.code && d[i].o.refused) ||
			    (!first && !vc_world_stale(stage->dir, d[i].rank)))
				continue;
			d[i].first_steps = i ? d->o.steps : 0;
			rc = run_role(c, stage, &d[i], argc, argv, con);
			again = true;
		}
	}
	for (size_t i = 0; i < n; i++)
		if (vc_world_stale(stage->dir, d[i].rank))
			vc_dryrun_unsettled(&d[i].o);
	for (size_t i = 0; i < n; i++)
		worst = d[i].o.code > worst ? d[i].o.code : worst;
	return rc < 0 ? rc : worst;
}

/* Rank 0 tells which others are worth a run. */
static int run_roles(const struct vc_dryrun_config *c, struct vc_stage *stage, size_t argc,
		     char **argv, struct vc_console *con)
{
	char path[600];
	struct vc_role first = { .what = "" }, *roles = NULL;
	struct vc_dryrun *d = NULL;
	size_t n = 1, done = 0;
	bool ran_out = false;
	int rc = 0;
	snprintf(path, sizeof path, "%s/roles", stage->dir);
	for (size_t i = 0; rc >= 0 && i < n && !ran_out; i++) {
		const struct vc_role *role = roles ? &roles[i] : &first;
		VC_HAVE(vc_vec_one(d, done), "the ranks of a job", &con->err);
		d[done] = (struct vc_dryrun){ 0 };
		rc = prepare_cards(c, &d[done], &con->err);
		d[done].rank = role->rank;
		d[done].first_steps = i ? d->o.steps : 0;
		snprintf(d[done].role, sizeof d[done].role, "%s", role->what);
		done++;
		if (rc >= 0)
			rc = run_role(c, stage, &d[done - 1], argc, argv, con);
		if (rc >= 0 && i == 0)
			rc = vc_world_roles(path, &roles, &n, &con->err);
		n = n ? n : 1;
		ran_out = rc >= 0 && c->until_oom && vc_dryrun_verdict(&d[done - 1]) == VC_OOM;
	}
	if (rc >= 0 && !ran_out)
		rc = run_again(c, stage, d, done, argc, argv, con);
	if (rc >= 0 && !con->quiet)
		vc_dryrun_say_ranks(d, done);
	int written = rc >= 0 && c->report ? vc_dryrun_write(d, done, c->report, &con->err) : 0;
	for (size_t i = 0; i < done; i++)
		free(d[i].out);
	VC_FREE(d, roles);
	return written < 0 ? written : rc;
}

static int run_all(const struct vc_dryrun_config *c, const char *python, struct vc_stage *stage,
		   size_t argc, char **argv, struct vc_console *con)
{
	struct vc_dryrun *d = calloc(c->gpus.n, sizeof *d);
	char count[48], next[80];
	char **line = program_line(c, python, &argc, argv, count, sizeof count);
	int rc = line && d ? vc_dryrun_put_stage(c, stage, &con->err) :
			     vc_nomem(&con->err, "a command line");
	if (!rc)
		rc = c->roles ? run_roles(c, stage, argc, line, con) :
				run_cards(c, stage, d, argc, line, con);
	/* of that name several cards may be; not where record did not name the file */
	if (rc >= 0 && rc < 125 && c->gpus.n == 1 && strstr(con->next, c->out)) {
		snprintf(next, sizeof(next), " -g %s", c->gpus.at[0]);
		vc_next(con, "sim", c->out, next);
	}
	for (size_t i = 0; d && i < c->gpus.n; i++)
		free(d[i].out);
	VC_FREE(d, line);
	return rc;
}

/* The interpreter of the program, the folder of the package that it will import, and others. */
static int find_package(const char *program, char python[1024], char package[1024],
			char beside[8192], struct vc_error *err)
{
	int other = vc_python_find(program, python, 1024, err);

	if (other < 0)
		return other;
	if (vc_python_package(python, package, 1024, beside, 8192, err) < 0)
		return other ? vc_wrap(err, "%s is no Python program, and what it would start",
				       program) : (int)err->status;
	return 0;
}

/* Before the environment becomes that of the null GPU. word: the program as the user wrote it:
 * --torch takes another Python for it each time. */
static int describe(struct vc_dryrun_config *c, const struct vc_stage *stage, char *word,
		    size_t argc, char **argv, struct vc_error *err)
{
	struct vc_program *p;
	char *in_use = argv[0];
	int r;

	argv[0] = word;
	r = vc_dryrun_program(c, argc, argv, &p, err);
	argv[0] = in_use;

	snprintf(c->program, sizeof(c->program), "%s/what.program", stage->dir);
	if (r == VC_OK)
		r = vc_own_write(p, c->program, err);
	if (r == VC_OK && vc_own_remember(p, true, &(struct vc_error){ 0 }) < 0)
		r = VC_OK; /* no cache to write to: it will not be run again unasked */
	vc_program_free(p);
	return r;
}

/* 'vramcast env VERSION' by this very program; what it says goes to standard error. */
static int make_torch(const char *version, const char *ready, struct vc_error *err)
{
	pid_t pid = fork();

	if (pid == 0) {
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execl("/proc/self/exe", "vramcast", "env", version, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) < 0 || access(ready, R_OK))
		return vc_fail(err, VC_EUSAGE, "--torch %s: there is no such environment, and "
			       "'vramcast env %s' could not make it", version, version);
	return VC_OK;
}

/* --torch: another Python runs the script, and looks for packages where this one does, too. */
static int use_torch(const char *version, char **argv, char *python, size_t n, struct vc_error *err)
{
	const char *name = strrchr(argv[0], '/');
	char folder[VC_ENV_PATH], found[1024], sites[4096];

	if (strncmp(name ? name + 1 : argv[0], "python", 6) != 0)
		return vc_fail(err, VC_EUSAGE, "--torch %s: %s is no python; write -- python "
			       "SCRIPT", version, argv[0]);
	VC_TRY(vc_env_folder(version, folder, err));
	snprintf(found, sizeof(found), "%s/ready", folder);
	if (access(found, R_OK))
		VC_TRY(make_torch(version, found, err));
	VC_TRY(vc_python_find(argv[0], found, sizeof(found), err));
	VC_TRY(vc_python_sites(found, sites, sizeof(sites), err));
	VC_TRY(vc_put("VRAMCAST_BEHIND", sites, err));
	snprintf(python, n, "%s/bin/python", folder);
	argv[0] = python;
	return VC_OK;
}

static int dryrun(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	struct vc_dryrun_cudnn cudnn = { 0 };
	struct vc_dryrun_config own = *(const struct vc_dryrun_config *)config;
	const struct vc_dryrun_config *c = &own;
	char python[1024], package[1024], beside[8192], libraries[1100], own_python[700];
	struct vc_stage stage = { 0 };
	struct vc_dryrun_server server = { stage.dir, c->requests, python, "", "" };
	own.cudnn = &cudnn;
	if (own.devices == VC_NOT_GIVEN && own.ranks == VC_NOT_GIVEN && own.world == VC_NOT_GIVEN)
		own.devices = vc_dryrun_launched(argc, argv);
	int rc = vc_dryrun_by_card(&own, &con->err);
	if (!rc)
		rc = check(c, argc, &con->err);
	if (!rc && vc_dryrun_is_grid(c))
		return vc_dryrun_grid(c, argc, argv, con);
	char *own_word = argc ? argv[0] : NULL;
	if (!rc && c->torch)
		rc = use_torch(c->torch, argv, own_python, sizeof(own_python), &con->err);
	if (!rc)
		vc_remark_cards(&c->gpus, con);
	if (!rc && c->ranks == VC_NOT_GIVEN && vc_python_program(argv[0], &con->err) < 0) {
		fprintf(stderr, "vramcast dryrun: %s\n", con->err.message);
		return 127; /* as the shell has it */
	}
	struct vc_progress *line = vc_progress_open(con); /* later the terminal is the program's */
	vc_progress_say(line, "the stand-ins for CUDA's libraries are made ready");
	if (!rc)
		rc = vc_null_libraries(libraries, sizeof libraries, &con->err);
	if (!rc)
		rc = find_package(argv[0], python, package, beside, &con->err);
	if (!rc)
		rc = vc_stage_open(&stage, package, beside, libraries, &con->err);
	int version = rc ? 0 : vc_python_cudnn(package);
	if (version)
		rc = vc_put_number("VRAMCAST_NULL_CUDNN", (uint64_t)version, &con->err);
	if (!rc)
		rc = vc_dryrun_cudnn(&cudnn, libraries, package, &con->err);
	vc_progress_close(line);
	if (!rc && stage.missing[0])
		fprintf(stderr, "vramcast: this PyTorch or a package beside it wants more than the "
			"null GPU knows, and there is no compiler (cc) to help; it may not start. "
			"Missing: %s\n", stage.missing);
	if (!rc && stage.stubs_made && con->verbose)
		fprintf(stderr, "vramcast: %d functions that this PyTorch or a package beside it "
			"wants were made on the spot\n", stage.stubs_made);
	if (!rc)
		rc = describe(&own, &stage, own_word, argc, argv, &con->err);
	char **filled = rc ? NULL : vc_own_fill(argc, argv, &c->params, &con->err), **served = NULL;
	if (!rc)
		rc = filled ? vc_dryrun_until_ready(&server, &argc, filled, &served, &con->err) :
			      VC_ENOMEM;
	if (!rc)
		rc = run_all(c, python, &stage, argc, served ? served : filled, con);
	free(served);
	vc_own_free(filled);
	vc_stage_close(&stage);
	return rc;
}

const struct vc_command vc_command_dryrun = {
	.name = "dryrun", .operands = "[--] PROGRAM [ARG]...",
	.summary = "run a program on a card that is not there, and record it",
	.details =
		"Runs an unmodified training script with a CUDA build of PyTorch (or JAX, or "
		"TensorFlow)\non a stand-in for the CUDA stack: device memory is accounted against "
		"the chosen card,\nkernels do nothing, and the framework's own allocator decides "
		"everything. The exit code\nis the program's. vllm serve and sglang serve end "
		"when ready.",
	.options = VC_OPTIONS(options), .config_size = sizeof(struct vc_dryrun_config),
	.flags = VC_CMD_PASSTHROUGH, .run = dryrun,
};
