/* SPDX-License-Identifier: Apache-2.0 */
/* releases.c - see releases.h. Passes of both recordings ask for the same sizes in the same order;
 * where they differ, what follows is looked for a little further on. */
#include "simulator/rewrite/releases.h"

#include "common/vec.h"
#include "simulator/replay/memo.h"

/* Blocks that one has and the other has not; that must follow alike; frames of a call site. */
enum { ASIDE = 32, ALIKE = 4, DEPTH = 256 };

/* Blocks [from, to) of a forward pass, until event `end`; [to, last) of the backward pass. */
struct pass { size_t from, to, end, last, span; };

struct pair {
	const struct vc_anatomy *a, *b;
	const struct vc_trace *bt;
	struct vc_releases *out;
	bool *checkpoint;  /* by string of b: is it the file of torch.utils.checkpoint? */
	size_t *of;        /* by what is asked for again: the block of b */
	uint32_t *at;  /* by block of b, from the pass on: the block of a; 0: none yet */
	size_t matched, all;
};

/* The next forward pass with a backward pass behind it, from span *k on. */
static bool next_pass(const struct vc_anatomy *a, size_t *k, struct pass *p)
{
	for (; *k + 1 < a->spans; ++*k) {
		const struct vc_span *s = &a->span[*k];

		if (s->phase != VC_PHASE_FORWARD || s[1].phase != VC_PHASE_BACKWARD)
			continue;
		*p = (struct pass){ .from = vc_anatomy_block_at(a, s->first),
				    .to = vc_anatomy_block_at(a, s->end), .end = s->end,
				    .last = vc_anatomy_block_at(a, s[1].end),
				    .span = *k };
		++*k;
		return true;
	}
	return false;
}

static bool alike(const struct pair *p, const struct pass *x, const struct pass *y, size_t i,
		  size_t j)
{
	for (size_t k = 0; k < ALIKE && (i + k < x->to || j + k < y->to); k++)
		if (i + k >= x->to || j + k >= y->to ||
		    p->a->block[i + k].size != p->b->block[j + k].size)
			return false;
	return true;
}

/* Past what only one of them has. False: they do not meet again. */
static bool aside(const struct pair *p, const struct pass *x, const struct pass *y, size_t *i,
		  size_t *j)
{
	for (size_t d = 1; d <= ASIDE; d++)
		for (size_t k = 0; k <= d; k++)
			if (*i + k < x->to && *j + d - k < y->to &&
			    alike(p, x, y, *i + k, *j + d - k)) {
				*i += k;
				*j += d - k;
				return true;
			}
	return false;
}

static void note(struct pair *p, const struct pass *x, const struct pass *y, size_t i, size_t j)
{
	const struct vc_block_life *b = &p->b->block[j];
	size_t to = b->died, until = x->to;

	if (b->died_event == SIZE_MAX || b->died_event >= y->end) {
		p->out->until[i] = VC_RELEASE_LATER;
		return;
	}
	while (to < y->to && !p->at[to])
		to++; /* what a does not have came before it */
	if (to < y->to)
		until = p->at[to];
	if (until <= i)
		return; /* it goes before it comes: these are not each other's counterparts */
	p->out->until[i] = (uint32_t)until;
	p->out->next[i] = p->out->first[until];
	p->out->first[until] = (uint32_t)i + 1;
}

static void match(struct pair *p, const struct pass *x, const struct pass *y)
{
	size_t i = x->from, j = y->from;

	p->all += x->to - x->from;
	while (i < x->to && j < y->to) {
		if (p->a->block[i].size != p->b->block[j].size && !aside(p, x, y, &i, &j))
			break;
		p->at[j++] = (uint32_t)i++;
		p->matched++;
	}
	for (j = y->from; j < y->to; j++)
		if (p->at[j])
			note(p, x, y, p->at[j], j);
}

/* ---- recomputations ---- */

/* They run where a saved tensor is unpacked, below functions of torch/utils/checkpoint.py. */
static bool is_again(const struct pair *p, size_t block)
{
	const struct vc_meta *m = p->bt->meta;
	uint32_t at = p->bt->ev[p->b->block[block].event].site;

	for (int depth = 0; at && at < m->frames && depth < DEPTH; depth++) {
		if (m->frame[at].file < m->strings && p->checkpoint[m->frame[at].file])
			return true;
		at = m->frame[at].parent;
	}
	return false;
}

