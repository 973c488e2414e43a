/* SPDX-License-Identifier: Apache-2.0 */
/* record_keep.h - the options of `record` that say which part of a run is recorded. */
#pragma once

#include "common/error.h"
#include "common/opt.h"
#include "tracer/drain.h"

struct vc_record_keep { const char *keep, *on_oom, *when, *steps, *after, *duration; bool paused; };

/* Into o->ring, o->flight and *watch. */
int vc_record_keep(const struct vc_record_keep *k, struct vc_drain_options *o,
		   struct vc_watch *watch, struct vc_error *err);

/* --stacks (NULL: not given) and --param of `record` and of `dryrun`, before anything runs. */
int vc_record_words(const char *stacks, const struct vc_list *params, struct vc_error *err);
