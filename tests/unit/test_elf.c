/* SPDX-License-Identifier: Apache-2.0 */
/* test_elf.c - what is read of shared objects, by this program's own file and damaged copies of it;
 * names of libraries with a hash in them. */
#define _GNU_SOURCE
#include "tests/support/test.h"

#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>

#include "nullgpu/alias.c"
#include "nullgpu/elf.c"

static char path[64];

static unsigned char *own(size_t *n)
{
	FILE *f = fopen("/proc/self/exe", "rb");
	unsigned char *p;

	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	*n = (size_t)ftell(f);
	rewind(f);
	p = malloc(*n);
	assert_int_equal(fread(p, 1, *n, f), *n);
	fclose(f);
	return p;
}

static void put(const void *p, size_t n)
{
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/test_elf-%ld", (long)getpid());
	f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, n, f), n);
	fclose(f);
}

static void a_program(void **state)
{
	struct vc_error err = { 0 };
	struct vc_elf *e = vc_elf_open("/proc/self/exe", &err);
	struct vc_elf_symbol s;
	const char *needed;
	size_t i, libraries = 0, found = 0;
	bool libc = false;

	(void)state;
	assert_non_null(e);
	for (i = 0; (needed = vc_elf_needed(e, i)) != NULL; i++) {
		libraries++;
		libc = libc || !strcmp(needed, "libc.so.6");
	}
	assert_true(libc);
	assert_true(libraries >= 2); /* and cmocka's */
	for (i = 0; vc_elf_symbol(e, i, &s); i++)
		if (!strcmp(s.name, "unlink")) {
			found++;
			assert_false(s.defined);
			assert_string_equal(s.library, "libc.so.6");
			assert_non_null(dlvsym(RTLD_DEFAULT, "unlink", s.version));
		} else if (!*s.name) {
			assert_null(s.library);
		}
	assert_int_equal(found, 1);
	assert_false(vc_elf_symbol(e, i + 1, &s));
	assert_false(vc_elf_defines(e, "unlink"));
	vc_elf_close(e);
	vc_elf_close(NULL);
	e = vc_elf_open("/lib/x86_64-linux-gnu/libc.so.6", NULL);
	if (e) {
		assert_true(vc_elf_defines(e, "unlink"));
		assert_false(vc_elf_defines(e, "unlin"));
		vc_elf_close(e);
	}
}

static void refused(const char *why)
{
	struct vc_error err = { 0 };
	char text[200];

	assert_null(vc_elf_open(path, &err));
	snprintf(text, sizeof(text), why, path);
	assert_string_equal(err.message, text);
}

static void damaged(void **state)
{
	size_t n;
	unsigned char *p = own(&n);
	Elf64_Ehdr good, *h = (void *)p;
	Elf64_Shdr *s;

	(void)state;
	memcpy(&good, h, sizeof(good));
	put("", 0);
	refused("cannot map %s");
	put("text", 4);
	refused("%s is not a 64-bit shared object");
	put(p, sizeof(good)); /* the table of sections is behind the end */
	refused("%s is not a 64-bit shared object");
	put(p, n - 1);
	refused("%s is not a 64-bit shared object");
	h->e_ident[EI_CLASS] = ELFCLASS32;
	put(p, n);
	refused("%s is not a 64-bit shared object");
	*h = good;
	h->e_ident[1] = 'e';
	put(p, n);
	refused("%s is not a 64-bit shared object");
	*h = good;
	h->e_shentsize = 32;
	put(p, n);
	refused("%s is not a 64-bit shared object");
	*h = good;
	s = (void *)(p + h->e_shoff);
	for (int i = 0; i < h->e_shnum; i++) /* names that lie nowhere */
		if (s[i].sh_type == SHT_DYNSYM)
			s[s[i].sh_link].sh_size = n;
	put(p, n);
	refused("%s is not a 64-bit shared object");
	free(p);
	unlink(path);
	refused("cannot read %s: No such file or directory");
}

/* Names that are cut off are none, and versions that are none of ours. */
static void names(void **state)
{
	size_t n;
	unsigned char *p = own(&n);
	Elf64_Shdr *s = (void *)(p + ((Elf64_Ehdr *)(void *)p)->e_shoff);
	struct vc_elf_symbol y;
	struct vc_elf *e;

	(void)state;
	for (int i = 0; i < ((Elf64_Ehdr *)(void *)p)->e_shnum; i++)
		if (s[i].sh_type == SHT_DYNSYM)
			s[s[i].sh_link].sh_size = 1;
	put(p, n);
	e = vc_elf_open(path, NULL);
	assert_non_null(e);
	assert_null(vc_elf_needed(e, 0));
	for (size_t i = 0; vc_elf_symbol(e, i, &y); i++) {
		assert_string_equal(y.name, "");
		assert_null(y.library);
	}
	assert_false(vc_elf_defines(e, "main"));
	e->versions = (const Elf64_Half[]){ 9999, 9999, 9999, 9999 };
	assert_true(vc_elf_symbol(e, 1, &y));
	assert_null(y.library);
	assert_null(y.version);
	vc_elf_close(e);
	unlink(path);
	free(p);
}

static void hashes(void **state)
{
	static const struct { const char *soname, *base; } c[] = {
		{ "libcudart.0badcafe.so.12", "libcudart.so.12" },
		{ "libcudart-0badcafe.so.12.0.107", "libcudart.so.12" },
		{ "libcublas-0BADCAFE.so.11", "libcublas.so.11" },
		{ "libcudart.0badcaf.so.12", NULL }, { "libcudart_0badcafe.so.12", NULL },
		{ "libcudart.0badcafg.so.12", NULL }, { "libcudart.0badcafe.so", NULL },
		{ "libcudart.so.12", NULL }, { "0badcafe.so.12", NULL },
		{ ".0badcafe.so.12", NULL } };
	char base[64];

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
		assert_int_equal(vc_alias_base(c[i].soname, base, sizeof(base)),
				 c[i].base != NULL);
		if (c[i].base)
			assert_string_equal(base, c[i].base);
	}
}

static void models(void **state)
{
	struct vc_error err = { 0 };

	(void)state;
	put("no model", 8);
	assert_true(vc_alias_write("/nowhere/model", "/tmp/x", "a", "b", &err) < 0);
	assert_string_equal(err.message, "cannot read /nowhere/model");
	assert_true(vc_alias_write(path, "/nowhere/at/all", "liba.so", "libb.so", &err) < 0);
	snprintf(err.message + 100, 100, "%s cannot become liba.so", path);
	assert_string_equal(err.message, err.message + 100);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_program), cmocka_unit_test(damaged),
					    cmocka_unit_test(names), cmocka_unit_test(hashes),
					    cmocka_unit_test(models) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
