/* SPDX-License-Identifier: Apache-2.0 */
/* window.c - what-if: only a part of the recording. What is alive where it begins is asked for
 * first, so that every block that is given back was asked for. */

#include "simulator/anatomy/anatomy.h"
#include "simulator/replay/transform.h"
#include "simulator/rewrite/rewrite.h"

struct config { uint64_t from, to, first, count; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "from", VC_P_UINT, AT(from), "0", "first event", NULL },
	{ "to", VC_P_UINT, AT(to), "0", "event behind the last; 0: the end", NULL },
	{ "iteration", VC_P_UINT, AT(first), "0", "first iteration, when iterations is given",
	  NULL },
	{ "iterations", VC_P_UINT, AT(count), "0", "how many iterations; 0: by events", NULL },
	VC_PARAM_END };

/* Events of the iterations asked for. */
static int by_iterations(struct vc_source *s, const struct vc_whole *w, size_t *from, size_t *to,
			 struct vc_error *err)
{
	const struct config *c = s->config;
	struct vc_anatomy a;
	int r = vc_whole_anatomy(w, s->meta, &a, err);

	VC_TRY(r);
	*from = *to = w->n;
	for (size_t k = 0; k < a.spans; k++) {
		uint32_t i = a.span[k].iteration;
		if (i == UINT32_MAX || i < c->first || i >= c->first + c->count)
			continue;
		if (*from == w->n)
			*from = a.span[k].first;
		*to = a.span[k].end;
	}
	if (*from == w->n)
		r = vc_fail(err, VC_EUSAGE,
			    "window: the recording has %u iterations, there is no number %llu",
			    a.iterations, (unsigned long long)c->first);
	vc_anatomy_fini(&a);
	return r;
}

/* Ask for everything that lives at `from`, in order of birth. */
static int revive(struct vc_whole *w, size_t from, struct vc_error *err)
{
	bool *dead = calloc(w->next_id + 1, sizeof(*dead));
	int r = dead ? VC_OK : vc_nomem(err, "the blocks alive at the start of the window");

	for (size_t i = 0; r == VC_OK && i < from; i++)
		if (w->in[i].kind == VC_EV_FREE)
			dead[w->in[i].id] = true;
	for (size_t i = 0; r == VC_OK && i < from; i++) {
		const struct vc_event *e = &w->in[i];
		bool heap = e->kind == VC_EV_HEAP_BLOCK && (e->flags & VC_EVF_LIVE);

		if ((e->kind == VC_EV_ALLOC || heap) && e->id && !dead[e->id]) {
			struct vc_event born = vc_event_like(e, VC_EV_ALLOC, e->id, e->size);
			born.site = e->site;
			born.time_ns = w->in[from].time_ns;
			r = vc_whole_put(w, &born, 1, err);
		}
	}
	free(dead);
	return r;
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	const struct config *c = s->config;
	size_t from = c->from, to = c->to && c->to < w->n ? c->to : w->n;

	if (c->count)
		VC_TRY(by_iterations(s, w, &from, &to, err));
	if (from >= to)
		return vc_fail(err, VC_EUSAGE,
			       "window: nothing between event %zu and %zu (the trace has %zu)",
			       from, to, w->n);
	if (from)
		VC_TRY(revive(w, from, err));
	for (size_t i = from; i < to; i++)
		if (!from || !vc_event_outdated(&w->in[i]))
			VC_TRY(vc_whole_put(w, &w->in[i], 1, err));
	return VC_OK;
}

const struct vc_source_type vc_transform_window = {
	.name = "window", .summary = "only a part of the recording: some events or some iterations",
	.params = params, .config_size = sizeof(struct config),
	/* exact: nothing but the recording is replayed */
	.margin = &(const struct vc_margin){ 0 },
	.step = vc_step_unchanged,
	VC_WHOLE(rewrite),
};
