/* SPDX-License-Identifier: Apache-2.0 */
/* cards.c - the table of card profiles and how a name finds its row. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/param.h"
#include "simulator/replay/cards.h"

#define VC_CARD(key, text, bytes, ctx, smi, major, minor, sm, gbs, f32, f16, how, from)          \
	{ .name = key,                                                                            \
	  .title = text,                                                                          \
	  .total = bytes,                                                                         \
	  .prop_total = bytes,                                                                    \
	  .context = (ctx) ? (ctx) : VC_CARD_CONTEXT_OF(major, minor, sm),                        \
	  .smi_mib = smi,                                                                         \
	  .cc_major = major,                                                                      \
	  .cc_minor = minor,                                                                      \
	  .sms = sm,                                                                              \
	  .bandwidth_gbs = gbs,                                                                   \
	  .fp32_tflops = f32,                                                                     \
	  .half_tflops = f16,                                                                     \
	  .sure = how,                                                                            \
	  .source = from },
const struct vc_card vc_cards[] = {
#include "simulator/replay/cards.def"
};
#undef VC_CARD

const size_t vc_cards_n = sizeof(vc_cards) / sizeof(*vc_cards);

enum { NAME = 96, SEVERAL = 2 };

/* Letters and digits only, lower case, without the maker: "NVIDIA RTX A6000" is "rtxa6000". */
static void fold(const char *text, char out[NAME])
{
	size_t n = 0;

	for (; *text && n + 1 < NAME; text++)
		if (isalnum((unsigned char)*text))
			out[n++] = (char)tolower((unsigned char)*text);
	out[n] = 0;
	static const char *const maker[] = { "nvidia", "amd", "geforce", "tesla", "quadro" };
	for (size_t i = 0; i < sizeof(maker) / sizeof(*maker); i++) {
		size_t len = strlen(maker[i]);
		if (!strncmp(out, maker[i], len) && out[len])
			memmove(out, out + len, strlen(out + len) + 1);
	}
}

/* Every word of `name` is in the card's key, in order: "h100-sxm" is "h100-80g-sxm", "4090"
 * "rtx4090". */
static bool has_words(const char *key, const char *name)
{
	char part[NAME];

	while (*name) {
		size_t n = 0;

		for (; isalnum((unsigned char)*name) && n + 1 < NAME; name++)
			part[n++] = (char)tolower((unsigned char)*name);
		part[n] = 0;
		if (*name)
			name++;
		if (!n)
			continue;
		key = n > 1 ? strstr(key, part) : NULL;
		if (!key)
			return false;
		key += n;
	}
	return true;
}

/* How well a name, and its folded form, fit a card: 3 = is its key or title, 2 = begins its key or
 * consists of words of it, 1 = begins its title. */
static int fit(const struct vc_card *c, const char *name, const char *word)
{
	char key[NAME], title[NAME];

	fold(c->name, key);
	fold(c->title, title);
	if (!strcmp(key, word) || !strcmp(title, word))
		return 3;
	if (!strncmp(key, word, strlen(word)) || has_words(key, name))
		return 2;
	return !strncmp(title, word, strlen(word)) ? 1 : 0;
}

/* The best-fitting card. Several that differ by the way they are built in (PCIe, SXM) but hardly in
 * memory count as one: the smallest, so that "fits" holds for all of them. */
static const struct vc_card *search(const char *name, int *best, size_t *ties)
{
	const struct vc_card *found = NULL;
	uint64_t largest = 0;
	char word[NAME];

	*best = 0;
	*ties = 0;
	fold(name, word);
	if (!*word)
		return NULL;
	for (size_t i = 0; i < vc_cards_n; i++) {
		int f = fit(&vc_cards[i], name, word);
		if (f > *best) {
			*best = f;
			*ties = 0;
			largest = 0;
			found = &vc_cards[i];
		}
		if (!f || f != *best)
			continue;
		(*ties)++;
		if (vc_cards[i].total < found->total)
			found = &vc_cards[i];
		if (vc_cards[i].total > largest)
			largest = vc_cards[i].total;
	}
	if (found && *best > 1 && largest - found->total < largest / 100)
		*ties = 1;
	return found;
}

const struct vc_card *vc_card_by_name(const char *name)
{
	int best;
	size_t ties;
	const struct vc_card *c = search(name, &best, &ties);

	return ties == 1 ? c : NULL;
}

int vc_card_find(const char *name, const struct vc_card **card, struct vc_error *err)
{
	int best;
	size_t ties, n = 0;
	char list[400] = "", word[NAME];

	*card = search(name, &best, &ties);
	if (ties == 1)
		return 0;
	if (ties >= SEVERAL) {
		fold(name, word);
		for (size_t i = 0; i < vc_cards_n && n < sizeof(list); i++)
			if (fit(&vc_cards[i], name, word) == best)
				n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s",
						      n ? ", " : "", vc_cards[i].name);
		return vc_fail(err, VC_EUSAGE, "gpu '%s' is one of %s: say which", name, list);
	}
	const char *keys[128], *near;
	for (n = 0; n < vc_cards_n && n < sizeof(keys) / sizeof(*keys); n++)
		keys[n] = vc_cards[n].name;
	near = vc_nearest(name, keys, n);
	return vc_fail(err, VC_EUSAGE,
		       "no gpu '%s'%s%s%s (`vramcast gpus` lists them; --capacity takes bytes)",
		       name, near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
}

const char *vc_card_sure_name(enum vc_card_sure s)
{
	static const char *const name[] = { "seen", "message", "estimate" };

	return name[s];
}
