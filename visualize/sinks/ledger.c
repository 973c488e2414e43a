/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.c - the card as a waterfall: from its capacity down to what is free, and the request that
 * did not fit in red beyond it. */

#include "visualize/ledger.h"
#include "visualize/scene.h"

enum { ROWS = VC_SLOTS + 10, ROW = 300, BAR = 190, NAME = 2300, VALUE = 1150 };

struct row {
	const char *name, *klass;
	uint64_t from, bytes; /* the bar lies over [from, from + bytes) */
	bool sum, bad;
};

struct drawing {
	struct vc_page page;
	struct vc_classes classes;
	struct vc_ledger l;
	const struct vc_result *r;
	struct row row[ROWS];
	size_t n;
	uint64_t most; /* the right end of the axis */
};

static void add(struct drawing *d, const char *name, const char *klass, uint64_t from,
		uint64_t bytes)
{
	d->row[d->n++] = (struct row){ name, klass, from, bytes, false, false };
}

/* One bar more behind those before it, where there is anything. */
static void next(struct drawing *d, const char *name, const char *klass, uint64_t bytes,
		 uint64_t *at)
{
	if (bytes)
		add(d, name, klass, *at, bytes);
	*at += bytes;
}

static void collect(struct drawing *d)
{
	const struct vc_ledger *l = &d->l;
	uint64_t at = 0;

	if (l->capacity) {
		add(d, l->limited ? "limit of this process" : "capacity", "rim", 0, l->capacity);
		d->row[0].sum = true;
	}
	next(d, "CUDA context", "base", l->context, &at);
	next(d, "other processes", "base", l->others, &at);
	for (int s = 0; s < VC_SLOTS; s++)
		next(d, d->classes.ids ? vc_classes_name(&d->classes, (enum vc_slot)s) : "In use",
		     vc_theme_slot((enum vc_slot)s), l->slot[s], &at);
	next(d, "Waiting for a stream", "lane", l->waiting, &at);
	next(d, "Cached, returnable", "hx segbox", l->returnable, &at);
	next(d, "Cached, stranded", "hx bads thin", l->stranded, &at);
	if (!l->capacity) {
		add(d, "= used", "rim", 0, at);
		d->row[d->n - 1].sum = true;
	}
	next(d, "free", "okbg oks thin", l->free, &at);
	if (d->r->stats.managed)
		add(d, "managed, at most", "mng", 0, d->r->stats.managed);
	if (d->r->stats.pinned)
		add(d, "pinned, at most", "pin", 0, d->r->stats.pinned);
	if (l->request) {
		add(d, "asked for", "bad", l->used, l->request);
		d->row[d->n - 1].bad = true;
	}
	d->most = at > l->capacity ? at : l->capacity;
	for (size_t i = 0; i < d->n; i++)
		if (d->row[i].from + d->row[i].bytes > d->most)
			d->most = d->row[i].from + d->row[i].bytes;
	d->most = d->most ? d->most : 1;
}

static void draw_row(struct drawing *d, const struct row *w, struct vc_box b)
{
	struct vc_svg *s = &d->page.svg;
	char text[VC_FORMAT], exact[VC_FORMAT];
	int x = b.x + (int)vc_muldiv(w->from, (uint64_t)b.w, d->most);
	int wide = (int)vc_muldiv(w->bytes, (uint64_t)b.w, d->most);
	enum vc_text_style style = w->sum || w->bad ? VC_T_STRONG : VC_T_BODY;

	wide = wide < 20 ? 20 : wide;
	vc_svg_put(s, "<g><title>%e: %s B</title>", w->name, vc_format_count(w->bytes, exact));
	s->titles++;
	vc_svg_say(s, w->name, b.x - 150, b.y + 145, style, VC_END, w->bad ? "bad" : "fg",
		   b.x - VC_MARGIN - 150);
	vc_svg_rect(s, w->klass, (struct vc_box){ x, b.y, wide, BAR }, 0);
	vc_svg_say(s, vc_format_in(w->bytes, d->most, text), d->page.w - VC_MARGIN, b.y + 145,
		   style, VC_END, w->bad ? "bad" : "fg", 0);
	vc_svg_put(s, "</g>\n");
}

