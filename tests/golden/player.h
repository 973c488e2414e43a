/* SPDX-License-Identifier: Apache-2.0 */
/* player.h - plays a script through the torch model and writes what happens in the recorded
 * format. */
#ifndef VC_PLAYER_H
#define VC_PLAYER_H

#include "script.h"
#include "simulator/replay/model.h"

#define MAX_STREAMS 64

struct text { char *s; size_t n, cap; };

struct player {
	const struct script *sc;
	struct vc_model model[MAX_DEVICES], *m; /* m: of the current device */
	struct vc_model *speaker; /* whose note tells what went wrong */
	struct listener { struct player *p; uint64_t base; } listener[MAX_DEVICES];
	struct vc_streams streams;
	uint64_t handle[MAX_STREAMS];
	struct vc_block *block;
	bool *live;
	uint8_t *on; /* device of a block */
	struct text out, note;
	bool changed, check;
	char kind; /* of the current operation */
	uint64_t id, size;
	size_t since, index, faults; /* faults: calls that the driver refused as wrong */
	size_t torn;                 /* operations until a part of a segment was given back */
	char broken[256];
};

void put(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Play everything; out and note hold the lines, broken an invariant that did not hold. */
void player_run(struct player *p, const struct script *sc, const char *version, bool check);
void player_end(struct player *p);

/* Where two texts differ first; false: they are the same. */
struct difference { size_t line, op; char want[320], got[320]; };
bool text_differs(const char *want, const char *got, struct difference *d);

#endif
