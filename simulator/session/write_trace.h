/* SPDX-License-Identifier: Apache-2.0 */
/* write_trace.h - the events of a recording, transforms applied, as a trace of our own format. */
#pragma once

#include "common/codec.h"
#include "simulator/session/recording.h"

/* Writes `path` ("-": standard output) whole or not at all. */
int vc_trace_write(const struct vc_recording *rec, const struct vc_list *transforms,
		   const char *path, const struct vc_encoder_options *o, struct vc_error *err);
/* The same into an output, which the caller commits. */
int vc_trace_write_to(const struct vc_recording *rec, const struct vc_list *transforms,
		      struct vc_output *out, const struct vc_encoder_options *o,
		      struct vc_error *err);
