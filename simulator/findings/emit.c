/* SPDX-License-Identifier: Apache-2.0 */
/* emit.c - findings for programs. */
#include "common/emit.h"
#include "simulator/findings/findings.h"

static void emit_sentences(struct vc_emit *e, const struct vc_result *r)
{
	char text[VC_SAY];

	vc_emit_object(e, "text", NULL);
	vc_answer_text(r, false, text, sizeof(text));
	vc_emit_text(e, "answer", NULL, text);
	vc_cause_text(r, VC_PAGE, text, sizeof(text));
	vc_emit_text(e, "cause", NULL, *text ? text : NULL);
	vc_help_text(r, text, sizeof(text));
	vc_emit_text(e, "help", NULL, *text ? text : NULL);
	vc_grows_text(r, VC_PAGE, text, sizeof(text));
	vc_emit_text(e, "leak", NULL, *text ? text : NULL);
	vc_emit_end(e);
}

static void emit_known(struct vc_emit *e, const char *name, bool known, uint64_t v)
{
	if (known)
		vc_emit_uint(e, name, NULL, v);
	else
		vc_emit_null(e, name, NULL);
}

void vc_findings_emit(struct vc_emit *e, const struct vc_result *r)
{
	struct vc_findings f = vc_findings_of(r);

	vc_emit_object(e, "findings", NULL);
	vc_emit_text(e, "cause", NULL, vc_cause_name(f.cause));
	emit_known(e, "room", f.room != 0, f.room);
	vc_emit_uint(e, "floor", NULL, f.floor);
	vc_emit_uint(e, "used_low", NULL, f.low);
	vc_emit_uint(e, "used_high", NULL, f.high);
	vc_emit_uint(e, "lacks_low", NULL, f.lacks_low);
	vc_emit_uint(e, "lacks_high", NULL, f.lacks_high);
	emit_known(e, "leak_a_step", f.leak != 0, f.leak);
	emit_known(e, "steps_left", f.left != UINT64_MAX, f.left);
	emit_known(e, "step", f.stepped, f.step);
	vc_emit_text(e, "phase", NULL, *f.phase ? f.phase : NULL);
	emit_sentences(e, r);
	vc_emit_end(e);
}
