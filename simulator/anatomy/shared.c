/* SPDX-License-Identifier: Apache-2.0 */
/* shared.c - the anatomy of a trace, found out once and kept with it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "simulator/anatomy/anatomy.h"

struct shared {
	struct vc_anatomy anatomy;
	struct shared *next;
	uint16_t device;
};

struct memo {
	struct vc_memo memo; /* first: what the trace knows of it */
	pthread_mutex_t lock;
	struct shared *first;
};

static void drop(struct vc_memo *memo)
{
	struct memo *m = (struct memo *)memo;

	for (struct shared *s = m->first, *next; s; s = next) {
		next = s->next;
		vc_anatomy_fini(&s->anatomy);
		free(s);
	}
	pthread_mutex_destroy(&m->lock);
	free(m);
}

int vc_anatomy_share(struct vc_trace *t, struct vc_error *err)
{
	struct memo *m = t->memo ? NULL : calloc(1, sizeof(*m));

	if (t->memo)
		return VC_OK;
	if (!m)
		return vc_nomem(err, "the anatomy of a trace");
	pthread_mutex_init(&m->lock, NULL);
	m->memo.drop = drop;
	t->memo = &m->memo;
	return VC_OK;
}

/* The caller holds the lock. */
static int find(struct memo *m, const struct vc_trace *t, uint16_t device, struct vc_anatomy *a,
		struct vc_error *err)
{
	struct shared *s = m->first;
	int r = VC_OK;

	while (s && s->device != device)
		s = s->next;
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return vc_nomem(err, "the anatomy of a trace");
		r = vc_anatomy_read(&s->anatomy, t->ev, t->n, device, t->meta, err);
		if (r < 0) {
			free(s);
			return r;
		}
		s->device = device;
		s->next = m->first;
		m->first = s;
	}
	*a = s->anatomy;
	a->lent = true;
	return VC_OK;
}

int vc_anatomy_of(struct vc_anatomy *a, const struct vc_trace *t, uint16_t device,
		  struct vc_error *err)
{
	struct memo *m = (struct memo *)t->memo;
	int r;

	if (!m)
		return vc_anatomy_read(a, t->ev, t->n, device, t->meta, err);
	*a = (struct vc_anatomy){ 0 };
	pthread_mutex_lock(&m->lock);
	r = find(m, t, device, a, err);
	pthread_mutex_unlock(&m->lock);
	return r;
}

int vc_anatomy_own(struct vc_anatomy *a, struct vc_error *err)
{
	struct vc_block_life *block;
	struct vc_span *span;

	if (!a->lent)
		return VC_OK;
	block = malloc((a->n + 1) * sizeof(*block));
	span = malloc((a->spans + 1) * sizeof(*span));
	if (!block || !span) {
		free(block);
		free(span);
		return vc_nomem(err, "the anatomy of a trace");
	}
	if (a->n)
		memcpy(block, a->block, a->n * sizeof(*block));
	if (a->spans)
		memcpy(span, a->span, a->spans * sizeof(*span));
	a->block = block;
	a->span = span;
	a->lent = false;
	return VC_OK;
}
