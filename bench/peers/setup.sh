#!/usr/bin/env bash
# Makes a virtual environment for each peer, with the versions of requirements/<peer>.txt, and prints the
# folder that holds them. Does nothing the second time. A line `# beside: OTHER` in a peer's requirements
# lets it import from OTHER's environment what its own has not: PyTorch is 4 GB, and two peers want it.
#
#   bash bench/peers/setup.sh [PEER]...
#
# TUNE_CACHE_DIR  where they go; default ${XDG_CACHE_HOME:-~/.cache}/tune
# TUNE_REQUIREMENTS  the folder of requirements; default this one's
# TUNE_PYTHON     the Python that makes them, 3.10 to 3.13; default python3
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${TUNE_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/tune}/peers
peers=("$@")
if [[ ${#peers[@]} -eq 0 ]]; then peers=(ray optuna); fi

make() { # PEER
  local requirements=${TUNE_REQUIREMENTS:-$here/requirements}/$1.txt environment=$cache/$1 other
  other=$(sed -n 's/^# beside: //p' "$requirements")
  if [[ -n $other ]]; then make "$other"; fi
  if [[ -x $environment/bin/python ]] && cmp -s "$requirements" "$environment/requirements.txt"; then
    return
  fi
  echo "peers: installing $requirements into $environment" >&2
  rm -rf -- "$environment"
  "${TUNE_PYTHON:-python3}" -m venv "$environment" >&2
  "$environment/bin/python" -m pip --disable-pip-version-check -q install --no-deps -r "$requirements" >&2
  if [[ -n $other ]]; then # after its own: a path of a .pth file is looked through last
    packages=$("$environment/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    "$cache/$other/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
      >"$packages/beside.pth"
  fi
  cp "$requirements" "$environment/requirements.txt" # last: an installation that broke off is made anew
}

for peer in "${peers[@]}"; do make "$peer"; done
echo "$cache"
