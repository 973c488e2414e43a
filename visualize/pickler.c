/* SPDX-License-Identifier: Apache-2.0 */
/* pickler.c - see pickler.h. Opcodes: Lib/pickletools.py of CPython. */
#include "visualize/pickler.h"

#include "common/vec.h"

enum opcode {
	PROTO = 0x80, STOP = '.', MARK = '(', EMPTY_DICT = '}', EMPTY_LIST = ']', SETITEMS = 'u',
	APPENDS = 'e', BININT1 = 'K', BININT2 = 'M', BININT = 'J', LONG1 = 0x8a, BINFLOAT = 'G',
	NEWTRUE = 0x88, NEWFALSE = 0x89, SHORT_TEXT = 0x8c, TEXT = 'X', MEMOIZE = 0x94, GET = 'h',
	LONG_GET = 'j', TUPLE2 = 0x86,
};
enum { VERSION = 4, BATCH = 1000 }; /* of the viewer: 130,000 items at once overflow its stack */

struct vc_word { char *text; uint32_t memo, next; }; /* next: word + 1 with the same hash */

static void put(struct vc_pickler *p, const void *data, size_t n)
{
	vc_output_write(p->out, data, n);
}

static void op(struct vc_pickler *p, enum opcode c)
{
	uint8_t b = (uint8_t)c;

	put(p, &b, 1);
}

/* The n low bytes of v, little end first. */
static void low_bytes(struct vc_pickler *p, uint64_t v, size_t n)
{
	uint8_t b[8];

	for (size_t i = 0; i < n; i++)
		b[i] = (uint8_t)(v >> 8 * i);
	put(p, b, n);
}

void vc_pickle_open(struct vc_pickler *p, struct vc_output *out)
{
	*p = (struct vc_pickler){ .out = out };
	op(p, PROTO);
	low_bytes(p, VERSION, 1);
}

bool vc_pickle_close(struct vc_pickler *p)
{
	op(p, STOP);
	for (size_t i = 0; i < p->words; i++)
		free(p->word[i].text);
	VC_FREE(p->word, p->known.slot);
	return !p->nomem;
}

/* ---- values ---- */

void vc_pickle_uint(struct vc_pickler *p, uint64_t v)
{
	size_t n = 4;

	if (v < 0x100) {
		op(p, BININT1);
		low_bytes(p, v, 1);
	} else if (v < 0x10000) {
		op(p, BININT2);
		low_bytes(p, v, 2);
	} else if (v < 0x80000000u) {
		op(p, BININT);
		low_bytes(p, v, 4);
	} else {
		while (n < 8 &&
		       v >> (8 * n - 1)) /* two's complement: the top bit must stay clear */
			n++;
		op(p, LONG1);
		low_bytes(p, n + (v >> 63), 1);
		low_bytes(p, v, n);
		if (v >> 63)
			low_bytes(p, 0, 1);
	}
}

void vc_pickle_int(struct vc_pickler *p, int64_t v)
{
	if (v >= 0) {
		vc_pickle_uint(p, (uint64_t)v);
		return;
	}
	op(p, LONG1);
	low_bytes(p, 8, 1);
	low_bytes(p, (uint64_t)v, 8);
}

void vc_pickle_real(struct vc_pickler *p, double v)
{
	uint64_t bits;
	uint8_t b[8];

	memcpy(&bits, &v, sizeof(bits));
	for (size_t i = 0; i < 8; i++)
		b[i] = (uint8_t)(bits >> (56 - 8 * i)); /* big end first */
	op(p, BINFLOAT);
	put(p, b, 8);
}

void vc_pickle_bool(struct vc_pickler *p, bool v)
{
	op(p, v ? NEWTRUE : NEWFALSE);
}

/* ---- texts ---- */

static uint64_t hash(const char *s)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a, 64 bits */

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return h;
}

static void write_text(struct vc_pickler *p, const char *text)
{
	size_t n = strlen(text);

	op(p, n < 0x100 ? SHORT_TEXT : TEXT);
	low_bytes(p, n, n < 0x100 ? 1 : 4);
	put(p, text, n);
}

static bool add_word(struct vc_pickler *p, const char *text, uint64_t key, uint32_t next)
{
	char *copy = strdup(text);

	if (!vc_vec_room(p->word, p->word_cap, p->words + 1)) {
		free(copy);
		return false;
	}
	if (!copy || !vc_map_put(&p->known, key, p->words + 1)) {
		free(copy);
		return false;
	}
	p->word[p->words++] = (struct vc_word){ copy, 0, next };
	return true;
}

void vc_pickle_word(struct vc_pickler *p, const char *text)
{
	uint64_t key = hash(text), *known = vc_map_get(&p->known, key);
	uint32_t first = known ? (uint32_t)*known : 0;

	for (uint32_t i = first; i; i = p->word[i - 1].next) {
		if (!strcmp(p->word[i - 1].text, text)) {
			vc_pickle_again(p, &p->word[i - 1].memo);
			return;
		}
	}
	write_text(p, text);
	if (add_word(p, text, key, first))
		p->word[p->words - 1].memo = vc_pickle_memo(p);
	else
		p->nomem = true;
}

/* ---- containers ---- */

uint32_t vc_pickle_memo(struct vc_pickler *p)
{
	op(p, MEMOIZE);
	return ++p->memos;
}

bool vc_pickle_again(struct vc_pickler *p, const uint32_t *memo)
{
	if (!*memo)
		return false;
	op(p, *memo - 1 < 0x100 ? GET : LONG_GET);
	low_bytes(p, *memo - 1, *memo - 1 < 0x100 ? 1 : 4);
	return true;
}

void vc_pickle_dict(struct vc_pickler *p)
{
	op(p, EMPTY_DICT);
}

void vc_pickle_list(struct vc_pickler *p)
{
	op(p, EMPTY_LIST);
}

void vc_pickle_mark(struct vc_pickler *p)
{
	op(p, MARK);
}

void vc_pickle_setitems(struct vc_pickler *p)
{
	op(p, SETITEMS);
}

void vc_pickle_two(struct vc_pickler *p, uint64_t a, uint64_t b)
{
	vc_pickle_uint(p, a);
	vc_pickle_uint(p, b);
	op(p, TUPLE2);
}

void vc_pickle_pair_uint(struct vc_pickler *p, const char *key, uint64_t v)
{
	vc_pickle_word(p, key);
	vc_pickle_uint(p, v);
}

void vc_pickle_pair_text(struct vc_pickler *p, const char *key, const char *text)
{
	vc_pickle_word(p, key);
	vc_pickle_word(p, text);
}

void vc_batch_begin(struct vc_batch *b, struct vc_pickler *p)
{
	*b = (struct vc_batch){ .p = p };
	vc_pickle_list(p);
	b->memo = vc_pickle_memo(p);
	vc_pickle_mark(p);
}

void vc_batch_item(struct vc_batch *b)
{
	if (++b->n % BATCH)
		return;
	op(b->p, APPENDS);
	vc_pickle_mark(b->p);
}

void vc_batch_end(struct vc_batch *b)
{
	op(b->p, APPENDS);
}
