/* SPDX-License-Identifier: Apache-2.0 */
/* stage.c - looks at what an installed PyTorch, and packages beside it, want of CUDA and lays out
 * stand-ins under those names.
 *
 * Stand-ins are preloaded: the loader then takes them for every library of the same soname, also
 * when NVIDIA's own are installed and named by an absolute path inside the wheel. */
#define _GNU_SOURCE /* asprintf, nftw */
#include "nullgpu/stage.h"
#include "common/vec.h"
#include "nullgpu/alias.h"
#include "nullgpu/elf.h"

#include <dirent.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PREFIX "vcnull-"
#define MAX_LIBRARIES 48
#define OLDEST_CUDA 12

struct wanted {           /* what the wheel asks for and we must check */
	char *name, *library, *version;
};

struct work {
	struct vc_stage *stage;
	const char *libraries;
	char *soname[MAX_LIBRARIES]; /* in the folder, or to be generated */
	struct vc_elf *ours[MAX_LIBRARIES]; /* NULL: we have no such library */
	size_t n;
	struct vc_elf *bundled[8]; /* CUDA libraries inside the wheel, as libcusparseLt-HASH.so.0 */
	size_t n_bundled;
	struct wanted *wanted;
	size_t n_wanted, cap;
};

/* Sonames that a CUDA stack provides. */
static bool is_cuda(const char *soname)
{
	static const char *const begins[] = { "libcuda.", "libcudart.", "libcublas.",
		"libcublasLt.", "libcudnn.", "libcufft.", "libcurand.", "libcusparse.",
		"libcusparseLt.", "libcusolver.", "libnccl.", "libnvrtc.", "libcupti.",
		"libcufile.", "libnvshmem_host.", "libnvJitLink.", "libnvToolsExt.",
		"libnvidia-ml.", "libnpp", "libnvjpeg.", "libcutensor.", "libnvrtc-builtins.",
		"libnvfatbin." };
	char base[256];
	if (vc_alias_base(soname, base, sizeof base))
		soname = base;
	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
		if (strncmp(soname, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

/* Functions whose symbols carry no version still tell their library by their prefix. */
static bool is_cuda_function(const char *name)
{
	static const char *const begins[] = { "cublas", "cudnn", "cufft", "curand", "cusparse",
		"cusolver", "nccl", "nvrtc", "cupti", "cuFile", "nvshmem", "nvml", "__cuda", "cuda",
		"nvJitLink", "nvtx", "npp", "nvjpeg", "cutensor" };
	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
		size_t n = strlen(begins[i]);
		/* cudaMalloc, not cuda_thing: CUDA's own names go on with a capital or "__" */
		if (strncmp(name, begins[i], n) == 0 && name[n] >= 'A' && name[n] <= 'Z')
			return true;
	}
	return strncmp(name, "cu", 2) == 0 && name[2] >= 'A' && name[2] <= 'Z';
}

static bool has_library(const struct work *w, const char *soname)
{
	for (size_t i = 0; i < w->n; i++)
		if (strcmp(w->soname[i], soname) == 0)
			return true;
	return false;
}

static int add_one(struct work *w, const char *soname, const char *base, struct vc_error *err)
{
	char path[1024];
	if (has_library(w, soname))
		return 0;
	if (!strncmp(base, "libcudart.so.", 13) && strtol(base + 13, NULL, 10) < OLDEST_CUDA)
		return vc_fail(err, VC_ENOSUP,
			       "this PyTorch was built for CUDA %ld, and the null GPU "
			       "plays 12 and 13; install a build for one of them",
			       strtol(base + 13, NULL, 10));
	if (w->n == MAX_LIBRARIES)
		return vc_fail(err, VC_EINTERNAL, "more than %d CUDA libraries", MAX_LIBRARIES);
	w->soname[w->n] = strdup(soname);
	VC_HAVE(w->soname[w->n], "a library name", err);
	snprintf(path, sizeof path, "%s/" PREFIX "%s", w->libraries, base);
	if (access(path, R_OK) == 0) {
		w->ours[w->n] = vc_elf_open(path, err);
		if (!w->ours[w->n])
			return VC_EFORMAT;
	}
	if (strncmp(base, "libcudart.so.", 13) == 0)
		w->stage->cuda_major = (int)strtol(base + 13, NULL, 10);
	w->n++;
	return 0;
}

/* A name with a hash in it stands for the library without. */
static int add_library(struct work *w, const char *soname, struct vc_error *err)
{
	char base[256];
	if (!vc_alias_base(soname, base, sizeof base))
		return add_one(w, soname, soname, err);
	VC_TRY(add_one(w, base, base, err));
	return add_one(w, soname, base, err);
}

static int add_wanted(struct work *w, const struct vc_elf_symbol *s, struct vc_error *err)
{
	VC_HAVE(vc_vec_room(w->wanted, w->cap, w->n_wanted + 1), "the list of functions", err);
	struct wanted *to = &w->wanted[w->n_wanted++];
	to->name = strdup(s->name);
	to->library = s->library ? strdup(s->library) : NULL;
	to->version = s->version ? strdup(s->version) : NULL;
	return to->name ? 0 : vc_nomem(err, "a function name");
}

static int scan_object(struct work *w, const char *path, struct vc_error *err)
{
	struct vc_elf *e = vc_elf_open(path, NULL);
	struct vc_elf_symbol s;
	const char *soname;
	int rc = 0;
	if (!e) /* not every .so is an object: linker scripts, empty files */
		return 0;
	for (size_t i = 0; !rc && (soname = vc_elf_needed(e, i)) != NULL; i++)
		if (is_cuda(soname))
			rc = add_library(w, soname, err);
	for (size_t i = 0; !rc && vc_elf_symbol(e, i, &s); i++)
		if (!s.defined && (s.library ? is_cuda(s.library) : is_cuda_function(s.name)))
			rc = add_wanted(w, &s, err);
	vc_elf_close(e);
	return rc;
}

static bool is_object(const char *name)
{
	const char *so = strstr(name, ".so");
	return so && (so[3] == 0 || so[3] == '.');
}

static int scan_folder(struct work *w, const char *dir, struct vc_error *err)
{
	struct dirent *entry;
	DIR *d = opendir(dir);
	int rc = 0;
	while (d && !rc && (entry = readdir(d)) != NULL) {
		char path[1400];
		snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
		if (!is_object(entry->d_name))
			continue;
		rc = scan_object(w, path, err);
		bool bundled =
			strncmp(entry->d_name, "libcu", 5) == 0 && strchr(entry->d_name, '-');
		if (bundled && w->n_bundled < sizeof w->bundled / sizeof *w->bundled)
			w->bundled[w->n_bundled++] = vc_elf_open(path, NULL);
	}
	if (d)
		closedir(d);
	return rc;
}

/* ---- other packages with CUDA code of their own ---- */

#define DEPTH 4 /* site-packages/PACKAGE/FOLDER/FOLDER/x.so */

/* Whether PyTorch wants another version of the same library. */
static bool is_of_another_cuda(const struct work *w, const char *soname)
{
	char base[256];
	if (vc_alias_base(soname, base, sizeof base))
		soname = base;
	const char *so = strstr(soname, ".so.");
	size_t stem = so ? (size_t)(so - soname) + 4 : strlen(soname);
	for (size_t i = 0; i < w->n; i++)
		if (strncmp(w->soname[i], soname, stem) == 0 && strcmp(w->soname[i], soname))
			return true;
	return false;
}

/* A package brings one object for each CUDA; only those for PyTorch's can ever be loaded. */
static bool is_for_this_cuda(const struct work *w, const struct vc_elf *e)
{
	const char *soname;
	bool any = false;
	for (size_t i = 0; (soname = vc_elf_needed(e, i)) != NULL; i++) {
		if (is_cuda(soname) && is_of_another_cuda(w, soname))
			return false;
		any |= is_cuda(soname);
	}
	return any;
}

static int scan_extension(struct work *w, const char *path, struct vc_error *err)
{
	struct vc_elf *e = vc_elf_open(path, NULL);
	bool ours = e && is_for_this_cuda(w, e);
	vc_elf_close(e);
	return ours ? scan_object(w, path, err) : 0;
}

/* What has no CUDA code, or is looked at elsewhere. */
static bool is_passed_over(const char *name)
{
	static const char *const names[] = { "torch", "triton", "nvidia", "torchgen", "functorch",
		"numpy", "scipy", "pandas", "pyarrow", "sklearn", "__pycache__", "tests", "bin",
		"transformers", "sympy", "networkx", "pip", "setuptools" };
	size_t n = strlen(name);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return *name == '.' || (n > 5 && (strcmp(name + n - 5, "-info") == 0 ||
					  strcmp(name + n - 5, ".libs") == 0));
}

static int scan_packages(struct work *w, const char *dir, int depth, struct vc_error *err)
{
	struct dirent *entry;
	DIR *d = opendir(dir);
	int rc = 0;
	while (d && !rc && (entry = readdir(d)) != NULL) {
		char path[1400];
		snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
		if (is_passed_over(entry->d_name))
			continue;
		if (entry->d_type == DT_DIR && depth < DEPTH)
			rc = scan_packages(w, path, depth + 1, err);
		else if (entry->d_type != DT_DIR && is_object(entry->d_name))
			rc = scan_extension(w, path, err);
	}
	if (d)
		closedir(d);
	return rc;
}

/* ---- JAX and TensorFlow ---- */

/* They look the libraries of the CUDA that they were built for up by name, at run time. */
static int add_by_name(struct work *w, struct vc_error *err)
{
	static const char *const names[] = {
		"libcudnn.so.9", "libnccl.so.2", "libnvshmem_host.so.3", "libcudart.so.12",
		"libcublas.so.12", "libcublasLt.so.12", "libcufft.so.11", "libcusolver.so.11",
		"libcusparse.so.12", "libcupti.so.12", "libnvrtc.so.12", "libnvJitLink.so.12",
		"libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcufft.so.12",
		"libcusolver.so.12", "libcupti.so.13", "libnvrtc.so.13", "libnvJitLink.so.13" };
	int rc = 0;
	for (size_t i = 0; !rc && i < sizeof names / sizeof *names; i++)
		rc = add_library(w, names[i], err);
	return rc;
}

static bool is_torch(const char *package)
{
	const char *name = strrchr(package, '/');
	return !strcmp(name ? name + 1 : package, "torch");
}

/* ---- the folder ---- */

static int add_preload(struct vc_stage *s, const char *path, struct vc_error *err)
{
	char *joined;
	if (asprintf(&joined, "%s%s%s", s->preload ? s->preload : "", s->preload ? ":" : "",
		     path) < 0)
		return vc_nomem(err, "the preload list");
	free(s->preload);
	s->preload = joined;
	return 0;
}

/* One of our files, under the name by which it is looked for in the folder. */
static int link_file(const struct work *w, const char *ours, const char *name, struct vc_error *err)
{
	char from[1024], to[1024];
	snprintf(from, sizeof from, "%s/" PREFIX "%s", w->libraries, ours);
	snprintf(to, sizeof to, "%s/%s", w->stage->dir, name);
	return symlink(from, to) < 0 ?
		vc_fail(err, VC_EIO, "cannot write in %s", w->stage->dir) : 0;
}

static int link_library(struct work *w, size_t i, struct vc_error *err)
{
	char model[1024], to[1024], base[256];
	snprintf(to, sizeof to, "%s/%s", w->stage->dir, w->soname[i]);
	snprintf(model, sizeof model, "%s/" PREFIX "alias", w->libraries);
	if (vc_alias_base(w->soname[i], base, sizeof base))
		VC_TRY(vc_alias_write(model, to, w->soname[i], base, err));
	else
		VC_TRY(link_file(w, w->soname[i], w->soname[i], err));
	return add_preload(w->stage, to, err);
}

/* The Python side, under the names by which Python looks for it, and programs that a machine with
 * such a card has, in a folder for PATH. */
static int link_parts(struct work *w, struct vc_error *err)
{
	static const char *const parts[] = { "python/sitecustomize.py",
		"python/vramcast_null_values.py", "python/vramcast_null_world.py",
		"python/vramcast_null_said.py", "python/vramcast_null_host.py",
		"python/vramcast_null_routes.py", "python/vramcast_null_server.py",
		"python/vramcast_null_requests.py", "python/vramcast_null_xla.py",
		"bin/nvidia-smi" };
	static const char *const folders[] = { "python", "bin" };
	char path[1024];
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		snprintf(path, sizeof path, "%s/%s", w->stage->dir, folders[i]);
		if (mkdir(path, 0700) < 0)
			return vc_fail(err, VC_EIO, "cannot write in %s", w->stage->dir);
	}
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		VC_TRY(link_file(w, strchr(parts[i], '/') + 1, parts[i], err));
	return 0;
}

/* Kernels written in CuTe DSL load a runtime under this name (cute_dsl.c): libcudart's stand-in. */
static int link_cute_dsl(struct work *w, struct vc_error *err)
{
	char runtime[64], path[1024];
	snprintf(runtime, sizeof runtime, "libcudart.so.%d", w->stage->cuda_major);
	snprintf(path, sizeof path, "%s/" PREFIX "%s", w->libraries, runtime);
	return access(path, R_OK) < 0 ? 0 /* an older CUDA: there were none */ :
		link_file(w, runtime, VC_STAGE_CUTE_DSL, err);
}

/* ---- functions that a newer PyTorch wants ---- */

static bool is_provided(const struct work *w, const char *name)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->ours[i] && vc_elf_defines(w->ours[i], name))
			return true;
	for (size_t i = 0; i < w->n_bundled; i++)
		if (w->bundled[i] && vc_elf_defines(w->bundled[i], name))
			return true;
	return false;
}

