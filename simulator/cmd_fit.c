/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_fit.c - vramcast fit: the largest batch (or any recorded parameter) that fits, per card. */
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simulator/report.h"
#include "simulator/search.h"
#include "simulator/trial.h"
#include "simulator/whatif.h"

enum { PROBES = 512, CARDS = 64, TRIALS = 8 };

struct config {
	struct vc_run_options run;
	const char *find, *target, *at, *with;
	uint64_t multiple, most;
	bool json;
};

#define AT(f) offsetof(struct config, f)
static const struct vc_option fit_options[] = {
	{ 0, "find", VC_O_TEXT, AT(find), "KEY", "the parameter to find: batch, seq, ...", "batch" },
	{ 0, "target", VC_O_TEXT, AT(target), "LOW..HIGH%", "share of the card to aim for", "85..95%" },
	{ 0, "multiple", VC_O_UINT, AT(multiple), "N", "only multiples of N", "1" },
	{ 0, "most", VC_O_UINT, AT(most), "N", "never look beyond N", "1048576" },
	{ 0, "at", VC_O_TEXT, AT(at), "N,N,...", "values of the trial runs of a program", "4,8" },
	{ 0, "with", VC_O_TEXT, AT(with), "dryrun|record", "how trial runs are made", "dryrun" },
	{ 0, "json", VC_O_FLAG, AT(json), NULL, "one JSON document on standard output", NULL },
	VC_OPTION_END
};
static const struct vc_option *const tables[] = { fit_options, vc_run_options, NULL };

struct probe { uint64_t value; enum vc_verdict verdict; uint64_t used, high; double share; };

struct card_fit {
	struct vc_plan plan;
	struct probe probe[PROBES];
	size_t probes;
	struct vc_found found;
	uint64_t largest, failing, recommended, flushing;
	char why[256], trust[256];
	int proof[2];          /* trial runs at the answer and above it: 1 ran, 0 ran out, -1 not made */
	uint64_t proof_at[2];
};

struct fit {
	const struct config *cfg;
	struct vc_run_options opt; /* of the session: with --set to a recorded value */
	struct vc_session base;
	struct vc_plan *plan;
	size_t plans;
	struct card_fit *card;
	double low, high;          /* target */
	size_t now;                /* card being searched */
	char spec[TRIALS][512];
	size_t trials;
	char set[160];
	const char *set_text;
	bool opened;
};

/* ---- one prediction ---- */

static int predict(struct fit *f, uint64_t value, bool interval, struct probe *p, struct vc_error *err)
{
	struct card_fit *c = &f->card[f->now];
	struct vc_param_value at = { (char *)f->cfg->find, (double)value };
	struct vc_session s, on, quick;
	struct vc_result r;
	char text[96];

	snprintf(text, sizeof(text), "%s=%" PRIu64, f->cfg->find, value);
	int rc = vc_whatif_at(&f->base, &at, 1, text, &s, err);
	if (rc < 0) {
		vc_session_close(&s);
		return rc;
	}
	const struct vc_session *card = vc_whatif_on(&s, c->plan.card, &on, err);
	if (!card) {
		vc_session_close(&s);
		return VC_ENOMEM;
	}
	quick = *card;
	if (!interval)
		quick.whatif = NULL;
	rc = vc_session_run(&quick, &c->plan, NULL, &r, err);
	if (rc == VC_OK) {
		uint64_t beside = vc_session_beside(&s, &c->plan);
		*p = (struct probe){ .value = value, .verdict = vc_result_verdict(&r),
				     .used = r.stats.peak_reserved + beside };
		p->high = r.has_interval && r.high + beside > p->used ? r.high + beside : p->used;
		snprintf(c->trust, sizeof(c->trust), "%s", s.whatif->trust);
		p->share = c->plan.capacity ? (double)p->high / (double)c->plan.capacity : 0;
		vc_result_fini(&r);
	}
	vc_session_close(&s);
	return rc;
}

static int probe(struct fit *f, uint64_t value, bool interval, struct probe **out, struct vc_error *err)
{
	struct card_fit *c = &f->card[f->now];

	for (size_t i = 0; i < c->probes; i++)
		if (c->probe[i].value == value && !interval) {
			*out = &c->probe[i];
			return VC_OK;
		}
	if (c->probes == PROBES)
		return vc_fail(err, VC_EINTERNAL, "the search did not end");
	*out = &c->probe[c->probes];
	int r = predict(f, value, interval, *out, err);
	if (r == VC_OK)
		c->probes++;
	return r;
}

