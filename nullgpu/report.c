/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - what a process leaves for `vramcast dryrun`: peaks, refusals, and the questions
 * about memory that the null GPU answered with a bound instead of what the library would say. */
#include "nullgpu/null.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_BOUNDS 512

static const char *bounds[MAX_BOUNDS];
static unsigned n_bounds;

void vc_null_touch(const char *name, unsigned char *seen)
{
	if (*seen)
		return;
	*seen = 1;
	if (vc_null_card()->log > 0)
		vc_null_log("no behaviour of its own, answers success: %s", name);
}

void vc_null_bound(const char *name, unsigned char *seen)
{
	if (*seen)
		return;
	*seen = 1;
	unsigned i = __atomic_fetch_add(&n_bounds, 1, __ATOMIC_SEQ_CST);
	if (i < MAX_BOUNDS)
		bounds[i] = name;
	if (vc_null_card()->log > 0)
		vc_null_log("answers with a bound: %s", name);
}

/* From the python side: a size that depends on values nobody computed; the name stays theirs. */
VC_SHARED void vc_null_values_unknown(const char *name);

void vc_null_values_unknown(const char *name)
{
	unsigned char seen = 0;
	vc_null_bound(name, &seen);
}

/* A forked child that never used the device has nothing to add to what its parent reports. */
static pid_t owner;

__attribute__((constructor)) static void note_owner(void)
{
	owner = getpid();
}

static void write_report(FILE *f)
{
	for (int i = 0; i < vc_null_card()->devices; i++) {
		struct vc_null_usage u;
		vc_null_usage(i, &u);
		if (u.peak)
			fprintf(f, "peak %d %llu\n", i, (unsigned long long)u.peak);
		if (u.refused)
			fprintf(f, "refused %d %llu %llu\n", i, (unsigned long long)u.refused,
				(unsigned long long)u.largest_refused);
		if (u.asked)
			fprintf(f, "asked %llu\n", (unsigned long long)u.asked);
	}
	if (vc_null_polled())
		fprintf(f, "polled %llu\n", (unsigned long long)vc_null_polled());
	for (unsigned i = 0; i < n_bounds && i < MAX_BOUNDS; i++)
		if (bounds[i])
			fprintf(f, "bound %s\n", bounds[i]);
}

__attribute__((destructor)) static void leave_report(void)
{
	const char *dir = getenv("VRAMCAST_NULL_REPORT");
	char path[1024];
	if (!dir || !*dir || getpid() != owner || !vc_null_was_used())
		return;
	snprintf(path, sizeof path, "%s/report.%d", dir, (int)getpid());
	FILE *f = fopen(path, "w");
	if (!f)
		return;
	write_report(f);
	fclose(f);
}
