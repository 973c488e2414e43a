/* SPDX-License-Identifier: Apache-2.0 */
/* made_up.c - numbers in device memory that ranks which do not run would have decided. Whoever
 * reads one on the host may decide a size by it: the report names the call that it came from. */
#include "nullgpu/null.h"

#include <pthread.h>

#define MARKS 256 /* beyond them the oldest is forgotten */

static struct mark {
	uint64_t at, size;
	const char *what; /* NULL: free */
} marks[MARKS];
static unsigned oldest, used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*told)(const char *what);

static bool overlaps(const struct mark *m, uint64_t at, uint64_t size)
{
	return m->what && m->at < at + size && at < m->at + m->size;
}

void vc_null_made_up(const void *p, uint64_t size, const char *what)
{
	if (!size || (!what && !__atomic_load_n(&used, __ATOMIC_ACQUIRE)))
		return;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < MARKS; i++)
		if (overlaps(&marks[i], (uint64_t)p, size)) {
			marks[i].what = NULL;
			used--;
		}
	if (what) {
		used += !marks[oldest].what;
		marks[oldest] = (struct mark){ (uint64_t)p, size, what };
		oldest = (oldest + 1) % MARKS;
	}
	pthread_mutex_unlock(&lock);
}

const char *vc_null_is_made_up(const void *p, uint64_t size)
{
	const char *what = NULL;
	if (!size || !__atomic_load_n(&used, __ATOMIC_ACQUIRE))
		return NULL;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < MARKS && !what; i++)
		what = overlaps(&marks[i], (uint64_t)p, size) ? marks[i].what : NULL;
	pthread_mutex_unlock(&lock);
	return what;
}

void vc_null_on_made_up(void (*tell)(const char *what))
{
	__atomic_store_n(&told, tell, __ATOMIC_RELEASE);
}

void vc_null_read_made_up(const char *what)
{
	void (*tell)(const char *) = __atomic_load_n(&told, __ATOMIC_ACQUIRE);
	if (tell)
		tell(what);
	else
		vc_null_ranks_decide(what);
}
