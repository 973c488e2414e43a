/* SPDX-License-Identifier: Apache-2.0 */
/* convolve.c - convolutions as PyTorch has cuDNN compute them: describes a graph, asks the
 * heuristics, keeps a plan, borrows its workspace from the allocator and executes it.
 *
 * convolve WHAT...: see main. Prints size and address of each workspace, in order, and whatever
 * a call answers that the library did not. convolve attached LIBRARY FOLDER FOLDER: joins and
 * leaves a recording by itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tracer/torch_standin/standin.h"

#define HANDLE ((void *)0x77)

enum { DIMENSIONS = 5, CONFIGS = 8 };
enum { THREADS = 4, PLANS = 20000, EACH = 50, FORKS = 100, RECORDED = 5 };
enum { FLOAT = 0, DOUBLE = 1, HALF = 2 }; /* cudnnDataType_t */
enum { T_TYPE = 1, T_INT64 = 3, T_FLOAT = 4, T_POINTER = 6, T_DESCRIPTOR = 15 };
enum { CONVOLUTION = 1, CONFIG = 3, HEURISTICS = 4, PLAN = 5, OPERATION = 10, POINTWISE = 13,
       GRAPH = 15, PACK = 16, TENSOR = 17 };
/* The first attribute of each operation: alpha, beta, convolution, then three tensors. */
enum { FORWARD = 700, DATA = 706, FILTER = 712 };
enum { FORWARD_X = FORWARD + 4, HEUR_RESULTS = 202, PLAN_CONFIG = 401, PLAN_WORKSPACE = 402 };

int _ZN3c104cuda28device_count_ensure_non_zeroEv(void);

enum order { FIRST, LAST };

/* A convolution, and what may be odd about it. */
struct problem {
	int operation, type, n;
	int64_t x[DIMENSIONS], w[DIMENSIONS], y[DIMENSIONS];
	int64_t stride[3], pad[3], dilation[3];
	enum order order[3]; /* of x, w, y */
	int64_t gap;         /* between rows of x */
	int64_t behind;      /* of pads, on top of those before */
	int64_t alignment;   /* 0: 16 */
	int type_y;          /* 0: as the others */
	bool two;            /* and another operation */
};

