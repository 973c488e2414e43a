/* SPDX-License-Identifier: Apache-2.0 */
/* play.h - random scripts for an allocator, and the model's side of comparing what the real one did
 * with them, line by line. What scripts and results look like is the folder's affair that uses it:
 * tests/oracle-bfc, tests/oracle-rmm. */
#ifndef VC_PLAY_H
#define VC_PLAY_H

#include "simulator/replay/model.h"
#include "tests/support/dice.h"

#define PLAY_MOST 200000 /* highest number of a block */
#define PLAY_LINE 512
#define PLAY_MIB (1ull << 20)

/* ---- the model ---- */
struct player {
	struct vc_model m;
	struct vc_block *block; /* by number */
	bool *live;
	char (*said)[PLAY_LINE]; /* lines of the current operation */
	unsigned lines, cap;
	uint64_t operations, refused, returned, smaller, failed;
};

/* How a folder's scripts are read. */
struct play_rules {
	/* The first lines of script and result: the model's parameters, the device. */
	const char *(*begin)(const char *script, const char *result, char *params, size_t room,
			     struct vc_device_config *d); /* gives the model's name */
	void (*line)(struct player *p, const char *line); /* one operation: says what happens */
};

void play_say(struct player *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* enum vc_answer; an error ends the program. */
int play_alloc(struct player *p, uint64_t id, uint64_t size, uint32_t stream);
/* What a device with the address policy of that name does: "inc", "dec", "fit", "mix". */
enum vc_va_policy play_policy(const char *name);

/* Plays a script and hands over the player at the end. */
void play_script(const struct play_rules *r, const char *script,
		 void (*end)(struct player *p, void *arg), void *arg);
/* Compares SCRIPT RESULT pairs, and prints the sums: 0 when there is no difference. */
int play_compare(const struct play_rules *r, int n, char **files);

#endif
