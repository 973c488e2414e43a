/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - see explain.h. The text is first made one line with single blanks: terminals, logs
 * and issue trackers break and indent it at will. */
#include "simulator/advise/explain.h"

#include <ctype.h>

#include "common/emit.h"

/* ---- one line ---- */

/* Colours of a terminal: ESC [ ... letter. Returns where the text goes on. */
static size_t skip_escape(const char *t, size_t n, size_t i)
{
	if (i + 1 < n && t[i + 1] == '[')
		for (i += 2; i < n && !isalpha((unsigned char)t[i]); i++)
			;
	return i + 1;
}

static char *one_line(const char *t, size_t n)
{
	char *s = malloc(n + 1);
	size_t k = 0;

	for (size_t i = 0; s && i < n;) {
		unsigned char c = (unsigned char)t[i];

		if (c == 0x1b) {
			i = skip_escape(t, n, i);
			continue;
		}
		if (c <= ' ') {
			if (k && s[k - 1] != ' ')
				s[k++] = ' ';
		} else {
			s[k++] = (char)c;
		}
		i++;
	}
	if (s)
		s[k] = '\0';
	return s;
}

/* ---- figures ---- */

/* "2.26 GiB", "0 bytes" at s; *end is behind it. The unit must end there: a figure that runs into
 * other letters is damaged. */
static bool read_size(const char *s, struct vc_figure *f, const char **end)
{
	static const struct { const char *name; unsigned shift; } unit[] = {
		{ "bytes", 0 }, { "KiB", 10 }, { "MiB", 20 }, { "GiB", 30 },
		/* MPS writes these for the same (format_size of MPSAllocator before 2.8) */
		{ "KB", 10 }, { "MB", 20 }, { "GB", 30 },
		{ "B", 0 }, /* RMM, whose figures have six digits behind the point */
	};
	size_t whole = strspn(s, "0123456789"), dot = s[whole] == '.',
	       part = dot ? strspn(s + whole + 1, "0123456789") : 0;
	const char *u = s + whole + dot + part;
	uint64_t v, behind, scale = part == 6 ? 1000000 : part == 3 ? 1000 : 100;

	/* 12 digits of GiB are more than any device and still no overflow below; XLA counts bytes
	 * and leaves no blank in front of the unit */
	if (!whole || whole > (*u == ' ' && u[1] == 'b' ? 18u : 9u) ||
	    (dot && part != 2 && part != 3 && part != 6))
		return false;
	v = strtoull(s, NULL, 10);
	behind = dot ? strtoull(s + whole + 1, NULL, 10) : 0;
	u += *u == ' ';
	for (size_t i = 0; i < sizeof(unit) / sizeof(*unit); i++) {
		size_t len = strlen(unit[i].name);
		uint64_t one = (uint64_t)1 << unit[i].shift;

		if (strncmp(u, unit[i].name, len) || isalnum((unsigned char)u[len]))
			continue;
		*f = (struct vc_figure){.known = true,
					.value = v * one + (behind * one + scale / 2) / scale,
					.slack = !unit[i].shift ? 0 :
						 (one + 2 * scale - 1) / (2 * scale) };
		snprintf(f->text, sizeof(f->text), "%.*s", (int)(u + len - s), s);
		*end = u + len;
		return true;
	}
	return false;
}

/* The size directly behind `phrase`; `unit`: where the text gives the number alone, else NULL. */
static bool size_after(const char *s, const char *phrase, const char *unit, struct vc_figure *f)
{
	const char *at = strstr(s, phrase), *end;
	char whole[32];

	if (!at || !unit)
		return at && read_size(at + strlen(phrase), f, &end);
	at += strlen(phrase);
	size_t n = strspn(at, "0123456789.");
	snprintf(whole, sizeof(whole), "%.*s %s", n < 20 ? (int)n : 0, at, unit);
	return read_size(whole, f, &end);
}

