/* SPDX-License-Identifier: Apache-2.0 */
/* facts.c - the questions that every picture answers, whatever else it draws: the verdict, when,
 * who holds most, how much is stranded, what would help, and whether it can be trusted. */

#include "visualize/scene.h"

enum { FACTS = 8, STEP = 210, GAP = 240, NAME = 2700 };

struct facts { struct vc_fact at[FACTS]; size_t n; };

char *vc_fact_of(struct vc_fact *f, const char *label, const char *color)
{
	f->color = color;
	snprintf(f->label, sizeof(f->label), "%s", label);
	*f->text = '\0';
	return f->text;
}

static char *add(struct facts *f, const char *label, const char *color)
{
	return vc_fact_of(&f->at[f->n++], label, color);
}

static void verdict(struct facts *f, const struct vc_result *r)
{
	bool card = r->info.capacity || r->info.has_limit;
	const char *color, *word = vc_verdict_word(r, &color);
	char a[2 * VC_FORMAT], *to = add(f, "verdict", color);

	if (card || vc_result_verdict(r) != VC_FITS)
		snprintf(to, VC_FACT, "%s", word);
	else
		snprintf(to, VC_FACT, "%s %s, %s", r->stats.allocs ? "needs" : "holds",
			 r->has_interval ? vc_format_band(r->low, r->high, a) :
					   vc_format_bytes(r->stats.peak_reserved, a),
			 r->leak.steps ? "and grows" : "no card given");
}

static struct facts facts_of(const struct vc_result *r, bool by_time, unsigned asked)
{
	struct facts f = { .n = 0 };
	char cause[VC_SAY];

	if (asked & VC_ASK_VERDICT)
		verdict(&f, r);
	if (asked & VC_ASK_WHEN)
		vc_when_text(r, by_time, add(&f, r->moment.at_oom ? "fails at" : "fullest at",
					     "fg"), VC_FACT);
	if (asked & VC_ASK_WHO)
		vc_who_text(r, add(&f, "held most by", "fg"), VC_FACT);
	if (asked & VC_ASK_STRANDED)
		vc_stranded_text(r, add(&f, r->moment.splits ? "stranded" : "cached", "fg"),
				 VC_FACT);
	vc_cause_text(r, VC_PAGE, cause, sizeof(cause));
	if (asked & VC_ASK_HELP && *cause)
		snprintf(add(&f, "cause", "fg"), VC_FACT, "%.390s", cause);
	if (asked & VC_ASK_HELP)
		vc_help_text(r, add(&f, "would help", "fg"), VC_FACT);
	if ((asked & VC_ASK_TRUST) && r->trust.level)
		snprintf(add(&f, "trust", "fg"), VC_FACT, "%s", vc_level_name(r->trust.level));
	return f;
}

/* In a row, wrapped; the baseline of the last line. */
static int flow(struct vc_page *p, struct vc_box at, const struct vc_fact *f, size_t n)
{
	int x = at.x, y = at.y, right = at.x + at.w;

	for (size_t i = 0; i < n; i++) {
		const struct vc_fact *k = &f[i];
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

int vc_page_row(struct vc_page *p, int y, const struct vc_fact *f, size_t n)
{
	vc_svg_put(&p->svg, "<g>\n");
	y = flow(p, (struct vc_box){ VC_MARGIN, y + 70, p->w - 2 * VC_MARGIN, 0 }, f, n);
	vc_svg_put(&p->svg, "</g>\n");
	return y + 210;
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
	return vc_page_row(p, y, f.at, f.n);
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
	struct vc_fact under = { .label = "under", .color = "fg" };
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
		snprintf(under.text + strlen(under.text), VC_FACT - strlen(under.text), "%s%s",
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
		y = flow(p, (struct vc_box){ left, y, right - left, 0 }, f.at, f.n);
		vc_svg_put(&p->svg, "</g>\n");
	}
	return *name ? y + 150 : y;
}
