/* SPDX-License-Identifier: Apache-2.0 */
/* blocks.c - what lived where: address over events, one colour per kind, hatched where reserved
 * memory is free; beside it the segments at the moment that matters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/vec.h"
#include "visualize/addressmap.h"
#include "visualize/ledger.h"
#include "visualize/packing.h"
#include "visualize/raster.h"

enum { SIDE = 3100, LEFT = 800, HEIGHT = 4700 };

struct drawing {
	struct vc_page page;
	struct vc_classes classes;
	struct vc_columns columns;
	struct vc_packing packing;
	struct vc_raster grid;
	struct vc_plot plot;
	const struct vc_result *r;
	size_t rectangles;
	bool used[VC_SLOTS];
};

/* A block on its way across the columns: so many bytes above the bottom of its shelf. */
struct run { uint64_t above, size; uint32_t shelf, from, to, next; uint8_t value; };
struct sweep { struct run *run; size_t n; uint32_t *first; /* by column */ };

#define NONE UINT32_MAX

/* The event each column of cells shows: where the most was allocated in it, but in that of the peak
 * of reserved the peak. */
static uint64_t *sample_events(const struct drawing *d)
{
	uint64_t *at = calloc((size_t)d->columns.width + 1, sizeof(*at));
	const struct vc_curve *v = &d->r->curve;
	size_t peak = vc_columns_of(&d->columns, d->r, d->r->stats.peak_event);

	for (size_t i = 0; at && i < d->columns.n; i++) {
		const struct vc_column *c = &d->columns.at[i];
		const struct vc_bucket *b = &v->at[c->bucket];
		for (uint32_t x = c->from; x < c->to; x++)
			at[x] = i == peak       ? d->r->stats.peak_event :
				b->peak_event   ? b->peak_event :
						  b->first_event;
	}
	return at;
}

/* The first column whose event is not before `event`. */
static uint32_t column_from(const uint64_t *at, uint32_t n, uint64_t event)
{
	return (uint32_t)vc_lower_bound(at, 8, n, 8, event);
}

static void add(struct sweep *s, struct run r)
{
	if (r.from >= r.to)
		return;
	r.next = s->first[r.from];
	s->first[r.from] = (uint32_t)s->n;
	s->run[s->n++] = r;
}

static int collect(struct drawing *d, const uint64_t *at, struct sweep *s, struct vc_error *err)
{
	uint32_t w = d->columns.width, *home;
	const struct vc_lives *v = &d->r->lives;

	s->run = malloc((v->n + 1) * sizeof(*s->run));
	s->first = malloc((size_t)w * sizeof(*s->first));
	VC_HAVE(s->run && s->first, "the map of blocks", err);
	memset(s->first, 0xFF, (size_t)w * sizeof(*s->first));
	home = malloc((v->n + 1) * sizeof(*home));
	int rc = home ? vc_packing_homes(&d->packing, v, home, err) :
			vc_nomem(err, "the map of blocks");
	for (size_t i = 0; !rc && i < v->n; i++) {
		const struct vc_life *l = &v->at[i];
		uint32_t from = column_from(at, w, l->at_start ? 0 : l->born);
		uint32_t to = column_from(at, w, l->died);
		if (from >= to || home[i] == VC_NO_SHELF)
			continue;
		d->used[d->classes.of_life[i]] = true;
		add(s, (struct run){ l->addr - d->packing.at[home[i]].addr, l->size, home[i], from,
			to, NONE, (uint8_t)(1 + d->classes.of_life[i]) });
	}
	free(home);
	return rc;
}

/* Add `size` bytes of `value` to the rows they cover; live bytes come off the free ones below. */
static void weigh(uint64_t (*weight)[VC_CELLS], int rows, uint64_t height, uint64_t from,
		  uint64_t size, uint8_t value)
{
	uint64_t end = from + size;

	while (from < end) {
		uint64_t row = vc_muldiv_down(from, (unsigned)rows, height);
		uint64_t stop = vc_muldiv_up(row + 1, height, (unsigned)rows);
		stop = stop > end || stop <= from ? end : stop;
		if (row >= (uint64_t)rows)
			return;
		uint64_t *w = weight[(uint64_t)rows - 1 - row];
		w[value] += stop - from;
		if (value != VC_CELL_FREE)
			w[VC_CELL_FREE] -=
				w[VC_CELL_FREE] < stop - from ? w[VC_CELL_FREE] : stop - from;
		from = stop;
	}
}

