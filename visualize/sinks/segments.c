/* SPDX-License-Identifier: Apache-2.0 */
/* segments.c - the address map at the moment that matters: what lies where, and why it does not
 * fit. */

#include "visualize/addressmap.h"

enum { CULPRITS = 6 };

static int numbers(struct vc_page *p, const struct vc_result *r, const struct vc_heap_facts *h,
		   int y)
{
	struct vc_fact f[5];
	char a[VC_FORMAT], b[VC_FORMAT];
	size_t n = 4;

	snprintf(vc_fact_of(&f[0], "reserved", "fg"), VC_FACT, "%s in %s segments then",
		 vc_format_bytes(h->reserved, a), vc_format_count(h->segments, b));
	snprintf(vc_fact_of(&f[1], "in use", "fg"), VC_FACT, "%s, %s of reserved",
		 vc_format_bytes(h->live, a), vc_format_percent(h->live, h->reserved, b));
	snprintf(vc_fact_of(&f[2], "free in the cache", "fg"), VC_FACT, "%s, %s of reserved",
		 vc_format_bytes(h->free, a), vc_format_percent(h->free, h->reserved, b));
	snprintf(vc_fact_of(&f[3], "largest free piece", "fg"), VC_FACT, "%s",
		 vc_format_bytes(r->oom.happened ? r->oom.largest_free : h->largest_free, a));
	if (r->oom.happened)
		vc_refused_text(r, vc_fact_of(&f[n++], "request that failed", "bad"), VC_FACT);
	return vc_page_row(p, y, f, n);
}

static int legend(struct vc_page *p, const struct vc_classes *c, const struct vc_heap_facts *f,
		  int y)
{
	struct vc_key key[VC_SLOTS + 2];
	size_t n = 0;

	for (int s = 0; s < VC_SLOTS; s++)
		if (f->used[s])
			key[n++] = (struct vc_key){ vc_theme_area((enum vc_slot)s),
				c->ids ? vc_classes_name(c, (enum vc_slot)s) : "In use",
				VC_KEY_BOX };
	key[n++] = (struct vc_key){ "hx", "Free, cached", VC_KEY_BOX };
	key[n++] = (struct vc_key){ "segk", "Border of a segment", VC_KEY_LINE };
	return vc_page_legend(p, (struct vc_box){ VC_MARGIN, y, p->w - 2 * VC_MARGIN, 0 }, key, n);
}

static void row_labels(struct vc_page *p, const struct vc_heap_facts *f, int y)
{
	char buf[VC_FORMAT];

	for (int i = 0; i < f->rows; i += f->rows > 12 ? 4 : 2) {
		vc_svg_say(&p->svg, vc_format_bytes((uint64_t)i * f->per_row, buf), VC_MARGIN + 700,
			   y + i * 190 + 115, VC_T_SMALL, VC_END, "mut", 0);
	}
}

/* The blocks that keep free memory from being given back: outlined in the map, named below it. The
 * y below. */
