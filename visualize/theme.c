/* SPDX-License-Identifier: Apache-2.0 */
/* theme.c - colours, patterns and text styles of every picture. */
#include "visualize/theme.h"


/* The slots use the palette of Okabe and Ito, with "workspaces" and "other" moved to dark tones:
 * the smallest CIE76 distance of all pairs under simulated protanopia, deuteranopia and
 * tritanopia is then 15. The neutral tones are those of GitHub's two themes, where most pictures
 * will be seen. */
struct color { const char *klass, *property, *light, *dark, *print; };
static const struct color colors[] = {
	{ ".bg", "fill", "#FFFFFF", "#0D1117", "#FFFFFF" },
	{ ".card", "fill", "#F4F6F9", "#161B22", "#F2F2F2" },
	{ ".fg", "fill", "#1B1F24", "#E8EDF2", "#000000" },
	{ ".mut", "fill", "#59636E", "#9AA4AF", "#333333" },
	{ ".halo", "stroke", "#FFFFFF", "#0D1117", "#FFFFFF" },
	{ ".gr", "stroke", "#D9DEE4", "#272E37", "#CCCCCC" },
	{ ".ax", "stroke", "#818B98", "#656C76", "#555555" },
	{ ".it", "stroke", "#818B98", "#7D8590", "#555555" },
	{ ".rim", "stroke", "#D9DEE4", "#30363D", "#999999" },
	{ ".res", "stroke", "#1B1F24", "#F0F3F6", "#000000" },
	{ ".low", "stroke", "#1B1F24", "#F0F3F6", "#000000" },
	{ ".sep", "stroke", "#FFFFFF", "#0D1117", "#FFFFFF" },
	{ ".dot", "fill", "#1B1F24", "#F0F3F6", "#000000" },
	{ ".ht", "stroke", "#A9B3BE", "#4D5763", "#999999" },
	{ ".capt", "fill", "#9A4D00", "#F0883E", "#000000" },
	{ ".capl", "stroke", "#B35900", "#F0883E", "#000000" },
	{ ".bad", "fill", "#C4320A", "#FF7B72", "#000000" },
	{ ".bads", "stroke", "#C4320A", "#FF7B72", "#000000" },
	{ ".badbg", "fill", "#FCE9E4", "#3A1D1D", "#EEEEEE" },
	{ ".ok", "fill", "#116329", "#56D364", "#000000" },
	{ ".oks", "stroke", "#1A7F37", "#56D364", "#000000" },
	{ ".okbg", "fill", "#DDF4E4", "#12301C", "#EEEEEE" },
	{ ".warn", "fill", "#8A4B00", "#F2B35B", "#000000" },
	{ ".warns", "stroke", "#B35900", "#F0883E", "#000000" },
	{ ".warnbg", "fill", "#FDF0DC", "#35260F", "#EEEEEE" },
	{ ".open", "fill", "#0A57B5", "#79B8FF", "#000000" },
	{ ".opens", "stroke", "#0A69DA", "#58A6FF", "#000000" },
	{ ".openbg", "fill", "#DFEDFC", "#12263E", "#EEEEEE" },
	{ ".band", "fill", "#DDF4E4", "#12301C", "#E6E6E6" },
	{ ".segb", "stroke", "#1B1F24", "#E8EDF2", "#000000" },
	{ ".segk", "stroke", "#1B1F24", "#E8EDF2", "#000000" },
	{ ".segbox", "stroke", "#818B98", "#656C76", "#555555" },
	{ ".edge", "stroke", "#8B97A3", "#6B7683", "#555555" },
	{ ".tip", "fill", "#8B97A3", "#6B7683", "#555555" },
	{ ".lane", "fill", "#CF5B3A", "#D4665A", "#666666" },
	{ ".busy", "fill", "#3D8FC4", "#3B82B8", "#888888" },
	{ ".base", "fill", "#8C959F", "#484F58", "#BBBBBB" },
	{ ".onc", "fill", "#10141A", "#0D1117", "#000000" },
	{ ".cw", "fill", "#0072B2", "#3D9BE0", "#595959" },
	{ ".cs", "fill", "#009E73", "#2FBF93", "#8C8C8C" },
	{ ".cg", "fill", "#E69F00", "#F0B429", "#D9D9D9" },
	{ ".ca", "fill", "#CC79A7", "#D98BB8", "#B3B3B3" },
	{ ".ct", "fill", "#56B4E9", "#9AD5FB", "#F2F2F2" },
	{ ".ck", "fill", "#4A2D5C", "#7D54A6", "#333333" },
	{ ".co", "fill", "#4C4E51", "#5A6169", "#737373" },
	/* The same as outlines and pale fills, for nodes of graphs. */
	{ ".nw", "", "fill:#D9E8F5;stroke:#0072B2", "fill:#12283A;stroke:#3D9BE0",
	  "fill:#EEE;stroke:#000" },
	{ ".ns", "", "fill:#D5F0E7;stroke:#009E73", "fill:#0F2C24;stroke:#2FBF93",
	  "fill:#EEE;stroke:#000" },
	{ ".ng", "", "fill:#FCEFD2;stroke:#C98B00", "fill:#33270D;stroke:#F0B429",
	  "fill:#EEE;stroke:#000" },
	{ ".na", "", "fill:#F6E3EE;stroke:#C46A9B", "fill:#331F2B;stroke:#D98BB8",
	  "fill:#EEE;stroke:#000" },
	{ ".nt", "", "fill:#E0F1FB;stroke:#3A97CC", "fill:#17303F;stroke:#9AD5FB",
	  "fill:#EEE;stroke:#000" },
	{ ".nk", "", "fill:#E6E0EA;stroke:#4A2D5C", "fill:#251A33;stroke:#9D78C2",
	  "fill:#EEE;stroke:#000" },
	{ ".no", "", "fill:#ECEEF1;stroke:#59636E", "fill:#1C222A;stroke:#8B949E",
	  "fill:#EEE;stroke:#000" },
};

