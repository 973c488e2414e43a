/* SPDX-License-Identifier: Apache-2.0 */
/* codec.h - the .vct trace format: events and what a trace says about itself, in blocks that decode
 * alone. docs/reference/trace-format.md describes every bit. */
#pragma once

#include "common/error.h"
#include "common/event.h"
#include "common/io.h"
#include "common/meta.h"

/* ---- writing ---- */

struct vc_encoder_options {
	int level;        /* zstd level, 0 = 3 */
	uint32_t block;   /* events per block, 0 = 16384; a block is what damage costs */
	bool no_addresses, no_stacks; /* leave out addr of requests / call sites */
	bool copy;   /* of a trace that was read: complete is what meta says, not a clean end */
	bool redact; /* files of call sites without folders outside of packages (which hold users'
		      * names); no command line, no host */
};

/* Writes to `out` (lent). Dictionaries and everything else are taken from `meta` (lent, must
 * outlive the encoder and may grow between calls): site, label and stream of events are its
 * indices. `options` NULL: defaults. The header goes out at once, so a cut file still says what
 * it is. */
struct vc_encoder;
struct vc_encoder *vc_encoder_new(struct vc_output *out, const struct vc_meta *meta,
				  const struct vc_encoder_options *options, struct vc_error *err);
int vc_encoder_append(struct vc_encoder *e, const struct vc_event *ev, size_t n,
		      struct vc_error *err);
/* End the current block now, so that what was appended is in the output's hands. */
int vc_encoder_flush(struct vc_encoder *e, struct vc_error *err);
/* Last block, the header again with the final counts (dropped, gaps, ...; complete is true unless a
 * copy), seek table. The caller commits `out`. */
int vc_encoder_finish(struct vc_encoder *e, struct vc_error *err);
void vc_encoder_free(
	struct vc_encoder *e); /* NULL is fine; without finish the trace is a cut one */

/* ---- reading ---- */

/* Bits of evidence that the input is a .vct (0: it is not). Peeks only. */
int vc_decoder_probe(struct vc_input *in);

/* Reads from `in` (lent), fills `meta` (lent) as dictionaries and headers come by. Damaged blocks
 * are skipped: meta->damaged_blocks and gaps count them, meta->dropped the events they held as
 * far as known. meta->complete: a clean end was seen. Fails only when no header can be read, or
 * on I/O. */
struct vc_decoder;
struct vc_decoder *vc_decoder_new(struct vc_input *in, struct vc_meta *meta, struct vc_error *err);
/* > 0: so many events; 0: end; < 0: failed. */
long vc_decoder_next(struct vc_decoder *d, struct vc_event *ev, size_t cap, struct vc_error *err);
void vc_decoder_free(struct vc_decoder *d); /* NULL is fine */
