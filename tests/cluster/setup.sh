#!/usr/bin/env bash
# Installs what the tests of this folder need on a Debian machine: a Slurm of its own and an sshd. As root or with sudo.
# Nothing of it is started: the tests bring up their own, below a temporary folder.
set -euo pipefail
need=()
command -v slurmctld >/dev/null && command -v slurmd >/dev/null && command -v sbatch >/dev/null || need+=(slurm-wlm munge)
[ -x /usr/sbin/sshd ] && command -v ssh >/dev/null || need+=(openssh-server openssh-client)
[ ${#need[@]} -eq 0 ] && { echo "Slurm and sshd are installed"; exit; }
as_root=""
[ "$(id -u)" = 0 ] || as_root=sudo
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
