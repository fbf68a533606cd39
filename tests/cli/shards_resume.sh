# shellcheck shell=bash disable=SC2154
# shards_resume.sh - the same command continues a shuffle that was killed: kill -9 at fail-points and at random moments,
# SIGTERM, files that were damaged meanwhile, other input and options; a full disk leaves no file.
# check-more: whole

have tokenize decompose pack shuffle inspect || return 0

corpus c.jsonl 2000000 31
tokenize -t bytes --id-field id --domain-field domain c.jsonl | decompose --min 64 --max 1024 --label-token |
    pack -o label.tks
tokenize -t bytes --id-field id --domain-field domain c.jsonl | decompose --min 64 --max 1024 | pack -o plain.tks

# input FORMAT: the stream that suits it.
input() {
    case $1 in
    wds | ds) echo label.tks ;;
    *) echo plain.tks ;;
    esac
}
run() {
    [ "$format" = olmo ] && set -- --olmo-path /data/set "$@" # names in its cache hash the folder's path
    "$BIN/shuffle" -q --seed 4 --format "$format" --shard-sequences 64 "$@" "$(input "$format")"
}

for format in wds megatron mds ${MORE:+olmo ds litdata parquet megatron-sft}; do
    if ! run --replace-set -o want 2>err; then
        grep -q 'not built' err || not_ok "$format: $(head -n 1 err)"
        continue
    fi
    good=$(sha_tree want)
    # Formats that build their shards are written by threads of which any may be first: one thread, the same calls.
    [ -z "$SHIM" ] || for at in mkdir:2 name:2 name:20 write:40 sync:5 ${MORE:+start:1 open:20 name:1 name:7 name:45 write:2 write:9 \
        sync:33 close:25}; do
        rm -rf set log
        SHIM_AT=$at SHIM_LOG=log LD_PRELOAD=$SHIM/fault.so code run -T 1 -o set >/dev/null 2>&1
        [ -e log ] || continue
        check "$format: killed at $at" test $ended = 137
        [ ! -d set ] || check "$format: killed at $at: seen to be incomplete" test ! -e set/report.json
        status "$format: killed at $at: the same again" 0 run -o set
        same "$format: killed at $at: the same set" "$good" "$(sha_tree set)"
    done
    rm -rf set
done

# What is taken over is not written again, and is looked at.
format=wds
run -o want --replace-set
good=$(sha_tree want)
if [ -n "$SHIM" ]; then
    SHIM_AT=name:45 LD_PRELOAD=$SHIM/fault.so code run -T 1 -o set >/dev/null 2>&1
    lines=$(wc -l <set/.partial/journal)
    check "shards are in the journal" test "$lines" -gt 10
    rm set/.partial/lock # of the one that was killed
    cp -r set half
    for at in mkdir:1 mkdir:2 unlink:1; do # while what there is is looked at, before anything is made
        SHIM_AT=$at LD_PRELOAD=$SHIM/fault.so code run -T 1 -o set >/dev/null 2>&1
        same "killed, and in the next run at $at" 137 $ended
        status "  the same again" 0 run -o set
        same "  the same set" "$good" "$(sha_tree set)"
        rm -rf set
        cp -r half set
    done
    first=$(stat -c %i set/.partial/D_6/shard-0000000.tar)
    printf x >>set/.partial/D_6/shard-0000001.tar
    printf 'xx' | dd of=set/.partial/D_6/shard-0000002.tar bs=1 seek=700 conv=notrunc 2>/dev/null
    rm set/.partial/D_6/shard-0000003.tar
    touch set/.partial/D_6/shard-0000999.tar
    printf '{"bucket":"D_6","sh' >>set/.partial/journal
    status "shards that were damaged, removed or unknown" 0 run -o set
    same "give the same set" "$good" "$(sha_tree set)"
    same "and a whole one is the file it was" "$first" "$(stat -c %i set/D_6/shard-0000000.tar)"
    status "which is complete, and not replaced" 1 run -o set
    cp half/.partial/journal set/.journal.jsonl
    for o in "" --replace-set; do
        status "what an earlier version has begun in the folder itself, ${o:-no option}" 1 run $o -o set
        check "  is refused in one line" one_line err
        check "  that names it" grep -q 'set/.journal.jsonl: an earlier version has begun a set here' err
    done
    rm set/.journal.jsonl
    same "and the set stays" "$good" "$(sha_tree set)"

    rm -rf set && cp -r half set
    # refused WHAT MESSAGE COMMAND...
    refused() {
        status "$1 is refused" 1 "${@:3}"
        check "  in one line" one_line err
        check "  that says how it differs, and what to do" \
            grep -q "set: the set that a stopped run has begun here was made $2; run that command again, or use --replace-set" err
    }
    refused "another option" "without --last, now --last=drop" run --last drop -o set
    refused "another seed" "with --seed=4, now --seed=5" run --seed 5 -o set
    refused "another number" "with --shard-sequences=64, now --shard-sequences=65" \
        "$BIN/shuffle" -q --seed 4 --format wds --shard-sequences 65 -o set label.tks
    refused "a licence, which the provenance has not" "without --license, now --license=MIT" run --license MIT -o set
    inspect --records=40 label.tks >/dev/null
    "$BIN/shuffle" --order keep --sample 0.5 label.tks -o other.tks
    refused "another input" "from other input" "$BIN/shuffle" -q --no-provenance --seed 4 --format wds --shard-sequences 64 -o set \
        other.tks
    same "of which nothing was touched" "$(sha_tree half)" "$(sha_tree set)"
    status "but for --replace-set" 0 run --seed 5 --replace-set -o set
    check "which begins anew" test "$(sha_tree set)" != "$good"
    rm -rf set && cp -r half set
    status "--replace-set goes on where it may" 0 run --replace-set -o set
    same "to the same set" "$good" "$(sha_tree set)"
    status "inspect accepts it" 0 "$BIN/inspect" --verify set

    # The order of a stream that is kept is part of what a shard is.
    "$BIN/shuffle" --no-provenance --seed 1 label.tks -o a.tks
    "$BIN/shuffle" --no-provenance --seed 2 label.tks -o b.tks
    rm -rf set
    keep() { "$BIN/shuffle" -q --no-provenance --order keep --format wds --shard-sequences 64 -o set "$1"; }
    SHIM_AT=name:45 LD_PRELOAD=$SHIM/fault.so code keep a.tks >/dev/null 2>&1
    cp -r set half2
    status "the same sequences in another order" 1 keep b.tks
    check "are another input" grep -q 'its order' err
    check "existing shards stay" test -e set/.partial/D_6/shard-0000000.tar
    status "for the right one" 0 keep a.tks

    # Shards that are whole, and of which a shorter output has no need, do not stay among its own.
    first() {
        "$BIN/shuffle" -q --no-provenance --order keep --format olmo --shard-sequences 64 -o set "$@" fixed.tks
    }
    tokenize -t bytes --id-field id c.jsonl | decompose --min 64 --max 64 --tail drop -o fixed.tks
    rm -rf set
    SHIM_AT=name:13 LD_PRELOAD=$SHIM/fault.so code first -T 1 >/dev/null 2>&1
    check "several shards are whole" test -e set/.partial/D_6/shard-0000001.csv.gz
    refused "a shorter output that begins with the same shards" "without --max-tokens, now --max-tokens=4096" first --max-tokens 4096
