#!/bin/bash
# recorded.sh - transforms predict changes that were really made and recorded, within the stated limits.
cd "$(dirname "$0")/../.." || exit 1
TAP=1 TMPDIR="${TMP:-/tmp}" exec tests/transforms/check.sh < tests/transforms/recordings/pairs
