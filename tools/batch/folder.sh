# shellcheck shell=sh disable=SC2154,SC2034
# folder.sh - sluice-batch: the folder OUT: made from a recipe, locked, its inputs listed and watched. Sourced by sluice-batch.

# A process of this machine, and a sluice-batch: numbers are given again, after a restart all of them.
ours() {
    if [ -r "/proc/$1/cmdline" ]; then
        tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | grep -q sluice-batch
    else
        kill -0 "$1" 2>/dev/null
    fi
}
# A file that two can't both make, by link(2), which is atomic on NFS too. One whose owner is gone is taken away.
lock() {
    mine=$OUT/state/.lock.$(uname -n).$$
    echo "$(uname -n) $$ $(date +%s)" >"$mine" && [ -s "$mine" ] || die "$OUT/state cannot be written"
    tries=0
    while ! ln "$mine" "$OUT/state/lock" 2>/dev/null; do
        tries=$((tries + 1))
        owner=$(cat "$OUT/state/lock" 2>/dev/null) || continue # gone meanwhile
        pid=${owner#* }
        if [ "${owner%% *}" = "$(uname -n)" ] && ! ours "${pid%% *}"; then
            # Of those who see that, one removes it, and only if it is still the same.
            if ln "$mine" "$OUT/state/lock.stale" 2>/dev/null; then
                [ "$owner" != "$(cat "$OUT/state/lock")" ] || rm -f "$OUT/state/lock"
                rm -f "$OUT/state/lock.stale"
            else
                sleep 1
            fi
            [ $tries -lt 60 ] || { rm -f "$mine"; die "$OUT/state/lock.stale: remove it, and state/lock"; }
            continue
        fi
        [ $tries -gt "${1:-0}" ] || { sleep 1; continue; }
        rm -f "$mine"
        die "$OUT is being submitted or run by process ${pid%% *} on ${owner%% *}; if that is gone, remove $OUT/state/lock"
    done
    locked=1
    rm -f "$mine"
}
open_out() {
    OUT=$1
    [ -s "$OUT/recipe" ] && [ -d "$OUT/state" ] || die "$OUT: no folder of sluice-batch"
    OUT=$(cd "$OUT" && pwd) || exit 1
    recipe=$OUT/recipe
}
# absolute PATH: of a folder that need not be there.
absolute() {
    case $1 in
    /*) printf '%s\n' "$1" ;;
    *) printf '%s\n' "$PWD/$1" ;;
    esac
}
# prepare RECIPE OUT: makes OUT, or sees that it was made from the same recipe.
prepare() {
    canonical "$1" >"$scratch/recipe" || exit 1
    recipe=$scratch/recipe
    stages >"$scratch/stages" || exit 1
    OUT=$(absolute "$2")
    case $OUT in
    *"{part"*) die "$OUT: programs would put numbers in there" ;;
    *"$newline"*) die "$2: there is a line break in the name" ;;
    esac
    if [ -e "$OUT" ] && [ ! -d "$OUT/state" ] && [ -n "$(ls -A "$OUT" 2>&1)" ]; then
        die "$2 exists, and sluice-batch did not make it"
    fi
    cmp -s "$recipe" "$OUT/recipe" || check_options "$1"
    if [ -z "$dry" ]; then
        mkdir -p "$OUT/state" "$OUT/logs" "$OUT/stats" "$OUT/work" 2>"$scratch/err" ||
            die "$2: $(sed -n '1s/^mkdir: //p' "$scratch/err")"
        OUT=$(cd "$OUT" && pwd) || exit 1
        lock
    fi
    if [ ! -e "$OUT/recipe" ]; then
        expand >"$scratch/inputs" || exit 1
        [ -z "$dry" ] || { first=$(show "$self" init "$(absolute "$1")" "$OUT"); return; }
        cp "$scratch/inputs" "$OUT/state/inputs" && pwd >"$OUT/state/cwd" && seen "$OUT/state/inputs" >"$OUT/state/seen" &&
            cp "$recipe" "$OUT/state/recipe.tmp" && mv "$OUT/state/recipe.tmp" "$OUT/recipe" || exit 1
    else
        results_of "$OUT/recipe" >"$scratch/old"
        results_of "$recipe" >"$scratch/new"
        changed=$(diff "$scratch/old" "$scratch/new" | sed -n 's/^< */was "/p; s/^> */is "/p' | sed 's/$/"/' | head -n 2 | tr '\n' ' ')
        [ -z "$changed" ] || die "$1: $2 was made from another recipe: ${changed% }; use another folder"
        [ -n "$dry" ] || { cp "$recipe" "$OUT/state/recipe.tmp" && mv "$OUT/state/recipe.tmp" "$OUT/recipe"; } || exit 1
    fi
    [ -n "$dry" ] || recipe=$OUT/recipe
}
# check_options RECIPE: the programs see the options before anything is made: what is wrong is said once, and not by
# each part.
check_options() {
    for p in tokenize dedup decompose pack shuffle; do
        given $p || continue
        [ -x "$bin/$prefix$p" ] || die "$bin/$prefix$p: no such program; sluice-batch lies beside the others"
        "$bin/$prefix$p" --help >"$scratch/help" || die "$p --help failed"
        value $p >"$scratch/options"
        while IFS= read -r line; do
            why=$(printf '%s\n' "$line" | awk -f "$share/words.awk" -f "$share/options.awk" "$scratch/help" -)
            [ -z "$why" ] || die "$1: $p: $why"
            check_line "$1" "$line"
        done <"$scratch/options"
    done
    ! is_set || ! given decompose || check_format "$1"
}
# picked NAMES: of a line of options those that are named, with their values, as words for eval.
picked() {
    names=$1 awk "$(cat "$share/words.awk")"'
        BEGIN { split(ENVIRON["names"], a, " "); for (i in a) named[a[i]] = 1 }
        {
            n = words($0)
            for (i = 1; i <= n; i++) {
                name = word[i]
                sub(/=.*/, "", name)
                if (name in named || name "=" in named)
                    printf "%s ", quoted(word[i])
                if (name "=" in named && name == word[i])
                    printf "%s ", quoted(word[++i])
            }
        }'
}
# check_format RECIPE: a format that does not suit the sequences would be refused by the last stage but one: some letters
# are taken through the line before anything is made.
check_format() {
    file=$1
    eval "set -- $(value decompose | picked '--min= --max= --buckets= --label-token')"
    printf '%2000s' x | "$bin/${prefix}tokenize" -q -t bytes --format text -o "$scratch/try.tks" - 2>"$scratch/err" &&
        "$bin/${prefix}decompose" -q "$@" -o "$scratch/cut.tks" "$scratch/try.tks" 2>"$scratch/err" || return 0
    eval "set -- $(value shuffle | picked '--format= --force -f')"
    "$bin/${prefix}shuffle" -q --tails drop "$@" -o "$scratch/try" "$scratch/cut.tks" 2>"$scratch/err" && return 0
    why=$(grep -E -e '--label-token|not built in' "$scratch/err" | tail -n 1)
    [ -z "$why" ] || die "$file: $why"
}
check_line() {
    file=$1
    eval "set -- $(printf '%s\n' "$2" | requote)"
    "$bin/$prefix$p" "$@" --help </dev/null >/dev/null 2>"$scratch/err" || die "$file: $(tail -n 1 "$scratch/err")"
}
# The list of inputs is fixed when OUT is made: what appears later is not part of it. A name that is there is itself,
# whatever it has in it; others are patterns.
expand() {
    value input >"$scratch/patterns"
    while IFS= read -r pattern; do
        IFS=
        [ ! -e "$pattern" ] || set -f
        for f in $pattern; do
            case $f in
            *"$newline"*) die "input = $pattern: there is a file with a line break in its name" ;;
            -*) f=./$f ;; # neither an option nor standard input
            esac
            [ -e "$f" ] || die "input = $pattern: there is no such file"
            printf '%s\n' "$f" || exit 1
        done
        unset IFS
        set +f
    done <"$scratch/patterns"
}
# seen LIST: how large and old the files are that parts will share, folders looked through, and the tokenizer.
seen() {
    { cat "$1" && t=$(value tokenizer) && [ -f "$t" ] && printf '%s\n' "$t"; } | tr '\n' '\0' |
        xargs -0 sh -c 'for f; do case $f in /* | ./*) ;; *) f=./$f ;; esac; printf "%s\0" "$f"; done' sh |
        xargs -0 sh -c 'find -L "$@" -type f -printf "%s %T@ %p\n" 2>/dev/null' sh | sort
}
# changed_inputs: false, with one line on standard output, where they are others than when OUT was made. Parts are cut by
# the sizes of all files together, so with another one some text would be there twice, or not at all.
changed_inputs() {
    [ -e "$OUT/state/seen" ] || return 0
    why=$(cd "$(cat "$OUT/state/cwd")" && seen "$OUT/state/inputs" | diff "$OUT/state/seen" - | awk '
        /^[<>] / {
            side = $1
            sub(/^. [0-9]+ [^ ]+ (\.\/)?/, "")
            if (name != "" && $0 != name)
                next
            name = $0
            has[side] = 1
        }
        END {
            if (name != "")
                print name (has["<"] && has[">"] ? ": not as it was" : has["<"] ? ": gone that was there" : ": was not there") \
                    " when this folder was made"
        }')
    [ -n "$why" ] || return 0
    echo "$why; use another folder, or, if the text is the same, remove $OUT/state/seen"
    return 1
}
