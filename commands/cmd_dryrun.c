/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dryrun.c - vramcast dryrun: a program on a card that is not there. */
#define _GNU_SOURCE /* asprintf */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/opt.h"
#include "common/param.h"
#include "commands/cmd_dryrun.h"
#include "commands/null_libraries.h"
#include "commands/record_keep.h"
#include "commands/run_and_write.h"
#include "common/vec.h"
#include "nullgpu/python.h"
#include "nullgpu/stage.h"
#include "tracer/process.h"

enum { MOST_RANKS = 1 << 20 };

struct config {
	struct vc_list gpus, params, used;
	uint64_t capacity, context, devices, ranks, world, rank, steps, max_size;
	const char *out, *report, *stacks, *addresses, *values, *exit_code, *host_weights;
	struct vc_record_keep keep;
	bool no_record, roles, again;
	struct vc_dryrun_cudnn *cudnn; /* no option: where it was found */
};

#define AT(f) offsetof(struct config, f)
static const struct vc_option options[] = {
	{ 'g', "gpu", VC_O_LIST, AT(gpus), "NAME",
	  "the card to play ('vramcast gpus' lists them); several: cards of one class share a "
	  "run", NULL },
	{ 0, "capacity", VC_O_SIZE, AT(capacity), "SIZE",
	  "total memory of the device instead of the card's", NULL },
	{ 0, "used", VC_O_LIST, AT(used), "SIZE[@PID]",
	  "memory held by another process; may be repeated", NULL },
	{ 0, "context", VC_O_SIZE, AT(context), "SIZE",
	  "memory of this process outside the allocator (CUDA context, libraries)", NULL },
	{ 0, "devices", VC_O_UINT, AT(devices), "N",
	  "how many such cards the machine has [1; with --world 8]", NULL },
	{ 0, "ranks", VC_O_UINT, AT(ranks), "N",
	  "start the script N times, one process a card, as torchrun does", NULL },
	{ 0, "world", VC_O_UINT, AT(world), "N",
	  "play one rank of a job of N ranks; the others do not run and are taken to do as it does",
	  NULL },
	{ 0, "rank", VC_O_UINT, AT(rank), "N", "which rank of --world is played", "0" },
	{ 0, "roles", VC_O_FLAG, AT(roles), NULL,
	  "play rank 0 of --world, then each rank that the job's own groups tell apart from it",
	  NULL },
	{ 0, "addresses", VC_O_TEXT, AT(addresses), "down|up|both",
	  "order of fresh device addresses: down as on Linux, up as on Windows; both: the larger "
	  "peak counts, by a replay of the recording, else by a second run (default: both, by "
	  "replay only)", NULL },
	{ 0, "again", VC_O_FLAG, AT(again), NULL,
	  "where it runs out of memory, run it once more with as much more as a dry run can be "
	  "off by; if it fits then, it is too close to call", NULL },
	{ 0, "steps", VC_O_UINT, AT(steps), "N",
	  "end the program after N steps of its optimizer", NULL },
	{ 0, "values", VC_O_TEXT, AT(values), "on|off",
	  "compute small tensors, so that decisions taken from them are right", "on" },
	{ 0, "host-weights", VC_O_TEXT, AT(host_weights), "real|untouched",
	  "untouched: what initialises large weights in the host's memory writes nothing, so "
	  "they take none of it", "real" },
	{ 0, "exit-code", VC_O_TEXT, AT(exit_code), "program|verdict",
	  "verdict: 3 where requests were refused, else the program's", "program" },
	{ 'o', "output", VC_O_TEXT, AT(out), "FILE", "the trace to write", "vramcast.vct" },
	{ 0, "report", VC_O_TEXT, AT(report), "FILE", "write the verdicts as JSON", NULL },
	{ 0, "param", VC_O_LIST, AT(params), "NAME=VALUE",
	  "what the program runs with (batch=8), kept in the trace", NULL },
	{ 0, "stacks", VC_O_TEXT, AT(stacks), "off|py|py:N|native",
	  "call stacks of allocations; py:N: Python's for N steps, then only of requests that "
	  "fail", "off" },
	{ 0, "max-size", VC_O_SIZE, AT(max_size), "SIZE",
	  "stop recording when the trace grows beyond this; the program runs on", NULL },
	{ 0, "keep", VC_O_TEXT, AT(keep.keep), "TIME|SIZE|Nsteps",
	  "as of record: keep the end of the recording only (time is the device's)", NULL },
	{ 0, "on-oom", VC_O_TEXT, AT(keep.on_oom), "dump|stop|continue", "as of record", NULL },
	{ 0, "when", VC_O_TEXT, AT(keep.when), "NAME>VALUE", "as of record", NULL },
	{ 0, "no-record", VC_O_FLAG, AT(no_record), NULL, "only the verdict, no trace", NULL },
	VC_OPTION_END
};
static const struct vc_option *const tables[] = { options, NULL };

