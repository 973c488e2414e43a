/* SPDX-License-Identifier: Apache-2.0 */
/* made_changes.c - see made_changes.h */
#include "commands/made_changes.h"

#include "commands/change_hook.h"
#include "common/vec.h"
#include "simulator/replay/transform.h"
#include "simulator/search/recompute_words.h"

enum { SPEC = 1 << 14 };

/* Each layer for itself: those that go together are no module that could be wrapped. */
static int choose(const struct vc_choice *which, const struct vc_layer_costs *c, bool *take,
		  struct vc_error *err)
{
	struct vc_chosen *s = calloc(c->n + 1, sizeof(*s));
	size_t n = s ? vc_choice_of(which, c->n, s) : 0;
	bool alone = true;

	VC_HAVE(s, "a choice of layers", err);
	memset(take, 0, VC_LAYERS_MOST * sizeof(*take));
	for (size_t i = 0; i < n; i++) {
		alone &= s[i].to == s[i].from + 1;
		for (size_t k = s[i].from; k < s[i].to; k++)
			take[k] = true;
	}
	free(s);
	return alone ? VC_OK : vc_fail(err, VC_EUSAGE, "layers that are computed twice together "
				       "are not modules that could be changed from outside");
}

/* Which modules the layers are, by the call sites of the recording. */
static int find_layers(const struct vc_choice *which, const struct vc_run_wish *w, char **spec,
		       struct vc_error *err)
{
	struct vc_run_options none = vc_run_options_none();
	struct vc_session s;
	struct vc_plan *plan = NULL;
	struct vc_layer_costs c = { 0 };
	bool take[VC_LAYERS_MOST];
	size_t plans;
	int r = vc_session_open_one(&s, &none, w->of->path, VC_SESSION_IN_MEMORY, err);

	*spec = malloc(SPEC);
	if (r == VC_OK && !*spec)
		r = vc_nomem(err, "a choice of layers");
	if (r == VC_OK)
		r = vc_session_plans(&s, &plan, &plans, err);
	if (r == VC_OK)
		r = vc_layer_costs_read(&c, &s, plan, err);
	if (r == VC_OK)
		r = choose(which, &c, take, err);
	if (r == VC_OK && !vc_recompute_spec_of(&c, s.rec->meta, take, *spec, SPEC))
		r = vc_fail(err, VC_EUSAGE, "which modules the layers are is not known: record "
			    "call sites as well, --stacks py");
	vc_layer_costs_fini(&c);
	free(plan);
	vc_session_close(&s);
	return r;
}

static int add_line(struct vc_made_changes *m, const char *line, struct vc_error *err)
{
	size_t n = m->change ? strlen(m->change) : 0, all = n + strlen(line) + 2;
	char *more = realloc(m->change, all);

	VC_HAVE(more, "a change", err);
	m->change = more;
	snprintf(more + n, all - n, "%s%s", n ? "\n" : "", line);
	return VC_OK;
}

int vc_made_open(struct vc_made_changes *m, const struct vc_run_wish *w, struct vc_error *err)
{
	*m = (struct vc_made_changes){ 0 };
	for (size_t i = 0; w->made && i < w->made->n; i++) {
		struct vc_step_change step = { 0 };
		struct vc_transform_use u;

		VC_TRY(vc_transform_parse(&u, w->made->at[i], err));
		if (u.type->step)
			u.type->step(u.config, &step);
		if (step.recompute && m->recompute)
			return vc_fail(err, VC_EUSAGE, "-x %s: layers are chosen once",
				       w->made->at[i]);
		VC_TRY(step.recompute ? find_layers(&step.layers, w, &m->recompute, err) :
					add_line(m, w->made->at[i], err));
	}
	return VC_OK;
}

void vc_made_close(struct vc_made_changes *m)
{
	VC_FREE(m->change, m->recompute, m->budget);
	*m = (struct vc_made_changes){ 0 };
}

void vc_made_judge(const struct vc_run_wish *w, char why[VC_RERUN_WHY])
{
	struct vc_made_changes m;
	struct vc_error err = { 0 };

	if (vc_made_open(&m, w, &err) < 0)
		snprintf(why, VC_RERUN_WHY, "%.399s", err.message);
	vc_made_close(&m);
}

int vc_made_check(const struct vc_made_changes *m, const char *folder, struct vc_error *err)
{
	struct vc_hooked did = { 0 };
	char name[64];

	vc_hook_read(folder, &did);
	if (did.why[0])
		return vc_fail(err, VC_EUSAGE, "the change could not be made in the program: %s",
			       did.why);
	if (m->recompute && (!did.applied || did.odd))
		return vc_fail(err, VC_EUSAGE, "the change could not be made in the program: it "
			       "calls %" PRIu64 " modules where the recording shows layers",
			       did.calls);
	if (m->budget && strstr(m->budget, "\"units\"") && !did.units)
		return vc_fail(err, VC_EUSAGE, "the choice could not be made in the program: it "
			       "calls none of its modules");
	for (const char *at = m->change; at && *at; at += strcspn(at, "\n"), at += *at == '\n') {
		snprintf(name, sizeof(name), " %.*s", (int)strcspn(at, ":\n"), at);
		if (!strstr(did.made, name))
			return vc_fail(err, VC_EUSAGE, "the change could not be made in the "
				       "program: it never came by what%s changes", name);
	}
	return VC_OK;
}
