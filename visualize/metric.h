/* SPDX-License-Identifier: Apache-2.0 */
/* metric.h - how wide text is, from a table of our own: pictures may not depend on the fonts of the
 * machine that writes them. */
#pragma once

#include "common/std.h"

/* The code point at *p (which moves behind it); U+FFFD for what is not UTF-8 or not allowed in
 * XML. */
uint32_t vc_utf8_next(const char **p, const char *end);

struct vc_font { int size; bool bold, mono; }; /* size in tenths of a pixel */

/* The kinds of text a picture has. */
enum vc_text_style {
	VC_T_TITLE, VC_T_HEAD, VC_T_BODY, VC_T_STRONG, VC_T_SMALL, VC_T_KPI, VC_T_MONO,
	VC_T_STYLES
};
struct vc_font vc_text_font(enum vc_text_style style);
const char *vc_text_class(enum vc_text_style style); /* in CSS */

/* In tenths of a pixel. */
int vc_text_width(const struct vc_font *f, const char *text);
/* Copy `text` so that it is at most `max` wide, with an ellipsis where it was cut: at the end, or
 * at the front when keep_end. `out` holds cap bytes. */
void vc_text_fit(const struct vc_font *f, const char *text, int max, bool keep_end, char *out,
		 size_t cap);
