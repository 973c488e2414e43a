/* SPDX-License-Identifier: Apache-2.0 */
/* lives.c - a row per call site: from the birth to the death of what it made, as thick as the bytes
 * that live; what each step makes and never frees in its own colour. */

#include "common/vec.h"
#include "visualize/scene.h"

enum { ROWS = 24, ROW = 300, THICK = 230, NAME = 3000, NARROW_NAME = 1900, VALUE = 1500 };

/* A block on its way into a row. */
struct part { uint64_t key; uint32_t life; };

struct turn;

/* Lives [from, to) of the sorted parts. */
struct row { size_t from, to; uint64_t peak, kept; enum vc_slot slot; };

struct drawing {
	struct vc_page page;
	struct vc_classes classes;
	struct vc_columns columns;
	struct vc_plot plot;
	const struct vc_result *r;
	struct part *part; size_t parts;
	struct row row[ROWS + 1]; size_t rows, groups;
	struct turn *turn; /* of one row */
	uint64_t *bytes; /* by column */
	uint64_t most;
};

VC_COMPARE(by_key, struct part, VC_THEN(VC_ORDER(x->key, y->key), VC_ORDER(x->life, y->life)))

/* What is one row: the same kind from the same line of code, or with the same label. */
static int sort_parts(struct drawing *d, struct vc_error *err)
{
	const struct vc_lives *v = &d->r->lives;
	const struct vc_meta *m = d->r->meta;
	size_t frames = m ? m->frames : 0;
	uint32_t *frame = frames ? vc_owner_frames(m) : NULL;
	uint64_t *of_site = calloc(frames + 1, sizeof(*of_site)); /* 0: not yet looked for */

	d->part = malloc((v->n + 1) * sizeof(*d->part));
	if (!d->part || !of_site || (frames && !frame)) {
		VC_FREE(frame, of_site);
		return vc_nomem(err, "the lives of blocks");
	}
	for (size_t i = 0; i < v->n; i++) {
		const struct vc_life *l = &v->at[i];
		uint64_t key = l->label;

		if (l->site && l->site < frames) {
			if (!of_site[l->site])
				of_site[l->site] = (uint64_t)frame[vc_site_shown(m, l->site)]
							   << 24 | 1;
			key = of_site[l->site];
		}
		key = key << 4 | d->classes.of_life[i];
		d->part[d->parts++] = (struct part){ key, (uint32_t)i };
	}
	VC_FREE(frame, of_site);
	if (d->parts)
		vc_sort(d->part, d->parts, sizeof(*d->part), by_key);
	return VC_OK;
}

/* A birth or a death. */
struct turn { uint64_t event, at; int64_t bytes; };

VC_COMPARE(by_event, struct turn,
	   VC_THEN(VC_ORDER(x->event, y->event), VC_ORDER(x->bytes, y->bytes)))

static size_t turns_of(struct drawing *d, const struct row *w)
{
	size_t n = 0;

	for (size_t i = w->from; i < w->to; i++) {
		const struct vc_life *l = &d->r->lives.at[d->part[i].life];
		bool time = d->columns.by_time;

		d->turn[n++] = (struct turn){ l->at_start ? 0 : l->born,
			l->at_start ? 0 : time ? l->born_ns : l->born, (int64_t)l->size };
		if (l->died != UINT64_MAX)
			d->turn[n++] = (struct turn){ l->died, time ? l->died_ns : l->died,
						      -(int64_t)l->size };
	}
	vc_sort(d->turn, n, sizeof(*d->turn), by_event);
	return n;
}

/* The most live bytes of a row in each column; the most of all. */
static uint64_t fill(struct drawing *d, const struct row *w)
{
	uint32_t width = d->columns.width, x = 0;
	uint64_t most = 0, now = 0;
	size_t n = turns_of(d, w);

	d->bytes[0] = 0;
	for (size_t i = 0; i < n; i++) {
		uint32_t to = vc_columns_x(&d->columns, d->turn[i].at);

		to = to < width ? to : width - 1;
		while (x < to)
			d->bytes[++x] = now;
		now += (uint64_t)d->turn[i].bytes;
		d->bytes[x] = now > d->bytes[x] ? now : d->bytes[x];
		most = now > most ? now : most;
	}
	while (x + 1 < width)
		d->bytes[++x] = now;
	return most;
}

/* What a row keeps in a step, of those from the first that keeps something to the last: others, as
 * the ones before a warm-up ends, have no part in it. */
