# shellcheck shell=sh disable=SC2154,SC2034
# change.sh - sluice-batch: what is done, and what is made again. Sourced by sluice-batch.
#
# The report of a part is its record. A part stays done if its record is what the programs say now of the recipe, the files
# that options name, and the inputs (--compare, the only comparison); if not, it is made again, and so is what reads it.
# So a changed recipe, a changed list or input, and a call that goes on take one path, reckon().
#
# Invariant: a kill at any moment leaves a folder of the old or of the new recipe, in which no part is "done" without its
# files, and a second call goes on. So lines move from state/TASK to state/TASK.undone, those of the last tasks first, then
# their files go, then these lines, and the recipe is replaced last. A part that still runs by the old recipe cannot become
# "done", because state/tasks goes first; see current() in task.sh. A command that a signal ends is a kill too: what is read
# to tell what is done comes through files, because of a pipe only the last status is known.

# reckon NAME WITH: compares what OUT, which the user calls NAME, has with the recipe. WITH is 1 if inputs are compared too,
# which $scratch/inputs lists, else 0. With --dry-run and for look(), $scratch/again then has the parts that count no more; else
# removes what they made, and replaces the recipe and the lists.
reckon() {
    flows >"$scratch/flows"
    new_list=$chain_list with=$2
    (old_tasks) || exit 1
    while :; do
        (look_at "$with") || exit 1
        [ "$with" = 0 ] && readers | sed 's/^\([^ ]*\).*/M \1/' | grep -qxFf - "$scratch/graph" || break
        with=1 # parts that read inputs are to be made, so inputs count
        check_inputs
    done
    changed=''
    cmp -s "$scratch/old" "$scratch/new" && cmp -s "$OUT/state/records" "$scratch/records" || changed=records
    grep -q '^A ' "$scratch/graph" && changed=parts || [ $? = 1 ] || exit 1
    ! grep -q '^W .*whose reports have no record$' "$scratch/graph" ||
        die "$1: was made by an earlier version, whose reports have no record; finish it with that version, or name another folder"
    if [ -z "$looks" ]; then
        [ -z "$changed" ] || [ "$(cat "$scratch/far")" != busy ] ||
            die "$1: parts are queued or running by the recipe of before; 'sluice-batch cancel $(show "$1" | sed 's/ $//')' stops them"
        [ -z "$changed" ] || tell "$1" | sed "s/^/${dry:+# }/"
    fi
    sed -n 's/^A //p' "$scratch/graph" >"$scratch/again"
    [ -z "$dry" ] && [ -z "$looks" ] || return 0
    if [ "$changed" = parts ] || [ -n "$(undone)" ]; then
        rm -f "$OUT/state/tasks"
        flow_list=$(cat "$scratch/old-flows") chain_list=$(cat "$scratch/old-chains")
        put_aside || exit 1
        (for t in $(undone); do forget_task "$t"; done) || exit 1
        flow_list=$(cat "$scratch/flows") chain_list=$new_list
    fi
    : >"$scratch/again"
    [ -n "$changed" ] || { cmp -s "$recipe" "$(in_force "$OUT")" && cmp -s "$plain" "$OUT/recipe"; } || changed=words
    [ -z "$changed" ] && [ -s "$OUT/state/tasks" ] || take_recipe || exit 1
}
# take_recipe: replaces the recipe, and the lists. If more than words and limits has changed, these are missing on the way.
take_recipe() {
    [ "$changed" = words ] || rm -f "$OUT/state/stages" "$OUT/state/records" "$OUT/state/tasks"
    cmp -s "$scratch/inputs" "$OUT/state/inputs" || rm -f "$OUT/state/inputs"
    # A kill between both is seen by the next call, which works out again what follows.
    if given extends; then cmp -s "$recipe" "$OUT/state/extended" || replace extended extended <"$recipe"; else rm -f "$OUT/state/extended"; fi || return 1
    [ "$plain" = "$OUT/recipe" ] || replace recipe ../recipe <"$plain" || return 1
    replace inputs inputs <"$scratch/inputs" && replace stages stages <"$scratch/flows" && replace records records <"$scratch/records" || return 1
    recipe=$(in_force "$OUT") plain=$OUT/recipe
    keep_tasks
}
replace() { cat >"$OUT/state/$1.tmp" && mv "$OUT/state/$1.tmp" "$OUT/state/$2"; }
# structure: removes from a list of tasks what depends on options.
structure() { sed 's/	.*//'; }
# old_tasks: writes to $scratch the stages and tasks of the recipe in OUT (old-flows, old-chains, old), and how far they are.
old_tasks() {
    recipe_name=$OUT/recipe
    read_recipe "$(in_force "$OUT")"
    if [ -s "$OUT/state/stages" ]; then cat "$OUT/state/stages"; else ask_flows; fi >"$scratch/old-flows" || exit 1
    use_flows "$scratch/old-flows"
    how_far >"$scratch/far" || exit 1
    printf '%s\n' "$chain_list" >"$scratch/old-chains"
    structure <"$scratch/old-chains" >"$scratch/old"
}
# look_at WITH: writes $scratch/records, what each stage's record is by now, and $scratch/graph, see graph.awk.
look_at() {
    for f in records differs files; do : >"$scratch/$f"; done
    printf '%s\n' "$new_list" | structure >"$scratch/new"
    stages >"$scratch/tasks" && sed '$d' "$scratch/tasks" >"$scratch/list" || exit 1 # the last one is the report of all
    while read -r s parts _; do
        (cd "$cwd" && perform record "$s" 0) </dev/null || exit 1
    done <"$scratch/list"
    [ -s "$OUT/report.json" ] || echo "report 0 report.json, which it writes, is not there" >>"$scratch/differs"
    was=$OUT/state/records
    [ -s "$was" ] || was=/dev/null
    awk -F '\t' 'FILENAME == ARGV[1] { was[$1] = $2; next } was[$1] != $2 { print $1 }' "$was" "$scratch/records" >"$scratch/changed" || exit 1
    (cd "$OUT" 2>/dev/null && find work stream -mindepth 1 -maxdepth 2 -type f 2>/dev/null) >"$scratch/files"
    digits=$(value parts | awk '{ print length($0) + 1 }') awk -f "$share/graph.awk" "$scratch/old" "$scratch/new" "$scratch/flows" "$scratch/all" "$scratch/differs" \
        "$scratch/changed" "$scratch/files" >"$scratch/graph"
}
# record COMMAND...: asks the program for the stage's record, and which of its reports are those of other runs. The reports of
# parts that are done have the record in state/records, see has_report(), and are read only if the stage's is another now.
record() {
    [ "$new" = 1 ] || return 0
    skip=''
    for w; do
        shift
        if [ -n "$skip" ]; then
            [ "$with" = 0 ] || set -- "$@" --files-from "$scratch/inputs"
            skip=''
        elif [ "$w" = --files-from ]; then
            skip=skip
        else
            set -- "$@" "$w"
        fi
    done
    compare open "$@"
    line="$stage$tab$(sed -n '1s/.*"arguments"/"arguments"/p' "$scratch/compared")"
    [ "$step $with" != 'tokenize 0' ] ||
        line=$line$(sed -n 's/^tokenize	.*\(, "all_inputs": "[0-9a-f]*"\)$/\1/p' "$OUT/state/records")
    [ "$from" != sets ] || [ -z "$(gone)" ] || line=$(but_for_sets)
    # Outputs that options name, and the set, must be there; the set of a folder that is extended may be elsewhere.
    named=''
    ! grep -q '^"outputs"' "$scratch/compared" || [ "$to ${SLUICE_BATCH_READS:-}" = 'set 1' ] || named=1
    { [ -z "$named" ] && grep -qxF -e "$line" "$OUT/state/records" 2>/dev/null; } || compare all "$@"
    printf '%s\n' "$line" >>"$scratch/records"
    s=$s name=$stage base=$base awk 'NR > 1 {
        sub(/^[0-9]+ /, ENVIRON["s"] " " $1 - ENVIRON["base"] " " (ENVIRON["name"] == ENVIRON["s"] ? "" : ENVIRON["name"] " "))
        print
    }' "$scratch/compared" >>"$scratch/differs" || exit 1
}
# but_for_sets: the line of before, if only the contents of sets are missing in the new one; else the new one.
but_for_sets() {
    [ ! -s "$OUT/state/records" ] || line=$line awk '
        function bare(text) { gsub(/"set [0-9]+=[0-9a-f]+"(, )?/, "", text); sub(/, \]/, "]", text); sub(/"contents": \[\], /, "", text); return text }
        !found && bare($0) == bare(ENVIRON["line"]) { found = 1; print }
        END { exit found }' "$OUT/state/records" && printf '%s\n' "$line"
}
# compare WHICH COMMAND...: writes what --compare says of the stage's reports to $scratch/compared: of all, or of those of parts
# that have not come to their end.
compare() {
    which=$1 s=$s file=$OUT/stats/$stage. base=$base awk '$1 == ENVIRON["s"] && ($3 != "done" || ENVIRON["which"] == "all") {
        i = $2 + ENVIRON["base"]
        f = ENVIRON["file"] i ".json"
        if ($3 == "done" || (getline line <f) >= 0) print i, f
        close(f)
    }' "$scratch/all" >"$scratch/reports" || exit 1
    shift
    "$@" --compare "$scratch/reports" >"$scratch/compared" 2>"$scratch/err" || die "$(at "$step"): $(tail -n 1 "$scratch/err")"
}
# other_inputs: says so if inputs are not what was read, or are gone, which resume and status do not count; those that are
# still to be read must be there, and sets that are there always count.
other_inputs() {
    all_read || return 0
    why=$(gone)
    if given set || [ -n "$why" ]; then
        [ -z "$why" ] || say "$why: gone; what was made of it is kept"
        return 0
    fi
    s=tokenize with=1
    : >"$scratch/differs"
    (cd "$cwd" && perform record tokenize 0) </dev/null 2>/dev/null || {
        say "$(tail -n 1 "$scratch/err"); what was made of it is kept"
        return 0
    }
    why=$(sed -n '1s/^tokenize [0-9]* //p' "$scratch/differs")
    [ -z "$why" ] || say "tokenize: $why; what was made of them is kept; 'sluice-batch RECIPE $(show "$OUT" | sed 's/ $//')' makes it again"
}
# check_inputs: checks that the inputs that are listed are there. gone: prints the first one that is not.
check_inputs() {
    why=$(gone)
    [ -z "$why" ] || die "$why: gone, and it was there when this folder was made; not all that it is needed for is done"
}
gone() {
    in_it=''
    ! given set || in_it=/report.json
    (cd "$cwd" && input_names "$scratch/inputs" 2>/dev/null | while IFS= read -r f; do
        [ -e "$f$in_it" ] || { printf '%s\n' "$f" && break; }
    done)
}
# all_read: whether all parts are done that read inputs. readers: lines "TASK PARTS" of their tasks.
all_read() {
    readers >"$scratch/readers"
    while read -r t n; do
        [ "$(done_of "$t")" = "$n" ] || return 1
    done <"$scratch/readers"
}
readers() { printf '%s\n' "$chain_list" | awk '$1 == "T" { n = $3 } $1 == "R" && ($4 == "tokenize" || $6 == "sets") { print $2, n }'; }
input_names() { if has_domains; then cut -f 2- "$1"; else cat "$1"; fi; }
# tell NAME: what is made again, and why; what is kept.
tell() {
    if [ "$changed" = parts ]; then echo "$1: what was made otherwise is made again"; else echo "$1: has changed, and nothing that is done"; fi
    awk 'FILENAME == ARGV[1] { if ($1 == "T") { task[++n] = $2; parts[$2] = $3 } next }
        $1 == "W" {
            why = $0
            sub(/^W [^ ]+ [^ ]+ /, "", why)
            print "  " $2 ($3 < parts[$2] ? " (" $3 " of " parts[$2] " parts)" : "") ": " why
        }
        $1 == "K" { kept = kept " " $2 ($3 < parts[$2] ? " (" $3 " of " parts[$2] " parts)" : "") }
        $1 == "G" { gone = gone " " $2 }
        $1 == "M" { open = open " " $2 }
        END {
            print "  kept:" (kept == "" ? " -" : kept)
            if (gone != "")
                print "  files that are needed again were removed: of" gone
            print "  to make:" open
        }' "$scratch/new" "$scratch/graph"
}
# put_aside: moves the lines of the parts that go to state/TASK.undone, perhaps to those of a call that was killed.
put_aside() {
    awk '$1 == "A" && $2 != last { print last = $2 }' "$scratch/graph" >"$scratch/aside" || return 1
    while read -r t; do
        awk -v t="$t" '$1 == "A" && $2 == t { print $3 }' "$scratch/graph" >"$scratch/numbers" &&
            sed 's/.*/.&.done/' "$scratch/numbers" >"$scratch/marks" || return 1
        mkdir -p "$OUT/state/$t.undone" && rm -f "$OUT/state/$t.all" && (
            cd "$OUT/state/$t" && xargs rm -f <"$scratch/marks" && xargs mv -f -t "../$t.undone" <"$scratch/numbers"
        ) || return 1
        [ -n "$(find "$OUT/state/$t" -maxdepth 1 -type f -regex '.*/[0-9]+' -print -quit)" ] ||
            { find "$OUT/state/$t" -maxdepth 1 -type f -name '.[0-9]*.*' -delete && rmdir "$OUT/state/$t"; } || return 1
    done <"$scratch/aside"
}
undone() {
    aside=$(find "$OUT/state" -maxdepth 1 -type d -name '*.undone' -printf '%f\n') || exit 1
    for t in $aside; do echo "${t%.undone}"; done
}
# alive: ends the subshell that forgets tasks if sluice-batch itself was killed: a call that goes on with the folder may be
# writing the same files by now.
alive() { kill -0 $$ 2>/dev/null || exit 1; }
# forget_task TASK: removes what the task's parts made, then their lines.
forget_task() {
    stay='' # some of its parts do
    [ ! -d "$OUT/state/$1" ] || stay=stay
    numbers=$(find "$OUT/state/$1.undone" -type f -name '[0-9]*' -printf '%f\n') || exit 1
    for i in $numbers; do
        perform forget "$1" "$i"
    done
    each_stage forget_stage "$1"
    alive
    find "$OUT/state/$1.undone" -maxdepth 1 -type f -regex '.*/[0-9]+' -delete || exit 1
    rmdir "$OUT/state/$1.undone" || exit 1
}
forget() {
    [ "$new" = 1 ] || return 0
    each_output remove_file "$@"
    remove_file "$OUT/logs/$stage.$part.log"
    [ -z "$stay" ] || [ "$number" = - ] || remove_file "$OUT/work/$step.stages/$number$([ "$of" = - ] || echo ".$part-of-$of")"
}
remove_file() { alive; [ ! -f "$1" ] || [ -h "$1" ] || rm -f "$1" || exit 1; }
forget_stage() {
    [ "$new" = 1 ] && [ -z "$stay" ] || return 0
    removed=0
    [ "$number" = - ] || remove_made "$step.stages" "$number$in_parts"
    [ "$removed" = 0 ] || exit 1
    case $to in
    set)
        remove_made "$step.stages" "$set_names"
        [ "$removed" = 0 ] || exit 1
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
    rm -rf "$d/.partial" || exit 1
    ! grep -q ' set ' "$scratch/flows" || return 0
    rm -f "$d/report.json" || exit 1
    for list in "$d/olmo-cache/manifest.jsonl" "$d/manifest.jsonl"; do
        [ ! -f "$list" ] || (cd "${list%/*}" && { sed -n 's/^{"file":"\([^"]*\)".*/\1/p' "$list" && echo manifest.jsonl; } |
            tr '\n' '\0' | xargs -0 rm -f) || exit 1
        alive
    done
    find "$d" -depth -type d -empty -delete
    [ ! -e "$d" ] || die "$d: files are in it that sluice-batch did not make; move them away"
}
