# shellcheck shell=bash disable=SC2154
# shards_verify.sh - inspect --verify checks every byte of a set by its manifests; members of WebDataset archives.

have tokenize decompose pack shuffle inspect schedule || return 0

corpus c.jsonl 300000 7
tokenize -t bytes c.jsonl | decompose --min 64 --max 512 --label-token | pack -o in.tks
shuffle -q --format wds --shard-sequences 16 -o txt in.tks
status "a set verifies" 0 inspect --verify txt
"$PYTHON" - <<'PY' || not_ok "manifest.jsonl lists every file"
import json, os
rows = [json.loads(l) for l in open("txt/manifest.jsonl")]
files = sorted(os.path.relpath(os.path.join(d, f), "txt") for d, _, fs in os.walk("txt") for f in fs)
assert sorted(r["file"] for r in rows) == [f for f in files if f not in ("manifest.jsonl", "report.json")], files
assert all(r["bytes"] == os.path.getsize("txt/" + r["file"]) for r in rows)
report = json.load(open("txt/report.json"))
shards = [r for r in rows if "shard" in r]
assert sum(r["sequences"] for r in shards) == report["sequences"] and sum(r["tokens"] for r in shards) == report["tokens"]
PY

# Each kind of file in turn: one byte flipped, one byte less, gone, a FIFO without a writer.
for f in D_6/shard-0000001.tar D_6/manifest.jsonl segments/D_6.tks manifest.jsonl README.md lengths.svg report.json; do
    "$PYTHON" - "$f" <<'PY'
