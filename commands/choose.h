/* SPDX-License-Identifier: Apache-2.0 */
/* choose.h - `vramcast X`: which command X is for, by what X is. */
#pragma once

#include "common/opt.h"

struct vc_choice {
	char *word[64];     /* the command and its arguments; lent, or in text */
	size_t n;
	char why[400];      /* "run.vct is a recording" */
	char text[1200];    /* a path that was found */
	char card[64];
	char *found[48];    /* of a folder; owned */
};

/* What a command line that names no command means; `gpu`: a card named before X, or NULL. VC_EUSAGE
 * with a sentence where it may mean several things or nothing. Standard input can be read again. */
int vc_choose(size_t argc, char **argv, const char *gpu, const char *const *commands, size_t n,
	      struct vc_choice *c, struct vc_error *err);

/* The config.json that the word means: a file, a folder with one, or a model's name in the hub's
 * cache. false: none. */
bool vc_model_file(const char *word, char *path, size_t n);

void vc_choice_fini(struct vc_choice *c);

/* The card of this machine as the table knows it, by NVIDIA's library; NULL: there is none. */
const char *vc_card_here(char *buf, size_t n);

/* How `vramcast help` and the man page tell it. */
extern const char vc_choose_rules[];

/* Of a command line that begins with a script which the system cannot start by itself: the same
 * with python3 before it (free() it, not its words), and *n is one more. NULL: another begins. */
char **vc_script_line(size_t *n, char **argv);
