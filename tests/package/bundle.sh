#!/usr/bin/env bash
# bundle.sh SOURCE_DIRECTORY
#
# Makes a bundle, then unpacks it and builds with it where there is no network and, as far as the
# machine lets a user do that, where the system's own copies of the packages cannot be found. With
# TUNE_TORCH_DIR it is configured with LibTorch, too.
set -euo pipefail
source "$(dirname "$0")/checks.sh"
source=$1
here=$source/tests/package

refused() { # refused "text of the error" command...
  local text=$1 said
  shift
  if said=$("$@" 2>&1); then fail "was not refused: $*"; fi
  [[ $said == *"$text"* ]] || fail "expected \"$text\" in: $said"
}
setup() { bash "$source/config/setup.sh" "$@"; }

# ---- Where there is no network ($2: the folder to work in)
build_with_bundle() {
  local work=$1 library
  if mount -t tmpfs none /usr/include/fmt 2>/dev/null; then
    local hidden
    for hidden in /usr/include/{fmt,hiredis,yaml-cpp,nlohmann,CLI,doctest,eigen3,LBFGSpp} \
      /usr/share/{pkgconfig,eigen3} \
      /usr/lib/*-linux-gnu/{cmake,pkgconfig} /usr/{lib,share}/cmake /usr/share/datasets; do
      [[ ! -d $hidden ]] || mount -t tmpfs none "$hidden"
    done
    for hidden in /usr/include/{jpeglib,png}.h /usr/include/*-linux-gnu/jconfig.h; do
      [[ ! -f $hidden ]] || mount --bind /dev/null "$hidden"
    done
    echo "the system's own packages are hidden"
  fi
  if (exec 3<>/dev/tcp/1.1.1.1/53) 2>/dev/null; then fail "there is a network"; fi
  mkdir "$work/prefix.partial" # somebody's own
  setup --from "$work/bundle" --prefix "$work/prefix/"
  [[ -d $work/prefix.partial ]] || fail "prefix.partial is gone"
  [[ $(echo "$work"/prefix*) == "$work/prefix $work/prefix.partial" ]] || fail "left: $(ls "$work")"
  refused "is there already" setup --from "$work/bundle" --prefix "$work/prefix"
  # shellcheck disable=SC1091
  source "$work/prefix/env.sh"

  local with_torch=OFF cache=$work/tune/CMakeCache.txt
  [[ -z ${TUNE_TORCH_DIR:-} ]] || with_torch=ON
  cmake -G Ninja -S "$source" -B "$work/tune" -DTUNE_WITH_TORCH=$with_torch \
    >"$work/configured.log" 2>&1 || fail "configuring: $(cat "$work/configured.log")"
  for library in fmt nlohmann_json yaml-cpp CLI11 Eigen3 doctest; do
    grep -q "^${library}_DIR:PATH=$work/prefix/" "$cache" ||
      fail "$library: $(grep "^${library}_DIR" "$cache")"
  done
  for library in hiredis zmq; do
    grep -q "_$library:FILEPATH=$work/prefix/" "$cache" ||
      fail "$library: $(grep "_$library:FILEPATH" "$cache")"
  done
  grep -q "^LBFGSpp_INCLUDE_DIR:PATH=$work/prefix/" "$cache" ||
    fail "LBFGSpp: $(grep "^LBFGSpp" "$cache")"
  if [[ $with_torch == ON ]]; then
    grep -q "Found TuneTorch: " "$work/configured.log" || fail "$(cat "$work/configured.log")"
    for library in JPEG_LIBRARY_RELEASE PNG_LIBRARY_RELEASE JPEG_INCLUDE_DIR PNG_PNG_INCLUDE_DIR; do
      grep -q "^$library:[A-Z]*=$work/prefix/" "$cache" ||
        fail "$library: $(grep "^$library" "$cache")"
    done
  fi

  cmake -G Ninja -S "$here/bundle" -B "$work/build" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror"
  cmake --build "$work/build"
  cmake --install "$work/build" --prefix "$work/installed"
  run_probe "$work" "$work/build/probe"
  run_probe "$work" "$work/installed/bin/probe"
}

run_probe() {
  local work=$1 probe=$2 libraries library said
  libraries=$(ldd "$probe" "$work/prefix/usr/lib/"*-linux-gnu/libzmq.so.5)
  for library in libfmt libyaml-cpp libhiredis libzmq libjpeg libpng; do
    [[ $libraries == *"$library"*"=> $work/prefix/"* ]] || fail "$probe: $library: $libraries"
  done
  # In the surroundings of a shell that knows nothing of the prefix.
  ldd "$probe" | grep -E 'sodium|norm|pgm|krb5' | grep -qv "=> $work/prefix/" &&
    fail "$probe needs libraries of the system: $(ldd "$probe")"
  "$TUNE_REDIS_SERVER" --port 0 --unixsocket "$work/redis" --save "" --dir "$work" \
    >"$work/redis.log" &
  local server=$!
  for _ in {1..500}; do
    [[ ! -S $work/redis ]] || break
    sleep 0.02
  done
  said=$(env -i "$probe" "$work/redis") || fail "$probe: $said; $(cat "$work/redis.log")"
  kill "$server"
  wait "$server" || true
  [[ $said == "42 PONG doctest 2" ]] || fail "$probe: $said"
}

if [[ ${2:-} != "" ]]; then
  build_with_bundle "$2"
  exit 0
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/tune-bundle-XXXXXX")
trap 'rm -rf "$work"' EXIT

refused "--from wants --prefix" setup --from "$work"
refused "--prefix wants --from" setup --prefix "$work/p"
refused "--bundle goes alone" setup --bundle "$work/b" --prefix "$work/p"
refused "--bundle wants a folder" setup --bundle
refused "is not a bundle" setup --from "$work" --prefix "$work/p"
mkdir "$work/full" && touch "$work/full/x"
refused "holds something" setup --bundle "$work/full"

command -v apt-get >/dev/null || skip "no apt-get"
[[ -n $(apt-cache policy libfmt-dev) ]] || skip "apt knows no packages: run apt-get update"
setup --bundle "$work/bundle" >"$work/bundle.log" 2>&1 || {
  cat "$work/bundle.log"
  skip "the packages could not be fetched"
}
cat "$work/bundle.log"
mib=$(($(du -sk --apparent-size "$work/bundle" | cut -f1) / 1024))
[[ $mib -lt 60 ]] || fail "the bundle has $mib MiB"

cp -r "$work/bundle" "$work/damaged"
for package in "$work"/damaged/libfmt*.deb; do printf x >>"$package"; done
refused "is damaged" setup --from "$work/damaged" --prefix "$work/p"
refused "only letters, digits" setup --from "$work/bundle" --prefix "$work/a b"
mkdir "$work/old"
printf '#!/bin/sh\necho cmake version 3.20.1\n' >"$work/old/cmake"
chmod 755 "$work/old/cmake"
PATH=$work/old:$PATH refused "cmake is 3.20.1, 3.25 or newer is needed: where there is a network" \
  setup --from "$work/bundle" --prefix "$work/p"
[[ ! -e $work/p ]] || fail "a refused prefix was made"

if unshare -rnm true 2>/dev/null; then
  unshare -rnm bash "${BASH_SOURCE[0]}" "$source" "$work"
else
  skip "this machine lets nobody switch the network off (unshare -rnm)"
fi
