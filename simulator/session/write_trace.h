/* SPDX-License-Identifier: Apache-2.0 */
/* write_trace.h - the events of a session, what-ifs applied, as a trace of our own format. */
#ifndef VC_WRITE_TRACE_H
#define VC_WRITE_TRACE_H

#include "common/codec.h"
#include "simulator/session/session.h"

/* Writes `path` ("-": standard output) whole or not at all. */
int vc_session_write(const struct vc_session *s, const char *path,
		     const struct vc_encoder_options *o, struct vc_error *err);

#endif
