#!/usr/bin/env bash
# Fuzzes every target for a while, with AddressSanitizer and UBSan. Needs clang++ and its libFuzzer.
#
#   bash tests/fuzz/run.sh [seconds of each target, 10] [targets]
#
# New inputs are gathered in build-fuzz/corpus. One that crashes is left in build-fuzz and named: put it
# into tests/fuzz/corpus/<target> with the fix.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-10}
targets=("${@:2}")
if [[ ${#targets[@]} -eq 0 ]]; then targets=(frames journal json messages page page_server text yaml); fi

if ! command -v clang++ >/dev/null ||
  ! clang++ -fsanitize=fuzzer -x c++ - -o /dev/null 2>/dev/null \
    <<<'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'; then
  echo "fuzz: skipped: there is no clang++ with libFuzzer (Debian: clang)"
  exit 0
fi

cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -j "$(bash config/jobs.sh)" --target "${targets[@]/#/fuzz_}"
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
for target in "${targets[@]}"; do
  mkdir -p "build-fuzz/corpus/$target"
  echo "fuzz: $target for $seconds s"
  build-fuzz/bin/fuzz_"$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
    -malloc_limit_mb=256 -max_len=20000 -print_final_stats=1 \
    -artifact_prefix="build-fuzz/$target-" "build-fuzz/corpus/$target" "tests/fuzz/corpus/$target" \
    >"build-fuzz/$target.log" 2>&1 || { tail -60 "build-fuzz/$target.log"; exit 1; }
  grep -E "number_of_executed_units|peak_rss_mb" "build-fuzz/$target.log"
done
