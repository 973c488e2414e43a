/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_sim.c - vramcast sim: one or several what-if runs of one trace. */
#include <unistd.h>

#include "commands/estimate_cards.h"
#include "commands/run_and_write.h"
#include "commands/sim_verdict.h"
#include "commands/sim_words.h"
#include "simulator/advise/advice_words.h"
#include "simulator/advise/changes.h"
#include "simulator/findings/leaks.h"
#include "simulator/session/answer.h"
#include "simulator/session/host.h"
#include "simulator/advise/report.h"
#include "simulator/session/write_trace.h"
#include "simulator/advise/summary.h"
#include "simulator/search/allocators.h"
#include "simulator/time/time.h"
#include "simulator/session/whatif.h"

struct config {
	struct vc_run_options run;
	struct vc_list output;
	const char *fail_above, *prices;
	uint64_t host_memory;
	bool fail_on_flush, strict, json, csv, stats, summary, no_advice, brief;
};

#define AT(f) offsetof(struct config, f)
static const struct vc_option sim_options[] = {
	{ 0, "json", VC_O_FLAG, AT(json), NULL, "one JSON document on standard output", NULL },
	{ 0, "as", VC_O_AS, 0, "table|csv|json", "csv: the runs side by side, one line each",
	  NULL },
	{ 0, "csv", VC_O_FLAG, AT(csv), NULL, NULL, NULL },
	{ 0, "stats", VC_O_FLAG, AT(stats), NULL, "the statistics of torch.cuda.memory_stats()",
	  NULL },
	{ 0, "summary", VC_O_FLAG, AT(summary), NULL, "the table of torch.cuda.memory_summary()",
	  NULL },
	{ 'o', "output", VC_O_FILES, AT(output), "FILE",
	  "also write FILE; its extension picks what (.svg .html .csv .json ...)", NULL },
	{ 0, "fail-above", VC_O_TEXT, AT(fail_above), "P%|SIZE",
	  "exit 4 when more than that, of the capacity or in bytes, may be used", NULL },
	{ 0, "fail-on-flush", VC_O_FLAG, AT(fail_on_flush), NULL,
	  "exit 4 when it fits only by emptying the cache", NULL },
	{ 0, "prices", VC_O_TEXT, AT(prices), "FILE",
	  "NAME,PRICE on each line: -g all begins with the cheapest card", NULL },
	{ 0, "host-memory", VC_O_SIZE, AT(host_memory), "SIZE",
	  "memory of the host: a verdict for it too (exit 3 when it does not suffice)", NULL },
	{ 0, "no-advice", VC_O_FLAG, AT(no_advice), NULL,
	  "do not look for changes that would help", NULL },
	{ 0, "brief", VC_O_FLAG, AT(brief), NULL, "the answer in 25 lines at most", NULL },
	{ 0, "strict", VC_O_FLAG, AT(strict), NULL,
	  "exit 5 when the answer is not to be trusted: not reproduced, or undecided", NULL },
	VC_OPTION_END
};

enum { RUNS_IN_FULL = 3 }; /* more are a table */
enum { ADVICE_IN_BRIEF = 10 }; /* lines: three changes */

struct sim {
	const struct config *cfg;
	struct vc_session session;
	struct vc_plan *plan;
	size_t n;
	struct vc_results results; /* of each plan, as far as they went */
	struct vc_host host;
	size_t traces;
	char **trace; /* as they were given */
	struct vc_advice (*advice)[VC_ADVICE_MOST]; /* of each run, advices[i] of them */
	size_t *advices;
	bool color;
	size_t told; /* bytes of the answer that stand on the terminal already */
	struct vc_budget budget;
	struct vc_leak leak;
	bool drawn_advice; /* a file shows the runs with each change */
};

/* ---- running ---- */

/* People who look at a terminal get the shape of the run in one line. */
static bool draws_spark(const struct sim *sim)
{
	return !sim->cfg->json && isatty(STDOUT_FILENO);
}

/* -o changed.vct: the events that were replayed, not a picture of the result. */
static bool is_trace(const char *path)
{
	size_t n = strlen(path);

	return n > 4 && !strcmp(path + n - 4, ".vct");
}

