/* SPDX-License-Identifier: Apache-2.0 */
/* fit_words.c - see fit_words.h */
#include "simulator/search/fit_words.h"

#include "simulator/time/time.h"

static void number(struct vc_emit *e, const char *key, uint64_t v)
{
	vc_emit_uint(vc_emit_known(e, v), key, NULL, v);
}

static void pair(struct vc_emit *e, const char *key, double low, double high)
{
	vc_emit_array(e, key, NULL);
	vc_emit_real(e, NULL, NULL, low);
	vc_emit_real(e, NULL, NULL, high);
	vc_emit_end(e);
}

static void run(struct vc_emit *e, const struct vc_fit *f, const struct vc_fit_card *c,
		const struct vc_fit_probe *p)
{
	vc_emit_object(e, NULL, NULL);
	vc_emit_uint(e, f->key, NULL, p->value);
	vc_emit_text(e, "verdict", NULL, vc_verdict_name(vc_fit_verdict(c, p)));
	vc_emit_bytes(e, "peak_used", NULL, p->used);
	vc_emit_bytes(e, "peak_used_high", NULL, p->high);
	if (c->plan.capacity)
		vc_emit_real(e, "used_share", NULL, round(1e4 * p->share) / 1e4);
	vc_emit_end(e);
}

/* Step times and flushes at the values worth comparing. */
static void times(struct vc_emit *e, const struct vc_fit *f, const struct vc_fit_card *c)
{
	vc_emit_array(e, "times", NULL);
	for (size_t i = 0; i < c->runs; i++) {
		vc_emit_object(e, NULL, NULL);
		vc_emit_uint(e, f->key, NULL, (uint64_t)c->run[i].info.value);
		vc_time_report(e, &c->run[i]);
		vc_emit_end(e);
	}
	vc_emit_end(e);
}

