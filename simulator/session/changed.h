/* SPDX-License-Identifier: Apache-2.0 */
/* changed.h - a trace as transforms leave it, made once and replayed many times. */
#pragma once

#include "common/opt.h"
#include "simulator/replay/source.h"

typedef struct vc_source *vc_pipeline_fn(struct vc_source *src, const struct vc_list *transforms,
					 struct vc_error *err);

/* A source over what `pipeline` makes of t, which keeps it (simulator/replay/memo.h). path: of its
 * file, for the message when the transforms refuse it. NULL: failure. Thread-safe. */
struct vc_source *vc_changed_source(const struct vc_trace *t, const char *path,
				    const struct vc_list *transforms, vc_pipeline_fn *pipeline,
				    struct vc_error *err);
