/* SPDX-License-Identifier: Apache-2.0 */
/* journal.h - the file a recorded process and the recorder share while the run goes on.
 *
 * One file per process image, mapped shared on both sides, so what was written survives any death
 * of the writer. A header page, a text area, and one ring of fixed records per thread. The writer
 * side is tracer/recorder.c (no libc allocation, no locks on the hot path); the reader side is
 * below. Byte order and alignment are those of the machine: a journal never travels. */
#pragma once

#include <stdatomic.h>

#include "common/error.h"
#include "common/event.h"
#include "common/meta.h"

#define VC_JOURNAL_MAGIC 0x314c4e524a564356ull /* "VCVJRNL1" */
#define VC_JOURNAL_VERSION 3

enum {
	VC_JOURNAL_RINGS = 512,
	VC_RING_RECORDS = 131072,        /* the largest: 8 MiB, 262 ms at 500 000 events/s */
	VC_RING_FIRST = 1024,            /* a thread's first one: 64 KiB; it moves on when full */
	VC_RING_SMALL = 64,              /* so many rings begin small, later ones large */
	VC_RING_GROWTH = 16,             /* the next one is so many times larger */
	VC_JOURNAL_SPILL = 32,           /* more large ones, when full: 4 million events */
	VC_JOURNAL_LATE = 32,            /* numbers that may be waited for while reading goes on */
	VC_TEXT_FIRST = 14, VC_TEXT_LARGEST = 22, /* chunks of text: 16 KiB to 4 MiB, as powers */
	VC_JOURNAL_CHUNKS = 72,          /* names, settings, stacks: 256 MiB */
	VC_JOURNAL_FACTS = 16 << 10,     /* "key value" lines: versions, rank, what was found */
};

/* Kinds of records that are no events; the others are enum vc_event_kind. */
enum vc_record_kind {
	VC_REC_CLOCK = 200, /* time_ns = monotonic, addr = wall clock, size = time stamp counter */
	VC_REC_LOST,        /* size = events lost before they reached the journal, text = where */
	VC_REC_KNOWN,       /* addr = key, size: what vc_journal_known has noted */
	VC_REC_CONTROL,     /* size = enum vc_control: the program steers the recorder */
};

enum vc_control { VC_CONTROL_START = 1, VC_CONTROL_STOP, VC_CONTROL_DUMP };

/* An address may be given out again as another kind of memory. */
enum vc_record_memory {
	VC_MEMORY_DEVICE, VC_MEMORY_HOST, VC_MEMORY_MANAGED,
	VC_MEMORY_MAPPED, /* by cuMemMap: CUPTI's records say another address */
};

enum vc_record_flags {
	VC_RECF_DRIVER =
		32, /* ALLOC, FREE: a call of the driver's pools, which CUPTI reports too */
	VC_RECF_BLOCK_ONLY = 64, /* ALLOC: `size` is the block's, the requested size is unknown */
	VC_RECF_LATE = 128,      /* came from an activity buffer after the fact */
};

struct vc_record { /* one cache line */
	uint64_t seq;      /* 1, 2, ... over all threads; 0: never written */
	uint64_t time_ns;  /* CLOCK_MONOTONIC */
	uint64_t addr, size;
	uint64_t extra;    /* ALLOC, FREE: bytes of the block */
	uint64_t stream;   /* handle */
	uint64_t reserved; /* ALLOC, FREE: the allocator's reserved total after it; 0 unknown;
			      OUTSIDE_ALLOC, OUTSIDE_FREE: enum vc_record_memory */
	uint32_t text;     /* offset in the text area; 0 = none; ALLOC, OOM: of a struct
			      vc_journal_frame */
	uint16_t device;
	uint8_t  kind, flags;
};
_Static_assert(sizeof(struct vc_record) == 64, "a record is one cache line");

/* A frame of a call stack, in the text area: it outlasts the records, for a recovery that goes on
 * from a partial trace. Offsets; 0 = none. A caller is stored before what it calls. */
struct vc_journal_frame { uint32_t caller, function, file, line; };

/* After such a record no evidence waits for the request that caused it: a recording may begin or
 * end here. */
static inline bool vc_record_is_whole(const struct vc_record *r)
{
	return r->kind == VC_EV_ALLOC || r->kind == VC_EV_FREE || r->kind == VC_EV_OOM ||
	       r->kind == VC_REC_CONTROL || (r->kind == VC_EV_MARK && r->flags == VC_MARK_STEP);
}

