/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dryrun_run.c - one run of the program of a dry run: its environment, its recording, other
 * runs that answer with it. */
#define _GNU_SOURCE /* asprintf */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands/cmd_dryrun_run.h"
#include "commands/put.h"
#include "commands/stop.h"
#include "commands/trial.h"
#include "common/vec.h"
#include "tracer/process.h"

/* ---- environment of the program ---- */

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

static uint64_t devices_of(const struct vc_dryrun_config *c)
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

static int put_card(const struct vc_dryrun_run *r, struct vc_error *err)
{
	const struct vc_dryrun_config *c = r->cfg;
	/* drivers put the maker in front of the names of all but the Tesla cards; what stands in
	 * brackets is a remark of ours */
	const char *title = r->d->card->title, *maker = strncmp(title, "Tesla", 5) ? "NVIDIA " : "";
	char cc[16], name[96], roles[600];
	snprintf(roles, sizeof roles, "%s/roles", r->stage->dir);
	snprintf(cc, sizeof cc, "%d.%d", r->d->card->cc_major, r->d->card->cc_minor);
	snprintf(name, sizeof name, "%s%.*s", strncmp(title, "NVIDIA", 6) ? maker : "",
		 (int)(strcspn(title, "(") - (strchr(title, '(') != NULL)), title);
	VC_TRY(vc_put("VRAMCAST_NULL_NAME", name, err));
	VC_TRY(vc_put("VRAMCAST_NULL_CC", cc, err));
	VC_TRY(vc_put("VRAMCAST_NULL_CLOCK", c->no_record ? "wall" : "device", err));
	VC_TRY(vc_put("VRAMCAST_NULL_REPORT", r->stage->dir, err));
	VC_TRY(vc_put_number("VRAMCAST_NULL_TOTAL", r->d->total, err));
	VC_TRY(vc_put_number("VRAMCAST_NULL_CONTEXT", r->d->context, err));
	VC_TRY(vc_put_number("VRAMCAST_NULL_BOARD", c->capacity == VC_NOT_GIVEN ?
			     (uint64_t)r->d->card->smi_mib << 20 : 0, err));
	VC_TRY(vc_put_number("VRAMCAST_NULL_SMS", r->d->card->sms, err));
	VC_TRY(vc_put_number("VRAMCAST_NULL_DEVICES", devices_of(c), err));
	VC_TRY(vc_put_number("VRAMCAST_NULL_BANDWIDTH",
			     (uint64_t)(r->d->card->bandwidth_gbs * 1e9), err));
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++)
		VC_TRY(vc_put_number(rates[i].variable, (uint64_t)(vc_card_tflops(r->d->card,
				     rates[i].rate) * 1e12), err));
	if (c->steps != VC_NOT_GIVEN)
		VC_TRY(vc_put_number("VRAMCAST_NULL_STEPS", c->steps, err));
	if (r->d->world) {
		VC_TRY(vc_put("VRAMCAST_NULL_ROLES", roles, err));
		VC_TRY(vc_put("VRAMCAST_NULL_STAGES", c->stages ? "1" : "", err));
		VC_TRY(vc_world_put(r->d->world, r->d->rank, devices_of(c), err));
	}
	return vc_dryrun_put_others(&c->used, err);
}

/* Tables that go by the addresses of objects or the hashes of names (weights that autocast has
 * cast, sets) are walked in another order each time: the same script would free in another order.
 * Where the system refuses, that stays so. */
static int put_order(struct vc_error *err)
{
	personality(PER_LINUX | ADDR_NO_RANDOMIZE);
	return setenv("PYTHONHASHSEED", "0", 0) < 0 ? vc_nomem(err, "the environment") : VC_OK;
}

enum { MOST_SKEWS = 16 }; /* dry runs that look for the one that dies */

/* How many times its share an expert of that rank gets. */
static int put_skew(double skew, uint64_t rank, struct vc_error *err)
{
	char text[48];
	snprintf(text, sizeof text, "%g %llu", skew, (unsigned long long)rank);
	return vc_put("VRAMCAST_NULL_EXPERT_SKEW", text, err);
}

