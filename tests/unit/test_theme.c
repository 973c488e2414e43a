/* SPDX-License-Identifier: Apache-2.0 */
/* test_theme.c - colours that can be told apart: contrast by the formulas of WCAG 2.2, distances
 * under three colour blindnesses and in grey. Read from a picture as it is written. */
#include "tests/support/test.h"

#include <math.h>

#include "visualize/theme.h"

static const char *const fills[] = { "base", "ch", "cw", "cs", "cg", "ca", "ct", "ck", "cl", "co" };
enum { FILLS = sizeof(fills) / sizeof(*fills) };

struct rgb { double r, g, b; };

static double linear(unsigned v)
{
	double x = v / 255.0;

	return x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4);
}

/* The value of a property of a class, the last that is given: ".cw{fill:#0072B2}". */
static struct rgb color_of(const char *style, const char *klass, const char *property)
{
	char want[80];
	unsigned v = 0, found = 0;

	snprintf(want, sizeof(want), ".%s{", klass);
	for (const char *at = style; (at = strstr(at, want)); at++) {
		const char *end = strchr(at, '}'), *p = strstr(at, property);

		if (p && p < end && p[strlen(property)] == ':' && p[strlen(property) + 1] == '#') {
			const char *hex = p + strlen(property) + 2;
			size_t n = strspn(hex, "0123456789ABCDEFabcdef");

			v = (unsigned)strtoul(hex, NULL, 16);
			if (n == 3)
				v = (v & 0xF00) * 0x1100 | (v & 0xF0) * 0x110 | (v & 0xF) * 0x11;
			found++;
		}
	}
	if (!found)
		fail_msg("no %s of .%s", property, klass);
	return (struct rgb){ linear(v >> 16), linear(v >> 8 & 255), linear(v & 255) };
}

static double luminance(struct rgb c)
{
	return 0.2126 * c.r + 0.7152 * c.g + 0.0722 * c.b;
}

static double contrast(struct rgb a, struct rgb b)
{
	double x = luminance(a), y = luminance(b);

	return x > y ? (x + 0.05) / (y + 0.05) : (y + 0.05) / (x + 0.05);
}

static char *style_of(enum vc_theme theme)
{
	struct vc_svg s = { 0 };

	vc_theme_write(&s, theme);
	assert_false(s.failed);
	s.text[s.n] = '\0';
	return s.text;
}

static const struct { enum vc_theme theme; const char *name; } themes[] = {
	{ VC_THEME_LIGHT, "light" }, { VC_THEME_DARK, "dark" }, { VC_THEME_PRINT, "print" } };

static void texts_have_a_contrast_of_four_and_a_half(void **unused)
{
	static const struct { const char *text, *on; } pair[] = {
		{ "fg", "bg" }, { "fg", "card" }, { "mut", "bg" }, { "mut", "card" },
		{ "capt", "bg" }, { "bad", "bg" }, { "bad", "card" }, { "ok", "bg" },
		{ "warn", "bg" }, { "open", "bg" }, { "bad", "badbg" }, { "ok", "okbg" },
		{ "warn", "warnbg" }, { "open", "openbg" }, { "onc", "busy" }, { "obase", "base" },
		{ "oh", "ch" },
		{ "ow", "cw" }, { "os", "cs" }, { "og", "cg" }, { "oa", "ca" }, { "ot", "ct" },
		{ "ok1", "ck" }, { "ol", "cl" }, { "oo", "co" }, { "fg", "nh" }, { "fg", "nw" },
		{ "fg", "ns" },
		{ "fg", "ng" }, { "fg", "na" }, { "fg", "nt" }, { "fg", "nk" }, { "fg", "nl" },
		{ "fg", "no" } };

	(void)unused;
	for (size_t t = 0; t < 3; t++) {
		char *style = style_of(themes[t].theme);

		for (size_t i = 0; i < sizeof(pair) / sizeof(*pair); i++) {
			double c = contrast(color_of(style, pair[i].text, "fill"),
					    color_of(style, pair[i].on, "fill"));

			if (c < 4.5)
				fail_msg("%s: .%s on .%s has %.2f", themes[t].name, pair[i].text,
					 pair[i].on, c);
		}
		free(style);
	}
}

