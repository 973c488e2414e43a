/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_fit.c - vramcast fit: the largest batch (or any recorded parameter) that fits, per card. */
#include <unistd.h>

#include "common/vec.h"
#include "simulator/time/time.h"
#include "commands/estimate_cards.h"
#include "commands/fit_find.h"
#include "commands/fit_program.h"
#include "commands/stop.h"

enum { CLASSES = 16, PROGRAM = 16, RECORDED = 6 }; /* the latter: trial runs at most */

#define AT(f) offsetof(struct vc_fit_config, f)
static const struct vc_option fit_options[] = {
	{ 0, "find", VC_O_TEXT, AT(find), "KEY", "the parameter to find: batch, seq, ...; or "
	  "checkpoint: layers to compute twice; anything: whatever makes it fit; "
	  "plan: how to spread it over cards; "
	  "budget: modules to compute twice or send to the host, to stay below --peak",
	  "batch" },
	{ 0, "target", VC_O_TEXT, AT(target), "LOW..HIGH%", "share of the card to aim for",
	  "85..95%" },
	{ 0, "multiple", VC_O_UINT, AT(multiple), "N", "only multiples of N", "1" },
	{ 0, "most", VC_O_UINT, AT(most), "N", "never look beyond N", "1048576" },
	{ 0, "among", VC_O_TEXT, AT(among), "N,N,...", "only these values", NULL },
	{ 0, "at", VC_O_TEXT, AT(at), "N,N,...", "values of the trial runs of a program", "4,6" },
	{ 0, "trials", VC_O_UINT, AT(trials), "N",
	  "trial runs of a program at most (default 16; of a recorded one 6; of a plan those that "
	  "could be best)", NULL },
	{ 0, "world", VC_O_UINT, AT(world), "N", "of --find plan, budget: how many cards the job "
	  "has", NULL },
	{ 0, "steps", VC_O_UINT, AT(steps), "N",
	  "of --find plan: as of dryrun", NULL },
	{ 0, "global-batch", VC_O_UINT, AT(batch), "N",
	  "of --find plan: samples a step, {global-batch} or {microbatches}", NULL },
	{ 0, "tokens", VC_O_COUNT, AT(tokens), "N",
	  "of --find plan: days and cost of training on so many: 300B, 15T", NULL },
	{ 0, "seq", VC_O_UINT, AT(seq), "N",
	  "of --tokens: of a sample (default: the program's --seq...)", NULL },
	{ 'j', "jobs", VC_O_JOBS, AT(jobs), "N", "of --find plan: dry runs at a time (default: "
	  "one a core, at most 8)", NULL },
	{ 0, "peak", VC_O_SIZE, AT(peak), "SIZE",
	  "of --find budget: what it may take of the card (default: all)",
	  NULL },
	{ 0, "host", VC_O_SIZE, AT(host), "SIZE",
	  "of --find budget: pinned host memory it may use (default: any; 0: none)", NULL },
	{ 0, "lower-precision", VC_O_FLAG, AT(lower), NULL,
	  "of --find budget: what is kept may also be kept in half its bits; gradients change",
	  NULL },
	{ 0, "save", VC_O_FILE, AT(save), "FILE",
	  "of --find budget: the choice, for 'run --choice'", NULL },
	{ 0, "vary", VC_O_LIST, AT(vary), "KEY=VALUES",
	  "of --find plan: micro=1..4*2, zero=1,2,3, recompute=none,full: each in place of {micro} "
	  "with each layout", NULL },
	{ 0, "with", VC_O_TEXT, AT(with), "dryrun|record", "how trial runs are made", "dryrun" },
	{ 0, "prices", VC_O_TEXT, AT(prices), "FILE",
	  "NAME,PRICE (an hour) on each line: -g all begins with the cheapest card", NULL },
	{ 0, "json", VC_O_FLAG, AT(json), NULL, "one JSON document on standard output", NULL },
	VC_OPTION_END
};

