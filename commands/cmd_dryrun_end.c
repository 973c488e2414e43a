/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dryrun_end.c - how the program of a dry run ended: as a whole, and process by process. */
#include <unistd.h>

#include "commands/cmd_dryrun.h"
#include "common/emit.h"

enum { SIGNALS = 64, OOM_KILLER = 9, VERDICT_DOES_NOT_FIT = 3, VERDICT_UNDECIDED = 6 };

/* As the shell has it, 128 + n; 0: it ended by itself. */
static int signal_of(int code)
{
	return code > 128 && code <= 128 + SIGNALS ? code - 128 : 0;
}

enum when { WELL, BEFORE_MEMORY, REFUSED, OTHERWISE };

static enum when when(const struct vc_dryrun_outcome *o)
{
	if (o->refused)
		return o->code ? REFUSED : WELL;
	if (!o->processes || !o->peak)
		return BEFORE_MEMORY;
	return o->code ? OTHERWISE : WELL;
}

/* In words that follow the name of the program: "ended with status 2 before it asked for device
 * memory". */
static const char *ended(const struct vc_dryrun_outcome *o, char *out, size_t size)
{
	static const char *const words[] = { "", " before it asked for device memory",
		" after a request was refused", ", and not for want of device memory" };
	const char *then = o->code || when(o) != BEFORE_MEMORY ? words[when(o)] :
			   ", and never asked for device memory";
	int n = signal_of(o->code);

	if (n)
		snprintf(out, size, "was ended by signal %d (%s)%s", n, strsignal(n), then);
	else
		snprintf(out, size, "ended with status %d%s", o->code, then);
	return out;
}

bool vc_dryrun_ranks_decide(const struct vc_dryrun *run)
{
	const struct vc_dryrun_outcome *o = &run->o;
	size_t i = 0;
	while (i < o->n_unknown && !o->unknown[i].ranks)
		i++;
	return i < o->n_unknown || (!o->steps && run->first_steps);
}

bool vc_dryrun_experts_decide(const struct vc_dryrun *run)
{
	const struct vc_dryrun_outcome *o = &run->o;
	size_t i = 0;
	while (i < o->n_unknown && strncmp(o->unknown[i].name, VC_NULL_ROUTES,
					   sizeof(VC_NULL_ROUTES) - 1))
		i++;
	return i < o->n_unknown && vc_dryrun_verdict(run) == VC_UNDECIDED;
}

/* Whoever begins last among those that overlap meets all of them. */
uint64_t vc_dryrun_together(const struct vc_dryrun *run, int *n)
{
	const struct vc_dryrun_outcome *o = &run->o;
	int all = o->processes < VC_DRYRUN_PROCESSES ? o->processes : VC_DRYRUN_PROCESSES;
	uint64_t most = 0;
	for (int i = 0; i < all; i++) {
		const struct vc_dryrun_process *last = &o->process[i];
		uint64_t sum = run->beside;
		int met = 0;
		for (int k = 0; k < all; k++) {
			const struct vc_dryrun_process *p = &o->process[k];
			if (!p->peak || p->card < 0 || p->card != last->card ||
			    p->began_ns > last->began_ns || p->ended_ns <= last->began_ns)
				continue;
			sum += p->peak + run->context;
			met++;
		}
		if (met > 1 && sum > most) {
			most = sum;
			if (n)
				*n = met;
		}
	}
	return most;
}

uint64_t vc_dryrun_held(const struct vc_dryrun *run)
{
	uint64_t most = 0;
	for (int i = 0; i < run->o.processes && i < VC_DRYRUN_PROCESSES; i++)
		if (run->o.process[i].together > most)
			most = run->o.process[i].together;
	return most ? most + run->beside : 0;
}

enum vc_verdict vc_dryrun_verdict(const struct vc_dryrun *run)
{
	if (run->o.refused)
		return run->o.code ? VC_OOM : VC_FLUSHES;
	/* one that ended with an error of its own says what it did until then */
	return run->o.replay.other == VC_FITS && !run->o.code &&
		(vc_dryrun_ranks_decide(run) || vc_dryrun_together(run, NULL) > run->total) ?
		VC_UNDECIDED : run->o.replay.other;
}

int vc_dryrun_code(const struct vc_dryrun *run)
{
	enum vc_verdict v = vc_dryrun_verdict(run);
	if (v == VC_FITS)
		return run->o.code;
	return v == VC_UNDECIDED ? VERDICT_UNDECIDED : VERDICT_DOES_NOT_FIT;
}

/* ---- the host ---- */

/* What this process may have of the machine's memory. */
static uint64_t host_total(void)
{
	uint64_t total = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned long long limit;
	FILE *f = fopen("/sys/fs/cgroup/memory.max", "r");
	if (f && fscanf(f, "%llu", &limit) == 1 && limit < total)
		total = limit;
	if (f)
		fclose(f);
	return total;
}