int vc_dryrun_put_stage(const struct vc_dryrun_config *c, const struct vc_stage *s,
			struct vc_error *err)
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
	if (strcmp(c->values, "off") == 0)
		VC_TRY(vc_put("VRAMCAST_NULL_VALUES", "0", err));
	if (strcmp(c->host_weights, "untouched") == 0)
		VC_TRY(vc_put("VRAMCAST_NULL_HOST_WEIGHTS", "0", err));
	VC_TRY(put_skew(c->expert_skew, c->rank, err));
	/* What is computed here is small: threads that spin for more of it only take time from
	 * others */
	if (setenv("OMP_WAIT_POLICY", "PASSIVE", 0) < 0)
		return vc_nomem(err, "the environment");
	VC_TRY(put_order(err));
	/* Triton would look for the driver in the system's cache of libraries */
	return vc_put("TRITON_LIBCUDA_PATH", s->dir, err);
}

/* ---- the run ---- */

/* Without a recording; what it prints goes to `log`, if there is one. The tracer is there all the
 * same: it tells the null GPU which memory PyTorch's allocator hands out, and without that programs
 * would see what its last owner left. */
static int run_plain(char **argv, const char *log, struct vc_error *err)
{
	char *tracer = vc_process_library(err);
	int status;
	if (!tracer)
		return err->status;
	if (vc_stop_check(err) < 0) {
		free(tracer);
		return VC_ESTOPPED;
	}
	pid_t pid = fork();
	if (pid == 0) {
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGPIPE, SIG_DFL); /* the front door ignores these two */
		signal(SIGXFSZ, SIG_DFL);
		int fd = log ? open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
		if (fd >= 0 && (dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0))
			_exit(126);
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
static int run_recorded(const struct vc_dryrun_run *r, const struct vc_command *record, size_t argc,
			char **argv, struct vc_console *con)
{
	const struct vc_dryrun_config *c = r->cfg;
	char **line = calloc(argc + 2 * c->params.n + 16, sizeof *line), size[32];
	void *cfg = calloc(1, record->config_size);
	struct { char *option; const char *value; } same[] = { { "--stacks", c->stacks },
		{ "--keep", c->keep.keep }, { "--on-oom", c->keep.on_oom },
		{ "--when", c->keep.when } };
	size_t n = 0, operands;
	int rc = VC_ENOMEM;
	if (c->program[0] && setenv("VC_PROGRAM", c->program, 1) < 0)
		return vc_nomem(&con->err, "the environment");
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
static char *output_of(const struct vc_dryrun_config *c, const struct vc_card *card)
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
static int run_other_way(const struct vc_dryrun_run *r, char **argv, struct vc_error *err)
{
	struct vc_dryrun_outcome other = { 0 }, *o = &r->d->o;
	VC_TRY(vc_put("VRAMCAST_NULL_ADDRESSES", r->d->up ? "down" : "up", err));
	int rc = run_plain(argv, NULL, err);
	vc_dryrun_read(r->stage->dir, &other);
	o->other_peak = other.peak;
	o->refused += other.refused;
	if (other.largest_refused > o->largest_refused)
		o->largest_refused = other.largest_refused;
	return rc;
}

/* A run that died says nothing about how much it lacked: PyTorch asks for little at a time. */
static int run_with_more(const struct vc_dryrun_run *r, char **argv, struct vc_error *err)
{
	struct vc_dryrun_outcome other = { 0 }, *o = &r->d->o;
	VC_TRY(vc_put_number("VRAMCAST_NULL_TOTAL", r->d->total + vc_dryrun_margin(o), err));
	int rc = run_plain(argv, NULL, err);
	vc_dryrun_read(r->stage->dir, &other);
	o->fits_with_more = rc == 0 && !other.refused;
	return rc < 0 ? rc : o->code;
}

/* How much the rank needs if an expert of its own gets so many times its share. Other ranks say
 * what it says: they were played with other tokens. There is room for whatever it takes. */
static int run_with_experts(const struct vc_dryrun_run *r, char **argv, double skew,
			    struct vc_dryrun_experts *out, struct vc_error *err)
{
	struct vc_dryrun_outcome other = { 0 };
	struct vc_dryrun *d = r->d;
	char log[600];
	snprintf(log, sizeof log, "%s/aside.log", r->stage->dir);
	vc_world_forget(r->stage->dir, d->rank);
	VC_TRY(put_skew(skew, d->rank, err));
	VC_TRY(vc_put("VRAMCAST_NULL_OWN_WORD", "1", err));
	VC_TRY(vc_put_number("VRAMCAST_NULL_TOTAL", d->total + (UINT64_C(1) << 40), err));
	int rc = run_plain(argv, log, err);
	vc_dryrun_read(r->stage->dir, &other);
	unsetenv("VRAMCAST_NULL_OWN_WORD");
	VC_TRY(put_skew(d->skew, d->rank, err));
	VC_TRY(vc_put_number("VRAMCAST_NULL_TOTAL", d->total, err));
	*out = (struct vc_dryrun_experts){ .made = rc == 0 && !other.refused, .peak = other.peak };
	return rc < 0 ? rc : 0;
}

/* How many times its share the rank survives: twice as many until it dies, then between. */
static int find_skew(const struct vc_dryrun_run *r, char **argv, struct vc_error *err)
{
	struct vc_dryrun *d = r->d;
	struct vc_dryrun_experts *at = &d->o.experts;
	double lives = 1, dies = 0;
	for (int runs = 0; runs < MOST_SKEWS && (!dies || dies > 1.05 * lives); runs++) {
		double skew = dies ? (lives + dies) / 2 : 2 * lives;
		struct vc_dryrun_experts got;
		VC_TRY(run_with_experts(r, argv, skew, &got, err));
		if (!got.made)
			return 0;
		*(got.peak + d->context + d->beside > d->total ? &dies : &lives) = skew;
	}
	at->lives = lives;
	at->dies = dies;
	return 0;
}

/* Tokens go elsewhere: all to an expert of its own, or, where they went by --expert-skew, to each
 * expert as many. */
static int run_with_other_experts(const struct vc_dryrun_run *r, char **argv, struct vc_error *err)
{
	struct vc_dryrun *d = r->d;
	VC_TRY(run_with_experts(r, argv, d->skew > 1 ? 1 : 1e9, &d->o.experts, err));
	if (d->skew >= 1 || !d->o.experts.made ||
	    d->o.experts.peak + d->context + d->beside <= d->total)
		return 0;
	return find_skew(r, argv, err);
}

/* Both orders of addresses: by the model where it reproduces the recording, else, when the user
 * asked for it, by a second run. */
static int look_closer(const struct vc_dryrun_run *r, char **argv, struct vc_error *err)
{
	const char *way = r->cfg->addresses;
	struct vc_dryrun_outcome *o = &r->d->o;
	bool asked = way && strcmp(way, "both") == 0;
	vc_dryrun_replay(r->d, (asked || !way) && !o->refused);
	if (r->cfg->margin && o->refused && o->code)
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

/* What an earlier run left of the same rank is forgotten. */
static int run_once(const struct vc_dryrun_run *r, const struct vc_command *record, size_t argc,
		    char **argv, struct vc_console *con)
{
	struct vc_dryrun *d = r->d;
	VC_TRY(vc_stop_check(&con->err));
	d->o = (struct vc_dryrun_outcome){ 0 };
	vc_world_forget(r->stage->dir, d->rank);
	if (record)
		vc_dryrun_set_aside(d->out);
	int rc = record ? run_recorded(r, record, argc, argv, con) :
			  run_plain(argv, NULL, &con->err);
	d->o.code = rc;
	if (rc >= 0)
		vc_dryrun_read(r->stage->dir, &d->o);
	return rc;
}

/* Another rank than the one that was asked for, for what it tells that one. */
static int play_aside(const struct vc_dryrun_run *r, uint64_t rank, char **argv,
		      struct vc_console *con)
{
	struct vc_dryrun *d = r->d;
	struct vc_dryrun_outcome o = { 0 };
	char log[600];
	snprintf(log, sizeof log, "%s/aside.log", r->stage->dir);
	vc_world_forget(r->stage->dir, rank);
	VC_TRY(vc_world_put(d->world, rank, devices_of(r->cfg), &con->err));
	int rc = run_plain(argv, log, &con->err);
	vc_dryrun_read(r->stage->dir, &o);
	VC_TRY(vc_world_put(d->world, d->rank, devices_of(r->cfg), &con->err));
	if (rank == 0)
		d->first_steps = o.steps;
	if (rc > 0 && !con->quiet)
		fprintf(stderr, "vramcast dryrun: rank %llu, which is played beside rank %llu, "
			"ended with status %d%s\n", (unsigned long long)rank,
			(unsigned long long)d->rank, rc, con->verbose ? ":" : "");
	if (rc > 0 && con->verbose)
		vc_trial_show(log, NULL);
	return rc < 0 ? rc : 0;
}

/* Ranks whose word the others want: each is played, and played again when it was told something
 * new. */
static int play_others(const struct vc_dryrun_run *r, const struct vc_role *roles, size_t n,
		       bool all, char **argv, struct vc_console *con)
{
	for (size_t i = 0; i < n; i++)
		if (roles[i].rank != r->d->rank &&
		    ((all && roles[i].rank) || vc_world_stale(r->stage->dir, roles[i].rank)))
			VC_TRY(play_aside(r, roles[i].rank, argv, con));
	return 0;
}

static bool is_any_stale(const struct vc_dryrun_run *r, const struct vc_role *roles, size_t n)
{
	bool stale = vc_world_stale(r->stage->dir, r->d->rank) || vc_world_stale(r->stage->dir, 0);
	for (size_t i = 0; i < n && !stale; i++)
		stale = vc_world_stale(r->stage->dir, roles[i].rank);
	return stale;
}

/* The rank, and whoever decides what it goes by, until nobody tells anybody something new. One that
 * runs out of memory has told enough. */
static int run_rank(const struct vc_dryrun_run *r, const struct vc_command *record, size_t argc,
		    char **argv, struct vc_console *con)
{
	struct vc_dryrun *d = r->d;
	struct vc_role *roles = NULL, first = { .rank = 0 };
	char path[600];
	size_t n = 0;
	if (d->world && d->rank && !r->cfg->roles)
		VC_TRY(play_aside(r, 0, argv, con));
	int rc = run_once(r, record, argc, argv, con);
	if (rc < 0 || !d->world || r->cfg->roles)
		return rc;
	snprintf(path, sizeof path, "%s/roles", r->stage->dir);
	int found = vc_world_roles(path, &roles, &n, &con->err);
	for (int round = 0; found >= 0 && rc >= 0 && round < VC_DRYRUN_ROUNDS; round++) {
		bool all = round == 0 && n > 1 && vc_dryrun_ranks_decide(d);
		if ((rc && d->o.refused) || (!all && !is_any_stale(r, roles, n)))
			break;
		if (all && !con->quiet)
			fprintf(stderr, "vramcast dryrun: rank %llu goes by what other ranks hold: "
				"one of each role is played, then it again\n",
				(unsigned long long)d->rank);
		found = n ? play_others(r, roles, n, all, argv, con) :
			    play_others(r, &first, 1, false, argv, con);
		if (found >= 0 && (all || vc_world_stale(r->stage->dir, d->rank)))
			rc = run_once(r, record, argc, argv, con);
	}
	bool ran_out = rc > 0 && d->o.refused;
	if (rc >= 0 && !ran_out && is_any_stale(r, roles, n))
		vc_dryrun_unsettled(&d->o);
	free(roles);
	return found < 0 ? found : rc;
}

int vc_dryrun_card(struct vc_dryrun_run *r, size_t argc, char **argv, struct vc_console *con)
{
	const struct vc_command *record =
		r->cfg->no_record ? NULL : vc_command_find(con, "record");
	struct vc_dryrun *d = r->d;
	d->up = r->cfg->addresses && strcmp(r->cfg->addresses, "up") == 0;
	d->started = now();
	d->out = record ? output_of(r->cfg, d->card) : NULL;
	int rc = d->out || !record ? put_card(r, &con->err) : vc_nomem(&con->err, "a file name");
	if (!rc)
		rc = vc_put("VRAMCAST_NULL_ADDRESSES", d->up ? "up" : "down", &con->err);
	if (!rc)
		rc = vc_dryrun_plans_start(r->cfg->cudnn, r->stage->dir, d->card, &con->err);
	if (!rc)
		rc = run_rank(r, record, argc, argv, con);
	bool ran = rc >= 0;
	if (ran) {
		d->o.host_peak = host_peak();
		rc = look_closer(r, argv, &con->err);
		if (rc >= 0 && !r->cfg->roles && vc_dryrun_experts_decide(d) &&
		    run_with_other_experts(r, argv, &con->err) < 0)
			rc = con->err.status;
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
