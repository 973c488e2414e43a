/* SPDX-License-Identifier: Apache-2.0 */
/* counters.c - the model's own statistics after the last event. */

#include "common/vec.h"
#include "simulator/replay/observer.h"
#include "simulator/replay/result.h"

struct list { struct vc_counter *at; size_t n; };

static int add(void *arg, const struct vc_stat *s)
{
	struct list *l = arg;

	if (!vc_vec_one(l->at, l->n))
		return VC_ENOMEM;
	l->at[l->n++] = (struct vc_counter){ s->name, s->klass, s->current, s->peak, s->allocated,
					     s->freed };
	return VC_OK;
}

static int counters_end(struct vc_observer *o, const struct vc_model *m, struct vc_result *r,
			struct vc_error *err)
{
	struct list l = { 0 };
	int rc = m->type->stats ? m->type->stats(m, add, &l) : VC_OK;

	r->counters = (struct vc_counters){ l.at, l.n };
	return rc < 0 ? vc_nomem(err, "the statistics") : VC_OK;
}

const struct vc_observer_type vc_observer_counters = {
	.name = "counters",
	.summary = "the model's own statistics, as torch.cuda.memory_stats() has them",
	.end = counters_end,
};
