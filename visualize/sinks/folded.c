/* SPDX-License-Identifier: Apache-2.0 */
/* folded.c - call stacks and their bytes, one line each, for flamegraph.pl, inferno and
 * speedscope. */

#include "common/io.h"
#include "common/site.h"
#include "visualize/sink.h"
#include "visualize/stacks.h"

struct config { uint64_t what; };

static const struct vc_param params[] = {
	{ "what", VC_P_ENUM, offsetof(struct config, what), "live",
	  "bytes live at the peak (or when it ran out), or all bytes over the run", "live,all" },
	VC_PARAM_END
};

/* ";" parts frames and the last blank parts the number: neither may stand in a name. */
static void put(struct vc_output *o, const char *s)
{
	for (; *s; s++)
		vc_output_write(o, *s == ';' ? ":" : *s == '\n' || *s == '\r' ? " " : s, 1);
}

static void put_frame(struct vc_output *o, const struct vc_meta *m, uint32_t site)
{
	const struct vc_frame *f = &m->frame[site];
	const char *file = vc_label_text(m, f->file), *function = vc_label_text(m, f->function);

	put(o, *function ? function : "??");
	if (*file) {
		vc_output_text(o, " (");
		put(o, file);
		if (f->line)
			vc_output_printf(o, ":%u", f->line);
		vc_output_text(o, ")");
	}
}

/* Outermost first. */
static void put_stack(struct vc_output *o, const struct vc_meta *m, uint32_t site)
{
	uint32_t chain[512];
	size_t n = 0;

	for (; site && site < m->frames && n < 512;
	     site = m->frame[site].parent < site ? m->frame[site].parent : 0)
		chain[n++] = site;
	for (size_t i = n; i-- > 0;) {
		put_frame(o, m, chain[i]);
		if (i)
			vc_output_text(o, ";");
	}
}

static int folded_write(const struct vc_result *runs, size_t n, const void *config,
			struct vc_output *out, struct vc_error *err)
{
	bool all = ((const struct config *)config)->what;

	for (size_t i = 0; i < n; i++) {
		const struct vc_meta *m = runs[i].meta;
		struct vc_stacks s;

		VC_TRY(vc_stacks_init(&s, &runs[i], err));
		if (all && !s.has_all && runs[i].lives.dropped) {
			vc_stacks_fini(&s);
			return vc_fail(err, VC_ENOSUP,
				       "what=all: the run is too long, not all blocks were kept; "
				       "cut it with -x window, or take what=live");
		}
		for (size_t k = 0; k < s.n; k++) {
			const struct vc_stack *t = &s.at[k];
			uint64_t bytes = all ? t->all_bytes : t->bytes;

			if (!bytes)
				continue;
			if (n > 1)
				vc_output_printf(out, "run %zu;", i);
			if (t->site && m)
				put_stack(out, m, t->site);
			else
				put(out, t->label ? vc_label_text(m, t->label) : VC_STACK_UNKNOWN);
			vc_output_printf(out, " %" PRIu64 "\n", bytes);
		}
		vc_stacks_fini(&s);
	}
	return VC_OK;
}

const struct vc_sink_type vc_sink_folded = {
	.name = "folded", .extension = "folded",
	.summary = "bytes at the peak by call stack, for flame graphs",
	.params = params, .config_size = sizeof(struct config),
	.observers = VC_READS("peak", "oom", "lives"),
	.write = folded_write,
};
