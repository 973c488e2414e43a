/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dryrun_verdict.c - the outcome of dry runs: read, judged, said. */
#include <dirent.h>
#include <unistd.h>

#include "common/emit.h"
#include "common/vec.h"
#include "commands/cmd_dryrun.h"

/* ---- what processes reported ---- */

static void add_unknown(struct vc_dryrun_outcome *o, const struct vc_null_unknown *u)
{
	size_t i = 0;
	while (i < o->n_unknown && strcmp(o->unknown[i].name, u->name))
		i++;
	if (i == VC_DRYRUN_UNKNOWN)
		return;
	if (i == o->n_unknown)
		snprintf(o->unknown[o->n_unknown++].name, VC_REPORT_NAME, "%s", u->name);
	/* ranks have a card each: the largest of one counts */
	vc_raise(&o->unknown[i].at_most, u->at_most);
	vc_raise(&o->unknown[i].beside, u->beside);
	vc_raise(&o->unknown[i].fewer, u->fewer);
	o->unknown[i].bounded |= u->bounded;
	vc_raise(&o->unknown[i].least, u->least);
	vc_raise(&o->unknown[i].counted, u->counted);
	vc_raise(&o->unknown[i].most, u->most);
	o->unknown[i].ranks |= u->ranks;
}

void vc_dryrun_unsettled(struct vc_dryrun_outcome *o)
{
	add_unknown(o, &(struct vc_null_unknown){ .ranks = 1,
		.name = "what ranks tell each other, which changed with each round" });
}

static void add_workspaces(struct vc_dryrun_outcome *o, const struct vc_null_report *r)
{
	for (uint32_t i = 0; i < r->workspaces && i < VC_REPORT_WORKSPACES; i++) {
		size_t k = 0;
		while (k < o->workspaces && o->workspace[k] != r->workspace[i])
			k++;
		if (k == o->workspaces && k < VC_REPORT_WORKSPACES)
			o->workspace[o->workspaces++] = r->workspace[i];
	}
}

/* Of a process with several devices the fullest. */
static void add_process(struct vc_dryrun_outcome *o, const struct vc_null_report *r)
{
	if (o->processes >= VC_DRYRUN_PROCESSES)
		return;
	struct vc_dryrun_process *p = &o->process[o->processes];
	*p = (struct vc_dryrun_process){ .pid = r->pid, .parent = r->parent,
		.ended = r->ended, .status = r->status, .began_ns = r->began_ns,
		.ended_ns = r->ended ? r->ended_ns : UINT64_MAX };
	for (int i = 0; i < VC_REPORT_DEVICES; i++) {
		if (r->device[i].peak > p->peak) {
			p->peak = r->device[i].peak;
			p->device = i;
			p->card = r->number[i];
		}
		vc_raise(&p->together, r->device[i].together);
		p->refused += r->device[i].refused;
		vc_raise(&p->largest_refused, r->device[i].largest_refused);
	}
}

VC_COMPARE(by_pid, struct vc_dryrun_process, VC_ORDER(x->pid, y->pid))

static void read_report(const char *path, struct vc_dryrun_outcome *o)
{
	static const struct vc_null_report empty;
	struct vc_null_report *r = malloc(sizeof *r);
	FILE *f = fopen(path, "rb");
	if (r && f && (*r = empty, fread(r, sizeof *r, 1, f)) == 1 && r->magic == VC_REPORT_MAGIC) {
		for (int i = 0; i < VC_REPORT_DEVICES; i++) {
			if (r->device[i].peak > o->peak) {
				o->peak = r->device[i].peak;
				o->blocks = r->device[i].blocks;
				o->rounding = r->device[i].rounding;
			}
			vc_raise(&o->pool, r->device[i].pool);
			o->refused += r->device[i].refused;
			if (r->device[i].largest_refused > o->largest_refused)
				o->largest_refused = r->device[i].largest_refused;
		}
		o->asked += r->asked;
		o->polled += r->polled;
		o->steps += r->steps;
		for (uint32_t i = 0; i < r->names && i < VC_REPORT_NAMES; i++)
			add_unknown(o, &r->name[i]);
		add_workspaces(o, r);
		o->convolutions |= r->convolutions;
		add_process(o, r);
		vc_raise(&o->devices, r->devices > 0 ? (uint64_t)r->devices : 0);
		o->processes++;
	}
	if (f)
		fclose(f);
	free(r);
}

