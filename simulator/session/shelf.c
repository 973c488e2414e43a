/* SPDX-License-Identifier: Apache-2.0 */
/* shelf.c - see shelf.h: two of them, because a what-if with another version verifies it anew. What
 * was read is lent from one to the other. */
#include "simulator/session/shelf.h"

#include "common/vec.h"
#include "simulator/replay/memo.h"
#include "simulator/session/verify.h"

enum { PLACES = 2 };

struct place {
	char *path, *torch, *claimed;
	struct vc_recording_ask ask;
	struct vc_recording rec;
	struct place *lender; /* (opt) of its events */
	unsigned users; /* one who borrows is one of them */
	uint64_t used; /* when it was last asked for */
};

struct vc_shelf { struct place at[PLACES]; uint64_t asked; };

struct vc_shelf *vc_shelf_new(void)
{
	return calloc(1, sizeof(struct vc_shelf));
}

/* Where the recording does not say who made it, what is known of it hangs on who is asked about. */
static bool says_who(const struct vc_recording *rec)
{
	return rec->meta->torch && !rec->meta->torch_guessed;
}

static void empty(struct place *p)
{
	if (p->lender) {
		if (!says_who(&p->rec))
			vc_memos_free(p->rec.trace.memos);
		VC_FREE(p->rec.fidelity.diverged_why, p->rec.seen.witness);
		p->lender->users--;
	} else {
		vc_recording_close(&p->rec);
	}
	VC_FREE(p->path, p->torch, p->claimed);
	*p = (struct place){ 0 };
}

void vc_shelf_free(struct vc_shelf *s)
{
	for (size_t i = 0; s && i < PLACES; i++)
		if (s->at[i].lender) /* who borrows goes before who lends */
			empty(&s->at[i]);
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
static bool has_read(const struct place *p, const char *path, const struct vc_recording_ask *ask)
{
	const struct vc_recording_ask *a = &p->ask;

	return p->path && !strcmp(p->path, path) && a->device == ask->device &&
	       a->rank == ask->rank && a->without == ask->without && a->asker == ask->asker &&
	       a->keep == ask->keep && !(a->flags & ~ask->flags & VC_SESSION_NO_REQUESTS_OK) &&
	       (!p->rec.streamed || !((a->flags ^ ask->flags) & VC_SESSION_IN_MEMORY));
}

/* The size of the device is of interest where segments grow (try_totals() of verify.c). */
static bool serves(const struct place *p, const char *path, const struct vc_recording_ask *ask)
{
	const char *conf = p->path ? p->rec.meta->conf : NULL;

	return has_read(p, path, ask) && same(p->torch, ask->torch) &&
	       same(p->claimed, ask->claimed) && p->ask.verify == ask->verify &&
	       (p->ask.total == ask->total || !conf || !strstr(conf, "expandable_segments"));
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

static int borrow(struct place *p, struct place *from, struct vc_error *err)
{
	p->rec = vc_recording_as(&from->rec, &p->ask);
	p->rec.path = p->path;
	p->lender = from;
	from->users++;
	if (says_who(&p->rec))
		return VC_OK;
	p->rec.trace.memos = NULL;
	return vc_trace_keep(&p->rec.trace, err);
}

static int fill(struct vc_shelf *s, struct place *p, const char *path,
		const struct vc_recording_ask *ask, struct vc_error *err)
{
	struct place *from = NULL;

	p->ask = *ask;
	p->path = strdup(path);
	p->torch = ask->torch ? strdup(ask->torch) : NULL;
	p->claimed = ask->claimed ? strdup(ask->claimed) : NULL;
	VC_HAVE(p->path && (p->torch || !ask->torch) && (p->claimed || !ask->claimed),
		"a recording", err);
	p->ask.torch = p->torch;
	p->ask.claimed = p->claimed;
	for (size_t i = 0; i < PLACES; i++)
		if (&s->at[i] != p && !s->at[i].lender && !s->at[i].rec.streamed &&
		    has_read(&s->at[i], path, ask))
			from = &s->at[i];
	VC_TRY(from ? borrow(p, from, err) : vc_recording_open(&p->rec, p->path, &p->ask, err));
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
		int r = fill(s, p, path, ask, err);
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
