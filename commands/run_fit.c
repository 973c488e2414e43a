/* SPDX-License-Identifier: Apache-2.0 */
/* run_fit.c - see run_fit.h. What can be changed from outside of a program leaves its results as
 * they are: the settings of the allocator, and layers that are computed twice. */
#include "commands/run_fit.h"

#include "commands/rehearsal.h"
#include "commands/trial.h"
#include "commands/run_start.h"
#include "common/emit.h"
#include "common/vec.h"
#include "simulator/replay/cards.h"
#include "simulator/advise/advice.h"
#include "simulator/search/recompute_words.h"
#include "simulator/time/time.h"

enum { TRIALS = 6, SPEC = 1 << 14, CONFS = 6, NEVER = 3 };

struct option { size_t conf, at; }; /* which search, which of its choices */

struct fit {
	const struct vc_run_fit_ask *ask;
	struct vc_run_options opt;
	const char *card;
	struct vc_list gpu; /* that one */
	struct vc_session s;
	struct vc_plan *plan; size_t plans;
	char conf[CONFS][256];
	struct vc_recompute_search search[CONFS]; size_t confs;
	struct option *option; size_t options;
	char *spec;
	char folder[200];
};

static int open_trace(struct fit *f, char *path, struct vc_error *err)
{
	VC_TRY(vc_session_open(&f->s, &f->opt, 1, &path, VC_SESSION_IN_MEMORY, err));
	VC_TRY(vc_time_open(&f->s, err));
	return vc_session_plans(&f->s, &f->plan, &f->plans, err);
}

/* Under the program's own settings, and with each of those that are worth trying. */
static int search(struct fit *f, struct vc_rehearsal *h, struct vc_error *err)
{
	const char *own = f->plan[0].conf;
	const struct vc_remedy *r;
	size_t n = 1;
	char why[200];
	int rc = vc_rehearse_layers(h, &f->s, &f->plan[0], why, sizeof(why), err);
	bool layers = rc != VC_ENOSUP; /* else settings alone may make it fit */

	if (!layers)
		*err = (struct vc_error){ 0 };
	else
		VC_TRY(rc);
	snprintf(f->conf[0], sizeof(f->conf[0]), "%s", own);
	for (size_t i = 0; n < CONFS && (r = vc_advice_setting(i)); i++) {
		char key[64];

		snprintf(key, sizeof(key), "%.*s", (int)strcspn(r->params, ":"), r->params);
		if (!strstr(own, key))
			snprintf(f->conf[n++], sizeof(f->conf[0]), "%s%s%s", own, *own ? "," : "",
				 r->params);
	}
	vc_progress_say(h->progress, "%zu settings%s are tried", n,
			layers ? ", each with layers computed twice," : "");
	for (size_t i = 0; i < n; i++) {
		struct vc_plan plan = f->plan[0];

		plan.conf = f->conf[i];
		VC_TRY(!layers ? vc_recompute_none(&f->search[i], &f->s, &plan, err) :
		       vc_recompute_search(&f->search[i], &f->s, &plan,
					   h->seen[0] ? h->seen : NULL, err));
		f->confs = i + 1;
	}
	return VC_OK;
}

/* Cheapest first; of what costs the same the settings that are there, then what needs least. */
static int gather(struct fit *f, struct vc_error *err)
{
	for (size_t c = 0; c < f->confs; c++)
		for (size_t i = 0; i < f->search[c].n; i++) {
			const struct vc_recompute *p = &f->search[c].at[i];
			size_t k = f->options;

			if (p->verdict != VC_FITS || !p->alone ||
			    (p->layers && !vc_recompute_spec(&f->search[c], f->s.rec->meta, i,
							     f->spec, SPEC)))
				continue;
			VC_HAVE(vc_vec_one(f->option, f->options), "what may be changed", err);
			f->options++;
			for (; k > 0; k--) {
				const struct option *o = &f->option[k - 1];

				if (f->search[o->conf].at[o->at].ns <= p->ns)
					break;
				f->option[k] = *o;
			}
			f->option[k] = (struct option){ c, i };
		}
	return VC_OK;
}