void vc_dryrun_read(const char *dir, struct vc_dryrun_outcome *o)
{
	struct dirent *entry;
	DIR *d = opendir(dir);
	while (d && (entry = readdir(d)) != NULL) {
		char path[1024];
		snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
		if (strncmp(entry->d_name, "report.", 7) == 0) {
			read_report(path, o);
			unlink(path);
		}
	}
	if (d)
		closedir(d);
	size_t n = o->processes < VC_DRYRUN_PROCESSES ? (size_t)o->processes : VC_DRYRUN_PROCESSES;
	vc_sort(o->process, n, sizeof *o->process, by_pid);
}

/* ---- judging ---- */

enum { CONTEXTS = 150 << 20 };

/* What a dry run can be off by (docs/reference/null-gpu.md): contexts of one card were seen so far
 * apart, peaks of measured transformers lay within 1 %, nine in ten of measured convolution nets
 * within 5 %, and libraries may take what is named with its bytes. */
uint64_t vc_dryrun_margin(const struct vc_dryrun_outcome *o)
{
	return CONTEXTS + (o->pool ? o->pool : o->peak) / (o->convolutions ? 20 : 100);
}

static uint64_t margin_of(const struct vc_dryrun_outcome *o)
{
	struct vc_dryrun_peaks p = vc_dryrun_peaks(o);
	uint64_t margin = vc_dryrun_margin(o), beside = 0, use = o->replay.reserved;
	for (size_t i = 0; i < o->n_unknown; i++) {
		margin += o->unknown[i].at_most - o->unknown[i].beside;
		beside += o->unknown[i].beside;
	}
	vc_raise(&use, o->replay.most_reserved); /* the verdict goes by these orders */
	if (p.known)
		vc_raise(&margin, CONTEXTS + vc_minus(p.reserved.high, use));
	return margin + beside;
}

/* The lower and upper end over the orders of addresses, without context. */
static void ends(const struct vc_dryrun_outcome *o, uint64_t *low, uint64_t *high)
{
	const struct vc_dryrun_replay *p = &o->replay;
	*low = *high = o->peak;
	if (p->most_reserved > p->reserved)
		*high += p->most_reserved - p->reserved;
	if (p->least_reserved && p->least_reserved < p->reserved)
		*low -= p->reserved - p->least_reserved < *low ? p->reserved - p->least_reserved :
								 *low;
	if (o->other_peak > *high)
		*high = o->other_peak;
	if (o->other_peak && o->other_peak < *low)
		*low = o->other_peak;
}

/* Bytes of the card that the run needs: the larger end, context and other processes included. */
static uint64_t use_of(const struct vc_dryrun *run)
{
	uint64_t low, high;
	ends(&run->o, &low, &high);
	return high + run->context + run->beside;
}

/* That, with as many tokens at each expert, or with more at one of this rank. */
static uint64_t with_experts(const struct vc_dryrun *run, bool skewed)
{
	if (skewed == (run->skew > 1))
		return use_of(run);
	return run->o.experts.peak + run->context + run->beside;
}

/* Of the card, or of the share of it that the program allows itself, or that its framework took. */
static uint64_t left_of(const struct vc_dryrun *run)
{
	if (run->o.pool)
		return run->o.peak > run->o.pool ? run->o.peak - run->o.pool : 0;
	uint64_t use = use_of(run), low, high, left;
	double share = run->o.replay.fraction;
	uint64_t allowed = share > 0 ? (uint64_t)(share * (double)run->total) : UINT64_MAX;

	vc_raise(&use, vc_dryrun_together(run, NULL));
	left = run->total > use ? run->total - use : 0;
	ends(&run->o, &low, &high);
	allowed = allowed > high ? allowed - high : 0;
	return allowed < left ? allowed : left;
}

static bool is_close(const struct vc_dryrun *run)
{
	return run->o.fits_with_more ||
		(vc_dryrun_verdict(run) == VC_FITS && left_of(run) < margin_of(&run->o));
}

bool vc_dryrun_answers(const struct vc_dryrun *done, const struct vc_dryrun *other)
{
	const struct vc_card *a = done->card, *b = other->card;
	/* how fast a card is decides only when the program asks whether work has finished */
	bool alike = a->bandwidth_gbs == b->bandwidth_gbs && a->fp32_tflops == b->fp32_tflops &&
		a->half_tflops == b->half_tflops;
	return vc_card_same_class(a, b) && (alike || !done->o.polled) && !done->o.asked &&
		!done->o.refused && vc_dryrun_verdict(done) == VC_FITS && done->o.code == 0 &&
		use_of(done) - done->context + other->context <= other->total;
}

