/* SPDX-License-Identifier: Apache-2.0 */
/* unused.c - reserved bytes that no tensor asked for, over the run: why they are there, and which
 * blocks hold segments back. */

#include "visualize/scene.h"

enum { LEFT = 700, PLOT_HEIGHT = 3400, NARROW_HEIGHT = 2400, ROW = 330 };

/* From below: what can be given back, then what stands in its way. */
static const struct part { const char *klass, *text; size_t offset; } parts[] = {
	{ "hx", "returnable: segments without a live block",
	  offsetof(struct vc_fragmentation, whole_free) },
	{ "base", "rounding", offsetof(struct vc_fragmentation, rounding) },
	{ "u1", "of other streams", offsetof(struct vc_fragmentation, other_streams) },
	{ "u2", "of private pools", offsetof(struct vc_fragmentation, private_pools) },
	{ "u3", "remainders too small to use",
	  offsetof(struct vc_fragmentation, remainders) },
	{ "lane", "pinned by a live block", offsetof(struct vc_fragmentation, pinned) },
};
enum { PARTS = sizeof(parts) / sizeof(*parts) };

struct drawing {
	struct vc_page page;
	const struct vc_result *r;
	const struct vc_unused *u;
	struct vc_columns k; /* for its axis only */
	struct vc_plot plot;
	struct vc_unused_at *at; size_t n; /* what is drawn: the end of the program frees no more */
	const struct vc_unused_at *worst;  /* of these */
};

static uint64_t part_of(const struct vc_unused_at *a, size_t k)
{
	uint64_t n;

	memcpy(&n, (const char *)&a->part + parts[k].offset, sizeof(n));
	return n;
}

static uint64_t sum_to(const struct vc_unused_at *a, size_t k)
{
	uint64_t sum = 0;

	for (size_t i = 0; i <= k; i++)
		sum += part_of(a, i);
	return sum > 1ull << 60 ? 1ull << 60 : sum; /* a broken result must not wrap */
}

static int x_of(const struct drawing *d, const struct vc_unused_at *a)
{
	return vc_plot_x(&d->plot, d->k.by_time ? a->time_ns : a->event);
}

/* The looks that are drawn, and among them the request with the most: what is said to be the most
 * is the highest point. */
static int scale(struct drawing *d, const struct vc_picture *cfg, struct vc_error *err)
{
	const struct vc_unused *u = d->u;
	bool put = !sum_to(&u->worst, PARTS - 1);

	d->at = malloc((u->n + 1) * sizeof(*d->at));
	VC_HAVE(d->at, "the picture", err);
	for (size_t i = 0; i < u->n && (!i || u->at[i].event <= u->last); i++) {
		if (!put && u->at[i].event > u->worst.event) {
			d->at[d->n++] = u->worst;
			put = true;
		}
		d->at[d->n++] = u->at[i];
	}
	if (!put)
		d->at[d->n++] = u->worst;
	d->worst = d->at;
	for (size_t i = 1; i < d->n; i++)
		if (sum_to(&d->at[i], PARTS - 1) > sum_to(d->worst, PARTS - 1))
			d->worst = &d->at[i];
	const struct vc_unused_at *last = &d->at[d->n - 1];
	uint64_t most = sum_to(d->worst, PARTS - 1);

	d->k.by_time = vc_wants_time(cfg, d->r) && last->time_ns > d->at[0].time_ns;
	d->k.first = d->k.by_time ? d->at[0].time_ns : 0;
	d->k.span = d->k.by_time ? last->time_ns - d->k.first : last->event + 1;
	d->plot.k = &d->k;
	d->plot.page = &d->page;
	d->plot.top = (most ? most : VC_MIB) + most / 8;
	d->plot.axis = vc_axis_bytes(d->plot.top, 6);
	return VC_OK;
}

/* Everything up to class k, closed to the baseline; the lower ones are drawn over it. */
static void area(struct drawing *d, size_t k)
{
	struct vc_svg *s = &d->page.svg;
	struct vc_pen pen = { s, 0, 0, 0 };
	const struct vc_box *b = &d->plot.box;

	vc_svg_put(s, "<path class=\"%s\" d=\"", parts[k].klass);
	for (size_t i = 0; i < d->n; i++) {
		int x = x_of(d, &d->at[i]);

		if (!i)
			vc_pen_move(&pen, x, b->y + b->h);
		vc_pen_step(&pen, x, vc_plot_y(&d->plot, sum_to(&d->at[i], k)));
	}
	vc_pen_step(&pen, b->x + b->w, b->y + b->h);
	vc_pen_flush(&pen);
	vc_svg_put(s, "z\"/>\n");
	s->elements++;
}

/* The moment with the most of them. */
static void mark_worst(struct drawing *d)
{
	const struct vc_unused_at *w = d->worst;
	uint64_t sum = sum_to(w, PARTS - 1);
	int x = x_of(d, w), y = vc_plot_y(&d->plot, sum);
	bool right = x > d->plot.box.x + d->plot.box.w / 2;
	struct vc_label l = { right ? x - 80 : x + 80, y - 50, VC_T_STRONG,
			      right ? VC_END : VC_START, "fg", 0, false, true };
	char text[80 + 2 * VC_FORMAT], a[2 * VC_FORMAT];

	if (!sum)
		return;
	vc_svg_vline(&d->page.svg, "it", x, y, d->plot.box.y + d->plot.box.h - y);
	snprintf(text, sizeof(text), "most: %s", vc_format_of(sum, w->reserved, a));
	struct vc_box b = vc_svg_measure(&l, text);
	if (b.x < VC_MARGIN || b.x + b.w > d->page.w - VC_MARGIN) /* a narrow page */
		snprintf(text, sizeof(text), "%s", vc_format_bytes(sum, a));
	vc_svg_label(&d->page.svg, &l, text);
}