static int fits(void *arg, uint64_t units, bool *yes, struct vc_error *err)
{
	struct fit *f = arg;
	struct probe *p;
	int r = probe(f, units * f->cfg->multiple, false, &p, err);

	if (r < 0)
		return r;
	*yes = p->verdict == VC_FITS;
	if (p->verdict == VC_FLUSHES && p->value > f->card[f->now].flushing)
		f->card[f->now].flushing = p->value;
	return VC_OK;
}

/* ---- the recommendation ---- */

/* Largest value whose upper end stays below the target's, by bisection below the largest. */
static int recommend(struct fit *f, struct vc_error *err)
{
	struct card_fit *c = &f->card[f->now];
	uint64_t unit = f->cfg->multiple, good = 0, bad = c->largest / unit + 1;
	struct probe *p = NULL;

	while (bad - good > 1) {
		uint64_t mid = good ? good + (bad - good) / 2 : bad - 1;
		int r = probe(f, mid * unit, false, &p, err);
		if (r == VC_OK && p->verdict == VC_FITS && p->share <= f->high)
			r = probe(f, mid * unit, true, &p, err); /* with its interval */
		if (r < 0)
			return r;
		if (p->verdict == VC_FITS && p->share <= f->high)
			good = mid;
		else
			bad = mid;
		if (!good && bad > 1 && bad == mid) /* after the first look: halve */
			good = 0, bad = mid;
		if (!good && bad > 2) {
			uint64_t half = bad / 2;
			r = probe(f, half * unit, false, &p, err);
			if (r < 0)
				return r;
			*(p->verdict == VC_FITS && p->share <= f->high ? &good : &bad) = half;
		}
	}
	c->recommended = good * unit;
	return VC_OK;
}

static const struct probe *at(const struct card_fit *c, uint64_t value)
{
	for (size_t i = c->probes; i-- > 0;)
		if (c->probe[i].value == value)
			return &c->probe[i];
	return NULL;
}

static void explain(struct fit *f)
{
	struct card_fit *c = &f->card[f->now];
	const struct probe *r = at(c, c->recommended), *l = at(c, c->largest);

	if (!c->largest)
		snprintf(c->why, sizeof(c->why), "not even %s=%" PRIu64 " fits", f->cfg->find, f->cfg->multiple);
	else if (!c->plan.capacity)
		snprintf(c->why, sizeof(c->why), "no card given: nothing limits it");
	else if (!c->recommended)
		snprintf(c->why, sizeof(c->why), "%" PRIu64 " fits, but with %.1f %% of the card used nothing is "
			 "left for surprises", c->largest, 100 * l->share);
	else if (c->recommended == c->largest)
		snprintf(c->why, sizeof(c->why), "%" PRIu64 " is the largest that fits and uses %.1f %% of the card"
			 "%s", c->recommended, 100 * r->share, r->share < f->low ? "; the next step up is too "
			 "large" : "");
	else
		snprintf(c->why, sizeof(c->why), "%" PRIu64 " uses %.1f %% of the card; %" PRIu64 " fits too but "
			 "uses %.1f %%, which leaves no room for fragmentation or other processes",
			 c->recommended, 100 * r->share, c->largest, 100 * l->share);
}

static int search_card(struct fit *f, struct vc_error *err)
{
	struct card_fit *c = &f->card[f->now];
	double from = vc_family_value(f->base.whatif->family, f->base.whatif->report.base, f->cfg->find);
	struct vc_search s = { .start = (uint64_t)(from / (double)f->cfg->multiple),
			       .most = f->cfg->most / f->cfg->multiple, .arg = f, .probe = fits };

	c->probes = 0;
	c->flushing = 0;
	if (!s.start)
		s.start = 1;
	if (!c->plan.capacity)
		return vc_fail(err, VC_EUSAGE, "say what it has to fit on: -g GPU or --capacity SIZE");
	int r = vc_search_run(&s, &c->found, err);
	if (r < 0)
		return r;
	c->largest = c->found.largest * f->cfg->multiple;
	c->failing = c->found.failing * f->cfg->multiple;
	r = c->largest ? recommend(f, err) : VC_OK;
	if (r == VC_OK)
		explain(f);
	return r;
}

/* ---- opening ---- */

