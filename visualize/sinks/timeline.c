/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.c - memory over time: layers, reserved, capacity, where it ran out, who holds it. */

#include "visualize/ledger.h"
#include "visualize/scene.h"

enum { TABLE_WIDTH = 2800, TABLE_ROWS = 12, ROW = 300, PLOT_HEIGHT = 3500, LEFT = 800 };

struct drawing {
	struct vc_page page;
	struct vc_classes classes;
	struct vc_columns columns;
	struct vc_owners owners;
	struct vc_ledger ledger;
	struct vc_plot plot;
	const struct vc_result *r;
};

/* All are about one moment, and in use + cached = reserved. */
static void moment_facts(const struct drawing *d, struct vc_fact f[3])
{
	const struct vc_moment *m = &d->r->moment;
	const struct vc_ledger *l = &d->ledger;
	uint64_t reserved = m->looked ? m->reserved : l->reserved;
	uint64_t cached = m->looked ? m->cached : l->returnable + l->stranded;
	char a[2 * VC_FORMAT], b[VC_FORMAT], label[48];
	char *text;

	snprintf(label, sizeof(label), "reserved at %s",
		 vc_moment_text(d->r, d->columns.by_time, m->looked ? m->event : l->event, b));
	text = vc_fact_of(&f[0], label, vc_result_replayed(d->r) == VC_OOM ? "bad" : "fg");
	vc_format_in(reserved, reserved, text);
	if (d->r->has_interval && !l->at_oom)
		snprintf(text + strlen(text), VC_FACT - strlen(text), ", between %s",
			 vc_format_band(d->r->low, d->r->high, a));
	else if (d->r->info.capacity)
		snprintf(text + strlen(text), VC_FACT - strlen(text), ", %s of capacity",
			 vc_format_percent(reserved, d->r->info.capacity, b));
	snprintf(vc_fact_of(&f[1], "in use then", "fg"), VC_FACT,
		 reserved ? "%s, %s of reserved" : "%s",
		 vc_format_in(reserved - cached, reserved, a),
		 vc_format_percent(reserved - cached, reserved, b));
	snprintf(vc_fact_of(&f[2], "cached then", "fg"), VC_FACT,
		 l->at_oom ? "%s, largest piece %s" : "%s, %s of it stranded",
		 vc_format_in(cached, reserved, a),
		 vc_format_in(l->at_oom  ? l->largest :
			      m->looked  ? m->stranded :
					   l->stranded, reserved, b));
}

/* What is left of the card; of the upper end, where it is an estimate. */
static void room_left(const struct vc_result *r, char *text)
{
	uint64_t used = r->stats.peak_used, capacity = r->info.capacity;
	uint64_t most = r->trust.used_high > used ? r->trust.used_high : used;
	char a[VC_FORMAT], b[VC_FORMAT];

	vc_format_in(capacity > used ? capacity - used : 0, capacity, a);
	if (!r->has_interval)
		snprintf(text, VC_FACT, "%s of %s", a, vc_format_bytes(capacity, b));
	else if (most <= capacity)
		snprintf(text, VC_FACT, "%s, at least %s", a,
			 vc_format_in(capacity - most, capacity, b));
	else
		snprintf(text, VC_FACT, "%s, the upper end lacks %s", a,
			 vc_format_in(most - capacity, capacity, b));
}

static void room_fact(const struct drawing *d, struct vc_fact *f)
{
	const struct vc_result *r = d->r;
	char a[VC_FORMAT];

	if (r->oom.happened)
		vc_refused_text(r, vc_fact_of(f, "request that failed", "bad"), VC_FACT);
	else if (r->info.capacity)
		room_left(r, vc_fact_of(f, "headroom", "fg"));
	else
		snprintf(vc_fact_of(f, "least any allocator needs", "fg"), VC_FACT, "%s",
			 vc_format_in(r->stats.lower_bound, d->ledger.reserved, a));
}