enum vc_ring_state { VC_RING_FREE, VC_RING_USED, VC_RING_LEFT /* its thread has ended */ };

struct vc_ring { /* producer and consumer each have a cache line of their own */
	_Alignas(64) _Atomic uint64_t head;    /* records published */
	_Atomic uint64_t dropped;              /* not written because the ring was full */
	_Atomic uint32_t state, thread;
	uint64_t at;                           /* in the file */
	uint32_t records;                      /* a power of two */
	_Alignas(64) _Atomic uint64_t tail;    /* records safely stored elsewhere */
};

enum vc_journal_state {
	VC_JOURNAL_LIVE, VC_JOURNAL_ENDED, /* the writer said goodbye */
	VC_JOURNAL_CLOSED,                 /* the reader wants no more */
};

struct vc_journal { /* the mapped header */
	uint64_t magic;
	uint32_t version, header_bytes;
	uint64_t start_mono_ns, start_unix_ns;
	int64_t pid, parent;
	uint64_t text_at[VC_JOURNAL_CHUNKS]; /* file offsets of the chunks of text */
	_Atomic uint32_t chunks;           /* those that exist in the file */
	_Atomic uint32_t state;            /* enum vc_journal_state */
	_Atomic uint32_t rings;            /* rings that exist in the file */
	_Atomic uint32_t text_used, facts_used;
	_Atomic uint64_t ringless;         /* events dropped for want of a ring */
	_Atomic uint64_t textless;         /* names dropped for want of room */
	_Atomic uint8_t how[VC_CAPS];      /* enum vc_how, set by the writer */
	_Alignas(64) _Atomic uint64_t seq; /* the last one given out */
	/* What the reader has put into the trace file: two of them, the valid one chosen last. */
	_Alignas(64) struct {
		_Atomic uint64_t bytes, seq;       /* all numbers up to seq but the late ones */
		_Atomic uint64_t late[VC_JOURNAL_LATE]; /* 0: none */
	} stored[2];
	_Atomic uint32_t stored_at;
	_Alignas(64) struct vc_ring ring[VC_JOURNAL_RINGS];
	char facts[VC_JOURNAL_FACTS];
};

static inline uint64_t vc_ring_bytes(const struct vc_ring *r)
{
	return (uint64_t)r->records * sizeof(struct vc_record);
}

/* The text area grows by chunks, so that a process takes what it needs. Chunk 0 holds the first
 * 16 KiB, each further one as much as all before it, from 4 MiB on no more than that. A text lies
 * in one chunk, and the last byte of a chunk is never used, so that every text ends. */
static inline uint32_t vc_text_chunk(uint32_t offset)
{
	uint32_t k = 0;

	while (offset >> (VC_TEXT_FIRST + k) && VC_TEXT_FIRST + k < VC_TEXT_LARGEST)
		k++;
	return offset >> VC_TEXT_LARGEST ? k + (offset >> VC_TEXT_LARGEST) : k;
}

static inline uint32_t vc_text_start(uint32_t chunk)
{
	const uint32_t steps = VC_TEXT_LARGEST - VC_TEXT_FIRST;

	return !chunk ? 0 : chunk <= steps ? 1u << (VC_TEXT_FIRST + chunk - 1) :
	       (chunk - steps) << VC_TEXT_LARGEST;
}

static inline uint32_t vc_text_size(uint32_t chunk)
{
	return vc_text_start(chunk + 1) - vc_text_start(chunk);
}

#define VC_JOURNAL_HEAD ((sizeof(struct vc_journal) + 4095) & ~(size_t)4095)
/* What a process needs at once: header, text, one ring. */
#define VC_JOURNAL_LEAST \
	(VC_JOURNAL_HEAD + (1u << VC_TEXT_FIRST) + VC_RING_FIRST * sizeof(struct vc_record))

/* Where a process that has no journal says so: a file that the recorder lays out beforehand, so
 * that it has room when there is none. */
#define VC_JOURNAL_LOST "lost"
enum vc_lost_why { VC_LOST_ROOM, VC_LOST_LIMIT, VC_LOST_OPEN, VC_LOST_WHYS };
struct vc_journal_lost {
	_Atomic uint64_t processes[VC_LOST_WHYS]; /* without a journal, by the reason */
	_Atomic uint64_t events;                  /* of theirs, as far as anybody counted */
	_Atomic int64_t pid;                      /* the last of them */
};

