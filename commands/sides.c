/* SPDX-License-Identifier: Apache-2.0 */
/* sides.c - see sides.h */
#include "commands/sides.h"

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

int vc_sides_diff(const struct vc_side x[2], struct vc_diff *d, struct vc_error *err)
{
	const struct vc_diff_side side[2] = {
		{ &x[0].s.rec->trace, &x[0].run, x[0].s.rec->device->device },
		{ &x[1].s.rec->trace, &x[1].run, x[1].s.rec->device->device } };

	return vc_diff_init(d, side, err);
}

void vc_sides_emit(struct vc_emit *e, const char *key, const uint64_t v[2])
{
	vc_emit_object(e, key, NULL);
	vc_emit_uint(e, "a", NULL, v[0]);
	vc_emit_uint(e, "b", NULL, v[1]);
	vc_emit_end(e);
}
