/* SPDX-License-Identifier: Apache-2.0 */
/* whatif.c - random whole programs, recorded from the real allocator; something is changed, and the
 * answer of vramcast is judged by what the real allocator then does, with five orders of addresses.
 *
 * usage: whatif CACHE VRAMCAST CASES SEED VERSION...
 * Environment: see check_whatif.sh. */
#include "whatif.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "script.h"

/* ---- asking vramcast ---- */

/* The value behind the first KEY at or after `json`, into `to`. */
static const char *value_of(const char *json, const char *key, char *to, size_t cap)
{
	char quoted[64];
	const char *at;
	size_t n;

	*to = '\0';
	snprintf(quoted, sizeof(quoted), "\"%s\": ", key);
	at = strstr(json, quoted);
	if (!at)
		return NULL;
	at += strlen(quoted);
	at += *at == '"';
	n = strcspn(at, "\",\n");
	snprintf(to, cap, "%.*s", (int)n, at);
	return at;
}

static uint64_t number_of(const char *json, const char *key)
{
	char text[32];

	value_of(json, key, text, sizeof(text));
	return strtoull(text, NULL, 10);
}

static bool read_answer(const char *json, struct answer *a)
{
	const char *run = strstr(json, "\"runs\": ["), *interval;
	char text[32];

	if (!run)
		return false;
	value_of(run, "verdict", a->verdict, sizeof(a->verdict));
	value_of(run, "verdict_low", a->low_verdict, sizeof(a->low_verdict));
	value_of(run, "verdict_high", a->high_verdict, sizeof(a->high_verdict));
	value_of(run, "level", a->level, sizeof(a->level));
	value_of(run, "start", a->start, sizeof(a->start));
	a->best = a->low = a->high = number_of(run, "peak_reserved");
	interval = value_of(run, "interval", text, sizeof(text));
	a->is_point = true;
	if (interval && *interval == '[') {
		char *end;

		a->low = strtoull(interval + 1 + strspn(interval + 1, " \n"), &end, 10);
		a->high = strtoull(end + strspn(end, ", \n"), NULL, 10);
		a->is_point = a->low == a->high;
	}
	value_of(json, "reproduced", text, sizeof(text));
	a->reproduced = !strcmp(text, "true");
	return true;
}

