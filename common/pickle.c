/* SPDX-License-Identifier: Apache-2.0 */
/* pickle.c - see pickle.h. Opcodes: CPython, Lib/pickletools.py. */
#include "common/pickle.h"

#include "common/mapped.h"
#include "common/pickle_refuse.h"
#include "common/pickle_machine.h"

#define TEXT_MAX ((uint64_t)64 << 20)

static inline int take(struct pickle_machine *m, size_t n, uint64_t *v)
{
	VC_TRY(pickle_need(m, n));
	*v = pickle_little(m->p, n);
	m->p += n;
	return 0;
}

/* MEMOIZE, BINPUT, LONG_BINPUT */
static int put_memo(struct pickle_machine *m, uint8_t op)
{
	uint64_t at = m->memos;

	if (op != 0x94)
		VC_TRY(take(m, op == 'q' ? 1 : 4, &at));
	return pickle_memo_put(m, at);
}

static inline struct vc_pickle_value integer(int64_t i)
{
	return (struct vc_pickle_value){ .type = VC_PV_INT, .i = i };
}

static inline int push_int(struct pickle_machine *m, int64_t i)
{
	return pickle_push(m, integer(i));
}

/* ---- containers ---- */

static int push_new(struct pickle_machine *m, uint32_t type)
{
	struct vc_pickle_value v = { .type = type };
	int rc = type == VC_PV_DICT ? m->b->dict(m->b->arg, &v.ref, m->err)
				    : m->b->list(m->b->arg, &v.ref, m->err);

	return rc ? rc : pickle_push(m, v);
}

/* Items [from, n) go into the container below them. */
static int fill(struct pickle_machine *m, size_t from, uint32_t type)
{
	const struct vc_pickle_value *to;

	if (from <= pickle_floor(m))
		return pickle_bad(m, "items without a container");
	to = &m->stack[from - 1];
	if (to->type != type)
		return pickle_bad(m, "items for something that holds none");
	if (type == VC_PV_DICT && (m->n - from) % 2)
		return pickle_bad(m, "a key without a value");
	if (type == VC_PV_DICT)
		VC_TRY(m->b->set(m->b->arg, to->ref, &m->stack[from], (m->n - from) / 2, m->err));
	else if (m->n > from)
		VC_TRY(m->b->append(m->b->arg, to->ref, &m->stack[from], m->n - from, m->err));
	m->n = from;
	return VC_OK;
}

static int fill_marked(struct pickle_machine *m, uint32_t type)
{
	size_t from = 0;
	int rc = pickle_pop_mark(m, &from);

	return rc ? rc : fill(m, from, type);
}

/* TUPLE, LIST, DICT, FROZENSET: the container comes after its items. */
static int gather(struct pickle_machine *m, size_t from, uint32_t type)
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

static int gather_marked(struct pickle_machine *m, uint32_t type)
{
	size_t from = 0;
	int rc = pickle_pop_mark(m, &from);

	return rc ? rc : gather(m, from, type);
}

static int gather_n(struct pickle_machine *m, size_t n)
{
	int rc = pickle_has(m, n);

	return rc ? rc : gather(m, m->n - n, VC_PV_LIST);
}

/* Past the memo operation at p, if there is one, and the MARK behind it; NULL: none is at hand. */
static const uint8_t *past_mark(const uint8_t *p, const uint8_t *end)
{
	size_t n = p == end ? 0 : *p == 0x94 ? 1 : *p == 'q' ? 2 : *p == 'r' ? 5 : 0;

	return (size_t)(end - p) > n && p[n] == '(' ? p + n + 1 : NULL;
}

/* EMPTY_LIST. Where the bytes behind it are those of an earlier list, its items come with it. */
static int push_list(struct pickle_machine *m)
{
	const uint8_t *items = m->b->again ? past_mark(m->p, m->end) : NULL;
	size_t have = items ? (size_t)(m->end - items) : 0;
	struct pickle_run *run = items ? pickle_again_find(&m->again, items, have) : NULL;
	struct vc_pickle_value v = { .type = VC_PV_LIST };
	int rc = run ? m->b->again(m->b->arg, run->list, &v.ref, m->err) : 0;

	VC_TRY(rc);
	if (!rc) {
		VC_TRY(push_new(m, VC_PV_LIST));
		if (items)
			pickle_again_keep(&m->again, items, have, m->stack[m->n - 1].ref);
		return VC_OK;
	}
	VC_TRY(pickle_push(m, v));
	if (*m->p != '(')
		VC_TRY(put_memo(m, *m->p++));
	m->p = items + run->n;
	return VC_OK;
}

