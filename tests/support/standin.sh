# standin.sh - sourced behind tap.sh: $train, a program in C on a stand-in for PyTorch's allocator
# (tests/tracer/torch_standin/train.c) that a dry run runs, and how often it ran.
own cc || { skip "a program on the stand-in" "no cc for ${ARCH:-this machine}"; finish; exit; }
py=$(python3 -c 'import sys; print(sys.executable)') || { skip "a program on the stand-in" "no python3"; finish; exit; }
B=$PWD/${BUILD:-build}; case $VRAMCAST in /*) ;; *) VRAMCAST=$PWD/$VRAMCAST ;; esac
mkdir -p "$TMP/site/torch/lib" "$TMP/own"; : > "$TMP/site/torch/__init__.py"
echo 'int cudnnGetVersion(void); int ask(void) { return cudnnGetVersion(); }' > "$TMP/want.c"
cc -shared -fPIC -Wl,--no-as-needed -o "$TMP/site/torch/lib/libtorch_cuda.so" "$TMP/want.c" -L"$B/nullgpu" -l:vcnull-libcudnn.so.9 -l:vcnull-libcudart.so.12
export LD_LIBRARY_PATH="$B/tests/tracer/torch/lib" PYTHONPATH="$TMP/site" XDG_CACHE_HOME="$TMP/cache" PATH="$(dirname "$py"):$PATH"
export RUNS="$TMP/runs" VRAMCAST_NULL_CUDNN_LIBRARY=; unset PYTORCH_CUDA_ALLOC_CONF
train=$B/tests/tracer/torch/lib/train
runs() { [ -e "$RUNS" ] && wc -l < "$RUNS" || echo 0; }
# ran NAME N: so often since the last time
ran() { touch "$RUNS"; if [ "$(runs)" = "$2" ]; then pass "$1"; else fail "$1" "runs: $(tr '\n' ' ' < "$RUNS"), expected $2"; fi; rm -f "$RUNS"; }
