# shellcheck shell=bash disable=SC2154,SC2086
# shuffle_olmo.sh - shuffle --format olmo and schedule --olmo-cache: the same bytes for any threads, read back by
# inspect; damage is reported in one line; options and limits. tests/judges/readers_olmo.py reads the files with
# OLMo-core.

have tokenize decompose pack shuffle inspect schedule || return 0
corpus c.jsonl 400000 4
tokenize c.jsonl | decompose -q --min 16 --max 256 >d.tks
pack --fill pad d.tks >p.tks
shuffle -q --format olmo --shard-sequences 200 --olmo-path /data/set -o a p.tks
one="a/D_4/shard-0000000"

inspect --verify a >out
same "inspect --verify" "$(inspect --json p.tks | grep -o '"checksum": "[0-9a-f]*"' | cut -d'"' -f4)" "$(sed -n 's/.*checksum //p' out)"
inspect --records p.tks | sort >r1
inspect --records a | sort >r2
check "the same sequences" cmp r1 r2
same "files: ids" "$(($(zcat $one.csv.gz | tail -n 1 | cut -d, -f2) * 2))" "$(wc -c <$one.npy)"
for o in "-T 1" "-T 3" "-M 64M"; do
    rm -rf b
    shuffle -q $o --format olmo --shard-sequences 200 --olmo-path /data/set -o b p.tks
    check "the same bytes with $o" diff -r -x report.json a b
done
rm -rf b
shuffle -q --format olmo --shard-sequences 200 -o b p.tks
check "another path: other names in the cache alone" diff -r -x report.json -x olmo-cache a b
check "and the folder's own, made absolute" grep -q "\"$PWD/b/D_4/shard-0000000.npy\"" b/olmo-cache/vsl-natural.json
rm -rf b
shuffle -q --format olmo --shard-sequences 200 -o ./b/. p.tks
check "without dots" grep -q "\"$PWD/b/D_4/shard-0000000.npy\"" b/olmo-cache/vsl-natural.json
shuffle -q --format olmo --replace-set --olmo-path s3://bucket/b/ --olmo-tokenizer dolma2 -o b p.tks
same "a URL, and the trainer's tokenizer" "s3://bucket/b/D_4/shard-0000000.npy 100278 100277" \
    "$(json b/olmo-cache/vsl-natural.json '"%s %d %d" % (d["paths"][0], d["tokenizer"]["vocab_size"], d["tokenizer"]["pad_token_id"])')"
check "--replace-set takes the old cache away" test "$(find b/olmo-cache -name 'dataset-*' | wc -l)" = 2
tokenize c.jsonl | decompose --buckets 64 --tail drop | shuffle --format olmo -o flat 2>err
told err >said
check "one bucket: is said" shell '. "$top/tests/cli/lib.sh"; one_line said && grep -q "no olmo-cache is written: .*two lengths" said'
check "one bucket: no index, but files" test ! -e flat/olmo-cache -a -e flat/D_6/shard-0000000.npy
tokenize c.jsonl | decompose --buckets 100,60 --tail drop | shuffle -q --format olmo -o odd
check "lengths of any kind: no index, but files" test ! -e odd/olmo-cache -a -e odd/L_100/shard-0000000.npy
check "and they are read back" inspect --verify odd

# ---- what is said ----

said() { # CODE WORDS COMMAND...
    code=$1 words=$2
    shift 2
    status "$*" "$code" "$@"
    if one_line err && grep -qe "$words" err; then ok "$*: $words"; else
        cat err
        not_ok "$*: $words"
    fi
}
said 2 "at most [0-9]* fit" shuffle --format olmo --shard-sequences 1000Mi -o x p.tks
tokenize c.jsonl | decompose --label-token --tail drop >l.tks
said 1 "without --label-token" shuffle --format olmo -o x l.tks
said 2 "no OLMo path" shuffle --format wds --olmo-path /x -o x l.tks
said 2 "no OLMo tokenizer" shuffle --format wds --olmo-tokenizer dolma2 -o x l.tks
said 2 "vocabulary size, EOS and padding" shuffle --format olmo --olmo-tokenizer gpt2 -o x p.tks
said 2 "below the vocabulary size" shuffle --format olmo --olmo-tokenizer 10,10,0 -o x p.tks
check "nothing was left" test ! -e x

bad() { # WORDS COMMAND...: on a copy of the set
    words=$1
    shift
    rm -rf bad
    cp -r a bad
    shell "$*"
    said 1 "$words" inspect --verify bad
}
bad "bytes" "truncate -s -2 bad/D_4/shard-0000000.npy"
bad "bytes" "printf xx >>bad/D_4/shard-0000000.npy"
bad "shard-0000000" "rm bad/D_4/shard-0000000.csv.gz"
bad "csv.gz" "head -c 100 a/D_4/shard-0000000.csv.gz >bad/D_4/shard-0000000.csv.gz"
bad "." "zcat a/D_4/shard-0000000.csv.gz | sed 3d | gzip -n >bad/D_4/shard-0000000.csv.gz"
bad "." "printf '\0\0' | dd of=bad/D_4/shard-0000000.npy bs=1 seek=8 conv=notrunc status=none"

