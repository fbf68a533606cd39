# shellcheck shell=sh disable=SC2154,SC2034
# task.sh - sluice-batch: runs one part of a stage, and records the result. Sourced by sluice-batch.

# book WHAT STATUS: writes the part's line: TASK I WHAT BEGAN ENDED TOKENS STOPS HOST JOB PROCESS STATUS.
# WHAT is running, done, failed, or stopped (by a signal that asked for it; STOPS counts them). The line of who has done
# it stays in .I.done too, until the part is to be done anew.
book() {
    line="$task $i $1 $began ${ended_at:=$began} $tokens $stops $host $job $$ $2"
    ended_at=''
    [ "$1" != 'done' ] || echo "$line" >"$OUT/state/$task/.$i.done"
    put_line "$line"
}
put_line() {
    file=$OUT/state/$task/$i line=$1
    # Each process costs a task a millisecond. The first line needs no mv: nobody else can have created the file too.
    set -C
    { [ ! -e "$file" ] && echo "$line" >"$file"; } 2>/dev/null
    created=$?
    set +C
    [ $created = 0 ] || { echo "$line" >"${file%/*}/.$i.$host.$$" && mv -f "${file%/*}/.$i.$host.$$" "$file"; }
}
# book_end WHAT STATUS: writes the line, unless another process has begun the same part since, for example because this
# node was thought dead; then the result of that run counts. So it does if it was done just before the line was written.
book_end() {
    ended_at=$(date +%s)
    read -r _ _ _ _ _ _ _ h _ p _ <"$OUT/state/$task/$i" && [ "$h $p" != "$host $$" ] || book "$1" "$2"
    before=$done_before
    who_did
    [ -z "$done_before" ] || [ "$done_before" = "$before" ] || put_line "$done_before"
}
# who_did: sets $done_before to the line of who has done the part, or to nothing.
who_did() { { IFS= read -r done_before <"$OUT/state/$task/.$i.done"; } 2>/dev/null || done_before=''; }
# current: whether the folder still has the recipe that this part was begun by; see change.sh.
current() {
    [ -z "$made_by" ] || { read -r line <"$OUT/state/tasks" && [ "$line" = "made_by=$made_by" ]; }
}
# has_report: reads the report of a stage, which must have the record in state/records; else $status is 1. For the stage that gives
# the task its name, $found is the tokens and the time.
has_report() {
    [ "$new" = 1 ] || return 0
    part=$((base + i))
    said=$(name=$stage awk '
        FILENAME == ARGV[1] { if (index($0, ENVIRON["name"] "\t") == 1) want = substr($0, length(ENVIRON["name"]) + 2); next }
        FNR == 2 && want != "" {
            has = substr($0, index($0, "\"arguments\""))
            sub(/,$/, "", has)
            if (has != want)
                why = part_of(has, "contents") != part_of(want, "contents") ? "a file that an option names is not as it was" : \
                    part_of(has, "all_inputs") != part_of(want, "all_inputs") ? "the inputs are not as they were" : "was made with other options than"
        }
        match($0, /"tokens": *[{][^}]*/) {
            n = split(substr($0, RSTART, RLENGTH), part, /[{,]/)
            for (i = 2; i <= n; i++)
                if (split(part[i], count, ":") == 2 && count[1] ~ /"(in|out|from_work|to_work)"/ && count[2] + 0 > most)
                    most = count[2] + 0
        }
        function part_of(text, key) { return match(text, "\"" key "\": [^]]*") ? substr(text, RSTART, RLENGTH) : "" }
        END { srand(); print why == "" ? sprintf("%.0f %d", most, srand()) : why }' "$OUT/state/records" "$OUT/stats/$stage.$part.json") # srand() is the time
    case $said in
    [0-9]*) [ "$stage" != "$task" ] || found=$said ;;
    *)
        printf '%s\n' "sluice-batch: $stage $part: $said when this folder was made; 'sluice-batch resume $(show "$OUT" | sed 's/ $//')' says what is made again"
        status=1
        ;;
    esac
}
# beat COMMAND...: runs it each minute, as long as this process lives. Without Slurm, other machines cannot see the process;
# the time of its line shows them that the part is running. Under --local, run_local() does this for all parts.
beat() {
    trap 'kill "$nap" 2>/dev/null; exit 0' TERM
    while :; do
        sleep 60 &
        nap=$!
        wait $nap
        kill -0 $$ 2>/dev/null || exit 0
        "$@"
    done
}
# run_task: starts the part's program, or all of them in one process by `sluice run`, and waits for it. Passes on signals
# that ask to stop, see $asked. $status is its exit status, $failed the stage that ended with it: the first that failed.
run_task() {
    asked='' child='' many=0 logs='' line='' n_word=0
    trap 'asked=time; pass_on' USR1
    trap 'asked=stop; pass_on' TERM INT HUP
    perform add_to_line "$task" "$i"
    if [ $many = 1 ]; then eval "set -- \"\$bin/\$prefix\"$line"; else eval "set -- \"\$bin/sluice\" run$logs $line"; fi
    "$@" <"$first_stdin" 2>&1 &
    child=$!
    [ -z "$asked" ] || pass_on
    while :; do # wait comes back for a signal too, with the child still there
        wait $child
        status=$?
        kill -0 $child 2>/dev/null || break
    done
    failed=$task.$i k=0
    while [ $status != 0 ] && [ $k -lt $many ]; do
        k=$((k + 1))
        eval "log=\$log$k"
        [ "$log" = /dev/stdout ] || case $(tail -n 1 "$log") in
        *': status 0') ;;
        'sluice: run: '*': status '*) log=${log##*/} failed=${log%.log} ;;
        esac
    done
}
pass_on() { [ -z "$child" ] || kill -TERM "$child" 2>/dev/null; }
# add_to_line COMMAND...: adds a stage to the $line of the part, see perform(). Its messages go to its log; for the stage
# that gives the task its name, to the task's log.
add_to_line() {
    many=$((many + 1))
    if [ "$stage" = "$task" ]; then log=/dev/stdout; else log=$OUT/logs/$stage.$part.log; fi
    {
        printf '%s' "== $time $host: "
        show "$@"
    } >>"$log"
    [ $many != 1 ] || first_stdin=$stdin
    eval "log$many=\$log"
    logs="$logs --log \"\$log$many\""
    program=${1##*/}
    line="$line${line:+ ! }${program#"$prefix"}"
    shift
    for w; do
        n_word=$((n_word + 1))
        eval "word$n_word=\$w"
        line="$line \"\$word$n_word\""
    done
}
# check_free COMMAND...: checks that no file of a part exists that was never begun.
check_free() {
    [ "$new" != 1 ] || each_output free "$@"
}
free() { [ ! -f "$1" ] && [ ! -h "$1" ] || die "$1: sluice-batch did not write it, and would; move it away"; }
# each_output FUNCTION COMMAND...: calls FUNCTION for each file in OUT that the command alone writes.
each_output() {
    each=$1 option=''
    shift
    for w; do
        case $option in
        -o | --stats) "$each" "$w" && "$each" "$w.manifest.json" ;;
        --save-index) [ "$number $w" != "index $OUT/$step.index" ] || "$each" "$w" ;;
        esac
        option=$w
    done
}
show() {
    show_words "$@"
    echo
}
show_words() {
    for w; do
        case $w in
        *[!A-Za-z0-9_./=:,%@+-]* | '') printf "'%s' " "$(printf %s "$w" | sed "s/'/'\\\\''/g")" ;;
        *) printf '%s ' "$w" ;;
        esac
    done
}
show_piped() { if [ "$to" = pipe ]; then show "$@" | sed 's/$/|/'; else show "$@"; fi; }
# free_of_links: checks that no file that a stage of the task writes is a link.
free_of_links() {
    for f in "logs/$stage.$((base + i)).log" "stats/$stage.$((base + i)).json" "work/$step" "work/$step.stages"; do
        no_link "$OUT/$f"
    done
}
task() {
    i=$1
    case $i in
    auto*)
        [ -n "${SLURM_ARRAY_TASK_ID:-}" ] || die "task: auto means \$SLURM_ARRAY_TASK_ID, which is not set"
        i=$((SLURM_ARRAY_TASK_ID + ${i#auto}))
        ;;
    *) unset SLURM_JOB_ID SLURMD_NODENAME ;; # a job that is not one of ours, and not ours to requeue
    esac
    [ -n "$rows_kept" ] || parts=$(stages | awk -v s="$task" '$1 == s { print $2 }')
    [ -n "$parts" ] || die "$OUT has no stage '$task'; 'sluice-batch stages' lists them"
    case $i in
    '' | *[!0-9]*) die "task: '$i' is no part of $task; there are $parts, counted from 0" ;;
    esac
    [ "$i" -lt "$parts" ] || die "task: $task has no part $i; there are $parts, counted from 0"
    time=$(date -u '+%s %FT%TZ')
    host=${SLURMD_NODENAME:-}
    [ -n "$host" ] || { read -r host </proc/sys/kernel/hostname; } 2>/dev/null || host=$(uname -n)
    job=${SLURM_JOB_ID:--} began=${time% *} tokens=0 stops=0
    time=${time#* }
    no_link "$OUT/state/$task" && no_link "$OUT/state/$task/$i" && no_link "$OUT/state/$task/.$i.done"
    each_stage free_of_links "$task"
    [ -s "$OUT/state/$task/$i" ] || [ -s "$OUT/state/$task.undone/$i" ] || perform check_free "$task" "$i"
    folders command "$task" || exit 1
    # Slurm writes to the log itself, so the log is not replaced.
    [ -n "${SLURM_JOB_ID:-}" ] || exec >>"$OUT/logs/$task.$i.log" 2>&1
    cd "$cwd" || exit 1
    if [ -s "$OUT/state/$task/$i" ]; then
        read -r _ _ what _ _ _ stops _ <"$OUT/state/$task/$i"
        [ "$what" = stopped ] || stops=0
        # The files that the part would read may be gone.
        [ "$what $keep" != "done needed" ] || exit 0
    fi
    who_did
    if [ -n "$done_before" ] && [ "$keep" = needed ]; then # whoever began it since did not come to its end
        put_line "$done_before"
        exit 0
    fi
    [ "$i" != 0 ] || prune "$task"
    book running - || exit 1
    [ ! -e "$OUT/state/$task.all" ] || rm -f "$OUT/state/$task.all" # see states()
    heart=''
    [ "$job" != - ] || [ -n "${SLUICE_BATCH_BEATS:-}" ] || { beat touch -c "$OUT/state/$task/$i" </dev/null >/dev/null 2>&1 & heart=$!; }
    run_task
    [ -z "$heart" ] || kill "$heart" 2>/dev/null
    if ! current 2>/dev/null; then
        echo "sluice-batch: $task $i: the recipe has changed since this part began; what it made does not count"
        exit 1
    fi
    if [ "$status" = 0 ]; then
        each_stage has_report "$task"
        [ "$status" = 0 ] || failed=$task.$i
    fi
    if [ "$status" = 0 ]; then
        tokens=${found% *} ended_at=${found#* }
        book 'done' 0
        prune_last "$task"
        exit
    fi
    if [ "$status" = 75 ] || [ -n "$asked" ]; then
        stops=$((stops + 1))
        if [ "$asked" = time ] && [ -n "${SLURM_JOB_ID:-}" ] && [ $stops -le 3 ]; then
            book_end stopped 75
            echo "== the time limit is near: stopped, and queued again"
            scontrol requeue "$SLURM_JOB_ID" # which ends this script
            exit 75
        fi
        [ "$asked" != time ] || echo "sluice-batch: $task $i: stopped $stops times by the time limit; raise $task.time"
        book_end stopped 75
        exit 75
    fi
    [ "$failed" = "$task.$i" ] || tail -n 2 "$OUT/logs/$failed.log" | sed '$d'
    [ "$status" -lt 128 ] || echo "sluice-batch: ${failed%.*} ${failed##*.}: ended by signal $((status - 128))"
    book_end failed "$status"
    exit "$status"
}
