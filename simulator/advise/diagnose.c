/* SPDX-License-Identifier: Apache-2.0 */
/* diagnose.c - why a request failed, as far as the figures of the message prove it, and what to
 * try.
 *
 * Figures are rounded to two decimals, so every comparison is of ranges: "surely more" needs the
 * lowest of one to be above the highest of the other. Where the ranges overlap the answer is
 * "undecided". */
#include "simulator/advise/explain.h"

#include <stdarg.h>

#include "common/emit.h"
#include "common/vec.h"

#define MIB ((uint64_t)1 << 20)

static uint64_t low(const struct vc_figure *f)
{
	return f->value > f->slack ? f->value - f->slack : 0;
}

static uint64_t high(const struct vc_figure *f)
{
	return f->value + f->slack;
}

static bool surely_above(const struct vc_figure *a, const struct vc_figure *b)
{
	return a->known && b->known && low(a) > high(b);
}

static void say(struct vc_diagnosis *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct vc_diagnosis *d, const char *fmt, ...)
{
	va_list ap;

	if (d->meanings == sizeof(d->meaning) / sizeof(*d->meaning))
		return;
	va_start(ap, fmt);
	vsnprintf(d->meaning[d->meanings++], sizeof(d->meaning[0]), fmt, ap);
	va_end(ap);
}

/* `setting` is what stands behind the variable, or NULL. */
static void set(struct vc_diagnosis *d, const char *variable, const char *setting, const char *text)
{
	struct vc_advice *a = &d->advice[d->advices];

	if (d->advices == sizeof(d->advice) / sizeof(*d->advice))
		return;
	if (setting)
		snprintf(a->setting, sizeof(a->setting), "%s=%s", variable, setting);
	a->text = text;
	d->advices++;
}

static void advise(struct vc_diagnosis *d, const char *text)
{
	set(d, NULL, NULL, text);
}

/* ---- what follows from the figures ---- */

/* Versions are compared as numbers: 2.10 is above 2.9. NULL is below everything. */
static long order(const char *version)
{
	char *end;
	long major = version ? strtol(version, &end, 10) : 0;

	return version ? major * 1000 + (*end == '.' ? strtol(end + 1, NULL, 10) : 0) : -1;
}

/* Reserved less allocated, where the message does not say it itself. */
static void find_stranded(const struct vc_oom_text *m, struct vc_diagnosis *d)
{
	const struct vc_figure *r = &m->figure[VC_FIG_RESERVED], *a = &m->figure[VC_FIG_ALLOCATED];

	if (m->figure[VC_FIG_UNALLOCATED].known) {
		d->stranded = m->figure[VC_FIG_UNALLOCATED];
	} else if (r->known && a->known) {
		d->stranded = (struct vc_figure){ .known = true,
						  .value = vc_minus(r->value, a->value),
						  .slack = r->slack + a->slack };
		vc_bytes_text(d->stranded.value, d->stranded.text);
	}
}

static struct vc_figure reserved_of(const struct vc_oom_text *m, const struct vc_diagnosis *d)
{
	const struct vc_figure *a = &m->figure[VC_FIG_ALLOCATED];

	if (m->figure[VC_FIG_RESERVED].known)
		return m->figure[VC_FIG_RESERVED];
	return (struct vc_figure){ .known = a->known && d->stranded.known,
				  .value = a->value + d->stranded.value,
				  .slack = a->slack + d->stranded.slack };
}

/* The request is what the allocator fetches from the device. Since 1.4 that is 2 MiB for tensors
 * to 1 MiB, 20 MiB for those below 10 MiB, else the size rounded up to 2 MiB (kSmallBuffer,
 * kLargeBuffer, kRoundLarge of CUDACachingAllocator.cpp), unless the settings say otherwise. */
static void find_want(const struct vc_oom_text *m, struct vc_diagnosis *d)
{
	const struct vc_figure *q = &m->figure[VC_FIG_REQUEST];
	bool pytorch = !strcmp(m->format->framework, "pytorch") && order(m->first) >= order("1.4");

	d->want_low = low(q);
	d->want_high = high(q);
	if (!q->known || !pytorch)
		return;
	if (q->value == 2 * MIB) {
		d->want_low = 1;
		d->want_high = MIB;
	} else if (q->value == 20 * MIB) {
		d->want_low = MIB + 1;
		d->want_high = 20 * MIB;
	} else {
		d->want_low = vc_minus(low(q), 2 * MIB);
	}
}

