#!/bin/sh
# models_doc.sh - `vramcast help torch` says every rule, docs/reference/models.md names every parameter and model.
. tests/support/tap.sh
# Every rule of the tables, as `vramcast help torch` says it, on one line each.
"$VRAMCAST" help torch | awk '/^What changed/ { on = 1; next } on && /^  [A-Z0-9]/ { if (row) print row; row = $0; next } on { sub(/^ */, " "); row = row $0 } END { print row }' |
	sed 's/^  //; s/   */ /g' > "$TMP/said"
missing=$(sed -n 's/^\t{ \([0-9]*\), \([0-9]*\), AT([a-z_]*), .*, "\(.*\)" },$/\1.\2 \3/p' simulator/models/torch_rules.c | sed 's/\\"/"/g' |
	while IFS= read -r row; do grep -qxF "$row" "$TMP/said" || echo "$row"; done)
missing=$missing$(tr '\n' ' ' < simulator/models/torch_devices.c | grep -o '{ TORCH_[A-Z]*, { [0-9]*, [0-9]*, [^}]*" }' |
	sed 's/{ TORCH_\([A-Z]*\), { \([0-9]*\), \([0-9]*\), .*"\(.*\)" }/\1 \2.\3 \4/; s/^HIP/ROCm/' |
	while IFS= read -r row; do grep -qxF "$row" "$TMP/said" || echo "$row"; done)
[ -z "$missing" ] && grep -q '^2.15 ' "$TMP/said" && pass "help torch says every rule of every version" || fail "help torch says every rule of every version" "$missing"
missing=$(sed -n 's/^\t{ "\([a-z_]*\)", VC_P_.*/\1/p' simulator/models/*.c | while read -r p; do grep -q "\`$p[=\`]" docs/reference/models.md || echo "$p"; done)
[ -z "$missing" ] && pass "and every parameter" || fail "and every parameter" "$missing"
for m in $(sed -n 's/^VC_MODEL(\(.*\))/\1/p' simulator/models/models.def); do
	grep -q "^## $m" docs/reference/models.md && pass "the model $m has a chapter" || fail "the model $m has a chapter"
done
finish
