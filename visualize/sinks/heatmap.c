/* SPDX-License-Identifier: Apache-2.0 */
/* heatmap.c - two things that were varied: the bytes used in each cell, where the frontier to
 * running out of memory lies, and what fits in each row. */

#include "visualize/scene.h"

#include "common/vec.h"

enum { MOST = 32, FEW = 8, CELL = 560, LEFT = 2300, NARROW_LEFT = 1500 };

struct drawing {
	struct vc_page page;
	const struct vc_result *cell[MOST][MOST]; /* by row and column; NULL: none */
	const char *row[MOST];
	double column[MOST];
	size_t rows, columns, given, drawn;
	int best[MOST];        /* the column that is taken in each row; -1: none */
	bool rising;           /* a larger value takes more: the largest that fits is wanted */
	bool flushes, open, bands, recorded;
	uint64_t most;
	const char *vary, *by;
};

static size_t row_of(struct drawing *d, const char *name)
{
	for (size_t i = 0; i < d->rows; i++)
		if (!strcmp(d->row[i], name))
			return i;
	if (d->rows == MOST)
		return MOST;
	d->row[d->rows] = name;
	return d->rows++;
}

VC_COMPARE(by_value, double, VC_ORDER(*x, *y))

static void find_columns(struct drawing *d, const struct vc_result *runs, size_t n)
{
	double *v = malloc((n + 1) * sizeof(*v));
	size_t kept = 0;

	for (size_t i = 0; v && i < n; i++)
		v[i] = runs[i].info.value;
	if (v)
		vc_sort(v, n, sizeof(*v), by_value);
	for (size_t i = 0; v && i < n; i++)
		if ((!kept || v[i] > d->column[kept - 1]) && kept < MOST)
			d->column[kept++] = v[i];
	d->columns = kept;
	free(v);
}

static void collect(struct drawing *d, const struct vc_result *runs, size_t n)
{
	d->given = n;
	find_columns(d, runs, n);
	for (size_t i = 0; i < n; i++) {
		const struct vc_result *r = &runs[i];
		size_t row = row_of(d, r->info.by_value ? r->info.by_value : ""), k = 0;

		while (k < d->columns && d->column[k] < r->info.value)
			k++;
		if (row == MOST || k == d->columns || d->cell[row][k])
			continue;
		d->cell[row][k] = r;
		d->drawn++;
		d->vary = r->info.vary;
		d->by = r->info.by;
		d->flushes |= vc_result_verdict(r) == VC_FLUSHES;
		d->open |= vc_result_verdict(r) == VC_UNDECIDED;
		d->bands |= r->has_interval;
		d->recorded |= r->trust.level == VC_EXACT;
		if (vc_result_replayed(r) != VC_OOM && r->stats.peak_used > d->most)
			d->most = r->stats.peak_used;
	}
}

/* Does it take more at larger values? Else, as with the capacity of the card, the smallest that
 * fits is wanted. */
static bool is_rising(const struct drawing *d)
{
	int up = 0;

	for (size_t i = 0; i < d->rows; i++) {
		const struct vc_result *a = d->cell[i][0], *z = d->cell[i][d->columns - 1];

		if (a && z && d->columns > 1) {
			enum vc_verdict v = vc_result_verdict(a), w = vc_result_verdict(z);
			up += v != w ? (v < w ? 2 : -2) :
				(z->stats.peak_used > a->stats.peak_used) -
				(z->stats.peak_used < a->stats.peak_used);
		}
	}
	return up >= 0;
}

static void recommend(struct drawing *d)
{
	d->rising = is_rising(d);
	for (size_t i = 0; i < d->rows; i++) {
		d->best[i] = -1;
		for (size_t k = 0; k < d->columns; k++) {
			size_t at = d->rising ? d->columns - 1 - k : k;

			if (d->best[i] < 0 && d->cell[i][at] && vc_has_spare(d->cell[i][at]))
				d->best[i] = (int)at;
		}
	}
}

