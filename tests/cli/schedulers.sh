# shellcheck shell=bash disable=SC2154
# schedulers.sh - the blocks of sluice(7) for PBS, LSF, Grid Engine, Kubernetes and AWS Batch, run as they are written,
# with stand-ins of their commands: these set the variables of the scheduler, run the elements in order, count as it
# does, and wait for jobs before. One element is stopped by a signal, and one fails on its first node; the set must be
# that of --local all the same.
# check-more: whole

have tokenize decompose shuffle sluice-batch || return 0
corpus c.jsonl 60000 1
printf '%s\n' 'input = c.jsonl' 'parts = 2' 'tokenize = --id-field id' 'decompose = --min 64 --max 512' \
    'shuffle = --format wds --accept-mismatch --tails drop' >recipe
sluice-batch --local 1 recipe local >/dev/null
want=$(sha_tree local/shards)

# block NAME: the lines of its block, as the page shows them.
block() {
    mandoc -T utf8 -O width=80 "$top/man/sluice.7" | sed 's/.\x08//g' | awk -v name="     $1" '
        ended { next }
        $0 == name || index($0, name "  ") == 1 { at = 1 }
        at && /^             (before=|sluice-batch)/ { on = 1 }
        on && NF == 0 { ended = 1; next }
        on { print substr($0, 14) }'
}

# In $fake: sluice-batch, whose part 1 of tokenize is first stopped and then fails; the commands of the schedulers. They
# are one program; $jobs has a line for each job that ended well.
fake=$TMP/fake jobs=$TMP/jobs
export jobs
mkdir "$fake"
cat >"$fake/sluice-batch" <<EOT
#!/bin/sh
if [ "\$1 \$3 \$4" = "task tokenize 1" ]; then
    echo "\${NODE:-a}" >>"\$jobs.tries"
    case \$(wc -l <"\$jobs.tries") in 1) exit 75 ;; 2) exit 1 ;; esac
fi
[ "\$2" != /data/out ] || { command=\$1 && shift 2 && set -- "\$command" "$TMP/out" "\$@"; }
exec "$BIN/sluice-batch" "\$@"
EOT
cat >"$fake/qsub" <<'EOT'
#!/bin/bash
# qsub of PBS or Grid Engine, bsub, kubectl and aws: submits a job, and runs it at once.
set -u
name= first= last= after= again=() text=
id=$(($(wc -l <"$jobs") + 1))
# ended ID: a job that this one waits for.
ended() { grep -qx "$1" "$jobs" || { echo "${0##*/}: $1 has not ended well" >&2; exit 3; }; }
case ${0##*/}\ $* in
*\ -terse\ *) kind=sge ;;
qsub*) kind=pbs ;;
bsub*) kind=lsf ;;
kubectl\ create*) kind=kubernetes ;;
kubectl\ wait*)
    case $* in
    *condition=Complete*) grep -qx "${!#}" "$jobs" ;;
    *) ! grep -qx "${!#}" "$jobs" ;;
    esac
    exit
    ;;
aws\ batch\ submit-job\ *) kind=aws && shift 2 ;;
*) echo "${0##*/}: $*" >&2 && exit 2 ;;
esac
while [ $# != 0 ]; do
    case $kind,$1 in
    pbs,-J | sge,-t) first=${2%-*} last=${2#*-} && shift ;;
    pbs,-W) after=${2#depend=afterok:} && shift ;;
    sge,-hold_jid) after=$2 && shift ;;
    pbs,-r | sge,-r) [ "$2" = y ] && shift ;;
    sge,-S) shift ;;
    *,-N | aws,--job-name) name=$2 && shift ;;
    sge,-terse | lsf,-r | kubernetes,create) ;;
    lsf,-J) name=${2%%"["*} first=${2#*"["} first=${first%]} last=${first#*-} first=${first%-*} && shift ;;
    lsf,-Q) [ "$2" = '75 EXCLUDE(1)' ] && again=(75 1) && shift ;;
    lsf,-w) after=${2#done(} after=${after%)} && shift ;;
    lsf,exec*) text=$1 ;;
    kubernetes,-o | kubernetes,-f) shift ;;
    aws,--array-properties) first=0 last=$((${2#size=} - 1)) && shift ;;
    aws,--depends-on) after=${2#jobId=} && shift ;;
    aws,--retry-strategy) [ "$2" = attempts=3 ] && again=(1 75) && shift ;;
    aws,--container-overrides) text=$("$PYTHON" -c 'import json, sys; print(json.loads(sys.argv[1])["command"][2])' "$2") && shift ;;
    aws,--job-queue | aws,--job-definition | aws,--query | aws,--output) shift ;;
    *) echo "$kind: $1: no such option" >&2 && exit 2 ;;
    esac
    shift
