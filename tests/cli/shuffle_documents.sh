# shellcheck shell=bash disable=SC2154,SC2086
# shuffle_documents.sh - shuffle --documents: the bytes of each file, the shards by bytes, the same for any threads and
# memory; inspect reads the sets back and finds damage; kill -9 and the same again; streams that do not suit are refused.
# check-more: whole

have tokenize dedup decompose pack shuffle inspect schedule || return 0
documents() { "$PYTHON" "$top/tests/cli/check_documents.py" "$@"; }

corpus c.jsonl 1500000 8
tokenize -q -t bytes --id-field id --domain-field domain c.jsonl -o c.tks
order=(--seed 9)
shuffle -q "${order[@]}" c.tks -o want.tks
inspect --records want.tks >random.json
inspect --records c.tks >keep.json
longest=$("$PYTHON" -c 'import json
print(max(len(json.loads(line)["tokens"]) for line in open("keep.json")))')

formats="megatron ds olmo mds litdata parquet"
if ! shuffle -q --documents --format parquet -o none c.tks 2>err && grep -q 'is not built in' err; then
    skip "documents as Parquet: this build has none (make arrow)"
    formats=${formats% parquet}
fi
for f in $formats; do
    size=4294967296 width=2 more=''
    case $f in mds | litdata | parquet) size=8388608 ;; esac
    case $f in mds) more="--compress none" ;; parquet) width=4 ;; esac
    status "$f" 0 shuffle "${order[@]}" --documents $more --format $f -o $f c.tks
    check "$f: every byte" documents $f $f random.json $width bytes $size
    status "$f: --verify" 0 inspect --verify $f
    same "$f: the stream's records" "$(sha <random.json)" "$(inspect --records $f | sha)"
    shuffle -q --documents --order keep --shard-size 300K $more --format $f -o $f.keep c.tks
    check "$f: in the input's order, by bytes: every byte" documents $f $f.keep keep.json $width bytes 307200
    status "$f: --verify of several shards" 0 inspect --verify $f.keep
    for o in "-T 7" ${MORE:+"-T 1" "-M 64M"}; do
        rm -rf again
        # shellcheck disable=SC2086
        shuffle -q $o --documents --order keep --shard-size 300K $more --format $f -o again c.tks
        same "$f: the same bytes with $o" "$(sha_tree $f.keep)" "$(sha_tree again)"
    done
    case $f in mds | litdata | parquet) continue ;; esac
    shuffle -q "${order[@]}" --documents --shard-sequences 100 --format $f -o $f.count c.tks
    check "$f: by documents: every byte" documents $f $f.count random.json 2 documents 100
done

# ---- width of ids: Megatron's builder takes four bytes from 65500 ids on ----

"$PYTHON" "$top/tests/cli/make_npy.py" records keep.json narrow.npy 2 1
for n in 65499 65500 65536 65537; do
    rm -rf wide
    shuffle -q --documents --order keep --eos-id 256 --vocab-size $n --format megatron -o wide narrow.npy
    w=$((n < 65500 ? 2 : 4))
    check "a vocabulary of $n ids: $w bytes" documents megatron wide keep.json $w bytes 4294967296
    status "a vocabulary of $n ids: --verify" 0 inspect --verify wide
done

# ---- what dedup has cut is one document ----

"$PYTHON" -c 'import json
for text in ("one and the same passage of text, " * 5, "first words; " + "one and the same passage of text, " * 5 + "last words"):
    print(json.dumps({"text": text}))' >cut.jsonl
tokenize -q -t bytes cut.jsonl | dedup -q --substring 60 -o cut.tks
same "dedup cut the middle out of a document" 2 "$(inspect --records cut.tks >r.json; "$PYTHON" -c 'import json
print(max(len(json.loads(l)["segments"]) for l in open("r.json")))')"
shuffle -q --documents --order keep --format megatron -o cut cut.tks
check "which is one in the set" documents megatron cut r.json 2 bytes 4294967296

# ---- masks: where the format has them ----

"$PYTHON" -c 'import json
for i in range(300):
    print(json.dumps({"text": "question and answer " * (i % 37 + 1), "spans": [[i % 15, i % 15 + 5]]}))' >m.jsonl
tokenize -q -t bytes --spans-field spans m.jsonl -o m.tks
shuffle -q --documents --order keep --shard-size 20K --format olmo -o masked m.tks
status "olmo: masks: --verify" 0 inspect --verify masked
same "olmo: masks: the stream's records" "$(inspect --records m.tks | sha)" "$(inspect --records masked | sha)"
printf '\2' | dd of=masked/documents/shard-0000001.label_mask bs=1 seek=30 conv=notrunc 2>/dev/null
status "olmo: a byte of the masks changed" 1 inspect --verify masked
inspect --records m.tks >masked.json
for f in ${formats#*olmo}; do
    rm -rf masked
    more='' w=2
    case $f in mds) more="--compress none" ;; parquet) w=4 ;; esac
    shuffle -q --documents --order keep --shard-size 40K $more --format $f -o masked m.tks
    check "$f: masks: every byte" documents $f masked masked.json $w bytes 40960
    status "$f: masks: --verify" 0 inspect --verify masked
    same "$f: masks: the stream's records" "$(sha <masked.json)" "$(inspect --records masked | sha)"
done

# ---- damage ----

