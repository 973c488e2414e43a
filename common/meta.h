/* SPDX-License-Identifier: Apache-2.0 */
/* meta.h - what a trace says about itself: dictionaries, versions, settings, capabilities. */
#pragma once

#include "common/error.h"

/* Call stacks are an append-only tree: a site is a node, its callers are its parents. Node 0 is
 * "unknown". Node numbers of parents are smaller than those of their children. */
struct vc_frame {
	uint32_t parent;   /* node of the caller, 0 = outermost */
	uint32_t function; /* string */
	uint32_t file;     /* string */
	uint32_t line;
};

/* How a field was obtained; a capability is absent (0) when the trace does not have it at all. */
enum vc_capability {
	VC_CAP_REQUESTS,   /* ALLOC/FREE of the framework's allocator */
	VC_CAP_SEGMENTS,   /* SEGMENT_* */
	VC_CAP_ADDRESSES,  /* ALLOC events carry the address they got */
	VC_CAP_TIMES,      /* time_ns of requests */
	VC_CAP_STREAMS,    /* stream of requests */
	VC_CAP_USES,       /* record_stream calls */
	VC_CAP_COMPLETION, /* FREE_DONE of deferred frees */
	VC_CAP_STACKS,     /* call sites */
	VC_CAP_START_HEAP, /* HEAP_* at the start: warm start is exact */
	VC_CAP_FINAL_HEAP, /* HEAP_* with VC_EVF_FINAL */
	VC_CAP_TRIMS,      /* empty_cache calls */
	VC_CAP_POOLS,      /* private pool scopes */
	VC_CAP_SETTINGS,   /* allocator settings known, not guessed */
	VC_CAP_KERNELS, VC_CAP_COPIES, VC_CAP_MARKS, VC_CAP_DEVICE_SAMPLES,
	VC_CAP_DRIVER_POOLS, /* the driver's own memory pools, cudaMallocAsync's */
	VC_CAP_OVERHEAD,   /* what CUPTI and the driver cost */
	VC_CAP_LAUNCHES,   /* calls that queued kernels and copies, by correlation */
	VC_CAP_WORK,       /* what kernels compute and move (kernel_work.h) */
	VC_CAP_NULL_GPU,   /* recorded on the null GPU: simulated, not measured */
	VC_CAPS
};
enum vc_how { VC_HOW_ABSENT, VC_HOW_RECORDED, VC_HOW_DERIVED, VC_HOW_PARTIAL, VC_HOW_FAILED };
const char *vc_capability_name(enum vc_capability c);
const char *vc_how_name(enum vc_how h);

struct vc_program;

struct vc_param_value { char *name; double value; };

struct vc_device_info { /* one per device that occurs */
	uint16_t index;
	char *name;          /* "NVIDIA GeForce RTX 4090" or NULL */
	uint64_t total;      /* bytes, 0 = unknown */
	uint64_t reserved, allocated; /* the most that the recording's own counters say; 0 = none */
	int cc_major, cc_minor, sms; /* 0 = unknown */
};

/* The virtual range of the expandable segment whose first mapped run at the start is at `addr`
 * begins at `base`, below it. Found by what was mapped there later; not written to files. */
struct vc_range_base { uint64_t addr, base; uint16_t device; };

struct vc_meta {
	char *path;          /* as given by the user, or NULL */
	char *source;        /* name of the decoder */
	char *torch;         /* "2.9", or NULL: unknown */
	bool torch_guessed;  /* from the layout, not written in the recording */
	char *conf; /* PYTORCH_CUDA_ALLOC_CONF of the recording, or NULL: unknown/default */
	char *producer;      /* who made it, free text, or NULL */
	char *command;       /* command line of the recorded program, or NULL */
	struct vc_program *program; /* behind it (program.h), or NULL */
	char *host; int64_t pid, rank; /* rank -1, pid 0: unknown */
	uint8_t how[VC_CAPS];/* enum vc_how by enum vc_capability */
	uint64_t dropped, gaps, damaged_blocks; /* events lost, holes in the recording */
	bool complete;       /* false: cut off; what is there was read */
	uint64_t unmatched_frees, double_allocs; /* seen while decoding; counted, not fatal */
	uint64_t max_id;     /* the largest block id given out so far */
	uint64_t start_unix_ns; /* wall clock of time 0, 0 = unknown */

	char **string;       size_t strings;   /* string[0] = "" */
	struct vc_frame *frame; size_t frames; /* frame[0] = unknown */
	uint64_t *stream;    size_t streams;   /* handle of each stream index; stream[0] = 0 */
	struct vc_param_value *param; size_t params; /* recorded with batch=8, ... */
	struct vc_device_info *device; size_t devices;
	struct vc_range_base *base; size_t bases;
	char **note;
	size_t notes;        /* sentences a user should see (why not exact, ...) */
	void *index;         /* private: hash indices of the dictionaries */
	struct vc_meta_sites *sites; /* private: see vc_meta_site */
};

struct vc_meta *vc_meta_new(struct vc_error *err);
struct vc_meta *vc_meta_copy(const struct vc_meta *m,
			     struct vc_error *err); /* with the same indices */
void vc_meta_free(struct vc_meta *m); /* NULL is fine */
/* The index of the string / frame / stream, added when new; 0 also on lack of memory (sticky:
 * m->index remembers, vc_meta_ok tells). */
uint32_t vc_meta_string(struct vc_meta *m, const char *text, size_t len);
uint32_t vc_meta_frame(struct vc_meta *m, struct vc_frame f);
uint32_t vc_meta_stream(struct vc_meta *m, uint64_t handle);
void vc_meta_note(struct vc_meta *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void vc_meta_set(char **field, const char *text); /* replaces a copied text field; NULL clears */
void vc_meta_param(struct vc_meta *m, const char *name, double value); /* adds or replaces */
struct vc_device_info *vc_meta_device(struct vc_meta *m,
				      uint16_t index); /* added when new; NULL: no memory */
const struct vc_device_info *vc_meta_device_known(const struct vc_meta *m,
						  uint16_t index); /* or NULL */
bool vc_meta_ok(const struct vc_meta *m); /* no allocation has failed */
/* From now on what is found out about frames that are there is kept, for copies of m, too, and on
 * any thread. Errors: VC_ENOMEM. */
int  vc_meta_keep_sites(struct vc_meta *m, struct vc_error *err);
/* Where the answer for a frame is kept, 0 = not known yet; NULL: it is not. */
_Atomic uint32_t *vc_meta_site(const struct vc_meta *m, uint32_t frame);
