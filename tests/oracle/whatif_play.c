/* SPDX-License-Identifier: Apache-2.0 */
/* whatif_play.c - scripts for the oracle, its results, and what is kept of them. */
#include "whatif.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/io.h"
#include "script.h"

void write_file(const char *path, const char *text)
{
	char beside[1024];
	FILE *f;

	snprintf(beside, sizeof(beside), "%s.%d", path, (int)getpid());
	f = fopen(beside, "w");
	if (!f || fputs(text, f) < 0 || fclose(f) || rename(beside, path))
		die("cannot write", path);
}

size_t case_cut(const struct whatif_case *c, const struct program *p)
{
	return p->ops / 100 * c->cut;
}

char *case_script(const struct whatif_case *c, const struct program *p, const struct settings *s,
		  const char *order, size_t ops)
{
	struct vc_output *o = vc_output_memory(NULL);
	char *text;
	size_t n;

	vc_output_printf(o, "vramcast-golden 1\nname %s%" PRIu64 "\n#cut %s %zu\n",
			 family_name[c->family], c->seed, c->version, case_cut(c, p));
	vc_output_printf(o, "total %" PRIu64 "\nva %s\nevents auto\n", s->total, order);
	if (s->conf[0])
		vc_output_printf(o, "conf %s\n", s->conf);
	if (s->percent)
		vc_output_printf(o, "p 0.%02u\n", s->percent);
	for (size_t i = 0; i < ops; i++) {
		const struct program_op *op = &p->op[i];

		if (op->kind == 'm')
			vc_output_printf(o, "m %u %" PRIu64 " %u\n", op->id, op->size, op->stream);
		else if (op->kind == 'r')
			vc_output_printf(o, "r %u %u\n", op->id, op->stream);
		else if (op->kind == 'f')
			vc_output_printf(o, "f %u\n", op->id);
		else if (op->kind == 'e')
			vc_output_text(o, "e\n");
	}
	text = vc_output_take(o, &n);
	vc_output_close(o);
	if (!text)
		die("no memory", "script");
	return text;
}

char *oracle_run(const struct whatif *w, const struct whatif_case *c, const char *script)
{
	char oracle[600], s[96], r[96], n[96];
	int status;
	pid_t pid;

	snprintf(oracle, sizeof(oracle), "%s/build/%s/oracle", w->cache, c->version);
	snprintf(s, sizeof(s), "%s/s", w->dir);
	snprintf(r, sizeof(r), "%s/r", w->dir);
	snprintf(n, sizeof(n), "%s/n", w->dir);
	write_file(s, script);
	pid = fork();
	if (!pid) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(126);
		alarm(60);
		execl(oracle, oracle, s, r, n, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status)
		return NULL;
	return slurp(r);
}

/* ---- reading a result ---- */

static const char *next_line(const char *s)
{
	const char *end = strchr(s, '\n');

	return end ? end + 1 : s + strlen(s);
}

static void read_event(const char *line, size_t op, const struct result_reader *r)
{
	uint64_t v[3];
	char *end;

	v[0] = strtoull(line + 2, &end, 16);
	v[1] = strtoull(end, &end, 10);
	v[2] = strtoull(end, &end, 10);
	if (r->event)
		r->event(r->arg, op, line[0], v);
}

static const char *read_totals(const char *line, size_t op, const struct result_reader *r)
{
	uint64_t v[10];
	char *end = (char *)(uintptr_t)line + 1;

	for (unsigned k = 0; k < 10; k++)
		v[k] = strtoull(end, &end, 10);
	if (r->totals)
		r->totals(r->arg, op, v);
	return next_line(line);
}

/* The lines of one operation. */
const char *result_read_op(const char *s, size_t op, const struct result_reader *r)
{
	while (*s && strchr("AFMUCO!", *s) && s[1] == ' ') {
		if (*s != '!')
			read_event(s, op, r);
		s = next_line(s);
	}
	if (*s && r->answer)
		r->answer(r->arg, op, *s, *s == 'm' ? strtoull(s + 2, NULL, 16) : 0);
	s = next_line(s);
	while (*s == 'S')
		s = read_totals(s, op, r);
	return s;
}

const char *result_begin(const struct program *p, const char *s)
{
	const struct result_reader nobody = { 0 };
	bool asks = p->ops && (p->op[0].kind == 'm' || p->op[0].kind == 'k');

	return *s == '.' && asks ? result_read_op(s, 0, &nobody) : s;
}

