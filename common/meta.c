/* SPDX-License-Identifier: Apache-2.0 */
/* meta.c - see meta.h. Three tables of indices keep the dictionaries duplicate-free. */
#include "common/hash.h"
#include "common/meta.h"

#include <stdarg.h>
#include <stdatomic.h>

#include "common/program.h"
#include "common/vec.h"

enum { NOTES_MAX = 1000 }; /* more than anybody reads: a file of nothing but notes */

struct table { uint32_t *slot; size_t mask, used; }; /* slots hold index + 1, 0 = empty */

struct index {
	struct table strings, frames, streams;
	uint32_t *string_hash;
	bool failed;
};

const char *vc_capability_name(enum vc_capability c)
{
	static const char *const name[VC_CAPS] = {
		[VC_CAP_REQUESTS] = "requests", [VC_CAP_SEGMENTS] = "segments",
		[VC_CAP_ADDRESSES] = "addresses", [VC_CAP_TIMES] = "times",
		[VC_CAP_STREAMS] = "streams", [VC_CAP_USES] = "uses",
		[VC_CAP_COMPLETION] = "completion", [VC_CAP_STACKS] = "stacks",
		[VC_CAP_START_HEAP] = "start_heap", [VC_CAP_FINAL_HEAP] = "final_heap",
		[VC_CAP_TRIMS] = "trims", [VC_CAP_POOLS] = "pools",
		[VC_CAP_SETTINGS] = "settings", [VC_CAP_KERNELS] = "kernels",
		[VC_CAP_COPIES] = "copies", [VC_CAP_MARKS] = "marks",
		[VC_CAP_DRIVER_POOLS] = "driver_pools", [VC_CAP_OVERHEAD] = "overhead",
		[VC_CAP_LAUNCHES] = "launches", [VC_CAP_WORK] = "work",
		[VC_CAP_DEVICE_SAMPLES] = "device_samples", [VC_CAP_NULL_GPU] = "null_gpu",
	};

	return c >= 0 && c < VC_CAPS ? name[c] : "unknown";
}

const char *vc_how_name(enum vc_how h)
{
	static const char *const name[] = { "absent", "recorded", "derived", "partial", "failed" };

	return h >= 0 && h <= VC_HOW_FAILED ? name[h] : "unknown";
}

static uint32_t mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio: Fibonacci hashing */
	return (uint32_t)(x >> 32);
}

static uint32_t hash_frame(const struct vc_frame *f)
{
	uint64_t a = (uint64_t)f->parent << 32 | f->function, b = (uint64_t)f->file << 32 | f->line;

	return mix(mix(a) * 0x9e3779b97f4a7c15u ^ b);
}

static uint32_t hash_of(const struct vc_meta *m, const struct table *t, uint32_t i)
{
	const struct index *x = m->index;

	if (t == &x->strings)
		return x->string_hash[i];
	if (t == &x->frames)
		return hash_frame(&m->frame[i]);
	return mix(m->stream[i]);
}

static void put(struct table *t, uint32_t hash, uint32_t i)
{
	size_t at = hash & t->mask;

	while (t->slot[at])
		at = (at + 1) & t->mask;
	t->slot[at] = i + 1;
	t->used++;
}

/* Room for one more entry in the table, which then is at most half full. */
static bool table_room(struct vc_meta *m, struct table *t)
{
	size_t size = t->slot ? (t->mask + 1) * 2 : 64, n = t->used;
	struct table bigger = { NULL, size - 1, 0 };

	if (t->slot && (t->used + 1) * 2 <= t->mask + 1)
		return true;
	if (n >= UINT32_MAX / 2)
		return false;
	bigger.slot = calloc(size, sizeof(*bigger.slot));
	if (!bigger.slot)
		return false;
	for (uint32_t i = 0; i < n; i++)
		put(&bigger, hash_of(m, t, i), i);
	free(t->slot);
	*t = bigger;
	return true;
}

static uint32_t failed(struct vc_meta *m)
{
	((struct index *)m->index)->failed = true;
	return 0;
}

static bool string_room(struct vc_meta *m, struct index *x)
{
	return vc_vec_one(m->string, m->strings) && vc_vec_one(x->string_hash, m->strings) &&
	       table_room(m, &x->strings);
}

