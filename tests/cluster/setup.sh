#!/usr/bin/env bash
# Installs what the tests of this folder need on a Debian machine: a Slurm of its own, an sshd, an OpenStack Swift that speaks S3,
# iproute2 and nftables for hosts as network namespaces, and kubernetes-validate (from PyPI, 110 MB, in ~/.cache/tune). As root or with sudo.
# Nothing of it is started: the tests bring up their own, below a temporary folder.
set -euo pipefail
as_root=""
[ "$(id -u)" = 0 ] || as_root=sudo
need=()
command -v slurmctld >/dev/null && command -v slurmd >/dev/null && command -v sbatch >/dev/null || need+=(slurm-wlm munge)
[ -x /usr/sbin/sshd ] && command -v ssh >/dev/null || need+=(openssh-server openssh-client)
command -v swift-proxy-server >/dev/null && command -v swift-object-server >/dev/null ||
  need+=(swift-proxy swift-account swift-container swift-object)
command -v ip >/dev/null || need+=(iproute2)
command -v nft >/dev/null || need+=(nftables)
command -v python3 >/dev/null && python3 -c 'import ensurepip, venv' 2>/dev/null || need+=(python3-venv)

install_packages() {
  # Services are not to start by themselves.
  export DEBIAN_FRONTEND=noninteractive
  policy=/usr/sbin/policy-rc.d
  made_policy=""
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
    $as_root chmod +x "$policy"
    made_policy=yes
  fi
  trap '[ -z "$made_policy" ] || $as_root rm -f "$policy"' EXIT
  $as_root apt-get update -qq
  $as_root apt-get install -y -qq --no-install-recommends "${need[@]}"
}

# From PyPI, which not every machine reaches: the tests that want it are skipped without it.
install_kubernetes_validate() {
  local venv=${XDG_CACHE_HOME:-$HOME/.cache}/tune/kubernetes-validate
  python3 -m venv "$venv" && "$venv/bin/pip" install --quiet kubernetes-validate &&
    $as_root ln -sf "$venv/bin/kubernetes-validate" /usr/local/bin/
}

if [ ${#need[@]} -gt 0 ]; then install_packages; fi
command -v kubernetes-validate >/dev/null || install_kubernetes_validate ||
  echo "kubernetes-validate could not be installed: tests that want it are skipped" >&2
echo "Slurm, sshd, Swift, iproute2 and nftables are installed"
