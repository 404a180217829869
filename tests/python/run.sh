#!/usr/bin/env bash
# run.sh PYTHON BUILD FILE [TEST]...: the tests of a file with that Python and build. 77: there is no Python.
set -euo pipefail
if [[ -z $1 ]]; then
  echo "skipped: there is no python3 (3.9 or newer)"
  exit 77
fi
export TUNE_PROGRAM=$2/bin/tune PYTHONDONTWRITEBYTECODE=1 TUNE_PYTHON=$1
export PYTHONPATH=$2/share/tune/python
exec "$1" -W error::ResourceWarning "${@:3}"