static bool find_checkpoint(struct pair *p)
{
	static const char file[] = "torch/utils/checkpoint.py";
	const struct vc_meta *m = p->bt->meta;

	p->checkpoint = calloc(m->strings + 1, sizeof(*p->checkpoint));
	for (size_t i = 0; p->checkpoint && i < m->strings; i++) {
		size_t n = strlen(m->string[i]);

		p->checkpoint[i] = n + 1 >= sizeof(file) &&
				   !strcmp(m->string[i] + n + 1 - sizeof(file), file);
	}
	return p->checkpoint != NULL;
}

/* When blocks that one recomputation asked for, [from, p->out->agains), go while it lasts. */
static void note_run(struct pair *p, const size_t *block, size_t from)
{
	struct vc_releases *out = p->out;

	for (size_t i = from; i < out->agains; i++) {
		size_t died = p->b->block[block[i]].died, k = i + 1;

		while (k < out->agains && block[k] < died)
			k++;
		out->again[i].gone = k < out->agains ? (uint32_t)k : UINT32_MAX;
	}
}

/* Is that the first block of a recomputation? */
static bool begins_run(const struct pair *p, const struct pass *y, size_t j)
{
	return !p->at[j] && (j == y->to || p->at[j - 1]);
}

/* A saved tensor that is computed again goes when the function that unpacked it is through: before
 * the engine reduces gradients, not behind it. (torch/csrc/autograd/engine.cpp: evaluate_function
 * releases what functions saved last.) */
static void note_death(struct pair *p, const struct pass *y, struct vc_again *k, size_t died)
{
	if (k->gone != UINT32_MAX)
		return;
	k->early = died < y->last && begins_run(p, y, died);
	while (died < y->last && !p->at[died])
		died++;
	if (died >= y->last)
		return;
	k->until = p->at[died];
	k->next = p->out->last[k->until];
	p->out->last[k->until] = (uint32_t)(k - p->out->again) + 1;
}

/* What the forward pass leaves to the backward pass, and be it as the input of a layer. */
static void note_later(struct pair *p, const struct pass *y, uint32_t block, size_t died)
{
	bool early = died < y->last && begins_run(p, y, died);

	while (died < y->last && !p->at[died])
		died++;
	if (died >= y->last)
		return;
	p->out->early[block] = early;
	p->out->dies[block] = p->at[died];
	p->out->next[block] = p->out->first[p->at[died]];
	p->out->first[p->at[died]] = block + 1;
}

/* What the backward pass asks for by itself is the same in both; what is between is computed again.
 */
static void find_again(struct pair *p, const struct pass *x, const struct pass *y, size_t *block)
{
	struct vc_releases *out = p->out;
	size_t i = x->to, run = out->agains, first = run;

	for (size_t j = y->to; j < y->last; j++) {
		if (is_again(p, j)) {
			if (p->b->block[j].died_event == SIZE_MAX ||
			    p->b->block[j].category == VC_CAT_WORKSPACE)
				continue; /* of a handle of the thread that computes again */
			block[out->agains] = j;
			out->again[out->agains++] = (struct vc_again){
				p->b->block[j].size, (uint32_t)x->span, (uint32_t)i, 0,
				UINT32_MAX, false, 0 };
			continue;
		}
		note_run(p, block, run);
		run = out->agains;
		for (size_t d = 0; d <= ASIDE; d++)
			if (i + d < x->last &&
			    p->a->block[i + d].size == p->b->block[j].size) {
				p->at[j] = (uint32_t)(i + d);
				i += d + 1;
				break;
			}
	}
	note_run(p, block, run);
	for (size_t j = y->from; j < y->to; j++)
		if (p->at[j] && out->until[p->at[j]] == VC_RELEASE_LATER)
			note_later(p, y, p->at[j], p->b->block[j].died);
	for (size_t k = first; k < out->agains; k++)
		note_death(p, y, &out->again[k], p->b->block[block[k]].died);
}

static int match_all(struct pair *p, const char *path, struct vc_error *err)
{
	size_t k = 0, m = 0, passes = 0, others = 0;
	struct pass x, y;

	while (next_pass(p->a, &k, &x)) {
		passes++;
		if (!next_pass(p->b, &m, &y))
			break;
		others++;
		match(p, &x, &y);
		find_again(p, &x, &y, p->of);
	}
	if (!passes || others < passes || p->matched * 10 < p->all * 9)
		return vc_fail(err, VC_ENOSUP, "%s: its forward passes are not those of this "
			       "recording (%zu of %zu passes, %zu of %zu requests are alike)", path,
			       others, passes, p->matched, p->all);
	return VC_OK;
}

