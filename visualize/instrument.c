/* SPDX-License-Identifier: Apache-2.0 */
/* instrument.c - what the script of the report works on. A million events have to fit beside the
 * pictures into a megabyte: at most 4096 columns, and the blocks that are largest for longest. */
#include "visualize/instrument.h"

#include "common/event.h"
#include "common/vec.h"
#include "common/format.h"
#include "visualize/reduce.h"
#include "visualize/scene.h"

/* Of all runs together; CLASSES: sixteen to each power of two. */
enum { RUNS = 4, COLUMNS = 4096, BLOCKS = 4000, SEGMENTS = 2000, FRAMES = 1200, MARKS = 400,
       CLASSES = 64 * 16 };

struct sheet {
	struct vc_svg *out;
	const struct vc_result *r;
	struct vc_classes classes;
	struct vc_columns columns;
	uint32_t *block; /* lives that are chosen */
	uint32_t *frame, *file; /* number of each frame and of each string as a file; 0: none */
	size_t blocks, most, frames, files;
	uint64_t unit, grain; /* that sizes and addresses are multiples of */
	bool python; /* its frames are all that is shown of a stack */
};

/* Bytes times events, or so: only the order counts. */
static uint64_t covers(const struct vc_life *l, uint64_t end)
{
	uint64_t born = l->at_start ? 0 : l->born, died = l->died < end ? l->died : end;
	uint64_t lasts = died > born ? died - born : 0, size = (l->size >> 9) + 1;
	const uint64_t limit = 1ull << 31;

	return (lasts < limit ? lasts : limit) * (size < limit ? size : limit);
}

static unsigned class_of(uint64_t v)
{
	unsigned two = 0;

	for (uint64_t x = v; x > 1; x >>= 1)
		two++;
	return two * 16 + (unsigned)(two >= 4 ? v >> (two - 4) & 15 : 0);
}

/* The blocks that cover most, in order of birth; of the class that is cut, those born first. */
static int choose(struct sheet *d, struct vc_error *err)
{
	const struct vc_lives *v = &d->r->lives;
	uint64_t end = d->r->stats.events;
	size_t count[CLASSES] = { 0 }, taken = 0, spare;
	unsigned cut = CLASSES - 1;

	d->block = malloc((d->most + 1) * sizeof(*d->block));
	VC_HAVE(d->block, "the report", err);
	for (size_t i = 0; i < v->n; i++)
		count[class_of(covers(&v->at[i], end))]++;
	while (cut && taken + count[cut] <= d->most)
		taken += count[cut--];
	spare = d->most - taken;
	for (size_t i = 0; i < v->n && d->blocks < d->most; i++) {
		unsigned k = class_of(covers(&v->at[i], end));

		if (k < cut || (k == cut && !spare))
			continue;
		spare -= k == cut;
		d->block[d->blocks++] = (uint32_t)i;
	}
	return VC_OK;
}

/* The largest powers of two that all sizes are multiples of, and all addresses. */
static void find_unit(struct sheet *d)
{
	uint64_t all = 1ull << 20, addr = all;

	for (size_t i = 0; i < d->columns.n; i++) {
		all |= d->columns.at[i].reserved_max;
		for (int s = 0; s < VC_SLOTS; s++)
			all |= d->columns.at[i].layer[s];
	}
	for (size_t i = 0; i < d->blocks; i++) {
		all |= d->r->lives.at[d->block[i]].size;
		addr |= d->r->lives.at[d->block[i]].addr;
	}
	for (size_t i = 0; i < d->r->segments.n; i++)
		addr |= d->r->segments.at[i].addr | d->r->segments.at[i].size;
	d->unit = all & -all;
	d->grain = addr & -addr;
}

typedef uint64_t value_fn(const struct sheet *d, size_t i);

/* One line: differences, in `unit`. */
static void line(struct sheet *d, const char *name, size_t n, uint64_t unit, value_fn *value)
{
	uint64_t was = 0;

	vc_svg_put(d->out, "%s", name);
	for (size_t i = 0; i < n; i++) {
		uint64_t v = value(d, i) / unit;

		if (v >= was)
			vc_svg_put(d->out, " %u", v - was);
		else
			vc_svg_put(d->out, " -%u", was - v);
		was = v;
	}
	vc_svg_put(d->out, "\n");
}

