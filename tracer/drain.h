/* SPDX-License-Identifier: Apache-2.0 */
/* drain.h - empties the journals of recorded processes into .vct files, one per process. */
#pragma once

#include "common/error.h"
#include "common/journal.h"
#include "tracer/flight.h"
#include "tracer/live.h"
#include "tracer/watch.h"

struct vc_drain_options { /* lent */
	const char *dir;          /* where journals appear */
	const char *out; /* name of the first trace; others get .rankN or .PID before .vct */
	const char *command;      /* of the recorded program, for the traces; NULL unknown */
	const char *const *param; /* "batch=8", as the user gave them */
	size_t params;
	uint64_t max_bytes;       /* stop a trace that grows beyond it; 0 = no limit */
	bool ring;                /* the flight recorder, which does what follows */
	struct vc_flight_options flight;
	const struct vc_watch *watch;
};

struct vc_drain_file {
	const char *path, *torch, *gpu, *stopped; /* stopped: why recording ended early, or NULL */
	int64_t pid;
	uint64_t events, bytes, dropped, missing, unmatched, unsealed;
	uint64_t unwritten; /* records after the recording stopped, as far as there was room */
	struct vc_journal_totals totals;
	char *const *note;        /* sentences about what could not be recorded */
	size_t notes;
	uint8_t how[VC_CAPS];
	uint16_t device;          /* the first that is named */
	size_t sealed;            /* further traces of it */
	bool events_seen;         /* it had something to record */
	bool cpu, orderly;        /* of the CPU allocator; the process said goodbye */
};

/* Can a trace have that name? */
int vc_drain_name(const char *out, struct vc_error *err);

struct vc_drain;
struct vc_drain *vc_drain_new(const struct vc_drain_options *o, struct vc_error *err);
void vc_drain_free(struct vc_drain *d); /* NULL is fine */

/* Look for new journals and move what has arrived. Returns the number of records that waited in the
 * fullest ring, or < 0. Problems with one journal are that journal's: see `stopped`. */
long vc_drain_step(struct vc_drain *d, struct vc_error *err);
/* Finish the traces of processes that are gone. Returns how many are still running. */
size_t vc_drain_settle(struct vc_drain *d);
/* Finish every trace, whether its process lives or not, and remove the journals. */
void vc_drain_finish(struct vc_drain *d);

/* Seal what is kept of every process: FILE.WORD.vct. */
void vc_drain_seal(struct vc_drain *d, const char *word);
/* A sealed trace that is ready and was not named yet; NULL: none. *failed: it could not be
 * written. */
const char *vc_drain_sealed(struct vc_drain *d, bool *failed);

/* A process whose memory runs out within so many steps, each once; NULL: none. */
const struct vc_live_page *vc_drain_warning(struct vc_drain *d, double steps);

/* Is the part that was asked for over, of every process that has begun? */
bool vc_drain_over(const struct vc_drain *d);

size_t vc_drain_files(const struct vc_drain *d);
struct vc_drain_file vc_drain_file(const struct vc_drain *d, size_t i);

/* What has no trace: processes without a journal, by the reason (and the last of them), events of
 * theirs as far as anybody counted, and journals that could not be read. */
struct vc_drain_lost {
	uint64_t processes[VC_LOST_WHYS], events;
	int64_t pid;
	size_t unread;
};
struct vc_drain_lost vc_drain_lost(const struct vc_drain *d);
/* The same of a recording that was cut off, by the folder of its journals. */
struct vc_drain_lost vc_drain_left(const char *dir);

/* Finish one journal that was left behind: goes on where its partial trace ends. *path is the trace
 * it wrote (malloc'ed), NULL when the journal held nothing. `out` NULL: the name that was meant. */
int vc_drain_recover(const char *journal, const char *out, char **path, uint64_t *events,
		     struct vc_error *err);
