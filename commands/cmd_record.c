/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_record.c - vramcast record: run a program with the tracer in it, write what it did. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "commands/live_words.h"
#include "commands/own_program.h"
#include "commands/record_keep.h"
#include "common/codec.h"
#include "common/emit.h"
#include "common/journal.h"
#include "common/opt.h"
#include "common/pattern.h"
#include "common/vec.h"
#include "simulator/replay/cards.h"
#include "tracer/attach.h"
#include "tracer/drain.h"
#include "tracer/process.h"
#include "tracer/stub.h"
#include "tracer/trace_file.h"

enum { GRACE_MS = 3000 }; /* for worker processes that outlive the program a little */

struct config {
	const char *out, *stacks, *device, *kernels, *graphs, *describe;
	struct vc_list params;
	uint64_t max_size;
	bool no_python, launches;
	uint64_t guard, pid;
	const char *guard_signal;
	struct vc_record_keep keep;
};

#define AT(f) offsetof(struct config, f)
static const struct vc_option options[] = {
	{ 'o', "output", VC_O_FILE, AT(out), "FILE",
	  "the trace to write; further processes get .PID or .rankN before the "
	  "extension", "vramcast.vct" },
	{ 0, "param", VC_O_LIST, AT(params), "NAME=VALUE",
	  "what the program runs with (batch=8), kept in the trace for extrapolation", NULL },
	{ 0, "stacks", VC_O_TEXT, AT(stacks), "off|py|py:N|native",
	  "call stacks of allocations; py:N: Python's for N steps, then only of requests that "
	  "fail", "off" },
	{ 0, "max-size", VC_O_SIZE, AT(max_size), "SIZE",
	  "stop recording a process whose trace grows beyond this; the program runs on", NULL },
	{ 0, "allocator", VC_O_TEXT, AT(device), "auto|cuda|cpu",
	  "whose allocator to record; auto: the CPU's only where there is no GPU", "auto" },
	{ 0, "device", VC_O_TEXT, AT(device), "auto|cuda|cpu", NULL, "auto" },
	{ 0, "kernels", VC_O_TEXT, AT(kernels), "on|off",
	  "times of kernels, copies and fills, where CUPTI can be had (default: on; with --pid "
	  "off)", NULL },
	{ 0, "graphs", VC_O_TEXT, AT(graphs), "node|launch",
	  "CUDA graphs: a time for each kernel, or (cheaper) for each launch", "node" },
	{ 0, "launches", VC_O_FLAG, AT(launches), NULL,
	  "the calls that queue kernels and copies too, joined by their correlation (CUDA 12.5 "
	  "on)", NULL },
	{ 0, "keep", VC_O_TEXT, AT(keep.keep), "TIME|SIZE|Nsteps",
	  "the flight recorder: keep the last 10m, 2GiB or 50steps, which begin with the heap "
	  "they found", NULL },
	{ 0, "on-oom", VC_O_TEXT, AT(keep.on_oom), "dump|stop|continue",
	  "when memory runs out: what is kept becomes FILE.oom.vct and the recording goes on "
	  "(dump; with --keep the default), or ends there", NULL },
	{ 0, "when", VC_O_TEXT, AT(keep.when), "NAME>VALUE",
	  "with --keep: what is kept becomes FILE.when.vct when 'reserved>90%', "
	  "'allocated>30GiB' or 'free<2GiB'", NULL },
	{ 0, "window", VC_O_TEXT, AT(keep.steps), "FIRST..LAST", "record these steps only", NULL },
	{ 0, "steps", VC_O_TEXT, AT(keep.steps), "FIRST..LAST", NULL, NULL },
	{ 0, "after", VC_O_TEXT, AT(keep.after), "TIME", "begin so long after the process", NULL },
	{ 0, "duration", VC_O_TEXT, AT(keep.duration), "TIME", "record for so long", NULL },
	{ 0, "paused", VC_O_FLAG, AT(keep.paused), NULL,
	  "record what lies between vramcast_start() and vramcast_stop() of the program", NULL },
	{ 0, "guard", VC_O_UINT, AT(guard), "STEPS",
	  "warn when memory grows so that it runs out within so many steps", NULL },
	{ 0, "guard-signal", VC_O_TEXT, AT(guard_signal), "USR1|USR2|INT|TERM",
	  "send the process this signal with the warning, so that it can write a checkpoint",
	  NULL },
	{ 0, "pid", VC_O_UINT, AT(pid), "PID",
	  "record a PyTorch program that runs already, until it ends or you press Ctrl-C; it goes "
	  "on as before", NULL },
	{ 0, "describe", VC_O_TEXT, AT(describe), "FILE", NULL, NULL }, /* for python/vramcast/ */
	{ 0, "no-python", VC_O_FLAG, AT(no_python), NULL,
	  "add nothing to the program's Python (no step marks from optimizers)", NULL },
	VC_OPTION_END
};

