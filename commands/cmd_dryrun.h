/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dryrun.h - what the files of `vramcast dryrun` share: a run on one card, and what came out.
 */
#pragma once

#include <sys/types.h>
#include <time.h>

#include "common/opt.h"
#include "common/vec.h"
#include "nullgpu/usage.h"
#include "simulator/replay/cards.h"
#include "simulator/replay/result.h"

#define VC_DRYRUN_UNKNOWN 64
#define VC_DRYRUN_PROCESSES 64 /* told of one by one */

static inline double vc_gib(uint64_t bytes)
{
	return (double)bytes / (double)(1ull << 30);
}

/* A process that used a device: as it reported, in the order of process numbers. */
struct vc_dryrun_process {
	int32_t pid, parent;
	bool ended; /* by exit; else a signal ended it */
	int32_t status;
	int device, card;           /* card: the machine's number of it; < 0: not known */
	uint64_t began_ns, ended_ns; /* its use of a device; UINT64_MAX: nobody knows */
	uint64_t peak, refused, largest_refused;
	uint64_t together; /* all that was held of the card when this one took more, at most */
};

/* What the recordings of a run say when they are replayed; of several ranks the largest of each. */
struct vc_dryrun_replay {
	unsigned traces; /* recordings that the model reproduces exactly; 0: nothing known */
	unsigned others;           /* recordings that it does not */
	struct vc_phases phases;   /* steps: of the first recording */
	uint64_t allocated, reserved; /* peaks, as recorded */
	uint64_t least_reserved, most_reserved; /* peaks in other orders of device addresses */
	uint64_t least_drawn, most_drawn; /* ... with other workspaces of convolutions; 0: none */
	uint64_t least_allocated, most_allocated; /* with these */
	enum vc_verdict other;     /* how the driver's other order would have ended */
	char time[160];            /* of a step of the first, in words; "": not known */
	uint64_t step_ns, least_ns, most_ns;
	double fraction;           /* least that a program allowed itself of the card; 0: all */
};

struct vc_emit;

struct vc_dryrun_outcome {
	int code;                  /* of the program; negative: no run was made */
	uint64_t peak;             /* device memory without the context, of the fullest device */
	uint64_t refused, largest_refused;
	uint64_t asked;            /* times the program asked how much memory there is */
	uint64_t polled;           /* times it asked whether work on the device had finished */
	uint64_t other_peak; /* of a second run with the other order of addresses; 0: none made */
	struct vc_dryrun_experts { /* of a second run, with other tokens at this rank's experts */
		bool made;
		uint64_t peak;
		double lives, dies; /* times its share that fit, and do not; 0: not looked for */
	} experts;
	bool fits_with_more; /* it ran out, and a second run with the margin more did not */
	size_t n_unknown;          /* what was answered with a bound or a guess */
	struct vc_null_unknown unknown[VC_DRYRUN_UNKNOWN];
	uint64_t pool;             /* in use at most in JAX's or TensorFlow's own; 0: none */
	uint32_t convolutions; /* how their workspaces were answered (nullgpu/usage.h); 0: none */
	size_t workspaces;
	uint64_t workspace[VC_REPORT_WORKSPACES]; /* different sizes that plans ran with */
	uint64_t blocks, rounding; /* at the peak: the driver's blocks, bytes lost to its pages */
	int processes;             /* that used a device */
	struct vc_dryrun_process process[VC_DRYRUN_PROCESSES]; /* the first of them */
	uint64_t devices;          /* the program asked for one of so many, and there are less */
	uint64_t steps;            /* of its optimizers */
	uint64_t host_peak;        /* the most that one process held of the host's memory */
	struct vc_dryrun_replay replay;
};

#define VC_DRYRUN_ROLE 64

struct vc_dryrun {
	const struct vc_card *card;
	uint64_t world, rank;      /* a rank of a job without the others; world 0: no such thing */
	uint64_t first_steps;      /* of the optimizers of rank 0, which was played before */
	char role[VC_DRYRUN_ROLE]; /* what makes that rank another one than rank 0 */
	uint64_t total, context, beside; /* beside: memory of other processes */
	double skew;               /* --expert-skew; 1: each expert gets as many; 0: look for it */
	bool up;                   /* fresh addresses go up */
	char *out;                 /* the recording; NULL: none made */
	time_t started;
	bool done;
	const struct vc_card *by;  /* the card whose run answered for this one; NULL: its own */
	struct vc_dryrun_outcome o;
};

/* The process that asks the installed cuDNN (cmd_dryrun_plans.c). */
struct vc_dryrun_cudnn {
	bool usable;                   /* there is one, and it can be asked */
	char asker[1200], library[1200];
	char card[64];                 /* as a table of workspaces names it */
	int runs, life;
	pid_t pid;
};

/* Finds the cuDNN beside the PyTorch in the folder `torch` and tells the stand-ins its version, or
 * why it will not be asked. VRAMCAST_NULL_CUDNN_LIBRARY names another. */
int vc_dryrun_cudnn(struct vc_dryrun_cudnn *c, const char *libraries, const char *torch,
		    struct vc_error *err);

/* For one run on that card, in the private folder `dir`. Stop waits until it has ended. */
int vc_dryrun_plans_start(struct vc_dryrun_cudnn *c, const char *dir, const struct vc_card *card,
			  struct vc_error *err);
