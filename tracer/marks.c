/* SPDX-License-Identifier: Apache-2.0 */
/* marks.c - see marks.h. */
#include "tracer/marks.h"

#include "tracer/cuda_device.h"
#include "tracer/names.h"
#include "tracer/recorder.h"
#include "tracer/torch.h"

void vc_marks_put(enum vc_mark what, uint32_t name)
{
	vc_marks_value(what, name, 0);
}

void vc_marks_value(enum vc_mark what, uint32_t name, uint64_t bytes)
{
	/* Of the card this thread works on: a rank has not the first one, and its steps are that
	 * card's. */
	uint16_t device = vc_torch_watching() ? vc_cuda_device() : 0;

	if (vc_record_put((struct vc_record){ .kind = VC_EV_MARK, .flags = (uint8_t)what,
					      .device = device, .size = bytes, .text = name }) &&
	    vc_recorder_how(VC_CAP_MARKS) != VC_HOW_RECORDED)
		vc_recorder_capability(VC_CAP_MARKS, VC_HOW_RECORDED);
}

void vc_marks_refusal(const char *memory, size_t bytes)
{
	char text[80];

	snprintf(text, sizeof(text), "%s allocation of %zu bytes refused", memory, bytes);
	vc_marks_put(VC_MARK_INSTANT, vc_names_put(text));
}
