/* SPDX-License-Identifier: Apache-2.0 */
/* test_process.c - the folder of a recording's journals, on local disks and on those of a network;
 * what the recorded program finds in its environment. */
#define _GNU_SOURCE
#include "tests/support/test.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

static long kind;                /* of the file system; 0: it cannot be told */
static char memory[4096];        /* the folder that was to be made in memory */
static bool full;                /* there is no room for it */

static int told_statfs(const char *path, struct statfs *out)
{
	*out = (struct statfs){ .f_type = kind };
	return kind && access(path, F_OK) == 0 ? 0 : -1;
}

static int told_mkdir(const char *path, mode_t mode)
{
	if (strncmp(path, "/dev/shm/", 9) != 0)
		return mkdir(path, mode);
	snprintf(memory, sizeof(memory), "%s", path);
	return full || mode != 0700 ? -1 : 0;
}

#define statfs(path, out) told_statfs(path, out)
#define mkdir(path, mode) told_mkdir(path, mode)
#include "tracer/process.c"
#undef mkdir

static char home[64], wanted[80];

static int begin(void **state)
{
	(void)state;
	snprintf(home, sizeof(home), "/tmp/test_process-%ld", (long)getpid());
	assert_int_equal(mkdir(home, 0700), 0);
	snprintf(wanted, sizeof(wanted), "%s/a.vct.journal", home);
	kind = 0xef53; /* ext4 */
	memory[0] = '\0';
	full = false;
	return 0;
}

static int end(void **state)
{
	(void)state;
	unlink(wanted);
	rmdir(wanted);
	assert_int_equal(rmdir(home), 0); /* nothing else is in it */
	return 0;
}

static void put_file(const char *name)
{
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", wanted, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
}

static void local(void **state)
{
	struct vc_error err = { 0 };
	struct stat st;
	char *real, text[300];

	(void)state;
	for (int again = 0; again < 2; again++) { /* an empty one may be there */
		real = vc_process_folder(wanted, &err);
		assert_string_equal(real, wanted);
		assert_int_equal(lstat(wanted, &st), 0);
		assert_true(S_ISDIR(st.st_mode) && (st.st_mode & 0777) == 0700);
		free(real);
	}
	put_file("1-2.vcj");
	assert_null(vc_process_folder(wanted, &err));
	assert_int_equal(err.status, VC_EUSAGE);
	snprintf(text, sizeof(text), "%s holds a recording that was cut off; 'vramcast recover %s' "
		 "finishes it, or remove the folder", wanted, wanted);
	assert_string_equal(err.message, text);
	vc_process_folder_remove(wanted, wanted); /* not as long as there is a journal */
	assert_int_equal(access(wanted, F_OK), 0);
	snprintf(text, sizeof(text), "%s/1-2.vcj", wanted);
	unlink(text);
}

static void removed(void **state)
{
	struct vc_error err = { 0 };
	char python[100], *real = vc_process_folder(wanted, &err);

	(void)state;
	snprintf(python, sizeof(python), "%s/python", wanted);
	assert_int_equal(mkdir(python, 0700), 0);
	put_file("python/sitecustomize.py");
	snprintf(python, sizeof(python), "%s/python/__pycache__", wanted);
	assert_int_equal(mkdir(python, 0700), 0);
	put_file("python/__pycache__/sitecustomize.pyc");
	put_file("lost");
	put_file("1-2.vcj.top");
	put_file("1-2.program");
	put_file(".program");
	put_file("1-2.vcj.0000000000000000.ring");
	vc_process_folder_remove(wanted, real);
	assert_int_equal(access(wanted, F_OK), -1);
	free(real);
}

