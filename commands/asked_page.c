/* SPDX-License-Identifier: Apache-2.0 */
/* asked_page.c - see asked_page.h */
#include "commands/asked_page.h"

#include "common/io.h"
#include "common/system.h"
#include "simulator/session/session.h"
#include "simulator/session/write_trace.h"
#include "tracer/process.h"
#include "visualize/svg.h"

#define BEFORE "<script type=\"application/gzip\""

static void put_base64(struct vc_output *out, const unsigned char *at, size_t n)
{
	static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789+/";

	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)at[i] << 16 | (i + 1 < n ? (uint32_t)at[i + 1] << 8 : 0) |
			     (i + 2 < n ? at[i + 2] : 0);
		char four[4] = { digit[v >> 18], digit[v >> 12 & 63], '=', '=' };

		if (i + 1 < n)
			four[2] = digit[v >> 6 & 63];
		if (i + 2 < n)
			four[3] = digit[v & 63];
		vc_output_write(out, four, 4);
	}
}

/* Settings as the page has them in its address: one attribute each, values in lines. */
static void put_list(struct vc_svg *s, const char *name, const struct vc_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		vc_svg_put(s, "%s%e%s", !i ? name : "\n", list->at[i], i + 1 < list->n ? "" : "\"");
}

static void put_settings(struct vc_svg *s, const struct vc_run_options *o)
{
	put_list(s, " data-g=\"", &o->gpu);
	put_list(s, " data-conf=\"", &o->conf);
	put_list(s, " data-torch=\"", &o->torch);
	put_list(s, " data-used=\"", &o->used);
	put_list(s, " data-x=\"", &o->transform);
	put_list(s, " data-set=\"", &o->set);
	if (o->capacity != VC_NOT_GIVEN)
		vc_svg_put(s, " data-capacity=\"%u\"", o->capacity);
}

/* One recording: read, so that what is no recording and what is no setting says so here. */
static int put_recording(struct vc_output *out, const struct vc_run_options *o, char *path,
			 struct vc_error *err)
{
	struct vc_encoder_options how = { .level = 19, .block = 65536, .copy = true };
	struct vc_run_options as_it_is = *o;
	struct vc_output *trace = vc_output_memory(err);
	struct vc_session s;
	struct vc_plan *plan = NULL;
	struct vc_svg tag = { 0 };
	const char *slash = strrchr(path, '/');
	char *bytes = NULL;
	size_t n = 0;
	int r;

	as_it_is.verify = false;
	as_it_is.set.n = 0;
	r = vc_session_open_one(&s, &as_it_is, path, 0, err);
	if (r == VC_OK)
		r = vc_session_plans(&s, &plan, &n, err);
	if (r == VC_OK)
		r = trace ? vc_trace_write_to(s.rec, NULL, trace, &how, err) : (int)err->status;
	bytes = r == VC_OK ? vc_output_take(trace, &n) : NULL;
	if (r == VC_OK && !bytes)
		r = vc_nomem(err, "the recording");
	if (bytes) {
		vc_svg_put(&tag, "<script type=\"application/octet-stream\" class=\"p-recording\" "
			   "data-name=\"%e\"", slash ? slash + 1 : path);
		put_settings(&tag, o);
		vc_svg_put(&tag, ">");
		vc_output_write(out, tag.text, tag.n);
		put_base64(out, (const unsigned char *)bytes, n);
		vc_output_text(out, "</script>\n");
	}
	vc_svg_fini(&tag);
	free(bytes);
	free(plan);
	vc_session_close(&s);
	vc_output_close(trace);
	return r;
}

static char *read_page(size_t *n, struct vc_error *err)
{
	char *path = VC_PROCESSES ? vc_process_find("vramcast.html", err) : NULL, *page = NULL;
	struct vc_input *in = path ? vc_input_raw(path, err) : NULL;

	if (in)
		page = vc_input_all(in, n, err);
	else if (!path)
		vc_fail(err, VC_EUSAGE, "--ask puts the recording into the page, which is not "
			"here: 'make page' makes it");
	vc_input_close(in);
	free(path);
	return page;
}

int vc_asked_page(const struct vc_run_options *o, size_t n, char **paths, const char *to,
		 struct vc_error *err)
{
	size_t all = 0;
	char *page = read_page(&all, err), *at = page ? strstr(page, BEFORE) : NULL;
	struct vc_output *out = at ? vc_output_open(to, err) : NULL;
	int r = out ? VC_OK : page && !at ? vc_fail(err, VC_EFORMAT, "vramcast.html is no page of "
						    "this program") : (int)err->status;

	if (out)
		vc_output_write(out, page, (size_t)(at - page));
	for (size_t i = 0; r == VC_OK && i < n; i++)
		r = put_recording(out, o, paths[i], err);
	if (r == VC_OK) {
		vc_output_write(out, at, all - (size_t)(at - page));
		r = vc_output_commit(out, err);
	}
	vc_output_close(out);
	free(page);
	return r;
}
