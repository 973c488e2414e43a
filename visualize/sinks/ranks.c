/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.c - devices or processes side by side: who needs more than the others, and when. */

#include "visualize/scene.h"

#include "common/sort.h"

enum { MOST = 64, ROW = 900, LEFT_MOST = 3600, RIGHT = 1900, SCALE = 650 };

struct rank {
	const struct vc_result *r; /* given, or `own` */
	const struct vc_result *given;
	struct vc_result own;      /* the same with times on the clock of all; its curve is owned */
	struct vc_classes classes;
	struct vc_columns columns;
	struct vc_plot plot;
};

struct drawing {
	struct vc_page page;
	struct rank rank[MOST];
	size_t n, given;
	bool by_time;
	int left;
	uint64_t top;
	struct vc_spread spread;
	struct vc_named shared[MOST]; /* processes of one card, card by card */
	char name[MOST][160];
	size_t cards, on[MOST];       /* how many there are of each */
};

static int order(const void *a, const void *b)
{
	const struct vc_result *x = ((const struct rank *)a)->r, *y = ((const struct rank *)b)->r;
	int64_t i = x->meta ? x->meta->rank : -1, j = y->meta ? y->meta->rank : -1;

	if (i != j)
		return i < j ? -1 : 1;
	if (x->info.device != y->info.device)
		return x->info.device < y->info.device ? -1 : 1;
	return x < y ? -1 : x > y;
}

static uint64_t first_of(const struct drawing *d, size_t i)
{
	const struct vc_bucket *a = &d->rank[i].r->curve.at[0];

	return d->by_time ? a->first_ns : a->first_event;
}

static void rank_name(const struct vc_result *r, char *buf, size_t cap)
{
	char name[96];

	vc_trace_name(r, name, sizeof(name));
	if (r->meta && r->meta->rank >= 0)
		snprintf(buf, cap, "rank %lld, GPU %u", (long long)r->meta->rank,
			 (unsigned)r->info.device);
	else
		snprintf(buf, cap, "%s, GPU %u", name, (unsigned)r->info.device);
}

/* What holds them all. false: they were not recorded together, and each begins at 0. */
static bool one_clock(const struct drawing *d, struct vc_range *all)
{
	uint64_t end = 0, longest = 1;

	*all = (struct vc_range){ UINT64_MAX, 0 };
	for (size_t i = 0; i < d->n; i++) {
		const struct vc_curve *v = &d->rank[i].r->curve;
		const struct vc_bucket *z = &v->at[v->n - 1];
		uint64_t first = first_of(d, i), last = d->by_time ? z->last_ns : z->last_event + 1;

		all->first = first < all->first ? first : all->first;
		end = last > end ? last : end;
		longest = last - first > longest ? last - first : longest;
	}
	all->span = end - all->first;
	if (d->by_time && all->span / 4 <= longest)
		return true;
	all->span = longest;
	return false;
}

/* All ran at once: their times count from where the first began. Else each keeps its own. */
static int set_clock(struct drawing *d, struct vc_error *err)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < d->n; i++) {
		const struct vc_meta *m = d->rank[i].r->meta;

		if (d->n < 2 || !d->by_time || !m || !m->start_unix_ns)
			return VC_OK;
		first = m->start_unix_ns < first ? m->start_unix_ns : first;
	}
	for (size_t i = 0; i < d->n; i++) {
		struct vc_result *r = &d->rank[i].own;
		uint64_t later = d->rank[i].r->meta->start_unix_ns - first;

		*r = *d->rank[i].r;
		r->curve.at = malloc(r->curve.n * sizeof(*r->curve.at));
		VC_HAVE(r->curve.at, "the picture", err);
		for (size_t k = 0; k < r->curve.n; k++) {
			r->curve.at[k] = d->rank[i].r->curve.at[k];
			r->curve.at[k].first_ns += later;
			r->curve.at[k].last_ns += later;
			r->curve.at[k].peak_ns += later;
		}
		r->oom.time_ns += r->oom.time_ns ? later : 0;
		r->stats.peak_time_ns += r->stats.peak_time_ns ? later : 0;
		r->steps.kernels = 0; /* no strip draws them */
		d->rank[i].r = r;
	}
	return VC_OK;
}