/* ---- columns ---- */

static const struct vc_bucket *bucket(const struct sheet *d, size_t i)
{
	return &d->r->curve.at[d->columns.at[i].bucket];
}

static uint64_t since(const struct sheet *d, uint64_t ns)
{
	uint64_t first = d->r->curve.at[0].first_ns;

	return ns > first ? ns - first : 0;
}

/* A column begins where its first bucket does. */
static const struct vc_bucket *first_bucket(const struct sheet *d, size_t i)
{
	const struct vc_columns *k = &d->columns;
	const struct vc_curve *v = &d->r->curve;
	uint64_t edge = vc_muldiv_up(k->at[i].from, k->span, k->width);

	return &v->at[vc_first_from(v->at, v->n - 1, first_event, k->first + edge)];
}

static uint64_t column_event(const struct sheet *d, size_t i)
{
	return first_bucket(d, i)->first_event;
}

static uint64_t column_time(const struct sheet *d, size_t i)
{
	return since(d, first_bucket(d, i)->first_ns);
}

static uint64_t moment_event(const struct sheet *d, size_t i)
{
	return bucket(d, i)->peak_event;
}

static uint64_t moment_time(const struct sheet *d, size_t i)
{
	return since(d, bucket(d, i)->peak_ns);
}

static uint64_t column_reserved(const struct sheet *d, size_t i)
{
	return d->columns.at[i].reserved_max;
}

#define LAYER(s) \
	static uint64_t layer_##s(const struct sheet *d, size_t i) \
	{ \
		return d->columns.at[i].layer[s]; \
	}
LAYER(0) LAYER(1) LAYER(2) LAYER(3) LAYER(4) LAYER(5) LAYER(6) LAYER(7)
LAYER(8)
static value_fn *const layers[VC_SLOTS] = { layer_0, layer_1, layer_2, layer_3,
					   layer_4, layer_5, layer_6, layer_7, layer_8 };

static void write_columns(struct sheet *d)
{
	const struct vc_columns *k = &d->columns;

	line(d, "event", k->n, 1, column_event);
	if (vc_curve_has_times(d->r)) {
		line(d, "time", k->n, 1, column_time);
		line(d, "momenttime", k->n, 1, moment_time);
	}
	line(d, "moment", k->n, 1, moment_event);
	line(d, "reserved", k->n, d->unit, column_reserved);
	for (int s = 0; s < VC_SLOTS; s++) {
		const char *name = vc_classes_name(&d->classes, (enum vc_slot)s);

		if (!*name)
			continue;
		vc_svg_put(d->out, "kind %d %s %s\n", s, vc_theme_slot((enum vc_slot)s), name);
		if (k->used[s])
			line(d, "layer", k->n, d->unit, layers[s]);
	}
	vc_svg_put(d->out, "end %u %u\n", k->first + k->span,
		   since(d, vc_curve_time(d->r, k->first + k->span)));
}

/* ---- blocks ---- */

static const struct vc_life *life(const struct sheet *d, size_t i)
{
	return &d->r->lives.at[d->block[i]];
}

static uint64_t block_born(const struct sheet *d, size_t i)
{
	return life(d, i)->at_start ? 0 : life(d, i)->born;
}

/* Of one that stays: behind the end. */
static uint64_t block_died(const struct sheet *d, size_t i)
{
	uint64_t end = d->r->stats.events + 1;

	return life(d, i)->died < end ? life(d, i)->died : end;
}

static uint64_t block_size(const struct sheet *d, size_t i)
{
	return life(d, i)->size;
}

static uint64_t block_kind(const struct sheet *d, size_t i)
{
	return d->classes.of_life[d->block[i]];
}

static uint64_t block_id(const struct sheet *d, size_t i)
{
	return life(d, i)->id;
}

static uint64_t block_stream(const struct sheet *d, size_t i)
{
	return life(d, i)->stream;
}

