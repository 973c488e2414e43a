/* SPDX-License-Identifier: Apache-2.0 */
/* pickle.c - see pickle.h. Opcodes: CPython, Lib/pickletools.py. */
#include "common/pickle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "common/vec.h"

#define STACK_MAX ((size_t)1 << 25) /* a list of so many events written in one batch still fits */
#define MARKS_MAX 4096              /* open containers inside each other */
#define TEXT_MAX  ((uint64_t)64 << 20)
#define LINE_MAX_BYTES ((size_t)1 << 20) /* protocol 0 writes texts and numbers as lines */

struct machine {
	struct vc_input *in;
	const struct vc_pickle_builder *b;
	struct vc_error *err;
	const uint8_t *start, *p,
		*end; /* the window at hand; start is what the input calls here */
	struct vc_pickle_value *stack;
	size_t n, cap;
	size_t *mark;
	size_t marks, mark_cap;
	uint64_t *memo;                  /* type << 56 | ref; 0 = not set */
	size_t memos, memo_cap;
	bool stop;
};

static uint64_t offset(const struct machine *m)
{
	return vc_input_offset(m->in) + (uint64_t)(m->p - m->start);
}

static int bad(struct machine *m, const char *what)
{
	return vc_fail(m->err, VC_EFORMAT, "damaged pickle at byte %llu: %s",
		       (unsigned long long)offset(m), what);
}

/* Make at least n bytes available at m->p, or fail: the pickle ends too early. */
static int need_slowly(struct machine *m, size_t n)
{
	size_t got;

	vc_input_skip(m->in, (size_t)(m->p - m->start));
	m->p = m->start; /* keeps offset() right if peek fails */
	m->start = vc_input_peek(m->in, n, &got, m->err);
	if (!m->start) {
		m->p = m->end = NULL;
		return m->err ? (int)m->err->status : VC_EIO;
	}
	m->p = m->start;
	m->end = m->start + got;
	if (got >= n)
		return 0;
	return vc_fail(m->err, VC_EFORMAT, "the pickle ends too early, after %llu bytes%s",
		       (unsigned long long)(vc_input_offset(m->in) + got),
		       vc_input_truncated(m->in) ? " (the compressed file is cut off)" : "");
}

static inline int need(struct machine *m, size_t n)
{
	return (size_t)(m->end - m->p) >= n ? 0 : need_slowly(m, n);
}

static uint64_t little(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = n; i-- > 0; )
		v = v << 8 | p[i];
	return v;
}

/* ---- stack, marks, memo ---- */

static int push_slowly(struct machine *m, struct vc_pickle_value v)
{
	if (m->n == STACK_MAX)
		return bad(m, "too many unfinished values");
	VC_HAVE(vc_vec_room(m->stack, m->cap, m->n + 1), "reading the pickle", m->err);
	m->stack[m->n++] = v;
	return 0;
}

static inline int push(struct machine *m, struct vc_pickle_value v)
{
	if (m->n == m->cap)
		return push_slowly(m, v);
	m->stack[m->n++] = v;
	return 0;
}

static inline int push_int(struct machine *m, int64_t i)
{
	return push(m, (struct vc_pickle_value){ .type = VC_PV_INT, .i = i });
}

static inline int push_plain(struct machine *m, uint32_t type, int64_t i)
{
	return push(m, (struct vc_pickle_value){ .type = type, .i = i });
}

/* Values above the innermost mark (or on the whole stack). */
static inline size_t floor_of(const struct machine *m)
{
	return m->marks ? m->mark[m->marks - 1] : 0;
}

static int has(struct machine *m, size_t n)
{
	return m->n - floor_of(m) >= n ? 0 : bad(m, "an operation finds too few values");
}

static int push_mark(struct machine *m)
{
	if (m->marks == MARKS_MAX)
		return bad(m, "nested too deeply");
	VC_HAVE(vc_vec_room(m->mark, m->mark_cap, m->marks + 1), "reading the pickle", m->err);
	m->mark[m->marks++] = m->n;
	return 0;
}

