#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# products.sh - a product takes the time that the card needs for what it is computed in.
. tests/support/tap.sh
mkdir -p "$TMP/lib"
for soname in libcuda.so.1 libcudart.so.12 libcublas.so.12 libcublasLt.so.12 libcudnn.so.9; do
	ln -sf "$PWD/$BUILD/nullgpu/vcnull-$soname" "$TMP/lib/$soname"
done
own python3 && py=$(python3 -c "import sys; print(sys.executable)") || { skip "products" "no python3 for ${ARCH:-this machine}"; finish; }
cat > "$TMP/products.py" <<'EOF'
import ctypes, sys
rt, blas, lt, dnn = [ctypes.CDLL(f"lib{n}") for n in
	("cudart.so.12", "cublas.so.12", "cublasLt.so.12", "cudnn.so.9")]
P, I, L = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
def event():
	e = P()
	rt.cudaEventCreateWithFlags(ctypes.byref(e), 0)
	rt.cudaEventRecord(e, None)
	return e
def show(name, call):
	ms, a = ctypes.c_float(), event()
	assert call() == 0
	b = event()
	rt.cudaEventSynchronize(b)
	rt.cudaEventElapsedTime(ctypes.byref(ms), a, b)
	print(name, round(ms.value * 1000))
N, one = 8192, None
h = P()
blas.cublasCreate_v2(ctypes.byref(h))
def gemm(kind, compute=68):
	return blas.cublasGemmEx(h, 0, 0, N, N, N, one, one, kind, N, one, kind, N, one, one, kind, N, compute)
def batched(kind):
	n = 2048
	return blas.cublasGemmStridedBatchedEx(h, 0, 0, n, n, n, one, one, kind, n, L(n * n), one, kind, n, L(n * n),
		one, one, kind, n, L(n * n), 64, 68)
def matmul(kind, compute=68):
	d, l = P(), P()
	lt.cublasLtMatmulDescCreate(ctypes.byref(d), compute, 0)
	lt.cublasLtMatrixLayoutCreate(ctypes.byref(l), kind, L(N), L(N), L(N))
	return lt.cublasLtMatmul(one, d, one, one, l, one, l, one, one, l, one, l, one, one, ctypes.c_size_t(0), one)
show("fp32", lambda: gemm(0))
show("fp32-allowed-tf32", lambda: gemm(0, 77))
show("fp16", lambda: gemm(2))
show("bf16", lambda: gemm(14))
show("fp64", lambda: gemm(1))
show("batched-bf16", lambda: batched(14))
show("lt-fp32", lambda: matmul(0))
show("lt-tf32", lambda: matmul(0, 77))
show("lt-bf16", lambda: matmul(14))
show("lt-fp8", lambda: matmul(28))
blas.cublasSetMathMode(h, 3)
show("sgemm-tf32", lambda: blas.cublasSgemm_v2(h, 0, 0, N, N, N))
def descriptor(kind, **attributes):
	d = P()
	dnn.cudnnBackendCreateDescriptor(kind, ctypes.byref(d))
	for name, (what, values) in attributes.items():
		t = {3: L, 1: I, 0: I, 15: P}[what]
		dnn.cudnnBackendSetAttribute(d, int(name[1:]), what, L(len(values)), (t * len(values))(*values))
	return d
def tensor(kind, *sizes):
	strides = [sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1]
	return descriptor(1, a901=(1, [kind]), a902=(3, sizes), a903=(3, strides))
def convolution(kind): # 64 images of 256 channels, 3 x 3
	x, w = tensor(kind, 64, 256, 64, 64), tensor(kind, 256, 256, 3, 3)
	c = descriptor(3, a102=(3, [1, 1]), a103=(3, [1, 1]), a105=(3, [1, 1]))
	op = descriptor(10, a702=(15, [c.value]), a703=(15, [w.value]), a704=(15, [x.value]), a705=(15, [x.value]))
	graph = descriptor(15, a801=(15, [op.value]))
	heuristic = descriptor(8, a200=(0, [0]), a201=(15, [graph.value]))
	config, n = descriptor(4), L()
	configs = (P * 1)(config.value)
	dnn.cudnnBackendGetAttribute(heuristic, 202, 15, L(1), ctypes.byref(n), configs)
	plan, handle = descriptor(7, a401=(15, [config.value])), P()
	dnn.cudnnCreate(ctypes.byref(handle))
	return dnn.cudnnBackendExecute(handle, plan, None)
