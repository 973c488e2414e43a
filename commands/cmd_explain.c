/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_explain.c - vramcast explain: what a pasted out-of-memory message means and what to try. */

#include "common/emit.h"
#include "common/io.h"
#include "common/opt.h"
#include "simulator/advise/explain.h"
#include "simulator/replay/cards.h"

enum { LONGEST = 16 << 20 }; /* of a pasted log, bytes */

struct config { bool json; };

static const struct vc_option explain_options[] = {
	{ 0, "json", VC_O_FLAG, offsetof(struct config, json), NULL,
	  "one JSON document (vramcast.explain/1)", NULL },
	VC_OPTION_END
};

static const struct { const char *key, *label; } name_of[VC_FIGURES] = {
	[VC_FIG_REQUEST] = { "request", "asked for" },
	[VC_FIG_CAPACITY] = { "capacity", "device has" },
	[VC_FIG_FREE] = { "free", "free on the device" },
	[VC_FIG_ALLOCATED] = { "allocated", "live tensors" },
	[VC_FIG_RESERVED] = { "reserved", "held by PyTorch" },
	[VC_FIG_UNALLOCATED] = { "unallocated", "held, not in use" },
	[VC_FIG_PROCESS] = { "process", "this process in all" },
	[VC_FIG_ALLOWED] = { "allowed", "limit of the program" },
	[VC_FIG_PRIVATE] = { "private_pools", "in private pools" },
	[VC_FIG_BESIDE] = { "beside", "beside PyTorch's" },
	[VC_FIG_PROGRAM] = { "program", "compiled program in all" },
};

/* People see the words of the message, programs the bytes and how far they may be off. */
static void emit_figure(struct vc_emit *e, const char *key, const char *label,
			const struct vc_figure *f)
{
	vc_emit_text(e, NULL, f->known ? label : NULL, f->text);
	if (!f->known) {
		vc_emit_null(e, key, NULL);
		return;
	}
	vc_emit_object(e, key, NULL);
	vc_emit_uint(e, "bytes", NULL, f->value);
	vc_emit_uint(e, "plus_minus", NULL, f->slack);
	vc_emit_text(e, "text", NULL, f->text);
	vc_emit_end(e);
}

static void emit_who(struct vc_emit *e, const struct vc_oom_text *m)
{
	char line[128];
	bool one = m->first && m->last && !strcmp(m->first, m->last);

	snprintf(
		line, sizeof(line), "%s %s%s%s%s", m->format->framework, m->first ? m->first : "",
		one                 ? "" :
		m->first && m->last ? " to " :
		m->first            ? " or later" :
		m->last             ? "up to " :
				      "",
		one || !m->last ? "" : m->last, m->complete ? "" : " (the message is not whole)");
	vc_emit_text(e, "format", NULL, m->format->tag);
	vc_emit_text(e, "about", NULL, m->format->about);
	vc_emit_text(e, "framework", NULL, m->format->framework);
	vc_emit_text(e, "first_version", NULL, m->first);
	vc_emit_text(e, "last_version", NULL, m->last);
	vc_emit_bool(e, "complete", NULL, m->complete);
	vc_emit_uint(e, "messages", NULL, m->messages);
	vc_emit_text(e, NULL, "printed by", line);
	vc_emit_text(e, NULL, "recognised by", m->format->about);
	vc_emit_uint(vc_emit_known(e, m->has_device), "device", m->has_device ? "GPU" : NULL,
		     m->device);
}