static int run_all(struct sim *sim, struct vc_error *err)
{
	const struct vc_observer_type *watch[VC_WATCH_MOST] = { 0 };
	const struct vc_list *files = &sim->cfg->output;

	vc_watch(watch, "oom");
	vc_watch(watch, "moment");
	vc_watch(watch, "peak");
	vc_watch(watch, "pace");
	vc_watch(watch, "turns");
	if (draws_spark(sim))
		vc_watch(watch, "timeline");
	if (sim->cfg->stats || sim->cfg->summary)
		vc_watch(watch, "counters");
	for (size_t i = 0; i < files->n; i++) {
		const struct vc_sink_type *k;

		if (is_trace(files->at[i]))
			continue;
		k = vc_choose_sink(files->at[i], NULL, sim->n, err);
		if (!k)
			return err->status;
		vc_watch_for(watch, k, sim->session.rec->census.events);
		sim->drawn_advice |= k->advised;
	}
	return vc_run_plans(&sim->session, sim->plan, sim->n, watch, &sim->results, err);
}

/* Before anything is written: a report shows it, too. */
static int advise(struct sim *sim, struct vc_console *con)
{
	const struct vc_asked asked = { &sim->cfg->run, sim->traces, sim->trace };
	struct vc_error *err = &con->err;
	int r = VC_OK;

	sim->leak = sim->n ? sim->results.at->leak : (struct vc_leak){ 0 };
	sim->advice = calloc(sim->n, sizeof(*sim->advice));
	sim->advices = calloc(sim->n, sizeof(*sim->advices));
	if (!sim->advice || !sim->advices)
		return vc_nomem(err, "the advice");
	for (size_t i = 0; i < sim->n && r == VC_OK; i++) {
		if (!sim->cfg->no_advice)
			sim->advices[i] = vc_advise_aloud(&sim->session, &sim->plan[i],
							  &sim->results.at[i], con,
							  sim->drawn_advice, sim->advice[i]);
		r = vc_advice_words(&sim->plan[i], &asked, sim->advice[i], sim->advices[i],
				    &sim->results.at[i], err);
	}
	return r;
}

static int write_files(struct sim *sim, struct vc_error *err)
{
	const struct vc_encoder_options copy = { .level = 3, .block = 65536, .copy = true };
	int r = VC_OK;

	for (size_t i = 0; r == VC_OK && i < sim->cfg->output.n; i++) {
		const char *path = sim->cfg->output.at[i];

		r = is_trace(path) ?
			    vc_trace_write(sim->session.rec, &sim->session.opt->transform, path,
					   &copy, err) :
			    vc_write_results(&sim->results,
					     vc_choose_sink(path, NULL, sim->n, err), NULL, path,
					     err);
	}
	return r;
}

/* ---- saying it ---- */

/* Why the run is over the budget, "" when it is not. Returns buf. */
static const char *say_budget(const struct sim *sim, size_t i, char *buf, size_t n)
{
	return vc_budget_missed(&sim->budget, &sim->plan[i], &sim->results.at[i], buf, n);
}

static const char *say_distrust(const struct sim *sim, size_t i, char *buf, size_t n)
{
	return vc_budget_distrust(&sim->budget, &sim->plan[i], &sim->results.at[i], buf, n);
}

static void emit_stats(struct vc_emit *e, const struct sim *sim, size_t i)
{
	const struct vc_counters *c = &sim->results.at[i].counters;

	if (sim->cfg->stats) {
		vc_emit_object(e, "memory_stats", NULL);
		vc_summary_stats(e, c, NULL);
		vc_emit_end(e);
	}
	if (sim->cfg->summary)
		vc_summary_table(e, c, sim->results.at[i].info.device);
}

static void emit_advice(struct vc_emit *e, const struct sim *sim, size_t i)
{
	const struct vc_words *w = &sim->results.at[i].words;

	vc_emit_array(e, "advice", NULL);
	for (size_t k = 0; k < sim->advices[i]; k++)
		vc_sim_emit_advice(e, &sim->advice[i][k]);
	vc_emit_end(e);
	for (size_t k = sim->leak.steps > 0; k < w->n; k++)
		vc_emit_line(e, "%s%s", k == (sim->leak.steps > 0) ? "\n" : "", w->line[k]);
}

static bool host_fits(const struct sim *sim)
{
	return sim->cfg->host_memory == VC_NOT_GIVEN || sim->host.needed <= sim->cfg->host_memory;
}