/* ---- for people ---- */

static void say_experts(const struct vc_dryrun *run)
{
	const struct vc_dryrun_experts *e = &run->o.experts;
	fprintf(stderr, "  verdict: undecided; %.2f GiB if each expert (of a detector each class) "
		"is chosen as often, %.2f GiB if one of this rank is chosen %s, of %.2f GiB",
		vc_gib(with_experts(run, false)), vc_gib(with_experts(run, true)),
		run->skew > 1 ? "that many times its share" : "each time", vc_gib(run->total));
	if (e->dies > 0)
		fprintf(stderr, "; it fits with %.3g times its share, not with %.3g", e->lives,
			e->dies);
	fputc('\n', stderr);
}

static void say_undecided(const struct vc_dryrun *run)
{
	const struct vc_dryrun_outcome *o = &run->o;
	int n;
	uint64_t together = vc_dryrun_together(run, &n);
	if (together > run->total)
		fprintf(stderr, "  verdict: undecided; each of %d processes fits; at one time they "
			"held %.2f GiB of %.2f GiB here, and if they peak at once they need "
			"%.2f GiB\n", n, vc_gib(vc_dryrun_held(run)), vc_gib(run->total),
			vc_gib(together));
	else if (!o->steps && run->first_steps)
		fprintf(stderr, "  verdict: undecided; this rank made no step of an optimizer, and "
			"rank 0 made %llu: it did not do its work\n",
			(unsigned long long)run->first_steps);
	else if (o->experts.made)
		say_experts(run);
	else
		fprintf(stderr, "  verdict: undecided; it fits with %.2f GiB left if the ranks "
			"that were not played hold what those do that were\n",
			vc_gib(left_of(run)));
}

static void say_answer(const struct vc_dryrun *run)
{
	const struct vc_dryrun_outcome *o = &run->o;
	char largest[48] = "";
	if (o->largest_refused) /* TensorFlow names a shape */
		snprintf(largest, sizeof largest, ", the largest %.2f GiB",
			 vc_gib(o->largest_refused));
	if (o->fits_with_more)
		fprintf(stderr, "  verdict: too close to call; it ran out of memory, and fits with "
			"%.2f GiB more, which a dry run can be off by\n",
			vc_gib(vc_dryrun_margin(o)));
	else if (o->refused)
		fprintf(stderr,
			"  verdict: %s; %llu requests were refused%s%s\n%s",
			o->code ? "out of memory" : "at the limit",
			(unsigned long long)o->refused, largest,
			o->code ? "" : ", and the program went on",
			o->code ? "  the recording ends there: with --capacity 1TiB it is whole, "
				  "and 'sim' on that says what would help\n" :
				  "");
	else if (o->replay.other != VC_FITS)
		fprintf(stderr, "  verdict: %s with the less favourable order of addresses; it "
			"fits with the other\n",
			vc_dryrun_verdict(run) == VC_OOM ? "out of memory" : "at the limit");
	else if (o->code)
		fprintf(stderr, "  verdict: nothing was refused up to there, %.2f GiB left\n",
			vc_gib(left_of(run)));
	else if (vc_dryrun_verdict(run) == VC_UNDECIDED)
		say_undecided(run);
	else if (is_close(run))
		fprintf(stderr, "  verdict: too close to call; it fits with %.2f GiB left, and a "
			"dry run can be off by %.2f GiB\n", vc_gib(left_of(run)),
			vc_gib(margin_of(o)));
	else
		fprintf(stderr, "  verdict: fits, %.2f GiB left\n", vc_gib(left_of(run)));
}

static void say_phases(const struct vc_phases *p)
{
	if (p->steps < 2)
		return;
	fprintf(stderr, "  first iteration: %.2f GiB allocated, %.2f GiB reserved; the others: "
		"%.2f GiB and %.2f GiB\n", vc_gib(p->first.peak_allocated),
		vc_gib(p->first.peak_reserved),
		vc_gib(p->steady.peak_allocated), vc_gib(p->steady.peak_reserved));
}

