#!/usr/bin/env bash
# Installs the packages that tune needs: Debian packages, and LibTorch into a folder of its own.
# Installs only missing parts, so that running it again is quick. As root, or with sudo.
#
#   bash config/setup.sh [--without-torch]
#   bash config/setup.sh --bundle DIR            gathers the packages for a machine without network
#   bash config/setup.sh --from DIR --prefix P   unpacks them there, without root; LibTorch is to be
#                                                there (pip's torch 2.11 or newer), g++ and cmake
#
# TUNE_TORCH_DIR  a LibTorch that is there already (2.11 or newer): none is installed
# TUNE_CACHE_DIR  where LibTorch goes; default ${XDG_CACHE_HOME:-~/.cache}/tune
set -euo pipefail

readonly packages=(
  g++ cmake make ninja-build ccache pkg-config
  libhiredis-dev libzmq3-dev cppzmq-dev libyaml-cpp-dev libfmt-dev nlohmann-json3-dev
  libeigen3-dev liblbfgspp-dev libboost1.81-dev libcli11-dev libre2-dev libcurl4 doctest-dev
  zlib1g-dev libssl-dev libjpeg62-turbo-dev libpng-dev
  redis-server dataset-fashion-mnist patch python3 python3-pip
)
# The same version in config/FindTuneTorch.cmake. All that a CPU build needs: libtorch_cpu.so wants
# libcudart and libcupti beside it and nothing else of CUDA.
readonly torch_version=2.11.0
readonly wheels=("torch==$torch_version" nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)
readonly torch_dir=${TUNE_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/tune}/torch-$torch_version

cleanup=()
torch_group=""  # of processes, while LibTorch is fetched beside the packages
on_exit() {
  local path
  if [[ -n $torch_group ]]; then
    kill -- "-$torch_group" 2>/dev/null || :
    wait "$torch_group" || :
  fi
  for path in "${cleanup[@]+"${cleanup[@]}"}"; do "${as_root[@]}" rm -rf -- "$path"; done
}
trap on_exit EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() { echo "setup: $*"; }
fail() {
  echo "setup: error: $*" >&2
  exit 1
}

as_root=()
become_root() {
  [[ $(id -u) -eq 0 ]] && return
  command -v sudo >/dev/null ||
    fail "packages are missing and this is neither root nor is there sudo; as root run: apt-get install $*"
  as_root=(sudo)
}

