# shellcheck shell=bash disable=SC2154
# shards_mds.sh - shuffle --format mds and litdata: every byte of shards and indexes compared with the layout
# (tests/cli/mds.py writes the layout too), zstd frames that state their size, limits checked before anything is
# written, damage, --replace-set.
# check-more: whole

have decompose pack shuffle inspect || return 0
"$PYTHON" "$top/tests/cli/shards_mds.py" mds2 mds4 litdata2 litdata4 both fixed

# auto: whatever -M, the least one too, the same shards, also of the shortest sequences.
corpus auto.jsonl 120000 3
for format in mds litdata parquet megatron-sft; do
    tokenize -t bytes auto.jsonl | decompose -q --buckets 2 --tail drop >auto.tks
    rm -rf none
    shuffle -q --format $format -o none auto.tks 2>err || { grep 'is not built in' err && continue; }
    for length in 2 4 512; do
        tokenize -t bytes auto.jsonl | decompose -q --buckets $length --tail drop >auto.tks
        rm -rf least more
        status "$format, auto, length $length, the least memory" 0 shuffle -q -M 32M --format $format -o least auto.tks
        status "  more memory" 0 shuffle -q -M 1G --format $format -o more auto.tks
        check "  the same bytes" diff -r least more
    done
done