/* ---- texts and numbers ---- */

/* A text with its length in `width` bytes before it. */
static int counted_text(struct pickle_machine *m, size_t width)
{
	uint64_t len;
	VC_TRY(pickle_need(m, width));
	len = pickle_little(m->p, width);
	if (len > TEXT_MAX)
		return vc_fail(m->err, VC_EFORMAT,
			       "damaged pickle at byte %llu: a text claims %llu bytes",
			       (unsigned long long)pickle_offset(m), (unsigned long long)len);
	m->p += width;
	int rc = pickle_need(m, (size_t)len);
	if (!rc)
		rc = pickle_push_text(m, (const char *)m->p, (size_t)len);
	m->p += rc ? 0 : len;
	return rc;
}

/* LONG1, LONG4: two's complement, little endian, any length. */
static int counted_int(struct pickle_machine *m, size_t width)
{
	uint64_t len, v;
	const uint8_t *p;
	size_t used;
	VC_TRY(pickle_need(m, width));
	len = pickle_little(m->p, width);
	if (len > 4096)
		return pickle_bad(m, "a number claims thousands of bytes");
	m->p += width;
	VC_TRY(pickle_need(m, (size_t)len));
	p = m->p;
	m->p += len;
	for (used = (size_t)len; used > 1; used--) /* drop bytes that only repeat the sign */
		if (p[used - 1] != (p[used - 2] & 0x80 ? 0xff : 0))
			break;
	if (used > 8)
		return pickle_push_plain(m, VC_PV_BIG, p[used - 1] & 0x80 ? -1 : 1);
	v = pickle_little(p, used);
	if (used && used < 8 && p[used - 1] & 0x80)
		v |= UINT64_MAX << (8 * used);
	return push_int(m, (int64_t)v);
}

static int push_real(struct pickle_machine *m)
{
	uint64_t bits = 0;
	struct vc_pickle_value v = { .type = VC_PV_REAL };
	VC_TRY(pickle_need(m, 8));
	for (size_t i = 0; i < 8; i++)
		bits = bits << 8 | m->p[i];
	m->p += 8;
	memcpy(&v.real, &bits, 8);
	return pickle_push(m, v);
}

/* ---- the operations ---- */

/* What torch's writers use once per file, or never. */
static int rare(struct pickle_machine *m, uint8_t op)
{
	uint64_t v = 0;
	int rc;

	switch (op) {
	case 0x80: /* PROTO */
		rc = take(m, 1, &v);
		if (!rc && v > 5)
			return vc_fail(m->err, VC_ENOSUP,
				       "pickle protocol %llu is not known (2 to 5 are)",
				       (unsigned long long)v);
		return rc;
	case 0x95: return take(m, 8, &v); /* FRAME: only a hint how much to read */
	case 'U': case 'C': return counted_text(m, 1);
	case 'T': case 'B': return counted_text(m, 4);
	case 0x8d: case 0x8e: case 0x96: return counted_text(m, 8);
	case 0x8b: return counted_int(m, 4);
	case 'd': return gather_marked(m, VC_PV_DICT);
	case 'l': case 0x91: return gather_marked(m, VC_PV_LIST);
	case 0x90: return fill_marked(m, VC_PV_LIST);
	case 0x8f: return push_new(m, VC_PV_LIST);
	case '0': /* POP takes the mark when nothing is above it */
		if (m->marks && m->n == pickle_floor(m))
			return pickle_pop_mark(m, &m->n);
		rc = pickle_has(m, 1);
		m->n -= rc ? 0 : 1;
		return rc;
	case '1': return pickle_pop_mark(m, &m->n);
	case '2': rc = pickle_has(m, 1); return rc ? rc : pickle_push(m, m->stack[m->n - 1]);
	default: return pickle_refuse(m, op);
	}
}

