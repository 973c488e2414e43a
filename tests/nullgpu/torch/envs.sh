# SPDX-License-Identifier: Apache-2.0
# envs.sh - sourced: torch_env VERSION prints the Python of a cached environment with that PyTorch.
#
# Environments live outside the tree, in $VRAMCAST_TORCH_ENVS or ${XDG_CACHE_HOME:-~/.cache}/vramcast,
# and are made with pip on first use (a gigabyte or two each). Nothing of NVIDIA's is installed.
# relay PREFIX FILE: the TAP lines of a program that ran inside become ours, failures with what follows them.
ENVS=${VRAMCAST_TORCH_ENVS:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast}

torch_env() {
	dir=$ENVS/torch-$1
	# it cannot be imported without the null GPU, only looked up
	if ! "$dir/bin/python" -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("torch"))' \
			2> /dev/null; then
		mkdir -p "$ENVS"
		case $1 in newest) want=torch ;; *) want=torch==$1 ;; esac
		{ python3 -m venv "$dir" && "$dir/bin/pip" install -q --no-deps "$want" &&
			"$dir/bin/pip" install -q numpy filelock typing-extensions sympy networkx jinja2 fsspec; } \
			> "$TMP/pip.log" 2>&1 || return 1
	fi
	echo "$dir/bin/python"
}

wheels=${VRAMCAST_CUDNN_WHEELS:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-oracle/cudnn}
# The cuDNN that a PyTorch asks for, unpacked outside the tree; nothing of it is looked into.
cudnn_wheel() { # PYTHON: prints where its library is
	want=$("$1" -c "import importlib.metadata as m; print(*[r.split(';')[0].strip() for r in m.requires('torch')
		if r.startswith(('nvidia-cudnn-cu', 'nvidia-cublas-cu', 'nvidia-cuda-nvrtc-cu'))])")
	v=$(echo "$want" | sed -n 's/.*nvidia-cudnn-cu[0-9]*==\([0-9]*\.[0-9]*\.[0-9]*\).*/\1/p')
	[ -n "$v" ] || return 1
	for one in $want; do
		name=${one%%==*}
		[ -e "$wheels/$v/.$name" ] && continue
		# into a folder of its own, then together: pip leaves alone what exists
		rm -rf "$TMP/pip"
		"$1" -m pip install -q --no-deps --target "$TMP/pip" "$one" > "$TMP/pip.log" 2>&1 || return 1
		mkdir -p "$wheels/$v"; cp -a "$TMP/pip/." "$wheels/$v/"; : > "$wheels/$v/.$name"
	done
	echo "$wheels/$v/nvidia/cudnn/lib/libcudnn.so.9"
}

relay() {
	while IFS= read -r line; do
		case $line in
		"ok - "*) pass "$1${line#ok - }" ;;
		"not ok - "*) fail "$1${line#not ok - }" "$(grep -A 12 -F -- "$line" "$2")" ;;
		esac
	done < "$2"
}
