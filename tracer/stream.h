/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - one journal on its way into one trace, or (flight.h) into a ring of blocks. */
#pragma once

#include "tracer/drain.h"
#include "tracer/flight.h"
#include "tracer/live.h"
#include "tracer/trace_file.h"
#include "tracer/watch.h"

struct vc_seal {
	char *path;
	const char *word;
	int64_t pid; /* of the process that writes it; 0: it has ended */
	bool failed, told;
};

struct vc_stream {
	char *journal;
	struct vc_journal_reader *reader; /* NULL: finished, and its parts released */
	struct vc_trace_file file;
	struct vc_flight *flight;         /* NULL: the trace holds all there was */
	struct vc_live *live;             /* NULL: memory was short */
	bool warned;                      /* that its memory runs out */
	const struct vc_watch *watch;
	struct vc_watching watching;
	struct vc_seal *seal;
	size_t seals;
	uint64_t unsealed;                /* those that could not be, or are too many of a kind */
	const char *wanted;               /* a seal, at the next moment that is whole */
	bool refused;                     /* a request was, since anybody looked */
	bool gone;                        /* its process was, at the last look */
	uint64_t over_ns;                 /* its window is over, late times of work come still */
	bool whole;                       /* its window is over, the trace finished */
	uint64_t missing, start;
	uint64_t put, stored;             /* records: part of the trace, and written */
	uint64_t torn;                    /* those that could not be */
	uint64_t unwritten;               /* those that did not, because the recording stopped */
	bool named, finished, orderly, cpu;
	uint8_t how[VC_CAPS];
	uint64_t dropped;
	int64_t pid;
	struct vc_journal_totals totals;  /* once it is finished */
};

int vc_stream_open(struct vc_stream *s, const char *journal, struct vc_error *err);
void vc_stream_free(struct vc_stream *s);
/* Recording ends here, the program runs on. */
void vc_stream_stop(struct vc_stream *s, const char *why);
/* Where the trace begins: it takes over the name. */
int vc_stream_name(struct vc_stream *s, char *path, const struct vc_drain_options *o,
		   struct vc_error *err);
/* Moves at most so many batches; the first record of all asks `name` for the name (with `who`). */
typedef int vc_stream_namer(void *who, struct vc_stream *s, struct vc_error *err);
void vc_stream_drain(struct vc_stream *s, bool dead, bool whole, vc_stream_namer *name, void *who);
/* The same as soon as no evidence waits for its request, or nothing comes any more. */
void vc_stream_want(struct vc_stream *s, const char *word);
/* Looks which of them are ready; `wait`: until all are. */
void vc_stream_reap(struct vc_stream *s, bool wait);
/* The trace is finished; `dead`: nobody will write any more. */
void vc_stream_finish(struct vc_stream *s, bool dead, vc_stream_namer *name, void *who);
