/* SPDX-License-Identifier: Apache-2.0 */
/* svg.h - writing SVG: a growing text with sticky failure, escaped text, numbers without a locale,
 * and a memory of where labels stand so that none is put over another.
 *
 * Every length is an int in tenths of a pixel: integers print the same on every machine. */
#pragma once

#include "common/error.h"
#include "common/format.h"
#include "visualize/metric.h"

struct vc_box { int x, y, w, h; };

enum vc_anchor { VC_START, VC_MIDDLE, VC_END };

struct vc_label {
	int x, y;              /* baseline */
	enum vc_text_style style;
	enum vc_anchor anchor;
	const char *color;     /* class: "fg", "mut", "bad", ...; NULL: "fg" */
	int max; /* widest it may become, then it is cut with an ellipsis; 0: no limit */
	bool keep_end;         /* cut at the front: paths are told apart by their ends */
	bool halo;             /* outlined in the background colour, to stand over data */
};

struct vc_svg {
	char *text; size_t n, cap;
	struct vc_box *box; size_t boxes, box_cap; /* labels and other things not to be covered */
	size_t titles, elements;
	bool failed;           /* sticky: no memory */
};

void vc_svg_fini(struct vc_svg *s);

/* Append. %c an int in tenths as "12.3", %d an int, %u a uint64_t, %s text as it is, %e text
 * escaped, %% a percent sign. */
void vc_svg_put(struct vc_svg *s, const char *fmt, ...);
void vc_svg_raw(struct vc_svg *s, const char *text, size_t n);
void vc_svg_escape(struct vc_svg *s, const char *text, size_t n); /* XML-safe UTF-8 */

/* Write a label; returns the box it takes and remembers it. */
struct vc_box vc_svg_label(struct vc_svg *s, const struct vc_label *l, const char *text);
/* The same for a label that is cut at its end, if at all, and stands on nothing. */
#define vc_svg_say(s, text, x, y, style, anchor, color, max) \
	vc_svg_label(s, &(struct vc_label){ x, y, style, anchor, color, max, false, false }, text)
/* The box a label would take. */
struct vc_box vc_svg_measure(const struct vc_label *l, const char *text);
void vc_svg_keep_clear(struct vc_svg *s, struct vc_box b);        /* remember a box */
bool vc_svg_is_clear(const struct vc_svg *s, struct vc_box b);    /* nothing remembered there */

void vc_svg_rect(struct vc_svg *s, const char *klass, struct vc_box b, int radius);
void vc_svg_hline(struct vc_svg *s, const char *klass, int x, int y, int w);
void vc_svg_vline(struct vc_svg *s, const char *klass, int x, int y, int h);

/* A path of horizontal and vertical strokes; equal neighbours merge. */
struct vc_pen { struct vc_svg *svg; int x, y, to; };
void vc_pen_move(struct vc_pen *p, int x, int y);
void vc_pen_step(struct vc_pen *p, int x, int y); /* along to x, then up or down to y */
void vc_pen_flush(struct vc_pen *p);

