#!/bin/sh
# terminal_picture.sh - the terminal picture of the README is what the program prints today.
. tests/support/tap.sh
VRAMCAST=$VRAMCAST scripts/terminal.sh > "$TMP/now.svg"
check "the picture shows what is printed (else: scripts/terminal.sh > docs/img/terminal.svg)" cmp docs/img/terminal.svg "$TMP/now.svg"
check "of two commands" test "$(grep -c 'class="c"' "$TMP/now.svg")" = 2
if command -v python3 > /dev/null; then check "it is XML" python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$TMP/now.svg"; else skip "it is XML" "no python3"; fi
finish
