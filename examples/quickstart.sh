#!/usr/bin/env bash
# From a clone to a best configuration: sets up, builds the example, and searches learning rate and
# momentum of a small network on Fashion-MNIST with ASHA. Run again, it is quick to start.
#
#   bash examples/quickstart.sh [options of `tune run`, such as --seed 2]
#
# Paths in options start at the clone's folder.
set -euo pipefail
cd "$(dirname "$0")/.."

bash config/setup.sh
cmake --preset default
cmake --build --preset default --target tune-program tune-worker fashion_mnist predict \
  -j "$(bash config/jobs.sh)"

storage=results before=""
for option in "$@"; do
  if [[ $before == --storage ]]; then storage=$option; fi
  if [[ $option == --storage=* ]]; then storage=${option#*=}; fi
  before=$option
done

best=$(build/bin/tune run config/fashion_mnist.yaml "$@" | tail -n 1)
echo
echo "best configuration: $best"
echo "all trials:         $(realpath "$storage/latest")/results.csv"
echo "test it again:      build/examples/predict $storage/latest"
