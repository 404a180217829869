#!/usr/bin/env bash
# fresh_debian.sh BUILD_DIRECTORY [FOLDER]
#
# Installs the packages of `cpack` in a Debian that has nothing else, without compiler and python, and runs
# sweeps there; then a Python program, and a C++ program built by pkg-config. As root, with debootstrap and the
# network; some minutes, 1.5 GB. FOLDER is for the Debian, and removed at the end; else a temporary one.
set -euo pipefail
build=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
root=${2:-$(mktemp -d /var/tmp/tune-fresh-debian-XXXXXX)}
leave() {
  for folder in dev sys proc; do ! mountpoint -q "$root/$folder" || umount -R -l "$root/$folder"; done
  rm -rf --one-file-system "$root"
}
trap leave EXIT

mkdir -p "$root"
chmod 755 "$root"  # a Debian whose users may enter it
(cd "$build" && cpack)
debootstrap --variant=minbase bookworm "$root" "${TUNE_DEBIAN_MIRROR:-http://deb.debian.org/debian}"
for folder in proc sys dev; do
  mount --rbind /$folder "$root/$folder"
  mount --make-rslave "$root/$folder"
done
# This machine's way to the network.
mkdir -p "$root/etc/ssl/certs"
for file in /etc/resolv.conf /etc/hosts /etc/apt/apt.conf.d/. /etc/ssl/certs/ca-certificates.crt; do
  [[ ! -e $file ]] || cp -rL "$file" "$root/${file%.}"
done
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"  # starts no service
chmod 755 "$root/usr/sbin/policy-rc.d"
version=$(sed -n 's/^set(CPACK_PACKAGE_VERSION "\(.*\)")$/\1/p' "$build/CPackConfig.cmake")
cp "$build/packages/tune_${version}_"*.deb "$root/root/tune.deb"
cp "$build/packages/libtune-dev_${version}_"*.deb "$root/root/libtune-dev.deb"
cp "$here/consumer/program.cc" "$here/consumer/line.h" "$root/root"

cat >"$root/root/try.sh" <<'TRY'
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
cd /root
install() { apt-get install -q -y --no-install-recommends "$@" >log 2>&1 || { cat log; exit 1; }; }
apt-get update -q >log
install ./tune.deb
for program in cc python3; do ! command -v $program || { echo "error: there is a $program"; exit 1; }; done
cat >sweep.yaml <<'YAML'
command: [sh, -c, 'for i in 1 2 3; do echo "tune: {\"loss\": $1.$i}"; done', sh, "${x}"]
config: {x: {randint: [1, 9]}}
num_samples: 6
metric: loss
mode: min
seed: 5
scheduler: {asha: {max_t: 3}}
YAML
[[ $(tune run sweep.yaml --name s --quiet) == '{"x":1}' ]]
echo "a sweep of a command: fine"

install python3
apt-get install -q -y --reinstall ./tune.deb >log 2>&1
useradd -m someone
cat >/tmp/search.py <<'PY'
import tune
analysis = tune.run(lambda config: tune.report(loss=config["x"]), {"x": tune.grid_search([2, 1])}, metric="loss",
                    mode="min", quiet=True)
print(analysis.best_config)
PY
[[ $(su someone -c 'cd && python3 /tmp/search.py') == "{'x': 1}" ]]
echo "a Python program: fine"

install g++ ./libtune-dev.deb
g++ -std=c++20 program.cc $(pkg-config --cflags --libs tune) -o program
[[ $(./program --name p --cpus 2 --quiet) == *"best slope 3"* ]]
echo "a C++ program: fine"

apt-get remove -q -y tune >log 2>&1
[[ ! -e /usr/share/tune && ! -e /usr/bin/tune ]]
echo "removed: nothing is left"
TRY
chroot "$root" bash /root/try.sh
