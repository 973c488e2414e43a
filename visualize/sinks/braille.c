/* SPDX-License-Identifier: Apache-2.0 */
/* braille.c - the timeline for a terminal: dots of braille, or plain characters. */

#include "common/io.h"
#include "common/utf8.h"
#include "visualize/scene.h"

struct config { uint64_t width, height; bool color, ascii; };

static const struct vc_param params[] = {
	{ "width", VC_P_UINT, offsetof(struct config, width), "80", "columns of the terminal",
	  NULL },
	{ "height", VC_P_UINT, offsetof(struct config, height), "16", "lines of the plot", NULL },
	{ "color", VC_P_BOOL, offsetof(struct config, color), "false", "colours of the terminal",
	  NULL },
	{ "ascii", VC_P_BOOL, offsetof(struct config, ascii), "false", "no braille, only ASCII",
	  NULL },
	VC_PARAM_END };

enum { AXIS = 11, BLUE = 34, YELLOW = 33, RED = 31, GRAY = 90 };

struct screen {
	const struct config *cfg;
	const struct vc_result *r;
	struct vc_columns k;
	struct vc_output *out;
	int cols, rows;
	uint64_t top, base, capacity;
	uint8_t *dot; /* rows * 4 by cols * 2: 1 allocated, 2 reserved line, 4 refusal */
};

static uint8_t *dot(const struct screen *s, int x, int y)
{
	return &s->dot[(size_t)y * (size_t)(s->cols * 2) + (size_t)x];
}

static int height_of(const struct screen *s, uint64_t bytes)
{
	return (int)vc_muldiv(bytes > s->top ? s->top : bytes, (uint64_t)(s->rows * 4), s->top);
}

static void plot_column(struct screen *s, const struct vc_column *c, int x, int *last)
{
	int h = s->rows * 4, a = height_of(s, s->base + c->allocated_max);
	int r = height_of(s, s->base + c->reserved_max);

	/* A byte is a byte: what is there shows at least one dot. */
	a = c->allocated_max && !a ? 1 : a;
	for (int y = 0; y < a && y < h; y++)
		*dot(s, x, h - 1 - y) |= 1;
	r = r >= h ? h - 1 : r < 0 ? 0 : r;
	int from = *last < 0 || *last == r ? r :
		   *last < r               ? *last + 1 :
					     r,
	    to = *last > r ? *last - 1 : r;
	for (int y = from; y <= to; y++)
		*dot(s, x, h - 1 - y) |= 2;
	*last = r;
}

static void plot(struct screen *s)
{
	const struct vc_oom_report *o = &s->r->oom;
	int last = -1;

	for (size_t i = 0; i < s->k.n; i++)
		for (uint32_t x = s->k.at[i].from; x < s->k.at[i].to; x++)
			plot_column(s, &s->k.at[i], (int)x, &last);
	if (!o->happened)
		return;
	uint32_t x = vc_columns_x(&s->k, s->k.by_time ? o->time_ns : o->event);
	x = x < s->k.width ? x : s->k.width - 1;
	for (int y = 0; y < s->rows * 4; y++)
		*dot(s, (int)x, y) |= 4;
}

static void put_cell(struct screen *s, int cx, int cy, bool capacity)
{
	/* Bits of a braille cell by column and row, U+2800 + bits. */
	static const uint8_t bit[4][2] = { { 1, 8 }, { 2, 16 }, { 4, 32 }, { 64, 128 } };
	int bits = 0, seen = 0, live = 0;
	char text[16];

	for (int y = 0; y < 4; y++)
		for (int x = 0; x < 2; x++) {
			uint8_t d = *dot(s, cx * 2 + x, cy * 4 + y);
			bits |= d ? bit[y][x] : 0;
			seen |= d;
			live += d & 1;
		}
	int color = seen & 4 ? RED : live ? BLUE : seen ? 0 : capacity ? YELLOW : 0;
	if (!seen)
		snprintf(text, sizeof(text), "%s",
			 !capacity     ? " " :
			 s->cfg->ascii ? "-" :
					 "\xE2\x95\x8C");
	else if (s->cfg->ascii)
		snprintf(text, sizeof(text), "%s",
			 seen & 4 ? "!" :
			 live > 3 ? "#" :
			 live     ? ":" :
				    "_");
	else
		snprintf(text, sizeof(text), "\xE2%c%c", 0xA0 + (bits >> 6), 0x80 + (bits & 63));
	if (s->cfg->color && color)
		vc_output_printf(s->out, "\x1b[%dm%s\x1b[0m", color, text);
	else
		vc_output_text(s->out, text);
}

