/* SPDX-License-Identifier: Apache-2.0 */
/* pickle_machine.h - the stack, the marks and the memo of the machine that a pickle is a program
 * for. Parts of pickle.c: what stands in its loop is inline. */
#pragma once

#include "common/pickle.h"
#include "common/pickle_again.h"
#include "common/vec.h"

struct pickle_machine {
	struct vc_input *in;
	const struct vc_pickle_builder *b;
	struct vc_error *err;
	const uint8_t *start, *p,
		*end; /* the window at hand; start is what the input calls here */
	struct vc_pickle_value *stack;
	size_t n, cap;
	size_t *mark;
	size_t marks, mark_cap;
	uint64_t *memo; /* as pickle_packed makes them; 0 = not set */
	size_t memos, memo_cap;
	struct pickle_again again;
	bool stop;
};

/* Says where and what, and returns VC_EFORMAT. */
int pickle_bad(struct pickle_machine *m, const char *what);
uint64_t pickle_offset(const struct pickle_machine *m);

/* Make at least n bytes available at m->p, or fail: the pickle ends too early. */
int pickle_need_slowly(struct pickle_machine *m, size_t n);
static inline int pickle_need(struct pickle_machine *m, size_t n)
{
	return (size_t)(m->end - m->p) >= n ? 0 : pickle_need_slowly(m, n);
}

static inline uint64_t pickle_little(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = n; i-- > 0; )
		v = v << 8 | p[i];
	return v;
}

/* ---- stack and marks ---- */

int pickle_push_slowly(struct pickle_machine *m, struct vc_pickle_value v);
static inline int pickle_push(struct pickle_machine *m, struct vc_pickle_value v)
{
	if (m->n == m->cap)
		return pickle_push_slowly(m, v);
	m->stack[m->n++] = v;
	return 0;
}

static inline int pickle_push_plain(struct pickle_machine *m, uint32_t type, int64_t i)
{
	return pickle_push(m, (struct vc_pickle_value){ .type = type, .i = i });
}

int pickle_push_text(struct pickle_machine *m, const char *s, size_t n);

/* Values above the innermost mark (or on the whole stack). */
static inline size_t pickle_floor(const struct pickle_machine *m)
{
	return m->marks ? m->mark[m->marks - 1] : 0;
}

static inline int pickle_has(struct pickle_machine *m, size_t n)
{
	return m->n - pickle_floor(m) >= n ? 0 :
					     pickle_bad(m, "an operation finds too few values");
}

int pickle_push_mark(struct pickle_machine *m);
int pickle_pop_mark(struct pickle_machine *m, size_t *from);

/* ---- memo ---- */

/* A value in eight bytes, never 0; 0: it is none that a writer memoises. Texts and containers are
 * their ref and type, small numbers stand above a bit of their own. */
static inline uint64_t pickle_packed(const struct vc_pickle_value *v)
{
	if (v->type >= VC_PV_TEXT)
		return (uint64_t)v->ref << 32 | v->type;
	if (v->type <= VC_PV_BOOL ||
	    (v->type == VC_PV_INT && v->i >= 0 && v->i < INT64_C(1) << 54))
		return (uint64_t)v->i << 9 | 1 << 8 | v->type;
	return 0;
}

static inline struct vc_pickle_value pickle_unpacked(uint64_t packed)
{
	if (packed & 1 << 8)
		return (struct vc_pickle_value){ .type = packed & 0xff,
						 .i = (int64_t)(packed >> 9) };
	return (struct vc_pickle_value){ .type = (uint32_t)packed, .ref = packed >> 32 };
}

int pickle_memo_put(struct pickle_machine *m, uint64_t at); /* what is on top of the stack */
int pickle_memo_get(struct pickle_machine *m, uint64_t at);
