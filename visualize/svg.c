/* SPDX-License-Identifier: Apache-2.0 */
/* svg.c - writing SVG: text with sticky failure, escapes, numbers, labels that know their place. */
#include "visualize/svg.h"

#include <stdarg.h>

#include "common/vec.h"
#include "visualize/metric.h"

void vc_svg_fini(struct vc_svg *s)
{
	free(s->text);
	free(s->box);
	*s = (struct vc_svg){ 0 };
}

void vc_svg_raw(struct vc_svg *s, const char *text, size_t n)
{
	if (s->failed)
		return;
	if (!vc_vec_room(s->text, s->cap, s->n + n + 1)) {
		s->failed = true;
		return;
	}
	memcpy(s->text + s->n, text, n);
	s->n += n;
	s->text[s->n] = '\0';
}

static void put_number(struct vc_svg *s, uint64_t v, bool negative)
{
	char buf[24];
	size_t i = sizeof(buf);

	do
		buf[--i] = (char)('0' + v % 10);
	while (v /= 10);
	if (negative)
		buf[--i] = '-';
	vc_svg_raw(s, buf + i, sizeof(buf) - i);
}

static void put_tenths(struct vc_svg *s, int v)
{
	unsigned u = v < 0 ? 0u - (unsigned)v : (unsigned)v;
	char tail[2] = { '.', (char)('0' + u % 10) };

	if (u >= 10)
		put_number(s, u / 10, v < 0);
	else if (v < 0)
		vc_svg_raw(s, "-", 1);
	else if (!u)
		vc_svg_raw(s, "0", 1);
	if (u % 10)
		vc_svg_raw(s, tail, 2);
}

void vc_svg_escape(struct vc_svg *s, const char *text, size_t n)
{
	const char *end = text + n;

	while (text < end) {
		const char *start = text;
		uint32_t c = vc_utf8_next(&text, end);
		if (c == '&')
			vc_svg_raw(s, "&amp;", 5);
		else if (c == '<')
			vc_svg_raw(s, "&lt;", 4);
		else if (c == '>')
			vc_svg_raw(s, "&gt;", 4);
		else if (c == '"')
			vc_svg_raw(s, "&quot;", 6);
		else if (c == 0xFFFD)
			vc_svg_raw(s, "\xEF\xBF\xBD", 3);
		else
			vc_svg_raw(s, start, (size_t)(text - start));
	}
}

void vc_svg_put(struct vc_svg *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	for (const char *p; *fmt; fmt = p) {
		p = strchr(fmt, '%');
		if (!p)
			p = fmt + strlen(fmt);
		vc_svg_raw(s, fmt, (size_t)(p - fmt));
		if (!*p)
			break;
		const char *text;
		int v;
		switch (p[1]) {
		case 'c':
			put_tenths(s, va_arg(ap, int));
			break;
		case 'd':
			v = va_arg(ap, int);
			put_number(s, v < 0 ? 0u - (unsigned)v : (unsigned)v, v < 0);
			break;
		case 'u':
			put_number(s, va_arg(ap, uint64_t), false);
			break;
		case 's':
			text = va_arg(ap, const char *);
			vc_svg_raw(s, text, strlen(text));
			break;
		case 'e':
			text = va_arg(ap, const char *);
			vc_svg_escape(s, text, strlen(text));
			break;
		default:
			vc_svg_raw(s, "%", 1);
		}
		p += 2;
	}
	va_end(ap);
}

struct vc_box vc_svg_measure(const struct vc_label *l, const char *text)
{
	struct vc_font f = vc_text_font(l->style);
	int w = vc_text_width(&f, text);
	struct vc_box b = { l->x, l->y - f.size * 8 / 10, w, f.size * 103 / 100 };

	if (l->max && b.w > l->max)
		b.w = l->max;
	if (l->anchor == VC_MIDDLE)
		b.x -= b.w / 2;
	else if (l->anchor == VC_END)
		b.x -= b.w;
	return b;
}

struct vc_box vc_svg_label(struct vc_svg *s, const struct vc_label *l, const char *text)
{
	static const char *const anchor[] = { "", " c", " e" };
	struct vc_font f = vc_text_font(l->style);
	struct vc_box b = vc_svg_measure(l, text);
	char cut[512];

	if (l->max)
		vc_text_fit(&f, text, l->max, l->keep_end, cut, sizeof(cut));
	vc_svg_put(s, "<text x=\"%c\" y=\"%c\" class=\"%s %s%s%s\">%e</text>\n", l->x, l->y,
		   vc_text_class(l->style), l->color ? l->color : "fg", anchor[l->anchor],
		   l->halo ? " halo" : "", l->max ? cut : text);
	s->elements++;
	vc_svg_keep_clear(s, b);
	return b;
}

void vc_svg_keep_clear(struct vc_svg *s, struct vc_box b)
{
	if (!vc_vec_room(s->box, s->box_cap, s->boxes + 1)) {
		s->failed = true;
		return;
	}
	s->box[s->boxes++] = b;
}

bool vc_svg_is_clear(const struct vc_svg *s, struct vc_box b)
{
	for (size_t i = 0; i < s->boxes; i++) {
		const struct vc_box *o = &s->box[i];
		if (b.x < o->x + o->w && o->x < b.x + b.w && b.y < o->y + o->h && o->y < b.y + b.h)
			return false;
	}
	return true;
}

void vc_svg_rect(struct vc_svg *s, const char *klass, struct vc_box b, int radius)
{
	vc_svg_put(s, "<rect class=\"%s\" x=\"%c\" y=\"%c\" width=\"%c\" height=\"%c\"", klass,
		   b.x, b.y, b.w, b.h);
	if (radius)
		vc_svg_put(s, " rx=\"%c\"", radius);
	vc_svg_raw(s, "/>\n", 3);
	s->elements++;
}

void vc_svg_hline(struct vc_svg *s, const char *klass, int x, int y, int w)
{
	vc_svg_put(s, "<path class=\"%s\" d=\"M%c %ch%c\"/>\n", klass, x, y, w);
	s->elements++;
}

void vc_svg_vline(struct vc_svg *s, const char *klass, int x, int y, int h)
{
	vc_svg_put(s, "<path class=\"%s\" d=\"M%c %cv%c\"/>\n", klass, x, y, h);
	s->elements++;
}

void vc_pen_move(struct vc_pen *p, int x, int y)
{
	vc_pen_flush(p);
	p->x = p->to = x;
	p->y = y;
	vc_svg_put(p->svg, "M%c %c", x, y);
}

void vc_pen_flush(struct vc_pen *p)
{
	if (p->to != p->x)
		vc_svg_put(p->svg, "h%c", p->to - p->x);
	p->x = p->to;
}

void vc_pen_step(struct vc_pen *p, int x, int y)
{
	p->to = x;
	if (y == p->y)
		return;
	vc_pen_flush(p);
	vc_svg_put(p->svg, "v%c", y - p->y);
	p->y = y;
}
