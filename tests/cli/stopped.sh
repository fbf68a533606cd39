# shellcheck shell=bash disable=SC2154
# stopped.sh - SIGTERM and SIGUSR1, which schedulers send before they kill a job, in every program and stage, also if
# files have temporary names, as on NFS: exit status 75, one line, no incomplete file, no temporary name. The run that
# is started again gives the same bytes.
# check-more: whole

have tokenize dedup decompose pack shuffle schedule inspect || return 0
fault=$(shim fault) || return 0
corpus c.jsonl 60000 12
tokenize -t bytes --domain web c.jsonl -o 1.tks
decompose --min 16 --max 64 --label-token 1.tks -o 2.tks
pack 2.tks -o 3.tks
shuffle --format wds -o set 3.tks 2>err
dedup --near --stage sign --part 0/1 --work made 1.tks
dedup --near --stage group --part 0/1 --work made
dedup --near --stage verify --part 0/1 --work made
dedup --near --stage cluster --work made

# stop NAME COMMAND...: stopped before it writes, before it syncs, before it renames, and not at all. It writes into
# the folder run (what it says on standard output goes to run.out).
stop() {
    name=$1
    shift
    rm -rf run want
    mkdir want
    ln -s want run
    "$@" >run.out 2>err || { cat err && not_ok "$name: runs" && return; }
    for how in term:write:1 usr1:sync:1 term:name:1 usr1:name:2; do
        at=${how#*:}
        rm -rf run log
        mkdir run
        [ "${keep:-}" = "" ] || cp -r $keep/* run
        LD_PRELOAD=$fault SHIM_NAMES=1 SHIM_LOG=log SHIM_DO=${how%%:*} SHIM_AT=$at code "$@" >run.out 2>err
        got=$ended
        if [ ! -e log ]; then
            continue # it has no such call: nothing to stop at
        fi
        left=$(find run -name '.*.tmp')
        if [ $got = 75 ] && one_line err && [ -z "$left" ]; then
            ok "$name: stopped before $at"
        else
            echo "  status $got, left: $left"
            head -n 3 err
            not_ok "$name: stopped before $at"
        fi
        "$@" >run.out 2>err || not_ok "$name: started again"
    done
    rm -f run/*.manifest.json want/*.manifest.json
    same "$name: the same bytes" "$(sha_tree want)" "$(sha_tree run)"
}

stop tokenize tokenize -t bytes --domain web --holdout 0.2 --holdout-output run/h.tks --part 0/2 -o run/o.tks c.jsonl
stop dedup dedup -o run/o.tks --pairs run/p 1.tks
stop dedup-near dedup --near -o run/o.tks 1.tks
stop dedup-substring dedup --substring 20 -o run/o.tks 1.tks
stop dedup-sign dedup --near --stage sign --part 0/1 --work run 1.tks
keep=
for stage in group verify cluster; do
    mkdir -p "in-$stage"
done
cp made/sign* in-group
cp made/sign* made/group* in-verify
cp made/sign* made/group* made/verify* in-cluster
for stage in group verify cluster; do
    keep=in-$stage
    part="--part 0/1"
    [ $stage != cluster ] || part=
    # shellcheck disable=SC2086 # words are meant
    stop "dedup-$stage" sh -c "cp -n $keep/* run 2>/dev/null; exec dedup --near --stage $stage $part --work run"
done
keep=
stop dedup-filter dedup --near --stage filter --part 0/1 --work made -o run/o.tks 1.tks
stop decompose decompose --min 16 --max 64 --histogram run/h.csv -o run/o.tks 1.tks
stop pack pack --save-plan run/plan -o run/o.tks 2.tks
stop shuffle shuffle -o run/o.tks 3.tks
decompose --min 16 --max 64 1.tks | pack -o nolabel.tks
for format in wds olmo mds; do
    from=nolabel.tks
    [ $format != wds ] || from=3.tks
    stop "shuffle-$format" shuffle -q --format $format --shard-sequences 64 -o run/set $from
done
stop schedule schedule --trainer generic --batch-tokens 64 -o run/s set
stop inspect inspect --records -o run/r 3.tks