show("convolution-tf32", lambda: convolution(0))
show("convolution-bf16", lambda: convolution(9))
def recurrent(what, kind): # an LSTM of 4096, 64 steps of 512 samples
	r, x, h = P(), P(), P()
	dnn.cudnnCreateRNNDescriptor(ctypes.byref(r))
	dnn.cudnnCreateRNNDataDescriptor(ctypes.byref(x))
	dnn.cudnnSetRNNDescriptor_v8(r, 0, 2, 2, 0, 0, kind, 0, 0, N // 2, N // 2, N // 2, 1, None, 0)
	dnn.cudnnSetRNNDataDescriptor(x, kind, 0, 64, 512, N // 2, (I * 512)(*[64] * 512), None)
	dnn.cudnnCreate(ctypes.byref(h))
	return what(h, r, 1, None, x) if what != dnn.cudnnRNNBackwardData_v8 else what(h, r, None, x)
show("rnn-bf16", lambda: recurrent(dnn.cudnnRNNForward, 9))
show("rnn-tf32", lambda: recurrent(dnn.cudnnRNNForward, 0))
show("rnn-data-bf16", lambda: recurrent(dnn.cudnnRNNBackwardData_v8, 9))
show("rnn-weights-bf16", lambda: recurrent(dnn.cudnnRNNBackwardWeights_v8, 9))
def normalize(*sizes): # a block for each channel
	x, h, n = P(), P(), len(sizes)
	dnn.cudnnCreateTensorDescriptor(ctypes.byref(x))
	dnn.cudnnSetTensorNdDescriptor(x, 0, n, (I * n)(*sizes), (I * n)(*[1] * n))
	dnn.cudnnCreate(ctypes.byref(h))
	return dnn.cudnnBatchNormalizationForwardTrainingEx(h, 0, 0, None, None, x)
show("norm", lambda: normalize(64, 32, 56, 56))
show("norm-of-a-line", lambda: normalize(4096))
EOF
play() { # CC FP32 TF32 HALF FP64 FP8, 10^12 a second
	env LD_LIBRARY_PATH="$TMP/lib" VRAMCAST_NULL_CC="$1" VRAMCAST_NULL_FLOPS="$2" VRAMCAST_NULL_FLOPS_TF32="$3" \
		VRAMCAST_NULL_FLOPS_FP16="$4" VRAMCAST_NULL_FLOPS_BF16="$4" VRAMCAST_NULL_FLOPS_FP64="$5" \
		VRAMCAST_NULL_LOG=3 VRAMCAST_NULL_FLOPS_FP8="$6" VRAMCAST_NULL_BANDWIDTH=2039000000000 "$py" "$TMP/products.py" > "$TMP/times" 2> "$TMP/err"
}
takes() { # NAME MICROSECONDS: within 1 %
	check "$1 takes about $2 us" awk -v n="$1" -v want="$2" \
		'$1 == n { d = $2 / want; ok = d > 0.99 && d < 1.01 } END { exit !ok }' "$TMP/times"
}
play 8.0 19500000000000 156000000000000 312000000000000 19500000000000 624000000000000 || fail "the program runs" "$(cat "$TMP/err")"
# 2 x 8192^3 operations: 1.0995e12
takes fp32 56385
takes fp32-allowed-tf32 7048
takes fp16 3524
takes bf16 3524
takes fp64 56385
takes batched-bf16 3524
takes lt-fp32 56385
takes lt-tf32 7048
takes lt-bf16 3524
takes lt-fp8 1762
takes sgemm-tf32 7048
# 2 x 64 x 256 x 64 x 64 x 256 x 9 operations: 3.0923e11
takes convolution-tf32 1982
takes convolution-bf16 991
# read: 64 x 512 rows of 4096 + 2 x 16384, and weights of 16384 x 4096 x (1 + 64 steps); written: the rows of 16384
takes rnn-bf16 5990
takes rnn-tf32 11980
takes rnn-data-bf16 5990
takes rnn-weights-bf16 1843
sed -n 's/^null gpu: //p' "$TMP/err" > "$TMP/works"
check "what each computes, reads and writes is told" diff tests/nullgpu/products.txt "$TMP/works"
finish