static int parse_target(struct fit *f, struct vc_error *err)
{
	char text[64], *dots;

	snprintf(text, sizeof(text), "%s", f->cfg->target);
	size_t n = strcspn(text, "%");
	text[n] = '\0';
	dots = strstr(text, "..");
	f->low = 0;
	if (dots) {
		*dots = '\0';
		if (vc_parse_real(text, &f->low, err) < 0)
			return vc_wrap(err, "--target");
	}
	if (vc_parse_real(dots ? dots + 2 : text, &f->high, err) < 0)
		return vc_wrap(err, "--target");
	if (f->low > 1 || f->high > 1) {
		f->low /= 100;
		f->high /= 100;
	}
	if (f->low < 0 || f->high > 1 || f->low > f->high || f->high <= 0)
		return vc_fail(err, VC_EUSAGE, "--target %s: write LOW..HIGH%%, as in 85..95%%", f->cfg->target);
	return VC_OK;
}

static int open_family(struct fit *f, size_t n, char **paths, struct vc_error *err)
{
	f->opt = f->cfg->run;
	int r = vc_session_open(&f->base, &f->opt, n, paths, VC_SESSION_IN_MEMORY, err);

	f->opened = true;
	if (r < 0)
		return r;
	if (!f->base.whatif || isnan(vc_family_value(f->base.whatif->family, 0, f->cfg->find)))
		return vc_fail(err, VC_EUSAGE, "the recordings do not differ in %s; give two, as a.vct@%s=8 "
			       "b.vct@%s=16, or a program after -- with {%s} in its arguments", f->cfg->find,
			       f->cfg->find, f->cfg->find, f->cfg->find);
	r = vc_session_plans(&f->base, &f->plan, &f->plans, err);
	if (r == VC_OK && f->plans > CARDS)
		r = vc_fail(err, VC_EUSAGE, "at most %d cards and settings at once", CARDS);
	if (r < 0)
		return r;
	f->card = calloc(f->plans, sizeof(*f->card));
	if (!f->card)
		return vc_nomem(err, "the cards");
	for (size_t i = 0; i < f->plans; i++) {
		f->card[i].plan = f->plan[i];
		f->card[i].proof[0] = f->card[i].proof[1] = -1;
	}
	return VC_OK;
}

static void close_family(struct fit *f)
{
	if (f->opened)
		vc_session_close(&f->base);
	free(f->plan);
	free(f->card);
	f->opened = false;
	f->plan = NULL;
	f->card = NULL;
}

static int search_all(struct fit *f, struct vc_error *err)
{
	int r = VC_OK;

	for (f->now = 0; r == VC_OK && f->now < f->plans; f->now++)
		r = search_card(f, err);
	f->now = 0;
	return r;
}

/* ---- a program instead of recordings ---- */

static bool is_program(const struct config *c, size_t argc, char **argv)
{
	char mark[80];

	snprintf(mark, sizeof(mark), "{%s}", c->find);
	for (size_t i = 0; i < argc; i++)
		if (strstr(argv[i], mark))
			return true;
	return false;
}

static int try_value(struct fit *f, struct vc_trial *t, uint64_t value, int *oom, struct vc_error *err)
{
	if (f->trials == TRIALS)
		return vc_fail(err, VC_EINTERNAL, "too many trial runs");
	return vc_trial_run(t, value, f->spec[f->trials++], oom, err);
}

static int refit(struct fit *f, struct vc_error *err)
{
	char *path[TRIALS];

	for (size_t i = 0; i < f->trials; i++)
		path[i] = f->spec[i];
	close_family(f);
	int r = open_family(f, f->trials, path, err);
	return r < 0 ? r : search_all(f, err);
}

/* Trial runs at the answer and just above it, on each card: the proof. */
static int prove(struct fit *f, struct vc_trial *t, struct vc_error *err)
{
	char spec[512];

	for (size_t i = 0; i < f->plans; i++) {
		struct card_fit *c = &f->card[i];
		uint64_t value[2] = { c->largest, c->failing };

		t->gpu = c->plan.card ? c->plan.card->name : t->gpu;
		for (int k = 0; k < 2; k++) {
			int oom = 0;
			if (!value[k])
				continue;
			int r = vc_trial_run(t, value[k], spec, &oom, err);
			if (r < 0)
				return r;
			c->proof_at[k] = value[k];
			c->proof[k] = !oom;
		}
	}
	return VC_OK;
}

