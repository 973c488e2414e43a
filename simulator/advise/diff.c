/* SPDX-License-Identifier: Apache-2.0 */
/* diff.c - see diff.h */
#include "simulator/advise/diff.h"

#include "common/site.h"
#include "common/vec.h"
#include "simulator/predict/allocations.h"
#include "simulator/advise/call_sites.h"

enum { OFTEN = 8 }; /* times that a ratio of sizes must turn up to say by what all grew */
#define NOT_SITES_BELOW 0.5 /* share matched below which call sites are taken to be incomparable */

const char *vc_diff_kind_name(enum vc_diff_kind k)
{
	static const char *const name[] = { "none", "only_in_a", "only_in_b",
					   "size", "stream",    "life" };

	return name[k];
}

/* ---- matching ---- */

struct pair { struct vc_allocations m[2]; uint32_t *match; size_t matched; };

/* Match with sizes that grow by `ratio` or its square (as those of batches and sequences do), and
 * keep it when it explains clearly more than what is there. */
static int match(struct pair *p, double ratio, struct vc_error *err)
{
	struct vc_ratios r = { .at = { 1, ratio, ratio * ratio }, .n = ratio > 0 ? 3 : 1 };
	uint32_t *found = malloc((p->m[0].n + 1) * sizeof(*found));
	size_t n = 0;
	int rc = found ? vc_align(p->m[0].take, p->m[0].n, p->m[1].take, p->m[1].n, &r, found, err)
		       : vc_nomem(err, "the alignment");

	for (size_t i = 0; rc == VC_OK && i < p->m[0].n; i++)
		n += found[i] != VC_UNMATCHED;
	if (rc == VC_OK && (!p->match || n > p->matched + p->matched / 50)) {
		free(p->match);
		p->match = found;
		p->matched = n;
		return VC_OK;
	}
	free(found);
	return rc;
}

/* What one recorded parameter changed by; 0: nothing recorded or nothing changed. */
static double recorded_ratio(const struct vc_meta *a, const struct vc_meta *b)
{
	for (size_t i = 0; i < a->params; i++)
		for (size_t k = 0; k < b->params; k++)
			if (!strcmp(a->param[i].name, b->param[k].name) && a->param[i].value > 0 &&
			    b->param[k].value > 0 && a->param[i].value != b->param[k].value)
				return b->param[k].value / a->param[i].value;
	return 0;
}

VC_COMPARE(by_ratio, double, VC_ORDER(*x, *y))

/* Match by the ratio of sizes that turns up most often in what is matched by now. */
static int match_commonest(struct pair *p, struct vc_error *err)
{
	double *ratio = malloc((p->m[0].n + 1) * sizeof(*ratio)), best = 0;
	size_t n = 0, most = OFTEN - 1;

	VC_HAVE(ratio, "the alignment", err);
	for (size_t i = 0; i < p->m[0].n; i++)
		if (p->match[i] != VC_UNMATCHED && p->m[0].take[i].size)
			ratio[n++] = (double)p->m[1].take[p->match[i]].size /
				     (double)p->m[0].take[i].size;
	vc_sort(ratio, n, sizeof(*ratio), by_ratio);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && ratio[end] == ratio[i];)
			end++;
		if (end - i <= most || ratio[i] == 1)
			continue;
		most = end - i;
		best = ratio[i];
	}
	free(ratio);
	return best > 0 ? match(p, best, err) : VC_OK;
}

static size_t shorter(const struct pair *p)
{
	return p->m[0].n < p->m[1].n ? p->m[0].n : p->m[1].n;
}

/* Call sites say most, unless one recording has none or the code has moved: then sizes alone. */
static int match_best(struct pair *p, struct vc_diff *d, struct vc_error *err)
{
	double guess[] = { 2, 0.5, 4, 0.25, 0 }, known;
	int r = match(p, 0, err);

	known = recorded_ratio(p->m[0].trace->meta, p->m[1].trace->meta);
	if (known > 0) {
		guess[0] = known;
		guess[1] = 0;
	}
	for (size_t i = 0; r == VC_OK && guess[i] > 0 && p->matched < shorter(p); i++)
		r = match(p, guess[i], err);
	if (r == VC_OK && p->matched < shorter(p))
		r = match_commonest(p, err);
	d->by_site = true;
	if (r < 0 || (double)p->matched >= NOT_SITES_BELOW * (double)shorter(p))
		return r;
	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < p->m[k].n; i++)
			p->m[k].take[i].site = 0;
	d->by_site = false;
	free(p->match);
	p->match = NULL;
	return match(p, 0, err);
}

