#!/usr/bin/env bash
# Makes a virtual environment for each peer, with the versions of requirements/<peer>.txt, and prints the
# folder that holds them. Does nothing the second time.
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

for peer in "${peers[@]}"; do
  requirements=${TUNE_REQUIREMENTS:-$here/requirements}/$peer.txt
  environment=$cache/$peer
  if [[ -x $environment/bin/python ]] && cmp -s "$requirements" "$environment/requirements.txt"; then
    continue
  fi
  echo "peers: installing $requirements into $environment" >&2
  rm -rf -- "$environment"
  "${TUNE_PYTHON:-python3}" -m venv "$environment" >&2
  "$environment/bin/python" -m pip --disable-pip-version-check -q install --no-deps -r "$requirements" >&2
  cp "$requirements" "$environment/requirements.txt" # last: an installation that broke off is made anew
done
echo "$cache"
