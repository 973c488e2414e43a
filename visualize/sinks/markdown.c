/* SPDX-License-Identifier: Apache-2.0 */
/* markdown.c - a section to paste into a pull request or a step summary. */

#include "common/io.h"
#include "visualize/scene.h"

enum { HOLDERS = 5 };

/* Text in a table cell or a line: pipes and line ends would break it, the rest is escaped so that
 * names with underscores stay as they are. */
static void put(struct vc_output *o, const char *s)
{
	for (; s && *s; s++) {
		if (*s == '\n' || *s == '\r')
			vc_output_text(o, " ");
		else if (strchr("|\\`*_<>[]#", *s))
			vc_output_printf(o, "\\%c", *s);
		else
			vc_output_write(o, s, 1);
	}
}

static void cell_bytes(struct vc_output *o, uint64_t bytes)
{
	char buf[VC_FORMAT];

	vc_output_printf(o, " %s |", vc_format_bytes(bytes, buf));
}

static void row(struct vc_output *o, const struct vc_result *r)
{
	const struct vc_run_info *i = &r->info;
	uint64_t used = r->stats.peak_used;
	const char *color;
	char buf[VC_FORMAT], high[VC_FORMAT];

	vc_output_text(o, "| ");
	put(o, i->model);
	vc_output_text(o, i->torch ? " " : "");
	put(o, i->torch);
	if (i->change && *i->change) {
		vc_output_text(o, ", ");
		put(o, i->change);
	}
	vc_output_text(o, " | ");
	put(o, i->gpu ? i->gpu : i->capacity ? vc_format_bytes(i->capacity, buf) : "no limit");
	vc_output_text(o, " | ");
	put(o, i->conf && *i->conf ? i->conf : "default");
	vc_output_printf(o, " | **%s** |", vc_verdict_word(r, &color));
	cell_bytes(o, r->stats.peak_allocated);
	cell_bytes(o, r->stats.peak_reserved);
	cell_bytes(o, used);
	if (i->capacity)
		vc_output_printf(o, " %s |", vc_format_percent(used, i->capacity, buf));
	else
		vc_output_text(o, " |");
	cell_bytes(o, r->stats.stranded_at_peak);
	vc_output_printf(o, " %" PRIu64 " |", r->stats.flushes);
	if (r->has_interval)
		vc_output_printf(o, " %s to %s |", vc_format_bytes(r->low, buf),
				 vc_format_bytes(r->high, high));
	else
		vc_output_text(o, " |");
	vc_output_printf(o, " %s%s |\n",
			 r->trust.level ? vc_level_name(r->trust.level) : "",
			 r->trust.level && !r->trust.checked ? ", not checked" : "");
}

static void oom(struct vc_output *o, const struct vc_result *r)
{
	char place[512], a[VC_FORMAT];

	if (!r->oom.happened)
		return;
	vc_output_printf(o, "\nOut of memory at event %" PRIu64 ":\n\n```\n%s\n```\n\n",
			 r->oom.event, r->oom.message ? r->oom.message : "");
	for (size_t i = 0; i < r->oom.holders && i < HOLDERS; i++) {
		const struct vc_holder *h = &r->oom.holder[i];

		vc_output_printf(o, "%s| %s | %" PRIu64 " | ",
				 i ? "" : "| held at that moment | blocks | by |\n|--:|--:|---|\n",
				 vc_format_bytes(h->bytes, a), h->blocks);
		put(o, vc_holder_text(r->meta, h, place, sizeof(place)));
		vc_output_text(o, " |\n");
	}
}

static int markdown_write(const struct vc_result *runs, size_t n, const void *config,
			  struct vc_output *o, struct vc_error *err)
{
	char words[VC_SAY];

	vc_output_text(o, "### GPU memory of ");
	put(o, n && runs->info.trace ? runs->info.trace : "nothing");
	vc_output_text(o, "\n\n");
	if (n == 1) {
		vc_answer_text(runs, false, words, sizeof(words));
		put(o, words);
		vc_output_text(o, ".\n\n");
		vc_reason_text(runs, words, sizeof(words));
		put(o, words);
		vc_output_text(o, "\n\n");
	}
	vc_output_text(o, "| allocator | device | settings | verdict | allocated | reserved | used "
		       "| of the device | cached at the peak | flushes | reserved lies between "
		       "| trust |\n|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|---|\n");
	for (size_t i = 0; i < n; i++)
		row(o, &runs[i]);
	for (size_t i = 0; i < n; i++)
		oom(o, &runs[i]);
	vc_output_text(o, "\n<sub>vramcast " VC_VERSION "</sub>\n");
	return VC_OK;
}

const struct vc_sink_type vc_sink_markdown = {
	.name = "markdown", .extension = "md",
	.summary = "a table of the runs to paste into a pull request or a step summary",
	.observers = VC_READS("oom", "moment"), .write = markdown_write,
};
