#!/usr/bin/env bash
# A real Slurm on this machine: a controller and NODES node daemons, everything below FOLDER. As root, with what setup.sh
# installs. Two partitions: main, and urgent, which preempts jobs of main.
#
#   slurm_on_one_host.sh start FOLDER [NODES] [CPUS of each]    then: export SLURM_CONF=FOLDER/slurm.conf
#   slurm_on_one_host.sh stop FOLDER
set -euo pipefail
verb=$1 folder=$(realpath -m "$2") nodes=${3:-2} cpus=${4:-2}

stop() {
  for file in "$folder"/*.pid; do
    [ -f "$file" ] && kill "$(cat "$file")" 2>/dev/null
  done
  return 0
}
if [ "$verb" = stop ]; then stop; exit; fi

mkdir -p "$folder"/{state,spool,munge}
chmod 755 "$folder"
dd if=/dev/urandom of="$folder/munge/key" bs=1024 count=1 status=none
chown -R munge:munge "$folder/munge"
chmod 400 "$folder/munge/key"
chmod 755 "$folder/munge"
# Below the ports that connections take by themselves, and of nobody's.
is_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
for _ in 1 2 3 4 5; do
  port=$((20000 + RANDOM % 12000))
  for ((i = 0; i <= nodes; i++)); do is_taken $((port + i)) && continue 2; done
  break
done
# A test that is killed leaves no Slurm behind.
setsid -f sh -c "while kill -0 $PPID; do sleep 2; done; bash '$0' stop '$folder'" >/dev/null 2>&1 </dev/null
host=$(hostname -s)
cat >"$folder/slurm.conf" <<CONF
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,batch_sched_delay=0,defer_batch
MpiDefault=none
ReturnToService=2
KillWait=5
MinJobAge=30
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
CONF
for ((i = 1; i <= nodes; i++)); do
  echo "NodeName=n$i NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + i)) CPUs=$cpus RealMemory=2000 State=UNKNOWN" \
    >>"$folder/slurm.conf"
done
echo "PartitionName=main Nodes=n[1-$nodes] Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=10" \
  >>"$folder/slurm.conf"
echo "PartitionName=urgent Nodes=n[1-$nodes] MaxTime=INFINITE State=UP PriorityTier=9" >>"$folder/slurm.conf"

runuser -u munge -- munged --key-file="$folder/munge/key" --socket="$folder/munge/socket" \
  --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" --force
cp "$folder/munge/pid" "$folder/munged.pid"
export SLURM_CONF=$folder/slurm.conf
slurmctld -c
for ((i = 1; i <= nodes; i++)); do
  mkdir -p "$folder/spool/n$i"
  slurmd -N "n$i"
done
for ((i = 0; i < 100; i++)); do
  if [ "$(sinfo -h -N -p main -o %T 2>/dev/null | grep -c idle)" = "$nodes" ]; then
    echo "export SLURM_CONF=$folder/slurm.conf"
    exit 0
  fi
  sleep 0.2
done
sinfo -N -o '%N %T %E' >&2
tail -n 5 "$folder"/*.log >&2
stop
exit 1
