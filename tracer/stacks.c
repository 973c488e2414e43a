/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.c - see stacks.h. Stacks are a tree: a node is a frame and its caller, stored when first
 * seen, so a stack that was seen before costs one walk and no room. */
#define _GNU_SOURCE
#include "tracer/stacks.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tracer/names.h"
#include "tracer/recorder.h"
#include "tracer/samples.h"

enum { NODES = 1 << 18, DEPTH = 1024, OWN = 3 /* frames of ours on top */ };
#define PLACE 0x9e3779b97f4a7c15u /* spreads places in a code over the key: 2^64 / golden ratio */
enum { UNDECIDED, OFF, PYTHON, NATIVE, FAILURES };
enum {
	SKIP = 1 << 28,
	CUT = 1 << 29
}; /* in place of a node: a frame of ours; it and all it called */

typedef struct object object; /* PyObject: opaque here */

struct node { uint64_t key; uint32_t parent, id; };
struct frame { uint64_t key; object *code; int at; }; /* at: instruction, or line */

static struct {
	pthread_mutex_t lock;
	_Atomic int mode;
	_Atomic long steps;      /* to go; 0: all */
	_Atomic bool watched;    /* PyTorch will call vramcast_failed */
	struct node node[NODES];
	uint32_t nodes;
	/* CPython's stable interface, 3.9 on. */
	int (*initialized)(void);
	int (*finalizing)(void);
	void *(*this_thread)(void);
	int (*ensure)(void);
	void (*release)(int);
	void *(*thread)(void);
	object *(*frame)(void *);
	object *(*back)(object *);
	object *(*code)(object *);
	int (*line)(object *);
	/* 3.11 on: to find the line of an instruction walks the function's table, so the key is the
	 * instruction, and its line is looked up once. */
	int (*instruction)(object *);
	int (*line_of)(object *, int);
	object *(*attribute)(object *, const char *);
	const char *(*utf8)(object *);
	void (*inc)(object *);
	void (*dec)(object *);
	void (*clear)(void);
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool find_python(void)
{
	*(void **)&g.initialized = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
	*(void **)&g.finalizing = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
	if (!g.finalizing)
		*(void **)&g.finalizing = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
	*(void **)&g.this_thread = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
	*(void **)&g.ensure = dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
	*(void **)&g.release = dlsym(RTLD_DEFAULT, "PyGILState_Release");
	*(void **)&g.thread = dlsym(RTLD_DEFAULT, "PyThreadState_Get");
	*(void **)&g.frame = dlsym(RTLD_DEFAULT, "PyThreadState_GetFrame");
	*(void **)&g.back = dlsym(RTLD_DEFAULT, "PyFrame_GetBack");
	*(void **)&g.code = dlsym(RTLD_DEFAULT, "PyFrame_GetCode");
	*(void **)&g.line = dlsym(RTLD_DEFAULT, "PyFrame_GetLineNumber");
	*(void **)&g.instruction = dlsym(RTLD_DEFAULT, "PyFrame_GetLasti");
	*(void **)&g.line_of = dlsym(RTLD_DEFAULT, "PyCode_Addr2Line");
	*(void **)&g.attribute = dlsym(RTLD_DEFAULT, "PyObject_GetAttrString");
	*(void **)&g.utf8 = dlsym(RTLD_DEFAULT, "PyUnicode_AsUTF8");
	*(void **)&g.inc = dlsym(RTLD_DEFAULT, "Py_IncRef");
	*(void **)&g.dec = dlsym(RTLD_DEFAULT, "Py_DecRef");
	*(void **)&g.clear = dlsym(RTLD_DEFAULT, "PyErr_Clear");
	return g.initialized && g.finalizing && g.this_thread && g.ensure && g.release &&
	       g.thread && g.frame && g.back && g.code && g.line && g.attribute && g.utf8 &&
	       g.inc && g.dec && g.clear;
}

static int decide(void)
{
	char text[32];
	int mode = OFF;

	vc_recorder_option("stacks", text, sizeof(text));
	if (strncmp(text, "py:", 3) == 0)
		atomic_store(&g.steps, strtol(text + 3, NULL, 10));
	if (strcmp(text, "native") == 0)
		mode = NATIVE;
	else if (strncmp(text, "py", 2) == 0 && find_python())
		mode = PYTHON;
	else if (strncmp(text, "py", 2) == 0 && vc_recorder_open())
		vc_recorder_fact("note",
				 "no Python stacks: this process has no CPython 3.9 or newer");
	atomic_store(&g.mode, mode);
	return mode;
}

/* ---- the tree; with the lock held ---- */

static struct node *slot_of(uint64_t key, uint32_t parent)
{
	uint64_t h =
		(key ^ (uint64_t)parent << 40 ^ parent) * 0x9e3779b97f4a7c15u; /* golden ratio */
	uint32_t i = (uint32_t)(h >> 40) % NODES;

