/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_table.c - see sqlite_table.h */
#include "simulator/sources/sqlite_table.h"

#include <ctype.h>
#include <strings.h>

enum {
	HEADER = 100, UTF8 = 1,
	LEAF = 0x0d, INTERIOR = 0x05, /* pages of a table; those of an index are others */
	DEPTH = 24, FIELDS = 256, MOST_ROW = 1 << 20,
};

static uint32_t be(const uint8_t *p, int n)
{
	uint32_t v = 0;

	for (int i = 0; i < n; i++)
		v = v << 8 | p[i];
	return v;
}

/* A varint: seven bits a byte, the ninth byte whole. NULL: it runs over the end. */
static const uint8_t *varint(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
	*v = 0;
	for (int i = 0; p < end; i++) {
		if (i == 8) {
			*v = *v << 8 | *p++;
			return p;
		}
		*v = *v << 7 | (*p & 0x7f);
		if (!(*p++ & 0x80))
			return p;
	}
	return NULL;
}

int vc_sqlite_open(struct vc_sqlite *db, const uint8_t *at, size_t n, struct vc_error *err)
{
	if (n < HEADER || memcmp(at, VC_SQLITE_MAGIC, sizeof(VC_SQLITE_MAGIC)))
		return vc_fail(err, VC_EFORMAT, "no SQLite database");
	uint32_t page = be(at + 16, 2);

	page = page == 1 ? 65536 : page;
	if (page < 512 || (page & (page - 1)) || at[20] > page - 480 || be(at + 56, 4) != UTF8)
		return vc_fail(err, VC_EFORMAT, "an SQLite database of a form that is not read: "
			       "pages of %u bytes, text encoding %u", page, be(at + 56, 4));
	*db = (struct vc_sqlite){ at, n, page, page - at[20] };
	return VC_OK;
}

struct walk {
	const struct vc_sqlite *db;
	const char *table;
	uint64_t pages;            /* seen; more than there are: a circle */
	uint8_t *row;              /* of one that lies on several pages */
	const int *field;          /* which fields are wanted */
	size_t n;
	vc_sqlite_row *fn;
	void *arg;
};

static int damaged(const struct walk *w, uint64_t page, struct vc_error *err)
{
	return vc_fail(err, VC_EFORMAT, "the table %s is damaged at page %llu", w->table,
		       (unsigned long long)page);
}

static const uint8_t *page_at(const struct vc_sqlite *db, uint32_t no)
{
	return no && (uint64_t)no * db->page <= db->n ? db->at + (uint64_t)(no - 1) * db->page :
							NULL;
}

/* How long the value of a serial type is in a row. */
static uint64_t width(uint64_t type)
{
	static const uint8_t fixed[] = { 0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0 };

	return type < 12 ? fixed[type] : (type - 12) / 2;
}

static struct vc_sqlite_value value_of(uint64_t type, const uint8_t *p)
{
	struct vc_sqlite_value v = { .kind = VC_SQLITE_INT };

	if (!type)
		v.kind = VC_SQLITE_NULL;
	else if (type == 8 || type == 9)
		v.v = type == 9;
	else if (type <= 6) {
		uint64_t bits = p[0] & 0x80 ? UINT64_MAX : 0;

		for (uint64_t i = 0; i < width(type); i++)
			bits = bits << 8 | p[i];
		memcpy(&v.v, &bits, sizeof(v.v));
	} else if (type >= 13 && type % 2) {
		v = (struct vc_sqlite_value){ VC_SQLITE_TEXT, 0, (const char *)p, width(type) };
	} else {
		v.kind = VC_SQLITE_OTHER;
	}
	return v;
}

/* The wanted fields of a row. False: it is damaged. */
static bool read_row(const struct walk *w, const uint8_t *p, uint64_t n,
		     struct vc_sqlite_value out[VC_SQLITE_COLUMNS])
{
	uint64_t head, type, at;
	const uint8_t *t = varint(p, p + n, &head), *end = p + n;

	memset(out, 0, sizeof(*out) * VC_SQLITE_COLUMNS);
	if (!t || head > n)
		return false;
	at = head;
	for (int i = 0; t < p + head; i++) {
		t = varint(t, p + head, &type);
		if (!t || width(type) > (uint64_t)(end - p) - at)
			return false;
		for (size_t k = 0; k < w->n; k++)
			if (w->field[k] == i)
				out[k] = value_of(type, p + at);
		at += width(type);
	}
	return true;
}

/* The bytes of a row, gathered where it goes on on other pages. NULL: damaged. */
static const uint8_t *whole_row(struct walk *w, const uint8_t *p, const uint8_t *end, uint64_t n)
{
	const struct vc_sqlite *db = w->db;
	uint64_t u = db->usable, here = n, least = (u - 12) * 32 / 255 - 23;

	if (n > u - 35) {
		here = least + (n - least) % (u - 4);
		here = here > u - 35 ? least : here;
	}
	if (here > (uint64_t)(end - p))
		return NULL;
	if (here == n)
		return p;
	if (n > MOST_ROW || here + 4 > (uint64_t)(end - p))
		return NULL;
	memcpy(w->row, p, here);
	for (uint32_t next = be(p + here, 4); here < n;) {
		const uint8_t *more = page_at(db, next);
		uint64_t k = n - here < u - 4 ? n - here : u - 4;

		if (!more)
			return NULL;
		memcpy(w->row + here, more + 4, k);
		here += k;
		next = be(more, 4);
	}
	return w->row;
}

static int leaf(struct walk *w, uint32_t no, const uint8_t *page, uint32_t head, uint32_t cells,
		struct vc_error *err)
{
	const uint8_t *end = page + w->db->usable;
	struct vc_sqlite_value v[VC_SQLITE_COLUMNS];

