/* SPDX-License-Identifier: Apache-2.0 */
/* raster.h - cells of one colour each, written as one path per colour: the number of blocks does
 * not matter, only the number of cells. */
#pragma once

#include "visualize/svg.h"
#include "visualize/theme.h"

/* A cell's value: 0 nothing, 1 + enum vc_slot, or free. */
enum { VC_CELL_NONE = 0, VC_CELL_FREE = VC_SLOTS + 1, VC_CELLS };

struct vc_raster { uint8_t *cell; int cols, rows; };

int  vc_raster_init(struct vc_raster *g, int cols, int rows, struct vc_error *err);
void vc_raster_fini(struct vc_raster *g);
/* Fill cells of row `row` from `weight` (cols entries of VC_CELLS byte counts): the heaviest
 * wins, and a cell is free when less than half of it is live. */
void vc_raster_weigh(struct vc_raster *g, int row, uint64_t (*weight)[VC_CELLS]);
/* Halve the columns: of two neighbours the first that is live stays, else one that is free. */
void vc_raster_halve(struct vc_raster *g);
size_t vc_raster_runs(const struct vc_raster *g); /* horizontal runs that are not empty */
/* Row 0 at the top; `gap` tenths of a pixel between rows. */
void vc_raster_paint(const struct vc_raster *g, struct vc_svg *s, struct vc_box box, int gap);
