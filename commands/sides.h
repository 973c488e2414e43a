/* SPDX-License-Identifier: Apache-2.0 */
/* sides.h - two recordings that are held against each other. */
#pragma once

#include "commands/run_and_write.h"
#include "common/emit.h"
#include "simulator/advise/grew.h"

struct vc_side { struct vc_session s; struct vc_plan *plan; struct vc_result run; };

/* One of them, replayed with what a diff and `sink` (or NULL) look at; `whole`: on a card without
 * end. *x is zeroed before, and closed afterwards whatever happened. */
int vc_side_open(struct vc_side *x, const struct vc_run_options *opt, const char *path,
		 const struct vc_sink_type *sink, bool whole, struct vc_error *err);
void vc_side_close(struct vc_side *x);
/* What is other in the second, and (g, or NULL) of which kind. */
int vc_sides_diff(const struct vc_side x[2], struct vc_diff *d, struct vc_grew *g,
		  struct vc_error *err);
/* Two recordings, whole, and all that is other in the second. Closed whatever happened. */
struct vc_two { struct vc_side x[2]; struct vc_diff d; struct vc_grew grew; };
int vc_two_open(struct vc_two *t, const char *a, const char *b, struct vc_error *err);
void vc_two_close(struct vc_two *t);
enum { VC_SIDES_WORDS = 1600 };
char *vc_sides_words(const struct vc_side x[2], const struct vc_diff *d, const struct vc_grew *g,
		     const char *const name[2], char *buf, size_t n);
/* The first request that is other: "another size", with event, size and place of both. */
void vc_sides_emit_first(struct vc_emit *e, const struct vc_side x[2], const struct vc_diff *d);
void vc_sides_say_first(struct vc_emit *e, const struct vc_side x[2], const struct vc_diff *d);
/* {"a": ..., "b": ...} */
void vc_sides_emit(struct vc_emit *e, const char *key, const uint64_t v[2]);
