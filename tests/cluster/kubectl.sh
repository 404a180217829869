#!/bin/sh
# A stub of kubectl for kubernetes_test.cc: its cluster is the folder `cluster` beside its own, its node is this host.
# Files in that folder change what it does: `down`, `forbidden`, `no-secrets`, `full` (pods find no node), `no-image`,
# `bare` (the image has no tune).
cd "$(dirname "$0")/../cluster" || exit 9
echo "$*" >>calls
[ -e down ] && { echo "The connection to the server was refused" >&2; exit 1; }
case "$1" in --namespace=*) shift ;; esac
run() {  # the container of the Job $1, once
  mv "$1.waits" "$1.runs"
  sed -n '/^        - |$/,/^        - agent$/p' "$1.yaml" | sed '1d;$d;s/^          //;s/\$\$/$/g' |
    sed "s|/etc/tune/token|$PWD/token|" >"$1.sh"
  [ -e bare ] && PATH=/usr/bin:/bin
  (cd .. || exit
   setsid /bin/sh "cluster/$1.sh" "$1" >"cluster/$1.log" 2>&1 </dev/null &
   echo $! >"cluster/$1.pid"; wait $!; echo $? >"cluster/$1.code"
   [ -e "cluster/$1.yaml" ] || rm -f "cluster/$1.code") >/dev/null 2>&1 &
}
remove() {  # the Job first: what its container leaves after that, it removes itself
  [ -e "$1.pid" ] && kill "$(cat "$1.pid")" 2>/dev/null
  rm -f "$1.yaml"
  rm -f "$1".*
}
case "$1 $2" in
"create secret")
  case "$*" in *--dry-run=server*) exit 0 ;; esac
  for word; do case "$word" in --from-file=token=*) cat "${word#--from-file=token=}" ;; esac; done ;;
"create -f")
  manifest=$(cat)
  [ -e forbidden ] && { echo 'jobs.batch is forbidden: User "eve" cannot create' >&2; exit 1; }
  case "$*" in *--dry-run=server*) exit 0 ;; esac
  name=$(echo "$manifest" | sed -n 's/^  name: "\(.*\)"/\1/p')
  echo "$manifest" >"$name.yaml"
  echo "$manifest" >>manifests
  : >"$name.waits"
  echo "job.batch/$name" ;;
"label --local") cat ;;
"apply -f")
  [ -e no-secrets ] && { echo 'secrets is forbidden' >&2; exit 1; }
  cat >token.new && chmod 600 token.new && mv token.new token ;;
"get jobs,pods")
  for file in tune-*.yaml; do
    name=${file%.yaml}
    [ -e "$file" ] || continue
    printf '%s\tJob\tfalse\t<no value>\t<no value>\t<no value>\t\t\t\t\n' "$name"
    pod="$name\tPod\t<no value>"
    if [ -e no-image ]; then
      printf "$pod\tPending\tnode-a\t\t\t\tImagePullBackOff: Back-off pulling image\t\n"
    elif [ -e full ]; then
      printf "$pod\tPending\t<no value>\t\t\tUnschedulable: 0/1 nodes are available\t\t\n"
    else
      [ -e "$name.waits" ] && run "$name"
      case "$(cat "$name.code" 2>/dev/null)" in
      "") printf "$pod\tRunning\tnode-a\t\tReady:;\t\t\t\n" ;;
      0) printf "$pod\tSucceeded\tnode-a\t\t\t\t\tCompleted, exit code 0\n" ;;
      *) printf "$pod\tFailed\tnode-a\t\t\t\t\tError, exit code 127\n" ;;
      esac
    fi
  done ;;
"logs -l") cat "${3#tune/allocation=}.log" ;;
"delete job") remove "$3" ;;
"delete jobs,secrets")
  for file in tune-*.yaml; do remove "${file%.yaml}"; done
  rm -f token ;;
*) echo "kubectl: $*: not known" >&2; exit 1 ;;
esac