static int numbers(struct drawing *d, int y)
{
	struct vc_fact f[5];
	char a[VC_FORMAT], b[VC_FORMAT];

	moment_facts(d, f);
	room_fact(d, &f[3]);
	snprintf(vc_fact_of(&f[4], "calls of cudaMalloc", "fg"), VC_FACT, "%s in %s events",
		 vc_format_count(d->r->stats.segment_allocs, a),
		 vc_format_count(d->r->stats.events, b));
	return vc_page_row(&d->page, y, f, 5);
}

struct row { const char *name, *klass; uint64_t bytes, most; };

static void table_row(struct drawing *d, int x, int y, int w, const struct row *row)
{
	struct vc_svg *s = &d->page.svg;
	struct vc_label l = { x + w, y, VC_T_SMALL, VC_END, "fg", 0, false, false };
	char buf[VC_FORMAT];

	vc_format_in(row->bytes, d->owners.bytes, buf);
	vc_svg_put(s, "<g><title>%e: %s</title>", row->name, buf);
	s->titles++;
	int used = vc_svg_label(s, &l, buf).w;
	vc_svg_say(s, row->name, x, y, VC_T_SMALL, VC_START, "fg", w - used - 100);
	int bar = (int)vc_muldiv(row->bytes, (uint64_t)w, row->most ? row->most : 1);
	vc_svg_rect(s, row->klass, (struct vc_box){ x, y + 60, bar < 10 ? 10 : bar, 45 }, 20);
	vc_svg_put(s, "</g>\n");
}

static void table_head(struct drawing *d, int x, int y, int w)
{
	const struct vc_owners *o = &d->owners;
	struct vc_label l = { x, y, VC_T_HEAD, VC_START, "fg", w, false, false };
	char text[160], a[VC_FORMAT], b[VC_FORMAT];

	vc_svg_label(&d->page.svg, &l,
		     o->at_oom       ? "Who holds it at the OOM" :
				       "Who holds it at the peak");
	snprintf(text, sizeof(text), "%s in use at %s", vc_format_bytes(o->bytes, a),
		 vc_moment_text(d->r, d->columns.by_time, o->event, b));
	vc_svg_say(&d->page.svg, text, x, y + 190, VC_T_SMALL, VC_START, "mut", w);
}

/* Who holds the memory, largest first; the rest in one row. Returns the y below. */
static int table(struct drawing *d, int x, int y, int w)
{
	const struct vc_owners *o = &d->owners;
	uint64_t rest = 0;
	char text[160], a[VC_FORMAT];
	size_t rows = o->n <= TABLE_ROWS ? o->n : TABLE_ROWS - 1;

	table_head(d, x, y, w);
	y += 440;
	for (size_t i = rows; i < o->n; i++)
		rest += o->at[i].bytes;
	uint64_t most = rest > o->at[0].bytes ? rest : o->at[0].bytes;
	for (size_t i = 0; i < rows; i++, y += ROW) {
		vc_owner_text(d->r->meta, &o->at[i], text, sizeof(text));
		table_row(d, x, y, w, &(struct row){ text, vc_theme_slot(o->at[i].slot),
			o->at[i].bytes, most });
	}
	if (rest) {
		snprintf(text, sizeof(text), "%s more", vc_format_count(o->n - rows, a));
		table_row(d, x, y, w, &(struct row){ text, "base", rest, most });
		y += ROW;
	}
	return y;
}

