# shellcheck shell=bash disable=SC2154,SC2016
# schedule_openlm.sh - OpenLM's arguments: the worked example of the reference implementation, digit for digit, and the
# values that schedule refuses.

have schedule || return 0
# manifest DIR I SHARDS SEQUENCES: DIR/D_I/manifest.jsonl.
manifest() {
    mkdir -p "$1/D_$2"
    awk -v n="$3" -v s="$4" 'BEGIN {
        for (k = 0; k < n; k++) printf "{\"shard\":\"shard-%07d\",\"num_sequences\":%d}\n", k, s }' >"$1/D_$2/manifest.jsonl"
}
i=8 s=4096
for n in 3560 5996 7410 6309 5157 4513; do
    manifest set $i $n $s
    i=$((i + 1)) s=$((s / 2))
done
cat >want <<'EOT'
--dataset-manifest set/D_8/manifest.jsonl set/D_9/manifest.jsonl set/D_10/manifest.jsonl set/D_11/manifest.jsonl set/D_12/manifest.jsonl set/D_13/manifest.jsonl
--epochs 8
--train-num-samples 3607101440
--dataset-batch-mult 32 16 8 4 2 1
--source-num-seq-per-epoch 1507328 1277952 794624 335872 137216 61440
--train-data-mix-weights 1472 1248 776 328 134 60
EOT
status "the worked example" 0 schedule --tokens 28795904000 --epochs 8 --world 8 --workers 1 --curriculum grow-p2 set
same "  digit for digit" "$(cat want)" "$(cat out)"
check "  0.2 % off, without a warning" test ! -s err
check "-o FILE" shell 'schedule --tokens 28795904000 --epochs 8 --world 8 -o args set && cmp want args'
check "manifests in any order" shell 'schedule --tokens 28795904000 --epochs 8 --world 8 set/D_1?/manifest.jsonl set/D_9 set/D_8/ |
    sed 1d >args; sed 1d want | cmp - args'
same "odds as numbers" "$(tail -n 1 want)" \
    "$(schedule --tokens 28795904000 --epochs 8 --world 8 --curriculum 32,16,8,4,2,1 set | tail -n 1)"
same "natural" "--train-data-mix-weights 46 78 97 82 67 60" \
    "$(schedule --tokens 28795904000 --epochs 8 --world 8 --curriculum natural set | tail -n 1)"
same "shrink-linear" "--train-data-mix-weights 46 156 291 328 335 360" \
    "$(schedule --tokens 28795904000 --epochs 8 --world 8 --curriculum shrink-linear set | tail -n 1)"
same "--batch-tokens" "--global-batch-size 64" \
    "$(schedule --tokens 28795904000 --epochs 8 --world 8 --batch-tokens 512Ki set | tail -n 1)"
same "without --tokens, the tokens of the shards" "--train-num-samples 34545336320" "$(schedule set | sed -n 's/^--train/&/p' | sed -n 1p)"

same "  on 8 GPUs in 8 epochs: rounded down" "--source-num-seq-per-epoch 1802240 1523712 942080 401408 163840 71680" \
    "$(schedule --world 8 --epochs 8 set | grep -e --source)"

# A short shard is dropped by the trainer, so it is not counted.
echo '{"shard":"shard-9999999","num_sequences":17}' >>set/D_10/manifest.jsonl
schedule --tokens 28795904000 --epochs 8 --world 8 --stats s.json -v set >args 2>notes
check "a short shard changes nothing" cmp want args
check "  and is spoken of" grep -q "17 sequences" notes
same "  and reported" "[7410, 1, 17]" \
    "$(json s.json '[[b["shards"], b["short_shards"], b["short_sequences"]] for b in d["buckets"] if b["length"] == 1024][0]')"

status "no input" 2 schedule
status "a folder without manifests" 1 schedule "$TMP"
check "  one line" one_line err
status "no such file" 1 schedule nowhere
status "odds for other buckets" 2 schedule --curriculum 3,2,1 set
status "no such curriculum" 2 schedule --curriculum grow-up set
status "no such trainer" 2 schedule --trainer nobody set
status "zero GPUs" 2 schedule --world 0 set
status "a batch that is no multiple" 2 schedule --batch-tokens 1000 --world 8 set
status "a batch that needs more than the shards of all GPUs" 1 schedule --batch-tokens 64Mi --world 8 set
check "  one line" one_line err
status "fewer tokens than a round of shards" 0 schedule --tokens 1000 --world 8 set
check "  which is said without -v" grep -q '1000 tokens cannot be had in whole shards' err
check "  a bucket without shards is warned of" grep -q 'D_8/manifest.jsonl: no shard is used' err
mkdir set/D_14 && : >set/D_14/manifest.jsonl
status "a bucket without any shard" 0 schedule --tokens 28795904000 --epochs 8 --world 8 set
check "  is left out with a warning" grep -q 'name no sequences.*: 1$' err
same "  of the same plan" "$(cat want)" "$(cat out)"
rm -r set/D_14
printf '{"shard":"a","num_sequences":5}' >set/D_8/manifest.jsonl
status "a manifest without its last newline" 1 schedule set
check "  is named with its line" grep -q 'D_8/manifest.jsonl:1: ' err
echo 'nothing' >set/D_8/manifest.jsonl
status "a manifest that is no JSON" 1 schedule set
check "  is named with its line" grep -q 'D_8/manifest.jsonl:1: ' err
mkdir -p other/L_100 && mv set/D_9/manifest.jsonl other/L_100
status "buckets that are no powers of two" 1 schedule other
status "/dev/full" 1 shell 'schedule "$1" >/dev/full' sh set/D_10

# Odds of 0: an epoch would wait for sequences that are never drawn.
manifest zero 4 9 100
manifest zero 5 9 100
manifest zero 6 9 100
for odds in 0,0,1 1,0,1 0,0,0; do
    status "odds $odds" 2 schedule --curriculum $odds zero
    check "  one line" one_line err
    check "  says what to do instead" grep -q 'odds are 0; leave its manifest out' err
    check "  writes nothing" test ! -s out
done
status "  a bucket's manifest left out" 0 schedule --curriculum 2,1 zero/D_4 zero/D_6

# Counts whose products would wrap.
manifest big 40 256 65536
status "2^64 tokens in the shards" 1 schedule --tokens 1Ti big
check "  one line" one_line err
check "  with manifest and line" grep -q 'D_40/manifest.jsonl:65: more than 2^62 tokens' err
manifest big 40 64 65536
manifest big 39 1 1
status "2^62 in a bucket and more in another" 1 schedule --tokens 1Ti big
check "  one line" one_line err
check "  is refused too" grep -q 'more than 2^62 tokens in all' err
manifest far 40 1 1
status "longest bucket times world: 2^64" 2 schedule --batch-tokens 1Ti --world 16Mi far
check "  one line" one_line err
status "tokens beyond 2^62" 2 schedule --tokens 5000000Ti far
check "  one line" one_line err
manifest wide 40 1 1
manifest wide 0 8 4096
status "rounds that would wrap" 2 schedule --tokens 1Ti --epochs 4294967295 --world 4294967295 wide
check "  one line" one_line err