/* The pile of shelves, and on them the blocks that live in this column. */
static void weigh_column(struct drawing *d, const struct sweep *s, uint64_t event,
			 const uint32_t *live, size_t n, uint64_t (*weight)[VC_CELLS])
{
	uint64_t pile = vc_packing_stack(&d->packing, event);

	memset(weight, 0, (size_t)d->grid.rows * sizeof(*weight));
	if (!d->packing.guessed)
		weigh(weight, d->grid.rows, d->plot.top, 0, pile, VC_CELL_FREE);
	for (size_t i = 0; i < n; i++) {
		const struct run *r = &s->run[live[i]];
		weigh(weight, d->grid.rows, d->plot.top,
		      d->packing.at[r->shelf].offset + r->above, r->size, r->value);
	}
}

/* One column at a time: its live runs are weighed into the rows. */
static int paint(struct drawing *d, const struct sweep *s, const uint64_t *at,
		 struct vc_error *err)
{
	uint32_t *live = malloc((s->n + 1) * sizeof(*live)), w = d->columns.width;
	uint64_t (*weight)[VC_CELLS] = malloc((size_t)d->grid.rows * sizeof(*weight));
	struct vc_raster column = { malloc((size_t)d->grid.rows), d->grid.rows, 1 };
	size_t n = 0;
	bool ok = live && weight && column.cell;

	for (uint32_t x = 0; ok && x < w; x++) {
		size_t kept = 0;
		for (uint32_t i = s->first[x]; i != NONE; i = s->run[i].next)
			live[n++] = i;
		for (size_t i = 0; i < n; i++)
			if (s->run[live[i]].to > x)
				live[kept++] = live[i];
		n = kept;
		if (!x || at[x] != at[x - 1] || s->first[x] != NONE) {
			weigh_column(d, s, at[x], live, n, weight);
			vc_raster_weigh(&column, 0, weight);
		}
		for (int y = 0; y < d->grid.rows; y++)
			d->grid.cell[(size_t)y * (size_t)d->grid.cols + x] = column.cell[y];
	}
	VC_FREE(live, weight, column.cell);
	return ok ? VC_OK : vc_nomem(err, "the map of blocks");
}

static int fill(struct drawing *d, struct vc_error *err)
{
	struct sweep s = { 0 };
	uint64_t *at = sample_events(d);
	int rc = at ? collect(d, at, &s, err) : vc_nomem(err, "the map of blocks");

	if (!rc)
		rc = paint(d, &s, at, err);
	VC_FREE(at, s.run, s.first);
	/* About 20 bytes a run: 20,000 of them leave room for the rest within 1 MB. */
	while (!rc && vc_raster_runs(&d->grid) > 20000)
		vc_raster_halve(&d->grid, d->grid.rows > 60);
	return rc;
}

static int legend(struct drawing *d, int y)
{
	struct vc_key key[VC_SLOTS + 1];
	size_t n = 0;

	for (int s = 0; s < VC_SLOTS; s++)
		if (d->used[s])
			key[n++] = (struct vc_key){ vc_theme_area((enum vc_slot)s),
				vc_classes_name(&d->classes, (enum vc_slot)s), VC_KEY_BOX };
	if (!d->packing.guessed)
		key[n++] = (struct vc_key){ "hx", "Reserved, free", VC_KEY_BOX };
	return vc_page_legend(
		&d->page, (struct vc_box){ VC_MARGIN, y, d->page.w - 2 * VC_MARGIN, 0 }, key, n);
}

/* The map of segments at the right (or below, when narrow); the y below. */
static int side(struct drawing *d, int x, int y, int w)
{
	const struct vc_heap_map *h = d->r->last.n ? &d->r->last : &d->r->peak;
	struct vc_heap_facts f;
	struct vc_label l = { x, y, VC_T_HEAD, VC_START, "fg", w, false, false };
	char text[96], a[VC_FORMAT];

	vc_svg_label(&d->page.svg, &l,
		     h == &d->r->last ? "Segments at the OOM" : "Segments at the peak");
	int below = vc_addressmap_draw(&d->page, &d->classes, h,
				       (struct vc_box){ x, y + 330, w, 0 }, &f);
	if (below < 0)
		return y;
	snprintf(text, sizeof(text), "address order, %s per row", vc_format_bytes(f.per_row, a));
	vc_svg_say(&d->page.svg, text, x, y + 200, VC_T_SMALL, VC_START, "mut", w);
	return vc_addressmap_scale(&d->page, d->r, &f, (struct vc_box){ x, below + 240, w, 0 });
}

