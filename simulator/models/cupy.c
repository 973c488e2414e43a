/* SPDX-License-Identifier: Apache-2.0 */
/* cupy.c - CuPy's memory pool (cupy.cuda.MemoryPool), after cupy/cuda/memory.pyx of 14.2.
 *
 * One arena of free chunks per stream, best fit, every remainder split off; what is missing comes
 * from cudaMalloc in its exact (rounded) size. Of several free chunks of one size CuPy takes the
 * one whose Python object lies lowest in the host's memory, which no replay can know: here the
 * lowest address of the device, or with an exact request the chunk at that address. */

#include "simulator/models/chunks.h"

#define UNIT 512u /* ALLOCATION_UNIT_SIZE */

struct config { uint64_t limit; double fraction; };
struct state { struct vc_chunks k; uint64_t limit; };

/* "1,234,567", as Python's {:,} has it. */
static const char *grouped(uint64_t n, char *buf)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n), k = 0;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			buf[k++] = ',';
		buf[k++] = digits[i];
	}
	buf[k] = '\0';
	return buf;
}

/* OutOfMemoryError. */
static int refuse(struct vc_model *m, const struct vc_request *rq, uint64_t size)
{
	const struct state *st = m->state;
	char a[32], b[32], c[32];

	if (st->limit)
		snprintf(m->note, sizeof(m->note), "Out of memory allocating %s bytes (allocated "
			 "so far: %s bytes, limit set to: %s bytes).", grouped(size, a),
			 grouped(m->now.reserved, b), grouped(st->limit, c));
	else
		snprintf(m->note, sizeof(m->note), "Out of memory allocating %s bytes (allocated "
			 "so far: %s bytes).", grouped(size, a), grouped(m->now.reserved, b));
	return vc_model_refuse(m, rq, size, size);
}

/* free_all_blocks: the chunks of all arenas that are not split. */
static void free_all_blocks(struct vc_model *m)
{
	m->now.retries++;
	vc_chunks_trim(m, 0, NULL);
}

/* _try_malloc. Before the third try it also collects Python's garbage; a replay has none. */
static bool try_malloc(struct vc_model *m, uint64_t size, uint64_t *addr)
{
	const struct state *st = m->state;
	uint64_t limit = st->limit ? st->limit : UINT64_MAX;

	if (size > limit)
		return false;
	if (m->now.reserved > limit - size)
		free_all_blocks(m);
	if (m->now.reserved > limit - size)
		return false;
	if (vc_device_alloc(m->device, size, addr))
		return true;
	free_all_blocks(m);
	return vc_device_alloc(m->device, size, addr) || vc_device_alloc(m->device, size, addr);
}

static int cupy_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
		      struct vc_error *err)
{
	struct vc_chunks *k = m->state;
	uint64_t size = vc_chunks_round(rq->size, UNIT), addr;
	uint32_t i, twin = 0;

	*out = (struct vc_block){ 0 };
	if (!rq->size) /* Memory(0): no chunk, a null pointer */
		return VC_DONE;
	VC_HAVE(vc_chunks_room(k, 2, rq->stream), "the cupy model", err);
	i = vc_chunks_best(k, rq->stream, size);
	if (i && rq->exact)
		twin = vc_chunks_same(k, rq->stream, &(struct vc_chunk){
			.size = k->c[i].size, .addr = rq->addr });
	i = twin ? twin : i;
	if (!i) {
		if (size < rq->size || !try_malloc(m, size, &addr))
			return refuse(m, rq, size);
		i = vc_chunks_region(k, addr, size, rq->stream);
		vc_model_tell(m, VC_TR_SEGMENT_ALLOC, rq->stream, addr, size);
	}
	vc_chunks_take(k, i, size);
	vc_chunks_serve(m, i, rq, out);
	return VC_DONE;
}

static int cupy_free(struct vc_model *m, struct vc_block *b)
{
	struct vc_chunks *k = m->state;
	uint32_t i = vc_chunks_unserve(m, b);

	if (i)
		vc_chunks_free(k, k->c[i].stream, i);
	return VC_DONE;
}

static int cupy_init(struct vc_model *m, struct vc_error *err)
{
	struct state *st = m->state;
	const struct config *k = m->config;

	if (!(k->fraction >= 0 && k->fraction <= 1))
		return vc_fail(err, VC_EUSAGE, "fraction is a part of the device, from 0 (not "
			       "set) to 1, not %g", k->fraction);
	st->k.by_stream = true;
	st->limit = k->limit ? k->limit :
			       (uint64_t)(k->fraction * (double)vc_device_config(m->device)->total);
	return VC_OK;
}

static const struct vc_param cupy_params[] = {
	{ "limit", VC_P_SIZE, offsetof(struct config, limit), "0",
	  "most that it takes from the device (CUPY_GPU_MEMORY_LIMIT in bytes); 0: no limit",
	  NULL },
	{ "fraction", VC_P_REAL, offsetof(struct config, fraction), "0",
	  "the limit as a part of the device (CUPY_GPU_MEMORY_LIMIT in percent); 0: not set",
	  NULL },
	VC_PARAM_END };

const struct vc_model_type vc_model_cupy = {
	.name = "cupy", .summary = "CuPy's memory pool: best fit per stream, exact cudaMallocs",
	.owner = "CuPy", .params = cupy_params, .config_size = sizeof(struct config),
	.state_size = sizeof(struct state), .init = cupy_init, .alloc = cupy_alloc,
	.free = cupy_free, .trim = vc_chunks_trim, .walk = vc_chunks_walk, .check = vc_chunks_check,
	.fini = vc_chunks_fini,
};
