/* SPDX-License-Identifier: Apache-2.0 */
/* result.h - everything a finished run has to say, one chapter per observer. Renderers read only
 * this. All sizes are bytes, all times nanoseconds; a chapter nobody observed is zeroed. */
#pragma once

#include "common/error.h"
#include "common/meta.h"

/* Of a run that followed its recording: what it depended on (model.h, device.h). */
struct vc_seen {
	void *witness; /* owned; NULL: on more than can be told */
	uint64_t least, below; /* bytes that had to be free at the start for each answer; 0: there
				* was no such run */
};

/* From best to worst. Undecided: one end of the interval fits, the other does not. */
enum vc_verdict { VC_FITS, VC_FLUSHES, VC_UNDECIDED, VC_OOM };
const char *vc_verdict_name(enum vc_verdict v); /* "fits" "flushes" "undecided" "oom" */
int vc_verdict_by_name(const char *name);       /* < 0: there is no such */

/* What an answer rests on: the weakest of all, from strong to weak. */
enum vc_level {
	VC_LEVEL_NONE, /* nobody decided */
	VC_EXACT,      /* a recording that was checked and reproduced, on any card or settings */
	VC_RERUN,          /* the program, run again at other values without a card */
	VC_ALLOCATOR_ONLY, /* requests as recorded under an allocator that they were not made for */
	VC_EXTRAPOLATED,   /* several recordings at other values */
	VC_BOUNDS,     /* one of them, or a change that nobody recorded */
	VC_UNVERIFIED, /* a recording that was not reproduced */
	VC_UNKNOWN,    /* a change whose error nobody measured */
};
const char *vc_level_name(enum vc_level l);     /* "exact", ...; NULL for NONE */
enum vc_level vc_level_by_name(const char *name);

/* What an answer goes by (--assume): its interval, or one value of it. */
enum vc_assume { VC_ASSUME_NOTHING, VC_ASSUME_LOW, VC_ASSUME_BEST, VC_ASSUME_HIGH };

struct vc_run_info {
	char *model;         /* "torch" */
	char *params;        /* of the model, "" = none */
	const char *owner;   /* whose allocator that is: "PyTorch", or as `model`; static */
	char *torch;         /* "2.9", or NULL for models without versions */
	char *conf;          /* settings string, "" = defaults */
	char *trace;         /* file name of the trace, for titles */
	char *gpu;           /* card profile, or NULL */
	char *change;        /* transforms in words ("batch=32"), "" = as recorded */
	uint64_t capacity;   /* total of the device */
	uint64_t context, others; /* bytes beside the allocator */
	uint64_t limit; bool has_limit; /* memory fraction */
	uint16_t device;
	bool warm;           /* seeded with the heap at the first event */
	bool rebuilt;        /* its blocks were asked for again instead */
	char *vary; double value; /* what a family of runs varies ("batch", 32); NULL: nothing */
	char *by, *by_value;      /* and besides ("gpu", "t4"); NULL: nothing */
};

/* Kept by the engine itself. */
struct vc_stats {
	uint64_t events, allocs, frees, unknown_frees;
	uint64_t peak_requested, peak_allocated, peak_active, peak_reserved, peak_used;
	uint64_t final_reserved, final_allocated;
	uint64_t segments_peak, segment_allocs, segment_frees;
	uint64_t flushes, ooms;
	uint64_t ooms_averted;     /* requests that failed in the recorded run and succeed here */
	uint64_t peak_event;       /* index of the event: of all moments with the
				    * most reserved the one with the most allocated */
	uint64_t peak_time_ns;
	uint64_t allocated_at_peak,
		stranded_at_peak; /* stranded = reserved - active at peak_event */
	uint64_t reserved_at_used, allocated_at_used,
		others_at_used; /* when peak_used was reached */
	uint64_t lower_bound; /* max over time of live requested bytes, 512-rounded: no allocator
				 needs less; of an answer in all of the run, its failure or not */
	uint64_t time_ns, driver_ns; /* recorded span; simulated time in driver calls */
	uint64_t driver_calls; /* those that the device refused included */
	uint64_t predicted_ns;     /* of the whole run under this what-if; 0 = unknown */
	uint64_t by_address;       /* choices that hung on the order of fresh addresses: 0, some */
	uint64_t pinned, managed;  /* beside the allocator's, at most: of the host; of neither */
	uint64_t limit;            /* of the process, at the first refusal or the end */
	bool has_times, has_limit;
	bool limited;              /* a fraction of the device was set, from the start or later */
	bool cut_short; /* the last request was averted, or there is none: the rest of the
			 * run is not known */
};

