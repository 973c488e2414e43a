/* SPDX-License-Identifier: Apache-2.0 */
/* flight.h - the flight recorder: the last part of a recording, in a ring of files beside the
 * journal. Each begins with what must be known of the past (fold.h), so the oldest can go at any
 * time, and what is left begins warm. */
#pragma once

#include "common/error.h"
#include "common/journal.h"
#include "tracer/fold.h"
#include "tracer/trace_file.h"

struct vc_flight_options {
	uint64_t keep_ns, keep_bytes, keep_steps; /* the one that is given; 0: not */
	bool nothing;                             /* keep no more than a beginning */
};

struct vc_flight;
/* `journal`: its path; the files are named after it. */
struct vc_flight *vc_flight_new(const char *journal, const struct vc_flight_options *o,
				struct vc_error *err);
/* What a recorder left behind, of which `valid` bytes (vc_journal_stored) are whole. NULL and no
 * error: there is no ring. */
struct vc_flight *vc_flight_found(const char *journal, uint64_t valid, struct vc_error *err);
void vc_flight_free(struct vc_flight *f);   /* NULL is fine; the files stay */
void vc_flight_remove(struct vc_flight *f); /* the files */

void vc_flight_put(struct vc_flight *f, const struct vc_record *rec);
bool vc_flight_full(const struct vc_flight *f); /* it wants to be stored */
bool vc_flight_ahead(const struct vc_flight *f); /* of what the journal knows */
/* Writes what was put. The length of all that was ever written, for vc_journal_commit. */
uint64_t vc_flight_store(struct vc_flight *f);
/* The journal knows of what was stored: older files may go. */
void vc_flight_committed(struct vc_flight *f);
/* From here on everything is kept; call it after vc_flight_store. `on` false: as before. */
void vc_flight_pin(struct vc_flight *f, bool on);
const char *vc_flight_stopped(const struct vc_flight *f); /* why it cannot go on, or NULL */
struct vc_fold_totals vc_flight_totals(const struct vc_flight *f);

/* Opens all files, so that they may be removed; < 0: some cannot be. */
int vc_flight_hold(struct vc_flight *f);
/* The whole ring, or what was pinned, as a trace that is begun. */
void vc_flight_seal(struct vc_flight *f, struct vc_journal_reader *r, struct vc_trace_file *out);
