/* SPDX-License-Identifier: Apache-2.0 */
/* epoch_words.c - what an epoch needs, for people and for programs. */

#include "simulator/search/epoch.h"

static void pair(struct vc_emit *e, const char *key, double low, double high, bool whole)
{
	vc_emit_array(e, key, NULL);
	for (int i = 0; i < 2; i++)
		if (whole)
			vc_emit_uint(e, NULL, NULL, (uint64_t)(i ? high : low));
		else
			vc_emit_real(e, NULL, NULL, i ? high : low);
	vc_emit_end(e);
}

static void number(struct vc_emit *e, const char *key, uint64_t v)
{
	vc_emit_uint(vc_emit_known(e, v), key, NULL, v);
}

static void card_document(struct vc_emit *e, const struct vc_epoch_card *c)
{
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "gpu", NULL, c->fit.plan.card ? c->fit.plan.card->name : NULL);
	vc_emit_text(e, "conf", NULL, c->fit.plan.conf);
	vc_emit_uint(e, "capacity", NULL, c->fit.plan.capacity);
	vc_emit_text(e, "verdict", NULL, vc_verdict_name(c->verdict));
	vc_emit_uint(e, "longest_certain", NULL, c->sure);
	vc_emit_uint(e, "longest_possible", NULL, c->maybe);
	pair(e, "worst_used", (double)c->worst.low, (double)c->worst.high, true);
	pair(e, "samples_over", (double)c->over[0], (double)c->over[1], true);
	pair(e, "tokens_over", (double)c->cut[0], (double)c->cut[1], true);
	pair(e, "step_chance", c->step[0], c->step[1], false);
	pair(e, "epoch_chance", c->epoch[0], c->epoch[1], false);
	number(e, "half_by_step", c->half);
	number(e, "token_budget", c->budget[0]);
	number(e, "token_budget_possible", c->budget[1]);
	number(e, "token_budget_length", c->budget_at);
	vc_emit_text(e, "level", NULL, c->fit.level);
	vc_emit_text(e, "narrow", NULL, c->fit.narrow);
	vc_emit_end(e);
}

static void document(struct vc_emit *e, const struct vc_epoch_ask *ask, const char *file,
		     const struct vc_epoch_card *c, size_t cards)
{
	const struct vc_samples *s = ask->samples;

	vc_emit_text(e, "schema", NULL, "vramcast.epoch/1");
	vc_emit_text(e, "file", NULL, file);
	vc_emit_text(e, "parameter", NULL, ask->key);
	vc_emit_uint(e, "samples", NULL, s->samples);
	vc_emit_uint(e, "tokens", NULL, s->tokens);
	vc_emit_uint(e, "tokens_cut", NULL, s->cut);
	vc_emit_uint(e, "batch", NULL, ask->batch);
	vc_emit_uint(e, "steps", NULL, vc_epoch_steps(ask));
	vc_emit_bool(e, "drop_last", NULL, ask->drop_last);
	vc_emit_uint(e, "median_length", NULL, vc_samples_quantile(s, 0.5));
	vc_emit_uint(e, "p99_length", NULL, vc_samples_quantile(s, 0.99));
	vc_emit_uint(e, "longest", NULL, s->at[s->n - 1].length);
	vc_emit_text(e, "trust", NULL, c[0].fit.trust);
	vc_emit_array(e, "cards", NULL);
	for (size_t i = 0; i < cards; i++)
		card_document(e, &c[i]);
	vc_emit_end(e);
}

/* ---- for people ---- */

/* "4.2 %", "4.2 to 4.9 %": digits that say something. */
static const char *percent(const double v[2], char *buf, size_t n)
{
	char low[24], high[24];

	snprintf(low, sizeof(low), "%.3g", 100 * v[0]);
	snprintf(high, sizeof(high), "%.3g", 100 * v[1]);
	if (v[0] >= v[1])
		snprintf(buf, n, "%s %%", high);
	else
		snprintf(buf, n, "%s to %s %%", low, high);
	return buf;
}