import os, shutil, sys
name = sys.argv[1]
for kind in ("flipped", "short", "gone", "fifo"):
    shutil.rmtree(kind, ignore_errors=True)
    shutil.copytree("txt", kind)
    p = kind + "/" + name
    b = bytearray(open(p, "rb").read())
    b[len(b) * 2 // 3] ^= 1
    if kind in ("gone", "fifo"):
        os.unlink(p)
        if kind == "fifo":
            os.mkfifo(p)
    else:
        open(p, "wb").write(b if kind == "flipped" else b[:-1])
PY
    for kind in flipped short gone fifo; do
        status "$f $kind" 1 timeout 20 inspect --verify $kind
        check "$f $kind: one line" one_line "$TMP/err"
        check "$f $kind: that names the file" grep -q "$f\|incomplete" "$TMP/err"
    done
done

cp -r txt stray
cp stray/D_6/shard-0000000.tar stray/D_6/shard-0000099.tar
status "a shard that no manifest names" 1 inspect --verify stray
check "is named" grep -q "D_6/shard-0000099.tar" "$TMP/err"

# report.json has no hash elsewhere: every byte of it counts all the same.
cp -r txt reported
sed -i '/"program"/s/shuffle/shuffel/' reported/report.json
status "a changed report that is still valid JSON" 1 inspect --verify reported
check "is said" grep -q "reported/report.json: was changed" "$TMP/err"
"$PYTHON" - <<'PY' || not_ok "report.json: its last member is XXH3-64 of what is before, unless there is no xxhash to tell"
import json, re
b = open("txt/report.json", "rb").read()
i = b.rindex(b',\n  "xxh3_64": "')
assert list(json.loads(b))[-1] == "xxh3_64" and re.fullmatch(rb',\n  "xxh3_64": "[0-9a-f]{16}"\n}\n', b[i:])
try:
    import xxhash
    assert xxhash.xxh3_64_hexdigest(b[:i]) == json.loads(b)["xxh3_64"]
except ImportError:
    pass
PY

# Buckets that are none of the set's.
for name in D_99 L_100 D_5; do
    rm -rf stray
    cp -r txt stray
    mkdir stray/$name
    cp stray/D_6/shard-0000000.tar stray/$name
    status "a folder $name beside the set's" 1 inspect --verify stray
    check "is named" grep -q "stray/$name: is not one of the set's buckets" "$TMP/err"
done
rm -rf stray
cp -r txt stray
mkdir stray/D_new stray/notes
check "other folders are ignored" inspect --verify stray

# The same sequences in the other kinds of members.
for member in json json.gz; do
    shuffle -q --format wds --member $member --shard-sequences 16 -o $member in.tks
    check "$member: members' names" shell "tar tf $member/D_6/shard-0000001.tar | grep -cx '000000000003.$member'"
    status "$member verifies" 0 inspect --verify $member
    same "$member: the same records" "$(inspect --records txt | sha)" "$(inspect --records $member | sha)"
done
tar xf json/D_6/shard-0000000.tar 000000000002.json
tar xf txt/D_6/shard-0000000.tar 000000000002.txt
tar xf json.gz/D_6/shard-0000000.tar 000000000002.json.gz
check "the same text" cmp -s 000000000002.json 000000000002.txt
check "and compressed" shell 'gzip -dc 000000000002.json.gz | cmp -s - 000000000002.txt'
# A window whose text does not fit in the least memory is written in pieces, by two passes.
"$PYTHON" -c 'import json; print(json.dumps({"text": "a longer one; " * 75000, "spans": [[0, 400000]]}))' |
    tokenize -q -t bytes --spans-field spans | decompose -q --max 1048576 --tail drop --label-token -o long.tks
for member in txt json.gz; do
    for m in 32M 1G; do shuffle -q -M$m --format wds --member $member --no-provenance -o long-$m-$member long.tks; done
    check "a long $member, in pieces and at once" diff -r long-32M-$member long-1G-$member
done
check "it has its mask" shell 'test $(tar tf long-32M-txt/D_20/shard-0000000.tar | grep -c loss_mask) = 1'
status "--member is of wds alone" 2 shuffle -q --compress zstd --format wds -o x in.tks
status "--member without --format" 2 shuffle -q --member json -o x in.tks

# Ids of every number of digits, as Python writes them.
"$PYTHON" - <<'PY'
import struct
digits = [i for k in range(1, 10) for i in (10 ** (k - 1), 10 ** (k - 1) + 1, 10 ** k - 1, 5 * 10 ** (k - 1) + 40)]
ids = [digits[(7 * i) % len(digits)] for i in range(64)] + [0]
open("digits.npy", "wb").write(struct.pack("<65I", *ids))
open("digits.txt", "w").write(str(ids[:64]))
PY
decompose -q --buckets 64 --tail drop --eos-id 0 --token-bytes 4 --vocab-size 1000000000 digits.npy -o digits.tks
shuffle -q --accept-mismatch --format wds -o digits digits.tks
tar xf digits/D_6/shard-0000000.tar 000000000000.txt
same "ids of one to nine digits" "$(cat digits.txt)" "$(cat 000000000000.txt)"

# A manifest of the set counts for schedule, as those of the buckets do.
schedule -q --batch-tokens 4096 --trainer generic --json a.json txt 2>/dev/null
schedule -q --batch-tokens 4096 --trainer generic --json b.json json.gz 2>/dev/null
for f in a b; do
    check "the schedule of $f names its set" grep -q '"set_xxh3_64": "[0-9a-f]\{16\}"' $f.json
    sed -i 's/"set_xxh3_64": "[0-9a-f]*", //' $f.json
done
same "schedule counts any of them alike" "$(sha a.json)" "$(sha b.json)"

# A report that says a length of which no number of ids can be had.
shuffle -q --format ds --shard-sequences 16 -o long in.tks
n=18446744073709551615
mv long/D_6 long/L_$n
mv long/segments/D_6.tks long/segments/L_$n.tks
sed -i "s|D_6|L_$n|" long/manifest.jsonl
sed -i "s|\"length\": 64,|\"length\": $n,|" long/report.json
check "a report of a length that cannot be" grep -q "\"length\": $n" long/report.json
status "is refused" 1 inspect long
check "and it is said" grep -q "report.json: a bucket without a sound length" "$TMP/err"