static int prepare(struct drawing *d, const struct vc_picture *cfg, struct vc_error *err)
{
	struct vc_named of[MOST];
	struct vc_range all;
	bool together;

	d->by_time = true;
	for (size_t i = 0; i < d->n; i++)
		d->by_time = d->by_time && vc_wants_time(cfg, d->rank[i].r);
	VC_TRY(set_clock(d, err));
	for (size_t i = 0; i < d->n; i++)
		of[i] = (struct vc_named){ d->name[i], d->rank[i].given };
	d->cards = vc_shared_cards(of, d->n, d->shared, d->on);
	together = one_clock(d, &all);
	d->spread = vc_spread_of(of, d->n);
	for (size_t i = 0; i < d->n; i++) {
		struct rank *k = &d->rank[i];
		VC_TRY(vc_classes_init(&k->classes, k->r, err));
		if (!together)
			all.first = first_of(d, i);
		VC_TRY(vc_columns_init(&k->columns, &k->classes, d->by_time, (uint32_t)cfg->width,
				       &all, err));
		k->plot = (struct vc_plot){ .page = &d->page, .c = &k->classes, .k = &k->columns };
		vc_plot_scale(&k->plot);
		d->top = k->plot.top > d->top ? k->plot.top : d->top;
	}
	return VC_OK;
}

/* As wide as the longest name needs, within reason. */
static int name_width(const struct drawing *d)
{
	struct vc_label l = { .style = VC_T_STRONG };
	int most = 0;

	for (size_t i = 0; i < d->n; i++) {
		int w = vc_svg_measure(&l, d->name[i]).w;
		most = w > most ? w : most;
	}
	most += VC_MARGIN + 200;
	return most > LEFT_MOST ? LEFT_MOST : most;
}

/* The scale at the left of a strip: all have the same. */
static void scale(struct drawing *d, struct vc_plot *p)
{
	struct vc_svg *s = &d->page.svg;
	char text[VC_FORMAT], with[2 * VC_FORMAT];
	uint64_t at = 0;

	for (bool more = true; more; more = vc_axis_next(&p->axis, &at)) {
		int y = vc_plot_y(p, at);

		vc_axis_text(&p->axis, at, text);
		snprintf(with, sizeof(with), "%s %s", text, p->axis.name);
		vc_svg_hline(s, "gr", p->box.x, y / 10 * 10 + 5, p->box.w);
		/* In the narrow layout the name stands right above. */
		y = y < p->box.y + 65 ? p->box.y + 65 : y;
		vc_svg_say(s, at ? with : text, p->box.x - 60, y + 45, VC_T_SMALL, VC_END, "mut",
			   0);
	}
}

/* What the strip shows, in one sentence. */
static void hover(struct drawing *d, const struct rank *k, const char *name)
{
	char a[VC_FORMAT], b[VC_FORMAT], at[VC_FORMAT];
	const char *color, *word = vc_verdict_word(k->r, &color);

	vc_svg_put(&d->page.svg, "<title>%e: %s, at most %s reserved and %s allocated, the peak at "
		   "%s</title>", name, word, vc_format_bytes(k->r->stats.peak_reserved, a),
		   vc_format_bytes(k->r->stats.peak_allocated, b),
		   vc_moment_text(k->r, d->by_time, k->r->stats.peak_event, at));
	d->page.svg.titles++;
}

