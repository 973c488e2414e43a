/* SPDX-License-Identifier: Apache-2.0 */
/* programs.h - whole programs of random kinds, as what they ask of the allocator from their first
 * request to the last. The same seed gives the same program on every machine. */
#ifndef VC_PROGRAMS_H
#define VC_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers by chance: Steele, Lea and Flood's splitmix64. */
struct dice { uint64_t state; };
uint64_t dice_next(struct dice *d);
uint64_t dice_below(struct dice *d, uint64_t sides);               /* 0 .. sides - 1 */
uint64_t dice_in(struct dice *d, uint64_t low, uint64_t high);     /* both may come */
uint64_t dice_log(struct dice *d, uint64_t low, uint64_t high);    /* small as often as large */
bool     dice_percent(struct dice *d, unsigned percent);

enum family { FAMILY_TRAIN, FAMILY_INFER, FAMILY_WALK, FAMILY_PHASES, FAMILIES };
extern const char *const family_name[FAMILIES];

/* m: `id` of `size` bytes on `stream`; f: `id` goes; r: `stream` uses `id`, too; e: empty_cache;
 * k: a step begins (no operation of the allocator). `site`: which line of the program asks. */
struct program_op { char kind; uint8_t stream; uint16_t site; uint32_t id; uint64_t size; };

struct program {
	struct dice dice;
	struct program_op *op;
	size_t ops, op_cap;
	uint64_t *size; /* by id; 0: not alive */
	size_t ids, id_cap; /* ids are 1 .. ids */
	uint64_t live, peak;
	uint16_t site;
};

void program_make(struct program *p, enum family f, uint64_t seed);
void program_free(struct program *p);

/* For the families. */
#define MIB (1ull << 20)
#define GIB (1ull << 30)
struct ids { uint32_t *at; size_t n, cap; };
void     program_do(struct program *p, char kind, uint32_t id, uint64_t size, unsigned stream);
uint32_t program_alloc(struct program *p, uint64_t size, unsigned stream);
void     program_drop(struct program *p, uint32_t id); /* 0 is fine */
void     ids_push(struct ids *v, uint32_t id);
void     ids_drop(struct program *p, struct ids *v);   /* all of them, the newest first */
void     ids_free(struct ids *v);
void     program_train(struct program *p, bool phases);
void     program_infer(struct program *p);
void     program_walk(struct program *p);

#endif