/* ---- counting ---- */

static void note_first(struct vc_diff *d, enum vc_diff_kind kind, const struct pair *p, size_t i,
		       size_t j)
{
	const size_t index[2] = { i, j };

	if (d->first != VC_DIFF_NONE)
		return;
	d->first = kind;
	for (int k = 0; k < 2; k++) {
		const struct vc_event *ev;

		d->event[k] = UINT64_MAX;
		if (index[k] >= p->m[k].n || (kind == VC_DIFF_ONLY_A && k) ||
		    (kind == VC_DIFF_ONLY_B && !k))
			continue;
		d->event[k] = p->m[k].event[index[k]];
		ev = &p->m[k].trace->ev[d->event[k]];
		d->time_ns[k] = ev->time_ns;
		d->size[k] = ev->size;
		d->site[k] = ev->site;
	}
}

static void only(struct vc_diff *d, const struct pair *p, int side, size_t i)
{
	d->only[side]++;
	d->only_bytes[side] += p->m[side].take[i].size;
	note_first(d, side ? VC_DIFF_ONLY_B : VC_DIFF_ONLY_A, p, i, i);
}

static void both(struct vc_diff *d, const struct pair *p, size_t i, size_t j)
{
	const struct vc_take *a = &p->m[0].take[i], *b = &p->m[1].take[j];

	if (a->size != b->size) {
		d->resized++;
		d->resized_bytes += (int64_t)(b->size - a->size);
		note_first(d, VC_DIFF_SIZE, p, i, j);
	} else if (a->stream != b->stream) {
		d->restreamed++;
		note_first(d, VC_DIFF_STREAM, p, i, j);
	} else {
		d->same++;
		d->relived += a->life != b->life;
	}
}

/* Lives count in allocations made meanwhile, so one inserted allocation changes those of all blocks
 * around it: they say something only while everything before was the same. */
static void first_life(struct vc_diff *d, const struct pair *p)
{
	for (size_t i = 0; d->first == VC_DIFF_NONE && i < p->m[0].n; i++)
		if (p->m[0].take[i].life != p->m[1].take[p->match[i]].life)
			note_first(d, VC_DIFF_LIFE, p, i, p->match[i]);
}

static void count(struct vc_diff *d, const struct pair *p)
{
	size_t j = 0;

	for (size_t i = 0; i < p->m[0].n; i++) {
		if (p->match[i] == VC_UNMATCHED) {
			only(d, p, 0, i);
			continue;
		}
		for (; j < p->match[i]; j++)
			only(d, p, 1, j);
		both(d, p, i, j++);
	}
	for (; j < p->m[1].n; j++)
		only(d, p, 1, j);
	first_life(d, p);
	for (int k = 0; k < 2; k++) {
		d->allocs[k] = p->m[k].n;
		for (size_t i = 0; i < p->m[k].n; i++)
			d->bytes[k] += p->m[k].take[i].size;
	}
}

/* ---- call sites ---- */

struct sums { uint64_t asked, blocks, live; };

/* By the frame that a person would look for. */
static int sum_sites(const struct vc_diff_side *s, struct sums **out, struct vc_error *err)
{
	const struct vc_trace *t = s->trace;
	struct sums *sum = calloc(t->meta->frames + 1, sizeof(*sum));

	*out = sum;
	VC_HAVE(sum, "call sites", err);
	for (size_t i = 0; i < t->n; i++) {
		const struct vc_event *e = &t->ev[i];

		if (e->kind != VC_EV_ALLOC || e->device != s->device || !e->site ||
		    e->site >= t->meta->frames)
			continue;
		struct sums *to = &sum[vc_site_shown(t->meta, e->site)];

		to->asked += e->size;
		to->blocks++;
	}
	for (size_t i = 0; s->run && i < s->run->peak.n; i++) {
		const struct vc_heap_extent *x = &s->run->peak.at[i];

		if (x->site && x->site < t->meta->frames) /* of blocks alone */
			sum[vc_site_shown(t->meta, x->site)].live += x->size;
	}
	return VC_OK;
}

