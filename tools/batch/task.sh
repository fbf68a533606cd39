# shellcheck shell=sh disable=SC2154,SC2034
# task.sh - sluice-batch: one part of a stage is run, and what became of it is written down. Sourced by sluice-batch.

# book WHAT STATUS: the part's line: STAGE I WHAT BEGAN ENDED TOKENS STOPS HOST JOB PROCESS STATUS.
# WHAT is running, done, failed, or stopped (by a signal that asked for it; STOPS counts them).
book() {
    line=$OUT/state/$stage/.$i.$host.$$
    echo "$stage $i $1 $began $(date +%s) $tokens $stops $host $job $$ $2" >"$line" && mv -f "$line" "$OUT/state/$stage/$i"
}
# book_end WHAT STATUS: not where somebody else has begun the same part since, as when this node was thought dead: what
# becomes of that run counts.
book_end() {
    read -r _ _ _ _ _ _ _ h _ p _ <"$OUT/state/$stage/$i" && [ "$h $p" != "$host $$" ] || book "$1" "$2"
}
# Without Slurm other machines see by the time of that line, which they can't by a process, that the part goes on.
beat() {
    trap 'kill "$nap" 2>/dev/null; exit 0' TERM
    while :; do
        sleep 60 &
        nap=$!
        wait $nap
        kill -0 $$ 2>/dev/null || exit 0
        touch -c "$OUT/state/$stage/$i"
    done
}
# run_child COMMAND...: signals that ask to stop are passed on; the result in $status, the signal in $asked.
run_child() {
    child='' asked=''
    trap 'asked=time; [ -z "$child" ] || kill -TERM "$child"' USR1
    trap 'asked=stop; [ -z "$child" ] || kill -TERM "$child"' TERM INT HUP
    printf '%s\n' "== $(date -u +%FT%TZ) $host: $(show "$@")"
    "$@" <"$stdin" &
    child=$!
    [ -z "$asked" ] || kill -TERM "$child"
    while :; do # wait comes back for a signal too, with the child still there
        wait "$child"
        status=$?
        kill -0 "$child" 2>/dev/null || break
    done
}
# check_free COMMAND...: of a part that was never begun nothing is there yet.
check_free() {
    option=''
    for w; do
        case $option in
        -o | --stats)
            for f in "$w" "$w.manifest.json"; do
                [ ! -f "$f" ] && [ ! -h "$f" ] || die "$f: sluice-batch did not write it, and would; move it away"
            done
            ;;
        esac
        option=$w
    done
}
show() {
    for w; do
        case $w in
        *[!A-Za-z0-9_./=:,%@+-]* | '') printf "'%s' " "$(printf %s "$w" | sed "s/'/'\\\\''/g")" ;;
        *) printf '%s ' "$w" ;;
        esac
    done
    echo
}
task() {
    stage=$1 i=$2
    case $i in
    auto*)
        [ -n "${SLURM_ARRAY_TASK_ID:-}" ] || die "task: auto means \$SLURM_ARRAY_TASK_ID, which is not set"
        i=$((SLURM_ARRAY_TASK_ID + ${i#auto}))
        ;;
    *) unset SLURM_JOB_ID SLURMD_NODENAME ;; # a job that is not one of ours, and not ours to requeue
    esac
    parts=$(stages | awk -v s="$stage" '$1 == s { print $2 }')
    [ -n "$parts" ] || die "$OUT has no stage '$stage'; 'sluice-batch stages' lists them"
    case $i in
    '' | *[!0-9]*) die "task: '$i' is no part of $stage; there are $parts, counted from 0" ;;
    esac
    [ "$i" -lt "$parts" ] || die "task: $stage has no part $i; there are $parts, counted from 0"
    host=${SLURMD_NODENAME:-$(uname -n)} job=${SLURM_JOB_ID:--} began=$(date +%s) tokens=0 stops=0
    for f in "state/$stage" "state/$stage/$i" "logs/$stage.$i.log" "stats/$stage.$i.json" "work/${stage%%-*}" "work/${stage%%-*}.phases"; do
        no_link "$OUT/$f"
    done
    [ -s "$OUT/state/$stage/$i" ] || perform check_free "$stage" "$i"
    folders command "$stage" || exit 1
    # Slurm writes the log itself, as it has things to say there too.
    [ -n "${SLURM_JOB_ID:-}" ] || exec >>"$OUT/logs/$stage.$i.log" 2>&1
    cd "$(cat "$OUT/state/cwd")" || exit 1
    if [ -s "$OUT/state/$stage/$i" ]; then
        read -r _ _ what _ _ _ stops _ <"$OUT/state/$stage/$i"
        [ "$what" = stopped ] || stops=0
        # What it would read may be gone.
        [ "$what $(value keep all)" != "done needed" ] || exit 0
    fi
    [ "$i" != 0 ] || prune "$stage"
    book running - || exit 1
    if [ "$stage" = tokenize ] && ! why=$(changed_inputs); then
        printf '%s\n' "sluice-batch: $why"
        book_end failed 1
        exit 1
    fi
    heart=''
    [ "$job" != - ] || { beat </dev/null >/dev/null 2>&1 & heart=$!; }
    perform run_child "$stage" "$i"
    [ -z "$heart" ] || kill "$heart" 2>/dev/null
    if [ "$status" = 0 ]; then
        tokens=$(sed -n 's/.*"tokens": *{\([^}]*\).*/\1/p' "$OUT/stats/$stage.$i.json" | tr ',' '\n' |
            awk -F: '$1 ~ /"(in|out|from_work|to_work)"/ && $2 > m { m = $2 } END { printf "%d", m }')
        book 'done' 0
        prune_last "$stage"
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
        [ "$asked" != time ] || echo "sluice-batch: $stage $i: stopped $stops times by the time limit; raise $stage.time"
        book_end stopped 75
        exit 75
    fi
    [ "$status" -lt 128 ] || echo "sluice-batch: $stage $i: ended by signal $((status - 128))"
    book_end failed "$status"
    exit "$status"
}
