/* SPDX-License-Identifier: Apache-2.0 */
/* format.c - numbers as people read them, with integers only. */
#include "common/format.h"

/* a * b + c over d; a division of 128 bits is a call, which few need. */
static uint64_t divided(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	__extension__ unsigned __int128 p = (unsigned __int128)a * b + c;
	return p >> 64 ? (uint64_t)(p / d) : (uint64_t)p / d;
}

uint64_t vc_muldiv(uint64_t a, uint64_t b, uint64_t c)
{
	return divided(a, b, c / 2, c);
}

uint64_t vc_muldiv_down(uint64_t a, uint64_t b, uint64_t c)
{
	return divided(a, b, 0, c);
}

uint64_t vc_muldiv_up(uint64_t a, uint64_t b, uint64_t c)
{
	return divided(a, b, c - 1, c);
}

static char *fixed(uint64_t scaled, unsigned decimals, const char *unit, char *buf)
{
	uint64_t ten = decimals == 2 ? 100 : decimals == 1 ? 10 : 1;

	if (decimals)
		snprintf(buf, VC_FORMAT, "%llu.%0*llu%s", (unsigned long long)(scaled / ten),
			 (int)decimals, (unsigned long long)(scaled % ten), unit);
	else
		snprintf(buf, VC_FORMAT, "%llu%s", (unsigned long long)scaled, unit);
	return buf;
}

/* value / unit with two, one or no decimals, by size: 0.53, 12.9, 474. */
static char *decimal(uint64_t value, uint64_t unit, const char *name, char *buf)
{
	uint64_t hundredths = vc_muldiv(value, 100, unit);

	if (hundredths < 1000)
		return fixed(hundredths, 2, name, buf);
	if (vc_muldiv(value, 10, unit) < 1000)
		return fixed(vc_muldiv(value, 10, unit), 1, name, buf);
	return fixed(vc_muldiv(value, 1, unit), 0, name, buf);
}

static char *ratio(uint64_t value, uint64_t unit, const char *name, char *buf)
{
	return value % unit ? decimal(value, unit, name, buf) : fixed(value / unit, 0, name, buf);
}

char *vc_format_bytes(uint64_t b, char *buf)
{
	if (b >= VC_GIB / 10)
		return ratio(b, VC_GIB, " GiB", buf);
	if (b >= VC_MIB)
		return ratio(b, VC_MIB, " MiB", buf);
	if (b >= 1024)
		return ratio(b, 1024, " KiB", buf);
	return fixed(b, 0, " B", buf);
}

static uint64_t unit_of(uint64_t bytes, const char **name)
{
	static const struct { uint64_t unit; const char *name; } units[] = {
		{ VC_GIB, " GiB" }, { VC_MIB, " MiB" }, { 1024, " KiB" }, { 1, " B" } };
	size_t i = bytes >= VC_GIB ? 0 : bytes >= VC_MIB ? 1 : bytes >= 1024 ? 2 : 3;

	*name = units[i].name;
	return units[i].unit;
}

char *vc_format_in(uint64_t bytes, uint64_t all, char *buf)
{
	const char *name;
	uint64_t unit = unit_of(all ? all : bytes, &name);

	if (bytes < unit / 10) /* "0.00" says nothing, and "0.01" little */
		return bytes ? vc_format_bytes(bytes, buf) : ratio(0, unit, name, buf);
	return unit > 1 && bytes ? decimal(bytes, unit, name, buf) : ratio(bytes, unit, name, buf);
}

static char *pair(uint64_t a, uint64_t b, const char *between, char *buf)
{
	const char *name;
	uint64_t unit = unit_of(a > b ? a : b, &name);
	char first[VC_FORMAT], second[VC_FORMAT];

	if ((a && a < unit / 10) || (b && b < unit / 10))
		snprintf(buf, 2 * VC_FORMAT, "%s%s%s", vc_format_bytes(a, first), between,
			 vc_format_bytes(b, second));
	else
		snprintf(buf, 2 * VC_FORMAT, "%s%s%s", ratio(a, unit, "", first), between,
			 ratio(b, unit, name, second));
	return buf;
}

char *vc_format_of(uint64_t bytes, uint64_t all, char *buf)
{
	return pair(bytes, all, " of ", buf);
}

