/* SPDX-License-Identifier: Apache-2.0 */
/* theme.c - colours, patterns and text styles of every picture. */
#include "visualize/theme.h"


/* The slots were chosen by a search: 3:1 or more on the background, 12 or more apart (CIE76) for
 * normal sight and three colour blindnesses, 8 apart in grey where layers touch
 * (tests/unit/test_theme.c). The neutral tones are those of GitHub's two themes, where most
 * pictures will be seen. */
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
	{ ".ht", "stroke", "#77828F", "#7A8694", "#8C8C8C" },
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
	{ ".edge", "stroke", "#76828E", "#6B7683", "#555555" },
	{ ".tip", "fill", "#76828E", "#6B7683", "#555555" },
	{ ".lane", "fill", "#CF5B3A", "#D4665A", "#666666" },
	{ ".busy", "fill", "#3D8FC4", "#3B82B8", "#888888" },
	{ ".pin", "fill", "#6B7A1E", "#B9C75A", "#777777" }, /* of the host */
	{ ".mng", "fill", "#8E4EC6", "#BE93E4", "#555555" }, /* of host and card */
	{ ".base", "fill", "#788598", "#767B56", "#7C7C7C" },
	{ ".u1", "fill", "#4E7F86", "#5FA3AB", "#999999" }, /* unused, but pinned or returnable */
	{ ".u2", "fill", "#7A5C45", "#B08A6C", "#444444" },
	{ ".u3", "fill", "#5B5F97", "#8D92D6", "#777777" },
	{ ".onc", "fill", "#10141A", "#0D1117", "#000000" },
	{ ".ch", "fill", "#7A639B", "#9ECC8B", "#666666" },
	{ ".cw", "fill", "#004779", "#A69CF0", "#474747" },
	{ ".cs", "fill", "#11783C", "#2EF0C4", "#919191" },
	{ ".cg", "fill", "#B48C19", "#E5AE58", "#303030" },
	{ ".ca", "fill", "#8A3F5D", "#CF77B6", "#727272" },
	{ ".ct", "fill", "#1B76C8", "#97D0FF", "#1B1B1B" },
	{ ".ck", "fill", "#342230", "#794BAE", "#5E5E5E" },
	{ ".cl", "fill", "#902A1A", "#F94130", "#111111" },
	{ ".co", "fill", "#552724", "#F4F6F8", "#868686" },
	/* Text that stands on them. */
	{ ".obase", "fill", "#10141A", "#000000", "#000000" },
	{ ".oh", "fill", "#FFFFFF", "#10141A", "#FFFFFF" },
	{ ".ow", "fill", "#FFFFFF", "#10141A", "#FFFFFF" },
	{ ".os", "fill", "#FFFFFF", "#10141A", "#000000" },
	{ ".og", "fill", "#10141A", "#10141A", "#FFFFFF" },
	{ ".oa", "fill", "#FFFFFF", "#10141A", "#FFFFFF" },
	{ ".ot", "fill", "#FFFFFF", "#10141A", "#FFFFFF" },
	{ ".ok1", "fill", "#FFFFFF", "#FFFFFF", "#FFFFFF" },
	{ ".ol", "fill", "#FFFFFF", "#10141A", "#FFFFFF" },
	{ ".oo", "fill", "#FFFFFF", "#10141A", "#000000" },
	/* The same as outlines and pale fills, for nodes of graphs. */
	{ ".nh", "", "fill:#EBE6F1;stroke:#7A639B", "fill:#1F2B1B;stroke:#9ECC8B",
	  "fill:#EEE;stroke:#000" },
	{ ".nw", "", "fill:#DCE7F1;stroke:#004779", "fill:#1F2140;stroke:#A69CF0",
	  "fill:#EEE;stroke:#000" },
	{ ".ns", "", "fill:#DDF0E3;stroke:#11783C", "fill:#0B2F29;stroke:#2EF0C4",
	  "fill:#EEE;stroke:#000" },
	{ ".ng", "", "fill:#F8F0D8;stroke:#B48C19", "fill:#35290F;stroke:#E5AE58",
	  "fill:#EEE;stroke:#000" },
	{ ".na", "", "fill:#F4E1E8;stroke:#8A3F5D", "fill:#331F2D;stroke:#CF77B6",
	  "fill:#EEE;stroke:#000" },
	{ ".nt", "", "fill:#DEEBF8;stroke:#1B76C8", "fill:#1B2E3D;stroke:#97D0FF",
	  "fill:#EEE;stroke:#000" },
	{ ".nk", "", "fill:#E6DFE4;stroke:#342230", "fill:#251A33;stroke:#794BAE",
	  "fill:#EEE;stroke:#000" },
	{ ".nl", "", "fill:#F6DFDB;stroke:#902A1A", "fill:#3B1512;stroke:#F94130",
	  "fill:#EEE;stroke:#000" },
	{ ".no", "", "fill:#EFE4E3;stroke:#552724", "fill:#26262C;stroke:#F4F6F8",
	  "fill:#EEE;stroke:#000" },
};

