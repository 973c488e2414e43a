/* SPDX-License-Identifier: Apache-2.0 */
/* told.h - what a test saw stays what it was: tests/golden/told has a line for each part of it,
 * with a checksum. `make answers` writes them anew, when a change is meant. */
#pragma once

#include <stdbool.h>

#include "tests/support/test.h"

#define TOLD_NOTHING 14695981039346656037ull /* FNV-1a */

static uint64_t told_sum = TOLD_NOTHING;

/* But for the version, which every page names. */
__attribute__((unused)) static void tell(const void *what, size_t n)
{
	static const char version[] = VC_VERSION;
	const unsigned char *p = what;

	for (size_t i = 0; i < n; i++) {
		if (n - i >= sizeof(version) - 1 && !memcmp(p + i, version, sizeof(version) - 1))
			i += sizeof(version) - 1;
		if (i < n)
			told_sum = (told_sum ^ p[i]) * 1099511628211ull;
	}
}

#ifdef __x86_64__
enum { TOLD_HERE = true };
#else
enum { TOLD_HERE = false }; /* others round otherwise */
#endif

/* Of all that was told since the last time. */
__attribute__((unused)) static void told_is(const char *file, const char *part)
{
	static bool written;
	char path[200], name[200], line[300];
	unsigned long long sum = told_sum, known;

	told_sum = TOLD_NOTHING;
	snprintf(path, sizeof(path), "tests/golden/told/%s.txt", file);
	if (getenv("VC_UPDATE_GOLDEN")) {
		FILE *f = fopen(path, written ? "a" : "w");

		assert_non_null(f);
		fprintf(f, "%016llx %s\n", sum, part);
		assert_int_equal(fclose(f), 0);
		written = true;
		return;
	}
	if (!TOLD_HERE)
		return;
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx %199[^\n]", &known, name) == 2 && !strcmp(name, part))
			break;
		else
			*line = '\0';
	fclose(f);
	if (!*line || known != sum)
		fail_msg("%s is not what it was (when that is meant: make answers)", part);
}