struct run {
	const struct config *cfg;
	struct vc_stage *stage;
	struct vc_dryrun *d;
};

/* ---- where things are ---- */

/* ---- environment of the program ---- */

static int put_size(const char *name, uint64_t v, struct vc_error *err)
{
	char text[32];
	snprintf(text, sizeof text, "%llu", (unsigned long long)v);
	return setenv(name, text, 1) < 0 ? vc_nomem(err, name) : 0;
}

/* NAME=first:what was there */
static int put_front(const char *name, const char *first, struct vc_error *err)
{
	const char *before = getenv(name);
	char *text;
	int n = asprintf(&text, "%s%s%s", first, before && *before ? ":" : "",
			 before ? before : "");
	if (n < 0 || setenv(name, text, 1) < 0)
		return vc_nomem(err, name);
	free(text);
	return 0;
}

static uint64_t devices_of(const struct config *c)
{
	uint64_t one = c->ranks == VC_NOT_GIVEN ? 1 : c->ranks; /* each rank has its own */
	if (c->devices != VC_NOT_GIVEN)
		return c->devices > one ? c->devices : one;
	return c->world == VC_NOT_GIVEN ? one : c->world < 8 ? c->world : 8;
}

static const struct {
	const char *variable;
	enum vc_card_rate rate;
} rates[] = {
	{ "VRAMCAST_NULL_FLOPS", VC_RATE_FP32 }, { "VRAMCAST_NULL_FLOPS_TF32", VC_RATE_TF32 },
	{ "VRAMCAST_NULL_FLOPS_FP16", VC_RATE_FP16 }, { "VRAMCAST_NULL_FLOPS_BF16", VC_RATE_BF16 },
	{ "VRAMCAST_NULL_FLOPS_FP8", VC_RATE_FP8 }, { "VRAMCAST_NULL_FLOPS_FP64", VC_RATE_FP64 },
};

static int put_card(const struct run *r, struct vc_error *err)
{
	const struct config *c = r->cfg;
	/* drivers put the maker in front of the names of all but the Tesla cards; what stands in
	 * brackets is a remark of ours */
	const char *title = r->d->card->title, *maker = strncmp(title, "Tesla", 5) ? "NVIDIA " : "";
	char cc[16], name[96];
	snprintf(cc, sizeof cc, "%d.%d", r->d->card->cc_major, r->d->card->cc_minor);
	snprintf(name, sizeof name, "%s%.*s", strncmp(title, "NVIDIA", 6) ? maker : "",
		 (int)(strcspn(title, "(") - (strchr(title, '(') != NULL)), title);
	if (setenv("VRAMCAST_NULL_NAME", name, 1) < 0 ||
	    setenv("VRAMCAST_NULL_CC", cc, 1) < 0 ||
	    setenv("VRAMCAST_NULL_CLOCK", c->no_record ? "wall" : "device", 1) < 0 ||
	    setenv("VRAMCAST_NULL_REPORT", r->stage->dir, 1) < 0)
		return vc_nomem(err, "the environment");
	int rc = put_size("VRAMCAST_NULL_TOTAL", r->d->total, err);
	if (!rc)
		rc = put_size("VRAMCAST_NULL_CONTEXT", r->d->context, err);
	if (!rc)
		rc = put_size("VRAMCAST_NULL_BOARD",
			      c->capacity == VC_NOT_GIVEN ? (uint64_t)r->d->card->smi_mib << 20 : 0,
			      err);
	if (!rc)
		rc = put_size("VRAMCAST_NULL_SMS", r->d->card->sms, err);
	if (!rc)
		rc = put_size("VRAMCAST_NULL_DEVICES", devices_of(c), err);
	if (!rc)
		rc = put_size("VRAMCAST_NULL_BANDWIDTH",
			      (uint64_t)(r->d->card->bandwidth_gbs * 1e9), err);
	for (size_t i = 0; !rc && i < sizeof rates / sizeof *rates; i++)
		rc = put_size(rates[i].variable,
			      (uint64_t)(vc_card_tflops(r->d->card, rates[i].rate) * 1e12), err);
	if (!rc && c->steps != VC_NOT_GIVEN)
		rc = put_size("VRAMCAST_NULL_STEPS", c->steps, err);
	if (!rc && r->d->world)
		rc = vc_world_put(r->d->world, r->d->rank, devices_of(c), err);
	return rc ? rc : vc_dryrun_put_others(&c->used, err);
}

