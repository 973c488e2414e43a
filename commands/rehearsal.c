/* SPDX-License-Identifier: Apache-2.0 */
/* rehearsal.c - see rehearsal.h */
#include "commands/rehearsal.h"

#include <unistd.h>

#include "commands/own_program.h"
#include "simulator/search/recompute_words.h"
#include "simulator/session/session.h"

enum { SPEC = 1 << 14 }; /* bytes of a choice */

/* ---- the run ---- */

static int add_option(struct vc_program *p, const char *name, uint64_t value, struct vc_error *err)
{
	char text[40];

	snprintf(text, sizeof(text), "--%s=%llu", name, (unsigned long long)value);
	return value ? vc_texts_add(&p->option, NULL, text, err) : VC_OK;
}

int vc_rehearse(const struct vc_rehearsal *h, struct vc_kept *out, struct vc_error *err)
{
	const struct vc_made_changes made = { .change = (char *)(uintptr_t)h->change,
					      .recompute = (char *)(uintptr_t)h->recompute,
					      .budget = (char *)(uintptr_t)h->budget };
	const struct vc_list none = { .n = 0 };
	struct vc_program *p = NULL;
	char with[240];
	struct vc_kept_wish w = { .card = h->gpu, .capacity = h->capacity, .made = &made,
				  .conf = h->conf && *h->conf ? h->conf : NULL, .once = true,
				  .with = with };
	int r = vc_own_describe(h->argc, (char **)(uintptr_t)h->argv, &none, &p, err);

	w.program = p;
	const char *said[] = { h->recompute ? "layers computed twice" : h->budget ?
			       "a choice of modules" : NULL, h->change, w.conf };
	size_t len = 0;
	with[0] = '\0';
	for (int i = 0; i < 3; i++)
		if (said[i] && len < sizeof(with))
			len += (size_t)snprintf(with + len, sizeof(with) - len, "%s%s",
						len ? " " : "", said[i]);
	for (char *nl = with; (nl = strchr(nl, '\n')); )
		*nl = ' ';
	vc_progress_say(h->progress, "trial run of the program on %s, with %s", h->gpu,
			*with ? with : h->capacity ? "memory for all of it" : "nothing changed");
	if (r == VC_OK)
		r = add_option(p, "steps", h->steps, err);
	if (r == VC_OK)
		r = add_option(p, "world", h->world, err);
	if (r == VC_OK)
		r = vc_kept_run(&w, out, NULL, err);
	vc_program_free(p);
	return r;
}

int vc_rehearse_whole(struct vc_rehearsal *h, const struct vc_run_options *opt, struct vc_kept *out,
		      struct vc_error *err)
{
	if (opt->gpu.n != 1)
		return vc_fail(err, VC_EUSAGE, "a dry run plays a card: say which one with -g");
	h->gpu = opt->gpu.at[0];
	h->capacity = VC_REHEARSE_ROOM;
	return vc_rehearse(h, out, err);
}

int vc_rehearse_layers(struct vc_rehearsal *h, const struct vc_session *s,
		       const struct vc_plan *plan, char *why, size_t n, struct vc_error *err)
{
	struct vc_layer_costs c;
	struct vc_kept ran;
	bool take[VC_LAYERS_MOST];
	char *spec = malloc(SPEC);
	int r = spec ? vc_layer_costs_read(&c, s, plan, err) : vc_nomem(err, "a choice of layers");

	why[0] = '\0';
	memset(take, 1, sizeof(take));
	if (r < 0) {
		free(spec);
		return r;
	}
	if (!vc_recompute_spec_of(&c, s->rec->meta, take, spec, SPEC)) {
		snprintf(why, n, "which modules the layers are is not known from outside of the "
			 "program");
	} else {
		h->recompute = spec;
		r = vc_rehearse(h, &ran, err);
		h->recompute = NULL;
	}
	if (r == VC_EUSAGE) { /* it cannot be made from outside */
		snprintf(why, n, "%s", err->message);
		*err = (struct vc_error){ 0 };
		r = VC_OK;
	}
	if (!why[0] && r == VC_OK)
		snprintf(h->seen, sizeof(h->seen), "%s", ran.path);
	vc_layer_costs_fini(&c);
	free(spec);
	return r;
}

void vc_rehearse_on(struct vc_rehearsal *h, const struct vc_run_options *opt)
{
	snprintf(h->room, sizeof(h->room), "%llu", (unsigned long long)opt->capacity);
	h->capacity = opt->capacity != VC_NOT_GIVEN ? h->room : NULL;
}

bool vc_is_program(size_t argc, char *const *argv)
{
	char path[4096];

	if (argc > 1 || !strcmp(argv[0], "-"))
		return argc > 1;
	snprintf(path, sizeof(path), "%s", argv[0]);
	if (access(path, F_OK) < 0 && strrchr(path, '@'))
		*strrchr(path, '@') = '\0'; /* TRACE@batch=8 */
	return access(path, R_OK) < 0 || access(path, X_OK) == 0;
}
