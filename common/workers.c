/* SPDX-License-Identifier: Apache-2.0 */
/* workers.c - a pool that lives for one call. Which thread does what never shows in the result. */
#include "common/workers.h"
#include "common/vec.h"

#include <pthread.h>
#include <unistd.h>

struct slot { bool ready; int rc; struct vc_error err; };

struct pool {
	const struct vc_work *w;
	pthread_mutex_t lock;
	pthread_cond_t finished;
	size_t next;
	size_t awaited; /* the job that the caller sleeps for; SIZE_MAX: none */
	bool stop;
	struct slot *slot;
};

/* The next job; false: none is left. The caller holds the lock, which is let go of meanwhile. */
static bool work(struct pool *p)
{
	size_t i = p->next;
	struct slot *s = &p->slot[i];

	if (p->stop || i >= p->w->n)
		return false;
	p->next++;
	pthread_mutex_unlock(&p->lock);
	s->rc = p->w->job(p->w->arg, i, &s->err);
	pthread_mutex_lock(&p->lock);
	s->ready = true;
	if (p->awaited == i)
		pthread_cond_signal(&p->finished);
	return true;
}

static void *worker(void *arg)
{
	struct pool *p = arg;

	pthread_mutex_lock(&p->lock);
	while (work(p))
		;
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Hand the results over in order; the first failure stops the workers. Whoever would wait for a job
 * does another one: jobs are as short as a replay of a few thousand events, and a sleep between
 * two of them takes as long. */
static int collect(struct pool *p, struct vc_error *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < p->w->n; i++) {
		pthread_mutex_lock(&p->lock);
		while (!p->slot[i].ready) {
			if (work(p))
				continue;
			p->awaited = i;
			pthread_cond_wait(&p->finished, &p->lock);
		}
		p->awaited = SIZE_MAX;
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
	struct pool p = { .w = w, .awaited = SIZE_MAX,
			  .slot = calloc(w->n + 1, sizeof(*p.slot)) };
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
	while (started + 1 < threads && !pthread_create(&t[started], NULL, worker, &p))
		started++; /* one less: the caller works too */
	rc = collect(&p, err);
	for (size_t i = 0; i < started; i++)
		pthread_join(t[i], NULL);
	pthread_cond_destroy(&p.finished);
	pthread_mutex_destroy(&p.lock);
	VC_FREE(p.slot, t);
	return rc;
}
