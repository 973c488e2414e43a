/* SPDX-License-Identifier: Apache-2.0 */
/* words.c - what a picture says in words: titles, settings, verdicts. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "visualize/scene.h"

static void append(char *buf, size_t cap, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void append(char *buf, size_t cap, const char *fmt, ...)
{
	size_t n = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	if (n < cap)
		vsnprintf(buf + n, cap - n, fmt, ap);
	va_end(ap);
}

/* The file's name without its folders: pictures are shared, paths are nobody's business. */
void vc_trace_name(const struct vc_result *r, char *buf, size_t cap)
{
	const char *path = r->info.trace            ? r->info.trace :
			   r->meta && r->meta->path ? r->meta->path :
						      "trace";
	const char *slash = strrchr(path, '/');

	snprintf(buf, cap, "%s", slash && slash[1] ? slash + 1 : path);
}

void vc_title_text(const struct vc_result *r, const char *what, char *buf, size_t cap)
{
	char name[160];

	vc_trace_name(r, name, sizeof(name));
	snprintf(buf, cap, "%s \xE2\x80\x93 %s of GPU %u", name, what, (unsigned)r->info.device);
}

void vc_run_text(const struct vc_result *r, char *buf, size_t cap)
{
	char tmp[VC_FORMAT];
	const struct vc_run_info *i = &r->info;

	snprintf(buf, cap, "simulated%s%s%s: ", r->trust.level ? " (" : "",
		 r->trust.level ? vc_level_name(r->trust.level) : "", r->trust.level ? ")" : "");
	if (i->owner && i->torch)
		append(buf, cap, "%s %s allocator", i->owner, i->torch);
	else
		append(buf, cap, "model %s", i->model ? i->model : "unknown");
	append(buf, cap, ", %s", i->conf && *i->conf ? i->conf : "default settings");
	append(buf, cap, ", %s", i->change && *i->change ? i->change : "workload as recorded");
	if (i->gpu)
		append(buf, cap, ", on %s", i->gpu);
	if (i->capacity)
		append(buf, cap, " with %s", vc_format_bytes(i->capacity, tmp));
	if (i->warm)
		append(buf, cap, ", from the heap at the first event");
	else if (i->rebuilt)
		append(buf, cap, ", blocks of the first event's heap asked for anew");
}

void vc_conf_text(const struct vc_result *r, char *buf, size_t cap)
{
	const char *conf = r->info.conf;

	if (r->info.model && !r->info.torch)
		snprintf(buf, cap, "model %s", r->info.model);
	else
		snprintf(buf, cap, "PYTORCH_CUDA_ALLOC_CONF=%s",
			 conf && *conf ? conf : "(default)");
}

void vc_trust_text(const struct vc_result *r, char *buf, size_t cap)
{
	static const char *const words[] = {
		[VC_LEVEL_NONE] = "",
		[VC_EXACT] = "exact: the model reproduces the recording, and no request of it was "
			     "changed",
		[VC_ALLOCATOR_ONLY] = "allocator only: the requests are those of the recording, "
				      "which another version or framework would make differently",
		[VC_EXTRAPOLATED] = "extrapolated from recordings at other values",
		[VC_BOUNDS] = "bounds: what was changed was not recorded",
		[VC_UNVERIFIED] = "unverified: the recording was not checked, or not reproduced",
		[VC_UNKNOWN] = "unknown: how far off the change may be was never measured" };

	snprintf(buf, cap, "%s", words[r->trust.level]);
}

/* "the run fits", "the run may fit: ..." */
static const char *predicate(const struct vc_result *r)
{
	if (vc_result_verdict(r) != VC_UNDECIDED || r->trust.endless)
		return vc_verdict_word(r, NULL);
	return r->trust.high == VC_FLUSHES ? "may fit only by flushing the cache" :
					     "may fit or run out of memory";
}

void vc_verdict_text(const struct vc_result *r, char *buf, size_t cap)
{
	char a[VC_FORMAT], b[VC_FORMAT], c[VC_FORMAT];

	snprintf(buf, cap, "The run %s: peak reserved %s", predicate(r),
		 vc_format_bytes(r->stats.peak_reserved, a));
	if (r->has_interval)
		append(buf, cap, " (between %s and %s)", vc_format_bytes(r->low, a),
		       vc_format_bytes(r->high, b));
	append(buf, cap, ", peak allocated %s", vc_format_bytes(r->stats.peak_allocated, b));
	if (r->info.capacity)
		append(buf, cap, ", capacity %s", vc_format_bytes(r->info.capacity, c));
	if (r->oom.happened)
		append(buf, cap, "; a request of %s failed at event %llu",
		       vc_format_bytes(r->oom.request, a), (unsigned long long)r->oom.event);
	append(buf, cap, ".");
}