static int pop_mark(struct machine *m, size_t *from)
{
	if (!m->marks)
		return bad(m, "the end of a group that never began");
	*from = m->mark[--m->marks];
	return 0;
}

/* Python numbers memos as it goes; a jump can only be damage, and would cost memory. */
static int memo_put(struct machine *m, uint64_t at)
{
	const struct vc_pickle_value *v;

	if (has(m, 1))
		return VC_EFORMAT;
	if (at > 2 * (uint64_t)m->memos + 1024)
		return bad(m, "a memo number out of all proportion");
	VC_HAVE(vc_vec_zeroed(m->memo, m->memo_cap, at + 1), "the pickle's memo", m->err);
	v = &m->stack[m->n - 1];
	if (v->type >= VC_PV_TEXT)
		m->memo[at] = (uint64_t)v->type << 56 | v->ref;
	else if (v->type <= VC_PV_BOOL ||
		 (v->type == VC_PV_INT && v->i >= 0 && v->i < INT64_C(1) << 54))
		m->memo[at] = (uint64_t)v->type << 56 | (uint64_t)1 << 55 | (uint64_t)v->i;
	else
		m->memo[at] = 0; /* numbers are not memoised by any writer; a get will say so */
	if (at >= m->memos)
		m->memos = at + 1;
	return 0;
}

static inline int memo_get(struct machine *m, uint64_t at)
{
	uint64_t v = at < m->memos ? m->memo[at] : 0;

	if (!v)
		return bad(m, "use of a memo that was never set");
	if (v >> 56 >= VC_PV_TEXT)
		return push(m, (struct vc_pickle_value){ .type = (uint32_t)(v >> 56),
							.ref = (uint32_t)v });
	return push_plain(m, (uint32_t)(v >> 56), (int64_t)(v & ((UINT64_C(1) << 55) - 1)));
}

/* ---- containers ---- */

static int push_new(struct machine *m, uint32_t type)
{
	struct vc_pickle_value v = { .type = type };
	int rc = type == VC_PV_DICT ? m->b->dict(m->b->arg, &v.ref, m->err)
				    : m->b->list(m->b->arg, &v.ref, m->err);

	return rc ? rc : push(m, v);
}

/* Items [from, n) go into the container below them. */
static int fill(struct machine *m, size_t from, uint32_t type)
{
	const struct vc_pickle_value *to;

	if (from <= floor_of(m))
		return bad(m, "items without a container");
	to = &m->stack[from - 1];
	if (to->type != type)
		return bad(m, "items for something that holds none");
	if (type == VC_PV_DICT && (m->n - from) % 2)
		return bad(m, "a key without a value");
	if (type == VC_PV_DICT)
		for (size_t i = from; i < m->n; i += 2)
			VC_TRY(m->b->set(m->b->arg, to->ref, &m->stack[i], m->err));
	else if (m->n > from)
		VC_TRY(m->b->append(m->b->arg, to->ref, &m->stack[from], m->n - from, m->err));
	m->n = from;
	return VC_OK;
}

static int fill_marked(struct machine *m, uint32_t type)
{
	size_t from = 0;
	int rc = pop_mark(m, &from);

	return rc ? rc : fill(m, from, type);
}

/* TUPLE, LIST, DICT, FROZENSET: the container comes after its items. */
static int gather(struct machine *m, size_t from, uint32_t type)
{
	size_t n = m->n - from;
	VC_TRY(push_new(m, type));
	if (n) { /* the container goes below its items */
		struct vc_pickle_value c = m->stack[m->n - 1];

		memmove(m->stack + from + 1, m->stack + from, n * sizeof(c));
		m->stack[from] = c;
	}
	return fill(m, from + 1, type);
}

static int gather_marked(struct machine *m, uint32_t type)
{
	size_t from = 0;
	int rc = pop_mark(m, &from);

	return rc ? rc : gather(m, from, type);
}

static int gather_n(struct machine *m, size_t n)
{
	int rc = has(m, n);

	return rc ? rc : gather(m, m->n - n, VC_PV_LIST);
}

/* ---- texts and numbers ---- */

