/* SPDX-License-Identifier: Apache-2.0 */
/* theme.h - colours, patterns and text styles of every picture. */
#pragma once

#include "visualize/metric.h"
#include "visualize/svg.h"

/* auto: light, and dark where the viewer prefers dark (a browser does; librsvg stays light). */
enum vc_theme { VC_THEME_AUTO, VC_THEME_LIGHT, VC_THEME_DARK, VC_THEME_PRINT };

/* What memory is used for, bottom layer first; one colour and one pattern each, in all pictures.
 * Start: there at the first event, nobody saw what made it. Kept: made in every step and never
 * freed. */
enum vc_slot {
	VC_SLOT_START, VC_SLOT_WEIGHTS, VC_SLOT_OPTIMIZER, VC_SLOT_GRADIENTS, VC_SLOT_ACTIVATIONS,
	VC_SLOT_TEMPORARIES, VC_SLOT_WORKSPACES, VC_SLOT_KEPT, VC_SLOT_OTHER, VC_SLOTS
};

const char *vc_theme_slot(enum vc_slot slot);         /* the CSS class: the plain colour */
const char *vc_theme_on(enum vc_slot slot);           /* of text that stands on it */
const char *vc_theme_pale(enum vc_slot slot);         /* a pale fill with an outline */
const char *vc_theme_area(enum vc_slot slot);         /* the same with the slot's pattern */

/* <style> and <defs> with literal values: librsvg 2.54 knows no CSS variables. */
void vc_theme_write(struct vc_svg *s, enum vc_theme theme);
