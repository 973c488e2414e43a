/* SPDX-License-Identifier: Apache-2.0 */
/* world.h - a model and its device, for benches, and a program played on it. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "simulator/replay/model.h"
#include "training.h"

struct world {
	struct vc_model m;
	struct vc_device_config device;
	struct vc_streams streams;
	struct vc_block *block;
};

static const uint64_t default_stream[1] = { 0 };

static void close_world(struct world *w)
{
	if (w->m.type->fini)
		w->m.type->fini(&w->m);
	vc_device_free_all(w->m.device);
	free(w->m.state);
	free((void *)(uintptr_t)w->m.config);
	free(w->block);
}

static void play(struct world *w, const struct program *p)
{
	struct vc_error err;

	for (size_t k = 0; k < p->n; k++) {
		const struct step *s = &p->s[k];

		if (s->size) {
			struct vc_request rq = { .id = s->slot + 1, .size = s->size };

			if (w->m.type->alloc(&w->m, &rq, &w->block[s->slot], &err) != VC_DONE) {
				fprintf(stderr, "bench: %s: %s\n", w->m.type->name, w->m.note);
				exit(2);
			}
		} else {
			w->m.type->free(&w->m, &w->block[s->slot]);
		}
	}
}
