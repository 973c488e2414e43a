/* SPDX-License-Identifier: Apache-2.0 */
/* elf.h - what a shared object wants and gives: sonames, version nodes, symbols. */
#pragma once

#include "common/error.h"

struct vc_elf; /* a file mapped into memory */

struct vc_elf *vc_elf_open(const char *path, struct vc_error *err);
void vc_elf_close(struct vc_elf *e); /* NULL is fine */

/* The i-th soname it needs, NULL past the last. Lent until close. */
const char *vc_elf_needed(const struct vc_elf *e, size_t i);

struct vc_elf_symbol {
	const char *name;
	bool defined;
	const char
		*library; /* soname the version of a wanted symbol belongs to, NULL = none said */
	const char *version; /* its version node, NULL = none */
};
/* The i-th dynamic symbol; false past the last. Names are lent until close. */
bool vc_elf_symbol(const struct vc_elf *e, size_t i, struct vc_elf_symbol *out);
/* Whether it defines `name`; a linear search. */
bool vc_elf_defines(const struct vc_elf *e, const char *name);
