/* SPDX-License-Identifier: Apache-2.0 */
/* marks.c - vramcast_mark and vramcast_step: marks that the program, or Python through ctypes,
 * sets.
 *
 * A name is stored once: a small table remembers where. */
#include <pthread.h>
#include <string.h>

#include "tracer/marks.h"

#include "tracer/cuda_calls.h"
#include "tracer/recorder.h"
#include "tracer/stacks.h"
#include "tracer/torch.h"

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

uint32_t vc_marks_name(const char *s, size_t n)
{
	uint32_t h, at = 0;
	size_t i;

	if (!s || !n || !vc_recorder_open())
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

void vc_marks_put(enum vc_mark what, uint32_t name)
{
	vc_marks_value(what, name, 0);
}

void vc_marks_value(enum vc_mark what, uint32_t name, uint64_t bytes)
{
	/* Of the card this thread works on: a rank has not the first one, and its steps are that
	 * card's. */
	uint16_t device = vc_torch_watching() ? vc_cuda_device() : 0;
	struct vc_record *r = vc_record_begin();

	if (!r)
		return;
	r->kind = VC_EV_MARK;
	r->flags = (uint8_t)what;
	r->device = device;
	r->time_ns = vc_clock_ns();
	r->addr = r->extra = r->stream = r->reserved = 0;
	r->size = bytes;
	r->text = name;
	vc_record_commit(r);
	if (vc_recorder_how(VC_CAP_MARKS) != VC_HOW_RECORDED)
		vc_recorder_capability(VC_CAP_MARKS, VC_HOW_RECORDED);
}

void vc_marks_before_fork(void)
{
	pthread_mutex_lock(&g.lock);
}

void vc_marks_after_fork(bool child)
{
	if (child)
		memset(g.hash, 0, sizeof(g.hash));
	pthread_mutex_unlock(&g.lock);
}

/* The exported ones: for C programs (weak reference or dlsym) and ctypes.CDLL(None). */
void vramcast_mark(const char *name);
void vramcast_step(void);

VC_EXPORT void vramcast_mark(const char *name)
{
	if (name)
		vc_marks_put(VC_MARK_INSTANT, vc_marks_name(name, strlen(name)));
}

VC_EXPORT void vramcast_step(void)
{
	vc_marks_put(VC_MARK_STEP, vc_marks_name("step", 4));
	vc_stacks_step();
	vc_cuda_sample_sometimes();
}