static const char layout[] =
	"text{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica "
	"Neue\",Arial,\"DejaVu "
	"Sans\",sans-serif;font-size:12.5px;font-variant-numeric:tabular-nums}.h1{font-size:22px;"
	"font-weight:600}.h2{font-size:14.5px;font-weight:600}.b1{font-weight:600}.sm{font-size:"
	"11.5px}.ti{font-size:10px}.k{font-size:23px;font-weight:600}.m{font-family:ui-monospace,"
	"SFMono-Regular,Menlo,Consolas,\"DejaVu Sans "
	"Mono\",monospace;font-size:11.5px}.c{text-anchor:middle}.e{text-anchor:end}.gr,.ax,.it,."
	"rim,.res,.low,.capl,.bads,.oks,.warns,.opens,.ht,.sep{fill:none}.gr,.ax{stroke-width:1;"
	"shape-rendering:crispEdges}.rim{stroke-width:1}.it{stroke-width:1;stroke-dasharray:1 "
	"3}.res{stroke-width:1.6}.low{stroke-width:.8;stroke-opacity:.55}.sep{stroke-width:.8}."
	"capl{stroke-width:1.6;stroke-dasharray:7 "
	"4}.bads,.oks,.warns,.opens{stroke-width:2}.thin{stroke-width:1.2;stroke-dasharray:2.5 "
	"2}.nf,.edge{fill:none}.edge{stroke-linecap:round}.segb{fill:none;stroke-width:.7;stroke-"
	"opacity:.5}.segk{stroke-width:1.2;stroke-opacity:.6}.segbox{stroke-width:1}.hit{fill-"
	"opacity:0}.ht{stroke-width:2}.soft{opacity:.85}.cell{shape-rendering:crispEdges}.halo{"
	"paint-order:stroke;stroke-width:3.5px;stroke-linejoin:round}";

