/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - replays recorded vectors of the real allocator through the torch model, line by line.
 *
 * usage: replay DIR [-s SCRIPT] [-t VERSION] [-c]
 * DIR holds index.txt, scripts/, results/ and notes/ as described in tests/golden/README.md.
 * -c checks the model's invariants after every operation. Ends with "N passed, N failed".
 *
 * A result has for each operation first its events (A segment_alloc, F segment_free, M and U map
 * and unmap, C completion of an earlier free, O out of memory, ! allocations inside a), then one
 * line (m ADDR BLOCK, a ADDR BLOCK, f, w waits, O, E, - nothing, .), and after changes S with the
 * totals. At the end stand all statistics (T) and the snapshot (G, B). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "player.h"

struct options { const char *dir, *script, *version; bool check; };

static bool same(const struct player *p, const char *want, const char *got, const char *what,
		 const char *version)
{
	struct difference d;

	if (!text_differs(want, got, &d))
		return true;
	printf("FAIL %s %s: %s line %zu, operation %zu (%s): expected \"%s\", got \"%s\"\n",
	       p->sc->name, version, what, d.line, d.op,
	       d.op < p->sc->ops ? p->sc->op[d.op].line : "end", d.want, d.got);
	return false;
}

/* The stand-in runtime of the first recordings has no words of its own for an error: where it says
 * so, CUDA's own words are meant. The text is replaced. */
static char *with_cuda_words(char *text)
{
	static const char *const word[2][2] = {
		{ "CUDA error: fake error", "CUDA error: invalid argument" },
		{ "`cudaError'", "`cudaErrorInvalidValue'" } };
	struct text t = { 0 };

	if (!strstr(text, word[0][0]))
		return text;
	for (const char *s = text; *s; ) {
		int k = 0;

		while (k < 2 && strncmp(s, word[k][0], strlen(word[k][0])) != 0)
			k++;
		put(&t, "%.*s", k < 2 ? 64 : 1, k < 2 ? word[k][1] : s);
		s += k < 2 ? strlen(word[k][0]) : 1;
	}
	free(text);
	return t.s;
}

static bool replay(const struct options *o, const struct script *sc, char *const field[4])
{
	struct player p;
	char path[1024], *want, *notes;
	bool ok;

	player_run(&p, sc, field[1], o->check);
	snprintf(path, sizeof(path), "%s/results/%s.gz", o->dir, field[2]);
	want = slurp(path);
	snprintf(path, sizeof(path), "%s/notes/%s.gz", o->dir, field[3]);
	notes = with_cuda_words(slurp(path));
	ok = same(&p, want, p.out.s, "result", field[1]) &&
	     same(&p, notes, p.note.s, "note", field[1]);
	if (ok && p.broken[0]) {
		printf("FAIL %s %s: %s\n", sc->name, field[1], p.broken);
		ok = false;
	}
	free(want);
	free(notes);
	player_end(&p);
	return ok;
}

static void load(struct script *sc, const char *dir, const char *name)
{
	char path[1024];

	script_fini(sc);
	snprintf(path, sizeof(path), "%s/scripts/%s.txt.gz", dir, name);
	script_parse(sc, slurp(path), name);
}

static int replay_all(const struct options *o)
{
	struct script sc = { 0 };
	char path[1024], *index, *next;
	size_t passed = 0, failed = 0;

	snprintf(path, sizeof(path), "%s/index.txt", o->dir);
	index = slurp(path);
	for (char *line = index; *line; line = next) {
		char *field[4];
		int n = 0;

		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		for (char *f = line; n < 4 && *f; n++) {
			field[n] = f;
			f += strcspn(f, " ");
			if (*f)
				*f++ = '\0';
		}
		if (n < 4 || *line == '#' || (o->script && strcmp(o->script, field[0])) ||
		    (o->version && strcmp(o->version, field[1])))
			continue;
		if (strcmp(sc.name, field[0]) != 0)
			load(&sc, o->dir, field[0]);
		if (replay(o, &sc, field))
			passed++;
		else
			failed++;
	}
	printf("%zu passed, %zu failed\n", passed, failed);
	free(index);
	script_fini(&sc);
	return failed || !passed;
}

int main(int argc, char **argv)
{
	struct options o = { 0 };

	for (int k = 1; k < argc; k++) {
		if (!strcmp(argv[k], "-c"))
			o.check = true;
		else if (!strcmp(argv[k], "-s") && k + 1 < argc)
			o.script = argv[++k];
		else if (!strcmp(argv[k], "-t") && k + 1 < argc)
			o.version = argv[++k];
		else
			o.dir = argv[k];
	}
	if (!o.dir)
		die("usage", "replay DIR [-s SCRIPT] [-t VERSION] [-c]");
	return replay_all(&o);
}
