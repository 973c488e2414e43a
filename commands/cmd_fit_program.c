/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_fit_program.c - trial runs for vramcast fit: a prediction from the first ones says where the
 * next one is worth most, and its recording joins them. Proved is what two neighbours show: the
 * largest value that ran and the smallest that did not. */
#include "commands/fit_program.h"
#include "commands/kept_run.h"
#include "commands/own_program.h"
#include "commands/stop.h"

/* How far a value is from another one. */
static double apart(uint64_t a, uint64_t b)
{
	return fabs(log((double)a) - log((double)b));
}

/* Its recording joins those that predict; of too many the one farthest from it leaves. */
static void join(struct vc_fitting *f, const char *spec, uint64_t value)
{
	size_t at = f->specs;

	for (size_t i = 0; i < f->specs; i++)
		if (f->recorded[i] == value)
			return;
	if (f->specs == VC_FIT_FAMILY) {
		at = 0;
		for (size_t i = 1; i < f->specs; i++)
			if (apart(f->recorded[i], value) > apart(f->recorded[at], value))
				at = i;
	} else {
		f->specs++;
	}
	snprintf(f->spec[at], sizeof(f->spec[at]), "%s", spec);
	f->recorded[at] = value;
}

static int refit(struct vc_fitting *f, struct vc_error *err)
{
	char *path[VC_FIT_FAMILY];

	for (size_t i = 0; i < f->specs; i++)
		path[i] = f->spec[i];
	vc_progress_say(f->progress, "prediction from %zu recordings", f->specs);
	vc_fitting_close(f);
	VC_TRY(vc_fitting_open(f, f->specs, path, err));
	return vc_fitting_search(f, err);
}

/* One of them: "FILE@key=value", and how it went. */
struct tried { char spec[512]; bool oom; uint64_t flushes; };

/* The recorded program; whole: with as much memory as it needs. */
static int ask_program(struct vc_fitting *f, const struct vc_trial *t, bool whole,
		       struct vc_ran *ran, struct vc_error *err)
{
	struct vc_param_value all[VC_WHATIF_PARAMS + 1] = { *t->at };
	struct vc_run_wish wish = { .at = all, .n = 1, .once = !whole,
				    .card = f->gpu.n ? vc_card_by_name(t->gpu) : NULL };
	const char *own = f->asked->rec.meta->conf;
	char name[VC_WHATIF_PARAMS][VC_PARAM_TEXT];
	const struct vc_list *set = &f->cfg->run.set;

	for (size_t i = 0; i < set->n && i < VC_WHATIF_PARAMS; i++)
		VC_TRY(vc_whatif_parse(set->at[i], &all[wish.n++], name[i], err));
	if (t->conf && strcmp(t->conf, own ? own : ""))
		wish.conf = t->conf;
	return vc_fit_recorded_run(f->asked, &wish, ran, err);
}

/* The one of the command line. */
static int dry_run(const struct vc_trial *t, bool whole, struct vc_ran *ran, struct vc_error *err)
{
	const struct vc_list none = { .n = 0 };
	struct vc_program *p = NULL;
	struct vc_kept kept;
	char with[160];
	int r = vc_own_describe(t->argc, (char **)(uintptr_t)t->argv, &none, &p, err);

	snprintf(with, sizeof(with), "%.80s=%.0f", t->at->name, t->at->value);
	if (r == VC_OK)
		r = vc_kept_run(&(struct vc_kept_wish){ .program = p, .card = t->gpu, .at = t->at,
				.n = t->n, .conf = t->conf, .once = !whole, .with = with }, &kept,
				NULL, err);
	vc_program_free(p);
	if (r == VC_OK) {
		ran->oom = kept.oom;
		ran->flushes = kept.flushes;
		snprintf(ran->path, sizeof(ran->path), "%s", kept.path);
	}
	return r;
}

/* On a card. */
static int record(const struct vc_fitting *f, const struct vc_trial *t, struct vc_ran *ran,
		  struct vc_error *err)
{
	int code = 0;

	snprintf(ran->path, sizeof(ran->path), "%s/%s-%.0f.vct", f->folder, t->at->name,
		 t->at->value);
	VC_TRY(vc_trial_run(t, ran->path, &code, err));
	bool recorded = vc_trial_recorded(ran->path);
	char log[VC_RERUN_PATH + 8];

	if (!code && recorded)
		return VC_OK;
	snprintf(log, sizeof(log), "%s.log", ran->path);
	vc_trial_show(log, t->progress);
	return code ? vc_fail(err, VC_EIO, "it ended with code %d (try `vramcast record -- ...` by "
			      "hand)", code) : vc_fail(err, VC_EIO, "it left no recording");
}

