/* SPDX-License-Identifier: Apache-2.0 */
/* svgcheck.h - reads a picture back: is it well-formed, where do its labels stand. */
#ifndef VC_SVGCHECK_H
#define VC_SVGCHECK_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "visualize/theme.h"

enum { SVG_LABELS = 4000 };
struct svg_label { struct vc_box box; char text[320]; };
struct svg_seen {
	struct svg_label label[SVG_LABELS]; size_t labels;
	size_t elements, titles; int most_children;
	int w, h;
	char why[700];
};

static int svg_tenths(const char *tag, const char *name)
{
	char want[32];
	snprintf(want, sizeof(want), " %s=\"", name);
	const char *at = strstr(tag, want);
	double v = at ? strtod(at + strlen(want), NULL) : 0;
	return (int)(v * 10 + (v < 0 ? -0.5 : 0.5));
}

static bool svg_class_has(const char *tag, const char *klass)
{
	const char *at = strstr(tag, "class=\""), *end = at ? strchr(at + 7, '"') : NULL;
	size_t n = strlen(klass);

	for (const char *p = at ? at + 7 : NULL; p && p < end;
	     p = strchr(p, ' ') ? strchr(p, ' ') + 1 : end)
		if (!strncmp(p, klass, n) && (p[n] == ' ' || p[n] == '"'))
			return true;
	return false;
}

static void svg_unescape(char *t)
{
	static const struct { const char *name; char c; } e[] = { { "&amp;", '&' }, { "&lt;", '<' },
		{ "&gt;", '>' }, { "&quot;", '"' } };
	char *o = t;

	while (*t) {
		size_t i;
		for (i = 0; i < 4 && strncmp(t, e[i].name, strlen(e[i].name)); i++)
			;
		*o++ = i < 4 ? e[i].c : *t;
		t += i < 4 ? strlen(e[i].name) : 1;
	}
	*o = '\0';
}

/* `from`: where its tag begins, which ends before `text`. */
static void svg_add_label(struct svg_seen *v, const char *from, const char *text, size_t n)
{
	static const char *const style[VC_T_STYLES] = { "h1", "h2", "b0", "b1",
						       "sm", "k",  "m" };
	char tag[400]; /* alone, for its attributes are not those of a later one */
	snprintf(tag, sizeof(tag), "%.*s", (int)(text - from), from);
	struct vc_label l = { svg_tenths(tag, "x"),
			     svg_tenths(tag, "y"),
			     VC_T_BODY,
			     VC_START,
			     NULL,
			     0,
			     false,
			     false };
	struct svg_label *out = &v->label[v->labels];

	if (v->labels == SVG_LABELS)
		return;
	for (int i = 0; i < VC_T_STYLES; i++)
		if (svg_class_has(tag, style[i]))
			l.style = (enum vc_text_style)i;
	l.anchor = svg_class_has(tag, "c") ? VC_MIDDLE :
		   svg_class_has(tag, "e") ? VC_END :
					     VC_START;
	snprintf(out->text, sizeof(out->text), "%.*s", (int)(n < 319 ? n : 319), text);
	svg_unescape(out->text);
	out->box = vc_svg_measure(&l, out->text);
	v->labels++;
}

/* Tags nest and close, attributes are quoted, nothing is left over. Fills what was seen. */
static bool svg_read(const char *svg, struct svg_seen *v)
{
	const char *stack[64];
	int child[64] = { 0 }, depth = 0;

	memset(v, 0, sizeof(*v));
	for (const char *p = svg; (p = strchr(p, '<'));) {
		const char *end = p + 1;
		bool quoted = false;
		for (; *end && (quoted || *end != '>'); end++)
			quoted ^= *end == '"';
		if (!*end || quoted)
			return snprintf(v->why, sizeof(v->why), "unclosed tag at %.40s", p), false;
		size_t n = strcspn(p + 1 + (p[1] == '/'), " />\n");
		if (p[1] == '/') {
			if (!depth || strncmp(stack[depth - 1], p + 2, n))
				return snprintf(v->why, sizeof(v->why), "stray %.40s", p), false;
			depth--;
		} else {
			v->elements++;
			v->titles += n == 5 && !strncmp(p + 1, "title", 5);
			if (depth && ++child[depth - 1] > v->most_children)
				v->most_children = child[depth - 1];
			if (n == 4 && !strncmp(p + 1, "text", 4))
				svg_add_label(v, p, end + 1, strcspn(end + 1, "<"));
			if (n == 3 && !strncmp(p + 1, "svg", 3) && !depth) {
				const char *box = strstr(p, "viewBox=\"0 0 ");
				char *rest = NULL;
				v->w = box ? (int)(strtod(box + 13, &rest) * 10 + 0.5) : 0;
				v->h = rest ? (int)(strtod(rest, NULL) * 10 + 0.5) : 0;
			}
			if (end[-1] != '/') {
				if (depth == 64)
					return snprintf(v->why, sizeof(v->why), "too deep"), false;
				child[depth] = 0;
				stack[depth++] = p + 1;
			}
		}
		p = end;
	}
	if (depth)
		snprintf(v->why, sizeof(v->why), "never closed: %.40s", stack[depth - 1]);
	return !depth && v->elements > 3;
}

/* No label covers another, none leaves the page. */
static bool svg_labels_are_apart(struct svg_seen *v)
{
	for (size_t i = 0; i < v->labels; i++) {
		const struct vc_box *a = &v->label[i].box;
		if (a->x < 0 || a->y < 0 || a->x + a->w > v->w || a->y + a->h > v->h)
			return snprintf(v->why, sizeof(v->why), "\"%s\" leaves the page",
					v->label[i].text),
			       false;
		for (size_t j = 0; j < i; j++) {
			const struct vc_box *b = &v->label[j].box;
			if (a->x < b->x + b->w && b->x < a->x + a->w && a->y < b->y + b->h &&
			    b->y < a->y + a->h)
				return snprintf(v->why, sizeof(v->why), "\"%s\" covers \"%s\"",
						v->label[i].text, v->label[j].text),
				       false;
		}
	}
	return true;
}

#endif
