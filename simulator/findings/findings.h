/* SPDX-License-Identifier: Apache-2.0 */
/* findings.h - what there is to say about a run, found out in one place and said in the same words
 * to whoever asks: sim, every picture, the report, JSON. It reads a result and nothing else. */
#pragma once

#include "simulator/replay/result.h"

/* Why a run, or one that left a message (simulator/advise/explain.h), does not fit. */
enum vc_cause {
	VC_CAUSE_NONE,          /* it does, or there is nothing to fit into */
	VC_CAUSE_UNKNOWN,       /* no figures */
	VC_CAUSE_IMPOSSIBLE,    /* one request larger than the whole device */
	VC_CAUSE_LIMIT,         /* the program's own limit */
	VC_CAUSE_OVERSUBSCRIBED,/* more in use than the device has (Windows) */
	VC_CAUSE_DEVICE,        /* the device had enough free and refused */
	VC_CAUSE_FRAGMENTATION, /* enough memory, but in pieces */
	VC_CAUSE_OUTSIDE,       /* other processes hold what is missing */
	VC_CAUSE_DEMAND,        /* more must be live at once than there is room for */
	VC_CAUSE_UNDECIDED,     /* the figures are too coarse to tell the last three apart */
	VC_CAUSE_LEAK,          /* it would fit without what each step keeps */
};
const char *vc_cause_name(enum vc_cause c); /* "fragmentation"; NULL for NONE */

enum { VC_NO_TRY = UINT32_MAX };

struct vc_findings {
	enum vc_verdict verdict;
	bool card;                /* there is something that it could fit into */
	bool at_least;            /* the recording ends before the run does */
	uint64_t room;            /* the device, or a limit with what lies beside; 0: unknown */
	uint64_t low, used, high; /* on the device, where nothing limits it; used: best estimate */
	enum vc_cause cause;
	uint64_t floor;           /* must be there at once: the most live bytes, the request that
				   * failed, and what lies beside the allocator */
	uint64_t lacks_low, lacks_high; /* so much less in use would do; 0: it is not the amount */
	uint64_t free;            /* at the moment, for this process: cached or on the device */
	uint64_t request, piece, others; /* asked for in vain, so much in one piece; held by other
					  * processes */
	uint64_t leak, left;      /* bytes that each step keeps, and so many more steps fit;
				   * UINT64_MAX: not known */
	uint64_t step;            /* that was going on at the moment, from 0 */
	bool stepped;             /* steps are marked or found */
	const char *phase;        /* then: "backward"; "" unknown */
	uint32_t help;            /* the cheapest of r->tries that surely fits, else that may */
};
struct vc_findings vc_findings_of(const struct vc_result *r);

/* What the cause follows from. Figures of a run are exact, those of a message are rounded; where
 * that leaves it open it is UNDECIDED. */
struct vc_amount { uint64_t low, high; };
struct vc_shortage {
	struct vc_amount request, device, need, have;
	uint64_t others, leak;    /* of the need: of other processes, kept by steps */
	uint64_t all;             /* there without the limit of this process; 0: it has none */
	bool beside;              /* what others hold would have been enough for the request */
};
enum vc_cause vc_cause_of(const struct vc_shortage *s);

/* "findings": cause, floor, room, lacks, leak, step, phase, and "text" with the sentences below. */
struct vc_emit;
void vc_findings_emit(struct vc_emit *e, const struct vc_result *r);

/* The step that an event lies in, from 0: so many are marked or, without marks, found before it.
 * false: neither, or one step is all there is. */
bool vc_step_at(const struct vc_result *r, uint64_t event, uint64_t *step);

/* ---- sentences (words.c); a buffer of VC_SAY bytes holds each of them ---- */
enum { VC_SAY = 700 };
/* A page has three digits and one unit, a terminal hundredths: never both. */
enum vc_units { VC_PAGE, VC_TERMINAL };

/* The answer, as titles have it: "Runs out of memory at 795 ms in the optimizer step: 38.6 of 39.4
 * GiB in use, 100 MiB asked for", "Needs 22.9 GiB". by_time: moments are times, else events. */
void vc_answer_text(const struct vc_result *r, bool by_time, char *buf, size_t cap);
/* "demand: 51.5 GiB must be there at once, of 39.4 GiB"; "" where there is no cause. */
void vc_cause_text(const struct vc_result *r, enum vc_units u, char *buf, size_t cap);
/* The same where all that is known are findings (of a message: advise/explain.h). */
void vc_why_text(const struct vc_findings *f, enum vc_units u, char *buf, size_t cap);
/* "at least 1.2 GiB less in use": whole, if the whole need is known. */
void vc_less_text(const struct vc_findings *f, bool whole, enum vc_units u, char *buf, size_t cap);
/* What would help: a change that was tried, else the amount, else that nothing is needed. */
void vc_help_text(const struct vc_result *r, char *buf, size_t cap);
/* "each step keeps 4 MiB, most of it at train.py:12 step; the card is full after 3 more"; "". */
void vc_grows_text(const struct vc_result *r, enum vc_units u, char *buf, size_t cap);
/* The same of a program that still runs: "runs out in about 340 steps (in 22 minutes), because
 * attention.py:88 keeps 2.00 MiB a step"; "" where it does not grow. */
