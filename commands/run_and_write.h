/* SPDX-License-Identifier: Apache-2.0 */
/* run_and_write.h - from plans to results to files: one way for sim, plot, report and export, so
 * that the same runs give the same bytes whoever writes them. */
#pragma once

#include "simulator/advise/advice.h"
#include "simulator/session/session.h"
#include "visualize/sink.h"

enum { VC_WATCH_MOST = 32 }; /* observers of a run, the NULL behind them included */
#define VC_TOTALS_ONLY SIZE_MAX /* as a number of results: those of a sweep, without curves */
#define VC_LAYOUTS_ONLY (SIZE_MAX - 1) /* those of fit --find plan */

/* The sink for one file: `type` (a picture's name, or NULL), else the extension and the number of
 * results decide: several as .svg are compared. "-" is .svg, .png and .pdf are converted from it.
 * NULL: err says why. */
const struct vc_sink_type *vc_choose_sink(const char *path, const char *type, size_t results,
					  struct vc_error *err);
/* The sink called `name`, or NULL with a suggestion; `option` is what the user typed it behind. */
const struct vc_sink_type *vc_name_sink(const char *option, const char *name, struct vc_error *err);

/* How many runs the options ask for on one trace. */
size_t vc_runs_asked(const struct vc_run_options *o);

/* Add an observer, or those that a sink reads in a trace of so many events, each once. */
void vc_watch(const struct vc_observer_type *list[VC_WATCH_MOST], const char *name);
void vc_watch_for(const struct vc_observer_type *list[VC_WATCH_MOST],
		  const struct vc_sink_type *sink, uint64_t events);

struct vc_results { struct vc_result *at; size_t n; };

/* Run the plans and append their results, fidelity and times included. */
int vc_run_plans(const struct vc_session *s, const struct vc_plan *plan, size_t n,
		 const struct vc_observer_type *const *watch, struct vc_results *out,
		 struct vc_error *err);
void vc_results_fini(struct vc_results *r);

/* vc_advise; people at a terminal see how far it is. `keep`: the runs as well. */
size_t vc_advise_aloud(const struct vc_session *s, const struct vc_plan *p,
		       const struct vc_result *r, const struct vc_console *con, bool keep,
		       struct vc_advice out[VC_ADVICE_MOST]);

/* Write them all to `path`; params of the sink as "k=v,k=v" or NULL. */
int vc_write_results(const struct vc_results *r, const struct vc_sink_type *sink,
		     const char *params, const char *path, struct vc_error *err);

/* --width of a picture, in pixels or, of text, columns; NULL: not given. Others would be drawn at
 * the nearest of these. */
int vc_check_width(const char *width, struct vc_error *err);

/* What whoever named the cards should know of them, on standard error. */
void vc_remark_cards(const struct vc_list *gpu, const struct vc_console *con);
