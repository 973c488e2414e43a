/* SPDX-License-Identifier: Apache-2.0 */
/* cards.c - the table of card profiles and how a name finds its row. */
#include <ctype.h>
#include <strings.h>

#include "common/param.h"
#include "simulator/replay/cards.h"

#define VC_CARD(...) VC_CARD_OF(VC_KIND_CUDA, __VA_ARGS__)
#define ROW(whose, key, text, bytes, ctx, smi, major, minor, sm, gbs, f32, f16, how, from) \
	{ .kind = whose,                                                                   \
	  .name = key,                                                                     \
	  .title = text,                                                                   \
	  .total = bytes,                                                                  \
	  .prop_total = bytes,                                                             \
	  .context = ctx,                                                                  \
	  .smi_mib = smi,                                                                  \
	  .cc_major = major,                                                               \
	  .cc_minor = minor,                                                               \
	  .sms = sm,                                                                       \
	  .bandwidth_gbs = gbs,                                                            \
	  .fp32_tflops = f32,                                                              \
	  .half_tflops = f16,                                                              \
	  .sure = how,                                                                     \
	  .source = from },

#define VC_CARD_OF(whose, key, text, bytes, ctx, smi, major, minor, sm, ...)              \
	ROW(whose, key, text, bytes,                                                      \
	    (ctx) != 0 ? (ctx) : VC_CARD_CONTEXT_OF(major, minor, sm), smi, major, minor, \
	    sm, __VA_ARGS__)
const struct vc_card vc_cards[] = {
#include "simulator/replay/cards.def"
};
const size_t vc_cards_n = sizeof(vc_cards) / sizeof(*vc_cards);

const struct vc_card vc_card_parts[] = {
#include "simulator/replay/card_parts.def"
#include "simulator/replay/card_laptops.def"
#include "simulator/replay/card_others.def"
};
const size_t vc_card_parts_n = sizeof(vc_card_parts) / sizeof(*vc_card_parts);
#undef VC_CARD_OF

/* The same cards where Windows drives them (WDDM). A program sees all that nvidia-smi shows but
 * half a MiB: 8191 MB of 8192 in PyTorch's properties of an RTX 3080 Laptop GPU. Of that the
 * system keeps some: llama.cpp prints 5072 MiB free on an RTX 4050 Laptop GPU of 6140, 7099 on
 * an RTX 4060 Laptop GPU of 8187, 15046 on an RTX 5000 Ada Laptop GPU of 16375 and 22994 on an
 * RTX 4090 of 24563, which is 850 MiB and 3 % of the card within 33 MiB, the program's own
 * context in it. 0: not a card of NVIDIA's, or nvidia-smi's figure is not known. */
#define VC_CARD_OF(whose, key, text, bytes, ctx, smi, major, minor, sm, gbs, f32, f16, how, from) \
	ROW(whose, key "+windows", text " (Windows)",                                             \
	    (whose) == VC_KIND_CUDA && (smi) ? ((smi) + 0ull) * MIB - MIB / 2 : 0,                \
	    850 * MIB + (smi) * MIB / 100 * 3, smi, major, minor, sm, gbs, f32, f16,              \
	    VC_CARD_MESSAGE,                                                                      \
	    "nvidia-smi's total less half a MiB, and what Windows keeps of it as on four other "  \
	    "cards (WDDM)")
#define MIB (1ull << 20)
static const struct vc_card on_windows[] = {
#include "simulator/replay/cards.def"
#include "simulator/replay/card_laptops.def"
#include "simulator/replay/card_others.def"
};
#undef VC_CARD
#undef VC_CARD_OF
#undef ROW

enum { NAME = 96 };

/* A name taken apart: "NVIDIA H100-SXM5-80GB" is h100, sxm, 80. */
struct spelling { char id[NAME]; const char *form; unsigned gb; };

static bool is_one_of(const char *word, const char *const *list)
{
	while (*list && strcmp(word, *list))
		list++;
	return *list != NULL;
}

/* "80gb", "80g"; or "80" behind the card's own number, which has four digits where it is one. */
static unsigned memory_of(const char *word, bool behind)
{
	char *unit;
	unsigned long gb = strtoul(word, &unit, 10);

	if (!*unit ? behind && gb < 1000 : !strcmp(unit, "g") || !strcmp(unit, "gb"))
		return (unsigned)gb;
	return 0;
}

