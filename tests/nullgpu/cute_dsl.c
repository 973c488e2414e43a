/* SPDX-License-Identifier: Apache-2.0 */
/* cute_dsl.c - calls the runtime of CuTe DSL's kernels as their compiled code does: the library of
 * CUTE_DSL_LIBS, loaded by its path. Run by cute_dsl.sh in a dry run, which numbers what it
 * prints. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *runtime;
static int loads, asked, failed;
static char told[256];

static void ok(bool good, const char *name)
{
	printf("%sok - %s\n", good ? "" : "not ", name);
	failed |= !good;
}

/* Calls NAME with ARGUMENTS, all of them integers or pointers. */
#define CALL(type, name, parameters, ...) \
	(*(type (**) parameters)&(void *){ dlsym(runtime, name) })(__VA_ARGS__)

static int load(void **library)
{
	__atomic_add_fetch(&loads, 1, __ATOMIC_SEQ_CST);
	return CALL(int, "_cudaLibraryLoadData", (void **, const void *, void *, void *, unsigned,
		    void *, void *, unsigned), library, "code", NULL, NULL, 0, NULL, NULL, 0);
}

static int cannot_load(void **library)
{
	(void)library;
	return 2; /* cudaErrorMemoryAllocation */
}

static int for_first_device(void **library, int device)
{
	(void)library;
	asked++;
	return device ? 98 : 0; /* cudaErrorInvalidDeviceFunction */
}

static int for_no_device(void **library, int device)
{
	(void)library;
	(void)device;
	return 98;
}

static void set_error(const char *kind, const char *text)
{
	snprintf(told, sizeof told, "%s: %s", kind, text);
}

static void raise_parts(const char *kind, const char *const *parts, int n)
{
	snprintf(told, sizeof told, "%s: %s (%d)", kind, parts[0], n);
}

static int once(void **library, int (*make)(void **), int (*prepare)(void **, int))
{
	return CALL(int, "cuda_dialect_init_library_once", (void **, int (*)(void **),
		    int (*)(void **, int), void (*)(const char *, const char *)), library, make,
		    prepare, set_error);
}

static void *from_a_thread(void *library)
{
	once(library, load, NULL);
	return NULL;
}

static void test_library(void)
{
	void *library = NULL, *other = NULL, *kernel = NULL;
	pthread_t thread[4];
	ok(once(&library, load, for_first_device) == 0 && library && asked == 2,
	   "a kernel's library is loaded, and one device that can run it is enough");
	ok(once(&library, load, NULL) == 0 && loads == 1, "the second call finds it loaded");
	ok(CALL(int, "_cudaLibraryGetKernel", (void **, void *, const char *), &kernel, library,
		"add_one") == 0 && kernel, "its kernels are found by name");
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, from_a_thread, &other);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	ok(other != NULL, "threads agree on one library");
	CALL(void, "cuda_dialect_unload_library_once", (void **), &library);
	ok(!library, "the end unloads it");
	ok(once(&library, cannot_load, NULL) == -1 && !library &&
	   strcmp(told, "RuntimeError: Got Cuda Runtime Error: "
		  "cudaErrorMemoryAllocation out of memory") == 0,
	   "a library that cannot be loaded is told to the language");
	ok(once(&library, load, for_no_device) == -1 && !library && strstr(told, "Got Cuda"),
	   "so is one that no device can run");
	CALL(void, "CuteDSLRT_TVMFFISetRaisedCudaError",
	     (void (*)(const char *, const char *const *, int), int), raise_parts, 700);
	ok(strcmp(told, "CUDADialectError: CUDA Error Code: 700 (1)") == 0,
	   "later releases are told an error by its number");
	CALL(void, "cuda_dialect_assert_success", (int), 0); /* else it would abort */
}

static void test_launch(void)
{
	struct { unsigned grid[3], block[3]; size_t shared; void *stream, *list; unsigned n; } c = {
		.grid = { 4, 1, 1 }, .block = { 128, 1, 1 } };
	void *library = NULL, *kernel, *p = NULL;
	int threads = 0, device = -1;
	load(&library);
	CALL(int, "_cudaLibraryGetKernel", (void **, void *, const char *), &kernel, library, "k");
	ok(CALL(int, "_cudaLaunchKernelEx", (void *, void *, void **), &c, kernel, NULL) == 0 &&
	   CALL(int, "_cudaLaunchKernel", (void *, unsigned, unsigned, unsigned, unsigned, unsigned,
		unsigned, void **, size_t, void *), kernel, 4, 1, 1, 128, 1, 1, NULL, 0, NULL) == 0,
	   "kernels are launched, with a configuration and without");
	ok(CALL(int, "_cuKernelGetAttribute", (int *, int, void *, int), &threads, 0, kernel, 0)
	   == 0 && threads == 1024, "a kernel tells how many threads it takes");
	ok(CALL(int, "_cudaMalloc", (void **, size_t), &p, 20 << 20) == 0 && p &&
	   CALL(int, "_cudaFree", (void *), p) == 0, "memory comes from the device of the dry run");
	ok(CALL(int, "_cudaSetDevice", (int), 1) == 0 &&
	   CALL(int, "_cudaGetDevice", (int *), &device) == 0 && device == 1,
	   "the device is that of the thread");
}

int main(void)
{
	const char *path = getenv("CUTE_DSL_LIBS");
	runtime = path ? dlopen(path, RTLD_NOW) : NULL;
	ok(runtime != NULL, "CUTE_DSL_LIBS names a library");
	if (!runtime)
		return 1;
	test_library();
	test_launch();
	return failed;
}
