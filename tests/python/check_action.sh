#!/bin/sh
# check_action.sh - the steps of the Action as a runner takes them for `uses: vramcast/vramcast@v1`: the repository is cloned at its tag
# v1, in a root of its own that has a compiler and Python, no network, no index of packages and nothing of this tree. pip builds
# and installs what is in the clone. Needs root, for the root.
. tests/support/tap.sh
[ "$(id -u)" = 0 ] && unshare -mnp -f true 2> /dev/null || { skip "a clean root" "unshare is not allowed here"; finish; }
python=$(command -v "${PYTHON:-python3}") && base=$("$python" -c 'import sys, ensurepip, tomllib; print(sys.base_prefix)' 2> "$TMP/python.log") ||
	{ skip "a clean root" "it wants Python 3.11 with pip: $(tail -n 1 "$TMP/python.log")"; finish; }
root=$TMP/root action=/work/_actions/vramcast/vramcast/v1
mkdir -p "$root/usr" "$root/proc" "$root/dev" "$root/tmp" "$root/etc/alternatives" "$root$base" "$root/root"
git clone -q . "$TMP/origin" && git -C "$TMP/origin" tag -f v1 > /dev/null &&
	git clone -q --depth 1 --branch v1 "file://$TMP/origin" "$root$action" 2> "$TMP/clone.log" || { fail "the clone at v1" "$(cat "$TMP/clone.log")"; finish; }
for dir in bin sbin lib lib32 lib64 libx32; do [ ! -L /$dir ] || cp -d /$dir "$root/"; done
cp /etc/ld.so.cache /etc/passwd "$root/etc/"
printf '[user]\n\tname = runner\n\temail = runner@example.com\n[safe]\n\tdirectory = *\n' > "$root/root/.gitconfig"
cat > "$TMP/inside.sh" <<'E2'
set -e
root=$1 base=$2 action=$3
mount --make-rprivate /
for dir in /usr /etc/alternatives "$base"; do
	[ "$dir" = "$root" ] || { mount --bind "$dir" "$root$dir" && mount -o remount,bind,ro "$root$dir"; }
done
mount -t proc proc "$root/proc"
for device in null zero urandom; do : > "$root/dev/$device"; mount --bind /dev/$device "$root/dev/$device"; done
ln -sfn /proc/self/fd "$root/dev/fd"
exec chroot "$root" /usr/bin/env -i PATH="$base/bin:/usr/bin:/bin" HOME=/root LC_ALL=C.UTF-8 TMP=/tmp PIP_DISABLE_PIP_VERSION_CHECK=1 sh -ec '
	python3 -m venv /venv && export PATH=/venv/bin:$PATH && cd "$1" && CLEAN_ROOT=1 exec python tests/python/ci.py' - "$action"
E2
unshare -mnp -f sh "$TMP/inside.sh" "$root" "$base" "$action" > "$TMP/steps" 2> "$TMP/steps.log"; rc=$?
[ $rc = 0 ] && pass "the steps ran" || fail "the steps ran" "exit code $rc" "$(cat "$TMP/steps.log")" "$(grep -A 20 '^not ok' "$TMP/steps")"
sed -n 's/^ok [0-9]* - //p' "$TMP/steps" > "$TMP/names"
while read -r name; do case $name in *'# SKIP'*) fail "${name%% #*}" "skipped: $name" ;; *) pass "$name" ;; esac; done < "$TMP/names"
[ -s "$TMP/names" ] || fail "there were tests"
finish
