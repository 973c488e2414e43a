/* SPDX-License-Identifier: Apache-2.0 */
/* drawn.h - what a picture says, to be held against what was reported. */
#ifndef VC_DRAWN_H
#define VC_DRAWN_H

#include "tests/support/svgcheck.h"
#include "tests/support/test.h"

static struct svg_seen seen;

static void read_back(const char *what, const char *sink, const char *text, size_t n)
{
	if (n > 1000000)
		fail_msg("%s, %s: %zu bytes", what, sink, n);
	if (!svg_read(text, &seen) || !svg_labels_are_apart(&seen))
		fail_msg("%s, %s: %s", what, sink, seen.why);
	if (seen.most_children > 200 || seen.titles > 2000)
		fail_msg("%s, %s: %d children, %zu tooltips", what, sink, seen.most_children,
			 seen.titles);
	/* What is there is not written as nothing. */
	for (size_t i = 0; i < seen.labels; i++)
		if (strstr(seen.label[i].text, "0.00 ") == seen.label[i].text ||
		    strstr(seen.label[i].text, " 0.00 "))
			fail_msg("%s, %s: \"%s\"", what, sink, seen.label[i].text);
	/* The answer is whole: neither it nor what stands below it is cut, but for long names. */
	for (size_t i = 0; i < seen.labels && i < 3; i++)
		if (strstr(seen.label[i].text, "\xE2\x80\xA6") &&
		    strlen(strrchr(seen.label[i].text, ' ') ? strrchr(seen.label[i].text, ' ') :
			   seen.label[i].text) < 40)
			fail_msg("%s, %s: \"%s\" is cut", what, sink, seen.label[i].text);
}

__attribute__((unused)) static bool is_notice(void)
{
	for (size_t i = 0; i < seen.labels && i < 8; i++)
		if (!strcmp(seen.label[i].text, "there is nothing to draw"))
			return true;
	return false;
}

/* The label behind the one that begins like this; "" none. */
__attribute__((unused)) static const char *after(const char *label)
{
	for (size_t i = 0; i + 1 < seen.labels; i++)
		if (!strncmp(seen.label[i].text, label, strlen(label)))
			return seen.label[i + 1].text;
	return "";
}

__attribute__((unused)) static double number(const char *text)
{
	const char *iec = strstr(text, "iB"); /* the first: "25 MiB, 1 GiB of it stranded" */
	char k = iec && iec > text ? iec[-1] : ' ';
	double unit = k == 'G' ? 1 << 30 : k == 'M' ? 1 << 20 : k == 'K' ? 1 << 10 : 1;

	return strtod(text, NULL) * unit;
}

/* Of the plot of a part of the run: what its heading begins with. */
#define PART "5 % of the run "

/* Bytes at height y (in tenths), from two labels of the axis at the left of the plot, or of that of
 * the part. */
static bool axis_of(bool part, double *zero, double *per)
{
	double y0 = -1, y1 = -1, v1 = 0, unit = 0;

	for (size_t i = 0; i < seen.labels; i++) {
		const struct svg_label *l = &seen.label[i];
		const char *t = l->text;

		if (!strcmp(t, "If it goes on like this")) /* a plot of its own */
			break;
		if (!strncmp(t, PART, strlen(PART))) {
			if (!part)
				break;
			y0 = y1 = -1;
			v1 = 0;
		}
		unit = !strcmp(t, "GiB") ? 1 << 30 : !strcmp(t, "MiB") ? 1 << 20 :
		       !strcmp(t, "KiB") ? 1 << 10 : unit;
		if (l->box.x + l->box.w > 900 || strspn(t, "0123456789.") != strlen(t) || !*t)
			continue;
		if (!strcmp(t, "0") && y0 < 0)
			y0 = l->box.y;
		else if (y0 >= 0 && l->box.y < y0 && strtod(t, NULL) > v1) {
			v1 = strtod(t, NULL);
			y1 = l->box.y;
		}
	}
	if (y0 < 0 || y1 < 0 || !(unit > 0))
		return false;
	*zero = y0;
	*per = v1 * unit / (y0 - y1);
	return true;
}

static bool axis(double *zero, double *per)
{
	return axis_of(false, zero, per);
}

/* The highest point of the line whose coordinates begin here, in tenths. */
static double top_of(const char *line)
{
	char *end;
	double y, best;

	strtod(line, &end);
	y = best = strtod(end, &end);
	for (const char *p = end; *p && *p != '"'; p++) {
		y += *p == 'v' ? strtod(p + 1, NULL) : 0;
		best = y < best ? y : best;
	}
	return best * 10;
}

/* That of the last line that begins like this: the first is that of the legend. */
__attribute__((unused)) static double top_of_line(const char *text, const char *line)
{
	const char *at = NULL;

	for (const char *p = text; (p = strstr(p, line)); p++)
		at = p;
	assert_non_null(at);
	return top_of(at + strlen(line));
}

/* The first line of the grid is the floor of the plot. */
static double floor_of(const char *text)
{
	const char *base = strstr(text, "class=\"gr\" d=\"M");
	char *end;
	assert_non_null(base);
	strtod(base + 15, &end);
	return strtod(end, NULL) * 10;
}

#endif