damaged() {
    rm -rf bad
    cp -r "$1" bad
    printf '\377' | dd of="bad/documents/$2" bs=1 seek="$3" conv=notrunc 2>/dev/null
    status "$1: a byte of $2 changed" 1 inspect --verify bad
}
damaged megatron shard-0000000.bin 100001
damaged megatron shard-0000000.idx 40
damaged ds shard-0000000.ds.index 9
damaged olmo shard-0000000.csv.gz 100
damaged mds shard.00000.mds 9
damaged mds shard.00000.mds 700000
damaged litdata chunk-0-0.bin 9
damaged litdata chunk-0-0.bin 700001
rm -rf bad
cp -r megatron.keep bad
rm bad/documents/shard-0000002.idx
status "a file missing" 1 inspect bad
check "is named" grep -q 'shard-0000002.idx' err

# ---- going on after a stop ----

run() { shuffle -q "${order[@]}" --documents --shard-size 64K --format "$f" "$@" c.tks; }
for f in megatron olmo mds litdata; do
    shim fault >/dev/null || continue
    rm -rf full set
    run -o full
    good=$(sha_tree full)
    for at in name:2 name:7 write:30 ${MORE:+mkdir:2 sync:5 name:20 write:9 open:20}; do
        rm -rf set
        SHIM_AT=$at LD_PRELOAD=$SHIM/fault.so code run -T 1 -o set >/dev/null 2>&1
        same "$f: killed at $at" 137 "$ended"
        status "$f: the same again" 0 run -o set
        same "$f: the same set" "$good" "$(sha_tree set)"
    done
    rm -rf set
    SHIM_AT=name:10 LD_PRELOAD=$SHIM/fault.so code run -T 1 -o set >/dev/null 2>&1
    first=$(stat -c %i set/.partial/documents/*[-.0]1.*)
    status "$f: other arguments are refused" 1 shuffle -q "${order[@]}" --documents --shard-size 65K --format $f -o set c.tks
    status "$f: the same again" 0 run -o set
    same "$f: and a whole shard is the file it was" "$first" "$(stat -c %i set/documents/*[-.0]1.*)"
done

# ---- replaced and kept ----

f=megatron
run -o set --replace-set
status "a finished set is refused" 1 run -o set
mkdir -p other/documents
echo mine >other/documents/notes.txt
run -o other --replace-set
same "a foreign file in documents/ stays" mine "$(cat other/documents/notes.txt)"
decompose --min 16 --max 256 --tail drop c.tks -o pieces.tks
shuffle -q --format megatron --replace-set -o other pieces.tks
same "and when buckets replace the documents" "notes.txt" "$(ls other/documents)"

# ---- refused ----

no() {
    what=$1 say=$2
    shift 2
    rm -rf no
    code "$@" >out 2>err
    if { [ $ended = 1 ] || [ $ended = 2 ]; } && one_line err && grep -qE -- "$say" err; then ok "$what"; else
        head -n 3 err
        not_ok "$what"
    fi
    check "$what: nothing was made" test ! -e no
}
no "masks that would be lost" "format megatron cannot carry masks, .*; wds, olmo, mds, litdata, parquet and megatron-sft can" \
    shuffle --documents --format megatron -o no m.tks
no "pieces" "was decomposed or packed" shuffle --documents --format megatron -o no pieces.tks
no "a format without documents" "format wds cannot take whole documents; olmo, ds, megatron, mds, litdata and parquet can" \
    shuffle --documents --format wds -o no c.tks
no "documents without buckets name --documents" "write whole documents with --documents" shuffle --format megatron -o no c.tks
no "a document larger than a shard" "a document of [0-9]+ ids takes more than the 1000 bytes.*--shard-size" \
    shuffle --documents --shard-size 1000 --format megatron -o no c.tks
no "a file of more ids than olmo has" "can exceed the 4294967295 ids of a file.*--shard-size" \
    shuffle --documents --shard-size 8G --format olmo -o no c.tks
no "a shard of so many documents, in memory" "a number of documents does not limit its bytes.*--shard-size" \
    shuffle --documents --shard-sequences 100 --format mds -o no c.tks
no "a shard beyond 32 bits" "shards of 2147483648 bytes; at most 1073741824 bytes fit.*--shard-size" \
    shuffle --documents --shard-size 2G --format litdata -o no c.tks
no "a document of nearly a shard, with its 128 bytes" "a document of $longest ids takes more than the $((2 * longest + 127)) bytes" \
    shuffle --documents --shard-size $((2 * longest + 127)) --format litdata -o no c.tks
status "and the next size" 0 shuffle -q --documents --shard-size $((2 * longest + 128)) --format litdata -o next c.tks
no "too little memory" "builds shards in memory: a shard of 104857600 bytes of documents takes [0-9]+ MiB.*; use a smaller --shard-size, or give more memory with -M" \
    shuffle --documents --shard-size 100M -M 64M --format mds -o no c.tks
no "an array of segments' lengths" "a whole document is one run of ids" shuffle --documents --max-segments 4 --format mds -o no c.tks
no "without a format" "--documents and --shard-size need shards" shuffle --documents -o no c.tks
no "--tails" "leave --documents or them out" shuffle --documents --tails drop --format megatron -o no c.tks
no "both sizes" "cannot be combined" shuffle --documents --shard-size 1G --shard-sequences 5 --format megatron -o no c.tks
no "schedule" "whole documents, which have no bucket lengths" schedule megatron