/* Numbers, legend, plot, lanes and table; returns the y below. */
static int body(struct drawing *d, int y)
{
	struct vc_plot *p = &d->plot;
	bool narrow = d->page.w < VC_NARROW;
	bool has_table = d->owners.n && !(narrow && d->page.cfg->no_head); /* the report has one */
	struct vc_key key[VC_SLOTS + 4];
	int side = has_table && !narrow ? TABLE_WIDTH + 400 : 0;
	int right = d->page.w - VC_MARGIN - side;
	size_t keys = vc_plot_keys(&d->classes, &d->columns, key);

	y = numbers(d, y);
	y = vc_page_legend(&d->page, (struct vc_box){ VC_MARGIN, y, d->page.w - 2 * VC_MARGIN, 0 },
			   key, keys);
	p->box = (struct vc_box){ LEFT, y + 230, right - LEFT, PLOT_HEIGHT };
	p->may_break = true;
	vc_plot_scale(p);
	vc_plot_grid(p, true);
	vc_plot_areas(p);
	vc_plot_capacity(p, true);
	vc_plot_oom(p);
	vc_plot_flushes(p);
	vc_plot_peak(p);
	vc_plot_names(p);
	int below = vc_plot_lanes(p, vc_plot_phases(p, p->box.y + p->box.h + 90));
	vc_plot_axis(p, below);
	vc_plot_steps(p, below, below + 370);
	below += 480;
	if (has_table) {
		int end = narrow ? table(d, VC_MARGIN, below + 200, d->page.w - 2 * VC_MARGIN) :
			table(d, right + 400, y + 130, TABLE_WIDTH);
		below = end > below ? end : below;
	}
	return below;
}

static void footer(struct drawing *d, int y)
{
	char left[400], right[200];

	vc_conf_text(d->r, left, sizeof(left));
	snprintf(right, sizeof(right),
		 "%zu column%s, each with its maximum \xC2\xB7 vramcast " VC_VERSION,
		 d->columns.n, d->columns.n == 1 ? "" : "s");
	vc_page_footer(&d->page, y, left, right);
}

static int draw(struct drawing *d, const struct vc_picture *cfg, struct vc_output *out,
		struct vc_error *err)
{
	char title[256], words[VC_SAY];

	vc_answer_text(d->r, d->columns.by_time, title, sizeof(title));
	vc_reason_text(d->r, words, sizeof(words));
	vc_page_begin(&d->page, cfg, title, words);
	d->plot = (struct vc_plot){ .page = &d->page, .c = &d->classes, .k = &d->columns };
	int y = vc_page_header(&d->page, title, "", d->r);

	y = body(d, vc_page_facts(&d->page, y, d->r));
	y = vc_page_decision(&d->plot, y, err);
	if (y < 0) {
		vc_svg_fini(&d->page.svg);
		return y;
	}
	y = vc_page_growth(&d->page, y, d->r);
	footer(d, y + 120);
	return vc_page_end(&d->page, y + (cfg->footer ? 450 : 200), out, err);
}

extern const struct vc_sink_type vc_sink_ledger;

static int timeline_write(const struct vc_result *runs, size_t n, const void *config,
			  struct vc_output *out, struct vc_error *err)
{
	const struct vc_picture *cfg = vc_picture_config(config, &(struct vc_picture){ 0 });
	struct drawing d = { .r = runs };
	int rc;

	if (!n || !runs->curve.n) /* a heap at one moment has no line, but it has a ledger */
		return vc_sink_ledger.write(runs, n, config, out, err);
	uint32_t width = (uint32_t)(cfg->width < 900 ? cfg->width : cfg->width - 300) * 2;
	rc = vc_classes_lend(&d.classes, cfg->classes, runs, err);
	if (!rc)
		rc = vc_columns_init(&d.columns, &d.classes, vc_wants_time(cfg, runs), width,
				     NULL, err);
	if (!rc)
		rc = vc_owners_init(&d.owners, &d.classes, err);
	if (!rc) {
		vc_ledger_make(&d.ledger, &d.classes);
		rc = draw(&d, cfg, out, err);
	}
	vc_owners_fini(&d.owners);
	vc_columns_fini(&d.columns);
	vc_classes_fini(&d.classes);
	return rc;
}

const struct vc_sink_type vc_sink_timeline = {
	.name = "timeline", .extension = "svg",
	.summary = "memory over time: layers, reserved, capacity, where it ran out",
	.params = vc_picture_params, .config_size = sizeof(struct vc_picture),
	.observers = VC_READS("timeline", "lives", "peak", "oom", "moment", "steps", "turns"),
	.lives_limit = 2000000, /* 96 bytes each; the timeline's own layers are enough then */
	.write = timeline_write,
};
