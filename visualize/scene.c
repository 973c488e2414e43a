/* SPDX-License-Identifier: Apache-2.0 */
/* scene.c - the page: title and verdict, legend, footer. */
#include "visualize/scene.h"

#include "common/io.h"

const struct vc_param vc_picture_params[] = { VC_PICTURE_PARAMS, VC_PARAM_END };

const struct vc_picture *vc_picture_config(const void *config, struct vc_picture *fallback)
{
	*fallback = config ? *(const struct vc_picture *)config :
			     (struct vc_picture){ .footer = true, .background = true };
	if (!fallback->width) /* a page's text is 17 cm wide: the smallest words have 8 points */
		fallback->width = fallback->theme == VC_THEME_PRINT ? 680 : 1200;
	return fallback;
}

bool vc_wants_time(const struct vc_picture *cfg, const struct vc_result *r)
{
	return cfg->x == 0 ? vc_curve_reads_by_time(r) : cfg->x == 1 && vc_curve_has_times(r);
}

void vc_page_begin(struct vc_page *p, const struct vc_picture *cfg, const char *title,
		   const char *description)
{
	/* Below 480 nothing fits; beyond 4000 the tenths of a pixel stop being cheap. */
	uint64_t w = cfg->width < 480 ? 480 : cfg->width > 4000 ? 4000 : cfg->width;

	*p = (struct vc_page){ .cfg = cfg, .w = (int)w * 10 };
	snprintf(p->title, sizeof(p->title), "%s", title);
	snprintf(p->description, sizeof(p->description), "%s", description);
}

/* The text of a label, cut to whole code points by vc_svg_escape where snprintf cut inside one. */
static void put_head(struct vc_svg *s, const struct vc_page *p, int h)
{
	int shown = p->shown ? p->shown : p->w;

	vc_svg_put(s, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %c %c\" "
		   "width=\"%c\" height=\"%c\" role=\"img\" aria-labelledby=\"vct vcd\">\n<title "
		   "id=\"vct\">%e</title><desc id=\"vcd\">%e</desc>\n", p->w, h, shown,
		   (int)vc_muldiv((uint64_t)h, (uint64_t)shown, (uint64_t)p->w), p->title,
		   p->description);
	vc_theme_write(s, (enum vc_theme)p->cfg->theme);
	if (p->cfg->background)
		vc_svg_rect(s, "bg", (struct vc_box){ 0, 0, p->w, h }, 80);
}

int vc_page_end(struct vc_page *p, int h, struct vc_output *out, struct vc_error *err)
{
	struct vc_svg head = { 0 };
	int rc = VC_OK;

	put_head(&head, p, h + p->below);
	vc_svg_put(&p->svg, "</svg>\n");
	if (head.failed || p->svg.failed)
		rc = vc_nomem(err, "the picture");
	else {
		vc_output_write(out, head.text, head.n);
		vc_output_write(out, p->svg.text, p->svg.n);
	}
	vc_svg_fini(&head);
	vc_svg_fini(&p->svg);
	return rc;
}

/* A tick, or an arrow upwards where it fits and grows. */
void vc_verdict_icon(struct vc_svg *s, const struct vc_result *r, int x, int y)
{
	enum { GROWS = VC_OOM + 1 };
	static const struct { const char *klass; int dx, dy; const char *path; } icon[] = {
		[VC_FITS] = { "oks", 0, 55, "l3.5 3.5 6.5-8\"/>\n" },
		[VC_FLUSHES] = { "warns", 0, 55, "q2.5-5 5 0t5 0\"/>\n" },
		[VC_UNDECIDED] = { "opens", 20, 15,
				   "q.5-3 3.5-3t3 3.2q0 1.8-3 3v1m0 3.2v.1\"/>\n" },
		[VC_OOM] = { "bads", 10, 10, "l8 8m0-8l-8 8\"/>\n" },
		[GROWS] = { "warns", 10, 90, "l8-8m-6 0h6v6\"/>\n" } };
	enum vc_verdict v = vc_result_verdict(r);
	size_t k = v == VC_FITS && r->leak.steps ? GROWS : (size_t)v;

	if (v == VC_FITS && !r->info.capacity && !r->info.has_limit)
		return;
	vc_svg_put(s, "<path class=\"%s\" stroke-linecap=\"round\" d=\"M%c %c", icon[k].klass,
		   x + icon[k].dx, y + icon[k].dy);
	vc_svg_put(s, icon[k].path);
}

