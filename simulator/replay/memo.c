/* SPDX-License-Identifier: Apache-2.0 */
/* memo.c - see memo.h */
#include "simulator/replay/memo.h"

#include <pthread.h>

#include "simulator/replay/source.h"

struct vc_memos {
	pthread_mutex_t lock; /* recursive: one finding leads to another */
	struct vc_memo *first;
	uint64_t bytes;
};

int vc_trace_keep(struct vc_trace *t, struct vc_error *err)
{
	pthread_mutexattr_t recursive;

	if (t->memos)
		return VC_OK;
	if (t->meta)
		VC_TRY(vc_meta_keep_sites(t->meta, err));
	t->memos = calloc(1, sizeof(*t->memos));
	VC_HAVE(t->memos, "what is known about a trace", err);
	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&t->memos->lock, &recursive);
	pthread_mutexattr_destroy(&recursive);
	return VC_OK;
}

void vc_memo_put(struct vc_memo *m)
{
	if (m && atomic_fetch_sub(&m->users, 1) == 1)
		m->drop(m);
}

void vc_memos_free(struct vc_memos *memos)
{
	if (!memos)
		return;
	for (struct vc_memo *m = memos->first, *next; m; m = next) {
		next = m->next;
		vc_memo_put(m);
	}
	pthread_mutex_destroy(&memos->lock);
	free(memos);
}

/* The caller holds the lock, where there is one. */
static int find(const struct vc_trace *t, uint64_t key, vc_memo_fn *make, const void *arg,
		struct vc_memo **out, struct vc_error *err)
{
	struct vc_memo *m = t->memos ? t->memos->first : NULL;

	while (m && (m->make != make || m->key != key))
		m = m->next;
	if (!m) {
		VC_TRY(make(t, key, arg, &m, err));
		m->make = make;
		m->key = key;
		m->users = 0;
		if (t->memos && t->memos->bytes + m->bytes <= VC_MEMO_MOST) {
			t->memos->bytes += m->bytes;
			m->users = 1;
			m->next = t->memos->first;
			t->memos->first = m;
		}
	}
	atomic_fetch_add(&m->users, 1);
	*out = m;
	return VC_OK;
}

int vc_memo_get(const struct vc_trace *t, uint64_t key, vc_memo_fn *make, const void *arg,
		struct vc_memo **out, struct vc_error *err)
{
	int r;

	if (t->memos)
		pthread_mutex_lock(&t->memos->lock);
	r = find(t, key, make, arg, out, err);
	if (t->memos)
		pthread_mutex_unlock(&t->memos->lock);
	return r;
}