/* Tables that go by the addresses of objects or the hashes of names (weights that autocast has
 * cast, sets) are walked in another order each time: the same script would free in another order.
 * Where the system refuses, that stays so. */
static int put_order(struct vc_error *err)
{
	personality(PER_LINUX | ADDR_NO_RANDOMIZE);
	return setenv("PYTHONHASHSEED", "0", 0) < 0 ? vc_nomem(err, "the environment") : VC_OK;
}

static int put_stage(const struct config *c, const struct vc_stage *s, struct vc_error *err)
{
	char python[600], programs[600], cute_dsl[600];
	snprintf(python, sizeof python, "%s/python", s->dir);
	snprintf(programs, sizeof programs, "%s/bin", s->dir);
	snprintf(cute_dsl, sizeof cute_dsl, "%s/" VC_STAGE_CUTE_DSL, s->dir);
	VC_TRY(put_front("LD_PRELOAD", s->preload, err));
	VC_TRY(put_front("LD_LIBRARY_PATH", s->dir, err));
	VC_TRY(put_front("PYTHONPATH", python, err));
	VC_TRY(put_front("PATH", programs, err));
	if (access(cute_dsl, R_OK) == 0)
		VC_TRY(put_front("CUTE_DSL_LIBS", cute_dsl, err));
	if (strcmp(c->values, "off") == 0 && setenv("VRAMCAST_NULL_VALUES", "0", 1) < 0)
		return vc_nomem(err, "the environment");
	if (strcmp(c->host_weights, "untouched") == 0 &&
	    setenv("VRAMCAST_NULL_HOST_WEIGHTS", "0", 1) < 0)
		return vc_nomem(err, "the environment");
	/* What is computed here is small: threads that spin for more of it only take time from
	 * others */
	if (setenv("OMP_WAIT_POLICY", "PASSIVE", 0) < 0)
		return vc_nomem(err, "the environment");
	VC_TRY(put_order(err));
	/* Triton would look for the driver in the system's cache of libraries */
	if (setenv("TRITON_LIBCUDA_PATH", s->dir, 1) < 0)
		return vc_nomem(err, "the environment");
	return VC_OK;
}

/* ---- the run ---- */

/* Without a recording. The tracer is there all the same: it tells the null GPU which memory
 * PyTorch's allocator hands out, and without that programs would see what its last owner left. */
static int run_plain(char **argv, struct vc_error *err)
{
	char *tracer = vc_process_library(err);
	int status;
	if (!tracer)
		return err->status;
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGPIPE, SIG_DFL); /* the front door ignores these two */
		signal(SIGXFSZ, SIG_DFL);
		if (vc_process_preload(tracer) < 0)
			_exit(126);
		execvp(argv[0], argv);
		_exit(errno == ENOENT ? 127 : 126);
	}
	free(tracer);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return vc_fail(err, VC_EIO, "cannot start %s: %s", argv[0], strerror(errno));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Hands the run to `record`, through the same parser that a user's command line goes through. */
