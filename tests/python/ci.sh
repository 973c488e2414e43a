#!/bin/sh
# ci.sh - see ci.py.
command -v python3 > /dev/null || { echo "ok 1 - ci # SKIP no python3"; echo 1..1; exit 0; }
VRAMCAST=$(realpath "$VRAMCAST") PYTHONPATH=$PWD/python PYTHONDONTWRITEBYTECODE=1 exec python3 tests/python/ci.py
