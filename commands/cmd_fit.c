/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_fit.c - vramcast fit: the largest batch (or any recorded parameter) that fits, per card. */
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/vec.h"
#include "simulator/search/fit_words.h"
#include "simulator/time/time.h"
#include "commands/run_and_write.h"
#include "commands/trial.h"

enum { CARDS = 64, TRIALS = 8, CLASSES = 16, AMONG = 256 };

struct config {
	struct vc_run_options run;
	const char *find, *target, *among, *at, *with;
	uint64_t multiple, most;
	bool json;
};

#define AT(f) offsetof(struct config, f)
static const struct vc_option fit_options[] = {
	{ 0, "find", VC_O_TEXT, AT(find), "KEY", "the parameter to find: batch, seq, ...",
	  "batch" },
	{ 0, "target", VC_O_TEXT, AT(target), "LOW..HIGH%", "share of the card to aim for",
	  "85..95%" },
	{ 0, "multiple", VC_O_UINT, AT(multiple), "N", "only multiples of N", "1" },
	{ 0, "most", VC_O_UINT, AT(most), "N", "never look beyond N", "1048576" },
	{ 0, "among", VC_O_TEXT, AT(among), "N,N,...", "only these values", NULL },
	{ 0, "at", VC_O_TEXT, AT(at), "N,N,...", "values of the trial runs of a program", "4,6" },
	{ 0, "with", VC_O_TEXT, AT(with), "dryrun|record", "how trial runs are made", "dryrun" },
	{ 0, "json", VC_O_FLAG, AT(json), NULL, "one JSON document on standard output", NULL },
	VC_OPTION_END
};
static const struct vc_option *const tables[] = { fit_options, vc_run_options, NULL };

struct fit {
	const struct config *cfg;
	struct vc_run_options opt; /* of the session: one recording gets a --set */
	struct vc_session base;
	struct vc_fit find;
	struct vc_param_value also[VC_WHATIF_PARAMS]; /* of --set */
	char name[VC_WHATIF_PARAMS][VC_PARAM_TEXT];
	struct vc_plan *plan;
	size_t plans;
	struct vc_fit_card *card;
	struct vc_fit_proof *proof; /* one per card */
	char spec[TRIALS][512];
	size_t trials;
	struct vc_list gpu;        /* cards of this family, at gpu_text */
	const char *gpu_text[CARDS];
	char set[160];
	uint64_t among[AMONG];     /* of --among, ascending */
	const char *set_text[VC_WHATIF_PARAMS + 1];
	bool opened;
};

/* ---- opening ---- */

static int parse_target(struct fit *f, struct vc_error *err)
{
	char text[64], *dots;

	snprintf(text, sizeof(text), "%s", f->cfg->target);
	size_t n = strcspn(text, "%");
	text[n] = '\0';
	dots = strstr(text, "..");
	f->find.low = 0;
	if (dots) {
		*dots = '\0';
		if (vc_parse_real(text, &f->find.low, err) < 0)
			return vc_wrap(err, "--target");
	}
	if (vc_parse_real(dots ? dots + 2 : text, &f->find.high, err) < 0)
		return vc_wrap(err, "--target");
	double *low = &f->find.low, *high = &f->find.high;
	if (*low > 1 || *high > 1) {
		*low /= 100;
		*high /= 100;
	}
	if (*low < 0 || *high > 1 || *low > *high || *high <= 0)
		return vc_fail(err, VC_EUSAGE, "--target %s: write LOW..HIGH%%, as in 85..95%%",
			       f->cfg->target);
	return VC_OK;
}

/* "N,N,...", at most `cap` of them. */
static int read_numbers(const char *text, const char *option, uint64_t *v, size_t cap, size_t *n,
			struct vc_error *err)
{
	*n = 0;
	for (const char *p = text; *p;) {
		char one[32];
		size_t len = strcspn(p, ",");

		if (*n == cap)
			return vc_fail(err, VC_EUSAGE, "%s: at most %zu values", option, cap);
		snprintf(one, sizeof(one), "%.*s", (int)len, p);
		if (vc_parse_uint(one, &v[*n], err) < 0)
			return vc_wrap(err, "%s", option);
		(*n)++;
		p += len + (p[len] == ',');
	}
	return VC_OK;
}