/* One strip: name, plot, numbers. */
static void strip(struct drawing *d, size_t i, int y)
{
	struct rank *k = &d->rank[i];
	struct vc_svg *s = &d->page.svg;
	bool narrow = d->page.w < VC_NARROW;
	int left = (narrow ? VC_MARGIN : d->left) + SCALE, right = d->page.w - VC_MARGIN - RIGHT;
	char text[160], a[VC_FORMAT];
	const char *color;

	hover(d, k, d->name[i]);
	struct vc_label l = { VC_MARGIN, narrow ? y - 50 : y + 300, VC_T_STRONG, VC_START, "fg",
		narrow ? right - VC_MARGIN : d->left - VC_MARGIN - 150, true, false };
	vc_svg_label(s, &l, d->name[i]);
	k->plot.box = (struct vc_box){ left, y, right - left, narrow ? ROW - 350 : ROW - 200 };
	k->plot.top = d->top;
	k->plot.has_capacity = k->plot.capacity && k->plot.capacity <= d->top;
	k->plot.axis = vc_axis_bytes(d->top, 2);
	scale(d, &k->plot);
	vc_plot_areas(&k->plot);
	vc_plot_capacity(&k->plot, false);
	vc_plot_oom(&k->plot);
	vc_verdict_word(k->r, &color);
	l = (struct vc_label){ right + 460, y + 250, VC_T_HEAD, VC_START, color, 0, false, false };
	vc_verdict_icon(s, k->r, right + 220, y + 150);
	vc_svg_label(s, &l, vc_format_bytes(k->r->stats.peak_reserved, a));
	int64_t more = (int64_t)k->r->stats.peak_reserved - (int64_t)d->spread.mean;
	snprintf(text, sizeof(text), "%s%s to the mean", more < 0 ? "\xE2\x88\x92" : "+",
		 vc_format_bytes((uint64_t)(more < 0 ? -more : more), a));
	l = (struct vc_label){ right + 220, y + 450, VC_T_SMALL, VC_START, "mut", 0, false, false };
	if (d->n > 1)
		vc_svg_label(s, &l, text);
}

static int numbers(struct drawing *d, int y)
{
	const struct vc_spread *k = &d->spread;
	struct vc_fact f[4];
	char a[VC_FORMAT], b[VC_FORMAT], *text;

	snprintf(vc_fact_of(&f[0], "largest peak", "fg"), VC_FACT, "%s, %s",
		 vc_format_bytes(k->most, a), d->name[k->worst]);
	snprintf(vc_fact_of(&f[1], "smallest peak", "fg"), VC_FACT, "%s, mean %s",
		 vc_format_bytes(k->least, a), vc_format_bytes(k->mean, b));
	snprintf(vc_fact_of(&f[2], "imbalance", "fg"), VC_FACT, "%s of the largest over the mean",
		 vc_format_percent(k->most - k->mean, k->mean ? k->mean : 1, b));
	text = vc_fact_of(&f[3], "run out of memory", k->ooms ? "bad" : k->open ? "open" : "fg");
	if (k->open)
		snprintf(text, VC_FACT, "%zu of %zu, %zu undecided, %zu only by flushing", k->ooms,
			 d->n, k->open, k->flushes);
	else
		snprintf(text, VC_FACT, "%zu of %zu, %zu fit only by flushing", k->ooms, d->n,
			 k->flushes);
	return vc_page_row(&d->page, y, f, 4);
}

static void title_text(const struct drawing *d, char *buf, size_t cap)
{
	struct vc_named of[MOST];
	size_t from = 0;

	for (size_t c = 0; c < d->cards; from += d->on[c++]) {
		struct vc_together t = vc_together_walk(d->shared + from, d->on[c], NULL, NULL);

		if (t.room && t.most > t.room) {
			vc_together_text(d->shared + from, d->on[c], buf, cap);
			return;
		}
	}
	for (size_t i = 0; i < d->n; i++)
		of[i] = (struct vc_named){ d->name[i], d->rank[i].given };
	vc_uneven_text(of, d->n, d->by_time, buf, cap);
}

static int legend(struct drawing *d, int y)
{
	struct vc_key key[VC_KEYS_MORE + 5];
	size_t n = vc_plot_keys(&d->rank[0].classes, &d->rank[0].columns, key);

	for (size_t i = 1; i < d->n; i++)
		n = vc_plot_keys_more(&d->rank[i].classes, &d->rank[i].columns, key, n);
	if (d->cards)
		key[n++] = (struct vc_key){ "busy", "In use by one of several", VC_KEY_BOX };
	return vc_page_legend(&d->page, (struct vc_box){ VC_MARGIN, y,
							 d->page.w - 2 * VC_MARGIN, 0 }, key, n);
}