/* Of the host: what the recording saw and what the transforms move there. */
static void emit_host(struct vc_emit *e, const struct sim *sim)
{
	const struct vc_host *h = &sim->host;
	uint64_t limit = sim->cfg->host_memory;
	bool given = limit != VC_NOT_GIVEN, shown = given || h->moved;
	char line[200], a[32], b[32];

	vc_emit_object(e, "host", shown ? "Host memory" : NULL);
	vc_emit_bytes(vc_emit_known(e, h->sampled), "resident", !shown ? NULL : h->sampled ?
		      "resident" : "resident (not recorded)", h->resident);
	vc_emit_bytes(e, "pinned", shown ? "pinned" : NULL, h->pinned);
	vc_emit_bytes(e, "managed", shown && h->managed ? "managed, at most" : NULL,
		      h->managed);
	vc_emit_bytes(e, "moved", shown ? "moved there by the change" : NULL, h->moved);
	vc_emit_uint(e, "processes", shown ? "such processes" : NULL, h->processes);
	vc_emit_bytes(e, "needed", shown ? "needed" : NULL, h->needed);
	vc_emit_bytes(vc_emit_known(e, given), "capacity", given ? "capacity" : NULL, limit);
	vc_emit_bool(e, "lower_bound", NULL, !h->sampled);
	/* Without samples of the process the sum is what must be there at least. */
	snprintf(line, sizeof(line),
		 !host_fits(sim) ? "does not fit: %s%s needed, %s there" :
		 h->sampled      ? "fits: %s%s of %s" :
				   "fits as far as is known: %s%s of %s, a lower bound: resident "
			      "memory was not recorded",
		 h->sampled || host_fits(sim) ? "" : "at least ", vc_bytes_text(h->needed, a),
		 vc_bytes_text(given ? limit : 0, b));
	vc_emit_bool(vc_emit_known(e, given), "fits", NULL, host_fits(sim));
	vc_emit_text(e, NULL, given ? "verdict" : NULL, line);
	vc_emit_end(e);
}

/* Cards come in the order of their prices. */
static void emit_cheapest(struct vc_emit *e, const struct sim *sim)
{
	size_t i = 0;

	while (i < sim->n && vc_result_verdict(&sim->results.at[i]) != VC_FITS)
		i++;
	if (sim->cfg->prices)
		vc_gpu_cheapest(e, sim->cfg->prices, i < sim->n ? sim->plan[i].card : NULL);
}

static void emit_json(struct vc_emit *e, struct sim *sim)
{
	char line[320];

	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "schema", NULL, "vramcast.sim/1");
	vc_report_trace(e, &sim->session, sim->plan, sim->n ? sim->results.at : NULL);
	vc_report_fidelity(e, &sim->session);
	emit_host(e, sim);
	vc_leak_report(e, sim->session.rec->meta, &sim->leak);
	vc_emit_array(e, "runs", NULL);
	for (size_t i = 0; i < sim->n; i++) {
		vc_emit_object(e, NULL, NULL);
		vc_report_run(e, &sim->session, &sim->plan[i], &sim->results.at[i]);
		vc_report_holders(e, &sim->results.at[i], 0);
		vc_report_turns(e, &sim->results.at[i], false);
		vc_changes_report(e, &sim->session, &sim->plan[i], false);
		say_budget(sim, i, line, sizeof(line));
		vc_emit_text(e, "over", NULL, *line ? line : NULL);
		say_distrust(sim, i, line, sizeof(line));
		vc_emit_text(e, "distrust", NULL, *line ? line : NULL);
		emit_stats(e, sim, i);
		emit_advice(e, sim, i);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	if (vc_allocators_differ(sim->plan, sim->n))
		vc_allocators_report(e, sim->plan, sim->results.at, sim->n);
	emit_cheapest(e, sim);
	vc_emit_end(e);
}

/* Only its own allocator was held against the recording. */
static void say_other_models(struct vc_emit *e, const struct sim *sim)
{
	for (size_t i = 0; i < sim->n; i++)
		if (sim->plan[i].model != vc_recording_model(sim->session.rec)) {
			vc_emit_text(e, NULL, "note",
				     "that is the torch model; no recording of PyTorch can tell "
				     "whether another model is right");
			return;
		}
}

