#!/bin/sh
# examples.sh - the examples of the Python package, by a Python with packages.
command -v python3 > /dev/null || { echo "ok 1 - examples of the Python package # SKIP no python3"; echo 1..1; exit 0; }
VRAMCAST=$(realpath "$VRAMCAST") PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1 exec "${PACKED:-python3}" tests/python/examples.py