/* The six questions, of the one that peaks highest. */
static int fullest(struct drawing *d, int y)
{
	size_t i = d->spread.worst;

	return vc_page_facts_of(&d->page, y,
				&(struct vc_subject){ d->name[i], NULL, d->rank[i].given }, 1,
				VC_ASK_ALL);
}

static int draw(struct drawing *d, const struct vc_picture *cfg, struct vc_output *out,
		struct vc_error *err)
{
	char title[256], text[640], name[160], buf[VC_FORMAT];

	vc_trace_name(d->rank[0].r, name, sizeof(name));
	title_text(d, title, sizeof(title));
	vc_place_text(d->rank[0].r, text, sizeof(text));
	vc_page_begin(&d->page, cfg, title, text);
	int y = numbers(d, vc_page_header(&d->page, title, text, NULL));
	y = legend(d, y) + 250;
	d->left = name_width(d);
	for (size_t i = 0; i < d->n; i++, y += ROW) {
		vc_svg_put(&d->page.svg, "<g>\n"); /* browsers dislike many siblings */
		strip(d, i, y);
		vc_svg_put(&d->page.svg, "</g>\n");
	}
	vc_plot_axis(&d->rank[d->n - 1].plot, y - 150);
	for (size_t c = 0, from = 0; c < d->cards; from += d->on[c++]) {
		y = vc_page_shared(&d->page, y, d->rank[0].plot.box.x,
				   d->rank[0].plot.box.x + d->rank[0].plot.box.w,
				   d->shared + from, d->on[c], err);
		if (y < 0) {
			vc_svg_fini(&d->page.svg);
			return y;
		}
	}
	y = fullest(d, y);
	snprintf(text, sizeof(text), "all strips from 0 to %s%s \xC2\xB7 vramcast " VC_VERSION,
		 vc_format_bytes(d->top, buf), d->given > d->n ? "; the first 64 are shown" : "");
	vc_conf_text(d->rank[0].r, name, sizeof(name));
	vc_page_footer(&d->page, y + 200, name, text);
	return vc_page_end(&d->page, y + (cfg->footer ? 530 : 150), out, err);
}

static int ranks_write(const struct vc_result *runs, size_t n, const void *config,
		       struct vc_output *out, struct vc_error *err)
{
	const struct vc_picture *cfg = vc_picture_config(config, &(struct vc_picture){ 0 });
	struct drawing *d = calloc(1, sizeof(*d));
	int rc;

	VC_HAVE(d, "the picture", err);
	d->given = n;
	for (size_t i = 0; i < n && d->n < MOST; i++)
		if (runs[i].curve.n)
			d->rank[d->n++].r = &runs[i];
	if (!d->n) {
		free(d);
		return vc_page_notice(cfg, "Devices side by side", !n ? "no run was given" :
				      "no device made a request for memory", out, err);
	}
	vc_sort(d->rank, d->n, sizeof(*d->rank), order);
	for (size_t i = 0; i < d->n; i++) {
		d->rank[i].given = d->rank[i].r;
		rank_name(d->rank[i].r, d->name[i], sizeof(d->name[i]));
	}
	rc = prepare(d, cfg, err);
	if (!rc)
		rc = draw(d, cfg, out, err);
	for (size_t i = 0; i < d->n; i++) {
		vc_columns_fini(&d->rank[i].columns);
		vc_classes_fini(&d->rank[i].classes);
		free(d->rank[i].own.curve.at);
	}
	free(d);
	return rc;
}

const struct vc_sink_type vc_sink_ranks = {
	.name = "ranks", .extension = "svg",
	.summary = "devices or processes side by side, and how unequal they are",
	.params = vc_picture_params, .config_size = sizeof(struct vc_picture),
	.observers = VC_READS("timeline", "lives", "oom", "moment", "steps"),
	.lives_limit = 2000000, .side_by_side = true, .write = ranks_write,
};