static int operation(struct pickle_machine *m, uint8_t op)
{
	uint64_t v = 0;
	int rc;

	switch (op) {
	case 'h': rc = take(m, 1, &v); return rc ? rc : pickle_memo_get(m, v);
	case 'j': rc = take(m, 4, &v); return rc ? rc : pickle_memo_get(m, v);
	case 0x94: case 'q': case 'r': return put_memo(m, op);
	case 'K': rc = take(m, 1, &v); return rc ? rc : push_int(m, (int64_t)v);
	case 'M': rc = take(m, 2, &v); return rc ? rc : push_int(m, (int64_t)v);
	case 'J': rc = take(m, 4, &v); return rc ? rc : push_int(m, (int32_t)v);
	case 0x8a: return counted_int(m, 1);
	case 0x8c: return counted_text(m, 1);
	case 'X': return counted_text(m, 4);
	case 'G': return push_real(m);
	case 'N': return pickle_push_plain(m, VC_PV_NONE, 0);
	case 0x88: return pickle_push_plain(m, VC_PV_BOOL, 1);
	case 0x89: return pickle_push_plain(m, VC_PV_BOOL, 0);
	case '}': return push_new(m, VC_PV_DICT);
	case ']': return push_list(m);
	case ')': return push_new(m, VC_PV_LIST);
	case '(': return pickle_push_mark(m);
	case 'u': return fill_marked(m, VC_PV_DICT);
	case 'e': return fill_marked(m, VC_PV_LIST);
	case 's': rc = pickle_has(m, 3); return rc ? rc : fill(m, m->n - 2, VC_PV_DICT);
	case 'a': rc = pickle_has(m, 2); return rc ? rc : fill(m, m->n - 1, VC_PV_LIST);
	case 't': return gather_marked(m, VC_PV_LIST);
	case 0x85: case 0x86: case 0x87: return gather_n(m, op - 0x84u);
	case '.': m->stop = true; return pickle_has(m, 1);
	default: return rare(m, op);
	}
}

/* ---- the loop ---- */

static inline uint64_t eight(const uint8_t *p)
{
	uint64_t low = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24,
		 high = p[4] | (uint32_t)p[5] << 8 | (uint32_t)p[6] << 16 | (uint32_t)p[7] << 24;

	return low | high << 32;
}

/* LONG1 of at most eight bytes; they stand behind their number. */
static inline int64_t short_int(const uint8_t *p)
{
	unsigned unused = 64 - 8 * *p;

	return *p ? (int64_t)(eight(p + 1) << unused) >> unused : 0;
}

/* The operations that a snapshot is made of, as long as there is input and room for any of them
 * and nothing is amiss. All others are left to operation(). */
static void run_plain(struct pickle_machine *m)
{
	const uint8_t *p = m->p, *last = m->end - 16; /* the longest takes ten bytes */
	struct vc_pickle_value *top = m->stack + m->n, *full = m->stack + m->cap;
	const uint64_t *memo = m->memo;
	uint64_t packed, at;

	while (p <= last && top < full) {
		switch (*p) {
		case 'h': case 'j':
			at = *p == 'h' ? p[1] : eight(p + 1) & UINT32_MAX;
			packed = at < m->memos ? memo[at] : 0;
			if (!packed)
				goto out;
			*top++ = pickle_unpacked(packed);
			p += *p == 'h' ? 2 : 5;
			continue;
		case 'K': *top++ = integer(p[1]); p += 2; continue;
		case 'M': *top++ = integer(eight(p + 1) & UINT16_MAX); p += 3; continue;
		case 'J': *top++ = integer((int32_t)eight(p + 1)); p += 5; continue;
		case 0x8a:
			if (p[1] > 8)
				goto out;
			*top++ = integer(short_int(p + 1));
			p += 2 + p[1];
			continue;
		case 0x94:
			if (m->memos >= m->memo_cap || top - m->stack <= (ptrdiff_t)pickle_floor(m))
				goto out;
			m->memo[m->memos++] = pickle_packed(top - 1);
			p++;
			continue;
		case '(':
			if (m->marks == m->mark_cap)
				goto out;
			m->mark[m->marks++] = (size_t)(top - m->stack);
			p++;
			continue;
		default: goto out;
		}
	}
out:
	m->p = p;
	m->n = (size_t)(top - m->stack);
}

int vc_pickle_read(struct vc_input *in, const struct vc_pickle_builder *b,
		   struct vc_pickle_value *root, struct vc_error *err)
{
	struct vc_error own;
	struct pickle_machine m = { .in = in, .b = b, .err = err ? err : &own };
	int rc = 0;

	while (!m.stop && !rc) {
		if (m.cap && m.end - m.p >= 16)
			run_plain(&m);
		rc = pickle_need(&m, 1);
		if (!rc)
			rc = operation(&m, *m.p++);
	}
	if (!rc) {
		*root = m.stack[m.n - 1];
		vc_input_skip(in, (size_t)(m.p - m.start));
	}
	pickle_again_fini(&m.again);
	vc_mapped_free(m.memo, m.memo_cap, sizeof(*m.memo));
	VC_FREE(m.stack, m.mark);
	return rc;
}
