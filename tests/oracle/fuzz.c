/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.c - random scripts through the real allocator and through the torch model; the first
 * difference is shrunk to a short script and kept.
 *
 * usage: fuzz ORACLE VERSION OPERATIONS SEED KEEPDIR [SCRIPTSIZE]
 * Prints one TAP line. KEEPDIR gets NAME.txt, NAME.result, NAME.notes of each difference. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "player.h"
#include "scripts.h"

#define MAX_FOUND 5
#define MAX_TRIALS 600

struct fuzz {
	const char *oracle, *version, *keep;
	char dir[64];
	unsigned minor;
	size_t trials;
	bool torn, freed; /* the last script: gave back a part, differed after that */
};

/* ---- one comparison ---- */
static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	if (!f || fputs(text, f) < 0 || fclose(f))
		die("cannot write", path);
}

/* false: the real program did not finish. */
static bool ask_oracle(const struct fuzz *z, const char *script, char **result, char **notes)
{
	char s[96], r[96], n[96];
	int status;
	pid_t pid;

	snprintf(s, sizeof(s), "%s/s", z->dir);
	snprintf(r, sizeof(r), "%s/r", z->dir);
	snprintf(n, sizeof(n), "%s/n", z->dir);
	write_file(s, script);
	pid = fork();
	if (!pid) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(126);
		alarm(120);
		execl(z->oracle, z->oracle, s, r, n, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status)
		return false;
	*result = slurp(r);
	*notes = slurp(n);
	return true;
}

/* Once a part of a segment was given back the real program works with memory of its own that it has
 * freed: what it does then depends on the C library's heap, and it may end at any moment. */
static bool differs(struct fuzz *z, const char *script, struct difference *d)
{
	struct player p;
	struct script sc;
	char *copy = strdup(script), *result = NULL, *notes = NULL;
	bool bad = true, ended;

	z->trials++;
	*d = (struct difference){ 0 };
	script_parse(&sc, copy, "random");
	player_run(&p, &sc, z->version, false);
	ended = !ask_oracle(z, script, &result, &notes);
	if (ended)
		snprintf(d->want, sizeof(d->want), "the real program did not finish");
	else
		bad = text_differs(result, p.out.s, d) || text_differs(notes, p.note.s, d);
	z->torn = p.torn > 0;
	z->freed = z->torn && bad && (ended || !d->op || d->op >= p.torn);
	player_end(&p);
	script_fini(&sc);
	free(result);
	free(notes);
	return bad && !z->freed;
}

/* ---- shrinking ---- */
struct lines { const char **at; size_t n, header; };

static struct lines split(char *text)
{
	struct lines l = { 0 };
	size_t cap = 0;

	for (char *p = text; *p; ) {
		char *end = strchr(p, '\n');

		if (l.n == cap) {
			cap = cap ? 2 * cap : 1024;
			l.at = realloc(l.at, cap * sizeof(*l.at));
			if (!l.at)
				exit(2);
		}
		*end = '\0';
		if (p[1] != ' ' && p[1])
			l.header = l.n + 1;
		l.at[l.n++] = p;
		p = end + 1;
	}
	return l;
}

static char *join(const struct lines *l, size_t from, size_t to) /* without [from, to) */
{
	size_t n = 1, k = 0;
	char *s;

	for (size_t i = 0; i < l->n; i++)
		n += strlen(l->at[i]) + 1;
	s = malloc(n);
	if (!s)
		exit(2);
	for (size_t i = 0; i < l->n; i++)
		if (i < from || i >= to)
			k += (size_t)snprintf(s + k, n - k, "%s\n", l->at[i]);
	s[k] = '\0';
	return s;
}

static void drop(struct lines *l, size_t from, size_t to)
{
	memmove(l->at + from, l->at + to, (l->n - to) * sizeof(*l->at));
	l->n -= to - from;
}

static char *shrink(struct fuzz *z, char *script, struct difference *d)
{
	struct lines l = split(script);
	struct difference now;
	char *t;

	z->trials = 0;
	if (d->op && l.header + d->op + 1 < l.n) /* nothing behind the first difference matters */
		drop(&l, l.header + d->op + 1, l.n);
	for (size_t size = (l.n - l.header) / 2; size && z->trials < MAX_TRIALS; size /= 2)
		for (size_t at = l.n; at > l.header && z->trials < MAX_TRIALS; ) {
			size_t from = at - l.header > size ? at - size : l.header;

			t = join(&l, from, at);
			if (differs(z, t, &now)) {
				drop(&l, from, at);
				*d = now;
			}
			free(t);
			at = from;
		}
	t = join(&l, 0, 0);
	free(l.at);
	return t;
}

static void keep(struct fuzz *z, const char *script, uint64_t seed)
{
	char path[1024], *result, *notes;

	snprintf(path, sizeof(path), "%s/found_%s_%" PRIu64 ".txt", z->keep, z->version, seed);
	write_file(path, script);
	if (!ask_oracle(z, script, &result, &notes))
		return;
	snprintf(path, sizeof(path), "%s/found_%s_%" PRIu64 ".result", z->keep, z->version, seed);
	write_file(path, result);
	snprintf(path, sizeof(path), "%s/found_%s_%" PRIu64 ".notes", z->keep, z->version, seed);
	write_file(path, notes);
	free(result);
	free(notes);
}

static void report(struct fuzz *z, char *script, uint64_t seed, struct difference *d)
{
	char *small = shrink(z, script, d);

	keep(z, small, seed);
	printf("# torch %s seed %" PRIu64
	       ": operation %zu: the real one \"%s\", the model \"%s\" (kept as "
	       "%s/found_%s_%" PRIu64 ".txt, %zu bytes)\n",
	       z->version, seed, d->op, d->want, d->got, z->keep, z->version, seed,
	       strlen(small));
	fflush(stdout);
	free(small);
}

int main(int argc, char **argv)
{
	struct fuzz z = { 0 };
	struct difference d;
	uint64_t total = argc > 3 ? strtoull(argv[3], NULL, 10) : 0,
		 seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 1;
	uint64_t done = 0, scripts = 0, found = 0, torn = 0, freed = 0;
	size_t size = argc > 6 ? strtoul(argv[6], NULL, 10) : 2000;

	if (argc < 6)
		die("usage", "fuzz ORACLE VERSION OPERATIONS SEED KEEPDIR [SCRIPTSIZE]");
	z = (struct fuzz){ .oracle = argv[1], .version = argv[2], .keep = argv[5] };
	z.minor = (unsigned)strtoul(z.version + 2, NULL, 10);
	snprintf(z.dir, sizeof(z.dir), "/tmp/vramcast-oracle-" "XX" "XX" "XX");
	if (!mkdtemp(z.dir))
		die("cannot make a folder", z.dir);
	for (; done < total && found < MAX_FOUND; seed++, scripts++, done += size) {
		char *script = random_script(z.minor, seed, size);

		if (differs(&z, script, &d)) {
			found++;
			report(&z, script, seed, &d);
		}
		torn += z.torn;
		freed += z.freed;
		free(script);
	}
	printf("%sok - torch %s: %" PRIu64 " random operations in %" PRIu64
	       " scripts against the real allocator, %" PRIu64 " differences (%" PRIu64
	       " scripts give back a part of a segment, %" PRIu64
	       " of them differ in freed memory)\n",
	       found ? "not " : "", z.version, done, scripts, found, torn, freed);
	return found > 0;
}