static void add_word(struct spelling *s, char *word)
{
	/* makers, families and editions: they tell no two cards of the table apart */
	static const char *const silent[] = { "nvidia", "amd", "geforce", "tesla", "quadro",
		"instinct", "radeon", "rtx", "gtx", "rx", "gpu", "generation", "blackwell",
		"server", "workstation", "edition", "max", "q", "intel", "r", "tm", "graphics",
		"data", "center", "arc", "huawei", "tile", "hbm2", "hbm3", "hbm3e", "gb",
		"ac", "gcd", "jetson", NULL };
	static const char *const family[] = { "rtx", "gtx", "rx", "max", "arc", "ascend", NULL };
	static const char *const form[] = { "sxm", "pcie", "nvl", NULL };
	size_t used = strlen(s->id);
	unsigned gb = memory_of(word, used > 0);

	if (gb)
		s->gb = gb;
	if (gb || is_one_of(word, silent))
		return;
	for (size_t i = 0; form[i]; i++) { /* SXM5, NVL72, "h100sxm" */
		char *at = strstr(word, form[i]);

		if (at) {
			s->form = form[i];
			*at = '\0';
		}
	}
	for (size_t i = 0; !used && family[i]; i++) /* "rtx3080", "rtxa6000" */
		if (!strncmp(word, family[i], strlen(family[i]))) {
			word += strlen(family[i]);
			break;
		}
	snprintf(s->id + used, NAME - used, "%s", word);
}

/* "(R)" and "(TM)" of a name, which are no remark: how long. */
static size_t mark_at(const char *p)
{
	return !strncasecmp(p, "(r)", 3) ? 3 : !strncasecmp(p, "(tm)", 4) ? 4 : 0;
}

/* Words are letters and digits, without case; what stands in brackets is a remark. */
static struct spelling spell(const char *name)
{
	struct spelling s = { .id = "" };
	char word[NAME];
	size_t n = 0;

	for (const char *p = name;; p++) {
		if (isalnum((unsigned char)*p) && n + 1 < NAME) {
			word[n++] = (char)tolower((unsigned char)*p);
			continue;
		}
		word[n] = '\0';
		if (n)
			add_word(&s, word);
		n = 0;
		if (!*p || (*p == '(' && !mark_at(p)))
			return s;
		p += mark_at(p) ? mark_at(p) - 1 : 0;
	}
}

/* Letters and digits in lower case, without the maker, up to a remark in brackets. */
static void fold(const char *text, char out[NAME])
{
	size_t n = 0;

	for (; *text && (*text != '(' || mark_at(text)) && n + 1 < NAME; text++) {
		text += mark_at(text);
		if (isalnum((unsigned char)*text))
			out[n++] = (char)tolower((unsigned char)*text);
		if (!*text)
			break;
	}
	out[n] = '\0';
	if (!strncmp(out, "nvidia", 6))
		memmove(out, out + 6, n - 5);
}

/* A process sees nine tenths of the size on the box, or a little more. */
static bool has_memory(const struct vc_card *c, unsigned gb)
{
	uint64_t size = (uint64_t)gb << 30;

	return !gb || (c->total <= size && c->total > size / 8 * 7);
}

/* The rows of a table that a name fits: the one that is called so, else all that its words allow. A
 * word that the row lacks makes it another card, and so does one of the row that the name lacks
 * (Ti, SUPER). */
static size_t search_in(const struct vc_card *table, size_t rows, const char *name,
			const struct vc_card *found[NAME])
{
	struct spelling want;
	char word[NAME], own[NAME];
	size_t n = 0;

	for (size_t i = 0; i < rows; i++) /* as sweeps ask, for each scenario */
		if (!strcmp(table[i].name, name)) {
			found[0] = &table[i];
			return 1;
		}
	want = spell(name);
	fold(name, word);
	for (size_t i = 0; *want.id && i < rows; i++) {
		const struct vc_card *c = &table[i];
		struct spelling has = spell(c->name);
		bool exact;

		fold(c->name, own);
		exact = !strcmp(own, word);
		fold(c->title, own);
		if (exact || !strcmp(own, word)) {
			found[0] = c;
			return 1;
		}
		if (n < NAME && !strcmp(has.id, want.id) && has_memory(c, want.gb) &&
		    (!want.form || !has.form || !strcmp(want.form, has.form)))
			found[n++] = c;
	}
	return n;
}

/* What a row of the table is called with this behind its name: "+windows". NULL: it has none. */
static const struct vc_card *changed(const struct vc_card *card, const char *how)
{
	size_t n = strlen(card->name), windows = sizeof(on_windows) / sizeof(*on_windows);

	for (size_t i = 0; i < vc_card_parts_n + windows; i++) {
		const struct vc_card *c = i < vc_card_parts_n ? &vc_card_parts[i]
							       : &on_windows[i - vc_card_parts_n];

		if (c->total && !strncmp(c->name, card->name, n) && !strcasecmp(c->name + n, how))
			return c;
	}
	return NULL;
}