/* Memory of processes that are surely not this one: they are named apart from "this process". In a
 * container our own may appear under a number, so a number alone proves nothing. */
static uint64_t others(const struct vc_oom_text *m)
{
	uint64_t sum = 0;

	for (size_t i = 0; m->figure[VC_FIG_PROCESS].known && i < m->processes; i++)
		sum += low(&m->process[i].bytes);
	return sum;
}

/* What is there for the request if all that is free or stranded could be used. */
static struct vc_amount all_free(const struct vc_oom_text *m, const struct vc_diagnosis *d)
{
	const struct vc_figure *f = &m->figure[VC_FIG_FREE];

	return (struct vc_amount){ low(f) + low(&d->stranded), high(f) + high(&d->stranded) };
}

/* The record of the failure, as far as the message tells it. */
static void find_amounts(const struct vc_oom_text *m, struct vc_diagnosis *d)
{
	const struct vc_figure *f = m->figure;
	struct vc_amount there = all_free(m, d);
	struct vc_findings *to = &d->found;

	*to = (struct vc_findings){ .verdict = VC_OOM, .card = f[VC_FIG_CAPACITY].known,
				    .at_least = true, .room = f[VC_FIG_CAPACITY].value,
				    .left = UINT64_MAX, .phase = "", .help = VC_NO_TRY };
	to->request = to->piece = f[VC_FIG_REQUEST].value;
	to->free = f[VC_FIG_FREE].value + d->stranded.value;
	to->floor = vc_minus(to->room, to->free) + to->request;
	to->others = others(m);
	d->has_missing = f[VC_FIG_REQUEST].known && f[VC_FIG_FREE].known && d->stranded.known;
	if (d->has_missing) {
		to->lacks_low = vc_minus(d->want_low, there.high);
		to->lacks_high = vc_minus(d->want_high, there.low);
	}
}

static void find_outside(const struct vc_oom_text *m, struct vc_diagnosis *d)
{
	const struct vc_figure *c = &m->figure[VC_FIG_CAPACITY], *f = &m->figure[VC_FIG_FREE];
	struct vc_figure r = reserved_of(m, d);

	if (!c->known || !f->known || !r.known || low(c) < high(f) + high(&r))
		return;
	d->outside = (struct vc_figure){ .known = true, .value = c->value - f->value - r.value,
					 .slack = c->slack + f->slack + r.slack };
	vc_bytes_text(d->outside.value, d->outside.text);
}

static enum vc_cause cause_of(const struct vc_oom_text *m, const struct vc_diagnosis *d)
{
	const struct vc_figure *f = m->figure;
	struct vc_figure r = reserved_of(m, d), limit = f[VC_FIG_ALLOWED];
	struct vc_amount request = { low(&f[VC_FIG_REQUEST]), high(&f[VC_FIG_REQUEST]) };
	struct vc_shortage s = { request, request, { d->want_low, d->want_high }, all_free(m, d),
				 d->found.others, 0, 0, false };

	if (!strcmp(m->format->tag, "F12-rejected"))
		return VC_CAUSE_LIMIT;
	if (!strcmp(m->format->tag, "M-mps"))
		return limit.known && f[VC_FIG_ALLOCATED].known ? VC_CAUSE_LIMIT : VC_CAUSE_UNKNOWN;
	if (!f[VC_FIG_REQUEST].known)
		return strcmp(m->format->tag, "E-1EB") ? VC_CAUSE_UNKNOWN : VC_CAUSE_IMPOSSIBLE;
	if (surely_above(&f[VC_FIG_REQUEST], &f[VC_FIG_CAPACITY]))
		return VC_CAUSE_IMPOSSIBLE;
	if (!d->has_missing || !m->complete)
		return VC_CAUSE_UNKNOWN;
	if (surely_above(&f[VC_FIG_ALLOCATED], &f[VC_FIG_CAPACITY]))
		return VC_CAUSE_OVERSUBSCRIBED;
	if (limit.known && r.known && high(&r) + high(&f[VC_FIG_REQUEST]) > low(&limit) &&
	    low(&f[VC_FIG_FREE]) >= high(&f[VC_FIG_REQUEST]))
		return VC_CAUSE_LIMIT;
	if (low(&f[VC_FIG_FREE]) >= high(&f[VC_FIG_REQUEST]))
		return VC_CAUSE_DEVICE;
	return vc_cause_of(&s);
}