static int legend(struct drawing *d, int y)
{
	struct vc_key key[PARTS];
	size_t n = 0;

	for (size_t k = PARTS; k--;) {
		uint64_t most = part_of(d->worst, k);

		for (size_t i = 0; i < d->n; i++)
			most |= part_of(&d->at[i], k);
		if (most)
			key[n++] = (struct vc_key){ parts[k].klass, parts[k].text, VC_KEY_BOX };
	}
	return vc_page_legend(&d->page, (struct vc_box){ VC_MARGIN, y,
							 d->page.w - 2 * VC_MARGIN, 0 }, key, n);
}

static void pin_row(struct drawing *d, const struct vc_pin *p, int y, bool narrow)
{
	struct vc_svg *s = &d->page.svg;
	struct vc_holder h = { .site = p->site, .label = p->label,
			       .held = p->at_start ? VC_HELD_BEFORE : VC_HELD_NOWHERE };
	char place[512], text[120], a[VC_FORMAT], b[VC_FORMAT];
	int right = d->page.w - VC_MARGIN, w = right - VC_MARGIN - (narrow ? 1300 : 5600);

	*place = '\0';
	if (d->r->meta)
		vc_holder_text(d->r->meta, &h, place, sizeof(place));
	if (!p->site && !p->label)
		snprintf(place + strlen(place), sizeof(place) - strlen(place), ", block %llu",
			 (unsigned long long)p->id);
	vc_svg_label(s, &(struct vc_label){ VC_MARGIN, y, VC_T_MONO, VC_START, "fg", w, true,
					    false }, place);
	if (!narrow) {
		snprintf(text, sizeof(text), "%s segment%s, smallest block %s, number %llu",
			 vc_format_count(p->segments, a), p->segments == 1 ? "" : "s",
			 vc_format_bytes(p->smallest, b), (unsigned long long)p->id);
		vc_svg_say(s, text, right - 1300, y, VC_T_SMALL, VC_END, "mut", 4200);
	}
	vc_svg_say(s, vc_format_bytes(p->bytes, a), right, y, VC_T_STRONG, VC_END, "fg", 0);
}

/* Whose blocks hold segments back, on the average of all samples. */
static int pins(struct drawing *d, int y)
{
	bool narrow = d->page.w < VC_NARROW;

	if (!d->u->pin[0].bytes)
		return y;
	vc_svg_say(&d->page.svg, "Held back by these blocks, on the average of the run", VC_MARGIN,
		   y + 150, VC_T_HEAD, VC_START, "fg", d->page.w - 2 * VC_MARGIN);
	y += 150;
	for (size_t i = 0; i < VC_UNUSED_PINS && d->u->pin[i].bytes; i++)
		pin_row(d, &d->u->pin[i], y += ROW, narrow);
	return y + 100;
}

static int draw(struct drawing *d, const struct vc_picture *cfg, struct vc_output *out,
		struct vc_error *err)
{
	char title[256], text[200], a[2 * VC_FORMAT], b[VC_FORMAT];

	VC_TRY(scale(d, cfg, err));
	const struct vc_unused_at *w = d->worst;

	vc_answer_text(d->r, d->k.by_time, title, sizeof(title));
	snprintf(text, sizeof(text), "At most %s reserved are not in use, %s of it held back by "
		 "live blocks", vc_format_of(sum_to(w, PARTS - 1), w->reserved, a),
		 vc_format_in(w->part.pinned, w->reserved, b));
	vc_page_begin(&d->page, cfg, title, text);
	int y = vc_page_header(&d->page, title, text, d->r);

	y = legend(d, vc_page_facts(&d->page, y, d->r));
	d->plot.box = (struct vc_box){ LEFT, y + 350, d->page.w - VC_MARGIN - LEFT,
				       d->page.w < VC_NARROW ? NARROW_HEIGHT : PLOT_HEIGHT };
	vc_plot_grid(&d->plot, true);
	for (size_t k = PARTS; k--;)
		area(d, k);
	mark_worst(d);
	y = d->plot.box.y + d->plot.box.h;
	vc_plot_axis(&d->plot, y);
	y = pins(d, y + 450);
	snprintf(text, sizeof(text), "%zu looks at the heap, at equal distances", d->n);
	vc_page_footer(&d->page, y + 100, text, "vramcast " VC_VERSION);
	return vc_page_end(&d->page, y + (cfg->footer ? 430 : 150), out, err);
}

static int unused_write(const struct vc_result *runs, size_t n, const void *config,
			struct vc_output *out, struct vc_error *err)
{
	const struct vc_picture *cfg = vc_picture_config(config, &(struct vc_picture){ 0 });
	struct drawing *d;
	int rc;

	if (!n || !runs->unused.n || !runs->stats.events)
		return vc_page_notice(cfg, "Unused memory",
				      n ? "no run made a request for memory" : "no run was given",
				      out, err);
	d = calloc(1, sizeof(*d));
	VC_HAVE(d, "the picture", err);
	d->r = runs;
	d->u = &runs->unused;
	rc = draw(d, cfg, out, err);
	free(d->at);
	free(d);
	return rc;
}

const struct vc_sink_type vc_sink_unused = {
	.name = "unused", .extension = "svg",
	.summary = "reserved and not in use over the run: why, and which blocks hold it back",
	.params = vc_picture_params, .config_size = sizeof(struct vc_picture),
	.observers = VC_READS("timeline", "unused", "oom", "moment"),
	.write = unused_write,
};
