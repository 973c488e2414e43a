#!/bin/sh
# models_doc.sh - docs/reference/models.md names every rule and every parameter that the model has.
. tests/support/tap.sh
# The lists of the document, a line each: "* **2.1**: a; b" is "2.1: a" and "2.1: b".
sed -n 's/^\* \*\*\([A-Z0-9. a-z]*\)\*\*: /\1; /p' docs/reference/models.md |
	awk -F '; ' '{ for (i = 2; i <= NF; i++) print $1 ": " $i }' > "$TMP/listed"
missing=$(sed -n 's/^\t{ \([0-9]*\), \([0-9]*\), AT([a-z_]*), .*, "\(.*\)" },$/\1.\2: \3/p' simulator/models/torch_rules.c | sed 's/\\"/"/g' |
	while IFS= read -r row; do grep -qxF "$row" "$TMP/listed" || echo "$row"; done)
missing=$missing$(tr '\n' ' ' < simulator/models/torch_devices.c | grep -o '{ TORCH_[A-Z]*, { [0-9]*, [0-9]*, [^}]*" }' |
	sed 's/{ TORCH_\([A-Z]*\), { \([0-9]*\), \([0-9]*\), .*"\(.*\)" }/\1 \2.\3: \4/; s/^HIP/ROCm/' |
	while IFS= read -r row; do grep -qxF "$row" "$TMP/listed" || echo "$row"; done)
[ -z "$missing" ] && grep -q '^2.15: ' "$TMP/listed" && pass "every rule of every version is in the document" || fail "every rule of every version is in the document" "$missing"
missing=$(sed -n 's/^\t{ "\([a-z_]*\)", VC_P_.*/\1/p' simulator/models/*.c | while read -r p; do grep -q "\`$p[=\`]" docs/reference/models.md || echo "$p"; done)
[ -z "$missing" ] && pass "and every parameter" || fail "and every parameter" "$missing"
for m in $(sed -n 's/^VC_MODEL(\(.*\))/\1/p' simulator/models/models.def); do
	grep -q "^## $m" docs/reference/models.md && pass "the model $m has a chapter" || fail "the model $m has a chapter"
done
finish