/* whole: with as much memory as it needs; running out is an error then. */
static int run_trial(struct vc_fitting *f, struct vc_trial *t, uint64_t value, bool whole,
		     struct tried *out, struct vc_error *err)
{
	struct vc_param_value at = { (char *)(uintptr_t)f->cfg->find, (double)value };
	struct vc_ran ran = { .oom = false };
	int r;

	vc_progress_say(f->progress, "trial run %zu of at most %" PRIu64 ": %s=%" PRIu64 "%s%s",
			f->trials + 1, f->most_trials, at.name, value, t->gpu ? " on " : "",
			t->gpu ? t->gpu : "");
	t->at = &at;
	t->n = 1;
	r = f->asked ? ask_program(f, t, whole, &ran, err) :
	    strcmp(t->verb, "dryrun") ? record(f, t, &ran, err) : dry_run(t, whole, &ran, err);
	out->oom = ran.oom;
	out->flushes = ran.flushes;
	snprintf(out->spec, sizeof(out->spec), "%.400s@%.80s=%" PRIu64, ran.path, at.name, value);
	f->trials += r == VC_OK;
	return r == VC_OK ? VC_OK :
		       vc_wrap(err, "the trial run with %s=%" PRIu64, at.name, value);
}

/* ---- proofs ---- */

static bool was_tried(const struct vc_fit_proof *p, uint64_t value)
{
	for (size_t k = 0; k < p->n; k++)
		if (p->at[k] == value)
			return true;
	return false;
}

static void note(struct vc_fit_proof *p, uint64_t value, bool ran, uint64_t flushes)
{
	bool fits = ran && !flushes;

	if (p->n == VC_FIT_PROOFS)
		return;
	p->at[p->n] = value;
	p->ran[p->n] = ran;
	p->flushes[p->n++] = flushes;
	if (fits && value > p->largest)
		p->largest = value;
	if (!fits && (!p->failing || value < p->failing))
		p->failing = value;
}

/* The value whose trial says most on a card; 0: its answer is proved. A need that is not monotone
 * has values that run above one that does not: those count. */
static uint64_t next_value(const struct vc_fitting *f, size_t i)
{
	const struct vc_fit *w = &f->find;
	const struct vc_fit_card *c = &f->card[i];
	const struct vc_fit_proof *p = &f->proof[i];
	uint64_t above = vc_fit_next(w, p->largest), middle;

	if (!above || p->failing == above || was_tried(p, above))
		return 0;
	if (c->largest > p->largest && !was_tried(p, c->largest) &&
	    (!p->failing || c->largest < p->failing || c->holes))
		return c->largest;
	if (c->largest == p->largest || !p->failing || p->failing < p->largest)
		return above;
	middle = vc_fit_between(w, p->largest, p->failing);
	return middle && !was_tried(p, middle) ? middle : above;
}

/* What the trial runs proved is the answer, whatever was predicted. */
static void conclude(struct vc_fitting *f, size_t i)
{
	struct vc_fit_proof *p = &f->proof[i];
	struct vc_fit_card *c = &f->card[i];

	p->proved = p->n && !next_value(f, i);
	if (!p->n)
		return;
	c->headline = c->surely = p->largest;
	c->record = 0;
	if (!p->proved) {
		c->perhaps = p->failing > p->largest ? p->failing - 1 : vc_fit_most(&f->find);
		return;
	}
	c->perhaps = p->largest;
	if (c->largest != p->largest)
		snprintf(c->why, sizeof(c->why), "%" PRIu64 " ran%s", p->largest,
			 p->failing ? ", and the next value did not" : "");
	c->largest = p->largest;
	c->failing = p->failing ? p->failing : c->failing;
	c->flushing = c->flushing > c->largest ? c->flushing : 0;
	c->recommended = c->recommended > c->largest ? c->largest : c->recommended;
}

/* One more trial run, on card i. */
static int try_value(struct vc_fitting *f, struct vc_trial *t, size_t i, uint64_t value,
		     bool *joined, struct vc_error *err)
{
	const struct vc_fit_card *c = &f->card[i];
	const struct vc_fit_probe *said = vc_fit_at(c, value);
	struct vc_fit_proof *p = &f->proof[i];
	struct tried tried;

	t->gpu = c->plan.card ? c->plan.card->name : t->gpu;
	t->conf = c->plan.conf;
	VC_TRY(run_trial(f, t, value, false, &tried, err));
	enum vc_verdict was = tried.oom ? VC_OOM : tried.flushes ? VC_FLUSHES : VC_FITS;

	p->contradicts |= said && said->verdict != was; /* the best estimate */
	note(p, value, !tried.oom, tried.flushes);
	*joined = !tried.oom;
	if (!tried.oom)
		join(f, tried.spec, value);
	return VC_OK;
}

