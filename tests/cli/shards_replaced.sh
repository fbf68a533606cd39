# shellcheck shell=bash disable=SC2154
# shards_replaced.sh - `shuffle --replace-set` that fails or is killed: on a full disk, at calls that rename (all in check-full), in
# folders that cannot be renamed or have files of others, the old set or the new one is there afterwards, whole, by bytes;
# readers say what is going on; the next call of the same command on the same input finishes it. A pipe from a set into itself.
# check-more: longer

have tokenize decompose pack shuffle inspect || return 0
fault=$(shim fault) || return 0
corpus c.jsonl 40000 31
tokenize -q -t bytes c.jsonl | decompose --min 64 --max 128 --label-token | pack -q -o p.tks
make() { "$BIN/shuffle" -q -T 1 --format wds --shard-sequences 128 "$@"; }
replace() { make --replace-set --seed 2 -o set "$@" p.tks; }
make --seed 1 -o old p.tks
make --seed 2 -o new p.tks
old=$(sha_tree old) new=$(sha_tree new)
check "the sets differ" test "$old" != "$new"
# sum: of the set, without what is written beside it.
sum() { (cd set && find . -path ./.partial -prune -o -type f ! -name mine -print | sort | xargs sha256sum | sha); }
# injected NAME=VALUE...: replaces a copy of the old set with a fault; its status is in $ended. False: no such call.
injected() {
    rm -rf set log && cp -r old set
    [ -z "$theirs" ] || touch set/D_6/mine set/mine
    code env "$@" SHIM_LOG="$PWD/log" LD_PRELOAD="$fault" "$BIN/shuffle" -q -T 1 --format wds --shard-sequences 128 \
        --replace-set --seed 2 -o set p.tks >/dev/null 2>err
    [ -e log ]
}
# whole WHAT: the old or the new set is there, or it is being replaced, and a reader says so; the same again makes it new.
whole() {
    is=$(sum) has=$ended
    if [ -e set/report.json ]; then
        [ "$is" = "$old" ] || [ "$is" = "$new" ] || echo "  $1: another set" >>bad
    elif [ "$has" = 137 ] || [ "${2:-}" = always ]; then
        code inspect set >/dev/null 2>said
        { [ $ended = 1 ] && grep -q 'set: the set is being replaced; run the command again' said; } || echo "  $1: not said" >>bad
        between=$((between + 1))
    else
        echo "  $1: nothing is there, status $has" >>bad
    fi
    replace >/dev/null 2>said || echo "  $1: the same again: $(head -n 1 said)" >>bad
    { [ "$(sum)" = "$new" ] && [ ! -e set/.partial ]; } || echo "  $1: the same again gives another set" >>bad
    [ -z "$theirs" ] || [ "$(find set -name mine | wc -l)" = 2 ] || echo "  $1: a file of somebody is gone" >>bad
}
# every WHAT NAME=VALUE...: kills it at each call that gives a name.
every() {
    what=$1 n=0 between=0
    shift
    : >bad
    for ((at = 1; ; at += ${FULL:-$(longer 3 2)})); do
        injected "$@" SHIM_AT=name:$at || break
        n=$((n + 1))
        whole "$what, name:$at"
    done
    cat bad
    check "$what: killed at $n renames, $between of them with no set: old or new, whole" test ! -s bad
    check "  some of each" test $n -gt 10 -a $between -gt 2
}
theirs=
every "killed"
[ -z "$MORE" ] || every "killed, folders cannot be renamed" SHIM_XDEV=1
theirs=1
every "killed, among files of others"
theirs=