static void sweep_up(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	char path[400];

	while (d && (e = readdir(d))) {
		snprintf(path, sizeof(path), "%s/%.300s", folder, e->d_name);
		unlink(path); /* "." and ".." refuse */
	}
	if (d)
		closedir(d);
	rmdir(folder);
}

static int fit_program(struct fit *f, size_t argc, char **argv, struct vc_error *err)
{
	const char *parent = getenv("TMPDIR");
	char folder[200] = { 0 };
	struct vc_trial t = { .verb = f->cfg->with, .key = f->cfg->find, .argv = argv, .argc = argc,
			      .folder = folder };
	int r = VC_OK;

	if (strcmp(t.verb, "dryrun") && strcmp(t.verb, "record"))
		return vc_fail(err, VC_EUSAGE, "--with %s: must be dryrun or record", t.verb);
	if (!f->cfg->run.gpu.n && !strcmp(t.verb, "dryrun"))
		return vc_fail(err, VC_EUSAGE, "a dry run plays a card: say which with -g");
	if (!strcmp(t.verb, "dryrun"))
		t.gpu = f->cfg->run.gpu.at[0];
	snprintf(folder, 180, "%.150s/vramcast-fit-", parent && *parent ? parent : "/tmp");
	memset(folder + strlen(folder), 'X', 6); /* mkdtemp's template; the rest is zero from the start */
	if (!mkdtemp(folder))
		return vc_fail(err, VC_EIO, "cannot make a folder for the trial runs in %s",
			       parent && *parent ? parent : "/tmp");
	for (const char *p = f->cfg->at; r == VC_OK && *p;) {
		char one[32];
		uint64_t value;
		size_t len = strcspn(p, ",");

		snprintf(one, sizeof(one), "%.*s", (int)len, p);
		r = vc_parse_uint(one, &value, err);
		if (r == VC_OK)
			r = try_value(f, &t, value, NULL, err);
		p += len + (p[len] == ',');
	}
	if (r == VC_OK)
		r = refit(f, err);
	if (r == VC_OK && !strcmp(t.verb, "dryrun"))
		r = prove(f, &t, err);
	sweep_up(folder);
	return r;
}

/* ---- saying it ---- */

static void emit_probe(struct vc_emit *e, const struct fit *f, const struct card_fit *c,
		       const struct probe *p)
{
	vc_emit_object(e, NULL, NULL);
	vc_emit_uint(e, f->cfg->find, f->cfg->find, p->value);
	vc_emit_text(e, "verdict", "verdict", vc_verdict_name(p->verdict));
	vc_emit_bytes(e, "peak_used", "used", p->used);
	vc_emit_bytes(e, "peak_used_high", NULL, p->high);
	if (c->plan.capacity)
		vc_emit_real(e, "used_share", "share", round(1e4 * p->share) / 1e4);
	vc_emit_end(e);
}

static void emit_number(struct vc_emit *e, const char *key, const char *label, uint64_t v)
{
	if (v)
		vc_emit_uint(e, key, label, v);
	else
		vc_emit_null(e, key, label);
}

static void emit_proof(struct vc_emit *e, const struct card_fit *c)
{
	vc_emit_array(e, "proof", NULL);
	for (int k = 0; k < 2; k++) {
		if (c->proof[k] < 0)
			continue;
		vc_emit_object(e, NULL, NULL);
		vc_emit_uint(e, "value", NULL, c->proof_at[k]);
		vc_emit_bool(e, "ran", NULL, c->proof[k]);
		vc_emit_end(e);
	}
	vc_emit_end(e);
}

static void emit_answer(struct vc_emit *e, const struct card_fit *c)
{
	vc_emit_text(e, "gpu", "card", c->plan.card ? c->plan.card->name : NULL);
	vc_emit_text(e, "conf", NULL, c->plan.conf);
	emit_number(e, "largest", "largest", c->largest);
	emit_number(e, "largest_flushing", NULL, c->flushing);
	emit_number(e, "smallest_failing", "fails at", c->failing);
	vc_emit_bool(e, "monotone", NULL, !c->found.holes);
	emit_number(e, "recommended", "recommended", c->recommended);
	vc_emit_text(e, "why", "why", c->why);
	emit_proof(e, c);
}

