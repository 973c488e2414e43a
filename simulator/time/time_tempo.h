/* SPDX-License-Identifier: Apache-2.0 */
/* time_tempo.h - how long a step takes at a value nobody recorded: the kernels of several
 * recordings, matched, each with a law, put behind each other again. */
#pragma once

#include "simulator/time/time_profile.h"

enum { VC_TEMPO_AXES = 4 };
#define VC_BEAT_ALONE UINT32_MAX

/* match[i] = the beat of b that beat i of a is, in order, or VC_BEAT_ALONE; b may begin elsewhere
 * in its step. match has a->beats entries. Errors: VC_ENOMEM. */
int vc_beats_match(const struct vc_profile *a, const struct vc_profile *b, uint32_t *match,
		   struct vc_error *err);

/* ---- laws ---- */

struct vc_pace_sample { double x, ns; };

/* t = max(floor, a + b*x + c*x*x), ns. */
struct vc_pace_law {
	double a, b, c, floor;
	double low_b,
		high_b; /* what the recordings leave open, as slopes from the largest x on */
	double x, ns;           /* the recorded point nearest to the largest x */
	double residual;        /* largest miss on the samples, share */
	bool open; /* it will grow, nobody knows from where on: the guess lies in between */
};
/* Samples in ascending x, n >= 1; floor: the shortest kernel recorded. One sample: grows in
 * proportion, with everything down to "does not grow" left open. */
struct vc_pace_law vc_pace_fit(const struct vc_pace_sample *s, size_t n, double floor);
/* bound < 0: as little as the recordings allow, > 0: as much, 0: the best guess. */
double vc_pace_at(const struct vc_pace_law *l, double x, int bound);

/* ---- the step again ---- */

/* One operation of the step to be put together. */
struct vc_queued {
	double gpu;     /* what it adds to the GPU's time, ns */
	double host;    /* the program's time since the launch before it */
	double after;   /* waits: time from the end of everything before it to its start */
	bool waits;     /* the program waits for the GPU before it launches this */
};
/* The program's time per launch when no gap shows it: cudaLaunchKernel alone takes about 4 us,
 * PyTorch's dispatch 5 to 10 us around it. */
#define VC_LAUNCH_NS 5000.0
/* And at most, where a program was ahead of the GPU all the time and so never showed it: PyTorch
 * programs on an H100 (docs/measurements/fit.md, "Times of changes"). */
#define VC_LAUNCH_MOST_NS 80000.0
/* Length of one step in the steady state: the program launches, the GPU works the queue off. *idle
 * (may be NULL) gets the GPU's idle time. */
double vc_queue_step(const struct vc_queued *q, size_t n, double *idle);

/* Was the GPU idle before beat i because it had not been launched yet? */
bool vc_queue_seen(const struct vc_profile *p, size_t i);

/* The program's side of a recorded step. gpu is left 0; host of operations the program launched
 * long before they ran is unknown and taken to be the usual one. q has p->beats entries. */
void vc_queue_read(const struct vc_profile *p, struct vc_queued *q);

/* ---- recordings of one program ---- */

struct vc_tempo {
	const struct vc_profile *at[16]; size_t n; /* lent */
	double x[16][VC_TEMPO_AXES];               /* their values */
	size_t axes;
	uint32_t *match[16][16];                   /* [base][other], NULL until needed */
};

/* How to change the recorded step. */
struct vc_tempo_part { double from, to; }; /* shares */

/* How many times faster kernels become, by enum vc_kernel_call: those of passes over the model. */
struct vc_tempo_cast {
	double by[VC_CALL_ATTENTION + 1];
	double least;  /* what a product or a convolution takes at least, ns */
	double copies; /* what copying its operands and its result adds to it, ns */
};

struct vc_tempo_ask {
	double x[VC_TEMPO_AXES];
	double passes;          /* forward and backward passes per step; 1 */
	bool recompute;         /* the forward pass again within the backward pass: ... */
	const struct vc_tempo_part *part; size_t parts; /* ... these parts of its kernels */
	double bytes, fp32, tf32,
		half; /* how many times faster the card is, by what limits a kernel; 1 */
	const struct vc_tempo_cast *cast; /* NULL: as recorded */
	const struct vc_card *here, *there; /* not NULL: kernels whose work is known take what they
					     * take on that card, as against on the recorded one */
	double optimizer_ns;    /* all kernels of the optimizer together; 0: as recorded */
	double weights;         /* share of the backward pass's products that is left; 0: all */
};

struct vc_tempo_answer {
	double step_ns, low_ns, high_ns;
	double busy, wait;      /* shares of the step */
	double matched;         /* share of the base's kernel time with a counterpart everywhere */
	double renamed;         /* part of it under another name: another tile size, ... */
	size_t base;
	bool same;              /* recorded like this */
	bool at_values;         /* recorded at these values */
	bool phases;            /* forward, backward and optimizer could be told apart */
};

/* Errors: VC_ENOMEM; VC_ENOSUP when the recordings have too little in common (other kernels). */
int vc_tempo_at(struct vc_tempo *t, const struct vc_tempo_ask *ask, struct vc_tempo_answer *out,
		struct vc_error *err);
void vc_tempo_fini(struct vc_tempo *t);
