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

# Seven places a core, of which a test that keeps one busy takes four: tests/CMakeLists.txt. Processes
# of one test may starve beside those of others, so a test that fails runs once more; if it passes
# then, that is said below.
status=0
ctest --test-dir build --output-on-failure --repeat until-pass:2 -j $((7 * $(nproc))) \
  "${leave_out[@]}" "$@" || status=$?

# ctest runs one file of tests at a time; what counts are the test cases in them, as its last run has
# left them. One that the machine cannot run says "skipped: why" and passes.
awk '
  /^[0-9]+\/[0-9]+ Testing: / {
    file = $3
    if (failed[file] > 0) again[file] = 1
    passed[file] = failed[file] = skipped[file] = counted = 0
  }
  /^\[doctest\] test cases:/ {
    gsub(/[^0-9 ]/, " ")
    passed[file] += $2; failed[file] += $3; counted = 1
  }
  /^skipped: / { skipped[file]++; if (!(file in again)) print }
  /^Test Passed\./ && !counted { passed[file]++ }
  /^Test Failed\./ && failed[file] == 0 { failed[file]++ }
  END {
    for (file in passed) { all += passed[file]; bad += failed[file]; left_out += skipped[file] }
    for (file in again) if (failed[file] == 0) print "passed only when it ran again: " file
    printf "%d passed, %d failed%s\n", all - left_out, bad,
      left_out ? sprintf(", %d skipped", left_out) : ""
    exit all == 0
  }
' build/Testing/Temporary/LastTest.log
exit "$status"
