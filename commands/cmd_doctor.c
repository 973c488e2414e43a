/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_doctor.c - vramcast doctor: what works on this machine, and what mends the rest. */
#include <dirent.h>
#include <dlfcn.h>
#include <glob.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "commands/choose.h"
#include "commands/null_libraries.h"
#include "common/emit.h"
#include "common/opt.h"
#include "nullgpu/installed.h"
#include "nullgpu/python.h"
#include "tracer/process.h"

struct config { bool json; };
static const struct vc_option doctor_options[] = {
	{ 0, "json", VC_O_FLAG, offsetof(struct config, json), NULL,
	  "one JSON document (vramcast.doctor/1)", NULL },
	VC_OPTION_END
};

#define ROOM (64ull << 20) /* bytes; a report has a few MiB, a recording of an hour some tens */

struct python { char path[1024], where[64], package[1024], torch[48], cuda[16], cudnn[1200]; };

struct facts {
	char card[96], driver[64], cupti[64], stand_ins[1024], browser[1024];
	char *tracer;
	bool has_card;
	int scope;              /* of ptrace; -1: not restricted by Yama */
	struct python python[4];
	size_t pythons;
	uint64_t room;
	bool writable;
};

static bool read_line(const char *path, char *out, size_t n)
{
	FILE *f = fopen(path, "r");
	bool got = f && fgets(out, (int)n, f);

	if (f)
		fclose(f);
	out[got ? strcspn(out, "\n") : 0] = '\0';
	return got;
}

/* The value of `name = '...'` in torch/version.py. */
static void version_of(const char *package, const char *name, char *out, size_t n)
{
	char path[1100], line[256], *quote;
	FILE *f;

	snprintf(path, sizeof(path), "%s/version.py", package);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, name, strlen(name)) != 0 || !(quote = strchr(line, '\'')))
			continue;
		quote[1 + strcspn(quote + 1, "'")] = '\0';
		snprintf(out, n, "%s", quote + 1);
	}
	if (f)
		fclose(f);
}

/* A Python that may be asked for its PyTorch, once each. */
static void look_at(struct facts *f, const char *path, const char *where)
{
	struct python *p = &f->python[f->pythons];
	struct vc_error ignored;

	for (size_t i = 0; i < f->pythons; i++)
		if (!strcmp(f->python[i].path, path))
			return;
	if (access(path, X_OK))
		return;
	snprintf(p->path, sizeof(p->path), "%s", path);
	snprintf(p->where, sizeof(p->where), "%s", where);
	f->pythons++;
	if (vc_python_package(path, p->package, sizeof(p->package), NULL, 0, &ignored) < 0) {
		p->package[0] = '\0';
		return;
	}
	version_of(p->package, "__version__", p->torch, sizeof(p->torch));
	version_of(p->package, "cuda", p->cuda, sizeof(p->cuda));
	if (!vc_installed_cudnn(p->package, p->cudnn, sizeof(p->cudnn)))
		p->cudnn[0] = '\0';
}

static void find_pythons(struct facts *f)
{
	static const char *const of[][2] = { { "VIRTUAL_ENV", "this environment" },
					     { "CONDA_PREFIX", "conda" } };
	char path[1024];

	for (size_t i = 0; i < 2; i++) {
		const char *prefix = getenv(of[i][0]);

		if (prefix && *prefix) {
			snprintf(path, sizeof(path), "%.900s/bin/python", prefix);
			look_at(f, path, of[i][1]);
		}
	}
	if (!vc_python_path("python3", path, sizeof(path)))
		look_at(f, path, "python3");
	if (!vc_python_path("python", path, sizeof(path)))
		look_at(f, path, "python");
}

static const struct python *with_torch(const struct facts *f)
{
	for (size_t i = 0; i < f->pythons; i++)
		if (f->python[i].torch[0])
			return &f->python[i];
	return NULL;
}

static void find_cupti(struct facts *f)
{
	static const char *const names[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so" };
	const struct python *p = with_torch(f);
	char pattern[1200];
	glob_t found;

	for (size_t i = 0; i < 3 && !f->cupti[0]; i++)
		if (dlopen(names[i], RTLD_LAZY))
			snprintf(f->cupti, sizeof(f->cupti), "%s", names[i]);
	snprintf(pattern, sizeof(pattern), "%s/../nvidia/*/lib/libcupti.so*", p ? p->package : "");
	if (p && !f->cupti[0] && !glob(pattern, 0, NULL, &found)) {
		snprintf(f->cupti, sizeof(f->cupti), "%.63s", strrchr(found.gl_pathv[0], '/') + 1);
		globfree(&found);
	}
}

static void find_all(struct facts *f)
{
	struct vc_error ignored;
	struct statvfs room;
	char line[64], path[1024];
	const char *x = getenv("DISPLAY"), *w = getenv("WAYLAND_DISPLAY");
	const char *card = vc_card_here(f->card, sizeof(f->card));

	f->has_card = access("/proc/driver/nvidia/version", R_OK) == 0 || f->card[0];
	if (card)
		snprintf(f->card, sizeof(f->card), "%s", card);
	read_line("/sys/module/nvidia/version", f->driver, sizeof(f->driver));
	f->scope = read_line("/proc/sys/kernel/yama/ptrace_scope", line, sizeof(line)) ?
		   (int)strtol(line, NULL, 10) : -1;
	f->tracer = vc_process_library(&ignored);
	if (vc_null_libraries(f->stand_ins, sizeof(f->stand_ins), &ignored))
		f->stand_ins[0] = '\0';
	if (((x && *x) || (w && *w)) && !vc_python_path("xdg-open", path, sizeof(path)))
		snprintf(f->browser, sizeof(f->browser), "%s", path);
	f->writable = access(".", W_OK) == 0;
	f->room = statvfs(".", &room) ? 0 : (uint64_t)room.f_bavail * room.f_frsize;
	find_pythons(f);
	find_cupti(f);
}

/* One ability: why not, and the line that mends it; both NULL: it works. */
static bool say(struct vc_emit *e, const char *what, const char *why, const char *mend)
{
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "what", "what", what);
	vc_emit_bool(e, "works", "works", !why);
	vc_emit_text(e, "why", "why not", why);
	vc_emit_text(e, "mend", "mended by", mend);
	vc_emit_end(e);
	return !why;
}