static void proofs(struct vc_emit *e, const struct vc_fit_proof *p)
{
	vc_emit_array(e, "proof", NULL);
	for (size_t k = 0; k < p->n; k++) {
		vc_emit_object(e, NULL, NULL);
		vc_emit_uint(e, "value", NULL, p->at[k]);
		vc_emit_bool(e, "ran", NULL, p->ran[k]);
		vc_emit_uint(e, "flushes", NULL, p->flushes[k]);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	vc_emit_bool(e, "proof_contradicts", NULL, p->contradicts);
	vc_emit_bool(e, "proved", NULL, p->proved);
}

static void answer(struct vc_emit *e, const struct vc_fit_card *c, const struct vc_fit_proof *p)
{
	vc_emit_text(e, "gpu", NULL, c->plan.card ? c->plan.card->name : NULL);
	vc_emit_text(e, "conf", NULL, c->plan.conf);
	vc_emit_uint(e, "capacity", NULL, c->plan.capacity);
	number(e, "largest", c->largest);
	number(e, "certain", c->surely);
	number(e, "possible", c->perhaps);
	number(e, "headline", c->headline);
	number(e, "record_next", c->record);
	pair(e, "largest_interval", (double)c->surely, (double)c->perhaps);
	number(e, "largest_flushing", c->flushing);
	number(e, "smallest_failing", c->failing);
	number(e, "smallest_oom", c->oom);
	vc_emit_bool(e, "monotone", NULL, !c->holes);
	number(e, "recommended", c->recommended);
	vc_emit_text(e, "why", NULL, c->why);
	vc_emit_text(e, "throughput", NULL, c->pace[0] ? c->pace : NULL);
	vc_emit_text(e, "level", NULL, c->level);
	vc_emit_real(e, "matched", NULL, c->matched);
	vc_emit_text(e, "narrow", NULL, c->narrow);
	vc_emit_text(e, "cannot_tell", NULL, c->cannot[0] ? c->cannot : NULL);
	proofs(e, p);
}

static void document(struct vc_emit *e, const struct vc_fit *f, const struct vc_fit_card *c,
		     const struct vc_fit_proof *p, size_t n)
{
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "schema", NULL, "vramcast.fit/1");
	vc_emit_text(e, "find", NULL, f->key);
	answer(e, &c[0], &p[0]);
	pair(e, "target", f->low, f->high);
	vc_emit_text(e, "trust", NULL, c[0].trust);
	vc_emit_array(e, "runs", NULL);
	for (size_t i = 0; i < c[0].probes; i++)
		run(e, f, &c[0], &c[0].probe[i]);
	vc_emit_end(e);
	times(e, f, &c[0]);
	vc_emit_array(e, "cards", NULL);
	for (size_t k = 0; k < n; k++) {
		vc_emit_object(e, NULL, NULL);
		answer(e, &c[k], &p[k]);
		vc_emit_array(e, "runs", NULL);
		for (size_t i = 0; i < c[k].probes; i++)
			run(e, f, &c[k], &c[k].probe[i]);
		vc_emit_end(e);
		times(e, f, &c[k]);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	vc_emit_end(e);
}

/* ---- for people ---- */

/* What is certain comes first; from one recording, whose ends are far apart, the best estimate. */
static void headline(struct vc_emit *e, const struct vc_fit *f, const struct vc_fit_card *c,
		     const struct vc_fit_proof *p)
{
	char sure[48] = "none", maybe[48] = "nothing is certain to fail", next[96] = "";
	bool bounded = c->perhaps < vc_fit_most(f);

	if (c->record)
		snprintf(next, sizeof(next), "; record %s %" PRIu64 " to narrow it", f->key,
			 c->record);
	if (p->proved && p->failing) {
		vc_emit_line(e, "  largest that fits      %" PRIu64 " (proved by trial runs)",
			     p->largest);
	} else if (p->n) {
		if (p->failing)
			snprintf(maybe, sizeof(maybe), "%" PRIu64 " does not", p->failing);
		else
			snprintf(maybe, sizeof(maybe), "none was seen to fail");
		vc_emit_line(e, "  largest that fits      %" PRIu64 " or more, %s: %s\n"
			     "  best estimate          %" PRIu64, p->largest, maybe, p->proved ?
			     "nothing larger is looked at (--most)" :
			     "the trial runs are used up (--trials)", c->largest);
	} else if (c->surely == c->perhaps || c->plan.assume) {
		vc_emit_line(e, "  largest that fits      %" PRIu64 "%s", c->headline,
			     c->surely < c->perhaps ? " (by --assume)" : "");
	} else if (c->cannot[0]) {
		if (bounded)
			snprintf(maybe, sizeof(maybe), "possible up to %" PRIu64, c->perhaps);
		vc_emit_line(e, "  largest that fits      undecided: %s\n"
			     "  certain up to          %" PRIu64 ", %s%s", c->cannot, c->surely,
			     maybe, next);
	} else if (c->one) {
		if (bounded)
			snprintf(maybe, sizeof(maybe), "possible up to %" PRIu64, c->perhaps);
		vc_emit_line(e, "  largest that fits      %" PRIu64 " (best estimate)\n"
			     "  certain up to          %" PRIu64 ", %s%s", c->largest, c->surely,
			     maybe, next);
	} else {
		if (c->surely)
			snprintf(sure, sizeof(sure), "up to %" PRIu64, c->surely);
		if (bounded)
			snprintf(maybe, sizeof(maybe), "up to %" PRIu64 " possibly", c->perhaps);
		vc_emit_line(e, "  largest that fits      %s certainly, %s%s\n"
			     "  best estimate          %" PRIu64, sure, maybe, next, c->largest);
	}
}

static void card(struct vc_emit *e, const struct vc_fit *f, const struct vc_fit_card *c,
		 const struct vc_fit_proof *p)
{
	char line[240];

	vc_emit_line(e, "\n%s%s%s", c->plan.device ? c->plan.device : "the given capacity",
		     c->plan.conf[0] ? ", " : "", c->plan.conf);
	headline(e, f, c, p);
	if (c->flushing)
		vc_emit_line(e, "  runs by flushing       %" PRIu64
			     " (slow: the cache is emptied on the way)",
			     c->flushing);
	if (c->failing)
		vc_emit_line(e, "  smallest that does not %" PRIu64 "%s", c->failing, c->holes ?
			     " (not monotone: larger ones fit)" : "");
	if (c->recommended && (!c->cannot[0] || c->surely == c->perhaps))
		vc_emit_line(e, "  recommended            %" PRIu64, c->recommended);
	if (!c->cannot[0] || c->surely == c->perhaps)
		vc_emit_line(e, "  because                %s", c->why);
	if (c->pace[0])
		vc_emit_line(e, "  speed                  %s", c->pace);
	for (size_t i = 0; i < c->runs; i++)
		if (*vc_time_words(&c->run[i], line, sizeof(line)))
			vc_emit_line(e, "    %s %-8g %s", f->key, c->run[i].info.value, line);
	for (size_t k = 0; k < p->n; k++)
		vc_emit_line(e, "  trial run at %-8" PRIu64 "  %s", p->at[k],
			     !p->ran[k]    ? "ran out of memory" :
			     p->flushes[k] ? "ran by flushing" : "ran");
	if (p->contradicts && !p->proved)
		vc_emit_line(e, "  not proved             a trial run went otherwise than "
			     "predicted: the memory the program asks for changes with the card "
			     "or from run to run; give more values with --at, nearer to %" PRIu64,
			     c->largest);
}

void vc_fit_say(struct vc_emit *e, const struct vc_fit *f, const struct vc_fit_card *c,
		const struct vc_fit_proof *proof, size_t cards, bool json)
{
	if (json) {
		document(e, f, c, proof, cards);
		return;
	}
	vc_emit_object(e, NULL, "");
	vc_emit_line(e, "%s: %s", f->key, c[0].trust);
	for (size_t i = 0; i < cards; i++)
		card(e, f, &c[i], &proof[i]);
	vc_emit_end(e);
}
