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
	struct vc_rehearsal h = { .argv = argv, .argc = argc, .progress = line };
	struct vc_error *err = &con->err;

	vc_progress_say(line, "changes are looked for");
	int r = !argc ? vc_fail(err, VC_EUSAGE, "name a recording, or a program behind --") :
		vc_is_program(argc, argv) ? take_program(steps, find, &h, err) :
					    search(steps, find, argv[0], NULL, err);

	vc_progress_close(line);
	if (r == VC_OK)
		r = say(steps, find, err);
	return r == VC_OK ? steps->code(find) : r;
}

void vc_fit_left(struct vc_fit_on *on)
{
	free(on->plan);
	vc_session_close(&on->s);
}