/* Facts, and variables of the environment, by which launchers number the processes of a job. */
enum { VC_JOURNAL_LAUNCHERS = 3 };
extern const struct vc_journal_launcher { const char *rank, *world; }
	vc_journal_launcher[VC_JOURNAL_LAUNCHERS];

/* Appends "key value"; both sides may. Silently nothing when the area is full. */
void vc_journal_put_fact(struct vc_journal *j, const char *key, const char *value);

/* ---- reading ---- */

struct vc_journal_reader;

/* Map a journal. NULL and an error when the file is none. `writable`: tails may be moved. */
struct vc_journal_reader *vc_journal_open(const char *path, bool writable, struct vc_error *err);
void vc_journal_close(struct vc_journal_reader *r); /* NULL is fine */
struct vc_journal *vc_journal_header(struct vc_journal_reader *r);
const char *vc_journal_text(struct vc_journal_reader *r, uint32_t offset); /* never NULL */
/* Maps all texts that are there, so that the file may be removed. */
void vc_journal_hold(struct vc_journal_reader *r);
bool vc_journal_frame(struct vc_journal_reader *r, uint32_t offset, struct vc_journal_frame *out);
/* The value of a fact, or NULL; copied into buf. */
const char *vc_journal_fact(struct vc_journal_reader *r, const char *key, char *buf, size_t n);

/* The i-th fact "note": a sentence for the user. */
const char *vc_journal_note(struct vc_journal_reader *r, size_t i, char *buf, size_t n);

/* A number that is missing: its thread was stopped between taking it and publishing the record. */
enum vc_journal_way {
	VC_JOURNAL_WAIT,  /* for it: 0 is returned */
	VC_JOURNAL_HURRY, /* go on, it comes late. Nothing that was read before it can depend on
			   * it: a free is published before it is made, an allocation before its
			   * caller has it */
	VC_JOURNAL_DEAD,  /* nobody will publish it: counted in *missing */
};
/* Copy up to cap records that are next in the order of seq. */
size_t vc_journal_next(struct vc_journal_reader *r, struct vc_record *out, size_t cap,
		       enum vc_journal_way way, uint64_t *missing);
/* What was read is stored in the first `bytes` bytes of the trace: note it, free the room. */
void vc_journal_commit(struct vc_journal_reader *r, uint64_t bytes);
/* Bytes of the trace file that are valid; reading goes on after them. For recovery. */
uint64_t vc_journal_stored(struct vc_journal_reader *r);
/* Does the process image that writes it still exist? */
bool vc_journal_alive(struct vc_journal_reader *r);
uint64_t vc_journal_dropped(struct vc_journal_reader *r);
/* Records that wait in the fullest ring, as if each were of VC_RING_RECORDS. */
uint64_t vc_journal_pressure(struct vc_journal_reader *r);
/* The same for those that were read and not committed: what a commit would give back. */
uint64_t vc_journal_uncommitted(struct vc_journal_reader *r);

/* ---- records to events ---- */

struct vc_journal_decoder;
struct vc_journal_decoder *vc_journal_decoder_new(struct vc_meta *meta, struct vc_error *err);
void vc_journal_decoder_free(struct vc_journal_decoder *d);
/* Facts of the header into meta: versions, rank, capabilities. */
void vc_journal_describe(struct vc_journal_reader *r, struct vc_meta *meta);
/* One record into at most one event: 1 when *ev was filled, 0 when the record carries none,
 * < 0 when memory is short. */
int vc_journal_decode(struct vc_journal_decoder *d, struct vc_journal_reader *r,
		      const struct vc_record *rec, struct vc_event *ev, struct vc_error *err);
/* Note an event that an earlier part of the same recording holds (recovery goes on from it). */
int vc_journal_resume(struct vc_journal_decoder *d, const struct vc_event *ev,
		      struct vc_error *err);

/* The hooks and CUPTI may both see a call of the driver; CUPTI's record comes late. Each call the
 * hooks saw cancels one late record of the same kind, address and memory, but none that is much
 * younger: CUPTI leaves records out (that of a program's first cuMemAlloc), and the address may be
 * given out again by a call that the hooks do not see. 1: it is such a record, 0: it is not, < 0:
 * memory is short. */
struct vc_map;
int vc_journal_known(struct vc_map *early, const struct vc_record *rec);

struct vc_journal_totals { uint64_t allocs, frees, live, peak, reserved_peak, steps; };
struct vc_journal_totals vc_journal_totals(const struct vc_journal_decoder *d);
