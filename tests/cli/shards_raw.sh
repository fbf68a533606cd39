# shellcheck shell=bash disable=SC2154,SC2086,SC2046,SC2016
# shards_raw.sh - shuffle --format ds and --format megatron: the bytes of each file, the same for any threads and
# memory; inspect reads the sets back and finds damage; streams that do not suit a format are refused.
# check-more: whole

have tokenize decompose pack shuffle inspect || return 0
raw() { "$PYTHON" "$top/tests/cli/check_raw.py" "$@"; }

corpus c.jsonl "$(longer 400000 1500000)" 7
for w in 2 4; do
    tokenize -t bytes c.jsonl >c.tks
    if [ $w = 4 ]; then # the same ids, wide
        "$PYTHON" "$top/tests/cli/make_npy.py" records r.json wide.npy 4 1
        decompose --label-token --min 16 --max 256 --eos-id 256 --vocab-size 100000 wide.npy >p.tks
        pack --length 128 p.tks >l.tks
        tokenizer=unknown
    else
        inspect --records c.tks >r.json
        decompose --label-token --min 16 --max 256 c.tks >p.tks
        pack --length 128 p.tks >l.tks
        tokenizer=sluice:$(inspect --json c.tks >j.json && json j.json 'd["fingerprint"]')
    fi
    for f in ds megatron; do
        rm -rf $f
        status "$f of $w bytes" 0 shuffle --format $f --shard-sequences 300 -o $f l.tks
        cp err said
        inspect --records $f >n.json
        check "$f of $w bytes: every byte" raw $f $f n.json $tokenizer $w
        status "$f of $w bytes: --verify" 0 inspect --verify $f
        same "$f of $w bytes: the stream's checksum" "$(inspect --json l.tks >j.json; json j.json 'd["checksum"]')" \
            "$(inspect --json $f >j.json; json j.json 'd["checksum"]')"
    done
    check "$w: megatron warns of lost document borders" grep -q "Megatron's documents are whole sequences" said
done
for o in "-T 7" ${MORE:+"-T 1" "-M 64M"}; do
    for f in ds megatron; do
        rm -rf again
        shuffle -q $o --format $f --shard-sequences 300 -o again l.tks
        rm -f again/report.json $f/report.json
        same "$f: the same bytes with $o" "$(sha_tree $f)" "$(sha_tree again)"
    done
done
rm -rf ds megatron
shuffle -q --format ds --shard-sequences 300 -o ds l.tks
shuffle -q --format megatron --shard-sequences 300 -o megatron l.tks
same "auto: one shard a bucket" 1 "$(shuffle -q --format ds -o auto l.tks && find auto/D_7 -name '*.ds' | wc -l)"
check "segments of other documents begin again in the index" shell 'test "$(wc -c <auto/D_7/shard-0000000.ds.index)" -gt \
    "$((8 * $(wc -c <auto/D_7/shard-0000000.ds) / 4 / 129))"'

# ---- back: a set is an input too ----

same "ds: read as documents" "$(inspect --json ds >j.json; json j.json 'd["tokens"]')" \
    "$(inspect --json $(find ds -name '*.ds') >j.json; json j.json 'd["tokens"]')"
same "megatron: read as documents" "$(inspect --json megatron >j.json; json j.json 'd["checksum"]')" \
    "$(inspect --json $(find megatron -name '*.idx') >j.json; json j.json 'd["checksum"]')"

# ---- labels, buckets, limits ----

decompose --min 16 --max 256 --tail drop c.tks >plain.tks
status "ds requires label tokens" 1 shuffle --format ds -o no plain.tks
check "and says how" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q -- "--label-token" err'
check "nothing is left" test ! -e no
status "ds without labels, forced" 0 shuffle --accept-mismatch --format ds -o forced plain.tks
status "is read" 0 inspect --verify forced
status "megatron takes either" 0 shuffle --format megatron -o without plain.tks
decompose --label-token --buckets 100,30 --tail drop c.tks >odd.tks
for f in ds megatron; do
    status "$f: buckets that are no powers of two" 0 shuffle --format $f -o odd_$f odd.tks
    status "$f: are read" 0 inspect --verify odd_$f
    check "$f: and have their names" test -d odd_$f/L_100
    status "$f: a set that exists" 1 shuffle --format $f -o odd_$f odd.tks
    status "$f: --replace-set" 0 shuffle --replace-set --format $f --shard-sequences 10 -o odd_$f odd.tks
    status "$f: --replace-set again, with fewer files" 0 shuffle --replace-set --format $f -o odd_$f odd.tks
    inspect --records odd_$f >n.json
    check "$f: no file of the old set is left" test "$(find odd_$f/L_100 -type f | wc -l)" -lt 4
done
status "megatron: too many sequences" 2 shuffle --format megatron --shard-sequences 3000000000 -o no plain.tks
check "and the largest number that does" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q -- "at most 2147483647 fit" err'
"$PYTHON" "$top/tests/cli/make_npy.py" ids big.npy 4 "([1] * 20 + [0]) * 100"
decompose --buckets 16 --tail drop --eos-id 0 --token-bytes 4 --vocab-size 4294967296 big.npy >big.tks
status "megatron: ids past 31 bits" 1 shuffle --format megatron -o no big.tks
check "is one line" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q "ids below 2147483648" err'
status "--compress" 2 shuffle --format ds --compress zstd -o no l.tks

# ---- what is wrong with a set ----

# damaged WORDS FILE PYTHON: --verify of a set with the bytes b of one file changed.
damaged() {
    rm -rf bad
    cp -r "${2%%/*}" bad
    "$PYTHON" -c "
import struct
b=bytearray(open('bad/${2#*/}','rb').read())
$3
open('bad/${2#*/}','wb').write(b)"
    status "${2#*/}: $3" 1 inspect --verify bad
    if one_line err && grep -qe "$1" err; then ok "${2#*/}: $1"; else
        cat err
        not_ok "${2#*/}: $1"
    fi
}
damaged "" ds/D_7/shard-0000000.ds "b[1000]^=1"
damaged "" ds/D_7/shard-0000000.ds "del b[-4:]"
damaged "" ds/D_7/shard-0000000.ds.index "struct.pack_into('<Q',b,0,3)"
damaged "" ds/D_7/shard-0000000.ds.index "del b[-8:]"
damaged "" ds/D_7/shard-0000000.ds.index "b+=b[-8:]"
damaged "metadata says" ds/D_7/shard-0000000.ds.metadata "i=b.index(10);b[i+1]^=1"
damaged "" megatron/D_7/shard-0000000.bin "b[1000]^=1"
damaged "" megatron/D_7/shard-0000000.bin "b+=b[:4]"
damaged "" megatron/D_7/shard-0000000.idx "b[17]=8"
damaged "" megatron/D_7/shard-0000000.idx "struct.pack_into('<i',b,34,5)"
damaged "" megatron/D_7/shard-0000000.idx "struct.pack_into('<q',b,len(b)-8,1)"
for f in ds/D_7/shard-0000000.ds.metadata ds/D_7/shard-0000000.ds.index megatron/D_7/shard-0000000.idx megatron/D_7/shard-0000000.bin; do
    rm -rf bad
    cp -r "${f%%/*}" bad
    rm "bad/${f#*/}"
    status "${f#*/} missing" 1 inspect --verify bad
    check "${f#*/} missing: is one line" one_line err
done
