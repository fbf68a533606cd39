# shellcheck shell=sh disable=SC2154,SC2034
# stages.sh - sluice-batch: finds the stages of a recipe, those that run together, and the command line of each part.
# Sourced by sluice-batch, of which it uses OUT, bin, prefix, the variables of read_recipe(), value(), given() and
# die(). Each program prints its stages and their inputs and outputs (--stages).

# The recipe's steps in order; streams go from one step to the next. Steps of dedup have the names of their modes.
steps() { printf '%s\n' "$step_list"; }
list_steps() {
    given set || echo tokenize
    ! given dedup || value dedup | awk "$words_awk"'{ print mode($0) }' || return 1
    for s in choose decompose pack shuffle; do
        ! given $s || echo $s
    done
}
# Prints lines "STEP STAGE JOBS READS WRITES FILES" of all stages, as the programs print them; - stands for an empty field.
# The lines of programs without stages are made here.
flows() { printf '%s\n' "$flow_list"; }
# Asks the programs for their stages; if a program refuses the recipe, reports its message.
ask_flows() {
    for step in $step_list; do
        program_of "$step"
        quoted=$(options_of "$step" | requote) || exit 1
        eval "set -- \"\$bin/\$prefix\$program\" $quoted"
        "$@" --facts </dev/null >/dev/null 2>"$scratch/err" || die "$(at "$step"): $(tail -n 1 "$scratch/err")"
        case $step in
        tokenize) said="- parts - writes -" ;;
        decompose) said="- parts reads writes -" ;;
        *) said=$("$@" --stages </dev/null 2>&1) || die "$(at "$step"): $(printf '%s\n' "$said" | tail -n 1)" ;;
        esac
        printf '%s\n' "$said" | sed "s/^/$step /" || exit 1
    done
}
# options_of STEP: prints the lines of the recipe's options for the step; those of dedup name their mode.
options_of() {
    case $program in
    dedup)
        save=''
        ! given index || [ "$1" = substring ] || save=$OUT/$1.index
        value dedup | save=$save awk -v m="$1" "$words_awk"'
            mode($0) == m { print (words($0) ? $0 : "--exact") (ENVIRON["save"] == "" ? "" : " --save-index " quoted(ENVIRON["save"])) }'
        ;;
    *) value "$program" ;;
    esac
}
# Prints the tasks, from chains.awk.
list_tasks() { chain_list=$(flows | awk -f "$share/words.awk" -f "$share/chains.awk" "$recipe" -); }
# keep_tasks: stores the tasks in a form that the shell reads, so that a task only reads its own lines: its $parts and,
# in $rows_kept, its stages. The first line tells recipes of other records apart.
keep_tasks() {
    made_by=$({ flows && cat "$OUT/state/records"; } | cksum | tr ' ' -)
    printf '%s\n' "$chain_list" | keep=$(value keep all) made_by=$made_by awk '
        BEGIN { print "made_by=" ENVIRON["made_by"] "\nkeep=" ENVIRON["keep"] "\ncase $task in" }
        { gsub(/\047/, "\047\\\047\047") }
        $1 == "T" { printf "%s%s) parts=%s rows_kept=\047", n++ ? "\047 ;;\n" : "", $2, $3 }
        $1 == "R" { print }
        END { print "\047 ;;\nesac" }' >"$OUT/state/.tasks.$$" && mv "$OUT/state/.tasks.$$" "$OUT/state/tasks"
}
# Prints lines "STAGE PARTS AFTER" of the tasks, by the names of their first stages. AFTER is "-", "same" (the part with
# the same number in the task before) or "all" parts of it. chain TASK: prints the stages of a task.
stages() { printf '%s\n' "$chain_list" | sed -n 's/^T //p'; }
chain() { printf '%s\n' "$chain_list" | sed -n "s/^R $1 //p"; }
# each_stage FUNCTION TASK: calls FUNCTION for each stage of a task, in the order of the line, with the fields of
# chains.awk in $stage, $step, $number, $from, $to, $base, $new, $of and $command.
each_stage() {
    rows=$rows_kept
    [ -n "$rows" ] || rows=$(printf '%s\n' "$chain_list" | grep "^R $2 ")$newline
    while [ -n "$rows" ]; do
        row=${rows%%"$newline"*} rows=${rows#*"$newline"}
        command=${row#*"$tab"}
        # shellcheck disable=SC2086 # words
        set -- "$1" ${row%%"$tab"*}
        stage=$4 step=$5 number=$6 from=$7 to=$8 base=$9 new=${10} of=${11}
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
# folders RUNNER TASK: makes the folders that the task writes to.
folders() {
    runner=$1
    folder "$OUT/state/$2" && each_stage folders_of_stage "$2"
}
folder() { [ -d "$1" ] && [ "$runner" = command ] || "$runner" mkdir -p "$1"; }
folders_of_stage() {
    [ "$number" = - ] || folder "$OUT/work/$step.stages"
    case $to in stream | work/*) folder "$OUT/$to" ;; esac
}
# perform RUNNER TASK I: calls RUNNER with the command line of each stage of a task's part. $stdin is the standard input
# of a stage that reads no pipe, $part the stage's own part.
perform() {
    runner=$1 i=$3
    each_stage perform_stage "$2"
}
perform_stage() {
    stdin=/dev/null part=$((base + i))
    if [ "$stage" = report ]; then
        stdin=$OUT/state/reports
        list_reports >"$OUT/state/.reports.$$" && mv -f "$OUT/state/.reports.$$" "$stdin" || die "$stdin cannot be written"
    fi
    eval "set -- $command"
    [ -x "$1" ] || die "$1: no such program; sluice-batch lies beside the others"
    "$runner" "$@"
}
# The reports of all stages, except of those that run a second time.
list_reports() {
    printf '%s\n' "$chain_list" | s="$OUT/stats/" awk '
        $1 == "T" { n = $3 }
        $1 == "R" && $9 && $3 != "report" { for (i = 0; i < n; i++) print ENVIRON["s"] $3 "." $8 + i ".json" }'
}
