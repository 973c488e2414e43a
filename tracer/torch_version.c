/* SPDX-License-Identifier: Apache-2.0 */
/* torch_version.c - which PyTorch is loaded: the text of torch/version.py beside its libraries. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include "tracer/recorder.h"
#include "tracer/torch.h"

/* "2.6.0+cu124" from "__version__ = '2.6.0+cu124'" in .../torch/version.py. */
static int read_version(char *out, size_t n)
{
	void *sym = vc_torch_symbol("libc10.so", "_ZN3c108free_cpuEPv");
	char path[1024], text[4096], *p;
	Dl_info info;
	ssize_t got;
	int fd;

	if (!sym || !dladdr(sym, &info) || strlen(info.dli_fname) + 32 > sizeof(path))
		return -1;
	snprintf(path, sizeof(path), "%s", info.dli_fname);
	p = strrchr(path, '/');
	if (!p)
		return -1;
	snprintf(p, sizeof(path) - (size_t)(p - path), "/../version.py");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	text[0] = '\n'; /* up to 2.1 it is the first line */
	got = read(fd, text + 1, sizeof(text) - 2);
	close(fd);
	text[got > 0 ? got + 1 : 0] = '\0';
	p = strstr(text, "\n__version__"); /* the assignment, not the mention in __all__ */
	p = p ? strchr(p, '=') : NULL;
	p = p ? strpbrk(p, "'\"") : NULL;
	if (!p)
		return -1;
	snprintf(out, n, "%.*s", (int)strcspn(p + 1, "'\"\n"), p + 1);
	return 0;
}

int vc_torch_minor(void)
{
	char text[64];

	if (*vc_recorder_option("torch", text, sizeof(text))) /* what a test wants it to be */
		return (int)strtol(text, NULL, 10);
	if (read_version(text, sizeof(text)) < 0 || strncmp(text, "2.", 2) != 0)
		return -1;
	return (int)strtol(text + 2, NULL, 10);
}

void vc_torch_describe(void)
{
	char text[64];

	if (read_version(text, sizeof(text)) == 0)
		vc_recorder_fact("torch", text);
}
