#!/bin/sh
# schema.sh - see schema.py.
command -v python3 > /dev/null || { echo "ok 1 - schema # SKIP no python3"; echo 1..1; exit 0; }
VRAMCAST=$(realpath "$VRAMCAST") PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1 exec "${PACKED:-python3}" tests/python/schema.py