/* Whole cards first; parts, laptops and others are meant only where no card is. */
static size_t search(const char *name, const struct vc_card *found[NAME])
{
	const char *how = strchr(name, '+');
	char card[NAME] = "";
	size_t n = how ? (size_t)(how - name) : strlen(name), kept = 0;

	memcpy(card, name, n < NAME ? n : NAME - 1);
	n = search_in(vc_cards, vc_cards_n, card, found);
	if (!n)
		n = search_in(vc_card_parts, vc_card_parts_n, card, found);
	for (size_t i = 0; how && i < n; i++) {
		const struct vc_card *c = changed(found[i], how);

		if (c)
			found[kept++] = c;
	}
	return how ? kept : n;
}

/* Of cards that differ by the way they are built in (PCIe, SXM) but hardly in memory the smallest,
 * so that "fits" holds for all of them; NULL where they do differ. */
static const struct vc_card *smallest(const struct vc_card *const *found, size_t n)
{
	const struct vc_card *least = n ? found[0] : NULL, *most = least;

	for (size_t i = 1; i < n; i++) {
		if (found[i]->total < least->total)
			least = found[i];
		if (found[i]->total > most->total)
			most = found[i];
	}
	return n && most->total - least->total < most->total / 100 ? least : NULL;
}

static const char *list_of(const struct vc_card *const *found, size_t n, char *buf, size_t size)
{
	size_t used = 0;

	*buf = '\0';
	for (size_t i = 0; i < n && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? ", " : "",
					 found[i]->name);
	return buf;
}

const struct vc_card *vc_card_by_name(const char *name)
{
	const struct vc_card *found[NAME];

	return smallest(found, search(name, found));
}

/* Numbers of cards that are one slip apart: "4091" and "4090", "409" and "4090". */
static bool near_numbers(const char *a, const char *b)
{
	size_t wrong = 0;

	a += strcspn(a, "0123456789");
	b += strcspn(b, "0123456789");
	while (isdigit((unsigned char)*a) && isdigit((unsigned char)*b))
		wrong += *a++ != *b++;
	return wrong + strspn(a, "0123456789") + strspn(b, "0123456789") <= 1;
}

/* Cards that were meant by a name that is none: those that it is a part of, else such of those that
 * are only named, else one that differs by a letter or two. "" when there is none. */
static const char *meant(const char *name, char *buf, size_t size)
{
	const struct vc_card *like[4];
	const char *keys[128], *near;
	char word[NAME], own[NAME];
	size_t n = 0, found = 0, others = 0;

	fold(name, word);
	*buf = '\0';
	for (; n < vc_cards_n && n < sizeof(keys) / sizeof(*keys); n++) {
		keys[n] = vc_cards[n].name;
		fold(keys[n], own);
		if (*word && strstr(own, word) && found < sizeof(like) / sizeof(*like))
			like[found++] = &vc_cards[n];
	}
	for (size_t i = 0; *word && !found && i < vc_card_parts_n; i++) {
		const struct vc_card *c = &vc_card_parts[i];

		fold(c->name, own);
		if (strstr(own, word) && !strchr(c->name, '+') &&
		    others < sizeof(like) / sizeof(*like))
			like[others++] = c;
	}
	found += others;
	near = found ? NULL : vc_nearest(name, keys, n);
	if (found)
		list_of(like, found, buf, size);
	else if (near && near_numbers(name, near))
		snprintf(buf, size, "%s", near);
	return buf;
}

int vc_card_find(const char *name, const struct vc_card **card, struct vc_error *err)
{
	const struct vc_card *found[NAME];
	size_t n = search(name, found);
	char list[400];

	*card = n == 1 ? found[0] : NULL;
	if (*card)
		return VC_OK;
	if (n)
		return vc_fail(err, VC_EUSAGE, "gpu '%s' is one of %s: say which", name,
			       list_of(found, n, list, sizeof(list)));
	if (strchr(name, '+'))
		return vc_fail(err, VC_EUSAGE,
			       "no gpu '%s': behind a card's name may stand +windows, +ecc, +noecc "
			       "or a part of it as +1g.5gb (`vramcast gpus` lists them)", name);
	meant(name, list, sizeof(list));
	return vc_fail(err, VC_EUSAGE,
		       "no gpu '%s'%s%s%s (`vramcast gpus` lists them; --capacity takes bytes)",
		       name, *list ? ", did you mean " : "", list, *list ? "?" : "");
}