/* Processor time of the processes that ended. */
static double children_seconds(void)
{
	struct rusage use;

	getrusage(RUSAGE_CHILDREN, &use);
	return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
	       (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

/* Its time is taken; `options` are separated by blanks, '' is an empty one. */
static bool ask(const struct whatif *w, const char *file, const char *options, struct answer *a)
{
	char out[96], text[256], *argv[24] = { (char *)(uintptr_t)w->vramcast, "sim",
		(char *)(uintptr_t)file, "--context", "0", "--json", "--no-advice" };
	double before = children_seconds();
	size_t n = 7;
	int status;
	pid_t pid;
	char *json;
	bool ok;

	snprintf(out, sizeof(out), "%s/json", w->dir);
	snprintf(text, sizeof(text), "%s", options);
	for (char *t = strtok(text, " "); t && n < 23; t = strtok(NULL, " "))
		argv[n++] = strcmp(t, "''") ? t : "";
	*a = (struct answer){ 0 };
	pid = fork();
	if (!pid) {
		if (!freopen(out, "w", stdout) || !freopen("/dev/null", "w", stderr))
			_exit(126);
		alarm(120);
		execv(w->vramcast, argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return false;
	a->seconds = children_seconds() - before;
	json = slurp(out);
	ok = read_answer(json, a);
	free(json);
	return ok;
}

/* ---- one case ---- */

static bool give_up(struct row *r, const char *why)
{
	snprintf(r->why, sizeof(r->why), "%s", why);
	return false;
}

static bool find_recorded(const struct whatif *w, struct row *r, const struct program *p)
{
	char *script = case_script(&r->c, p, &r->c.recorded, r->c.order[0], p->ops);

	oracle_digest(w, &r->c, p, script, &r->recorded);
	snprintf(r->file, sizeof(r->file), "%s", "");
	if (!r->recorded.failed && !r->recorded.oom) {
		cache_path(w, &r->c, script, r->c.sites ? r->c.marks ? "-sm.vct" : "-s.vct" :
			   r->c.marks ? "-m.vct" : ".vct", r->file, sizeof(r->file));
		if (access(r->file, R_OK) && !case_record(w, &r->c, p, r->file))
			r->file[0] = '\0';
	}
	free(script);
	return r->file[0] ? true : give_up(r, "nothing was recorded");
}

static bool find_truth(const struct whatif *w, struct row *r, const struct program *p)
{
	for (unsigned k = 0; k < ORDERS; k++) {
		char *script = case_script(&r->c, p, &r->c.changed, r->c.order[k], p->ops);

		oracle_digest(w, &r->c, p, script, &r->truth[k]);
		free(script);
		if (r->truth[k].failed)
			return give_up(r, "the real allocator failed");
		if (!k && r->truth[k].oom_before)
			return give_up(r, "out of memory before the cut");
	}
	return true;
}

/* Where the program does not come to the recorded part, a larger card is tried. */
static bool find_question(const struct whatif *w, struct row *r, const struct program *p)
{
	bool found = false;

	for (unsigned tries = 0; tries < 4 && !found; tries++) {
		case_capacity(&r->c, &r->recorded, tries);
		found = find_truth(w, r, p);
		if (!r->truth[0].oom_before)
			break;
	}
	return found;
}

static void play(const struct whatif *w, uint64_t seed, struct row *r)
{
	struct program p;
	char options[256];

	*r = (struct row){ 0 };
	case_draw(&r->c, w, seed);
	program_make(&p, r->c.family, seed);
	r->allocs = p.ids;
	if (find_recorded(w, r, &p)) {
		if (find_question(w, r, &p)) {
			case_options(&r->c, options, sizeof(options));
			r->played = ask(w, r->file, "", &r->unchanged) &&
				    ask(w, r->file, options, &r->changed);
			if (!r->played)
				give_up(r, "no answer");
			else
				r->why[0] = '\0';
		}
	}
	program_free(&p);
}

/* ---- what is kept of failing cases ---- */

static void keep(const struct whatif *w, const struct row *r)
{
	char path[1024], options[256];
	struct program p;
	FILE *f;

	program_make(&p, r->c.family, r->c.seed);
	for (unsigned k = 0; k < ORDERS; k++) {
		char *s = case_script(&r->c, &p, &r->c.changed, r->c.order[k], p.ops);

		snprintf(path, sizeof(path), "%s/%" PRIu64 "-%u.script", w->keep, r->c.seed, k);
		write_file(path, s);
		free(s);
	}
	program_free(&p);
	case_options(&r->c, options, sizeof(options));
	snprintf(path, sizeof(path), "%s/%" PRIu64 ".txt", w->keep, r->c.seed);
	f = fopen(path, "w");
	if (!f)
		die("cannot write", path);
	fprintf(f, "vramcast sim %" PRIu64 ".vct --context 0%s\ntorch %s\n", r->c.seed, options,
		r->c.version);
	fprintf(f, "said %" PRIu64 " [%" PRIu64 ", %" PRIu64 "] %s %s\n", r->changed.best,
		r->changed.low, r->changed.high, r->changed.verdict, r->changed.level);
	for (unsigned k = 0; k < ORDERS; k++)
		fprintf(f, "real %s: %" PRIu64 " %s\n", r->c.order[k], digest_peak(&r->truth[k]),
			digest_verdict(&r->truth[k]));
	fclose(f);
	snprintf(path, sizeof(path), "%s/%" PRIu64 ".vct", w->keep, r->c.seed);
	copy_file(r->file, path);
}

/* ---- all of them ---- */

struct choice { uint64_t seed; size_t cases; unsigned jobs; const char *family, *cut, *change; };

static bool is_chosen(const struct whatif_case *c, const struct choice *of)
{
	return (!of->family || !strcmp(of->family, family_name[c->family])) &&
	       (!of->cut || strtoul(of->cut, NULL, 10) == c->cut) &&
	       (!of->change || !strcmp(of->change, change_name[c->change]) ||
		!strcmp(of->change, c->kind));
}

/* The seeds of the chosen cases. */
static uint64_t *choose(const struct whatif *w, const struct choice *of)
{
	uint64_t *seed = calloc(of->cases, sizeof(*seed));
	size_t n = 0;

	if (!seed)
		die("no memory", "cases");
	for (uint64_t s = of->seed; n < of->cases && s < of->seed + 1000 * of->cases; s++) {
		struct whatif_case c;

		case_draw(&c, w, s);
		if (is_chosen(&c, of))
			seed[n++] = s;
	}
	if (n < of->cases)
		die("no such cases", "WHATIF_FAMILY, WHATIF_CUT, WHATIF_CHANGE");
	return seed;
}

/* What the processes share: the next case, and the rows that follow it. */
struct shared { size_t next; struct row row[]; };

static struct shared *share(size_t cases)
{
	struct shared *s = MAP_FAILED;
	size_t n = sizeof(*s) + cases * sizeof(s->row[0]);
	FILE *f = tmpfile();

	if (f && !ftruncate(fileno(f), (off_t)n))
		s = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
	if (s == MAP_FAILED)
		die("no memory", "rows");
	fclose(f);
	return s;
}

/* One of several processes; who has time takes the next case. */
static void work(const struct whatif *w, const uint64_t *seed, size_t cases, struct shared *s)
{
	size_t i;

	while ((i = __atomic_fetch_add(&s->next, 1, __ATOMIC_RELAXED)) < cases)
		play(w, seed[i], &s->row[i]);
	_exit(0);
}

static struct row *play_all(struct whatif *w, const uint64_t *seed, const struct choice *of)
{
	struct shared *s = share(of->cases);
	char base[64];
	int status;

	snprintf(base, sizeof(base), "%s", w->dir);
	for (unsigned k = 0; k < of->jobs; k++) {
		snprintf(w->dir, sizeof(w->dir), "%.50s/%u", base, k);
		mkdir(w->dir, 0777);
		if (!fork())
			work(w, seed, of->cases, s);
	}
	while (wait(&status) > 0)
		if (status)
			die("a worker failed", "see above");
	return s->row;
}

static size_t report(const struct whatif *w, const struct row *row, size_t n)
{
	const char *csv = getenv("WHATIF_CSV");
	FILE *f = csv ? fopen(csv, "w") : NULL;
	size_t bad = 0;

	if (csv && !f)
		die("cannot write", csv);
	if (f)
		row_csv(NULL, NULL, f);
	for (size_t i = 0; i < n; i++) {
		struct verdicts v;

		row_judge(&row[i], &v);
		if (f)
			row_csv(&row[i], &v, f);
		bad += !v.ok;
		if (!v.ok)
			row_print(&row[i], &v);
		if (!v.ok && w->keep)
			keep(w, &row[i]);
	}
	if (f)
		fclose(f);
	rows_report(row, n);
	if (getenv("WHATIF_KEPT"))
		rows_keep(row, n, getenv("WHATIF_KEPT"));
	return bad;
}

int main(int argc, char **argv)
{
	struct whatif w = { .keep = getenv("KEEP") };
	struct choice of = { .family = getenv("WHATIF_FAMILY"), .cut = getenv("WHATIF_CUT"),
			     .change = getenv("WHATIF_CHANGE") };
	const char *jobs = getenv("WHATIF_JOBS");
	char path[600];
	uint64_t *seed;
	struct row *row;
	size_t bad;

	if (argc < 6)
		die("usage", "whatif CACHE VRAMCAST CASES SEED VERSION...");
	w.cache = argv[1];
	w.vramcast = argv[2];
	of.cases = strtoul(argv[3], NULL, 10);
	of.seed = strtoull(argv[4], NULL, 10);
	of.jobs = jobs ? (unsigned)strtoul(jobs, NULL, 10) : 2;
	for (int i = 5; i < argc && w.versions < 32; i++)
		w.version[w.versions++] = argv[i];
	snprintf(path, sizeof(path), "%s/whatif", w.cache);
	mkdir(path, 0777);
	snprintf(w.dir, sizeof(w.dir), "/tmp/vramcast-whatif-" "XX" "XX" "XX");
	if (!mkdtemp(w.dir) || !of.cases || !of.jobs)
		die("usage", "no folder, no cases or no processes");
	snprintf(path, sizeof(path), "rm -rf '%s'", w.dir);
	seed = choose(&w, &of);
	row = play_all(&w, seed, &of);
	if (system(path))
		die("cannot delete", path);
	bad = report(&w, row, of.cases);
	printf("%sok - %zu what-ifs against the real allocator, %zu answers that do not hold\n",
	       bad ? "not " : "", of.cases, bad);
	free(seed);
	return bad > 0;
}
