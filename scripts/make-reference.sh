#!/bin/sh
# make-reference.sh [DIR] - the reference as Markdown: one page per command, made from its man page
# ('vramcast manpage'), and one page of everything that is plugged in, made from 'vramcast list' and
# 'vramcast help NAME'. All of them come from the tables that parse the options, so nothing is
# written twice. The page of the Python package comes from its docstrings. DIR is docs/reference;
# tests/cli/docs_reference.sh writes elsewhere and compares.
vramcast=${VRAMCAST:-build/vramcast}; dir=${1:-docs/reference}
made="*Made by \`scripts/make-reference.sh\`; do not edit.*"
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
	/^\.nf/ { head("Description"); print "```text"; verbatim = 1; next }
	/^\.fi/ { print "```"; verbatim = 0; next }
	/^\.TP/ { tag = 1; next }
	{ s = $0; sub(/^\.(BR|PP|B|I) ?/, "", s); s = plain(s) }
	verbatim { print s; next }
	tag {
		if (!table++) { head("Options"); print "| option | meaning |\n|---|---|" }
		option = s; tag = 0; next
	}
	option != "" {
		gsub(/\|/, "\\|", option); sub(/\.$/, "", s)
		print "| `" option "` | " text(s) " |"; option = ""; next
	}
	section == "NAME" {
		sub(/^vramcast(-[a-z]*)? - /, "", s); if (s !~ /[.?!]$/) s = s "."
		print "\n" toupper(substr(s, 1, 1)) text(substr(s, 2)); next
	}
	section == "SYNOPSIS" { synopsis = synopsis (synopsis == "" ? "" : " ") s; next }
	s != "" { print text(s) }
	END { print "\nAll commands: [README.md](README.md). The same text in a terminal: `" name " --help`." }'
}

mkdir -p "$dir/commands"; rm -f "$dir"/commands/*.md
if command -v python3 > /dev/null; then python3 "$(dirname "$0")/python-reference.py" > "$dir/python.md" || exit 1
elif [ "$dir" != docs/reference ]; then cp docs/reference/python.md "$dir"; fi
for c in $commands; do
	"$vramcast" manpage "$c" | page "vramcast $c" > "$dir/commands/$c.md" || exit 1
done
{
	printf '# Commands\n\n%s\n\nOne page per command. Each is the man page of the command.\n\n' "$made"
	echo "| command | what it does |"; echo "|---|---|"
	"$vramcast" help | sed -n 's/^  \([a-z]*\)  *\(.*\)/| [\1](\1.md) | \2 |/p'
} > "$dir/commands/README.md"
{
	printf '# What is plugged in\n\n%s\n\n' "$made"
	echo "Sources read recordings. Transforms (\`-x\`) change events. Models (\`-m\`) are allocators. Observers"
	echo "watch a run. Sinks (\`-t\`, \`--to\`) write what came out. Parameters follow the name: \`-x leak:steps=100\`."
	echo "The value in brackets behind a parameter is its default."
	for kind in sources transforms models observers sinks; do
		printf '\n## %s\n' "$(echo "$kind" | sed 's/^./\U&/')"
		"$vramcast" list "$kind" | sed -n 's/^  \([a-z0-9_]*\) .*/\1/p' | while read -r name; do
			"$vramcast" help "$name" | awk -v name="$name" -v kind="$kind" '
				index($0, name " (one of the ") == 1 { on = index($0, "the " kind ")"); said = 0; next }
				!on || $0 == "" { next }
				!said++ { print "\n### " name "\n\n" $0; next }
				/^Parameters:/ { print "\n```text"; block = 1; next }
				{ sub(/^  /, ""); print }
				END { if (block) print "```" }'
		done
	done
} > "$dir/plugins.md"
