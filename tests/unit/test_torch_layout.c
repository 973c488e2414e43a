/* SPDX-License-Identifier: Apache-2.0 */
/* test_torch_layout.c - PyTorch's allocator in a process: its version, from a file beside its
 * library, its table, and where its functions stand. */
#define _GNU_SOURCE
#include "tests/support/test.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/torch_layout.c"

static char folder[200];
static void *inside; /* of a library in FOLDER/lib */

/* A library of this process, once more, in a folder of ours. */
static int load(void **unused)
{
	const char *tmp = getenv("TMP");
	char path[300], bytes[4096];
	Dl_info info;
	size_t n;

	(void)unused;
	snprintf(folder, sizeof(folder), "%s/vc-layout-XX" "XX" "XX", tmp ? tmp : "/tmp");
	if (!mkdtemp(folder) || !dladdr(VC_FUNCTION(_fail), &info))
		return -1;
	snprintf(path, sizeof(path), "%s/lib", folder);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/lib/x.so", folder);
	FILE *from = fopen(info.dli_fname, "rb"), *to = fopen(path, "wb");
	while (from && to && (n = fread(bytes, 1, sizeof(bytes), from)) > 0)
		fwrite(bytes, 1, n, to);
	if (!from || !to || fclose(from) || fclose(to))
		return -1;
	inside = dlsym(dlopen(path, RTLD_NOW | RTLD_LOCAL), "_fail");
	return inside ? 0 : -1;
}

static int unload(void **unused)
{
	char command[300];

	(void)unused;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

/* What is read where version.py has `before` bytes of comment and then this. */
static const char *version(size_t before, const char *text)
{
	static char out[40];
	char path[300];

	snprintf(path, sizeof(path), "%s/version.py", folder);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	for (size_t i = 0; i < before; i++)
		fputc(i + 1 < before ? '#' : '\n', f);
	fputs(text, f);
	fclose(f);
	out[0] = '\0';
	if (!vc_torch_version(inside, out, sizeof(out)))
		snprintf(out, sizeof(out), "none");
	unlink(path);
	return out;
}

static void a_version_stands_beside_the_library(void **unused)
{
	static const char line[] = "__version__ = '2.5.1+cu124'\n";
	char out[8];

	(void)unused;
	assert_string_equal(version(0, "__version__ = '2.0.1'\ndebug = False\n"), "2.0.1");
	assert_string_equal(version(0, "__all__ = ['__version__', 'debug']\n"
				       "__version__ = \"2.9\"\n"), "2.9");
	assert_string_equal(version(0, "x__version__ = '2.5'\n"), "none");
	assert_string_equal(version(0, "__version__\n"), "none");
	assert_string_equal(version(0, "__version__ = 2\n"), "none");
	assert_string_equal(version(0, ""), "none");
	/* of the first 4094 bytes, and not beyond a buffer */
	assert_string_equal(version(4094 - sizeof(line) + 2, line), "2.5.1+cu124");
	assert_string_equal(version(4094 - 14, line), "none");
	assert_string_equal(version(9000, line), "none");
	assert_false(vc_torch_version(inside, out, sizeof(out)));
	assert_false(vc_torch_version(NULL, out, sizeof(out)));
	assert_false(vc_torch_version(folder - (uintptr_t)folder + 8, out, sizeof(out)));
	assert_int_equal(vc_torch_minor_of("2.13.0a0+git"), 13);
	assert_int_equal(vc_torch_minor_of("1.13.1"), -1);
}

/* A table in a library is copied as far as it may be one, what lies elsewhere only up to its
 * address. */
static void a_table_is_copied(void **unused)
{
	enum { ALL = VC_TORCH_BEFORE + VC_TORCH_SLOTS };
	static void *original[ALL] = { &inside };
	void *to[ALL], **heap = calloc(ALL, sizeof(*heap));

	(void)unused;
	for (size_t i = 0; i < ALL; i++) {
		original[i] = (char *)folder + i;
		to[i] = NULL;
	}
	vc_torch_copy_table(to, original + VC_TORCH_BEFORE);
	assert_memory_equal(to, original, sizeof(to));
	vc_torch_copy_table(to, heap + VC_TORCH_BEFORE);
	for (size_t i = 0; i < ALL; i++)
		assert_ptr_equal(to[i], i < VC_TORCH_BEFORE ? NULL : original[i]);
	free(heap);
}

static void each_version_has_its_slots(void **unused)
{
	int last = -1;

	(void)unused;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		assert_int_equal(table[i].first, last + 1);
		last = table[i].last;
		for (int minor = table[i].first; minor <= last; minor++)
			assert_ptr_equal(vc_torch_slots(minor), &table[i]);
	}
	assert_int_equal(vc_torch_slots(last + 1)->fraction, 0);
	assert_int_equal(vc_torch_slots(-1)->fraction, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_version_stands_beside_the_library),
		cmocka_unit_test(a_table_is_copied),
		cmocka_unit_test(each_version_has_its_slots),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