struct run { /* one recording */
	const struct config *cfg;
	char *wanted, *dir, *python; /* folder of the journals: as named, as it is; of the stub */
	char *library, *command, *options;
	char **line; /* of the program, with the values of --param filled in */
	struct vc_drain *drain;
	struct vc_watch watch;
	bool ring;
	struct vc_attach_options joined; /* pid 0: the program is ours */
	pid_t pid;
	int code;
};

static const struct { const char *name; int number; } guard_signals[] = {
	{ "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "INT", SIGINT }, { "TERM", SIGTERM } };
enum { GUARD_SIGNALS = sizeof(guard_signals) / sizeof(*guard_signals) };

/* -1: there is none of that name. */
static int guard_signal(const char *name)
{
	for (size_t i = 0; name && i < GUARD_SIGNALS; i++)
		if (!strcmp(guard_signals[i].name, name))
			return guard_signals[i].number;
	return name ? -1 : 0;
}

static int check(const struct config *c, size_t argc, struct vc_error *err)
{
	if (argc && c->pid != VC_NOT_GIVEN)
		return vc_fail(err, VC_EUSAGE,
			       "--pid records a program that runs already: give none");
	if (!argc && c->pid == VC_NOT_GIVEN)
		return vc_fail(err, VC_EUSAGE,
			       "which program? vramcast record -- PROGRAM [ARG]...");
	VC_TRY(vc_record_words(c->stacks, &c->params, err));
	if (guard_signal(c->guard_signal) < 0 || (c->guard_signal && c->guard == VC_NOT_GIVEN))
		return vc_fail(err, VC_EUSAGE, "--guard-signal is USR1, USR2, INT or TERM, and "
			       "needs --guard");
	return 0;
}

static char *join(size_t argc, char **argv)
{
	size_t n = 1;
	char *s;

	for (size_t i = 0; i < argc; i++)
		n += strlen(argv[i]) + 5;
	s = calloc(n, 1);
	for (size_t i = 0, at = 0; s && i < argc; i++) {
		const char *equals = strchr(argv[i], '=');
		int shown = !vc_own_secret(i ? argv[i - 1] : NULL, argv[i]) ? -1 :
			    equals ? (int)(equals - argv[i]) + 1 : 0;

		at += (size_t)snprintf(s + at, n - at, "%s%.*s%s", i ? " " : "", shown, argv[i],
				       shown < 0 ? "" : "***");
	}
	return s;
}

static char *with(const char *a, const char *b)
{
	size_t n = strlen(a) + strlen(b) + 1;
	char *s = malloc(n);

	if (s)
		snprintf(s, n, "%s%s", a, b);
	return s;
}

/* The folder of the journals. Where a launcher starts a recorder for each rank, each has its own.
 */
static char *folder_name(const char *out)
{
	const char *dot = strrchr(out, '.'), *slash = strrchr(out, '/');
	size_t n = strlen(out) + 64;
	char *s = malloc(n);

	if (s)
		snprintf(s, n, "%s.journal", out);
	for (int i = 0; s && i < VC_JOURNAL_LAUNCHERS; i++) {
		const char *world = getenv(vc_journal_launcher[i].world);
		const char *rank = getenv(vc_journal_launcher[i].rank);

		if (!dot || dot < slash)
			dot = out + strlen(out);
		if (world && rank && strtol(world, NULL, 10) > 1) {
			snprintf(s, n, "%.*s.rank%ld%s.journal", (int)(dot - out), out,
				 strtol(rank, NULL, 10), dot);
			break;
		}
	}
	return s;
}

static int write_stub(struct run *r, struct vc_error *err)
{
	char path[4200];
	int fd;

	r->python = with(r->dir, "/python");
	VC_HAVE(r->python, "a path", err);
	snprintf(path, sizeof(path), "%s/sitecustomize.py", r->python);
	if (mkdir(r->python, 0700) < 0 && errno != EEXIST)
		return vc_fail(err, VC_EIO, "cannot make %s: %s", r->python, strerror(errno));
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, vc_stub, vc_stub_size) != (ssize_t)vc_stub_size)
		return vc_fail(err, VC_EIO, "cannot write %s: %s", path, strerror(errno));
	close(fd);
	return 0;
}

