# shellcheck shell=sh disable=SC2154,SC2034
# stages.sh - sluice-batch: which stages a recipe has, and the command line of each part. Sourced by sluice-batch, of
# which it uses OUT, bin, prefix, value(), given(), limit() and die().

# The recipe's steps in order: streams go from one to the next. Those of dedup are called by their modes.
steps() {
    echo tokenize
    ! given dedup || value dedup | awk "$(cat "$share/words.awk")"'{ print mode($0) }'
    for s in decompose pack shuffle; do
        ! given $s || echo $s
    done
}
# Lines "STAGE PARTS AFTER": AFTER is "-", "same" (the part of the same number of the stage before) or "all" of them.
stages() {
    n=$(value parts)
    steps | while read -r step; do
        case $step in
        tokenize) echo "tokenize $n -" ;;
        near) printf "near-%s\n" "sign $n same" "merge $n all" "verify $n all" "cluster 1 all" "filter $n all" ;;
        exact) printf "exact-%s\n" "sign $n same" "merge $n all" "cluster 1 all" "filter $n all" ;;
        substring) printf "substring-%s\n" "sign $n same" "merge $n all" "ask $n all" "match $n all" "filter $n all" ;;
        decompose) echo "decompose $n same" ;;
        pack) printf "pack-%s\n" "count $n same" "plan 1 all" "scatter $n all" "gather $n all" ;;
        shuffle)
            ! is_blend || printf "shuffle-%s\n" "count $n all" "blend 1 all"
            printf "shuffle-%s\n" "scatter $n all" "gather $n all"
            ! is_set || echo "shuffle-finish 1 all"
            ;;
        esac
    done
    echo "report 1 all"
}
program_of() {
    case $1 in
    near* | exact* | substring*) program=dedup ;;
    report) program=inspect ;;
    *) program=${1%%-*} ;;
    esac
}
is_set() { [ -n "$(value shuffle | picked --format=)" ]; }
is_blend() { [ -n "$(value shuffle | picked '--mix= --mix-schedule=')" ]; }
# folders RUNNER STAGE: those that the stage writes to are made.
folders() {
    step=${2%%-*}
    set -- "$1" mkdir -p "$OUT/state/$2" "$OUT/work/$step.phases"
    made=$(made "$step" 0)
    { [ "$step" = shuffle ] && is_set; } || [ "$step" = report ] || set -- "$@" "${made%/*}"
    "$@"
}
# made STEP I: stream I that a step makes. Pack makes twice as many as there are parts: what passes it, then its bins.
# Names of the last step's sort as numbers do.
made() {
    if [ "$1" = "$(steps | tail -n 1)" ]; then
        w=$(value parts)0
        printf '%s/stream/%0*d.tks\n' "$OUT" ${#w} "$2"
    else
        printf '%s\n' "$OUT/work/$1/$2.tks"
    fi
}
step_before() { steps | awk -v s="$1" '$1 == s { print b } { b = $1 }'; }

# perform RUNNER STAGE I: calls RUNNER with the command line of a part; its standard input is $stdin.
perform() {
    runner=$1 stage=$2 i=$3 stdin=/dev/null
    step=${stage%%-*} phase=${stage#*-}
    program_of "$stage"
    n=$(value parts)
    before=$(step_before "$step")
    work=$OUT/work/$step.phases
    options=$(value "$program")
    [ "$program" != dedup ] || options=$(value dedup | awk -v m="$step" "$(cat "$share/words.awk")"'
        mode($0) == m')
    eval "set -- \"\$bin/\$prefix\$program\" $(printf '%s\n' "$options" | requote)"
    set -- "$@" --seed "$(value seed 0)" -T "$(limit "$stage" threads 1)"
    [ -x "$1" ] || die "$1: no such program; sluice-batch lies beside the others"
    memory=$(limit "$stage" memory)
    [ -z "$memory" ] || set -- "$@" -M "$(budget "$memory")"
    tmpdir=$(limit "$stage" tmpdir)
    [ -z "$tmpdir" ] || set -- "$@" --tmpdir "$tmpdir"
    set -- "$@" --stats "$OUT/stats/$stage.$i.json"
    case $stage in
    tokenize)
        ! given tokenizer || set -- "$@" -t "$(value tokenizer)"
        set -- "$@" --files-from "$OUT/state/inputs" --part "$i/$n" -o "$(made tokenize "$i")"
        ;;
    *-sign | *-ask) set -- "$@" --phase "$phase" --work "$work" --part "$i/$n" "$(made "$before" "$i")" ;;
    *-merge | *-verify | *-match) set -- "$@" --phase "$phase" --work "$work" --part "$i/$n" ;;
    *-cluster) set -- "$@" --phase cluster --work "$work" ;;
    *-filter)
        set -- "$@" --phase filter --work "$work" --part "$i/$n" -o "$(made "$step" "$i")" "$(made "$before" "$i")"
        ;;
    decompose) set -- "$@" --part "$i/$n" -o "$(made decompose "$i")" "$OUT/work/$before/{part}.tks" ;;
    pack-count) set -- "$@" --phase count --work "$work" --part "$i/$n" "$(made "$before" "$i")" ;;
    pack-plan) set -- "$@" --phase plan --work "$work" ;;
    pack-scatter)
        set -- "$@" --phase scatter --work "$work" --part "$i/$n" -o "$(made pack "$i")" "$(made "$before" "$i")"
        ;;
    pack-gather) set -- "$@" --phase gather --work "$work" --part "$i/$n" -o "$(made pack $((n + i)))" ;;
    shuffle-count | shuffle-scatter)
        set -- "$@" --phase "$phase" --work "$work" --part "$i/$n"
        # The order of parts is that of the stream, also where there are twice as many streams.
        if [ "$before" = pack ]; then
            set -- "$@" "$(made pack $((2 * i)))" "$(made pack $((2 * i + 1)))"
        else
            set -- "$@" "$(made "$before" "$i")"
        fi
        ;;
    shuffle-blend) set -- "$@" --phase blend --work "$work" ;;
    shuffle-gather)
        set -- "$@" --phase gather --work "$work" --part "$i/$n"
        if is_set; then
            set -- "$@" -o "$OUT/shards"
        else
            set -- "$@" -o "$(made shuffle "$i")"
        fi
        ;;
    shuffle-finish) set -- "$@" --phase finish --work "$work" -o "$OUT/shards" ;;
    report)
        stages | while read -r s parts _; do
            [ "$s" = report ] || s="$OUT/stats/$s" awk -v n="$parts" 'BEGIN { for (i = 0; i < n; i++) print ENVIRON["s"] "." i ".json" }'
        done >"$OUT/state/.reports.$$" && mv -f "$OUT/state/.reports.$$" "$OUT/state/reports" || die "$OUT/state/reports cannot be written"
        stdin=$OUT/state/reports
        set -- "$@" --merge-stats -o "$OUT/report.json" -
        ;;
    *) die "$stage: no such stage" ;;
    esac
    "$runner" "$@"
}
# budget SIZE: what a program may use of a job's memory: three quarters, as buffers and the stack come on top.
budget() {
    digits=${1%[KMGT]}
    case $1 in
    *K) echo $((digits * 3 / 4))K ;;
    *M) echo $((digits * 768))K ;;
    *G) echo $((digits * 768))M ;;
    *T) echo $((digits * 768))G ;;
    esac
}
