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

void vc_raster_halve(struct vc_raster *g)
{
	int cols = (g->cols + 1) / 2;

	for (int y = 0; y < g->rows; y++)
		for (int x = 0; x < cols; x++) {
			const uint8_t *from = g->cell + (size_t)y * (size_t)g->cols + 2 * x;
			uint8_t a = from[0], b = 2 * x + 1 < g->cols ? from[1] : a;

			if (a == VC_CELL_NONE || (a == VC_CELL_FREE && b != VC_CELL_NONE))
				a = b;
			g->cell[(size_t)y * (size_t)cols + (size_t)x] = a;
		}
	g->cols = cols;
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

static void paint_value(const struct vc_raster *g, struct vc_svg *s, struct vc_box b, int gap,
			uint8_t v)
{
	for (int y = 0; y < g->rows; y++) {
		const uint8_t *row = g->cell + (size_t)y * (size_t)g->cols;
		int y0 = edge(y, g->rows, b.h), y1 = edge(y + 1, g->rows, b.h) - gap;

		for (int x = 0; x < g->cols; x++) {
			int e = run_end(row, g->cols, x, v);
			int x0 = edge(x, g->cols, b.w), x1 = edge(e, g->cols, b.w);

			if (!e)
				continue;
			vc_svg_put(s, "M%c %ch%cv%ch%cz", b.x + x0, b.y + y0, x1 - x0, y1 - y0,
				   x0 - x1);
			x = e;
		}
	}
}

void vc_raster_paint(const struct vc_raster *g, struct vc_svg *s, struct vc_box b, int gap)
{
	bool seen[VC_CELLS] = { false };

	for (size_t i = 0; i < (size_t)g->cols * (size_t)g->rows; i++)
		seen[g->cell[i]] = true;
	for (int v = VC_CELL_FREE; v > 0; v--) {
		if (!seen[v])
			continue;
		vc_svg_put(s, "<path class=\"%s\" d=\"", v == VC_CELL_FREE ? "hx" :
			   vc_theme_area((enum vc_slot)(v - 1)));
		paint_value(g, s, b, gap, (uint8_t)v);
		vc_svg_put(s, "\"/>\n");
		s->elements++;
	}
}
