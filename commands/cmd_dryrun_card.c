/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dryrun_card.c - dryrun --questions: what a card could be asked; --card: what it answered, a
 * table of workspaces (docs/reference/null-gpu.md)
 * before which comments say what the card is. `vramcast probe --questions` writes one:
 *
 *   # vramcast card 1
 *   # name NVIDIA H100 80GB HBM3
 *   # total 84949663744
 *   # context 554696704
 *   # addresses down
 *   9.0/132 9.19.0 forward f32 nchw 8x3x224x224 ...
 *
 * total: bytes, as cudaMemGetInfo says. context: bytes of a process outside the allocator.
 * addresses: where fresh segments lie. The last three may be missing. */
#define _GNU_SOURCE /* realpath */
#include <errno.h>

#include "commands/cmd_dryrun_run.h"
#include "commands/put.h"
#include "common/param.h"

enum { FIELDS = 12, GRAPH_FIELDS = 5 }; /* of a row: see common/plan_table.c */

struct answers {
	const struct vc_card *card;
	uint64_t total, context;  /* 0: not said */
	const char *addresses;    /* "up" or "down"; NULL: not said */
};
static int wrong(const char *path, size_t line, const char *what, struct vc_error *err)
{
	return vc_fail(err, VC_EFORMAT, "%s:%zu: %s; 'vramcast probe --questions' writes such a "
		       "file", path, line, what);
}

/* "KEY VALUE" behind "# ". Comments that say something else are let be. */
static int read_comment(struct answers *f, const char *path, size_t number, const char *text,
			struct vc_error *err)
{
	struct vc_error ignored;
	const char *value = strchr(text, ' ');
	size_t n = value ? (size_t)(value++ - text) : 0;
	uint64_t *bytes = n == 5 && !strncmp(text, "total", n) ? &f->total :
			  n == 7 && !strncmp(text, "context", n) ? &f->context : NULL;

	if (n == 4 && !strncmp(text, "name", n)) {
		f->card = vc_card_by_name(value);
		return f->card ? VC_OK :
		       vc_fail(err, VC_ENOSUP, "%s is of a %s, which is not among the cards that "
			       "vramcast knows ('vramcast gpus')", path, value);
	}
	if (n == 9 && !strncmp(text, "addresses", n)) {
		f->addresses = !strcmp(value, "up") ? "up" : !strcmp(value, "down") ? "down" : NULL;
		return f->addresses ? VC_OK : wrong(path, number, "addresses lie up or down", err);
	}
	if (bytes && (vc_parse_uint(value, bytes, &ignored) < 0 || !*bytes))
		return wrong(path, number, "this is no number of bytes", err);
	return VC_OK;
}

static int read_row(struct answers *f, const char *path, size_t number, char *text,
		    struct vc_error *err)
{
	char card[32], *rest;
	size_t n = 0, length;

	if (!f->card)
		return wrong(path, number, "no line before it says '# name' of the card", err);
	snprintf(card, sizeof(card), "%d.%d/%u", f->card->cc_major, f->card->cc_minor,
		 f->card->sms);
	length = strlen(card);
	for (char *w = strtok_r(text, " \t", &rest); w; w = strtok_r(NULL, " \t", &rest))
		if (!n++ && (strncmp(w, card, length) || (w[length] && w[length] != '@')))
			return wrong(path, number, "this row is of another card", err);
	if (n != FIELDS && n != GRAPH_FIELDS)
		return wrong(path, number, "this is no row of a table of workspaces", err);
	return VC_OK;
}

static int read_line(struct answers *f, const char *path, size_t number, char *text,
		     struct vc_error *err)
{
	text[strcspn(text, "\r\n")] = '\0';
	if (number == 1)
		return !strcmp(text, "# vramcast card 1") ? VC_OK :
		       wrong(path, 1, "the first line is not '# vramcast card 1'", err);
	if (!strncmp(text, "# ", 2))
		return read_comment(f, path, number, text + 2, err);
	text[strcspn(text, "#")] = '\0';
	return text[strspn(text, " \t")] ? read_row(f, path, number, text, err) : VC_OK;
}

static int read_answers(const char *path, struct answers *out, struct vc_error *err)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t room = 0, number = 0;
	int r = VC_OK;

	*out = (struct answers){ 0 };
	if (!f)
		return vc_fail(err, VC_EIO, "cannot open %s: %s", path, strerror(errno));
	while (r == VC_OK && getline(&line, &room, f) > 0)
		r = read_line(out, path, ++number, line, err);
	if (r == VC_OK && !out->card)
		r = wrong(path, number, "no line says '# name' of the card", err);
	free(line);
	fclose(f);
	return r;
}

/* ---- the options ---- */

/* Whatever the user does not say otherwise is as that card answered. */
static int use_card(struct vc_dryrun_config *c, struct vc_error *err)
{
	struct answers a;
	const struct vc_card *asked = NULL;

	VC_TRY(read_answers(c->card, &a, err));
	if (c->gpus.n > 1)
		return vc_fail(err, VC_EUSAGE, "--card is of one card, and -g names several");
	if (c->gpus.n)
		VC_TRY(vc_card_find(c->gpus.at[0], &asked, err));
	if (asked && asked != a.card)
		return vc_fail(err, VC_EUSAGE, "--card %s is of the %s, and -g names the %s: leave "
			       "one of the two out", c->card, a.card->title, asked->title);
	if (!c->gpus.n) {
		c->of_file = a.card->name;
		c->gpus = (struct vc_list){ &c->of_file, 1 };
	}
	if (c->capacity == VC_NOT_GIVEN && a.total)
		c->capacity = a.total;
	if (c->context == VC_NOT_GIVEN && a.context)
		c->context = a.context;
	if (!c->addresses)
		c->addresses = a.addresses;
	if (!realpath(c->card, c->card_path))
		return vc_fail(err, VC_EIO, "cannot open %s: %s", c->card, strerror(errno));
	c->card = c->card_path;
	return vc_put("VRAMCAST_NULL_WORKSPACES", c->card, err);
}

/* Each process of the program appends to the file, wherever it stands then. */
static int ask_questions(const char *file, struct vc_error *err)
{
	char path[PATH_MAX];
	FILE *f = fopen(file, "w");

	if (!f || fputs("# vramcast questions 1\n", f) < 0 || fclose(f) || !realpath(file, path))
		return vc_fail(err, VC_EIO, "cannot write %s: %s", file, strerror(errno));
	return vc_put("VRAMCAST_NULL_WORKSPACE_LOG", path, err);
}

int vc_dryrun_by_card(struct vc_dryrun_config *c, struct vc_error *err)
{
	if (c->card)
		VC_TRY(use_card(c, err));
	return c->questions ? ask_questions(c->questions, err) : VC_OK;
}
