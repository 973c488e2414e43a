/* SPDX-License-Identifier: Apache-2.0 */
/* raster.c - cells of one colour each, written as one path per colour. */
#include "visualize/raster.h"

int vc_raster_init(struct vc_raster *g, int cols, int rows, struct vc_error *err)
{
	*g = (struct vc_raster){ calloc((size_t)cols * (size_t)rows + 1, 1), cols, rows };
	return g->cell ? VC_OK : vc_nomem(err, "the cells of the picture");
}

void vc_raster_fini(struct vc_raster *g)
{
	free(g->cell);
	*g = (struct vc_raster){ 0 };
}

void vc_raster_weigh(struct vc_raster *g, int row, uint64_t (*weight)[VC_CELLS])
{
	for (int x = 0; x < g->cols; x++) {
		uint64_t live = 0, *w = weight[x];
		int best = VC_CELL_NONE;
		for (int v = 1; v < VC_CELL_FREE; v++) {
			live += w[v];
			if (w[v] > w[best] || best == VC_CELL_NONE)
				best = w[v] ? v : best;
		}
		if (w[VC_CELL_FREE] > live)
			best = VC_CELL_FREE;
		g->cell[(size_t)row * (size_t)g->cols + (size_t)x] = (uint8_t)best;
	}
}

void vc_raster_halve(struct vc_raster *g, bool rows)
{
	int cols = (g->cols + 1) / 2, n = rows ? (g->rows + 1) / 2 : g->rows;

	for (int y = 0; y < n; y++)
		for (int x = 0; x < cols; x++) {
			size_t from =
				(size_t)(rows ? 2 * y : y) * (size_t)g->cols + (size_t)(2 * x);
			uint8_t a = g->cell[from], b = 2 * x + 1 < g->cols ? g->cell[from + 1] : a;
			g->cell[(size_t)y * (size_t)cols + (size_t)x] = a && a != VC_CELL_FREE ?
										a :
									b ? b :
									    a;
		}
	g->cols = cols;
	g->rows = n;
}

size_t vc_raster_runs(const struct vc_raster *g)
{
	size_t runs = 0;

	for (int y = 0; y < g->rows; y++) {
		const uint8_t *row = g->cell + (size_t)y * (size_t)g->cols;
		for (int x = 0; x < g->cols; x++)
			runs += row[x] && (!x || row[x] != row[x - 1]);
	}
	return runs;
}

static int edge(int at, int n, int length)
{
	return (int)((int64_t)at * length / n);
}

/* The end of the run of `v` that starts at x; 0 when no run starts there. */
static int run_end(const uint8_t *row, int cols, int x, uint8_t v)
{
	int e = x;

	if (row[x] != v || (x && row[x - 1] == v))
		return 0;
	while (e < cols && row[e] == v)
		e++;
	return e;
}

static bool same_run(const struct vc_raster *g, int y, int x, int e)
{
	const uint8_t *row = g->cell + (size_t)y * (size_t)g->cols;

	return run_end(row, g->cols, x,
		       g->cell[(size_t)(y < g->rows ? y : 0) * (size_t)g->cols + (size_t)x]) == e;
}

static size_t paint_value(const struct vc_raster *g, struct vc_svg *s, struct vc_box b, int gap,
			  uint8_t v)
{
	size_t n = 0;

	for (int y = 0; y < g->rows; y++) {
		const uint8_t *row = g->cell + (size_t)y * (size_t)g->cols;
		for (int x = 0; x < g->cols; x++) {
			int e = run_end(row, g->cols, x, v), down = y + 1;
			if (!e)
				continue;
			/* A run that continues one above was drawn with it. */
			if (!gap && y &&
			    g->cell[(size_t)(y - 1) * (size_t)g->cols + (size_t)x] == v &&
			    same_run(g, y - 1, x, e)) {
				x = e;
				continue;
			}
			while (!gap && down < g->rows &&
			       g->cell[(size_t)down * (size_t)g->cols + (size_t)x] == v &&
			       same_run(g, down, x, e))
				down++;
			int x0 = edge(x, g->cols, b.w), x1 = edge(e, g->cols, b.w);
			int y0 = edge(y, g->rows, b.h), y1 = edge(down, g->rows, b.h) - gap;
			vc_svg_put(s, "M%c %ch%cv%ch%cz", b.x + x0, b.y + y0, x1 - x0, y1 - y0,
				   x0 - x1);
			n++;
			x = e;
		}
	}
	return n;
}

size_t vc_raster_paint(const struct vc_raster *g, struct vc_svg *s, struct vc_box b, int gap)
{
	bool seen[VC_CELLS] = { false };
	size_t n = 0;

	for (size_t i = 0; i < (size_t)g->cols * (size_t)g->rows; i++)
		seen[g->cell[i]] = true;
	for (int v = VC_CELL_FREE; v > 0; v--) {
		if (!seen[v])
			continue;
		vc_svg_put(s, "<path class=\"%s\" d=\"", v == VC_CELL_FREE ? "hx" :
			   vc_theme_area((enum vc_slot)(v - 1)));
		n += paint_value(g, s, b, gap, (uint8_t)v);
		vc_svg_put(s, "\"/>\n");
		s->elements++;
	}
	return n;
}