struct vc_forecast {
	double growth, left, seconds; /* bytes a step; steps until it is full, < 0: not known; so
				       * long is one */
	const char *who;              /* or NULL */
	double who_growth;
	const char *unit;             /* "step" */
};
void vc_forecast_text(const struct vc_forecast *f, char *buf, size_t cap);
/* The moment: "795 ms, in the optimizer step"; who holds most; what is cached and stranded. */
void vc_when_text(const struct vc_result *r, bool by_time, char *buf, size_t cap);
void vc_who_text(const struct vc_result *r, char *buf, size_t cap);
void vc_stranded_text(const struct vc_result *r, char *buf, size_t cap);
/* "out of memory at 795 ms (event 14,116)"; "100 MiB in train.py:12, 57 MiB free on the device". */
void vc_failure_text(const struct vc_result *r, bool by_time, char *buf, size_t cap);
void vc_refused_text(const struct vc_result *r, char *buf, size_t cap);
/* What is free in the heap at the failure or the peak, in how many pieces, and what did not fit. */
void vc_heap_text(const struct vc_result *r, char *buf, size_t cap);
/* The cause, where there is one, and what would help, in one line. */
void vc_reason_text(const struct vc_result *r, char *buf, size_t cap);
/* How many changes surely and perhaps make it fit, and the cheapest of them. */
void vc_tries_text(const struct vc_result *r, char *buf, size_t cap);
/* "fits", "fits, but grows", "runs out of memory", and the class of its colour. */
const char *vc_verdict_word(const struct vc_result *r, const char **color);
/* The verdict with its numbers as a terminal has them, to two digits: "fits: 6.74 GiB of 23.51 GiB
 * used at the peak (28.7 %)". */
const char *vc_verdict_text(const struct vc_result *r, char *buf, size_t cap);
/* "train.vct"; "train.vct, GPU 0" and what was simulated; that alone; the settings. */
void vc_trace_name(const struct vc_result *r, char *buf, size_t cap);
void vc_place_text(const struct vc_result *r, char *buf, size_t cap);
void vc_run_text(const struct vc_result *r, char *buf, size_t cap);
void vc_conf_text(const struct vc_result *r, char *buf, size_t cap);
/* What the run rests on: "exact: ..."; "" where nobody decided. */
void vc_trust_text(const struct vc_result *r, char *buf, size_t cap);


/* ---- runs beside each other (several.c) ---- */

/* One of several in a few words: "fits, peak 91.5 %", "out of memory at 795 ms". */
void vc_brief_text(const struct vc_result *r, bool by_time, char *buf, size_t cap);
struct vc_named { const char *name; const struct vc_result *r; };
/* How many fit, and which needs least. */
void vc_best_text(const struct vc_named *of, size_t n, bool by_time, char *buf, size_t cap);
/* How unequal their peaks are, and how many run out. */
struct vc_spread { uint64_t mean, least, most; size_t worst, ooms, flushes, open; };
struct vc_spread vc_spread_of(const struct vc_named *of, size_t n);
void vc_uneven_text(const struct vc_named *of, size_t n, bool by_time, char *buf, size_t cap);
/* Were they recorded at the same time, by the clock of the machine? Then, and as the same card of
 * the same machine, as far as that is recorded? */
bool vc_met(const struct vc_result *a, const struct vc_result *b);
bool vc_share_card(const struct vc_result *a, const struct vc_result *b);
/* Those of n runs (at most VC_TOGETHER) that share a card with another, card by card, to `shared`;
 * how many there are of each to `on`. Returns the number of cards. */
size_t vc_shared_cards(const struct vc_named *of, size_t n, struct vc_named *shared, size_t *on);
/* Processes that share a card (together.c), at most VC_TOGETHER of them: what each holds at each
 * moment that something changes, the most of a bucket of its curve, so that sums are upper bounds.
 * Times count from the first event of all. */
enum { VC_TOGETHER = 64 };
struct vc_hold { uint64_t context, allocated, reserved; };
typedef void vc_together_fn(void *arg, uint64_t ns, uint64_t sum, const struct vc_hold *hold);
struct vc_together { uint64_t first_ns, last_ns, most, most_ns, room; }; /* first, last: Unix */
struct vc_together vc_together_walk(const struct vc_named *of, size_t n, vc_together_fn *each,
				    void *arg);
/* "2 processes share a card: together at most 21.0 of 23.5 GiB, at 1.2 s". */
void vc_together_text(const struct vc_named *of, size_t n, char *buf, size_t cap);
/* What the second needs more than the first; the kind of the first difference. */
void vc_change_text(const struct vc_result *a, const struct vc_result *b, const struct vc_diff *d,
		    enum vc_units u, char *buf, size_t cap);
const char *vc_parting_text(enum vc_diff_kind k);
/* Of a value that was varied: does it fit, at the upper end as well, with 5 % of the card left? The
 * ones that are taken, by row (r NULL: none; one row: its name is a card, or NULL). */

bool vc_has_spare(const struct vc_result *r);
void vc_choice_text(const char *vary, bool largest, const struct vc_named *of, size_t n, char *buf,
		    size_t cap);
void vc_varied_text(double v, char *buf, size_t cap);
/* "1. expandable segments: fits, 12.3 GiB reserved". */
struct vc_tried {
	const char *text;
	enum vc_verdict verdict;
	bool has_interval, estimate;
	uint64_t reserved, low, high;
	bool grows; /* the run does, with or without it */
	double times; /* so many times as long as it takes now; 0: unknown */
};
void vc_tried_text(const struct vc_tried *t, size_t number, enum vc_units u, char *buf, size_t cap);