static bool has_stand_in(const struct work *w, const char *library)
{
	for (size_t i = 0; library && i < w->n; i++)
		if (strcmp(w->soname[i], library) == 0)
			return w->ours[i] != NULL;
	return true; /* unversioned: any library will do */
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct wanted *)a)->name, ((const struct wanted *)b)->name);
}

/* Leaves in w->wanted only what no stand-in provides, each name once. */
static void keep_missing(struct work *w)
{
	size_t kept = 0;
	if (w->n_wanted)
		qsort(w->wanted, w->n_wanted, sizeof *w->wanted, by_name);
	for (size_t i = 0; i < w->n_wanted; i++) {
		struct wanted x = w->wanted[i];
		bool again = kept && strcmp(w->wanted[kept - 1].name, x.name) == 0;
		if (!again && !(has_stand_in(w, x.library) && is_provided(w, x.name))) {
			w->wanted[kept++] = x;
			continue;
		}
		VC_FREE(x.name, x.library, x.version);
	}
	w->n_wanted = kept;
}

static int run_compiler(const char *source, const char *map, const char *soname, const char *out)
{
	char name[256], script[1200];
	snprintf(name, sizeof name, "-Wl,-soname,%s", soname);
	snprintf(script, sizeof script, "-Wl,--version-script=%s", map);
	pid_t pid = fork();
	int status;
	if (pid == 0) {
		execlp("cc", "cc", "-shared", "-fPIC", "-w", "-O1", name, script, "-o", out, source,
		       (char *)NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ?
		       WEXITSTATUS(status) : -1;
}

/* One generated library: the missing functions of `soname`, NULL = of libraries we have. */
static int generate(struct work *w, const char *soname, struct vc_error *err)
{
	char source[1024], map[1024], out[1024];
	const char *node = NULL, *name = soname ? soname : "libvramcast-null-more.so";
	int n = 0;
	snprintf(source, sizeof source, "%s/more.c", w->stage->dir);
	snprintf(map, sizeof map, "%s/more.map", w->stage->dir);
	snprintf(out, sizeof out, "%s/%s", w->stage->dir, name);
	FILE *f = fopen(source, "w"), *m = f ? fopen(map, "w") : NULL;
	if (!f || !m) {
		if (f)
			fclose(f);
		return vc_fail(err, VC_EIO, "cannot write in %s", w->stage->dir);
	}
	for (size_t i = 0; i < w->n_wanted; i++) {
		const struct wanted *x = &w->wanted[i];
		bool here = soname ? x->library && strcmp(x->library, soname) == 0
			: has_stand_in(w, x->library);
		if (!here)
			continue;
		fprintf(f, "int %s(void) { return 0; }\n", x->name);
		node = soname && x->version ? x->version : node;
		n++;
	}
	fprintf(m, "%s { global: *; };\n", node ? node : "");
	int failed = (ferror(f) | ferror(m)) | fclose(f) | fclose(m);
	int rc = failed ? -1 : n || soname ? run_compiler(source, map, name, out) : 1;
	unlink(source);
	unlink(map);
	if (!failed && !n && !soname)
		return 0;
	if (rc)
		return 1; /* no compiler: the caller names what is missing */
	w->stage->stubs_made += n;
	return add_preload(w->stage, out, err);
}

static void name_missing(struct work *w)
{
	size_t n = 0;
	for (size_t i = 0; i < w->n_wanted && n < sizeof w->stage->missing - 80; i++)
		n += (size_t)snprintf(w->stage->missing + n, sizeof w->stage->missing - n, "%s%s",
				      n ? " " : "", w->wanted[i].name);
}

static int provide(struct work *w, struct vc_error *err)
{
	int rc = 0;
	bool newer = false;
	keep_missing(w);
	for (size_t i = 0; i < w->n && rc >= 0; i++) {
		if (w->ours[i]) {
			rc = link_library(w, i, err);
		} else {
			rc = generate(w, w->soname[i], err);
			newer |= rc > 0;
		}
	}
	if (rc >= 0 && w->n_wanted) {
		rc = generate(w, NULL, err);
		newer |= rc > 0;
	}
	if (newer)
		name_missing(w);
	return rc < 0 ? rc : 0;
}

static void release(struct work *w)
{
	for (size_t i = 0; i < w->n; i++) {
		free(w->soname[i]);
		vc_elf_close(w->ours[i]);
	}
	for (size_t i = 0; i < w->n_bundled; i++)
		vc_elf_close(w->bundled[i]);
	for (size_t i = 0; i < w->n_wanted; i++) {
		VC_FREE(w->wanted[i].name, w->wanted[i].library, w->wanted[i].version);
	}
	free(w->wanted);
}

static int make_folder(struct vc_stage *s, struct vc_error *err)
{
	const char *base = getenv("TMPDIR");
	snprintf(s->dir, sizeof s->dir, "%s/vramcast-null-%s", base && *base ? base : "/tmp",
		 "XX" "XX" "XX");
	if (mkdtemp(s->dir))
		return 0;
	s->dir[0] = 0;
	return vc_fail(err, VC_EIO, "cannot make a folder in %s", base ? base : "/tmp");
}

static int scan_torch(struct work *w, const char *torch, const char *beside, struct vc_error *err)
{
	char path[1024];
	snprintf(path, sizeof path, "%s/lib", torch);
	VC_TRY(scan_folder(w, path, err));
	for (size_t n; *beside; beside += n + (beside[n] == ':')) {
		n = strcspn(beside, ":");
		snprintf(path, sizeof path, "%.*s", (int)n, beside);
		VC_TRY(scan_packages(w, path, 1, err));
	}
	return 0;
}

/* For the PyTorch in the folder `torch`, NULL: for JAX or TensorFlow. */
static int fill_folder(struct work *w, const char *torch, const char *beside, struct vc_error *err)
{
	/* the driver and NVML are looked up by name at run time */
	VC_TRY(add_library(w, "libcuda.so.1", err));
	VC_TRY(add_library(w, "libnvidia-ml.so.1", err));
	VC_TRY(torch ? scan_torch(w, torch, beside, err) : add_by_name(w, err));
	VC_TRY(provide(w, err));
	VC_TRY(link_parts(w, err));
	return link_cute_dsl(w, err);
}

int vc_stage_open(struct vc_stage *s, const char *package, const char *beside,
		  const char *libraries, struct vc_error *err)
{
	struct work w = { .stage = s, .libraries = libraries };
	bool torch = is_torch(package);
	char path[1024];
	*s = (struct vc_stage){ 0 };
	snprintf(path, sizeof path, "%s/lib/libtorch_cuda.so", package);
	if (torch && access(path, R_OK) < 0)
		return vc_fail(err, VC_ENOSUP, "the PyTorch in %s has no CUDA in it; install a "
			       "CUDA build, for example: pip install --no-deps torch", package);
	VC_TRY(make_folder(s, err));
	int rc = fill_folder(&w, torch ? package : NULL, beside, err);
	release(&w);
	return rc;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

void vc_stage_close(struct vc_stage *s)
{
	if (s->dir[0])
		nftw(s->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(s->preload);
	*s = (struct vc_stage){ 0 };
}
