#!/bin/sh
# bad_lines.sh - wrong command lines, made from the options' own table (what `help` prints), and judged by rules: exit code 2 (1 for a
# file that cannot be written, 125 where a program would have run), one sentence that names the option or the value, no hint at
# what is not there, nothing written, below two seconds. BAD_LINES=N: so many of them, evenly chosen.
. tests/support/tap.sh
export XDG_CACHE_HOME=$TMP/cache
most=${BAD_LINES:-300}
case $VRAMCAST in /*) program=$VRAMCAST ;; *) program=$PWD/$VRAMCAST ;; esac
trace=$PWD/traces/attention.vct
mkdir -p "$TMP/w"; printf '{"timestamp":0,"input_length":10,"output_length":5}\n' > "$TMP/q.jsonl"
printf '128\n256\n' > "$TMP/lengths"
"$VRAMCAST" help | awk '/^  [a-z]/ { print $1 }' > "$TMP/commands"
while read -r c; do # COMMAND TAB OPTION TAB ARGUMENT (- for a switch)
	"$VRAMCAST" help "$c" | sed -nE "s/^  (-., |    )--([a-z0-9-]+)( ([A-Z][^ ]*|[0-9.]+|[^ ]*\|[^ ]*))?( .*)?$/$c	\2	\4/p" | sed 's/	$/	-/'
done < "$TMP/commands" > "$TMP/options"
# COMMAND TAB KIND TAB OPTION TAB WORD: what is wrong, and the word in the line that is; <> stands for an empty one.
awk -F'\t' '
function bad(kind, word) { print $1 "\t" kind "\t" $2 "\t" word }
{ right[$1, $2] = 1 }
NR == FNR { next }
!(($1, substr($2, 1, 1) substr($2, 3)) in right) { bad("misspelt", "--" substr($2, 1, 1) substr($2, 3)) }
$3 == "-" { bad("switch", "--" $2 "=1"); next }
{ bad("missing", "--" $2) }
$3 ~ /^SIZE/ { n = split("-1 many 99999999999999999999 1e19 0x10 0.5 <>", v, " ") }
$3 ~ /^(N|TOKENS|PIXELS|PID|STEPS)$/ { n = split("-1 many 99999999999999999999 <>", v, " ") }
$3 ~ /^(F|R|PART|US|MS)$/ { n = split("many nan 1e999 -1 <>", v, " ") }
$3 ~ /^NAME=VALUE/ && $2 != "env" { n = split("many =1 many= batch=1e19 batch=many", v, " ") }
$3 ~ /^NAME\[:/ { n = split("nosuch nosuch:a=1", v, " ") }
$3 == "NAME" && $2 ~ /^gpu/ { n = split("nosuch9 h100", v, " ") }
$3 == "FILE" && $2 ~ /^(output|report|learn)$/ { n = split("/nonexistent/x.svg / <>", v, " ") }
$2 == "torch" { n = split("9.99 many", v, " ") }
$2 == "conf" && $3 == "STRING" && $1 != "dryrun" { # there PyTorch itself refuses it
	 n = split("no_such_option:1 max_split_size_mb:1", v, " ") }
$3 ~ /^[a-z0-9]+(\|[a-z0-9]+)+$/ { n = split("nosuch <>", v, " ") }
{ for (i = 1; i <= n; i++) bad("value", v[i]); n = 0 }' "$TMP/options" "$TMP/options" > "$TMP/all"
all=$(wc -l < "$TMP/all")
awk -v n="$all" -v most="$most" 'int(NR * most / n) != int((NR - 1) * most / n)' "$TMP/all" > "$TMP/lines"

rest() { # COMMAND OPTION: what a right line of that command has besides, one word each line
	case $1 in
	diff) printf '%s\n' "$trace" "$trace" ;;
	export) printf '%s\n' "$trace" --to csv; [ "$2" = output ] || printf '%s\n' -o - ;;
	sweep) echo "$trace"; [ "$2" = vary ] || [ "$2" = scenarios ] || [ "$2" = conf ] && printf '%s\n' --vary torch=2.6 || printf '%s\n' --vary conf=backend:native ;;
	fit) echo "$trace@batch=4"; [ "$2" = gpu ] || printf '%s\n' -g l4 ;;
	epoch) printf '%s\n' "$trace@batch=4,seq=64" --lengths "$TMP/lengths"; [ "$2" = gpu ] || printf '%s\n' -g l4 ;;
	estimate) printf '%s\n' --params 7e9 --layers 32 --hidden 4096 ;;
	report) echo "$trace"; [ "$2" = output ] || printf '%s\n' -o "$TMP/r.html" ;;
	serve) echo "$TMP/q.jsonl"; [ "$2" = utilization ] && printf '%s\n' -g rtx4090 --weights 1GiB --token-bytes 128KiB || printf '%s\n' --blocks 100 ;;
	run) [ "$2" = gpu ] && echo --fit || printf '%s\n' --learn "$TMP/l.vcp" ;;
	bisect) printf '%s\n' --good 1 --bad 2; [ "$2" = gpu ] || printf '%s\n' -g rtx4090 ;;
	dryrun) [ "$2" = gpu ] || printf '%s\n' -g rtx4090 ;;
	gpus|list|help|completions|schema|mcp|top|record) ;;
	*) echo "$trace" ;;
	esac
}
judge() { # COMMAND KIND OPTION WORD: what is wrong with the answer, on one line; nothing when it is right
	line=$(cat "$TMP/err")
	case $rc in
	2) ;;
	1|125|127) [ "$2$3" = valueoutput ] || [ "$2$3" = valuereport ] || [ "$2$3" = valuelearn ] || { echo "exit code $rc"; return; } ;;
	*) echo "exit code $rc"; return ;;
	esac
	[ "$(wc -l < "$TMP/err")" -eq 1 ] || { echo "$(wc -l < "$TMP/err") lines"; return; }
	case $line in "vramcast $1: "*) ;; *) echo "begins otherwise"; return ;; esac
	[ ${#line} -le 400 ] || { echo "${#line} characters"; return; }
	case $line in *'(null)'*) echo "(null)"; return ;; esac
	shown=${4#--}; shown=${shown%%:*}; [ "$shown" != '<>' ] || shown=$3
	case $line in *"$3"*|*"$shown"*) ;; *) echo "names neither --$3 nor $4"; return ;; esac
	case $line in *'did you mean --'*)
		hint=${line##*did you mean --}; hint=${hint%%\?*}
		grep -q "^$1	$hint	" "$TMP/options" || { [ "$hint" = quiet ] || [ "$hint" = verbose ] || echo "hints at --$hint"; } ;;
	esac
	[ ! -s "$TMP/out" ] || { echo "prints"; return; }
	[ -z "$(ls -A "$TMP/w")" ] || { echo "writes $(ls -A "$TMP/w")"; rm -rf "$TMP"/w/*; }
}
tab=$(printf '\t')
while IFS=$tab read -r c kind o word; do
	rest "$c" "$o" > "$TMP/rest"
	set -- "$c"
	while read -r w; do set -- "$@" "$w"; done < "$TMP/rest"
	given=$word; [ "$given" != '<>' ] || given=
	[ "$kind" != value ] || set -- "$@" "--$o"
	set -- "$@" "$given"
	case $kind:$c in missing:*) ;; *:run|*:dryrun|*:record|*:bisect) set -- "$@" -- true ;; esac
	(cd "$TMP/w" && exec timeout 2 "$program" "$@" > "$TMP/out" 2> "$TMP/err" < /dev/null); rc=$?
	tap_read; tap_said "$@"
	why=$(judge "$c" "$kind" "$o" "$word")
	[ -z "$why" ] || echo "# $why: $* | $(head -c 300 "$TMP/err")"
done < "$TMP/lines" > "$TMP/wrong"
wrong=$(wc -l < "$TMP/wrong")
made=$(wc -l < "$TMP/lines")
[ "$made" -ge "$((most < all ? most : all))" ] && pass "$made of $all wrong lines were made" || fail "wrong lines were made" "$made"
[ "$wrong" = 0 ] && pass "each is answered with code, sentence and hint as it should" || fail "each is answered with code, sentence and hint as it should" "$(cat "$TMP/wrong")"
finish
