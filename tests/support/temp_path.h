/* SPDX-License-Identifier: Apache-2.0 */
/* temp_path.h - one file for all tests of a program: made before them, gone behind them. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[300];

static int make_path(void **state)
{
	const char *tmp = getenv("TMP");
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/vc-test-XX" "XX" "XX", tmp ? tmp : "/tmp");
	fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int drop_path(void **state)
{
	(void)state;
	return unlink(path);
}
