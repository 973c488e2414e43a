/* SPDX-License-Identifier: Apache-2.0 */
/* estimate_cards.c - see estimate_cards.h */
#include "commands/estimate_cards.h"

#include "common/param.h"
#include "common/vec.h"
#include "simulator/replay/cards.h"

enum { LONGEST = 255 };
#define CONTEXT_BAND 0.3 /* as for the one card of -g */

struct offer {
	const struct vc_card *card;
	double low, bytes, high, price; /* price: NAN where the list does not name it */
	int verdict;                    /* 0 fits, 1 undecided, 2 does not */
};

/* NAME,PRICE; '#' begins a comment, where the date belongs. */
static int read_price(char *line, size_t no, struct offer *o, size_t n, bool *begun,
		      struct vc_error *err)
{
	bool first = !*begun;

	const struct vc_card *card;
	char *comma;
	double price;

	line[strcspn(line, "#\r\n")] = '\0';
	for (size_t end = strlen(line); end && (line[end - 1] == ' ' || line[end - 1] == '\t');)
		line[--end] = '\0';
	line += strspn(line, " \t");
	if (!*line)
		return VC_OK;
	comma = strchr(line, ',');
	if (!comma)
		return vc_fail(err, VC_EFORMAT, "line %zu: wants NAME,PRICE", no);
	*comma++ = '\0';
	comma += strspn(comma, " \t$");
	if (vc_parse_real(comma, &price, err) < 0 || !(price >= 0)) {
		*begun = true;
		if (first)
			return VC_OK; /* names of columns */
		return vc_fail(err, VC_EFORMAT, "line %zu: '%s' is no price", no, comma);
	}
	*begun = true;
	if (vc_card_find(line, &card, err) < 0)
		return vc_wrap(err, "line %zu", no);
	for (size_t i = 0; i < n; i++)
		if (o[i].card == card)
			o[i].price = price;
	return VC_OK;
}

static int read_prices(const char *path, struct offer *o, size_t n, struct vc_error *err)
{
	struct vc_input *in = vc_input_open(path, err);
	size_t no = 1, len = 0, cap = 0;
	char *line = NULL;
	bool begun = false;
	int r = in ? VC_OK : (int)err->status;

	for (; r == VC_OK && (r = vc_input_line(in, LONGEST, &line, &cap, &len, err)) > 0; no++) {
		r = read_price(line, no, o, n, &begun, err);
		if (r == VC_OK)
			*err = (struct vc_error){ 0 };
	}
	if (len > LONGEST)
		vc_wrap(err, "line %zu", no);
	if (r < 0 && in)
		vc_wrap(err, "%s", path);
	free(line);
	vc_input_close(in);
	return r;
}

/* What fits first; of those the cheapest, then the smallest. */
static double rank(const struct offer *o)
{
	return isnan(o->price) ? INFINITY : o->price;
}

VC_COMPARE(by_offer, struct offer,
	   VC_THEN(VC_ORDER(x->verdict, y->verdict),
	   VC_THEN(VC_ORDER(rank(x), rank(y)),
	   VC_THEN(VC_ORDER(x->card->total, y->card->total), VC_ORDER(x->card, y->card)))))

