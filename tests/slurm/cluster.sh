# shellcheck shell=sh
# cluster.sh - a Slurm cluster of one controller and four nodes on this machine, for tests; to be sourced.
#
# All of it lies in $CLUSTER, a folder that exists: key and socket of munged, configuration, states, logs, process ids.
# Nothing outside is touched: ports are free ones, and daemons are children of the shell that sourced this.
#   cluster_start   false, with the reason in $CLUSTER/why, where that is not possible here
#   cluster_stop    ends the daemons and whatever their jobs left; to be called on every way out
#   node_kill N     the node fails: its daemon and all that runs on it are gone at once, without a word
#   node_start N    it comes back

cluster_conf() {
    host=$(uname -n | cut -d . -f 1)
    # shellcheck disable=SC2046 # five numbers
    set -- $("$PYTHON" -c '
import socket
s = [socket.socket() for _ in range(5)]
for x in s: x.bind(("127.0.0.1", 0))
print(*[x.getsockname()[1] for x in s])')
    cat <<CONF
ClusterName=sluice
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$1
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$CLUSTER/munge/socket,cred_expire=2
CredType=cred/munge
StateSaveLocation=$CLUSTER/state
SlurmdSpoolDir=$CLUSTER/spool/%n
SlurmctldPidFile=$CLUSTER/slurmctld.pid
SlurmdPidFile=$CLUSTER/slurmd-%n.pid
SlurmctldLogFile=$CLUSTER/log/slurmctld
SlurmdLogFile=$CLUSTER/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
SlurmdTimeout=3
MessageTimeout=2
BatchStartTimeout=1
KillWait=2
OverTimeLimit=0
MaxArraySize=${MAX_ARRAY:-1001}
MaxJobCount=${MAX_JOBS:-10000}
MinJobAge=300
SchedulerParameters=sched_interval=1,batch_sched_delay=0,bf_interval=1,sched_min_interval=0
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$2 CPUs=2 RealMemory=4000 State=UNKNOWN
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$3 CPUs=2 RealMemory=4000 State=UNKNOWN
NodeName=n3 NodeHostname=$host NodeAddr=127.0.0.1 Port=$4 CPUs=2 RealMemory=4000 State=UNKNOWN
NodeName=n4 NodeHostname=$host NodeAddr=127.0.0.1 Port=$5 CPUs=2 RealMemory=4000 State=UNKNOWN
PartitionName=p Nodes=n[1-4] Default=YES MaxTime=INFINITE State=UP
CONF
}

# daemon NAME COMMAND...: in the background, its process id in $CLUSTER/NAME.id.
daemon() {
    name=$1
    shift
    "$@" >>"$CLUSTER/log/$name.out" 2>&1 </dev/null &
    echo $! >"$CLUSTER/$name.id"
}
node_start() { daemon "$1" slurmd -D -N "$1"; }

cluster_cannot() {
    echo "$*" >"$CLUSTER/why"
    return 1
}
cluster_start() {
    [ "$(id -u)" = 0 ] || cluster_cannot "daemons of a test cluster run as root" || return
    for p in munged slurmctld slurmd sbatch squeue scancel scontrol; do
        command -v $p >/dev/null || cluster_cannot "there is no $p (make deps-slurm)" || return
    done
    mkdir -p "$CLUSTER/munge" "$CLUSTER/state" "$CLUSTER/spool" "$CLUSTER/log"
    chmod 755 "$CLUSTER/munge" # where the client looks for the socket anyone may look
    SLURM_CONF=$CLUSTER/slurm.conf
    export SLURM_CONF
    cluster_conf >"$SLURM_CONF"
    dd if=/dev/urandom bs=128 count=1 2>/dev/null >"$CLUSTER/munge/key"
    chmod 400 "$CLUSTER/munge/key"
    daemon munged munged --foreground --force --num-threads=2 --key-file="$CLUSTER/munge/key" --socket="$CLUSTER/munge/socket" \
        --pid-file="$CLUSTER/munge/pid" --log-file="$CLUSTER/log/munged" --seed-file="$CLUSTER/munge/seed"
    cluster_wait 10 test -S "$CLUSTER/munge/socket" || cluster_cannot "munged does not start" || return
    daemon slurmctld slurmctld -D -c
    for n in n1 n2 n3 n4; do node_start $n; done
    cluster_wait 30 nodes_up 4 || cluster_cannot "nodes do not come up: $(tail -n 1 "$CLUSTER/log/slurmctld")"
}
nodes_up() { [ "$(sinfo -h -N -o '%t' 2>/dev/null | grep -cE '^(idle|mix|alloc)$')" -ge "$1" ]; }
# cluster_wait SECONDS COMMAND...: until it is true.
cluster_wait() {
    tenths=$(($1 * 10))
    shift
    until "$@" >/dev/null 2>&1; do
        tenths=$((tenths - 1))
        [ $tenths -gt 0 ] || return 1
        sleep 0.1
    done
}

# ours [NODE]: processes of jobs of this cluster, or of one node of it, and of the daemons that look after them.
ours() {
    grep -zlxF "SLURM_CONF=$CLUSTER/slurm.conf" /proc/[0-9]*/environ 2>/dev/null | while read -r e; do
        grep -qzx "SLURMD_NODENAME=${1:-.*}" "$e" 2>/dev/null || continue
        p=${e%/environ}
        up=$(sed -n 's/^PPid:[[:space:]]*//p' "$p/status" 2>/dev/null)
        ! grep -q slurmstepd "/proc/$up/comm" 2>/dev/null || echo "$up"
        echo "${p#/proc/}"
    done
}
node_kill() {
    kill -9 "$(cat "$CLUSTER/$1.id")" 2>/dev/null
    for p in $(ours "$1"); do kill -9 "$p" 2>/dev/null; done
}
cluster_stop() {
    for d in n1 n2 n3 n4 slurmctld munged; do
        [ -s "$CLUSTER/$d.id" ] || continue
        kill "$(cat "$CLUSTER/$d.id")" 2>/dev/null
    done
    for p in $(ours); do kill -9 "$p" 2>/dev/null; done
    sleep 0.3
    grep -zlxF "SLURM_CONF=$CLUSTER/slurm.conf" /proc/[0-9]*/environ 2>/dev/null | while read -r e; do
        p=${e%/environ}
        ! grep -q slurmstepd "$p/comm" 2>/dev/null || kill -9 "${p#/proc/}" 2>/dev/null
    done
    for d in n1 n2 n3 n4 slurmctld munged; do
        [ ! -s "$CLUSTER/$d.id" ] || kill -9 "$(cat "$CLUSTER/$d.id")" 2>/dev/null
    done
}
