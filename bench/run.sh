#!/usr/bin/env bash
# Runs the benchmarks in their real settings, one after another, and prints their tables. Builds
# nothing. bench_export is left out: it takes minutes by itself.
#
#   bash bench/run.sh [--tiny] [build folder]
#
# Their files are removed only at the end: for minutes after many files were removed, ext4 is slow
# to make new ones. So leave some minutes between two runs.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
tiny=()
if [ "${1:-}" = --tiny ]; then
  tiny=(--tiny)
  shift
fi
bin=${1:-$root/build}/bin

TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

echo "commit $(git -C "$root" describe --always --dirty), $(nproc) cores, $(uname -r), load $(cut -d' ' -f1 /proc/loadavg)"
for name in start_up trials command reports training_step group_step resume asha_decision file_logger \
    driver_memory suggestions dense_layer busy_slots cluster reattach relay; do
  echo
  "$bin/bench_$name" --keep "${tiny[@]}"
done
echo
"$bin/bench_relay" --between-namespaces --keep "${tiny[@]}" || [ $? = 77 ]  # it says why it is skipped
for name in simulated_cluster ddp_step all_reduce resnet18_step optimizer_step checkpoint image_folder; do
  [ -x "$bin/bench_$name" ] || continue
  echo
  echo "== $name"
  "$bin/bench_$name" "${tiny[@]}"
done
