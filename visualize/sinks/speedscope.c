/* SPDX-License-Identifier: Apache-2.0 */
/* speedscope.c - call stacks and their bytes for speedscope.app: two profiles a run, the bytes at
 * the peak (or when it ran out) and all bytes over the run. Its file-format-spec.ts is the form. */

#include "common/io.h"
#include "common/json.h"
#include "common/site.h"
#include "visualize/sink.h"
#include "visualize/stacks.h"

enum { DEEPEST = 512 };

static void quote(struct vc_output *o, const char *text)
{
	vc_json_quote(o, text, strlen(text));
}

/* Frames of a run, from `*first` on in the one list that all runs share: its own, by their number,
 * and one for stacks that are not known. */
static void put_frames(struct vc_output *o, const struct vc_meta *m, bool *any)
{
	for (size_t i = 0; m && i < m->frames; i++) {
		const struct vc_frame *f = &m->frame[i];
		const char *file = vc_label_text(m, f->file);
		const char *function = vc_label_text(m, f->function);

		vc_output_text(o, *any ? ",\n{\"name\":" : "\n{\"name\":");
		*any = true;
		quote(o, !i ? VC_STACK_UNKNOWN : *function ? function : "??");
		if (i && *file) {
			vc_output_text(o, ",\"file\":");
			quote(o, file);
		}
		if (i && f->line)
			vc_output_printf(o, ",\"line\":%u", f->line);
		vc_output_text(o, "}");
	}
}

static void put_stack(struct vc_output *o, const struct vc_meta *m, uint32_t site, size_t first)
{
	uint32_t chain[DEEPEST];
	size_t n = 0;

	if (site >= m->frames)
		site = 0;
	do {
		chain[n++] = site;
		site = m->frame[site].parent < site ? m->frame[site].parent : 0;
	} while (site && n < DEEPEST);
	for (size_t i = n; i-- > 0;)
		vc_output_printf(o, "%zu%s", first + chain[i], i ? "," : "");
}

/* One profile: samples are stacks, outermost frame first, and their weights are bytes. */
static void put_profile(struct vc_output *o, const struct vc_stacks *s, const struct vc_meta *m,
			size_t first, bool all)
{
	uint64_t sum = 0;
	const char *comma = "";

	vc_output_text(o, ",\"unit\":\"bytes\",\"type\":\"sampled\",\"startValue\":0,"
		       "\"samples\":[");
	for (size_t k = 0; k < s->n; k++) {
		if (!(all ? s->at[k].all_bytes : s->at[k].bytes))
			continue;
		vc_output_printf(o, "%s[", comma);
		put_stack(o, m, s->at[k].site, first);
		vc_output_text(o, "]");
		comma = ",";
	}
	vc_output_text(o, "],\"weights\":[");
	comma = "";
	for (size_t k = 0; k < s->n; k++) {
		uint64_t bytes = all ? s->at[k].all_bytes : s->at[k].bytes;
		if (!bytes)
			continue;
		vc_output_printf(o, "%s%" PRIu64, comma, bytes);
		comma = ",";
		sum += bytes;
	}
	vc_output_printf(o, "],\"endValue\":%" PRIu64 "}", sum);
}

static int put_run(struct vc_output *o, const struct vc_result *r, size_t i, size_t first,
		   struct vc_error *err)
{
	struct vc_stacks s;
	char name[64];

	VC_TRY(vc_stacks_init(&s, r, err));
	for (int all = 0; all <= (s.has_all ? 1 : 0); all++) {
		snprintf(name, sizeof(name), "run %zu: %s", i + 1, all ? "all bytes over the run" :
			 s.at_oom ? "bytes when it ran out" : "bytes at the peak");
		vc_output_text(o, i || all ? ",\n{\"name\":" : "\n{\"name\":");
		quote(o, name);
		put_profile(o, &s, r->meta, first, all);
	}
	vc_stacks_fini(&s);
	return VC_OK;
}

static int speedscope_write(const struct vc_result *runs, size_t n, const void *config,
			    struct vc_output *out, struct vc_error *err)
{
	size_t first = 0;
	bool any = false;

	vc_output_text(out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
		       "\"exporter\":\"vramcast\",\"shared\":{\"frames\":[");
	for (size_t i = 0; i < n; i++) {
		if (!runs[i].meta)
			return vc_fail(err, VC_ENOSUP, "speedscope: results that were read back "
				       "have no call stacks; give it the recording");
		put_frames(out, runs[i].meta, &any);
	}
	vc_output_text(out, "]},\"profiles\":[");
	for (size_t i = 0; i < n; i++) {
		VC_TRY(put_run(out, &runs[i], i, first, err));
		first += runs[i].meta->frames;
	}
	vc_output_text(out, "]}\n");
	return VC_OK;
}

static const char *const reads[] = { "peak", "oom", "lives", NULL };

const struct vc_sink_type vc_sink_speedscope = {
	.name = "speedscope", .extension = "speedscope",
	.summary = "bytes at the peak and over the run by call stack, for speedscope.app",
	.observers = reads, .write = speedscope_write,
};
