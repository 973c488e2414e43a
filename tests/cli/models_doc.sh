#!/bin/sh
# models_doc.sh - docs/reference/models.md names every rule and every parameter that the model has.
. tests/support/tap.sh
missing=$(sed -n 's/^\t{ [0-9]*, [0-9]*, AT([a-z_]*), .*, "\(.*\)" },$/\1/p' simulator/models/torch_rules.c | sed 's/\\"/"/g' |
	while IFS= read -r what; do grep -qF "| $what |" docs/reference/models.md || echo "$what"; done)
missing=$missing$(tr '\n' ' ' < simulator/models/torch_devices.c | grep -o '{ TORCH_[A-Z]*, { [0-9]*, [0-9]*, [^}]*" }' |
	sed 's/{ TORCH_\([A-Z]*\), { \([0-9]*\), \([0-9]*\), .*"\(.*\)" }/\1 | \2.\3 | \4 |/; s/^HIP/ROCm/' |
	while IFS= read -r row; do grep -qF "| $row" docs/reference/models.md || echo "$row"; done)
[ -z "$missing" ] && pass "every rule of every version is in the document" || fail "every rule of every version is in the document" "$missing"
missing=$(sed -n 's/^\t{ "\([a-z_]*\)", VC_P_.*/\1/p' simulator/models/*.c | while read -r p; do grep -q "\`$p[=\`]" docs/reference/models.md || echo "$p"; done)
[ -z "$missing" ] && pass "and every parameter" || fail "and every parameter" "$missing"
for m in $(sed -n 's/^VC_MODEL(\(.*\))/\1/p' simulator/models/models.def); do
	grep -q "^## $m" docs/reference/models.md && pass "the model $m has a chapter" || fail "the model $m has a chapter"
done
finish
