/* SPDX-License-Identifier: Apache-2.0 */
/* cells.c - see cells.h */
#include "common/cells.h"

#include "common/utf8.h"
#include "common/vec.h"

void vc_cells_add(struct vc_cells *t, const char *head, const char *value, bool number)
{
	if (!vc_vec_room(t->cell, t->cap, t->n + 1)) {
		t->nomem = true;
		return;
	}
	t->cell[t->n] = (struct vc_cell){ strdup(head), strdup(value), number, t->rows };
	if (!t->cell[t->n].head || !t->cell[t->n].value) {
		t->nomem = true;
	} else {
		vc_utf8_plain(t->cell[t->n].head);
		vc_utf8_plain(t->cell[t->n].value);
	}
	t->n++;
}

static void drop_cells(struct vc_cells *t)
{
	for (size_t i = 0; i < t->n; i++) {
		VC_FREE(t->cell[i].head, t->cell[i].value);
	}
	t->n = 0;
	t->rows = 0;
}

static int columns_of(const char *s) /* UTF-8 code points, good enough for our own words */
{
	int n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xC0) != 0x80;
	return n;
}

static void pad(struct vc_cells *t, int n)
{
	while (n-- > 0)
		vc_output_text(t->out, " ");
}

void vc_cells_marked(struct vc_cells *t, const char *v)
{
	v += strspn(v, " ");
	for (; *v; v++) {
		if (*v == '<')
			vc_output_text(t->out, "&lt;");
		else if (strchr("|*_`", *v))
			vc_output_printf(t->out, "\\%c", *v);
		else
			vc_output_write(t->out, v, 1);
	}
}

/* A group of "label  value" lines. */
void vc_cells_group(struct vc_cells *t)
{
	int width = 0, indent = 2;

	for (size_t i = 0; i < t->n; i++)
		if (columns_of(t->cell[i].head) > width)
			width = columns_of(t->cell[i].head);
	for (size_t i = 0; i < t->n; i++) {
		if (t->markdown) {
			vc_output_text(t->out, "- ");
			vc_cells_marked(t, t->cell[i].head);
			vc_output_text(t->out, ": ");
			vc_cells_marked(t, t->cell[i].value);
			vc_output_text(t->out, "\n");
			continue;
		}
		pad(t, indent);
		vc_output_text(t->out, t->cell[i].head);
		pad(t, width - columns_of(t->cell[i].head) + 2);
		vc_output_printf(t->out, "%s\n", t->cell[i].value);
	}
	drop_cells(t);
}

/* Column names in order of first appearance; returns their number. */
static size_t heads_of(const struct vc_cells *t, const char **head, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		size_t k = 0;

		while (k < n && strcmp(head[k], t->cell[i].head))
			k++;
		if (k == n && n < max)
			head[n++] = t->cell[i].head;
	}
	return n;
}

static const struct vc_cell *cell_at(const struct vc_cells *t, size_t row, const char *head,
				  size_t from)
{
	for (size_t i = from; i < t->n && t->cell[i].row <= row; i++)
		if (t->cell[i].row == row && !strcmp(t->cell[i].head, head))
			return &t->cell[i];
	return NULL;
}

static void print_table_row(struct vc_cells *t, const char **head, const int *width, size_t n,
			    size_t row, size_t from)
{
	for (size_t k = 0; k < n; k++) {
		const struct vc_cell *c = cell_at(t, row, head[k], from);
		const char *v = c ? c->value : "";

		if (t->csv) {
			vc_output_text(t->out, k ? "," : "");
			vc_output_csv(t->out, v);
			continue;
		}
		pad(t, 2);
		if (c && c->number)
			pad(t, width[k] - columns_of(v));
		vc_output_text(t->out, v);
		if (!(c && c->number) && k + 1 < n)
			pad(t, width[k] - columns_of(v));
	}
	vc_output_text(t->out, "\n");
}

/* A table of Markdown; the columns of numbers stand to the right. */
static void print_marked(struct vc_cells *t, const char **head, size_t n)
{
	vc_output_text(t->out, "\n");
	for (size_t k = 0; k < n; k++) {
		vc_output_text(t->out, k ? " | " : "| ");
		vc_cells_marked(t, head[k]);
	}
	vc_output_text(t->out, " |\n|");
	for (size_t k = 0; k < n; k++) {
		const struct vc_cell *c = cell_at(t, 0, head[k], 0);
		vc_output_text(t->out, c && c->number ? "--:|" : "---|");
	}
	for (size_t row = 0; row < t->rows; row++) {
		vc_output_text(t->out, "\n");
		for (size_t k = 0; k < n; k++) {
			const struct vc_cell *c = cell_at(t, row, head[k], 0);
			vc_output_text(t->out, k ? " | " : "| ");
			vc_cells_marked(t, c ? c->value : "");
		}
		vc_output_text(t->out, " |");
	}
	vc_output_text(t->out, "\n");
	drop_cells(t);
}

void vc_cells_table(struct vc_cells *t)
{
	const char *head[64];
	int width[64];
	size_t n = heads_of(t, head, 64), from = 0;

	if (t->markdown) {
		print_marked(t, head, n);
		return;
	}
	for (size_t k = 0; k < n; k++) {
		bool number = false;

		width[k] = columns_of(head[k]);
		for (size_t i = 0; i < t->n; i++) {
			if (strcmp(t->cell[i].head, head[k]))
				continue;
			number |= t->cell[i].number;
			if (columns_of(t->cell[i].value) > width[k])
				width[k] = columns_of(t->cell[i].value);
		}
		if (t->csv) {
			vc_output_text(t->out, k ? "," : "");
			vc_output_csv(t->out, head[k]);
			continue;
		}
		pad(t, 2 + (number ? width[k] - columns_of(head[k]) : 0));
		vc_output_text(t->out, head[k]);
		if (!number && k + 1 < n)
			pad(t, width[k] - columns_of(head[k]));
	}
	if (n)
		vc_output_text(t->out, "\n");
	for (size_t row = 0; row < t->rows; row++) {
		while (from < t->n && t->cell[from].row < row)
			from++;
		print_table_row(t, head, width, n, row, from);
	}
	drop_cells(t);
}
