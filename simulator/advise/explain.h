/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h - reads an out-of-memory message that somebody pasted: which program printed it, its
 * figures, what they mean, what to try. A figure that cannot be read for certain is left out. */
#pragma once

#include "common/error.h"
#include "simulator/findings/findings.h"
#include "simulator/replay/device.h"

/* "2.26 GiB" says a range: value is what is written, the truth lies within `slack` of it. */
struct vc_figure { bool known; uint64_t value, slack; char text[32]; };

enum vc_figure_name {
	VC_FIG_REQUEST,     /* what the allocator asked the device for (a segment, not a tensor) */
	VC_FIG_CAPACITY, VC_FIG_FREE,
	VC_FIG_ALLOCATED,   /* live tensors */
	VC_FIG_RESERVED,    /* all that the allocator holds */
	VC_FIG_UNALLOCATED, /* held, not in use */
	VC_FIG_PROCESS,     /* this process, with context and libraries */
	VC_FIG_ALLOWED,     /* limit set by the program */
	VC_FIG_PRIVATE,     /* in private pools (CUDA graphs) */
	VC_FIG_BESIDE,      /* of this process, beside PyTorch's allocator (MPS) */
	VC_FIG_PROGRAM,     /* all buffers of a compiled program (XLA) */
	VC_FIGURES
};

enum vc_style { /* what a text of this kind must contain */
	VC_STYLE_NONE,     /* no figures at all */
	VC_STYLE_REQUEST,  /* the request only */
	VC_STYLE_OLD,      /* "(GPU 0; ... total capacity; ...)" */
	VC_STYLE_HELD,     /* either; what is free need not be told */
	VC_STYLE_SENTENCE, /* "GPU 0 has a total capacity of ..." */
};

/* One row per format; see explain_formats.c. */
struct vc_oom_format {
	const char *tag, *framework;
	const char *first, *last; /* versions, NULL: not known / still so */
	const char *about;        /* one sentence */
	enum vc_style style;
	enum vc_device_kind kind; /* whose cards it is about */
	const char *has[3], *hasnot[3]; /* texts that tell it, NULL-terminated */
	const char *mark[8];      /* one of these is there; they find it in a log */
	/* what it means and what helps, NULL-terminated; none: what the figures tell */
	const char *meaning[2], *tries[3];
	bool less;                /* a smaller batch helps, too */
	const char *program;      /* to dry-run; NULL: python train.py; "": there is none */
};
extern const struct vc_oom_format
	vc_oom_formats[]; /* the first that fits wins; ends with a NULL tag */

struct vc_oom_process { uint64_t pid; struct vc_figure bytes; };

struct vc_oom_text {
	const struct vc_oom_format *format;
	const char *first, *last;    /* versions, narrowed by the name of the exception */
	bool complete;               /* all figures of the format were there */
	bool has_device; uint64_t device;
	struct vc_figure figure[VC_FIGURES];
	struct vc_oom_process process[16]; size_t processes;
	const char *variable;        /* of the settings, as this message names it */
	bool on_linux;               /* a path of the text says so */
	size_t messages;             /* in the whole text; the last whole one is explained */
};

/* The last whole message in text[0..n), else the last. VC_EFORMAT when there is none. */
int vc_explain_read(const char *text, size_t n, struct vc_oom_text *out, struct vc_error *err);

struct vc_advice { char setting[80]; /* to paste, or "" */ const char *text; };

struct vc_diagnosis {
	struct vc_findings found; /* cause, room, floor, lacks, free, request: as of a run */
	/* Bytes that are there but not usable: reserved, not in use. */
	struct vc_figure stranded;
	bool has_missing;         /* what is missing even if all of them were usable: found.lacks */
	struct vc_figure
		outside; /* capacity - free - reserved: context, libraries, other processes */
	uint64_t want_low,
		want_high; /* the tensor behind the request, as far as the request tells */
	char meaning[8][320]; size_t meanings;
	struct vc_advice advice[8]; size_t advices;
};
void vc_explain_diagnose(const struct vc_oom_text *m, struct vc_diagnosis *d);