/* Beside the journals, so that each trace that is made of them has it, after a recovery too. A dry
 * run has described it before it changed the environment. What cannot be described is recorded all
 * the same. */
static void write_program(const struct run *r, size_t argc, char **argv)
{
	const char *given = getenv("VC_PROGRAM");
	char *path = with(r->dir, "/" VC_PROGRAM_FILE);
	struct vc_error err = { 0 };
	struct vc_program *p = NULL;

	if (given && (p = vc_program_new(&err)) && vc_program_load(p, given, &err) < 0) {
		vc_program_free(p);
		p = NULL;
	}
	if (!given && vc_own_describe(argc, argv, &r->cfg->params, &p, &err) == VC_OK)
		vc_own_remember(p, false, &err);
	if (path && p)
		vc_own_write(p, path, &err);
	unsetenv("VC_PROGRAM");
	vc_program_free(p);
	free(path);
}

static int prepare(struct run *r, size_t argc, char **argv, struct vc_error *err)
{
	const struct config *c = r->cfg;
	struct vc_drain_options o;
	const char *kernels = c->kernels ? c->kernels : c->pid == VC_NOT_GIVEN ? "on" : "off";
	char text[128];

	snprintf(text, sizeof(text), "device=%s,stacks=%s,kernels=%s,graphs=%s%s", c->device,
		 c->stacks, kernels, c->graphs, c->launches ? ",launches=on" : "");
	r->options = strdup(text);
	r->library = vc_process_library(err);
	r->command = c->pid == VC_NOT_GIVEN ? join(argc, r->line) :
					      vc_attach_command((pid_t)c->pid);
	r->wanted = folder_name(c->out);
	if (!r->library)
		return VC_EIO;
	VC_HAVE(r->command && r->wanted && r->options, "the command line", err);
	r->dir = vc_process_folder(r->wanted, err);
	if (!r->dir)
		return (int)err->status;
	if (!c->no_python && c->pid == VC_NOT_GIVEN && write_stub(r, err) < 0)
		return VC_EIO;
	if (c->pid == VC_NOT_GIVEN)
		write_program(r, argc, argv);
	o = (struct vc_drain_options){ .dir = r->dir, .out = c->out, .command = r->command,
		.param = c->params.at, .params = c->params.n,
		.max_bytes = c->max_size == VC_NOT_GIVEN ? 0 : c->max_size };
	VC_TRY(vc_record_keep(&c->keep, &o, &r->watch, err));
	r->watch.late = c->pid != VC_NOT_GIVEN && !strcmp(kernels, "on");
	r->ring = o.ring;
	r->drain = vc_drain_new(&o, err);
	return r->drain ? 0 : (int)err->status;
}