static uint64_t block_site(const struct sheet *d, size_t i)
{
	const struct vc_meta *m = d->r->meta;
	uint32_t site = life(d, i)->site;

	return m && site < m->frames ? d->frame[site] : 0;
}

static uint64_t block_addr(const struct sheet *d, size_t i)
{
	return life(d, i)->addr;
}

static bool is_python(const struct vc_meta *m, uint32_t frame)
{
	const char *file = vc_label_text(m, m->frame[frame].file);
	size_t n = strlen(file);

	return n > 3 && !strcmp(file + n - 3, ".py");
}

/* Gives `site` and its callers numbers, and writes those that have none yet. Stacks share their
 * outer frames. What is not shown (frames beside Python's, those beyond FRAMES) is its caller. */
static void write_stack(struct sheet *d, uint32_t site)
{
	const struct vc_meta *m = d->r->meta;
	uint32_t chain[128], n = 0;
	char text[128];

	for (uint32_t f = site; f && f < m->frames && !d->frame[f] && n < 128; n++) {
		chain[n] = f;
		f = m->frame[f].parent < f ? m->frame[f].parent : 0;
	}
	while (n) {
		const struct vc_frame *f = &m->frame[chain[--n]];
		uint32_t caller = f->parent < m->frames ? d->frame[f->parent] : 0;
		uint32_t file = f->file < m->strings ? f->file : 0;

		if (d->frames == FRAMES || (d->python && !is_python(m, chain[n]))) {
			d->frame[chain[n]] = caller;
			continue;
		}
		if (!d->file[file]) {
			snprintf(text, sizeof(text), "%s",
				 vc_site_public(vc_label_text(m, file)));
			d->file[file] = (uint32_t)++d->files;
			vc_svg_put(d->out, "file %e\n", text);
		}
		d->frame[chain[n]] = (uint32_t)++d->frames;
		snprintf(text, sizeof(text), "%s", vc_label_text(m, f->function));
		vc_svg_put(d->out, "frame %u %u %u %e\n",
			   (uint64_t)caller, (uint64_t)d->file[file] - 1, (uint64_t)f->line, text);
	}
}

static void write_blocks(struct sheet *d)
{
	const struct { const char *name; value_fn *value; uint64_t unit; } rows[] = {
		{ "born", block_born, 1 }, { "died", block_died, 1 },
		{ "size", block_size, d->unit }, { "addr", block_addr, d->grain },
		{ "site", block_site, 1 }, { "of", block_kind, 1 },
		{ "block", block_id, 1 }, { "stream", block_stream, 1 } };
	const struct vc_meta *m = d->r->meta;

	for (uint32_t f = 1; m && f < m->frames && !d->python; f++)
		d->python = is_python(m, f);
	for (size_t i = 0; m && i < d->blocks; i++)
		if (life(d, i)->site < m->frames)
			write_stack(d, life(d, i)->site);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		line(d, rows[i].name, d->blocks, rows[i].unit, rows[i].value);
	vc_svg_put(d->out, "blocks %u\n", (uint64_t)d->r->lives.n + d->r->lives.dropped);
}

/* ---- segments ---- */

static uint64_t segment_born(const struct sheet *d, size_t i)
{
	return d->r->segments.at[i].born;
}

static uint64_t segment_died(const struct sheet *d, size_t i)
{
	uint64_t died = d->r->segments.at[i].died, end = d->r->stats.events + 1;

	return died < end ? died : end;
}

static uint64_t segment_addr(const struct sheet *d, size_t i)
{
	return d->r->segments.at[i].addr;
}

static uint64_t segment_size(const struct sheet *d, size_t i)
{
	return d->r->segments.at[i].size;
}

/* Twice the place of the first segment of a private pool, from 1 (0: not private), and one where it
 * is for small blocks. */
static uint64_t segment_pool(const struct sheet *d, size_t i)
{
	const struct vc_segment_life *at = d->r->segments.at;
	size_t first = 0;

	while (at[i].pool && at[first++].pool != at[i].pool)
		;
	return 2 * first + at[i].small;
}