	while (g.node[i].id && (g.node[i].key != key || g.node[i].parent != parent))
		i = (i + 1) % NODES;
	return &g.node[i];
}

static uint32_t store_node(uint32_t caller, uint32_t function, uint32_t file, int line)
{
	struct vc_journal_frame f = { caller, function, file, line > 0 ? (uint32_t)line : 0 };
	uint32_t at = vc_recorder_text((const char *)&f, sizeof(f));

	if (at && vc_recorder_how(VC_CAP_STACKS) == VC_HOW_ABSENT)
		vc_recorder_capability(VC_CAP_STACKS, VC_HOW_RECORDED);
	return at;
}

static uint32_t native_name(uint64_t pc, uint32_t *file)
{
	char text[256];
	Dl_info info;

	if (!dladdr((void *)(uintptr_t)pc, &info) || !info.dli_fname)
		return vc_names_put("?");
	*file = vc_names_put(info.dli_fname);
	if (info.dli_sname)
		return vc_names_put(info.dli_sname);
	snprintf(text, sizeof(text), "+0x%llx",
		 (unsigned long long)(pc - (uint64_t)(uintptr_t)info.dli_fbase));
	return vc_names_put(text);
}

static uint32_t attribute_name(object *code, const char *name)
{
	object *o = g.attribute(code, name);
	const char *s = o ? g.utf8(o) : NULL;
	uint32_t at = vc_names_put(s);

	if (!s)
		g.clear();
	if (o)
		g.dec(o);
	return at;
}

/* The null GPU computes values in Python, below the operation that the program called, and stands
 * between it and what ranks tell each other; what stands in front of a program (ours, on
 * PYTHONPATH) is not the program's either. */
static uint32_t is_ours(uint32_t function, uint32_t file)
{
	const char *what = vc_recorder_stored(function), *path = vc_recorder_stored(file);
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (strncmp(name, "vramcast_null_", 14) == 0)
		return strcmp(name, "vramcast_null_values.py") == 0 &&
			strcmp(what, "__torch_dispatch__") == 0 ? CUT : SKIP;
	return strcmp(name, "sitecustomize.py") == 0 &&
	       (strcmp(what, "exec_module") == 0 || strncmp(what, "_vramcast", 9) == 0) ? SKIP : 0;
}

static bool by_instruction(void)
{
	return g.instruction && g.line_of;
}

static uint64_t key_of(object *code, int at, bool line)
{
	return (uint64_t)(uintptr_t)code + ((uint64_t)(uint32_t)at << 1 | line) * PLACE;
}

/* Another instruction of the same line may be known. */
static uint32_t known_line(const struct frame *f, int line, uint32_t parent, struct node **n)
{
	*n = slot_of(key_of(f->code, line, true), parent);
	return (*n)->id;
}

static uint32_t new_node(const struct frame *f, uint32_t parent, int line)
{
	uint32_t function, file = 0, id;

	if (f->code) {
		function = attribute_name(f->code, "co_name");
		file = attribute_name(f->code, "co_filename");
	} else {
		function = native_name(f->key, &file);
	}
	id = f->code ? is_ours(function, file) : 0;
	return id ? id : store_node(parent, function, file, line);
}

/* The node, or SKIP or CUT. */
static uint32_t intern(const struct frame *f, uint32_t parent)
{
	struct node *n = slot_of(f->key, parent), *same = NULL;
	bool instruction = f->code && by_instruction();
	uint32_t id = 0;
	int line = f->at;

	if (n->id)
		return n->id;
	if (g.nodes + 1 >= NODES / 2)
		return SKIP; /* enough different stacks: what is new is known by its callers */
	if (instruction) {
		line = g.line_of(f->code, f->at);
		id = known_line(f, line, parent, &same);
	}
	if (!id) {
		id = new_node(f, parent, line);
		if (!id)
			return SKIP;
		if (f->code)
			g.inc(f->code); /* for good: its address is the key */
		if (instruction) {
			*same = (struct node){ key_of(f->code, line, true), parent, id };
			g.nodes++;
			n = slot_of(f->key, parent);
		}
	}
	*n = (struct node){ f->key, parent, id };
	g.nodes++;
	return id;
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n >= k && strcmp(s + n - k, end) == 0;
}

/* What was cut off was called through PyTorch's torch.compiler.disable, from 2.15 on. */
static uint32_t without_wrappers(uint32_t node)
{
	struct vc_journal_frame f;

	for (; node; node = f.caller) {
		memcpy(&f, vc_recorder_stored(node), sizeof(f));
		const char *file = vc_recorder_stored(f.file);

		if (!ends_with(file, "/torch/_compile.py") &&
		    !ends_with(file, "/torch/_dynamo/eval_frame.py"))
			break;
	}
	return node;
}

static uint32_t intern_all(const struct frame *f, int n)
{
	uint32_t node = 0, id = 0;

	pthread_mutex_lock(&g.lock);
	while (n-- > 0 && id != CUT) { /* outermost first */
		id = intern(&f[n], node);
		node = id == CUT || id == SKIP ? node : id;
	}
	pthread_mutex_unlock(&g.lock);
	return id == CUT ? without_wrappers(node) : node;
}

/* ---- walking ---- */

static uint32_t python_stack(void)
{
	struct frame f[DEPTH]; /* 24 KiB: threads that run Python have more */
	object *frame, *code, *back;
	uint32_t node;
	int gil, n = 0;

	if (!g.initialized() || g.finalizing() || !g.this_thread())
		return 0;
	gil = g.ensure();
	for (frame = g.frame(g.thread()); frame && n < DEPTH; frame = back) {
		code = g.code(frame);
		f[n].code = code;
		f[n].at = by_instruction() ? g.instruction(frame) : g.line(frame);
		f[n].key = key_of(code, f[n].at, !by_instruction());
		n++;
		back = g.back(frame);
		g.dec(frame);
	}
	if (frame)
		g.dec(frame);
	node = n ? intern_all(f, n) : 0;
	for (int i = 0; i < n; i++)
		g.dec(f[i].code);
	g.release(gil);
	return node;
}

static __attribute__((noinline)) uint32_t native_stack(void)
{
	struct frame f[DEPTH];
	void *pc[DEPTH];
	int n = backtrace(pc, DEPTH), k = 0;

	for (int i = OWN; i < n; i++)
		f[k++] = (struct frame){ .key = (uint64_t)(uintptr_t)pc[i] };
	return intern_all(f, k);
}

uint32_t vc_stacks_here(void)
{
	int mode = atomic_load_explicit(&g.mode, memory_order_relaxed);

	if (mode == UNDECIDED)
		mode = decide();
	return mode == PYTHON ? python_stack() : mode == NATIVE ? native_stack() : 0;
}

void vc_stacks_step(void)
{
	if (atomic_load_explicit(&g.mode, memory_order_relaxed) != PYTHON ||
	    !atomic_load_explicit(&g.steps, memory_order_relaxed) ||
	    atomic_fetch_sub(&g.steps, 1) != 1)
		return;
	atomic_store(&g.mode, FAILURES);
	vc_recorder_capability(VC_CAP_STACKS, VC_HOW_PARTIAL);
	vc_recorder_fact("note", "call stacks are those of the first steps, as asked, and of "
			 "requests that failed");
}

bool vc_stacks_only_failures(void)
{
	return atomic_load_explicit(&g.mode, memory_order_relaxed) == FAILURES &&
	       atomic_load_explicit(&g.watched, memory_order_relaxed);
}

/* ---- for the Python stub, which PyTorch tells of a request that failed ---- */

void vramcast_watch_failures(void);
void vramcast_failed(void);

VC_EXPORT void vramcast_watch_failures(void)
{
	atomic_store(&g.watched, true);
}

/* No lock of the allocator is held here; the sample was put off, as the record was. */
VC_EXPORT void vramcast_failed(void)
{
	if (vc_stacks_only_failures() && vc_record_release(python_stack()))
		vc_cuda_sample();
}

void vc_stacks_before_fork(void)
{
	pthread_mutex_lock(&g.lock);
}

void vc_stacks_after_fork(bool child)
{
	if (child && g.nodes) {
		memset(g.node, 0, sizeof(g.node));
		g.nodes = 0;
	}
	pthread_mutex_unlock(&g.lock);
}

void vc_stacks_forget(void)
{
	vc_stacks_before_fork();
	vc_stacks_after_fork(true);
	atomic_store(&g.mode, UNDECIDED);
	atomic_store(&g.steps, 0);
	atomic_store(&g.watched, false);
}