static int read_among(struct fit *f, struct vc_error *err)
{
	size_t n, kept = 0;

	if (!f->cfg->among)
		return VC_OK;
	VC_TRY(read_numbers(f->cfg->among, "--among", f->among, AMONG, &n, err));
	if (f->cfg->multiple != 1)
		return vc_fail(err, VC_EUSAGE, "--among names the values: leave --multiple out");
	vc_sort_u64(f->among, n);
	for (size_t i = 0; i < n; i++)
		if (f->among[i] && f->among[i] <= f->cfg->most &&
		    (!kept || f->among[i] != f->among[kept - 1]))
			f->among[kept++] = f->among[i];
	if (!kept)
		return vc_fail(err, VC_EUSAGE, "--among %s: no value from 1 to --most",
			       f->cfg->among);
	f->find.among = f->among;
	f->find.amongs = kept;
	return VC_OK;
}

/* --set of other parameters holds for every prediction. */
static int read_also(struct fit *f, struct vc_error *err)
{
	const struct vc_list *set = &f->cfg->run.set;

	f->find.n = 0;
	for (size_t i = 0; i < set->n; i++) {
		if (f->find.n == VC_WHATIF_PARAMS)
			return vc_fail(err, VC_EUSAGE, "--set: at most %d values",
				       VC_WHATIF_PARAMS);
		VC_TRY(vc_whatif_parse(set->at[i], &f->also[f->find.n], f->name[f->find.n], err));
		if (!strcmp(f->also[f->find.n].name, f->cfg->find))
			return vc_fail(err, VC_EUSAGE, "--set %s: that is what --find looks for",
				       set->at[i]);
		f->set_text[f->find.n++] = set->at[i];
	}
	f->find.also = f->also;
	return VC_OK;
}

/* One recording answers too, with bounds: as a family of one it needs a value asked for. */
static int open_session(struct fit *f, size_t n, char **paths, struct vc_error *err)
{
	f->opt = f->cfg->run;
	f->opt.gpu = f->gpu;
	if (n == 1) {
		snprintf(f->set, sizeof(f->set), "%s=1", f->cfg->find);
		f->set_text[f->find.n] = f->set;
		f->opt.set = (struct vc_list){ f->set_text, f->find.n + 1 };
	}
	int r = vc_session_open(&f->base, &f->opt, n, paths, VC_SESSION_IN_MEMORY, err);
	f->opened = true;
	if (r == VC_OK && isnan(vc_family_value(f->base.whatif->family, 0, f->cfg->find)))
		r = VC_EUSAGE;
	if (r == VC_EUSAGE && (!f->base.whatif || !f->base.whatif->family ||
			       isnan(vc_family_value(f->base.whatif->family, 0, f->cfg->find))))
		return vc_fail(err, VC_EUSAGE, "the recordings do not say their %s; name it, as "
			       "a.vct@%s=8 b.vct@%s=16, or give a program after -- with {%s} in "
			       "its arguments", f->cfg->find, f->cfg->find, f->cfg->find,
			       f->cfg->find);
	return r;
}

static int open_family(struct fit *f, size_t n, char **paths, struct vc_error *err)
{
	int r = read_also(f, err);

	if (r == VC_OK)
		r = open_session(f, n, paths, err);
	if (r == VC_EIO && n && access(paths[0], F_OK) && !strchr(paths[0], '@'))
		return vc_fail(err, VC_EUSAGE,
			       "there is no recording %s; if it is a program, {%s} has to stand "
			       "in its arguments: -- python train.py --batch-size {%s}",
			       paths[0], f->cfg->find, f->cfg->find);
	if (r == VC_OK)
		r = vc_time_open(&f->base, err);
	if (r == VC_OK)
		r = vc_session_plans(&f->base, &f->plan, &f->plans, err);
	if (r == VC_OK && f->plans > CARDS)
		r = vc_fail(err, VC_EUSAGE, "at most %d cards and settings at once", CARDS);
	if (r < 0)
		return r;
	f->card = calloc(f->plans, sizeof(*f->card));
	f->proof = calloc(f->plans, sizeof(*f->proof));
	VC_HAVE(f->card && f->proof, "the cards", err);
	for (size_t i = 0; i < f->plans; i++) {
		f->card[i].plan = f->plan[i];
		for (int k = 0; k < VC_FIT_PROOFS; k++)
			f->proof[i].ran[k] = -1;
	}
	f->find.base = &f->base;
	f->find.key = f->cfg->find;
	f->find.unit = f->cfg->multiple;
	f->find.most = f->cfg->most;
	return VC_OK;
}

static void close_family(struct fit *f)
{
	for (size_t i = 0; f->card && i < f->plans; i++)
		vc_fit_card_fini(&f->card[i]);
	vc_fit_forget(&f->find);
	if (f->opened)
		vc_session_close(&f->base);
	VC_FREE(f->plan, f->card, f->proof);
	f->opened = false;
	f->plan = NULL;
	f->card = NULL;
	f->proof = NULL;
	f->plans = 0;
}