/* How long a block lives: to the end of the trace; about one step; a part of a step; briefly. */
enum vc_lifetime { VC_LIFE_PERSISTENT, VC_LIFE_STEP, VC_LIFE_PHASE, VC_LIFE_SHORT,
	VC_LIFE_CLASSES };

/* What a block is for, from the anatomy of a training run (simulator/session/purposes.h). */
enum vc_purpose {
	VC_FOR_UNKNOWN, VC_FOR_WEIGHTS, VC_FOR_OPTIMIZER, VC_FOR_GRADIENT, VC_FOR_ACTIVATION,
	VC_FOR_TEMPORARY, VC_FOR_WORKSPACE, VC_PURPOSES
};

/* timeline: usage over the events. Reduced by the observer to at most a few thousand buckets,
 * each with min and max, so the peak never vanishes. x runs over event index; time_ns is given
 * beside. */
struct vc_bucket {
	uint64_t first_event, last_event; /* inclusive */
	uint64_t first_ns, last_ns;
	uint64_t allocated_min, allocated_max;
	uint64_t active_max, reserved_min, reserved_max, requested_max;
	uint64_t stranded_max; /* of reserved - active, or what the model calls inactive split */
	uint64_t pinned_max, managed_max; /* of the host, and of neither */
	uint64_t peak_event;       /* where allocated_max was first reached */
	uint64_t peak_ns;          /* and when */
	/* Bytes at the event peak_event by lifetime class, at most allocated_max together; all
	 * zero when nobody counted them. Only ever one instant: maxima of different instants
	 * would not add up. */
	uint64_t layer[VC_LIFE_CLASSES];
	uint32_t flushes, ooms, segment_allocs, segment_frees;
};
struct vc_curve {
	struct vc_bucket *at; size_t n;
	bool split; /* stranded_max is the latter */
};

/* blocks: the life of every block that matters for a picture. */
struct vc_life {
	uint64_t id, size, requested, addr;
	uint64_t born, died;        /* event index; died = UINT64_MAX: lives at the end */
	uint64_t born_ns, died_ns;
	uint32_t stream, site, label;
	uint8_t lifetime;           /* enum vc_lifetime */
	uint8_t purpose;            /* enum vc_purpose */
	bool at_start;              /* existed before the first event */
	bool outlasts; /* alive at the last allocation: it goes only because the program ends */
};
struct vc_lives {
	struct vc_life *at;
	size_t n; /* largest byte*time first is NOT promised; order of birth */
	uint64_t dropped;                     /* lives left out, merged into the rest */
};

/* segments: what was obtained from the device, and when. */
struct vc_segment_life {
	uint64_t addr, size, born, died;      /* event index; UINT64_MAX: to the end */
	uint64_t pool; uint32_t stream; bool small, expandable;
};
struct vc_segments { struct vc_segment_life *at; size_t n; };

/* heap: segments and blocks at one moment (the peak of reserved, or the OOM). */
struct vc_heap_extent {
	uint64_t addr, size, requested, id, pool;
	uint32_t stream, site, label;
	uint8_t what;               /* 0 segment, 1 live, 2 pending, 3 free */
	bool small, expandable;
	bool at_start;              /* a block that existed before the first event */
};
struct vc_heap_map { uint64_t event; struct vc_heap_extent *at; size_t n, room; };
struct vc_result;
/* The heap of the moment that matters: at the failure, which may be empty, else at the peak. */
const struct vc_heap_map *vc_result_heap(const struct vc_result *r);

/* oom: the first time the run ran out. */
enum vc_held { VC_HELD_AT, VC_HELD_BEFORE, VC_HELD_NOWHERE, VC_HELD_OTHERS };
struct vc_holder {
	uint32_t site, label;       /* VC_HELD_AT: one of them is known */
	enum vc_held held;          /* before the first event; no call site; all that is smaller */
	uint64_t bytes, blocks;
};
struct vc_oom_report {
	bool happened;
	uint64_t steps;             /* marks of steps before it */
	uint64_t event, time_ns, id, request, rounded, alloc_size, largest_free, free_in_cache,
		device_free;
	char *message;              /* byte for byte what that framework version prints */
	struct vc_holder *holder; size_t holders; /* largest first, then the rest as one;
					       * their sum is all that is live */
};

/* moment: the first failure, or else the peak (of all moments with the most reserved the one with
 * the most allocated), in a few numbers that cost nothing to keep. */
