/* SPDX-License-Identifier: Apache-2.0 */
/* elf.c - reads the dynamic section of 64-bit shared objects of this machine's byte order. */
#include "nullgpu/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct vc_elf {
	const unsigned char *at;
	size_t size;
	const Elf64_Dyn *dynamic;
	size_t n_dynamic;
	const Elf64_Sym *symbols;
	size_t n_symbols;
	const Elf64_Half *versions;     /* one a symbol, or NULL */
	const Elf64_Verneed *verneed;   /* or NULL */
	size_t n_verneed;
	const char *strings;
	size_t n_strings;
};

/* The bytes [offset, offset + size) or NULL when they are not in the file. */
static const void *piece(const struct vc_elf *e, uint64_t offset, uint64_t size)
{
	return offset <= e->size && size <= e->size - offset ? e->at + offset : NULL;
}

static const char *string(const struct vc_elf *e, uint64_t offset)
{
	if (offset >= e->n_strings || !memchr(e->strings + offset, 0, e->n_strings - offset))
		return NULL;
	return e->strings + offset;
}

static void take_section(struct vc_elf *e, const Elf64_Shdr *s)
{
	const void *p = s->sh_type == SHT_NOBITS ? NULL : piece(e, s->sh_offset, s->sh_size);
	if (!p)
		return;
	if (s->sh_type == SHT_DYNAMIC) {
		e->dynamic = p;
		e->n_dynamic = s->sh_size / sizeof *e->dynamic;
	} else if (s->sh_type == SHT_DYNSYM) {
		e->symbols = p;
		e->n_symbols = s->sh_size / sizeof *e->symbols;
	} else if (s->sh_type == SHT_GNU_versym) {
		e->versions = p;
	} else if (s->sh_type == SHT_GNU_verneed) {
		e->verneed = p;
		e->n_verneed = s->sh_size;
	}
}

static int parse(struct vc_elf *e)
{
	const Elf64_Ehdr *h = piece(e, 0, sizeof *h);
	if (!h || memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != ELFCLASS64)
		return -1;
	const Elf64_Shdr *s = piece(e, h->e_shoff, (uint64_t)h->e_shnum * sizeof *s);
	if (!s || h->e_shentsize != sizeof *s)
		return -1;
	for (int i = 0; i < h->e_shnum; i++) {
		take_section(e, &s[i]);
		if (s[i].sh_type == SHT_DYNSYM && s[i].sh_link < h->e_shnum) {
			const Elf64_Shdr *str = &s[s[i].sh_link];
			e->strings = piece(e, str->sh_offset, str->sh_size);
			e->n_strings = str->sh_size;
		}
	}
	return e->dynamic && e->symbols && e->strings ? 0 : -1;
}

struct vc_elf *vc_elf_open(const char *path, struct vc_error *err)
{
	struct stat st;
	struct vc_elf *e = calloc(1, sizeof *e);
	int fd = e ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0 || fstat(fd, &st) < 0) {
		vc_fail(err, VC_EIO, "cannot read %s: %s", path, strerror(errno));
		goto fail;
	}
	void *p = st.st_size > 0 ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
		: MAP_FAILED;
	if (p == MAP_FAILED) {
		vc_fail(err, VC_EIO, "cannot map %s", path);
		goto fail;
	}
	close(fd);
	e->at = p;
	e->size = (size_t)st.st_size;
	if (parse(e)) {
		vc_fail(err, VC_EFORMAT, "%s is not a 64-bit shared object", path);
		vc_elf_close(e);
		return NULL;
	}
	return e;
fail:
	if (fd >= 0)
		close(fd);
	free(e);
	return NULL;
}

void vc_elf_close(struct vc_elf *e)
{
	if (!e)
		return;
	munmap((void *)(uintptr_t)e->at, e->size);
	free(e);
}

const char *vc_elf_needed(const struct vc_elf *e, size_t i)
{
	for (size_t k = 0; k < e->n_dynamic; k++)
		if (e->dynamic[k].d_tag == DT_NEEDED && !i--)
			return string(e, e->dynamic[k].d_un.d_val);
	return NULL;
}

/* Soname and node of version `index` among those the file wants of others. */
static void find_version(const struct vc_elf *e, unsigned index, struct vc_elf_symbol *out)
{
	uint64_t at = 0;
	while (e->verneed && at + sizeof(Elf64_Verneed) <= e->n_verneed) {
		const Elf64_Verneed *v = (const void *)((const char *)e->verneed + at);
		uint64_t aux = at + v->vn_aux;
		for (int i = 0; i < v->vn_cnt && aux + sizeof(Elf64_Vernaux) <= e->n_verneed; i++) {
			const Elf64_Vernaux *a = (const void *)((const char *)e->verneed + aux);
			if ((a->vna_other & 0x7fff) == index) {
				out->library = string(e, v->vn_file);
				out->version = string(e, a->vna_name);
				return;
			}
			aux += a->vna_next;
		}
		if (!v->vn_next)
			return;
		at += v->vn_next;
	}
}

bool vc_elf_symbol(const struct vc_elf *e, size_t i, struct vc_elf_symbol *out)
{
	if (i >= e->n_symbols)
		return false;
	const char *name = string(e, e->symbols[i].st_name);
	*out = (struct vc_elf_symbol){ .name = name ? name : "",
		.defined = e->symbols[i].st_shndx != SHN_UNDEF };
	/* 0 and 1 mean local and unversioned */
	unsigned index = e->versions && !out->defined ? e->versions[i] & 0x7fff : 0;
	if (index > 1)
		find_version(e, index, out);
	return true;
}

bool vc_elf_defines(const struct vc_elf *e, const char *name)
{
	for (size_t i = 0; i < e->n_symbols; i++) {
		const char *s = e->symbols[i].st_shndx != SHN_UNDEF ?
					string(e, e->symbols[i].st_name) : NULL;
		if (s && strcmp(s, name) == 0)
			return true;
	}
	return false;
}
