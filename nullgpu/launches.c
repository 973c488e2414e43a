/* SPDX-License-Identifier: Apache-2.0 */
/* launches.c - kernels: names, modelled durations, and the few that are really executed.
 *
 * A kernel does nothing here, with one exception: fills (ones, full, fill_) of small tensors are
 * carried out, because host code reads masks and counters made that way. They are recognised by
 * the mangled name of PyTorch's kernel and functor. */
#include "nullgpu/foreach.h"
#include "nullgpu/null.h"

#include <pthread.h>

/* Shortest kernel a profiler shows on current cards: about 2 us. */
#define FLOOR_NS 2000.0
#define FILL_KERNEL "_ZN2at6native29vectorized_elementwise_kernelILi"
#define FILL_FUNCTOR "11FillFunctorI"
/* PyTorch's elementwise kernels take the number of elements first, as int. */
#define ELEMENTWISE "elementwise_kernel"

enum behaviour { UNKNOWN, NOTHING, FILL, COUNTED, FOREACH };

struct kernel {
	const void *function; /* NULL = empty slot */
	const char *name;
	enum behaviour behaviour;
	int width; /* of a fill: bytes of one element */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kernel *kernels; /* open addressing, capacity a power of two */
static size_t n_kernels, capacity;

static size_t slot_of(const struct kernel *table, size_t slots, const void *function)
{
	size_t i = ((uintptr_t)function * 0x9E3779B97F4A7C15ull >> 20) & (slots - 1);
	while (table[i].function && table[i].function != function)
		i = (i + 1) & (slots - 1);
	return i;
}

static int grow(void)
{
	size_t slots = capacity ? 2 * capacity : 1 << 16;
	struct kernel *table = calloc(slots, sizeof *table);
	if (!table)
		return -1;
	for (size_t i = 0; i < capacity; i++)
		if (kernels[i].function)
			table[slot_of(table, slots, kernels[i].function)] = kernels[i];
	free(kernels);
	kernels = table;
	capacity = slots;
	return 0;
}

void vc_null_register(const void *function, const char *name)
{
	pthread_mutex_lock(&lock);
	if (2 * (n_kernels + 1) <= capacity || !grow()) {
		size_t i = slot_of(kernels, capacity, function);
		if (!kernels[i].function)
			n_kernels++;
		kernels[i] = (struct kernel){ .function = function, .name = name };
	}
	pthread_mutex_unlock(&lock);
}

/* Bytes of the C++ type whose mangled name starts at `t`; 0 = not one of PyTorch's scalars. */
static int type_width(const char *t)
{
	static const struct { const char *name; int width; } named[] = {
		{ "N3c104HalfE", 2 }, { "N3c108BFloat16E", 2 }, { "N3c107complexIfEE", 8 },
		{ "N3c107complexIdEE", 16 },
	};
	for (size_t i = 0; i < sizeof named / sizeof *named; i++)
		if (strncmp(t, named[i].name, strlen(named[i].name)) == 0)
			return named[i].width;
	switch (*t) {
	case 'f': case 'i': case 'j': return 4;
	case 'd': case 'l': case 'm': return 8;
	case 's': case 't': return 2;
	case 'h': case 'a': case 'b': case 'c': return 1;
	}
	return 0;
}

static void classify(struct kernel *k)
{
	k->behaviour = NOTHING;
	if (!k->name)
		return;
	const char *functor = strstr(k->name, FILL_FUNCTOR);
	if (functor && strncmp(k->name, FILL_KERNEL, strlen(FILL_KERNEL)) == 0) {
		k->width = type_width(functor + strlen(FILL_FUNCTOR));
		k->behaviour = k->width ? FILL : COUNTED;
	} else if (strstr(k->name, ELEMENTWISE)) {
		k->behaviour = COUNTED;
	} else if (strstr(k->name, "multi_tensor_apply_kernel")) {
		k->behaviour = FOREACH;
	}
}

static struct kernel find(const void *function)
{
	struct kernel k = { 0 };
	pthread_mutex_lock(&lock);
	if (capacity) {
		struct kernel *at = &kernels[slot_of(kernels, capacity, function)];
		if (at->function && at->behaviour == UNKNOWN)
			classify(at);
		k = *at;
	}
	pthread_mutex_unlock(&lock);
	return k;
}

static uint64_t duration_of(const struct vc_null_product *p)
{
	const struct vc_null_card *card = vc_null_card();
	double move = p->bytes / card->bandwidth * 1e9;
	double compute = p->operations / card->flops[p->rate] * 1e9;
	double t = move > compute ? move : compute;
	return (uint64_t)(t > FLOOR_NS ? t : FLOOR_NS);
}

static void tell_kernel(const char *name, const struct vc_null_launch *l, uint64_t start,
			uint64_t duration, const struct vc_kernel_work *work)
{
	const struct vc_null_stream *s = vc_null_stream(l->stream);
	struct vc_null_activity a = { .kind = VC_NULL_KERNEL, .name = name, .start = start,
		.end = start + duration, .device = (uint32_t)s->device, .stream = s->id,
		.shared = l->shared, .work = work };
	memcpy(a.grid, l->grid, sizeof a.grid);
	memcpy(a.block, l->block, sizeof a.block);
	vc_null_tell(&a);
}

int vc_null_launch(const struct vc_null_launch *l)
{
	struct kernel k = find(l->function);
	const char *name = l->name ? l->name : k.name;
	double bytes = 0;
	if ((k.behaviour == FILL || k.behaviour == COUNTED) && l->args && l->args[0]) {
		int n;
		memcpy(&n, l->args[0], sizeof n);
		/* at least one element written and, unless it is a fill, one read, of 4 bytes */
		bytes = n > 0 ? (double)n * (k.behaviour == FILL ? k.width : 8) : 0;
	}
	if (k.behaviour == FOREACH && l->args)
		bytes = vc_null_foreach_bytes(k.name, l->args[0], l->grid[0]);
	uint64_t duration = duration_of(&(struct vc_null_product){ .bytes = bytes });
	bool captured;
	uint64_t start = vc_null_work(l->stream, duration, &captured);
	if (k.behaviour == FILL && !captured) {
		int n;
		char *to;
		memcpy(&n, l->args[0], sizeof n);
		memcpy(&to, l->args[2], sizeof to);
		if (n > 0 && vc_null_owner((uint64_t)to) >= 0)
			vc_null_fill(to, l->args[1], (size_t)k.width, (size_t)n);
	}
	if (vc_null_card()->log > 2)
		vc_null_log("launch %s", name ? name : "(unnamed)");
	if (vc_null_heard()) {
		struct vc_kernel_work work = vc_null_kernel_work(name, l);
		if (captured)
			vc_null_captured(l->stream, &work);
		else
			tell_kernel(name ? name : "unnamed", l, start, duration, &work);
	}
	return 0;
}

static int library_work(const char *name, void *stream, uint64_t duration,
			const struct vc_kernel_work *work)
{
	bool captured;
	uint64_t start = vc_null_work(stream, duration, &captured);
	const uint64_t *d = work->dim;
	if (vc_null_card()->log > 2)
		vc_null_log("%s in %s: %.0f operations, %.0f bytes read, %.0f written; %llu %llu "
			    "%llu %llu", name, work->type, work->flops, work->read, work->written,
			    (unsigned long long)d[0], (unsigned long long)d[1],
			    (unsigned long long)d[2], (unsigned long long)d[3]);
	if (captured)
		vc_null_captured(stream, work);
	else if (vc_null_heard())
		tell_kernel(name, &(struct vc_null_launch){ .stream = stream, .grid = { 1, 1, 1 },
			.block = { 1, 1, 1 } }, start, duration, work);
	return 0;
}

int vc_null_known_work(const char *name, void *stream, const struct vc_kernel_work *work)
{
	double bytes = work->read + work->written;
	return library_work(name, stream, duration_of(&(struct vc_null_product){ .bytes = bytes }),
			    work);
}

int vc_null_product(const char *const names[VC_NULL_RATES], void *stream,
		    const struct vc_null_product *product)
{
	static const char *const types[] = {
#define X(id, word, variable, fallback) word,
		VC_NULL_RATE_TABLE(X)
#undef X
	};
	struct vc_kernel_work work = { .kind = product->kind ? product->kind : VC_WORK_GEMM,
		.flops = product->operations, .read = product->bytes - product->written,
		.written = product->written };
	snprintf(work.type, sizeof work.type, "%s", types[product->rate]);
	memcpy(work.dim, product->dim, sizeof work.dim);
	return library_work(names[product->rate], stream, duration_of(product), &work);
}
