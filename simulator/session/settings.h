/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - the allocator settings that a recording says it was made under. */
#pragma once

#include "common/meta.h"
#include "simulator/replay/model.h"

/* The program that was recorded ran with these settings, so its allocator knew them. An option
 * that `m` does not know in this version (NULL: in any) leaves meta->conf, and a note in `meta`
 * names it. Settings that a user asks for never come here: the model refuses them. */
void vc_settings_known(struct vc_meta *meta, const struct vc_model_type *m, const char *version);