uint32_t vc_meta_string(struct vc_meta *m, const char *text, size_t len)
{
	struct index *x = m->index;
	const char *nul = len ? memchr(text, '\0', len) : NULL;
	uint32_t hash;
	size_t at;
	char *copy;

	if (nul)
		len = (size_t)(nul - text); /* strings are C strings from here on */
	hash = mix(vc_hash_bytes(text, len));
	for (at = hash & x->strings.mask; x->strings.slot && x->strings.slot[at];
	     at = (at + 1) & x->strings.mask) {
		uint32_t i = x->strings.slot[at] - 1;

		if (x->string_hash[i] == hash && !strncmp(m->string[i], text, len) &&
		    !m->string[i][len])
			return i;
	}
	if (!string_room(m, x))
		return failed(m);
	copy = malloc(len + 1);
	if (!copy)
		return failed(m);
	memcpy(copy, text, len);
	copy[len] = '\0';
	m->string[m->strings] = copy;
	x->string_hash[m->strings] = hash;
	put(&x->strings, hash, (uint32_t)m->strings);
	return (uint32_t)m->strings++;
}

uint32_t vc_meta_frame(struct vc_meta *m, struct vc_frame f)
{
	struct index *x = m->index;
	uint32_t hash = hash_frame(&f);

	for (size_t at = hash & x->frames.mask; x->frames.slot && x->frames.slot[at];
	     at = (at + 1) & x->frames.mask) {
		const struct vc_frame *g = &m->frame[x->frames.slot[at] - 1];

		if (g->parent == f.parent && g->function == f.function && g->file == f.file &&
		    g->line == f.line)
			return x->frames.slot[at] - 1;
	}
	if (!vc_vec_one(m->frame, m->frames) || !table_room(m, &x->frames))
		return failed(m);
	m->frame[m->frames] = f;
	put(&x->frames, hash, (uint32_t)m->frames);
	return (uint32_t)m->frames++;
}

uint32_t vc_meta_stream(struct vc_meta *m, uint64_t handle)
{
	struct index *x = m->index;
	uint32_t hash = mix(handle);

	for (size_t at = hash & x->streams.mask; x->streams.slot && x->streams.slot[at];
	     at = (at + 1) & x->streams.mask)
		if (m->stream[x->streams.slot[at] - 1] == handle)
			return x->streams.slot[at] - 1;
	if (!vc_vec_one(m->stream, m->streams) || !table_room(m, &x->streams))
		return failed(m);
	m->stream[m->streams] = handle;
	put(&x->streams, hash, (uint32_t)m->streams);
	return (uint32_t)m->streams++;
}

void vc_meta_note(struct vc_meta *m, const char *fmt, ...)
{
	char text[1024], *copy;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (size_t i = 0; i < m->notes; i++)
		if (!strcmp(m->note[i], text))
			return;
	if (m->notes == NOTES_MAX)
		return;
	if (vc_vec_one(m->note, m->notes) && (copy = strdup(text)))
		m->note[m->notes++] = copy;
	else
		failed(m);
}

void vc_meta_set(char **field, const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	free(*field);
	*field = copy;
}

void vc_meta_param(struct vc_meta *m, const char *name, double value)
{
	char *copy;

	for (size_t i = 0; i < m->params; i++) {
		if (!strcmp(m->param[i].name, name)) {
			m->param[i].value = value;
			return;
		}
	}
	if (vc_vec_one(m->param, m->params) && (copy = strdup(name)))
		m->param[m->params++] = (struct vc_param_value){ copy, value };
	else
		failed(m);
}

const struct vc_device_info *vc_meta_device_known(const struct vc_meta *m, uint16_t index)
{
	for (size_t i = 0; i < m->devices; i++)
		if (m->device[i].index == index)
			return &m->device[i];
	return NULL;
}

struct vc_device_info *vc_meta_device(struct vc_meta *m, uint16_t index)
{
	if (vc_meta_device_known(m, index))
		return (struct vc_device_info *)vc_meta_device_known(m, index);
	if (!vc_vec_one(m->device, m->devices)) {
		failed(m);
		return NULL;
	}
	m->device[m->devices] = (struct vc_device_info){ .index = index };
	return &m->device[m->devices++];
}

bool vc_meta_ok(const struct vc_meta *m)
{
	return !((const struct index *)m->index)->failed;
}

struct vc_meta *vc_meta_new(struct vc_error *err)
{
	struct vc_meta *m = calloc(1, sizeof(*m));

	if (m)
		m->index = calloc(1, sizeof(struct index));
	if (m && m->index) {
		m->rank = -1;
		vc_meta_string(m, "", 0);
		vc_meta_frame(m, (struct vc_frame){ 0 });
		vc_meta_stream(m, 0);
		if (vc_meta_ok(m))
			return m;
	}
	vc_nomem(err, "the trace's dictionaries");
	vc_meta_free(m);
	return NULL;
}