static void say_context(struct vc_emit *e, const struct sim *sim)
{
	const struct vc_session *s = &sim->session;
	const struct vc_device_info *on =
		vc_meta_device_known(s->rec->meta, s->rec->device->device);
	const struct vc_plan *p = sim->plan;
	const struct vc_result *r = sim->n ? sim->results.at : NULL;
	char line[640], a[32], b[32];

	vc_emit_line(e, "%s", "");
	vc_emit_object(e, NULL, "What this rests on");
	vc_emit_text(e, NULL, "trace", s->rec->path);
	snprintf(
		line, sizeof(line), "%" PRIu64 " allocations, %" PRIu64 " frees on device %u%s%s",
		s->rec->device->allocs, s->rec->device->frees, s->rec->device->device,
		vc_sim_why_device(s),
		s->rec->device->preexisting ? "; recording began with blocks already there" : "");
	vc_emit_text(e, NULL, "requests", line);
	snprintf(line, sizeof(line), "%s (%s)", s->rec->torch[0] ? s->rec->torch : "unknown",
		 s->rec->torch_from);
	vc_emit_text(e, NULL, "torch", line);
	if (sim->n && !sim->plan[0].card && sim->plan[0].device && s->rec->device->oom_reserved &&
	    !(on && on->total)) {
		snprintf(line, sizeof(line), "%s, by what was reserved (%s) and free (%s) when it "
			 "ran out: the recording does not name its card",
			 sim->plan[0].device, vc_bytes_text(s->rec->device->oom_reserved, a),
			 vc_bytes_text(s->rec->device->oom_free, b));
		vc_emit_text(e, NULL, "card", line);
	}
	if (*vc_job_change(s->change, &s->opt->transform, line, sizeof(line)))
		vc_emit_text(e, NULL, "changed", line);
	vc_emit_text(e, NULL, "level", sim->n ? vc_level_name(vc_answer_level(s, p, r)) : NULL);
	if (sim->n && vc_report_words(s, p, r))
		vc_emit_text(e, NULL, s->whatif ? "predicted" : "because",
			     vc_report_words(s, p, r));
	if (s->why[0])
		vc_emit_text(e, NULL, "not rerun", s->why);
	if (sim->n && vc_report_narrow(s, p, r))
		vc_emit_text(e, NULL, "to narrow it", vc_report_narrow(s, p, r));
	vc_emit_text(e, NULL, "trust", vc_sim_trust_line(s, line, sizeof(line)));
	say_other_models(e, sim);
	for (size_t i = 0; i < s->rec->meta->notes; i++)
		vc_emit_text(e, NULL, "note", s->rec->meta->note[i]);
	vc_sim_say_transforms(e, s);
	vc_sim_say_recorded_oom(e, s->rec, false);
	for (size_t i = 0; s->whatif && i < s->whatif->recordings; i++)
		vc_sim_say_recorded_oom(e, &s->whatif->recording[i], true);
	if (s->rec->meta->how[VC_CAP_NULL_GPU] == VC_HOW_RECORDED)
		vc_emit_text(e, NULL, "note",
			     "recorded on the null GPU: simulated, not measured on a card");
	vc_emit_end(e);
}

static const char *color_of(const struct sim *sim, const struct vc_result *r)
{
	static const char *const code[] = { [VC_FITS] = "32", [VC_FLUSHES] = "33",
					   [VC_UNDECIDED] = "34", [VC_OOM] = "31" };

	return sim->color ? code[vc_result_verdict(r)] : "";
}

/* The answer in one line; what CI makes of it in another. */
static void say_verdict(struct vc_emit *e, const struct sim *sim, size_t i)
{
	const struct vc_plan *p = &sim->plan[i];
	const struct vc_result *r = &sim->results.at[i];
	char line[640];

	if (i)
		vc_emit_line(e, "%s", "");
	vc_emit_color(e, color_of(sim, r));
	vc_emit_line(e, "%s%s%s%s%s: %s", p->model->name, p->torch[0] ? " " : "", p->torch,
		     p->device ? " on " : "", p->device ? p->device : "",
		     vc_verdict_text(r, line, sizeof(line)));
	if (*say_budget(sim, i, line, sizeof(line)))
		vc_emit_line(e, "  %s", line);
	if (*say_distrust(sim, i, line, sizeof(line)))
		vc_emit_line(e, "  %s", line);
	if (sim->session.rec->fidelity.checked && !sim->session.rec->fidelity.exact)
		vc_emit_line(e, "  careful: the model does not reproduce this recording");
	if (p->conf[0])
		vc_emit_line(e, "  settings %s", p->conf);
}