static int push_text(struct machine *m, const char *s, size_t n)
{
	struct vc_pickle_value v = { .type = VC_PV_TEXT };
	int rc = m->b->text(m->b->arg, s, n, &v.ref, m->err);

	return rc ? rc : push(m, v);
}

/* A text with its length in `width` bytes before it. */
static int counted_text(struct machine *m, size_t width)
{
	uint64_t len;
	VC_TRY(need(m, width));
	len = little(m->p, width);
	if (len > TEXT_MAX)
		return vc_fail(m->err, VC_EFORMAT,
			       "damaged pickle at byte %llu: a text claims %llu bytes",
			       (unsigned long long)offset(m), (unsigned long long)len);
	m->p += width;
	int rc = need(m, (size_t)len);
	if (!rc)
		rc = push_text(m, (const char *)m->p, (size_t)len);
	m->p += rc ? 0 : len;
	return rc;
}

/* LONG1, LONG4: two's complement, little endian, any length. */
static int counted_int(struct machine *m, size_t width)
{
	uint64_t len, v;
	const uint8_t *p;
	size_t used;
	VC_TRY(need(m, width));
	len = little(m->p, width);
	if (len > 4096)
		return bad(m, "a number claims thousands of bytes");
	m->p += width;
	VC_TRY(need(m, (size_t)len));
	p = m->p;
	m->p += len;
	for (used = (size_t)len; used > 1; used--) /* drop bytes that only repeat the sign */
		if (p[used - 1] != (p[used - 2] & 0x80 ? 0xff : 0))
			break;
	if (used > 8)
		return push_plain(m, VC_PV_BIG, p[used - 1] & 0x80 ? -1 : 1);
	v = little(p, used);
	if (used && used < 8 && p[used - 1] & 0x80)
		v |= UINT64_MAX << (8 * used);
	return push_int(m, (int64_t)v);
}

static int push_real(struct machine *m)
{
	uint64_t bits = 0;
	struct vc_pickle_value v = { .type = VC_PV_REAL };
	VC_TRY(need(m, 8));
	for (size_t i = 0; i < 8; i++)
		bits = bits << 8 | m->p[i];
	m->p += 8;
	memcpy(&v.real, &bits, 8);
	return push(m, v);
}

/* One line, without its end, lent as text of *n bytes. */
static int line(struct machine *m, const char **text, size_t *n)
{
	const uint8_t *nl;

	while (!(nl = m->p < m->end ? memchr(m->p, '\n', (size_t)(m->end - m->p)) : NULL)) {
		size_t have = (size_t)(m->end - m->p);

		if (have > LINE_MAX_BYTES)
			return bad(m, "a line without end");
		VC_TRY(need_slowly(m, have + 1));
	}
	*text = (const char *)m->p;
	*n = (size_t)(nl - m->p);
	m->p = nl + 1;
	return 0;
}

static int line_number(struct machine *m, uint64_t *v)
{
	char digits[24], *end;
	const char *s;
	size_t n;
	VC_TRY(line(m, &s, &n));
	if (!n || n >= sizeof(digits))
		return bad(m, "a number that is none");
	memcpy(digits, s, n);
	digits[n] = '\0';
	*v = strtoull(digits, &end, 10);
	return *end ? bad(m, "a number that is none") : 0;
}

static int line_int(struct machine *m, bool may_be_bool)
{
	char digits[64], *end;
	const char *s;
	long long v;
	size_t n;
	VC_TRY(line(m, &s, &n));
	if (may_be_bool && n == 2 && s[0] == '0' && (s[1] == '0' || s[1] == '1'))
		return push_plain(m, VC_PV_BOOL, s[1] == '1');
	if (n && s[n - 1] == 'L')
		n--;
	if (n && n >= sizeof(digits))
		return push_plain(m, VC_PV_BIG, s[0] == '-' ? -1 : 1);
	memcpy(digits, s, n);
	digits[n] = '\0';
	errno = 0;
	v = strtoll(digits, &end, 10);
	if (!n || *end)
		return bad(m, "a number that is none");
	return errno ? push_plain(m, VC_PV_BIG, v < 0 ? -1 : 1) : push_int(m, v);
}