static void copy_texts(struct vc_meta *to, const struct vc_meta *from)
{
	vc_meta_set(&to->path, from->path);
	vc_meta_set(&to->source, from->source);
	vc_meta_set(&to->torch, from->torch);
	vc_meta_set(&to->conf, from->conf);
	vc_meta_set(&to->producer, from->producer);
	vc_meta_set(&to->command, from->command);
	vc_meta_set(&to->host, from->host);
}

static void copy_lists(struct vc_meta *to, const struct vc_meta *from)
{
	for (size_t i = 1; i < from->strings; i++)
		vc_meta_string(to, from->string[i], strlen(from->string[i]));
	for (size_t i = 1; i < from->frames; i++)
		vc_meta_frame(to, from->frame[i]);
	for (size_t i = 1; i < from->streams; i++)
		vc_meta_stream(to, from->stream[i]);
	for (size_t i = 0; i < from->params; i++)
		vc_meta_param(to, from->param[i].name, from->param[i].value);
	for (size_t i = 0; i < from->bases; i++)
		if (vc_vec_one(to->base, to->bases))
			to->base[to->bases++] = from->base[i];
		else
			failed(to);
	for (size_t i = 0; i < from->notes; i++)
		vc_meta_note(to, "%s", from->note[i]);
	for (size_t i = 0; i < from->devices; i++) {
		struct vc_device_info *d = vc_meta_device(to, from->device[i].index);

		if (!d)
			return;
		d->total = from->device[i].total;
		d->reserved = from->device[i].reserved;
		d->allocated = from->device[i].allocated;
		d->cc_major = from->device[i].cc_major;
		d->cc_minor = from->device[i].cc_minor;
		d->sms = from->device[i].sms;
		vc_meta_set(&d->name, from->device[i].name);
	}
}

/* ---- what is known of frames ---- */

struct vc_meta_sites { atomic_uint users; size_t frames; _Atomic uint32_t known[]; };

int vc_meta_keep_sites(struct vc_meta *m, struct vc_error *err)
{
	if (m->sites)
		return VC_OK;
	m->sites = calloc(1, sizeof(*m->sites) + m->frames * sizeof(*m->sites->known));
	VC_HAVE(m->sites, "the call sites", err);
	m->sites->users = 1;
	m->sites->frames = m->frames;
	return VC_OK;
}

_Atomic uint32_t *vc_meta_site(const struct vc_meta *m, uint32_t frame)
{
	return m->sites && frame < m->sites->frames ? &m->sites->known[frame] : NULL;
}

/* The same dictionaries with more behind them: what is known holds there, too. */
static struct vc_meta_sites *share(struct vc_meta_sites *s)
{
	if (s)
		atomic_fetch_add(&s->users, 1);
	return s;
}

static void drop(struct vc_meta_sites *s)
{
	if (s && atomic_fetch_sub(&s->users, 1) == 1)
		free(s);
}

struct vc_meta *vc_meta_copy(const struct vc_meta *m, struct vc_error *err)
{
	struct vc_meta *to = vc_meta_new(err);

	if (!to)
		return NULL;
	copy_texts(to, m);
	copy_lists(to, m);
	to->torch_guessed = m->torch_guessed;
	to->pid = m->pid;
	to->rank = m->rank;
	memcpy(to->how, m->how, sizeof(to->how));
	to->dropped = m->dropped;
	to->gaps = m->gaps;
	to->damaged_blocks = m->damaged_blocks;
	to->complete = m->complete;
	to->unmatched_frees = m->unmatched_frees;
	to->double_allocs = m->double_allocs;
	to->max_id = m->max_id;
	to->start_unix_ns = m->start_unix_ns;
	to->sites = share(m->sites);
	to->program = m->program ? vc_program_copy(m->program, err) : NULL;
	if (vc_meta_ok(to) && !to->program == !m->program)
		return to;
	vc_nomem(err, "a copy of the trace's dictionaries");
	vc_meta_free(to);
	return NULL;
}

static void free_index(struct index *x)
{
	if (!x)
		return;
	VC_FREE(x->strings.slot, x->frames.slot, x->streams.slot, x->string_hash, x);
}

void vc_meta_free(struct vc_meta *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->strings; i++)
		free(m->string[i]);
	for (size_t i = 0; i < m->params; i++)
		free(m->param[i].name);
	for (size_t i = 0; i < m->devices; i++)
		free(m->device[i].name);
	for (size_t i = 0; i < m->notes; i++)
		free(m->note[i]);
	VC_FREE(m->string, m->frame, m->stream, m->param, m->device, m->base, m->note, m->path,
		m->source,
		m->torch, m->conf, m->producer, m->command, m->host);
	vc_program_free(m->program);
	free_index(m->index);
	drop(m->sites);
	free(m);
}