/* What is known before changes that would help are looked for. */
static void say_first(struct vc_emit *e, const struct sim *sim, size_t i)
{
	const struct vc_result *r = &sim->results.at[i];
	char low[32], high[32];

	say_verdict(e, sim, i);
	if (r->has_interval && !r->trust.cannot[0])
		vc_emit_line(e, "  reserved lies between %s and %s", vc_bytes_text(r->low, low),
			     vc_bytes_text(r->high, high));
	if (!r->trust.cannot[0])
		vc_changes_report(e, &sim->session, &sim->plan[i], true);
}

/* The answer, who holds most, three changes, and how far to trust it. */
static void say_brief(struct vc_emit *e, const struct sim *sim)
{
	const struct vc_words *w = &sim->results.at[0].words;
	size_t first = sim->leak.steps > 0, most = ADVICE_IN_BRIEF;
	char line[640];

	if (sim->plan->conf[0] || sim->results.at->has_interval)
		most -= 3; /* lines that say so */
	say_first(e, sim, 0);
	vc_report_holders(e, &sim->results.at[0], 3);
	for (size_t k = first; k < w->n && k < first + most; k++)
		vc_emit_line(e, "%s%s", k == first ? "\n" : "", w->line[k]);
	vc_emit_line(e, "%s: %s",
		     vc_level_name(vc_answer_level(&sim->session, sim->plan, sim->results.at)),
		     vc_sim_trust_line(&sim->session, line, sizeof(line)));
}

static void say_run(struct vc_emit *e, const struct sim *sim, size_t i)
{
	const struct vc_plan *p = &sim->plan[i];
	const struct vc_result *r = &sim->results.at[i];
	char line[512];

	say_first(e, sim, i);
	if (r->trust.cannot[0])
		return;
	if (sim->leak.steps && r->words.n)
		vc_emit_line(e, "  %s", r->words.line[0]);
	if (draws_spark(sim))
		vc_sim_say_spark(e, r);
	vc_report_ledger(e, p, r, true);
	vc_sim_say_counters(e, &sim->session, r);
	if (*vc_time_words(r, line, sizeof(line)))
		vc_emit_line(e, "  time  %s", line);
	else if (sim->session.time && r->timing.why[0])
		vc_emit_line(e, "  time  unknown: %s", r->timing.why);
	if (r->oom.happened)
		vc_sim_say_oom(e, r);
	vc_report_holders(e, r, 8);
	vc_report_turns(e, r, true);
	if (r->stats.ooms_averted)
		vc_emit_line(e, "  note: %s that failed in the recording succeed%s here and "
			     "count%s for the peak, given back at once: what the program would "
			     "have done next is not recorded",
			     r->stats.ooms_averted > 1 ? "requests" : "the request",
			     r->stats.ooms_averted > 1 ? "" : "s",
			     r->stats.ooms_averted > 1 ? "" : "s");
	emit_stats(e, sim, i);
	vc_emit_object(e, NULL, "");
	emit_advice(e, sim, i);
	vc_emit_end(e);
}

/* A program that died says nothing of what it needs, and a dry run has any memory one likes. */
static void say_whole(struct vc_emit *e, const struct sim *sim)
{
	const struct vc_session *s = &sim->session;
	const struct vc_device_info *on =
		vc_meta_device_known(s->rec->meta, s->rec->device->device);
	const struct vc_card *card = sim->n ? sim->plan[0].card : NULL;
	const char *command = s->rec->meta->command;

	if (!card && on && on->name)
		card = vc_card_by_name(on->name);
	if (!s->rec->device->ends_in_oom || s->whatif)
		return;
	vc_emit_line(e, "\nThe recording ends where the program ran out of memory. All of it, "
		     "without a GPU:\n"
		     "  vramcast dryrun -g %s --capacity 1TiB -o whole.vct -- %s\n"
		     "and 'vramcast sim whole.vct -g %s' on that says what it needs and what "
		     "would help",
		     card ? card->name : "CARD",
		     command && *command ? command : "python train.py",
		     card ? card->name : "CARD");
}

