/* SPDX-License-Identifier: Apache-2.0 */
/* scene.h - what all pictures have in common: the page with title and verdict, facts, legend,
 * footer, and the plot of memory over time. Lengths are tenths of a pixel. */
#pragma once

#include "common/param.h"
#include "visualize/classify.h"
#include "common/format.h"
#include "simulator/findings/findings.h"
#include "visualize/reduce.h"
#include "visualize/sink.h"
#include "visualize/svg.h"
#include "visualize/theme.h"

/* Parameters of every picture. */
struct vc_picture {
	uint64_t theme; /* enum vc_theme */
	uint64_t width; /* pixels */
	uint64_t x;     /* 0 time where known, 1 time, 2 events */
	bool footer, background;
	/* No parameters, but of the report that it stands in, which says these, and has made those
	 * for all of its pictures (or NULL). */
	bool no_head, no_facts;
	const struct vc_classes *classes;
	char title[VC_PARAM_TEXT];
};
#define VC_PICTURE_PARAMS                                                                        \
	{ "theme",                                                                                \
	  VC_P_ENUM,                                                                              \
	  offsetof(struct vc_picture, theme),                                                     \
	  "auto",                                                                                 \
	  "colours; auto follows the viewer",                                                     \
	  "auto,light,dark,print" },                                                               \
		{ "width",                                                                        \
		 VC_P_UINT,                                                                      \
		 offsetof(struct vc_picture, width),                                             \
		 "0",                                                                            \
		 "pixels; below 900 the layout is narrow; 0: 1200, to print 680",                 \
		 NULL },                                                                          \
		{ "x",                                                                            \
		 VC_P_ENUM,                                                                      \
		 offsetof(struct vc_picture, x),                                                 \
		 "auto",                                                                         \
		 "the horizontal axis: time where it is known and shows what happens, else "     \
		 "events",                                                                       \
		 "auto,time,event" },                                                             \
		{ "footer",                                                                       \
		 VC_P_BOOL,                                                                      \
		 offsetof(struct vc_picture, footer),                                            \
		 "true",                                                                         \
		 "settings and version below the picture",                                       \
		 NULL },                                                                          \
		{ "background",                                                                   \
		 VC_P_BOOL,                                                                      \
		 offsetof(struct vc_picture, background),                                        \
		 "true",                                                                         \
		 "an opaque card behind the picture",                                            \
		 NULL },                                                                          \
	{                                                                                        \
		"title", VC_P_TEXT, offsetof(struct vc_picture, title), "",                      \
			"instead of the picture's own title", NULL                               \
	}
extern const struct vc_param vc_picture_params[];
/* What is given, with its defaults, in *fallback; config NULL: all of them. */
const struct vc_picture *vc_picture_config(const void *config, struct vc_picture *fallback);

enum { VC_MARGIN = 280, VC_NARROW = 9000 };

struct vc_page {
	struct vc_svg svg;
	const struct vc_picture *cfg;
	int w, shown; /* shown: the width it is displayed at, 0: its own */
	int below;    /* what a footer of two lines adds to the height */
	char title[256], description[512];
};

/* Opens the document; its height is known at the end. */
void vc_page_begin(struct vc_page *p, const struct vc_picture *cfg, const char *title,
		   const char *description);
/* The answer, lines below it (they end with what the run r is), and the verdict at the right (r
 * NULL, or without a card: none). Returns the y below. */
int vc_page_header(struct vc_page *p, const char *title, const char *text,
		   const struct vc_result *r);
/* A line, then small text at the left (settings) and at the right. */
void vc_page_footer(struct vc_page *p, int y, const char *left, const char *right);
/* Closes the document at height h and writes it. Frees the page, also on failure. */
int vc_page_end(struct vc_page *p, int h, struct vc_output *out, struct vc_error *err);
/* A whole picture that says why there is none. */
int vc_page_notice(const struct vc_picture *cfg, const char *title, const char *why,
		   struct vc_output *out, struct vc_error *err);

/* A text in as many lines as it needs, at most `most`, `step` apart; the first is shorter by
 * `less`. The y of the last. */
int vc_page_lines(struct vc_page *p, struct vc_label *l, const char *text, int less, int step,
		  int most);

/* The six questions, at the moment that matters (vc_moment; nothing where nobody looked): of a page
 * about one run those that its head does not answer. Of several runs those that are asked, a line
 * each; those of the same name in which all of it is the same are one, with what they are under.
 * Both return the y below. */
enum { VC_ASK_VERDICT = 1, VC_ASK_WHEN = 2, VC_ASK_WHO = 4, VC_ASK_STRANDED = 8, VC_ASK_HELP = 16,
       VC_ASK_TRUST = 32, VC_ASK_ALL = 63 };