/* The last fiftieth of a device: too little for the driver to be a riddle. */
static bool is_scarce(const struct vc_oom_text *m)
{
	return high(&m->figure[VC_FIG_FREE]) < low(&m->figure[VC_FIG_CAPACITY]) / 50;
}

/* Windows does not tell a process what others hold; a path may tell, too. */
static bool is_linux(const struct vc_oom_text *m)
{
	return m->on_linux || m->processes || m->figure[VC_FIG_PROCESS].known;
}

/* ---- in words ---- */

static void explain_request(const struct vc_oom_text *m, struct vc_diagnosis *d)
{
	const struct vc_figure *q = &m->figure[VC_FIG_REQUEST];

	if (!q->known)
		return;
	if (d->want_high == MIB)
		say(d, "The tensor had at most 1 MiB: for those the allocator fetches 2 MiB at a "
		    "time.");
	else if (d->want_high == 20 * MIB && d->want_low == MIB + 1)
		say(d, "The tensor had between 1 MiB and 20 MiB: the allocator fetches 20 MiB for "
		    "anything from 1 to 10 MiB, and for 18 to 20.");
	else
		say(d, "One request of %s failed.", q->text);
}

/* The figures a text may name. */
static const char *figure_of(const struct vc_oom_text *m, const struct vc_diagnosis *d,
			     const char *name, size_t n)
{
	static const struct { const char *name; enum vc_figure_name is; } names[] = {
		{ "request", VC_FIG_REQUEST },     { "capacity", VC_FIG_CAPACITY },
		{ "free", VC_FIG_FREE },           { "allocated", VC_FIG_ALLOCATED },
		{ "allowed", VC_FIG_ALLOWED },     { "beside", VC_FIG_BESIDE },
		{ "program", VC_FIG_PROGRAM },     { "process", VC_FIG_PROCESS } };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strlen(names[i].name) == n && !strncmp(names[i].name, name, n))
			return m->figure[names[i].is].known ? m->figure[names[i].is].text :
							      "not told";
	return d->stranded.text;
}

/* Says a text, its {names} replaced by figures; {most}: is missing at most. */
static void say_text(const struct vc_oom_text *m, struct vc_diagnosis *d, const char *text)
{
	char line[sizeof(d->meaning[0])], bytes[32];
	size_t n = 0;

	while (*text && n + 1 < sizeof(line)) {
		size_t k = strcspn(text, "{");
		const char *value = NULL;

		n += (size_t)snprintf(line + n, sizeof(line) - n, "%.*s", (int)k, text);
		text += k;
		if (!*text)
			break;
		k = strcspn(++text, "}");
		if (!strncmp(text, "most", k))
			value = vc_bytes_text(d->found.lacks_high, bytes);
		if (n < sizeof(line))
			n += (size_t)snprintf(line + n, sizeof(line) - n, "%s",
					      value ? value : figure_of(m, d, text, k));
		text += k + 1;
	}
	say(d, "%s", line);
}

static bool has_request(const struct vc_oom_text *m)
{
	return m->figure[VC_FIG_REQUEST].known;
}

static bool has_allowed(const struct vc_oom_text *m)
{
	return m->figure[VC_FIG_ALLOWED].known;
}

static bool has_no_figures(const struct vc_oom_text *m)
{
	return m->format->style == VC_STYLE_NONE && !m->figure[VC_FIG_REQUEST].known;
}

static bool is_whole(const struct vc_oom_text *m)
{
	return m->complete;
}

static bool is_xla(const struct vc_oom_text *m)
{
	return !strcmp(m->format->framework, "xla");
}

/* XLA says what a program takes that it could not load. */
static bool has_program(const struct vc_oom_text *m)
{
	return is_xla(m) && m->figure[VC_FIG_PROGRAM].known;
}

