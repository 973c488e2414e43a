/* SPDX-License-Identifier: Apache-2.0 */
/* pickle_machine.c - see pickle_machine.h */
#include "common/pickle_machine.h"

#include "common/mapped.h"

#define STACK_MAX ((size_t)1 << 25) /* a list of so many events written in one batch still fits */
#define MARKS_MAX 4096              /* open containers inside each other */

uint64_t pickle_offset(const struct pickle_machine *m)
{
	return vc_input_offset(m->in) + (uint64_t)(m->p - m->start);
}

int pickle_bad(struct pickle_machine *m, const char *what)
{
	return vc_fail(m->err, VC_EFORMAT, "damaged pickle at byte %llu: %s",
		       (unsigned long long)pickle_offset(m), what);
}

int pickle_need_slowly(struct pickle_machine *m, size_t n)
{
	size_t got;

	vc_input_skip(m->in, (size_t)(m->p - m->start));
	m->p = m->start; /* keeps pickle_offset() right if peek fails */
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

int pickle_push_slowly(struct pickle_machine *m, struct vc_pickle_value v)
{
	if (m->n == STACK_MAX)
		return pickle_bad(m, "too many unfinished values");
	VC_HAVE(vc_vec_room(m->stack, m->cap, m->n + 1), "reading the pickle", m->err);
	m->stack[m->n++] = v;
	return 0;
}

int pickle_push_text(struct pickle_machine *m, const char *s, size_t n)
{
	struct vc_pickle_value v = { .type = VC_PV_TEXT };
	int rc = m->b->text(m->b->arg, s, n, &v.ref, m->err);

	return rc ? rc : pickle_push(m, v);
}

int pickle_push_mark(struct pickle_machine *m)
{
	if (m->marks == MARKS_MAX)
		return pickle_bad(m, "nested too deeply");
	VC_HAVE(vc_vec_room(m->mark, m->mark_cap, m->marks + 1), "reading the pickle", m->err);
	m->mark[m->marks++] = m->n;
	return 0;
}

int pickle_pop_mark(struct pickle_machine *m, size_t *from)
{
	if (!m->marks)
		return pickle_bad(m, "the end of a group that never began");
	*from = m->mark[--m->marks];
	return 0;
}

/* Python numbers memos as it goes; a jump can only be damage, and would cost memory. */
int pickle_memo_put(struct pickle_machine *m, uint64_t at)
{
	VC_TRY(pickle_has(m, 1));
	if (at > 2 * (uint64_t)m->memos + 1024)
		return pickle_bad(m, "a memo number out of all proportion");
	VC_HAVE(vc_mapped_room(m->memo, m->memo_cap, at + 1), "the pickle's memo", m->err);
	if (at < m->memos)
		pickle_again_stop(&m->again);
	m->memo[at] = pickle_packed(&m->stack[m->n - 1]); /* 0: a get will say so */
	if (at >= m->memos)
		m->memos = at + 1;
	return 0;
}

int pickle_memo_get(struct pickle_machine *m, uint64_t at)
{
	uint64_t v = at < m->memos ? m->memo[at] : 0;

	if (!v)
		return pickle_bad(m, "use of a memo that was never set");
	return pickle_push(m, pickle_unpacked(v));
}
