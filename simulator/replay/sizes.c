/* SPDX-License-Identifier: Apache-2.0 */
/* sizes.c - see sizes.h */
#include "simulator/replay/sizes.h"

#include "common/map.h"
#include "common/vec.h"

static void drop(struct vc_memo *m)
{
	struct vc_sizes *s = (struct vc_sizes *)m;

	VC_FREE(s->at, s);
}

static bool asks(const struct vc_event *e)
{
	return e->size && (e->kind == VC_EV_ALLOC || e->kind == VC_EV_OOM ||
			   (e->kind == VC_EV_HEAP_BLOCK && !(e->flags & VC_EVF_FINAL) && e->id));
}

static int make(const struct vc_trace *t, uint64_t key, const void *arg, struct vc_memo **out,
		struct vc_error *err)
{
	struct vc_sizes *s = calloc(1, sizeof(*s));
	struct vc_map known = { 0 };
	bool ok = s;

	for (size_t i = 0; ok && i < t->n; i++) {
		const struct vc_event *e = &t->ev[i];

		if (!asks(e) || vc_map_get(&known, e->size))
			continue;
		ok = vc_map_put(&known, e->size, 1) && vc_vec_one(s->at, s->n);
		if (ok)
			s->at[s->n++] = e->size;
	}
	vc_map_fini(&known);
	if (!ok) {
		if (s)
			drop(&s->memo);
		return vc_nomem(err, "the sizes of a recording");
	}
	vc_sort_u64(s->at, s->n);
	s->memo.drop = drop;
	s->memo.bytes = s->n * sizeof(*s->at);
	*out = &s->memo;
	return VC_OK;
}

int vc_sizes_of(const struct vc_trace *t, struct vc_sizes **out, struct vc_error *err)
{
	struct vc_memo *m;

	VC_TRY(vc_memo_get(t, 0, make, NULL, &m, err));
	*out = (struct vc_sizes *)m;
	return VC_OK;
}
