# shellcheck shell=sh disable=SC2154,SC2034
# stages.sh - sluice-batch: which stages a recipe has, which of them run together, and the command line of each part. Sourced by sluice-batch, of
# which it uses OUT, bin, prefix, what read_recipe() keeps, value(), given(), limit() and die(). Which stages a program
# has, and what they read and write, it says itself (--stages).

# The recipe's steps in order: streams go from one to the next. Those of dedup are called by their modes.
steps() { printf '%s\n' "$step_list"; }
list_steps() {
    echo tokenize
    ! given dedup || value dedup | awk "$words_awk"'{ print mode($0) }'
    for s in decompose pack shuffle; do
        ! given $s || echo $s
    done
}
# Lines "STEP STAGE JOBS READS WRITES FILES" of all stages, as the programs print them; - for what a step has not. Those
# of programs without stages are here.
flows() { printf '%s\n' "$flow_list"; }
# ask_flows FILE: asks the programs; what one does not like about the recipe is said.
ask_flows() {
    for step in $step_list; do
        case $step in
        tokenize) echo "tokenize - parts - writes -" ;;
        decompose) echo "decompose - parts reads writes -" ;;
        *)
            program_of "$step"
            eval "set -- \"\$1\" \"\$bin/\$prefix\$program\" $(options_of "$step" | requote)"
            file=$1
            shift
            said=$("$@" --stages </dev/null 2>&1) || die "$file: $(printf '%s\n' "$said" | tail -n 1)"
            printf '%s\n' "$said" | sed "s/^/$step /"
            set -- "$file"
            ;;
        esac
    done
}
# options_of STEP: lines of the recipe's options.
options_of() {
    case $program in
    dedup) value dedup | awk -v m="$1" "$words_awk"'mode($0) == m' ;;
    *) value "$program" ;;
    esac
}
# Lines "STAGE PARTS AFTER" of the tasks, called by their first stages: AFTER is "-", "same" (the part of the same number of
# the task before) or "all" of them. chain TASK: the stages of one, as chains.awk has them.
stages() { printf '%s\n' "$stage_list"; }
chain() { printf '%s\n' "$chain_list" | sed -n "s/^R $1 //p"; }
list_tasks() {
    chain_list=$(flows | awk -v n="$(value parts)" -f "$share/chains.awk")
    stage_list=$(printf '%s\n' "$chain_list" | sed -n 's/^T //p')
}
# each_stage FUNCTION TASK: calls it for each stage of a task, in the order of the pipe, with what chains.awk says of it in
# $stage, $step, $phase, $jobs, $from, $to, $base, $new, $ranges and $stream.
each_stage() {
    rows=$(chain "$2")
    while [ -n "$rows" ]; do
        read -r stage step phase jobs from to base new ranges stream <<EOF
$rows
EOF
        case $rows in *"$newline"*) rows=${rows#*"$newline"} ;; *) rows='' ;; esac
        "$1"
    done
}
program_of() {
    case $1 in
    near* | exact* | substring*) program=dedup ;;
    report) program=inspect ;;
    *) program=${1%%-*} ;;
    esac
}
is_set() { case $flow_list in *' set '*) ;; *) false ;; esac; }
# folders RUNNER TASK: those that the task writes to are made.
folders() {
    runner=$1
    "$runner" mkdir -p "$OUT/state/$2" && each_stage folders_of_stage "$2"
}
folders_of_stage() {
    [ "$phase" = - ] || "$runner" mkdir -p "$OUT/work/$step.phases"
    [ "$to" != writes ] || { made=$(made "$step" 0) && "$runner" mkdir -p "${made%/*}"; }
}
# made STEP I: stream I that a step makes: those of all parts of its first stage that writes, then of the next. Names of
# the last step's sort as numbers do.
made() {
    if [ "$1" = "${step_list##*"$newline"}" ]; then
        w=$(value parts)0
        printf '%s/stream/%0*d.tks\n' "$OUT" ${#w} "$2"
    else
        printf '%s\n' "$OUT/work/$1/$2.tks"
    fi
}
step_before() {
    previous=''
    for each in $step_list; do
        [ "$each" != "$1" ] || printf '%s\n' "$previous"
        previous=$each
    done
}

# perform RUNNER TASK I: calls RUNNER with the command line of each stage of a task's part; standard input of what reads
# no pipe is $stdin, $part the stage's own.
perform() {
    runner=$1 i=$3 together=$(chain "$2" | wc -l)
    each_stage perform_stage "$2"
}
perform_stage() {
    program_of "$stage"
    stdin=/dev/null part=$((base + i))
    eval "set -- \"\$bin/\$prefix\$program\" $(options_of "$step" | requote)"
    [ -x "$1" ] || die "$1: no such program; sluice-batch lies beside the others"
    set -- "$@" --seed "$(value seed 0)" -T "$(limit "$stage" threads 1)"
    memory=$(limit "$stage" memory)
    [ -z "$memory" ] || set -- "$@" -M "$(budget "$memory" "$together")"
    tmpdir=$(limit "$stage" tmpdir)
    [ -z "$tmpdir" ] || set -- "$@" --tmpdir "$tmpdir"
    [ "$new" = 0 ] || set -- "$@" --stats "$OUT/stats/$stage.$part.json"
    [ "$jobs" = 0 ] || set -- "$@" --part "$part/$jobs"
    [ "$ranges" = 0 ] || set -- "$@" --ranges "$ranges"
    [ "$phase" = - ] || set -- "$@" --stage "$phase" --work "$OUT/work/$step.phases"
    case $stage in
    tokenize)
        ! given tokenizer || set -- "$@" -t "$(value tokenizer)"
        set -- "$@" --files-from "$OUT/state/inputs"
        ;;
    report)
        list_reports >"$OUT/state/.reports.$$" && mv -f "$OUT/state/.reports.$$" "$OUT/state/reports" ||
            die "$OUT/state/reports cannot be written"
        stdin=$OUT/state/reports
        set -- "$@" --merge-stats -o "$OUT/report.json" -
        ;;
    esac
    case $to in
    writes) set -- "$@" -o "$(made "$step" $((stream + part)))" ;;
    set) set -- "$@" -o "$OUT/shards" ;;
    esac
    case $from$stage in
    storeddecompose) set -- "$@" "$(made "$(step_before "$step")" '{part}')" ;;
    stored*) set -- "$@" "$(made "$(step_before "$step")" "$part")" ;;
    esac
    "$runner" "$@"
}
# The reports of all stages, not of those that run again.
list_reports() {
    printf '%s\n' "$chain_list" | s="$OUT/stats/" awk '
        $1 == "T" { n = $3 }
        $1 == "R" && $10 && $3 != "report" { for (i = 0; i < n; i++) print ENVIRON["s"] $3 "." $9 + i ".json" }'
}
# budget SIZE N: what each of N programs may use of a job's memory: together three quarters, as buffers and stacks come on top.
budget() {
    digits=${1%[KMGT]}
    case $1 in
    *K) echo $((digits * 3 / 4 / $2))K ;;
    *M) echo $((digits * 768 / $2))K ;;
    *G) echo $((digits * 786432 / $2))K ;;
    *T) echo $((digits * 768 * 1048576 / $2))K ;;
    esac
}
