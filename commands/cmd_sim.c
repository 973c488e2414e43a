/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_sim.c - vramcast sim: one or several what-if runs of one trace. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simulator/advise/advice.h"
#include "simulator/session/again.h"
#include "simulator/session/host.h"
#include "simulator/advise/report.h"
#include "simulator/session/write_trace.h"
#include "simulator/advise/summary.h"
#include "simulator/time/time.h"
#include "simulator/session/whatif.h"
#include "visualize/sink.h"
#include "visualize/spark.h"

struct config {
	struct vc_run_options run;
	struct vc_list output;
	const char *fail_above;
	uint64_t host_memory;
	bool fail_on_flush, strict, json, stats, summary, no_advice;
};

#define AT(f) offsetof(struct config, f)
static const struct vc_option sim_options[] = {
	{ 0, "json", VC_O_FLAG, AT(json), NULL, "one JSON document on standard output", NULL },
	{ 0, "stats", VC_O_FLAG, AT(stats), NULL, "the statistics of torch.cuda.memory_stats()",
	  NULL },
	{ 0, "summary", VC_O_FLAG, AT(summary), NULL, "the table of torch.cuda.memory_summary()",
	  NULL },
	{ 'o', "output", VC_O_LIST, AT(output), "FILE",
	  "also write FILE; its extension picks what (.svg .html .csv .json ...)", NULL },
	{ 0, "fail-above", VC_O_TEXT, AT(fail_above), "P%",
	  "exit 4 when more than P percent of the capacity are used", NULL },
	{ 0, "fail-on-flush", VC_O_FLAG, AT(fail_on_flush), NULL,
	  "exit 4 when it fits only by emptying the cache", NULL },
	{ 0, "host-memory", VC_O_SIZE, AT(host_memory), "SIZE",
	  "memory of the host: a verdict for it too (exit 3 when it does not suffice)", NULL },
	{ 0, "no-advice", VC_O_FLAG, AT(no_advice), NULL,
	  "do not look for changes that would help", NULL },
	{ 0, "strict", VC_O_FLAG, AT(strict), NULL,
	  "exit 5 when the model does not reproduce the recording", NULL },
	VC_OPTION_END
};
static const struct vc_option *const tables[] = { sim_options, vc_run_options, NULL };

struct sim {
	const struct config *cfg;
	struct vc_session session;
	struct vc_plan *plan;
	struct vc_result *result; /* n of them */
	size_t n, done;
	struct vc_host host;
	size_t traces;
	char **trace; /* as they were given */
};

/* ---- running ---- */

/* Chapters for the report, and those the output files ask for; each once. */
static size_t add_observer(const struct vc_observer_type **list, size_t n, const char *name)
{
	const struct vc_observer_type *o = vc_observer_by_name(name);

	for (size_t i = 0; o && i < n; i++)
		if (list[i] == o)
			return n;
	if (o)
		list[n++] = o;
	return n;
}

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
	const struct vc_observer_type *watch[16] = { 0 };
	size_t n = add_observer(watch, 0, "oom");

	n = add_observer(watch, n, "peak");
	n = add_observer(watch, n, "pace");
	if (draws_spark(sim))
		n = add_observer(watch, n, "timeline");
	if (sim->cfg->stats || sim->cfg->summary)
		n = add_observer(watch, n, "counters");
	for (size_t i = 0; i < sim->cfg->output.n; i++) {
		const struct vc_sink_type *k = vc_sink_by_extension(sim->cfg->output.at[i]);

		if (!k && is_trace(sim->cfg->output.at[i]))
			continue;
		if (!k)
			return vc_fail(
				err, VC_EUSAGE,
				"-o %s: the extension says nothing to me ('vramcast list sinks')",
				sim->cfg->output.at[i]);
		for (size_t c = 0; k->observers && k->observers[c] && n < 15; c++)
			n = add_observer(watch, n, k->observers[c]);
	}
	for (; sim->done < sim->n; sim->done++) {
		int r = vc_session_run(&sim->session, &sim->plan[sim->done], watch,
				       &sim->result[sim->done], err);

		if (r < 0)
			return r;
		sim->result[sim->done].fidelity = sim->session.fidelity;
		sim->result[sim->done].fidelity.diverged_why = NULL;
		r = vc_time_answer(&sim->session, &sim->plan[sim->done], &sim->result[sim->done],
				   err);
		if (r < 0) {
			sim->done++;
			return r;
		}
	}
	return VC_OK;
}

