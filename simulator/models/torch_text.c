/* SPDX-License-Identifier: Apache-2.0 */
/* torch_text.c - what PyTorch says when memory runs out, byte for byte, by version. */
#include <stdarg.h>

#include "simulator/models/torch_index.h"
#include "simulator/models/torch_size.h"

#define SEE "  See documentation for Memory Management"
#define EMPTY " `empty_cache` to release all unoccupied cached memory."
#define URL1 "https://pytorch.org/docs/stable/notes/cuda.html#environment-variables"
#define URL2 "https://docs.pytorch.org/docs/stable/notes/cuda.html" \
	     "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf"

#define fmt torch_size_text

void torch_raise(struct torch *t, const char *fmt_, ...)
{
	va_list ap;

	va_start(ap, fmt_);
	vsnprintf(t->m->note, sizeof(t->m->note), fmt_, ap);
	va_end(ap);
}

static void say(struct torch *t, const char *fmt_, ...) __attribute__((format(printf, 2, 3)));
static void say(struct torch *t, const char *fmt_, ...)
{
	size_t at = strlen(t->m->note);
	va_list ap;

	va_start(ap, fmt_);
	vsnprintf(t->m->note + at, sizeof(t->m->note) - at, fmt_, ap);
	va_end(ap);
}

/* Bytes of the FREE blocks of private pools: what the text calls allocated in them. */
static uint64_t private_free(const struct torch *t)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < t->sets; i++) {
		const struct torch_set *s = t->set[i];

		if (!s || !s->pool->owner)
			continue;
		for (uint32_t b = torch_index_first(s); b; b = torch_index_step(t, b, 1))
			sum += t->b[b].size;
	}
	return t->r->oom_private ? sum : 0;
}

static const char *word(const struct torch *t)
{
	return torch_device_name[t->r->device];
}

static void say_old(struct torch *t, const struct torch_want *w)
{
	const struct vc_device_config *d = vc_device_config(t->m->device);
	bool npu = t->r->device == TORCH_NPU;
	uint64_t live = (uint64_t)t->all[TORCH_ALLOCATED_BYTES].cur;

	torch_raise(t, "%s out of memory. Tried to allocate %s (%s %u; %s total capacity; %s "
		    "already allocated; ", word(t), fmt(w->asz).s, npu ? "NPU" : "GPU", d->index,
		    fmt(d->total).s, fmt(live).s);
	if (npu)
		say(t, "%s current active; ", fmt(live + (uint64_t)t->bytes[2].cur).s);
	say(t, "%s free; ", fmt(vc_device_available(t->m->device)).s);
	if (t->limit != TORCH_UNLIMITED)
		say(t, "%s allowed; ", fmt(t->limit).s);
	say(t, "%s reserved in total by PyTorch) If reserved memory is >> allocated memory try "
	    "setting max_split_size_mb to avoid fragmentation.",
	    fmt((uint64_t)t->all[TORCH_RESERVED_BYTES].cur).s);
	if (!npu)
		say(t, SEE " and PYTORCH_%s_ALLOC_CONF", t->r->oom_hip ? "HIP" : "CUDA");
}

/* What the driver charges a process with; 0 for ourselves means: count. */
static uint64_t process_bytes(const struct torch *t, const struct vc_process *p)
{
	if (p->bytes || !p->self)
		return p->bytes;
	return vc_device_taken(t->m->device) + vc_device_config(t->m->device)->context;
}

/* 2.3 prints the number of the device as a character; 0 ends the text. */
static bool is_cut(const struct torch *t)
{
	return t->r->oom_text == TORCH_OOM_CUT && !vc_device_config(t->m->device)->index;
}

static void say_head(struct torch *t, const struct torch_want *w)
{
	const struct vc_device_config *d = vc_device_config(t->m->device);

	torch_raise(t, "%s out of memory. Tried to allocate %s. GPU ", word(t), fmt(w->asz).s);
	if (is_cut(t))
		return;
	say(t, t->r->oom_text == TORCH_OOM_CUT ? "%c" : "%u", d->index);
	say(t, " has a total %s of %s of which %s is free. ",
	    t->r->oom_text == TORCH_OOM_CAPACTY ? "capacty" : "capacity", fmt(d->total).s,
	    fmt(vc_device_available(t->m->device)).s);
	for (size_t i = 0; i < d->processes && t->r->oom_processes; i++) {
		if (d->process[i].self)
			say(t, "Including non-PyTorch memory, this process has ");
		else
			say(t, "Process %u has ", d->process[i].pid);
		say(t, "%s memory in use. ", fmt(process_bytes(t, &d->process[i])).s);
	}
	if (t->limit != TORCH_UNLIMITED && t->r->oom_limit)
		say(t, "%s allowed; ", fmt(t->limit).s);
}

static void say_body(struct torch *t)
{
	uint64_t alloc = (uint64_t)t->all[TORCH_ALLOCATED_BYTES].cur;
	uint64_t reserved = (uint64_t)t->all[TORCH_RESERVED_BYTES].cur, priv = private_free(t);

	say(t, "Of the allocated memory %s is allocated by PyTorch, ", fmt(alloc + priv).s);
	if (priv)
		say(t, "with %s allocated in private pools (e.g., CUDA Graphs), ", fmt(priv).s);
	say(t, "and %s is reserved by PyTorch but unallocated.", fmt(reserved - alloc - priv).s);
}

