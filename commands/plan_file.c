/* SPDX-License-Identifier: Apache-2.0 */
/* plan_file.c - see plan_file.h. */
#define _GNU_SOURCE
#include "commands/plan_file.h"

#include "common/io.h"

int vc_plan_file_write(const struct vc_memory_plan *p, const char *path, struct vc_error *err)
{
	struct vc_output *out = vc_output_open(path, err);
	char *text = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);
	int r = out ? VC_OK : (int)err->status;

	if (out && (!to || vc_memory_plan_write(p, to) < 0))
		r = vc_nomem(err, "the plan");
	if (to && fclose(to) != 0 && r == VC_OK)
		r = vc_nomem(err, "the plan");
	if (r == VC_OK) {
		vc_output_write(out, text, n);
		r = vc_output_commit(out, err);
	}
	vc_output_close(out);
	free(text);
	return r;
}