bad "olmo-cache/dataset-.*/instance-lengths.npy: was changed" \
    'f=$(ls bad/olmo-cache/dataset-*/instance-lengths.npy); printf "\377" | dd of=$f bs=1 seek=3 conv=notrunc status=none'
bad "olmo-cache/dataset-common/.*: has" 'truncate -s -8 $(ls bad/olmo-cache/dataset-common/* | sed -n 2p)'
bad "incomplete: olmo-cache/vsl-natural.json" "rm bad/olmo-cache/vsl-natural.json"
bad "bad/olmo-cache: the set is incomplete: there is no manifest.jsonl" "rm bad/olmo-cache/manifest.jsonl"
bad "bad/olmo-cache: the set is incomplete" "rm -r bad/olmo-cache"
bad "olmo-cache/manifest.jsonl: was changed" "sed -i 2d bad/olmo-cache/manifest.jsonl"
rm -rf bad && cp -r a bad && touch bad/olmo-cache/dataset-common/theirs.npy
check "files that a loader adds to the cache are ignored" inspect --verify bad
check "schedule may add to it" schedule -q --trainer generic --batch-tokens 2Ki --olmo-cache bad/olmo-cache --olmo-path /data/set a
check "  and that is a set again" inspect --verify bad
said 1 "global_batch_indices.*: was changed" shell '
    printf "\377" | dd of=$(ls bad/olmo-cache/dataset-*/vsl-natural/global_batch_indices*) bs=1 conv=notrunc status=none; inspect --verify bad'
bad "olmo-cache/manifest.jsonl: was changed" "sed -i 2d bad/olmo-cache/manifest.jsonl"
said 1 "olmo-cache/manifest.jsonl: was changed" schedule -q --trainer generic --batch-tokens 2Ki --olmo-cache bad/olmo-cache a

# ---- schedule --olmo-cache ----

olmo="--batch-tokens 2Ki --world 2 --seed 3 --epochs 2"
schedule -q --trainer generic $olmo --cycles 2 --olmo-cache w --olmo-path /data/set --json s.json a
schedule -q --trainer generic $olmo --cycles 2 --json t.json a
first='d["steps"][:d["steps_per_pass"]]'
same "the first epoch is the same without --olmo-cache" "$(json s.json "$first")" "$(json t.json "$first")"
same "  of the later ones the loader draws the order" '[1, 2]' "[$(json s.json 'd["version"]'), $(json t.json 'd["version"]')]"
check "nothing on standard output" test -z "$(schedule -q --trainer generic $olmo --olmo-cache w --olmo-path /data/set a)"
check "the index is that of shuffle" shell 'for f in $(cd a/olmo-cache && find . -name "*.npy" -o -name "vsl*"); do cmp a/olmo-cache/$f w/$f || exit 1; done'
schedule -q --trainer generic $olmo --cycles 2 --olmo-cache w --olmo-path /data/set a
order=$(ls w/dataset-*/vsl-natural/global_batch_indices_bz2048_epoch2_seed3.npy)
cat >batches.py <<'END'
import json
d = json.load(open("s.json"))
n = d["steps_per_pass"]
runs = [b["steps_per_pass"] for b in d["buckets"]]
print(*[sum(runs[:b]) + first // d["buckets"][b]["sequences_per_step"] for b, first, _ in d["steps"][n:]])
END
same "batches of the second pass, in our order" "$("$PYTHON" batches.py)" "$(od -An -v -tu4 -w4 "$order" | xargs)"
schedule -q --trainer olmo --curriculum grow-p2 --cycles 2 $olmo --tokens 8Ki --olmo-cache w a
schedule -q --trainer olmo --curriculum grow-p2 --cycles 2 $olmo --json s.json a
same "--tokens: a pass is whole" "$(($(json s.json 'd["steps_per_pass"]') * 4))" \
    "$(wc -c <"$(ls w/dataset-*/vsl-grow-p2-2-cycle/global_batch_indices_bz2048_epoch1_seed3.npy)")"
said 2 "need --olmo-cache" schedule --trainer olmo $olmo --olmo-path /x a
said 2 "needs --trainer" schedule --olmo-cache w a
said 2 "bricks and --olmo-cache cannot be combined.*loaders of samples of one size" schedule -q --trainer generic $olmo --bricks --olmo-cache w a
said 1 "odds of the bucket of 16 are 0" schedule -q --trainer generic $olmo --curriculum 0,1,1,1,1 --olmo-cache w a
shuffle -q --format wds -o wds l.tks
said 2 "one set" schedule -q --trainer generic $olmo --olmo-cache w wds
said 1 "two lengths" schedule -q --trainer generic $olmo --olmo-cache w flat
said 1 "powers of two" schedule -q --trainer generic --batch-tokens 6000 --olmo-cache w odd
said 1 "w2\|cannot" schedule -q --trainer generic $olmo --olmo-cache /dev/null/w2 a
