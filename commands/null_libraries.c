/* SPDX-License-Identifier: Apache-2.0 */
/* null_libraries.c - see null_libraries.h */
#define _GNU_SOURCE
#include "commands/null_libraries.h"

#include <errno.h>
#include <unistd.h>

#include "tracer/process.h"

int vc_null_libraries(char *out, size_t n, struct vc_error *err)
{
	static const char *const places[] = { "nullgpu", "../lib/vramcast" };
	char self[1024], probe[1200];
	ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);

	if (len < 0)
		return vc_fail(err, VC_EIO, "cannot read /proc/self/exe: %s", strerror(errno));
	self[len] = 0;
	*strrchr(self, '/') = 0;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		snprintf(out, n, "%s/%s", self, places[i]);
		snprintf(probe, sizeof probe, "%s/vcnull-libcuda.so.1", out);
		if (access(probe, R_OK) == 0)
			return 0;
	}
	char *tracer = vc_process_library(err);

	if (!tracer)
		return err->status;
	snprintf(out, n, "%.*s", (int)(strrchr(tracer, '/') - tracer), tracer);
	snprintf(probe, sizeof probe, "%s/vcnull-libcuda.so.1", out);
	free(tracer);
	if (access(probe, R_OK) == 0)
		return 0;
	return vc_fail(err, VC_EIO, "the null GPU's libraries are not beside %s; run 'make' or "
		       "'make install'", self);
}
