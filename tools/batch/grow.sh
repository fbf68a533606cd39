# shellcheck shell=sh disable=SC2154
# grow.sh - sluice-batch: a recipe that goes on with a finished folder, extends = OLD. Sourced by sluice-batch.

# extend: writes to $scratch/extended the recipe with what follows from the folders that it extends: the number of the first
# source, the indexes of dedup, the oldest first, and the tokenizer. It is worked out each time when the folder is looked at, so
# that a change of these folders is one of the recipe.
extend() {
    check_older "$(sed -n 's/^extends = //p' "$plain")"
    base=$(sed -n 's/.*"next_source": \([0-9]*\).*/\1/p' "$old/stats/tokenize.0.json" 2>/dev/null)
    [ -n "$base" ] ||
        die "$(at extends): $old: does not say how many sources it has, as one that was made of sets, or by an earlier version"
    for m in near exact; do
        list_steps | grep -qx $m || continue
        while IFS= read -r folder; do
            [ -f "$folder/$m.index" ] ||
                die "$(at "$m" extends): dedup --$m: $folder has no index of its documents; add the line 'index = yes' to its recipe, and run it again"
        done <"$scratch/older"
    done
    t='' from=''
    grep -q '^tokenizer = ' "$plain" || t=$(sed -n 's/^tokenizer = //p' "$(in_force "$old")")
    IFS= read -r from <"$old/state/cwd"
    case $t in
    /* | '') ;;
    *) [ ! -e "$from/$t" ] || t=$from/$t ;;
    esac
    grep -q '^tokenize =' "$plain" || t="$t${newline}tokenize ="
    base=$base more=$t awk -f "$share/words.awk" -f "$share/extend.awk" "$scratch/older" "$plain" >"$scratch/extended"
}
# check_older FOLDER: writes to $scratch/older the folders that it extends, the oldest first, and itself, $old; all must be
# finished. Where older() asks a folder for its status, they are listed alone.
check_older() {
    old=$1 above=$newline$OUT$newline
    (older "$1" "$OUT") >"$scratch/older" || exit 1
}
# older FOLDER BY: prints the folders that FOLDER extends, the oldest first, and itself, which BY extends. The oldest that is
# not finished is named, because those that extend it are made again after it.
older() {
    case $above in *"$newline$1$newline"*) die "$(at extends): $1: would extend itself" ;; esac
    above=$above$1$newline
    [ -d "$1" ] || die "$(at extends): $1: there is no such folder, and $2 extends it; move it back, or give the recipe of $2 again with its new name"
    (OUT=$1 && is_ours) || die "$(at extends): $1: no folder of sluice-batch, whose mark is state/made-by"
    next=$(sed -n 's/^extends = //p' "$1/recipe" 2>/dev/null)
    [ -z "$next" ] || (older "$next" "$1") || exit 1
    [ -s "$1/recipe" ] && [ -s "$1/report.json" ] && [ -s "$1/stats/report.0.json" ] ||
        die "$(at extends): $1: is not finished; 'sluice-batch resume $(show "$1" | sed 's/ $//')' goes on with it"
    why=''
    [ -n "${SLUICE_BATCH_READS:-}" ] || why=$(SLUICE_BATCH_READS=1 "$self" status "$1" 2>&1 >/dev/null | grep 'makes it again' | head -n 1)
    [ -z "$why" ] || die "$(at extends): $1: is not what its recipe makes now: ${why#sluice-batch: }"
    printf '%s\n' "$1"
}
# fingerprint REPORT: prints that of the tokenizer.
fingerprint() { sed -n 's/.*"fingerprint": "\([0-9a-f]*\)".*/\1/p' "$1" | head -n 1; }
# same_tokenizer: compares the tokenizer of the rehearsal with that of the folder.
same_tokenizer() {
    old=$(value extends)
    [ "$(fingerprint "$scratch/tokenize.stats")" = "$(fingerprint "$old/stats/tokenize.0.json")" ] ||
        die "$(at tokenizer extends): tokenizer = $(value tokenizer builtin): is another than that of $old, whose sets and indexes have other ids"
}