static int write_file(struct sim *sim, const char *path, struct vc_error *err)
{
	const struct vc_sink_type *k = vc_sink_by_extension(path);
	void *cfg = calloc(1, k->config_size ? k->config_size : 1);
	struct vc_output *out = vc_output_open(path, err);
	int r = !cfg ? vc_nomem(err, "options") : out ? vc_params_parse(k->params, cfg, NULL, err)
						    : (int)err->status;

	if (r == VC_OK)
		r = k->write(sim->result, sim->n, cfg, out, err);
	if (r == VC_OK)
		r = vc_output_commit(out, err);
	vc_output_close(out);
	free(cfg);
	return r;
}

static int write_files(struct sim *sim, struct vc_error *err)
{
	const struct vc_encoder_options copy = { .level = 3, .block = 65536, .copy = true };
	int r = VC_OK;

	for (size_t i = 0; r == VC_OK && i < sim->cfg->output.n; i++) {
		const char *path = sim->cfg->output.at[i];

		r = is_trace(path) ? vc_session_write(&sim->session, path, &copy, err) :
				     write_file(sim, path, err);
	}
	return r;
}

/* ---- saying it ---- */

static void emit_stats(struct vc_emit *e, const struct sim *sim, size_t i)
{
	const struct vc_counters *c = &sim->result[i].counters;

	if (sim->cfg->stats) {
		vc_emit_object(e, "memory_stats", NULL);
		vc_summary_stats(e, c, NULL);
		vc_emit_end(e);
	}
	if (sim->cfg->summary)
		vc_summary_table(e, c, sim->result[i].info.device);
}

static void emit_one_advice(struct vc_emit *e, const struct vc_advice *a)
{
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "kind", NULL, a->kind);
	vc_emit_text(e, "text", NULL, a->text);
	vc_emit_text(e, "how", NULL, a->how[0] ? a->how : NULL);
	vc_emit_text(e, "paste", NULL, a->paste[0] ? a->paste : NULL);
	vc_emit_bytes(e, "peak_reserved", NULL, a->peak_reserved);
	vc_emit_text(e, "verdict", NULL, vc_verdict_name(a->verdict));
	vc_emit_bool(e, "estimate", NULL, a->estimate);
	vc_result_emit_interval(e, a->has_interval, a->low, a->high);
	if (a->at_least) {
		vc_emit_uint(e, "at_least", NULL, a->at_least);
		vc_emit_uint(e, "at_most", NULL, a->at_most);
	}
	vc_emit_end(e);
}

static void say_advice(struct vc_emit *e, const struct sim *sim, const struct vc_plan *plan,
		       const struct vc_advice *a, size_t n)
{
	char peak[32], low[32], high[32], between[80], again[2048];

	if (n && (!strcmp(a->kind, "room") || !strcmp(a->kind, "risk"))) {
		vc_emit_line(e, "\n%s", a->text);
		return;
	}
	if (n)
		vc_emit_line(
			e, "\nWhat would have helped, cheapest first (each of them simulated):");
	for (size_t i = 0; i < n; i++) {
		snprintf(between, sizeof(between), " (%s .. %s)", vc_bytes_text(a[i].low, low),
			 vc_bytes_text(a[i].high, high));
		vc_emit_line(e, "  %zu. %s: %s, %s%s reserved%s", i + 1, a[i].text,
			     a[i].verdict == VC_FITS ? "fits" : "still empties its cache",
			     vc_bytes_text(a[i].peak_reserved, peak),
			     a[i].has_interval ? between : "",
			     a[i].estimate ? ", an estimate" : "");
		if (a[i].paste[0])
			vc_emit_line(e, "       %s", a[i].paste);
		if (a[i].how[0])
			vc_emit_line(e, "       %s",
				     vc_again(&sim->cfg->run, sim->traces, sim->trace, plan,
					      a[i].how, again, sizeof(again)));
	}
}

