#!/usr/bin/env bash
# presets.sh SOURCE_DIRECTORY [-DNAME=VALUE...]
#
# The quickstart builds with the preset default, tests/run.sh with ci, in one folder: with the compiler
# that the tests are run with, both give the same commands, so that nothing is built twice.
set -euo pipefail
source "$(dirname "$0")/checks.sh"
source=$1
shift
work=$(mktemp -d "${TMPDIR:-/tmp}/tune-presets-XXXXXX")
trap 'rm -rf "$work"' EXIT

# The commands that would build everything, one a line.
commands_of() { # commands_of PRESET [-DNAME=VALUE...]
  (cd "$source" && cmake --preset "$@" -B "$work/build" >"$work/log" 2>&1) ||
    fail "configuring: $(cat "$work/log")"
  ninja -C "$work/build" -t commands all | sed -e '/^ninja: /d' | sort
}

commands_of default "$@" >"$work/default"
[[ $(wc -l <"$work/default") -ge 100 ]] || fail "too few commands: $(cat "$work/default")"
commands_of ci "$@" >"$work/ci"
grep -q -e ' -Werror ' "$work/ci" || fail "the tests do not take warnings as errors"
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:.*=//p' "$work/build/CMakeCache.txt")
version=$("$compiler" -dumpfullversion)
if [[ $version != 12.* ]]; then
  ! grep -q -e ' -Werror ' "$work/default" || fail "warnings of compiler $version stop the quickstart"
  skip "the compiler is not GCC 12 but $version"
fi
diff "$work/default" "$work/ci" || fail "tests/run.sh builds again what the quickstart has built"
