/* SPDX-License-Identifier: Apache-2.0 */
/* facts.c - the questions that every picture answers, whatever else it draws: the verdict, when,
 * who holds most, how much is stranded, what would help, and whether it can be trusted. */

#include "visualize/scene.h"

enum { FACTS = 7, STEP = 210, GAP = 240, NAME = 2700, HOLDER = 120 };

struct fact { const char *label, *color; char text[400]; };
struct facts { struct fact at[FACTS]; size_t n; };

static char *add(struct facts *f, const char *label, const char *color)
{
	f->at[f->n] = (struct fact){ .label = label, .color = color };
	return f->at[f->n++].text;
}

#define TEXT sizeof(((struct fact *)0)->text)

static void verdict(struct facts *f, const struct vc_result *r)
{
	bool card = r->info.capacity || r->info.has_limit;
	const char *color, *word = vc_verdict_word(r, &color);
	char a[2 * VC_FORMAT], *to = add(f, "verdict", color);

	if (card || vc_result_verdict(r) != VC_FITS)
		snprintf(to, TEXT, "%s", word);
	else
		snprintf(to, TEXT, "%s %s, no card given", r->stats.allocs ? "needs" : "holds",
			 r->has_interval ? vc_format_band(r->low, r->high, a) :
					   vc_format_bytes(r->stats.peak_reserved, a));
}

static void when(struct facts *f, const struct vc_result *r, bool by_time)
{
	const struct vc_moment *m = &r->moment;
	char a[VC_FORMAT], phase[100];
	char *to = add(f, m->at_oom ? "fails at" : "fullest at", "fg");

	vc_phase_text(r, m->event, phase, sizeof(phase));
	if (!r->stats.events)
		snprintf(to, TEXT, "the only moment recorded");
	else if (by_time)
		snprintf(to, TEXT, "%s", vc_format_ns(m->elapsed_ns, a));
	else
		snprintf(to, TEXT, "event %s", vc_format_count(m->event, a));
	if (*phase)
		snprintf(to + strlen(to), TEXT - strlen(to), ",%s", phase);
	else if (m->steps)
		snprintf(to + strlen(to), TEXT - strlen(to), ", in step %s",
			 vc_format_count(m->steps - 1, a));
}

static void who(struct facts *f, const struct vc_result *r)
{
	const struct vc_moment *m = &r->moment;
	char a[2 * VC_FORMAT], *to = add(f, "held most by", "fg");

	if (m->who)
		snprintf(to, TEXT, "%.*s%s, %s", HOLDER, m->who,
			 strlen(m->who) > HOLDER ? "\xE2\x80\xA6" : "",
			 vc_format_of(m->bytes, m->allocated, a));
	else
		snprintf(to, TEXT, "nobody: nothing is live");
}

/* All numbers in the unit of what is reserved, as in the rest of a picture. */
static void stranded(struct facts *f, const struct vc_result *r)
{
	const struct vc_moment *m = &r->moment;
	char a[VC_FORMAT], b[VC_FORMAT], *to = add(f, m->splits ? "stranded" : "cached", "fg");
	size_t unit;

	vc_format_in(m->stranded, m->reserved, a);
	vc_format_in(m->cached, m->reserved, b);
	unit = strcspn(a, " ");
	if (!m->cached)
		snprintf(to, TEXT, "none, nothing is cached");
	else if (!m->splits)
		snprintf(to, TEXT, "%s, what of it is stranded is not counted", b);
	else if (!m->stranded)
		snprintf(to, TEXT, "none of %s cached", b);
	else
		snprintf(to, TEXT, "%.*s of %s cached",
			 (int)(strcmp(a + unit, b + strcspn(b, " ")) ? strlen(a) : unit), a, b);
}

/* The first request that failed is rarely the one that needs most. Where it is known what the run
 * needs when nothing limits it, that counts. */
static bool whole_need(const struct vc_result *r, uint64_t *low, uint64_t *high)
{
	uint64_t beside = r->stats.peak_used - r->stats.peak_reserved;

	*low = r->has_interval ? r->trust.used_low : r->need + beside;
	*high = r->has_interval ? r->trust.used_high : r->need + beside;
	return (r->has_interval || r->need) && !r->trust.endless && r->info.capacity &&
	       *high > r->info.capacity;
}