/* Does it really run with that? */
static int rehearse(struct fit *f, struct vc_rehearsal *h, const struct option *o, bool *fits,
		    struct vc_error *err)
{
	const struct vc_recompute_search *q = &f->search[o->conf];
	const struct vc_recompute *p = &q->at[o->at];
	struct vc_kept ran;
	int r;

	h->conf = o->conf ? f->conf[o->conf] : NULL;
	h->recompute = p->layers ? f->spec : NULL;
	if (p->layers)
		vc_recompute_spec(q, f->s.rec->meta, o->at, f->spec, SPEC);
	r = vc_rehearse(h, &ran, err);
	*fits = r == VC_OK && !ran.oom && !ran.flushes;
	if (r == VC_EUSAGE) /* it cannot be made from outside */
		*err = (struct vc_error){ 0 };
	return r == VC_EUSAGE ? VC_OK : r;
}

/* ---- saying it ---- */

static void say_code(const struct vc_recompute_search *q, const struct vc_meta *m, size_t at)
{
	char code[3072];

	vc_recompute_code(q, m, at, code, sizeof(code));
	for (const char *c = code; *c;) {
		size_t n = strcspn(c, "\n");

		fprintf(stderr, "    %.*s\n", (int)n, c);
		c += n + (c[n] == '\n');
	}
}

static void say(const struct fit *f, const struct option *o)
{
	const struct vc_recompute_search *q = &f->search[o->conf];
	const struct vc_recompute *p = &q->at[o->at];
	const struct vc_layer_costs *c = &q->costs;
	char need[32], of[32], now[32];

	fprintf(stderr, "vramcast run: as it is it needs %s, the %s has %s\n",
		vc_bytes_text(f->search[0].at[0].used, need),
		q->plan.card ? q->plan.card->title : "card", vc_bytes_text(q->plan.capacity, of));
	if (o->conf)
		fprintf(stderr, "  changed: PYTORCH_CUDA_ALLOC_CONF=%s\n", f->conf[o->conf]);
	if (p->layers)
		fprintf(stderr, "  changed: %zu of %zu layers are computed twice (%s); results "
			"stay as they are\n", p->layers, c->n, strchr(p->change, ':') + 1);
	if (p->layers && c->step_ns > 0)
		fprintf(stderr, "  costs about %.1f %% of a step\n", 100 * p->ns / c->step_ns);
	fprintf(stderr, "  with that it needs %s; a dry run of its first %llu steps fitted\n",
		vc_bytes_text(p->used, now), (unsigned long long)f->ask->steps);
	fprintf(stderr, "  to make it permanent:\n");
	if (o->conf)
		fprintf(stderr, "    export PYTORCH_CUDA_ALLOC_CONF=%s\n", f->conf[o->conf]);
	if (p->layers)
		say_code(q, f->s.rec->meta, o->at);
}

static int nothing(const struct fit *f)
{
	char need[32], of[32];

	fprintf(stderr, "vramcast run: it needs %s, the card has %s, and nothing that can be "
		"changed from outside makes it fit; 'vramcast fit --find anything' tries more "
		"(--anyway starts it as it is)\n",
		vc_bytes_text(f->search[0].at[0].used, need),
		vc_bytes_text(f->plan[0].capacity, of));
	return NEVER;
}

/* ---- the run ---- */

/* "vramcast dryrun -g rtx4090 -- python train.py": the program proper stands behind the "--". */
static size_t program_at(size_t argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');

	if (strcmp(slash ? slash + 1 : argv[0], "vramcast"))
		return 0;
	for (size_t i = 1; i + 1 < argc; i++)
		if (!strcmp(argv[i], "--"))
			return i + 1;
	return 0;
}

static int start(struct fit *f, const struct option *o, size_t argc, char **argv,
		 struct vc_error *err)
{
	const struct vc_recompute *p = o ? &f->search[o->conf].at[o->at] : NULL;
	struct vc_hooked done = { 0 };
	int code;