/* The size directly in front of `phrase`. */
static bool size_before(const char *s, const char *phrase, struct vc_figure *f)
{
	const char *at = strstr(s, phrase), *p = at, *end;

	if (!at)
		return false;
	while (p > s && p[-1] != ' ') /* the unit */
		p--;
	if (p > s && !isdigit((unsigned char)*p)) /* the number, where a blank parts them */
		for (p--; p > s && p[-1] != ' ' && p[-1] != '('; p--)
			;
	return read_size(p, f, &end) && end == at;
}

/* Where a size stands by a phrase; some texts give the number alone. */
enum where { AHEAD, BEHIND, BYTES, GIB };

static const struct {
	enum vc_figure_name name;
	enum where where;
	const char *phrase;
} figures[] = {
	{ VC_FIG_REQUEST, BEHIND, "Tried to allocate " },
	{ VC_FIG_REQUEST, BEHIND, "Requested size: " },
	{ VC_FIG_REQUEST, BEHIND, "while trying to allocate " },
	{ VC_FIG_REQUEST, BEHIND, "_alloc_buffer: allocating " },
	{ VC_FIG_REQUEST, BEHIND, "(failed to allocate " },
	{ VC_FIG_REQUEST, BEHIND, "you tried to allocate " },
	{ VC_FIG_REQUEST, BEHIND, "an out of memory trying to allocate " }, /* Ran, ran */
	{ VC_FIG_REQUEST, BEHIND, "Attempting to allocate " },
	{ VC_FIG_REQUEST, BEHIND, "Cannot allocate " },
	{ VC_FIG_REQUEST, BEHIND, "Requested amount of GPU memory (" },
	{ VC_FIG_REQUEST, BEHIND, "Requested amount of memory (" },
	{ VC_FIG_REQUEST, BYTES, "requested buffer of size " },
	{ VC_FIG_REQUEST, BYTES, "Device memory allocation of size " },
	{ VC_FIG_REQUEST, BYTES, "Requested memory: " },
	{ VC_FIG_REQUEST, BEHIND, "Failed to allocate request for " },
	{ VC_FIG_REQUEST, BEHIND, "Unable to allocate " },
	{ VC_FIG_REQUEST, BEHIND, "GPU memory trying to allocate " },
	{ VC_FIG_REQUEST, BEHIND, "ailed to cudaMalloc " },
	{ VC_FIG_REQUEST, AHEAD, " (cudaMalloc error" },
	{ VC_FIG_REQUEST, BEHIND, "Requested : " }, /* the driver's pools */
	{ VC_FIG_ALLOCATED, BEHIND, "Currently allocated : " },
	{ VC_FIG_CAPACITY, BEHIND, "Device limit : " },
	{ VC_FIG_FREE, BEHIND, "Free (according to CUDA): " },
	{ VC_FIG_CAPACITY, AHEAD, " total capacity;" },
	{ VC_FIG_CAPACITY, BEHIND, "total capacity of " },
	{ VC_FIG_CAPACITY, BEHIND, "total capacty of " },
	{ VC_FIG_FREE, AHEAD, " free;" },
	{ VC_FIG_FREE, AHEAD, " is free." },
	{ VC_FIG_ALLOCATED, AHEAD, " already allocated;" },
	{ VC_FIG_ALLOCATED, AHEAD, " is allocated by PyTorch" },
	{ VC_FIG_RESERVED, AHEAD, " reserved in total by " },
	{ VC_FIG_UNALLOCATED, AHEAD, " cached)" },
	{ VC_FIG_UNALLOCATED, AHEAD, " is reserved by PyTorch but unallocated" },
	{ VC_FIG_FREE, BEHIND, "available memory is only " },
	{ VC_FIG_FREE, BYTES, "- Free memory: " },
	{ VC_FIG_FREE, GIB, "component creation attempt (GiB): " },
	{ VC_FIG_CAPACITY, GIB, "Total GPU memory (GiB): " },
	{ VC_FIG_PROCESS, AHEAD, " memory has been allocated" },
	{ VC_FIG_PROCESS, BEHIND, "this process has " },
	{ VC_FIG_BESIDE, BEHIND, "other allocations: " },
	{ VC_FIG_PROGRAM, BEHIND, "total allocation: " },
	{ VC_FIG_ALLOCATED, BYTES, "InUse: " }, /* TensorFlow's pool */
	{ VC_FIG_ALLOWED, BYTES, "Stats: Limit: " },
	{ VC_FIG_ALLOWED, BEHIND, "maximum allowed buffer size of " },
	{ VC_FIG_ALLOCATED, BEHIND, "(MPS allocated: " },
	{ VC_FIG_ALLOWED, AHEAD, " allowed;" },
	{ VC_FIG_ALLOWED, BEHIND, "max allowed: " },
	{ VC_FIG_PRIVATE, AHEAD, " allocated in private pools" },
};

