#!/usr/bin/env bash
# Builds what uses LibTorch against the newest one, instead of the one that config/setup.sh installs,
# and runs its tests: c10d promises no stable interface. Fetches the wheel once (0.6 GB).
#
#   bash tests/torch/newest.sh [version]        default 2.15.0
#
# TUNE_CACHE_DIR  where it goes; default ${XDG_CACHE_HOME:-~/.cache}/tune
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
version=${1:-2.15.0}
torch_dir=${TUNE_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/tune}/torch-$version
build=$root/build-torch-$version

install() {
  python3 -m pip --disable-pip-version-check install --no-deps --no-compile --only-binary :all: \
    --root-user-action ignore --progress-bar off --target "$torch_dir.tmp" "$@"
}

# libtorch_cpu.so of a wheel for CUDA wants these two beside it and nothing else of CUDA; the wheel
# says, maybe by way of the package cuda-toolkit, in which versions.
cuda_wheels() {
  local metadata=("$torch_dir".tmp/torch-*.dist-info/METADATA) requirement
  requirement=$(sed -nE 's/^Requires-Dist: cuda-toolkit\[[^]]*\] *==([0-9.]+).*/\1/p' "${metadata[0]}" | head -n 1)
  if [[ -n $requirement ]]; then
    echo "nvidia-cuda-runtime==${requirement%.*}.*" "nvidia-cuda-cupti==${requirement%.*}.*"
  else
    sed -nE 's/^Requires-Dist: (nvidia-cuda-(runtime|cupti)[a-z0-9-]*==[0-9.]+).*/\1/p' "${metadata[0]}" | tr '\n' ' '
  fi
}

if [[ ! -e $torch_dir/torch/lib/libtorch_cpu.so ]]; then
  rm -rf -- "$torch_dir.tmp"
  install "torch==$version"
  read -r -a wheels <<<"$(cuda_wheels)"
  [[ ${#wheels[@]} -eq 0 ]] || install "${wheels[@]}"
  rm -rf -- "$torch_dir"
  mv "$torch_dir.tmp" "$torch_dir"
fi

cmake -S "$root" -B "$build" -G Ninja -DTUNE_WITH_TORCH=ON -DTUNE_WERROR=ON -DTUNE_TORCH_DIR="$torch_dir"
cmake --build "$build" -j "$(bash "$root/config/jobs.sh")" \
  --target torch_tests torch_rank_tests torch_trial_tests torch_trainer_tests
ctest --test-dir "$build" --output-on-failure -L '^(torch|ranks|trials|trainer|gpu)$'