# A fault on the way renames back.
: >bad
n=0
for do in 5 28 ${MORE:+"5 SHIM_XDEV=1"}; do
    [ "$do" != 28 ] || theirs=1
    for ((at = 1; ; at += ${FULL:-$(longer 6 3)})); do
        # shellcheck disable=SC2086 # it may be two words
        injected SHIM_DO=$do SHIM_AT=name:$at || break
        if [ $ended = 0 ]; then # a file that cannot have its name at once has another one first
            [ "$(sum)" = "$new" ] || echo "  errno $do at name:$at: status 0, and the new set is not there" >>bad
            continue
        fi
        n=$((n + 1))
        one_line err || echo "  errno $do at name:$at: not in one line" >>bad
        [ "$(sum)" = "$old" ] || echo "  errno $do at name:$at: the old set is not there" >>bad
        whole "errno $do at name:$at"
    done
done
theirs=
cat bad
check "$n renames that fail: the old set stays, byte for byte, and the same again makes the new one" test ! -s bad
check "  some" test $n -gt 4
do=28
: >bad
for at in write:1 write:20 write:60 sync:3 sync:20 open:12 mkdir:2 mkdir:4 name:3 name:20; do
    for do in $(longer $((33 - do)) "5 28"); do # in turns
        injected SHIM_DO=$do SHIM_ALWAYS=1 SHIM_AT=$at || continue
        [ $ended = 1 ] || echo "  errno $do from $at on: status $ended" >>bad
        # Where no rename is possible, none leads back.
        [ "$(sum)" = "$old" ] || [ "$at" = name:20 ] || echo "  errno $do from $at on: the old set is not there" >>bad
        whole "errno $do from $at on" always
    done
done
cat bad
check "a full disk, a broken one: the old set stays, byte for byte" test ! -s bad
rm -rf set && cp -r old set
status "ulimit -f" 1 shell 'ulimit -f 8; "$BIN/shuffle" -q --format wds --shard-sequences 128 --replace-set --seed 2 -o set p.tks'
same "  the old set stays" "$old" "$(sha_tree set)"

# Another command finds what is ready: it is published first.
for ((at = 1; ; at++)); do
    injected SHIM_AT=name:$at || break
    [ ! -e set/.partial/ready ] || [ -e set/report.json ] || break
done
check "killed between" test ! -e set/report.json
cp -r set between
status "another command, without --replace-set" 1 make --seed 3 -o set p.tks
check "  finds the new set" grep -q 'not empty' "$TMP/err"
same "  whole" "$new" "$(sha_tree set)"
rm -rf set && cp -r between set
status "and with it, another set" 0 make --replace-set --seed 1 -o set p.tks
same "  takes its place" "$old" "$(sha_tree set)"
rm -rf set && cp -r between set
"$BIN/shuffle" --no-provenance --sample 0.9 p.tks -o q.tks
status "the same command with other input" 1 make --seed 2 -o set q.tks
check "  does not take the set for its own" grep -q 'not empty' "$TMP/err"
same "  which is there, whole" "$new" "$(sha_tree set)"
rm -rf set && cp -r between set
make --seed 2 -o of-q q.tks
status "and with --replace-set" 0 make --replace-set --seed 2 -o set q.tks
same "  replaces it" "$(sha_tree of-q)" "$(sha_tree set)"
rm -rf set && cp -r between set
printf x >>set/.partial/D_6/shard-0000000.tar
status "what is ready was changed" 1 replace
check "  is said, and what to do" grep -q 'set/.partial.*remove set/.partial to begin anew' "$TMP/err"

# What the input says of itself is enough, where the order is its own: it is not read.
rm -rf set
keep() { "$BIN/shuffle" -T 1 --format olmo --documents --order keep -o set "$1"; }
tokenize -q -t bytes c.jsonl >d.tks
tokenize -q -t bytes --sample 0.9 c.jsonl >e.tks
keep d.tks 2>/dev/null && kept=$(sha_tree set)
for ((at = 1; ; at += 2)); do
    rm -rf set
    SHIM_AT=name:$at LD_PRELOAD=$fault code keep d.tks >/dev/null 2>&1
    [ $ended = 137 ] || break
    [ ! -e set/.partial/ready ] || break