struct vc_moment {
	bool looked, at_oom;
	bool splits;                /* the model counts what is stranded */
	uint64_t event, elapsed_ns; /* since the first event */
	uint64_t steps;             /* marks of steps before it */
	uint64_t allocated, reserved;
	uint64_t cached, stranded;  /* cached = reserved - active; stranded: of it free beside a
				     * live block, which empty_cache cannot give back */
	uint64_t request, free;     /* at_oom: what was asked for, what the device had */
	char *who; uint64_t bytes;  /* the call site that holds most, and how much; NULL: nobody */
};

/* leak: what every step keeps. Filled by whoever looks for it (simulator/findings/leaks.h). */
struct vc_leak {
	uint64_t steps;             /* of which every one left something behind; 0: no leak */
	uint64_t bytes, blocks;     /* they left, together */
	uint32_t site;              /* the place that left most of it, 0: not recorded */
	uint64_t site_bytes, size;  /* of that; one block of it */
};

/* words: what leaks and what to change, in lines for people (simulator/advise/advice_words.h). */
struct vc_words { char **line; size_t n; bool failed; };

/* tries: the same run with one thing changed, cheapest change first, each of them simulated; only
 * those that help (simulator/advise/advice.h). */
struct vc_try {
	char *text, *paste, *again; /* what to do; a line to paste, or ""; the command of it */
	bool estimate;
	double times;               /* so many times as long as it takes now; 0: unknown */
	struct vc_result *run;      /* without meta */
};
struct vc_tries { struct vc_try *at; size_t n; };

/* fidelity: does the model reproduce the recording under its own settings? */
struct vc_fidelity {
	bool checked, exact;
	uint64_t events_compared, segments_recorded, segments_simulated, address_mismatches;
	uint64_t final_mismatches;
	bool diverged; uint64_t diverged_event; char *diverged_why;
};

/* fragmentation: what reserved-but-unused bytes are, at the peak of reserved. */
struct vc_fragmentation {
	uint64_t rounding, remainders, pinned, other_streams, private_pools, whole_free;
};

/* A segment that is not empty holds its free bytes back; it is blamed on its smallest live block:
 * moving that one is the least that would help. Pins of one known call site are one. */
struct vc_pin {
	uint64_t segment;           /* address of the first */
	uint64_t bytes, segments, blocks;
	uint64_t id, smallest;      /* the smallest of these blocks */
	uint32_t site, label;
	bool at_start;
};
/* Largest first; *pins is the caller's. */
int vc_pins_of(const struct vc_heap_map *map, struct vc_pin **pins, size_t *n,
	       struct vc_error *err);
/* The largest of those of so many samples together, at most `most`: bytes, segments and blocks are
 * means. Sorts p. */
void vc_pins_mean(struct vc_pin *p, size_t n, size_t samples, struct vc_pin *out, size_t most);

/* unused: what reserved-but-unused bytes are, over the run. Samples lie `span` events apart, the
 * last one at the end; their parts add up to reserved - requested. */
enum { VC_UNUSED_PINS = 6 };
struct vc_unused_at {
	uint64_t event, time_ns, reserved, requested;
	struct vc_fragmentation part;
	struct vc_pin pin[VC_UNUSED_PINS]; /* the largest; 0 bytes: none */
};
struct vc_unused {
	struct vc_unused_at *at; size_t n;
	struct vc_unused_at worst;  /* the request with the most of them, to a 64th */
	uint64_t last;              /* event of the last request: what is freed behind it is
				     * freed because the program ends */
	struct vc_pin pin[VC_UNUSED_PINS]; /* of all samples; bytes and segments are means */
};

/* counters: the model's own statistics after the last event (torch.cuda.memory_stats()). A klass of
 * NULL: a plain number, in `current`. Names are static. */
struct vc_counter { const char *name, *klass; int64_t current, peak, allocated, freed; };
struct vc_counters { struct vc_counter *at; size_t n; };

struct vc_mark_at {
	uint64_t event, time_ns;
	uint32_t label;
	uint8_t kind;
	uint16_t device;
}; /* enum vc_mark */
struct vc_kernel_at { uint64_t start_ns, duration_ns; uint32_t label, stream; uint8_t kind; };
struct vc_phase_at {
	uint64_t event, time_ns, end_event, end_ns;
	uint32_t iteration;
	const char *name;
}; /* static */
struct vc_steps {
	struct vc_mark_at *mark; size_t marks;
	struct vc_phase_at *phase;
	size_t phases; /* found in the pattern of allocations; in order */
	struct vc_kernel_at *kernel; size_t kernels;
	uint64_t count; double confidence; char *from; /* "marks", "pattern", NULL */
};

/* phases: peaks up to the first step mark, and from there on. Without marks all is `first`. */
struct vc_peaks { uint64_t peak_allocated, peak_reserved; };
struct vc_phases { uint64_t steps; struct vc_peaks first, steady; };

