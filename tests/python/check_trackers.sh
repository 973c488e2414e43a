#!/bin/sh
# check_trackers.sh - see check_trackers.py.
. tests/support/tap.sh
. tests/python/tools.sh
site=$TOOLS/trackers
[ -d "$site/wandb" ] && [ -d "$site/tensorboardX" ] || "$TOOLS/bin/pip" install -q --target "$site" tensorboard tensorboardX mlflow-skinny wandb > "$TMP/pip.log" 2>&1 ||
	{ skip "the trackers" "they cannot be installed: $(tail -n 1 "$TMP/pip.log")"; finish; }
VRAMCAST=$(realpath "$VRAMCAST") PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$PWD/python:$site" WANDB_SILENT=true MLFLOW_ALLOW_FILE_STORE=true \
	timeout 500 "$TOOLS/bin/python" tests/python/check_trackers.py 2> "$TMP/err" || tail -n 20 "$TMP/err" | sed 's/^/# /'
