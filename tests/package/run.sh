#!/usr/bin/env bash
# run.sh BUILD_DIRECTORY torch|no-torch
set -euo pipefail
build=$1
torch=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/tune-package-XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() {
  echo "error: $*" >&2
  exit 1
}
expect() { # expect "what it is about" "text to be found" "where"
  [[ $3 == *"$2"* ]] || fail "$1: expected \"$2\" in: $3"
}
expect_none() {
  [[ $3 != *"$2"* ]] || fail "$1: did not expect \"$2\" in: $3"
}

cmake --install "$build" --prefix "$work/prefix" >"$work/install.log"
# Nothing of the build or the sources may be needed any more: the install tree is moved.
mv "$work/prefix" "$work/tune"
if grep -rIlF -e "$build" "$work/tune" --include='*.cmake'; then
  fail "the package names the build folder"
fi

# The public headers, by name, and no others.
public=$(sed -n 's/^  \(.*\.h\)$/\1/p' "$here/../../config/public_headers.cmake")
if [[ $torch != torch ]]; then public=$(grep -v torch <<<"$public"); fi
installed=$(cd "$work/tune/include/tune-cpp" && find . -type f -printf '%P\n')
diff <(sort <<<"$public") <(sort <<<"$installed") || fail "these headers are installed or not"

cmake -G Ninja -S "$here/consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/tune" \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" \
  -DWITH_TORCH="$([[ $torch == torch ]] && echo ON || echo OFF)"
cmake --build "$work/build" -j 2

# tune::torch goes with the LibTorch it was compiled with, and with no other.
if [[ $torch == torch ]]; then
  built_with=$(sed -nE 's#^set\(TUNE_TORCH_DIR "(.*)"\)$#\1#p' <(sed 's/^ *//' "$work"/tune/lib*/cmake/tune/tune-config.cmake))
  mkdir -p "$work/other/torch"
  ln -s "$built_with"/{lib,include} "$work/other/torch"
  echo "__version__ = '2.98.7'" >"$work/other/torch/version.py"
  said=$(cmake -G Ninja -S "$here/consumer" -B "$work/refused" -DCMAKE_PREFIX_PATH="$work/tune" \
    -DTUNE_TORCH_DIR="$work/other" -DWITH_TORCH=ON 2>&1) && fail "another LibTorch was taken: $said"
  expect "the other LibTorch" "$work/other/torch is 2.98.7: set TUNE_TORCH_DIR to one of" \
    "$(tr -s '\n ' ' ' <<<"$said")"
fi

mkdir "$work/run"
cd "$work/run"
expect "the program" "best slope 3" "$("$work/build/program" --name p --cpus 2 --quiet)"

"$work/build/contracts" || fail "the user's own parts"

cat >sweep.yaml <<YAML
plugin: ../build/libplugin.so
trainable: Line
config: {slope: {grid_search: [1, 3, 2]}}
metric: height
stop: {training_iteration: 2}
YAML
expect "the plugin's sweep" '{"slope":3}' \
  "$("$work/tune/bin/tune" run sweep.yaml --name s --cpus 2 --quiet | tr -d ' ')"

# By pkg-config, without CMake.
PKG_CONFIG_PATH=$(dirname "$(find "$work/tune" -name tune.pc)")
export PKG_CONFIG_PATH
expect "the version of pkg-config" "$("$work/tune/bin/tune" --version)" "tune $(pkg-config --modversion tune)"
# shellcheck disable=SC2046
c++ -std=c++20 "$here/consumer/program.cc" $(pkg-config --cflags --libs tune) -o by_pkg_config
expect "the program by pkg-config" "best slope 3" "$(./by_pkg_config --name k --cpus 2 --quiet)"

# The manual page, and completion as bash asks for it.
expect "the manual page" ".TH TUNE 1" "$(cat "$work/tune/share/man/man1/tune.1")"
mkdir -p results/net && echo '{}' >results/net/experiment.json
completed=$(PATH=$work/tune/bin:$PATH bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
  _tune; echo "${COMPREPLY[*]}"' - "$work/tune/share/bash-completion/completions/tune" tune best results/n)
[[ $completed == results/net ]] || fail "bash completes to: $completed"

# A plugin holds the worker loop and no more: no store, no messaging, no YAML; one symbol is exported.
libraries=$(ldd "$work/build/libplugin.so")
for library in hiredis zmq yaml torch; do
  expect_none "what the plugin links" "$library" "$libraries"
done
expect "what the plugin exports" " tune_plugin" "$(nm -D --defined-only "$work/build/libplugin.so")"
expect_none "what the plugin exports" "tune4" \
  "$(nm -D --defined-only "$work/build/libplugin.so" | grep -E ' [TDB] ' || true)"

if [[ $torch == torch ]]; then
  expect "the torch program" "same numbers 1" "$("$work/build/torch_program")"
fi

# The GPU part is taken from the install tree: something else in its place is seen.
if [[ -e $build/lib/libtune_torch_cuda.so ]]; then
  part=$(find "$work/tune" -name libtune_torch_cuda.so)
  [[ -n $part ]] || fail "the GPU part is not installed"
  echo | c++ -x c++ -shared -fPIC -o "$part" -
  expect "the program that sees a GPU" "the library does not export tune_cuda_part" \
    "$(CUDA_VISIBLE_DEVICES=0 "$work/build/torch_program" 2>&1)"
fi