static int body(struct drawing *d, int y)
{
	struct vc_plot *p = &d->plot;

	y = legend(d, y);
	p->box.y = y + 230;
	vc_plot_grid(p, true);
	d->rectangles = vc_raster_paint(&d->grid, &d->page.svg, p->box, 0);
	vc_plot_oom(p);
	int below = vc_plot_phases(p, p->box.y + p->box.h + 90);
	vc_plot_axis(p, below);
	vc_plot_steps(p, below, below + 370);
	below += 480;
	if (!d->r->last.n && !d->r->peak.n)
		return below;
	int end = d->page.w < VC_NARROW ?
			  side(d, VC_MARGIN, below + 200, d->page.w - 2 * VC_MARGIN) :
			  side(d, p->box.x + p->box.w + 400, y + 110, SIDE);
	return end > below ? end : below;
}

static int draw(struct drawing *d, const struct vc_picture *cfg, struct vc_output *out,
		struct vc_error *err)
{
	char title[256], words[640], text[1024], a[VC_FORMAT], b[VC_FORMAT];
	struct vc_ledger l;

	vc_ledger_make(&l, &d->classes);
	vc_ledger_text(&l, title, sizeof(title));
	vc_verdict_text(d->r, words, sizeof(words));
	vc_page_begin(&d->page, cfg, title, words);
	snprintf(text, sizeof(text), "%s of %s blocks over %s, %s",
		 vc_format_count(d->r->lives.n, a),
		 vc_format_count(d->r->lives.n + d->r->lives.dropped, b),
		 d->columns.by_time ? "time" : "events",
		 d->packing.guessed ? "addresses from below" :
				      "segments that stay longest at the bottom");
	vc_place_text(d->r, words, sizeof(words));
	snprintf(text + strlen(text), sizeof(text) - strlen(text), " \xC2\xB7 %s", words);
	int y = vc_page_header(&d->page, title, text, d->r);

	y = body(d, vc_page_facts(&d->page, y, d->r));
	snprintf(text, sizeof(text),
		 "%d\xC3\x97%d cells, the heaviest kind in each \xC2\xB7 vramcast " VC_VERSION,
		 d->grid.cols, d->grid.rows);
	vc_conf_text(d->r, words, sizeof(words));
	vc_page_footer(&d->page, y + 120, words, text);
	return vc_page_end(&d->page, y + (cfg->footer ? 450 : 200), out, err);
}

static int prepare(struct drawing *d, const struct vc_picture *cfg, struct vc_error *err)
{
	bool narrow = cfg->width < VC_NARROW / 10, map = d->r->last.n || d->r->peak.n;
	int page = (int)(cfg->width < 480 ? 480 : cfg->width > 4000 ? 4000 : cfg->width) * 10;
	int right = page - VC_MARGIN - (map && !narrow ? SIDE + 400 : 0);

	d->plot = (struct vc_plot){ .page = &d->page, .c = &d->classes, .k = &d->columns,
		.box = { LEFT, 0, right - LEFT, HEIGHT } };
	VC_TRY(vc_classes_init(&d->classes, d->r, err));
	VC_TRY(vc_columns_init(&d->columns, &d->classes, cfg->x == 1 && vc_wants_time(cfg, d->r),
			       (uint32_t)(d->plot.box.w / 10), NULL, err));
	VC_TRY(vc_packing_init(&d->packing, d->r, err));
	d->plot.top = d->packing.guessed ? vc_packing_stack(&d->packing, 0) :
					   d->r->stats.peak_reserved;
	d->plot.top = d->plot.top ? d->plot.top : 1;
	d->plot.axis = vc_axis_bytes(d->plot.top, 9);
	int rc = vc_raster_init(&d->grid, d->plot.box.w / 10, HEIGHT / 10, err);
	return rc ? rc : fill(d, err);
}

static int blocks_write(const struct vc_result *runs, size_t n, const void *config,
			struct vc_output *out, struct vc_error *err)
{
	struct vc_picture fallback;
	const struct vc_picture *cfg = vc_picture_config(config, &fallback);
	struct drawing d = { .r = runs };

	if (!n || !runs->curve.n || !runs->lives.n)
		return vc_page_notice(cfg, "Map of blocks", !n ? "no run was given" :
				      runs->curve.n ? "no block was ever allocated" :
				      "the heap of one moment: ledger, flame and segments draw it",
				      out, err);
	int rc = prepare(&d, cfg, err);
	if (!rc)
		rc = draw(&d, cfg, out, err);
	vc_raster_fini(&d.grid);
	vc_packing_fini(&d.packing);
	vc_columns_fini(&d.columns);
	vc_classes_fini(&d.classes);
	return rc;
}

static const char *const reads[] = { "timeline", "lives", "segments", "peak",
				    "oom", "moment", "steps", NULL };

const struct vc_sink_type vc_sink_blocks = {
	.name = "blocks", .extension = "svg",
	.summary = "address over events: which block lay where, and what was free between them",
	.params = vc_picture_params, .config_size = sizeof(struct vc_picture), .observers = reads,
	.write = blocks_write,
};
