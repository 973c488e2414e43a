/* SPDX-License-Identifier: Apache-2.0 */
/* extremes.h - recordings as nobody makes them, for pictures that have to hold nevertheless. */
#ifndef VC_EXTREMES_H
#define VC_EXTREMES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/codec.h"

/* What a recording is made of: `steps` of `layers` blocks each, or what `odd` says. */
struct extreme {
	const char *name;
	uint64_t steps, layers;      /* four events a layer: block and temporary, born and freed */
	uint64_t size;               /* of a block, about; 0: 256 KiB */
	uint32_t name_length, sites, depth, streams;
	uint16_t devices;
	bool marks, keeps, no_times, one_time, odd_names, peaks;
	uint64_t tick;               /* ns between events; 0: 1500 */
	const char *capacity;        /* for the run; NULL: none */
};

static const struct extreme extremes[] = {
	{ .name = "one event", .layers = 1, .keeps = true },
	{ .name = "one block of an exbibyte", .layers = 1, .size = 1ull << 59, .keeps = true },
	{ .name = "one step", .steps = 1, .layers = 3 },
	{ .name = "bytes", .steps = 20, .layers = 50, .size = 1 },
	{ .name = "sizes of zero", .steps = 3, .layers = 9, .size = UINT64_MAX },
	{ .name = "64 devices", .steps = 4, .layers = 20, .devices = 64, .marks = true },
	{ .name = "names of 10 kB", .steps = 6, .layers = 40, .name_length = 10000, .sites = 30,
	  .depth = 4, .marks = true, .capacity = "20MiB" },
	{ .name = "odd names", .steps = 6, .layers = 40, .sites = 30, .depth = 3,
	  .odd_names = true, .marks = true },
	{ .name = "20,000 call sites", .steps = 2, .layers = 20000, .sites = 20000, .depth = 1 },
	{ .name = "stacks 500 deep", .steps = 3, .layers = 60, .sites = 8, .depth = 500 },
	{ .name = "no times", .steps = 30, .layers = 40, .no_times = true, .capacity = "12MiB" },
	{ .name = "all at one instant", .steps = 30, .layers = 40, .one_time = true },
	{ .name = "a year", .steps = 50, .layers = 40, .tick = 3944700000000ull, .marks = true },
	{ .name = "a leak", .steps = 40, .layers = 100, .sites = 5, .depth = 2, .keeps = true,
	  .marks = true, .capacity = "900MiB" },
	{ .name = "5,000 marks", .steps = 5000, .layers = 2, .marks = true },
	{ .name = "1,000 streams", .steps = 10, .layers = 100, .streams = 1000 },
	{ .name = "nothing fits", .steps = 2, .layers = 10, .size = 1ull << 30,
	  .capacity = "64MiB" },
	{ .name = "a card far too large", .steps = 5, .layers = 10, .capacity = "8TiB" },
	{ .name = "one spike", .steps = 400, .layers = 20, .peaks = true },
	{ .name = "a million events", .steps = 100, .layers = 2500, .sites = 400, .depth = 12,
	  .marks = true, .capacity = "24GiB" },
	{ .name = "ten million events", .steps = 1000, .layers = 2500, .marks = true },
};

struct extreme_writer {
	struct vc_encoder *enc;
	struct vc_event ev[512];
	size_t n;
	uint64_t now, id, events;
	const struct extreme *x;
	uint32_t *site;
};

static void extreme_check(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "extremes: %s\n", what);
		exit(1);
	}
}

static void extreme_flush(struct extreme_writer *w)
{
	struct vc_error err = { 0 };

	extreme_check(!vc_encoder_append(w->enc, w->ev, w->n, &err), err.message);
	w->n = 0;
}

static void extreme_put(struct extreme_writer *w, struct vc_event e)
{
	const struct extreme *x = w->x;

	w->now += x->one_time ? 0 : x->tick ? x->tick : 1500;
	e.time_ns = x->no_times ? 0 : w->now + 1;
	if (x->streams)
		e.stream = (uint32_t)(w->events % x->streams);
	if (x->devices)
		e.device = (uint16_t)(e.id % x->devices);
	w->ev[w->n++] = e;
	w->events++;
	if (w->n == sizeof(w->ev) / sizeof(*w->ev))
		extreme_flush(w);
}

static uint64_t extreme_alloc(struct extreme_writer *w, uint64_t size, uint64_t i)
{
	uint32_t site = w->x->sites ? w->site[i % w->x->sites] : 0;

	if (w->x->size == UINT64_MAX)
		size = 0;
	extreme_put(w, (struct vc_event){ .kind = VC_EV_ALLOC, .id = ++w->id, .size = size,
					  .site = site });
	return w->id;
}

