/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - rows of a result (buckets of the curve, lives of blocks) as named columns, one table
 * for CSV and JSON lines. Bytes and nanoseconds are whole numbers. */
#pragma once

#include "common/io.h"
#include "simulator/replay/result.h"

enum vc_field_type {
	VC_F_U64,
	VC_F_END,      /* uint64_t; UINT64_MAX is "never": empty, null */
	VC_F_DIED_NS,  /* uint64_t of a struct vc_life; empty when it never died */
	VC_F_U32,
	VC_F_STREAM,   /* index of a stream; its handle is written */
	VC_F_SITE,     /* "train.py:140 step", empty when unknown */
	VC_F_LABEL,
	VC_F_LIFETIME, /* uint8_t, enum vc_lifetime */
	VC_F_BOOL,
};
struct vc_field { const char *name; enum vc_field_type type; size_t offset; };

/* Tables end with a NULL name. Columns are only ever added, at the end. */
extern const struct vc_field vc_bucket_fields[]; /* of struct vc_bucket */
extern const struct vc_field vc_life_fields[];   /* of struct vc_life */
extern const struct vc_field vc_unused_fields[]; /* of struct vc_unused_at */

/* "run,first_event,..." and one line per row; `run` counts from 0. */
void vc_record_csv_head(struct vc_output *o, const struct vc_field *f);
void vc_record_csv(struct vc_output *o, const struct vc_field *f, size_t run, const void *row,
		   const struct vc_meta *meta);
/* {"kind":"bucket","run":0,"first_event":0,...} */
void vc_record_json(struct vc_output *o, const char *kind, const struct vc_field *f, size_t run,
		    const void *row, const struct vc_meta *meta);
/* "persistent" "step" "phase" "short" */
const char *vc_lifetime_name(uint8_t lifetime);

