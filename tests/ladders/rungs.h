/* SPDX-License-Identifier: Apache-2.0 */
/* rungs.h - ladders in folders: one program recorded at several values of a parameter, each in a
 * file NAME_KEYVALUE[_torchVERSION].vct (or .pickle.zst), perhaps with a .json of the same name
 * that says what the allocator counted. */
#ifndef VC_RUNGS_H
#define VC_RUNGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simulator/session/session.h"

enum { RUNGS = 16, LADDERS = 400 };

struct rung { double x; uint64_t reserved, allocated; char path[512]; };
struct ladder {
	char name[160], knob[32], torch[16], conf[64], card[64];
	struct rung rung[RUNGS]; /* ascending */
	size_t n;
};

/* Add the ladders of folder `dir`, and of the folders in it, to the n there are; returns how many
 * there are then. kind: only files of that ending (NULL: all). Sorted by name. */
size_t find_ladders(struct ladder *all, size_t n, const char *dir, const char *kind);

/* What the allocator counted at each rung that has no .json, by the recording itself. How many
 * recordings do not replay exactly; they leave the ladder. */
size_t measure_rungs(struct ladder *l);

/* Rules of predictions that are left out in all sessions: bits by enum vc_rule. */
extern unsigned without_rules;

/* A session over `n` rungs of the ladder, whose options and names the caller lends. */
struct opening {
	struct vc_run_options opt;
	char spec[RUNGS][600], set[64], *path[RUNGS];
	const char *torch, *sets, *card;
};
int open_rungs(struct opening *o, const struct ladder *l, const size_t *rung, size_t n,
	       struct vc_session *s, struct vc_error *err);

/* Peak reserved of a run without limits, and its interval. */
int replay_rung(struct vc_session *s, struct vc_result *out, struct vc_error *err);

#endif