/* Forward: blocks that stay and temporaries that do not; backward in the opposite order. */
static void extreme_step(struct extreme_writer *w, uint64_t *held, uint64_t step)
{
	const struct extreme *x = w->x;
	uint64_t unit = x->size && x->size != UINT64_MAX ? x->size : 1 << 18;
	bool high = x->peaks && step == x->steps / 2;

	if (x->marks)
		extreme_put(w, (struct vc_event){ .kind = VC_EV_MARK, .flags = VC_MARK_STEP,
						  .label = 1 });
	for (uint64_t i = 0; i < x->layers; i++) {
		held[i] = extreme_alloc(w, (1 + i % 7) * (high ? 40 * unit : unit), i);
		if (x->steps) {
			uint64_t id = extreme_alloc(w, (1 + i % 3) * unit / 2 + 1, i * 7);

			extreme_put(w, (struct vc_event){ .kind = VC_EV_FREE, .id = id });
		}
	}
	for (uint64_t i = x->layers; x->steps && i-- > 0;)
		if (!x->keeps || i % 16)
			extreme_put(w, (struct vc_event){ .kind = VC_EV_FREE, .id = held[i] });
}

static uint32_t extreme_name(struct vc_meta *m, const struct extreme *x, const char *kind,
			     uint64_t k)
{
	static const char odd[] = "<b>&\"'\x01\xFF\xC3\xA9\xF0\x9F\x98\x80 \xE2\x80\xAE ]]>%s";
	size_t most = x->name_length + 200, n;
	char *text = malloc(most);

	extreme_check(text != NULL, "no memory");
	n = (size_t)snprintf(text, most, "/home/somebody/%s%llu%s", kind, (unsigned long long)k,
			     x->odd_names ? odd : "");
	for (; n < x->name_length; n++)
		text[n] = (char)('a' + (k + n) % 26);
	n += (size_t)snprintf(text + n, most - n, "%s", *kind == 'f' ? ".py" : "");
	uint32_t at = vc_meta_string(m, text, n);
	free(text);
	return at;
}

/* `sites` call sites of `depth` frames; the outer half of a stack is shared by all. */
static uint32_t *extreme_sites(struct vc_meta *m, const struct extreme *x)
{
	uint32_t *site = calloc(x->sites + 1, sizeof(*site)), shared = 0;
	struct vc_frame f = { .line = 1 };

	extreme_check(site != NULL, "no memory");
	for (uint64_t d = 0; d < x->depth; d++) {
		f.file = extreme_name(m, x, "file", d);
		for (uint64_t i = 0; i < x->sites && d >= x->depth / 2; i++) {
			f.parent = d > x->depth / 2 ? site[i] : shared;
			f.function = extreme_name(m, x, "call", i);
			f.line = (uint32_t)i + 1;
			site[i] = vc_meta_frame(m, f);
		}
		f.parent = shared;
		f.function = extreme_name(m, x, "outer", d);
		f.line = 1;
		shared = vc_meta_frame(m, f);
	}
	return site;
}

/* Writes the recording; returns how many events it has. */
static uint64_t extreme_write(const struct extreme *x, const char *path)
{
	struct vc_error err = { 0 };
	struct vc_meta *meta = vc_meta_new(&err);
	struct vc_encoder_options o = { .level = 1 };
	struct vc_output *out = vc_output_open(path, &err);
	struct extreme_writer w = { .x = x };
	uint64_t *held = calloc(x->layers + 1, sizeof(*held));

	extreme_check(meta && out && held, err.message);
	meta->how[VC_CAP_REQUESTS] = VC_HOW_RECORDED;
	meta->how[VC_CAP_TIMES] = x->no_times ? VC_HOW_ABSENT : VC_HOW_RECORDED;
	meta->how[VC_CAP_STACKS] = x->sites ? VC_HOW_RECORDED : VC_HOW_ABSENT;
	meta->how[VC_CAP_MARKS] = x->marks ? VC_HOW_RECORDED : VC_HOW_ABSENT;
	meta->how[VC_CAP_STREAMS] = x->streams ? VC_HOW_RECORDED : VC_HOW_ABSENT;
	vc_meta_set(&meta->torch, "2.9");
	extreme_name(meta, x, "step ", 1);
	for (uint64_t i = 1; i < x->streams; i++)
		vc_meta_stream(meta, i * 16);
	for (uint16_t i = 0; i < x->devices; i++)
		vc_meta_device(meta, i);
	w.site = extreme_sites(meta, x);
	w.enc = vc_encoder_new(out, meta, &o, &err);
	extreme_check(w.enc != NULL, err.message);
	meta->complete = true;
	for (uint64_t s = 0; s < x->steps || (!s && x->layers); s++)
		extreme_step(&w, held, s);
	extreme_flush(&w);
	extreme_check(!vc_encoder_finish(w.enc, &err) && !vc_output_commit(out, &err),
		      err.message);
	vc_encoder_free(w.enc);
	vc_output_close(out);
	vc_meta_free(meta);
	free(w.site);
	free(held);
	return w.events;
}

#endif
