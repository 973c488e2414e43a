/* SPDX-License-Identifier: Apache-2.0 */
/* nvtx.c - NVTX ranges and marks become marks. NVTX calls InitializeInjectionNvtx2 by itself
 * (NVTX_INJECTION64_PATH); neither CUPTI nor CUDA is needed.
 *
 * The few numbers and layouts below are those of nvtx3/nvtxDetail/nvtxTypes.h, stable since
 * NVTX 2. */

#include "tracer/marks.h"
#include "tracer/names.h"
#include "tracer/recorder.h"

enum { CALLBACKS = 1 };              /* NvtxExportTableID */
enum { CORE = 1, CORE2 = 5 };        /* NvtxCallbackModule */
enum { MARK_EX = 1, MARK = 2, START_EX = 4, START = 5, RANGE_END = 7, PUSH_EX = 8, PUSH = 9,
       POP = 11 };                   /* NvtxCallbackIdCore */
enum { D_MARK_EX = 1, D_START_EX = 2, D_END = 3, D_PUSH_EX = 4, D_POP = 5, D_REGISTER = 10 };
enum { ASCII = 1, REGISTERED = 3 };  /* nvtxMessageType_t */

typedef void function(void);
struct callbacks { /* NvtxExportTableCallbacks */
	size_t size;
	int (*table)(uint32_t module, function ****out, unsigned *n);
};
struct attributes { /* nvtxEventAttributes_t */
	uint16_t version, size;
	uint32_t category, color_type, color, payload_type, reserved;
	uint64_t payload;
	uint32_t message_type;
	union { const char *ascii; void *registered; } message;
};
_Static_assert(offsetof(struct attributes, message) == 40, "nvtxEventAttributes_t");

static uint32_t name_of(const struct attributes *a)
{
	if (a && a->message_type == ASCII)
		return vc_names_put(a->message.ascii);
	if (a && a->message_type == REGISTERED) /* see registered() */
		return (uint32_t)(uintptr_t)a->message.registered;
	return 0;
}

static int push(const char *s)
{
	vc_marks_put(VC_MARK_BEGIN, vc_names_put(s));
	return 0;
}

static int push_ex(const struct attributes *a)
{
	vc_marks_put(VC_MARK_BEGIN, name_of(a));
	return 0;
}

static int pop(void)
{
	vc_marks_put(VC_MARK_END, 0);
	return 0;
}

static void mark(const char *s)
{
	vc_marks_put(VC_MARK_INSTANT, vc_names_put(s));
}

static void mark_ex(const struct attributes *a)
{
	vc_marks_put(VC_MARK_INSTANT, name_of(a));
}

/* A range that may end in another thread: its id is the place of its name. */
static uint64_t start(const char *s)
{
	uint32_t at = vc_names_put(s);

	vc_marks_put(VC_MARK_BEGIN, at);
	return at;
}

static uint64_t start_ex(const struct attributes *a)
{
	uint32_t at = name_of(a);

	vc_marks_put(VC_MARK_BEGIN, at);
	return at;
}

static void end(uint64_t id)
{
	vc_marks_put(VC_MARK_END, (uint32_t)id);
}

static void domain_mark_ex(void *domain, const struct attributes *a)
{
	mark_ex(a);
}

static uint64_t domain_start_ex(void *domain, const struct attributes *a)
{
	return start_ex(a);
}

static void domain_end(void *domain, uint64_t id)
{
	end(id);
}

static int domain_push_ex(void *domain, const struct attributes *a)
{
	return push_ex(a);
}

static int domain_pop(void *domain)
{
	return pop();
}

static void *registered(void *domain, const char *s)
{
	return (void *)(uintptr_t)vc_names_put(s);
}

static void set(function ***table, unsigned n, unsigned id, function *f)
{
	if (id < n && table[id])
		*table[id] = f;
}

int InitializeInjectionNvtx2(const void *(*get)(uint32_t));

VC_EXPORT int InitializeInjectionNvtx2(const void *(*get)(uint32_t))
{
	const struct callbacks *c = get(CALLBACKS);
	function ***t = NULL;
	unsigned n = 0;

	if (!c || c->size < sizeof(*c))
		return 0;
	if (c->table(CORE, &t, &n)) {
		set(t, n, MARK_EX, (function *)mark_ex);
		set(t, n, MARK, (function *)mark);
		set(t, n, START_EX, (function *)start_ex);
		set(t, n, START, (function *)start);
		set(t, n, RANGE_END, (function *)end);
		set(t, n, PUSH_EX, (function *)push_ex);
		set(t, n, PUSH, (function *)push);
		set(t, n, POP, (function *)pop);
	}
	if (c->table(CORE2, &t, &n)) {
		set(t, n, D_MARK_EX, (function *)domain_mark_ex);
		set(t, n, D_START_EX, (function *)domain_start_ex);
		set(t, n, D_END, (function *)domain_end);
		set(t, n, D_PUSH_EX, (function *)domain_push_ex);
		set(t, n, D_POP, (function *)domain_pop);
		set(t, n, D_REGISTER, (function *)registered);
	}
	return 1;
}