static void emit_text(struct vc_emit *e, struct sim *sim)
{
	char line[320];

	if (sim->cfg->brief && sim->n == 1) {
		say_brief(e, sim);
		return;
	}
	if (sim->n <= RUNS_IN_FULL) {
		for (size_t i = 0; i < sim->n; i++)
			say_run(e, sim, i);
		say_whole(e, sim);
		emit_host(e, sim);
		say_context(e, sim);
		return;
	}
	vc_emit_object(e, NULL, "");
	if (vc_allocators_differ(sim->plan, sim->n)) {
		vc_allocators_report(e, sim->plan, sim->results.at, sim->n);
	} else {
		vc_emit_array(e, "runs", "Runs");
		for (size_t i = 0; i < sim->n; i++) {
			vc_emit_object(e, NULL, NULL);
			vc_report_run(e, &sim->session, &sim->plan[i], &sim->results.at[i]);
			vc_emit_end(e);
		}
		vc_emit_end(e);
	}
	emit_host(e, sim);
	emit_cheapest(e, sim);
	vc_emit_end(e);
	for (size_t i = 0; i < sim->n; i++) {
		if (*say_budget(sim, i, line, sizeof(line)))
			vc_emit_line(e, "run %zu %s", i + 1, line);
		if (*say_distrust(sim, i, line, sizeof(line)))
			vc_emit_line(e, "run %zu %s", i + 1, line);
	}
	say_context(e, sim);
}

/* -o - takes standard output: the words then go where narration goes. */
static bool draws_on_stdout(const struct config *c)
{
	for (size_t i = 0; i < c->output.n; i++)
		if (!strcmp(c->output.at[i], "-"))
			return true;
	return false;
}

/* The answer of a terminal begins before advice is looked for, which may take a hundred times as
 * long. Everybody else gets all of it or nothing. */
static bool tells_early(const struct sim *sim)
{
	const struct config *c = sim->cfg;

	return !c->json && !c->csv && !c->no_advice && !draws_on_stdout(c) &&
	       sim->n <= RUNS_IN_FULL && isatty(STDOUT_FILENO);
}

static int say_early(struct sim *sim, struct vc_error *err)
{
	struct vc_emit *e = vc_emit_file(NULL, VC_EMIT_TEXT, err);
	char *text;

	VC_HAVE(e, "the answer", err);
	say_first(e, sim, 0);
	text = vc_emit_take(e, &sim->told, err);
	if (!text)
		return VC_ENOMEM;
	fwrite(text, 1, sim->told, stdout);
	fflush(stdout);
	free(text);
	return VC_OK;
}

/* Text that was collected: words beside a picture, or what comes after the beginning. */
static int say_collected(const struct sim *sim, const struct vc_console *con, struct vc_emit *e,
			 struct vc_error *err)
{
	size_t n;
	char *text = vc_emit_take(e, &n, err);

	if (text && sim->told && n >= sim->told)
		fwrite(text + sim->told, 1, n - sim->told, stdout);
	else if (text && !con->quiet)
		fwrite(text, 1, n, stderr);
	free(text);
	return text ? VC_OK : VC_ENOMEM;
}

static int say(struct sim *sim, const struct vc_console *con, struct vc_error *err)
{
	bool aside = draws_on_stdout(sim->cfg) || sim->told;
	enum vc_emit_mode mode = sim->cfg->json ? VC_EMIT_JSON :
				 sim->cfg->csv  ? VC_EMIT_CSV : VC_EMIT_TEXT;
	struct vc_emit *e = vc_emit_file(aside ? NULL : "-", mode, err);

	if (!e)
		return err->status;
	if (sim->cfg->json)
		emit_json(e, sim);
	else if (sim->cfg->csv)
		vc_allocators_report(e, sim->plan, sim->results.at, sim->n);
	else
		emit_text(e, sim);
	return aside ? say_collected(sim, con, e, err) : vc_emit_done(e, err);
}

/* What to type next: the first change that surely helps, what is missing, or a closer look. */
static void say_next(const struct sim *sim, struct vc_console *con)
{
	const struct vc_plan *p = sim->plan;
	const struct vc_result *r = sim->results.at;
	const struct vc_meta *m = sim->session.rec->meta;
	char after[300], card[64] = "";
	size_t k = 0;

	if (p->card)
		snprintf(card, sizeof(card), " -g %s", p->card->name);
	while (k < sim->advices[0] &&
	       (sim->advice[0][k].verdict != VC_FITS || !sim->advice[0][k].how[0]))
		k++;
	if (sim->n > 1 || sim->traces > 1)
		return;
	if (vc_result_verdict(r) == VC_FITS && m->params && sim->session.rec->device->allocs)
		snprintf(after, sizeof(after), "%s --find %.40s", card, m->param[0].name);
	else if (vc_result_verdict(r) != VC_FITS && k < sim->advices[0])
		snprintf(after, sizeof(after), "%s %s", card, sim->advice[0][k].how);
	else
		snprintf(after, sizeof(after), "%s", p->capacity ? " -o report.html" : " -g all");
	vc_next(con, strstr(after, "--find") ? "fit" : strstr(after, "-o rep") ? "report" : "sim",
		sim->trace[0], after);
}

