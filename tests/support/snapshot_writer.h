/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_writer.h - writes pickles the way Python (protocol 4, and 2 item by item) and
 * TorchScript (protocol 2) do, for tests and benches that need snapshots nobody recorded. */
#ifndef VC_SNAPSHOT_WRITER_H
#define VC_SNAPSHOT_WRITER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum pw_style { PW_ITEMS2, PW_TORCHSCRIPT2, PW_PYTHON4 };

struct pw {
	enum pw_style style;
	uint8_t *at;
	size_t n, cap;
	uint32_t memos;
	struct { const char *text; uint32_t memo; } known[256];
	size_t texts;
};

static inline void pw_raw(struct pw *w, const void *data, size_t n)
{
	if (w->cap - w->n < n) {
		w->cap = (w->cap + n) * 2 + 4096;
		w->at = realloc(w->at, w->cap);
	}
	memcpy(w->at + w->n, data, n);
	w->n += n;
}

static inline void pw_op(struct pw *w, char op)
{
	pw_raw(w, &op, 1);
}

static inline void pw_little(struct pw *w, uint64_t v, size_t n)
{
	uint8_t b[8];

	for (size_t i = 0; i < n; i++)
		b[i] = (uint8_t)(v >> (8 * i));
	pw_raw(w, b, n);
}

static inline uint32_t pw_memo(struct pw *w)
{
	if (w->style == PW_PYTHON4)
		pw_op(w, (char)0x94);
	else
		pw_op(w, w->memos < 256 ? 'q' : 'r'),
			pw_little(w, w->memos, w->memos < 256 ? 1 : 4);
	return w->memos++;
}

static inline void pw_get(struct pw *w, uint32_t memo)
{
	pw_op(w, memo < 256 ? 'h' : 'j'), pw_little(w, memo, memo < 256 ? 1 : 4);
}

/* Texts are memoised by content, as interned strings are. */
static inline void pw_text(struct pw *w, const char *s)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < w->texts; i++) {
		if (!strcmp(w->known[i].text, s)) {
			pw_get(w, w->known[i].memo);
			return;
		}
	}
	if (w->style == PW_PYTHON4 && n < 256) {
		pw_op(w, (char)0x8c);
		pw_little(w, n, 1);
		pw_raw(w, s, n);
	} else {
		pw_op(w, 'X');
		pw_little(w, n, 4);
		pw_raw(w, s, n);
	}
	if (w->texts < 256) {
		w->known[w->texts].text = s;
		w->known[w->texts++].memo = w->memos;
	}
	pw_memo(w);
}

static inline void pw_int(struct pw *w, int64_t v)
{
	if (v >= 0 && v < 256)
		pw_op(w, 'K'), pw_little(w, (uint64_t)v, 1);
	else if (v >= 0 && v < 65536)
		pw_op(w, 'M'), pw_little(w, (uint64_t)v, 2);
	else if (v >= INT32_MIN && v <= INT32_MAX)
		pw_op(w, 'J'), pw_little(w, (uint64_t)v, 4);
	else
		pw_op(w, (char)0x8a), pw_little(w, 8, 1), pw_little(w, (uint64_t)v, 8);
}

static inline void pw_bool(struct pw *w, int v)
{
	pw_op(w, (char)(v ? 0x88 : 0x89));
}

static inline void pw_dict(struct pw *w) /* then key, value, ..., pw_dict_end */
{
	pw_op(w, '}');
	pw_memo(w);
	if (w->style != PW_ITEMS2)
		pw_op(w, '(');
}

static inline void pw_item(struct pw *w) /* after each key and value of a dictionary */
{
	if (w->style == PW_ITEMS2)
		pw_op(w, 's');
}

static inline void pw_dict_end(struct pw *w)
{
	if (w->style != PW_ITEMS2)
		pw_op(w, 'u');
}

static inline void pw_list(struct pw *w)
{
	pw_op(w, ']');
	pw_memo(w);
	if (w->style != PW_ITEMS2)
		pw_op(w, '(');
}

static inline void pw_list_item(struct pw *w)
{
	if (w->style == PW_ITEMS2)
		pw_op(w, 'a');
}

static inline void pw_list_end(struct pw *w)
{
	if (w->style != PW_ITEMS2)
		pw_op(w, 'e');
}

static inline void pw_begin(struct pw *w, enum pw_style style)
{
	*w = (struct pw){ .style = style };
	pw_op(w, (char)0x80), pw_little(w, style == PW_PYTHON4 ? 4 : 2, 1);
}

static inline void pw_end(struct pw *w)
{
	pw_op(w, '.');
}

static inline void pw_key_int(struct pw *w, const char *key, int64_t v)
{
	pw_text(w, key);
	pw_int(w, v);
	pw_item(w);
}

static inline void pw_key_text(struct pw *w, const char *key, const char *v)
{
	pw_text(w, key);
	pw_text(w, v);
	pw_item(w);
}

static inline void pw_key_bool(struct pw *w, const char *key, int v)
{
	pw_text(w, key);
	pw_bool(w, v);
	pw_item(w);
}

#endif