static void read_figures(const char *s, struct vc_oom_text *m)
{
	static const char *const unit[] = { [BYTES] = "bytes", [GIB] = "GiB" };

	for (size_t i = 0; i < sizeof(figures) / sizeof(*figures); i++) {
		struct vc_figure *f = &m->figure[figures[i].name];

		if (f->known)
			continue;
		if (figures[i].where == AHEAD)
			size_before(s, figures[i].phrase, f);
		else
			size_after(s, figures[i].phrase, unit[figures[i].where], f);
	}
}

/* "Process 20398 has 14.52 GiB memory in use." */
static void read_processes(const char *s, struct vc_oom_text *m)
{
	static const char word[] = "Process ";

	for (const char *p = strstr(s, word); p && m->processes < 16; p = strstr(p + 1, word)) {
		struct vc_oom_process *to = &m->process[m->processes];
		char *end;
		const char *behind;

		to->pid = strtoull(p + sizeof(word) - 1, &end, 10);
		if (end != p + sizeof(word) - 1 && !strncmp(end, " has ", 5) &&
		    read_size(end + 5, &to->bytes, &behind) &&
		    !strncmp(behind, " memory in use", 14))
			m->processes++;
	}
}

static void read_device(const char *s, struct vc_oom_text *m)
{
	const char *p = strstr(s, "(GPU "), *npu = strstr(s, "(NPU ");
	char *end;

	p = p ? p : npu;
	p = p ? p + 1 : strstr(s, ". GPU ") ? strstr(s, ". GPU ") + 2 : NULL;
	if (!p || !isdigit((unsigned char)p[4]))
		return;
	m->device = strtoull(p + 4, &end, 10);
	m->has_device = *end == ';' || *end == ' ';
}

/* "failed to allocate 17.79G (19104890880 bytes) from device" */
static void read_tensorflow(const char *s, struct vc_oom_text *m)
{
	const char *p = strstr(s, "failed to allocate"), *open = p ? strchr(p, '(') : NULL;
	struct vc_figure *f = &m->figure[VC_FIG_REQUEST];
	char *end;

	if (!open || open - p > 40 || !isdigit((unsigned char)open[1]))
		return;
	f->value = strtoull(open + 1, &end, 10);
	f->known = !strncmp(end, " bytes)", 7) && end - open <= 18;
	snprintf(f->text, sizeof(f->text), "%" PRIu64 " bytes", f->value);
}

