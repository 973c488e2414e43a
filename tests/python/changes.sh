#!/bin/sh
# changes.sh - what python/change_hook.py changes in a program, on a stand-in for torch.
command -v python3 > /dev/null || { echo "1..0 # SKIP no python3"; exit 0; }
cat python/after.py python/change_hook.py python/budget_hook.py > "$TMP/sitecustomize.py"
exec python3 tests/python/changes.py "$TMP"
