/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c - the torch model against the real allocator, one thread each, in turns, on the same
 * script.
 *
 * usage: bench ORACLE VERSION. Prints "bench oracle.VERSION.native.real VALUE Mevents/s",
 * ".model" and
 * ".ratio" (x), and the same for expandable segments. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "simulator/replay/model.h"
#include "training.h"

#define REPEAT "12"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* whatever runs beside it */
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void write_script(const char *path, const struct program *p, const char *conf)
{
	uint64_t *id = calloc(p->slots, sizeof(*id)), next = 1;
	FILE *f = fopen(path, "w");

	if (!f || !id)
		exit(2);
	fprintf(f, "vramcast-golden 1\nname bench\nversions 2.0 9.9\ntotal %llu\nva inc\nevents "
		"auto\n",
		1ull << 44);
	if (conf)
		fprintf(f, "conf %s\n", conf);
	for (size_t k = 0; k < p->n; k++) {
		const struct step *s = &p->s[k];

		if (s->size)
			fprintf(f, "m %llu %llu 0\n", (unsigned long long)(id[s->slot] = next++),
				(unsigned long long)s->size);
		else
			fprintf(f, "f %llu\n", (unsigned long long)id[s->slot]);
	}
	fclose(f);
	free(id);
}

static double ask_oracle(const char *oracle, const char *script)
{
	char command[1024];
	double v = 0;
	FILE *f;

	snprintf(command, sizeof(command), "'%s' --bench '%s' " REPEAT " 2>/dev/null", oracle,
		 script);
	f = popen(command, "r");
	if (!f || fscanf(f, "%lf", &v) != 1)
		v = 0;
	if (f)
		pclose(f);
	return v;
}

static double ask_model(const struct program *p, const char *version, const char *conf)
{
	static const uint64_t handle[1] = { 0 };
	const struct vc_model_type *type = vc_model_by_name("torch");
	struct vc_device_config device = { .total = 1ull << 44 };
	struct vc_streams streams = { handle, 1 };
	struct vc_error err = { 0 };
	void *config = calloc(1, type->config_size);
	struct vc_block *block = calloc(p->slots, sizeof(*block));
	struct vc_model m = { .type = type, .config = config, .version = version, .conf = conf,
			      .streams = &streams, .state = calloc(1, type->state_size),
			      .device = vc_device_new(&device, &err) };
	double t;

	if (!config || !block || !m.state || !m.device ||
	    vc_params_parse(type->params, config, NULL, &err) < 0 || type->init(&m, &err) < 0)
		exit(2);
	t = now();
	for (int round = atoi(REPEAT); round > 0; round--)
		for (size_t k = 0; k < p->n; k++) {
			const struct step *s = &p->s[k];
			struct vc_request rq = { .id = s->slot + 1, .size = s->size };

			if (s->size)
				type->alloc(&m, &rq, &block[s->slot], &err);
			else
				type->free(&m, &block[s->slot]);
		}
	t = (double)p->n * atoi(REPEAT) / (now() - t) * 1e-6;
	type->fini(&m);
	vc_device_free_all(m.device);
	free(m.state);
	free(config);
	free(block);
	return t;
}

static void compare(const char *oracle, const char *version, const char *name, const char *conf)
{
	struct program p = { 0 };
	char path[64] = "/tmp/vramcast-bench-" "XX" "XX" "XX";
	double real = 0, model = 0;
	int fd = mkstemp(path);

	if (fd < 0)
		exit(2);
	close(fd);
	training(&p, 96, 20);
	write_script(path, &p, conf);
	for (int round = 0; round < 5; round++) { /* in turns: both see the same noise */
		double r = ask_oracle(oracle, path), v = ask_model(&p, version, conf);

		real = r > real ? r : real;
		model = v > model ? v : model;
	}
	remove(path);
	free(p.s);
	printf("bench oracle.%s.%s.real %.2f Mevents/s\n", version, name, real);
	printf("bench oracle.%s.%s.model %.2f Mevents/s\n", version, name, model);
	if (real > 0)
		printf("bench oracle.%s.%s.ratio %.2f x\n", version, name, model / real);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	compare(argv[1], argv[2], "native", NULL);
	if (strncmp(argv[2], "2.0.", 4) != 0)
		compare(argv[1], argv[2], "expandable", "expandable_segments:True");
	return 0;
}
