# shellcheck shell=sh disable=SC2154,SC2034
# prune.sh - sluice-batch: with "keep = needed", removes files that no later stage reads while other stages run. Sourced
# by sluice-batch, of which it uses OUT, keep, flow_list, chain_list, stages() and steps().

# prune STAGE: called by part 0 of a stage that waits for all parts of the stage before. When these parts are done, no
# part reads the files that only they needed. Files that this stage or a later one reads are kept. May run again, and
# twice at once.
prune() {
    [ "$keep" = needed ] || return 0
    before=$(stages | awk -v s="$1" '$1 == s && $3 == "all" { print b } { b = $1 " " $2 }')
    # The stage may have started although earlier parts have failed (see plan.awk). These are run again and need their
    # files.
    [ -n "$before" ] && [ "$(parts_done "${before% *}")" = "${before#* }" ] || return 0
    rest=$(printf '%s\n' "$chain_list" | awk -v s="$1" '$1 == "T" && $2 == s { on = 1 } on && $1 == "R" { print $3 }')
    wanted=$(rest=$rest flows=$flow_list awk 'BEGIN {
        n = split(ENVIRON["rest"], a, "\n")
        for (i = 1; i <= n; i++)
            on[a[i]] = 1
        n = split(ENVIRON["flows"], line, "\n")
        for (i = 1; i <= n; i++) {
            split(line[i], f, " ")
            if (f[1] != step) { before = step; step = f[1] }
            if (!((step (f[2] == "-" ? "" : "-" f[2])) in on))
                continue
            kept[i] = 1
            if (f[2] != "-") print step ".stages"
            if (f[4] == "reads") print before
            m = split(f[6], files, ",")
            for (j = 1; j <= m; j++)
                read[step, files[j]] = 1
        }
        for (i = 1; i <= n; i++) {
            split(line[i], f, " ")
            if (!(i in kept) && !((f[1], f[2]) in read))
                print "-", f[1], f[2]
        }
    }')
    for d in $(work_folders); do
        case $newline$wanted$newline in *"$newline$d$newline"*) ;; *) remove_made "$d" ;; esac
    done
    # Removes the files of stages that no stage from this one on reads.
    printf '%s\n' "$wanted" | while read -r mark step s; do
        [ "$mark $s" = "- -" ] || [ "$mark" != - ] || remove_made "$step.stages" "$s$in_parts"
    done
}
# The folders in OUT/work.
work_folders() { steps | sed 'p; s/$/.stages/' && echo report.stages; }
# Regular expressions of names in OUT/work/STEP.stages: what may stand behind a stage's name; what a set's stages write
# besides.
in_parts='\(\.[0-9]+-of-[0-9]+\)?'
set_names='\(rows\|shards\)\(\.[0-9]+-of-[0-9]+\(\.[A-Z]_[0-9]+\.tks\|\.jsonl\)?\)?'
# remove_made FOLDER [NAMES]: removes the files in OUT/work/FOLDER with names that programs use, or only those that
# match the regular expression NAMES; and the folder, if it is then empty. Links and other files stay.
remove_made() {
    d=$OUT/work/$1
    [ -d "$d" ] && [ ! -h "$d" ] && [ ! -h "$OUT/work" ] || return 0
    case $1 in
    *.stages)
        names="$(flows | awk -v s="${1%.stages}" '$1 == s { printf "%s%s", sep, $2; sep = "\\|" }')"
        names="\($names\)$in_parts\|$set_names"
        ;;
    *) names='[0-9]+\.tks\(\.manifest\.json\)?' ;;
    esac
    find "$d" -maxdepth 1 -type f -regex ".*/\(${2:-$names\|\.sluice-[0-9a-f]*\.tmp}\)" -delete
    removed=$?
    rmdir "$d" 2>/dev/null
    return 0
}
# remove_work: removes all our files in OUT/work; false, with one line, if other files are left.
remove_work() {
    for d in $(work_folders); do remove_made "$d"; done
    [ ! -d "$OUT/work" ] || rmdir "$OUT/work" 2>/dev/null || {
        printf '%s\n' "$OUT/work: left, as files are in it that sluice-batch did not make"
        return 1
    }
}
parts_done() { find "$OUT/state/$1" -type f ! -name '.*' -exec cat {} + 2>/dev/null | grep -c ' done '; }
# prune_last STAGE: called when a part is done. After the last stage, if it has one part, no file is read any more.
prune_last() {
    [ "$keep" = all ] || [ "$(stages | tail -n 1)" != "$1 1 all" ] || remove_work || :
}
