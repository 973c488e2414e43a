/* SPDX-License-Identifier: Apache-2.0 */
/* shelf.c - see shelf.h: two of them, because a what-if with another version reads it anew. */
#include "simulator/session/shelf.h"

#include "common/vec.h"
#include "simulator/session/verify.h"

enum { PLACES = 2 };

struct place {
	char *path, *torch, *claimed;
	struct vc_recording_ask ask;
	struct vc_recording rec;
	unsigned users;
	uint64_t used; /* when it was last asked for */
};

struct vc_shelf { struct place at[PLACES]; uint64_t asked; };

struct vc_shelf *vc_shelf_new(void)
{
	return calloc(1, sizeof(struct vc_shelf));
}

static void empty(struct place *p)
{
	vc_recording_close(&p->rec);
	VC_FREE(p->path, p->torch, p->claimed);
	*p = (struct place){ 0 };
}

void vc_shelf_free(struct vc_shelf *s)
{
	for (size_t i = 0; s && i < PLACES; i++)
		empty(&s->at[i]);
	free(s);
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* One that was open to less serves who is content with it: a recording with requests for who could
 * do without, one that is in memory as a whole for who needs that. */
static bool serves(const struct place *p, const char *path, const struct vc_recording_ask *ask)
{
	const struct vc_recording_ask *a = &p->ask;

	return p->path && !strcmp(p->path, path) && a->device == ask->device &&
	       a->rank == ask->rank && same(p->torch, ask->torch) &&
	       same(p->claimed, ask->claimed) && a->total == ask->total &&
	       a->verify == ask->verify && a->without == ask->without && a->asker == ask->asker &&
	       a->keep == ask->keep && !(a->flags & ~ask->flags & VC_SESSION_NO_REQUESTS_OK) &&
	       (!p->rec.streamed || !((a->flags ^ ask->flags) & VC_SESSION_IN_MEMORY));
}

static struct place *room(struct vc_shelf *s)
{
	struct place *oldest = NULL;

	for (size_t i = 0; i < PLACES; i++)
		if (!s->at[i].users && (!oldest || s->at[i].used < oldest->used))
			oldest = &s->at[i];
	if (oldest)
		empty(oldest);
	return oldest;
}

static int fill(struct place *p, const char *path, const struct vc_recording_ask *ask,
		struct vc_error *err)
{
	p->ask = *ask;
	p->path = strdup(path);
	p->torch = ask->torch ? strdup(ask->torch) : NULL;
	p->claimed = ask->claimed ? strdup(ask->claimed) : NULL;
	VC_HAVE(p->path && (p->torch || !ask->torch) && (p->claimed || !ask->claimed),
		"a recording", err);
	p->ask.torch = p->torch;
	p->ask.claimed = p->claimed;
	VC_TRY(vc_recording_open(&p->rec, p->path, &p->ask, err));
	return ask->verify ? vc_verify(&p->rec, &p->ask, err) : VC_OK;
}

int vc_shelf_take(struct vc_shelf *s, const char *path, const struct vc_recording_ask *ask,
		  const struct vc_recording **out, struct vc_error *err)
{
	struct place *p = NULL;

	*out = NULL;
	for (size_t i = 0; !p && i < PLACES; i++)
		if (serves(&s->at[i], path, ask))
			p = &s->at[i];
	if (!p) {
		p = room(s);
		if (!p)
			return VC_OK;
		int r = fill(p, path, ask, err);
		if (r < 0) {
			empty(p);
			return r;
		}
	}
	p->used = ++s->asked;
	p->users++;
	*out = &p->rec;
	return VC_OK;
}

void vc_shelf_give_back(struct vc_shelf *s, const struct vc_recording *rec)
{
	for (size_t i = 0; i < PLACES; i++)
		if (&s->at[i].rec == rec)
			s->at[i].users--;
}