static int search_all(struct fit *f, struct vc_error *err)
{
	for (size_t i = 0; i < f->plans; i++)
		VC_TRY(vc_fit_search(&f->find, &f->card[i], err));
	return VC_OK;
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

static int try_value(struct fit *f, struct vc_trial *t, uint64_t value, int *oom,
		     struct vc_error *err)
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
	VC_TRY(open_family(f, f->trials, path, err));
	return search_all(f, err);
}

/* How often the cache was emptied in a trial run, as its recording shows. */
static int count_flushes(const char *spec, uint64_t *flushes, struct vc_error *err)
{
	struct vc_run_options opt = vc_run_options_none();
	struct vc_session s;
	struct vc_result out;
	int r = vc_session_open_one(&s, &opt, spec, VC_SESSION_IN_MEMORY, err);

	if (r == VC_OK)
		r = vc_job_follow(s.rec, s.rec->torch, NULL, &out, err);
	if (r == VC_OK) {
		*flushes = out.stats.flushes;
		vc_result_fini(&out);
	}
	vc_session_close(&s);
	return r;
}

/* Trial runs at the answer and above it, on each card: the proof. */
static int prove(struct fit *f, struct vc_trial *t, struct vc_error *err)
{
	char spec[512];

	for (size_t i = 0; i < f->plans; i++) {
		struct vc_fit_card *c = &f->card[i];
		uint64_t value[VC_FIT_PROOFS] = { c->largest, c->failing,
						 c->oom > c->failing ? c->oom : 0 };

		t->gpu = c->plan.card ? c->plan.card->name : t->gpu;
		for (int k = 0; k < VC_FIT_PROOFS; k++) {
			struct vc_fit_proof *p = &f->proof[i];
			int oom = 0;
			if (!value[k])
				continue;
			int r = vc_trial_run(t, value[k], spec, &oom, err);
			if (r == VC_OK && !oom)
				r = count_flushes(spec, &p->flushes[k], err);
			if (r < 0)
				return vc_wrap(err, "proof");
			p->at[k] = value[k];
			p->ran[k] = !oom;
			const struct vc_fit_probe *said = vc_fit_at(c, value[k]);
			enum vc_verdict was = oom ? VC_OOM : p->flushes[k] ? VC_FLUSHES : VC_FITS;
			p->contradicts |= said && said->verdict != was; /* the best estimate */
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

static int fit_class(struct fit *f, struct vc_trial *t, struct vc_error *err)
{
	uint64_t at[TRIALS];
	size_t n;
	VC_TRY(read_numbers(f->cfg->at, "--at", at, TRIALS, &n, err));
	for (size_t i = 0; i < n; i++)
		VC_TRY(try_value(f, t, at[i], NULL, err));
	VC_TRY(refit(f, err));
	if (!strcmp(t->verb, "dryrun"))
		VC_TRY(prove(f, t, err));
	return VC_OK;
}

static int fit_program(struct fit *f, size_t argc, char **argv, struct vc_error *err)
{
	const char *parent = getenv("TMPDIR");
	char folder[200] = { 0 };
	struct vc_trial t = { .verb = f->cfg->with, .key = f->cfg->find, .argv = argv, .argc = argc,
			      .folder = folder };

	if (strcmp(t.verb, "dryrun") && strcmp(t.verb, "record"))
		return vc_fail(err, VC_EUSAGE, "--with %s: must be dryrun or record", t.verb);
	if (!f->gpu.n && !strcmp(t.verb, "dryrun"))
		return vc_fail(err, VC_EUSAGE, "a dry run plays a card: say which with -g");
	if (!strcmp(t.verb, "dryrun"))
		t.gpu = f->gpu.at[0];
	snprintf(folder, 180, "%.150s/vramcast-fit-", parent && *parent ? parent : "/tmp");
	memset(folder + strlen(folder), 'X',
	       6); /* mkdtemp's template; the rest is zero from the start */
	if (!mkdtemp(folder))
		return vc_fail(err, VC_EIO, "cannot make a folder for the trial runs in %s",
			       parent && *parent ? parent : "/tmp");
	int r = fit_class(f, &t, err);
	sweep_up(folder);
	return r;
}

/* ---- cards that run other kernels ---- */

static bool same_class(const char *a, const char *b)
{
	const struct vc_card *x = vc_card_by_name(a), *y = vc_card_by_name(b);

	return x == y || (x && y && vc_card_same_class(x, y));
}

/* Deal the cards of -g out to one fit per class; returns how many. Recordings that are there
 * already, and `record`, are of one card. */
static size_t deal(const struct config *c, bool program, struct fit *f)
{
	size_t n = 1;

	f[0].gpu.at = f[0].gpu_text;
	for (size_t i = 0; i < c->run.gpu.n; i++) {
		size_t k = 0;

		while (program && f[k].gpu.n && k + 1 < CLASSES &&
		       !same_class(f[k].gpu.at[0], c->run.gpu.at[i]))
			k++;
		n = k + 1 > n ? k + 1 : n;
		f[k].cfg = c;
		f[k].gpu.at = f[k].gpu_text;
		f[k].gpu_text[f[k].gpu.n++] = c->run.gpu.at[i];
	}
	return n;
}

/* ---- saying it ---- */

static int say(struct fit *f, size_t n, const struct vc_fit_card *card,
	       const struct vc_fit_proof *proof, struct vc_error *err)
{
	struct vc_emit *e = vc_emit_stdout(f->cfg->json, err);

	if (!e)
		return err->status;
	vc_fit_say(e, &f->find, card, proof, n, f->cfg->json);
	return vc_emit_done(e, err);
}

/* The answers of all classes, in the order in which the cards were named. */
static int say_all(struct fit *f, size_t classes, struct vc_error *err)
{
	size_t n = 0, at = 0;

	for (size_t k = 0; k < classes; k++)
		n += f[k].plans;
	struct vc_fit_card *card = calloc(n + 1, sizeof(*card));
	struct vc_fit_proof *proof = calloc(n + 1, sizeof(*proof));
	int r = card && proof ? VC_OK : vc_nomem(err, "the cards");
	const struct vc_list *gpu = &f->cfg->run.gpu;

	for (size_t g = 0; r == VC_OK && g < (gpu->n ? gpu->n : 1); g++)
		for (size_t k = 0; k < classes; k++)
			for (size_t i = 0; i < f[k].plans; i++) {
				const struct vc_card *c = f[k].card[i].plan.card;

				if (at == n || (classes > 1 && c != vc_card_by_name(gpu->at[g])) ||
				    (classes < 2 && g))
					continue;
				card[at] = f[k].card[i]; /* lent: the fit frees it */
				proof[at++] = f[k].proof[i];
			}
	if (r == VC_OK)
		r = say(f, at, card, proof, err);
	if (r == VC_OK && !card[0].headline)
		r = card[0].perhaps && !card[0].plan.assume ? 6 : 3;
	VC_FREE(card, proof);
	return r;
}

static int find(struct fit *f, size_t argc, char **argv, struct vc_error *err)
{
	VC_TRY(parse_target(f, err));
	if (!f->cfg->multiple || !f->cfg->most)
		return vc_fail(err, VC_EUSAGE, "--multiple and --most start at 1");
	VC_TRY(read_among(f, err));
	if (is_program(f->cfg, argc, argv))
		return fit_program(f, argc, argv, err);
	VC_TRY(open_family(f, argc, argv, err));
	return search_all(f, err);
}

static int fit_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *c = config;
	struct fit *f = calloc(CLASSES, sizeof(*f));
	int r = VC_OK;

	VC_HAVE(f, "the cards", &con->err);
	f[0].cfg = c;
	if (c->run.gpu.n > CARDS) {
		free(f);
		return vc_fail(&con->err, VC_EUSAGE, "at most %d cards and settings at once",
			       CARDS);
	}
	vc_remark_cards(&c->run.gpu, con);
	size_t n = deal(c, is_program(c, argc, argv) && !strcmp(c->with, "dryrun"), f);
	for (size_t k = 0; r == VC_OK && k < n; k++)
		r = find(&f[k], argc, argv, &con->err);
	if (r == VC_OK)
		r = say_all(f, n, &con->err);
	for (size_t k = 0; k < n; k++)
		close_family(&f[k]);
	free(f);
	return r;
}

const struct vc_command vc_command_fit = {
	.name = "fit", .operands = "TRACE... | -- PROGRAM ARG...",
	.summary = "the largest batch size (or any recorded parameter) that fits a card",
	.details =
		"From two or more recordings (fit a.vct@batch=8 b.vct@batch=16 -g rtx4090), or "
		"from a program (fit --find batch -g rtx4090 -- python train.py --batch-size "
		"{batch}): then trial runs on the null GPU come first, for each class of cards, "
		"and trial runs at the answer and just above it prove it.",
	.options = tables, .config_size = sizeof(struct config), .run = fit_run,
};
