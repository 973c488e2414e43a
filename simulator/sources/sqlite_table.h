/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_table.h - reads whole tables of an SQLite database that lies in memory, as its file format
 * describes them (https://www.sqlite.org/fileformat2.html): no queries, no indices, no journal. */
#pragma once

#include "common/error.h"

#define VC_SQLITE_MAGIC "SQLite format 3" /* and the zero behind it: 16 bytes */
enum { VC_SQLITE_COLUMNS = 16 }; /* asked for at once */

struct vc_sqlite {
	const uint8_t *at; size_t n; /* lent */
	uint32_t page, usable;       /* bytes of a page, and of its content */
};

enum vc_sqlite_kind { VC_SQLITE_NULL, VC_SQLITE_INT, VC_SQLITE_TEXT, VC_SQLITE_OTHER };

struct vc_sqlite_value {
	enum vc_sqlite_kind kind;
	int64_t v;
	const char *text; size_t len; /* valid during the call */
};

/* A row: the values of the columns that were asked for, in that order. The key of a table that is
 * an INTEGER PRIMARY KEY is NULL in the file; `row` has it. */
typedef int vc_sqlite_row(void *arg, int64_t row, const struct vc_sqlite_value *v,
			  struct vc_error *err);

/* Look at the header. */
int vc_sqlite_open(struct vc_sqlite *db, const uint8_t *at, size_t n, struct vc_error *err);

/* Call fn for each row of the table, in the order of the file. 1: done, 0: there is no such table,
 * or it lacks the first `must` columns (others are NULL then); < 0. */
int vc_sqlite_each(const struct vc_sqlite *db, const char *table, const char *const *columns,
		   size_t n, size_t must, vc_sqlite_row *fn, void *arg, struct vc_error *err);