char *vc_format_band(uint64_t low, uint64_t high, char *buf)
{
	return pair(low, high, " to ", buf);
}

char *vc_format_ns(uint64_t ns, char *buf)
{
	const uint64_t s = 1000000000;

	if (ns >= 600 * s)
		snprintf(buf, VC_FORMAT, "%llu min",
			 (unsigned long long)((ns + 30 * s) / (60 * s)));
	else if (ns >= 100 * s)
		snprintf(buf, VC_FORMAT, "%llu min %llu s", (unsigned long long)(ns / (60 * s)),
			 (unsigned long long)(ns % (60 * s) / s));
	else if (ns >= s)
		return ratio(ns, s, " s", buf);
	else if (ns >= 1000000)
		return ratio(ns, 1000000, " ms", buf);
	else
		return ratio(ns, 1000, " \xC2\xB5s", buf);
	return buf;
}

char *vc_format_count(uint64_t n, char *buf)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n), o = 0;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			buf[o++] = ',';
		buf[o++] = digits[i];
	}
	buf[o] = '\0';
	return buf;
}

char *vc_format_percent(uint64_t part, uint64_t whole, char *buf)
{
	return fixed(whole ? vc_muldiv(part, 1000, whole) : 0, 1, " %", buf);
}

static uint64_t nice_step(uint64_t span, unsigned ticks, uint64_t unit)
{
	static const uint64_t lead[] = { 1, 2, 5 };

	for (uint64_t ten = 1; ten < 1000000000000ull; ten *= 10)
		for (size_t i = 0; i < 3; i++)
			if (span / (lead[i] * ten) / unit < ticks)
				return lead[i] * ten * unit;
	return span;
}

/* Where whole units would leave the axis nearly bare: halves, and of decimal units tenths and
 * fifths. */
static void finer(struct vc_axis *a, unsigned ticks)
{
	static const uint64_t part[] = { 10, 5, 2 };

	for (size_t i = 0; i < 3 && a->step == a->unit; i++)
		if (a->unit % part[i] == 0 && a->top / (a->unit / part[i]) < ticks)
			a->step = a->unit / part[i];
}

struct vc_axis vc_axis_bytes(uint64_t most, unsigned ticks)
{
	struct vc_axis a = { most ? most : 1, 1, 1, "B" };

	if (most >= 2 * VC_GIB)
		a.unit = VC_GIB, a.name = "GiB";
	else if (most >= 2 * VC_MIB)
		a.unit = VC_MIB, a.name = "MiB";
	else if (most >= 2048)
		a.unit = 1024, a.name = "KiB";
	a.step = nice_step(a.top, ticks, a.unit);
	finer(&a, ticks);
	return a;
}

struct vc_axis vc_axis_ns(uint64_t span, unsigned ticks)
{
	struct vc_axis a = { span ? span : 1, 1, 1, "ns" };

	if (span >= 600ull * 1000000000)
		a.unit = 60ull * 1000000000, a.name = "min";
	else if (span >= 2ull * 1000000000)
		a.unit = 1000000000, a.name = "s";
	else if (span >= 2000000)
		a.unit = 1000000, a.name = "ms";
	else if (span >= 2000)
		a.unit = 1000, a.name = "\xC2\xB5s";
	a.step = nice_step(a.top, ticks, a.unit);
	finer(&a, ticks);
	return a;
}

struct vc_axis vc_axis_count(uint64_t span, unsigned ticks)
{
	struct vc_axis a = { span ? span : 1, 1, 1, "events" };

	if (span >= 10000000)
		a.unit = 1000000, a.name = "M events";
	else if (span >= 10000)
		a.unit = 1000, a.name = "k events";
	a.step = nice_step(a.top, ticks, a.unit);
	return a;
}

bool vc_axis_next(const struct vc_axis *a, uint64_t *at)
{
	if (*at > a->top || a->top - *at < a->step || *at / a->step > 100)
		return false;
	*at += a->step;
	return true;
}

char *vc_axis_text(const struct vc_axis *a, uint64_t at, char *buf)
{
	if (at && a->step % a->unit)
		return fixed(vc_muldiv(at, 10, a->unit), 1, "", buf);
	snprintf(buf, VC_FORMAT, "%llu", (unsigned long long)(at / a->unit));
	return buf;
}