static int run_recorded(const struct run *r, const struct vc_command *record, size_t argc,
			char **argv, struct vc_console *con)
{
	const struct config *c = r->cfg;
	char **line = calloc(argc + 2 * c->params.n + 16, sizeof *line), size[32];
	void *cfg = calloc(1, record->config_size);
	struct { char *option; const char *value; } same[] = { { "--stacks", c->stacks },
		{ "--keep", c->keep.keep }, { "--on-oom", c->keep.on_oom },
		{ "--when", c->keep.when } };
	size_t n = 0, operands;
	int rc = VC_ENOMEM;
	if (!line || !cfg) {
		vc_nomem(&con->err, "a command line");
		goto out;
	}
	line[n++] = "-o";
	line[n++] = r->d->out;
	if (c->max_size != VC_NOT_GIVEN) {
		snprintf(size, sizeof size, "%llu", (unsigned long long)c->max_size);
		line[n++] = "--max-size";
		line[n++] = size;
	}
	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
		if (same[i].value) {
			line[n++] = same[i].option;
			line[n++] = (char *)(uintptr_t)same[i].value;
		}
	for (size_t i = 0; i < c->params.n; i++) {
		line[n++] = "--param";
		line[n++] = (char *)(uintptr_t)c->params.at[i];
	}
	line[n++] = "--";
	for (size_t i = 0; i < argc; i++)
		line[n++] = argv[i];
	rc = vc_opt_parse(record, cfg, n, line, &operands, con);
	if (!rc)
		rc = record->run(cfg, operands, line, con);
	vc_opt_fini(record, cfg);
out:
	VC_FREE(cfg, line);
	return rc;
}

/* With several cards each trace carries the name of its card. */
static char *output_of(const struct config *c, const struct vc_card *card)
{
	const char *dot = strrchr(c->out, '.');
	size_t stem = dot && dot != c->out && !strchr(dot, '/') ? (size_t)(dot - c->out)
		: strlen(c->out);
	char *out;
	int n = c->gpus.n < 2 ? asprintf(&out, "%s", c->out)
		: asprintf(&out, "%.*s.%s%s", (int)stem, c->out, card->name, c->out + stem);
	return n < 0 ? NULL : out;
}

/* Equal free blocks are chosen by address: the same program with addresses the other way round. */
static int run_other_way(const struct run *r, char **argv, struct vc_error *err)
{
	struct vc_dryrun_outcome other = { 0 }, *o = &r->d->o;
	if (setenv("VRAMCAST_NULL_ADDRESSES", r->d->up ? "down" : "up", 1) < 0)
		return vc_nomem(err, "the environment");
	int rc = run_plain(argv, err);
	vc_dryrun_read(r->stage->dir, &other);
	o->other_peak = other.peak;
	o->refused += other.refused;
	if (other.largest_refused > o->largest_refused)
		o->largest_refused = other.largest_refused;
	return rc;
}

/* A run that died says nothing about how much it lacked: PyTorch asks for little at a time. */
static int run_with_more(const struct run *r, char **argv, struct vc_error *err)
{
	struct vc_dryrun_outcome other = { 0 }, *o = &r->d->o;
	VC_TRY(put_size("VRAMCAST_NULL_TOTAL", r->d->total + vc_dryrun_margin(o), err));
	int rc = run_plain(argv, err);
	vc_dryrun_read(r->stage->dir, &other);
	o->fits_with_more = rc == 0 && !other.refused;
	return rc < 0 ? rc : o->code;
}

/* Both orders of addresses: by the model where it reproduces the recording, else, when the user
 * asked for it, by a second run. */
