/* SPDX-License-Identifier: Apache-2.0 */
/* workers.c - a pool that lives for one call. Which thread does what never shows in the result. */
#include "common/workers.h"
#include "common/vec.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

struct slot { bool ready; int rc; struct vc_error err; };

struct pool {
	const struct vc_work *w;
	pthread_mutex_t lock;
	pthread_cond_t finished;
	size_t next;
	bool stop;
	struct slot *slot;
};

static void *worker(void *arg)
{
	struct pool *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->stop && p->next < p->w->n) {
		size_t i = p->next++;
		struct slot *s = &p->slot[i];

		pthread_mutex_unlock(&p->lock);
		s->rc = p->w->job(p->w->arg, i, &s->err);
		pthread_mutex_lock(&p->lock);
		s->ready = true;
		pthread_cond_signal(&p->finished);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Hand the results over in order; the first failure stops the workers. */
static int collect(struct pool *p, struct vc_error *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < p->w->n; i++) {
		pthread_mutex_lock(&p->lock);
		while (!p->slot[i].ready)
			pthread_cond_wait(&p->finished, &p->lock);
		pthread_mutex_unlock(&p->lock);
		rc = p->slot[i].rc;
		if (rc < 0 && err)
			*err = p->slot[i].err;
		if (rc >= 0)
			rc = p->w->done ? p->w->done(p->w->arg, i, err) : 0;
	}
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_mutex_unlock(&p->lock);
	return rc;
}

size_t vc_workers_most(size_t most)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	size_t n = cores > 0 ? (size_t)cores : 1;

	return n < most ? n : most;
}

int vc_workers_run(const struct vc_work *w, struct vc_error *err)
{
	size_t threads = w->threads ? w->threads : vc_workers_most(SIZE_MAX), started = 0;
	struct pool p = { .w = w, .slot = calloc(w->n + 1, sizeof(*p.slot)) };
	pthread_t *t;
	int rc;

	if (threads > w->n)
		threads = w->n;
	t = calloc(threads + 1, sizeof(*t));
	if (!p.slot || !t) {
		VC_FREE(p.slot, t);
		return vc_nomem(err, "the worker threads");
	}
	pthread_mutex_init(&p.lock, NULL);
	pthread_cond_init(&p.finished, NULL);
	while (started < threads && !pthread_create(&t[started], NULL, worker, &p))
		started++;
	if (!started)
		worker(&p); /* no threads to be had: do it here */
	rc = collect(&p, err);
	for (size_t i = 0; i < started; i++)
		pthread_join(t[i], NULL);
	pthread_cond_destroy(&p.finished);
	pthread_mutex_destroy(&p.lock);
	VC_FREE(p.slot, t);
	return rc;
}
