#!/usr/bin/env bash
# without_torch.sh SOURCE_DIRECTORY BUILD_DIRECTORY [-DNAME=VALUE...]
#
# Configures the preset no-torch with the settings of a build that has LibTorch, and compares: when
# every command that builds without LibTorch and every test that runs there is one of this build too,
# what this build compiles and passes is compiled and passed without LibTorch. Only what such a build
# installs differs: that is installed and used.
set -euo pipefail
source "$(dirname "$0")/checks.sh"
source=$1
build=$2
shift 2
here=$source/tests/package
work=$(mktemp -d "${TMPDIR:-/tmp}/tune-without-torch-XXXXXX")
trap 'rm -rf "$work"' EXIT

# The commands that would build everything in a folder, one a line. The benchmark of the start-up is told
# of the torch plugin, where there is one.
commands_of() {
  ninja -C "$1" -t commands all | sed -e "/^ninja: /d" -e "s#$1#BUILD#g" \
    -e 's# -DTUNE_TORCH_PLUGIN=[^ ]*##' | sort
}
tests_of() {
  grep -rh --include=CTestTestfile.cmake '^add_test' "$1" | grep -v 'package/install_tree' |
    sed -E -e "s#$1#BUILD#g" -e 's# "-DTUNE_WITH_TORCH=[A-Z]+"##' | sort
}
is_part() { # is_part "what these are" SMALL LARGE at_least
  local more
  more=$(comm -23 "$work/$2" "$work/$3")
  [[ -z $more ]] || fail "$1 differ without LibTorch: $more"
  [[ $(wc -l <"$work/$2") -ge $4 ]] || fail "too few $1 without LibTorch: $(cat "$work/$2")"
}

grep -q '^CMAKE_GENERATOR:INTERNAL=Ninja$' "$build/CMakeCache.txt" || skip "$build is not built with ninja"
export TUNE_TORCH_DIR=$work/nowhere
(cd "$source" && cmake --preset no-torch -B "$work/build" "$@" >"$work/log") ||
  fail "configuring: $(cat "$work/log")"
commands_of "$work/build" >"$work/commands"
commands_of "$build" >"$work/torch_commands"
is_part "commands" commands torch_commands 100
tests_of "$work/build" >"$work/tests"
tests_of "$build" >"$work/torch_tests"
is_part "tests" tests torch_tests 50
if grep -E 'libtorch|torch_cpu|libc10|torch/include' "$work/commands"; then
  fail "LibTorch is used without LibTorch"
fi

# Configured again, nothing is to be compiled again.
cmake "$work/build" >"$work/log"
commands_of "$work/build" >"$work/again"
cmp "$work/commands" "$work/again" || fail "configuring again changes commands"

# The same commands made these.
libraries=$(ninja -C "$work/build" -t targets all |
  sed -nE 's#^((core|schedulers|trainables|tune)/.*): CXX_STATIC_LIBRARY_LINKER.*#\1#p')
programs="bin/tune bin/tune-worker"
if [[ -e $build/bin/tune-view ]]; then programs+=" bin/tune-view"; fi
# shellcheck disable=SC2086
(cd "$build" && cp --parents $programs lib/libtune_signals.so $libraries "$work/build")
bash "$here/run.sh" "$work/build" no-torch
[[ ! -e $work/build/trainables/torch ]] || fail "a build folder of trainables/torch was made"
