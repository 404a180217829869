#!/usr/bin/env bash
# run.sh BUILD_DIRECTORY torch|no-torch
set -euo pipefail
build=$1
torch=$2
here=$(cd "$(dirname "$0")" && pwd)
source "$here/checks.sh"
work=$(mktemp -d "${TMPDIR:-/tmp}/tune-package-XXXXXX")
trap 'rm -rf "$work"' EXIT

# An empty part of a search path is the working directory: a library in it would be loaded.
paths_of() { readelf -d "$@" | sed -nE 's/.*R(UN)?PATH.*: \[(.*)\]$/\2/p'; }
for file in "$build"/bin/* "$build"/lib/*.so; do
  case ":$(paths_of "$file" | sed 's/^$/:/')" in
    *::* | *?:) fail "$file looks for libraries in the working directory: $(paths_of "$file")" ;;
  esac
done

# Each fork of a zygote copies the mappings of these.
for name in zmq hiredis krb5; do
  expect_none "libraries of tune-worker" "lib$name" "$(ldd "$build/bin/tune-worker")"
done

cmake --install "$build" --prefix "$work/prefix" >"$work/install.log"
if paths_of "$work/prefix/bin/tune" | grep -F _lib; then fail "tune looks for a wheel's libraries"; fi
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
  -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" \
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

# A program in C as the trials, with the header of one file alone.
cc -std=c99 -Wall -Wextra -Wpedantic -Werror -I"$work/tune/include" "$here/consumer/trial.c" -o trial
cat >command.yaml <<'YAML'
command: [./trial, "${x}"]
config: {x: {grid_search: [3, 1, 2]}}
metric: loss
mode: min
restart: from_checkpoint
scheduler: {asha: {type: promote, max_t: 4, grace_period: 1, reduction_factor: 2}}
YAML
expect "the sweep of a program in C" '{"x":1}' "$("$work/tune/bin/tune" run command.yaml --name c --cpus 2 --quiet)"

# The manual page, and the scripts of completion.
expect "the manual page" ".TH TUNE 1" "$(cat "$work/tune/share/man/man1/tune.1")"
for file in bash-completion/completions/tune zsh/site-functions/_tune fish/vendor_completions.d/tune.fish; do
  shell=${file%%[-/]*}
  expect "completion of $shell" "$("$work/tune/bin/tune" completion "$shell")" "$(cat "$work/tune/share/$file")"
done

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
  # It opens libraries when it needs them, and finds them where they are installed.
  libraries=$(dirname "$(find "$work/tune" -name libtune_torch_name.so)")
  [[ -e $libraries/libtune_torch.a ]] || fail "libtune_torch_name.so is not installed beside libtune_torch.a"
  expect "the torch program's places" "$libraries" "$(readelf -d "$work/build/torch_program")"
fi

# The GPU part is taken from the install tree: something else in its place is seen.
if [[ -e $build/lib/libtune_torch_cuda.so ]]; then
  part=$(find "$work/tune" -name libtune_torch_cuda.so)
  [[ -n $part ]] || fail "the GPU part is not installed"
  echo | c++ -x c++ -shared -fPIC -o "$part" -
  expect "the program that sees a GPU" "the library does not export tune_cuda_part" \
    "$(CUDA_VISIBLE_DEVICES=0 "$work/build/torch_program" 2>&1)"
fi
