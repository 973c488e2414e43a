/* SPDX-License-Identifier: Apache-2.0 */
/* opt.h - commands and their options as tables: one row parses, prints help, completes in a shell
 * and is checked against the man page. */
#pragma once

#include "common/error.h"
#include "common/io.h"

struct vc_list { const char **at; size_t n; }; /* values of a repeated option, lent from argv */

enum vc_option_type {
	VC_O_FLAG,  /* bool, set to true */
	VC_O_NOT,   /* bool, set to false */
	VC_O_TEXT,  /* const char *, lent from argv; NULL when not given and no fallback */
	VC_O_SIZE,  /* uint64_t bytes; VC_NOT_GIVEN without fallback */
	VC_O_UINT,  /* uint64_t; VC_NOT_GIVEN without fallback */
	VC_O_JOBS,  /* uint64_t threads, at most VC_JOBS_MOST; 0, all cores, without fallback */
	VC_O_REAL,  /* double; NaN without fallback */
	VC_O_COUNT, /* the same, and 7B, 350M */
	VC_O_LIST,  /* struct vc_list: may be repeated */
	VC_O_FILE,  /* as VC_O_TEXT: a file to write, refused at once where that cannot be */
	VC_O_FILES, /* as VC_O_LIST, likewise */
	VC_O_AS,    /* table, or the name of a switch of the command, which it sets */
};
#define VC_NOT_GIVEN UINT64_MAX
#define VC_JOBS_MOST 1024

struct vc_option {
	char letter;          /* 0: none */
	const char *name;     /* without dashes */
	enum vc_option_type type;
	size_t offset;        /* of the field in the command's config */
	const char *arg;      /* "FILE"; NULL for flags */
	const char *help;     /* one line, no full stop; NULL: an old spelling, not shown */
	const char *fallback; /* as the user would have typed it, or NULL */
};
#define VC_OPTION_END { 0, NULL, VC_O_FLAG, 0, NULL, NULL, NULL }

enum vc_command_flags {
	VC_CMD_PASSTHROUGH =
		1, /* options end at the first operand: it is a program and its arguments */
	VC_CMD_HIDDEN = 2, /* not in the list of commands */
};

struct vc_console { /* what the front door hands to a command; every command takes -q -v --color
		     */
	bool quiet, verbose, color;
	const struct vc_command *const *commands; /* all there are, NULL-terminated */
	char next[700];         /* (opt) the command to type next; not said with -q or --json */
	struct vc_error err;    /* filled when the command returns < 0 */
};

#define VC_OPTIONS(...) (const struct vc_option *const[]){ __VA_ARGS__, NULL }

struct vc_command {
	const char *name;
	const char *operands;   /* "TRACE..." for the usage line */
	const char *summary;    /* one line */
	const char *details;    /* paragraphs for help, or NULL */
	const struct vc_option *const *options; /* VC_OPTIONS(tables, shared ones first) */
	size_t config_size;
	unsigned flags;
	/* Exit code, or < 0: failed, con->err says why (VC_EUSAGE becomes exit code 2, others 1).
	 */
	int (*run)(const void *config, size_t argc, char **argv, struct vc_console *con);
};

/* con->next: "vramcast BEFORE FILE AFTER", with the file as a shell needs it. Nothing where that is
 * standard input or output. */
void vc_next(struct vc_console *con, const char *before, const char *file, const char *after);

/* The command of that name among con's, or NULL. */
const struct vc_command *vc_command_find(const struct vc_console *con, const char *name);

/* "--color", "--color=WHEN" or "--color WHEN" (always, never, auto: as without it): how many words
 * that is, 0: `arg` is another option, or WHEN is none of these. */
int vc_opt_color(const char *arg, const char *next, bool *color);

/* Parse argv[0..argc) into cfg (config_size bytes, defaults included). Operands are moved to the
 * front of argv, their number goes to *operands. "--help" gives VC_OPT_HELP. The caller frees the
 * lists with vc_opt_fini. */
#define VC_OPT_HELP 1
int  vc_opt_parse(const struct vc_command *c, void *cfg, size_t argc, char **argv, size_t *operands,
		  struct vc_console *con);
void vc_opt_fini(const struct vc_command *c, void *cfg);
void vc_opt_help(const struct vc_command *c, struct vc_output *out);
/* A row of a help page: `left`, and from `column` on `right`, broken between words at 100 columns.
 */
void vc_opt_row(struct vc_output *out, const char *left, size_t column, const char *right);

/* A word as a POSIX shell has to be given it: as it is, or in single quotes. Cut short where n
 * bytes do not suffice. Returns buf. */
char *vc_opt_word(const char *word, char *buf, size_t n);
