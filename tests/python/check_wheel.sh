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
case $tag in manylinux_2_28_*) pass "it runs where glibc is 2.28" ;; *) [ -n "$VRAMCAST_CC" ] && pass "another libc was asked for" || fail "it runs where glibc is 2.28" "$tag" ;; esac
check "twine finds both fit for PyPI" "$TOOLS/bin/twine" check --strict "$d"/*
check "it has below 12 MB" test "$(wc -c < "$wheel")" -lt 12000000
make -s wheel DIST="$TMP" DEPS=skip > /dev/null 2>&1
check "the same tree gives the same bytes" sh -c 'cmp "$1" "$3/${1##*/}" && cmp "$2" "$3/${2##*/}"' sh "$wheel" "$(echo "$d"/*.tar.gz)" "$TMP"

# Every Python of PATH and of pyenv, once per version, and the newest from Debian's unstable where none is here.
new=$TOOLS/python3.14
command -v python3.14 > /dev/null || PATH=$PATH:$TOOLS/bin timeout 600 tests/python/debian_python.sh 3.14 "$new" > "$TMP/debian.log" 2>&1 ||
	skip "Python 3.14" "it cannot be fetched: $(tail -n 1 "$TMP/debian.log")"
pythons=${PYTHONS:-$(for p in python3.9 python3.10 python3.11 python3.12 python3.13 python3.14 /usr/bin/python3 "$HOME"/.pyenv/versions/3.*/bin/python3 "$new/bin/python3.14"; do
	command -v "$p"; done)}
export JUPYTER_PATH="$TMP/jupyter"
mkdir "$TMP/book"; cp -r traces "$TMP/traces"
# notebook PYTHON VERSION: the notebook of the examples, with that Python as its kernel
notebook() {
	mkdir -p "$JUPYTER_PATH/kernels/v$2"
	printf '{"argv": ["%s", "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "%s", "language": "python"}' "$1" "$2" > "$JUPYTER_PATH/kernels/v$2/kernel.json"
	env -u VRAMCAST -u PYTHONPATH timeout 300 "$TOOLS/bin/jupyter-nbconvert" --to notebook --execute --ExecutePreprocessor.kernel_name="v$2" \
		--output-dir "$TMP/book" --output "$2.ipynb" examples/notebook.ipynb && "$TOOLS/bin/jupyter-nbconvert" --to html "$TMP/book/$2.ipynb" &&
	"$TOOLS/bin/python" tests/python/notebook.py "$TMP/book/$2.ipynb" "$TMP/book/$2.html" "$2"
}
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
	for test in package examples; do
		check "Python $v: pip install, and $test.py finds what it finds in the tree" \
			env -u PYTHONPATH PATH="$env/bin:/usr/bin:/bin" VRAMCAST="$native" TMP="$TMP" python tests/python/$test.py
		rm -rf "$TMP/examples"
	done
	check "Python $v: man pages and completions are there" test -s "$env/share/man/man1/vramcast-sim.1" -a -s "$env/share/bash-completion/completions/vramcast" -a -s "$env/share/fish/vendor_completions.d/vramcast.fish"
	check "Python $v: the script and python -m are the program" sh -c '[ "$("$1/bin/vramcast" --version)" = "$("$1/bin/python" -m vramcast --version)" ]' sh "$env"
	if "$env/bin/python" -m pip install -q ipykernel > "$TMP/pip.log" 2>&1; then check "Python $v: the notebook runs, with its pictures" notebook "$env/bin/python" "$v"
	else skip "Python $v: the notebook" "no ipykernel: $(tail -n 1 "$TMP/pip.log")"; fi
done
for v in 3.9 3.10 3.11 3.12 3.13 3.14; do case $seen in *" $v "*) ;; *) missing="$missing $v" ;; esac; done
[ -z "$missing" ] && pass "Pythons tried:$seen" || { [ -n "$PYTHONS" ] && pass "Pythons chosen:$seen" || skip "Pythons$missing" "none is here; tried:$seen"; }

"$TOOLS/bin/pip" install -q uv pipx > /dev/null 2>&1
export UV_CACHE_DIR="$TMP/uv" PIPX_HOME="$TMP/pipx" PIPX_BIN_DIR="$TMP/pipx/bin"
if [ -x "$TOOLS/bin/uvx" ]; then check "uvx --from runs it" sh -c '"$1/bin/uvx" --offline --from "$2" vramcast traces/decomfl.vct 2>&1 | grep -q "is a recording"' - "$TOOLS" "$wheel"
else skip "uvx" "it cannot be fetched"; fi
if [ -x "$TOOLS/bin/pipx" ]; then check "pipx installs it" sh -c '"$1/bin/pipx" install --pip-args=--no-index "$2" && "$PIPX_BIN_DIR/vramcast" --version' - "$TOOLS" "$wheel"
else skip "pipx" "it cannot be fetched"; fi

python3 -m venv "$TMP/sdist" && check "pip builds the source distribution without other packages" \
	"$TMP/sdist/bin/python" -m pip install -q --no-index "$(echo "$d"/*.tar.gz)"
check "and the program of it runs" "$TMP/sdist/bin/vramcast" sim -q --no-advice traces/decomfl.vct -g t4

# Packages that the wheel does not ask for, from here on.
"$TOOLS/bin/pip" install -q --force-reinstall --no-deps "$wheel" > /dev/null 2>&1
check "mypy --strict finds nothing" "$TOOLS/bin/mypy" --strict -p vramcast
# stubtest imports each module: the trainers only where they are, and auto not into stubtest itself.
for module in huggingface:transformers lightning:lightning accelerate:accelerate; do "$TOOLS/bin/python" -c "import ${module#*:}" 2> /dev/null || echo "vramcast.${module%:*}"; done > "$TMP/allowed"
check "stubtest finds the types to be those of what runs$(sed 's/^/, but for /' "$TMP/allowed" | tr -d '\n')" env -u VRAMCAST VRAMCAST_AUTO=1 PYTHONPATH=python MYPYPATH=python \
	"$TOOLS/bin/python" -m mypy.stubtest vramcast --ignore-missing-stub --allowlist "$TMP/allowed"
check "examples with pandas and pyarrow print what they say" env -u PYTHONPATH PATH="$TOOLS/bin:/usr/bin:/bin" TMP="$TMP" \
	VRAMCAST="$("$TOOLS/bin/python" -c 'import os; os.environ.pop("VRAMCAST", 0); import vramcast.program as p; print(p.path())')" python tests/python/examples.py
grep -q SKIP "$TMP/check.log" && fail "none of them was left out" "$(grep SKIP "$TMP/check.log")"
finish
