# shellcheck shell=sh disable=SC2154,SC2034
# stages.sh - sluice-batch: which stages a recipe has, and the command line of each part. Sourced by sluice-batch, of
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
# Lines "STAGE PARTS AFTER": AFTER is "-", "same" (the part of the same number of the stage before) or "all" of them.
stages() { printf '%s\n' "$stage_list"; }
list_stages() {
    flows | awk -v n="$(value parts)" '
        {
            first = $1 != step
            if (first) { before = writes; writes = 0 }
            step = $1
            writes += $5 == "writes"
            print $1 ($2 == "-" ? "" : "-" $2), $3 == "one" ? 1 : n, NR == 1 ? "-" : first && before == 1 ? "same" : "all"
        }
        END { print "report 1 all" }'
}
# writers STEP: how many of its stages write streams, of each part one.
writers() { flows | awk -v s="$1" '$1 == s && $5 == "writes" { n++ } END { print n + 0 }'; }
program_of() {
    case $1 in
    near* | exact* | substring*) program=dedup ;;
    report) program=inspect ;;
    *) program=${1%%-*} ;;
    esac
}
is_set() { case $flow_list in *' set '*) ;; *) false ;; esac; }
# folders RUNNER STAGE: those that the stage writes to are made.
folders() {
    step=${2%%-*}
    set -- "$1" mkdir -p "$OUT/state/$2" "$OUT/work/$step.phases"
    made=$(made "$step" 0)
    [ "$(writers "$step")" = 0 ] || set -- "$@" "${made%/*}"
    "$@"
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

# perform RUNNER STAGE I: calls RUNNER with the command line of a part; its standard input is $stdin.
perform() {
    runner=$1 stage=$2 i=$3 stdin=/dev/null
    step=${stage%%-*} phase=${stage#*-}
    program_of "$stage"
    n=$(value parts)
    before=$(step_before "$step")
    work=$OUT/work/$step.phases
    eval "set -- \"\$bin/\$prefix\$program\" $(options_of "$step" | requote)"
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
    decompose) set -- "$@" --part "$i/$n" -o "$(made decompose "$i")" "$OUT/work/$before/{part}.tks" ;;
    report)
        stages | while read -r s parts _; do
            [ "$s" = report ] || s="$OUT/stats/$s" awk -v n="$parts" 'BEGIN { for (i = 0; i < n; i++) print ENVIRON["s"] "." i ".json" }'
        done >"$OUT/state/.reports.$$" && mv -f "$OUT/state/.reports.$$" "$OUT/state/reports" || die "$OUT/state/reports cannot be written"
        stdin=$OUT/state/reports
        set -- "$@" --merge-stats -o "$OUT/report.json" -
        ;;
    *) # the flow's line; which of those that write it is; and how many streams of the step before are a part's
        flow=$(flows | awk -v s="$step" -v t="$phase" '
            $1 == s && $2 == t { print $3, $4, $5, k + 0 }
            $1 == s && $5 == "writes" { k++ }')
        [ -n "$flow" ] || die "$stage: no such stage"
        m=$(writers "$before") k=${flow##* }
        set -- "$@" --stage "$phase" --work "$work"
        case $flow in one*) ;; *) set -- "$@" --part "$i/$n" ;; esac
        case $flow in
        *' writes '*) set -- "$@" -o "$(made "$step" $((k * n + i)))" ;;
        *' set '*) set -- "$@" -o "$OUT/shards" ;;
        esac
        case $flow in
        *' reads '*) # the order of parts is that of the stream, also where there are more streams
            j=$((m * i))
            while [ $j -lt $((m * i + m)) ]; do
                set -- "$@" "$(made "$before" $j)"
                j=$((j + 1))
            done
            ;;
        esac
        ;;
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
