/* SPDX-License-Identifier: Apache-2.0 */
/* bench_packing.c - the packer on problems in MiniMalloc's CSV (id,lower,upper,size): a line each.
 * make bench-packing PROBLEMS="A.csv B.csv ..." */
#include <time.h>

#include "common/vec.h"
#include "simulator/packing/packing.h"

enum { EFFORT = 10 }; /* what `vramcast plan` takes unless told otherwise */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int solve(const char *path)
{
	struct vc_packing p = { .n = 0 };
	struct vc_error err = { 0 };
	char row[256];
	FILE *f = fopen(path, "r");
	double began = now();
	int r = -1;

	while (f && fgets(row, sizeof(row), f)) {
		unsigned long long lower, upper, size;

		if (sscanf(row, "%*[^,],%llu,%llu,%llu", &lower, &upper, &size) != 3)
			continue; /* the names of the columns */
		if (!vc_vec_one(p.block, p.n))
			break;
		p.block[p.n++] = (struct vc_pack_block){ lower, upper, size, 0, 0 };
	}
	if (f)
		fclose(f);
	if (p.n)
		r = vc_pack(&p, EFFORT, &err);
	if (r == 0)
		printf("%s: %zu blocks, lower bound %llu, height %llu, %s, %.2f s\n", path, p.n,
		       (unsigned long long)p.bound, (unsigned long long)p.height,
		       p.proven ? "proven best" : "not proven", now() - began);
	else
		fprintf(stderr, "%s: %s\n", path, p.n ? err.message : "no blocks in it");
	free(p.block);
	return r;
}

int main(int argc, char **argv)
{
	int failed = argc < 2;

	for (int i = 1; i < argc; i++)
		failed |= solve(argv[i]) < 0;
	return failed;
}