static uint64_t kept_a_step(const struct drawing *d, size_t from, size_t to)
{
	uint32_t first = UINT32_MAX, last = 0;
	uint64_t sum = 0;

	for (size_t i = from; i < to; i++) {
		const struct vc_life *l = &d->r->lives.at[d->part[i].life];
		uint32_t step = vc_iteration_of(&d->r->steps, l->born);

		first = step < first ? step : first;
		last = step > last ? step : last;
		sum += l->size;
	}
	return sum / (last - first + 1);
}

/* The rows with the highest peaks, highest first. */
static void choose(struct drawing *d)
{
	for (size_t from = 0, to; from < d->parts; from = to) {
		struct row w = { .from = from };
		size_t k = d->rows;

		for (to = from; to < d->parts && d->part[to].key == d->part[from].key;)
			to++;
		w.to = to;
		w.slot = (enum vc_slot)d->classes.of_life[d->part[from].life];
		w.peak = fill(d, &w);
		if (w.slot == VC_SLOT_KEPT)
			w.kept = kept_a_step(d, from, to);
		d->groups++;
		while (k && d->row[k - 1].peak < w.peak)
			k--;
		if (k == ROWS)
			continue;
		d->rows += d->rows < ROWS;
		memmove(d->row + k + 1, d->row + k, (d->rows - k - 1) * sizeof(*d->row));
		d->row[k] = w;
	}
	d->most = d->rows && d->row[0].peak ? d->row[0].peak : 1;
}

static void row_name(const struct drawing *d, const struct row *w, char *buf, size_t cap)
{
	const struct vc_life *l = &d->r->lives.at[d->part[w->from].life];
	const char *label = vc_label_text(d->r->meta, l->label);

	vc_site_text(d->r->meta, l->site, buf, cap);
	if (!*buf)
		snprintf(buf, cap, "%s", *label ? label : l->at_start ? "there at the start" :
			 "no stack recorded");
}

/* How thick a column is, in whole pixels: what differs by less is one piece. */
static int thickness(const struct drawing *d, uint32_t x)
{
	int h = ((int)vc_muldiv(d->bytes[x], THICK, d->most) + 5) / 10 * 10;

	return !d->bytes[x] ? 0 : h < 10 ? 10 : h;
}

/* From column to column, centred in the row. */
static void draw_row(struct drawing *d, const struct row *w, int y)
{
	struct vc_svg *s = &d->page.svg;
	const struct vc_box *b = &d->plot.box;
	char text[200], a[VC_FORMAT];
	uint32_t width = d->columns.width;

	fill(d, w);
	row_name(d, w, text, sizeof(text));
	vc_svg_put(s, "<g><title>%e: at most %s</title>", text, vc_format_bytes(w->peak, a));
	s->titles++;
	vc_svg_label(s, &(struct vc_label){ b->x - 150, y + 160, VC_T_SMALL, VC_END, "fg",
					    b->x - VC_MARGIN - 150, false, false }, text);
	vc_svg_hline(s, "gr", b->x, y + ROW / 2, b->w);
	vc_svg_put(s, "<path class=\"%s cell\" d=\"", vc_theme_slot(w->slot));
	for (uint32_t x = 0, e; x < width; x = e) {
		int h = thickness(d, x);

		for (e = x + 1; e < width && thickness(d, e) == h;)
			e++;
		int x0 = (int)((uint64_t)x * (uint64_t)b->w / width);
		int x1 = (int)((uint64_t)e * (uint64_t)b->w / width);

		if (h)
			vc_svg_put(s, "M%c %ch%cv%ch%cz", b->x + x0, y + (ROW - h) / 2, x1 - x0, h,
				   x0 - x1);
	}
	vc_svg_put(s, "\"/>");
	vc_format_in(w->peak, d->most, a);
	if (w->kept)
		snprintf(text, sizeof(text), "+%s a step",
			 vc_format_bytes(w->kept, a));
	else
		snprintf(text, sizeof(text), "%s", a);
	vc_svg_say(s, text, d->page.w - VC_MARGIN, y + 160, VC_T_STRONG, VC_END,
		   w->kept ? "bad" : "fg", VALUE - 100);
	vc_svg_put(s, "</g>\n");
}