/* "12.9" of the unit that all have; with a mark where it is not simply that it fits. */
static void cell_text(const struct drawing *d, const struct vc_result *r, char *buf, size_t cap)
{
	enum vc_verdict v = vc_result_verdict(r);
	char a[VC_FORMAT];
	int n;

	if (v == VC_OOM) {
		snprintf(buf, cap, "\xC3\x97 out");
		return;
	}
	if (v == VC_UNDECIDED && vc_result_replayed(r) == VC_OOM) { /* no peak: it ended there */
		snprintf(buf, cap, "?");
		return;
	}
	vc_format_in(r->stats.peak_used, d->most, a);
	n = (int)strcspn(a, " ");
	snprintf(buf, cap, "%s%.*s", v == VC_FLUSHES ? "~ " : v == VC_UNDECIDED ? "? " : "", n, a);
}

/* Both ends of an estimate; "" where they are the same number. */
static void band_text(const struct drawing *d, const struct vc_result *r, char *buf)
{
	char a[VC_FORMAT], b[VC_FORMAT];

	*buf = '\0';
	if (!r->has_interval || vc_result_verdict(r) == VC_OOM)
		return;
	vc_format_in(r->trust.used_low, d->most, a);
	vc_format_in(r->trust.used_high, d->most, b);
	if (!strcmp(a, b))
		return;
	snprintf(buf, 2 * VC_FORMAT, "%.*s to %.*s", (int)strcspn(a, " "), a, (int)strcspn(b, " "),
		 b);
}

static void draw_cell(struct drawing *d, size_t row, size_t column, struct vc_box b)
{
	struct vc_svg *s = &d->page.svg;
	const struct vc_result *r = d->cell[row][column];
	enum vc_verdict v = vc_result_verdict(r);
	bool best = d->best[row] == (int)column;
	char text[2 * VC_FORMAT], band[2 * VC_FORMAT], a[VC_FORMAT];
	int shade = (int)vc_muldiv(r->stats.peak_used, 32, d->most ? d->most : 1);
	struct vc_label l = { b.x + b.w / 2, b.y + b.h / 2 + 45, best ? VC_T_STRONG : VC_T_BODY,
			      VC_MIDDLE, v == VC_OOM ? "bad" : "fg", b.w - 40, false, false };

	vc_svg_put(s, "<g><title>%e, ", d->row[row]);
	vc_varied_text(d->column[column], text, sizeof(text));
	vc_svg_put(s, "%e %s: %s, ", d->vary, text, vc_verdict_word(r, NULL));
	vc_svg_put(s, "%s used</title>", vc_format_bytes(r->stats.peak_used, a));
	s->titles++;
	if (v == VC_OOM)
		vc_svg_rect(s, "badbg", b, 0);
	else
		vc_svg_put(s, "<rect class=\"%s cell\" x=\"%c\" y=\"%c\" width=\"%c\" "
			   "height=\"%c\" fill-opacity=\".%s%d\"/>",
			   v == VC_UNDECIDED ? "open" : v == VC_FLUSHES ? "warn" : "ct", b.x, b.y,
			   b.w, b.h, 4 + shade < 10 ? "0" : "", 4 + shade);
	if (r->trust.level == VC_EXACT)
		vc_svg_put(s, "<rect class=\"nf segk thin\" x=\"%c\" y=\"%c\" width=\"%c\" "
			   "height=\"%c\"/>", b.x + 25, b.y + 25, b.w - 50, b.h - 50);
	if (best)
		vc_svg_put(s, "<rect class=\"nf oks\" x=\"%c\" y=\"%c\" width=\"%c\" "
			   "height=\"%c\"/>", b.x + 10, b.y + 10, b.w - 20, b.h - 20);
	band_text(d, r, band);
	if (*band && b.w >= 750) {
		l.y = b.y + b.h / 2 - 20;
		vc_svg_say(s, band, l.x, b.y + b.h / 2 + 140, VC_T_SMALL, VC_MIDDLE, "fg",
			   b.w - 30);
	}
	cell_text(d, r, text, sizeof(text));
	vc_svg_label(s, &l, text);
	vc_svg_put(s, "</g>\n");
}

