/* SPDX-License-Identifier: Apache-2.0 */
/* fit_take.c - what the rows of `fit --find` share: a recording, or a program in dry runs. */
#include "commands/fit_find.h"
#include "simulator/time/time.h"

static int search(const struct vc_fit_steps *steps, void *find, char *path, struct vc_rehearsal *h,
		  struct vc_error *err)
{
	struct vc_fit_on *f = find;

	VC_TRY(vc_session_open(&f->s, f->ask->run, 1, &path, VC_SESSION_IN_MEMORY, err));
	VC_TRY(vc_time_open(&f->s, err));
	VC_TRY(vc_session_plans(&f->s, &f->plan, &f->plans, err));
	VC_TRY(steps->begin(find, h, err));
	for (size_t i = 0; i < f->plans; i++) {
		if (!f->plan[i].capacity)
			return vc_fail(err, VC_EUSAGE,
				       "say what it has to fit on: -g GPU or --capacity SIZE");
		VC_TRY(steps->search(find, i, err));
	}
	return VC_OK;
}

static int take_program(const struct vc_fit_steps *steps, void *find, struct vc_rehearsal *h,
			struct vc_error *err)
{
	const struct vc_run_options *run = ((struct vc_fit_on *)find)->ask->run;
	struct vc_kept whole;
	int r = vc_rehearse_whole(h, run, &whole, err);

	vc_progress_say(h->progress, "changes are looked for");
	if (r == VC_OK)
		r = search(steps, find, whole.path, h, err);
	vc_rehearse_on(h, run);
	if (r == VC_OK)
		r = steps->prove(find, h, err);
	return r;
}

/* ---- changes, really made ---- */

static int make_recorded(struct vc_fit_on *f, const struct vc_run_wish *wish,
			 const struct vc_list *made, struct vc_kept *out, struct vc_error *err)
{
	const struct vc_run_options *run = f->ask->run;
	struct vc_fit_recorded *a = &f->asked;
	struct vc_ran ran;

	if (!f->opened && (run->set.n || run->transform.n))
		snprintf(a->why, sizeof(a->why), "changes are not made on top of --set and -x");
	else if (!f->opened)
		VC_TRY(vc_fit_recorded_open(a, run, f->s.rec->path, NULL, err));
	f->opened = true;
	if (!a->rerun)
		return vc_fail(err, VC_EUSAGE, "%s", a->why);
	a->rerun->made = *made;
	VC_TRY(vc_fit_recorded_run(a, wish, &ran, err));
	return vc_kept_read(ran.path, false, out) ? VC_OK :
		vc_fail(err, VC_EUSAGE, "nothing is known of the run %s", ran.path);
}

static int make_program(struct vc_rehearsal *h, const struct vc_run_wish *wish,
			struct vc_kept *out, struct vc_error *err)
{
	struct vc_made_changes m = { 0 };
	int r = vc_made_open(&m, wish, err);

	h->capacity = VC_REHEARSE_ROOM;
	h->conf = wish->conf;
	h->change = m.change;
	h->recompute = m.recompute;
	if (r == VC_OK)
		r = vc_rehearse(h, out, err);
	h->change = h->recompute = NULL;
	vc_made_close(&m);
	return r;
}

/* With room for all: what it needs is held against the card afterwards, context and all. */
int vc_fit_make(struct vc_fit_on *f, struct vc_rehearsal *h, const char *conf,
		const struct vc_list *made, struct vc_fit_made *out, struct vc_error *err)
{
	const struct vc_run_wish wish = { .of = (struct vc_recording *)(uintptr_t)f->s.rec,
					  .made = made, .card = f->plan->card, .conf = conf };
	struct vc_kept ran;
	uint64_t low, high;
	int r = h ? make_program(h, &wish, &ran, err) : make_recorded(f, &wish, made, &ran, err);

	if (r < 0 && !vc_is_final(r) && !h) /* a program that fails with it */
		r = err->status = VC_EUSAGE;
	VC_TRY(r);
	low = high = ran.reserved;
	if (!h && !f->asked.rerun->found.same)
		vc_control_interval(&f->asked.rerun->found, ran.reserved, &low, &high);
	out->reserved = ran.reserved;
	out->used = high + vc_plan_beside(f->plan);
	out->fits = !ran.oom && !ran.flushes && out->used <= f->plan->capacity;
	return VC_OK;
}

static int say(const struct vc_fit_steps *steps, const void *find, struct vc_error *err)
{
	const struct vc_fit_on *f = find;
	struct vc_emit *e = vc_emit_stdout(f->ask->json, err);

	if (!e)
		return err->status;
	vc_emit_object(e, NULL, "");
	vc_emit_text(e, "schema", NULL, steps->schema);
	vc_emit_array(e, "cards", "");
	for (size_t i = 0; i < f->plans; i++) {
		vc_emit_object(e, NULL, "");
		steps->say(find, i, e);
		vc_emit_end(e);
	}
	return vc_emit_done(e, err);
}

int vc_fit_take(const struct vc_fit_steps *steps, void *find, size_t argc, char **argv,
		struct vc_console *con)
{
	struct vc_progress *line = vc_progress_open(con);
	struct vc_fit_on *on = find;
	struct vc_rehearsal h = { .argv = argv, .argc = argc, .progress = line,
				  .world = on->ask->world != VC_NOT_GIVEN ? on->ask->world : 0 };
	struct vc_error *err = &con->err;

	vc_progress_say(line, "changes are looked for");
	int r = !argc ? vc_fail(err, VC_EUSAGE, "name a recording, or a program behind --") :
		vc_is_program(argc, argv) ? take_program(steps, find, &h, err) :
					    search(steps, find, argv[0], NULL, err);

	if (r == VC_OK && !steps->program && !vc_is_program(argc, argv))
		r = steps->prove(find, NULL, err);
	vc_progress_close(line);
	if (r == VC_OK && on->asked.why[0] && vc_rerun_asked(on->ask->run, "rerun"))
		r = vc_fail(err, VC_EUSAGE, "--by rerun: %s", on->asked.why);
	else if (on->asked.why[0] && !con->quiet)
		fprintf(stderr, "vramcast fit: not rerun: %s\n", on->asked.why);
	if (r == VC_OK)
		r = say(steps, find, err);
	return r == VC_OK ? steps->code(find) : r;
}

void vc_fit_left(struct vc_fit_on *on)
{
	free(on->plan);
	vc_fit_recorded_close(&on->asked);
	vc_session_close(&on->s);
}