/* ---- the verdict as an exit code ---- */

/* A budget that nothing is measured against would pass every CI job. */
static int need_capacity(const struct sim *sim, struct vc_error *err)
{
	for (size_t i = 0; sim->cfg->fail_above && !sim->budget.bytes && i < sim->n; i++)
		if (!sim->plan[i].capacity)
			return vc_fail(err, VC_EUSAGE, "--fail-above %s of what? The recording "
				       "names no card: add -g CARD or --capacity SIZE",
				       sim->cfg->fail_above);
	return VC_OK;
}

static int exit_code(const struct sim *sim)
{
	int code = vc_budget_code(&sim->budget, sim->plan, sim->results.at, sim->n);

	return host_fits(sim) || code == 5 ? code : 3;
}

static int sim_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *cfg = config;
	struct sim sim = { .cfg = cfg, .traces = argc, .trace = argv, .color = con->color,
			  .budget = { .above = cfg->fail_above, .on_flush = cfg->fail_on_flush,
				      .strict = cfg->strict } };
	int r = vc_budget_parse(&sim.budget, &con->err);

	if (r == VC_OK && sim.cfg->json + sim.cfg->csv + draws_on_stdout(sim.cfg) > 1)
		r = vc_fail(&con->err, VC_EUSAGE, "%s and %s both want standard output",
			    sim.cfg->json ? "--json" : "--csv",
			    sim.cfg->json && sim.cfg->csv ? "--csv" : "-o -");
	vc_remark_cards(&sim.cfg->run.gpu, con);
	if (r == VC_OK)
		r = vc_session_open(&sim.session, &sim.cfg->run, argc, argv, 0, &con->err);
	if (r == VC_OK)
		r = vc_time_open(&sim.session, &con->err);
	if (r == VC_OK)
		r = vc_session_plans(&sim.session, &sim.plan, &sim.n, &con->err);
	if (r == VC_OK)
		r = need_capacity(&sim, &con->err);
	if (r == VC_OK)
		r = run_all(&sim, &con->err);
	if (r == VC_OK && tells_early(&sim))
		r = say_early(&sim, &con->err);
	if (r == VC_OK)
		r = vc_host_read(sim.session.rec, &sim.session.opt->transform,
				 2 * sim.results.at->stats.events + (1 << 16), &sim.host,
				 &con->err);
	if (r == VC_OK)
		r = advise(&sim, con);
	if (r == VC_OK)
		r = write_files(&sim, &con->err);
	if (r == VC_OK)
		r = say(&sim, con, &con->err);
	if (r == VC_OK && sim.n)
		say_next(&sim, con);
	if (r == VC_OK)
		r = exit_code(&sim);
	vc_results_fini(&sim.results);
	free(sim.advice);
	free(sim.advices);
	free(sim.plan);
	vc_session_close(&sim.session);
	return r;
}

const struct vc_command vc_command_sim = {
	.name = "sim", .operands = "TRACE...",
	.summary = "replay a trace with anything changed; does it fit?",
	.details =
		"Every combination of -m, --torch, --conf and -g is one run. Exit codes: 0 fits, 1 "
		"failed,\n2 wrong usage, 3 runs out of memory, 4 over the budget asked for, 5 not "
		"trustworthy (--strict),\n6 undecided: one end of the interval fits, the other "
		"does not (--assume decides).\n\n"
		"  vramcast sim run.vct -g rtx4090\n"
		"  vramcast sim run.vct -g l4 --conf expandable_segments:True -o picture.svg\n"
		"  vramcast sim run.vct --torch 2.9 --torch 2.15 --capacity 24GiB --json",
	.options = VC_OPTIONS(sim_options, vc_run_options),
	.config_size = sizeof(struct config), .run = sim_run,
};