static bool is_program(const struct vc_fit_config *c, size_t argc, char **argv)
{
	char mark[80];

	snprintf(mark, sizeof(mark), "{%s}", c->find);
	for (size_t i = 0; i < argc; i++)
		if (strstr(argv[i], mark))
			return true;
	return false;
}

/* ---- cards that run other kernels ---- */

static bool same_class(const char *a, const char *b)
{
	const struct vc_card *x = vc_card_by_name(a), *y = vc_card_by_name(b);

	return x == y || (x && y && vc_card_same_class(x, y));
}

/* Deal the cards of -g out to one fit per class; returns how many. Recordings that are there
 * already, and `record`, are of one card. */
static size_t deal(const struct vc_fit_config *c, bool program, struct vc_fitting *f)
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

enum { OOM = 3, UNDECIDED = 6 }; /* docs/reference/exit-codes.md */

static int say(struct vc_fitting *f, size_t n, const struct vc_fit_card *card,
	       const struct vc_fit_proof *proof, struct vc_error *err)
{
	struct vc_emit *e = vc_emit_stdout(f->cfg->json, err);

	if (!e)
		return err->status;
	vc_fit_say(e, &f->find, card, proof, n, f->cfg->json);
	if (f->cfg->prices && !f->cfg->json) {
		size_t i = 0;

		while (i < n && !card[i].largest)
			i++;
		vc_emit_object(e, NULL, "");
		vc_gpu_cheapest(e, f->cfg->prices, i < n ? card[i].plan.card : NULL);
		vc_emit_end(e);
	}
	return vc_emit_done(e, err);
}

/* A trial run proves more than what the recordings make certain. */
static int code_of(const struct vc_fit_card *c, const struct vc_fit_proof *p)
{
	if (p->n && !p->proved)
		return UNDECIDED;
	if (c->surely || (p->n && p->largest) || (c->plan.assume && c->headline))
		return VC_OK;
	return c->perhaps && !c->plan.assume ? UNDECIDED : OOM;
}

/* The answers of all classes, in the order in which the cards were named. */
static int say_all(struct vc_fitting *f, size_t classes, struct vc_error *err)
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
	for (size_t i = 0, n_said = r == VC_OK ? at : 0; i < n_said; i++) {
		int code = code_of(&card[i], &proof[i]);
		r = r == OOM || code == OOM ? OOM : r > code ? r : code;
	}
	VC_FREE(card, proof);
	return r;
}

static int find(struct vc_fitting *f, size_t argc, char **argv, struct vc_error *err)
{
	VC_TRY(vc_fitting_target(f, err));
	if (!f->cfg->multiple || !f->cfg->most)
		return vc_fail(err, VC_EUSAGE, "--multiple and --most start at 1");
	VC_TRY(vc_fitting_among(f, err));
	if (f->asked || is_program(f->cfg, argc, argv))
		return vc_fitting_program(f, argc, argv, err);
	VC_TRY(vc_fitting_open(f, argc, argv, err));
	vc_progress_say(f->progress, "the largest %s is looked for", f->cfg->find);
	return vc_fitting_search(f, err);
}

static uint64_t trials(const struct vc_fit_config *c, uint64_t most)
{
	return c->trials == VC_NOT_GIVEN ? most : c->trials;
}

/* One recording: is its program asked? */
static int open_recorded(struct vc_fit_recorded *asked, const struct vc_fit_config *c, size_t argc,
			 char **argv, struct vc_console *con)
{
	if (argc != 1 || is_program(c, argc, argv) || access(argv[0], R_OK))
		return VC_OK;
	VC_TRY(vc_fit_recorded_open(asked, &c->run, argv[0], c->find, &con->err));
	if (asked->why[0] && !con->quiet)
		fprintf(stderr, "vramcast fit: not rerun: %s\n", asked->why);
	return VC_OK;
}

