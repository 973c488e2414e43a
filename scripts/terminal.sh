#!/bin/sh
# terminal.sh - the terminal picture of the README: runs these commands and writes what they print as an SVG that plays it, to standard
# output. tests/cli/terminal_picture.sh compares, so the picture is what the program says today.
vramcast=${VRAMCAST:-build/vramcast}
play() { # COMMAND LINE: its prompt, and the first lines of its answer
	printf '$ %s\n' "$1"
	NO_COLOR=1 "$vramcast" ${1#vramcast } 2> /dev/null | head -n "$2"
}
{
	play "vramcast traces/lm-train-ctx128.vct -g a100-40g-sxm" 22
	play "vramcast sim traces/lm-train-ctx128.vct -g a100-40g-sxm -x lora" 2
} | LC_ALL=C.UTF-8 awk '
	{ gsub(/&/, "\\&amp;"); gsub(/</, "\\&lt;"); gsub(/>/, "\\&gt;"); if (length($0) > 112) $0 = substr($0, 1, 111) "…"; line[NR] = $0 }
	END {
		height = NR * 18 + 32
		printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 %d\" role=\"img\" xml:space=\"preserve\"><title>vramcast in a terminal</title>\n", height
		print "<style>rect{fill:#14181d}text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#c9d1d9;white-space:pre;animation:say .01s backwards}"
		print ".c{fill:#7ee787}.v{fill:#ffa198}@keyframes say{from{opacity:0}}@media(prefers-reduced-motion:reduce){text{animation:none}}</style>"
		printf "<rect width=\"900\" height=\"%d\" rx=\"8\"/>\n", height
		for (i = 1; i <= NR; i++) {
			t += line[i] ~ /^\$ / ? (i > 1 ? 3 : 0.4) : line[i - 1] ~ /^\$ / ? 1.2 : 0.06
			printf "<text x=\"16\" y=\"%d\"%s style=\"animation-delay:%.2fs\">%s</text>\n", 30 + (i - 1) * 18,
				line[i] ~ /^\$ / ? " class=\"c\"" : line[i - 1] ~ /^\$ / && line[i] !~ /: fits/ ? " class=\"v\"" : "", t, line[i]
		}
		print "</svg>"
	}'
