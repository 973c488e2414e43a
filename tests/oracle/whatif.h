/* SPDX-License-Identifier: Apache-2.0 */
/* whatif.h - what-ifs judged by the real allocator: a random whole program is recorded, something
 * is changed, and what vramcast says is held against what the object code of the release does. */
#ifndef VC_WHATIF_H
#define VC_WHATIF_H

#include "programs.h"

enum change { CHANGE_CAPACITY, CHANGE_SETTINGS, CHANGE_BOTH, CHANGES };
extern const char *const change_name[CHANGES];
enum { ORDERS = 5, CUTS = 4 };
extern const unsigned cut_percent[CUTS];

struct settings { char conf[96]; unsigned percent; uint64_t total; }; /* 0 percent: no fraction */

struct whatif_case {
	uint64_t seed;
	const char *version;
	unsigned minor;
	enum family family;
	enum change change;
	unsigned cut; /* percent of the operations that nobody recorded */
	bool sites, marks;
	const char *order[ORDERS]; /* how addresses are chosen; the first is the recording's */
	struct settings recorded, changed;
	char kind[32]; /* what is changed, in a word */
};

/* What one run of the real allocator came to; `before`: until the cut. */
struct digest {
	uint64_t allocated, reserved, reserved_after; /* peaks; after: from the cut on */
	uint64_t retries, retries_before;
	int64_t oom, oom_before; /* 1: it ran out (before the cut) */
	int64_t failed; /* 1: something else went wrong */
};

/* What is the same for every case. */
struct whatif {
	const char *cache, *vramcast, *keep;
	const char *version[32];
	size_t versions;
	char dir[64]; /* of this process */
};

/* ---- whatif_case.c ---- */
void case_draw(struct whatif_case *c, const struct whatif *w, uint64_t seed);
/* The capacity that is asked about, from what was recorded; nearer to it with each try. */
void case_capacity(struct whatif_case *c, const struct digest *recorded, unsigned tries);
/* The options of vramcast for the change, blanks between them. */
void case_options(const struct whatif_case *c, char *to, size_t cap);

/* ---- whatif_play.c ---- */
/* The program as a script of the oracle, the first `ops` of it; owned by the caller. */
char *case_script(const struct whatif_case *c, const struct program *p, const struct settings *s,
		  const char *order, size_t ops);
size_t case_cut(const struct whatif_case *c, const struct program *p); /* first recorded one */
/* Runs it and returns what the oracle wrote, owned by the caller; NULL: it did not finish. */
char *oracle_run(const struct whatif *w, const struct whatif_case *c, const char *script);
/* The same, only what it came to; kept in the cache. */
void oracle_digest(const struct whatif *w, const struct whatif_case *c, const struct program *p,
		   const char *script, struct digest *d);
void cache_path(const struct whatif *w, const struct whatif_case *c, const char *script,
		const char *ending, char *to, size_t cap);
void write_file(const char *path, const char *text);

/* What a result says of each operation, one call for each line. */
struct result_reader {
	void *arg;
	/* A, F, M, U, C or O, before the answer of operation `op` */
	void (*event)(void *arg, size_t op, char kind, const uint64_t v[3]);
	void (*answer)(void *arg, size_t op, char kind, uint64_t addr); /* op: of the program */
	void (*totals)(void *arg, size_t op, const uint64_t v[10]);
};
/* All operations; returns where the lines behind them begin. */
const char *result_read(const char *text, const struct program *p, const struct result_reader *r);
/* Behind the fraction, which is none of the program's operations; then one operation. */
const char *result_begin(const struct program *p, const char *text);
const char *result_read_op(const char *s, size_t op, const struct result_reader *r);

/* ---- whatif_record.c ---- */
/* The recording of the case as a .vct, in the cache: true where it lies there now. */
bool case_record(const struct whatif *w, const struct whatif_case *c, const struct program *p,
		 const char *path);

/* ---- whatif_judge.c ---- */
struct answer {
	char verdict[16], low_verdict[16], high_verdict[16], level[24], start[16];
	uint64_t best, low, high;
	bool reproduced, is_point;
	double seconds;
};
struct row { /* in memory that processes share; pointers hold in each of them */
	struct whatif_case c;
	struct digest recorded, truth[ORDERS];
	struct answer unchanged, changed;
	bool played; /* false: nothing to judge, `why` */
	char why[64];
	size_t allocs;
	char file[512];
};
struct verdicts {
	unsigned same_in, all_in, above, below, verdict_same, verdict_any; /* 1 or 0 */
	unsigned exact, exact_wrong, exact_wrong_any, certain_wrong, certain_wrong_any;
	unsigned compared, span, impossible, ok;
	double width;
};
void row_judge(const struct row *r, struct verdicts *v);
const char *digest_verdict(const struct digest *d);
uint64_t digest_peak(const struct digest *d);
void row_print(const struct row *r, const struct verdicts *v);
void row_csv(const struct row *r, const struct verdicts *v, void *file);
void rows_report(const struct row *row, size_t n);

/* ---- whatif_truth.c ---- */
/* Some small recordings of all kinds, and a table of what is true of them, into a folder. */
void copy_file(const char *from, const char *to);
void rows_keep(const struct row *row, size_t n, const char *dir);

#endif
