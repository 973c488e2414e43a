/* SPDX-License-Identifier: Apache-2.0 */
/* memory_viz.c - pages of torch/cuda/_memory_viz.py: trace_plot and segment_plot, torch 2.1 on.
 *
 * They hold the pickle of the snapshot in base64, up to three zero bytes behind it, between
 * "base64": " and the next quote (2.1 to 2.9 write the same). What is in it is read as if it had
 * been given. Other pages of PyTorch's show memory, too, and hold no more than their picture. */
#include "common/io.h"
#include "simulator/replay/source.h"

extern const struct vc_source_type vc_source_torch_snapshot;

enum { LOOK = 4096 };

static const struct {
	const char *mark, *what; /* NULL: a snapshot is in it */
} pages[] = {
	{ "/viz/MemoryViz.js\"", NULL },
	{ "/viz/MemoryPlot.js\"", "a plot by PyTorch 2.0" },
	{ "/viz/StatePlot.js\"", "a plot by PyTorch 2.0" },
	{ "<title>GPU Memory Timeline HTML</title>", "the profiler's memory timeline" },
};
enum { PAGES = sizeof(pages) / sizeof(*pages) };

static const char *find(const char *at, size_t n, const char *word)
{
	size_t len = strlen(word);
	const char *p = at, *end = at + n;

	for (; p && (size_t)(end - p) >= len; p += p != NULL)
		if ((p = memchr(p, word[0], (size_t)(end - p) - len + 1)) && !memcmp(p, word, len))
			return p;
	return NULL;
}

/* PAGES: none of them. */
static size_t which(struct vc_input *in)
{
	size_t n, i = 0;
	const uint8_t *p = vc_input_peek(in, LOOK, &n, NULL);

	n = n < LOOK ? n : LOOK;
	while (p && i < PAGES && !find((const char *)p, n, pages[i].mark))
		i++;
	return p ? i : PAGES;
}

static int probe(struct vc_input *in)
{
	return which(in) < PAGES ? 100 : 0;
}

static int refuse(const struct vc_source *s, const char *what, struct vc_error *err)
{
	return vc_fail(err, VC_EFORMAT, "%s is %s, a picture without the allocator's requests: "
		       "give the file that torch.cuda.memory._dump_snapshot() wrote, a page that "
		       "trace_plot of PyTorch 2.1 or newer makes of it, or the profile's "
		       "export_chrome_trace()", vc_input_name(s->input), what);
}

/* -1: none of its characters. */
static int value_of(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* In place, as it becomes shorter; up to the quote behind it. */
static int undo(const struct vc_source *s, char *page, size_t n, const char *from, size_t *out,
		struct vc_error *err)
{
	const char *end = page + n;
	size_t to = 0, digits = 0;
	uint32_t bits = 0;

	for (; from < end && *from != '"' && *from != '='; from++) {
		int v = value_of(*from);

		if (v < 0)
			return vc_fail(err, VC_EFORMAT, "%s: the page is damaged at byte %zu: "
				       "that is no base64", vc_input_name(s->input),
				       (size_t)(from - page));
		bits = bits << 6 | (uint32_t)v;
		if (digits % 4)
			page[to++] = (char)(bits >> (6 - 2 * (digits % 4)));
		digits++;
	}
	if (from == end)
		return vc_fail(err, VC_EFORMAT, "%s: the page ends too early, inside its "
			       "snapshot: it was cut off", vc_input_name(s->input));
	*out = to;
	return VC_OK;
}

static int find_snapshot(const struct vc_source *s, char *page, size_t *n, struct vc_error *err)
{
	static const char before[] = "\"base64\": \"";
	const char *from = find(page, *n, before);

	if (!from)
		return vc_fail(err, VC_EFORMAT, "%s: no snapshot is in this page of PyTorch's "
			       "memory_viz: it was cut off, or shows none",
			       vc_input_name(s->input));
	VC_TRY(undo(s, page, *n, from + sizeof(before) - 1, n, err));
	return find(page, *n, "category") && !find(page, *n, "segment_type") ?
		       refuse(s, "a plot of a profile", err) : VC_OK;
}

static int open_page(struct vc_source *s, struct vc_error *err)
{
	const char *what = pages[which(s->input)].what;
	struct vc_source **inside = s->state;
	struct vc_input *in;
	char *page;
	size_t n;

	if (what)
		return refuse(s, what, err);
	page = vc_input_all(s->input, &n, err);
	if (!page)
		return (int)err->status;
	if (find_snapshot(s, page, &n, err) < 0) {
		free(page);
		return (int)err->status;
	}
	in = vc_input_inside(s->input, page, n, err);
	*inside = in ? vc_source_new(&vc_source_torch_snapshot, err) : NULL;
	if (!*inside) {
		vc_input_close(in);
		return (int)err->status;
	}
	(*inside)->input = in;
	(*inside)->meta = s->meta;
	(*inside)->lent = true;
	VC_TRY((*inside)->type->open(*inside, err));
	s->expected = (*inside)->expected;
	return VC_OK;
}

static long next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	struct vc_source *inside = *(struct vc_source **)s->state;

	return inside->type->next(inside, ev, cap, err);
}

static void close_page(struct vc_source *s)
{
	vc_source_free(*(struct vc_source **)s->state);
}

const struct vc_source_type vc_source_memory_viz = {
	.name = "memory_viz",
	.summary = "the page that PyTorch's memory_viz makes of a snapshot",
	.state_size = sizeof(struct vc_source *), .whole = true, .probe = probe,
	.open = open_page, .next = next, .close = close_page,
};