/* TensorFlow's pool says what it holds of what it may. */
static bool has_pool(const struct vc_oom_text *m)
{
	const struct vc_figure *f = m->figure;

	return !strcmp(m->format->framework, "tensorflow") && f[VC_FIG_REQUEST].known &&
		f[VC_FIG_ALLOWED].known && f[VC_FIG_ALLOCATED].known;
}

static bool has_torn_pool(const struct vc_oom_text *m)
{
	const struct vc_figure *f = m->figure;

	return has_pool(m) && high(&f[VC_FIG_REQUEST]) <=
		vc_minus(f[VC_FIG_ALLOWED].value, f[VC_FIG_ALLOCATED].value);
}

/* intel/intel-extension-for-pytorch#325, oneapi-src/unified-runtime#1245 */
static bool is_one_block(const struct vc_oom_text *m)
{
	const struct vc_figure *f = m->figure, *q = &f[VC_FIG_REQUEST];

	return m->format->kind == VC_KIND_XPU && q->known && high(q) >= 4096 * MIB &&
		f[VC_FIG_CAPACITY].known && f[VC_FIG_ALLOCATED].known && !f[VC_FIG_FREE].known &&
		high(q) + high(&f[VC_FIG_ALLOCATED]) + high(&f[VC_FIG_UNALLOCATED]) <
		low(&f[VC_FIG_CAPACITY]);
}

static bool has_beside(const struct vc_oom_text *m)
{
	return !strcmp(m->format->tag, "M-mps") && m->figure[VC_FIG_BESIDE].known;
}

static bool is_mps(const struct vc_oom_text *m)
{
	return !strcmp(m->format->tag, "M-mps");
}

/* The first row of the cause whose condition holds. */
static const struct {
	enum vc_cause cause;
	bool (*when)(const struct vc_oom_text *m);
	const char *text[2];
} meanings[] = {
	{ VC_CAUSE_IMPOSSIBLE, has_request,
	  { "No setting can make it fit.",
	    "Look for a shape that multiplies up: a full attention matrix, a one-hot tensor, a "
	    "cross join, image sizes or sequence lengths that were not cut." } },
	{ VC_CAUSE_IMPOSSIBLE, NULL,
	  { "No device has that much: the size itself must be wrong.",
	    "Look for a shape that multiplies up: a full attention matrix, a one-hot tensor, a "
	    "cross join, image sizes or sequence lengths that were not cut." } },
	{ VC_CAUSE_LIMIT, has_beside,
	  { "The graphics of an Apple computer share its memory; PyTorch holds {allocated}, other "
	    "libraries of this process {beside}, and all may have {allowed}, the high watermark: "
	    "the request would have gone beyond." } },
	{ VC_CAUSE_LIMIT, is_mps,
	  { "The graphics of an Apple computer share its memory; PyTorch holds {allocated} and "
	    "allows itself {allowed}, its high watermark: the request would have gone beyond." } },
	{ VC_CAUSE_LIMIT, has_allowed,
	  { "The device had room; the program's own limit ({allowed}) stopped the request: "
	    "torch.cuda.set_per_process_memory_fraction or its setting." } },
	{ VC_CAUSE_LIMIT, NULL,
	  { "The device had room; the program's own limit (a share of the device) stopped the "
	    "request: torch.cuda.set_per_process_memory_fraction or its setting." } },
	{ VC_CAUSE_OVERSUBSCRIBED, is_linux,
	  { "PyTorch counts more as in use ({allocated}) than the device has ({capacity}): under "
	    "Linux that is memory counted, not held, such as a pool of an inference engine whose "
	    "pages were given back (sleep mode) or managed memory.",
	    "So the figures of PyTorch do not tell what fills the device." } },
	{ VC_CAUSE_OVERSUBSCRIBED, NULL,
	  { "More is in use ({allocated}) than the device has ({capacity}): the driver has moved "
	    "memory to the computer's own (Windows does that), slowly, and that is full too." } },
	{ VC_CAUSE_DEVICE, is_scarce,
	  { "The device is as good as full: of the {free} that it reports free the driver could "
	    "not make up the request (it works in pages and needs some itself).",
	    "Live tensors hold {allocated}; {stranded} are held and not in use, in pieces that "
	    "did not fit." } },
	{ VC_CAUSE_DEVICE, NULL,
	  { "The device reports {free} free, enough for the request, and refused it all the same: "
	    "the allocator's cache is not the reason." } },
	{ VC_CAUSE_FRAGMENTATION, NULL,
	  { "{free} are free on the device, {stranded} held and not in use, in holes between live "
	    "tensors.",
	    "That is this request: what the program needs after it, the message cannot tell." } },
	{ VC_CAUSE_OUTSIDE, NULL,
	  { "Live tensors hold {allocated}; other processes on the device hold more than what is "
	    "missing." } },
	{ VC_CAUSE_DEMAND, NULL,
	  { "Live tensors hold {allocated}; with every hole used ({free} free, {stranded} held and "
	    "not in use) it is not enough: allocator settings cannot help." } },
	{ VC_CAUSE_UNDECIDED, NULL,
	  { "Free and stranded memory together are about what was asked for; the message's "
	    "rounding does not tell whether they would have been enough (missing: 0 to "
	    "{most})." } },
	{ VC_CAUSE_UNKNOWN, has_program,
	  { "The compiled program alone wants {program}: parameters, results and what it computes "
	    "between. XLA takes three quarters of the card at the start and serves it from "
	    "there." } },
	{ VC_CAUSE_UNKNOWN, is_xla,
	  { "XLA (JAX, TensorFlow) takes three quarters of the card at the start and serves its "
	    "requests from there: what was free in that pool is not in this message." } },
	{ VC_CAUSE_UNKNOWN, has_torn_pool,
	  { "TensorFlow's pool may have {allowed} and has {allocated} in use: what is left would "
	    "do, but lies in pieces." } },
	{ VC_CAUSE_UNKNOWN, has_pool,
	  { "TensorFlow's pool may have {allowed} and has {allocated} in use: too little is left, "
	    "whatever its pieces." } },
	{ VC_CAUSE_UNKNOWN, is_one_block,
	  { "What PyTorch holds and the request together are less than the card has; cards of "
	    "Intel's first Arc series (A) hold no single block of 4 GiB or more unless that is "
	    "allowed." } },
	{ VC_CAUSE_UNKNOWN, has_no_figures,
	  { "This message carries no figures, so it does not tell why." } },
	{ VC_CAUSE_UNKNOWN, is_whole,
	  { "The figures that would tell why are not in this message." } },
	{ VC_CAUSE_UNKNOWN, NULL,
	  { "The message is cut off or damaged: only the figures that are whole were read." } },
};