static const char layout[] =
	"text{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica "
	"Neue\",Arial,\"DejaVu "
	"Sans\",sans-serif;font-size:12.5px;font-variant-numeric:tabular-nums}.h1{font-size:22px;"
	"font-weight:600}.h2{font-size:14.5px;font-weight:600}.b1{font-weight:600}.sm{font-size:"
	"11.5px}.k{font-size:23px;font-weight:600}.m{font-family:ui-monospace,"
	"SFMono-Regular,Menlo,Consolas,\"DejaVu Sans "
	"Mono\",monospace;font-size:11.5px}.c{text-anchor:middle}.e{text-anchor:end}.gr,.ax,.it,."
	"rim,.res,.low,.capl,.bads,.oks,.warns,.opens,.ht,.sep{fill:none}.gr,.ax{stroke-width:1;"
	"shape-rendering:crispEdges}.rim{stroke-width:1}.it{stroke-width:1;stroke-dasharray:1 "
	"3}.res{stroke-width:1.6}.low{stroke-width:.8;stroke-opacity:.55}.sep{stroke-width:.8}."
	"capl{stroke-width:1.6;stroke-dasharray:7 "
	"4}.bads,.oks,.warns,.opens{stroke-width:2}.thin{stroke-width:1.2;stroke-dasharray:2.5 "
	"2}.nf,.edge{fill:none}.edge{stroke-linecap:round}.segb{fill:none;stroke-width:.7;stroke-"
	"opacity:.5}.segk{stroke-width:1.2;stroke-opacity:.6}.segbox{stroke-width:1}.hit{fill-"
	"opacity:0}.ht{stroke-width:2}.cell{shape-rendering:crispEdges}.halo{"
	"paint-order:stroke;stroke-width:3.5px;stroke-linejoin:round}";

const char *vc_theme_slot(enum vc_slot slot)
{
	static const char *const klass[VC_SLOTS] = { "ch", "cw", "cs", "cg", "ca",
						   "ct", "ck", "cl", "co" };

	return klass[slot];
}

const char *vc_theme_on(enum vc_slot slot)
{
	static const char *const klass[VC_SLOTS] = { "oh", "ow", "os", "og", "oa",
						    "ot", "ok1", "ol", "oo" };

	return klass[slot];
}

const char *vc_theme_pale(enum vc_slot slot)
{
	static const char *const klass[VC_SLOTS] = { "nh", "nw", "ns", "ng", "na",
						    "nt", "nk", "nl", "no" };

	return klass[slot];
}

const char *vc_theme_area(enum vc_slot slot)
{
	static const char *const klass[VC_SLOTS] = { "ch ar", "cw ar", "cs ar", "cg ar",
						    "ca ar", "ct ar", "ck ar", "cl ar", "co ar" };

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
			   "stroke=\"#FFF\" stroke-width=\"1\" stroke-opacity=\"%s\"/></pattern>",
			   p[i].id, p[i].size, p[i].size, p[i].turn, p[i].slot, p[i].size,
			   p[i].size, p[i].stroke, theme == VC_THEME_PRINT ? ".5" : ".12");
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
