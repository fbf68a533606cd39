# shellcheck shell=bash disable=SC2154,SC2086
# shards_parquet.sh - shuffle --format parquet: read back and compared; the same bytes for any threads and memory;
# damage is found. If the build has no Parquet (see `make arrow`), one line says so.
# check-more: whole

have tokenize decompose pack shuffle inspect || return 0
corpus c.jsonl 1200000 9
tokenize -t bytes c.jsonl | decompose --min 16 --max 256 | pack --length 128 -o p.tks

mkdir alone
cp "$BIN/shuffle" alone/shuffle
status "a build without says so" 1 alone/shuffle --format parquet -o none p.tks
check "in one line" shell "test \$(wc -l <err) = 1 && grep -q '^shuffle: format parquet is not built in: ' err"
check "and leaves nothing" test ! -e none
if ! shuffle --format parquet -o none p.tks 2>err && grep -q 'is not built in' err; then
    skip "Parquet out: this build has none (make arrow)"
    return 0
fi
status "shuffle --format parquet" 0 shuffle --format parquet --seed 3 --shard-sequences 40 -o s p.tks
rows() { inspect --records "$1" | sort | sha; }
sum() { inspect --json "$1" >j.json && json j.json '[d["checksum"], d["sequences"], d["tokens"]]'; }
status "--verify" 0 inspect --verify s
same "checksum and counts are the stream's" "$(sum p.tks)" "$(sum s)"
shuffle -q --seed 3 -o order.tks p.tks
same "tokens and segments too" "$(rows order.tks)" "$(rows s)"
check "the card names the options of TRL" grep -qxF 'args = SFTConfig(max_length=None, packing=False, padding_free=True)' s/README.md
check "several shards" test "$(find s/D_7 -name 'shard-*.parquet' | wc -l)" -gt 1
for f in s/D_7/*.parquet; do
    check "$(basename "$f") looks like Parquet" test "$(head -c 4 "$f")$(tail -c 4 "$f")" = PAR1PAR1
done
rm s/report.json
want=$(sha_tree s)
for o in "-T 1" "-T 7" "-T 2 -M 64M"; do
    rm -rf again
    shuffle -q $o --format parquet --seed 3 --shard-sequences 40 -o again p.tks
    rm -f again/report.json
    same "the same bytes with $o" "$want" "$(sha_tree again)"
done
for z in none zstd:1 zstd:19; do
    status "--compress $z" 0 shuffle -q --format parquet --seed 3 --compress $z -o z p.tks
    status "--compress $z: --verify" 0 inspect --verify z
    du -bc z/D_*/*.parquet | tail -n 1 | cut -f 1 >size.${z#*:}
    rm -rf z
done
check "levels matter" test "$(cat size.none)" -gt "$(cat size.1)" -a "$(cat size.1)" -gt "$(cat size.19)"

# ids of four bytes, and the largest one
"$PYTHON" -c 'import struct
ids = [i * 7919 % 2147483646 for i in range(5000)] + [2147483646]
for i in range(49, 5000, 50): ids[i] = 7
open("w.npy", "wb").write(struct.pack("<%dI" % len(ids), *ids))'
if decompose --min 16 --max 64 --tail drop --eos-id 7 --vocab-size 2147483647 --token-bytes 4 -o w.tks w.npy 2>err; then
    status "wide ids" 0 shuffle --format parquet -o w w.tks
    shuffle -q -o w2.tks w.tks
    same "wide ids are kept" "$(rows w2.tks)" "$(rows w)"
else
    not_ok "wide ids: decompose w.npy"
    cat err
fi

# labels, limits, options
tokenize -t bytes c.jsonl | decompose --min 16 --max 64 --label-token --tail drop -o l.tks
status "label tokens are refused" 1 shuffle --format parquet -o no l.tks
check "in one line, with what to do" one_line err
status "an option of another format" 2 shuffle --format parquet --member json -o no p.tks
status "a shard that does not fit in memory" 2 shuffle --format parquet -M 64M --shard-sequences 1000000 -o no p.tks
check "says what does" grep -q -- 'enough for [0-9]* sequences' err
check "nothing is left" test ! -e no

# damage
shuffle -q --format parquet --seed 3 --shard-sequences 40 -o d p.tks
f=d/D_7/shard-0000001.parquet
cp $f keep
size=$(wc -c <keep)
for n in 3 100 $((size / 2)) $((size - 1)); do
    head -c $n keep >$f
    status "cut to $n bytes" 1 inspect --verify d
    check "cut to $n bytes: one line that names it" shell "test \$(wc -l <err) = 1 && grep -q 'shard-0000001.parquet' err"
    status "cut to $n bytes: --records" 1 inspect --records d
done
"$PYTHON" -c 'import sys
b = bytearray(open("keep", "rb").read()); b[len(b) // 3] ^= 1; open(sys.argv[1], "wb").write(b)' $f
status "a bit that flipped" 1 inspect --verify d
status "a bit that flipped: --records" 1 inspect --records d
check "names the row group" grep -q 'row group [0-9]*: damaged' err
cp d/D_7/shard-0000000.parquet $f
status "another shard in its place" 1 inspect --verify d
cp keep $f
status "unchanged" 0 inspect --verify d
