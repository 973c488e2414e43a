/* SPDX-License-Identifier: Apache-2.0 */
/* own_program.h - the program behind a recording on this machine: described when it is recorded,
 * and known again when it shall be run once more. */
#pragma once

#include "common/opt.h"
#include "common/program.h"

/* A folder of ours below the user's cache, made where it is not there. */
int vc_own_folder(const char *name, char *path, size_t n, struct vc_error *err);

/* What that command line runs. params: "batch=8" of --param; {batch} in it, or the argument that
 * has that value behind an option of that name, is where it stands. */
int vc_own_describe(size_t argc, char **argv, const struct vc_list *params,
		    struct vc_program **out, struct vc_error *err);
/* "python train.py --batch {batch}", as a shell would split it. */
int vc_own_parse(const char *line, struct vc_program **out, struct vc_error *err);
/* Find where the value of `name` stands (NaN: any number); its value there, NaN where it is not
 * known. Marks it in p. */
double vc_own_mark(struct vc_program *p, const char *name, double value);

/* The command line with {NAME} filled in, NULL behind it. NULL: no memory. */
char **vc_own_fill(size_t argc, char *const *argv, const struct vc_list *params,
		   struct vc_error *err);
void vc_own_free(char **argv); /* NULL is fine */

/* It is run, or named, by this user on this machine. dry: without a card, or its user has said what
 * to run so, and from now on it may be run so again unasked. */
int vc_own_remember(const struct vc_program *p, bool dry, struct vc_error *err);
bool vc_own_is_known(const struct vc_program *p, bool dry);
/* The first of its files that is not as it was, or NULL. */
const char *vc_own_changed(const struct vc_program *p);
/* The variables that are written down become these; nothing else of the environment is touched,
 * whatever the list says. */
void vc_own_environment(const struct vc_texts *environment);

/* Does `word`, which follows `before`, look like a password or a key? Such are never written. */
bool vc_own_secret(const char *before, const char *word);

int vc_own_write(const struct vc_program *p, const char *path, struct vc_error *err);
