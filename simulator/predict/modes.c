/* SPDX-License-Identifier: Apache-2.0 */
/* modes.c - see modes.h */
#include "simulator/predict/modes.h"

#include <stdlib.h>
#include <string.h>

#include "common/vec.h"
#include "simulator/anatomy/anatomy.h"


enum vc_mode vc_mode_of_name(const char *name, const char **rest)
{
	static const struct { const char *word; enum vc_mode part;
	} known[] = {
		{ "train_", VC_MODE_TRAIN }, { "training_", VC_MODE_TRAIN },
		{ "eval_", VC_MODE_EVAL },   { "val_", VC_MODE_EVAL },
		{ "valid_", VC_MODE_EVAL },  { "validation_", VC_MODE_EVAL },
		{ "test_", VC_MODE_EVAL },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		size_t n = strlen(known[i].word);

		if (strncmp(name, known[i].word, n) || !name[n])
			continue;
		if (rest)
			*rest = name + n;
		return known[i].part;
	}
	if (rest)
		*rest = name;
	return VC_MODE_ALL;
}

/* Does a block from between two iterations live through the next forward pass? A batch that was
 * put on the card before the model was called does; what an evaluation leaves behind is
 * overwritten by then. */
static bool lives_on(const struct vc_anatomy *a, const struct vc_block_life *b)
{
	for (size_t k = b->span + 1; k < a->spans; k++)
		if (a->span[k].phase == VC_PHASE_FORWARD)
			return b->died_event >= a->span[k].end;
	return false;
}

/* The shortest of the gaps between iterations, where it is no more than half of the longest: what
 * happens there is no evaluation. spans: none. */
static size_t plain_gap(const struct vc_anatomy *a)
{
	size_t best = a->spans, least = SIZE_MAX, most = 0;

	for (size_t k = 0; k + 1 < a->spans; k++) {
		size_t n = a->span[k].end - a->span[k].first;

		if (a->span[k].phase != VC_PHASE_OTHER)
			continue;
		most = n > most ? n : most;
		best = n < least ? k : best;
		least = n < least ? n : least;
	}
	return least <= most / 2 ? best : a->spans;
}

/* A gap that holds no evaluation, and its call sites, sorted. */
struct plain { size_t gap, n; uint64_t *site; };

static int read_plain(const struct vc_allocations *m, const struct vc_anatomy *a, struct plain *p,
		      struct vc_error *err)
{
	*p = (struct plain){ .gap = plain_gap(a), .site = malloc((m->n + 1) * sizeof(*p->site)) };
	VC_HAVE(p->site, "the phases of a recording", err);
	for (size_t i = 0; i < m->n; i++)
		if (a->block[i].span == p->gap && m->take[i].site)
			p->site[p->n++] = m->take[i].site;
	vc_sort_u64(p->site, p->n);
	return 0;
}

static enum vc_mode part_at(const struct vc_allocations *m, const struct vc_anatomy *a, size_t i,
			    const struct plain *p)
{
	const struct vc_block_life *b = &a->block[i];
	enum vc_phase phase =
		b->span < a->spans ? (enum vc_phase)a->span[b->span].phase : VC_PHASE_INIT;

	if (phase == VC_PHASE_INIT)
		return VC_MODE_ALL;
	if (phase != VC_PHASE_OTHER || lives_on(a, b) || b->span == p->gap)
		return VC_MODE_TRAIN;
	return vc_find_u64(p->site, p->n, m->take[i].site) ? VC_MODE_TRAIN : VC_MODE_EVAL;
}

int vc_modes_read(const struct vc_allocations *m, uint8_t *part, bool *found, struct vc_error *err)
{
	const struct vc_trace *t = m->trace;
	struct vc_anatomy a;
	struct plain p = { .n = 0 };
	int rc = vc_anatomy_of(&a, t, m->device, err);

	*found = false;
	memset(part, VC_MODE_ALL, m->n);
	if (rc)
		return rc;
	if (a.n == m->n && a.confidence >= VC_ANATOMY_SURE) {
		rc = read_plain(m, &a, &p, err);
		for (size_t i = 0; !rc && i < m->n; i++) {
			part[i] = part_at(m, &a, i, &p);
			*found |= part[i] == VC_MODE_EVAL;
		}
	}
	free(p.site);
	vc_anatomy_fini(&a);
	return rc;
}