static void say(struct vc_emit *e, const struct offer *o, size_t n, bool prices)
{
	static const char *const words[] = { "fits", "undecided", "oom" };

	vc_emit_array(e, "cards", "Cards");
	for (size_t i = 0; i < n; i++) {
		vc_emit_object(e, NULL, NULL);
		vc_emit_text(e, "gpu", "card", o[i].card->name);
		vc_emit_bytes(e, "capacity", "capacity", o[i].card->total);
		vc_emit_bytes(e, "low", "at least", (uint64_t)o[i].low);
		vc_emit_bytes(e, "high", "at most", (uint64_t)o[i].high);
		vc_emit_text(e, "verdict", "verdict", words[o[i].verdict]);
		if (isnan(o[i].price))
			vc_emit_null(e, "price", prices ? "price" : NULL);
		else
			vc_emit_real(e, "price", "price", o[i].price);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	bool any = n && !o[0].verdict && (!prices || !isnan(o[0].price));

	vc_emit_text(e, "cheapest", prices ? "the cheapest that fits" : "the smallest that fits",
		     any ? o[0].card->name : NULL);
}

int vc_estimate_cards(struct vc_emit *e, const struct vc_estimate_need *need, const char *prices,
		      bool *fits, struct vc_error *err)
{
	struct offer *o = calloc(vc_cards_n, sizeof(*o));
	int r = o ? VC_OK : vc_nomem(err, "the cards");

	for (size_t i = 0; o && i < vc_cards_n; i++) {
		double beside = (double)vc_cards[i].context, all = (double)vc_cards[i].total;

		o[i] = (struct offer){ &vc_cards[i], need->low + beside * (1 - CONTEXT_BAND),
				       need->bytes + beside,
				       need->high + beside * (1 + CONTEXT_BAND), NAN, 1 };
		o[i].verdict = o[i].high <= all ? 0 : o[i].low > all ? 2 : 1;
	}
	if (r == VC_OK && prices)
		r = read_prices(prices, o, vc_cards_n, err);
	if (r == VC_OK) {
		vc_sort(o, vc_cards_n, sizeof(*o), by_offer);
		*fits = !o[0].verdict;
		say(e, o, vc_cards_n, prices != NULL);
	}
	free(o);
	return r;
}

/* All cards with their prices, in the order of by_offer. */
static struct offer *priced(const char *prices, struct vc_error *err)
{
	struct offer *o = calloc(vc_cards_n, sizeof(*o));

	if (!o)
		vc_nomem(err, "the cards");
	for (size_t i = 0; o && i < vc_cards_n; i++)
		o[i] = (struct offer){ .card = &vc_cards[i], .price = NAN };
	if (o && prices && read_prices(prices, o, vc_cards_n, err) < 0) {
		free(o);
		o = NULL;
	}
	if (o)
		vc_sort(o, vc_cards_n, sizeof(*o), by_offer);
	return o;
}

static int expand(struct vc_list *gpu, const char *prices, struct vc_error *err)
{
	struct offer *o = priced(prices, err);
	size_t n = 0;

	if (!o)
		return err->status;
	free(gpu->at);
	gpu->at = calloc(vc_cards_n, sizeof(*gpu->at));
	for (size_t i = 0; gpu->at && i < vc_cards_n; i++)
		if (o[i].card->kind == VC_KIND_CUDA)
			gpu->at[n++] = o[i].card->name;
	free(o);
	gpu->n = n;
	return gpu->at ? VC_OK : vc_nomem(err, "the cards");
}

static void *field(const struct vc_command *c, void *config, const char *name,
		   enum vc_option_type type)
{
	for (size_t t = 0; c->options && c->options[t]; t++)
		for (const struct vc_option *o = c->options[t]; o->name; o++)
			if (o->type == type && !strcmp(o->name, name))
				return (char *)config + o->offset;
	return NULL;
}

int vc_gpu_all(const struct vc_command *c, void *config, struct vc_error *err)
{
	struct vc_list *gpu = field(c, config, "gpu", VC_O_LIST);
	const char **prices = field(c, config, "prices", VC_O_TEXT);
	const double *tokens = field(c, config, "tokens", VC_O_COUNT);
	bool all = false;

	for (size_t i = 0; gpu && i < gpu->n; i++)
		all |= !strcmp(gpu->at[i], "all");
	if (gpu && prices && *prices && !all && (!tokens || isnan(*tokens)))
		return vc_fail(err, VC_EUSAGE, "--prices goes with -g all%s",
			       tokens ? ", or with --tokens" : "");
	if (all && gpu->n > 1)
		return vc_fail(err, VC_EUSAGE, "-g all is every card: leave the other -g out");
	return all ? expand(gpu, prices ? *prices : NULL, err) : VC_OK;
}

void vc_gpu_cheapest(struct vc_emit *e, const char *prices, const struct vc_card *fits)
{
	struct vc_error ignored; /* the file was read before */
	struct offer *o = priced(prices, &ignored);
	char line[120];

	snprintf(line, sizeof(line), "%s", fits ? fits->name : "none");

	for (size_t i = 0; o && fits && i < vc_cards_n; i++)
		if (o[i].card == fits && isfinite(o[i].price))
			snprintf(line, sizeof(line), "%s, %g", fits->name, o[i].price);
	free(o);
	vc_emit_text(e, "cheapest", NULL, fits ? fits->name : NULL);
	vc_emit_text(e, NULL, "the cheapest that fits", line);
}

int vc_card_price(const char *prices, const struct vc_card *card, double *price,
		  struct vc_error *err)
{
	struct offer o = { .card = card, .price = NAN };

	VC_TRY(read_prices(prices, &o, 1, err));
	*price = o.price;
	return isnan(o.price) ? vc_fail(err, VC_EUSAGE, "%s: no price of %s", prices, card->name) :
		VC_OK;
}