const char *vc_theme_slot(enum vc_slot slot)
{
	static const char *const klass[VC_SLOTS] = { "cw", "cs", "cg", "ca", "ct", "ck", "co" };

	return klass[slot];
}

const char *vc_theme_area(enum vc_slot slot)
{
	static const char *const klass[VC_SLOTS] = { "cw ar", "cs ar", "cg ar", "ca ar",
						    "ct ar", "ck ar", "co ar" };

	return klass[slot];
}

static void write_colors(struct vc_svg *s, enum vc_theme theme)
{
	for (size_t i = 0; i < sizeof(colors) / sizeof(*colors); i++) {
		const struct color *c = &colors[i];
		const char *v = theme == VC_THEME_DARK  ? c->dark :
				theme == VC_THEME_PRINT ? c->print :
							  c->light;
		if (*c->property)
			vc_svg_put(s, "%s{%s:%s}", c->klass, c->property, v);
		else
			vc_svg_put(s, "%s{%s}", c->klass, v);
	}
}

/* Printed in black, the layers are told apart by hatching; on screen the same strokes are faint. */
static void write_patterns(struct vc_svg *s, enum vc_theme theme)
{
	static const struct { const char *id, *slot, *turn; int size; const char *stroke; } p[] = {
		{ "ps", "cs", "rotate(-45)", 7, "M0 0V7" },
		{ "pg", "cg", "", 6, "M0 3H6" },
		{ "pt", "ct", "", 4, "M2 0V4" },
		{ "pk", "ck", "", 6, "M0 3H6M3 0V6" },
	};

	vc_svg_put(s, "<defs><pattern id=\"hx\" width=\"7\" height=\"7\" "
		   "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><path "
		   "class=\"ht\" d=\"M0 0V7\"/></pattern><marker id=\"tp\" viewBox=\"0 0 10 10\" "
		   "refY=\"5\" markerWidth=\"10\" markerHeight=\"10\" "
		   "markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"tip\" d=\"M0 "
		   ".5L10 5L0 9.5z\"/></marker>");
	for (size_t i = 0; i < sizeof(p) / sizeof(*p); i++)
		vc_svg_put(s, "<pattern id=\"%s\" width=\"%d\" height=\"%d\" "
			   "patternUnits=\"userSpaceOnUse\" patternTransform=\"%s\"><rect "
			   "class=\"%s\" width=\"%d\" height=\"%d\"/><path d=\"%s\" "
			   "stroke=\"#000\" stroke-width=\"1\" stroke-opacity=\"%s\"/></pattern>",
			   p[i].id, p[i].size, p[i].size, p[i].turn, p[i].slot, p[i].size,
			   p[i].size, p[i].stroke, theme == VC_THEME_PRINT ? ".9" : ".10");
	vc_svg_put(s, "</defs>\n");
}

void vc_theme_write(struct vc_svg *s, enum vc_theme theme)
{
	vc_svg_put(s, "<style>");
	vc_svg_put(s, "%s", layout);
	write_colors(s, theme);
	/* Areas take the pattern, small things (legend, bars) the plain colour. */
	vc_svg_put(s, ".ar.cs{fill:url(#ps)}.ar.cg{fill:url(#pg)}.ar.ct{fill:url(#pt)}"
		   ".ar.ck{fill:url(#pk)}.hx{fill:url(#hx)}");
	if (theme == VC_THEME_AUTO) {
		vc_svg_put(s, "@media screen and (prefers-color-scheme:dark){");
		write_colors(s, VC_THEME_DARK);
		vc_svg_put(s, ".ar.cs{fill:url(#ps)}.ar.cg{fill:url(#pg)}.ar.ct{fill:url(#pt)}"
			   ".ar.ck{fill:url(#pk)}}");
	}
	vc_svg_put(s, "</style>\n");
	write_patterns(s, theme);
}