/* What is missing, or in the way, in words below the bars; the y below. */
static int note(struct drawing *d, int y)
{
	const struct vc_ledger *l = &d->l;
	uint64_t there = l->free + l->returnable + l->stranded;
	char text[200] = "", a[VC_FORMAT], b[VC_FORMAT];

	if (l->request > there)
		snprintf(text, sizeof(text), "%s more would have been needed: %s bytes",
			 vc_format_bytes(l->request - there, a),
			 vc_format_count(l->request - there, b));
	else if (l->request)
		snprintf(text, sizeof(text), "%s are free or cached, but the largest cached "
			 "piece is %s", vc_format_in(there, d->most, a),
			 vc_format_in(l->largest, d->most, b));
	else if (!l->context)
		snprintf(text, sizeof(text), "the CUDA context is not known and not counted");
	if (!*text)
		return y;
	struct vc_label at = { VC_MARGIN, y + 200, VC_T_STRONG, VC_START, "mut",
			       d->page.w - 2 * VC_MARGIN, false, false };

	at.color = l->request ? "bad" : "mut";
	return vc_page_lines(&d->page, &at, text, 0, 180, 2) + 100;
}

static int body(struct drawing *d, int y)
{
	struct vc_svg *s = &d->page.svg;
	int name = d->page.w < VC_NARROW ? 1700 : NAME;
	struct vc_box b = { VC_MARGIN + name, y, d->page.w - 2 * VC_MARGIN - name - VALUE, ROW };
	int x = b.x + (int)vc_muldiv(d->l.capacity, (uint64_t)b.w, d->most);

	vc_svg_put(s, "<g>\n");
	for (size_t i = 0; i < d->n; i++, b.y += ROW)
		draw_row(d, &d->row[i], b);
	vc_svg_put(s, "</g>\n");
	if (d->l.capacity)
		vc_svg_vline(s, "capl", x, y - 60, b.y - y + 40);
	return note(d, b.y);
}

static int draw(struct drawing *d, const struct vc_picture *cfg, struct vc_output *out,
		struct vc_error *err)
{
	char title[256], text[640], a[VC_FORMAT];
	bool by_time = d->r->curve.n && vc_wants_time(cfg, d->r);

	vc_answer_text(d->r, by_time, title, sizeof(title));
	vc_place_text(d->r, text, sizeof(text));
	vc_page_begin(&d->page, cfg, title, text);
	int y = vc_page_facts(&d->page, vc_page_header(&d->page, title, "", d->r), d->r);

	/* The heap is looked at up to a 512th of what is allocated before the peak (peak.c). */
	snprintf(text, sizeof(text), "Where the bytes are %s",
		 !d->r->stats.events                    ? "in this heap" :
		 d->l.at_oom                            ? "when it runs out" :
		 d->l.event < d->r->stats.peak_event    ? "just before the peak" :
							  "at the peak");
	if (d->r->stats.events)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), ", %s%s",
			 by_time ? "at " : "", vc_moment_text(d->r, by_time, d->l.event, a));
	vc_svg_say(&d->page.svg, text, VC_MARGIN, y + 100, VC_T_HEAD, VC_START, "fg",
		   d->page.w - 2 * VC_MARGIN);
	y = body(d, y + 330);
	vc_conf_text(d->r, text, sizeof(text));
	vc_page_footer(&d->page, y + 150, text, "vramcast " VC_VERSION);
	return vc_page_end(&d->page, y + (cfg->footer ? 480 : 150), out, err);
}

static int ledger_write(const struct vc_result *runs, size_t n, const void *config,
			struct vc_output *out, struct vc_error *err)
{
	const struct vc_picture *cfg = vc_picture_config(config, &(struct vc_picture){ 0 });
	struct drawing d = { .r = runs };

	if (!n || (!runs->stats.peak_reserved && !runs->oom.happened && !vc_result_heap(runs)->n))
		return vc_page_notice(cfg, "Where the bytes are", n ? "nothing was ever reserved" :
				      "no run was given", out, err);
	VC_TRY(vc_classes_lend(&d.classes, cfg->classes, runs, err));
	vc_ledger_make(&d.l, &d.classes);
	collect(&d);
	int rc = draw(&d, cfg, out, err);
	vc_classes_fini(&d.classes);
	return rc;
}

const struct vc_sink_type vc_sink_ledger = {
	.name = "ledger", .extension = "svg",
	.summary = "where the bytes of the card are at the peak or the failure: a waterfall",
	.params = vc_picture_params, .config_size = sizeof(struct vc_picture),
	.observers = VC_READS("timeline", "lives", "peak", "oom", "moment", "steps"),
	.lives_limit = 2000000, .write = ledger_write,
};