/* Of a run that obtains very many there is no map. */
static void write_segments(struct sheet *d)
{
	size_t n = d->r->segments.n;

	if (n > SEGMENTS)
		return;
	line(d, "segborn", n, 1, segment_born);
	line(d, "segdied", n, 1, segment_died);
	line(d, "segaddr", n, d->grain, segment_addr);
	line(d, "segsize", n, d->grain, segment_size);
	line(d, "segpool", n, 1, segment_pool);
}

/* ---- a run ---- */

static void write_marks(struct sheet *d)
{
	const struct vc_steps *s = &d->r->steps;
	size_t steps = 0, every;

	for (size_t i = 0; i < s->marks; i++)
		steps += s->mark[i].kind == VC_MARK_STEP;
	every = steps / MARKS + 1;
	for (size_t i = 0, k = 0; i < s->marks; i++)
		if (s->mark[i].kind == VC_MARK_STEP && k++ % every == 0)
			vc_svg_put(d->out, "step %u %u\n", s->mark[i].event, (uint64_t)k);
}

static int write_run(struct sheet *d, const char *name, struct vc_error *err)
{
	const struct vc_result *r = d->r;
	const struct vc_run_info *i = &r->info;

	d->frame = r->meta ? calloc(r->meta->frames + 1, sizeof(*d->frame)) : NULL;
	d->file = r->meta ? calloc(r->meta->strings + 1, sizeof(*d->file)) : NULL;
	VC_HAVE((d->frame && d->file) || !r->meta, "the report", err);
	VC_TRY(choose(d, err));
	find_unit(d);
	vc_svg_put(d->out, "run %e\nunit %u %u\ncard %u %u\n", name, d->unit, d->grain,
		   i->has_limit && (!i->capacity || i->limit < i->capacity) ?
			   i->limit + i->context + i->others : i->capacity,
		   i->context + i->others);
	write_columns(d);
	write_blocks(d);
	write_segments(d);
	write_marks(d);
	vc_svg_put(d->out, "peak %u\n", r->stats.peak_event);
	if (r->oom.happened)
		vc_svg_put(d->out, "oom %u %u\n", r->oom.event, r->oom.request);
	return VC_OK;
}

static void sheet_fini(struct sheet *d)
{
	VC_FREE(d->block, d->frame, d->file);
	vc_columns_fini(&d->columns);
	vc_classes_fini(&d->classes);
}

/* How much later it began than the first of all, where all ran at once; else 0. */
static uint64_t later(const struct vc_result *runs, size_t n, size_t i)
{
	uint64_t first = UINT64_MAX;

	for (size_t k = 0; k < n; k++) {
		uint64_t start = runs[k].meta ? runs[k].meta->start_unix_ns : 0;

		if (n < 2 || (k && !vc_met(runs, &runs[k])))
			return 0;
		start += runs[k].curve.at[0].first_ns;
		first = start < first ? start : first;
	}
	return runs[i].meta->start_unix_ns + runs[i].curve.at[0].first_ns - first;
}

int vc_instrument_write(struct vc_svg *out, const struct vc_result *runs, size_t n, bool by_time,
			struct vc_error *err)
{
	size_t most = n < RUNS ? n : RUNS;
	int rc = VC_OK;

	vc_svg_put(out, "<template id=\"r-data\">axis %s\n", by_time ? "time" : "event");
	for (size_t i = 0; i < most && !rc; i++) {
		struct sheet d = { .out = out, .r = &runs[i], .most = BLOCKS / most };
		char name[400];

		vc_place_text(&runs[i], name, sizeof(name));
		if (!runs[i].curve.n)
			continue;
		rc = vc_classes_init(&d.classes, d.r, err);
		if (!rc)
			rc = vc_columns_init(&d.columns, &d.classes, false,
					     (uint32_t)(COLUMNS / most), NULL, err);
		if (!rc)
			rc = write_run(&d, name, err);
		if (!rc && by_time)
			vc_svg_put(out, "clock %u\n", later(runs, most, i));
		sheet_fini(&d);
	}
	vc_svg_put(out, "</template>\n");
	return rc;
}
