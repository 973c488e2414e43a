/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_view.c - vramcast view: a report or a picture in the browser of this desktop. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <errno.h>
#include <unistd.h>

#include "common/opt.h"
#include "nullgpu/python.h"

static int view_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	static const char *const opener[] = { "xdg-open", "wslview", "gio", "sensible-browser" };
	const char *ssh = getenv("SSH_CONNECTION"), *x = getenv("DISPLAY");
	const char *w = getenv("WAYLAND_DISPLAY");
	bool far = (ssh && *ssh) || !((x && *x) || (w && *w));
	char path[4096], program[1024];

	if (argc != 1)
		return vc_fail(&con->err, VC_EUSAGE, "which file? vramcast view report.html");
	if (!realpath(argv[0], path))
		return vc_fail(&con->err, VC_EIO, "cannot open %s: %s", argv[0], strerror(errno));
	printf("%s\n", path);
	for (size_t i = 0; !far && i < sizeof(opener) / sizeof(*opener); i++)
		if (vc_python_path(opener[i], program, sizeof(program)) == 0) {
			fflush(stdout);
			execl(program, opener[i], i == 2 ? "open" : path, i == 2 ? path : NULL,
			      (char *)NULL);
		}
	if (!con->quiet)
		fprintf(stderr, "vramcast: %s; open it where you sit%s\n",
			far ? "there is no desktop here" : "no program that opens files was found",
			ssh && *ssh ? ", after scp or sftp" : "");
	return 0;
}

const struct vc_command vc_command_view = {
	.name = "view", .operands = "FILE",
	.summary = "open a report or picture; over SSH say where it is",
	.run = view_run,
};