done
check "killed while it published" test -e set/.partial/ready
cp -r set between.keep
status "with another stream" 1 keep e.tks
check "  the set is not its own" grep -q 'not empty' "$TMP/err"
rm -rf set && mv between.keep set
printf '\1\2\3' | dd of=d.tks bs=1 seek=30000 conv=notrunc 2>/dev/null
status "with its stream, of which the tail alone is right" 0 keep d.tks
check "  is said" grep -q 'set: the set that this command had written when it was stopped is published now' "$TMP/err"
same "  the set" "$kept" "$(sha_tree set)"

# A finish that was killed so, and that of another job.
of() { "$BIN/shuffle" -q --format megatron --shard-sequences 16 --work of.$1 --seed $1 --stage "${@:2}"; }
tokenize -q -t bytes c.jsonl | decompose -q --min 16 --max 64 --tail drop -o s.tks
for seed in 1 2; do of $seed scatter --part 0/1 s.tks && of $seed gather --part 0/1 -o of-$seed; done
cp -r of-1 of-1.parts
of 1 finish -o of-1
finished=$(sha_tree of-1)
for ((at = 1; ; at += 2)); do
    rm -rf set && cp -r of-1.parts set
    SHIM_AT=name:$at LD_PRELOAD=$fault code of 1 finish -o set >/dev/null 2>&1
    { [ $ended = 137 ] && [ ! -e set/.partial/ready ]; } || break
done
check "a finish that was killed while it published" test -e set/.partial/ready
cp -r set half
status "another job's finish" 1 of 2 finish -o set
check "  says whose it is" grep -q 'set: the set that a stopped run had written here, which is published now, was made with --seed=1, now --seed=2' "$TMP/err"
same "  and has published it" "$finished" "$(sha_tree set)"
rm -rf set && mv half set
status "its own" 0 of 1 finish -o set
same "  the set" "$finished" "$(sha_tree set)"

# Two names of one file: a rename of one to the other does nothing.
rm -rf set && cp -rl old set
status "shards that have another name elsewhere" 0 replace
same "  the set" "$new" "$(sha_tree set)"
same "  and elsewhere" "$old" "$(sha_tree old)"

# A set that is read while it is replaced.
rm -rf set && cp -r old set
"$BIN/shuffle" --order keep --no-provenance set -o of-set.tks
make --replace-set --seed 3 -o want of-set.tks
code shell '"$BIN/shuffle" --order keep --no-provenance set | "$BIN/shuffle" -q -T 1 --format wds --shard-sequences 128 --replace-set --seed 3 -o set'
same "a pipe from the set into itself: status" 0 $ended
same "  the set is that of a stream" "$(cd want && find . -type f ! -name report.json ! -name README.md | sort | xargs sha256sum | sed 1d | sha)" \
    "$(cd set && find . -type f ! -name report.json ! -name README.md | sort | xargs sha256sum | sed 1d | sha)"
# Readers that had begun before: as the pipe is full, each waits while the set is replaced.
rm -rf pad && mkdir pad
for i in {10..69}; do cp of-set.tks pad/$i.tks; done
"$BIN/shuffle" -q --order keep --format wds --shard-sequences 128 -o large pad/*.tks
# read_meanwhile COMMAND... reads `set`, as the large set is replaced by another; its messages are in said.
read_meanwhile() {
    rm -rf set && cp -r large set
    { "$@" 2>said || echo $? >ended; } | {
        head -c 1000 >begun
        "$BIN/shuffle" -q --format wds --shard-sequences 128 --seed 9 --replace-set -o set of-set.tks
        cat >rest
    }
}
for command in "inspect --records set" "decompose -q -T 1 --accept-mismatch --min 16 --max 32 set" "choose -q -T 1 --length 1.. old large set"; do
    rm -f ended
    read_meanwhile "$BIN/"$command
    check "$command, of a set that is replaced meanwhile: fails" [ "$(cat ended 2>&1)" = 1 ]
    check "  and says so" shell '[ "$(wc -l <said)" = 1 ] && grep -qE "set: the set (was replaced while [a-z ]* read|is being replaced); run the command again" said'
done
