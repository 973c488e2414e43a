/* SPDX-License-Identifier: Apache-2.0 */
/* result.c - see result.h */
#include "simulator/replay/result.h"
#include "common/vec.h"

#include <stdlib.h>

const char *vc_verdict_name(enum vc_verdict v)
{
	static const char *const name[] = { "fits", "flushes", "oom" };

	return name[v];
}

enum vc_verdict vc_result_verdict(const struct vc_result *r)
{
	if (r->stats.ooms)
		return VC_OOM;
	return r->stats.flushes ? VC_FLUSHES : VC_FITS;
}

void vc_result_fini(struct vc_result *r)
{
	free(r->info.model);
	free(r->info.params);
	free(r->info.torch);
	free(r->info.conf);
	free(r->info.trace);
	free(r->info.gpu);
	free(r->info.change);
	free(r->info.vary);
	free(r->curve.at);
	free(r->lives.at);
	free(r->segments.at);
	free(r->peak.at);
	free(r->last.at);
	free(r->oom.message);
	free(r->oom.holder);
	for (size_t i = 0; i < r->words.n; i++)
		free(r->words.line[i]);
	VC_FREE(r->words.line, r->fidelity.diverged_why, r->steps.mark, r->steps.phase,
		r->pace.at, r->steps.kernel, r->steps.from, r->counters.at, r->history.at,
		r->history.end.at, r->unused.at);
	*r = (struct vc_result){ 0 };
}

void vc_result_open_interval(struct vc_result *r)
{
	if (!r->has_interval)
		r->low = r->high = r->stats.peak_reserved;
	r->has_interval = true;
}
