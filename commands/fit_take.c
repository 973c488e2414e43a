/* SPDX-License-Identifier: Apache-2.0 */
/* fit_take.c - what the rows of `fit --find` share: a recording, or a program in dry runs. */
#include "commands/fit_find.h"

static int take_program(const struct vc_fit_steps *steps, void *find, const struct vc_fit_ask *ask,
			struct vc_rehearsal *h, struct vc_error *err)
{
	char folder[200];
	struct vc_rehearsed whole;
	int r = vc_rehearse_whole(h, ask->run, folder, &whole, err);

	vc_progress_say(h->progress, "changes are looked for");
	if (r == VC_OK)
		r = steps->search(find, whole.path, ask->run, h, err);
	vc_rehearse_on(h, ask->run);
	if (r == VC_OK)
		r = steps->prove(find, h, err);
	if (folder[0])
		vc_rehearsal_remove(folder);
	return r;
}

int vc_fit_take(const struct vc_fit_steps *steps, void *find, const struct vc_fit_ask *ask,
		size_t argc, char **argv, struct vc_console *con)
{
	struct vc_progress *line = vc_progress_open(con);
	struct vc_rehearsal h = { .argv = argv, .argc = argc, .progress = line };
	struct vc_error *err = &con->err;

	vc_progress_say(line, "changes are looked for");
	int r = !argc ? vc_fail(err, VC_EUSAGE, "name a recording, or a program behind --") :
		vc_is_program(argc, argv) ? take_program(steps, find, ask, &h, err) :
					    steps->search(find, argv[0], ask->run, NULL, err);

	vc_progress_close(line);
	if (r == VC_OK)
		r = steps->say(find, err);
	return r == VC_OK ? steps->code(find) : r;
}