static int look_closer(const struct run *r, char **argv, struct vc_error *err)
{
	const char *way = r->cfg->addresses;
	struct vc_dryrun_outcome *o = &r->d->o;
	bool asked = way && strcmp(way, "both") == 0;
	vc_dryrun_replay(r->d, (asked || !way) && !o->refused);
	if (r->cfg->again && o->refused && o->code)
		return run_with_more(r, argv, err);
	if (!asked || (o->replay.traces && !o->replay.others) || o->refused)
		return o->code;
	int second = run_other_way(r, argv, err);
	return second < 0 || second > o->code ? second : o->code;
}

static time_t now(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec;
}

/* Of the largest of all processes that were waited for; Linux counts in KiB. */
static uint64_t host_peak(void)
{
	struct rusage used = { 0 };

	getrusage(RUSAGE_CHILDREN, &used);
	return (uint64_t)used.ru_maxrss << 10;
}

static int run_once(const struct run *r, const struct vc_command *record, size_t argc, char **argv,
		    struct vc_console *con)
{
	if (!record)
		return run_plain(argv, &con->err);
	vc_dryrun_set_aside(r->d->out);
	return run_recorded(r, record, argc, argv, con);
}

/* A rank that compares with what rank 0 says (DeepSpeed's ZeRO 3) fails where nobody said it: then
 * rank 0 is played first. With --roles it was. */
static int run_rank(const struct run *r, const struct vc_command *record, size_t argc, char **argv,
		    struct vc_console *con)
{
	struct vc_dryrun *d = r->d;
	struct vc_dryrun_outcome unused = { 0 };
	int rc = run_once(r, record, argc, argv, con);

	if (rc <= 0 || !d->rank || r->cfg->roles || !vc_world_unheard(r->stage->dir))
		return rc;
	fprintf(stderr, "vramcast dryrun: rank %llu failed and had not heard what rank 0 says: "
		"rank 0 is played, then rank %llu again\n", (unsigned long long)d->rank,
		(unsigned long long)d->rank);
	VC_TRY(vc_world_put(d->world, 0, devices_of(r->cfg), &con->err));
	rc = run_plain(argv, &con->err);
	vc_dryrun_read(r->stage->dir, &unused);
	VC_TRY(vc_world_put(d->world, d->rank, devices_of(r->cfg), &con->err));
	return rc < 0 ? rc : run_once(r, record, argc, argv, con);
}

static int run_card(struct run *r, size_t argc, char **argv, struct vc_console *con)
{
	const struct vc_command *record =
		r->cfg->no_record ? NULL : vc_command_find(con, "record");
	struct vc_dryrun *d = r->d;
	d->up = r->cfg->addresses && strcmp(r->cfg->addresses, "up") == 0;
	d->started = now();
	d->out = record ? output_of(r->cfg, d->card) : NULL;
	int rc = d->out || !record ? put_card(r, &con->err) : vc_nomem(&con->err, "a file name");
	if (!rc && setenv("VRAMCAST_NULL_ADDRESSES", d->up ? "up" : "down", 1) < 0)
		rc = vc_nomem(&con->err, "the environment");
	if (!rc)
		rc = vc_dryrun_plans_start(r->cfg->cudnn, r->stage->dir, d->card, &con->err);
	if (!rc)
		rc = run_rank(r, record, argc, argv, con);
	bool ran = rc >= 0;
	if (ran) {
		d->o.code = rc;
		d->o.host_peak = host_peak();
		vc_dryrun_read(r->stage->dir, &d->o);
		rc = look_closer(r, argv, &con->err);
	}
	vc_dryrun_plans_stop(r->cfg->cudnn);
	if (!ran)
		return rc;
	d->o.code = rc < 0 ? d->o.code : rc;
	d->done = true;
	if (rc >= 0 && !con->quiet)
		vc_dryrun_say(d);
	return rc < 0 || strcmp(r->cfg->exit_code, "verdict") ? rc : vc_dryrun_code(d);
}

/* The command line with a NULL behind it. With --ranks, python SCRIPT becomes
 * python -m torch.distributed.run ... SCRIPT. */
static char **program_line(const struct config *c, const char *python, size_t *argc, char **argv,
			   char *count, size_t count_size)
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