/* What findings say of it, in the words of a run. */
static void explain_found(struct vc_diagnosis *d)
{
	enum vc_cause c = d->found.cause;
	char text[VC_SAY];

	if (c != VC_CAUSE_FRAGMENTATION && c != VC_CAUSE_OUTSIDE && c != VC_CAUSE_DEMAND &&
	    (c != VC_CAUSE_IMPOSSIBLE || !d->found.room))
		return;
	vc_why_text(&d->found, VC_TERMINAL, text, sizeof(text));
	say(d, "Cause: %.300s.", text);
	if (!d->found.lacks_low || c == VC_CAUSE_IMPOSSIBLE)
		return;
	vc_less_text(&d->found, false, VC_TERMINAL, text, sizeof(text));
	say(d, "Would help: %.300s.", text);
}

static void explain_cause(const struct vc_oom_text *m, struct vc_diagnosis *d)
{
	const char *const *own = m->format->meaning;

	explain_found(d);
	for (size_t k = 0; k < 2 && own[k]; k++)
		say_text(m, d, own[k]);
	for (size_t i = 0; !own[0] && i < sizeof(meanings) / sizeof(*meanings); i++) {
		if (meanings[i].cause != d->found.cause ||
		    (meanings[i].when && !meanings[i].when(m)))
			continue;
		for (size_t k = 0; k < 2 && meanings[i].text[k]; k++)
			say_text(m, d, meanings[i].text[k]);
		return;
	}
}