static void release(struct run *r)
{
	vc_drain_free(r->drain);
	if (r->dir)
		vc_process_folder_remove(r->wanted, r->dir);
	vc_own_free(r->line);
	VC_FREE(r->python, r->dir, r->wanted, r->library, r->command, r->options);
}

/* Empties the journals until the program, and shortly after it its workers, have ended. The pause
 * keeps the fullest ring below a quarter: see VC_RING_RECORDS for how long one lasts. */
static void say_sealed(const struct run *r, bool quiet)
{
	bool failed = false;
	const char *path;

	while ((path = vc_drain_sealed(r->drain, &failed)))
		if (failed)
			fprintf(stderr, "vramcast: %s could not be written\n", path);
		else if (!quiet)
			fprintf(stderr, "vramcast: %s: what was kept until now\n", path);
}

static void guard(const struct run *r)
{
	const struct vc_live_page *p;
	int number = guard_signal(r->cfg->guard_signal);
	char words[512];

	if (r->cfg->guard == VC_NOT_GIVEN)
		return;
	while ((p = vc_drain_warning(r->drain, (double)r->cfg->guard))) {
		fprintf(stderr, "vramcast: process %lld %s\n", (long long)p->pid,
			vc_live_words(p, words, sizeof(words)));
		if (number > 0)
			kill((pid_t)p->pid, number);
	}
}

/* The program goes on as it was before. */
static bool leave(struct run *r, int *failed, struct vc_error *err)
{
	int rc = vc_attach_leave(&r->joined, err);

	*failed = rc < 0 ? rc : *failed;
	return true;
}

/* For so long, or until a signal comes; false: it was one that ends the recording. Of a program of
 * ours that has ended, the number may be another's by now. */
static bool rest(const struct run *r, bool ended, unsigned pause)
{
	int got = r->joined.pid ? vc_attach_sleep(pause) :
		  vc_process_sleep(ended ? 0 : r->pid, pause, r->ring ? SIGUSR1 : 0) ? SIGUSR1 : 0;

	if (got == SIGUSR1 && r->ring)
		vc_drain_seal(r->drain, "dump");
	return !got || got == SIGUSR1;
}

static int follow(struct run *r, bool quiet, struct vc_error *err)
{
	unsigned pause = 5, since_look = 0, grace = 0;
	bool ended = false;
	int failed = 0;
	long waited;

	for (;;) {
		waited = vc_drain_step(r->drain, err);
		failed = waited < 0 ? (int)waited :
				      failed; /* the program runs on, and we wait for it */
		if (!ended && r->joined.pid && vc_drain_over(r->drain))
			ended = leave(r, &failed, err);
		else if (!ended)
			ended = r->joined.pid ? vc_attach_ended(r->pid) :
						vc_process_ended(r->pid, &r->code);
		since_look += pause;
		if (ended || since_look >= 250) {
			size_t running = vc_drain_settle(r->drain);

			since_look = 0;
			if (ended && (!running || grace >= GRACE_MS))
				break;
		}
		if (waited > VC_RING_RECORDS / 4)
			pause = 1;
		else if (waited > VC_RING_RECORDS / 16)
			pause = pause > 2 ? pause / 2 : 1;
		else
			pause = pause < 20 ? pause + 1 : 20;
		if (!rest(r, ended, pause))
			ended = ended || leave(r, &failed, err);
		say_sealed(r, quiet);
		guard(r);
		grace += ended ? pause : 0;
	}
	vc_drain_finish(r->drain);
	say_sealed(r, quiet);
	return failed;
}

static void say_capabilities(const struct vc_drain_file *f)
{
	fprintf(stderr, "  recorded:");
	for (int c = 0, n = 0; c < VC_CAPS; c++)
		if (f->how[c] == VC_HOW_RECORDED || f->how[c] == VC_HOW_DERIVED)
			fprintf(stderr, "%s %s", n++ ? "," : "", vc_capability_name(c));
	fprintf(stderr, "\n");
	for (int c = 0; c < VC_CAPS; c++)
		if (f->how[c] == VC_HOW_PARTIAL || f->how[c] == VC_HOW_FAILED)
			fprintf(stderr, "  %s: %s\n", vc_how_name(f->how[c]),
				vc_capability_name(c));
}

