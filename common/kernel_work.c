/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_work.c - see kernel_work.h */
#include "common/kernel_work.h"

static const char *const names[] = {
#define X(id, word) word,
	VC_WORK_KIND_TABLE(X)
#undef X
};

const char *vc_kernel_work_kind(enum vc_work_kind k)
{
	return k < VC_WORK_KINDS ? names[k] : names[VC_WORK_OTHER];
}

const char *vc_kernel_work_text(const struct vc_kernel_work *w, char buf[VC_WORK_TEXT])
{
	snprintf(buf, VC_WORK_TEXT, "%s %s %.0f %.0f %.0f %llu %llu %llu %llu",
		 vc_kernel_work_kind(w->kind), w->type[0] ? w->type : "-", w->flops, w->read,
		 w->written, (unsigned long long)w->dim[0], (unsigned long long)w->dim[1],
		 (unsigned long long)w->dim[2], (unsigned long long)w->dim[3]);
	return buf;
}

/* The next word of the text, at most n - 1 bytes of it. */
static const char *word(const char *at, char *to, size_t n)
{
	size_t len = strcspn(at, " ");

	snprintf(to, n, "%.*s", (int)len, at);
	return at + len + (at[len] == ' ');
}

bool vc_kernel_work_parse(const char *text, struct vc_kernel_work *w)
{
	char kind[16];
	double v[3 + VC_WORK_DIMS];
	const char *at = word(text, kind, sizeof(kind));

	*w = (struct vc_kernel_work){ .kind = VC_WORK_KINDS };
	for (enum vc_work_kind k = VC_WORK_OTHER; k < VC_WORK_KINDS; k++)
		if (!strcmp(kind, names[k]))
			w->kind = k;
	at = word(at, w->type, sizeof(w->type));
	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
		char *end;

		v[i] = strtod(at, &end);
		if (end == at || !(v[i] >= 0 && v[i] < 1e19))
			return false;
		at = end;
	}
	w->flops = v[0];
	w->read = v[1];
	w->written = v[2];
	for (size_t i = 0; i < VC_WORK_DIMS; i++)
		w->dim[i] = (uint64_t)v[3 + i];
	return w->kind < VC_WORK_KINDS && !*at;
}
