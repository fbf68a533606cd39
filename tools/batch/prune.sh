# shellcheck shell=sh disable=SC2154
# prune.sh - sluice-batch: with "keep = needed", what no stage reads any more goes while the others run. Sourced by
# sluice-batch, of which it uses OUT, value(), stages() and step_before().

# prune STAGE: called by part 0 of a stage that waits for all parts of the stage before: when these are done nobody reads
# what only they needed. Stages from this one on keep what they read. Again and at once with itself: no harm.
prune() {
    [ "$(value keep all)" = needed ] || return 0
    before=$(stages | awk -v s="$1" '$1 == s && $3 == "all" { print b } { b = $1 " " $2 }')
    # It may have begun behind parts that have failed, see plan.awk: they are run again, and need all they needed.
    [ -n "$before" ] && [ "$(parts_done "${before% *}")" = "${before#* }" ] || return 0
    rest=$(stages | awk -v s="$1" '$1 == s && $3 == "all" { on = 1 } on { print $1 }')
    read_later=' '
    for s in $rest; do
        case $s in
        *-sign | *-ask | *-filter | decompose | pack-count | pack-scatter | shuffle-count | shuffle-scatter)
            read_later="$read_later$(step_before "${s%%-*}") "
            ;;
        esac
        case $s in *-*) read_later="$read_later${s%%-*}.phases " ;; esac
    done
    for d in "$OUT/work"/*; do
        case $read_later in *" ${d##*/} "*) ;; *) rm -rf "$d" ;; esac
    done
    case $1 in # the sets of n-grams are most of what near duplicates take
    near-filter | exact-filter) rm -f "$OUT/work/${1%-*}.phases"/sign.* "$OUT/work/${1%-*}.phases"/merge.* "$OUT/work/${1%-*}.phases"/verify.* ;;
    substring-filter) rm -f "$OUT/work/substring.phases"/sign.* ;; # ask and match are what it reads
    esac
}
parts_done() { find "$OUT/state/$1" -type f ! -name '.*' -exec cat {} + 2>/dev/null | grep -c ' done '; }
# prune_last STAGE: called when a part is done: behind the last stage, where that is one part, nothing is read any more.
prune_last() {
    [ "$(value keep all) $(stages | tail -n 1)" != "needed $1 1 all" ] || rm -rf "$OUT/work"
}
