/* SPDX-License-Identifier: Apache-2.0 */
/* pickle_lines.c - see pickle_lines.h */
#include "common/pickle_lines.h"

#include <errno.h>
#include <stdlib.h>

#include "common/utf8.h"

#define LINE_MAX_BYTES ((size_t)1 << 20) /* protocol 0 writes texts and numbers as lines */

/* One line, without its end, lent as text of *n bytes. */
static int line(struct pickle_machine *m, const char **text, size_t *n)
{
	const uint8_t *nl;

	while (!(nl = m->p < m->end ? memchr(m->p, '\n', (size_t)(m->end - m->p)) : NULL)) {
		size_t have = (size_t)(m->end - m->p);

		if (have > LINE_MAX_BYTES)
			return pickle_bad(m, "a line without end");
		VC_TRY(pickle_need_slowly(m, have + 1));
	}
	*text = (const char *)m->p;
	*n = (size_t)(nl - m->p);
	m->p = nl + 1;
	return 0;
}

/* A line of digits, as a text of its own: the next byte may be one, too. */
static int line_digits(struct pickle_machine *m, char *digits, size_t size)
{
	const char *s;
	size_t n;
	VC_TRY(line(m, &s, &n));
	if (!n || n >= size)
		return pickle_bad(m, "a number that is none");
	memcpy(digits, s, n);
	digits[n] = '\0';
	return 0;
}

static int line_number(struct pickle_machine *m, uint64_t *v)
{
	char digits[24], *end;
	VC_TRY(line_digits(m, digits, sizeof(digits)));
	*v = strtoull(digits, &end, 10);
	return *end ? pickle_bad(m, "a number that is none") : 0;
}

static int line_int(struct pickle_machine *m, bool may_be_bool)
{
	char digits[64], *end;
	const char *s;
	long long v;
	size_t n;
	VC_TRY(line(m, &s, &n));
	if (may_be_bool && n == 2 && s[0] == '0' && (s[1] == '0' || s[1] == '1'))
		return pickle_push_plain(m, VC_PV_BOOL, s[1] == '1');
	if (n && s[n - 1] == 'L')
		n--;
	if (n && n >= sizeof(digits))
		return pickle_push_plain(m, VC_PV_BIG, s[0] == '-' ? -1 : 1);
	memcpy(digits, s, n);
	digits[n] = '\0';
	errno = 0;
	v = strtoll(digits, &end, 10);
	if (!n || *end)
		return pickle_bad(m, "a number that is none");
	return errno ? pickle_push_plain(m, VC_PV_BIG, v < 0 ? -1 : 1) :
		       pickle_push_plain(m, VC_PV_INT, v);
}

static int line_real(struct pickle_machine *m)
{
	struct vc_pickle_value v = { .type = VC_PV_REAL };
	char digits[64], *end;
	VC_TRY(line_digits(m, digits, sizeof(digits)));
	v.real = strtod(digits, &end);
	return *end ? pickle_bad(m, "a number that is none") : pickle_push(m, v);
}

static int hex(const char *s, size_t n, uint32_t *v)
{
	*v = 0;
	for (size_t i = 0; i < n; i++) {
		int d = s[i] >= '0' && s[i] <= '9' ? s[i] - '0' : (s[i] | 32) - 'a' + 10;

		if (d < 0 || d > 15)
			return -1;
		*v = *v << 4 | (uint32_t)d;
	}
	return 0;
}

/* One backslash escape at s (n bytes left, s[0] = '\\'); what it stands for goes to *to. Returns
 * the bytes eaten. STRING knows Python's string escapes, UNICODE only \u and \U. */
static size_t escape(const char *s, size_t n, bool unicode, char **to)
{
	static const char from[] = "nrtabfv\\'\"", into[] = "\n\r\t\a\b\f\v\\'\"";
	const char *at = n > 1 && s[1] && !unicode ? strchr(from, s[1]) : NULL;
	size_t digits = n < 2                   ? 0 :
			s[1] == 'x' && !unicode ? 2 :
			s[1] == 'u'             ? 4 :
			s[1] == 'U'             ? 8 :
						  0;
	uint32_t c;

	if (at) {
		*(*to)++ = into[at - from];
		return 2;
	}
	if (digits && n >= 2 + digits && !hex(s + 2, digits, &c)) {
		*to += vc_utf8_put(c, *to);
		return 2 + digits;
	}
	*(*to)++ = s[0];
	return 1;
}