static bool was_killed(const struct vc_dryrun_outcome *o)
{
	size_t n = o->processes < VC_DRYRUN_PROCESSES ? (size_t)o->processes : VC_DRYRUN_PROCESSES;
	for (size_t i = 0; i < n; i++)
		if (!o->process[i].ended && o->code)
			return true;
	return signal_of(o->code) == OOM_KILLER;
}

/* The system kills without a word when the machine's memory ends. */
static void say_host(const struct vc_dryrun_outcome *o)
{
	uint64_t total = host_total();
	if (!was_killed(o))
		return;
	fprintf(stderr, "  the host: a process held %.2f GiB of its %.2f GiB", vc_gib(o->host_peak),
		vc_gib(total));
	if (o->host_peak < total / 2)
		fprintf(stderr, "; who sent the signal is not known\n");
	else
		fprintf(stderr, " when it was killed, and wanted more. A model that is built "
			"in the host's memory first needs room there:\n  with --host-weights "
			"untouched, what initialises weights there writes nothing and takes "
			"none\n");
}

/* ---- process by process ---- */

static const char *word_of(const struct vc_dryrun_process *p)
{
	if (!p->refused)
		return "fits";
	return p->ended && !p->status ? "at the limit" : "out of memory";
}

static void say_process(const struct vc_dryrun_process *p, const struct vc_dryrun *run)
{
	char end[48] = "was ended by a signal";
	if (p->ended)
		snprintf(end, sizeof end, "ended with status %d", (int)p->status);
	fprintf(stderr, "    %d on device %d: %s, peak %.2f GiB, %s", (int)p->pid, p->device,
		end, vc_gib(p->peak + run->context), word_of(p));
	if (p->refused)
		fprintf(stderr, " (%llu refused, the largest %.2f GiB)",
			(unsigned long long)p->refused, vc_gib(p->largest_refused));
	fputc('\n', stderr);
}

void vc_dryrun_say_end(const struct vc_dryrun *run)
{
	char text[160];
	fprintf(stderr, "  the program %s\n", ended(&run->o, text, sizeof text));
	if (run->o.devices && run->o.code)
		fprintf(stderr, "  it asked for a device that this machine does not have: with "
			"--devices %llu it has so many (--ranks N starts a process on each)\n",
			(unsigned long long)run->o.devices);
	say_host(&run->o);
}

void vc_dryrun_say_processes(const struct vc_dryrun *run)
{
	const struct vc_dryrun_outcome *o = &run->o;
	if (o->processes < 2)
		return;
	fprintf(stderr, "  %d processes used a device, each judged by itself:\n", o->processes);
	for (int i = 0; i < o->processes && i < VC_DRYRUN_PROCESSES; i++)
		say_process(&o->process[i], run);
	int n;
	uint64_t together = vc_dryrun_together(run, &n);
	if (together)
		fprintf(stderr, "    %d of them used one card at the same time: %.2f GiB at once "
			"in this run, %.2f GiB if they peak together\n", n,
			vc_gib(vc_dryrun_held(run)), vc_gib(together));
	if (o->processes > VC_DRYRUN_PROCESSES)
		fprintf(stderr, "    and %d more\n", o->processes - VC_DRYRUN_PROCESSES);
}

/* ---- for programs ---- */

static void emit_process(struct vc_emit *e, const struct vc_dryrun_process *p,
			 const struct vc_dryrun *run)
{
	vc_emit_object(e, NULL, NULL);
	vc_emit_int(e, "pid", NULL, p->pid);
	vc_emit_int(e, "parent", NULL, p->parent);
	vc_emit_int(e, "device", NULL, p->device);
	vc_emit_int(vc_emit_known(e, p->ended), "status", NULL, p->status);
	vc_emit_text(e, "verdict", NULL, vc_verdict_name(!p->refused ? VC_FITS :
		p->ended && !p->status ? VC_FLUSHES : VC_OOM));
	vc_emit_bytes(e, "peak_used", NULL, p->peak + run->context);
	vc_emit_uint(e, "refused", NULL, p->refused);
	vc_emit_bytes(e, "largest_refused", NULL, p->largest_refused);
	vc_emit_end(e);
}

void vc_dryrun_emit_end(struct vc_emit *e, const struct vc_dryrun *run)
{
	static const char *const names[] = { "completed", "before_memory", "refused", "otherwise" };
	const struct vc_dryrun_outcome *o = &run->o;
	int n = signal_of(o->code);
	char text[160];
	vc_emit_object(e, "ended", NULL);
	vc_emit_int(e, "status", NULL, o->code);
	vc_emit_int(vc_emit_known(e, n), "signal", NULL, n);
	vc_emit_text(e, "how", NULL, names[when(o)]);
	vc_emit_text(e, "words", NULL, ended(o, text, sizeof text));
	vc_emit_bytes(e, "host_peak", NULL, o->host_peak);
	vc_emit_uint(e, "devices_wanted", NULL, o->devices);
	vc_emit_end(e);
	vc_emit_array(e, "processes", NULL);
	for (int i = 0; i < o->processes && i < VC_DRYRUN_PROCESSES; i++)
		emit_process(e, &o->process[i], run);
	vc_emit_end(e);
}