/* The table is of linux/magic.h; what it returns has a sign on some machines. */
static void network(void **state)
{
	static const struct { long kind; bool is; } c[] = {
		{ 0x6969, true }, { 0x65735546, true }, { 0x01021997, true }, { 0x19830326, true },
		{ (int)0xff534d42, true }, { 0xfe534d42, true }, { 0x01021994, false }, /* tmpfs */
		{ 0x9123683e, false } /* btrfs */, { 0, false } };
	struct vc_error err = { 0 };
	char text[100], to[200] = "";

	(void)state;
	snprintf(text, sizeof(text), "/dev/shm/vramcast-%ld-%ld", (long)getuid(), (long)getpid());
	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
		char *real;

		kind = c[i].kind;
		memory[0] = '\0';
		assert_int_equal(symlink("/nowhere/of/a/former/boot", wanted), 0);
		real = vc_process_folder(wanted, &err);
		assert_string_equal(real, c[i].is ? text : wanted);
		assert_string_equal(memory, c[i].is ? text : "");
		if (c[i].is) {
			assert_int_equal(readlink(wanted, to, sizeof(to) - 1), strlen(text));
			assert_string_equal(to, text);
		}
		vc_process_folder_remove(wanted, real);
		assert_int_equal(readlink(wanted, to, sizeof(to)), -1);
		assert_int_equal(access(wanted, F_OK), -1);
		free(real);
	}
	kind = 0x6969;
	assert_int_equal(symlink(home, wanted), 0); /* to what is there */
	free(vc_process_folder(wanted, &err));
	assert_int_equal(readlink(wanted, to, sizeof(to) - 1), strlen(text));
	unlink(wanted);
	full = true;
	assert_null(vc_process_folder(wanted, &err));
	assert_non_null(strstr(err.message, text));
	assert_non_null(strstr(err.message, "; use -o on a local disk"));
}

static void nowhere(void **state)
{
	struct vc_error err = { 0 };
	char path[200];

	(void)state;
	snprintf(path, sizeof(path), "%s/no/such.journal", home);
	assert_null(vc_process_folder(path, &err));
	snprintf(path, sizeof(path), "cannot make the folder %s/no/such.journal: No such file or "
		 "directory", home);
	assert_string_equal(err.message, path);
}

static void libraries(void **state)
{
	struct vc_error err = { 0 };
	char *path = vc_process_find("test_process", &err);

	(void)state;
	assert_non_null(path);
	assert_int_equal(path[0], '/');
	assert_string_equal(path + strlen(path) - 13, "/test_process");
	free(path);
	assert_null(vc_process_find("no-such-library.so", &err));
	assert_non_null(strstr(err.message, "no-such-library.so is neither beside /"));
	assert_non_null(strstr(err.message, "/test_process nor in ../lib/vramcast nor in "));
}

static void environment(void **state)
{
	struct vc_process_options o = { .dir = "/d", .library = "/l/t.so",
					.options = "device=cpu" };

	(void)state;
	unsetenv("LD_PRELOAD");
	unsetenv("VRAMCAST_PLAN_LIBRARY");
	setenv("PYTHONPATH", "/theirs", 1);
	assert_int_equal(set_environment(&o), 0);
	assert_string_equal(getenv("VC_DIR"), "/d");
	assert_string_equal(getenv("VC_OPTIONS"), "device=cpu");
	assert_string_equal(getenv("LD_PRELOAD"), "/l/t.so");
	assert_string_equal(getenv("CUDA_INJECTION64_PATH"), "/l/t.so");
	assert_string_equal(getenv("NVTX_INJECTION64_PATH"), "/l/t.so");
	assert_string_equal(getenv("PYTHONPATH"), "/theirs");
	o.python = "/ours";
	setenv("LD_PRELOAD", "/their.so", 1);
	setenv("VRAMCAST_PLAN_LIBRARY", "/plan.so", 1);
	assert_int_equal(set_environment(&o), 0);
	assert_string_equal(getenv("PYTHONPATH"), "/ours:/theirs");
	assert_string_equal(getenv("LD_PRELOAD"), "/plan.so:/l/t.so:/their.so");
	setenv("PYTHONPATH", "", 1);
	setenv("LD_PRELOAD", "", 1);
	setenv("VRAMCAST_PLAN_LIBRARY", "", 1);
	assert_int_equal(set_environment(&o), 0);
	assert_string_equal(getenv("PYTHONPATH"), "/ours");
	assert_string_equal(getenv("LD_PRELOAD"), "/l/t.so");
	unsetenv("LD_PRELOAD");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(local, begin, end),
		cmocka_unit_test_setup_teardown(removed, begin, end),
		cmocka_unit_test_setup_teardown(network, begin, end),
		cmocka_unit_test_setup_teardown(nowhere, begin, end), cmocka_unit_test(libraries),
		cmocka_unit_test(environment) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