	if (p && o->conf && (setenv("PYTORCH_CUDA_ALLOC_CONF", f->conf[o->conf], 1) < 0 ||
			     setenv("PYTORCH_ALLOC_CONF", f->conf[o->conf], 1) < 0))
		return vc_nomem(err, "the environment");
	if (p && p->layers) {
		VC_TRY(vc_trial_folder(f->folder, err));
		vc_recompute_spec(&f->search[o->conf], f->s.rec->meta, o->at, f->spec, SPEC);
		VC_TRY(vc_hook_set(&(struct vc_hook){ .folder = f->folder,
						       .recompute = f->spec }, err));
	}
	code = vc_run_start(argv, argc, err);
	if (!p || !p->layers)
		return code;
	vc_hook_read(f->folder, &done);
	if (!done.applied || done.odd)
		fprintf(stderr, "vramcast run: the layers were not all found in this run (%llu "
			"calls, %zu layers): it may have needed more memory\n",
			(unsigned long long)done.calls, f->search[o->conf].costs.n);
	else
		fprintf(stderr, "vramcast run: %llu calls of %s were computed twice\n",
			(unsigned long long)done.applied, done.classes);
	return code;
}

static int choose_and_run(struct fit *f, struct vc_rehearsal *h, size_t argc, char **argv,
			  struct vc_error *err)
{
	bool fits = false;
	size_t i = 0;

	VC_TRY(search(f, h, err));
	VC_TRY(gather(f, err));
	vc_rehearse_on(h, &f->opt);
	for (; i < f->options && i < TRIALS && !fits; i++)
		VC_TRY(rehearse(f, h, &f->option[i], &fits, err));
	vc_progress_hush(h->progress); /* the program has the terminal from here on */
	if (!fits && !f->ask->keep)
		return nothing(f);
	if (!fits)
		return start(f, NULL, argc, argv, err);
	const struct option *o = &f->option[i - 1];
	if (o->conf || f->search[o->conf].at[o->at].layers)
		say(f, o);
	else
		fprintf(stderr, "vramcast run: its first %llu steps fit as they are; nothing was "
			"changed\n", (unsigned long long)f->ask->steps);
	return start(f, o, argc, argv, err);
}

static void release(struct fit *f)
{
	for (size_t i = 0; i < CONFS; i++)
		vc_recompute_fini(&f->search[i]);
	VC_FREE(f->option, f->plan, f->spec);
	vc_session_close(&f->s);
	if (f->folder[0])
		vc_trial_remove(f->folder);
	free(f);
}

int vc_run_fit(const struct vc_run_fit_ask *ask, size_t argc, char **argv, struct vc_console *con)
{
	struct vc_error *err = &con->err;
	size_t at = program_at(argc, argv);
	struct vc_rehearsal h = { .argv = argv + at, .argc = argc - at, .steps = ask->steps,
				  .progress = vc_progress_open(con) };
	struct vc_kept whole;
	const struct vc_card *card;
	struct fit *f;
	int r;

	if (ask->gpu)
		VC_TRY(vc_card_find(ask->gpu, &card, err));
	f = calloc(1, sizeof(*f));
	VC_HAVE(f, "a program that shall fit", err);
	f->ask = ask;
	f->opt = vc_run_options_none();
	f->card = ask->gpu;
	f->gpu = (struct vc_list){ &f->card, 1 };
	f->opt.gpu = f->gpu;
	f->opt.capacity = ask->capacity;
	f->spec = malloc(SPEC);
	if (!ask->gpu)
		r = vc_fail(err, VC_EUSAGE, "--fit wants to know the card: -g GPU");
	else if (!f->spec)
		r = vc_nomem(err, "a choice of layers");
	else
		r = vc_rehearse_whole(&h, &f->opt, &whole, err);
	if (r == VC_OK)
		r = open_trace(f, whole.path, err);
	if (r == VC_OK)
		r = choose_and_run(f, &h, argc, argv, err);
	vc_progress_close(h.progress);
	release(f);
	return r;
}
