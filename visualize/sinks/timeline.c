/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.c - memory over time: layers, reserved, capacity, where it ran out, who holds it. */
#include <stdio.h>

#include "visualize/scene.h"

enum { TABLE_WIDTH = 2800, TABLE_ROWS = 12, ROW = 300, PLOT_HEIGHT = 3500, LEFT = 800 };

struct drawing {
	struct vc_page page;
	struct vc_classes classes;
	struct vc_columns columns;
	struct vc_owners owners;
	struct vc_plot plot;
	const struct vc_result *r;
};

static void tile(struct vc_tile *t, const char *label, const char *value, const char *note)
{
	*t = (struct vc_tile){ .color = "fg" };
	snprintf(t->label, sizeof(t->label), "%s", label);
	snprintf(t->value, sizeof(t->value), "%s", value);
	snprintf(t->note, sizeof(t->note), "%s", note);
}

/* The tile about what is cached: at the refusal when there was one, else at the peak. */
static void cached_tile(const struct vc_result *r, struct vc_tile *t)
{
	char a[VC_FORMAT], b[VC_FORMAT], note[96];

	if (r->oom.happened) {
		snprintf(note, sizeof(note), "largest piece %s",
			 vc_format_bytes(r->oom.largest_free, b));
		tile(t, "Cached, not usable at the OOM", vc_format_bytes(r->oom.free_in_cache, a),
		     note);
		return;
	}
	snprintf(note, sizeof(note), "%s of reserved",
		 vc_format_percent(r->stats.stranded_at_peak, r->stats.peak_reserved, b));
	tile(t, "Cached at the peak", vc_format_bytes(r->stats.stranded_at_peak, a), note);
}

static void fourth_tile(const struct vc_result *r, struct vc_tile *t)
{
	uint64_t used = r->stats.peak_used;
	char a[VC_FORMAT], b[VC_FORMAT], note[96];

	if (r->oom.happened) {
		snprintf(note, sizeof(note), "free on the device %s",
			 vc_format_bytes(r->oom.device_free, b));
		tile(t, "Request that failed", vc_format_bytes(r->oom.request, a), note);
		t->color = "bad";
	} else if (r->info.capacity) {
		uint64_t most = r->trust.used_high > used ? r->trust.used_high : used;

		if (!r->has_interval)
			snprintf(note, sizeof(note), "of %s",
				 vc_format_bytes(r->info.capacity, b));
		else if (most <= r->info.capacity)
			snprintf(note, sizeof(note), "at least %s",
				 vc_format_bytes(r->info.capacity - most, b));
		else
			snprintf(note, sizeof(note), "the upper end lacks %s",
				 vc_format_bytes(most - r->info.capacity, b));
		tile(t, "Headroom",
		     vc_format_bytes(r->info.capacity > used ? r->info.capacity - used : 0, a),
		     note);
	} else {
		tile(t, "Least any allocator needs", vc_format_bytes(r->stats.lower_bound, a),
		     "live bytes at their highest");
	}
}

static int tiles(struct drawing *d, int y)
{
	const struct vc_result *r = d->r;
	struct vc_tile t[5];
	char a[VC_FORMAT], note[96] = "", b[VC_FORMAT];

	if (r->info.capacity)
		snprintf(note, sizeof(note), "%s of capacity",
			 vc_format_percent(r->stats.peak_reserved, r->info.capacity, b));
	if (r->has_interval)
		snprintf(note, sizeof(note), "between %s and %s", vc_format_bytes(r->low, a),
			 vc_format_bytes(r->high, b));
	tile(&t[0], "Peak reserved", vc_format_bytes(r->stats.peak_reserved, a), note);
	if (vc_result_replayed(r) == VC_OOM)
		t[0].color = "bad";
	const struct vc_column *top = &d->columns.at[d->columns.top];
	const struct vc_bucket *bucket = &r->curve.at[top->bucket];
	if (d->columns.by_time)
		snprintf(note, sizeof(note), "at %s",
			 vc_format_ns(vc_curve_time(r, bucket->peak_event) - d->columns.first, b));
	else
		snprintf(note, sizeof(note), "at event %s", vc_format_count(bucket->peak_event, b));
	tile(&t[1], "Peak allocated", vc_format_bytes(r->stats.peak_allocated, a), note);
	cached_tile(r, &t[2]);
	fourth_tile(r, &t[3]);
	snprintf(note, sizeof(note), "%s events", vc_format_count(r->stats.events, b));
	tile(&t[4], "Calls of cudaMalloc", vc_format_count(r->stats.segment_allocs, a), note);
	return vc_page_tiles(&d->page, y, t, d->page.w < VC_NARROW ? 4 : 5);
}

