#!/bin/sh
# examples.sh - the examples of the Python package, by the first python3 on PATH.
command -v python3 > /dev/null || { echo "ok 1 - examples of the Python package # SKIP no python3"; echo 1..1; exit 0; }
VRAMCAST=$(realpath "$VRAMCAST") PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1 exec python3 tests/python/examples.py