/* Without marks: the steps that the order of allocations shows. What cannot be read has none. */
static struct vc_pattern_steps find_steps(const char *path, uint16_t device)
{
	struct vc_pattern_steps found = { 0 };
	struct vc_error err = { 0 };
	struct vc_event ev[1024];
	struct vc_input *in = vc_input_raw(path, &err);
	struct vc_meta *meta = in ? vc_meta_new(&err) : NULL;
	struct vc_decoder *d = meta ? vc_decoder_new(in, meta, &err) : NULL;
	struct vc_pattern *p = d ? vc_pattern_new(device, &err) : NULL;
	long n = 0;

	while (p && (n = vc_decoder_next(d, ev, 1024, &err)) > 0)
		if (vc_pattern_add(p, ev, (size_t)n, &err) < 0)
			break;
	if (p && (n != 0 || vc_pattern_find(p, &found, &err) < 0))
		found.steps = 0;
	vc_pattern_free(p);
	vc_decoder_free(d);
	vc_meta_free(meta);
	vc_input_close(in);
	return found;
}

static void say_steps(const struct vc_drain_file *f)
{
	struct vc_pattern_steps found = { 0 };

	if (!f->totals.steps)
		found = find_steps(f->path, f->device);
	if (found.steps)
		fprintf(stderr, "%llu steps by the pattern of allocations (confidence %.2f)\n",
			(unsigned long long)found.steps, found.confidence);
	else
		fprintf(stderr, "%llu steps\n", (unsigned long long)f->totals.steps);
}

static void say_file(const struct vc_drain_file *f)
{
	char peak[32], reserved[32], size[32];

	fprintf(stderr, "vramcast: %s: %llu events, %llu dropped, %s\n", f->path,
		(unsigned long long)f->events, (unsigned long long)(f->dropped + f->missing),
		vc_bytes_text(f->bytes, size));
	fprintf(stderr, "  PyTorch %s%s, %llu allocations, %llu frees, ",
		f->torch ? f->torch : "of unknown version", f->cpu ? " (CPU allocator)" : "",
		(unsigned long long)f->totals.allocs, (unsigned long long)f->totals.frees);
	say_steps(f);
	fprintf(stderr, "  peak allocated %s", vc_bytes_text(f->totals.peak, peak));
	if (f->totals.reserved_peak)
		fprintf(stderr, ", reserved %s", vc_bytes_text(f->totals.reserved_peak, reserved));
	fprintf(stderr, "\n");
	say_capabilities(f);
	for (size_t i = 0; i < f->notes; i++)
		fprintf(stderr, "  %s\n", f->note[i]);
	if (f->stopped)
		fprintf(stderr, "  recording stopped early: %s\n", f->stopped);
	if (f->unwritten)
		fprintf(stderr, "  %llu more events are lost: they came after that\n",
			(unsigned long long)f->unwritten);
	if (f->unmatched)
		fprintf(stderr, "  %llu frees of memory whose allocation was not seen\n",
			(unsigned long long)f->unmatched);
}

static const char *const lost_words[VC_LOST_WHYS] = {
	[VC_LOST_ROOM] = "there was no room for their journals in",
	[VC_LOST_LIMIT] = "the limit on file sizes (ulimit -f) is too small for their journals in",
	[VC_LOST_OPEN] = "they could not make their journals in",
};

/* What has no trace is said in any case, with -q too. true: something was lost that we were to
 * record. */