struct vc_subject { const char *name, *under; const struct vc_result *r; };
int vc_page_facts(struct vc_page *p, int y, const struct vc_result *r);
int vc_page_facts_of(struct vc_page *p, int y, const struct vc_subject *of, size_t n,
		     unsigned asked);

/* Of a run that grows: the peak of each step, and how it goes on up to the capacity. */
int vc_page_growth(struct vc_page *p, int y, const struct vc_result *r);

/* A card that n processes share, from x `left` to `right`: what each holds, stacked, on one clock.
 * The y below, or < 0: VC_ENOMEM. */
int vc_page_shared(struct vc_page *p, int y, int left, int right, const struct vc_named *of,
		   size_t n, struct vc_error *err);

/* What is said beside a label, in a row that wraps; the y below. */
enum { VC_FACT = 400 };
struct vc_fact { const char *color; char label[48], text[VC_FACT]; };
/* Label and colour are set; what is said of it goes to what this returns. */
char *vc_fact_of(struct vc_fact *f, const char *label, const char *color);
int vc_page_row(struct vc_page *p, int y, const struct vc_fact *f, size_t n);

/* Entries in a row, wrapped at `w`. */
struct vc_key { const char *klass, *text; enum { VC_KEY_BOX, VC_KEY_LINE } shape; };
int vc_page_legend(struct vc_page *p, struct vc_box at, const struct vc_key *key, size_t n);
/* The keys of a plot of `k`; room for VC_SLOTS + 4. Returns how many. */
size_t vc_plot_keys(const struct vc_classes *c, const struct vc_columns *k, struct vc_key *key);
/* The layers of one more run, where they are not among the n keys or mean something else; room for
 * VC_KEYS_MORE. */
enum { VC_KEYS_MORE = 4 * VC_SLOTS };
size_t vc_plot_keys_more(const struct vc_classes *c, const struct vc_columns *k, struct vc_key *key,
			 size_t n);

/* A tick, a tilde or a cross of 10 px at x, y (its top left). */
void vc_verdict_icon(struct vc_svg *s, const struct vc_result *r, int x, int y);

/* ---- the plot: bytes over time or events ---- */
struct vc_plot {
	struct vc_page *page;
	const struct vc_classes *c;
	const struct vc_columns *k;
	struct vc_box box;
	uint64_t top;       /* bytes at the upper edge */
	uint64_t base;      /* bytes beside the allocator, below everything */
	bool has_capacity;  /* the capacity line is inside */
	bool may_break;     /* the axis may be cut between the run and a capacity far above it */
	bool broken;        /* it is: the line stands above the cut, and `top` below it */
	uint64_t capacity;  /* or the limit, when one is set; 0: unknown */
	uint64_t skipped;   /* of the run before the left edge, in events or ns */
	struct vc_axis axis;
};

/* A scale that holds the run and, when it is not far above, the capacity. */
void vc_plot_scale(struct vc_plot *p);
int  vc_plot_y(const struct vc_plot *p, uint64_t bytes);
int  vc_plot_x(const struct vc_plot *p, uint64_t at);    /* event or time, as k says */
int  vc_plot_event_x(const struct vc_plot *p, uint64_t event, uint64_t time_ns);
void vc_plot_grid(struct vc_plot *p, bool numbers);
void vc_plot_areas(struct vc_plot *p);
void vc_plot_capacity(struct vc_plot *p, bool label);
void vc_plot_oom(struct vc_plot *p);
void vc_plot_flushes(struct vc_plot *p);
void vc_plot_peak(struct vc_plot *p);
void vc_plot_names(struct vc_plot *p);                   /* on the layers, where they are widest */
void vc_plot_axis(struct vc_plot *p, int y);             /* ticks and numbers of x */
int  vc_plot_phases(struct vc_plot *p, int y);           /* a strip; the y below (= y: none) */
void vc_plot_steps(struct vc_plot *p, int bottom, int label_y);
int  vc_plot_lanes(struct vc_plot *p, int y);            /* stranded, pinned,
						   * managed, busy; the y below */
/* "1. batch=4" beside the mark at x, y where there is room, else below or above; else only "1". */
void vc_plot_point_name(const struct vc_plot *p, const char *name, int x, int y);
/* The run of a plot and the changes that were tried: memory against time, with the plot's scale and
 * page; the y below (= y: of none of them is the time known). */
int  vc_page_tradeoff(const struct vc_plot *of, int y);
/* The last twentieth before a failure, or around a peak that is close to the capacity, drawn large;
 * the y below (= y: neither, or nothing more is to be seen), or < 0: VC_ENOMEM. */
int vc_page_decision(const struct vc_plot *of, int y, struct vc_error *err);
bool vc_wants_time(const struct vc_picture *cfg, const struct vc_result *r);
