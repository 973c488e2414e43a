/* SPDX-License-Identifier: Apache-2.0 */
/* whatif_record.c - what a recording of the program would hold: requests, what the driver did for
 * them, and the heap where the recording begins and ends, all as the real allocator had it. */
#include "whatif.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/codec.h"
#include "common/vec.h"
#include "script.h"

struct place { uint64_t addr; uint32_t id; };

struct recorder {
	const struct whatif_case *c;
	const struct program *p;
	struct vc_meta *meta;
	struct vc_encoder *enc;
	size_t cut;
	uint64_t *addr;      /* by the program's id; 0: not allocated */
	uint64_t *name;      /* by the program's id: that of the recording */
	uint64_t *size;
	uint32_t *stream;
	uint32_t *wait; size_t waits; /* freed, and not yet complete */
	uint64_t next, time, steps;
	bool failed;
};

static void put(struct recorder *k, struct vc_event e)
{
	struct vc_error err;

	e.time_ns = e.kind < VC_EV_HEAP_SEGMENT ? k->time : 0;
	k->failed |= vc_encoder_append(k->enc, &e, 1, &err) != VC_OK;
}

static uint32_t stream_of(struct recorder *k, uint64_t handle)
{
	return handle ? vc_meta_stream(k->meta, handle) : 0;
}

static uint32_t site_of(struct recorder *k, unsigned site)
{
	char name[24];
	uint32_t file, function;

	if (!k->c->sites)
		return 0;
	snprintf(name, sizeof(name), "part_%u", site / 10);
	function = vc_meta_string(k->meta, name, strlen(name));
	file = vc_meta_string(k->meta, "program.py", 10);
	return vc_meta_frame(k->meta, (struct vc_frame){ 0, function, file, site });
}

/* ---- the heap at one moment ---- */