static bool say_lost(const struct run *r)
{
	struct vc_drain_lost l = vc_drain_lost(r->drain);
	char needs[32], has[32] = "unknown room";
	struct statvfs disk;
	bool any = false;

	if (statvfs(r->dir, &disk) == 0)
		vc_bytes_text((uint64_t)disk.f_bavail * disk.f_frsize, has);
	for (size_t i = 0; i < VC_LOST_WHYS; i++) {
		if (!l.processes[i])
			continue;
		any = true;
		fprintf(stderr, "vramcast: %llu %s not recorded (the last: process %lld): %s %s, "
			"which need %s each; %s is free now\n",
			(unsigned long long)l.processes[i],
			l.processes[i] == 1 ? "process was" : "processes were", (long long)l.pid,
			lost_words[i], r->wanted, vc_bytes_text(VC_JOURNAL_LEAST, needs), has);
	}
	for (size_t i = 0; i < vc_drain_files(r->drain); i++) {
		struct vc_drain_file f = vc_drain_file(r->drain, i);

		if (f.path || !f.stopped)
			continue;
		any = true;
		fprintf(stderr, "vramcast: nothing of process %lld could be written: %s; %s is "
			"free now\n", (long long)f.pid, f.stopped, has);
	}
	if (l.events)
		fprintf(stderr, "vramcast: at least %llu events of theirs are lost\n",
			(unsigned long long)l.events);
	if (l.unread)
		fprintf(stderr, "vramcast: %zu journals in %s could not be read; 'vramcast "
			"recover %s' tries again\n", l.unread, r->wanted, r->wanted);
	return any || l.unread;
}

static void say_nothing(bool lost)
{
	if (!lost)
		fprintf(stderr, "vramcast: nothing was recorded: no process of this run used the "
			"allocator of a PyTorch that the tracer knows\n");
	else
		fprintf(stderr, "vramcast: nothing was recorded\n");
}

/* The plain name, then ranks and processes by number: shorter names first. */
static int by_name(const void *a, const void *b)
{
	const struct vc_drain_file *x = a, *y = b;
	size_t n = x->path ? strlen(x->path) : 0, m = y->path ? strlen(y->path) : 0;

	return n != m ? (n < m ? -1 : 1) : n ? strcmp(x->path, y->path) : 0;
}

static void summary(const struct run *r, struct vc_console *con)
{
	const struct vc_card *card = NULL;
	const char *first = NULL;
	size_t n = vc_drain_files(r->drain);
	struct vc_drain_file *file = calloc(n ? n : 1, sizeof(*file));
	char on[64] = "";

	for (size_t i = 0; file && i < n; i++)
		file[i] = vc_drain_file(r->drain, i);
	if (file)
		vc_sort(file, n, sizeof(*file), by_name);
	for (size_t i = 0; file && i < n; i++) {
		const struct vc_drain_file *f = &file[i];

		for (size_t k = 0; !f->path && k < f->notes; k++)
			fprintf(stderr, "vramcast: process %lld: %s\n", (long long)f->pid,
				f->note[k]);
		if (!f->path)
			continue;
		say_file(f);
		if (!first)
			card = f->gpu ? vc_card_by_name(f->gpu) : NULL;
		if (!first)
			first = f->path;
	}
	free(file);
	if (card)
		snprintf(on, sizeof(on), " -g %s", card->name);
	if (first)
		vc_next(con, "sim", first, on);
}

/* Lines for the user. -q leaves out what went well. */
static bool report(const struct run *r, struct vc_console *con)
{
	size_t n = vc_drain_files(r->drain), traces = 0, pending = 0;
	uint64_t unsealed = 0;
	bool lost;

	if (!con->quiet)
		summary(r, con);
	for (size_t i = 0; i < n; i++) {
		struct vc_drain_file f = vc_drain_file(r->drain, i);

		traces += f.path || f.sealed;
		pending += !f.path && !f.sealed && f.events_seen && !f.stopped;
		unsealed += f.unsealed;
	}
	if (unsealed)
		fprintf(stderr, "vramcast: %llu times what was kept did not become a trace: it is "
			"one of a kind eight times at most, or there was no room\n",
			(unsigned long long)unsealed);
	lost = say_lost(r);
	if (!traces && pending)
		fprintf(stderr, "vramcast: nothing was recorded: the part of the run that was "
			"asked for never began\n");
	else if (!traces)
		say_nothing(lost);
	return lost;
}

