# For config/setup.sh: the Debian packages as files (make_bundle), and a prefix without root, network
# or Debian made of them (unpack_bundle).

# Packages of the machine that unpacks it, which has a C++ compiler: never in a bundle.
readonly not_bundled=" g++ cmake ccache patch python3 python3-pip libc6 libgcc-s1 libstdc++6 libcrypt1 "
readonly bundle_limit_mib=60

# The libraries and tools that packages need, by name. What -dev packages want for static linking
# stays out: nothing here links so.
needed_by() {
  apt-cache depends -i "$@" | sed -n 's/^ *|\{0,1\}\(Pre\)\{0,1\}Depends: \([^<].*\)$/\2/p' |
    grep -E '^(lib|redis-tools|pkgconf)' | grep -Ev -e '-dev$|^libperl|^libpam' | sort -u
}

bundled_packages() {
  local round=("${packages[@]}") fresh package known=$not_bundled
  while [[ ${#round[@]} -gt 0 ]]; do
    fresh=()
    for package in "${round[@]}"; do
      [[ $known == *" $package "* ]] && continue
      known+="$package "
      fresh+=("$package")
      echo "$package"
    done
    round=()
    [[ ${#fresh[@]} -eq 0 ]] || mapfile -t round < <(needed_by "${fresh[@]}")
  done
}

make_bundle() {
  local directory=$1 list
  command -v apt-get >/dev/null || fail "a bundle is made of Debian's packages, on a Debian machine"
  mkdir -p -- "$directory"
  [[ -z $(ls -A -- "$directory") ]] || fail "$directory holds something: name a new folder"
  mapfile -t list < <(bundled_packages)
  say "fetching ${#list[@]} Debian packages"
  (cd -- "$directory" && apt-get download -q "${list[@]}" >/dev/null 2>"$directory/.messages") || {
    cat "$directory/.messages" >&2
    rm -rf -- "$directory"
    fail "the packages could not be fetched (apt's words are above): run apt-get update, or try again"
  }
  rm -f -- "$directory/.messages"
  # They fit to one kind of processor; the check is by name.
  dpkg --print-architecture >"$directory/architecture"
  (cd -- "$directory" && sha256sum -- *.deb >SHA256SUMS)
  local mib=$(($(du -sk --apparent-size -- "$directory" | cut -f1) / 1024 + 1))
  [[ $mib -le $bundle_limit_mib ]] || fail "the bundle has $mib MiB, more than $bundle_limit_mib"
  say "$directory: ${#list[@]} packages, $mib MiB; there: bash config/setup.sh --from DIR --prefix P"
}

unpack_package() {
  if command -v dpkg-deb >/dev/null; then
    dpkg-deb -x "$1" "$2"
  else # ar comes with every compiler
    local data
    data=$(ar t "$1" | grep '^data\.tar')
    case $data in
      *.xz) ar p "$1" "$data" | tar -xJ -C "$2" ;;
      *.zst) ar p "$1" "$data" | tar -x --zstd -C "$2" ;;
      *) ar p "$1" "$data" | tar -xz -C "$2" ;;
    esac
  fi
}

# Debian's cmake and what it needs would take 26 of the bundle's 60 MiB.
readonly cmake_advice="where there is a network run: pip download cmake; copy the wheel here, then run: \
pip install --user --no-index cmake-*.whl"

check_tools() {
  local compiler=${CXX:-g++} cmake_version
  command -v "$compiler" >/dev/null ||
    fail "there is no $compiler: a bundle has no compiler; install g++ 12 or newer, or set CXX"
  cmake_version=$(cmake --version 2>/dev/null | sed -n '1s/.* //p')
  [[ -n $cmake_version ]] || fail "there is no cmake, which a bundle has not either: $cmake_advice"
  printf '3.25\n%s\n' "$cmake_version" | sort -VC ||
    fail "cmake is $cmake_version, 3.25 or newer is needed: $cmake_advice"
}

# A program of the prefix with the prefix's libraries, which nothing else is to see.
write_program() {
  local partial=$1 name=$2 program=$3 assignments=$4
  {
    echo '#!/bin/sh'
    echo "${assignments}LD_LIBRARY_PATH='$libraries'\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH} \\"
    echo "  exec '$prefix/usr/bin/$program' \"\$@\""
  } >"$partial/bin/$name"
  chmod 755 "$partial/bin/$name"
}

write_environment() {
  cat <<EOF
# To be sourced by a shell that builds or runs tune:  . $prefix/env.sh
export PATH='$prefix/bin':"\$PATH"
export CMAKE_PREFIX_PATH='$prefix/usr:$libraries/cmake'\${CMAKE_PREFIX_PATH:+:\$CMAKE_PREFIX_PATH}
export CMAKE_LIBRARY_PATH='$libraries'\${CMAKE_LIBRARY_PATH:+:\$CMAKE_LIBRARY_PATH}
# Programs find the prefix's libraries, and these one another, by themselves.
export LDFLAGS="-Wl,--disable-new-dtags -Wl,-rpath,$libraries \${LDFLAGS:-}"
export TUNE_REDIS_SERVER='$prefix/bin/redis-server'
export TUNE_FASHION_MNIST_DIR='$prefix/usr/share/datasets/fashion-mnist'
EOF
}

unpack_bundle() {
  local bundle=$1
  prefix=$2
  [[ -f $bundle/SHA256SUMS ]] || fail "$bundle is not a bundle: make one with --bundle DIR"
  [[ $prefix == /* ]] || prefix=$PWD/$prefix
  while [[ $prefix == *?/ ]]; do prefix=${prefix%/}; done
  [[ $prefix =~ ^[A-Za-z0-9_./+-]+$ ]] ||
    fail "--prefix '$prefix': only letters, digits and _ . / + - are possible in it"
  [[ ! -e $prefix ]] || fail "$prefix is there already: remove it, or name another prefix"
  check_tools
  local partial triplet package file
  triplet=$(uname -m)-linux-gnu  # as Debian names it, whatever the compiler calls it
  (cd -- "$bundle" && sha256sum --quiet -c SHA256SUMS) >&2 || fail "$bundle is damaged: copy it again"
  mkdir -p -- "$(dirname -- "$prefix")"
  partial=$(mktemp -d -- "$prefix.XXXXXX")
  cleanup+=("$partial")
  chmod 755 "$partial"
  mkdir -- "$partial/bin"
  for package in "$bundle"/*.deb; do unpack_package "$package" "$partial"; done
  # Some packages still have their libraries in /lib.
  if [[ -d $partial/lib && ! -L $partial/lib ]]; then
    cp -a "$partial/lib/." "$partial/usr/lib/"
    rm -rf -- "$partial/lib"
  fi
  [[ -d $partial/usr/lib/$triplet ]] ||
    fail "the bundle is for $(cat "$bundle/architecture"), this machine is $triplet"
  # Only Debian's compilers look there.
  if [[ -d $partial/usr/include/$triplet ]]; then
    cp -a "$partial/usr/include/$triplet/." "$partial/usr/include/"
  fi
  libraries=$prefix/usr/lib/$triplet
  # Libraries for static linking only are not there. hiredis names /usr/lib, where its library is not.
  for file in "$partial"/usr/lib/"$triplet"/pkgconfig/*.pc "$partial"/usr/share/pkgconfig/*.pc; do
    [[ -f $file && ! -L $file ]] || continue
    sed -i -e '/^Requires.private:/d' -e "s|=/usr/lib\$|=$libraries|" -e "s|=/usr|=$prefix/usr|" "$file"
  done
  local pc=$libraries/pkgconfig:$prefix/usr/share/pkgconfig
  write_program "$partial" pkg-config pkgconf \
    "PKG_CONFIG_PATH='$pc'\${PKG_CONFIG_PATH:+:\$PKG_CONFIG_PATH} "
  write_program "$partial" redis-server redis-server ""
  ln -s ../usr/bin/ninja "$partial/bin/ninja"
  ln -sf ../../bin/pkg-config "$partial/usr/bin/pkg-config"  # cmake looks there first
  write_environment >"$partial/env.sh"
  mv -T -- "$partial" "$prefix"
  say "unpacked; in each shell that builds or runs: . $prefix/env.sh"
  say "then: cmake -S . -B build -G Ninja && ninja -C build"
}