static void explain_rest(const struct vc_oom_text *m, struct vc_diagnosis *d)
{
	const struct vc_figure *f = m->figure;

	if (d->outside.known && d->outside.value > 2048 * MIB)
		say(d, "%s of the device are neither free nor PyTorch's: other processes, the "
		    "CUDA context, NCCL, other libraries.", d->outside.text);
	if (f[VC_FIG_PRIVATE].known)
		say(d, "%s are set aside in private pools (CUDA graphs, MemPool), which other "
		    "requests cannot use.", f[VC_FIG_PRIVATE].text);
	if (m->processes == 1 && !f[VC_FIG_PROCESS].known)
		say(d, "Process %" PRIu64
		    " may be this very program: in a container its own number is not recognised.",
		    m->process[0].pid);
	else
		for (size_t i = 0; i < m->processes; i++)
			say(d, "Process %" PRIu64 " on the same device holds %s.",
			    m->process[i].pid, m->process[i].bytes.text);
	if (m->messages > 1)
		say(d, "The text holds %zu such messages; this is about the last%s.", m->messages,
		    m->complete ? " whole one" : "");
}

/* ---- what to try ---- */

static void advise_less(struct vc_diagnosis *d)
{
	advise(d, "a smaller batch or sequence, with gradient accumulation to keep the effective "
	       "batch");
	advise(d, "activation checkpointing; bf16 instead of fp32; an 8-bit or sharded optimizer; "
	       "torch.no_grad() and del for what is not needed any more");
	advise(d, "record one step and let 'vramcast fit' find the largest batch that fits this "
	       "card");
}

static void advise_xla(struct vc_diagnosis *d)
{
	set(d, "XLA_PYTHON_CLIENT_MEM_FRACTION", "0.95",
	    "a larger part of the card for the pool; 0.75 is the default of JAX");
	set(d, "TF_GPU_ALLOCATOR", "cuda_malloc_async",
	    "when the pool has room but in pieces: the driver's own allocator");
	advise(d, "a smaller batch; jax.checkpoint around layers; donate_argnums for buffers that "
	       "a jitted function replaces");
}

static void advise_tensorflow(struct vc_diagnosis *d)
{
	set(d, "TF_GPU_ALLOCATOR", "cuda_malloc_async",
	    "when the pool has room but in pieces: the driver's own allocator");
	advise(d, "a smaller batch; tf.recompute_grad around layers; "
	       "tf.keras.mixed_precision.set_global_policy('mixed_bfloat16')");
}

static void advise_fragmentation(const struct vc_oom_text *m, struct vc_diagnosis *d)
{
	long newest = m->last ? order(m->last) : 9999, oldest = order(m->first);

	if (!strncmp(m->format->tag, "I-xpu", 5)) {
		if (!m->last)
			set(d, m->variable, "expandable_segments:True", "joins the pieces");
		advise(d, "torch.xpu.empty_cache() between phases of different shape; largest "
		       "batch first; a newer PyTorch (from 2.10 on XPU has expandable segments)");
		return;
	}
	if (!strcmp(m->format->tag, "F15-reserve"))
		advise(d, "expandable segments are on already: look for tensors that live "
		       "long and are allocated between short ones");
	else if (!strcmp(m->format->tag, "F14-no-hint"))
		set(d, m->variable, "expandable_segments:True",
		    "joins the pieces, where the message was merely cut; from 2.14 on it ends like "
		    "this when they are on already: then look for tensors that live long and are "
		    "allocated between short ones");
	else if (!strcmp(m->format->tag, "H-hip"))
		set(d, m->variable, "expandable_segments:True",
		    "joins the pieces from PyTorch 2.12 on; up to 2.11 ROCm ignores it, though the "
		    "message recommends it: then a newer PyTorch");
	else if (newest >= order("2.1"))
		set(d, m->variable, "expandable_segments:True",
		    "joins the pieces; from PyTorch 2.1, not on Windows. Up to 2.13 the message "
		    "recommends it even when it is on already");
	if (newest >= order("1.10") && oldest < order("2.2"))
		set(d, m->variable, "max_split_size_mb:512", "large blocks are no longer split, "
		    "so that they can go back whole; try 256 and 128 as well");
	if (newest < order("2.1"))
		advise(d, newest < order("1.10") ? "a newer PyTorch: before 1.10 there is no "
		       "setting against this; 2.2 and later have expandable segments" :
		       "a newer PyTorch: from 2.1 on there are expandable segments, which join the "
		       "pieces");
	advise(d,
	       "torch.cuda.empty_cache() between phases of different shape; largest batch first");
	advise(d, "record one run: 'vramcast tune' finds the settings, 'vramcast plot -t segments' "
	       "shows who pins the holes");
}

