/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn.c - a stand-in for libcudnn's graph interface: descriptors, and plans that want what the
 * calling thread says (standin.h). A descriptor is made where the last one was destroyed. It
 * believes whatever is set. STANDIN_CUDNN: its version. */
#include <pthread.h>
#include <stdlib.h>

#include "tests/tracer/torch_standin/standin.h"

enum { POOL = 65536, HANDLE = 0x77, BAD_PARAM = 2000 };
enum { HEUR_RESULTS = 202, PLAN_CONFIG = 401, PLAN_WORKSPACE = 402 };

struct descriptor { struct descriptor *next; int64_t bytes; };

static struct {
	pthread_mutex_t lock;
	struct descriptor *left, pool[POOL];
	int n;
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

__thread struct standin_cudnn standin_cudnn;

void standin_cudnn_fork(bool now)
{
	if (now)
		pthread_mutex_lock(&g.lock);
	else
		pthread_mutex_unlock(&g.lock);
}

size_t cudnnGetVersion(void)
{
	const char *v = getenv("STANDIN_CUDNN");

	return v ? strtoul(v, NULL, 10) : 91900;
}

int cudnnBackendCreateDescriptor(int type, void **out)
{
	struct descriptor *d;

	pthread_mutex_lock(&g.lock);
	d = g.left ? g.left : g.n < POOL ? &g.pool[g.n++] : NULL;
	if (d == g.left && d)
		g.left = d->next;
	pthread_mutex_unlock(&g.lock);
	*out = d;
	if (d)
		*d = (struct descriptor){ .bytes = 0 };
	return d && type >= 0 ? 0 : BAD_PARAM;
}

int cudnnBackendDestroyDescriptor(void *d)
{
	struct descriptor *over = d;

	pthread_mutex_lock(&g.lock);
	over->next = g.left;
	g.left = over;
	pthread_mutex_unlock(&g.lock);
	return standin_cudnn.fails == STANDIN_DESTROY ? standin_cudnn.status : 0;
}

int cudnnBackendFinalize(void *d)
{
	return d ? 0 : BAD_PARAM;
}

int cudnnBackendSetAttribute(void *d, int name, int type, int64_t count, const void *value)
{
	struct descriptor *to = d;

	if (standin_cudnn.fails == name)
		return standin_cudnn.status;
	if (count < 0 || type < 0)
		return BAD_PARAM;
	if (name == PLAN_CONFIG)
		to->bytes = (*(struct descriptor *const *)value)->bytes;
	return 0;
}

int cudnnBackendGetAttribute(void *d, int name, int type, int64_t wanted, int64_t *count,
			     void *out)
{
	struct descriptor **config = out;
	int64_t n = standin_cudnn.results < wanted || !out ? standin_cudnn.results : wanted;

	if (standin_cudnn.fails == name)
		return standin_cudnn.status;
	if (type < 0 || (name != HEUR_RESULTS && name != PLAN_WORKSPACE))
		return BAD_PARAM;
	for (int64_t i = 0; out && name == HEUR_RESULTS && i < n; i++)
		config[i]->bytes = standin_cudnn.bytes;
	if (out && name == PLAN_WORKSPACE)
		*(int64_t *)out = ((struct descriptor *)d)->bytes;
	if (count)
		*count = name == HEUR_RESULTS ? n : 1;
	return 0;
}

int cudnnBackendExecute(void *handle, void *plan, void *pack)
{
	if (standin_cudnn.fails == STANDIN_EXECUTE)
		return standin_cudnn.status;
	return handle == (void *)HANDLE && plan && pack ? 0 : BAD_PARAM;
}
