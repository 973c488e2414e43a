#!/bin/sh
# env.sh - an environment with PyTorch, from wheels that are made up and a folder in place of an index.
. tests/support/tap.sh
command -v python3 > /dev/null && python3 -c 'import venv, ensurepip' 2> /dev/null || { skip "env" "no python3 with venv"; finish; exit; }
case $VRAMCAST in /*) ;; *) VRAMCAST=$PWD/$VRAMCAST ;; esac
XDG_CACHE_HOME=$TMP/cache PIP_NO_INDEX=1 PIP_FIND_LINKS=$TMP/wheels PIP_DISABLE_PIP_VERSION_CHECK=1 UV_NO_INDEX=1 UV_FIND_LINKS=$TMP/wheels UV_CACHE_DIR=$TMP/uv
export XDG_CACHE_HOME PIP_NO_INDEX PIP_FIND_LINKS PIP_DISABLE_PIP_VERSION_CHECK UV_NO_INDEX UV_FIND_LINKS UV_CACHE_DIR
unset VIRTUAL_ENV PYTHONPATH
run env 2.10; expect "what cannot be fetched is one sentence" 1 '' 'vramcast env: PyTorch 2.10 could not be installed'
check "and leaves nothing" test ! -e "$TMP/cache/vramcast/env/2.10"
mkdir "$TMP/wheels"; library=$(dirname "$VRAMCAST")/libvramcast_trace.so; [ -f "$library" ] || library=/proc/self/exe # something that is ELF
PYTHONPATH=tests/support python3 - "$TMP/wheels" "$library" << 'P'
from wheels import wheel
needs = ['filelock', 'nvidia-cudnn-cu12==9.1.0; platform_system == "Linux"', "nvidia-cublas-cu12==12.8", "triton==3.5", 'opt-einsum; extra == "opt"']
for version in ("2.10.0", "2.10.1", "2.9.1"):
    wheel("torch", version, {"torch/__init__.py": f"import types\n__version__ = '{version}'\n_C = types.SimpleNamespace()\nbackends = types.SimpleNamespace(cuda=types.SimpleNamespace(is_built=lambda: False))\n"}, needs)
wheel("nvidia_cudnn_cu12", "9.1.0", {"nvidia/cudnn/lib/libcudnn.so.9": "x" * 2500000})
for name in ("filelock", "numpy", "triton", "nvidia_cublas_cu12"):
    wheel(name, "1.0", {name + "/__init__.py": ""})
P
run env 2.10; expect "PyTorch of that version is made" 0 "cache/vramcast/env/2.10/bin/python" 'PyTorch 2.10.1 with nvidia-cudnn-cu12==9.1.0: 3 MB to fetch'
python=$TMP/cache/vramcast/env/2.10/bin/python
check "the newest of 2.10, with what it needs" "$python" -c 'import torch, filelock, numpy, nvidia.cudnn; assert torch.__version__ == "2.10.1"'
check "without the libraries of CUDA" sh -c '! "$1" -c "import triton" 2> /dev/null && ! "$1" -c "import nvidia_cublas_cu12" 2> /dev/null' - "$python"
mv "$TMP/wheels" "$TMP/gone"; run env 2.10; expect "the second time nothing is fetched" 0 "env/2.10/bin/python"; mv "$TMP/gone" "$TMP/wheels"
run env --list; expect "it is listed with its size" 0 '^2.10 +[0-9,]+ MB  .*env/2.10/bin/python$'
rm "$TMP/cache/vramcast/env/2.10/ready"; run env --list; expect "what is not whole says so" 0 'not whole'
mv "$TMP/wheels" "$TMP/gone"; run dryrun -g t4 --torch 2.10 -- python3 x.py
expect "and is not used" 2 '' "there is no such environment, and 'vramcast env 2.10' could not make it"; mv "$TMP/gone" "$TMP/wheels"
run dryrun -q -g t4 --no-record --torch 2.10 -- python3 -c 'print("ran")'; expect "a dry run makes it anew" 0 '^ran$' 'PyTorch 2.10.1 with'
mkdir -p "$TMP/user/lib/mine"; python3 -m venv --without-pip "$TMP/u"; echo 'x = 7' > "$("$TMP/u/bin/python" -c 'import site; print(site.getsitepackages()[0])')/mine.py"
run dryrun -q -g t4 --no-record --torch 2.10 -- "$TMP/u/bin/python" -c 'import torch, mine; print(torch.__version__, mine.x)'
expect "a dry run has that PyTorch, and the user's packages behind it" 0 '^2\.10\.1 7$'
run dryrun -g t4 --torch 2.10 -- torchrun x.py; expect "for a python only" 2 '' 'torchrun is no python'
run env --remove 2.10; expect "it is removed" 0
run env --remove 2.10; expect "once" 1 '' 'there is no environment 2.10'
for bad in "" "2" "2.x" "2.10.1.1" "../2.10" "2.10 2.9" "2.10 --list"; do run env $bad; expect "env $bad" 2 '' 'one of: vramcast env|is no version of PyTorch'; done
finish