static int check_world(const struct config *c, struct vc_error *err)
{
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

static int check(const struct config *c, size_t argc, struct vc_error *err)
{
	const struct vc_card *card;
	uint64_t beside = 0;

	if (!c->gpus.n)
		return vc_fail(err, VC_EUSAGE,
			       "which card? try -g rtx4090 ('vramcast gpus' lists them)");
	if (!argc)
		return vc_fail(err, VC_EUSAGE, "which program? try -- python train.py");
	if (c->addresses && strcmp(c->addresses, "up") && strcmp(c->addresses, "down") &&
	    strcmp(c->addresses, "both"))
		return vc_fail(err, VC_EUSAGE, "--addresses takes down, up or both, not '%s'",
			       c->addresses);
	if (strcmp(c->values, "on") && strcmp(c->values, "off"))
		return vc_fail(err, VC_EUSAGE, "--values takes on or off, not '%s'", c->values);
	if (strcmp(c->host_weights, "real") && strcmp(c->host_weights, "untouched"))
		return vc_fail(err, VC_EUSAGE, "--host-weights takes real or untouched, not '%s'",
			       c->host_weights);
	if (strcmp(c->exit_code, "program") && strcmp(c->exit_code, "verdict"))
		return vc_fail(err, VC_EUSAGE, "--exit-code takes program or verdict, not '%s'",
			       c->exit_code);
	if ((c->devices != VC_NOT_GIVEN && (c->devices < 1 || c->devices > 16)) ||
	    (c->ranks != VC_NOT_GIVEN && (c->ranks < 1 || c->ranks > 16)))
		return vc_fail(err, VC_EUSAGE, "--devices and --ranks go from 1 to 16");
	VC_TRY(check_world(c, err));
	VC_TRY(vc_record_keep(&c->keep, &(struct vc_drain_options){ 0 }, &(struct vc_watch){ 0 },
			      err));
	if (c->no_record && (c->keep.keep || c->keep.on_oom))
		return vc_fail(err, VC_EUSAGE, "--no-record makes no recording, and --keep "
			       "and --on-oom say what becomes of one: leave one out");
	if (c->capacity == 0)
		return vc_fail(err, VC_EUSAGE, "--capacity 0: a device has some memory (leave it "
			       "out for the card's own)");
	for (size_t i = 0; i < c->gpus.n; i++)
		if (vc_card_exact(c->gpus.at[i], &card, err) < 0)
			return VC_EUSAGE;
	return vc_dryrun_others(&c->used, &beside, err);
}

/* ---- several cards ---- */

static int prepare_cards(const struct config *c, struct vc_dryrun *d, struct vc_error *err)
{
	for (size_t i = 0; i < c->gpus.n; i++) {
		VC_TRY(vc_card_exact(c->gpus.at[i], &d[i].card, err));
		VC_TRY(vc_dryrun_others(&c->used, &d[i].beside, err));
		d[i].total = c->capacity == VC_NOT_GIVEN ? d[i].card->total : c->capacity;
		d[i].context = c->context == VC_NOT_GIVEN ? d[i].card->context : c->context;
		d[i].world = c->world == VC_NOT_GIVEN ? 0 : c->world;
		d[i].rank = d[i].world ? c->rank : 0;
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

static int run_cards(const struct config *c, struct vc_stage *stage, struct vc_dryrun *d,
		     size_t argc, char **argv, struct vc_console *con)
{
	struct vc_dryrun *next;
	int rc = prepare_cards(c, d, &con->err), worst = 0;
	while (rc >= 0 && (next = next_card(d, c->gpus.n)) != NULL) {
		struct run r = { .cfg = c, .stage = stage, .d = next };
		rc = run_card(&r, argc, argv, con);
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

/* Rank 0 tells which others are worth a run. */
static int run_roles(const struct config *c, struct vc_stage *stage, size_t argc, char **argv,
		     struct vc_console *con)
{
	char path[600];
	struct vc_role first = { .what = "" }, *roles = NULL;
	struct vc_dryrun *d = NULL;
	size_t n = 1, done = 0;
	int rc = 0, worst = 0;
	snprintf(path, sizeof path, "%s/roles", stage->dir);
	if (setenv("VRAMCAST_NULL_ROLES", path, 1) < 0)
		return vc_nomem(&con->err, "the environment");
	for (size_t i = 0; rc >= 0 && i < n; i++) {
		const struct vc_role *role = roles ? &roles[i] : &first;
		VC_HAVE(vc_vec_one(d, done), "the ranks of a job", &con->err);
		struct run r = { .cfg = c, .stage = stage, .d = &d[done++] };
		*r.d = (struct vc_dryrun){ 0 };
		rc = prepare_cards(c, r.d, &con->err);
		r.d->rank = role->rank;
		snprintf(r.d->role, sizeof r.d->role, "%s", role->what);
		if (rc >= 0)
			rc = run_card(&r, argc, argv, con);
		worst = rc > worst ? rc : worst;
		if (rc >= 0 && i == 0)
			rc = vc_world_roles(path, &roles, &n, &con->err);
		n = n ? n : 1;
	}
	if (rc >= 0 && !con->quiet)
		vc_dryrun_say_ranks(d, done);
	if (rc >= 0 && c->report)
		rc = vc_dryrun_write(d, done, c->report, &con->err);
	for (size_t i = 0; i < done; i++)
		free(d[i].out);
	VC_FREE(d, roles);
	return rc < 0 ? rc : worst;
}

static int run_all(const struct config *c, const char *python, struct vc_stage *stage, size_t argc,
		   char **argv, struct vc_console *con)
{
	struct vc_dryrun *d = calloc(c->gpus.n, sizeof *d);
	char count[48];
	char **line = program_line(c, python, &argc, argv, count, sizeof count);
	int rc = line && d ? put_stage(c, stage, &con->err) : vc_nomem(&con->err, "a command line");
	if (!rc)
		rc = c->roles ? run_roles(c, stage, argc, line, con) :
				run_cards(c, stage, d, argc, line, con);
	for (size_t i = 0; d && i < c->gpus.n; i++)
		free(d[i].out);
	VC_FREE(d, line);
	return rc;
}

static int dryrun(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	struct vc_dryrun_cudnn cudnn = { 0 };
	struct config own = *(const struct config *)config;
	const struct config *c = &own;
	char python[1024], package[1024], libraries[1100];
	struct vc_stage stage = { 0 };
	own.cudnn = &cudnn;
	int rc = check(c, argc, &con->err);
	if (!rc)
		vc_remark_cards(&c->gpus, con);
	if (!rc && c->ranks == VC_NOT_GIVEN && vc_python_program(argv[0], &con->err) < 0) {
		fprintf(stderr, "vramcast dryrun: %s\n", con->err.message);
		return 127; /* as the shell has it */
	}
	if (!rc)
		rc = vc_null_libraries(libraries, sizeof libraries, &con->err);
	if (!rc)
		rc = vc_python_find(argv[0], python, sizeof python, &con->err);
	if (!rc)
		rc = vc_python_package(python, package, sizeof package, &con->err);
	if (!rc)
		rc = vc_stage_open(&stage, package, libraries, &con->err);
	int version = rc ? 0 : vc_python_cudnn(package);
	if (version)
		rc = put_size("VRAMCAST_NULL_CUDNN", (uint64_t)version, &con->err);
	if (!rc)
		rc = vc_dryrun_cudnn(&cudnn, libraries, package, &con->err);
	if (!rc && stage.missing[0])
		fprintf(stderr, "vramcast: this PyTorch or a package beside it wants more than the "
			"null GPU knows, and there is no compiler (cc) to help; it may not start. "
			"Missing: %s\n", stage.missing);
	if (!rc && stage.stubs_made && con->verbose)
		fprintf(stderr, "vramcast: %d functions that this PyTorch or a package beside it "
			"wants were made on the spot\n", stage.stubs_made);
	if (!rc)
		rc = run_all(c, python, &stage, argc, argv, con);
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
		"everything. The exit code\nis the program's.",
	.options = tables, .config_size = sizeof(struct config), .flags = VC_CMD_PASSTHROUGH,
	.run = dryrun,
};