static int verdict_pill(struct vc_page *p, const struct vc_result *r, int y)
{
	const char *color, *word = vc_verdict_word(r, &color);
	char back[16];
	struct vc_label l = { 0, 0, VC_T_STRONG, VC_START, color, 0, false, false };
	int w = vc_svg_measure(&l, word).w + 460;
	struct vc_box b = { p->w < VC_NARROW ? VC_MARGIN : p->w - VC_MARGIN - w, y, w, 290 };

	snprintf(back, sizeof(back), "%sbg", color);
	vc_svg_rect(&p->svg, back, b, 145);
	vc_verdict_icon(&p->svg, r, b.x + 150, b.y + 95);
	l.x = b.x + 310;
	l.y = b.y + 190;
	vc_svg_label(&p->svg, &l, word);
	return w;
}

int vc_page_lines(struct vc_page *p, struct vc_label *l, const char *text, int less, int step,
		     int most)
{
	char line[600];
	int wide = l->max;

	for (int k = 1; *text; k++, l->y += step) {
		size_t n = 0, next = 0;

		l->max = k == 1 ? wide - less : wide;
		for (;;) { /* one word more while it fits */
			next = n + strspn(text + n, " ");
			next += strcspn(text + next, " ");
			snprintf(line, sizeof(line), "%.*s", (int)next, text);
			struct vc_label free = *l;
			free.max = 0;
			if (next == n || next >= sizeof(line) ||
			    (n && vc_svg_measure(&free, line).w > l->max))
				break;
			n = next;
		}
		n = k == most ? strlen(text) : n;
		snprintf(line, sizeof(line), "%.*s", (int)n, text);
		vc_svg_label(&p->svg, l, line);
		text += n + strspn(text + n, " ");
		if (!*text)
			break;
	}
	return l->y;
}

/* The lines below the title; the baseline of the last. */
static int under_title(struct vc_page *p, const char *text, const struct vc_result *r, int y)
{
	struct vc_label l = { VC_MARGIN, y, VC_T_BODY, VC_START, "mut", p->w - 2 * VC_MARGIN,
			      false, false };
	char all[1400], place[640] = "";

	if (r && !p->cfg->no_head)
		vc_place_text(r, place, sizeof(place));
	snprintf(all, sizeof(all), "%.700s%s%s", text, *text && *place ? " \xC2\xB7 " : "", place);
	return *all ? vc_page_lines(p, &l, all, 0, 180, p->w < VC_NARROW ? 4 : 2) : y;
}

int vc_page_header(struct vc_page *p, const char *title, const char *text,
		   const struct vc_result *r)
{
	bool narrow = p->w < VC_NARROW;
	int wide = p->w - 2 * VC_MARGIN, pill, y;
	struct vc_label l = { VC_MARGIN, 420, VC_T_TITLE, VC_START, "fg", wide, false, false };
	const struct vc_result *card = r && (r->info.capacity || r->info.has_limit) ? r : NULL;

	if (p->cfg->no_head)
		return under_title(p, text, r, *text ? 280 : 60) + 160;
	pill = card && !narrow ? verdict_pill(p, r, 200) + 200 : 0;
	title = *p->cfg->title ? p->cfg->title : title;
	struct vc_label whole = l;
	whole.max = 0;
	if (narrow && vc_svg_measure(&whole, title).w > 2 * wide)
		l.style = VC_T_HEAD; /* it would fill the picture */
	y = vc_page_lines(p, &l, title, pill, l.style == VC_T_HEAD ? 200 : 270, 4);
	y = under_title(p, text, r, y + 220);
	if (card && narrow) {
		verdict_pill(p, r, y + 140);
		y += 390;
	}
	return y + 160;
}

void vc_page_footer(struct vc_page *p, int y, const char *left, const char *right)
{
	struct vc_label l = { VC_MARGIN, y + 200, VC_T_MONO, VC_START, "mut", 0, false, false };
	struct vc_label r = { p->w - VC_MARGIN, y + 200, VC_T_SMALL, VC_END, "mut",
		(p->w - 2 * VC_MARGIN) / 2, false, false };
	bool narrow = p->w < VC_NARROW;

	if (!p->cfg->footer)
		return;
	vc_svg_hline(&p->svg, "rim", VC_MARGIN, y, p->w - 2 * VC_MARGIN);
	if (narrow) {
		r = (struct vc_label){ VC_MARGIN, y + 400, VC_T_SMALL,
				      VC_START,  "mut",   p->w - 2 * VC_MARGIN,
				      false,     false };
		p->below = 180;
	}
	int used = vc_svg_label(&p->svg, &r, right).w;
	l.max = p->w - 2 * VC_MARGIN - (narrow ? 0 : used + 200);
	vc_svg_label(&p->svg, &l, left);
}