/* What trial runs have shown until then. */
static int say_stopped(const struct vc_fitting *f, size_t classes, struct vc_error *err)
{
	char best[600] = "";
	size_t runs = 0, len = 0;

	for (size_t k = 0; k < classes; k++) {
		runs += f[k].trials;
		for (size_t i = 0; i < f[k].plans && len < sizeof(best); i++) {
			const struct vc_fit_card *c = &f[k].card[i];

			if (f[k].proof[i].largest)
				len += (size_t)snprintf(best + len, sizeof(best) - len,
							"%s%s=%" PRIu64 " on %s", len ? ", " : "",
							f->cfg->find, f[k].proof[i].largest,
							c->plan.card ? c->plan.card->title : "it");
		}
	}
	return vc_fail(err, VC_ESTOPPED, "stopped by %s after %zu trial runs%s%s", vc_stop_name(),
		       runs, len ? "; the largest that fits so far: " :
		       ", which show of no value yet that it fits", best);
}

static int fit_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct vc_fit_config *c = config;
	const struct vc_fit_find *other = vc_fit_find(c->find);
	uint64_t steps = c->steps == VC_NOT_GIVEN ? 0 : c->steps;
	struct vc_fitting *f = other ? NULL : calloc(CLASSES, sizeof(*f));
	int r = VC_OK;

	if (!isnan(c->tokens) && other != &vc_fit_plan)
		return vc_fail(&con->err, VC_EUSAGE, "--tokens goes with --find plan");
	if (other)
		return other->run(&(struct vc_fit_ask){ &c->run, c->json, c->most, c->world,
							trials(c, PROGRAM), steps, c->jobs,
							c->peak, c->host, c->save, &c->vary,
							c->batch, c->tokens, c->seq,
							c->prices, c->lower,
							c->trials != VC_NOT_GIVEN },
				  argc, argv, con);
	VC_HAVE(f, "the cards", &con->err);
	f[0].cfg = c;
	if (c->run.gpu.n > VC_FIT_CARDS) {
		free(f);
		return vc_fail(&con->err, VC_EUSAGE, "at most %d cards and settings at once",
			       VC_FIT_CARDS);
	}
	vc_remark_cards(&c->run.gpu, con);
	struct vc_fit_recorded asked = { .rerun = NULL };
	r = open_recorded(&asked, c, argc, argv, con);
	bool program = is_program(c, argc, argv) && !strcmp(c->with, "dryrun");
	size_t n = deal(c, program || asked.rerun, f);
	struct vc_progress *line = vc_progress_open(con);
	for (size_t k = 0; r == VC_OK && k < n; k++) {
		f[k].progress = line;
		f[k].asked = asked.rerun ? &asked : NULL;
		f[k].most_trials = trials(c, asked.rerun ? RECORDED : PROGRAM);
		r = find(&f[k], argc, argv, &con->err);
	}
	vc_progress_close(line);
	if (r == VC_OK)
		r = say_all(f, n, &con->err);
	else if (r == VC_ESTOPPED)
		say_stopped(f, n, &con->err);
	for (size_t k = 0; k < n; k++) {
		vc_fitting_close(&f[k]);
		free(f[k].proof);
	}
	vc_fit_recorded_close(&asked);
	free(f);
	return r;
}

const struct vc_command vc_command_fit = {
	.name = "fit", .operands = "TRACE... | -- PROGRAM ARG...",
	.summary = "the largest batch size (or any recorded parameter) that fits a card",
	.details =
		"From a recording whose program can be asked (fit run.vct), from two or more "
		"recordings (fit a.vct@batch=8 b.vct@batch=16 -g rtx4090), or "
		"from a program (fit --find batch -g rtx4090 -- python train.py --batch-size "
		"{batch}): then trial runs on the null GPU come first, for each class of cards, "
		"and trial runs at the answer and just above it prove it.",
	.options = VC_OPTIONS(fit_options, vc_run_options),
	.config_size = sizeof(struct vc_fit_config), .run = fit_run,
};