static void emit_figures(struct vc_emit *e, const struct vc_oom_text *m,
			 const struct vc_diagnosis *d)
{
	vc_emit_object(e, "figures", "");
	for (int i = 0; i < VC_FIGURES; i++)
		emit_figure(e, name_of[i].key, name_of[i].label, &m->figure[i]);
	emit_figure(e, "stranded", m->figure[VC_FIG_UNALLOCATED].known ? NULL : "held, not in use",
		    &d->stranded);
	emit_figure(e, "outside", "neither free nor PyTorch's", &d->outside);
	vc_emit_end(e);
	vc_emit_array(e, "processes", NULL);
	for (size_t i = 0; i < m->processes; i++) {
		vc_emit_object(e, NULL, NULL);
		vc_emit_uint(e, "pid", NULL, m->process[i].pid);
		vc_emit_uint(e, "bytes", NULL, m->process[i].bytes.value);
		vc_emit_uint(e, "plus_minus", NULL, m->process[i].bytes.slack);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	if (d->has_missing) {
		vc_emit_object(e, "missing", NULL);
		vc_emit_uint(e, "at_least", NULL, d->found.lacks_low);
		vc_emit_uint(e, "at_most", NULL, d->found.lacks_high);
		vc_emit_end(e);
	} else {
		vc_emit_null(e, "missing", NULL);
	}
}

static void emit_words(struct vc_emit *e, const struct vc_diagnosis *d, bool json)
{
	vc_emit_text(e, "cause", NULL, vc_cause_name(d->found.cause));
	vc_emit_array(e, "meaning", NULL);
	for (size_t i = 0; json && i < d->meanings; i++)
		vc_emit_text(e, NULL, NULL, d->meaning[i]);
	vc_emit_end(e);
	vc_emit_array(e, "try", NULL);
	for (size_t i = 0; json && i < d->advices; i++) {
		vc_emit_object(e, NULL, NULL);
		vc_emit_text(e, "setting", NULL,
			     d->advice[i].setting[0] ? d->advice[i].setting : NULL);
		vc_emit_text(e, "text", NULL, d->advice[i].text);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	vc_emit_end(e);
	vc_emit_line(e, "\nWhat it means");
	for (size_t i = 0; i < d->meanings; i++)
		vc_emit_line(e, "  %s", d->meaning[i]);
	vc_emit_line(e, "\nWhat to try");
	for (size_t i = 0; i < d->advices; i++)
		vc_emit_line(e, "  * %s%s%s", d->advice[i].setting,
			     d->advice[i].setting[0] ? "\n    " : "", d->advice[i].text);
}

static int emit_all(const struct vc_oom_text *m, bool json, struct vc_error *err)
{
	struct vc_emit *e = vc_emit_stdout(json, err);
	struct vc_diagnosis d;

	if (!e)
		return err->status;
	vc_explain_diagnose(m, &d);
	vc_emit_object(e, NULL, "");
	vc_emit_text(e, "schema", NULL, "vramcast.explain/1");
	emit_who(e, m);
	emit_figures(e, m, &d);
	emit_words(e, &d, json);
	return vc_emit_done(e, err);
}

static int read_all(const char *path, char **text, size_t *n, struct vc_error *err)
{
	struct vc_input *in = vc_input_open(path, err);
	const uint8_t *p = in ? vc_input_peek(in, LONGEST, n, err) : NULL;

	*text = p ? malloc(*n + 1) : NULL;
	if (*text) {
		memcpy(*text, p, *n);
		(*text)[*n] = '\0';
	}
	vc_input_close(in);
	if (*text)
		return VC_OK;
	return p ? vc_nomem(err, "the message") : err->status ? (int)err->status : VC_EIO;
}

static uint64_t apart(const struct vc_card *c, uint64_t bytes)
{
	return c->total > bytes ? c->total - bytes : bytes - c->total;
}

/* The first of the table with so much memory. */
static const struct vc_card *with_capacity(const struct vc_figure *f, enum vc_device_kind kind,
					   const struct vc_card *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (table[i].kind == kind && apart(&table[i], f->value) <= f->slack)
			return &table[i];
	return NULL;
}

/* The one whose memory is nearest, and at most so far off: drivers differ by three hundredths. Of
 * 24 GB the commonest. */
static const struct vc_card *nearest(uint64_t bytes, enum vc_device_kind kind, uint64_t most)
{
	const struct vc_card *found = vc_card_by_name("rtx4090");

	if (found && kind == found->kind && apart(found, bytes) <= bytes / 100)
		return found;
	found = NULL;
	for (size_t i = 0; i < vc_cards_n; i++) {
		const struct vc_card *c = &vc_cards[i];

		if (c->kind == kind && apart(c, bytes) <= most &&
		    (!found || apart(c, bytes) < apart(found, bytes)))
			found = c;
	}
	return found;
}

/* A dry run on the card of the message, which prints its memory in hundredths of a GiB; on one of
 * those that are never suggested only where no other is near. */
static void say_next(const struct vc_oom_text *m, struct vc_console *con)
{
	const struct vc_figure *f = &m->figure[VC_FIG_CAPACITY];
	const char *program = m->format->program;
	enum vc_device_kind kind = m->format->kind;
	const struct vc_card *c = NULL;
	char line[80];

	if (f->known)
		c = with_capacity(f, kind, vc_cards, vc_cards_n);
	if (f->known && !c)
		c = nearest(f->value, kind, f->value / 100);
	if (f->known && !c)
		c = with_capacity(f, kind, vc_card_parts, vc_card_parts_n);
	if (f->known && !c)
		c = nearest(f->value, kind, f->value / 33);
	snprintf(line, sizeof(line), "dryrun -g %s --%s", c ? c->name : "rtx4090",
		 program ? "" : " python");
	if (program && *program)
		snprintf(con->next, sizeof(con->next), "vramcast %s %s", line, program);
	else if (!program)
		vc_next(con, line, "train.py", "");
}

static int explain_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *c = config;
	struct vc_oom_text m;
	char *text;
	size_t n;
	int r;

	if (argc > 1)
		return vc_fail(&con->err, VC_EUSAGE,
			       "one file at a time (or the message on standard input)");
	r = read_all(argc ? argv[0] : "-", &text, &n, &con->err);
	if (r == VC_OK) {
		r = vc_explain_read(text, n, &m, &con->err);
		free(text);
	}
	VC_TRY(r);
	say_next(&m, con);
	return emit_all(&m, c->json, &con->err);
}

const struct vc_command vc_command_explain = {
	.name = "explain", .operands = "[FILE]",
	.summary = "what a pasted out-of-memory message means and what to try",
	.details =
		"Reads the message (or a whole log) from FILE or standard input. Knows what "
		"PyTorch 0.1 to 2.15\n"
		"(ROCm, XPU, MPS too), JAX, libraries, servers and the host say, and tells "
		"others apart. Figures that are\n"
		"damaged are left out, not guessed; of several messages the last whole one is "
		"explained.\n\n"
		"  vramcast explain < error.txt\n"
		"  python train.py 2>&1 | tail -n 20 | vramcast explain --json",
	.options = VC_OPTIONS(explain_options),
	.config_size = sizeof(struct config), .run = explain_run,
};
