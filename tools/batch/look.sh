# shellcheck shell=sh disable=SC2154,SC2034
# look.sh - sluice-batch: the commands status, cancel and clean. Sourced by sluice-batch.

status() {
    facts >"$scratch/facts" || exit 1
    ls "$OUT/logs" | sed -n 's/^\(.*\)\.\([0-9]*\)\.log$/\1 \2/p' | grep -vxFf "$scratch/again" | sed 's/^/L /' >>"$scratch/facts"
    printf '%s\n' "$OUT"
    awk -f "$share/units.awk" -f "$share/facts.awk" -f "$share/status.awk" "$scratch/facts" >"$scratch/status"
    grep -v '^FAILED ' "$scratch/status"
    report_failed "$scratch/status"
    # A report.json of somebody else is no error here.
    ! grep -q '^\([0-9]*\) of \1 parts done$' "$scratch/status" ||
        "$bin/${prefix}inspect" --merge-stats --table "$OUT/report.json" 2>/dev/null || :
}
# look: says what of OUT is not what the recipe makes now, which then counts as not done; and why a folder that it extends is no more
# one to go on with.
look() {
    cp "$OUT/state/inputs" "$scratch/inputs" 2>/dev/null
    follows=''
    ! given extends || ! (extend) || follows=1
    (looks=1 && { [ -z "$follows" ] || { read_recipe "$scratch/extended" && find_flows; }; } && reckon "$OUT" 0) >"$scratch/looked" 2>&1 || { grep '^sluice-batch: ' "$scratch/looked" >&2 && return; }
    sed -n 's/^W //p' "$scratch/graph" | while read -r s _ why; do
        say "$s: $why; 'sluice-batch resume $(show "$OUT" | sed 's/ $//')' makes it again, and what reads it"
    done
}
# report_failed FILE: prints the first of the lines "FAILED STAGE I HOST WHY...", with the last lines of their logs.
report_failed() {
    grep '^FAILED ' "$1" >"$scratch/failed" || return 0
    head -n 6 "$scratch/failed" | while read -r _ s i host why; do
        echo "  $s part $i$([ "$host" = - ] || echo " on $host"): $why"
        printf '%s\n' "    $OUT/logs/$s.$i.log: $(grep -vE '^ *(Killed|Terminated|Hangup)? *$' "$OUT/logs/$s.$i.log" 2>/dev/null | tail -n 1 | cut -c 1-400)"
    done
    n=$(wc -l <"$scratch/failed")
    [ "$n" -le 6 ] || echo "  and $((n - 6)) more: sluice-batch --pending $(show "$OUT")"
}
cancel() {
    ids=''
    owner=$(cat "$OUT/state/lock" 2>/dev/null)
    pid=${owner#* }
    pid=${pid%% *}
    if [ -n "$owner" ] && [ "${owner%% *}" = "$(uname -n)" ] && ours "$pid"; then # before the queue: it may be submitting
        kill -TERM "$pid"
        while ours "$pid"; do sleep 0.2; done
        ids=local
    fi
    queue >"$scratch/queue" || exit 1
    [ ! -s "$OUT/state/jobs" ] || jobs=$(awk 'NR == FNR { j[$1] = 1; next } ($1 in j) && !seen[$1]++ { print $1 }' \
        "$OUT/state/jobs" "$scratch/queue")
    # shellcheck disable=SC2086 # words
    [ -z "${jobs:-}" ] || scancel $jobs
    ids="$ids ${jobs:-}"
    if [ "$ids" = ' ' ]; then
        echo "nothing is running"
    else
        printf '%s\n' "cancelled: $(echo "$ids" | wc -w) arrays; 'sluice-batch resume $OUT' goes on"
    fi
}
# how_far: prints "busy" if parts are queued or running, else "left" if some are not done, else "whole".
how_far() {
    facts >"$scratch/facts" || exit 1
    awk "$(cat "$share/facts.awk")"'
        END {
            for (k = 1; k <= ns; k++)
                for (p = 0; p < n[k]; p++) {
                    busy += (k, p) in job
                    left += what[k, p] != "done"
                }
            print busy ? "busy" : left ? "left" : "whole"
        }' "$scratch/facts"
}
clean() {
    far=$(how_far) || exit 1
    [ "$far" != whole ] || { look && far=$(how_far) || exit 1; }
    case $far in
    busy) die "$OUT is still worked on; 'sluice-batch cancel $OUT' stops that" ;;
    whole)
        why=$(remove_work) || printf '%s\n' "$why"
        printf '%s\n' "$OUT: whole; what was between the stages is removed"
        ;;
    left)
        for d in state logs stats work stream shards; do
            [ ! -d "$OUT/$d" ] || find "$OUT/$d" -name '.sluice-*.tmp' -type f -exec rm -f {} +
        done
        find "$OUT/state" \( -name '.[0-9]*.*.*' -o -name '.lock.*' -o -name '.all.*' -o -name '.now.*' -o -name '.reports.*' \) \
            -type f -exec rm -f {} +
        printf '%s\n' "$OUT: not whole; temporary files are removed, the others are needed to go on"
        ;;
    esac
}