/* turns: who had the card, where something beneath the allocator gives its memory back for others
 * (vLLM's sleep mode, a memory saver), else nothing. A turn ends where the innermost marked range
 * that asks for memory is another one, or somebody falls asleep or wakes. The most of each while it
 * lasted; stuck: free, but beside a live block; away: given back. */
struct vc_turn_at {
	uint64_t event, time_ns, end_event, end_ns;
	uint64_t allocated, reserved, stuck, used, away;
	uint32_t label; /* of the range; 0: none */
	bool asleep;
};
struct vc_turns { struct vc_turn_at *at; size_t n; };

/* pace: when the allocator went to the driver, by the number of requests so far. Calls between two
 * requests are one entry. */
struct vc_pace_at {
	uint64_t request;           /* so many ALLOC events had begun */
	uint64_t ns;                /* simulated time in the driver */
	uint32_t mallocs, frees, flushes;
};
struct vc_pace { struct vc_pace_at *at; size_t n; };

/* timing: how long a step takes under this what-if. Filled by the commands
 * (simulator/time/time.h), not by an observer. All zero: nobody asked. step_ns = 0: unknown,
 * `why` says why. */
struct vc_timing {
	uint64_t step_ns, low_ns, high_ns; /* of one step, flushes included */
	uint64_t recorded_ns;       /* of one step of the recording it rests on */
	uint64_t driver_ns;         /* part of step_ns: driver calls in a steady step */
	double samples;             /* per step (the batch), 0 = unknown */
	double busy, wait;          /* shares of the step: GPU busy, GPU waiting for data */
	double matched, renamed;    /* shares of the kernels' time, see time_tempo.h */
	double mfu;                 /* operations of products and attention, as a share of what the
				     * card computes in a step at its peak; 0: unknown */
	double unknown;             /* share of the kernels' time of which nothing is known */
	const char *kernel;         /* that of the longest of these, lent; NULL: none */
	double flushes, mallocs, frees; /* per steady step; < 0: unknown */
	size_t recordings;
	bool same;                  /* recorded like this, nothing predicted */
	bool modelled;              /* recorded on the null GPU */
	bool roofline;              /* scaled to another card by its bandwidth and FLOP/s */
	char why[200];
};

/* history: what the framework's own memory history would show, and the heap at the end. */
enum vc_history_action {
	VC_HIST_ALLOC, VC_HIST_FREE_REQUESTED, VC_HIST_FREE_COMPLETED, VC_HIST_SEGMENT_ALLOC,
	VC_HIST_SEGMENT_FREE, VC_HIST_SEGMENT_MAP, VC_HIST_SEGMENT_UNMAP,
	VC_HIST_OOM                 /* addr = free bytes of the device, size = rounded request */
};
struct vc_history_entry {
	uint64_t addr, size, time_ns, id; /* size as asked for; id of ALLOC only */
	uint32_t stream, site, label;
	uint8_t action;
	bool driver;                /* private to the observer */
};
struct vc_history {
	struct vc_history_entry *at; size_t n;
	uint64_t dropped;           /* older entries that were not kept */
	struct vc_heap_map end;
};

/* trust: how far a run is to be believed, and what that makes of its verdict. Decided in one place
 * (simulator/session/answer.h), or read back from a result that was written. */
/* On what a replay of recorded requests stands. */
enum vc_ground {
	VC_GROUND_ASKED,    /* nothing is argued: other requests, another allocator, a start that
			     * the user named */
	VC_GROUND_RECORDED, /* nothing that the plan changes could have changed anything */
	VC_GROUND_WHOLE,    /* every request was recorded, from an empty heap on */
	VC_GROUND_WARM,     /* the recorded heap, which these rules have made */
	VC_GROUND_PAST,     /* other rules, or less memory, would have made another heap */
};

/* What is open about it, and how it ends at best and at worst. */
struct vc_basis {
	enum vc_ground ground;
	bool exact;   /* nothing is */
	bool decided; /* low and high are known */
	enum vc_verdict low, high;
	double missed; /* PAST: so much of the recorded heap none of the pasts explains, a share */
	bool grows;    /* PAST: each new size takes a segment of its own, so high is a guess */
};

struct vc_trust {
	enum vc_level level;
	bool checked, reproduced;  /* all recordings behind it, by the model */
	bool endless;              /* the recording ends before the run does: no upper end */
	enum vc_assume assumed;
	enum vc_verdict low, high; /* of both ends of the interval */
	enum vc_verdict verdict;
	uint64_t used_low, used_high; /* on the device, where nothing limits it */
	char cannot[400];             /* "these recordings cannot tell ...": people are told this
				       * and no number; "": they can */
};

