/* SPDX-License-Identifier: Apache-2.0 */
/* layers.h - the layers of a forward pass: which stretches of it are calls of one and the same
 * module class. */
#pragma once

#include "simulator/anatomy/anatomy.h"

struct vc_layer {
	size_t from, to; /* blocks [from, to) of the anatomy, in order, disjoint */
	uint32_t frame;  /* of meta, where its first block was asked for, in its function; 0: no
			    call sites */
	uint32_t low, high; /* lines of its function that asked for something */
	uint8_t function, kind; /* layers of one function; of one class: 0 and up */
};

struct vc_layers {
	struct vc_layer *at;
	size_t n;                   /* 0: none found */
	size_t model_from, model_to; /* blocks of the whole model's forward pass, without the loss
					around it */
	bool named;                 /* by call sites; false: by sizes that repeat */
};

/* The layers of the forward pass `span` of the anatomy. Call sites say it where the recording has
 * them: the function that is called again and again and in which most is allocated. Else what
 * repeats. Errors: VC_ENOMEM. To be released with vc_layers_fini. */
int vc_layers_find(struct vc_layers *l, const struct vc_anatomy *a, const struct vc_event *ev,
		   const struct vc_meta *m, size_t span, struct vc_error *err);
void vc_layers_fini(struct vc_layers *l);
/* The same for a trace and its anatomy, found out once where the trace keeps it; *l is a copy. */
int vc_layers_of(struct vc_layers *l, const struct vc_trace *t, uint16_t device, size_t span,
		 struct vc_error *err);

/* Where there are several kinds and some of them hand on the same from layer to layer (the blocks
 * of a transformer; not the convolutions in front of it), only those stay: what libraries wrap or
 * checkpoint. */
void vc_layers_stacks(struct vc_layers *l, const struct vc_anatomy *a, size_t span);

/* The block of a layer that its backward pass gives back first; SIZE_MAX: nothing is kept. */
size_t vc_layers_entered(const struct vc_layer *y, const struct vc_anatomy *a, size_t span);

/* The block of a layer that is what it hands on: of those kept for the backward pass the one
 * given back first, by the layer behind it. SIZE_MAX: nothing is kept, or its result is not (a
 * mean over tokens needs no input). */
size_t vc_layers_output(const struct vc_layer *y, const struct vc_anatomy *a, size_t span);

/* The block that a layer hands on, whether or not the backward pass needs it: the last one that is
 * there when the layer is over. SIZE_MAX: none. */
size_t vc_layers_result(const struct vc_layer *y, const struct vc_anatomy *a, size_t span);

/* Is block b kept by forward pass `span` for the backward pass behind it? */
bool vc_layers_kept(const struct vc_anatomy *a, const struct vc_block_life *b, size_t span);