const char *result_read(const char *s, const struct program *p, const struct result_reader *r)
{
	s = result_begin(p, s);
	for (size_t i = 0; i < p->ops; i++)
		if (p->op[i].kind != 'k')
			s = result_read_op(s, i, r);
	return s;
}

/* ---- what it came to ---- */

struct summing { struct digest *d; size_t cut; uint64_t allocated, reserved; bool over; };

static void sum_answer(void *arg, size_t op, char kind, uint64_t addr)
{
	struct summing *s = arg;

	(void)addr;
	if (kind == 'O' && !s->d->oom) {
		s->d->oom = 1;
		s->d->oom_before = op < s->cut;
		s->over = true;
	} else if (kind == 'E') {
		s->d->failed = 1;
	}
}

static void sum_totals(void *arg, size_t op, const uint64_t v[10])
{
	struct summing *s = arg;
	struct digest *d = s->d;

	if (s->over)
		return;
	if (op >= s->cut && !d->reserved_after)
		d->reserved_after = s->reserved; /* what the cut found */
	s->reserved = v[0];
	if (v[0] > d->reserved)
		d->reserved = v[0];
	if (op >= s->cut && v[0] > d->reserved_after)
		d->reserved_after = v[0];
	if (v[1] > d->allocated)
		d->allocated = v[1];
	d->retries = v[8];
	if (op < s->cut)
		d->retries_before = v[8];
}

/* S lines come every 16 operations: the exact peak of allocated bytes stands in the statistics. */
static void read_peak(const char *s, struct digest *d)
{
	const char *t = strstr(s, "T allocated_bytes.all ");

	if (t && !d->oom) {
		uint64_t peak = 0;

		sscanf(t, "T allocated_bytes.all %*u %" SCNu64, &peak);
		d->allocated = peak > d->allocated ? peak : d->allocated;
	}
}

void cache_path(const struct whatif *w, const struct whatif_case *c, const char *script,
		const char *ending, char *to, size_t cap)
{
	uint64_t h = 0xcbf29ce484222325ull; /* FNV-1a, twice as wide by a second one */
	uint64_t g = 0x9e3779b97f4a7c15ull;
	char dir[600];

	for (const char *s = script; *s; s++) {
		h = (h ^ (uint8_t)*s) * 0x100000001b3ull;
		g = (g + (uint8_t)*s) * 0xbf58476d1ce4e5b9ull;
		g ^= g >> 29;
	}
	snprintf(dir, sizeof(dir), "%s/whatif/%s", w->cache, c->version);
	mkdir(dir, 0777);
	snprintf(to, cap, "%s/%016" PRIx64 "%016" PRIx64 "%s", dir, h, g, ending);
}

static bool read_digest(const char *path, struct digest *d)
{
	FILE *f = fopen(path, "r");
	int n;

	if (!f)
		return false;
	n = fscanf(f, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNd64
		   " %" SCNd64 " %" SCNd64, &d->allocated, &d->reserved, &d->reserved_after,
		   &d->retries, &d->retries_before, &d->oom, &d->oom_before, &d->failed);
	fclose(f);
	return n == 8;
}

static void keep_digest(const char *path, const struct digest *d)
{
	char text[256];

	snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		 " %" PRId64 " %" PRId64 " %" PRId64 "\n", d->allocated, d->reserved,
		 d->reserved_after, d->retries, d->retries_before, d->oom, d->oom_before,
		 d->failed);
	write_file(path, text);
}

void oracle_digest(const struct whatif *w, const struct whatif_case *c, const struct program *p,
		   const char *script, struct digest *d)
{
	struct summing s = { .d = d, .cut = case_cut(c, p) };
	const struct result_reader r = { .arg = &s, .answer = sum_answer, .totals = sum_totals };
	char path[1024], *text;

	*d = (struct digest){ 0 };
	cache_path(w, c, script, "", path, sizeof(path));
	if (read_digest(path, d))
		return;
	text = oracle_run(w, c, script);
	if (text)
		read_peak(result_read(text, p, &r), d);
	else
		d->failed = 2; /* it did not finish */
	if (!d->reserved_after)
		d->reserved_after = s.reserved;
	if (text) /* who did not finish is asked again */
		keep_digest(path, d);
	free(text);
}
