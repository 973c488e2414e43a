/* SPDX-License-Identifier: Apache-2.0 */
/* time_profile.h - the kernels of one recording as repetitions of one step, and what they show: how
 * long a step takes, how busy the GPU is, how long it waits for data. */
#pragma once

#include "common/error.h"
#include "common/event.h"
#include "common/meta.h"
#include "common/kernel_work.h"
#include "simulator/replay/cards.h"

enum vc_op_kind { VC_OP_KERNEL, VC_OP_FILL, VC_OP_TO_DEVICE, VC_OP_TO_HOST, VC_OP_COPY };

struct vc_op {               /* a kernel or a copy, in order of launch */
	uint64_t id;         /* correlation number */
	uint64_t start, end; /* ns since the start of the trace */
	uint64_t gap;        /* ns before it in which nothing ran on any stream */
	uint64_t front;      /* ns by which its end lies behind the end of everything before it */
	uint64_t token;      /* of its name (vc_kernel_token) */
	uint32_t name, stream;
	uint32_t after;      /* that operation on another stream it waits for, + 1; 0: none */
	uint32_t held;       /* that for whose end the program waits before it launches this one */
	uint32_t work;       /* site of the event: what it computes (kernel_work.h); 0: not known */
	uint8_t kind;        /* enum vc_op_kind */
};

/* One operation of the typical step: medians over the steady steps. */
struct vc_beat {
	const char *name;    /* lent from the recording */
	uint64_t exact;      /* hash of the name */
	uint64_t token;      /* of the name without tile sizes and vector widths: the same for the
			      * kernels a library picks from for one purpose */
	double ns;           /* how long it runs */
	double front;        /* what it adds to the step where streams overlap, at most ns */
	double gap;          /* idle time of the GPU before it */
	const char *work;    /* a text of kernel_work.h, lent; "": not known */
	uint8_t kind;
};

struct vc_step_mark { uint64_t start, duration; }; /* duration 0: not recorded */

struct vc_profile {
	struct vc_op *op; size_t n, cap;
	struct vc_step_mark *mark; size_t marks, mark_cap;
	size_t *begin;               /* operation at which steps begin; steps + 1 of them */
	size_t steps;                /* 0: no repetition found */
	const char *from;            /* "kernels", "marks", "profiler step", NULL */
	struct vc_beat *beat; size_t beats;
	bool modelled; /* recorded on the null GPU: times are computed, host work is not in them
			*/
	const struct vc_card *card; /* modelled: that they were played on (time_replay.c) */
	const struct vc_speeds *speeds; /* measured, of --speed; lent; NULL: none */
	double least, most; /* then: how long the steps may be, as shares of how long they are */
	struct vc_shares {
		double kind[VC_WORK_KINDS]; /* ns of the typical step's kernels, by kind */
		double ns, flops;           /* of all; operations of products and attention */
		double ideal;               /* ns of these at the card's peak rates */
		double unknown;             /* ns of kernels of which nothing is known */
		const char *name;           /* that of the longest of these, or NULL */
	} shares;
	/* Over the steady steps: those like the typical one, without the first where there are
	 * others. */
	size_t measured;             /* how many */
	uint64_t step_ns, step_min_ns, step_max_ns; /* mean of the middle half, least, most */
	double busy;                 /* share of the step in which something ran */
	double wait;                 /* share of the step: idle just before a copy to the device */
	uint64_t copies;             /* copies to the device in a step */
	double floor_ns;             /* the shortest kernel: what a launch takes at least */
	double quiet_ns; /* idle time between two kernels though the next one is queued */
};

/* Collect the operations and step marks of one device from events in any order. Errors:
 * VC_ENOMEM. */
int vc_profile_add(struct vc_profile *p, const struct vc_event *ev, size_t n, uint16_t device,
		   const struct vc_meta *meta, struct vc_error *err);
/* Find the steps and measure them. `iterations`: how many the recording is known to have apart
 * from marks, 0 = unknown. Steps nobody knows of are not guessed: steps = 0, which is no error.
 * Errors: VC_ENOMEM. */
int vc_profile_finish(struct vc_profile *p, size_t iterations, uint16_t device,
		      const struct vc_meta *meta, struct vc_error *err);
void vc_profile_fini(struct vc_profile *p);

/* ---- the halves of it (time_cycle.c, time_profile.c) ---- */

/* Fill begin, steps and from. Operations are in order of launch. */
int vc_profile_cycles(struct vc_profile *p, size_t iterations, struct vc_error *err);

/* Play the operations, in order of launch, again on a card: sets their starts and ends. Steps are
 * known. Errors: VC_ENOMEM. */
int vc_profile_play(struct vc_profile *p, const struct vc_meta *meta, const struct vc_card *card,
		    struct vc_error *err);

/* Recordings of several ranks of one job, each played before: what one sends, the other waits for.
 * ns: a step of the slowest, at least, as it is expected, at most. Errors: VC_ENOMEM. */
struct vc_player { struct vc_profile *p; const struct vc_meta *meta; };
int vc_profiles_meet(const struct vc_player *who, size_t n, double ns[3], struct vc_error *err);
/* The same without the collectives that join samples: those among as many ranks as work on one
 * sample stay, of each number of `ranks` (above 1) the communicator that launches most, and cost as
 * before. ns: a step of a rank that waits for no other, in the mean; of the slowest that do. */
enum { VC_SHARED = 3 };
int vc_profiles_within(const struct vc_player *who, size_t n, const uint64_t ranks[VC_SHARED],
		       double ns[2], struct vc_error *err);

/* Give every step behind the first the micro-batches that it has when the program is told `want` of
 * them and not `have`: what repeats in it is done as much more often, and waits as it did. stages:
 * micro-batches that a schedule may take together. *done: false where it does not repeat; then some
 * steps may have more. Errors: VC_ENOMEM. */
int vc_profile_lengthen(struct vc_profile *p, const struct vc_meta *meta, uint64_t have,
			uint64_t want, uint64_t stages, bool *done, struct vc_error *err);

/* ns of the typical step's products and attention at the peak rates of a card. */
double vc_profile_ideal(const struct vc_profile *p, const struct vc_card *card);

/* Hashes of a kernel's name: as it is, and without what a library varies between sizes. */
uint64_t vc_kernel_exact(const char *name);
uint64_t vc_kernel_token(const char *name); /* odd */
enum { VC_TOKEN_PRODUCT = 1, VC_TOKEN_CONVOLUTION = 3, VC_TOKEN_PARTS = 5, VC_TOKEN_ATTENTION = 7,
       VC_TOKEN_ATTENTION_BACKWARD = 9 };

/* What kind of limit a kernel's name suggests: matrix products and convolutions count operations,
 * everything else moves bytes. half: on tensor cores with 16-bit inputs. */
enum vc_kernel_bound { VC_BOUND_BYTES, VC_BOUND_FP32, VC_BOUND_TF32, VC_BOUND_HALF };
enum vc_kernel_bound vc_kernel_bound(const char *name);

/* What a library was called for, by the name of the kernel. */
enum vc_kernel_call { VC_CALL_OTHER, VC_CALL_PRODUCT, VC_CALL_CONVOLUTION, VC_CALL_ATTENTION };
enum vc_kernel_call vc_kernel_call(const char *name);

enum vc_kernel_phase { VC_KERNEL_FORWARD, VC_KERNEL_BACKWARD, VC_KERNEL_OPTIMIZER };
/* Which phase each beat belongs to, by names; phase[] has p->beats entries. False: the names do not
 * say where the backward pass begins. */
bool vc_profile_phases(const struct vc_profile *p, uint8_t *phase);
