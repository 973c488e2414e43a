/* SPDX-License-Identifier: Apache-2.0 */
/* addressmap.c - segments and blocks of one moment in address order, wrapped into rows. */
#include "visualize/addressmap.h"

#include "visualize/raster.h"

enum { ROW = 150, GAP = 40, ROWS = 30 };

void vc_heap_measure(const struct vc_heap_map *h, struct vc_heap_facts *f)
{
	*f = (struct vc_heap_facts){ 0 };
	for (size_t i = 0; i < h->n; i++) {
		const struct vc_heap_extent *x = &h->at[i];
		if (x->what == 0) {
			f->segments++;
			f->reserved += x->size;
			continue;
		}
		if (x->what != 3) {
			f->live += x->size;
			continue;
		}
		f->free += x->size;
		if (x->size > f->largest_free)
			f->largest_free = x->size;
	}
}

/* Bytes per row: 1 or 1.5 times a power of two that gives at most ROWS rows. */
static uint64_t row_bytes(uint64_t reserved)
{
	uint64_t step = VC_MIB;

	while (reserved / step >= ROWS && step < UINT64_MAX / 4)
		step = step & (step - 1) ? step / 3 * 4 : step / 2 * 3;
	return step;
}

struct cursor { struct vc_raster *g; uint64_t (*weight)[VC_CELLS]; uint64_t per_row; };

/* Spread [from, from + size) of the packed addresses over the cells. */
static void spread(const struct cursor *k, uint64_t from, uint64_t size, int value)
{
	uint64_t cols = (uint64_t)k->g->cols, end = from + size;

	while (from < end) {
		uint64_t row = from / k->per_row, at = from % k->per_row;
		uint64_t x = at * cols / k->per_row,
			 next = ((x + 1) * k->per_row + cols - 1) / cols;
		uint64_t stop = row * k->per_row + (next > k->per_row ? k->per_row : next);
		if (stop > end)
			stop = end;
		if (stop <= from || row >= (uint64_t)k->g->rows)
			return;
		k->weight[row * cols + x][value] += stop - from;
		from = stop;
	}
}

static int fill(const struct vc_classes *c, const struct vc_heap_map *h, struct vc_heap_facts *f,
		struct vc_raster *g, struct vc_error *err)
{
	uint64_t base = 0, last = 0, start = 0;
	struct cursor k = { g, calloc((size_t)g->cols * (size_t)g->rows + 1, sizeof(*k.weight)),
		f->per_row };

	VC_HAVE(k.weight, "the map of segments", err);
	for (size_t i = 0; i < h->n; i++) {
		const struct vc_heap_extent *x = &h->at[i];
		if (x->what == 0) {
			start = x->addr;
			base += last;
			last = x->size;
			continue;
		}
		enum vc_slot slot = x->what == 3 ? VC_SLOTS : vc_classes_of_id(c, x->id);
		if (slot < VC_SLOTS)
			f->used[slot] = true;
		spread(&k, base + (x->addr - start), x->size,
		       x->what == 3 ? VC_CELL_FREE : 1 + (int)slot);
	}
	for (int row = 0; row < g->rows; row++)
		vc_raster_weigh(g, row, k.weight + (size_t)row * (size_t)g->cols);
	free(k.weight);
	return VC_OK;
}

/* Thin lines where segments begin, and what a pointer over them is told. */
static void borders(struct vc_page *p, const struct vc_heap_map *h, struct vc_box b,
		    const struct vc_heap_facts *f)
{
	struct vc_svg *s = &p->svg;
	uint64_t base = 0;
	int last = -100;

	vc_svg_put(s, "<path class=\"segb\" d=\"");
	for (size_t i = 0; i < h->n; i++) {
		if (h->at[i].what)
			continue;
		int row = (int)(base / f->per_row);
		int x = b.x + (int)vc_muldiv(base % f->per_row, (uint64_t)b.w, f->per_row);
		if (row * 100000 + x - last >= 15)
			vc_svg_put(s, "M%c %cv%c", x, b.y + (int)row * (ROW + GAP), ROW);
		last = row * 100000 + x;
		base += h->at[i].size;
	}
	vc_svg_put(s, "\"/>\n");
}

static void tooltips(struct vc_page *p, const struct vc_heap_map *h, struct vc_box b,
		     const struct vc_heap_facts *f)
{
	struct vc_svg *s = &p->svg;
	uint64_t base = 0;
	size_t n = 0, seg = 0;
	char a[VC_FORMAT], u[VC_FORMAT];

	for (size_t i = 0; i < h->n && n < 1000; i++) {
		const struct vc_heap_extent *g = &h->at[i];
		uint64_t live = 0;
		if (g->what)
			continue;
		for (size_t j = i + 1; j < h->n && h->at[j].what; j++)
			live += h->at[j].what == 3 ? 0 : h->at[j].size;
		seg++;
		int row = (int)(base / f->per_row);
		int x = (int)vc_muldiv(base % f->per_row, (uint64_t)b.w, f->per_row);
		int w = (int)vc_muldiv(g->size, (uint64_t)b.w, f->per_row);
		base += g->size;
		if (w < 20)
			continue;
		vc_svg_put(s, "%s<rect class=\"hit\" x=\"%c\" y=\"%c\" width=\"%c\" "
			   "height=\"%c\"><title>",
			   n % 200 ? "" :
			   n       ? "</g><g>" :
				     "<g>",
			   b.x + x, b.y + row * (ROW + GAP), x + w > b.w ? b.w - x : w, ROW);
		vc_svg_put(s, "segment %u: %s, %s in use</title></rect>", (uint64_t)seg,
			   vc_format_bytes(g->size, a), vc_format_bytes(live, u));
		s->titles++;
		n++;
	}
	vc_svg_put(s, n ? "</g>\n" : "");
}