struct row { const char *name, *klass; uint64_t bytes, most; };

static void table_row(struct drawing *d, int x, int y, int w, const struct row *row)
{
	struct vc_svg *s = &d->page.svg;
	struct vc_label l = { x + w, y, VC_T_SMALL, VC_END, "fg", 0, false, false };
	char buf[VC_FORMAT];

	vc_format_bytes(row->bytes, buf);
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
	uint64_t at = o->time_ns > d->columns.first ? o->time_ns - d->columns.first : 0;

	vc_svg_label(&d->page.svg, &l,
		     o->at_oom       ? "Who holds it at the OOM" :
		     o->of_allocated ? "Who holds it at the peak" :
				       "Who holds it at peak reserved");
	snprintf(text, sizeof(text), "%s in use at %s%s", vc_format_bytes(o->bytes, a),
		 d->columns.by_time ? "" : "event ",
		 d->columns.by_time ? vc_format_ns(at, b) : vc_format_count(o->event, b));
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

/* Tiles, legend, plot, lanes and table; returns the y below. */
static int body(struct drawing *d, int y)
{
	struct vc_plot *p = &d->plot;
	bool narrow = d->page.w < VC_NARROW, has_table = d->owners.n > 0;
	struct vc_key key[VC_SLOTS + 4];
	int side = has_table && !narrow ? TABLE_WIDTH + 400 : 0;
	int right = d->page.w - VC_MARGIN - side;
	size_t keys = vc_plot_keys(&d->classes, &d->columns, key);

	y = tiles(d, y);
	y = vc_page_legend(&d->page, (struct vc_box){ VC_MARGIN, y, d->page.w - 2 * VC_MARGIN, 0 },
			   key, keys);
	p->box = (struct vc_box){ LEFT, y + 230, right - LEFT, PLOT_HEIGHT };
	vc_plot_scale(p);
	vc_plot_grid(p, true);
	vc_plot_areas(p);
	vc_plot_capacity(p, true);
	vc_plot_flushes(p);
	vc_plot_oom(p);
	vc_plot_peak(p);
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
		 "%zu columns, each with its maximum \xC2\xB7 vramcast " VC_VERSION,
		 d->columns.n);
	vc_page_footer(&d->page, y, left, right);
}

static int draw(struct drawing *d, const struct vc_picture *cfg, struct vc_output *out,
		struct vc_error *err)
{
	char title[256], words[512], run[512];

	vc_title_text(d->r, "memory", title, sizeof(title));
	vc_verdict_text(d->r, words, sizeof(words));
	vc_run_text(d->r, run, sizeof(run));
	vc_page_begin(&d->page, cfg, title, words);
	d->plot = (struct vc_plot){ .page = &d->page, .c = &d->classes, .k = &d->columns };
	int y = body(d, vc_page_header(&d->page, title, run, d->r));
	footer(d, y + 120);
	return vc_page_end(&d->page, y + (cfg->footer ? 450 : 200), out, err);
}

static int timeline_write(const struct vc_result *runs, size_t n, const void *config,
			  struct vc_output *out, struct vc_error *err)
{
	struct vc_picture fallback;
	const struct vc_picture *cfg = vc_picture_config(config, &fallback);
	struct drawing d = { .r = runs };
	int rc;

	if (!n || !runs->curve.n)
		return vc_page_notice(cfg, "Memory timeline", !n ? "no run was given" :
				      "the trace has no request for memory: nothing was simulated",
				      out, err);
	uint32_t width = (uint32_t)(cfg->width < 900 ? cfg->width : cfg->width - 300) * 2;
	rc = vc_classes_init(&d.classes, runs, err);
	if (!rc)
		rc = vc_columns_init(&d.columns, &d.classes, vc_wants_time(cfg, runs), width,
				     NULL, err);
	if (!rc)
		rc = vc_owners_init(&d.owners, &d.classes, err);
	if (!rc)
		rc = draw(&d, cfg, out, err);
	vc_owners_fini(&d.owners);
	vc_columns_fini(&d.columns);
	vc_classes_fini(&d.classes);
	return rc;
}

static const char *const reads[] = { "timeline", "lives", "peak", "oom", "steps", NULL };

const struct vc_sink_type vc_sink_timeline = {
	.name = "timeline", .extension = "svg",
	.summary = "memory over time: layers, reserved, capacity, where it ran out",
	.params = vc_picture_params, .config_size = sizeof(struct vc_picture), .observers = reads,
	.lives_limit = 2000000, /* 96 bytes each; the timeline's own layers are enough then */
	.write = timeline_write,
};