static void meanwhile(void *run)
{
	struct run *r = run;
	struct vc_error err = { 0 };

	vc_drain_step(r->drain, &err);
}

static int join_running(struct run *r, struct vc_error *err)
{
	r->pid = (pid_t)r->cfg->pid;
	r->joined = (struct vc_attach_options){ .pid = r->pid, .dir = r->dir,
		.library = r->library, .options = r->options, .meanwhile = meanwhile, .who = r };
	vc_attach_guard();
	return vc_attach_join(&r->joined, err);
}

static int start(struct run *r, struct vc_error *err)
{
	struct vc_process_options o = { .dir = r->dir, .library = r->library,
		.python = r->python, .options = r->options };
	int code;

	if (r->cfg->pid == VC_NOT_GIVEN) {
		vc_process_guard(&o);
		code = vc_process_start(&o, r->line, &r->pid, err);
	} else {
		code = join_running(r, err) < 0 ? 125 : 0;
	}
	/* Where it may, the recorder goes first: it needs little, and a full ring drops. */
	if (!code && setpriority(PRIO_PROCESS, 0, -20) < 0)
		errno = 0;
	if (code)
		fprintf(stderr, "vramcast record: %s\n", err->message);
	return code;
}

/* What runs already, beside a snapshot that it made of itself: nothing is run. */
static int describe(const struct config *c, size_t argc, char **argv, struct vc_error *err)
{
	struct vc_program *p = NULL;
	int r = vc_own_describe(argc, argv, &c->params, &p, err);

	if (r == VC_OK)
		r = vc_own_remember(p, false, err);
	if (r == VC_OK)
		r = vc_own_write(p, c->describe, err);
	vc_program_free(p);
	return r;
}

static int run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	struct run r = { .cfg = config };
	int rc = check(r.cfg, argc, &con->err), code = 125, before = getpriority(PRIO_PROCESS, 0);

	if (rc == 0 && argc && r.cfg->describe)
		return describe(r.cfg, argc, argv, &con->err);
	if (rc == 0 && r.cfg->pid != VC_NOT_GIVEN)
		rc = vc_attach_check((pid_t)r.cfg->pid, &con->err);
	VC_TRY(rc);
	if (!con->quiet && access(r.cfg->out, F_OK) == 0)
		fprintf(stderr, "vramcast: %s is there, and this recording will take its place\n",
			r.cfg->out);
	r.line = vc_own_fill(argc, argv, &r.cfg->params, &con->err);
	rc = r.line ? prepare(&r, argc, argv, &con->err) : VC_ENOMEM;
	if (rc == 0) {
		code = start(&r, &con->err);
		rc = code ? 0 : follow(&r, con->quiet, &con->err);
		if (!code && rc == 0) {
			code = r.code;
			if (report(&r, con) && !code)
				code = 125;
		}
	}
	release(&r);
	if (getpriority(PRIO_PROCESS, 0) < before) /* not for what a dry run starts next */
		setpriority(PRIO_PROCESS, 0, before);
	return rc < 0 ? rc : code;
}

const struct vc_command vc_command_record = {
	.name = "record", .operands = "[--] PROGRAM [ARG]... | --pid PID",
	.summary = "run a program and record what it does to GPU memory",
	.details =
		"The program runs unmodified. Its exit code is passed through: 128 + n when "
		"signal n ended it, 126 or 127\nwhen it could not be started, 125 when recording "
		"itself failed. Every process that uses the allocator gets a\ntrace of its own. "
		"If the recording is cut off, vramcast recover finishes it.",
	.options = VC_OPTIONS(options),
	.config_size = sizeof(struct config), .flags = VC_CMD_PASSTHROUGH,
	.run = run,
};
