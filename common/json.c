/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - see json.h. RFC 8259, as a pull parser over the input's window. */
#include "common/json.h"

#include <errno.h>

#include "common/utf8.h"
#include "common/vec.h"

#define DEPTH_MAX 512
#define TEXT_MAX ((size_t)64 << 20)

enum want { VALUE, FIRST_VALUE, KEY, FIRST_KEY, MORE, DONE };

struct vc_json_state {
	struct vc_input *in;
	const uint8_t *start, *p, *end; /* the window at hand */
	enum want want;
	unsigned depth;
	bool object[DEPTH_MAX];         /* what is open at each level: object or array */
	char *buf; size_t n, cap;       /* the text being decoded */
	bool unwanted;                  /* what comes is skipped: checked, not kept */
};

static uint64_t offset(const struct vc_json_state *s)
{
	return vc_input_offset(s->in) + (uint64_t)(s->p - s->start);
}

static int bad(const struct vc_json_state *s, const char *what, struct vc_error *err)
{
	return vc_fail(err, VC_EFORMAT, "%s: damaged JSON at byte %llu: %s", vc_input_name(s->in),
		       (unsigned long long)offset(s), what);
}

/* More than what is at hand; 1: there is, 0: the input is at its end. The unread rest stays. */
static int more(struct vc_json_state *s, struct vc_error *err)
{
	size_t have = (size_t)(s->end - s->p), got;

	vc_input_skip(s->in, (size_t)(s->p - s->start));
	s->p = s->start = vc_input_peek(s->in, have + 1, &got, err);
	s->end = s->start ? s->start + got : NULL;
	if (!s->start)
		return err ? (int)err->status : VC_EIO;
	return got > have;
}

static int too_early(const struct vc_json_state *s, struct vc_error *err)
{
	return vc_fail(err, VC_EFORMAT, "%s: the JSON ends too early, after %llu bytes%s",
		       vc_input_name(s->in), (unsigned long long)offset(s),
		       vc_input_truncated(s->in) ? " (the compressed file is cut off)" : "");
}

/* The next byte that is not white space, not consumed; 0 at the end of the input. */
static int next_byte_slowly(struct vc_json_state *s, struct vc_error *err)
{
	int rc;

	for (;;) {
		while (s->p < s->end &&
		       (*s->p == ' ' || *s->p == '\n' || *s->p == '\t' || *s->p == '\r'))
			s->p++;
		if (s->p < s->end)
			return *s->p;
		rc = more(s, err);
		if (rc <= 0)
			return rc;
	}
}

static inline int next_byte(struct vc_json_state *s, struct vc_error *err)
{
	return s->p < s->end && *s->p > ' ' ? *s->p : next_byte_slowly(s, err);
}

static int keep(struct vc_json_state *s, const void *data, size_t n, struct vc_error *err)
{
	if (s->unwanted)
		return 0;
	if (s->n + n > TEXT_MAX)
		return bad(s, "a text of more than 64 MiB", err);
	VC_HAVE(vc_vec_room(s->buf, s->cap, s->n + n + 1), "a JSON text", err);
	memcpy(s->buf + s->n, data, n);
	s->n += n;
	s->buf[s->n] = '\0';
	return 0;
}

/* ---- texts ---- */

static int need(struct vc_json_state *s, size_t n, struct vc_error *err)
{
	while ((size_t)(s->end - s->p) < n) {
		int rc = more(s, err);

		if (rc <= 0)
			return rc ? rc : too_early(s, err);
	}
	return 0;
}

static int hex4(const uint8_t *p, uint32_t *v)
{
	*v = 0;
	for (int i = 0; i < 4; i++) {
		int d = p[i] >= '0' && p[i] <= '9' ? p[i] - '0' : (p[i] | 32) - 'a' + 10;

		if (d < 0 || d > 15 || (d > 9 && (p[i] | 32) < 'a'))
			return -1;
		*v = *v << 4 | (uint32_t)d;
	}
	return 0;
}

