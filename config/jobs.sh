#!/usr/bin/env bash
# Prints how many compilers may run at once: one a core, and 1.7 GB of memory each (files that include
# torch need 1.4).
set -euo pipefail
cores=$(nproc)
memory_kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
jobs=$((memory_kib / 1700000))
[ "$jobs" -le "$cores" ] || jobs=$cores
[ "$jobs" -ge 1 ] || jobs=1
echo "$jobs"
