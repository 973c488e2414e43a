/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.h - small data between the ranks of a job, through files of the dry run's private
 * folder.
 *
 * A message is named by communicator, sender, receiver and number; writing never waits. */
#pragma once

#include "common/std.h"

struct vc_exchange {
	uint64_t key;  /* the same in all ranks of a communicator */
	int ranks, rank;
	bool alone;    /* no folder, or somebody did not answer: nothing is sent any more */
	bool equal;    /* no other rank runs: each does what this one does */
	bool own;      /* ... and was played under other conditions: this one's word goes first */
	struct vc_played { int rank, global; } *played; /* of equal ones those that were played
		before, in order; `global`: in the job */
	int n_played;
};

enum { VC_TO_ALL = -1 };

/* Takes part under `key` as `rank` of `ranks`; without a private folder the rank is alone. With
 * VRAMCAST_NULL_WORLD set all ranks are equal: what another would have sent to this one is what
 * this one sent to itself. */
void vc_exchange_open(struct vc_exchange *x, uint64_t key, int ranks, int rank);
/* Posts message `number` for `to` (a rank, or VC_TO_ALL). False when alone. */
bool vc_exchange_put(struct vc_exchange *x, uint64_t number, int to, const void *data, size_t size);
/* Message `number` from rank `from` to `to`, `size` bytes. `wait`: until it is there, the sender
 * ends or ten minutes pass (then the rank is alone, which is said once). False: not there. */
bool vc_exchange_get(struct vc_exchange *x, uint64_t number, int from, int to, void *data,
		     size_t size, bool wait);
void vc_exchange_close(struct vc_exchange *x);
/* Of equal ranks. Says posts as put does. Who was played before and would hear something else now
 * than it took for granted is to be played again: what it told itself (`alike`: all of a collective
 * tell something), or nothing. */
void vc_exchange_say(struct vc_exchange *x, uint64_t number, int to, const void *data, size_t size,
		     bool alike);
/* What a rank that was played said, if it was of that size. */
bool vc_exchange_hear(struct vc_exchange *x, uint64_t number, int from, int to, void *data,
		      size_t size);
/* A number that depends on `n` bytes at `data` and on `seed`. */
uint64_t vc_exchange_key(uint64_t seed, const void *data, size_t n);