VC_COMPARE(by_name, struct vc_diff_site, strcmp(x->site, y->site))

static uint64_t change(const uint64_t v[2])
{
	return v[0] > v[1] ? v[0] - v[1] : v[1] - v[0];
}

static int by_change(const void *a, const void *b)
{
	const struct vc_diff_site *x = a, *y = b;
	uint64_t p = change(x->live), q = change(y->live);

	if (p == q) {
		p = change(x->asked);
		q = change(y->asked);
	}
	return p != q ? (p < q ? 1 : -1) : by_name(a, b);
}

static void merge(struct vc_diff *d)
{
	size_t n = 0;

	if (!d->n)
		return;
	vc_sort(d->at, d->n, sizeof(*d->at), by_name);
	for (size_t i = 0; i < d->n; i++) {
		struct vc_diff_site *to = n ? &d->at[n - 1] : NULL;

		if (!to || strcmp(to->site, d->at[i].site)) {
			d->at[n++] = d->at[i];
			continue;
		}
		for (int k = 0; k < 2; k++) {
			to->asked[k] += d->at[i].asked[k];
			to->blocks[k] += d->at[i].blocks[k];
			to->live[k] += d->at[i].live[k];
		}
		free(d->at[i].site);
	}
	d->n = n;
	vc_sort(d->at, d->n, sizeof(*d->at), by_change);
}

static int add_sites(struct vc_diff *d, const struct vc_meta *m, const struct sums *sum, int side,
		     struct vc_error *err)
{
	struct vc_diff_site *at = realloc(d->at, (d->n + m->frames + 1) * sizeof(*at));
	char text[512];

	VC_HAVE(at, "call sites", err);
	d->at = at;
	for (uint32_t i = 1; i < m->frames; i++) {
		struct vc_diff_site s = { 0 };

		if (!sum[i].blocks && !sum[i].live)
			continue;
		vc_site_text(m, i, text, sizeof(text));
		s.site = strdup(text);
		VC_HAVE(s.site, "call sites", err);
		s.asked[side] = sum[i].asked;
		s.blocks[side] = sum[i].blocks;
		s.live[side] = sum[i].live;
		d->at[d->n++] = s;
	}
	return VC_OK;
}

static int compare_sites(struct vc_diff *d, const struct vc_diff_side side[2], struct vc_error *err)
{
	int r = VC_OK;

	for (int k = 0; k < 2 && r == VC_OK; k++) {
		struct sums *sum = NULL;

		r = sum_sites(&side[k], &sum, err);
		if (r == VC_OK)
			r = add_sites(d, side[k].trace->meta, sum, k, err);
		free(sum);
	}
	merge(d);
	return r;
}

int vc_diff_init(struct vc_diff *d, const struct vc_diff_side side[2], struct vc_error *err)
{
	struct pair p = { 0 };
	int r;

	*d = (struct vc_diff){ .event = { UINT64_MAX, UINT64_MAX } };
	r = vc_allocations_init(&p.m[0], side[0].trace, side[0].device, err);
	if (r == VC_OK)
		r = vc_allocations_init(&p.m[1], side[1].trace, side[1].device, err);
	if (r == VC_OK)
		r = vc_call_sites_settle(p.m, 2, NULL, err);
	if (r == VC_OK)
		r = match_best(&p, d, err);
	if (r == VC_OK) {
		count(d, &p);
		r = compare_sites(d, side, err);
	}
	vc_allocations_fini(&p.m[0]);
	vc_allocations_fini(&p.m[1]);
	free(p.match);
	if (r < 0)
		vc_diff_fini(d);
	return r;
}

void vc_diff_fini(struct vc_diff *d)
{
	for (size_t i = 0; i < d->n; i++)
		free(d->at[i].site);
	free(d->at);
	*d = (struct vc_diff){ 0 };
}