/* A \u escape, a pair of them for characters beyond 16 bits; a half alone becomes U+FFFD. */
static int unicode_escape(struct vc_json_state *s, struct vc_error *err)
{
	uint32_t c, low;
	char bytes[4];

	VC_TRY(need(s, 6, err));
	if (hex4(s->p + 2, &c))
		return bad(s, "a \\u escape without four hexadecimal digits", err);
	s->p += 6;
	if (c >= 0xd800 && c < 0xdc00) {
		VC_TRY(need(s, 2, err));
		if (s->p[0] == '\\' && s->p[1] == 'u')
			VC_TRY(need(s, 6, err));
		if (s->p[0] == '\\' && s->p[1] == 'u' && !hex4(s->p + 2, &low) && low >= 0xdc00 &&
		    low < 0xe000) {
			c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
			s->p += 6;
		}
	}
	if (c >= 0xd800 && c < 0xe000)
		c = 0xfffd;
	return keep(s, bytes, vc_utf8_put(c, bytes), err);
}

static int escape(struct vc_json_state *s, struct vc_error *err)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;
	VC_TRY(need(s, 2, err));
	if (s->p[1] == 'u')
		return unicode_escape(s, err);
	at = s->p[1] ? strchr(from, s->p[1]) : NULL;
	if (!at)
		return bad(s, "an unknown escape in a text", err);
	s->p += 2;
	return keep(s, &to[at - from], 1, err);
}

/* Where a text has something else than plain characters: its end, an escape, or what must not be
 * in it. Eight bytes at a time: a byte below n borrows from its highest bit in x - n, which no
 * byte did before the first such one. */
static const uint8_t *plain_end(const uint8_t *p, const uint8_t *end)
{
	const uint64_t ones = UINT64_MAX / 255, high = ones << 7;
	uint64_t x, quote, slash;

	for (; end - p >= 8; p += 8) {
		memcpy(&x, p, 8);
		quote = x ^ ones * '"';
		slash = x ^ ones * '\\';
		x = (((x - ones * 0x20) & ~x) | ((quote - ones) & ~quote) |
		     ((slash - ones) & ~slash)) & high;
		if (x)
			return p + __builtin_ctzll(x) / 8;
	}
	while (p < end && *p != '"' && *p != '\\' && *p >= 0x20)
		p++;
	return p;
}

static int text(struct vc_json *j, struct vc_error *err)
{
	struct vc_json_state *s = j->state;
	const uint8_t *q;
	int rc;

	s->p++;
	s->n = 0;
	for (;;) {
		q = plain_end(s->p, s->end);
		rc = keep(s, s->p, (size_t)(q - s->p), err);
		s->p = q;
		if (rc)
			return rc;
		if (q == s->end) {
			rc = more(s, err);
			if (rc <= 0)
				return rc ? rc : too_early(s, err);
		} else if (*q == '"') {
			break;
		} else if (*q == '\\') {
			VC_TRY(escape(s, err));
		} else {
			return bad(s, "a control character in a text", err);
		}
	}
	s->p++;
	j->text = s->buf;
	j->len = s->n;
	return 0;
}

/* ---- numbers and words ---- */

static inline bool in_word(uint8_t c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '+' ||
	       c == '-' || c == '.';
}

static int word_end(struct vc_json_state *s, size_t *n, struct vc_error *err)
{
	for (*n = 0; ; ++*n) {
		uint8_t c;

		if (s->p + *n == s->end) {
			int rc = more(s, err);

			VC_TRY(rc);
			if (!rc)
				return 0;
		}
		c = s->p[*n];
		if (!in_word(c))
			return 0;
		if (*n > 400)
			return bad(s, "a number of more than 400 digits", err);
	}
}

