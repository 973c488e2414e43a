/* SPDX-License-Identifier: Apache-2.0 */
/* torch_rules.h - what differs between PyTorch versions, as data. */
#pragma once

#include "common/std.h"

enum torch_order { /* tie-break of free blocks of equal size on one stream */
	TORCH_BY_ADDR, TORCH_BY_OBJECT, TORCH_BY_SEGMENT
};
enum torch_capture { TORCH_ANY_SCOPE, TORCH_REAL_CAPTURE }; /* what suspends event processing */
enum torch_overflow { TORCH_NO_OVERFLOW, TORCH_OVERFLOW_LAST, TORCH_OVERFLOW_MID };
enum torch_rounding { TORCH_ROUNDING_FIXED, TORCH_ROUNDING_OPTION, TORCH_ROUNDING_SEGMENT };
enum torch_oom_text {
	TORCH_OOM_OLD, TORCH_OOM_CAPACTY, TORCH_OOM_NEW, TORCH_OOM_CUT,
	TORCH_OOM_SHORT, /* XPU: a sentence without figures */
	TORCH_OOM_XPU, TORCH_OOM_NPU
};
/* How much of the settings' variable counts. */
enum torch_conf_use { TORCH_CONF_ALL, TORCH_CONF_NONE, TORCH_CONF_EXPANDABLE };
/* Which of PyTorch's allocators; as enum vc_device_kind. */
enum torch_device { TORCH_CUDA, TORCH_HIP, TORCH_XPU, TORCH_NPU, TORCH_DEVICES };
enum torch_hint {
	TORCH_HINT_OLD, TORCH_HINT_SPLIT, TORCH_HINT_CUDA1, TORCH_HINT_ALLOC1, TORCH_HINT_CUDA2
};
enum torch_tail { TORCH_TAIL_DOT, TORCH_TAIL_LONG, TORCH_TAIL_LOG, TORCH_TAIL_NONE };
enum torch_hint_on { TORCH_ON_SAME, TORCH_ON_NONE, TORCH_ON_RESERVE };

struct torch_rules {
	uint8_t major, minor;
	uint8_t device;          /* enum torch_device */
	uint8_t small_below;     /* a request of just small_limit is a large one */
	uint8_t padding;         /* bytes added to each request */
	uint8_t conf_use;        /* enum torch_conf_use */
	uint8_t expandable_off;  /* the option is taken, but has no effect */
	uint8_t fraction_off;    /* there is no such limit */
	uint8_t pools_off;       /* there are no private pools */
	uint8_t oom_free;        /* XPU: the report says what is free */
	uint8_t oom_hip;         /* the report names PYTORCH_HIP_ALLOC_CONF */
	uint8_t order;           /* enum torch_order */
	uint8_t raw_division;    /* division 1 leaves sizes above 512 as they are */
	uint8_t capture;         /* enum torch_capture */
	uint8_t newest_scope;    /* the newest scope that accepts the stream wins, not the oldest */
	uint8_t limit_of_prop;   /* limit from totalGlobalMem and none at 1.0; else cudaMemGetInfo
				  */
	uint8_t limit_rounds;    /* the limit is rounded, not cut off */
	uint8_t fraction_text;   /* an invalid fraction raises a readable error */
	uint8_t opt_fraction, opt_throw, opt_large_segment, opt_reserve, opt_lock, opt_threads,
		opt_background, opt_cached;
	uint8_t overflow;        /* enum torch_overflow */
	uint8_t overflow_plain;  /* without the option expandable_segments */
	uint8_t no_split;
	uint8_t release_splits;  /* the last release of a pool drops its no-split flag */
	uint8_t non_split;       /* enum torch_rounding */
	uint8_t expandable;
	uint8_t private_expandable;
	uint8_t traced_early;    /* segment_free is recorded before cudaFree, which can fail */
	uint8_t release_skips;   /* oversize and gc releases skip expandable blocks, else assert */
	uint8_t small_range_fails;
	uint8_t deferred_drop;
	uint8_t empty_skips;     /* empty_cache in a scope skips the default pool, else asserts */
	uint8_t empty_assert_new;/* spelling of that assertion */
	uint8_t active_captures; /* spelling of the assertion about captures that do not run */
	uint8_t empty_by_id;
	uint8_t exact;
	uint8_t parser_new;
	uint8_t create_pool;     /* pools can be made without a scope */
	uint8_t reuse_option;    /* graph_capture_record_stream_reuse */
	uint8_t min_split;       /* 0: > 20, 1: >= 20, 2: >= large_segment_size_mb */
	uint8_t fill_above;      /* `>` of a division list starts above the last named interval */
	uint8_t division_zero;   /* 0 allowed in a division list */
	uint8_t division_spelling;
	uint8_t oom_text, oom_limit, oom_private, oom_processes, oom_hint, oom_hint_on;
	uint8_t error_link, error_tail; /* of CUDA errors: a page is named; enum torch_tail */
	uint8_t stat_sync, stat_device, stat_rejections;
};

/* One behaviour that a version brought; sorted by version. `field` is an offset in torch_rules. */
struct torch_rule_change {
	uint8_t major, minor;
	uint16_t field;
	uint8_t value;
	const char *what;
};
extern const struct torch_rule_change torch_rule_changes[]; /* ends with what == NULL */

/* The options of PYTORCH_CUDA_ALLOC_CONF, and a value that people give them; NULL: it changes no
 * replay. */
bool torch_conf_option(size_t i, const char **name, const char **usual);

extern const char *const torch_versions[]; /* oldest first, NULL-terminated */

/* What is different on another device from some version on; sorted by device, version. The first
 * row of a device says which version had it first. */
struct torch_device_change { uint8_t device; struct torch_rule_change is; };
extern const struct torch_device_change torch_device_changes[]; /* ends with what == NULL */
extern const char *const torch_device_name[TORCH_DEVICES]; /* in messages: "CUDA", "HIP", ... */

/* The rules of version "2.9" (patch numbers are ignored), NULL: the newest. 0, or -1: not known. */
int torch_rules_for(const char *version, enum torch_device device, struct torch_rules *out);
#define TORCH_OLDEST "2.0"
#define TORCH_NEWEST "2.15"
