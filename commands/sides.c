/* SPDX-License-Identifier: Apache-2.0 */
/* sides.c - see sides.h */
#include "commands/sides.h"

#include "common/site.h"
#include "simulator/findings/findings.h"

int vc_side_open(struct vc_side *x, const struct vc_run_options *opt, const char *path,
		 const struct vc_sink_type *sink, bool whole, struct vc_error *err)
{
	const struct vc_observer_type *watch[VC_WATCH_MOST] = { &vc_observer_peak };
	struct vc_plan all;
	size_t n;
	int r;

	VC_TRY(vc_session_open_one(&x->s, opt, path, VC_SESSION_IN_MEMORY, err));
	VC_TRY(vc_session_plans(&x->s, &x->plan, &n, err));
	if (sink)
		vc_watch_for(watch, sink, x->s.rec->census.events);
	all = vc_plan_unlimited(x->plan);
	r = whole ? vc_session_replay(&x->s, &all, watch, &x->run, err) :
		    vc_session_run(&x->s, x->plan, watch, &x->run, err);
	if (r < 0)
		x->run = (struct vc_result){ 0 };
	return r;
}

void vc_side_close(struct vc_side *x)
{
	vc_result_fini(&x->run);
	free(x->plan);
	vc_session_close(&x->s);
}

static void as_sides(const struct vc_side x[2], struct vc_diff_side side[2])
{
	for (int k = 0; k < 2; k++)
		side[k] = (struct vc_diff_side){ &x[k].s.rec->trace, &x[k].run,
						 x[k].s.rec->device->device };
}

int vc_sides_diff(const struct vc_side x[2], struct vc_diff *d, struct vc_grew *g,
		  struct vc_error *err)
{
	struct vc_diff_side side[2];

	as_sides(x, side);
	VC_TRY(vc_diff_init(d, side, err));
	return g ? vc_grew_init(g, side, d, err) : VC_OK;
}

int vc_two_open(struct vc_two *t, const char *a, const char *b, struct vc_error *err)
{
	struct vc_run_options opt = vc_run_options_none();

	*t = (struct vc_two){ 0 };
	opt.verify = false;
	VC_TRY(vc_side_open(&t->x[0], &opt, a, NULL, true, err));
	VC_TRY(vc_side_open(&t->x[1], &opt, b, NULL, true, err));
	return vc_sides_diff(t->x, &t->d, &t->grew, err);
}

void vc_two_close(struct vc_two *t)
{
	vc_grew_fini(&t->grew);
	vc_diff_fini(&t->d);
	vc_side_close(&t->x[0]);
	vc_side_close(&t->x[1]);
}

char *vc_sides_words(const struct vc_side x[2], const struct vc_diff *d, const struct vc_grew *g,
		     const char *const name[2], char *buf, size_t n)
{
	struct vc_diff_side side[2];

	as_sides(x, side);
	return vc_grew_words(g, side, d, name, buf, n);
}

void vc_sides_emit_first(struct vc_emit *e, const struct vc_side x[2], const struct vc_diff *d)
{
	char place[512];

	if (d->first == VC_DIFF_NONE) {
		vc_emit_null(e, "first_difference", NULL);
		return;
	}
	vc_emit_object(e, "first_difference", NULL);
	vc_emit_text(e, "kind", NULL, vc_diff_kind_name(d->first));
	for (int k = 0; k < 2; k++) {
		if (d->event[k] == UINT64_MAX) {
			vc_emit_null(e, k ? "b" : "a", NULL);
			continue;
		}
		vc_site_text(x[k].s.rec->meta, d->site[k], place, sizeof(place));
		vc_emit_object(e, k ? "b" : "a", NULL);
		vc_emit_uint(e, "event", NULL, d->event[k]);
		vc_emit_uint(e, "time_ns", NULL, d->time_ns[k]);
		vc_emit_uint(e, "size", NULL, d->size[k]);
		vc_emit_text(e, "site", NULL, place);
		vc_emit_end(e);
	}
	vc_emit_end(e);
}

void vc_sides_say_first(struct vc_emit *e, const struct vc_side x[2], const struct vc_diff *d)
{
	char place[512], t[32];

	if (d->first == VC_DIFF_NONE)
		return;
	vc_emit_line(e, "\nThe first difference: %s", vc_parting_text(d->first));
	for (int k = 0; k < 2; k++) {
		if (d->event[k] == UINT64_MAX)
			continue;
		vc_site_text(x[k].s.rec->meta, d->site[k], place, sizeof(place));
		vc_emit_line(e, "  %s event %" PRIu64 ": %s%s%s", k ? "B" : "A", d->event[k],
			     vc_bytes_text(d->size[k], t), *place ? " at " : "", place);
	}
}

void vc_sides_emit(struct vc_emit *e, const char *key, const uint64_t v[2])
{
	vc_emit_object(e, key, NULL);
	vc_emit_uint(e, "a", NULL, v[0]);
	vc_emit_uint(e, "b", NULL, v[1]);
	vc_emit_end(e);
}
