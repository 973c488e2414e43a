#!/bin/sh
# doctor.sh - what works here, and what mends the rest, with Pythons and PyTorches that are made up.
. tests/support/tap.sh
case $VRAMCAST in /*) ;; *) VRAMCAST=$PWD/$VRAMCAST ;; esac
# python FOLDER PACKAGE: an interpreter that finds its PyTorch there
python() { mkdir -p "$1/bin"; printf '#!/bin/sh\nprintf %%s "%s"\n' "$2" > "$1/bin/python3"; cp "$1/bin/python3" "$1/bin/python"; chmod +x "$1"/bin/*; }
# torch FOLDER VERSION CUDA: such a PyTorch
torch() { mkdir -p "$1/torch"; printf "__version__ = '%s'\ncuda: Optional[str] = %s\n" "$2" "$3" > "$1/torch/version.py"; }
ability() { # NAME YES-OR-NO [PATTERN]
	line=$(sed -n '/^What works/,$p' "$TMP/out" | grep "^  $1  ")
	case "$line" in *" $2  "*) ;; *) fail "$1: $2" "$out"; return ;; esac
	printf '%s\n' "$line" | grep -qE -- "${3:-.}" && pass "$1: $2 $3" || fail "$1: $2" "$line"
}
unset VIRTUAL_ENV CONDA_PREFIX DISPLAY WAYLAND_DISPLAY
python "$TMP/none" ""; PATH=$TMP/none/bin:$PATH
run doctor; expect "without PyTorch not all works" 1 'none/bin/python3'
VIRTUAL_ENV=$TMP/nowhere run doctor; check "an environment that is gone is not looked at" test "${out#*nowhere}" = "$out"
ability "dry run" no 'no Python here has PyTorch +.*none/bin/python3 -m pip install --no-deps torch'
ability "report" yes
torch "$TMP/cpu" 2.9.1+cpu None; python "$TMP/c" "$TMP/cpu/torch"
VIRTUAL_ENV=$TMP/c; export VIRTUAL_ENV; run doctor
ability "dry run" no 'this PyTorch was built without CUDA'
torch "$TMP/gpu" 2.10.0+cu130 "'13.0'"; python "$TMP/g" "$TMP/gpu/torch"
CONDA_PREFIX=$TMP/g; export CONDA_PREFIX; unset VIRTUAL_ENV; run doctor
expect "the PyTorch of conda" 1 '^  conda +2.10.0\+cu130 +13.0 +no '
ability "dry run" yes
ability "predict with cuDNN's algorithms" no 'no cuDNN beside PyTorch +python3 -m pip install --no-deps nvidia-cudnn-cu13'
mkdir -p "$TMP/gpu/nvidia/cudnn/lib"; : > "$TMP/gpu/nvidia/cudnn/lib/libcudnn.so.9"; run doctor
ability "predict with cuDNN's algorithms" yes
[ -e /proc/driver/nvidia/version ] || ability "record" no "no NVIDIA card: only the CPU's allocator +vramcast dryrun"
cp "$VRAMCAST" "$TMP/alone"; VRAMCAST=$TMP/alone; PATH=/usr/bin:/bin
if sanitized; then skip "a program without its libraries" "its library is not to be moved"; else run doctor; ability "attach" no "own libraries are not beside it +pip install --force-reinstall"; fi
run doctor now; expect "it takes nothing" 2 '' "takes nothing \('now'\)"
finish