	for (uint32_t i = 0; i < cells; i++) {
		uint32_t at = be(page + head + 8 + 2 * i, 2);
		uint64_t n = 0, row = 0;
		const uint8_t *p = at < w->db->usable ? varint(page + at, end, &n) : NULL;
		int64_t id;

		p = p ? varint(p, end, &row) : NULL;
		p = p ? whole_row(w, p, end, n) : NULL;
		if (!p || !read_row(w, p, n, v))
			return damaged(w, no, err);
		memcpy(&id, &row, sizeof(id));
		VC_TRY(w->fn(w->arg, id, v, err));
	}
	return VC_OK;
}

static int tree(struct walk *w, uint32_t no, int depth, struct vc_error *err)
{
	const uint8_t *page = page_at(w->db, no);
	uint32_t head = no == 1 ? HEADER : 0;

	if (!page || depth == DEPTH || ++w->pages > w->db->n / w->db->page)
		return damaged(w, no, err);
	uint32_t kind = page[head], cells = be(page + head + 3, 2);
	uint32_t first = head + (kind == INTERIOR ? 12 : 8);

	if ((kind != LEAF && kind != INTERIOR) || first + 2 * cells > w->db->usable)
		return damaged(w, no, err);
	if (kind == LEAF)
		return leaf(w, no, page, head, cells, err);
	for (uint32_t i = 0; i < cells; i++) {
		uint32_t at = be(page + first + 2 * i, 2);

		if (at + 4 > w->db->usable)
			return damaged(w, no, err);
		VC_TRY(tree(w, be(page + at, 4), depth + 1, err));
	}
	return tree(w, be(page + head + 8, 4), depth + 1, err);
}

static int walk(const struct vc_sqlite *db, const char *table, uint32_t root, const int *field,
		size_t n, vc_sqlite_row *fn, void *arg, struct vc_error *err)
{
	struct walk w = { .db = db, .table = table, .row = malloc(MOST_ROW), .field = field, .n = n,
			  .fn = fn, .arg = arg };
	int r = w.row ? tree(&w, root, 0, err) : vc_nomem(err, "a row");

	free(w.row);
	return r;
}

/* ---- the table of tables ---- */

struct wanted {
	const char *table, *const *columns;
	size_t n;
	uint32_t root;
	int field[VC_SQLITE_COLUMNS];
};

/* Past blanks and comments: nsys writes one behind each column. */
static const char *skip(const char *p, const char *end)
{
	while (p < end) {
		if (isspace((unsigned char)*p))
			p++;
		else if (end - p > 1 && p[0] == '-' && p[1] == '-')
			while (p < end && *p != '\n')
				p++;
		else
			break;
	}
	return p;
}

static bool is_word(const char *p, size_t n, const char *word)
{
	return strlen(word) == n && !strncasecmp(p, word, n);
}

/* Words with which what stands between the columns of a table begins. */
static bool is_constraint(const char *p, size_t n)
{
	static const char *const words[] = { "CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK",
					     "FOREIGN" };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (is_word(p, n, words[i]))
			return true;
	return false;
}

/* Which field is which column, from "CREATE TABLE t (a INTEGER NOT NULL, -- words" + "b TEXT)". */
static void read_columns(struct wanted *w, const char *sql, size_t len)
{
	const char *end = sql + len, *p = memchr(sql, '(', len);
	int depth = 1;

	for (int i = 0; p && depth > 0 && i < FIELDS; i++) {
		p = skip(p + 1, end);
		bool quoted = p < end && strchr("\"[`'", *p);
		const char *name = p += quoted;

		while (p < end && (isalnum((unsigned char)*p) || *p == '_'))
			p++;
		if (quoted || !is_constraint(name, (size_t)(p - name)))
			for (size_t k = 0; k < w->n; k++)
				if (is_word(name, (size_t)(p - name), w->columns[k]))
					w->field[k] = i;
		for (; p < end && depth > 0; p++) { /* to the next comma of this depth */
			p = skip(p, end);
			if (p == end || (*p == ',' && depth == 1))
				break;
			depth += (*p == '(') - (*p == ')');
		}
		if (p >= end || depth <= 0)
			break;
	}
}

static int on_schema(void *arg, int64_t row, const struct vc_sqlite_value *v, struct vc_error *err)
{
	struct wanted *w = arg;

	if (v[0].kind == VC_SQLITE_TEXT && is_word(v[0].text, v[0].len, "table") &&
	    v[1].kind == VC_SQLITE_TEXT && is_word(v[1].text, v[1].len, w->table) &&
	    v[2].kind == VC_SQLITE_INT && v[2].v > 0 && v[2].v <= UINT32_MAX &&
	    v[3].kind == VC_SQLITE_TEXT) {
		w->root = (uint32_t)v[2].v;
		read_columns(w, v[3].text, v[3].len);
	}
	return VC_OK;
}

int vc_sqlite_each(const struct vc_sqlite *db, const char *table, const char *const *columns,
		   size_t n, size_t must, vc_sqlite_row *fn, void *arg, struct vc_error *err)
{
	static const int schema[] = { 0, 1, 3, 4 }; /* type, name, rootpage, sql */
	struct wanted w = { .table = table, .columns = columns, .n = n };

	for (size_t i = 0; i < VC_SQLITE_COLUMNS; i++)
		w.field[i] = -1;
	VC_TRY(walk(db, "sqlite_schema", 1, schema, 4, on_schema, &w, err));
	for (size_t i = 0; i < must; i++)
		if (w.field[i] < 0)
			return 0;
	if (!w.root)
		return 0;
	VC_TRY(walk(db, table, w.root, w.field, n, fn, arg, err));
	return 1;
}
