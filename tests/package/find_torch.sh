#!/usr/bin/env bash
# find_torch.sh SOURCE_DIRECTORY
#
# Which headers the GPU part is built with, from folders that look like LibTorch and CUDA.
set -euo pipefail
source=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/tune-find-torch-XXXXXX")
trap 'rm -rf "$work"' EXIT

header() { # header FILE VERSION
  mkdir -p "${1%/*}"
  IFS=. read -r major minor patch <<<"$2"
  printf '#define NCCL_MAJOR %s\n#define NCCL_MINOR %s\n#define NCCL_PATCH %s\n' \
    "$major" "$minor" "$patch" >"$1"
  echo "#define NCCL_VERSION_CODE $((major * 10000 + minor * 100 + patch))" >>"$1"
}
touch_all() { # touch_all FOLDER FILE...
  local folder=$1 file
  shift
  for file in "$@"; do
    mkdir -p "$folder/$(dirname "$file")"
    touch "$folder/$file"
  done
}
expect() { # expect TEXT: of a new configuration
  local said
  rm -rf "$work/build"
  said=$(CUDA_HOME=$work/toolkit cmake -G Ninja -S "$source/tests/package/find_torch" -B "$work/build" \
    -DMODULES="$source/config" -DTUNE_TORCH_DIR="$work/site" 2>&1) ||
    { echo "error: $said" >&2; exit 1; }
  [[ $said == *"$1"* ]] || { echo "error: expected \"$1\" in: $said" >&2; exit 1; }
}

# As pip installs it.
site=$work/site
touch_all "$site/torch" lib/libtorch_cpu.so lib/libtorch_cuda.so include/torch/torch.h \
  include/torch/csrc/distributed/c10d/reducer.hpp
echo "__version__ = '2.11.0'" >"$site/torch/version.py"
mkdir "$site/torch-2.11.0.dist-info"
echo "Requires-Dist: nvidia-nccl-cu13==2.98.7; platform_system == 'Linux'" \
  >"$site/torch-2.11.0.dist-info/METADATA"
header "$site/nvidia/nccl/include/nccl.h" 2.98.7
touch_all "$site/nvidia/cu13/include" cuda_runtime_api.h cublas_v2.h cusolverDn.h cusparse.h
# A toolkit with little more than the compiler, and an nccl.h of its own.
touch_all "$work/toolkit/include" crt/host_defines.h cuda_runtime_api.h cccl/nv/target
header "$work/toolkit/include/nccl.h" 2.98.6

expect "headers for CUDA: $site/nvidia/nccl/include;$work/toolkit/include;$work/toolkit/include/cccl;$site/nvidia/cu13/include"

rm -r "$site/nvidia/nccl"
expect "LibTorch was built with NCCL 2.98.7, $work/toolkit/include/nccl.h is 2.98.6"

header "$work/toolkit/include/nccl.h" 2.98.7
rm "$site/nvidia/cu13/include/cusparse.h"
expect "there is no cusparse.h in "

rm "$site/torch/lib/libtorch_cuda.so"
expect "is one for CPUs"
