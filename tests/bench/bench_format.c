/* SPDX-License-Identifier: Apache-2.0 */
/* bench_format.c - how fast snapshots are imported and traces decoded, and what an event costs on
 * disk.
 *
 * The input is made: steps of training with layers, activations freed in reverse, temporaries,
 * sizes that repeat, 20 callers per event, times that jitter. It is written as Python's pickle
 * writes it. `bench-format write STEPS FILE` only writes such an input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/codec.h"
#include "simulator/replay/source.h"
#include "tests/support/snapshot_writer.h"

#define LAYERS 24
#define STEPS 600
#define DEPTH 20
#define FRAMES 600

struct maker {
	struct pw w;
	uint32_t frame[FRAMES]; /* memo numbers; 0 = not written yet */
	uint64_t seed, top, events;
	int64_t now_us;
	uint64_t hole[64][512]; uint32_t holes[64]; /* freed addresses by size class */
	struct { uint64_t addr; int64_t size; } act[LAYERS * 4];
};

static uint64_t dice(struct maker *m, uint64_t sides)
{
	m->seed = m->seed * 6364136223846793005u + 1442695040888963407u;
	return (m->seed >> 33) % sides;
}

static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void put_frame(struct maker *m, uint32_t f)
{
	static char name[FRAMES][24];
	struct pw *w = &m->w;

	if (m->frame[f]) {
		pw_get(w, m->frame[f]);
		return;
	}
	m->frame[f] = w->memos;
	snprintf(name[f], sizeof(name[f]), "function_%u", f);
	pw_dict(w);
	pw_key_text(w, "name", name[f]);
	pw_key_text(w, "filename",
		    f % 3 ? "/site-packages/torch/nn/modules/module.py" : "/home/user/train.py");
	pw_key_int(w, "line", 10 + f);
	pw_dict_end(w);
}

static void put_event(struct maker *m, const char *action, uint64_t addr, int64_t size,
		      uint32_t site)
{
	struct pw *w = &m->w;

	m->now_us += (int64_t)dice(m, 30);
	m->events++;
	pw_dict(w);
	pw_key_text(w, "action", action);
	pw_key_int(w, "addr", (int64_t)addr);
	pw_key_int(w, "size", size);
	pw_key_int(w, "stream", 0);
	pw_key_int(w, "time_us", m->now_us);
	pw_key_text(w, "compile_context", "N/A");
	pw_text(w, "frames");
	pw_list(w);
	for (uint32_t i = 0; i < DEPTH; i++) /* innermost first; the outer ones are shared */
		put_frame(m, i < 8 ? (site * 7 + i) % FRAMES : DEPTH - i);
	pw_list_end(w);
	pw_dict_end(w);
}

static uint64_t make_alloc(struct maker *m, int64_t size, uint32_t class, uint32_t site)
{
	uint64_t addr = m->holes[class] ? m->hole[class][--m->holes[class]] :
					  (m->top += (uint64_t)size + 511) & ~511ull;

	put_event(m, "alloc", addr, size, site);
	return addr;
}

static void make_free(struct maker *m, uint64_t addr, int64_t size, uint32_t class, uint32_t site)
{
	put_event(m, "free_requested", addr, size, site);
	put_event(m, "free_completed", addr, size, site);
	if (m->holes[class] < 512)
		m->hole[class][m->holes[class]++] = addr;
}

static void make_step(struct maker *m)
{
	uint32_t n = 0;

	for (uint32_t l = 0; l < LAYERS; l++) {
		for (uint32_t k = 0; k < 4; k++, n++) {
			uint32_t class = k % 3;
			int64_t tmp = 3000000 + 4096 * class, size = 1000000 * (class + 1) + 36;
			uint64_t scratch = make_alloc(m, tmp, 8 + class, l * 8 + k);

			m->act[n].addr = make_alloc(m, size, class, l * 8 + k + 4);
			m->act[n].size = size;
			make_free(m, scratch, tmp, 8 + class, l * 8 + k);
		}
	}
	while (n-- > 0) {
		uint32_t class = n % 4 % 3;
		uint64_t grad = make_alloc(m, m->act[n].size, 16 + class, 200 + n);

		make_free(m, m->act[n].addr, m->act[n].size, class, 210 + n);
		make_free(m, grad, m->act[n].size, 16 + class, 220 + n);
	}
}