static int legend(struct drawing *d, int y)
{
	struct vc_key key[VC_SLOTS];
	bool used[VC_SLOTS] = { false };
	size_t n = 0;

	for (size_t i = 0; i < d->rows; i++)
		used[d->row[i].slot] = true;
	for (int s = 0; s < VC_SLOTS; s++)
		if (used[s])
			key[n++] = (struct vc_key){ vc_theme_slot((enum vc_slot)s),
				vc_classes_name(&d->classes, (enum vc_slot)s), VC_KEY_BOX };
	return vc_page_legend(&d->page, (struct vc_box){ VC_MARGIN, y,
							 d->page.w - 2 * VC_MARGIN, 0 }, key, n);
}

static int draw(struct drawing *d, struct vc_output *out, struct vc_error *err)
{
	char title[256], text[200], a[VC_FORMAT], b[VC_FORMAT];
	struct vc_plot *p = &d->plot;

	vc_answer_text(d->r, d->columns.by_time, title, sizeof(title));
	snprintf(text, sizeof(text), "%s of %s call sites, thickness is live bytes, at the right "
		 "the most of them%s", vc_format_count(d->rows, a),
		 vc_format_count(d->groups, b),
		 d->r->lives.dropped ? ", without the briefest blocks" : "");
	snprintf(d->page.title, sizeof(d->page.title), "%s", title);
	int y = vc_page_header(&d->page, title, text, d->r);

	y = legend(d, vc_page_facts(&d->page, y, d->r)) + 60;
	p->box.y = y;
	p->box.h = (int)d->rows * ROW;
	vc_svg_put(&d->page.svg, "<g>\n");
	for (size_t i = 0; i < d->rows; i++)
		draw_row(d, &d->row[i], y + (int)i * ROW);
	vc_svg_put(&d->page.svg, "</g>\n");
	y = vc_plot_phases(p, y + p->box.h + 60);
	vc_plot_axis(p, y);
	vc_plot_steps(p, y, y + 370);
	vc_conf_text(d->r, text, sizeof(text));
	vc_page_footer(&d->page, y + 550, text, "vramcast " VC_VERSION);
	return vc_page_end(&d->page, y + (d->page.cfg->footer ? 880 : 450), out, err);
}

static int prepare(struct drawing *d, const struct vc_picture *cfg, struct vc_error *err)
{
	vc_page_begin(&d->page, cfg, "Lives", "a row per call site");
	int name = d->page.w < VC_NARROW ? NARROW_NAME : NAME;

	d->plot = (struct vc_plot){ .page = &d->page, .c = &d->classes, .k = &d->columns,
		.box = { VC_MARGIN + name, 0, d->page.w - 2 * VC_MARGIN - name - VALUE, 0 } };
	VC_TRY(vc_classes_lend(&d->classes, d->page.cfg->classes, d->r, err));
	VC_TRY(vc_columns_init(&d->columns, &d->classes, vc_wants_time(cfg, d->r),
			       (uint32_t)(d->plot.box.w / 20), NULL, err)); /* of two pixels */
	d->bytes = malloc((d->columns.width + 2) * sizeof(*d->bytes));
	d->turn = malloc((2 * d->r->lives.n + 1) * sizeof(*d->turn));
	VC_HAVE(d->bytes && d->turn, "the lives of blocks", err);
	VC_TRY(sort_parts(d, err));
	choose(d);
	return VC_OK;
}

static int lives_write(const struct vc_result *runs, size_t n, const void *config,
		       struct vc_output *out, struct vc_error *err)
{
	const struct vc_picture *cfg = vc_picture_config(config, &(struct vc_picture){ 0 });
	struct drawing *d;

	if (!n || !runs->curve.n || !runs->lives.n)
		return vc_page_notice(cfg, "Lives of blocks", !n ? "no run was given" :
				      "the trace has no block that was ever allocated", out, err);
	d = calloc(1, sizeof(*d));
	VC_HAVE(d, "the picture", err);
	d->r = runs;
	int rc = prepare(d, cfg, err);
	if (!rc)
		rc = draw(d, out, err);
	VC_FREE(d->part, d->bytes, d->turn);
	vc_columns_fini(&d->columns);
	vc_classes_fini(&d->classes);
	free(d);
	return rc;
}

const struct vc_sink_type vc_sink_lives = {
	.name = "lives", .extension = "svg",
	.summary = "a row per call site from birth to death, and what each step leaves behind",
	.params = vc_picture_params, .config_size = sizeof(struct vc_picture),
	.observers = VC_READS("timeline", "lives", "oom", "moment", "steps", "turns"),
	.write = lives_write,
};
