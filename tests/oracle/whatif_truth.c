/* SPDX-License-Identifier: Apache-2.0 */
/* whatif_truth.c - what `make check` holds answers against: recordings of a few kilobytes, one of
 * each kind, and the truth about them over all orders of addresses. */
#include "whatif.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/io.h"
#include "script.h"

enum { MOST_CUT = 30, MOST = 42, LARGEST = 44 << 10 };

struct kept { const struct row *row[MOST]; size_t n; };

static bool is_new(const struct kept *k, const struct row *r)
{
	for (size_t i = 0; i < k->n; i++) {
		const struct whatif_case *c = &k->row[i]->c;

		if (c->family == r->c.family && !c->cut == !r->c.cut && !strcmp(c->kind, r->c.kind))
			return false;
	}
	return true;
}

/* A recording that its own settings do not reproduce has no answer that could be exact. */
static bool is_fit(const struct row *r)
{
	struct stat st;

	if (!r->played || !r->unchanged.reproduced || stat(r->file, &st) || st.st_size > LARGEST)
		return false;
	for (unsigned k = 0; k < ORDERS; k++)
		if (r->truth[k].oom_before)
			return false;
	return true;
}

static void choose(struct kept *k, const struct row *row, size_t n, bool cut, size_t most)
{
	for (size_t i = 0; i < n && k->n < most; i++)
		if (!row[i].c.cut == !cut && is_fit(&row[i]) && is_new(k, &row[i]))
			k->row[k->n++] = &row[i];
}

void copy_file(const char *from, const char *to)
{
	struct vc_error err;
	struct vc_input *in = vc_input_raw(from, &err);
	struct vc_output *out = vc_output_open(to, &err);
	size_t got;

	if (!in || !out)
		die("cannot copy", from);
	for (;;) {
		const uint8_t *p = vc_input_peek(in, 65536, &got, &err);

		if (!p || !got)
			break;
		vc_output_write(out, p, got);
		vc_input_skip(in, got);
	}
	if (vc_output_commit(out, &err) != VC_OK)
		die("cannot write", to);
	vc_input_close(in);
	vc_output_close(out);
}

static void put_truth(FILE *f, const struct row *r, const char *name)
{
	static const char *const verdict[] = { "fits", "flushes", "oom" };
	uint64_t low = UINT64_MAX, high = 0;
	char options[256];

	case_options(&r->c, options, sizeof(options));
	for (unsigned k = 0; k < ORDERS; k++) {
		uint64_t peak = digest_peak(&r->truth[k]);

		if (r->truth[k].oom)
			continue;
		low = peak < low ? peak : low;
		high = peak > high ? peak : high;
	}
	fprintf(f, "%s|%s|%" PRIu64 "|%" PRIu64 "|", name, options + 1, high ? low : 0, high);
	for (unsigned v = 0; v < 3; v++)
		for (unsigned k = 0; k < ORDERS; k++)
			if (!strcmp(digest_verdict(&r->truth[k]), verdict[v])) {
				fprintf(f, " %s", verdict[v]);
				break;
			}
	fprintf(f, "|%s\n", r->c.version);
}

void rows_keep(const struct row *row, size_t n, const char *dir)
{
	struct kept k = { .n = 0 };
	char path[1024], name[160];
	FILE *f;

	choose(&k, row, n, true, MOST_CUT);
	choose(&k, row, n, false, MOST);
	snprintf(path, sizeof(path), "%s/truth.txt", dir);
	f = fopen(path, "w");
	if (!f)
		die("cannot write", path);
	fprintf(f, "# recording|options|least and most reserved in orders that do not run out|"
		"verdicts|release\n");
	for (size_t i = 0; i < k.n; i++) {
		const struct whatif_case *c = &k.row[i]->c;

		snprintf(name, sizeof(name), "%s-%s-%u-%" PRIu64 ".vct", family_name[c->family],
			 c->kind, c->cut, c->seed);
		put_truth(f, k.row[i], name);
		snprintf(path, sizeof(path), "%s/%s", dir, name);
		copy_file(k.row[i]->file, path);
	}
	fclose(f);
	printf("# %zu recordings kept in %s\n", k.n, dir);
}