/* "OOM when allocating tensor with shape[256,64,56,56] and type float": what that tensor takes. */
static void read_tensor(const char *s, struct vc_oom_text *m)
{
	static const struct { const char *name; uint64_t width; } types[] = {
		{ "float ", 4 }, { "double ", 8 }, { "half ", 2 }, { "bfloat16 ", 2 },
		{ "int32 ", 4 }, { "int64 ", 8 }, { "int8 ", 1 }, { "uint8 ", 1 }, { "bool ", 1 },
		{ "complex64 ", 8 }, { "complex128 ", 16 } };
	const char *p = strstr(s, "tensor with shape[");
	const char *type = p ? strstr(p, "] and type ") : NULL;
	struct vc_figure *f = &m->figure[VC_FIG_REQUEST];
	uint64_t bytes = 0;
	bool whole = type != NULL;
	char *end;

	for (size_t i = 0; type && i < sizeof(types) / sizeof(*types); i++)
		if (!strncmp(type + 11, types[i].name, strlen(types[i].name)))
			bytes = types[i].width;
	for (p = p ? p + 18 : NULL; whole && p < type; p = *end == ',' ? end + 1 : end) {
		uint64_t n = strtoull(p, &end, 10);
		whole = end != p && (*end == ',' || end == type) &&
			!__builtin_mul_overflow(bytes, n, &bytes);
	}
	if (!whole || !bytes)
		return;
	f->known = true;
	f->value = bytes;
	vc_bytes_text(bytes, f->text);
}

/* ---- which message ---- */

enum { MARKS = sizeof(((struct vc_oom_format *)0)->mark) / sizeof(char *) };

static bool fits(const struct vc_oom_format *f, const char *s)
{
	bool marked = !f->mark[0];

	for (size_t i = 0; i < MARKS && f->mark[i]; i++)
		marked |= strstr(s, f->mark[i]) != NULL;
	if (!marked)
		return false;
	for (size_t i = 0; i < 3 && f->has[i]; i++)
		if (!strstr(s, f->has[i]))
			return false;
	for (size_t i = 0; i < 3 && f->hasnot[i]; i++)
		if (strstr(s, f->hasnot[i]))
			return false;
	return true;
}

static bool is_complete(const struct vc_oom_text *m)
{
	const struct vc_figure *f = m->figure;
	bool held = f[VC_FIG_REQUEST].known && f[VC_FIG_CAPACITY].known &&
		    f[VC_FIG_ALLOCATED].known &&
		    (f[VC_FIG_RESERVED].known || f[VC_FIG_UNALLOCATED].known);

	switch (m->format->style) {
	case VC_STYLE_NONE: return true;
	case VC_STYLE_REQUEST: return f[VC_FIG_REQUEST].known;
	case VC_STYLE_HELD: return held;
	case VC_STYLE_OLD: case VC_STYLE_SENTENCE: return held && f[VC_FIG_FREE].known;
	}
	return false;
}

/* The exception was torch.cuda.OutOfMemoryError from 1.13 to 2.4, torch.OutOfMemoryError from 2.5;
 * the link in the recommendation changed with 2.11. */
static void narrow(const char *s, struct vc_oom_text *m)
{
	const struct vc_oom_format *f = m->format;
	bool cuda = strstr(s, "torch.cuda.OutOfMemoryError"),
	     plain = strstr(s, "torch.OutOfMemoryError");
	bool old_link = strstr(
		s, "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)");

	m->first = f->first;
	m->last = f->last;
	if (strcmp(f->framework, "pytorch"))
		return;
	if (cuda && f->style == VC_STYLE_OLD)
		m->first = "1.13";
	if (f->style != VC_STYLE_SENTENCE)
		return;
	if (cuda && !f->last)
		m->last = "2.4";
	if (plain && f->first && (!strcmp(f->first, "2.2") || !strcmp(f->first, "2.4")))
		m->first = "2.5";
	if (old_link && !m->last)
		m->last = "2.9";
}

/* Where the message that contains `at` begins: the exception's name belongs to it, the end of what
 * stands before does not. */
static const char *message_start(const char *s, const char *at)
{
	const char *from = at - s > 48 ? at - 48 : s;

	for (const char *p = at; p > from; p--)
		if (p[-1] == '\'' || p[-1] == '"' || p[-1] == '>' ||
		    (p[-1] == ' ' && p - 1 > s && (p[-2] == '.' || p[-2] == ')')))
			return p;
	return from;
}

