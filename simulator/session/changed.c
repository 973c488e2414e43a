/* SPDX-License-Identifier: Apache-2.0 */
/* changed.c - see changed.h */
#include "simulator/session/changed.h"

#include "simulator/replay/memo.h"

struct changed {
	struct vc_memo memo; /* first */
	struct vc_trace trace;
};

struct ask { const char *path; const struct vc_list *transforms; vc_pipeline_fn *pipeline; };

static void drop(struct vc_memo *m)
{
	struct changed *k = (struct changed *)m;

	vc_trace_fini(&k->trace);
	free(k);
}

static int read_changed(const struct vc_trace *t, const struct ask *ask, struct changed *k,
			struct vc_error *err)
{
	struct vc_source *src = vc_source_memory(t, err);
	int r;

	if (src)
		src = ask->pipeline(src, ask->transforms, err);
	if (!src)
		return err->status ? (int)err->status : VC_ENOMEM;
	r = vc_trace_read(&k->trace, src, err);
	vc_source_free(src);
	return r < 0 ? vc_wrap(err, "%s", ask->path) : vc_trace_keep(&k->trace, err);
}

static int change(const struct vc_trace *t, uint64_t key, const void *arg, struct vc_memo **out,
		  struct vc_error *err)
{
	struct changed *k = calloc(1, sizeof(*k));
	int r = k ? read_changed(t, arg, k, err) : vc_nomem(err, "changed events");

	if (r < 0 && k)
		drop(&k->memo);
	VC_TRY(r);
	k->memo.drop = drop;
	k->memo.bytes = k->trace.cap * sizeof(*k->trace.ev);
	*out = &k->memo;
	return VC_OK;
}

/* FNV-1a, 64 bit (Fowler, Noll, Vo): of the texts and where each ends. */
static uint64_t key_of(const struct vc_list *transforms)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < transforms->n; i++)
		for (const char *c = transforms->at[i];; c++) {
			h = (h ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
			if (!*c)
				break;
		}
	return h;
}

struct vc_source *vc_changed_source(const struct vc_trace *t, const char *path,
				    const struct vc_list *transforms, vc_pipeline_fn *pipeline,
				    struct vc_error *err)
{
	struct ask ask = { path, transforms, pipeline };
	struct vc_memo *m;
	struct vc_source *src;

	if (vc_memo_get(t, key_of(transforms), change, &ask, &m, err) < 0)
		return NULL;
	src = vc_source_memory(&((struct changed *)m)->trace, err);
	if (src)
		src->holds = m;
	else
		vc_memo_put(m);
	return src;
}