static void say_interval(const struct vc_dryrun *run)
{
	uint64_t low, high;
	ends(&run->o, &low, &high);
	char from[32], to[32];
	snprintf(from, sizeof from, "%.2f", vc_gib(low));
	snprintf(to, sizeof to, "%.2f", vc_gib(high));
	if (run->o.other_peak) /* asked for */
		fprintf(stderr, "  between %.2f and %.2f GiB with device addresses going %s and "
			"%s: the answer is the larger one\n", vc_gib(low + run->context),
			vc_gib(high + run->context),
			(run->o.peak == low) == !run->up ? "down" : "up",
			(run->o.peak == low) == !run->up ? "up" : "down");
	else if (strcmp(from, to)) /* a difference to be seen */
		fprintf(stderr, "  between %.2f and %.2f GiB with device addresses in other "
			"orders: the answer is the larger one\n", vc_gib(low + run->context),
			vc_gib(high + run->context));
}

/* "0.25 GiB", below a tenth of it "12.3 MiB". */
static const char *amount(uint64_t bytes, char *out, size_t size)
{
	if (bytes >= (1ull << 30) / 10)
		snprintf(out, size, "%.2f GiB", vc_gib(bytes));
	else
		snprintf(out, size, "%.1f MiB", (double)bytes / (1 << 20));
	return out;
}

static void say_unknown(const struct vc_dryrun_outcome *o)
{
	char least[32], most[32], counted[32];
	fprintf(stderr, "  not known to the null GPU:\n");
	for (size_t i = 0; i < o->n_unknown; i++) {
		const struct vc_null_unknown *u = &o->unknown[i];
		fprintf(stderr, "    %s", u->name);
		if (u->most)
			fprintf(stderr, " (at least %s, at most %s at a time; %s counted)",
				amount(u->least, least, sizeof least),
				amount(u->most, most, sizeof most),
				amount(u->counted, counted, sizeof counted));
		else if (u->at_most)
			fprintf(stderr, " (at most %s, not counted)",
				amount(u->at_most, most, sizeof most));
		else if (u->fewer)
			fprintf(stderr, " (%s less where each is left out)",
				amount(u->fewer, most, sizeof most));
		else if (u->ranks)
			fputs(" (ranks that were not played decide it)", stderr);
		fputc('\n', stderr);
	}
}

/* What gaps between physical pages cost is the driver's secret; what rounding costs is counted. */
static void say_driver(const struct vc_dryrun_outcome *o)
{
	char rounding[32];
	if (o->blocks)
		fprintf(stderr,
			"  driver: %llu block%s at the peak, %s of it rounding to its pages; "
			"fragmentation inside the driver is not known and not counted\n",
			(unsigned long long)o->blocks, o->blocks == 1 ? "" : "s",
			amount(o->rounding, rounding, sizeof rounding));
}

void vc_dryrun_say(const struct vc_dryrun *run)
{
	const struct vc_dryrun_outcome *o = &run->o;
	uint64_t use = o->peak + run->context;
	char who[80] = "";
	if (run->world)
		snprintf(who, sizeof who, " as rank %llu of %llu", (unsigned long long)run->rank,
			 (unsigned long long)run->world);
	fprintf(stderr, "dry run%s on %s (%s, %.2f GiB; no GPU took part, nothing was computed):\n",
		who, run->card->name, run->card->title, vc_gib(run->total));
	vc_dryrun_say_end(run);
	if (!o->processes || !(o->peak || o->refused))
		return;
	fprintf(stderr, "  peak of device memory %.2f GiB, of which %.2f GiB context\n",
		vc_gib(use), vc_gib(run->context));
	if (o->pool)
		fprintf(stderr, "  of what the framework took it used %.2f GiB at most\n",
			vc_gib(o->pool));
	vc_dryrun_say_peaks(o);
	say_phases(&o->replay.phases);
	if (o->replay.traces && *o->replay.time)
		fprintf(stderr, "  time: %s\n", o->replay.time);
	say_interval(run);
	say_answer(run);
	if (o->n_unknown)
		say_unknown(o);
	say_driver(o);
	vc_dryrun_say_processes(run);
}

static const char *word_of(const struct vc_dryrun *run)
{
	static const char *const words[] = { "fits", "at the limit", "undecided", "out of memory" };
	if (run->o.code && !run->o.refused && run->o.replay.other == VC_FITS)
		return run->o.peak ? "ended early" : "did not start";
	if (vc_dryrun_verdict(run) == VC_UNDECIDED)
		return words[VC_UNDECIDED];
	return is_close(run) ? "too close to call" : words[vc_dryrun_verdict(run)];
}

