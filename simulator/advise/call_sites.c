/* SPDX-License-Identifier: Apache-2.0 */
/* call_sites.c - see call_sites.h */
#include "simulator/advise/call_sites.h"

#include "common/vec.h"

#define FIT 0.9 /* of the blocks with call sites, as many have one of the other recording */

/* ---- lines ---- */

struct line { uint32_t file, function, line, frame; };

VC_COMPARE(by_place, struct line,
	   VC_THEN(VC_ORDER(x->file, y->file),
		   VC_THEN(VC_ORDER(x->function, y->function), VC_ORDER(x->line, y->line))))

/* By frame: which of its function's lines it is. The caller's to free; NULL: no memory. */
static uint32_t *ranks(const struct vc_meta *m)
{
	uint32_t *out = calloc(m->frames + 1, sizeof(*out)), rank = 0;
	struct line *l = malloc((m->frames + 1) * sizeof(*l));

	if (!out || !l) {
		VC_FREE(out, l);
		return NULL;
	}
	for (uint32_t i = 0; i < m->frames; i++)
		l[i] = (struct line){ m->frame[i].file, m->frame[i].function, m->frame[i].line, i };
	vc_sort(l, m->frames, sizeof(*l), by_place);
	for (size_t i = 0; i < m->frames; i++) {
		bool same = i && l[i].file == l[i - 1].file && l[i].function == l[i - 1].function;

		rank = !same ? 0 : rank + (l[i].line != l[i - 1].line);
		out[l[i].frame] = rank;
	}
	free(l);
	return out;
}

static int name(struct vc_allocations *m, bool ranked, struct vc_error *err)
{
	uint32_t *line = ranked ? ranks(m->trace->meta) : NULL;

	VC_HAVE(line || !ranked, "the call sites of a recording", err);
	int rc = vc_allocations_name(m, line, err);

	free(line);
	return rc;
}

/* ---- do they fit? ---- */

/* The sites of a recording's blocks, ascending; the caller's to free. */
static uint64_t *sites(const struct vc_allocations *m, size_t *n)
{
	uint64_t *at = malloc((m->n + 1) * sizeof(*at));

	*n = 0;
	for (size_t i = 0; at && i < m->n; i++)
		if (m->take[i].site)
			at[(*n)++] = m->take[i].site;
	vc_sort_u64(at, *n);
	return at;
}

/* The least share of a recording's blocks with call sites whose site the first one has, too. */
static int fit(const struct vc_allocations *m, size_t n, double *least, struct vc_error *err)
{
	size_t count, there, named;
	uint64_t *first = sites(m, &count);

	*least = 1;
	VC_HAVE(first, "the call sites of a recording", err);
	for (size_t k = 1; count && k < n; k++) {
		there = named = 0;
		for (size_t i = 0; i < m[k].n; i++) {
			uint64_t site = m[k].take[i].site;

			named += site != 0;
			there += site && vc_find_u64(first, count, site);
		}
		if (named)
			*least = fmin(*least, (double)there / (double)named);
	}
	free(first);
	return VC_OK;
}

static int name_all(struct vc_allocations *m, size_t n, bool ranked, double *least,
		    struct vc_error *err)
{
	for (size_t k = 0; k < n; k++)
		VC_TRY(name(&m[k], ranked, err));
	return fit(m, n, least, err);
}

int vc_call_sites_settle(struct vc_allocations *m, size_t n, bool *edited, struct vc_error *err)
{
	double by_line, by_rank;

	if (edited)
		*edited = false;
	VC_TRY(fit(m, n, &by_line, err));
	if (by_line >= FIT)
		return VC_OK;
	VC_TRY(name_all(m, n, true, &by_rank, err));
	if (!(by_rank > by_line))
		return name_all(m, n, false, &by_line, err);
	if (edited)
		*edited = true;
	return VC_OK;
}