static int number(struct vc_json *j, const char *digits, size_t n, struct vc_error *err)
{
	char *end;

	j->is_integer = !digits[strcspn(digits, ".eEnN")];
	errno = 0;
	j->integer = j->is_integer ? strtoll(digits, &end, 10) : 0;
	j->is_integer = j->is_integer && !errno && !*end;
	j->real = j->is_integer ? (double)j->integer : strtod(digits, &end);
	if (!n || *end)
		return bad(j->state, "a word that is no value", err);
	return VC_J_NUMBER;
}

/* Nearly all numbers are a few digits, some with a point among them; a double holds both the digits
 * as an integer and the power of ten, so their quotient is what strtod() makes of them. How many
 * bytes were taken; 0: this one needs a closer look. */
static size_t plain_number(struct vc_json *j, const uint8_t *p)
{
	static const double power[] = { 1,    1e1,  1e2,  1e3,	1e4,  1e5,  1e6,  1e7,	1e8,
					1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17 };
	bool minus = *p == '-';
	size_t i = minus, first = i, point = 0;
	uint64_t v = 0;

	for (; i < first + 18; i++) {
		if (p[i] >= '0' && p[i] <= '9')
			v = v * 10 + (p[i] - '0');
		else if (p[i] == '.' && !point && i > first)
			point = i;
		else
			break;
	}
	if (i == first || in_word(p[i]) || (point && (point + 1 == i || v >> 53)))
		return 0;
	j->is_integer = !point;
	j->integer = point ? 0 : minus ? -(int64_t)v : (int64_t)v;
	j->real = point ? (double)v / power[i - point - 1] : (double)v;
	if (minus && (point || v))
		j->real = -j->real;
	return i;
}

enum { NUMBER_AT_HAND = 32 }; /* more than plain_number() looks at */

static int scalar(struct vc_json *j, struct vc_error *err)
{
	static const struct { const char *text; int token; } words[] = {
		{ "true", VC_J_TRUE }, { "false", VC_J_FALSE }, { "null", VC_J_NULL },
	};
	struct vc_json_state *s = j->state;
	char copy[408];
	size_t n = s->end - s->p >= NUMBER_AT_HAND && s->cap >= NUMBER_AT_HAND ?
			   plain_number(j, s->p) : 0;

	if (n) {
		memcpy(s->buf, s->p, NUMBER_AT_HAND);
		s->buf[n] = '\0';
		j->text = s->buf;
		j->len = n;
		s->p += n;
		return VC_J_NUMBER;
	}
	VC_TRY(word_end(s, &n, err));
	memcpy(copy, s->p, n);
	copy[n] = '\0';
	for (size_t i = 0; i < 3; i++) {
		if (!strcmp(copy, words[i].text)) {
			s->p += n;
			return words[i].token;
		}
	}
	if (!n || !(copy[0] == '-' || (copy[0] >= '0' && copy[0] <= '9') || !strcmp(copy, "NaN") ||
		    !strcmp(copy, "Infinity")) || strpbrk(copy, "xXpP"))
		return bad(s, "a word that is no value", err);
	s->n = 0;
	int rc = keep(s, copy, n, err);
	if (!rc)
		rc = number(j, copy, n, err);
	j->text = s->buf;
	j->len = n;
	s->p += rc > 0 ? n : 0;
	return rc;
}

/* ---- structure ---- */

static int begin(struct vc_json_state *s, bool object, struct vc_error *err)
{
	if (s->depth == DEPTH_MAX)
		return bad(s, "nested more than 512 levels deep", err);
	s->object[s->depth++] = object;
	s->want = object ? FIRST_KEY : FIRST_VALUE;
	s->p++;
	return object ? VC_J_OBJECT : VC_J_ARRAY;
}

static int finish(struct vc_json_state *s)
{
	bool object = s->object[--s->depth];

	s->p++;
	s->want = s->depth ? MORE : DONE;
	return object ? VC_J_OBJECT_END : VC_J_ARRAY_END;
}

static int value(struct vc_json *j, int c, struct vc_error *err)
{
	struct vc_json_state *s = j->state;
	int rc;

	if (c == '{' || c == '[')
		return begin(s, c == '{', err);
	VC_TRY(rc = c == '"' ? text(j, err) : scalar(j, err));
	s->want = s->depth ? MORE : DONE;
	return c == '"' ? VC_J_TEXT : rc;
}