static void what_is_drawn_has_a_contrast_of_three(void **unused)
{
	static const struct { const char *klass, *property; } drawn[] = {
		{ "base", "fill" }, { "ch", "fill" }, { "cw", "fill" }, { "cs", "fill" },
		{ "cg", "fill" },
		{ "ca", "fill" }, { "ct", "fill" }, { "ck", "fill" }, { "cl", "fill" },
		{ "co", "fill" }, { "lane", "fill" }, { "busy", "fill" }, { "bad", "fill" },
		{ "pin", "fill" }, { "mng", "fill" },
		{ "res", "stroke" }, { "capl", "stroke" }, { "bads", "stroke" },
		{ "oks", "stroke" }, { "warns", "stroke" }, { "opens", "stroke" },
		{ "ht", "stroke" }, { "ax", "stroke" },
		{ "nh", "stroke" },
		{ "nw", "stroke" }, { "ns", "stroke" }, { "ng", "stroke" }, { "na", "stroke" },
		{ "nt", "stroke" }, { "nk", "stroke" }, { "nl", "stroke" }, { "no", "stroke" } };

	(void)unused;
	for (size_t t = 0; t < 3; t++) {
		char *style = style_of(themes[t].theme);
		struct rgb bg = color_of(style, "bg", "fill");

		for (size_t i = 0; i < sizeof(drawn) / sizeof(*drawn); i++) {
			double c = contrast(color_of(style, drawn[i].klass, drawn[i].property), bg);

			if (c < 3)
				fail_msg("%s: .%s has %.2f", themes[t].name, drawn[i].klass, c);
		}
		free(style);
	}
}

/* Machado, Oliveira and Fernandes 2009, severity 1; the first is normal sight. */
static const double sight[4][3][3] = {
	{ { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } },
	{ { 0.152286, 1.052583, -0.204868 }, { 0.114503, 0.786281, 0.099216 },
	  { -0.003882, -0.048116, 1.051998 } },
	{ { 0.367322, 0.860646, -0.227968 }, { 0.280085, 0.672501, 0.047413 },
	  { -0.011820, 0.042940, 0.968881 } },
	{ { 1.255528, -0.076749, -0.178779 }, { -0.078411, 0.930809, 0.147602 },
	  { 0.004733, 0.691367, 0.303900 } } };

static double curve(double t)
{
	return t > 0.008856 ? cbrt(t) : 7.787 * t + 16.0 / 116;
}

static double clamp(double v)
{
	return v < 0 ? 0 : v > 1 ? 1 : v;
}

struct lab { double l, a, b; };

static struct lab seen(struct rgb c, const double m[3][3])
{
	double r = clamp(m[0][0] * c.r + m[0][1] * c.g + m[0][2] * c.b);
	double g = clamp(m[1][0] * c.r + m[1][1] * c.g + m[1][2] * c.b);
	double b = clamp(m[2][0] * c.r + m[2][1] * c.g + m[2][2] * c.b);
	double x = curve((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047);
	double y = curve(0.2126 * r + 0.7152 * g + 0.0722 * b);
	double z = curve((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883);

	return (struct lab){ 116 * y - 16, 500 * (x - y), 200 * (y - z) };
}

static struct lab seen_fill(const char *style, const char *klass, size_t eyes)
{
	return seen(color_of(style, klass, "fill"), sight[eyes]);
}

static double apart(struct lab a, struct lab b)
{
	return sqrt((a.l - b.l) * (a.l - b.l) + (a.a - b.a) * (a.a - b.a) +
		    (a.b - b.b) * (a.b - b.b));
}

/* CIE76: about 2 can just be seen side by side. */
static void layers_are_apart_whoever_looks(void **unused)
{
	(void)unused;
	for (size_t t = 0; t < 2; t++) {
		char *style = style_of(themes[t].theme);

		for (size_t v = 0; v < 4; v++)
			for (size_t i = 0; i < FILLS; i++)
				for (size_t j = 0; j < i; j++) {
					double d = apart(seen_fill(style, fills[i], v),
							 seen_fill(style, fills[j], v));
					if (d < 12)
						fail_msg("%s, sight %zu: .%s and .%s: %.1f",
							 themes[t].name, v, fills[i], fills[j], d);
				}
		free(style);
	}
}

/* On paper without colour: those that touch by 8, any two by 2. */
static void layers_are_apart_in_grey(void **unused)
{
	(void)unused;
	for (size_t t = 0; t < 3; t++) {
		char *style = style_of(themes[t].theme);

		for (size_t i = 0; i < FILLS; i++)
			for (size_t j = 0; j < i; j++) {
				double d = fabs(seen_fill(style, fills[i], 0).l -
						seen_fill(style, fills[j], 0).l);
				if (d < (i == j + 1 ? 8 : 2))
					fail_msg("%s: .%s and .%s are %.1f apart in grey",
						 themes[t].name, fills[i], fills[j], d);
			}
		free(style);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_have_a_contrast_of_four_and_a_half),
		cmocka_unit_test(what_is_drawn_has_a_contrast_of_three),
		cmocka_unit_test(layers_are_apart_whoever_looks),
		cmocka_unit_test(layers_are_apart_in_grey),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