fi

# What another program has put there stays, where its name is not one of ours.
rm -rf set && mkdir -p set/D_6 set/segments
for f in D_6/shard-1.tar D_6/shard-123456.npy D_6/shard.0001.mds D_6/shard-0000001.tar.old segments/notes.txt; do
    echo mine >set/$f
done
status "--replace-set among files of others" 0 run --replace-set -o set
same "takes none of them away" 5 "$(grep -rlx mine set | wc -l)"
rm -rf set

# Random moments, and signals that ask for it.
n=0
for after in 0.011 0.037 0.071 ${MORE:+0.023 0.052 0.094 0.12 0.15 0.19 0.24}; do
    rm -rf set
    for sig in KILL TERM; do
        "$BIN/shuffle" -q --seed 4 --format wds --shard-sequences 64 -o set label.tks >/dev/null 2>&1 &
        pid=$!
        sleep $after
        kill -$sig $pid 2>/dev/null || : # it may have ended
        code wait $pid 2>/dev/null
        got=$ended
        [ $got = 0 ] || n=$((n + 1))
        [ $sig$got = TERM75 ] || [ $sig$got = KILL137 ] || [ $got = 0 ] ||
            { [ $got = 1 ] && [ -e set/report.json ] && [ ! -e set/.partial ]; } || { [ $got = 143 ] && [ ! -e set ]; } || not_ok "SIG$sig after $after: status $got"
    done
    { [ -e set/report.json ] && [ ! -e set/.partial ]; } || run -o set
    same "killed and stopped after $after s: the same set" "$good" "$(sha_tree set)"
done
check "some of them were alive" test $n -gt "$([ -n "$MORE" ] && echo 5 || echo 0)"

# A full disk: one line, and nothing under a final name.
if [ -n "$SHIM" ]; then
    for at in write:3 write:30 write:150 name:9 sync:20; do
        rm -rf set log
        SHIM_AT=$at SHIM_DO=28 SHIM_ALWAYS=1 SHIM_LOG=log LD_PRELOAD=$SHIM/fault.so code run -o set >/dev/null 2>err
        got=$ended
        [ -e log ] || continue
        same "full at $at: exit 1" 1 "$got"
        check "full at $at: one line that says so" grep -q 'No space left' err
        check "full at $at: one" one_line err
        check "full at $at: nothing is left" test ! -e set
    done
fi