int vc_addressmap_draw(struct vc_page *p, const struct vc_classes *c, const struct vc_heap_map *h,
		    struct vc_box b, struct vc_heap_facts *f)
{
	struct vc_raster g;
	struct vc_error err;

	vc_heap_measure(h, f);
	f->per_row = row_bytes(f->reserved);
	f->rows = (int)((f->reserved + f->per_row - 1) / f->per_row);
	if (!f->rows)
		f->rows = 1;
	if (vc_raster_init(&g, b.w / 5, f->rows, &err))
		return VC_ENOMEM;
	if (fill(c, h, f, &g, &err)) {
		vc_raster_fini(&g);
		return VC_ENOMEM;
	}
	while (vc_raster_runs(&g) >
	       15000) /* about 25 bytes each: half of the budget of a picture */
		vc_raster_halve(&g);
	b.h = f->rows * (ROW + GAP);
	vc_raster_paint(&g, &p->svg, b, GAP);
	borders(p, h, b, f);
	tooltips(p, h, b, f);
	vc_raster_fini(&g);
	return b.y + b.h;
}

/* At least 6 px wide, so that the smallest culprit is seen. */
void vc_addressmap_mark(struct vc_page *p, const struct vc_heap_map *h, struct vc_box b,
			const struct vc_heap_facts *f, uint64_t id)
{
	uint64_t base = 0, last = 0, start = 0;

	for (size_t i = 0; i < h->n; i++) {
		const struct vc_heap_extent *x = &h->at[i];

		if (x->what == 0) {
			start = x->addr;
			base += last;
			last = x->size;
			continue;
		}
		if (x->what == 3 || x->id != id)
			continue;
		uint64_t at = base + (x->addr - start), row = at / f->per_row;
		if (row >= (uint64_t)f->rows) /* a damaged heap: not in its segment */
			return;
		int left = (int)vc_muldiv(at % f->per_row, (uint64_t)b.w, f->per_row);
		int w = (int)vc_muldiv(x->size, (uint64_t)b.w, f->per_row);

		w = w < 60 ? 60 : w;
		w = left + w > b.w ? b.w - left : w;
		vc_svg_rect(&p->svg, "nf bads", (struct vc_box){ b.x + left - 10,
			b.y + row * (ROW + GAP) - 10, w + 20, ROW + 20 }, 20);
		return;
	}
}

/* A bar with its text at the right, or below where there is no room; the y below. */
static int scale_bar(struct vc_page *p, struct vc_box b, const char *klass, int w, const char *text)
{
	struct vc_label l = { b.x + w + 120, b.y + 125, VC_T_STRONG, VC_START,
			     "fg",          0,         false,       false };
	bool fits = l.x + vc_svg_measure(&l, text).w <= b.x + b.w;

	vc_svg_put(&p->svg, "<rect class=\"%s\" x=\"%c\" y=\"%c\" width=\"%c\" height=\"16\"/>\n",
		   klass, b.x, b.y, w);
	if (!fits) {
		l.x = b.x;
		l.y = b.y + 310;
	}
	vc_svg_label(&p->svg, &l, text);
	return b.y + (fits ? 260 : 430);
}

int vc_addressmap_scale(struct vc_page *p, const struct vc_result *r, const struct vc_heap_facts *f,
			struct vc_box b)
{
	char text[120], a[VC_FORMAT], c[VC_FORMAT];
	struct vc_label l = { b.x, b.y + 60, VC_T_SMALL, VC_START, "mut", b.w, false, false };
	uint64_t need =
		r->oom.happened ? r->oom.alloc_size ? r->oom.alloc_size : r->oom.request : 0;
	uint64_t free =
		r->oom.happened ? r->oom.largest_free : f->largest_free;
	int w;

	vc_svg_label(&p->svg, &l, "to scale with the map:");
	b.y += 160;
	if (need) {
		w = (int)vc_muldiv(need, (uint64_t)b.w, f->per_row);
		snprintf(text, sizeof(text), "needed %s in one piece", vc_format_bytes(need, a));
		b.y = scale_bar(p, b, "bad", w > b.w ? b.w : w < 20 ? 20 : w, text);
	}
	w = (int)vc_muldiv(free, (uint64_t)b.w, f->per_row);
	snprintf(text, sizeof(text), "largest free %s of %s", vc_format_bytes(free, a),
		 vc_format_bytes(f->free, c));
	return scale_bar(p, b, "hx segbox", w > b.w ? b.w : w < 20 ? 20 : w, text);
}
