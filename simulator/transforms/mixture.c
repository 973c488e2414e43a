/* SPDX-License-Identifier: Apache-2.0 */
/* mixture.c - what-if: batches of varying length. Each added iteration has its own share of the
 * recorded data, spread evenly over the range (golden-ratio sequence: the same on every machine).
 */

#include "simulator/replay/transform.h"
#include "simulator/rewrite/copies.h"

enum bound { BEST, LOW, HIGH };
enum { SHARES = 64 }; /* bounds a table */
struct config { double low, high; uint64_t steps, bound; char shares[VC_PARAM_TEXT]; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "low", VC_P_REAL, AT(low), "0.5", "smallest share of the recorded data", NULL },
	{ "high", VC_P_REAL, AT(high), "1", "largest share", NULL },
	{ "steps", VC_P_UINT, AT(steps), "16", "iterations added at the end", NULL },
	{ "shares", VC_P_TEXT, AT(shares), "",
	  "instead of those: shares in this order, as in 0.5/1/1.5", NULL },
	{ "bound", VC_P_ENUM, AT(bound), "best", "all of them, or the largest alone",
	  "best,low,high" },
	VC_PARAM_END };

/* Shares as given, at most SHARES of them; 0: none, or no such list. */
static size_t read_shares(const char *text, double *share)
{
	size_t n = 0;

	while (*text) {
		char *end;

		if (n == SHARES)
			return 0;
		share[n] = strtod(text, &end);
		if (end == text || !(share[n++] > 0) || (*end && *end != '/'))
			return 0;
		text = *end ? end + 1 : end;
	}
	return n;
}

static int mixture_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;
	double share[SHARES];

	if (!(c->low > 0 && c->low <= c->high) || !c->steps || c->steps > 100000)
		return vc_fail(err, VC_EUSAGE,
			       "mixture: 0 < low <= high, and steps is 1 to 100000");
	if (c->shares[0] && !read_shares(c->shares, share))
		return vc_fail(
			err, VC_EUSAGE,
			"mixture: shares=%s: up to %d numbers above 0, with / between them",
			c->shares, SHARES);
	return VC_OK;
}

/* The share of step k: as listed, else spread evenly over the range, the largest last. */
static double share_of(const struct config *c, const double *share, size_t n, uint64_t k)
{
	if (n)
		return share[k];
	return k + 1 == c->steps ? c->high :
	       c->low + fmod(0.5 + (double)k * 0.6180339887498949, 1) * (c->high - c->low);
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	const struct config *cfg = s->config;
	struct vc_clone c = { 0 };
	struct vc_share share = { &c, cfg->high };
	double given[SHARES];
	size_t first, end, rest = 0, n = read_shares(cfg->shares, given);
	uint64_t steps = n ? n : cfg->steps;
	uint32_t iteration;
	int r = vc_clone_init(&c, s, w, err);

	if (r == VC_OK && !vc_clone_steady(&c, &first, &end, &iteration))
		r = vc_fail(err, VC_EUSAGE, "mixture: no iterations found in the recording");
	if (r == VC_OK)
		r = vc_clone_steps(&c, &rest, err);
	for (size_t i = 0; i < n; i++) /* the largest alone */
		share.share = i && share.share > given[i] ? share.share : given[i];
	for (uint64_t k = 0; r == VC_OK && k < (cfg->bound == LOW ? 1 : steps); k++) {
		if (cfg->bound != LOW)
			share.share = share_of(cfg, given, n, k);
		r = vc_clone_range(&c, first, end, vc_clone_share, &share, err);
	}
	if (r == VC_OK)
		r = vc_clone_rest(&c, rest, err);
	vc_clone_fini(&c);
	return r;
}

const struct vc_source_type vc_transform_mixture = {
	.name = "mixture", .summary = "iterations with varying amounts of data",
	.params = params, .config_size = sizeof(struct config),
	.margin = &(const struct vc_margin){ .down = 5, .up = 5 },
	.open = mixture_open,
	VC_WHOLE(rewrite),
};
