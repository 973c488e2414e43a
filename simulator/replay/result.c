/* SPDX-License-Identifier: Apache-2.0 */
/* result.c - see result.h */
#include "simulator/replay/result.h"
#include "common/vec.h"

const char *vc_verdict_name(enum vc_verdict v)
{
	static const char *const name[] = { "fits", "flushes", "undecided", "oom" };

	return name[v];
}

int vc_verdict_by_name(const char *name)
{
	for (int v = VC_FITS; v <= VC_OOM; v++)
		if (!strcmp(name, vc_verdict_name((enum vc_verdict)v)))
			return v;
	return -1;
}

static const char *const levels[] = { NULL,	       "exact",	 "rerun", "allocator only",
				     "extrapolated", "bounds", "unverified",
				     "unknown" };

const char *vc_level_name(enum vc_level l)
{
	return levels[l];
}

enum vc_level vc_level_by_name(const char *name)
{
	int l = VC_UNKNOWN;

	while (l && strcmp(name, levels[l]))
		l--;
	return (enum vc_level)l;
}

enum vc_verdict vc_result_verdict(const struct vc_result *r)
{
	return r->trust.level ? r->trust.verdict : vc_result_replayed(r);
}

const struct vc_heap_map *vc_result_heap(const struct vc_result *r)
{
	return r->oom.happened || r->last.n ? &r->last : &r->peak;
}

enum vc_verdict vc_result_replayed(const struct vc_result *r)
{
	if (r->stats.ooms)
		return VC_OOM;
	return r->stats.flushes ? VC_FLUSHES : VC_FITS;
}

static void free_tries(struct vc_tries *t)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->at[i].run)
			vc_result_fini(t->at[i].run);
		VC_FREE(t->at[i].text, t->at[i].paste, t->at[i].again, t->at[i].run);
	}
	free(t->at);
}

void vc_result_fini(struct vc_result *r)
{
	free_tries(&r->tries);
	free(r->info.model);
	free(r->info.params);
	free(r->info.torch);
	free(r->info.conf);
	free(r->info.trace);
	free(r->info.gpu);
	free(r->info.change);
	free(r->info.vary);
	free(r->info.by);
	free(r->info.by_value);
	free(r->curve.at);
	free(r->lives.at);
	free(r->segments.at);
	free(r->peak.at);
	free(r->last.at);
	free(r->oom.message);
	free(r->oom.holder);
	free(r->moment.who);
	for (size_t i = 0; i < r->words.n; i++)
		free(r->words.line[i]);
	free(r->seen.witness);
	VC_FREE(r->words.line, r->fidelity.diverged_why, r->steps.mark, r->steps.phase,
		r->pace.at, r->turns.at, r->steps.kernel, r->steps.from, r->counters.at,
		r->history.at, r->history.end.at, r->unused.at);
	*r = (struct vc_result){ 0 };
}

void vc_result_open_interval(struct vc_result *r)
{
	if (!r->has_interval)
		r->low = r->high = r->need ? r->need : r->stats.peak_reserved;
	r->has_interval = true;
}