static void make_snapshot(struct maker *m, int steps)
{
	struct pw *w = &m->w;

	pw_begin(w, PW_PYTHON4);
	pw_dict(w);
	pw_text(w, "segments");
	pw_list(w);
	pw_list_end(w);
	pw_text(w, "device_traces");
	pw_list(w);
	pw_list(w);
	for (int s = 0; s < steps; s++) {
		make_step(m);
		pw_list_end(w); /* Python writes lists in batches of 1,000 */
		pw_op(w, '(');
	}
	pw_list_end(w);
	pw_list_end(w);
	pw_dict_end(w);
	pw_end(w);
}

static int read_trace(const char *path, struct vc_trace *t, double *seconds, struct vc_error *err)
{
	double start = cpu();
	struct vc_source *s = vc_source_open(path, err);
	int rc = s ? vc_trace_read(t, s, err) : -1;

	vc_source_free(s);
	*seconds = cpu() - start;
	return rc;
}

static int encode(const struct vc_trace *t, const char *path, struct vc_error *err)
{
	struct vc_output *o = vc_output_open(path, err);
	struct vc_encoder *e = o ? vc_encoder_new(o, t->meta, NULL, err) : NULL;
	int rc = e ? vc_encoder_append(e, t->ev, t->n, err) : -1;

	if (!rc)
		rc = vc_encoder_finish(e, err);
	if (!rc)
		rc = vc_output_commit(o, err);
	vc_encoder_free(e);
	vc_output_close(o);
	return rc;
}

static int save(const char *path, const void *data, size_t n)
{
	FILE *f = fopen(path, "wb");

	if (!f)
		return -1;
	if (fwrite(data, 1, n, f) != n) {
		fclose(f);
		return -1;
	}
	return fclose(f);
}

/* Best of three: other work on the machine only ever slows down. */
static int best(const char *path, struct vc_trace *t, double *seconds, struct vc_error *err)
{
	*seconds = 1e9;
	for (int i = 0; i < 3; i++) {
		double s;

		vc_trace_fini(t);
		if (read_trace(path, t, &s, err))
			return -1;
		*seconds = s < *seconds ? s : *seconds;
	}
	return 0;
}

static int run(struct maker *m, const char *path, struct vc_error *err)
{
	struct vc_trace t = { 0 };
	double seconds;
	FILE *f;
	int rc = best(path, &t, &seconds, err);

	if (!rc) {
		printf("bench import.torch_snapshot.mbs %.0f MB/s\n",
		       (double)m->w.n / 1e6 / seconds);
		printf("bench import.torch_snapshot.events %.2f Mevents/s\n",
		       (double)m->events / 1e6 / seconds);
		for (size_t i = 0; i < t.n; i++)
			t.ev[i].time_ns += t.ev[i].time_ns ? dice(m, 1000) : 0;
		rc = encode(&t, path, err);
	}
	if (!rc && (f = fopen(path, "rb"))) {
		fseek(f, 0, SEEK_END);
		printf("bench trace.vct %.2f bytes/event\n", (double)ftell(f) / (double)t.n);
		fclose(f);
		rc = best(path, &t, &seconds, err);
	}
	if (!rc)
		printf("bench decode.vct %.1f Mevents/s\n", (double)t.n / 1e6 / seconds);
	vc_trace_fini(&t);
	return rc;
}

int main(int argc, char **argv)
{
	struct maker *m = calloc(1, sizeof(*m));
	const char *tmp = getenv("TMPDIR");
	struct vc_error err = { 0 };
	char path[300];
	int fd, rc;

	if (!m)
		return 1;
	m->seed = 42;
	m->now_us = 1700000000000000;
	m->top = 0x7f0000000000;
	make_snapshot(m, argc == 4 ? atoi(argv[2]) : STEPS);
	if (argc == 4)
		return save(argv[3], m->w.at, m->w.n) != 0;
	snprintf(path, sizeof(path), "%s/vc-bench-XX" "XX" "XX", tmp ? tmp : "/tmp");
	fd = mkstemp(path);
	if (fd < 0 || close(fd) || save(path, m->w.at, m->w.n)) {
		fprintf(stderr, "bench-format: cannot write %s\n", path);
		return 1;
	}
	rc = run(m, path, &err);
	if (rc)
		fprintf(stderr, "bench-format: %s\n", err.message);
	unlink(path);
	free(m->w.at);
	free(m);
	return rc != 0;
}