static int key(struct vc_json *j, int c, struct vc_error *err)
{
	struct vc_json_state *s = j->state;

	if (c != '"')
		return bad(s, "a key was expected", err);
	VC_TRY(text(j, err));
	c = next_byte(s, err);
	if (c < 0)
		return c;
	if (c != ':')
		return c ? bad(s, "a colon was expected", err) : too_early(s, err);
	s->p++;
	s->want = VALUE;
	return VC_J_KEY;
}

int vc_json_next(struct vc_json *j, struct vc_error *err)
{
	struct vc_json_state *s = j->state;
	int c = next_byte(s, err);

	if (c < 0)
		return c;
	if (s->want == DONE)
		return c ? bad(s, "something follows the document", err) : VC_J_END;
	if (!c)
		return too_early(s, err);
	if (s->want == MORE) {
		bool object = s->object[s->depth - 1];

		if (c == (object ? '}' : ']'))
			return finish(s);
		if (c != ',')
			return bad(s, "a comma or an end was expected", err);
		s->p++;
		s->want = object ? KEY : VALUE;
		c = next_byte(s, err);
		if (c <= 0)
			return c ? c : too_early(s, err);
	}
	if ((s->want == FIRST_KEY && c == '}') || (s->want == FIRST_VALUE && c == ']'))
		return finish(s);
	if (s->want == KEY || s->want == FIRST_KEY)
		return key(j, c, err);
	return value(j, c, err);
}

/* Inside a container that nobody wants only quotes and brackets matter. */
int vc_json_skip(struct vc_json *j, int token, struct vc_error *err)
{
	struct vc_json_state *s = j->state;
	unsigned level = s->depth;

	if (token != VC_J_OBJECT && token != VC_J_ARRAY)
		return 0;
	s->unwanted = true;
	while (s->depth >= level && token >= 0)
		token = vc_json_next(j, err);
	s->unwanted = false;
	return token < 0 ? token : 0;
}

int vc_json_open(struct vc_json *j, struct vc_input *in, struct vc_error *err)
{
	*j = (struct vc_json){ .text = "" };
	j->state = calloc(1, sizeof(*j->state));
	VC_HAVE(j->state && vc_vec_room(j->state->buf, j->state->cap, NUMBER_AT_HAND),
		"reading JSON", err);
	j->state->in = in;
	return 0;
}

void vc_json_close(struct vc_json *j)
{
	if (j->state) {
		vc_input_skip(j->state->in, (size_t)(j->state->p - j->state->start));
		free(j->state->buf);
	}
	free(j->state);
	*j = (struct vc_json){ 0 };
}

/* ---- writing ---- */

void vc_json_quote(struct vc_output *o, const char *s, size_t len)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const uint8_t *p = (const uint8_t *)s;
	size_t from_here = 0;

	vc_output_write(o, "\"", 1);
	for (size_t i = 0; i < len; ) {
		size_t n = vc_utf8_length(p + i, len - i);
		const char *at = n == 1 && p[i] ? memchr(from, p[i], sizeof(from) - 1) : NULL;
		bool steers = n == 2 && p[i] == 0xc2 && p[i + 1] < 0xa0; /* C1, to a terminal */

		if (n && !at && p[i] >= 0x20 && p[i] != 0x7f && !steers) {
			i += n;
			continue;
		}
		vc_output_write(o, s + from_here, i - from_here);
		if (at)
			vc_output_printf(o, "\\%c", to[at - from]);
		else if (n)
			vc_output_printf(o, "\\u%04x", p[i + steers]);
		else
			vc_output_text(o, "\\ufffd"); /* file names may be any bytes */
		i += n ? n : 1;
		from_here = i;
	}
	vc_output_write(o, s + from_here, len - from_here);
	vc_output_write(o, "\"", 1);
}