/* diff: two recordings allocation by allocation. Filled by simulator/advise/diff.h. */
enum vc_diff_kind {
	VC_DIFF_NONE,
	VC_DIFF_ONLY_A,
	VC_DIFF_ONLY_B, /* an allocation that the other one lacks */
	VC_DIFF_SIZE,
	VC_DIFF_STREAM,
	VC_DIFF_LIFE, /* the same allocation is freed at another place, or never */
};

/* Sums of one call site; [0] is A, [1] is B. */
struct vc_diff_site {
	char *site;
	uint64_t asked[2], blocks[2], live[2];
}; /* live: at peak reserved */

struct vc_diff {
	uint64_t allocs[2], bytes[2];   /* in the recordings */
	uint64_t same, resized, restreamed,
		relived; /* of the matched: equal in size, ...; relived of same */
	uint64_t only[2], only_bytes[2];
	int64_t resized_bytes;          /* B less A */
	bool by_site;                   /* call sites were used to match */
	/* The first allocation that differs. Event numbers as 'vramcast dump' counts; UINT64_MAX:
	 * none. */
	enum vc_diff_kind first;
	uint64_t event[2], time_ns[2], size[2];
	uint32_t site[2];
	struct vc_diff_site *at; size_t n; /* the largest change at the peak first, then of asked */
};

struct vc_result {
	const struct vc_meta *meta; /* lent: dictionaries for site and label */
	struct vc_run_info info;
	struct vc_stats stats;
	struct vc_curve curve;
	struct vc_lives lives;
	struct vc_segments segments;
	struct vc_heap_map peak;    /* heap at the peak of reserved */
	struct vc_heap_map last;    /* heap at the first OOM */
	struct vc_oom_report oom;
	struct vc_moment moment;
	struct vc_fidelity fidelity;
	struct vc_fragmentation fragmentation;
	struct vc_unused unused;
	struct vc_steps steps;
	struct vc_phases phases;
	struct vc_turns turns;
	struct vc_counters counters;
	struct vc_history history;
	struct vc_pace pace;
	struct vc_timing timing;
	struct vc_leak leak;
	struct vc_words words;
	struct vc_tries tries;
	const struct vc_diff *diff; /* lent: what is other than in the run before it; NULL: nobody
				     * asked */
	bool given_up;      /* vc_run.enough: the figures are those of the part that was replayed */
	uint64_t need;      /* peak_reserved where nothing limits it, once somebody asked; else 0 */
	bool has_interval;
	uint64_t low, high; /* of peak_reserved, where the what-if is not exact and nothing limits
			     * it */
	struct vc_basis basis;
	struct vc_seen seen;
	struct vc_trust trust;
};

/* Of the answer where there is one, else of the replay. */
enum vc_verdict vc_result_verdict(const struct vc_result *r);
/* Of the replay alone, which is the best estimate: never undecided. */
enum vc_verdict vc_result_replayed(const struct vc_result *r);
void vc_result_fini(struct vc_result *r);
/* Where it has no interval yet, one that is its own need. */
void vc_result_open_interval(struct vc_result *r);

/* outcome.c: parts of a run for programs, the same from sim, sweep and the sinks. All go into an
 * object that is open, but for the text of a holder: "main.py:12 forward" or "there at the
 * start" into buf. */
struct vc_emit; /* common/emit.h */
void vc_result_emit_peaks(struct vc_emit *e, const struct vc_result *r);  /* verdict and peaks */
void vc_result_emit_counts(struct vc_emit *e, const struct vc_result *r);
void vc_result_emit_unused(struct vc_emit *e, const struct vc_fragmentation *f);
void vc_result_emit_oom(struct vc_emit *e, const struct vc_result *r);    /* or null */
void vc_result_emit_moment(struct vc_emit *e, const struct vc_result *r); /* where one looked */
void vc_result_emit_interval(struct vc_emit *e, bool there, uint64_t low,
			     uint64_t high); /* or null */
void vc_result_emit_answer(struct vc_emit *e, const struct vc_result *r); /* interval and trust */
/* Who holds the live bytes of a map: by call site, those before the first event, those without a
 * site; largest first, of more than 64 the last is all others. *holders is the caller's. */
int vc_holders_of(const struct vc_heap_map *map, const struct vc_meta *meta,
		  struct vc_holder **holders, size_t *n, struct vc_error *err);
const char *vc_holder_text(const struct vc_meta *m, const struct vc_holder *h, char *buf, size_t n);