static bool is_out(const struct drawing *d, size_t row, size_t column)
{
	return row < d->rows && column < d->columns && d->cell[row][column] &&
	       vc_result_verdict(d->cell[row][column]) == VC_OOM;
}

static bool is_in(const struct drawing *d, size_t row, size_t column)
{
	return row < d->rows && column < d->columns && d->cell[row][column] &&
	       !is_out(d, row, column);
}

/* A thick line between what runs out of memory and what does not. */
static void frontier(struct drawing *d, struct vc_box b, int w)
{
	struct vc_svg *s = &d->page.svg;

	vc_svg_put(s, "<path class=\"bads\" style=\"stroke-width:3.5\" d=\"M0 0");
	for (size_t i = 0; i < d->rows; i++)
		for (size_t k = 0; k < d->columns; k++) {
			int x = b.x + (int)k * w, y = b.y + (int)i * CELL;

			if (is_out(d, i, k) != is_out(d, i, k + 1) &&
			    (is_in(d, i, k) || is_in(d, i, k + 1)) && k + 1 < d->columns)
				vc_svg_put(s, "M%c %cv%c", x + w, y, CELL);
			if (is_out(d, i, k) != is_out(d, i + 1, k) && i + 1 < d->rows &&
			    (is_in(d, i, k) || is_in(d, i + 1, k)))
				vc_svg_put(s, "M%c %ch%c", x, y + CELL, w);
		}
	vc_svg_put(s, "\"/>\n");
}

static int grid(struct drawing *d, int y)
{
	struct vc_svg *s = &d->page.svg;
	int left = d->page.w < VC_NARROW ? NARROW_LEFT : LEFT;
	struct vc_box b = { VC_MARGIN + left, y, d->page.w - 2 * VC_MARGIN - left, 0 };
	int w = b.w / (int)d->columns, every = 1;
	char text[60];

	w = w > 1600 ? 1600 : w;
	while (w * every < 420)
		every++;
	for (size_t i = 0; i < d->rows; i++) {
		vc_svg_put(s, "<g>\n"); /* browsers dislike many siblings */
		vc_svg_say(s, d->row[i], b.x - 150, y + (int)i * CELL + CELL / 2 + 45, VC_T_BODY,
			   VC_END, "fg", left - 150);
		for (size_t k = 0; k < d->columns; k++)
			if (d->cell[i][k])
				draw_cell(d, i, k, (struct vc_box){ b.x + (int)k * w + 10,
					y + (int)i * CELL + 10, w - 20, CELL - 20 });
		vc_svg_put(s, "</g>\n");
	}
	frontier(d, b, w);
	y += (int)d->rows * CELL;
	for (size_t k = 0; k < d->columns; k += (size_t)every) {
		vc_varied_text(d->column[k], text, sizeof(text));
		vc_svg_say(s, text, b.x + (int)k * w + w / 2, y + 190, VC_T_BODY, VC_MIDDLE, "fg",
			   0);
	}
	vc_svg_say(s, d->vary, b.x + (int)d->columns * w, y + 400, VC_T_SMALL, VC_END, "mut", 0);
	vc_svg_say(s, d->by, VC_MARGIN, y + 190, VC_T_SMALL, VC_START, "mut", left - 200);
	return y + 480;
}

/* Of each row what is taken and what fails next to it; of many rows one of the two. */
static int moments(struct drawing *d, int y)
{
	struct vc_subject of[2 * MOST];
	char name[2 * MOST][100], value[40];
	size_t n = 0;

	for (size_t i = 0; i < d->rows; i++) {
		int fails = -1, at[2];

		for (int k = 0; k < (int)d->columns; k++) {
			int c = d->rising ? (int)d->columns - 1 - k : k; /* towards less */

			if (d->cell[i][c] && vc_result_replayed(d->cell[i][c]) == VC_OOM &&
			    (d->best[i] < 0 || (c > d->best[i]) == d->rising))
				fails = c;
		}
		at[0] = d->rows > FEW && fails >= 0 ? -1 : d->best[i];
		at[1] = fails;
		for (int k = 0; k < 2; k++) {
			if (at[k] < 0)
				continue;
			vc_varied_text(d->column[at[k]], value, sizeof(value));
			snprintf(name[n], sizeof(name[n]), "%.40s, %.15s %s", d->row[i], d->vary,
				 value);
			of[n] = (struct vc_subject){ name[n], NULL, d->cell[i][at[k]] };
			n++;
		}
	}
	return vc_page_facts_of(&d->page, y, of, n, VC_ASK_ALL);
}

