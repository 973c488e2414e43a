/* SPDX-License-Identifier: Apache-2.0 */
/* metric.c - how wide text is, from a table of our own. */
#include "visualize/metric.h"

/* Advance widths of DejaVu Sans 2.37, thousandths of an em, U+0020..U+007E. It is the widest of the
 * fonts a browser or librsvg falls back to (11-17 % wider than Helvetica and Arial), so a box that
 * holds its text here holds it everywhere. */
static const uint16_t regular[95] = {
	318, 401, 460, 838, 637, 951, 780, 275, 391, 391, 500, 838, 318, 361, 318, 337,
	637, 637, 637, 637, 637, 637, 637, 637, 637, 637, 337, 337, 838, 838, 838, 531,
	1000, 685, 687, 699, 771, 632, 576, 775, 752, 295, 295, 656, 558, 863, 749, 788,
	604, 788, 695, 635, 611, 732, 685, 989, 686, 611, 686, 391, 337, 391, 838, 500,
	500, 613, 635, 550, 635, 616, 353, 635, 634, 278, 278, 580, 278, 975, 634, 612,
	635, 635, 412, 521, 393, 634, 592, 818, 592, 592, 525, 637, 337, 637, 838,
};
static const uint16_t bold[95] = {
	349, 457, 521, 838, 696, 1002, 873, 307, 458, 458, 523, 838, 380, 416, 380, 366,
	696, 696, 696, 696, 696, 696, 696, 696, 696, 696, 400, 400, 838, 838, 838, 581,
	1000, 774, 763, 734, 831, 684, 684, 821, 837, 373, 373, 775, 638, 996, 837, 851,
	733, 851, 771, 721, 683, 813, 774, 1104, 771, 725, 726, 458, 366, 458, 838, 500,
	500, 675, 716, 593, 716, 679, 436, 716, 712, 343, 343, 666, 343, 1042, 712, 688,
	716, 716, 494, 596, 479, 712, 652, 924, 646, 652, 583, 712, 366, 712, 838,
};
enum { MONO_WIDTH = 603, WIDE = 1000, OTHER_WIDTH = 700, ELLIPSIS = 0x2026, BAD = 0xFFFD };

static bool allowed(uint32_t c) /* in an XML 1.0 document */
{
	return c == '\t' || c == '\n' || (c >= 0x20 && c != 0x7F && !(c >= 0x80 && c < 0xA0) &&
		!(c >= 0xD800 && c < 0xE000) && c != 0xFFFE && c != 0xFFFF && c <= 0x10FFFF);
}

uint32_t vc_utf8_next(const char **p, const char *end)
{
	static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char c = (unsigned char)*(*p)++;
	size_t n = c < 0x80 ? 1 : c >= 0xC2 && c < 0xE0 ? 2 : (c & 0xF0) == 0xE0 ? 3 :
		(c & 0xF8) == 0xF0 ? 4 : 0;
	uint32_t code = n == 1 ? c : n ? c & (0x7Fu >> n) : BAD;

	for (size_t i = 1; i < n; i++) {
		if (*p >= end || ((unsigned char)**p & 0xC0) != 0x80)
			return BAD;
		code = code << 6 | ((unsigned char)*(*p)++ & 0x3F);
	}
	return n && code >= least[n] && allowed(code) ? code : BAD;
}

static int width_of(const struct vc_font *f, uint32_t c) /* thousandths of an em */
{
	if (c >= 0x300 && c < 0x370)
		return 0; /* combining */
	if ((c >= 0x1100 && c < 0x1160) || (c >= 0x2E80 && c < 0xA4D0) ||
	    (c >= 0xAC00 && c < 0xD7A4) || (c >= 0xF900 && c < 0xFB00) ||
	    (c >= 0xFE30 && c < 0xFE70) || (c >= 0xFF00 && c < 0xFF61) || c >= 0x1F000)
		return f->mono ? 2 * MONO_WIDTH : WIDE + 200;
	if (f->mono)
		return MONO_WIDTH;
	if (c >= 0x20 && c < 0x7F)
		return f->bold ? bold[c - 0x20] : regular[c - 0x20];
	return c == ELLIPSIS ? WIDE : OTHER_WIDTH;
}

int vc_text_width(const struct vc_font *f, const char *text)
{
	const char *end = text + strlen(text);
	int64_t sum = 0;

	while (text < end)
		sum += width_of(f, vc_utf8_next(&text, end));
	return (int)((sum * f->size + 999) / 1000);
}

void vc_text_fit(const struct vc_font *f, const char *text, int max, bool keep_end, char *out,
		 size_t cap)
{
	size_t len = strlen(text);
	struct vc_font dots = *f;
	int room = max - vc_text_width(&dots, "\xE2\x80\xA6");
	const char *from = text, *end = text + len, *p;

	if (len < cap && vc_text_width(f, text) <= max) {
		memcpy(out, text, len + 1);
		return;
	}
	if (keep_end) {
		while (from < end &&
		       (vc_text_width(f, from) > room || (size_t)(end - from) + 4 > cap))
			vc_utf8_next(&from, end);
		memcpy(out, "\xE2\x80\xA6", 3);
		memcpy(out + 3, from, (size_t)(end - from) + 1);
		return;
	}
	int64_t used = 0;
	for (p = from; p < end;) {
		const char *q = p;
		used += width_of(f, vc_utf8_next(&q, end));
		if (used * f->size / 1000 > room || (size_t)(q - text) + 4 > cap)
			break;
		p = q;
	}
	while (p > text && p[-1] == ' ')
		p--;
	memcpy(out, text, (size_t)(p - text));
	memcpy(out + (p - text), "\xE2\x80\xA6", 4);
}

static const struct { const char *klass; struct vc_font font; } styles[VC_T_STYLES] = {
	[VC_T_TITLE]  = { "h1", { 220, true, false } },
	[VC_T_HEAD]   = { "h2", { 145, true, false } },
	[VC_T_BODY]   = { "b0", { 125, false, false } },
	[VC_T_STRONG] = { "b1", { 125, true, false } },
	[VC_T_SMALL]  = { "sm", { 115, false, false } },
	[VC_T_KPI]    = { "k", { 230, true, false } },
	[VC_T_MONO]   = { "m", { 115, false, true } },
};

struct vc_font vc_text_font(enum vc_text_style style)
{
	return styles[style].font;
}

const char *vc_text_class(enum vc_text_style style)
{
	return styles[style].klass;
}