static int culprits(struct vc_page *p, const struct vc_classes *c, const struct vc_heap_map *h,
		    const struct vc_heap_facts *f, struct vc_box map, int y)
{
	char site[160], text[320], a[VC_FORMAT], b[VC_FORMAT], m[VC_FORMAT];
	int right = p->w - VC_MARGIN;
	struct vc_pin *pin = NULL;
	struct vc_error err;
	size_t n = 0;

	if (vc_pins_of(h, &pin, &n, &err) || !n) {
		free(pin);
		return y;
	}
	vc_svg_say(&p->svg, "Held back by the blocks outlined in red", VC_MARGIN, y + 260,
		   VC_T_HEAD, VC_START, "fg", right - VC_MARGIN);
	y += 260;
	for (size_t i = 0; i < n && i < CULPRITS && pin[i].bytes > pin->bytes / 100; i++) {
		const struct vc_pin *v = &pin[i];
		const char *label = vc_label_text(c->r->meta, v->label);

		vc_addressmap_mark(p, h, map, f, v->id);
		const struct vc_life *l = vc_classes_life(c, v->id);

		vc_site_text(c->r->meta, v->site ? v->site : l ? l->site : 0, site, sizeof(site));
		snprintf(text, sizeof(text), "a block of %s, %s",
			 vc_format_bytes(v->smallest, a),
			 *site       ? site :
			 *label      ? label :
			 v->at_start ? "there at the start" :
				       "without a call site");
		if (v->segments > 1)
			snprintf(text + strlen(text), sizeof(text) - strlen(text),
				 ", with its like in %s segments", vc_format_count(v->segments, m));
		y += 230;
		vc_svg_say(&p->svg, text, VC_MARGIN, y, VC_T_BODY, VC_START, "fg",
			   right - VC_MARGIN - 1300);
		vc_svg_say(&p->svg, vc_format_in(v->bytes, pin->bytes, b), right, y, VC_T_STRONG,
			   VC_END, "fg", 0);
	}
	free(pin);
	return y + 100;
}

static int draw(const struct vc_classes *c, const struct vc_heap_map *h,
		const struct vc_picture *cfg, struct vc_output *out, struct vc_error *err)
{
	const struct vc_result *r = c->r;
	struct vc_page p;
	struct vc_heap_facts f;
	char title[256], words[VC_SAY], text[200], a[VC_FORMAT];

	vc_answer_text(r, r->stats.has_times, title, sizeof(title));
	vc_heap_text(r, words, sizeof(words));
	vc_page_begin(&p, cfg, title, words);
	vc_heap_measure(h, &f);
	for (size_t i = 0; i < h->n; i++)
		if (h->at[i].what == 1 || h->at[i].what == 2)
			f.used[vc_classes_of_id(c, h->at[i].id)] = true;
	int y = vc_page_header(&p, title, words, r);

	y = numbers(&p, r, &f, vc_page_facts(&p, y, r));
	y = legend(&p, c, &f, y) + 80;
	struct vc_box box = { VC_MARGIN + 800, y, p.w - 2 * VC_MARGIN - 800, 0 };
	y = vc_addressmap_draw(&p, c, h, box, &f);
	if (y < 0) {
		vc_svg_fini(&p.svg);
		return vc_nomem(err, "the map of segments");
	}
	row_labels(&p, &f, box.y);
	int map_y = box.y;
	box.y = y + 240;
	y = vc_addressmap_scale(&p, r, &f, box);
	box.y = map_y;
	y = culprits(&p, c, h, &f, box, y);
	vc_conf_text(r, words, sizeof(words));
	snprintf(text, sizeof(text), "address order, %s per row \xC2\xB7 vramcast " VC_VERSION,
		 vc_format_bytes(f.per_row, a));
	vc_page_footer(&p, y + 200, words, text);
	return vc_page_end(&p, y + (cfg->footer ? 530 : 200), out, err);
}

static int segments_write(const struct vc_result *runs, size_t n, const void *config,
			  struct vc_output *out, struct vc_error *err)
{
	const struct vc_picture *cfg = vc_picture_config(config, &(struct vc_picture){ 0 });
	const struct vc_heap_map *h = n ? vc_result_heap(runs) : NULL;
	struct vc_classes c;

	if (!n || !h->n)
		return vc_page_notice(cfg, "Map of segments", !n ? "no run was given" :
				      "the run never held a segment: there is no heap to show", out,
				      err);
	VC_TRY(vc_classes_lend(&c, cfg->classes, runs, err));
	int rc = draw(&c, h, cfg, out, err);
	vc_classes_fini(&c);
	return rc;
}

const struct vc_sink_type vc_sink_segments = {
	.name = "segments", .extension = "svg",
	.summary = "segments and blocks in address order, at the OOM or at the peak",
	.params = vc_picture_params, .config_size = sizeof(struct vc_picture),
	.observers = VC_READS("lives", "peak", "oom", "moment"),
	.write = segments_write,
};
