/* SPDX-License-Identifier: Apache-2.0 */
/* changes.c - see changes.h */
#include "simulator/advise/changes.h"

#include "simulator/session/whatif.h"

enum { MOST = 16 }; /* lines; what is behind them is seldom looked at */

struct effect { const char *option, *value; uint64_t before, after; bool out; };

/* A run with the first changes only, and what they did so far. */
struct stage {
	const struct vc_session *s;
	struct vc_plan p;
	uint64_t capacity, prop_total, peak;
	bool out; /* of memory: the peak would be higher */
	struct effect at[MOST];
	size_t n;
};

/* Peak of the stage; false: it cannot be run. */
static bool measure(struct stage *t)
{
	struct vc_result r = { 0 };
	struct vc_error ignored;

	/* What has no end is replayed no further than it goes. */
	t->p.capacity = vc_transforms_on_demand(&t->p.transform) ? t->capacity : 0;
	t->p.prop_total = t->p.capacity ? t->prop_total : 0;
	if (vc_session_replay(t->s, &t->p, NULL, &r, &ignored) < 0)
		return false;
	t->peak = r.stats.peak_reserved;
	t->out = vc_result_verdict(&r) == VC_OOM;
	vc_result_fini(&r);
	return true;
}

static void note(struct stage *t, const char *option, const char *value, uint64_t before)
{
	if (t->n < MOST)
		t->at[t->n++] = (struct effect){ option, *value ? value : "''", before, t->peak,
						 t->out };
}

/* What was recorded, and what --set and the changes made in the program make of it. */
static void set_values(struct stage *t)
{
	const struct vc_whatif *w = t->s->whatif;
	const struct vc_list *set = &t->s->opt->set;
	uint64_t before =
		w ? w->recording[w->as_asked.report.base].device->peak_reserved : 0;

	for (size_t i = 0; before && i < set->n; i++)
		note(t, "--set", set->at[i], before);
	for (size_t i = 0; before && w->rerun && i < w->rerun->made.n; i++)
		note(t, "-x", w->rerun->made.at[i], before);
}

static void apply(struct stage *t, const char *torch, const char *conf)
{
	const char *given = t->p.conf;
	size_t transforms = t->p.transform.n;
	char version[16];
	uint64_t before;

	snprintf(version, sizeof(version), "%s", t->p.torch);
	if (torch)
		snprintf(t->p.torch, sizeof(t->p.torch), "%s", torch);
	vc_plan_set_conf(&t->p, conf ? conf : given);
	if (t->p.model->versions && !t->p.torch[0]) /* the settings had chosen another model */
		snprintf(t->p.torch, sizeof(t->p.torch), "%s", t->s->rec->torch);
	t->p.transform.n = 0;
	if (!measure(t))
		return;
	set_values(t);
	before = t->peak;
	snprintf(t->p.torch, sizeof(t->p.torch), "%s", version);
	if (torch && measure(t))
		note(t, "--torch", t->p.torch, before);
	before = t->peak;
	vc_plan_set_conf(&t->p, given);
	if (conf && measure(t))
		note(t, "--conf", given, before);
	for (size_t i = 0; i < transforms; i++) {
		before = t->peak;
		t->p.transform.n = i + 1;
		if (measure(t))
			note(t, "-x", t->p.transform.at[i], before);
	}
}

void vc_changes_report(struct vc_emit *e, const struct vc_session *s, const struct vc_plan *p,
		       bool people)
{
	const char *conf = s->rec->meta->conf ? s->rec->meta->conf : "",
		   *torch = s->rec->meta->torch;
	bool other_torch = s->opt->torch.n && torch && strcmp(p->torch, torch),
	     other_conf = s->opt->conf.n && strcmp(p->conf, conf);
	struct stage t = { .s = s, .p = *p, .capacity = p->capacity,
			   .prop_total = p->prop_total };
	char change[200], a[32], b[32];

	if (!s->rec->streamed && (other_torch || other_conf || p->transform.n || s->change[0]))
		apply(&t, other_torch ? torch : NULL, other_conf ? conf : NULL);
	if (!people)
		vc_emit_array(e, "changes", NULL);
	for (size_t i = 0; i < t.n; i++) {
		snprintf(change, sizeof(change), "%s %s", t.at[i].option, t.at[i].value);
		if (people) {
			vc_emit_line(e, "  %-36s %s -> %s%s reserved", change,
				     vc_bytes_text(t.at[i].before, a),
				     t.at[i].out ? "more than " : "",
				     vc_bytes_text(t.at[i].after, b));
			continue;
		}
		vc_emit_object(e, NULL, NULL);
		vc_emit_text(e, "change", NULL, change);
		vc_emit_bytes(e, "before", NULL, t.at[i].before);
		vc_emit_bytes(e, "after", NULL, t.at[i].after);
		vc_emit_bool(e, "cut_short", NULL, t.at[i].out);
		vc_emit_end(e);
	}
	if (!people)
		vc_emit_end(e);
}