static const struct problem square = { FORWARD, FLOAT, 4, { 4, 3, 8, 8 }, { 16, 3, 3, 3 },
	{ 4, 16, 8, 8 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { FIRST }, .type_y = 0 };

static void want(int got, int wanted, const char *what)
{
	if (got != wanted)
		printf("%s answers %d, not %d\n", what, got, wanted);
}

static void set(void *d, int name, int type, int64_t count, const void *value)
{
	want(cudnnBackendSetAttribute(d, name, type, count, value),
	     standin_cudnn.fails == name ? standin_cudnn.status : 0, "set");
}

static int64_t get(void *d, int name, int type, int64_t wanted, void *out)
{
	int64_t count = 0;

	want(cudnnBackendGetAttribute(d, name, type, wanted, &count, out),
	     standin_cudnn.fails == name ? standin_cudnn.status : 0, "get");
	return count;
}

static void *make(int type)
{
	void *d = NULL;

	want(cudnnBackendCreateDescriptor(type, &d), 0, "create");
	return d;
}

static void *made(void *d)
{
	want(cudnnBackendFinalize(d), 0, "finalize");
	return d;
}

static void destroy(void *d)
{
	want(cudnnBackendDestroyDescriptor(d),
	     standin_cudnn.fails == STANDIN_DESTROY ? standin_cudnn.status : 0, "destroy");
}

/* ---- a graph, its plans ---- */

static void *tensor(const struct problem *p, const int64_t *size, enum order order, int64_t gap,
		    int type)
{
	int64_t stride[DIMENSIONS], step = 1, alignment = p->alignment ? p->alignment : 16;
	void *d = make(TENSOR);

	for (int i = 0; i < p->n; i++) { /* the innermost dimension first */
		int at = order == FIRST ? p->n - 1 - i :
			 i == 0	  ? 1 :
			 i == p->n - 1   ? 0 :
					   p->n - i;

		stride[at] = step;
		step = step * size[at] + (i ? 0 : gap);
	}
	set(d, 901, T_TYPE, 1, &type);
	set(d, 902, T_INT64, p->n, size);
	set(d, 903, T_INT64, p->n, stride);
	set(d, 906, T_INT64, 1, &step);
	set(d, 900, T_INT64, 1, &alignment);
	return made(d);
}

static void *convolution(const struct problem *p)
{
	int64_t behind[3], n = p->n - 2;
	void *d = make(CONVOLUTION);

	for (int i = 0; i < 3; i++)
		behind[i] = p->pad[i] + p->behind;
	set(d, 106, T_INT64, 1, &n);
	set(d, 103, T_INT64, n, p->stride);
	set(d, 105, T_INT64, n, p->pad);
	set(d, 104, T_INT64, n, behind);
	set(d, 102, T_INT64, n, p->dilation);
	return made(d);
}

/* The first tensor attribute is w's of the forward direction and of data, of the filter's dw's;
 * they are set in another order than that of their numbers, as the frontend does. */
static void *operation(const struct problem *p)
{
	void *x = tensor(p, p->x, p->order[0], p->gap, p->type), *c = convolution(p);
	void *w = tensor(p, p->w, p->order[1], 0, p->type), *d = make(OPERATION);
	void *y = tensor(p, p->y, p->order[2], 0, p->type_y ? p->type_y : p->type);
	float one = 1;

	set(d, p->operation + 4, T_DESCRIPTOR, 1, &x);
	set(d, p->operation + 3, T_DESCRIPTOR, 1, &w);
	set(d, p->operation + 5, T_DESCRIPTOR, 1, &y);
	set(d, p->operation + 2, T_DESCRIPTOR, 1, &c);
	set(d, p->operation, T_FLOAT, 1, &one);
	set(d, p->operation + 1, T_FLOAT, 1, &one);
	destroy(x);
	destroy(w);
	destroy(y);
	destroy(c);
	return made(d);
}

static void *graph(const struct problem *p)
{
	void *d = make(GRAPH), *op[2] = { operation(p), p->two ? made(make(POINTWISE)) : NULL };

	set(d, 801, T_DESCRIPTOR, 1 + p->two, op);
	destroy(op[0]);
	if (p->two)
		destroy(op[1]);
	return made(d);
}

/* Fills those configurations; how many the heuristics have is asked first. */
static void configure(const struct problem *p, void **config, int64_t n)
{
	void *of = graph(p), *d = make(HEURISTICS);
	int64_t results = standin_cudnn.results, filled = results < n ? results : n;
	bool fails = standin_cudnn.fails == HEUR_RESULTS;

	set(d, 201, T_DESCRIPTOR, 1, &of);
	made(d);
	want((int)get(d, HEUR_RESULTS, T_DESCRIPTOR, 0, NULL), fails ? 0 : (int)results,
	     "how many");
	want((int)get(d, HEUR_RESULTS, T_DESCRIPTOR, n, config), fails ? 0 : (int)filled,
	     "filled");
	destroy(d);
	destroy(of);
}

static void *plan_of(void *config)
{
	void *d = make(PLAN);

	set(d, PLAN_CONFIG, T_DESCRIPTOR, 1, &config);
	return made(d);
}

/* Describes it, and keeps the first plan alone. */
static void *plan(const struct problem *p, int64_t bytes)
{
	void *config[CONFIGS], *d;

	standin_cudnn.bytes = bytes;
	for (int i = 0; i < CONFIGS; i++)
		config[i] = make(CONFIG);
	configure(p, config, CONFIGS);
	d = plan_of(config[0]);
	for (int i = 0; i < CONFIGS; i++)
		destroy(config[i]);
	return d;
}

static void execute(void *d)
{
	bool fails = standin_cudnn.fails == STANDIN_EXECUTE;
	int64_t bytes = 0, uid[] = { 'x', 'y', 'w' };
	void *workspace, *pack = make(PACK), *at[3] = { &bytes, &bytes, &bytes };

	get(d, PLAN_WORKSPACE, T_INT64, 1, &bytes);
	workspace = standin_allocate((size_t)bytes);
	set(pack, 1001, T_POINTER, 3, at);
	set(pack, 1000, T_INT64, 3, uid);
	set(pack, 1003, T_POINTER, 1, &workspace);
	made(pack);
	want(cudnnBackendExecute(HANDLE, d, pack), fails ? standin_cudnn.status : 0, "execute");
	printf("%lld %llx\n", (long long)bytes, (unsigned long long)(uintptr_t)workspace);
	destroy(pack);
	if (workspace)
		standin_free(workspace);
}

static void once(const struct problem *p, int64_t bytes)
{
	void *d = plan(p, bytes);

	execute(d);
	destroy(d);
}

/* ---- what may be asked for ---- */

static void each(void)
{
	const struct problem cube = { FORWARD, HALF, 5, { 1, 3, 8, 9, 10 }, { 4, 3, 3, 3, 3 },
		{ 1, 4, 3, 4, 4 }, { 2, 2, 2 }, { 0 }, { 1, 1, 1 }, { LAST, LAST, LAST },
		.gap = 0 };
	struct problem p = square;

	once(&p, 1000);
	p.operation = DATA;
	once(&p, 2000);
	p.operation = FILTER;
	once(&p, 3000);
	p.order[0] = p.order[1] = p.order[2] = LAST;
	once(&p, 4000);
	once(&cube, 5000);
	once(&square, 0);
}

/* The order of some tensors is either: it is that of the others. */
static void either(void)
{
	struct problem p = { FORWARD, FLOAT, 4, { 4, 64, 1, 1 }, { 16, 64, 3, 3 }, { 4, 16, 1, 1 },
		{ 1, 1 }, { 1, 1 }, { 1, 1 }, { LAST, FIRST, FIRST }, .gap = 0 };

	once(&p, 1000);
	p.order[1] = LAST;
	once(&p, 2000);
	p = square;
	p.x[1] = p.w[1] = 1;
	once(&p, 3000);
	p.order[2] = LAST;
	once(&p, 4000);
	p = (struct problem){ FORWARD, FLOAT, 4, { 4, 64, 1, 1 }, { 16, 64, 1, 1 }, { 4, 16, 1, 1 },
		{ 1, 1 }, { 0, 0 }, { 1, 1 }, { FIRST, FIRST, FIRST }, .gap = 0 };
	once(&p, 5000);
}

/* None of these is one plain convolution. */
static void others(void)
{
	struct problem p[8];

	for (int i = 0; i < 8; i++)
		p[i] = square;
	p[0].two = true;
	p[1].gap = 1;
	p[2].behind = 1;
	p[3].alignment = 4;
	p[4].order[0] = LAST;
	p[5].order[2] = LAST;
	p[6].type_y = DOUBLE;
	p[7].n = 2;
	for (int i = 0; i < 8; i++)
		once(&p[i], 1000 + i);
}

/* Plans outlive what they were made from; two of them are of one configuration. */
static void kept(void)
{
	void *config[CONFIGS], *d[3];
	struct problem p = square;

	standin_cudnn.bytes = 1000;
	for (int i = 0; i < CONFIGS; i++)
		config[i] = make(CONFIG);
	configure(&p, config, CONFIGS);
	d[0] = plan_of(config[2]);
	d[1] = plan_of(config[2]);
	for (int i = 0; i < CONFIGS; i++)
		destroy(config[i]);
	p.x[0] = p.y[0] = 5;
	d[2] = plan(&p, 2000);
	for (int i = 0; i < 6; i++)
		execute(d[i % 3]);
	for (int i = 0; i < 3; i++)
		destroy(d[i]);
}

/* Where a convolution's descriptors were, others are; and configurations that are used again. */
static void reused(void)
{
	void *config[CONFIGS], *before = plan(&square, 1000), *d;
	struct problem two = square;

	two.two = true;
	execute(before);
	destroy(before);
	d = made(make(PLAN)); /* as one that was read from a file is: nothing is set of ours */
	if (d != before)
		printf("not at the same address\n");
	execute(d);
	destroy(d);
	once(&two, 2000);
	standin_cudnn.bytes = 3000;
	for (int i = 0; i < CONFIGS; i++)
		config[i] = make(CONFIG);
	configure(&square, config, CONFIGS);
	configure(&two, config, CONFIGS);
	d = plan_of(config[0]);
	execute(d);
	destroy(d);
	for (int i = 0; i < CONFIGS; i++) {
		destroy(config[i]);
		config[i] = made(make(CONFIG));
	}
	standin_cudnn.results = 3;
	configure(&square, config, CONFIGS); /* the fourth is not filled */
	d = plan_of(config[3]);
	execute(d);
	destroy(d);
	for (int i = 0; i < CONFIGS; i++)
		destroy(config[i]);
}

/* What the library did not take does not count, and its answers are the program's. */
static void failing(void)
{
	static const int fails[] = { 901, 902, 903, 103, FORWARD_X, 801, 201, HEUR_RESULTS,
		STANDIN_EXECUTE };
	void *config = make(CONFIG), *d;

	for (size_t i = 0; i < sizeof(fails) / sizeof(*fails); i++) {
		standin_cudnn.fails = fails[i];
		standin_cudnn.status = 5000 + (int)i;
		once(&square, 1000);
	}
	standin_cudnn.fails = 0;
	configure(&square, &config, 1);
	standin_cudnn.fails = PLAN_CONFIG;
	d = plan_of(config);
	standin_cudnn.fails = 0;
	execute(d);
	standin_cudnn.fails = STANDIN_DESTROY;
	destroy(d);
	destroy(config);
	once(&square, 2000);
	standin_cudnn.fails = 0;
}

static pthread_barrier_t together;

static void *work(void *arg)
{
	struct problem p = square;
	void *d;

	standin_cudnn.results = CONFIGS;
	p.x[0] = p.y[0] = 1 + (long)arg;
	pthread_barrier_wait(&together);
	for (int i = 0; i < PLANS; i++)
		destroy(plan(&p, 1000));
	d = plan(&p, 1000 * p.x[0]);
	for (int i = 0; i < EACH; i++) {
		execute(d);
		once(&p, 1000 * p.x[0]);
	}
	destroy(d);
	return NULL;
}

static void threads(void)
{
	pthread_t t[THREADS];

	pthread_barrier_init(&together, NULL, THREADS);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

static _Atomic bool over;

static void *busy(void *unused)
{
	standin_cudnn.results = CONFIGS;
	while (!over)
		destroy(plan(&square, 9000));
	once(&square, 9000);
	return unused;
}

static void child(void *d, bool recorded)
{
	struct problem p = square;

	p.operation = DATA;
	alarm(20); /* it would wait for a lock that nobody holds */
	if (recorded) {
		if (!freopen("/dev/null", "w", stdout))
			_exit(1);
		execute(d);
		once(&p, 2000);
	} else {
		destroy(plan(&p, 2000));
	}
	_exit(0);
}

/* Another thread describes convolutions while it forks. */
static void forked(void)
{
	void *d = plan(&square, 1000);
	int status = 0, stopped = 0;
	pthread_t t;

	pthread_create(&t, NULL, busy, NULL);
	for (int i = 0; i < FORKS && !stopped; i++) {
		pid_t p;

		fflush(stdout);
		standin_cudnn_fork(true);
		p = fork();
		standin_cudnn_fork(false);
		if (!p)
			child(d, i < RECORDED);
		waitpid(p, &status, 0);
		stopped += status != 0;
	}
	over = true;
	pthread_join(t, NULL);
	destroy(d);
	if (stopped)
		printf("a child stands still\n");
}

static long resident(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%*d %ld", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

/* Of descriptors that are gone nothing is kept. */
static void many(void)
{
	long before = 0, after;

	for (int i = 0; i < 20000; i++) {
		destroy(plan(&square, 1000));
		if (i == 1000)
			before = resident();
	}
	after = resident();
	if (after > before + (4 << 20))
		printf("grown from %ld to %ld\n", before, after);
}

/* Two recordings; in between descriptors change hands unseen. */
static int attached(char **argv)
{
	void *library = dlopen(argv[0], RTLD_NOW), *d, *before;
	int (*attach)(const char *, const char *, int), (*begin)(uint64_t);
	uint64_t (*events)(void);
	void (*detach)(void);
	struct problem p = square;

	if (!library)
		return 2;
	*(void **)&attach = dlsym(library, "vramcast_attach");
	*(void **)&begin = dlsym(library, "vramcast_attach_begin");
	*(void **)&events = dlsym(library, "vramcast_attach_events");
	*(void **)&detach = dlsym(library, "vramcast_detach");
	execute(plan(&square, 1000)); /* before somebody records */
	if (attach(argv[1], "stacks=off,kernels=off", 1) != 1 || !begin(events()))
		return 1;
	before = plan(&square, 1000);
	execute(before);
	detach();
	destroy(before);
	d = made(make(PLAN));
	if (d != before)
		printf("not at the same address\n");
	if (attach(argv[2], "stacks=off,kernels=off", 1) != 1 || !begin(events()))
		return 1;
	execute(d);
	p.operation = DATA;
	once(&p, 2000);
	detach();
	return 0;
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(void); } all[] = {
		{ "each", each },     { "either", either },   { "others", others },
		{ "kept", kept },     { "reused", reused },   { "failing", failing },
		{ "threads", threads }, { "forked", forked }, { "many", many },
	};
	int known = 0;

	if (_ZN3c104cuda28device_count_ensure_non_zeroEv() != 1)
		return 1;
	standin_cudnn.results = CONFIGS;
	if (argc == 5 && !strcmp(argv[1], "attached"))
		return attached(argv + 2);
	standin_free(standin_allocate(512)); /* the allocator's, before the first convolution */
	for (int i = 1; i < argc; i++)
		for (size_t k = 0; k < sizeof(all) / sizeof(*all); k++)
			if (!strcmp(argv[i], all[k].name)) {
				standin_cudnn.results = CONFIGS;
				all[k].run();
				known++;
			}
	return known != argc - 1;
}