static int line_real(struct machine *m)
{
	struct vc_pickle_value v = { .type = VC_PV_REAL };
	char digits[64], *end;
	const char *s;
	size_t n;
	VC_TRY(line(m, &s, &n));
	if (!n || n >= sizeof(digits))
		return bad(m, "a number that is none");
	memcpy(digits, s, n);
	digits[n] = '\0';
	v.real = strtod(digits, &end);
	return *end ? bad(m, "a number that is none") : push(m, v);
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

static int line_text(struct machine *m, bool unicode)
{
	const char *s;
	char *copy, *to;
	size_t n;
	VC_TRY(line(m, &s, &n));
	if (!unicode) {
		if (n < 2 || (s[0] != '\'' && s[0] != '"') || s[n - 1] != s[0])
			return bad(m, "a text without quotes");
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
	int rc = push_text(m, copy, (size_t)(to - copy));
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

static int refuse_name(struct machine *m, const char *module, const char *name, uint64_t at)
{
	return vc_fail(m->err, VC_EFORMAT, "the pickle wants Python to run %s.%s (byte %llu); "
		       "vramcast reads data only and never executes what a file names", module,
		       name, (unsigned long long)at);
}

static int refuse_global(struct machine *m)
{
	char module[128], name[128];
	uint64_t at = offset(m) - 1;
	const char *s;
	size_t n;
	VC_TRY(line(m, &s, &n));
	printable(s, n, module, sizeof(module));
	VC_TRY(line(m, &s, &n));
	return refuse_name(m, module, printable(s, n, name, sizeof(name)), at);
}

static int refuse_stack_global(struct machine *m)
{
	char text[2][128];

	for (size_t i = 0; i < 2; i++) {
		const struct vc_pickle_value *v = m->n >= 2 ? &m->stack[m->n - 2 + i] : NULL;
		const char *s = v && v->type == VC_PV_TEXT ? m->b->name(m->b->arg, v->ref) : "?";

		printable(s, strlen(s), text[i], sizeof(text[i]));
	}
	return refuse_name(m, text[0], text[1], offset(m) - 1);
}

static int refuse(struct machine *m, const char *what)
{
	return vc_fail(m->err, VC_EFORMAT, "the pickle wants Python to run code (%s at byte %llu); "
		       "vramcast reads data only and never executes what a file names", what,
		       (unsigned long long)offset(m) - 1);
}

static int refused(struct machine *m, uint8_t op)
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
			       (unsigned long long)offset(m) - 1, op);
	}
}

/* ---- the operations ---- */

static inline int take(struct machine *m, size_t n, uint64_t *v)
{
	VC_TRY(need(m, n));
	*v = little(m->p, n);
	m->p += n;
	return 0;
}

/* What torch's writers use once per file, or never. */
static int rare(struct machine *m, uint8_t op)
{
	uint64_t v = 0;
	int rc;

	switch (op) {
	case 0x80: /* PROTO */
		rc = take(m, 1, &v);
		if (!rc && v > 5)
			return vc_fail(m->err, VC_ENOSUP,
				       "pickle protocol %llu is not known (0 to 5 are)",
				       (unsigned long long)v);
		return rc;
	case 0x95: return take(m, 8, &v); /* FRAME: only a hint how much to read */
	case 'L': return line_int(m, false);
	case 'I': return line_int(m, true);
	case 'F': return line_real(m);
	case 'S': return line_text(m, false);
	case 'V': return line_text(m, true);
	case 'g': rc = line_number(m, &v); return rc ? rc : memo_get(m, v);
	case 'p': rc = line_number(m, &v); return rc ? rc : memo_put(m, v);
	case 'U': case 'C': return counted_text(m, 1);
	case 'T': case 'B': return counted_text(m, 4);
	case 0x8d: case 0x8e: case 0x96: return counted_text(m, 8);
	case 0x8b: return counted_int(m, 4);
	case 'd': return gather_marked(m, VC_PV_DICT);
	case 'l': case 0x91: return gather_marked(m, VC_PV_LIST);
	case 0x90: return fill_marked(m, VC_PV_LIST);
	case 0x8f: return push_new(m, VC_PV_LIST);
	case '0': /* POP takes the mark when nothing is above it */
		if (m->marks && m->n == floor_of(m))
			return pop_mark(m, &m->n);
		rc = has(m, 1);
		m->n -= rc ? 0 : 1;
		return rc;
	case '1': return pop_mark(m, &m->n);
	case '2': rc = has(m, 1); return rc ? rc : push(m, m->stack[m->n - 1]);
	default: return refused(m, op);
	}
}