static void emit_advice(struct vc_emit *e, const struct sim *sim, size_t i)
{
	struct vc_advice a[VC_ADVICE_MOST];
	size_t n = sim->cfg->no_advice ?
			   0 :
			   vc_advise(&sim->session, &sim->plan[i], &sim->result[i], a);

	vc_emit_array(e, "advice", NULL);
	for (size_t k = 0; k < n; k++)
		emit_one_advice(e, &a[k]);
	vc_emit_end(e);
	say_advice(e, sim, &sim->plan[i], a, n);
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
	if (h->sampled)
		vc_emit_bytes(e, "resident", shown ? "resident" : NULL, h->resident);
	else
		vc_emit_null(e, "resident", shown ? "resident (not recorded)" : NULL);
	vc_emit_bytes(e, "pinned", shown ? "pinned" : NULL, h->pinned);
	vc_emit_bytes(e, "moved", shown ? "moved there by the change" : NULL, h->moved);
	vc_emit_uint(e, "processes", shown ? "such processes" : NULL, h->processes);
	vc_emit_bytes(e, "needed", shown ? "needed" : NULL, h->needed);
	if (given)
		vc_emit_bytes(e, "capacity", "capacity", limit);
	else
		vc_emit_null(e, "capacity", NULL);
	vc_emit_bool(e, "lower_bound", NULL, !h->sampled);
	/* Without samples of the process the sum is what must be there at least. */
	snprintf(line, sizeof(line),
		 !host_fits(sim) ? "does not fit: %s%s needed, %s there" :
		 h->sampled      ? "fits: %s%s of %s" :
				   "fits as far as is known: %s%s of %s, a lower bound: resident "
			      "memory was not recorded",
		 h->sampled || host_fits(sim) ? "" : "at least ", vc_bytes_text(h->needed, a),
		 vc_bytes_text(given ? limit : 0, b));
	if (given)
		vc_emit_bool(e, "fits", NULL, host_fits(sim));
	else
		vc_emit_null(e, "fits", NULL);
	vc_emit_text(e, NULL, given ? "verdict" : NULL, line);
	vc_emit_end(e);
}

static void emit_json(struct vc_emit *e, struct sim *sim)
{
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "schema", NULL, "vramcast.sim/1");
	vc_report_trace(e, &sim->session);
	vc_report_fidelity(e, &sim->session);
	emit_host(e, sim);
	vc_emit_array(e, "runs", NULL);
	for (size_t i = 0; i < sim->n; i++) {
		vc_emit_object(e, NULL, NULL);
		vc_report_run(e, &sim->session, &sim->plan[i], &sim->result[i]);
		emit_stats(e, sim, i);
		emit_advice(e, sim, i);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	vc_emit_end(e);
}

static const char *trust_line(const struct vc_session *s, char *buf, size_t n)
{
	const struct vc_fidelity *f = &s->fidelity;

	if (!s->device->allocs && !s->device->frees)
		snprintf(buf, n,
			 "the trace holds the heap at one moment and no events: only its live "
			 "blocks are asked for");
	else if (!f->checked)
		snprintf(buf, n, "not checked against the recording, which has no addresses: not "
			 "verified");
	else if (f->exact)
		snprintf(buf, n, "the model reproduces this recording exactly (%" PRIu64
			 " events, %" PRIu64 " segments)",
			 f->events_compared, f->segments_recorded);
	else
		snprintf(buf, n, "the model does NOT reproduce this recording: %s",
			 f->diverged_why ? f->diverged_why : "it differs");
	return buf;
}

/* What the transforms have to say about their work: as much of it as the recording is long is done
 * once more for that. */
static void say_transforms(struct vc_emit *e, const struct vc_session *s)
{
	struct vc_event ev[256];
	struct vc_error ignored;
	struct vc_source *src = s->opt->transform.n ? vc_session_source(s, &ignored) : NULL;

	for (size_t had = 0; src && had <= s->trace.n; had += 256)
		if (src->type->next(src, ev, 256, &ignored) <= 0)
			break;
	for (size_t i = s->meta->notes; src && i < src->meta->notes; i++)
		vc_emit_text(e, NULL, "note", src->meta->note[i]);
	vc_source_free(src);
}

