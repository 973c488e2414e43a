/* SPDX-License-Identifier: Apache-2.0 */
/* plan_table.c - see plan_table.h */
#include "common/plan_table.h"

#include "common/hash.h"
#include "common/vec.h"

/* Fields of a row: card, version, nine of a convolution, plans. A graph that is no convolution has
 * "graph/MODE" and its hash in place of the nine. */
enum { FIELDS = 12, GRAPH_FIELDS = 5 };

/* Where the key of that row begins: place + 1 in the map; NULL: there is none. */
static uint64_t *place_of(const struct vc_plan_table *t, const char *key)
{
	uint64_t h = vc_hash_bytes(key, strlen(key));

	for (;; h++) { /* another key may have the same hash */
		uint64_t *at = vc_map_get(&t->at, h);

		if (!at || !strcmp(t->text + *at - 1, key))
			return at;
	}
}

static bool put_text(struct vc_plan_table *t, const char *s)
{
	size_t n = strlen(s) + 1;

	if (!vc_vec_room(t->text, t->cap, t->n + n))
		return false;
	memcpy(t->text + t->n, s, n);
	t->n += n;
	return true;
}

bool vc_plan_table_add(struct vc_plan_table *t, const char *key, const char *plans)
{
	uint64_t h = vc_hash_bytes(key, strlen(key));
	size_t at = t->n;

	if (place_of(t, key))
		return true;
	while (vc_map_get(&t->at, h))
		h++;
	return put_text(t, key) && put_text(t, plans) && vc_map_put(&t->at, h, at + 1);
}

bool vc_plan_table_find(const struct vc_plan_table *t, const char *key, struct vc_cudnn_plans *out)
{
	const uint64_t *at = place_of(t, key);

	return at && vc_cudnn_plans_read(t->text + *at - 1 + strlen(key) + 1, out);
}

void vc_plan_table_fini(struct vc_plan_table *t)
{
	VC_FREE(t->text, t->at.slot);
	*t = (struct vc_plan_table){ .n = 0 };
}

/* ---- reading ---- */

/* "8.6" and "8.6/28" stand for what goes on with more. */
static bool card_fits(const char *wanted, const char *have)
{
	size_t n = strlen(wanted);

	return !strcmp(wanted, "*") ||
	       (!strncmp(wanted, have, n) && (!have[n] || have[n] == '/' || have[n] == '@'));
}

/* "9.1" stands for every 9.1.x */
static bool version_fits(const char *wanted, const char *have)
{
	size_t n = strlen(wanted);

	return !strcmp(wanted, "*") ||
	       (!strncmp(wanted, have, n) && (!have[n] || have[n] == '.'));
}

enum row { ROW_NONE, ROW_WRONG, ROW_READ, ROW_NO_MEMORY };

/* line: cut up. */
static enum row read_row(struct vc_plan_table *t, char *line, const char *card,
			 const char *version)
{
	char *rest, *field[FIELDS + 1], key[VC_PLANS_KEY];
	size_t n = 0, at = 0;

	line[strcspn(line, "#\r\n")] = '\0';
	for (char *f = strtok_r(line, " \t", &rest); f && n <= FIELDS;
	     f = strtok_r(NULL, " \t", &rest)) {
		field[n++] = f;
		if ((n == 1 && !card_fits(f, card)) || (n == 2 && !version_fits(f, version)))
			return ROW_NONE;
	}
	if (!n)
		return ROW_NONE;
	bool graph = n == GRAPH_FIELDS && !strncmp(field[2], "graph", 5);

	/* plans are read when they are asked for: few of many are */
	if ((n != FIELDS && !graph) || *field[n - 1] < '0' || *field[n - 1] > '9')
		return ROW_WRONG;
	for (size_t i = 2; i < n - 1 && at < sizeof(key); i++)
		at += (size_t)snprintf(key + at, sizeof(key) - at, "%s%s", i > 2 ? " " : "",
				       field[i]);
	if (at >= sizeof(key))
		return ROW_WRONG;
	return vc_plan_table_add(t, key, field[n - 1]) ? ROW_READ : ROW_NO_MEMORY;
}

bool vc_plan_table_read(struct vc_plan_table *t, const char *path, const char *card,
			const char *version, size_t *wrong)
{
	char *line = NULL;
	size_t room = 0;
	FILE *f = fopen(path, "r");
	enum row is = ROW_NONE;

	for (size_t number = 1; f && is != ROW_NO_MEMORY; number++) {
		if (getline(&line, &room, f) <= 0)
			break;
		is = read_row(t, line, card, version);
		if (is == ROW_WRONG && wrong && !*wrong)
			*wrong = number;
	}
	free(line);
	if (f)
		fclose(f);
	return is != ROW_NO_MEMORY;
}
