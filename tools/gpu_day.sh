#!/bin/sh
# The day a GPU is at hand: one command, at most nine minutes. See tools/gpu_day/__main__.py.
cd "$(dirname "$0")/.." || exit
PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}" exec "${PYTHON:-python3}" tools/gpu_day "$@"
