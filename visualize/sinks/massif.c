/* SPDX-License-Identifier: Apache-2.0 */
/* massif.c - usage over time as Valgrind's massif writes it, for ms_print and massif-visualizer:
 * allocated bytes as heap, cached ones as extra. Detailed trees (call sites) only at the peak. */

#include "common/io.h"
#include "visualize/classify.h"
#include "visualize/sink.h"

enum { TREE = 40 }; /* call sites of the detailed snapshot */

static void tree(struct vc_output *o, const struct vc_result *r, const struct vc_owners *w)
{
	size_t shown = w->n < TREE ? w->n : TREE;
	uint64_t rest = 0;

	for (size_t i = shown; i < w->n; i++)
		rest += w->at[i].bytes;
	vc_output_printf(o, "heap_tree=peak\nn%zu: %" PRIu64 " (allocated on the device)\n",
			 shown + (rest > 0), w->bytes);
	for (size_t i = 0; i < shown; i++) {
		char text[512];

		vc_owner_text(r->meta, &w->at[i], text, sizeof(text));
		for (char *p = text; *p; p++)
			*p = *p == '\n' || *p == '\r' ? ' ' : *p;
		vc_output_printf(o, " n0: %" PRIu64 " 0x%zX: %s\n", w->at[i].bytes, i + 1, text);
	}
	if (rest)
		vc_output_printf(
			o, " n0: %" PRIu64 " in %zu places, each smaller than those above\n",
			rest, w->n - shown);
}

static void snapshot(struct vc_output *o, size_t n, uint64_t time, uint64_t heap, uint64_t extra)
{
	vc_output_printf(o, "#-----------\nsnapshot=%zu\n#-----------\ntime=%" PRIu64
			 "\nmem_heap_B=%" PRIu64 "\nmem_heap_extra_B=%" PRIu64
			 "\nmem_stacks_B=0\n",
			 n, time, heap, extra);
}

static size_t peak_of(const struct vc_curve *v)
{
	size_t at = 0;

	for (size_t i = 1; i < v->n; i++)
		if (v->at[i].allocated_max > v->at[at].allocated_max)
			at = i;
	return at;
}

static int massif_write(const struct vc_result *runs, size_t n, const void *config,
			struct vc_output *out, struct vc_error *err)
{
	struct vc_classes c;
	struct vc_owners w = { 0 };
	int r;

	if (n != 1)
		return vc_fail(err, VC_EUSAGE,
			       "massif: one run at a time, its file has no room for more");
	VC_TRY(vc_classes_init(&c, runs, err));
	r = vc_owners_init(&w, &c, err);
	vc_output_printf(out, "desc: %s\ncmd: %s\ntime_unit: i\n", runs->info.model,
			 runs->info.trace);
	for (size_t i = 0; r == VC_OK && i < runs->curve.n; i++) {
		const struct vc_bucket *b = &runs->curve.at[i];

		snapshot(out, i, b->peak_event, b->allocated_max,
			 b->reserved_max > b->allocated_max ? b->reserved_max - b->allocated_max :
							      0);
		if (i == peak_of(&runs->curve) && w.n)
			tree(out, runs, &w);
		else
			vc_output_text(out, "heap_tree=empty\n");
	}
	vc_owners_fini(&w);
	vc_classes_fini(&c);
	return r;
}

static const char *const reads[] = { "timeline", "lives", "peak", "oom", NULL };

const struct vc_sink_type vc_sink_massif = {
	.name = "massif", .extension = "massif",
	.summary = "usage over time as Valgrind's massif writes it (ms_print, massif-visualizer)",
	.observers = reads, .write = massif_write,
};
