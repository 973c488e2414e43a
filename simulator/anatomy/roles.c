/* SPDX-License-Identifier: Apache-2.0 */
/* roles.c - what call sites say: a backward pass, the optimizer, or neither. */
#include "common/torch_names.h"
#include "simulator/anatomy/period.h"

#include "common/vec.h"

/* The innermost frame only: a second loop elsewhere in the script runs the same model. */
uint64_t vc_site_leaf(const struct vc_meta *m, uint32_t site)
{
	site = vc_frame_caller(m, site);
	if (!site)
		return 0;
	return ((uint64_t)m->frame[site].function << 40) ^ ((uint64_t)m->frame[site].file << 20) ^
	       m->frame[site].line;
}

static enum vc_role frame_role(const struct vc_meta *m, uint32_t frame)
{
	uint32_t n = vc_frame_roles(m, frame, VC_NAME_ENGINE | VC_NAME_BACKWARD | VC_NAME_QUIET |
					      VC_NAME_OPTIMIZER);

	if (n & VC_NAME_ENGINE)
		return VC_ROLE_BACKWARD;
	return n & VC_NAME_QUIET     ? VC_ROLE_NONE :
	       n & VC_NAME_BACKWARD  ? VC_ROLE_BACKWARD :
	       n & VC_NAME_OPTIMIZER ? VC_ROLE_OPTIMIZER : VC_ROLE_NONE;
}

/* A step() that is given a closure runs the forward and the backward pass itself. What is called
 * from where it calls them is not the optimizer's; own[] is what each frame's own name says. */
static void closures(const struct vc_meta *m, const uint8_t *own, bool *closure)
{
	for (size_t i = 1; i < m->frames; i++)
		for (uint32_t f = (uint32_t)i; own[i] == VC_ROLE_BACKWARD && f;) {
			uint32_t parent = m->frame[f].parent;

			f = parent < f ? parent : 0;
			closure[f] = closure[f] || own[f] == VC_ROLE_OPTIMIZER;
			if (own[f] == VC_ROLE_OPTIMIZER)
				break;
		}
}

int vc_named_roles(struct vc_anatomy_work *w, struct vc_error *err)
{
	size_t frames = w->meta ? w->meta->frames : 0;
	uint8_t *own = calloc(frames + 1, 1);
	bool *closure = calloc(frames + 1, sizeof(*closure));

	w->role = calloc(frames + 1, 1);
	if (!w->role || !own || !closure) {
		VC_FREE(own, closure);
		return vc_nomem(err, "the call sites of a trace");
	}
	for (size_t i = 1; i < frames; i++)
		own[i] = (uint8_t)frame_role(w->meta, (uint32_t)i);
	if (frames)
		closures(w->meta, own, closure);
	for (size_t i = 1; i < frames; i++) {
		uint32_t parent = w->meta->frame[i].parent;

		w->role[i] = own[i];
		if (!own[i] && parent < i && !closure[parent])
			w->role[i] = w->role[parent];
	}
	VC_FREE(own, closure);
	return VC_OK;
}

enum vc_role vc_named_role(const struct vc_anatomy_work *w, size_t block)
{
	uint32_t site = w->ev[w->a->block[block].event].site;

	return w->meta && site < w->meta->frames ? (enum vc_role)w->role[site] : VC_ROLE_NONE;
}

/* Threads of the backward pass have no Python frames, but for those of a dry run. */
bool vc_named_by_program(const struct vc_anatomy_work *w, size_t block)
{
	return w->meta && vc_frame_caller(w->meta, w->ev[w->a->block[block].event].site);
}
