/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_fit_program.c - trial runs for vramcast fit: a prediction from the first ones says where the
 * next one is worth most, and its recording joins them. Proved is what two neighbours show: the
 * largest value that ran and the smallest that did not. */
#include "commands/fit_program.h"
#include "commands/rehearsal.h"

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

/* The recorded program; oom NULL: with as much memory as it needs. */
static int ask_program(struct vc_fitting *f, const struct vc_trial *t,
		       const struct vc_param_value *at, char *spec, int *oom, struct vc_error *err)
{
	struct vc_param_value all[VC_WHATIF_PARAMS + 1] = { *at };
	struct vc_run_wish wish = { .at = all, .n = 1, .once = oom != NULL,
				    .card = f->gpu.n ? vc_card_by_name(t->gpu) : NULL };
	const char *own = f->asked->rec.meta->conf;
	char name[VC_WHATIF_PARAMS][VC_PARAM_TEXT];
	const struct vc_list *set = &f->cfg->run.set;
	struct vc_ran ran;
	bool ran_out;

	for (size_t i = 0; i < set->n && i < VC_WHATIF_PARAMS; i++)
		VC_TRY(vc_whatif_parse(set->at[i], &all[wish.n++], name[i], err));
	if (t->conf && strcmp(t->conf, own ? own : ""))
		wish.conf = t->conf;
	VC_TRY(vc_fit_recorded_run(f->asked, &wish, &ran, &ran_out, err));
	if (oom)
		*oom = ran_out;
	snprintf(spec, 512, "%.400s@%.80s=%.0f", ran.path, at->name, at->value);
	return VC_OK;
}

/* One run of the program; spec (at least 512 bytes) gets "FILE@key=value". One that ends with
 * another code than 0 is an error, except when it ran out of memory and left a recording: *oom
 * tells (NULL: an error too). */
static int run_trial(struct vc_fitting *f, struct vc_trial *t, uint64_t value, char *spec, int *oom,
		     struct vc_error *err)
{
	struct vc_param_value at = { (char *)(uintptr_t)f->cfg->find, (double)value };
	char file[320], log[330];
	int code = 0;

	vc_progress_say(f->progress, "trial run %zu of at most %" PRIu64 ": %s=%" PRIu64 "%s%s",
			f->trials + 1, f->most_trials, at.name, value, t->gpu ? " on " : "",
			t->gpu ? t->gpu : "");
	snprintf(file, sizeof(file), "%s/%s-%" PRIu64 ".vct", f->folder, at.name, value);
	snprintf(log, sizeof(log), "%s.log", file);
	snprintf(spec, 512, "%s@%.80s=%" PRIu64, file, at.name, value);
	if (f->asked)
		return ask_program(f, t, &at, spec, oom, err);
	t->at = &at;
	t->n = 1;
	VC_TRY(vc_trial_run(t, file, &code, err));
	bool recorded = vc_trial_recorded(file);

	if (oom)
		*oom = code != 0;
	if (!recorded || (code && !oom))
		vc_trial_show(log, t->progress);
	if (code && !(oom && recorded))
		return vc_fail(err, VC_EIO, "the trial run with %s=%" PRIu64 " ended with code %d "
			       "(try `vramcast %s%s%s -- ...` by hand)", at.name, value, code,
			       t->verb, t->gpu ? " -g " : "", t->gpu ? t->gpu : "");
	return recorded ? VC_OK : vc_fail(err, VC_EIO, "the trial run with %s=%" PRIu64 " left no "
					  "recording", at.name, value);
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
	uint64_t flushes = 0;
	char spec[512];
	int oom = 0, r;

	t->gpu = c->plan.card ? c->plan.card->name : t->gpu;
	t->conf = c->plan.conf;
	r = run_trial(f, t, value, spec, &oom, err);
	f->trials++;
	if (r == VC_OK && !oom)
		r = count_flushes(spec, &flushes, err);
	if (r < 0)
		return vc_wrap(err, "trial");
	enum vc_verdict was = oom ? VC_OOM : flushes ? VC_FLUSHES : VC_FITS;

	p->contradicts |= said && said->verdict != was; /* the best estimate */
	note(p, value, !oom, flushes);
	*joined = !oom;
	if (!oom)
		join(f, spec, value);
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
	char spec[512];
	size_t n;

	n = f->asked ? vc_fit_recorded_first(f->asked, f->cfg->find, f->gpu.n ?
					     vc_card_by_name(t->gpu) : NULL, at) : 0;
	if (!n)
		VC_TRY(vc_fitting_numbers(f->cfg->at, "--at", at, VC_FIT_FAMILY, &n, err));
	for (size_t i = 0; i < n; i++) {
		VC_TRY(run_trial(f, t, at[i], spec, NULL, err));
		join(f, spec, at[i]);
		f->trials++;
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
	f->trials = f->asked && !vc_fit_recorded_on(f->asked, f->gpu.n ?
					vc_card_by_name(t.gpu) : NULL); /* the control run */
	VC_TRY(vc_rehearsal_folder(f->folder, err));
	int r = first_runs(f, &t, err);
	if (r == VC_OK)
		r = refit(f, err);
	if (r == VC_OK && is_provable(f))
		r = prove(f, &t, err);
	if (r == VC_OK && f->asked)
		say_asked(f);
	vc_rehearsal_remove(f->folder);
	return r;
}