/* Where a cache that is emptied lets more run: the first value that was predicted not to. */
static int prove_flushing(struct vc_fitting *f, struct vc_trial *t, struct vc_error *err)
{
	for (size_t i = 0; i < f->plans && f->trials < f->most_trials; i++) {
		uint64_t oom = f->card[i].oom;
		bool joined;

		if (f->proof[i].failing && oom > f->proof[i].failing &&
		    !was_tried(&f->proof[i], oom))
			VC_TRY(try_value(f, t, i, oom, &joined, err));
	}
	return VC_OK;
}

/* Card by card: what a trial run of one of them adds is known to all. */
static int prove(struct vc_fitting *f, struct vc_trial *t, struct vc_error *err)
{
	for (size_t i = 0; i < f->plans; i++) {
		uint64_t value;

		while (f->trials < f->most_trials && (value = next_value(f, i)) > 0) {
			bool joined;

			VC_TRY(try_value(f, t, i, value, &joined, err));
			if (joined && next_value(f, i))
				VC_TRY(refit(f, err));
		}
	}
	VC_TRY(prove_flushing(f, t, err));
	for (size_t i = 0; i < f->plans; i++)
		conclude(f, i);
	return VC_OK;
}

/* Can a trial run show what is asked? It plays a card and settings, and nothing else. */
static bool is_provable(const struct vc_fitting *f)
{
	const struct vc_run_options *o = &f->cfg->run;
	size_t made = f->asked ? f->asked->rerun->made.n : 0;

	return !strcmp(f->cfg->with, "dryrun") && o->transform.n == made && !o->used.n &&
	       o->capacity == VC_NOT_GIVEN && o->context == VC_NOT_GIVEN &&
	       !o->model.n && !o->torch.n && !(o->fraction > 0);
}

/* ---- the first ones ---- */

static int first_runs(struct vc_fitting *f, struct vc_trial *t, struct vc_error *err)
{
	uint64_t at[VC_FIT_FAMILY];
	struct tried tried;
	size_t n;

	n = f->asked ? vc_fit_recorded_first(f->asked, f->cfg->find, f->gpu.n ?
					     vc_card_by_name(t->gpu) : NULL, at) : 0;
	if (!n)
		VC_TRY(vc_fitting_numbers(f->cfg->at, "--at", at, VC_FIT_FAMILY, &n, err));
	for (size_t i = 0; i < n; i++) {
		VC_TRY(run_trial(f, t, at[i], true, &tried, err));
		join(f, tried.spec, at[i]);
	}
	return VC_OK;
}

/* What the answer rests on is the program, and what its control run shows. */
static void say_asked(struct vc_fitting *f)
{
	char words[900];
	const char *shows;

	vc_rerun_words(f->asked->rerun, f->asked->rerun->control_ran.unknown, words,
		       sizeof(words));
	shows = strchr(words, ';');
	for (size_t i = 0; i < f->plans; i++)
		snprintf(f->card[i].trust, sizeof(f->card[i].trust),
			 "the program was run %zu times without a card%s", f->trials,
			 shows ? shows : "");
}

int vc_fitting_program(struct vc_fitting *f, size_t argc, char **argv, struct vc_error *err)
{
	struct vc_trial t = { .verb = f->cfg->with, .argv = argv, .argc = argc,
			      .progress = f->progress };

	if (!f->gpu.n && !f->asked && !strcmp(t.verb, "dryrun"))
		return vc_fail(err, VC_EUSAGE, "a dry run plays a card: say which with -g");
	if (f->gpu.n && !strcmp(t.verb, "dryrun"))
		t.gpu = f->gpu.at[0];
	if (f->asked) /* the control runs */
		f->trials = f->asked->rerun->twice +
			    !vc_fit_recorded_on(f->asked, f->gpu.n ? vc_card_by_name(t.gpu) : NULL);
	vc_stop_guard(NULL);
	VC_TRY(vc_trial_folder(f->folder, err));
	int r = first_runs(f, &t, err);
	if (r == VC_OK)
		r = refit(f, err);
	if (r == VC_OK && is_provable(f))
		r = prove(f, &t, err);
	if (r == VC_OK && f->asked)
		say_asked(f);
	vc_trial_remove(f->folder);
	return r;
}
