/* SPDX-License-Identifier: Apache-2.0 */
/* pack_csv.c - see pack_csv.h. */
#include "simulator/packing/pack_csv.h"

#include "common/vec.h"

enum { PIECE = 1 << 20, HEAD = 256, ID = 0, LOWER, UPPER, SIZE, OFFSET, COLUMNS };
static const char *const column[COLUMNS] = { "id", "lower", "upper", "size", "offset" };

/* Which column of the file is which of ours; -1: none of them. */
struct head { int of[32]; int n; bool has[COLUMNS]; };

static bool read_head(char *line, struct head *h)
{
	*h = (struct head){ .n = 0 };
	for (char *p = line; p && h->n < 32; h->n++) {
		char *name = p;

		p = strchr(p, ',');
		if (p)
			*p++ = '\0';
		h->of[h->n] = -1;
		for (int k = 0; k < COLUMNS; k++)
			if (!strcmp(name, column[k])) {
				h->of[h->n] = k;
				h->has[k] = true;
			}
	}
	return h->has[ID] && h->has[LOWER] && h->has[UPPER] && h->has[SIZE];
}

bool vc_problem_probe(struct vc_input *in)
{
	char line[HEAD];
	struct head h;
	size_t n;
	const uint8_t *p = vc_input_peek(in, HEAD - 1, &n, NULL);

	if (!p)
		return false;
	n = n < HEAD - 1 ? n : HEAD - 1;
	memcpy(line, p, n);
	line[n] = '\0';
	line[strcspn(line, "\r\n")] = '\0';
	return read_head(line, &h);
}

static int read_text(struct vc_problem *p, struct vc_input *in, struct vc_error *err)
{
	size_t n = 0, cap = 0, got;

	for (;;) {
		const uint8_t *at = vc_input_peek(in, PIECE, &got, err);

		if (!at && err && err->status)
			return (int)err->status;
		VC_HAVE(vc_vec_room(p->text, cap, n + got + 1), "the problem", err);
		if (!got)
			break;
		memcpy(p->text + n, at, got);
		n += got;
		vc_input_skip(in, got);
	}
	p->text[n] = '\0';
	return VC_OK;
}

static int read_row(struct vc_problem *p, const struct head *h, char *row, size_t line,
		    struct vc_error *err)
{
	uint64_t value[COLUMNS] = { 0 };
	char *id = NULL;
	int seen = 0;

	for (int k = 0; row; k++) {
		char *cell = row, *end = NULL;

		row = strchr(row, ',');
		if (row)
			*row++ = '\0';
		if (k >= h->n || h->of[k] < 0)
			continue;
		seen++;
		if (h->of[k] == ID)
			id = cell;
		else if (*cell >= '0' && *cell <= '9')
			value[h->of[k]] = strtoull(cell, &end, 10);
		if (h->of[k] != ID && (!end || *end))
			return vc_fail(err, VC_EFORMAT, "line %zu: %s is '%.40s', not a number",
				       line, column[h->of[k]], cell);
	}
	if (seen < 4 + p->placed || value[LOWER] >= value[UPPER])
		return vc_fail(err, VC_EFORMAT, "line %zu: %s", line, seen < 4 + p->placed ?
			       "fewer columns than the first line" :
			       "upper must be more than lower");
	VC_HAVE(vc_vec_one(p->packing.block, p->packing.n) && vc_vec_one(p->id, p->ids),
		"the blocks", err);
	p->packing.block[p->packing.n++] = (struct vc_pack_block){ .lower = value[LOWER],
		.upper = value[UPPER], .size = value[SIZE], .offset = value[OFFSET] };
	p->id[p->ids++] = id;
	return VC_OK;
}

int vc_problem_read(struct vc_problem *p, struct vc_input *in, struct vc_error *err)
{
	struct head h;
	size_t line = 0;

	*p = (struct vc_problem){ .placed = false };
	VC_TRY(read_text(p, in, err));
	for (char *at = p->text; *at;) {
		char *row = at;

		at += strcspn(at, "\n");
		if (*at)
			*at++ = '\0';
		row[strcspn(row, "\r")] = '\0';
		line++;
		if (line == 1 && !read_head(row, &h))
			return vc_fail(err, VC_EFORMAT, "line 1: the columns id, lower, upper and "
				       "size were expected");
		if (line == 1)
			p->placed = h.has[OFFSET];
		else if (*row)
			VC_TRY(read_row(p, &h, row, line, err));
	}
	return p->packing.n ? VC_OK : vc_fail(err, VC_EFORMAT, "there is no block in it");
}

void vc_problem_write(const struct vc_problem *p, struct vc_output *out)
{
	vc_output_text(out, "id,lower,upper,size,offset\n");
	for (size_t i = 0; i < p->packing.n; i++) {
		const struct vc_pack_block *b = &p->packing.block[i];

		vc_output_printf(out, "%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
				 p->id[i], b->lower, b->upper, b->size, b->offset);
	}
}

void vc_problem_fini(struct vc_problem *p)
{
	VC_FREE(p->packing.block, p->id, p->text);
}