done
case $kind in
pbs | sge) text=$(cat) ;;
kubernetes)
    # The words of the block's YAML: "key: value" a line, and the command.
    yaml=$(cat)
    name=$(sed -n 's/^metadata: {generateName: \(.*\)}$/\1/p' <<<"$yaml")
    last=$(sed -n 's/^  completions: //p' <<<"$yaml")
    last=$((last - 1)) first=0
    text=$(tr -s '\n ' ' ' <<<"$yaml" | sed -n 's/.*command: \[sh, -c, "\([^"]*\)"\].*/\1/p')
    grep -qx '  backoffLimitPerIndex: 3' <<<"$yaml" && again=(1 75)
    ;;
esac
[ -n "$text" ] && [ -n "$name" ] || { echo "$kind: no name or no command" >&2; exit 2; }
case $kind in
pbs | aws) [ -z "$first" ] || [ "$last" -gt "$first" ] || { echo "$kind: an array of one" >&2; exit 2; } ;;
esac
job=$id
[ $kind != lsf ] || job=$name
[ $kind != kubernetes ] || job=job.batch/$name$id
[ $kind != sge ] || [ -z "$first" ] || says=$id.$first-$last:1
[ -z "$after" ] || ended "$after"
good=1
for ((i = ${first:-0}; i <= ${last:-0}; i++)); do
    NODE=a
    for try in 1 2 3; do
        export NODE PBS_ARRAY_INDEX=$i LSB_JOBINDEX=$i SGE_TASK_ID=$i JOB_COMPLETION_INDEX=$i
        unset AWS_BATCH_JOB_ARRAY_INDEX
        [ $kind != aws ] || [ -z "$first" ] || export AWS_BATCH_JOB_ARRAY_INDEX=$i
        sh -c "$text" >/dev/null 2>&1 </dev/null
        rc=$?
        [ $rc != 0 ] || break
        [ $kind != sge ] || { [ $rc = 99 ] && continue || break; }
        [[ " ${again[*]:-} " == *" $rc "* ]] || break
        [ $rc != 1 ] || NODE=b
    done
    [ $rc = 0 ] || good=
done
[ -z "$good" ] || echo "$job" >>"$jobs"
echo "${says:-$job}"
EOT
chmod +x "$fake/sluice-batch" "$fake/qsub"
for name in bsub kubectl aws; do cp "$fake/qsub" "$fake/$name"; done
export PYTHON

for scheduler in PBS LSF 'Grid Engine' Kubernetes 'AWS Batch'; do
    block "$scheduler" >run.sh
    : >"$jobs"
    : >"$jobs.tries"
    rm -rf out
    sluice-batch init recipe out >/dev/null
    # PBS and Grid Engine leave a failed part to the user, who runs the block again.
    tries=1
    case $scheduler in PBS) tries=3 ;; Grid*) tries=2 ;; esac
    for ((t = 1; t <= tries; t++)); do
        : >"$jobs"
        code env PATH="$fake:$PATH" sh run.sh >log 2>&1
    done
    empty "$scheduler: all parts are done" "$(sluice-batch --pending out)"
    same "$scheduler: the set is that of --local" "$want" "$(sha_tree out/shards)"
    same "$scheduler: its failed part ran three times" 3 "$(wc -l <"$jobs.tries" | tr -d ' ')"
    [ "$scheduler" != LSF ] || same "  at last on another node" 'a a b' "$(xargs <"$jobs.tries")"
done
