/* SPDX-License-Identifier: Apache-2.0 */
/* fit_plan_cost.c - fit --find plan: how long training on so many tokens takes, and its price. */
#include "commands/estimate_cards.h"
#include "commands/fit_plan.h"
#include "common/format.h"
#include "common/param.h"

#define DAY 86400e9 /* ns */
#define HOURS 24.0

/* Of an option that has "seq" in its name, "--seq 4096" or "--seq-len=4096"; 0: it is none. */
static double sequence(const char *word, const char *next)
{
	const char *equals = strchr(word, '='), *name = strstr(word, "seq");
	double v;

	if (strncmp(word, "--", 2) || !name || (equals && name > equals) ||
	    vc_parse_real(equals ? equals + 1 : next ? next : "", &v, NULL) < 0 || v < 1)
		return 0;
	return v;
}

/* The only one of the program's arguments; 0: there is none, or they differ. */
static double find_sequence(size_t argc, char **argv)
{
	double found = 0;

	for (size_t i = 0; i < argc; i++) {
		double v = sequence(argv[i], i + 1 < argc ? argv[i + 1] : NULL);

		if (v > 0 && found > 0 && v != found)
			return 0;
		found = v > 0 ? v : found;
	}
	return found;
}

static bool is_varied(const struct vc_ways *f, size_t *key)
{
	for (*key = 0; *key < f->vary.keys; ++*key)
		if (!strcmp(f->vary.key[*key].name, "seq"))
			return true;
	return false;
}

int vc_ways_cost_check(struct vc_ways *f, size_t argc, char **argv, struct vc_error *err)
{
	const struct vc_fit_ask *ask = f->ask;
	size_t key;

	if (isnan(ask->tokens))
		return VC_OK;
	if (!(ask->tokens >= 1 && ask->tokens <= (double)VC_AMOUNT_MOST))
		return vc_fail(err, VC_EUSAGE, "--tokens: from 1 to 9e15");
	if (!f->by_batch)
		return vc_fail(err, VC_EUSAGE, "--tokens: how many samples has a step? "
			       "--global-batch N, with {" VC_WAYS_BATCH "} or {" VC_WAYS_MICRO
			       "} in the command line");
	f->seq = ask->seq == VC_NOT_GIVEN ? find_sequence(argc, argv) : (double)ask->seq;
	if (!(f->seq >= 1) && !is_varied(f, &key))
		return vc_fail(err, VC_EUSAGE, "--tokens: how many has a sample? --seq N");
	f->price = NAN;
	return ask->prices ? vc_card_price(ask->prices, f->card, &f->price, err) : VC_OK;
}

static double step_tokens(const struct vc_ways *f, const struct vc_way *w)
{
	double each = f->seq;
	size_t key;

	if (is_varied(f, &key) &&
	    vc_parse_real(vc_vary_value(&f->vary, w->l.with, key), &each, NULL) < 0)
		return 0;
	each *= (double)f->ask->batch;
	return each >= 1 && each <= (double)VC_AMOUNT_MOST ? each : 0;
}

/* "0.35", "12", "1,200,000" */
static const char *short_words(double v, char buf[VC_FORMAT])
{
	double unit = pow(10, floor(log10(fmax(v, 1e-9))) - 1);

	v = round(v / unit) * unit;
	if (v >= 10 && v < 1e18)
		return vc_format_count((uint64_t)(v + 0.5), buf);
	snprintf(buf, VC_FORMAT, "%.2g", v);
	return buf;
}

/* A column: NAME, NAME_low, NAME_high; people see one text. */
static void say_between(struct vc_emit *e, const char *const name[3], const double v[3],
			bool known)
{
	char text[4 * VC_FORMAT], a[VC_FORMAT], b[VC_FORMAT], c[VC_FORMAT];

	for (int i = 0; i < 3; i++)
		vc_emit_real(vc_emit_known(e, known), name[i], NULL, v[i]);
	snprintf(text, sizeof(text), "%s (%s .. %s)", short_words(v[0], a), short_words(v[1], b),
		 short_words(v[2], c));
	vc_emit_text(vc_emit_known(e, known), NULL, name[0], text);
}

void vc_ways_cost_say(struct vc_emit *e, const struct vc_ways *f, const struct vc_way *w)
{
	static const char *const days[] = { "days", "days_low", "days_high" };
	static const char *const cost[] = { "cost", "cost_low", "cost_high" };
	const uint64_t ns[] = { w->time.step_ns, w->time.low_ns, w->time.high_ns };
	bool known = w->end == VC_WAY_RAN && w->time.step_ns;
	double tokens, took[3] = { 0 }, price[3] = { 0 };

	if (isnan(f->ask->tokens))
		return;
	tokens = step_tokens(f, w);
	known = known && tokens > 0;
	for (int i = 0; i < 3 && known; i++) {
		took[i] = ceil(f->ask->tokens / tokens) * (double)ns[i] / DAY;
		price[i] = took[i] * HOURS * (double)f->ask->world * f->price;
	}
	vc_emit_uint(vc_emit_known(e, tokens > 0), "step_tokens", NULL, (uint64_t)tokens);
	say_between(e, days, took, known);
	if (f->ask->prices)
		say_between(e, cost, price, known);
}

void vc_ways_cost_line(struct vc_emit *e, const struct vc_ways *f)
{
	char all[VC_FORMAT], batch[VC_FORMAT], seq[VC_FORMAT];
	size_t key;

	if (isnan(f->ask->tokens))
		return;
	vc_emit_line(e, "Days%s of %s tokens, %s samples a step%s%s.",
		     f->ask->prices ? " and cost" : "",
		     vc_format_count((uint64_t)f->ask->tokens, all),
		     vc_format_count(f->ask->batch, batch),
		     is_varied(f, &key) ? "" : ", each of ",
		     is_varied(f, &key) ? "" : vc_format_count((uint64_t)f->seq, seq));
}