/* What the recording says of its own end: the person who ran it wants to meet it again. */
static void say_recorded_oom(struct vc_emit *e, const struct vc_session *s, bool predicted)
{
	const struct vc_device_census *d = s->device;
	const struct vc_device_info *on = vc_meta_device_known(s->meta, d->device);
	char line[512], asked[32], left[32], total[32];
	int n;

	if (!d->ooms)
		return;
	n = snprintf(line, sizeof(line),
		     "the recorded run itself ran out of memory%s: event %" PRIu64
		     " asked for %s with %s free",
		     d->ooms > 1 ? " (several times; the last)" : "", d->oom_event,
		     vc_bytes_text(d->oom_request, asked), vc_bytes_text(d->oom_free, left));
	if (on && on->total)
		n += snprintf(line + n, sizeof(line) - (size_t)n, " of %s",
			      vc_bytes_text(on->total, total));
	if (on && on->name)
		n += snprintf(line + n, sizeof(line) - (size_t)n, " on %s", on->name);
	if (predicted)
		snprintf(line + n, sizeof(line) - (size_t)n,
			 "; the prediction knows nothing of what would have come after it: "
			 "record a value that fits");
	vc_emit_text(e, NULL, "note", line);
}

static void say_context(struct vc_emit *e, const struct vc_session *s)
{
	char line[640];

	vc_emit_object(e, NULL, "");
	vc_emit_text(e, NULL, "trace", s->path);
	snprintf(line, sizeof(line), "%" PRIu64 " allocations, %" PRIu64 " frees on device %u%s%s",
		 s->device->allocs, s->device->frees, s->device->device,
		 s->census.devices > 1 ? " (the busiest of several)" : "",
		 s->device->preexisting ? "; recording began with blocks already there" : "");
	vc_emit_text(e, NULL, "requests", line);
	snprintf(line, sizeof(line), "%s (%s)", s->torch[0] ? s->torch : "unknown", s->torch_from);
	vc_emit_text(e, NULL, "torch", line);
	if (s->change[0])
		vc_emit_text(e, NULL, "changed", s->change);
	if (vc_report_words(s))
		vc_emit_text(e, NULL, "predicted", vc_report_words(s));
	if (vc_report_narrow(s))
		vc_emit_text(e, NULL, "to narrow it", vc_report_narrow(s));
	vc_emit_text(e, NULL, "trust", trust_line(s, line, sizeof(line)));
	for (size_t i = 0; i < s->meta->notes; i++)
		vc_emit_text(e, NULL, "note", s->meta->note[i]);
	say_transforms(e, s);
	say_recorded_oom(e, s, false);
	for (size_t i = 0; s->whatif && i < s->whatif->recordings; i++)
		say_recorded_oom(e, &s->whatif->recording[i], true);
	if (s->meta->how[VC_CAP_NULL_GPU] == VC_HOW_RECORDED)
		vc_emit_text(e, NULL, "note",
			     "recorded on the null GPU: simulated, not measured on a card");
	vc_emit_end(e);
}

static void say_oom(struct vc_emit *e, const struct vc_result *r)
{
	const struct vc_oom_report *o = &r->oom;
	char place[512];

	vc_emit_object(e, NULL, "  when it ran out");
	vc_emit_bytes(e, NULL, "    asked for", o->request);
	vc_emit_bytes(e, NULL, "    largest free block", o->largest_free);
	vc_emit_bytes(e, NULL, "    free in the cache", o->free_in_cache);
	vc_emit_bytes(e, NULL, "    free on the device", o->device_free);
	vc_emit_end(e);
	if (o->message && *o->message)
		vc_emit_line(e, "\nPyTorch would say:\n  %s", o->message);
	vc_emit_array(e, NULL, "Who holds the memory:");
	for (size_t i = 0; i < o->holders && i < 8; i++) {
		vc_emit_object(e, NULL, NULL);
		vc_emit_bytes(e, NULL, "bytes", o->holder[i].bytes);
		vc_emit_uint(e, NULL, "blocks", o->holder[i].blocks);
		vc_emit_text(e, NULL, "where",
			     vc_holder_text(r->meta, &o->holder[i], place, sizeof(place)));
		vc_emit_end(e);
	}
	vc_emit_end(e);
	if (o->holders && r->meta->how[VC_CAP_STACKS] == VC_HOW_ABSENT)
		vc_emit_line(e, "  (no call sites in the recording: --stacks py of record and "
			     "dryrun has them)");
}

static void say_spark(struct vc_emit *e, const struct vc_result *r)
{
	const char *lang = getenv("LC_ALL");
	char line[3 * 60 + 1];

	lang = lang && *lang ? lang : getenv("LC_CTYPE");
	lang = lang && *lang ? lang : getenv("LANG");
	bool utf8 = lang && (strstr(lang, "UTF-8") || strstr(lang, "utf8"));
	if (*vc_spark(r, 60, !utf8, line))
		vc_emit_line(e, "  reserved over the run  %s", line);
}