void vc_dryrun_say_table(const struct vc_dryrun *runs, size_t n)
{
	fprintf(stderr, "%-18s %10s %10s %10s  %-18s %s\n", "card", "memory", "peak", "left",
		"verdict", "answered by");
	for (size_t i = 0; i < n; i++)
		fprintf(stderr, "%-18s %6.2f GiB %6.2f GiB %6.2f GiB  %-18s %s\n",
			runs[i].card->name, vc_gib(runs[i].total), vc_gib(use_of(&runs[i])),
			vc_gib(left_of(&runs[i])), word_of(&runs[i]),
			runs[i].by ? runs[i].by->name : "its own run");
}

void vc_dryrun_say_ranks(const struct vc_dryrun *runs, size_t n)
{
	const struct vc_dryrun *largest = NULL, *least = NULL;
	size_t died = 0;
	fprintf(stderr, "%8s %10s %10s  %-18s %s\n", "rank", "peak", "left", "verdict",
		"what it is");
	for (size_t i = 0; i < n; i++) {
		const struct vc_dryrun *r = &runs[i];
		if (r->o.code && !r->o.refused) /* it did not get to its peak */
			died++;
		else
			largest = !largest || use_of(r) > use_of(largest) ? r : largest;
		if (largest && !(r->o.code && !r->o.refused))
			least = !least || use_of(r) < use_of(least) ? r : least;
		fprintf(stderr, "%8llu %6.2f GiB %6.2f GiB  %-18s %s\n",
			(unsigned long long)r->rank, vc_gib(use_of(r)), vc_gib(left_of(r)),
			word_of(r), r->role[0] ? r->role : "first of all");
	}
	fprintf(stderr, "of %llu ranks %zu were played; ", (unsigned long long)runs->world, n);
	if (died)
		fprintf(stderr, "%zu of them ended with an error of their own, so which is the "
			"largest is not known\n", died);
	else
		fprintf(stderr,
			"the largest is rank %llu with %.2f GiB, %.2f GiB above the least\n",
			(unsigned long long)largest->rank, vc_gib(use_of(largest)),
			vc_gib(use_of(largest) - use_of(least)));
}

/* ---- for programs ---- */

static void emit_phase(struct vc_emit *e, const char *key, const struct vc_peaks *p)
{
	vc_emit_object(e, key, NULL);
	vc_emit_bytes(e, "peak_allocated", NULL, p->peak_allocated);
	vc_emit_bytes(e, "peak_reserved", NULL, p->peak_reserved);
	vc_emit_end(e);
}

static void emit_step(struct vc_emit *e, const struct vc_dryrun_replay *p)
{
	bool known = p->traces && p->step_ns;

	vc_emit_uint(vc_emit_known(e, known), "step_ns", NULL, p->step_ns);
	vc_emit_uint(vc_emit_known(e, known), "step_low_ns", NULL, p->least_ns);
	vc_emit_uint(vc_emit_known(e, known), "step_high_ns", NULL, p->most_ns);
}

static void emit_phases(struct vc_emit *e, const struct vc_dryrun_replay *p)
{
	if (!p->traces || p->phases.steps < 2) {
		vc_emit_null(e, "first_iteration", NULL);
		vc_emit_null(e, "steady", NULL);
		return;
	}
	emit_phase(e, "first_iteration", &p->phases.first);
	emit_phase(e, "steady", &p->phases.steady);
}

/* at_most: what may come on top of the peak; of a single request: its interval and what was
 * counted. */
static void emit_uncounted(struct vc_emit *e, const struct vc_null_unknown *u)
{
	if (!u->at_most && !u->most && !u->fewer)
		return;
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "name", NULL, u->name);
	vc_emit_bytes(e, "at_most", NULL, u->at_most);
	if (u->fewer)
		vc_emit_bytes(e, "fewer", NULL, u->fewer);
	if (u->most) {
		vc_emit_bytes(e, "single_least", NULL, u->least);
		vc_emit_bytes(e, "single_counted", NULL, u->counted);
		vc_emit_bytes(e, "single_most", NULL, u->most);
	}
	vc_emit_end(e);
}