/* 2.15 with expandable segments on: what to do about the virtual reserve. */
static void say_reserve(struct torch *t, const struct torch_want *w)
{
	uint64_t v = torch_reserve_size(t, w->set->stream);
	const struct torch_stream *s = torch_stream_at(t, w->set->stream);

	if (w->asz > vc_device_config(t->m->device)->prop_total || v >= w->asz) {
		say(t, " expandable_segments is enabled. If instead the process is running out of "
		    "virtual address space (VSZ), expandable segments may be over-reserving VA "
		    "(each segment reserves ~9/8 of device memory, times the number of streams); "
		    "reduce it via PYTORCH_CUDA_ALLOC_CONF expandable_segments_reserve / "
		    "expandable_segments_reserve_by_class.");
		return;
	}
	say(t, " This allocation exceeds the expandable-segment reserve of %s", fmt(v).s);
	if (s->klass)
		say(t, " for stream reserve class '%s'", s->klass);
	else
		say(t, " for this stream");
	say(t, ", and a single allocation cannot span expandable segments. Raise "
	    "PYTORCH_CUDA_ALLOC_CONF expandable_segments_reserve or "
	    "expandable_segments_reserve_by_class (or unset it) so that a segment is at least "
	    "%s.", fmt(w->asz).s);
}

static void say_hint(struct torch *t, const struct torch_want *w)
{
	const struct torch_rules *r = t->r;

	if (t->conf.expandable && r->oom_hint_on != TORCH_ON_SAME) {
		if (r->oom_hint_on == TORCH_ON_RESERVE)
			say_reserve(t, w);
		return;
	}
	if (r->oom_hint == TORCH_HINT_SPLIT)
		say(t, " If reserved but unallocated memory is large try setting max_split_size_mb "
		    "to avoid fragmentation." SEE " and PYTORCH_%s_ALLOC_CONF",
		    r->oom_hip ? "HIP" : "CUDA");
	else
		say(t, " If reserved but unallocated memory is large try setting "
		    "%s=expandable_segments:True to avoid fragmentation." SEE "  (%s)",
		    r->oom_hint == TORCH_HINT_ALLOC1 ? "PYTORCH_ALLOC_CONF" :
		    r->oom_hip ? "PYTORCH_HIP_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF",
		    r->oom_hint == TORCH_HINT_CUDA2 ? URL2 : URL1);
}

static void say_xpu(struct torch *t, const struct torch_want *w)
{
	uint64_t live = (uint64_t)t->all[TORCH_ALLOCATED_BYTES].cur;
	const struct vc_device_config *d = vc_device_config(t->m->device);

	if (t->r->oom_text == TORCH_OOM_SHORT) {
		torch_raise(t, "XPU out of memory, please use" EMPTY);
		return;
	}
	torch_raise(t, "XPU out of memory. Tried to allocate %s. GPU %u has a total capacity of %s",
		    fmt(w->asz).s, d->index, fmt(d->total).s);
	if (t->r->oom_free)
		say(t, " of which %s is free", fmt(vc_device_available(t->m->device)).s);
	say(t, ". ");
	if (t->r->oom_free && t->limit != TORCH_UNLIMITED)
		say(t, "%s allowed; ", fmt(t->limit).s);
	say(t, "Of the allocated memory %s is allocated by PyTorch, and %s is reserved by PyTorch "
	    "but unallocated. Please use" EMPTY, fmt(live).s,
	    fmt((uint64_t)t->all[TORCH_RESERVED_BYTES].cur - live).s);
}

void torch_text_oom(struct torch *t, const struct torch_want *w)
{
	if (t->r->oom_text == TORCH_OOM_SHORT || t->r->oom_text == TORCH_OOM_XPU) {
		say_xpu(t, w);
		return;
	}
	if (t->r->oom_text == TORCH_OOM_OLD || t->r->oom_text == TORCH_OOM_NPU) {
		say_old(t, w);
		return;
	}
	say_head(t, w);
	if (is_cut(t))
		return;
	say_body(t);
	say_hint(t, w);
}

void torch_text_cuda_error(struct torch *t)
{
	torch_raise(t, "%s error: invalid argument\n", word(t));
	if (t->r->error_link)
		say(t, "Search for `cudaErrorInvalidValue' in https://docs.nvidia.com/cuda/"
		       "cuda-runtime-api/group__CUDART__TYPES.html for more information.\n");
	if (t->r->error_tail == TORCH_TAIL_LOG)
		say(t, "For more detailed error information, run with CUDA_LOG_FILE=stderr\n");
	else if (t->r->error_tail != TORCH_TAIL_NONE)
		say(t, "CUDA kernel errors might be asynchronously reported at some other API "
		       "call, so the stacktrace below might be incorrect.\n"
		       "For debugging consider passing CUDA_LAUNCH_BLOCKING=1%s\n"
		       "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n",
		       t->r->error_tail == TORCH_TAIL_DOT ? "." : "");
}

void torch_text_rejected(struct torch *t, const struct torch_want *w)
{
	torch_raise(t, "CUDA out of memory. Allocation was preemptively rejected because it would "
		    "exceed per_process_memory_fraction limit. Requested size: %s",
		    fmt(w->rq->size).s);
}