static void put_rows(struct screen *s)
{
	int cap = s->capacity ? s->rows - 1 - height_of(s, s->capacity) / 4 : -1;
	struct vc_axis a = vc_axis_bytes(s->top, (unsigned)(s->rows / 3 + 1));
	const char *bar = s->cfg->ascii ? "|" : "\xE2\x94\x82";
	char buf[VC_FORMAT], unit[VC_FORMAT + 16];

	for (int y = 0; y < s->rows; y++) {
		*unit = '\0';
		uint64_t t = 0;
		for (bool more = true; more; more = vc_axis_next(&a, &t))
			if (s->rows - 1 - height_of(s, t) / 4 == y && height_of(s, t) < s->rows * 4)
				snprintf(unit, sizeof(unit), "%s %s", vc_axis_text(&a, t, buf),
					 a.name);
		vc_output_printf(s->out, "%*s %s", AXIS - 2, unit, bar);
		for (int x = 0; x < s->cols; x++)
			put_cell(s, x, y, y == cap);
		vc_output_text(s->out, y == cap ? " capacity\n" : "\n");
	}
}

/* Without UTF-8: what the words of pictures have beyond ASCII. */
static void to_ascii(char *text)
{
	static const struct { const char *utf8, *plain; } known[] = {
		{ "\xC2\xB7", "-" }, { "\xC2\xB5", "u" }, { "\xC3\x97", "x" },
		{ "\xE2\x80\x93", "-" } };
	char *to = text;

	while (*text) {
		size_t i = 0, n = sizeof(known) / sizeof(*known);

		while (i < n && strncmp(text, known[i].utf8, strlen(known[i].utf8)))
			i++;
		if (i < n) {
			*to++ = *known[i].plain;
			text += strlen(known[i].utf8);
		} else {
			*to++ = (unsigned char)*text < 0x80 ? *text : '?';
			text++;
		}
	}
	*to = '\0';
}

static void put_axis(struct screen *s)
{
	struct vc_axis a = s->k.by_time ? vc_axis_ns(s->k.span, 6) : vc_axis_count(s->k.span, 6);
	char line[512], buf[VC_FORMAT];
	int width = s->cols < 480 ? s->cols : 480;

	vc_output_printf(s->out, "%*s%s", AXIS - 1, "", s->cfg->ascii ? "+" : "\xE2\x94\x94");
	for (int i = 0; i < s->cols; i++)
		vc_output_text(s->out, s->cfg->ascii ? "-" : "\xE2\x94\x80");
	memset(line, ' ', sizeof(line));
	uint64_t t = 0;
	for (bool more = true; more; more = vc_axis_next(&a, &t)) {
		int x = (int)vc_muldiv(t, (uint64_t)width, s->k.span);
		vc_axis_text(&a, t, buf);
		strncat(buf, " ", 2);
		strncat(buf, a.name, 12);
		if (s->cfg->ascii)
			to_ascii(buf);
		if (x + (int)strlen(buf) <= width + 4)
			memcpy(line + x, buf, strlen(buf));
	}
	int end = width + 4;
	while (end && line[end - 1] == ' ')
		end--;
	line[end] = '\0';
	vc_output_printf(s->out, "\n%*s%s\n", AXIS, "", line);
}