static void failure_help(const struct vc_result *r, char *to)
{
	const struct vc_moment *m = &r->moment;
	uint64_t there = m->cached + m->free, low, high, room = r->info.capacity;
	char a[VC_FORMAT], b[VC_FORMAT];

	if (whole_need(r, &low, &high) && low > room && low < high)
		snprintf(to, TEXT, "%s to %s less in use",
			 vc_format_in(low - room, m->reserved, a),
			 vc_format_in(high - room, m->reserved, b));
	else if (whole_need(r, &low, &high))
		snprintf(to, TEXT, "%s%s less in use", low < high ? "up to " : "",
			 vc_format_in(high - room, m->reserved, a));
	else if (m->request > there)
		snprintf(to, TEXT, "at least %s less in use, for this request alone",
			 vc_format_in(m->request - there, m->reserved, a));
	else
		snprintf(to, TEXT, "one piece of %s: %s are free, but in smaller ones",
			 vc_format_in(m->request, m->reserved, a),
			 vc_format_in(there, m->reserved, b));
}

static void help(struct facts *f, const struct vc_result *r)
{
	uint64_t used = r->stats.peak_used, room = r->info.capacity, need = used;
	char a[VC_FORMAT], *to = add(f, "would help", "fg");
	enum vc_verdict v = vc_result_verdict(r);

	need = r->has_interval && r->trust.used_high > need ? r->trust.used_high : need;
	if (r->moment.at_oom && v != VC_FITS)
		failure_help(r, to);
	else if (r->trust.endless && r->stats.allocs)
		snprintf(to, TEXT, "a recording that goes on after the failure");
	else if (v == VC_FLUSHES)
		snprintf(to, TEXT, "room for its cache, which is emptied %s time%s",
			 vc_format_count(r->stats.flushes, a), r->stats.flushes == 1 ? "" : "s");
	else if (v != VC_FITS || (!room && !r->info.has_limit))
		snprintf(to, TEXT, "a card with %s or more", vc_format_bytes(need, a));
	else if (r->info.has_limit && r->info.limit >= r->stats.peak_reserved)
		snprintf(to, TEXT, "nothing, %s of its limit stay free",
			 vc_format_bytes(r->info.limit - r->stats.peak_reserved, a));
	else
		snprintf(to, TEXT, "nothing, %s stay free",
			 vc_format_bytes(room > used ? room - used : 0, a));
}

static struct facts facts_of(const struct vc_result *r, bool by_time, unsigned asked)
{
	struct facts f = { .n = 0 };

	if (asked & VC_ASK_VERDICT)
		verdict(&f, r);
	if (asked & VC_ASK_WHEN)
		when(&f, r, by_time);
	if (asked & VC_ASK_WHO)
		who(&f, r);
	if (asked & VC_ASK_STRANDED)
		stranded(&f, r);
	if (asked & VC_ASK_HELP)
		help(&f, r);
	if ((asked & VC_ASK_TRUST) && r->trust.level)
		snprintf(add(&f, "trust", "fg"), TEXT, "%s", vc_level_name(r->trust.level));
	return f;
}

/* In a row, wrapped; the baseline of the last line. */
static int flow(struct vc_page *p, struct vc_box at, const struct facts *f)
{
	int x = at.x, y = at.y, right = at.x + at.w;

	for (size_t i = 0; i < f->n; i++) {
		const struct fact *k = &f->at[i];
		struct vc_label l = { 0, 0, VC_T_BODY, VC_START, "mut", 0, false, false };
		struct vc_label v = { 0, 0, VC_T_STRONG, VC_START, k->color, 0, false, false };
		int name = vc_svg_measure(&l, k->label).w + 60;
		int value = vc_svg_measure(&v, k->text).w;

		if (x > at.x && x + name + value > right) {
			x = at.x;
			y += STEP;
		}
		l.x = x;
		l.y = v.y = y;
		v.x = x + name;
		vc_svg_label(&p->svg, &l, k->label);
		v.max = right - v.x;
		if (value > v.max)
			y = vc_page_lines(p, &v, k->text, 0, STEP, 4);
		else
			vc_svg_label(&p->svg, &v, k->text);
		x = value > v.max ? right : v.x + value + GAP;
	}
	return y;
}

