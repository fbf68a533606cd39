# shellcheck shell=sh disable=SC2154,SC2034
# folder.sh - sluice-batch: makes the folder OUT from a recipe, locks it, and lists its inputs. Sourced by
# sluice-batch.

# Whether a process of this machine is a sluice-batch, because process numbers are used again.
ours() {
    if [ -r "/proc/$1/cmdline" ]; then
        tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | grep -q sluice-batch
    else
        kill -0 "$1" 2>/dev/null
    fi
}
# Creates a file that only one process can create, by link(2), which is atomic on NFS too. The file of a dead process is
# removed.
lock() {
    mine=$OUT/state/.lock.$(uname -n).$$
    echo "$(uname -n) $$ $(date +%s)" >"$mine" && [ -s "$mine" ] || die "$OUT/state cannot be written"
    tries=0
    while ! ln "$mine" "$OUT/state/lock" 2>/dev/null; do
        tries=$((tries + 1))
        owner=$(cat "$OUT/state/lock" 2>/dev/null) || continue # gone meanwhile
        pid=${owner#* }
        if [ "${owner%% *}" = "$(uname -n)" ] && ! ours "${pid%% *}"; then
            # Of all processes that see the dead owner, one removes the file, and only if it is still the same.
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
# is_ours: whether sluice-batch made OUT. OUT has our mark or, because version 0.1.0 wrote none, a recipe in the form
# that we write, beside the lists that we keep.
is_ours() {
    [ -d "$OUT/state" ] && [ ! -h "$OUT/state" ] || return 1
    if [ -e "$OUT/state/made-by" ] || [ -h "$OUT/state/made-by" ]; then
        [ -f "$OUT/state/made-by" ] && [ ! -h "$OUT/state/made-by" ] && IFS= read -r mark <"$OUT/state/made-by" || return 1
        case $mark in 'sluice-batch 1: '*) return 0 ;; *) return 1 ;; esac
    fi
    for f in recipe state/cwd state/inputs; do
        [ -f "$OUT/$f" ] && [ -s "$OUT/$f" ] && [ ! -h "$OUT/$f" ] || return 1
    done
    grep -q '^/' "$OUT/state/cwd" && (canonical "$OUT/recipe") 2>/dev/null | cmp -s - "$OUT/recipe"
}
# mark: makes OUT/state together with our mark, or finds that another run has just made it.
mark() {
    new=$OUT/.sluice-batch.$(uname -n).$$
    mkdir "$new" || exit 1
    echo 'sluice-batch 1: made this folder; it replaces and removes files here that it made, and no others' >"$new/made-by" || exit 1
    if [ -d "$OUT/state" ] && is_ours; then # of version 0.1.0, or of another run
        [ -e "$OUT/state/made-by" ] || mv "$new/made-by" "$OUT/state/made-by"
    else
        mv -T "$new" "$OUT/state" 2>/dev/null && return
    fi
    rm -f "$new/made-by"
    rmdir "$new"
    is_ours || die "$OUT/state: sluice-batch did not make it; name another folder"
}
# check_names: checks that all that we write or remove is in OUT itself, and that report.json is that of our last stage.
check_names() {
    for f in recipe report.json near.index exact.index state logs stats work stream shards; do
        no_link "$OUT/$f"
    done
    [ ! -e "$OUT/report.json" ] || [ -s "$OUT/state/report/0" ] || [ -s "$OUT/state/report.all" ] ||
        [ -s "$OUT/state/report.undone/0" ] ||
        die "$OUT/report.json: sluice-batch did not write it, and would; move it away"
}
no_link() {
    [ ! -h "$1" ] || die "$1: a symbolic link, through which sluice-batch writes and removes nothing; move it away"
}
# check_links: checks that no name in our folders is a link.
check_links() {
    for f in state logs stats work; do
        [ ! -d "$OUT/$f" ] || find "$OUT/$f" -maxdepth 1 -type l
    done | head -n 1 >"$scratch/link"
    [ ! -s "$scratch/link" ] || no_link "$(cat "$scratch/link")"
}
open_out() {
    OUT=$1
    is_ours || die "$OUT: no folder of sluice-batch, whose mark is state/made-by"
    case $OUT in /*[!/]) ;; *) OUT=$(cd "$OUT" && pwd) || exit 1 ;; esac
    check_names
    [ -s "$OUT/recipe" ] || die "$OUT: there is no recipe in it yet; 'sluice-batch init RECIPE OUT' puts one there"
    plain=$OUT/recipe recipe_name=$OUT/recipe
    find_cwd
    if [ "$command" = task ] && is_kept; then
        # shellcheck source=/dev/null
        . "$OUT/state/tasks"
        [ "$keep" = needed ] || [ "$task" = report ] || return 0 # which look at the other tasks too
        rows_kept=''
    fi
    read_recipe "$(in_force "$OUT")"
    keep=$(value keep all)
    if [ -s "$OUT/state/stages" ]; then
        use_flows "$OUT/state/stages"
    else # of an earlier version
        flow_list=$(ask_flows) || exit 1
        list_tasks || exit 1
    fi
}
# is_kept: whether the list of tasks was made from this recipe by this version.
is_kept() {
    # shellcheck disable=SC3013 # dash, bash and busybox have this test
    [ -s "$OUT/state/tasks" ] && [ ! -h "$OUT/state/tasks" ] && [ ! "$OUT/recipe" -nt "$OUT/state/tasks" ] &&
        [ ! "$share/chains.awk" -nt "$OUT/state/tasks" ]
}
# absolute PATH: the absolute path of a folder, which may not exist yet.
absolute() {
    case $1 in
    /*) printf '%s\n' "$1" ;;
    *) printf '%s\n' "$PWD/$1" ;;
    esac
}
# is_address NAME: as in lib/base/io.h.
is_address() { printf '%s\n' "$1" | grep -qE '^[A-Za-z][A-Za-z0-9.+-]+://'; }
# prepare RECIPE OUT: makes OUT, or takes the recipe in it for the new one.
prepare() {
    recipe_name=$1
    for name in "$1" "$2"; do
        ! is_address "$name" || die "$name: is an address, and sluice-batch works in a local folder that all nodes see"
    done
    lines=$scratch/lines canonical "$1" >"$scratch/recipe" || exit 1
    read_recipe "$scratch/recipe"
    OUT=$(absolute "$2")
    case $OUT in
    *"{part"*) die "$OUT: programs would put numbers in there" ;;
    *"$newline"*) die "$2: there is a line break in the name" ;;
    esac
    plain=$scratch/recipe
    if given extends; then
        old=$(cd "$(value extends)" 2>/dev/null && pwd) || die "$(at extends): extends = $(value extends): there is no such folder"
        old=$old awk '/^extends = / { $0 = "extends = " ENVIRON["old"] } { print }' "$scratch/recipe" >"$scratch/absolute" &&
            mv "$scratch/absolute" "$scratch/recipe" && extend && read_recipe "$scratch/extended" || exit 1
    fi
    # Another run may be about to create state there.
    if [ -e "$OUT" ] && ! is_ours &&
        [ -n "$(find -H "$OUT" -mindepth 1 -maxdepth 1 ! -name '.sluice-batch.*' ! \( -name state -type d \) -print -quit 2>&1)$(
            find "$OUT/state" -mindepth 1 -print -quit 2>/dev/null
        )" ]; then
        die "$2 exists, and sluice-batch did not make it: there is no state/made-by in it; name another folder"
    fi
    check_names
    find_cwd
    with=1
    find_flows
    (cd "$cwd" && expand) >"$scratch/inputs" 2>"$scratch/err" || keeps_inputs
    if [ -z "$dry" ]; then
        mkdir -p "$OUT" 2>"$scratch/err" || die "$2: $(sed -n '1s/^mkdir: //p' "$scratch/err")"
        OUT=$(cd "$OUT" && pwd) || exit 1
        [ -e "$OUT/state/made-by" ] || mark
        mkdir -p "$OUT/logs" "$OUT/stats" "$OUT/work" 2>"$scratch/err" || die "$2: $(sed -n '1s/^mkdir: //p' "$scratch/err")"
        check_links
        lock
    fi
    first=$(show "$self" init "$(absolute "$1")" "$OUT")
    if [ -e "$OUT/recipe" ]; then
        reckon "$2" "$with"
        [ -n "$changed" ] || first=''
    elif [ -z "$dry" ]; then
        new_list=$chain_list
        for f in all old flows; do : >"$scratch/$f"; done
        (look_at 1) || exit 1
        flows >"$scratch/flows"
        printf '%s\n' "$cwd" >"$OUT/state/cwd" && take_recipe || exit 1
    fi
}
# find_flows: the stages of the recipe: those of the folder, if it has the same one, else what the programs say after a check.
find_flows() {
    if [ -z "$some" ] && cmp -s "$recipe" "$(in_force "$OUT")" && [ -s "$OUT/state/stages" ]; then
        use_flows "$OUT/state/stages"
    else
        check_options
    fi
}
find_cwd() { { IFS= read -r cwd <"$OUT/state/cwd"; } 2>/dev/null || cwd=$PWD; }
# go_on NAME: takes the recipe in OUT again, with the inputs that are listed. They are not looked at if all are read; sets are,
# unless one is gone.
go_on() {
    if [ -s "$OUT/state/inputs" ]; then cat "$OUT/state/inputs"; else (cd "$cwd" && expand); fi >"$scratch/inputs" || exit 1
    ! given extends || { extend && read_recipe "$scratch/extended" && find_flows; } || exit 1
    with=0
    { all_read && { ! given set || [ -n "$(gone)" ]; }; } || { with=1 && check_inputs; }
    reckon "$1" "$with"
    [ -z "$changed" ] || first=$(show "$self" init "$OUT/recipe" "$OUT")
}
# keeps_inputs: what was made of all inputs stays if inputs are gone since, of which the recipe says the same; else ends.
keeps_inputs() {
    grep -E "^$inputs =" "$recipe" >"$scratch/patterns"
    [ -s "$OUT/state/inputs" ] && grep -E "^$inputs =" "$OUT/recipe" | cmp -s - "$scratch/patterns" &&
        all_read || { cat "$scratch/err" >&2 && exit 1; }
    say "$(sed 's/^sluice-batch: //' "$scratch/err"); what was made of it is kept"
    cp "$OUT/state/inputs" "$scratch/inputs" && with=0
}
# in_out FILE: whether a file or folder lies in OUT, by whatever name.
in_out() {
    d=$1
    [ -d "$d" ] || case $d in */*) d=${d%/*} ;; *) d=. ;; esac
    [ "$d" = "${in_last:-}" ] || in_last=$d in_real=$(cd -P "${d:-/}" && pwd)
    case $in_real/ in "${in_own:=$(readlink -m "$OUT")}"/*) ;; *) false ;; esac
}
# Prints the list of inputs; if any has a domain, as for tokenize --list-domains. The list is fixed until the recipe is given
# again. An existing name stands for itself, whatever characters it has; any other
# name is a pattern.
expand() {
    grep -E "^$inputs =" "$recipe" >"$scratch/patterns"
    input=0 listed='%s%s\n'
    ! has_domains || listed='%s\t%s\n'
    while IFS= read -r pattern; do
        IFS= input=$((input + 1))
        key=${pattern%%" = "*} pattern=${pattern#*" = "}
        domain=${key#input}
        domain=${domain#.}
        [ "$key" != set ] || domain=''
        [ ! -e "$pattern" ] && [ "$key" != set ] || set -f
        for f in $pattern; do
            case $f in
            *"$newline"*) die "$(at "${key%%.*} $input"): ${key%%.*} = $pattern: there is a file with a line break in its name" ;;
            -*) f=./$f ;; # neither an option nor standard input
            esac
            ! is_address "$f" ||
                die "$(at "${key%%.*} $input"): ${key%%.*} = $pattern: is an address, and only local files can be read; copy it to a folder that all nodes see"
            [ -e "$f" ] || die "$(at "${key%%.*} $input"): ${key%%.*} = $pattern: there is no such file"
            [ "$key" != set ] || { [ -f "$f/report.json" ] && [ -d "$f/segments" ]; } ||
                die "$(at "set $input"): set = $pattern: is no finished set of shards; of a folder of sluice-batch it is shards"
            [ -r "$f" ] || die "$(at "${key%%.*} $input"): ${key%%.*} = $pattern: $f cannot be read"
            ! in_out "$f" || die "$(at "${key%%.*} $input"): ${key%%.*} = $pattern: lies in $OUT, which this run writes; name another folder"
            if [ "$key" = set ]; then
                of=$(fingerprint "$f/report.json")
                [ "${first_of:=$of}" = "$of" ] ||
                    die "$(at "set $input"): set = $pattern: was made with another tokenizer than the sets before it, whose tokens have other ids"
            fi
            # shellcheck disable=SC2059 # one of the two above
            printf "$listed" "$domain" "$f" || exit 1
        done
        unset IFS
        set +f
    done <"$scratch/patterns"
}
# new_inputs: names the files that the recipe's inputs match by now and that are not listed, which no part reads.
new_inputs() {
    [ -s "$OUT/state/inputs" ] || return 0
    (cd "$cwd" && expand) 2>/dev/null | sort >"$scratch/matched"
    sort "$OUT/state/inputs" | diff - "$scratch/matched" | sed -n 's/^> //p' >"$scratch/new"
    more=$(wc -l <"$scratch/new")
    [ "$more" = 0 ] || say "$(head -n 1 "$scratch/new" | sed 's/.*	//')$([ "$more" = 1 ] || echo " and $((more - 1)) more"): matches the recipe's inputs, and was not there when this folder was made; 'sluice-batch RECIPE $(show "$OUT" | sed 's/ $//')' makes all again with it"
}