static int operation(struct machine *m, uint8_t op)
{
	uint64_t v = 0;
	int rc;

	switch (op) {
	case 'h': rc = take(m, 1, &v); return rc ? rc : memo_get(m, v);
	case 'j': rc = take(m, 4, &v); return rc ? rc : memo_get(m, v);
	case 0x94: return memo_put(m, m->memos);
	case 'q': rc = take(m, 1, &v); return rc ? rc : memo_put(m, v);
	case 'r': rc = take(m, 4, &v); return rc ? rc : memo_put(m, v);
	case 'K': rc = take(m, 1, &v); return rc ? rc : push_int(m, (int64_t)v);
	case 'M': rc = take(m, 2, &v); return rc ? rc : push_int(m, (int64_t)v);
	case 'J': rc = take(m, 4, &v); return rc ? rc : push_int(m, (int32_t)v);
	case 0x8a: return counted_int(m, 1);
	case 0x8c: return counted_text(m, 1);
	case 'X': return counted_text(m, 4);
	case 'G': return push_real(m);
	case 'N': return push_plain(m, VC_PV_NONE, 0);
	case 0x88: return push_plain(m, VC_PV_BOOL, 1);
	case 0x89: return push_plain(m, VC_PV_BOOL, 0);
	case '}': return push_new(m, VC_PV_DICT);
	case ']': case ')': return push_new(m, VC_PV_LIST);
	case '(': return push_mark(m);
	case 'u': return fill_marked(m, VC_PV_DICT);
	case 'e': return fill_marked(m, VC_PV_LIST);
	case 's': rc = has(m, 3); return rc ? rc : fill(m, m->n - 2, VC_PV_DICT);
	case 'a': rc = has(m, 2); return rc ? rc : fill(m, m->n - 1, VC_PV_LIST);
	case 't': return gather_marked(m, VC_PV_LIST);
	case 0x85: case 0x86: case 0x87: return gather_n(m, op - 0x84u);
	case '.': m->stop = true; return has(m, 1);
	default: return rare(m, op);
	}
}

/* Stacks are lists of frames that were met before, so most of a snapshot is runs of memo gets. */
static void run_of_gets(struct machine *m)
{
	uint64_t at, v;
	size_t len;

	while (m->end - m->p >= 5 && m->n < m->cap) {
		if (*m->p == 'h') {
			at = m->p[1];
			len = 2;
		} else if (*m->p == 'j') {
			at = little(m->p + 1, 4);
			len = 5;
		} else {
			return;
		}
		v = at < m->memos ? m->memo[at] : 0;
		if (v >> 56 < VC_PV_TEXT)
			return; /* memo_get deals with it */
		m->stack[m->n++] =
			(struct vc_pickle_value){ .type = (uint32_t)(v >> 56), .ref = (uint32_t)v };
		m->p += len;
	}
}

int vc_pickle_read(struct vc_input *in, const struct vc_pickle_builder *b,
		   struct vc_pickle_value *root, struct vc_error *err)
{
	struct vc_error own;
	struct machine m = { .in = in, .b = b, .err = err ? err : &own };
	int rc = 0;

	while (!m.stop && !rc) {
		run_of_gets(&m);
		rc = need(&m, 1);
		if (!rc)
			rc = operation(&m, *m.p++);
	}
	if (!rc) {
		*root = m.stack[m.n - 1];
		vc_input_skip(in, (size_t)(m.p - m.start));
	}
	VC_FREE(m.stack, m.mark, m.memo);
	return rc;
}
