/* SPDX-License-Identifier: Apache-2.0 */
/* training.h - a made-up stream of requests that looks like training, for benches. */
#ifndef VC_TRAINING_H
#define VC_TRAINING_H

#include <stddef.h>
#include <stdint.h>

struct step { uint32_t slot; uint32_t stream; uint64_t size; }; /* size 0: free */

struct program { struct step *s; size_t n, cap; uint32_t slots; uint64_t random; };

uint64_t training_dice(struct program *p, uint64_t sides); /* xorshift64*: the same everywhere */
void training_add(struct program *p, uint32_t slot, uint64_t size);
/* Steps of a network's training: weights stay, each layer's forward keeps an activation and makes
 * temporaries, backward frees activations in reverse, sizes vary a little from step to step. Ends
 * with everything freed. */
void training(struct program *p, uint32_t layers, uint32_t steps);

#endif
