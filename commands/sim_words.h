/* SPDX-License-Identifier: Apache-2.0 */
/* sim_words.h - what sim says of a recording and of one run, in words. */
#pragma once

#include "simulator/advise/advice.h"
#include "common/emit.h"
#include "simulator/session/session.h"

const char *vc_sim_trust_line(const struct vc_session *s, char *buf, size_t n);
void vc_sim_say_transforms(struct vc_emit *e, const struct vc_session *s);
void vc_sim_say_recorded_oom(struct vc_emit *e, const struct vc_recording *rec, bool predicted);
const char *vc_sim_why_device(const struct vc_session *s);
void vc_sim_say_oom(struct vc_emit *e, const struct vc_result *r);
void vc_sim_say_spark(struct vc_emit *e, const struct vc_result *r);
void vc_sim_say_counters(struct vc_emit *e, const struct vc_session *s, const struct vc_result *r);

/* One change, as JSON. */
void vc_sim_emit_advice(struct vc_emit *e, const struct vc_advice *a);