static void emit_runs(struct vc_emit *e, const struct fit *f, const struct card_fit *c)
{
	vc_emit_array(e, "runs", NULL);
	for (size_t i = 0; i < c->probes; i++)
		emit_probe(e, f, c, &c->probe[i]);
	vc_emit_end(e);
}

static void emit_json(struct vc_emit *e, const struct fit *f)
{
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "schema", NULL, "vramcast.fit/1");
	vc_emit_text(e, "find", NULL, f->cfg->find);
	emit_answer(e, &f->card[0]);
	vc_emit_array(e, "target", NULL);
	vc_emit_real(e, NULL, NULL, f->low);
	vc_emit_real(e, NULL, NULL, f->high);
	vc_emit_end(e);
	vc_emit_text(e, "trust", NULL, f->card[0].trust);
	emit_runs(e, f, &f->card[0]);
	vc_emit_array(e, "cards", NULL);
	for (size_t i = 0; i < f->plans; i++) {
		vc_emit_object(e, NULL, NULL);
		emit_answer(e, &f->card[i]);
		emit_runs(e, f, &f->card[i]);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	vc_emit_end(e);
}

static void emit_text(struct vc_emit *e, const struct fit *f)
{
	vc_emit_object(e, NULL, "");
	vc_emit_line(e, "%s: %s", f->cfg->find, f->card[0].trust);
	for (size_t i = 0; i < f->plans; i++) {
		const struct card_fit *c = &f->card[i];

		vc_emit_line(e, "\n%s%s%s", c->plan.device ? c->plan.device : "the given capacity",
			     c->plan.conf[0] ? ", " : "", c->plan.conf);
		vc_emit_line(e, "  largest that fits      %" PRIu64, c->largest);
		if (c->flushing > c->largest)
			vc_emit_line(e, "  runs by flushing       %" PRIu64 " (slow: the cache is emptied on the way)",
				     c->flushing);
		if (c->failing)
			vc_emit_line(e, "  smallest that does not %" PRIu64, c->failing);
		if (c->recommended)
			vc_emit_line(e, "  recommended            %" PRIu64, c->recommended);
		vc_emit_line(e, "  because                %s", c->why);
		for (int k = 0; k < 2; k++)
			if (c->proof[k] >= 0)
				vc_emit_line(e, "  trial run at %" PRIu64 ": %s", c->proof_at[k],
					     c->proof[k] ? "ran" : "ran out of memory");
	}
	vc_emit_end(e);
}

static int say(const struct fit *f, struct vc_error *err)
{
	struct vc_output *out = vc_output_open("-", err);
	struct vc_emit *e = out ? vc_emit_new(out, f->cfg->json ? VC_EMIT_JSON : VC_EMIT_TEXT, err) : NULL;
	int r;

	if (!e) {
		vc_output_close(out);
		return err->status;
	}
	if (f->cfg->json)
		emit_json(e, f);
	else
		emit_text(e, f);
	r = vc_emit_finish(e, err);
	if (r == VC_OK)
		r = vc_output_commit(out, err);
	vc_output_close(out);
	return r;
}

static int fit_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	struct fit f = { .cfg = config };
	int r = parse_target(&f, &con->err);

	if (r == VC_OK && (!f.cfg->multiple || !f.cfg->most))
		r = vc_fail(&con->err, VC_EUSAGE, "--multiple and --most start at 1");
	if (r == VC_OK && is_program(f.cfg, argc, argv)) {
		r = fit_program(&f, argc, argv, &con->err);
	} else if (r == VC_OK) {
		r = open_family(&f, argc, argv, &con->err);
		if (r == VC_OK)
			r = search_all(&f, &con->err);
	}
	if (r == VC_OK)
		r = say(&f, &con->err);
	if (r == VC_OK && !f.card[0].largest)
		r = 3;
	close_family(&f);
	return r;
}

const struct vc_command vc_command_fit = {
	.name = "fit",
	.operands = "TRACE... | -- PROGRAM ARG...",
	.summary = "the largest batch size (or any recorded parameter) that fits a card",
	.details = "From two or more recordings (fit a.vct@batch=8 b.vct@batch=16 -g rtx4090), or from a program "
		   "(fit --find batch -g rtx4090 -- python train.py --batch-size {batch}): then trial runs on the "
		   "null GPU come first, and trial runs at the answer and just above it prove it.",
	.options = tables,
	.config_size = sizeof(struct config),
	.run = fit_run,
};
