/* SPDX-License-Identifier: Apache-2.0 */
/* write_trace.c - see write_trace.h */
#include "simulator/session/write_trace.h"

static int copy_events(struct vc_source *src, struct vc_encoder *enc, struct vc_error *err)
{
	struct vc_event ev[512];
	long n;
	int r = VC_OK;

	while (r == VC_OK && (n = src->type->next(src, ev, 512, err)) != 0) {
		if (n < 0)
			return (int)n;
		r = vc_encoder_append(enc, ev, (size_t)n, err);
	}
	return r == VC_OK ? vc_encoder_finish(enc, err) : r;
}

int vc_trace_write_to(const struct vc_recording *rec, const struct vc_list *transforms,
		      struct vc_output *out, const struct vc_encoder_options *o,
		      struct vc_error *err)
{
	struct vc_source *src = vc_recording_source(rec, transforms, err);
	struct vc_encoder *enc = src ? vc_encoder_new(out, src->meta, o, err) : NULL;
	int r = enc ? copy_events(src, enc, err) : (int)err->status;

	vc_encoder_free(enc);
	vc_source_free(src);
	return r;
}

int vc_trace_write(const struct vc_recording *rec, const struct vc_list *transforms,
		   const char *path, const struct vc_encoder_options *o, struct vc_error *err)
{
	struct vc_output *out = vc_output_open(path, err);
	int r = out ? vc_trace_write_to(rec, transforms, out, o, err) : (int)err->status;

	if (r == VC_OK)
		r = vc_output_commit(out, err);
	vc_output_close(out);
	return r;
}
