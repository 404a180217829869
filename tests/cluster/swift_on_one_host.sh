#!/usr/bin/env bash
# A real OpenStack Swift on this machine that speaks S3 and checks signatures: a proxy with s3api and tempauth, and one server each
# for accounts, containers and objects, everything below FOLDER, which must be on a disk with extended attributes. As root, with
# what setup.sh installs.
#
#   swift_on_one_host.sh start FOLDER    then: source FOLDER/environment, and make a bucket   (the bucket s3://checkpoints is there)
#   swift_on_one_host.sh stop FOLDER
set -euo pipefail
verb=$1 folder=$(realpath -m "$2")

stop() {
  for file in "$folder"/*.pid; do
    [ -f "$file" ] && kill "$(cat "$file")" 2>/dev/null
  done
  return 0
}
if [ "$verb" = stop ]; then stop; exit; fi

mkdir -p "$folder"/{rings,disk/one,recon}
port=$((20000 + RANDOM % 20000))
user=$(id -un)
for kind in account container object; do
  case $kind in account) at=$((port + 1)) ;; container) at=$((port + 2)) ;; object) at=$((port + 3)) ;; esac
  (cd "$folder/rings" && swift-ring-builder $kind.builder create 4 1 0 &&
    swift-ring-builder $kind.builder add r1z1-127.0.0.1:$at/one 1 && swift-ring-builder $kind.builder rebalance) >"$folder/rings.log"
  cat >"$folder/$kind.conf" <<CONF
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = $at
devices = $folder/disk
mount_check = false
user = $user
workers = 0
swift_dir = $folder/rings
log_name = $kind
log_address = $folder/no-syslog
[pipeline:main]
pipeline = $kind-server
[app:$kind-server]
use = egg:swift#$kind
CONF
done
cat >"$folder/proxy.conf" <<CONF
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = $port
user = $user
workers = 0
swift_dir = $folder/rings
log_address = $folder/no-syslog
[pipeline:main]
pipeline = catch_errors cache s3api tempauth proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:1
[filter:s3api]
use = egg:swift#s3api
location = eu-swift-1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
CONF
for kind in account container object proxy; do
  swift-$kind-server "$folder/$kind.conf" >"$folder/$kind.log" 2>&1 &
  echo $! >"$folder/$kind.pid"
done
cat >"$folder/environment" <<CONF
export AWS_ACCESS_KEY_ID=test:tester AWS_SECRET_ACCESS_KEY=testing AWS_REGION=eu-swift-1 AWS_ENDPOINT_URL=http://127.0.0.1:$port
CONF
for _ in $(seq 100); do
  curl -s -o /dev/null "http://127.0.0.1:$port/" && exit 0
  sleep 0.3
done
echo "swift does not answer: $(tail -n 5 "$folder"/*.log)" >&2
exit 1
