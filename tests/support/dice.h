/* SPDX-License-Identifier: Apache-2.0 */
/* dice.h - random scripts for allocators: the same everywhere. */
#pragma once

#include <stdint.h>

_Noreturn void play_die(const char *what, const char *which);
void play_seed(uint64_t seed);
uint64_t play_dice(uint64_t sides); /* xorshift64* */
uint64_t play_pick(const uint64_t *of, uint64_t n);
