#!/usr/bin/env bash
# Sets up, builds everything with warnings as errors, and runs every test. The last line counts them.
#
#   bash tests/run.sh [arguments of ctest, such as -R asha]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

bash config/setup.sh
cmake --preset ci
cmake --build --preset ci -j "$(bash config/jobs.sh)"

log=build/tests.log
status=0
ctest --test-dir build --output-on-failure -j "$(nproc)" "$@" 2>&1 | tee "$log" || status=$?

# "97% tests passed, 3 tests failed out of 120"
summary=$(grep -E 'tests passed, .* tests? failed out of' "$log" | tail -n 1 || true)
if [ -z "$summary" ]; then
  echo "no test ran"
  exit 1
fi
failed=$(sed -E 's/.*, ([0-9]+) tests? failed.*/\1/' <<<"$summary")
total=$(sed -E 's/.* out of ([0-9]+).*/\1/' <<<"$summary")
skipped=$(grep -cE '\*\*\*Skipped' "$log" || true)
echo "$((total - failed - skipped)) passed, $failed failed, $skipped skipped"
[ "$total" -gt 0 ] || exit 1
exit "$status"
