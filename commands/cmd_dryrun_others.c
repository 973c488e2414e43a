/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dryrun_others.c - memory of other processes on the card of a dry run: SIZE or SIZE@PID. */
#define _GNU_SOURCE /* setenv */

#include "commands/cmd_dryrun.h"
#include "commands/put.h"
#include "common/param.h"

static int parse(const char *text, uint64_t *bytes, uint64_t *pid, struct vc_error *err)
{
	char size[64];
	const char *at = strchr(text, '@');

	snprintf(size, sizeof size, "%.*s", at ? (int)(at - text) : 63, text);
	if (vc_parse_size(size, bytes, err) < 0 || (at && vc_parse_uint(at + 1, pid, err) < 0))
		return vc_wrap(err, "--used %s", text);
	return 0;
}

int vc_dryrun_others(const struct vc_list *used, uint64_t *sum, struct vc_error *err)
{
	uint64_t bytes, pid;

	for (size_t i = 0; i < used->n; i++) {
		VC_TRY(parse(used->at[i], &bytes, &pid, err));
		*sum += bytes;
	}
	return 0;
}

int vc_dryrun_put_others(const struct vc_list *used, struct vc_error *err)
{
	char text[1024] = "";
	size_t n = 0;

	for (size_t i = 0; i < used->n && n < sizeof text - 64; i++) {
		uint64_t bytes, pid = 1000 + i;

		VC_TRY(parse(used->at[i], &bytes, &pid, err));
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%llu@%llu", n ? "," : "",
				      (unsigned long long)bytes, (unsigned long long)pid);
	}
	return vc_put("VRAMCAST_NULL_OTHERS", text, err);
}
