#!/usr/bin/env bash
# debian.sh SOURCE_DIRECTORY BUILD_DIRECTORY
#
# The Debian packages of the build: what they hold, need and say, and that the programs run from where they
# are unpacked. fresh_debian.sh installs them.
set -euo pipefail
source "$(dirname "$0")/checks.sh"
source=$1
build=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/tune-debian-XXXXXX")
trap 'rm -rf "$work"' EXIT

for program in dpkg-shlibdeps dpkg-deb cpack strip gzip; do
  command -v $program >/dev/null || skip "there is no $program"
done

(cd "$work" && cpack --config "$build/CPackConfig.cmake" -B "$work/packages" >"$work/log" 2>&1) ||
  fail "cpack: $(cat "$work/log")"
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$source/trainables/python/tune/_version.py")
architecture=$(dpkg --print-architecture)
programs=$work/packages/tune_${version}_$architecture.deb
development=$work/packages/libtune-dev_${version}_$architecture.deb
[[ $(find "$work/packages" -maxdepth 1 -name '*.deb' | wc -l) == 2 ]] ||
  fail "packages: $(ls "$work/packages")"  # LibTorch's part only if it is asked for

# One version everywhere.
expect "the program" "tune $version" "$("$build/bin/tune" --version)"
expect "the package" "$version" "$(dpkg-deb -f "$programs" Version)"
expect "what libtune-dev needs" "tune (= $version)" "$(dpkg-deb -f "$development" Depends)"
expect "the newest changes" "## $version" "$(grep -m 1 '^## ' "$source/config/changes/README.md")"

needs=$(dpkg-deb -f "$programs" Depends)
for library in redis-server libzmq5 libhiredis libfmt libc6; do
  expect "what tune needs" "$library" "$needs"
done
expect_none "what tune needs" torch "$needs"
expect_none "what libtune-dev needs" torch "$(dpkg-deb -f "$development" Depends)"

dpkg-deb -x "$programs" "$work/programs"
dpkg-deb -x "$development" "$work/development"
if find "$work/programs" "$work/development" | grep -i torch; then fail "a part of LibTorch is in a package"; fi
root=$work/programs/usr
for file in bin/tune bin/tune-worker share/man/man1/tune.1.gz share/bash-completion/completions/tune \
  share/zsh/vendor-completions/_tune share/fish/vendor_completions.d/tune.fish include/tune_report.h \
  lib/python3/dist-packages/tune/__init__.py share/doc/tune/copyright share/doc/tune/changelog.gz; do
  [[ -e $root/$file ]] || fail "$file is not in the package"
done
expect "the manual page" "simulate" "$(gzip -dc "$root/share/man/man1/tune.1.gz")"
[[ -z $(find "$root" -name '*.a' -o -name '*.h' ! -name tune_report.h) ]] || fail "libraries or headers for programs"
[[ -e $work/development/usr/lib/pkgconfig/tune.pc || -n $(find "$work/development" -name tune.pc) ]] ||
  fail "tune.pc is not in libtune-dev"
mib=$(($(stat -c %s "$programs") >> 20))
[[ $mib -lt 20 ]] || fail "the package has $mib MiB: is it stripped?"

mkdir "$work/run"
cd "$work/run"
cat >sweep.yaml <<'YAML'
command: [sh, -c, 'for i in 1 2 3; do echo "tune: {\"loss\": $1.$i}"; done', sh, "${x}"]
config: {x: {grid_search: [3, 1, 2]}}
metric: loss
mode: min
YAML
said=$(env -i HOME="$work" PATH="$root/bin:/usr/bin:/bin" tune run sweep.yaml --name s --quiet)
expect "a sweep of a command" '{"x":1}' "$said"