static bool abilities(struct vc_emit *e, const struct facts *f, struct vc_console *con)
{
	static const char lost[] = "vramcast's own libraries are not beside it";
	static const char again[] = "pip install --force-reinstall the wheel, or make install";
	const struct python *p = with_torch(f);
	bool narrow = f->scope > 0 && geteuid() != 0, ok = true;
	char install[1200];
	const char *why, *python = f->pythons ? f->python[0].path : "python3";

	snprintf(install, sizeof(install), "%s -m pip install --no-deps torch numpy sympy networkx "
		 "jinja2 fsspec filelock typing-extensions", python);
	vc_emit_array(e, "abilities", "What works");
	why = !f->tracer ? lost : !f->has_card ? "no NVIDIA card: only the CPU's allocator" : NULL;
	ok &= say(e, "record", why, !why ? NULL : !f->tracer ? again :
		  "vramcast dryrun -g rtx4090 -- python train.py");
	why = !f->tracer ? lost : narrow ? "ptrace is for parents only (ptrace_scope)" : NULL;
	ok &= say(e, "attach", why, !why ? NULL : !f->tracer ? again :
		  "sudo sysctl kernel.yama.ptrace_scope=0");
	why = !f->stand_ins[0] ? lost : !p ? "no Python here has PyTorch" :
	      !p->cuda[0] ? "this PyTorch was built without CUDA" : NULL;
	ok &= say(e, "dry run", why, !why ? NULL : !f->stand_ins[0] ? again : install);
	why = !p ? "no Python here has PyTorch" : !p->cudnn[0] ? "no cuDNN beside PyTorch" : NULL;
	ok &= say(e, "predict with cuDNN's algorithms", why, !why ? NULL : !p ? install :
		  p->cuda[0] == '1' && p->cuda[1] == '3' ?
		  "python3 -m pip install --no-deps nvidia-cudnn-cu13" :
		  "python3 -m pip install --no-deps nvidia-cudnn-cu12");
	why = !f->writable ? "this folder cannot be written to" :
	      f->room < ROOM ? "the disk of this folder is full" : NULL;
	ok &= say(e, "report", why, why ? "cd to a folder with room" : NULL);
	vc_emit_end(e);
	snprintf(con->next, sizeof(con->next), p ? "vramcast train.py" : "vramcast FILE");
	return ok;
}

static void say_facts(struct vc_emit *e, const struct facts *f)
{
	vc_emit_text(e, "card", "card", f->card[0] ? f->card : NULL);
	vc_emit_text(e, "driver", "driver", f->driver[0] ? f->driver : NULL);
	vc_emit_text(e, "cupti", "CUPTI", f->cupti[0] ? f->cupti : NULL);
	if (f->scope < 0)
		vc_emit_null(e, "ptrace_scope", "ptrace_scope");
	else
		vc_emit_int(e, "ptrace_scope", "ptrace_scope", f->scope);
	vc_emit_text(e, "browser", "browser", f->browser[0] ? f->browser : NULL);
	vc_emit_bytes(e, "room", "room in this folder", f->room);
	vc_emit_array(e, "pythons", "Pythons");
	for (size_t i = 0; i < f->pythons; i++) {
		const struct python *p = &f->python[i];

		vc_emit_object(e, NULL, NULL);
		vc_emit_text(e, "where", "where", p->where);
		vc_emit_text(e, "torch", "PyTorch", p->torch[0] ? p->torch : NULL);
		vc_emit_text(e, "cuda", "CUDA", p->cuda[0] ? p->cuda : NULL);
		vc_emit_bool(e, "cudnn", "cuDNN", p->cudnn[0] != '\0');
		vc_emit_text(e, "path", "path", p->path);
		vc_emit_end(e);
	}
	vc_emit_end(e);
}

static int doctor_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	struct facts *f;
	struct vc_emit *e;
	bool ok;
	int r;

	if (argc)
		return vc_fail(&con->err, VC_EUSAGE, "doctor takes nothing ('%s')", argv[0]);
	f = calloc(1, sizeof(*f));
	e = f ? vc_emit_stdout(((const struct config *)config)->json, &con->err) : NULL;
	if (!e) {
		free(f);
		return con->err.status ? (int)con->err.status : vc_nomem(&con->err, "the facts");
	}
	find_all(f);
	vc_emit_object(e, NULL, "");
	vc_emit_text(e, "schema", NULL, "vramcast.doctor/1");
	say_facts(e, f);
	ok = abilities(e, f, con);
	r = vc_emit_done(e, &con->err);
	free(f->tracer);
	free(f);
	return r < 0 ? r : !ok;
}

const struct vc_command vc_command_doctor = {
	.name = "doctor", .operands = "",
	.summary = "what works on this machine, and what mends the rest",
	.details = "Exit code 0: all of it works; 1: something does not.",
	.options = VC_OPTIONS(doctor_options),
	.config_size = sizeof(struct config), .run = doctor_run,
};