is_installed() {
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# A package that brings a service starts it, unless this file says no.
forbid_services() {
  local policy=/usr/sbin/policy-rc.d
  [[ -e $policy ]] && return
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
  cleanup+=("$policy")
}

lists_are_new=0
install_packages() {
  command -v apt-get >/dev/null ||
    fail "this script knows Debian's packages only; install the like of: ${packages[*]}"
  local package missing=()
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  if [[ ${#missing[@]} -eq 0 ]]; then
    say "all $# Debian packages are there"
    return
  fi
  say "installing Debian packages: ${missing[*]}"
  become_root "${missing[@]}"
  forbid_services
  if [[ $lists_are_new -eq 0 ]]; then "${as_root[@]}" apt-get update -q; fi
  lists_are_new=1
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}"
  # Experiments run servers of their own: none is wanted at the next start of the machine either.
  if [[ " ${missing[*]} " == *" redis-server "* && -d /run/systemd/system ]]; then
    "${as_root[@]}" systemctl disable --quiet redis-server || say "redis-server stays enabled"
  fi
}

is_whole() {
  local file
  for file in torch/include/torch/csrc/distributed/c10d/reducer.hpp torch/lib/libtorch_cpu.so \
    torch/lib/libc10.so nvidia/cu13/lib/libcudart.so.13 nvidia/cu13/lib/libcupti.so.13; do
    [[ -e $1/$file ]] || return 1
  done
}

# Only libraries and headers are used, so any python that has pip and finds a wheel will do.
fetch_wheels() {
  local target=$1 python
  for python in python3 /usr/bin/python3; do
    "$python" -m pip --version >/dev/null 2>&1 || continue
    say "fetching with $(command -v "$python"): ${wheels[*]}"
    mkdir -p "$target.tmp"
    if TMPDIR=$target.tmp "$python" -m pip --disable-pip-version-check install --no-deps \
      --no-compile --only-binary :all: --root-user-action ignore --progress-bar off \
      --target "$target" "${wheels[@]}"; then
      return
    fi
    rm -rf -- "$target"
  done
  fail "could not fetch LibTorch with pip (its words are above): try again, or set TUNE_TORCH_DIR" \
    "to a LibTorch $torch_version or newer, or go without: config/setup.sh --without-torch"
}

# Downloads aside and renames, so that a broken download is never taken for LibTorch.
install_torch() {
  if [[ -n ${TUNE_TORCH_DIR:-} ]]; then
    say "LibTorch is taken from TUNE_TORCH_DIR=$TUNE_TORCH_DIR"
    return
  fi
  if is_whole "$torch_dir"; then
    say "LibTorch is there: $torch_dir"
    return
  fi
  mkdir -p "${torch_dir%/*}"
  exec 9>"$torch_dir.lock"
  flock --nonblock 9 || { say "waiting for another set-up"; flock 9; }
  if ! is_whole "$torch_dir"; then
    say "installing LibTorch $torch_version (530 MB to fetch, 1.2 GB on disk) into $torch_dir"
    local partial=$torch_dir.partial
    rm -rf -- "$partial" "$partial.tmp" "$torch_dir"
    cleanup+=("$partial" "$partial.tmp")
    fetch_wheels "$partial"
    is_whole "$partial" || fail "the wheels ${wheels[*]} lack files that tune is built with"
    mv -T -- "$partial" "$torch_dir"
  fi
  flock --unlock 9
  say "LibTorch is there: $torch_dir"
}

# Pip fetches LibTorch while apt-get installs the packages but its own.
install_all() {
  if [[ -n ${TUNE_TORCH_DIR:-} ]] || is_whole "$torch_dir"; then
    install_packages "${packages[@]}"
    install_torch
    return
  fi
  is_installed python3-pip || install_packages python3 python3-pip
  set -m  # a group of processes of its own
  (
    cleanup=()
    trap on_exit EXIT
    install_torch
  ) &
  torch_group=$!
  set +m
  install_packages "${packages[@]}"
  local status=0
  wait "$torch_group" || status=$?
  torch_group=""
  [[ $status -eq 0 ]] || exit "$status"
}

# shellcheck source=bundle.sh
source "$(dirname "${BASH_SOURCE[0]}")/bundle.sh"

with_torch=1
bundle="" from="" prefix=""
while [[ $# -gt 0 ]]; do
  case $1 in
    --without-torch) with_torch=0 ;;
    --bundle | --from | --prefix)
      [[ -n ${2:-} ]] || fail "$1 wants a folder"
      printf -v "${1#--}" %s "$2"
      shift
      ;;
    -h | --help)
      sed -n '2,11s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    *) fail "unknown argument $1 (there are --without-torch, --bundle, --from and --prefix)" ;;
  esac
  shift
done

if [[ -n $bundle && -n $from$prefix ]]; then fail "--bundle goes alone"; fi
if [[ -n $from && -z $prefix ]]; then fail "--from wants --prefix P, a new folder to unpack into"; fi
if [[ -z $from && -n $prefix ]]; then fail "--prefix wants --from DIR, a folder that --bundle made"; fi
if [[ -n $bundle ]]; then
  make_bundle "$(realpath -m -- "$bundle")"
elif [[ -n $from ]]; then
  unpack_bundle "$from" "$prefix"
else
  if [[ $with_torch -eq 1 ]]; then install_all; else install_packages "${packages[@]}"; fi
fi
say "done"