static int line_text(struct pickle_machine *m, bool unicode)
{
	const char *s;
	char *copy, *to;
	size_t n;
	VC_TRY(line(m, &s, &n));
	if (!unicode) {
		if (n < 2 || (s[0] != '\'' && s[0] != '"') || s[n - 1] != s[0])
			return pickle_bad(m, "a text without quotes");
		s++;
		n -= 2;
	}
	copy = malloc(2 * n + 8); /* latin-1 bytes become two */
	VC_HAVE(copy, "a text of the pickle", m->err);
	to = copy;
	for (size_t i = 0; i < n; ) {
		if (s[i] == '\\')
			i += escape(s + i, n - i, unicode, &to);
		else
			to += vc_utf8_put((uint8_t)s[i++], to);
	}
	int rc = pickle_push_text(m, copy, (size_t)(to - copy));
	free(copy);
	return rc;
}

/* ---- what is refused ---- */

static const char *printable(const char *s, size_t n, char *to, size_t cap)
{
	size_t i;

	for (i = 0; i < n && i + 1 < cap; i++)
		to[i] = s[i] >= ' ' && s[i] < 127 ? s[i] : '?';
	to[i] = '\0';
	return to;
}

static int refuse_name(struct pickle_machine *m, const char *module, const char *name, uint64_t at)
{
	return vc_fail(m->err, VC_EFORMAT, "the pickle wants Python to run %s.%s (byte %llu); "
		       "vramcast reads data only and never executes what a file names", module,
		       name, (unsigned long long)at);
}

static int refuse_global(struct pickle_machine *m)
{
	char module[128], name[128];
	uint64_t at = pickle_offset(m) - 1;
	const char *s;
	size_t n;
	VC_TRY(line(m, &s, &n));
	printable(s, n, module, sizeof(module));
	VC_TRY(line(m, &s, &n));
	return refuse_name(m, module, printable(s, n, name, sizeof(name)), at);
}

static int refuse_stack_global(struct pickle_machine *m)
{
	char text[2][128];

	for (size_t i = 0; i < 2; i++) {
		const struct vc_pickle_value *v = m->n >= 2 ? &m->stack[m->n - 2 + i] : NULL;
		const char *s = v && v->type == VC_PV_TEXT ? m->b->name(m->b->arg, v->ref) : "?";

		printable(s, strlen(s), text[i], sizeof(text[i]));
	}
	return refuse_name(m, text[0], text[1], pickle_offset(m) - 1);
}

static int refuse(struct pickle_machine *m, const char *what)
{
	return vc_fail(m->err, VC_EFORMAT, "the pickle wants Python to run code (%s at byte %llu); "
		       "vramcast reads data only and never executes what a file names", what,
		       (unsigned long long)pickle_offset(m) - 1);
}

static int refused(struct pickle_machine *m, uint8_t op)
{
	switch (op) {
	case 'c': case 'i': return refuse_global(m);
	case 'R': return refuse(m, "REDUCE");
	case 'b': return refuse(m, "BUILD");
	case 'o': return refuse(m, "OBJ");
	case 'P': case 'Q': return refuse(m, "a persistent id");
	case 0x81: case 0x92: return refuse(m, "NEWOBJ");
	case 0x82: case 0x83: case 0x84: return refuse(m, "an extension");
	case 0x93: return refuse_stack_global(m);
	case 0x97: case 0x98: return refuse(m, "an out-of-band buffer");
	default:
		return vc_fail(m->err, VC_EFORMAT,
			       "damaged pickle at byte %llu: 0x%02x is no pickle operation",
			       (unsigned long long)pickle_offset(m) - 1, op);
	}
}


int pickle_line_operation(struct pickle_machine *m, uint8_t op)
{
	uint64_t v = 0;
	int rc;

	switch (op) {
	case 'L': return line_int(m, false);
	case 'I': return line_int(m, true);
	case 'F': return line_real(m);
	case 'S': return line_text(m, false);
	case 'V': return line_text(m, true);
	case 'g': rc = line_number(m, &v); return rc ? rc : pickle_memo_get(m, v);
	case 'p': rc = line_number(m, &v); return rc ? rc : pickle_memo_put(m, v);
	default: return refused(m, op);
	}
}
