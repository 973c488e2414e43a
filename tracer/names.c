/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - see names.h: a small table remembers where a name was stored. */
#include "tracer/names.h"

#include <pthread.h>
#include <string.h>

#include "tracer/recorder.h"

enum { SLOTS = 4096 }; /* different names; further ones are stored anew each time */

static struct {
	pthread_mutex_t lock;
	uint32_t hash[SLOTS], at[SLOTS];
	uint32_t size[SLOTS];
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint32_t hash_of(const char *s, size_t n)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)s[i]) * 16777619u;
	return h ? h : 1;
}

uint32_t vc_names_put(const char *s)
{
	uint32_t h, at = 0;
	size_t i, n = s ? strlen(s) : 0;

	if (!n || !vc_recorder_open())
		return 0;
	h = hash_of(s, n);
	pthread_mutex_lock(&g.lock);
	for (i = 0; i < 64; i++) {
		size_t k = (h + i) % SLOTS;

		if (!g.hash[k]) {
			at = vc_recorder_text(s, n);
			g.hash[k] = h;
			g.size[k] = (uint32_t)n;
			g.at[k] = at;
			break;
		}
		if (g.hash[k] == h && g.size[k] == n &&
		    memcmp(vc_recorder_stored(g.at[k]), s, n) == 0) {
			at = g.at[k];
			break;
		}
	}
	pthread_mutex_unlock(&g.lock);
	return i < 64 ? at : vc_recorder_text(s, n);
}

void vc_names_before_fork(void)
{
	pthread_mutex_lock(&g.lock);
}

void vc_names_after_fork(bool child)
{
	if (child)
		memset(g.hash, 0, sizeof(g.hash));
	pthread_mutex_unlock(&g.lock);
}
