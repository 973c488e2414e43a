#!/bin/sh
# mcp.sh - see mcp_session.py.
command -v python3 > /dev/null || { echo "ok 1 - mcp # SKIP no python3"; echo 1..1; exit 0; }
VRAMCAST=$(realpath "$VRAMCAST") PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1 exec python3 tests/python/mcp_session.py
