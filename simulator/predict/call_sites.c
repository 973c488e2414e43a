/* SPDX-License-Identifier: Apache-2.0 */
/* call_sites.c - see call_sites.h */
#include "simulator/predict/call_sites.h"

#include "common/torch_names.h"
#include "common/vec.h"

#define FIT 0.9 /* of the blocks with call sites, as many have one of the other recording */

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ (h >> 29);
}

static uint64_t text_hash(uint64_t h, const char *s)
{
	for (; *s; s++)
		h = mix(h, (unsigned char)*s);
	return h;
}

/* ---- lines ---- */

struct line { uint32_t file, function, line, frame; };

VC_COMPARE(by_place, struct line,
	   VC_THEN(VC_ORDER(x->file, y->file),
		   VC_THEN(VC_ORDER(x->function, y->function), VC_ORDER(x->line, y->line))))

/* By frame: the line, or which of its function's lines it is. The caller's to free; NULL: no
 * memory. */
static uint32_t *lines(const struct vc_meta *m, bool ranked)
{
	uint32_t *out = calloc(m->frames + 1, sizeof(*out)), rank = 0;
	struct line *l = ranked ? malloc((m->frames + 1) * sizeof(*l)) : NULL;

	for (uint32_t i = 0; out && !ranked && i < m->frames; i++)
		out[i] = m->frame[i].line;
	if (!ranked)
		return out;
	if (!out || !l) {
		VC_FREE(out, l);
		return NULL;
	}
	for (uint32_t i = 0; i < m->frames; i++)
		l[i] = (struct line){ m->frame[i].file, m->frame[i].function, m->frame[i].line, i };
	qsort(l, m->frames, sizeof(*l), by_place);
	for (size_t i = 0; i < m->frames; i++) {
		bool same = i && l[i].file == l[i - 1].file && l[i].function == l[i - 1].function;

		rank = !same ? 0 : rank + (l[i].line != l[i - 1].line);
		out[l[i].frame] = rank;
	}
	free(l);
	return out;
}

/* Call stacks by content, so that two recordings agree; folders do not count. */
static uint64_t *hashes(const struct vc_meta *m, bool ranked)
{
	uint64_t *h = calloc(m->frames + 1, sizeof(*h));
	uint32_t *line = lines(m, ranked);

	for (size_t i = 1; h && line && i < m->frames; i++) {
		const struct vc_frame *f = &m->frame[i];
		const char *file = f->file < m->strings ? m->string[f->file] : "";
		const char *base = strrchr(file, '/');

		h[i] = f->parent < i ? h[f->parent] : 0;
		/* it goes another way for small tensors than for large ones */
		if (vc_frame_roles(m, (uint32_t)i, VC_NAME_DRY_RUN))
			continue;
		h[i] = mix(h[i], line[i] + 1);
		h[i] = text_hash(h[i], base ? base + 1 : file);
		h[i] = text_hash(h[i], f->function < m->strings ? m->string[f->function] : "") | 1;
	}
	if (!line)
		VC_FREE(h);
	free(line);
	return line ? h : NULL;
}

int vc_call_sites_name(struct vc_allocations *m, bool ranked, struct vc_error *err)
{
	const struct vc_meta *meta = m->trace->meta;
	uint64_t *site = hashes(meta, ranked);

	VC_HAVE(site, "the call sites of a recording", err);
	for (size_t i = 0; i < m->n; i++) {
		uint32_t at = m->trace->ev[m->event[i]].site;

		m->take[i].site = at < meta->frames ? site[at] : 0;
	}
	free(site);
	return VC_OK;
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
		if (named && (double)there < *least * (double)named)
			*least = (double)there / (double)named;
	}
	free(first);
	return VC_OK;
}

static int name_all(struct vc_allocations *m, size_t n, bool ranked, double *least,
		    struct vc_error *err)
{
	for (size_t k = 0; k < n; k++)
		VC_TRY(vc_call_sites_name(&m[k], ranked, err));
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
