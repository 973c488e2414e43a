/* SPDX-License-Identifier: Apache-2.0 */
/* sim_verdict.c - see sim_verdict.h */
#include "commands/sim_verdict.h"

#include "common/emit.h"

int vc_budget_parse(struct vc_budget *b, struct vc_error *err)
{
	char percent[32];
	const char *text = b->above;

	b->share = INFINITY;
	if (!text)
		return VC_OK;
	if (*text && strlen(text) < 7 && !text[strspn(text, "0123456789.")]) { /* once "90" */
		snprintf(percent, sizeof(percent), "%s%%", text);
		text = percent;
	}
	if (vc_parse_share(text, &b->share, &b->bytes, err) < 0)
		return vc_wrap(err, "--fail-above");
	b->share = b->bytes ? INFINITY : b->share / 100;
	return VC_OK;
}

const char *vc_budget_missed(const struct vc_budget *b, const struct vc_plan *p,
			     const struct vc_result *r, char *buf, size_t n)
{
	double most = b->bytes ? (double)b->bytes : b->share * (double)p->capacity;
	uint64_t used = r->stats.peak_used, high = r->trust.used_high;
	char a[32], allowed[32], over[32];

	used = high > used ? high : used;
	*buf = '\0';
	if (b->on_flush && (vc_result_replayed(r) == VC_FLUSHES || r->trust.high == VC_FLUSHES))
		snprintf(buf, n, "over the budget: --fail-on-flush, and the cache is emptied");
	else if ((p->capacity || b->bytes) && (double)used > most)
		snprintf(buf, n, "over the budget: %s%s used, --fail-above %s allows %s, which is "
			 "%s less", r->has_interval ? "up to " : "", vc_bytes_text(used, a),
			 b->above, vc_bytes_text((uint64_t)most, allowed),
			 vc_bytes_text(used - (uint64_t)most, over));
	else if (b->above && r->trust.endless)
		snprintf(buf, n, "over the budget, as far as is known: the recording ends before "
			 "the run does, so nothing shows that --fail-above %s holds", b->above);
	return buf;
}

const char *vc_budget_distrust(const struct vc_budget *b, const struct vc_plan *p,
			       const struct vc_result *r, char *buf, size_t n)
{
	const struct vc_trust *a = &r->trust;
	uint64_t high = a->used_high;
	char need[32], over[32];

	*buf = '\0';
	if (!b->strict)
		return buf;
	if (!a->checked)
		snprintf(buf, n, "not trustworthy: nothing was checked against the recording");
	else if (!a->reproduced)
		snprintf(buf, n, "not trustworthy: the model does not reproduce the recording");
	else if (a->level == VC_UNKNOWN)
		snprintf(buf, n, "not trustworthy: how far off -x may be was never measured");
	else if (a->endless)
		snprintf(buf, n, "not trustworthy: the recording ends before the run does");
	else if (a->low != a->high && high > p->capacity)
		snprintf(buf, n, "not trustworthy: the upper end of the interval uses %s, %s more "
			 "than there is", vc_bytes_text(high, need),
			 vc_bytes_text(high - p->capacity, over));
	else if (a->low != a->high)
		snprintf(buf, n, "not trustworthy: one end of the interval fits, the other does "
			 "not");
	return buf;
}

int vc_budget_code(const struct vc_budget *b, const struct vc_plan *p, const struct vc_result *r,
		   size_t n)
{
	static const int code[] = { 0, 6, 4, 3, 5 }; /* from good to bad */
	size_t worst = 0;
	char why[320];

	for (size_t i = 0; i < n; i++) {
		enum vc_verdict v = vc_result_verdict(&r[i]);
		size_t now = v == VC_UNDECIDED;

		if (*vc_budget_missed(b, &p[i], &r[i], why, sizeof(why)))
			now = 2;
		if (v == VC_OOM)
			now = 3;
		if (*vc_budget_distrust(b, &p[i], &r[i], why, sizeof(why)))
			now = 4;
		worst = now > worst ? now : worst;
	}
	return code[worst];
}
