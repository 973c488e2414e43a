/* SPDX-License-Identifier: Apache-2.0 */
/* live.h - what a recorded process holds now, what grows in it and when that runs out. The recorder
 * writes it into a page beside the journal; `vramcast top` reads it there. */
#pragma once

#include "common/journal.h"

#define VC_LIVE_MAGIC 0x3145564c52435656ull
#define VC_LIVE_SUFFIX ".top"
enum { VC_LIVE_SITES = 4, VC_LIVE_NAME = 120 };

struct vc_live_page {
	uint64_t magic;
	_Atomic uint32_t turn; /* odd while it is written */
	uint32_t growing;      /* sites that follow */
	int64_t pid, rank;     /* rank -1: none */
	uint64_t reserved, allocated, total, free; /* total 0: the device's memory is unknown */
	uint64_t peak_allocated, peak_reserved, floor, peak; /* floor, peak: of the last step */
	uint64_t steps;        /* or seconds, when the program marks none */
	double seconds_a_step;
	double growth;         /* of the peak, bytes a step; 0: it does not grow */
	double left;           /* steps until it runs out; < 0: it does not, or nobody can know */
	struct { double growth; uint64_t bytes; char name[VC_LIVE_NAME]; } site[VC_LIVE_SITES];
	bool marked;           /* steps are the program's own */
};

struct vc_live;
/* NULL: memory is short. Without room for the page there is none, and the rest works. */
struct vc_live *vc_live_new(const char *journal, const struct vc_journal *j, int64_t rank);
void vc_live_free(struct vc_live *l); /* NULL is fine; removes the page */
void vc_live_put(struct vc_live *l, const struct vc_record *rec);
/* What was put becomes visible. */
void vc_live_show(struct vc_live *l, struct vc_journal_reader *r);
const struct vc_live_page *vc_live_page(const struct vc_live *l);

/* Steps until `capacity` is reached, by the peaks of the last steps; < 0: they do not grow. */
double vc_live_left(const uint64_t *peak, const uint64_t *floor, unsigned n, uint64_t capacity,
		    double *growth);
/* A copy of a page that is being written; false: it is none. */
bool vc_live_read(const char *path, struct vc_live_page *out);