static void emit_unknown(struct vc_emit *e, const struct vc_dryrun_outcome *o)
{
	vc_emit_array(e, "unknown", NULL);
	for (size_t i = 0; i < o->n_unknown; i++)
		vc_emit_text(e, NULL, NULL, o->unknown[i].name);
	vc_emit_end(e);
	vc_emit_array(e, "uncounted", NULL);
	for (size_t i = 0; i < o->n_unknown; i++)
		emit_uncounted(e, &o->unknown[i]);
	vc_emit_end(e);
}

static void emit_run(struct vc_emit *e, const struct vc_dryrun *run)
{
	const struct vc_dryrun_outcome *o = &run->o;
	bool both = o->other_peak || o->replay.most_reserved;
	uint64_t low, high;
	ends(o, &low, &high);
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "gpu", NULL, run->card->name);
	vc_emit_text(e, "title", NULL, run->card->title);
	if (run->world) {
		vc_emit_uint(e, "world", NULL, run->world);
		vc_emit_uint(e, "rank", NULL, run->rank);
		vc_emit_text(e, "role", NULL, run->role[0] ? run->role : NULL);
	}
	vc_emit_bytes(e, "capacity", NULL, run->total);
	vc_emit_bytes(e, "context", NULL, run->context);
	vc_emit_bytes(e, "others", NULL, run->beside);
	vc_emit_text(e, "trace", NULL, run->by ? NULL : run->out);
	vc_emit_text(e, "answered_by", NULL, run->by ? run->by->name : NULL);
	vc_emit_int(e, "exit_code", NULL, o->code);
	vc_dryrun_emit_end(e, run);
	vc_emit_text(e, "verdict", NULL, vc_verdict_name(vc_dryrun_verdict(run)));
	vc_emit_bool(e, "too_close_to_call", NULL, is_close(run));
	vc_emit_bytes(e, "peak_used", NULL, use_of(run));
	if (vc_dryrun_together(run, NULL))
		vc_emit_bytes(e, "peak_together", NULL, vc_dryrun_together(run, NULL));
	if (vc_dryrun_together(run, NULL))
		vc_emit_bytes(e, "held_together", NULL, vc_dryrun_held(run));
	vc_emit_bytes(e, "margin", NULL, margin_of(o));
	vc_emit_bytes(vc_emit_known(e, o->experts.made), "experts_even", NULL,
		      with_experts(run, false));
	vc_emit_bytes(vc_emit_known(e, o->experts.made), "experts_skewed", NULL,
		      with_experts(run, true));
	if (o->experts.dies > 0) {
		vc_emit_real(e, "skew_that_fits", NULL, o->experts.lives);
		vc_emit_real(e, "skew_that_dies", NULL, o->experts.dies);
	}
	vc_emit_uint(e, "refused", NULL, o->refused);
	vc_emit_bytes(e, "largest_refused", NULL, o->largest_refused);
	vc_emit_bool(e, "both_address_orders", NULL, both);
	vc_emit_bytes(e, "device_low", NULL, low);
	vc_emit_bytes(e, "device_high", NULL, high);
	if (o->replay.most_drawn) {
		vc_emit_bytes(e, "drawn_low", NULL,
			      o->peak + o->replay.least_drawn - o->replay.reserved);
		vc_emit_bytes(e, "drawn_high", NULL,
			      o->peak + o->replay.most_drawn - o->replay.reserved);
	}
	vc_dryrun_emit_peaks(e, o);
	vc_emit_uint(e, "steps", NULL, o->replay.phases.steps);
	emit_phases(e, &o->replay);
	emit_step(e, &o->replay);
	emit_unknown(e, o);
	if (o->pool)
		vc_emit_bytes(e, "pool_peak", NULL, o->pool);
	vc_emit_uint(e, "driver_blocks", NULL, o->blocks);
	vc_emit_bytes(e, "driver_rounding", NULL, o->rounding);
	vc_emit_end(e);
}

int vc_dryrun_write(const struct vc_dryrun *runs, size_t n, const char *path, struct vc_error *err)
{
	struct vc_emit *e = vc_emit_file(path, VC_EMIT_JSON, err);
	if (!e)
		return err->status;
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "schema", NULL, "vramcast.dryrun/1");
	vc_emit_array(e, "runs", NULL);
	for (size_t i = 0; i < n; i++)
		emit_run(e, &runs[i]);
	vc_emit_end(e);
	vc_emit_end(e);
	return vc_emit_done(e, err);
}