static int by_addr(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Blocks that are alive or waiting, by address. */
static struct place *places(const struct recorder *k, size_t *n)
{
	struct place *at = calloc(k->p->ids + 1, sizeof(*at));

	*n = 0;
	for (uint32_t id = 1; at && id <= k->p->ids; id++)
		if (k->addr[id])
			at[(*n)++] = (struct place){ k->addr[id], id };
	if (at)
		qsort(at, *n, sizeof(*at), by_addr);
	return at;
}

static uint64_t name_at(struct recorder *k, const struct place *at, size_t n, uint64_t addr)
{
	struct place key = { addr, 0 }, *found = bsearch(&key, at, n, sizeof(*at), by_addr);

	if (!found) {
		k->failed = true; /* a block that nobody asked for */
		return 0;
	}
	if (!k->name[found->id])
		k->name[found->id] = ++k->next;
	return k->name[found->id];
}

static uint64_t put_segment(struct recorder *k, const char *line, uint8_t final)
{
	uint64_t addr, size, stream;
	char pool[16];
	unsigned expandable;

	if (sscanf(line, "G %" SCNx64 " %" SCNu64 " %" SCNu64 " %15s %u", &addr, &size, &stream,
		   pool, &expandable) != 5) {
		k->failed = true;
		return 0;
	}
	put(k, (struct vc_event){ .kind = VC_EV_HEAP_SEGMENT, .addr = addr, .size = size,
				  .stream = stream_of(k, stream),
				  .flags = (uint8_t)(final | (*pool == 's' ? VC_EVF_SMALL : 0) |
						     (expandable ? VC_EVF_EXPANDABLE : 0)) });
	return addr;
}

/* G and B lines as events. */
static void put_heap(struct recorder *k, const char *text, uint8_t final)
{
	const char *s = strstr(text, "\nG ");
	uint64_t addr = 0, size, requested;
	struct place *at;
	char state;
	size_t n;

	at = places(k, &n);
	for (; s && *s && s[1]; s = strchr(s + 1, '\n')) {
		struct vc_event e = { .kind = VC_EV_HEAP_BLOCK, .flags = final };

		if (s[1] == 'G') {
			addr = put_segment(k, s + 1, final);
			continue;
		}
		if (sscanf(s + 1, "B %" SCNu64 " %" SCNu64 " %c", &size, &requested, &state) != 3)
			continue;
		e.addr = addr;
		e.size = requested;
		e.id = state == 'i' ? 0 : name_at(k, at, n, addr);
		e.flags |= state == 'a' ? VC_EVF_LIVE : state == 'p' ? VC_EVF_PENDING : 0;
		put(k, e);
		addr += size;
	}
	free(at);
}

/* ---- the events ---- */

static void complete(struct recorder *k, size_t op, uint64_t addr)
{
	for (size_t i = 0; i < k->waits; i++) {
		uint32_t id = k->wait[i];

		if (k->addr[id] != addr)
			continue;
		k->addr[id] = 0;
		memmove(k->wait + i, k->wait + i + 1, (--k->waits - i) * sizeof(*k->wait));
		if (op >= k->cut)
			put(k, (struct vc_event){ .kind = VC_EV_FREE_DONE, .id = k->name[id],
						  .size = k->size[id], .addr = addr,
						  .stream = k->stream[id] });
		return;
	}
	k->failed = true;
}

static void on_event(void *arg, size_t op, char kind, const uint64_t v[3])
{
	static const char letters[] = "AFMUO";
	static const uint8_t kinds[] = { VC_EV_SEGMENT_ALLOC, VC_EV_SEGMENT_FREE,
					 VC_EV_SEGMENT_MAP, VC_EV_SEGMENT_UNMAP, VC_EV_OOM };
	struct recorder *k = arg;
	const char *at = strchr(letters, kind);

	if (kind == 'C')
		complete(k, op, v[0]);
	else if (at && op >= k->cut)
		put(k, (struct vc_event){ .kind = kinds[at - letters], .addr = v[0], .size = v[1],
					  .stream = stream_of(k, v[2]) });
}

static void put_alloc(struct recorder *k, const struct program_op *op, uint64_t addr, bool say)
{
	k->addr[op->id] = addr;
	k->size[op->id] = op->size;
	k->stream[op->id] = stream_of(k, op->stream);
	if (!say)
		return;
	k->name[op->id] = ++k->next;
	put(k, (struct vc_event){ .kind = VC_EV_ALLOC, .id = k->next, .size = op->size,
				  .addr = addr, .stream = k->stream[op->id],
				  .site = site_of(k, op->site) });
}

static void put_free(struct recorder *k, const struct program_op *op, bool waits, bool say)
{
	uint64_t addr = k->addr[op->id];

	if (waits)
		k->wait[k->waits++] = op->id;
	else
		k->addr[op->id] = 0;
	if (say)
		put(k, (struct vc_event){ .kind = VC_EV_FREE, .id = k->name[op->id], .addr = addr,
					  .size = k->size[op->id], .stream = k->stream[op->id],
					  .flags = waits ? VC_EVF_PENDING : 0 });
}

static void on_answer(void *arg, size_t i, char kind, uint64_t addr)
{
	struct recorder *k = arg;
	const struct program_op *op = &k->p->op[i];
	bool say = i >= k->cut;

	k->time += 1000;
	if (kind == 'm')
		put_alloc(k, op, addr, say);
	else if (kind == 'f' || kind == 'w')
		put_free(k, op, kind == 'w', say);
	else if (kind == 'O' || kind == 'E')
		k->failed = true;
	else if (say && op->kind == 'e')
		put(k, (struct vc_event){ .kind = VC_EV_TRIM });
	else if (say && op->kind == 'r')
		put(k, (struct vc_event){ .kind = VC_EV_USE, .id = k->name[op->id],
					  .addr = k->addr[op->id], .size = k->size[op->id],
					  .stream = stream_of(k, op->stream) });
}

/* ---- all of it ---- */

static struct vc_meta *about(const struct whatif_case *c)
{
	static const uint8_t recorded[] = { VC_CAP_REQUESTS, VC_CAP_SEGMENTS, VC_CAP_ADDRESSES,
		VC_CAP_TIMES, VC_CAP_STREAMS, VC_CAP_USES, VC_CAP_COMPLETION, VC_CAP_START_HEAP,
		VC_CAP_FINAL_HEAP, VC_CAP_TRIMS, VC_CAP_POOLS, VC_CAP_SETTINGS };
	struct vc_error err;
	struct vc_meta *m = vc_meta_new(&err);

	if (!m)
		die("no memory", "meta");
	vc_meta_set(&m->torch, c->version);
	vc_meta_set(&m->conf, c->recorded.conf);
	vc_meta_set(&m->producer, "the allocator of PyTorch, scripted");
	vc_meta_device(m, 0)->total = c->recorded.total;
	for (size_t i = 0; i < sizeof(recorded); i++)
		m->how[recorded[i]] = VC_HOW_RECORDED;
	m->how[VC_CAP_STACKS] = c->sites ? VC_HOW_RECORDED : VC_HOW_ABSENT;
	m->how[VC_CAP_MARKS] = c->marks ? VC_HOW_RECORDED : VC_HOW_ABSENT;
	return m;
}

static void put_fraction(struct recorder *k)
{
	struct vc_event e = { .kind = VC_EV_FRACTION };
	double f = k->c->recorded.percent / 100.0;

	memcpy(&e.size, &f, sizeof(e.size));
	if (k->c->recorded.percent)
		put(k, e);
}

/* Until the cut events are only followed; there the heap is put, and from there on everything. */
static const char *put_all(struct recorder *k, const char *result, const char *heap)
{
	const struct result_reader r = { .arg = k, .event = on_event, .answer = on_answer };
	const char *s = result;

	if (!k->cut)
		put_fraction(k);
	s = result_begin(k->p, s);
	for (size_t i = 0; i < k->p->ops; i++) {
		if (i == k->cut && k->cut) {
			put_heap(k, heap, 0);
			put_fraction(k);
		}
		if (k->p->op[i].kind == 'k') {
			char label[24];
			int n = snprintf(label, sizeof(label), "step %u", (unsigned)++k->steps);

			if (k->c->marks && i >= k->cut)
				put(k, (struct vc_event){ .kind = VC_EV_MARK,
					.flags = VC_MARK_STEP,
					.label = vc_meta_string(k->meta, label, (size_t)n) });
			continue;
		}
		s = result_read_op(s, i, &r);
	}
	return s;
}

static bool record(struct recorder *k, const char *result, const char *heap, const char *path)
{
	struct vc_error err = { 0 };
	struct vc_output *out = vc_output_open(path, &err);
	size_t n = k->p->ids + 1;
	bool ok;

	k->meta = about(k->c);
	k->enc = out ? vc_encoder_new(out, k->meta, NULL, &err) : NULL;
	k->addr = calloc(n, sizeof(*k->addr));
	k->name = calloc(n, sizeof(*k->name));
	k->size = calloc(n, sizeof(*k->size));
	k->stream = calloc(n, sizeof(*k->stream));
	k->wait = calloc(n, sizeof(*k->wait));
	if (!k->enc || !k->addr || !k->name || !k->size || !k->stream || !k->wait)
		die("cannot write", path);
	put_heap(k, put_all(k, result, heap), VC_EVF_FINAL);
	ok = !k->failed && vc_encoder_finish(k->enc, &err) == VC_OK &&
	     vc_output_commit(out, &err) == VC_OK;
	vc_encoder_free(k->enc);
	vc_output_close(out);
	vc_meta_free(k->meta);
	VC_FREE(k->addr, k->name, k->size, k->stream, k->wait);
	return ok;
}

bool case_record(const struct whatif *w, const struct whatif_case *c, const struct program *p,
		 const char *path)
{
	struct recorder k = { .c = c, .p = p, .cut = case_cut(c, p) };
	char *script = case_script(c, p, &c->recorded, c->order[0], p->ops), *result, *heap = NULL;
	bool ok;

	result = oracle_run(w, c, script);
	free(script);
	if (k.cut) {
		script = case_script(c, p, &c->recorded, c->order[0], k.cut);
		heap = oracle_run(w, c, script);
		free(script);
	}
	ok = result && (heap || !k.cut) && record(&k, result, heap, path);
	free(result);
	free(heap);
	return ok;
}
