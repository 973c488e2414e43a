/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - see watch.h. */
#include "tracer/watch.h"

bool vc_watch_windows(const struct vc_watch *w)
{
	return w->from || w->to || w->after_ns || w->duration_ns || w->paused;
}

void vc_watch_begin(const struct vc_watch *w, struct vc_watching *s, uint64_t now_ns)
{
	s->began_ns = now_ns;
	if (vc_watch_windows(w))
		s->window = VC_WINDOW_AWAITED;
}

/* The step that is going on now is the one after those that are marked. */
static bool opens(const struct vc_watch *w, const struct vc_watching *s, uint64_t now)
{
	return !w->paused && s->steps + 1 >= w->from && now - s->began_ns >= w->after_ns;
}

static bool closes(const struct vc_watch *w, const struct vc_watching *s, uint64_t now)
{
	return (w->to && s->steps >= w->to) ||
	       (w->duration_ns && now - s->opened_ns >= w->duration_ns);
}

static enum vc_turn window(const struct vc_watch *w, struct vc_watching *s,
			   const struct vc_record *rec)
{
	bool control = rec->kind == VC_REC_CONTROL;

	if (!vc_record_is_whole(rec) || (control && !w->paused))
		return VC_TURN_NONE;
	if (s->window == VC_WINDOW_AWAITED &&
	    (control ? rec->size == VC_CONTROL_START : opens(w, s, rec->time_ns))) {
		s->window = VC_WINDOW_OPEN;
		s->opened_ns = rec->time_ns;
		return VC_TURN_OPEN;
	}
	if (s->window == VC_WINDOW_OPEN &&
	    (control ? rec->size == VC_CONTROL_STOP : closes(w, s, rec->time_ns))) {
		s->window = w->paused ? VC_WINDOW_AWAITED : VC_WINDOW_OVER;
		return VC_TURN_CLOSE;
	}
	return VC_TURN_NONE;
}

static bool is_beyond(const struct vc_watch *w, const struct vc_fold_totals *t)
{
	double is = w->when == VC_WHEN_RESERVED ? (double)t->reserved :
		    w->when == VC_WHEN_ALLOCATED ? (double)t->allocated :
		    t->total > t->reserved ? (double)(t->total - t->reserved) : 0;
	double limit = w->percent ? w->value / 100 * (double)t->total : w->value;

	if (!t->total && (w->percent || w->when == VC_WHEN_FREE))
		return false; /* the size of the device is not known */
	return w->below ? is < limit : is > limit;
}

enum vc_turn vc_watch_look(const struct vc_watch *w, struct vc_watching *s,
			   const struct vc_record *rec, const struct vc_fold_totals *t)
{
	enum vc_turn turn;
	bool was = s->beyond;

	s->steps += rec->kind == VC_EV_MARK && rec->flags == VC_MARK_STEP;
	turn = s->window ? window(w, s, rec) : VC_TURN_NONE;
	if (turn)
		return turn;
	if (rec->kind == VC_EV_OOM && w->on_oom != VC_OOM_CONTINUE)
		return w->on_oom == VC_OOM_STOP ? VC_TURN_STOP : VC_TURN_OOM;
	if (rec->kind == VC_REC_CONTROL && rec->size == VC_CONTROL_DUMP)
		return VC_TURN_DUMP;
	if (rec->kind != VC_EV_ALLOC)
		return VC_TURN_NONE;
	s->beyond = w->when && is_beyond(w, t);
	return s->beyond && !was ? VC_TURN_WHEN : VC_TURN_NONE;
}
