/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - see calls.h */
#include "simulator/replay/calls.h"

#include "common/vec.h"

static void drop(struct vc_memo *m)
{
	struct vc_calls *c = (struct vc_calls *)m;

	VC_FREE(c->at, c);
}

static int make(const struct vc_trace *t, uint64_t device, const void *arg, struct vc_memo **out,
		struct vc_error *err)
{
	struct vc_calls *c = calloc(1, sizeof(*c));
	bool mapped = false, ok = c;

	for (size_t i = 0; ok && !mapped && i < t->n; i++) {
		const struct vc_event *e = &t->ev[i];

		if (e->device != device)
			continue;
		mapped = e->kind == VC_EV_SEGMENT_MAP || e->kind == VC_EV_SEGMENT_UNMAP;
		if (e->kind != VC_EV_SEGMENT_ALLOC && e->kind != VC_EV_SEGMENT_FREE)
			continue;
		ok = vc_vec_one(c->at, c->n);
		if (ok)
			c->at[c->n++] = (struct vc_device_call){ e->addr, e->size,
								 e->kind == VC_EV_SEGMENT_FREE };
	}
	if (!ok) {
		if (c)
			drop(&c->memo);
		return vc_nomem(err, "the recorded driver calls");
	}
	c->n = mapped ? 0 : c->n;
	c->memo.drop = drop;
	c->memo.bytes = c->n * sizeof(*c->at);
	*out = &c->memo;
	return VC_OK;
}

int vc_calls_of(const struct vc_trace *t, uint16_t device, struct vc_calls **out,
		struct vc_error *err)
{
	struct vc_memo *m;

	VC_TRY(vc_memo_get(t, device, make, NULL, &m, err));
	*out = (struct vc_calls *)m;
	return VC_OK;
}