static bool is_timed(const struct vc_page *p, const struct vc_result *r)
{
	return r->curve.n ? vc_wants_time(p->cfg, r) : r->stats.has_times;
}

int vc_page_facts(struct vc_page *p, int y, const struct vc_result *r)
{
	bool card = r->info.capacity || r->info.has_limit; /* then the mark says the verdict */
	struct facts f;

	if (p->cfg->no_facts || !r->moment.looked)
		return y;
	f = facts_of(r, is_timed(p, r), VC_ASK_WHEN | VC_ASK_WHO | VC_ASK_STRANDED | VC_ASK_HELP |
		     (card ? 0u : VC_ASK_VERDICT));
	vc_svg_put(&p->svg, "<g>\n");
	y = flow(p, (struct vc_box){ VC_MARGIN, y + 70, p->w - 2 * VC_MARGIN, 0 }, &f);
	vc_svg_put(&p->svg, "</g>\n");
	return y + 210;
}

static bool same(const struct facts *a, const struct facts *b)
{
	for (size_t i = 0; i < a->n; i++)
		if (i >= b->n || strcmp(a->at[i].label, b->at[i].label) ||
		    strcmp(a->at[i].text, b->at[i].text))
			return false;
	return a->n == b->n;
}

/* What is behind a subject, with its like of the same name that come after it; *f gets who they
 * are. false: it was among those of an earlier one. */
static bool gather(const struct vc_page *p, const struct vc_subject *of, size_t n, size_t i,
		   unsigned asked, struct facts *f)
{
	struct fact under = { .label = "under", .color = "fg" };
	struct facts all = { .n = 0 };

	*f = facts_of(of[i].r, is_timed(p, of[i].r), asked);
	for (size_t k = 0; of[i].under && k < n; k++) {
		struct facts other;

		if (strcmp(of[k].name, of[i].name) || !of[k].r->moment.looked)
			continue;
		other = facts_of(of[k].r, is_timed(p, of[k].r), asked);
		if (!same(f, &other))
			continue;
		if (k < i)
			return false;
		snprintf(under.text + strlen(under.text), TEXT - strlen(under.text), "%s%s",
			 *under.text ? ", " : "", of[k].under);
	}
	if (of[i].under)
		all.at[all.n++] = under;
	for (size_t k = 0; k < f->n; k++)
		all.at[all.n++] = f->at[k];
	*f = all;
	return true;
}

/* Of the column of names: as wide as the longest, within reason. */
static int name_width(const struct vc_subject *of, size_t n)
{
	int most = 0;

	for (size_t i = 0; i < n; i++) {
		int w = vc_svg_measure(&(struct vc_label){ .style = VC_T_MONO }, of[i].name).w;

		most = w > most ? w : most;
	}
	return most + 300 < NAME ? most + 300 : NAME;
}

int vc_page_facts_of(struct vc_page *p, int y, const struct vc_subject *of, size_t n,
		     unsigned asked)
{
	bool narrow = p->w < VC_NARROW;
	int left = VC_MARGIN + (narrow ? 200 : name_width(of, n)), right = p->w - VC_MARGIN;
	const char *name = "";
	struct facts f;

	for (size_t i = 0; i < n && !p->cfg->no_facts; i++) {
		if (!of[i].r->moment.looked || !gather(p, of, n, i, asked, &f))
			continue;
		if (!*name)
			vc_svg_say(&p->svg, "At the failure, or else the peak", VC_MARGIN,
				   y += 300, VC_T_HEAD, VC_START, "fg", right - VC_MARGIN);
		y += 290;
		vc_svg_put(&p->svg, "<g>\n"); /* browsers dislike many siblings */
		if (strcmp(name, of[i].name)) {
			vc_svg_say(&p->svg, of[i].name, VC_MARGIN, y, VC_T_MONO, VC_START, "fg",
				   narrow ? right - VC_MARGIN :
				   left - VC_MARGIN - 150);
			y += narrow ? STEP : 0;
		}
		name = of[i].name;
		y = flow(p, (struct vc_box){ left, y, right - left, 0 }, &f);
		vc_svg_put(&p->svg, "</g>\n");
	}
	return *name ? y + 150 : y;
}