/* What the second recording is, and how to open it. */
struct ask {
	struct vc_source *(*reads)(const char *path, struct vc_error *err);
	const char *path;
};

static int find_out(struct vc_releases *r, const struct ask *ask, const struct vc_anatomy *a,
		    uint16_t device, struct vc_error *err)
{
	struct vc_source *s = ask->reads ? ask->reads(ask->path, err) : NULL;
	struct vc_trace t = { 0 };
	struct vc_anatomy b = { 0 };
	struct pair p = { .a = a, .b = &b, .bt = &t, .out = r };
	int rc = s ? vc_trace_read(&t, s, err) : ask->reads ? (int)err->status :
		 vc_fail(err, VC_ENOSUP, "%s: a second recording is read only beside one that is a "
			 "file", ask->path);

	vc_source_free(s);
	if (rc == VC_OK)
		rc = vc_anatomy_read(&b, t.ev, t.n, device, t.meta, err);
	r->n = a->n;
	r->until = calloc(a->n + 1, sizeof(*r->until));
	r->first = calloc(a->n + 1, sizeof(*r->first));
	r->next = calloc(a->n + 1, sizeof(*r->next));
	r->last = calloc(a->n + 1, sizeof(*r->last));
	r->early = calloc(a->n + 1, sizeof(*r->early));
	r->dies = calloc(a->n + 1, sizeof(*r->dies));
	r->again = calloc(b.n + 1, sizeof(*r->again));
	p.at = calloc(b.n + 1, sizeof(*p.at));
	p.of = calloc(b.n + 1, sizeof(*p.of));
	if (rc == VC_OK && (!r->until || !r->first || !r->next || !r->last || !r->again ||
			    !r->dies || !r->early || !p.at || !p.of || !find_checkpoint(&p)))
		rc = vc_nomem(err, "when blocks are given back");
	for (size_t i = 0; rc == VC_OK && i < a->n; i++)
		r->until[i] = VC_RELEASE_UNKNOWN;
	if (rc == VC_OK)
		rc = match_all(&p, ask->path, err);
	VC_FREE(p.at, p.of, p.checkpoint);
	vc_anatomy_fini(&b);
	vc_trace_fini(&t);
	return rc;
}

/* ---- kept with the trace ---- */

struct kept {
	struct vc_memo memo; /* first */
	struct vc_releases releases;
};

static void drop(struct vc_memo *m)
{
	struct kept *k = (struct kept *)m;

	vc_releases_fini(&k->releases);
	free(k);
}

/* arg: struct ask; the key says the path. */
static int make(const struct vc_trace *t, uint64_t key, const void *arg, struct vc_memo **out,
		struct vc_error *err)
{
	struct kept *k = calloc(1, sizeof(*k));
	struct vc_anatomy a = { 0 };
	int r = k ? vc_anatomy_of(&a, t, (uint16_t)key, err) : vc_nomem(err, "releases");

	if (r == VC_OK)
		r = find_out(&k->releases, arg, &a, (uint16_t)key, err);
	vc_anatomy_fini(&a);
	if (r < 0) {
		if (k)
			vc_releases_fini(&k->releases);
		free(k);
		return r;
	}
	k->memo.drop = drop;
	k->memo.bytes = 5 * k->releases.n * sizeof(uint32_t) +
			k->releases.agains * sizeof(*k->releases.again);
	*out = &k->memo;
	return VC_OK;
}

/* Of the path, behind 16 bits of device. (FNV-1a) */
static uint64_t key_of(const char *path, uint16_t device)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (; *path; path++)
		h = (h ^ (unsigned char)*path) * 0x100000001b3ull;
	return h << 16 | device;
}

int vc_releases_read(struct vc_releases *r, const struct vc_source *of, const char *path,
		     const struct vc_trace *same, const struct vc_anatomy *a, uint16_t device,
		     struct vc_error *err)
{
	const struct ask ask = { of->reads, path };
	struct vc_memo *m;

	*r = (struct vc_releases){ 0 };
	if (!same) {
		int rc = find_out(r, &ask, a, device, err);

		if (rc < 0)
			vc_releases_fini(r);
		return rc;
	}
	VC_TRY(vc_memo_get(same, key_of(path, device), make, &ask, &m, err));
	*r = ((struct kept *)m)->releases;
	r->lent = m;
	return VC_OK;
}

void vc_releases_fini(struct vc_releases *r)
{
	if (r->lent)
		vc_memo_put(r->lent);
	else
		VC_FREE(r->until, r->first, r->next, r->last, r->dies, r->early, r->again);
	*r = (struct vc_releases){ 0 };
}