static void advise_limit(const struct vc_oom_text *m, struct vc_diagnosis *d)
{
	if (!is_mps(m)) {
		advise(d, "raise torch.cuda.set_per_process_memory_fraction, or remove the limit");
		return;
	}
	advise_less(d);
	set(d, "PYTORCH_MPS_HIGH_WATERMARK_RATIO", "0.0",
	    "lifts the limit; the computer may begin to swap, or worse");
}

static void advise_device(const struct vc_oom_text *m, struct vc_diagnosis *d)
{
	if (is_scarce(m)) {
		if (surely_above(&d->stranded, &m->figure[VC_FIG_REQUEST]))
			advise_fragmentation(m, d);
		advise_less(d);
		return;
	}
	advise(d, "nvidia-smi (rocm-smi, xpu-smi): another process may have held the memory for a "
	       "moment; MIG, MPS and virtual machines set limits of their own");
	if (order(m->first) <= order("2.4") && order(m->first) >= order("2.1"))
		advise(d, "torch.cuda.set_per_process_memory_fraction: PyTorch 2.1 to 2.4 do not "
		       "mention it in the message");
	if (!is_linux(m))
		advise(d, "on Windows: other programs on the card and the size of the page file; "
		       "with integrated graphics the memory is shared");
}

static void advise_unknown(const struct vc_oom_text *m, struct vc_diagnosis *d)
{
	if (is_xla(m)) {
		advise_xla(d);
		return;
	}
	if (is_one_block(m)) {
		set(d, "UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS", "1",
		    "allows it, where PyTorch was built for that");
		advise(d, "the same tensor in pieces: a smaller batch, attention in slices");
	} else if (!strcmp(m->format->framework, "tensorflow"))
		advise_tensorflow(d);
	else if (m->complete)
		advise_less(d);
	else
		advise(d, "paste the whole message, from the name of the exception to the last "
		       "word");
	if (!strcmp(m->format->framework, "pytorch"))
		advise(d, "record the run with 'vramcast record -- python train.py': that shows "
		       "who held what");
}

static void advise_cause(const struct vc_oom_text *m, struct vc_diagnosis *d)
{
	const char *const *own = m->format->tries;

	for (size_t k = 0; k < 3 && own[k]; k++)
		advise(d, own[k]);
	if (m->format->less)
		advise_less(d);
	if (own[0])
		return;
	switch (d->found.cause) {
	case VC_CAUSE_IMPOSSIBLE:
		advise(d, "print the shapes in front of the failing line");
		advise(d, "attention that never builds the full matrix "
		       "(scaled_dot_product_attention, FlashAttention), work in chunks");
		break;
	case VC_CAUSE_LIMIT:
		advise_limit(m, d);
		break;
	case VC_CAUSE_OVERSUBSCRIBED:
		if (is_linux(m))
			advise(d, "of an inference engine: a lower share of the card for its pool "
			       "(vLLM gpu_memory_utilization, SGLang mem-fraction-static), a "
			       "shorter context, fewer requests at once");
		advise_less(d);
		break;
	case VC_CAUSE_DEVICE:
		advise_device(m, d);
		break;
	case VC_CAUSE_FRAGMENTATION:
		advise_fragmentation(m, d);
		break;
	case VC_CAUSE_OUTSIDE:
		advise(d, "stop the other processes, or choose another card with "
		       "CUDA_VISIBLE_DEVICES");
		advise_less(d);
		break;
	case VC_CAUSE_UNDECIDED:
		advise_fragmentation(m, d);
		advise_less(d);
		break;
	case VC_CAUSE_DEMAND:
		advise_less(d);
		break;
	case VC_CAUSE_NONE: /* these two are of runs */
	case VC_CAUSE_LEAK:
	case VC_CAUSE_UNKNOWN:
		advise_unknown(m, d);
		break;
	}
}

void vc_explain_diagnose(const struct vc_oom_text *m, struct vc_diagnosis *d)
{
	*d = (struct vc_diagnosis){ 0 };
	find_stranded(m, d);
	find_want(m, d);
	find_amounts(m, d);
	find_outside(m, d);
	d->found.cause = cause_of(m, d);
	explain_request(m, d);
	explain_cause(m, d);
	explain_rest(m, d);
	advise_cause(m, d);
}
