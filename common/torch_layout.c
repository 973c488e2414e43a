/* SPDX-License-Identifier: Apache-2.0 */
/* torch_layout.c - see torch_layout.h */
#define _GNU_SOURCE
#include "common/torch_layout.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

/* Computed by a C++ compiler from each version's own c10/cuda/CUDACachingAllocator.h (the value of
 * a pointer to member is 1 + 8 * slot in the Itanium ABI), in the order of the members. */
static const struct vc_torch_slots table[] = {
	{ 0, 0, 3, 4, 5, 6, 9, 10, 13, 14, 16, 18, 19, 21, 0, 0, 0, 0, VC_POOL_BY_GRAPH },
	{ 1, 2, 3, 4, 5, 6, 9, 10, 13, 14, 16, 18, 19, 20, 0, 0, 0, 0, VC_POOL_BY_STREAM },
	{ 3, 5, 4, 6, 7, 8, 11, 12, 15, 16, 18, 20, 21, 22, 0, 0, 0, 0, VC_POOL_BY_ID },
	{ 6, 7, 4, 6, 7, 8, 12, 13, 18, 19, 21, 23, 24, 25, 27, 0, 0, 0, VC_POOL_BY_ID },
	{ 8, 8, 4, 6, 7, 8, 12, 13, 18, 19, 21, 23, 24, 25, 27, 28, 0, 1, VC_POOL_BY_ID },
	{ 9, 9, 4, 12, 13, 14, 17, 7, 22, 9, 11, 24, 25, 26, 28, 29, 0, 1, VC_POOL_BY_ID },
	{ 10, 12, 4, 13, 14, 15, 18, 7, 24, 9, 11, 26, 27, 28, 30, 31, 32, 1, VC_POOL_BY_ID },
	{ 13, 15, 4, 13, 14, 15, 18, 7, 24, 9, 11, 26, 27, 30, 32, 33, 34, 1, VC_POOL_BY_ID },
};

static const struct vc_torch_slots unknown = { .first = 0 };

const struct vc_torch_slots *vc_torch_slots(int minor)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (minor >= table[i].first && minor <= table[i].last)
			return &table[i];
	return &unknown;
}

struct mapped { uintptr_t at, end; };

static int find_mapped(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct mapped *m = arg;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type == PT_LOAD && m->at >= at &&
		    m->at < at + info->dlpi_phdr[i].p_memsz)
			m->end = at + info->dlpi_phdr[i].p_memsz;
	}
	return m->end != 0;
}

void vc_torch_copy_table(void *to[VC_TORCH_BEFORE + VC_TORCH_SLOTS], void **original)
{
	struct mapped m = { (uintptr_t)original, 0 };
	size_t n;

	dl_iterate_phdr(find_mapped, &m); /* its own entries, and what lies behind in the library */
	n = m.end ? (m.end - m.at) / sizeof(void *) : 0;
	memcpy(to, original - VC_TORCH_BEFORE,
	       sizeof(void *) * (VC_TORCH_BEFORE + (n < VC_TORCH_SLOTS ? n : VC_TORCH_SLOTS)));
}

bool vc_torch_version(const void *inside, char *out, size_t n)
{
	char path[1024], text[4096], *p;
	Dl_info info;
	ssize_t got;
	int fd;

	if (!inside || !dladdr(inside, &info) || strlen(info.dli_fname) + 32 > sizeof(path))
		return false;
	snprintf(path, sizeof(path), "%s", info.dli_fname);
	p = strrchr(path, '/');
	if (!p)
		return false;
	snprintf(p, sizeof(path) - (size_t)(p - path), "/../version.py");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	text[0] = '\n'; /* up to 2.1 it is the first line */
	got = read(fd, text + 1, sizeof(text) - 2);
	close(fd);
	text[got > 0 ? got + 1 : 0] = '\0';
	p = strstr(text, "\n__version__"); /* the assignment, not the mention in __all__ */
	p = p ? strchr(p, '=') : NULL;
	p = p ? strpbrk(p, "'\"") : NULL;
	if (p)
		snprintf(out, n, "%.*s", (int)strcspn(p + 1, "'\"\n"), p + 1);
	return p != NULL;
}

int vc_torch_minor_of(const char *version)
{
	return strncmp(version, "2.", 2) ? -1 : (int)strtol(version + 2, NULL, 10);
}
