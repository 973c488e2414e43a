#!/bin/sh
# check_wheel.sh - the wheel and the source distribution, judged by PyPI's own tools, in clean virtual environments of
# every Python that is here (PYTHONS="python3.9 ..." to choose).
. tests/support/tap.sh
. tests/python/tools.sh
d=$TMP/dist; mkdir -p "$d"
check "make wheel builds both" make -s wheel DIST="$d" DEPS=skip
wheel=$(echo "$d"/*.whl); tag=$(basename "$wheel" .whl | sed 's/.*-//')
"$TOOLS/bin/auditwheel" show "$wheel" > "$TMP/audit" 2>&1
check "auditwheel finds the tag of the file, $tag, to be true" grep -q "\"$tag\"" "$TMP/audit"
check "twine finds both fit for PyPI" "$TOOLS/bin/twine" check --strict "$d"/*
make -s wheel DIST="$TMP" DEPS=skip > /dev/null 2>&1
check "the same tree gives the same bytes" sh -c 'cmp "$1" "$3/${1##*/}" && cmp "$2" "$3/${2##*/}"' sh "$wheel" "$(echo "$d"/*.tar.gz)" "$TMP"

# Every Python of PATH and of pyenv, once per version.
pythons=${PYTHONS:-$(for p in python3.9 python3.10 python3.11 python3.12 python3.13 python3.14 /usr/bin/python3 "$HOME"/.pyenv/versions/3.*/bin/python3; do
	command -v "$p"; done)}
seen=' '
for p in $pythons; do
	v=$("$p" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2> /dev/null) || continue
	case $seen in *" $v "*) continue ;; esac
	case $v in 2.*|3.[0-8]) continue ;; esac
	env=$TMP/env-$v
	"$p" -m venv "$env" > /dev/null 2>&1 || continue
	seen="$seen$v "
	"$env/bin/python" -m pip install -q --no-index "$wheel" > "$TMP/pip.log" 2>&1 || { fail "Python $v installs the wheel" "$(cat "$TMP/pip.log")"; continue; }
	native=$(env -u VRAMCAST "$env/bin/python" -c 'import vramcast.program as p; print(p.path())')
	case $native in "$env"/*) ;; *) fail "Python $v runs the program of the wheel" "$native" ;; esac
	check "Python $v: pip install, and the package does what it does in the tree" \
		env -u PYTHONPATH PATH="$env/bin:/usr/bin:/bin" VRAMCAST="$native" TMP="$TMP" python tests/python/package.py
	check "Python $v: the script and python -m are the program" sh -c '[ "$("$1/bin/vramcast" --version)" = "$("$1/bin/python" -m vramcast --version)" ]' sh "$env"
done
case $seen in *' 3.'*' 3.'*) pass "Pythons tried:$seen" ;; *) fail "at least two Pythons" "tried:$seen" ;; esac

python3 -m venv "$TMP/sdist" && check "pip builds the source distribution without other packages" \
	"$TMP/sdist/bin/python" -m pip install -q --no-index "$(echo "$d"/*.tar.gz)"
check "and the program of it runs" "$TMP/sdist/bin/vramcast" sim -q --no-advice traces/decomfl.vct -g t4
check "mypy --strict finds nothing" "$TOOLS/bin/mypy" --strict -p vramcast

"$TOOLS/bin/pip" install -q --force-reinstall --no-deps "$wheel" > /dev/null 2>&1
cat > "$TMP/notebook.ipynb" <<'N'
{"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
 "cells": [{"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": null,
  "source": "import vramcast\nanswer = vramcast.sim('traces/decomfl.vct', gpu='t4', picture=True)\nanswer"},
  {"cell_type": "code", "id": "b", "metadata": {}, "outputs": [], "execution_count": null, "source": "answer.to_frame()"}]}
N
cp -r traces "$TMP/traces"
check "a notebook runs" env -u VRAMCAST timeout 300 "$TOOLS/bin/jupyter-nbconvert" --to html --execute --output page.html "$TMP/notebook.ipynb"
check "with the picture and pandas' table in it" sh -c 'grep -q "<svg" "$1" && grep -q "dataframe" "$1"' sh "$TMP/page.html"
finish
