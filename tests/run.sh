#!/usr/bin/env bash
# Sets up, builds with warnings as errors, and runs the tests. The last line counts them.
#
#   bash tests/run.sh [--all] [arguments of ctest, such as -R schedulers]
#
# --all also builds and runs the benchmarks, each in a tiny setting, plants bugs in copies of the code,
# runs sweeps on a Slurm and an sshd where they are installed (tests/cluster/setup.sh), and builds once
# more without LibTorch and from a bundle: for every commit, not for every machine.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

benchmarks=OFF
leave_out=(-LE thorough)
if [[ ${1:-} == --all ]]; then
  benchmarks=ON
  leave_out=()
  export TUNE_CLUSTER_TESTS=${TUNE_CLUSTER_TESTS:-quick}
  shift
fi

bash config/setup.sh
cmake --preset ci -DTUNE_BUILD_BENCH=$benchmarks
cmake --build --preset ci -j "$(bash config/jobs.sh)"

# Seven places a core, of which a test that keeps one busy takes four: tests/CMakeLists.txt.
status=0
ctest --test-dir build --output-on-failure -j $((7 * $(nproc))) "${leave_out[@]}" "$@" || status=$?

# ctest runs one file of tests at a time; what counts are the test cases in them. One that the
# machine cannot run says "skipped: why" and passes.
awk '
  /^\[doctest\] test cases:/ {
    gsub(/[^0-9 ]/, " ")
    cases += $1; passed += $2; failed += $3
  }
  /^skipped: / { skipped++; print }
  /^Test (Passed|Failed)\./ && !counted { if ($2 == "Passed.") passed++; else failed++ }
  /^\[doctest\]/ { counted = 1 }
  /^[0-9]+\/[0-9]+ Testing:/ { counted = 0 }
  END {
    printf "%d passed, %d failed%s\n", passed - skipped, failed,
      skipped ? sprintf(", %d skipped", skipped) : ""
    exit passed == 0
  }
' build/Testing/Temporary/LastTest.log
exit "$status"
