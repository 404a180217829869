#!/usr/bin/env bash
# Plants bugs in the production code, one after the other, and demands that the simulator finds each.
#
#   bash tests/simulator/plants.sh BUILD_FOLDER [--few N | NAME ...]      all, without names
#
# A plant is a patch of one production file (tests/simulator/plants/NAME.patch) that says above its
# first line what it breaks:
#
#   found by: the promise that fails, whole   (several lines: any of them)
#   with: --pool                              (options of tune_simulate; or none)
#
# It must be found within 20,000 seeds. Most plants are within 300; any change of what the simulator
# draws moves the seed at which a rare one shows.
#
# The patched file is compiled as the build folder (made by Ninja) compiles it, in a unity build with
# its neighbours, but unoptimised, which takes half the time, and linked into a simulator of its own before the libraries that hold the file as
# it should be. --few N takes N plants, others with every commit.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
shift
seeds=20000
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

# A shallow clone counts the same few commits for ever: there the commit's name is the number.
number_of_commit() {
  if [[ $(git -C "$root" rev-parse --is-shallow-repository 2>/dev/null) == true ]]; then
    echo $((16#$(git -C "$root" rev-parse HEAD | head -c 7)))
  else
    git -C "$root" rev-list --count HEAD 2>/dev/null || date +%-j
  fi
}

choose() {
  local all=("$here"/plants/*.patch) first
  if [[ ${1:-} == --few ]]; then
    first=$(number_of_commit)
    for ((i = 0; i < $2 && i < ${#all[@]}; ++i)); do
      echo "${all[((first * $2 + i) % ${#all[@]})]}"
    done
  elif [[ $# -gt 0 ]]; then
    printf "$here/plants/%s.patch\n" "$@"
  else
    printf '%s\n' "${all[@]}"
  fi
}

value_of() { sed -n "/^--- /q; s/^$1: //p" "$2"; }

# Compiles the patched file and links a simulator with it, into $work.
make_simulator() {
  local patch=$1 file unit compile link
  file=$(sed -n 's,^+++ b/,,p' "$patch" | head -1)
  mkdir -p "$work/$(dirname "$file")"
  cp "$root/$file" "$work/$file"
  patch -s -f -p1 -d "$work" < "$patch" || {
    echo "$patch does not fit $file any more: renew it" >&2
    return 1
  }
  compile=$(grep -m1 -F -- " -c $root/$file" "$work/commands" || :)
  if [[ -n $compile ]]; then
    compile=${compile/" -c $root/$file"/" -c $work/$file"}
  else
    # An older build may have left units that are compiled no more.
    while read -r unit; do
      compile=$(grep -m1 -F -- " -c $unit" "$work/commands" || :)
      [[ -z $compile ]] || break
    done < <(grep -rlF --include='*.cxx' "\"$root/$file\"" "$build" || :)
    [[ -n $compile ]] || { echo "$patch: the simulator has no $file" >&2; return 1; }
    sed "s,\"$root/$file\",\"$work/$file\"," "$unit" > "$work/planted.cxx"
    compile=${compile/" -c $unit"/" -c $work/planted.cxx"}
  fi
  # The patched file is another one: what is written of the true one's dependencies stays.
  compile=$(sed -E "s, -o [^ ]+, -O0 -w -Wno-error -o $work/planted.o,; s, -MF [^ ]+, -MF $work/planted.d," <<<"$compile")
  link=$(tail -1 "$work/commands")
  link=$(sed -E "s, -o [^ ]+, -o $work/simulate $work/planted.o," <<<"$link")
  (cd "$build" && eval "$compile" && eval "$link")
}

for patch in "$here"/plants/*.patch; do  # all, whichever are planted
  patch -s -f -p1 --dry-run -d "$root" < "$patch" || {
    echo "$patch does not fit any more: renew it" >&2
    exit 1
  }
done
ninja -C "$build" -t commands tune_simulate > "$work/commands"
found=0 missed=0
while read -r patch; do
  name=$(basename "$patch" .patch)
  make_simulator "$patch"
  read -ra with < <(value_of with "$patch") || :
  if told=$("$work/simulate" "${with[@]}" --first 1 --seeds "$seeds" 2>&1); then
    echo "$name: NOT found in $seeds seeds"
    missed=$((missed + 1))
  elif ! grep -qF -f <(value_of "found by" "$patch") <<<"$told"; then
    echo "$name: found, but not by: $(value_of 'found by' "$patch" | paste -sd '|')"
    head -3 <<<"$told"
    missed=$((missed + 1))
  else
    echo "$name: $(grep -m1 -F -f <(value_of 'found by' "$patch") <<<"$told")"
    found=$((found + 1))
  fi
done < <(choose "$@")
echo "plants: $found found, $missed missed"
[[ $missed -eq 0 && $found -gt 0 ]]
