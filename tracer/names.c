/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - see names.h: a table remembers where a name was stored. */
#define _GNU_SOURCE
#include "tracer/names.h"

#include <pthread.h>
#include <sys/mman.h>

#include "tracer/recorder.h"

enum { FIRST = 1024, MOST = 1 << 23 }; /* slots; of what comes then each is stored anew */

struct slot { uint32_t hash, at, size; };

static struct {
	pthread_mutex_t lock;
	struct slot *slot;
	uint32_t slots, names; /* slots: a power of two, at most half of them taken */
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint32_t hash_of(const char *s, size_t n)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)s[i]) * 16777619u;
	return h ? h : 1;
}

/* The slot that holds the name, or where it belongs. */
static struct slot *find(struct slot *slot, uint32_t slots, uint32_t h, const char *s, size_t n)
{
	uint32_t i = h & (slots - 1);

	while (slot[i].hash && (!s || slot[i].hash != h || slot[i].size != n ||
				memcmp(vc_recorder_stored(slot[i].at), s, n) != 0))
		i = (i + 1) & (slots - 1);
	return &slot[i];
}

/* From mmap, because malloc may be in the middle of something, or recorded itself. */
static bool make_room(void)
{
	uint32_t slots = g.slots ? 2 * g.slots : FIRST;
	void *p = slots > MOST ? MAP_FAILED :
		  mmap(NULL, slots * sizeof(struct slot), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	for (uint32_t i = 0; i < g.slots; i++)
		if (g.slot[i].hash)
			*find(p, slots, g.slot[i].hash, NULL, 0) = g.slot[i];
	if (g.slot)
		munmap(g.slot, g.slots * sizeof(struct slot));
	g.slot = p;
	g.slots = slots;
	return true;
}

uint32_t vc_names_put(const char *s)
{
	size_t n = s ? strlen(s) : 0;
	struct slot *at = NULL;
	uint32_t h, text;

	if (!n || !vc_recorder_open())
		return 0;
	h = hash_of(s, n);
	pthread_mutex_lock(&g.lock);
	if (2 * g.names < g.slots || make_room() || g.names < g.slots - 1)
		at = g.slot ? find(g.slot, g.slots, h, s, n) : NULL;
	if (at && at->hash) {
		text = at->at;
	} else {
		text = vc_recorder_text(s, n);
		if (at && text) {
			*at = (struct slot){ h, text, (uint32_t)n };
			g.names++;
		}
	}
	pthread_mutex_unlock(&g.lock);
	return text;
}

void vc_names_before_fork(void)
{
	pthread_mutex_lock(&g.lock);
}

void vc_names_after_fork(bool child)
{
	if (child && g.slot) {
		memset(g.slot, 0, g.slots * sizeof(struct slot));
		g.names = 0;
	}
	pthread_mutex_unlock(&g.lock);
}
