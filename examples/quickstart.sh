#!/usr/bin/env bash
# From a clone to the best configuration: sets up, builds, and searches learning rate and momentum of a
# small ConvNet on Fashion-MNIST with ASHA. Safe to run again; results go to ./results.
#
#   bash examples/quickstart.sh [options of `tune run`]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

bash "$root/config/setup.sh"
cd "$root"
cmake --preset default >/dev/null
cmake --build --preset default --target tune-program tune-worker fashion_mnist predict \
  -j "$(bash config/jobs.sh)"
exec build/bin/tune run config/fashion_mnist.yaml "$@"
