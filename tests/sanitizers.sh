#!/usr/bin/env bash
# Builds without LibTorch under AddressSanitizer with UBSan, and under ThreadSanitizer, and runs the tests.
#
#   bash tests/sanitizers.sh [asan|tsan|both] [arguments of ctest]
#
# asan: every torch-free test but those of packages, which build with the compiler's own settings, and
#   those that count on the size or the speed of a plain build.
# tsan: the tests of code that has threads: the edges (redis, sockets, log), the driver's flushing of
#   log files, and the program as a whole; but for tests that count a program's threads (there is one
#   more), kill it at moments that fit the speed of a plain build, or run it in a fork of their own
#   beside a thread, whose id it is not to use again then.
set -euo pipefail
cd "$(dirname "$0")/.."
which=${1:-both}
arguments=("${@:2}")

# Workers and agents end by _exit and by signals, so leaks are looked for in the tests' own processes;
# a zygote forks before anything is allocated that it would have to free. A test that loads a library
# before libc loads it before the sanitizer, too. A rank that is to die of a signal dies of it.
ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:detect_leaks=1:handle_segv=0
export ASAN_OPTIONS+=:verify_asan_link_order=0
export LSAN_OPTIONS=report_objects=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# Forks of a process with threads go on: they execute another program, or are the agent.
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:handle_segv=0:suppressions=$PWD/tests/tsan_suppressions.txt

run() {
  local preset=$1
  shift
  cmake --preset "$preset" >/dev/null
  cmake --build --preset "$preset" -j "$(bash config/jobs.sh)"
  ctest --test-dir "build-$preset" --output-on-failure -j "$(nproc)" "$@"
}

if [[ $which != tsan ]]; then
  run asan --label-exclude 'package' "${arguments[@]+"${arguments[@]}"}"
fi
if [[ $which != asan ]]; then
  run tsan --label-regex 'core|platform|agent|trainables|tune|process|simulator' \
    --exclude-regex 'process/(disk|kill|loss|program|random_kill|stalled_driver)|tune/export/mlflow' \
    "${arguments[@]+"${arguments[@]}"}"
fi
