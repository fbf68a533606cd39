# shellcheck shell=bash disable=SC2154,SC2086
# shuffle_keep.sh - shuffle --order keep writes shards without a sorter where the input says its sums: sets, and streams in
# files. The files are those of the sorter, which a pipe and --replace-set need; the same for any threads and memory; killed
# and run again; what is damaged, changed or does not fit leaves nothing.
# check-more: whole

have tokenize decompose pack shuffle inspect || return 0

corpus c.jsonl 600000 6
corpus d.jsonl 300000 7
for f in c d; do
    tokenize -q -t bytes --id-field id --domain-field domain $f.jsonl -o $f.tks
    decompose -q --min 32 --max 256 $f.tks | pack -q --length 256 --fill drop -o $f.plain.tks
    decompose -q --min 32 --max 256 --label-token $f.tks | pack -q --length 256 --fill drop -o $f.label.tks
done
"$PYTHON" -c 'import json
for i in range(400):
    print(json.dumps({"text": "question and answer " * (i % 37 + 1), "spans": [[i % 15, i % 15 + 5]]}))' >m.jsonl
tokenize -q -t bytes --spans-field spans m.jsonl -o m.tks

# ways NAME OPTION... INPUT...: the files of the sorter in all ways without one
ways() {
    what=$1
    shift
    rm -rf want
    shuffle -q --order keep "$@" --replace-set -o want || return
    good=$(sha_tree want)
    for o in "-T 1" "-T 7 -M 32M"; do
        rm -rf set
        shuffle -q --order keep $o "$@" -o set
        same "$what: $o" "$good" "$(sha_tree set)"
    done
}
for f in megatron ${MORE:+ds olmo litdata} mds parquet; do
    rm -rf a b
    if ! shuffle -q --documents --seed 2 --shard-size 120K --format $f -o a c.tks 2>err; then
        grep -q 'is not built in' err && skip "$f: this build has none (make arrow)" || not_ok "$f: $(head -n 1 err)"
        continue
    fi
    shuffle -q --documents --seed 3 --format $f -o b d.tks
    set -- --input-format set --documents --format $f
    ways "$f: documents of two sets" "$@" --shard-size 150K a b
    ways "$f: a sample, up to a number of tokens" "$@" --shard-size 300K --sample 0.5 --max-tokens 200000 b a
    ways "$f: documents of two streams" --documents --shard-size 150K --format $f d.tks c.tks
    case $f in megatron | ds) continue ;; esac
    rm -rf masked
    shuffle -q --documents --seed 4 --format $f -o masked m.tks
    ways "$f: masks, beside a set without them" "$@" --shard-size 150K masked a
done
for f in wds olmo ${MORE:+ds megatron mds litdata parquet}; do
    case $f in wds | ds) kind=label ;; *) kind=plain ;; esac
    more=''
    [ $f != olmo ] || more='--olmo-path /data/set'
    rm -rf a b
    shuffle -q --seed 2 --shard-sequences 50 --format $f $more -o a c.$kind.tks 2>err || continue
    shuffle -q --seed 3 --format $f $more -o b d.$kind.tks
    set -- --input-format set --shard-sequences 70 --format $f $more
    ways "$f: buckets of two sets" "$@" a b
    ways "$f: buckets of one set" "$@" a
    ways "$f: full shards alone" "$@" --last drop b a
done
rm -rf a b want
shuffle -q --documents --seed 2 --shard-size 90K --format ds -o a c.tks
shuffle -q --documents --seed 3 --format megatron -o b d.tks
keep() { shuffle -q --documents --order keep --shard-size 64K --format olmo "$@"; }
keep -o want a b
good=$(sha_tree want)
keep --replace-set -o sorted <(cat c.tks d.tks)
keep -o streams c.tks d.tks
same "streams in files, and in a pipe" "$(sha_tree sorted/documents)" "$(sha_tree streams/documents)"

# ---- no sequence waits ----

for _ in $(seq 64); do cat c.tks; done >long.tks
shuffle -q --documents --order keep --format megatron -o long long.tks
spilled() { json s.json 'd["spill_bytes"]'; }
keep --stats s.json -M 32M -o short long
same "40 MB and a memory of 32 MiB: nothing waits in a file" 0 "$(spilled)"
keep --stats s.json -M 32M --replace-set -o short long
check "which the sorter needs" test "$(spilled)" -gt 1000000

# ---- killed, and the same again ----

for at in name:2 name:7 write:30 ${MORE:+mkdir:2 sync:5 name:20 write:9 open:40}; do
    shim fault >/dev/null || break
    rm -rf set
    SHIM_AT=$at LD_PRELOAD=$SHIM/fault.so code keep -T 1 -o set a b >/dev/null 2>&1
    same "killed at $at" 137 "$ended"
    status "the same again" 0 keep -T 3 -o set a b
    same "the same set" "$good" "$(sha_tree set)"
done
if shim fault >/dev/null; then
    rm -rf set
    SHIM_AT=name:10 LD_PRELOAD=$SHIM/fault.so code keep -T 1 -o set a b >/dev/null 2>&1
    first=$(stat -c %i set/.partial/documents/*001.npy)
    status "of other sets: refused" 1 keep -o set a b a
    check "by its input" grep -q 'was made from other input' err
    status "the same again" 0 keep -o set a b
    same "and a whole shard is the file it was" "$first" "$(stat -c %i set/documents/*001.npy)"
fi

# ---- what fails leaves nothing ----

none() {
    status "$1" 1 "${@:3}"
    check "$1: is named" grep -qE "$2" err
    check "$1: nothing was made" test ! -e none
}
cp -r a bad
last=$(find bad/documents -name '*.ds' | sort | tail -n 1)
printf '\1\0' | dd of="$last" bs=1 seek=20 conv=notrunc 2>/dev/null
none "a damaged last shard" "bad: .*the set is damaged" keep -o none b bad
head -c -64 c.tks >cut.tks
none "a stream that was cut" "cut.tks: ends early" keep -o none d.tks cut.tks
printf '\1\2\3' | dd of=cut.tks bs=1 seek=70000 conv=notrunc 2>/dev/null
tail -c 64 c.tks >>cut.tks
none "a stream that was changed" "cut.tks" keep -o none d.tks cut.tks
status "a document larger than a shard" 2 shuffle --documents --order keep --shard-size 1000 --format megatron -o none a
check "is refused" grep -q "a document of [0-9]* ids takes more than the 1000 bytes" err
check "before anything is written" test ! -e none
