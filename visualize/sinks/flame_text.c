/* SPDX-License-Identifier: Apache-2.0 */
/* flame_text.c - who holds the memory, as a tree of text; the children of a line sum to it. */

#include "common/io.h"
#include "common/utf8.h"
#include "simulator/findings/findings.h"
#include "visualize/flame.h"
#include "common/format.h"
#include "visualize/reduce.h"
#include "visualize/sink.h"

struct config { uint64_t width, least; };

static const struct vc_param params[] = {
	{ "width", VC_P_UINT, offsetof(struct config, width), "80", "columns of the terminal",
	  NULL },
	{ "least", VC_P_UINT, offsetof(struct config, least), "10",
	  "thousandths of all bytes below which lines are one", NULL },
	VC_PARAM_END };

struct text {
	struct vc_flame f;
	struct vc_output *out;
	uint64_t width, least;
};

static void put_line(struct text *t, uint64_t bytes, uint32_t depth, const char *raw,
		     uint64_t blocks)
{
	char a[VC_FORMAT], p[VC_FORMAT], name[sizeof(t->f.node->name)];
	size_t indent = 2 * depth, room = t->width > 24 + indent + 12 ? t->width - 24 - indent : 12;
	size_t n = 0, shown = 0;

	snprintf(name, sizeof(name), "%s", raw);
	vc_utf8_line(name);
	while (name[n] && shown + 1 < room) /* whole characters */
		shown += (name[++n] & 0xC0) != 0x80;
	vc_output_printf(t->out, "%10s %8s  %*s%.*s%s", vc_format_in(bytes, t->f.node[0].bytes, a),
			 vc_format_percent(bytes, t->f.node[0].bytes, p), (int)indent, "", (int)n,
			 name, name[n] ? "~" : "");
	if (blocks > 1 && !name[n] && shown + 12 < room)
		vc_output_printf(t->out, "  x%" PRIu64, blocks);
	vc_output_text(t->out, "\n");
}

static void put_node(struct text *t, uint32_t at)
{
	const struct vc_flame_node *n = &t->f.node[at];
	uint64_t rest = 0, blocks = 0;

	put_line(t, n->bytes, n->depth, n->name, n->child ? 1 : n->blocks);
	for (uint32_t i = n->child; i; i = t->f.node[i].next) {
		const struct vc_flame_node *c = &t->f.node[i];

		if (c->bytes / 1000 * 1000 >= t->f.node[0].bytes / 1000 * t->least) {
			put_node(t, i);
			continue;
		}
		rest += c->bytes;
		blocks += c->blocks;
	}
	if (rest)
		put_line(t, rest, n->depth + 1, "smaller ones", blocks);
}

static int put_run(struct text *t, const struct vc_result *r, struct vc_error *err)
{
	struct vc_classes c;
	char title[400];
	int rc = vc_classes_init(&c, r, err);

	if (!rc)
		rc = vc_flame_init(&t->f, &c, err);
	if (!rc && t->f.n) {
		vc_answer_text(r, vc_curve_reads_by_time(r), title, sizeof(title));
		vc_output_printf(t->out, "%s\n\n", vc_utf8_line(title));
		put_node(t, 0);
	} else if (!rc) {
		vc_output_text(t->out, "there is nothing to draw: no block was ever allocated\n");
	}
	vc_flame_fini(&t->f);
	vc_classes_fini(&c);
	return rc;
}

static int flame_text_write(const struct vc_result *runs, size_t n, const void *config,
			    struct vc_output *out, struct vc_error *err)
{
	const struct config fallback = { 80, 10 }, *cfg = config ? config : &fallback;
	struct text t = { .out = out, .width = cfg->width, .least = cfg->least };

	if (!n)
		vc_output_text(out, "there is nothing to draw: no run was given\n");
	for (size_t i = 0; i < n; i++) {
		if (i)
			vc_output_text(out, "\n");
		VC_TRY(put_run(&t, &runs[i], err));
	}
	return VC_OK;
}

const struct vc_sink_type vc_sink_flame_text = {
	.name = "flame_text", .extension = "txt",
	.summary = "who holds the memory, as a tree of text",
	.params = params, .config_size = sizeof(struct config),
	.observers = VC_READS("timeline", "lives", "peak", "oom", "moment", "steps"),
	.lives_limit = 2000000, .write = flame_text_write,
};
