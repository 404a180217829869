#!/usr/bin/env bash
# subproject.sh SOURCE_DIRECTORY BUILD_DIRECTORY [-DNAME=VALUE...]
#
# A project that has tune by add_subdirectory or FetchContent. When its commands for tune's libraries are
# those of the build, so are the libraries: they are taken from there, and only the project's own program is
# compiled, linked, run and installed.
set -euo pipefail
source "$(dirname "$0")/checks.sh"
source=$1
build=$2
shift 2
work=$(mktemp -d "${TMPDIR:-/tmp}/tune-subproject-XXXXXX")
trap 'rm -rf "$work"' EXIT

grep -q '^CMAKE_GENERATOR:INTERNAL=Ninja$' "$build/CMakeCache.txt" || skip "$build is not built with ninja"
readonly libraries=(core/libtune_core.a core/libtune_platform.a core/libtune_agent.a schedulers/libtune_schedulers.a
  trainables/libtune_trainables.a tune/libtune_tune.a)
# commands_of BUILD PREFIX: what would build the libraries, one command a line, without their places.
commands_of() {
  ninja -C "$1" -t commands "${libraries[@]/#/$2}" |
    sed -e "s#$1/$2#BUILD/#g" -e "s#$1#BUILD#g" |
    grep -o -e ' -[DIOWf][^ ]*' -e ' -isystem [^ ]*' -e ' -std=[^ ]*' -e ' -c [^ ]*' | sort | uniq -c
}

commands_of "$build" "" >"$work/commands"
[[ $(grep -c -e ' -c ' "$work/commands") -ge 6 ]] || fail "too few commands: $(cat "$work/commands")"
for way in add_subdirectory FetchContent; do
  prefix=tune/
  if [[ $way == FetchContent ]]; then prefix=_deps/tune-build/; fi
  cmake -G Ninja -S "$source/tests/package/subproject" -B "$work/$way" -DWAY=$way -DTUNE_SOURCE="$source" \
    -DCMAKE_INSTALL_PREFIX="$work/$way/installed" "$@" >"$work/log" 2>&1 ||
    fail "configuring with $way: $(cat "$work/log")"
  commands_of "$work/$way" $prefix >"$work/$way.commands"
  diff "$work/commands" "$work/$way.commands" || fail "with $way the libraries are built by other commands"
  (cd "$build" && cp --parents "${libraries[@]}" "$work/$way/$prefix")
  ninja -C "$work/$way" -t commands program | grep -F consumer/program.cc >"$work/own"
  [[ $(wc -l <"$work/own") == 2 ]] || fail "the program's own commands: $(cat "$work/own")"
  object=$(sed -n 's/.* -o \([^ ]*program\.cc\.o\) .*/\1/p' "$work/own" | head -1)
  (cd "$work/$way" && mkdir -p "$(dirname "$object")" && bash -e "$work/own") || fail "building with $way"
  mkdir -p "$work/run"
  said=$(cd "$work/run" && "$work/$way/program" --name $way --cpus 2 --quiet)
  [[ $said == *"best slope 3"* ]] || fail "the program built with $way said: $said"
  # A project that installs its program does not install tune.
  cmake --install "$work/$way" >"$work/log"
  [[ $(cd "$work/$way/installed" && find . -type f) == ./bin/program ]] ||
    fail "installed with $way: $(cd "$work/$way/installed" && find . -type f)"
done