/* A profile has no segments to check the replay by, but counters that it may contradict: segments
 * that were there before it, streams, and what other threads allocated are not in it. */
static void say_counters(struct vc_emit *e, const struct vc_session *s, const struct vc_result *r)
{
	const struct vc_device_info *on = vc_meta_device_known(s->meta, s->device->device);
	char own[2][32], ours[2][32];

	if (!on || !on->reserved || s->change[0])
		return;
	bool less = r->stats.peak_reserved * 100 < on->reserved * 95 ||
		    r->stats.peak_allocated * 100 < on->allocated * 95;
	bool more = r->stats.peak_allocated * 95 > on->allocated * 100 ||
		    r->stats.peak_reserved * 95 > on->reserved * 100;

	vc_emit_line(e,
		     "  the recording's own counters say %s reserved and %s allocated at most; "
		     "the replay has %s and %s: %s",
		     vc_bytes_text(on->reserved, own[0]), vc_bytes_text(on->allocated, own[1]),
		     vc_bytes_text(r->stats.peak_reserved, ours[0]),
		     vc_bytes_text(r->stats.peak_allocated, ours[1]),
		     less ? "they contradict it, the real run needs at least what they say" :
		     more ? "they contradict it" : "within 5 %, which is not a proof");
}

static void say_run(struct vc_emit *e, const struct sim *sim, size_t i)
{
	const struct vc_plan *p = &sim->plan[i];
	const struct vc_result *r = &sim->result[i];
	char line[512], low[32], high[32];

	vc_emit_line(e, "\n%s%s%s%s%s: %s", p->model->name, p->torch[0] ? " " : "", p->torch,
		     p->device ? " on " : "", p->device ? p->device : "",
		     vc_report_verdict(p, r, line, sizeof(line)));
	if (p->conf[0])
		vc_emit_line(e, "  settings %s", p->conf);
	if (draws_spark(sim))
		say_spark(e, r);
	vc_report_ledger(e, p, r, true);
	say_counters(e, &sim->session, r);
	if (r->has_interval)
		vc_emit_line(e, "  reserved lies between %s and %s", vc_bytes_text(r->low, low),
			     vc_bytes_text(r->high, high));
	if (*vc_time_words(r, line, sizeof(line)))
		vc_emit_line(e, "  time  %s", line);
	else if (sim->session.time && r->timing.why[0])
		vc_emit_line(e, "  time  unknown: %s", r->timing.why);
	if (r->oom.happened)
		say_oom(e, r);
	if (r->stats.ooms_averted)
		vc_emit_line(e,
			     "  note: %s that failed in the recording succeed%s here and count%s "
			     "for the peak, given back at once: what the program would have done "
			     "next is not recorded",
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
	const struct vc_device_info *on = vc_meta_device_known(s->meta, s->device->device);
	const struct vc_card *card = sim->n ? sim->plan[0].card : NULL;
	const char *command = s->meta->command;

	if (!card && on && on->name)
		card = vc_card_by_name(on->name);
	if (!s->device->ends_in_oom || s->whatif)
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
	say_context(e, &sim->session);
	if (sim->n <= 3) {
		for (size_t i = 0; i < sim->n; i++)
			say_run(e, sim, i);
		say_whole(e, sim);
		emit_host(e, sim);
		return;
	}
	vc_emit_object(e, NULL, "");
	vc_emit_array(e, "runs", "Runs");
	for (size_t i = 0; i < sim->n; i++) {
		vc_emit_object(e, NULL, NULL);
		vc_report_run(e, &sim->session, &sim->plan[i], &sim->result[i]);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	emit_host(e, sim);
	vc_emit_end(e);
}

static int say(struct sim *sim, struct vc_error *err)
{
	struct vc_output *out = vc_output_open("-", err);
	struct vc_emit *e =
		out ? vc_emit_new(out, sim->cfg->json ? VC_EMIT_JSON : VC_EMIT_TEXT, err) : NULL;
	int r;

	if (!e) {
		vc_output_close(out);
		return err->status;
	}
	if (sim->cfg->json)
		emit_json(e, sim);
	else
		emit_text(e, sim);
	r = vc_emit_finish(e, err);
	if (r == VC_OK)
		r = vc_output_commit(out, err);
	vc_output_close(out);
	return r;
}

/* ---- the verdict as an exit code ---- */

static int budget_of(const struct config *c, double *share, struct vc_error *err)
{
	char text[32];
	size_t n;

	*share = INFINITY;
	if (!c->fail_above)
		return VC_OK;
	snprintf(text, sizeof(text), "%s", c->fail_above);
	n = strlen(text);
	if (n && text[n - 1] == '%')
		text[n - 1] = '\0';
	if (vc_parse_real(text, share, err) < 0 || *share < 0)
		return vc_fail(err, VC_EUSAGE, "--fail-above %s: wants a percentage such as 90%%",
			       c->fail_above);
	*share /= 100;
	return VC_OK;
}

/* A budget that nothing is measured against would pass every CI job. */
static int need_capacity(const struct sim *sim, struct vc_error *err)
{
	for (size_t i = 0; sim->cfg->fail_above && i < sim->n; i++)
		if (!sim->plan[i].capacity)
			return vc_fail(err, VC_EUSAGE,
				       "--fail-above %s of what? The recording names no card: "
				       "add -g CARD or --capacity SIZE",
				       sim->cfg->fail_above);
	return VC_OK;
}

/* The worst of the runs: 5 not trustworthy, 3 out of memory, 4 over the budget, 0 fits. */
static int exit_code(const struct sim *sim, double budget)
{
	const struct vc_session *s = &sim->session;
	int code = 0;

	if (sim->cfg->strict && !s->fidelity.exact)
		return 5;
	if (!host_fits(sim))
		return 3;
	for (size_t i = 0; i < sim->n; i++) {
		const struct vc_plan *p = &sim->plan[i];
		const struct vc_result *r = &sim->result[i];
		enum vc_verdict v = vc_result_verdict(r);
		double used = (double)r->stats.peak_used;

		if (v == VC_OOM)
			return 3;
		if ((v == VC_FLUSHES && sim->cfg->fail_on_flush) ||
		    (p->capacity && used > budget * (double)p->capacity))
			code = 4;
	}
	return code;
}

static int sim_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	struct sim sim = { .cfg = config, .traces = argc, .trace = argv };
	double budget;
	int r = budget_of(sim.cfg, &budget, &con->err);

	if (r == VC_OK)
		r = vc_session_open(&sim.session, &sim.cfg->run, argc, argv, 0, &con->err);
	if (r == VC_OK)
		r = vc_time_open(&sim.session, &con->err);
	if (r == VC_OK)
		r = vc_session_plans(&sim.session, &sim.plan, &sim.n, &con->err);
	if (r == VC_OK)
		r = need_capacity(&sim, &con->err);
	if (r == VC_OK && !(sim.result = calloc(sim.n, sizeof(*sim.result))))
		r = vc_nomem(&con->err, "the results");
	if (r == VC_OK)
		r = run_all(&sim, &con->err);
	if (r == VC_OK)
		r = vc_host_read(&sim.session, 2 * sim.result->stats.events + (1 << 16), &sim.host,
				 &con->err);
	if (r == VC_OK)
		r = write_files(&sim, &con->err);
	if (r == VC_OK)
		r = say(&sim, &con->err);
	if (r == VC_OK)
		r = exit_code(&sim, budget);
	for (size_t i = 0; i < sim.done; i++)
		vc_result_fini(&sim.result[i]);
	free(sim.result);
	free(sim.plan);
	vc_session_close(&sim.session);
	return r;
}

const struct vc_command vc_command_sim = {
	.name = "sim",
	.operands = "TRACE...",
	.summary = "replay a trace with anything changed; does it fit?",
	.details =
		"Every combination of -m, --torch, --conf and -g is one run. Exit codes: 0 fits, "
		"1 failed,\n"
		"2 wrong usage, 3 runs out of memory, 4 over the budget asked for, 5 not "
		"trustworthy (--strict).\n\n"
		"  vramcast sim run.vct -g rtx4090\n"
		"  vramcast sim run.vct -g l4 --conf expandable_segments:True -o picture.svg\n"
		"  vramcast sim run.vct --torch 2.9 --torch 2.15 --capacity 24GiB --json",
	.options = tables,
	.config_size = sizeof(struct config),
	.run = sim_run,
};
