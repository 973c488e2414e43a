/* SPDX-License-Identifier: Apache-2.0 */
/* alias.c - see alias.h. The loader takes a library for another one only if the name that it
 * carries inside is the one that is asked for, so a link does not do. */
#define _GNU_SOURCE /* memmem */
#include "nullgpu/alias.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <sys/stat.h>

enum { HASH = 8, LONGEST = 64 }; /* hexadecimal digits; room for a name in the model */

bool vc_alias_base(const char *soname, char *out, size_t size)
{
	const char *so = strstr(soname, ".so.");
	size_t n = so ? (size_t)(so - soname) : 0;
	if (n <= HASH + 1 || (so[-HASH - 1] != '.' && so[-HASH - 1] != '-'))
		return false;
	for (int i = 1; i <= HASH; i++)
		if (!isxdigit((unsigned char)so[-i]))
			return false;
	size_t major = 4 + strspn(so + 4, "0123456789"); /* whole versions are packed, too */
	snprintf(out, size, "%.*s%.*s", (int)(n - HASH - 1), soname, (int)major, so);
	return true;
}

/* The System V hash of a version's name, by which the loader looks for it. */
static uint32_t hash_of(const char *name)
{
	uint32_t h = 0, high;
	for (; *name; name++) {
		h = (h << 4) + (unsigned char)*name;
		high = h & 0xf0000000;
		h = (h ^ (high >> 24)) & ~high;
	}
	return h;
}

static void hash_versions(unsigned char *at, const Elf64_Shdr *section, const Elf64_Shdr *all)
{
	const char *strings = (const char *)at + all[section->sh_link].sh_offset;
	unsigned char *p = at + section->sh_offset;
	for (;;) {
		Elf64_Verdef *def = (void *)p;
		const Elf64_Verdaux *name = (const void *)(p + def->vd_aux);
		def->vd_hash = hash_of(strings + name->vda_name);
		if (!def->vd_next)
			return;
		p += def->vd_next;
	}
}

/* Wherever the model has 64 times that letter, the name stands. */
static bool fill_in(unsigned char *at, size_t size, char letter, const char *name)
{
	char mark[LONGEST];
	memset(mark, letter, sizeof mark);
	unsigned char *p = memmem(at, size, mark, sizeof mark);
	if (!p || strlen(name) >= LONGEST)
		return false;
	for (; p; p = memmem(at, size, mark, sizeof mark)) {
		memset(p, 0, sizeof mark);
		memcpy(p, name, strlen(name));
	}
	return true;
}

static bool make(unsigned char *at, size_t size, const char *soname, const char *base)
{
	const Elf64_Ehdr *h = (const void *)at;
	if (size < sizeof *h || h->e_shoff + h->e_shnum * sizeof(Elf64_Shdr) > size)
		return false;
	if (!fill_in(at, size, 'S', soname) || !fill_in(at, size, 'N', base) ||
	    !fill_in(at, size, 'V', base))
		return false;
	const Elf64_Shdr *s = (const void *)(at + h->e_shoff);
	for (int i = 0; i < h->e_shnum; i++)
		if (s[i].sh_type == SHT_GNU_verdef)
			hash_versions(at, &s[i], s);
	return true;
}

int vc_alias_write(const char *model, const char *path, const char *soname, const char *base,
		   struct vc_error *err)
{
	struct stat st;
	unsigned char *at = NULL;
	FILE *in = fopen(model, "rb"), *out = NULL;
	int rc = vc_fail(err, VC_EIO, "cannot read %s", model);
	if (!in || fstat(fileno(in), &st) < 0 || !(at = malloc((size_t)st.st_size)) ||
	    fread(at, 1, (size_t)st.st_size, in) != (size_t)st.st_size)
		goto out;
	rc = vc_fail(err, VC_EINTERNAL, "%s cannot become %s", model, soname);
	if (!make(at, (size_t)st.st_size, soname, base))
		goto out;
	out = fopen(path, "wb");
	rc = !out || fwrite(at, 1, (size_t)st.st_size, out) != (size_t)st.st_size ?
		vc_fail(err, VC_EIO, "cannot write %s: %s", path, strerror(errno)) : 0;
out:
	if (in)
		fclose(in);
	if (out && fclose(out) && !rc)
		rc = vc_fail(err, VC_EIO, "cannot write %s: %s", path, strerror(errno));
	free(at);
	return rc;
}