void vc_dryrun_plans_stop(struct vc_dryrun_cudnn *c);

/* The exit code that says whether it fits (--exit-code verdict): VC_OOM or a limit 3, else the
 * program's. */
int vc_dryrun_code(const struct vc_dryrun *run);

/* What --used says that other processes hold: the sum of bytes is added to *sum, or all of it goes
 * into the environment of the program. Errors: VC_EUSAGE. */
int vc_dryrun_others(const struct vc_list *used, uint64_t *sum, struct vc_error *err);
int vc_dryrun_put_others(const struct vc_list *used, struct vc_error *err);

/* A command line that runs a server until it is ready and plays a trace of requests to it, if one
 * is named. *line: NULL, it is no server; else free() ends it, and *argc counts its words. */
struct vc_dryrun_server {
	const char *stage, *requests;   /* requests: NULL: none are played */
	char *python, script[1100], played[1100]; /* the last two: words of the line */
};
int vc_dryrun_until_ready(struct vc_dryrun_server *s, size_t *argc, char **argv, char ***line,
			  struct vc_error *err);

/* Moves a recording to `out` that was cut off, and that nobody writes any more, out of the way. */
void vc_dryrun_set_aside(const char *out);

/* Ranks that were not played would decide something that the program went by, or the rank made no
 * step where rank 0 made some. */
bool vc_dryrun_ranks_decide(const struct vc_dryrun *run);
/* ... and its router's choices are among what the null GPU did not know. */
bool vc_dryrun_experts_decide(const struct vc_dryrun *run);
/* What ranks tell each other changed with each round: it is named among what is not known. */
void vc_dryrun_unsettled(struct vc_dryrun_outcome *o);
enum vc_verdict vc_dryrun_verdict(const struct vc_dryrun *run);
/* Processes that used one card at the same time: what they hold of it if they peak together, with
 * contexts and what lies beside; how many, where *n is wanted. 0: there are none. */
uint64_t vc_dryrun_together(const struct vc_dryrun *run, int *n);
/* What they held of it at one time in this run, one after the other as they went; with the same. */
uint64_t vc_dryrun_held(const struct vc_dryrun *run);
/* PyTorch's own peaks, and the ends between which a card's are expected (cmd_dryrun_peaks.c). */
struct vc_dryrun_peak { uint64_t bytes, low, high; };
struct vc_dryrun_peaks {
	bool known;  /* nothing was refused, and the allocator's model reproduces the recording */
	bool open;   /* sizes that nobody can bound may change them: the ends leave these out */
	struct vc_dryrun_peak allocated, reserved;
};
struct vc_dryrun_peaks vc_dryrun_peaks(const struct vc_dryrun_outcome *o);
void vc_dryrun_say_peaks(const struct vc_dryrun_outcome *o);
void vc_dryrun_emit_peaks(struct vc_emit *e, const struct vc_dryrun_outcome *o);
/* Bytes by which that peak can be off either way; what libraries may take on top is not in it. */
uint64_t vc_dryrun_margin(const struct vc_dryrun_outcome *o);
void vc_dryrun_say_end(const struct vc_dryrun *run);
/* A line a process, where several used a device. */
void vc_dryrun_say_processes(const struct vc_dryrun *run);
void vc_dryrun_emit_end(struct vc_emit *e, const struct vc_dryrun *run);

/* Read and remove what the processes of a run left in `dir` (nullgpu/report.c), added to *o. */
void vc_dryrun_read(const char *dir, struct vc_dryrun_outcome *o);

/* Replay the recordings of the run into run->o.replay. Never fails: what cannot be read is not
 * known. `other`: the other order of addresses as well. */
void vc_dryrun_replay(struct vc_dryrun *run, bool other);

/* Whether `done` answers for `card` too: same class, never near the limit of the other, and nothing
 * that the program asked would have been answered differently. */
bool vc_dryrun_answers(const struct vc_dryrun *done, const struct vc_dryrun *other);

/* The verdict in words on standard error; of several runs a table with a row a card. */
void vc_dryrun_say(const struct vc_dryrun *run);
void vc_dryrun_say_table(const struct vc_dryrun *runs, size_t n);

/* A row a rank: the largest, how far it is above the mean, and who runs out of memory first. */
void vc_dryrun_say_ranks(const struct vc_dryrun *runs, size_t n);

/* The environment of rank `rank` of `world` on machines of `per_node` cards, as torchrun makes it,
 * for a process that runs without the others. */
int vc_world_put(uint64_t world, uint64_t rank, uint64_t per_node, struct vc_error *err);

/* What ranks that are played one after another told each other lies in `dir`, where they report.
 * Stale: another one told that rank something new since it was played. Forget: it is about to be
 * played (again). */
bool vc_world_stale(const char *dir, uint64_t rank);
void vc_world_forget(const char *dir, uint64_t rank);

struct vc_role {
	uint64_t rank;
	char what[VC_DRYRUN_ROLE];
};
/* The ranks that the program's own groups tell apart, rank 0 first, out of a file that
 * vramcast_null_world.py wrote. None where it formed no group. *roles is the caller's. */
int vc_world_roles(const char *path, struct vc_role **roles, size_t *n, struct vc_error *err);

/* The same as JSON (vramcast.dryrun/1) into the file `path`. */
int vc_dryrun_write(const struct vc_dryrun *runs, size_t n, const char *path, struct vc_error *err);