static void title_text(const struct drawing *d, char *buf, size_t cap)
{
	struct vc_named of[MOST];

	for (size_t i = 0; i < d->rows; i++)
		of[i] = (struct vc_named){ d->row[i], d->best[i] < 0 ? NULL :
					    d->cell[i][d->best[i]] };
	vc_choice_text(d->vary, d->rising, of, d->rows, buf, cap);
}

static int legend(struct drawing *d, int y)
{
	struct vc_key key[6];
	size_t n = 0;

	key[n++] = (struct vc_key){ "nf oks", "taken: fits with 5 % of the card left", VC_KEY_BOX };
	if (d->flushes)
		key[n++] = (struct vc_key){ "warn", "~ fits only by emptying the cache",
					    VC_KEY_BOX };
	if (d->open)
		key[n++] = (struct vc_key){ "open", "? may fit or run out", VC_KEY_BOX };
	key[n++] = (struct vc_key){ "badbg", "\xC3\x97 runs out of memory", VC_KEY_BOX };
	if (d->recorded)
		key[n++] = (struct vc_key){ "nf segk thin", "recorded, not estimated", VC_KEY_BOX };
	key[n++] = (struct vc_key){ "bads", "the frontier", VC_KEY_LINE };
	return vc_page_legend(&d->page, (struct vc_box){ VC_MARGIN, y,
							 d->page.w - 2 * VC_MARGIN, 0 }, key, n);
}

static int draw(struct drawing *d, const struct vc_result *r, const struct vc_picture *cfg,
		struct vc_output *out, struct vc_error *err)
{
	char title[320], text[512], name[160], unit[VC_FORMAT];

	title_text(d, title, sizeof(title));
	vc_trace_name(r, name, sizeof(name));
	vc_format_in(d->most, d->most, unit);
	snprintf(text, sizeof(text), "%s: used on the card at the peak, in %s%s \xC2\xB7 of %zu "
		 "runs that were tried%s", name,
		 strchr(unit, ' ') ? strchr(unit, ' ') + 1 : "bytes",
		 d->bands ? ", below it the band of the estimate" : "", d->drawn,
		 d->given > d->drawn ? ", more than are drawn" : "");
	vc_page_begin(&d->page, cfg, title, text);
	int y = legend(d, vc_page_header(&d->page, title, text, NULL));
	y = moments(d, grid(d, y + 100));
	vc_page_footer(&d->page, y + 100, "", "vramcast " VC_VERSION);
	return vc_page_end(&d->page, y + (cfg->footer ? 430 : 100), out, err);
}

static int heatmap_write(const struct vc_result *runs, size_t n, const void *config,
			 struct vc_output *out, struct vc_error *err)
{
	const struct vc_picture *cfg = vc_picture_config(config, &(struct vc_picture){ 0 });
	struct drawing *d;

	for (size_t i = 0; i < n; i++)
		if (!runs[i].info.vary || !runs[i].info.by || !runs[i].info.by_value)
			n = 0;
	if (!n)
		return vc_page_notice(cfg, "Heat map", "no sweep over two keys was given (vramcast "
				      "sweep --vary ... --vary ...)", out, err);
	d = calloc(1, sizeof(*d));
	VC_HAVE(d, "the picture", err);
	collect(d, runs, n);
	recommend(d);
	int rc = draw(d, runs, cfg, out, err);
	free(d);
	return rc;
}

const struct vc_sink_type vc_sink_heatmap = {
	.name = "heatmap", .extension = "svg",
	.summary = "a sweep over two keys: bytes used, and the frontier to running out",
	.params = vc_picture_params, .config_size = sizeof(struct vc_picture),
	.observers = VC_READS("steps", "oom", "moment"),
	.write = heatmap_write,
};