/* The nearest of the words from s on; NULL. One pass: a log may hold thousands of messages. */
static const char *find_any(const char *s, const char *const *word)
{
	for (; *s; s++)
		for (size_t i = 0; word[i]; i++)
			if (*s == *word[i] && !strncmp(s, word[i], strlen(word[i])))
				return s;
	return NULL;
}

static const char *find_message(const char *s)
{
	const char *any[128] = { "out of memory", "CUDA_ERROR_OUT_OF_MEMORY", "RESOURCE_EXHAUSTED",
				"OOM when allocating tensor", "cuda runtime error (2)",
				"std::bad_alloc: out_of_memory" };
	size_t n = 6;

	for (const struct vc_oom_format *f = vc_oom_formats; f->tag; f++)
		for (size_t i = 0; i < MARKS && f->mark[i] && n < 127; i++)
			any[n++] = f->mark[i];
	return find_any(s, any);
}

/* The next one behind `at`, by words that stand once in a message. */
static const char *find_next(const char *at)
{
	static const char *const once[] = { "out of memory. Tried to allocate",
					   "MPS backend out of memory", "RESOURCE_EXHAUSTED: ",
					   NULL };

	return find_any(at + 1, once);
}

static void read_message(const char *s, struct vc_oom_text *m)
{
	for (m->format = vc_oom_formats; !fits(m->format, s); m->format++)
		if (!m->format[1].tag) /* the words themselves may be missing, as in the driver's
					  name for it */
			break;
	read_figures(s, m);
	read_processes(s, m);
	read_device(s, m);
	if (!strcmp(m->format->framework, "tensorflow")) {
		read_tensorflow(s, m);
		read_tensor(s, m);
	}
	narrow(s, m);
	m->variable = !strcmp(m->format->tag, "N-npu") ? "PYTORCH_NPU_ALLOC_CONF" :
		!strcmp(m->format->tag, "I-xpu") ? "PYTORCH_ALLOC_CONF" :
		strstr(s, "PYTORCH_HIP_ALLOC_CONF=") ? "PYTORCH_HIP_ALLOC_CONF" :
		strstr(s, "PYTORCH_ALLOC_CONF=") ? "PYTORCH_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF";
	m->complete = is_complete(m) && strcmp(m->format->tag, "X-mangled");
}

int vc_explain_read(const char *text, size_t n, struct vc_oom_text *m, struct vc_error *err)
{
	static const char *const unix_path[] = { "/usr/", "/home/", "/root/", "/opt/", NULL };
	char *line = one_line(text, n);
	const char *at = line ? find_message(line) : NULL, *next;
	size_t messages = 0;
	bool before; /* TensorFlow and llama.cpp say the size before the words */

	*m = (struct vc_oom_text){ 0 };
	VC_HAVE(line, "the message", err);
	before = strstr(line, "failed to allocate") || strstr(line, "_alloc_buffer: ") ||
		strstr(line, "bfc_allocator.cc") || strstr(line, "memory allocation of size ");
	for (; at; at = next) {
		struct vc_oom_text one = { 0 };
		const char *start = message_start(line, at);
		char *copy;

		next = find_next(at);
		if (before && !messages && !next && !strstr(at, "Tried to allocate"))
			start = line;
		copy = strndup(start, next ? (size_t)(next - start) : strlen(start));
		if (!copy) {
			free(line);
			return vc_nomem(err, "the message");
		}
		read_message(copy, &one);
		free(copy);
		if (!messages++ || one.complete || !m->complete)
			*m = one;
	}
	m->messages = messages;
	m->on_linux = find_any(line, unix_path) != NULL;
	free(line);
	return messages ? VC_OK :
			  vc_fail(err, VC_EFORMAT,
				  "no out-of-memory message was found in the text (paste the whole "
				  "line that says 'out of memory')");
}