int vc_page_notice(const struct vc_picture *cfg, const char *title, const char *why,
		   struct vc_output *out, struct vc_error *err)
{
	struct vc_page p;
	struct vc_box card;

	vc_page_begin(&p, cfg, title, why);
	int y = vc_page_header(&p, title, "there is nothing to draw", NULL);
	card = (struct vc_box){ VC_MARGIN, y, p.w - 2 * VC_MARGIN, 1200 };
	vc_svg_rect(&p.svg, "card", card, 80);
	vc_page_lines(&p, &(struct vc_label){ p.w / 2, y + 540, VC_T_BODY, VC_MIDDLE, "fg",
					  card.w - 400, false, false }, why, 0, 200, 3);
	vc_page_footer(&p, y + 1480, "", "vramcast " VC_VERSION);
	return vc_page_end(&p, y + 1800, out, err);
}

int vc_page_legend(struct vc_page *p, struct vc_box at, const struct vc_key *key, size_t n)
{
	int x = at.x, y = at.y;

	for (size_t i = 0; i < n; i++) {
		struct vc_label l = { 0, 0, VC_T_BODY, VC_START, "fg", at.w - 190, false, false };
		int w = vc_svg_measure(&l, key[i].text).w + 190;
		if (x > at.x && x + w > at.x + at.w) {
			x = at.x;
			y += 220;
		}
		if (key[i].shape == VC_KEY_BOX)
			vc_svg_rect(&p->svg, key[i].klass, (struct vc_box){ x, y, 130, 130 }, 25);
		else if (key[i].shape == VC_KEY_LINE)
			vc_svg_hline(&p->svg, key[i].klass, x - 20, y + 65, 170);
		else
			vc_svg_put(&p->svg, "<path class=\"%s\" d=\"M%c %ch12l-6 9z\"/>\n",
				   key[i].klass, x, y + 20);
		l.x = x + 190;
		l.y = y + 110;
		vc_svg_label(&p->svg, &l, key[i].text);
		x += w + 230;
	}
	return y + 220;
}

static struct vc_key base_key(const struct vc_result *r)
{
	return (struct vc_key){ "base", r->info.others ? "CUDA context, other processes" :
				"CUDA context", VC_KEY_BOX };
}

size_t vc_plot_keys(const struct vc_classes *c, const struct vc_columns *k, struct vc_key *key)
{
	size_t n = 0;
	bool only_other = true;

	for (int s = 0; s < VC_SLOTS; s++)
		only_other = only_other && (s == VC_SLOT_OTHER || !k->used[s]);
	for (int s = 0; s < VC_SLOTS; s++)
		if (k->used[s] && *vc_classes_name(c, (enum vc_slot)s))
			key[n++] = (struct vc_key){ vc_theme_area((enum vc_slot)s),
				only_other ? "Allocated" : vc_classes_name(c, (enum vc_slot)s),
				VC_KEY_BOX };
	if (c->r->info.context + c->r->info.others)
		key[n++] = base_key(c->r);
	key[n++] = (struct vc_key){ "hx", "Cached: reserved, not in use", VC_KEY_BOX };
	key[n++] = (struct vc_key){ "res", "Reserved", VC_KEY_LINE };
	return n;
}

size_t vc_plot_keys_more(const struct vc_classes *c, const struct vc_columns *k, struct vc_key *key,
			 size_t n)
{
	bool base = !(c->r->info.context + c->r->info.others);

	for (size_t i = 0; i < n; i++)
		base = base || !strcmp(key[i].klass, "base");
	if (!base)
		key[n++] = base_key(c->r);
	for (int s = 0; s < VC_SLOTS; s++) {
		const char *klass = vc_theme_area((enum vc_slot)s);
		const char *name = vc_classes_name(c, (enum vc_slot)s);
		bool there = !k->used[s];

		for (size_t i = 0; i < n; i++)
			there = there || (!strcmp(key[i].klass, klass) &&
					  (s == VC_SLOT_OTHER || !strcmp(key[i].text, name)));
		if (!there)
			key[n++] = (struct vc_key){ klass, name, VC_KEY_BOX };
	}
	return n;
}