/* A text in lines as wide as the terminal, cut between words. */
static void put_lines(struct screen *s, const char *text)
{
	size_t wide = (size_t)s->cols + AXIS + 10;

	while (*text) {
		size_t n = 0, next = 0, shown = 0;

		for (; text[next] && (shown < wide || !n); next++) {
			shown += (text[next] & 0xC0) != 0x80;
			if (text[next] == ' ')
				n = next;
		}
		n = text[next] && n ? n : next;
		vc_output_printf(s->out, "%.*s\n", (int)n, text);
		text += n + strspn(text + n, " ");
	}
}

static void put_head(struct screen *s)
{
	char title[256], run[640];
	const char *color;
	static const struct {
		const char *name;
		int code;
	} codes[] = { { "ok", 32 }, { "warn", 33 }, { "bad", 31 } };
	int code = 0;

	vc_answer_text(s->r, s->k.by_time, title, sizeof(title));
	vc_place_text(s->r, run, sizeof(run));
	vc_utf8_line(title);
	vc_utf8_line(run);
	if (s->cfg->ascii) {
		to_ascii(title);
		to_ascii(run);
	}
	vc_verdict_word(s->r, &color);
	for (size_t i = 0; i < 3; i++)
		code = s->cfg->color && !strcmp(codes[i].name, color) ? codes[i].code : code;
	if (code)
		vc_output_printf(s->out, "\x1b[%dm", code);
	put_lines(s, title);
	vc_output_text(s->out, code ? "\x1b[0m" : "");
	put_lines(s, run);
	vc_output_text(s->out, "\n");
}

static int show(struct screen *s, struct vc_error *err)
{
	uint64_t most = s->k.reserved > s->k.allocated ? s->k.reserved : s->k.allocated;

	s->base = s->r->info.context + s->r->info.others;
	most += s->base;
	s->capacity =
		s->r->info.capacity && most >= s->r->info.capacity / 4 ? s->r->info.capacity : 0;
	s->top = s->capacity > most ? s->capacity : most ? most : 1;
	s->top = s->top > 1ull << 60 ? 1ull << 60 : s->top; /* broken results must not wrap */
	s->top += s->top / 16 + 1;
	s->dot = calloc((size_t)s->rows * 4 * (size_t)s->cols * 2, 1);
	VC_HAVE(s->dot, "the timeline", err);
	put_head(s);
	plot(s);
	put_rows(s);
	put_axis(s);
	vc_output_printf(s->out, "\n%*s%s\n", AXIS, "",
			 s->cfg->ascii ? "# allocated   _ reserved   ! out of memory" :
				 "filled: allocated   line above: reserved by the allocator");
	free(s->dot);
	return VC_OK;
}

static int braille_write(const struct vc_result *runs, size_t n, const void *config,
			 struct vc_output *out, struct vc_error *err)
{
	struct config fallback = { 80, 16, false, false };
	struct screen s = { .cfg = config ? config : &fallback, .r = runs, .out = out };
	uint64_t w = s.cfg->width < 40 ? 40 : s.cfg->width > 400 ? 400 : s.cfg->width;
	uint64_t h = s.cfg->height < 4 ? 4 : s.cfg->height > 100 ? 100 : s.cfg->height;
	struct vc_classes none = { .r = runs };

	s.cols = (int)w - AXIS - 10;
	s.rows = (int)h;
	if (!n || !runs->curve.n) {
		if (n && runs->stats.peak_reserved) { /* no line, but an answer */
			put_head(&s);
			vc_output_text(out, "It is the heap at one moment: -t flame says who holds "
				       "it, -t ledger and -t segments draw it.\n");
			return VC_OK;
		}
		vc_output_text(out,
			       "there is nothing to draw: the trace has no request for memory\n");
		return VC_OK;
	}
	int rc = vc_columns_init(&s.k, &none, vc_curve_has_times(runs), (uint32_t)s.cols * 2,
				 NULL, err);
	if (!rc)
		rc = show(&s, err);
	vc_columns_fini(&s.k);
	return rc;
}

const struct vc_sink_type vc_sink_braille = {
	.name = "braille", .extension = "txt", .summary = "the timeline as text, for a terminal",
	.params = params, .config_size = sizeof(struct config),
	.observers = VC_READS("timeline", "oom", "moment", "steps"),
	.write = braille_write,
};
