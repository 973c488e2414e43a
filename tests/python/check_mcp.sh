#!/bin/sh
# check_mcp.sh - see check_mcp.py.
. tests/support/tap.sh
. tests/python/tools.sh
VRAMCAST=$(realpath "$VRAMCAST") PYTHONDONTWRITEBYTECODE=1 exec "$TOOLS/bin/python" tests/python/check_mcp.py