static void worst_line(struct vc_emit *e, const struct vc_epoch_ask *ask,
		       const struct vc_epoch_card *c)
{
	static const char *const words[] = { "fits", "fits by emptying the cache",
					     "may run out of memory", "runs out of memory" };
	char low[32], high[32], of[32];
	const struct vc_fit_probe *w = &c->worst;

	vc_bytes_text(w->low, low);
	vc_bytes_text(w->high, high);
	vc_emit_line(e, "  worst batch            with a sample of %" PRIu64 ": %s%s%s of %s, %s",
		     ask->samples->at[ask->samples->n - 1].length, low,
		     w->low < w->high ? " to " : "", w->low < w->high ? high : "",
		     vc_bytes_text(c->fit.plan.capacity, of), words[c->verdict]);
}

static void over_lines(struct vc_emit *e, const struct vc_epoch_ask *ask,
		       const struct vc_epoch_card *c)
{
	const struct vc_samples *s = ask->samples;
	char step[80], epoch[80];

	if (c->sure == c->maybe)
		vc_emit_line(e, "  longest that fits      %" PRIu64, c->sure);
	else
		vc_emit_line(e, "  longest that fits      %" PRIu64 " certainly, up to %" PRIu64
			     " possibly", c->sure, c->maybe);
	if (!c->over[1])
		return;
	vc_emit_line(e, "  longer than that       %" PRIu64 " of %" PRIu64 " samples; --cut %"
		     PRIu64 " loses %.2g %% of the tokens", c->over[1], s->samples, c->sure,
		     100 * (double)c->cut[1] / (double)s->tokens);
	vc_emit_line(e, "  chance to run out      %s a step, %s an epoch of %" PRIu64 " steps",
		     percent(c->step, step, sizeof(step)),
		     percent(c->epoch, epoch, sizeof(epoch)),
		     vc_epoch_steps(ask));
	if (c->half)
		vc_emit_line(e, "  half have run out      by step %" PRIu64 "%s", c->half,
			     c->over[0] < c->over[1] ? ", if all of them are too long" : "");
}

static void budget_line(struct vc_emit *e, const struct vc_epoch_ask *ask,
			const struct vc_epoch_card *c)
{
	char maybe[64] = "";

	if (!ask->budget) {
		vc_emit_line(e, "  token budget           not known: the recordings do not differ "
			     "in batch");
		return;
	}
	if (c->budget[1] > c->budget[0])
		snprintf(maybe, sizeof(maybe), ", up to %" PRIu64 " possibly", c->budget[1]);
	vc_emit_line(e, "  token budget           %" PRIu64 " a batch, padding included%s; bounded "
		     "by samples of %" PRIu64, c->budget[0], maybe, c->budget_at);
}

static void sentences(struct vc_emit *e, const struct vc_epoch_ask *ask, const char *file,
		      const struct vc_epoch_card *c, size_t cards)
{
	const struct vc_samples *s = ask->samples;

	vc_emit_line(e, "%s: %" PRIu64 " samples, %" PRIu64 " tokens; half of them up to %" PRIu64
		     ", 99 %% up to %" PRIu64 ", the longest %" PRIu64, file, s->samples, s->tokens,
		     vc_samples_quantile(s, 0.5), vc_samples_quantile(s, 0.99),
		     s->at[s->n - 1].length);
	if (s->cut)
		vc_emit_line(e, "cut by --cut: %" PRIu64 " tokens", s->cut);
	vc_emit_line(e, "%" PRIu64 " samples a step, padded to the longest of them; %s: %s",
		     ask->batch, ask->key, c[0].fit.trust);
	for (size_t i = 0; i < cards; i++) {
		vc_emit_line(e, "\n%s%s%s", c[i].fit.plan.device ? c[i].fit.plan.device :
			     "the given capacity", c[i].fit.plan.conf[0] ? ", " : "",
			     c[i].fit.plan.conf);
		worst_line(e, ask, &c[i]);
		over_lines(e, ask, &c[i]);
		budget_line(e, ask, &c[i]);
	}
}

void vc_epoch_say(struct vc_emit *e, const struct vc_epoch_ask *ask, const char *file,
		  const struct vc_epoch_card *c, size_t cards)
{
	vc_emit_object(e, NULL, "");
	document(e, ask, file, c, cards);
	sentences(e, ask, file, c, cards);
	vc_emit_end(e);
}
