# shellcheck shell=sh disable=SC2154,SC2034
# change.sh - sluice-batch: takes a changed recipe in the same folder. Sourced by sluice-batch.
#
# The tasks that the old and the new recipe begin with, alike but for limits, are kept; of the others, what they made is
# removed, and only that. If "keep = needed" or clean has removed files that are needed again, the tasks that made these
# are made again too. Invariant: a kill at any moment leaves a folder of the old or of the new recipe, in which no part is
# "done" without its files, and a second call goes on. So a task's lines move from state/TASK to state/TASK.undone, then
# its files go, then these lines, and the recipe is replaced last. A part that still runs by the old recipe cannot become
# "done", because state/tasks goes first; see current() in task.sh.

# differ KEYS: prints the first of these lines that are not the same in the old and the new recipe.
differ() {
    grep -E "^($1) =" "$OUT/recipe" >"$scratch/old"
    grep -E "^($1) =" "$recipe" >"$scratch/new"
    diff "$scratch/old" "$scratch/new" | sed -n 's/^< */was "/p; s/^> */is "/p' | sed 's/$/"/' | head -n 2 |
        paste -sd '|' | sed 's/"|\([wi]\)/", \1/'
}
# change NAME: compares the new recipe with that of OUT, which the user calls NAME, and tells what is kept. With
# --dry-run, $again has the tasks whose lines in OUT count no more; else removes what they made, and replaces the recipe.
change() {
    for key in "$inputs" tokenizer parts seed tokenize; do
        changed=$(differ "$key")
        [ -z "$changed" ] || die "$(at "${key%%"("*}"): $1 was made from another recipe: $changed; use another folder"
    done
    changed=$(differ "$results")
    changed=${changed:-$others}
    bare_tasks "$recipe" "$scratch/flows" >"$scratch/new-tasks"
    (recipe_name=$OUT/recipe && read_recipe "$OUT/recipe" && old_flows) >"$scratch/old-flows" || exit 1
    bare_tasks "$OUT/recipe" "$scratch/old-flows" >"$scratch/old-tasks"
    awk -f "$share/change.awk" "$scratch/old-tasks" "$scratch/new-tasks" "$scratch/flows" >"$scratch/change"
    flow_list=$(cat "$scratch/old-flows") chain_list=$(cat "$scratch/old-tasks")
    [ "$(how_far)" != busy ] ||
        die "$1: parts are queued or running by the recipe of before; 'sluice-batch cancel $(show "$1" | sed 's/ $//')' stops them"
    find_kept
    [ "$kept" != 0 ] || why=$(changed_inputs) || die "$why"
    {
        printf '%s\n' "$1: the recipe has changed: $changed" "  kept: $(kept_of "$scratch/old-tasks" 1)"
        [ -z "$gone" ] || printf '%s\n' "  files that are needed again were removed: of $gone"
        printf '%s\n' "  to make: $(kept_of "$scratch/new-tasks" 0)"
    } | sed "s/^/${dry:+# }/"
    again=" $(names "$scratch/old-tasks" "$kept" 999999) "
    if [ -z "$dry" ]; then
        rm -f "$OUT/state/tasks"
        for t in $again; do put_aside "$t" || exit 1; done
        (for t in $again; do forget_task "$t"; done) || exit 1
        again=''
        rm -f "$OUT/state/stages" && replace_recipe || exit 1
    fi
    use_flows "$scratch/flows"
}
# bare_tasks RECIPE FLOWS: the tasks, without the limits.
bare_tasks() { bare=1 awk -f "$share/words.awk" -f "$share/chains.awk" "$1" - <"$2"; }
old_flows() {
    if [ -s "$OUT/state/stages" ]; then cat "$OUT/state/stages"; else ask_flows; fi
}
# names LIST FROM TO: the names of the tasks after number FROM, up to number TO.
names() { awk -v from="$2" -v to="$3" '$1 == "T" && ++n > from && n <= to { printf "%s%s", sep, $2; sep = " " }' "$1"; }
# kept_of LIST YES: the names of the tasks of which parts are kept, with their number if not all are; or, if YES is 0, of
# the tasks that are not kept or not whole.
kept_of() {
    awk -v kept="$kept" -v yes="$2" 'FILENAME != ARGV[2] { whole[$1] += $3 == "done"; next }
        $1 == "T" {
            done = ++n <= kept ? whole[$2] + 0 : 0
            if (yes ? done : done < $3)
                all = all " " $2 (yes && done < $3 ? " (" done " of " $3 " parts)" : "")
        }
        END { print all == "" ? " -" : all }' "$scratch/all" "$1" | cut -c 2-
}
# find_kept: sets $kept, the number of tasks that are kept, and $gone, those of them that are not, as their files are gone.
find_kept() {
    kept=$(sed -n 's/^S //p' "$scratch/change") gone='' before=''
    while [ "$before" != "$kept" ]; do
        before=$kept
        while read -r kind t by folder count names; do
            [ "$kind" = N ] && [ "$t" -gt "$kept" ] && [ "$by" -le "$kept" ] || continue
            maker=$(names "$scratch/new-tasks" $((by - 1)) "$by")
            # Parts that are still to be made will write theirs.
            [ "$(done_of "$maker")" = "$(stages | awk -v s="$maker" '$1 == s { print $2 }')" ] || continue
            [ "$(find "$OUT/work/$folder" -maxdepth 1 -type f -regex ".*/$names" 2>/dev/null | wc -l)" -lt "$count" ] || continue
            kept=$((by - 1)) gone="$maker${gone:+ $gone}"
        done <"$scratch/change"
    done
}
# put_aside TASK: moves the lines of its parts to state/TASK.undone, perhaps to those of a call that was killed.
put_aside() {
    rm -f "$OUT/state/$1.all"
    [ -d "$OUT/state/$1" ] || return 0
    mkdir -p "$OUT/state/$1.undone" &&
        find "$OUT/state/$1" -maxdepth 1 -type f -regex '.*/[0-9]+' -exec mv -f -t "$OUT/state/$1.undone" {} + &&
        find "$OUT/state/$1" -maxdepth 1 -type f -name '.[0-9]*.*' -delete
    rmdir "$OUT/state/$1"
}
# alive: ends the subshell that forgets tasks if sluice-batch itself was killed: a call that goes on with the folder may be
# writing the same files by now.
alive() { kill -0 $$ 2>/dev/null || exit 1; }
# forget_task TASK: removes what the task's parts made, then their lines.
forget_task() {
    [ -d "$OUT/state/$1.undone" ] || return 0
    for i in $(cd "$OUT/state/$1.undone" && find . -type f -name '[0-9]*' | sed 's|^\./||'); do
        perform forget "$1" "$i"
    done
    each_stage forget_stage "$1"
    alive
    find "$OUT/state/$1.undone" -maxdepth 1 -type f -regex '.*/[0-9]+' -delete
    rmdir "$OUT/state/$1.undone" || exit 1
}
forget() {
    [ "$new" = 1 ] || return 0
    each_output remove_file "$@"
    remove_file "$OUT/logs/$stage.$part.log"
}
remove_file() { alive; [ ! -f "$1" ] || [ -h "$1" ] || rm -f "$1"; }
forget_stage() {
    [ "$new" = 1 ] || return 0
    [ "$number" = - ] || remove_made "$step.stages" "$number$in_parts"
    case $to in
    set)
        remove_made "$step.stages" "$set_names"
        forget_set
        ;;
    stream | work/*) rmdir "$OUT/$to" 2>/dev/null || : ;;
    esac
}
# forget_set: removes what was begun of the set. The set itself stays until the new one takes its place; where the new
# recipe makes none, the files go that its lists name.
forget_set() {
    d=$OUT/shards
    [ -d "$d" ] && [ ! -h "$d" ] || return 0
    alive
    rm -rf "$d/.partial"
    ! grep -q ' set ' "$scratch/flows" || return 0
    rm -f "$d/report.json"
    for list in "$d/olmo-cache/manifest.jsonl" "$d/manifest.jsonl"; do
        [ ! -f "$list" ] || (cd "${list%/*}" && { sed -n 's/^{"file":"\([^"]*\)".*/\1/p' "$list" && echo manifest.jsonl; } |
            tr '\n' '\0' | xargs -0 rm -f) || exit 1
        alive
    done
    find "$d" -depth -type d -empty -delete
    [ ! -e "$d" ] || die "$d: files are in it that sluice-batch did not make; move them away"
}