const char *vc_card_remark(const char *name, char *buf, size_t size)
{
	const struct vc_card *card = vc_card_by_name(name);

	*buf = '\0';
	if (card && card->sure == VC_CARD_ESTIMATE)
		snprintf(buf, size, "%s: its total of %.2f GiB is an estimate, nothing that "
			 "printed it was found", card->name,
			 (double)card->total / (double)(1u << 30));
	else if (card && strchr(name, '+') && strstr(card->name, "+windows"))
		snprintf(buf, size, "%s: Windows lends a full card memory of the host, and the "
			 "program runs on slowly: it runs out only where the driver's 'Sysmem "
			 "Fallback Policy' forbids that", card->name);
	return buf;
}

enum vc_device_kind vc_card_kind(const char *name)
{
	static const struct { const char *word; enum vc_device_kind kind; } maker[] = {
		{ "AMD", VC_KIND_HIP }, { "Radeon", VC_KIND_HIP }, { "Intel", VC_KIND_XPU },
		{ "Ascend", VC_KIND_NPU },
	};
	const struct vc_card *c = name ? vc_card_by_name(name) : NULL;

	for (size_t i = 0; !c && name && i < sizeof(maker) / sizeof(*maker); i++)
		if (strstr(name, maker[i].word))
			return maker[i].kind;
	return c ? c->kind : VC_KIND_CUDA;
}

uint64_t vc_card_context(const char *name, uint64_t most)
{
	const struct vc_card *c = name ? vc_card_by_name(name) : NULL;

	return !c ? 0 : c->context < most ? c->context : most;
}

const struct vc_card *vc_card_full(uint64_t bytes, uint64_t *beside)
{
	const struct vc_card *found = NULL;
	uint64_t least = 0;

	/* a context has 64 MiB at least, 2 GiB with NCCL */
	for (size_t i = 0; i < vc_cards_n; i++) {
		const struct vc_card *c = &vc_cards[i];
		uint64_t rest = c->total > bytes ? c->total - bytes : 0;
		uint64_t off = rest > c->context ? rest - c->context : c->context - rest;

		if (rest < 64u << 20 || rest > 2ull << 30 || (found && off >= least))
			continue;
		found = c;
		least = off;
	}
	*beside = found ? found->total - bytes : 0;
	return found;
}

bool vc_card_same_class(const struct vc_card *a, const struct vc_card *b)
{
	return a->sms == b->sms && a->cc_major == b->cc_major && a->cc_minor == b->cc_minor;
}

/* Printed: the SXM card's by nvidia-smi (clocks.max.sm, clocks.max.memory) on one, driver 580; the
 * others' by the data sheets, boost clock and memory rate over the width of its bus. Of cards that
 * are not here cuDNN's choices do not go by clocks. */
static const struct clocks { const char *name; int sm, memory; } clocks[] = {
	{ "h100-80g-sxm", 1980, 2619 }, { "h100-80g-pcie", 1755, 1593 },
	{ "h100-94g-nvl", 1785, 2619 }, { "gh200-96g", 1980, 2619 },
	{ "h20-96g", 1980, 2619 },      { "h200-141g", 1980, 3201 },
	{ "a100-40g-sxm", 1410, 1215 }, { "a100-80g-sxm", 1410, 1593 },
};

void vc_card_clocks(const struct vc_card *c, int *sm_mhz, int *memory_mhz)
{
	/* lanes for fp32 of one multiprocessor: CUDA C++ Programming Guide, arithmetic
	 * throughput; each does two operations a cycle */
	bool narrow = c->cc_major == 7 || ((c->cc_major == 8 || c->cc_major == 6) && !c->cc_minor);
	double lanes = narrow ? 64 : 128;

	*sm_mhz = (int)(c->fp32_tflops * 1e6 / (2 * lanes * c->sms));
	*memory_mhz = 0;
	for (size_t i = 0; i < sizeof(clocks) / sizeof(*clocks); i++)
		if (!strcmp(c->name, clocks[i].name)) {
			*sm_mhz = clocks[i].sm;
			*memory_mhz = clocks[i].memory;
		}
}

void vc_card_in_table(const struct vc_card *c, char *buf, size_t n)
{
	int sm, memory;

	vc_card_clocks(c, &sm, &memory);
	snprintf(buf, n, "%d.%d/%u@%d,%d", c->cc_major, c->cc_minor, c->sms, sm, memory);
}

const char *vc_card_sure_name(enum vc_card_sure s)
{
	static const char *const name[] = { "seen", "message", "estimate" };

	return name[s];
}
