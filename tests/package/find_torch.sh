#!/usr/bin/env bash
# find_torch.sh SOURCE_DIRECTORY
#
# Which LibTorch is taken, and which headers the GPU part is built with, from folders that look like
# LibTorch and CUDA.
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
torch_dir=-DTUNE_TORCH_DIR=$work/site
expect() { # expect TEXT: of a new configuration
  local said
  rm -rf "$work/build"
  said=$(CUDA_HOME=$work/toolkit cmake -G Ninja -S "$source/tests/package/find_torch" -B "$work/build" \
    -DMODULES="$source/config" $torch_dir 2>&1) ||
    { echo "error: $said" >&2; exit 1; }
  [[ $said == *"$1"* ]] || { echo "error: expected \"$1\" in: $said" >&2; exit 1; }
}

# LibTorch as pip installs it, of a version.
torch_in() { # torch_in FOLDER VERSION
  touch_all "$1/torch" lib/libtorch_cpu.so lib/libtorch_cuda.so include/torch/torch.h \
    include/torch/csrc/distributed/c10d/reducer.hpp
  echo "__version__ = '$2'" >"$1/torch/version.py"
  mkdir "$1/torch-$2.dist-info"
  printf "Requires-Dist: nvidia-%s==%s; platform_system == 'Linux'\n" nccl-cu13 2.98.7 \
    cudnn-cu13 9.98.1 >"$1/torch-$2.dist-info/METADATA"
}

site=$work/site
torch_in "$site" 2.11.0
header "$site/nvidia/nccl/include/nccl.h" 2.98.7
touch_all "$site/nvidia/cu13/include" cuda_runtime_api.h cublas_v2.h cusolverDn.h cusparse.h
# A toolkit with little more than the compiler, and an nccl.h of its own.
touch_all "$work/toolkit/include" crt/host_defines.h cuda_runtime_api.h cccl/nv/target
header "$work/toolkit/include/nccl.h" 2.98.6

expect "headers for CUDA: $site/nvidia/nccl/include;$work/toolkit/include;$work/toolkit/include/cccl;$site/nvidia/cu13/include"

# Or the compiler's headers beside LibTorch, from pip.
touch_all "$site/nvidia/cu13/include" crt/host_defines.h
expect "headers for CUDA: $site/nvidia/nccl/include;$site/nvidia/cu13/include"
rm -r "$site/nvidia/cu13/include/crt"

rm -r "$site/nvidia/nccl"
expect "LibTorch was built with NCCL 2.98.7, $work/toolkit/include/nccl.h is 2.98.6"

header "$work/toolkit/include/nccl.h" 2.98.7
rm "$site/nvidia/cu13/include/cusparse.h"
expect "there is no cusparse.h in $work/toolkit/include, $work/toolkit/include/cccl, $site"

rm "$site/torch/lib/libtorch_cuda.so"
expect "is one for CPUs"

# Without a folder to look in: the set-up's, and the active python's.
torch_dir=
export TUNE_CACHE_DIR=$work/cache
unset TUNE_TORCH_DIR
torch_in "$work/cache/torch-2.11.0" 2.11.0
torch_in "$work/python" 2.12.1
mkdir "$work/bin"
printf '#!/bin/sh\necho %s\n' "$work/python/torch" >"$work/bin/python3"
chmod 755 "$work/bin/python3"
PATH=$work/bin:$PATH
# Both lack cuDNN and NCCL.
expect "LibTorch: $work/cache/torch-2.11.0/torch"
mkdir -p "$work/python/nvidia/cudnn" "$work/python/nvidia/nccl"
expect "LibTorch: $work/python/torch"
rmdir "$work/python/nvidia/cudnn"
expect "LibTorch: $work/cache/torch-2.11.0/torch"
# One for CPUs has no need of them, and no CUDA part either.
rm "$work/python/torch/lib/libtorch_cuda.so" "$work/python"/torch-*/METADATA
expect "LibTorch: $work/cache/torch-2.11.0/torch"
# Where there is no CUDA, the set-up's is the one that was tested.
torch_in "$work/other" 2.12.1
mkdir -p "$work/other/nvidia/cudnn" "$work/other/nvidia/nccl"
printf '#!/bin/sh\necho %s\n' "$work/other/torch" >"$work/bin/python3"
expect "LibTorch: $work/other/torch"
rm -r "$work/toolkit"
[[ -e /proc/driver/nvidia/version || -d /usr/local/cuda ]] ||
  expect "LibTorch: $work/cache/torch-2.11.0/torch"
