/* SPDX-License-Identifier: Apache-2.0 */
/* anything_words.h - what makes a run fit, in words and as JSON. */
#pragma once

#include "common/emit.h"
#include "simulator/search/anything.h"

/* A combination that was really made in a dry run. */
struct vc_any_proof {
	enum vc_any_effect effect;
	size_t at;         /* of found[effect] */
	bool fits, inside; /* inside: of the interval that was predicted */
	uint64_t reserved;
};

/* Into an open object. proof may be NULL. */
void vc_anything_say(struct vc_emit *e, const struct vc_anything *q,
		     const struct vc_any_proof *proof, size_t proofs);
