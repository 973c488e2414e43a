#!/bin/sh
# make-reference.sh [DIR] - the reference as Markdown: one page per command, made from its man page
# ('vramcast manpage'), and one page of everything that is plugged in, made from 'vramcast list' and
# 'vramcast help NAME'. All of them come from the tables that parse the options, so nothing is
# written twice. The page of the Python package comes from its docstrings. DIR is docs/reference;
# tests/cli/docs_reference.sh writes elsewhere and compares.
vramcast=${VRAMCAST:-build/vramcast}; dir=${1:-docs/reference}
made="<!-- scripts/make-reference.sh -->"
commands=$("$vramcast" help | sed -n 's/^  \([a-z]*\) .*/\1/p')
[ -n "$commands" ] || { echo "make-reference: $vramcast lists no commands" >&2; exit 1; }

# The few roff requests that a page of ours uses: TH, SH, TP and the line behind it, nf and fi.
page() { awk -v name="$1" -v made="$made" '
	function plain(s) { gsub(/\\f[A-Z]/, "", s); gsub(/\\&/, "", s); gsub(/\\-/, "-", s); gsub(/\\e/, "\\", s); return s }
	function text(s) { gsub(/[<>|*_]/, "\\\\&", s); return s }
	function head(s) { if (!seen[s]++) print "\n## " s "\n" }
	/^\.TH/ { print "# " name "\n\n" made; next }
	/^\.SH/ {
		if (synopsis != "") print "\n`" synopsis "`"
		synopsis = ""; section = substr($0, 5); next
	}
	section == "SEE ALSO" { next }
	/^\.nf/ { print "\n```text"; verbatim = 1; next }
	/^\.fi/ { print "```"; verbatim = 0; next }
	/^\.TP/ { tag = 1; next }
	{ s = $0; sub(/^\.(BR|PP|B|I) ?/, "", s); s = plain(s) }
	verbatim { print s; next }
	tag { head("Options"); option = s; tag = 0; next }
	option != "" {
		sub(/\.$/, "", s)
		print "* `" option "` " text(s); option = ""; next
	}
	section == "NAME" {
		sub(/^vramcast(-[a-z]*)? - /, "", s); if (s !~ /[.?!]$/) s = s "."
		print "\n" toupper(substr(s, 1, 1)) text(substr(s, 2)); next
	}
	section == "SYNOPSIS" { synopsis = synopsis (synopsis == "" ? "" : " ") s; next }
	s != "" { print text(s) }'; }

# The options that five pages and more have word by word: on one page, and named on the others.
share() {
	grep -h '^\* `-' "$dir"/commands/*.md | sort | uniq -c | sed -n 's/^ *\([5-9]\|[0-9][0-9]\) //p' > "$dir/shared"
	for f in "$dir"/commands/*.md; do
		awk 'FILENAME ~ /shared$/ { shared[$0]; all++; next }
			FNR == 1 { k = 0 }
			!($0 in shared) { line[++n] = $0; split($0, w, "`"); if ($0 ~ /^\* `-/) own[w[2]]; next }
			{ k++; has[$0]; line[++n] = $0 }
			END {
				for (s in shared) if (!(s in has)) { split(s, w, "`"); if (!(w[2] in own)) but = but (but == "" ? " but " : ", ") "`" w[2] "`" }
				for (i = 1; i <= n; i++) if (k <= 2 || !(line[i] in shared)) print line[i]
				if (k > 2) print "* all [options of a run](README.md#options-of-a-run)" but
			}' "$dir/shared" "$f" > "$f.new" && mv "$f.new" "$f"
	done
	# In the order of the page that has them all.
	"$vramcast" manpage sim | page sim | grep -xF -f "$dir/shared"
	rm "$dir/shared"
}

mkdir -p "$dir/commands"; rm -f "$dir"/commands/*.md
if command -v python3 > /dev/null; then python3 "$(dirname "$0")/python-reference.py" > "$dir/python.md" || exit 1
elif [ "$dir" != docs/reference ]; then cp docs/reference/python.md "$dir"; fi
for c in $commands; do
	"$vramcast" manpage "$c" | page "vramcast $c" > "$dir/commands/$c.md" || exit 1
done
shared=$(share)
{
	printf '# Commands\n\n%s\n\n' "$made"
	printf 'The same text in a terminal: `vramcast COMMAND --help`, or the man page.\n\n'
	"$vramcast" help | sed -n '/^vramcast X looks/,/^$/p'
	"$vramcast" help | sed -n 's/^  \([a-z]*\)  *\(.*\)/* [\1](\1.md): \2/p'
	printf '\n## Options of a run\n\nThese mean the same in every command that has them.\n\n%s\n' "$shared"
} > "$dir/commands/README.md"
{
	printf '# Parameters of what is plugged in\n\n%s\n\n' "$made"
	echo "Parameters follow the name: \`-x leak:steps=100\`, \`-m torch:fit=first\`, \`--to csv:what=blocks\`. The first value is the default."
	echo "What they belong to: [transforms](transforms.md), [models](models.md), [formats](outputs.md), [pictures](../howto/pictures.md);"
	echo "\`vramcast list\` names all, also those without parameters."
	for kind in transforms models sinks; do
		printf '\n## %s\n\n' "$(echo "$kind" | sed 's/^./\U&/')"
		"$vramcast" list "$kind" | sed -n 's/^  \([a-z0-9_]*\) .*/\1/p' | while read -r name; do
			"$vramcast" help "$name" | sed -e ':a' -e 'N' -e '$!ba' -e 's/\n \{23,\}/ /g' | awk -v name="$name" -v kind="$kind" '
				index($0, name " (one of the ") == 1 { on = index($0, "the " kind ")"); said = 0; next }
				/^[A-Z].*:$/ && !/^Parameters:/ { on = 0 } # what changed when stands in the help alone
				!on || $0 == "" || /^Parameters:/ { next }
				!said++ { next } # what it does stands in the page that the head of this one names
				{
					sub(/^ */, ""); key = $1; sub(/^[^ ]* */, "")
					preset = ""; if (match($0, / \[[^]]*\]( \([a-z0-9_.,A-Z-]*\))?$/)) { preset = substr($0, RSTART + 2); $0 = substr($0, 1, RSTART - 1) }
					choices = preset; if (sub(/^[^]]*\] ?/, "", choices)) { gsub(/[()]/, "", choices); gsub(/,/, "|", choices) }
					sub(/\].*/, "", preset)
					k = split(choices, choice, "|"); value = preset
					for (i = 1; i <= k; i++) if (choice[i] != preset) value = value "|" choice[i]
					# What the parameters of models mean stands in models.md alone.
					if (!rows++) print "* **" name "**"
					if (kind == "models") names = names (names == "" ? "  * " : ", ") "`" key (value == "" ? "" : "=" value) "`"
					else print "  * `" key (value == "" ? "" : "=" value) "` " $0
				}
				END { if (names != "") print names; else if (!rows && kind == "transforms") print "* **" name "**: none" }'
		done
	done | awk '
		# What many have word by word stands once, behind the last of them.
		{ line[++n] = $0; if (/^  \* /) seen[$0]++ }
		END {
			for (i = 1; i <= n; i++) {
				own = line[i] ~ /^  \* / && seen[line[i]] < 5
				if (line[i] ~ /^\* .*: none$/) { print line[i]; continue }
				if (line[i] ~ /^\* /) { head = line[i]; continue }
				if (own && head != "") { print head; head = "" }
				if (own || line[i] !~ /^  \* /) { print line[i]; continue }
				if (!(line[i] in once)) { once[line[i]]; shared[++k] = line[i] }
			}
			if (k) print "\nEvery picture has these:\n"
			for (i = 1; i <= k; i++) print substr(shared[i], 3)
		}'
} > "$dir/plugins.md"
