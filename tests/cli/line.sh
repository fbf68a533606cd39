# shellcheck shell=bash disable=SC2154
# line.sh - the whole pipeline, and its counts: the equation of each report, each "in" equal to the "out" before, the
# checksum from pack through shuffle to the shards, inspect --verify, the independent reader.
# check-more: longer

have tokenize dedup decompose pack shuffle inspect || return 0
corpus corpus.jsonl "$(longer 800000 3000000)" 11
zstd -q corpus.jsonl -o corpus.jsonl.zst
mkdir stats

tokenize -t bytes --id-field id --domain-field domain --stats stats/1.json corpus.jsonl.zst 2>err.1 | tee 1.tks |
    dedup --exact --stats stats/2.json 2>err.2 | tee 2.tks |
    decompose --min 64 --max 1024 --label-token --stats stats/3.json 2>err.3 | tee 3.tks |
    pack --stats stats/4.json 2>err.4 | tee 4.tks |
    shuffle --seed 5 -o shards --format wds --shard-sequences 100 --last keep --stats stats/5.json 2>err.5
same "the pipe ends well" 0 $?
cat err.*

"$PYTHON" - stats/[1-5].json <<'PY'
import json, sys
reports = [json.load(open(p)) for p in sys.argv[1:]]
names = ["tokenize", "dedup", "decompose", "pack", "shuffle"]
last = None
for name, r in zip(names, reports):
    for what in ("tokens", "sequences", "documents"):
        d = r[what]
        left = d["in"] + d["created"] + d["repeated"] + d.get("padding", 0)
        right = d["out"] + sum(d["dropped"].values())
        good = left == right and all(k in d for k in ("in", "created", "repeated", "out", "dropped"))
        good = good and (what != "tokens" or "padding" in d)
        print("%s line: %s: the %s add up" % ("ok" if good else "not ok", name, what))
        if last is not None:
            good = last[what]["out"] == d["in"]
            print("%s line: %s: %s in are the last out" % ("ok" if good else "not ok", name, what))
    missing = [k for k in ("seconds", "peak_rss_bytes", "spill_bytes", "device") if k not in r]
    print("%s line: %s: the report has its keys %s" % ("not ok" if missing else "ok", name, missing))
    last = r
PY
same "documents in are the corpus's records" "$(grep -c . corpus.jsonl)" "$(json stats/1.json 'd["documents"]["in"]')"
check "exact duplicates were dropped" test "$(json stats/2.json 'sum(d["sequences"]["dropped"].values())')" -gt 0
check "EOS is created" test "$(json stats/1.json 'd["tokens"]["created"]')" -gt 0

for i in 1 2 3 4; do
    status "stream $i: inspect --verify" 0 inspect --verify $i.tks
    check "stream $i: the independent reader agrees" tokstream --check --cuts --need-all $i.tks
    tokstream --summary $i.tks >sum.json
    inspect --json $i.tks >insp.json
    for key in documents sequences segments tokens vocab_size eos_id checksum; do
        same "stream $i: inspect --json $key" "$(json sum.json "d['$key']")" "$(json insp.json "d['$key']")"
    done
    inspect --records $i.tks | sha >a
    tokstream $i.tks | "$PYTHON" "$top/tests/cli/canonical.py" | sha >b
    inspect --records $i.tks | "$PYTHON" "$top/tests/cli/canonical.py" | sha >a
    same "stream $i: inspect --records and the independent reader agree" "$(cat b)" "$(cat a)"
done
same "a stream's out is in its own header's count" "$(json stats/4.json 'd["tokens"]["out"]')" \
    "$(inspect --json 4.tks >j && json j 'd["tokens"]')"

status "shards: inspect --verify" 0 inspect --verify shards
inspect --json 4.tks >before.json
inspect --json shards >after.json
for key in checksum tokens sequences documents segments; do
    same "$key is the same before shuffle and in the shards" "$(json before.json "d['$key']")" "$(json after.json "d['$key']")"
done
same "shard set's format" wds "$(json after.json 'd["format"]')"
shuffle --seed 5 4.tks >5.tks
inspect --json 5.tks >shuffled.json
same "checksum is the same in the shuffled stream" "$(json before.json 'd["checksum"]')" "$(json shuffled.json 'd["checksum"]')"
check "shuffle moves something" test "$(sha 4.tks)" != "$(sha 5.tks)"
inspect --records 4.tks | sort | sha >a
inspect --records 5.tks | sort | sha >b
same "shuffle keeps the records" "$(cat a)" "$(cat b)"

# Shards without the library: every D_i holds 2^i + 1 ids a sequence, manifests count them.
"$PYTHON" - shards <<'PY'
import glob, json, os, sys, tarfile
total = 0
for d in sorted(glob.glob(os.path.join(sys.argv[1], "D_*"))):
    i = int(os.path.basename(d)[2:])
    raw = open(os.path.join(d, "manifest.jsonl")).read()
    good, n_seq = raw.endswith("\n"), 0
    rows = [json.loads(x) for x in raw.splitlines()]
    names = sorted(x for x in os.listdir(d) if x.endswith(".tar"))
    good = good and names == ["shard-%07d.tar" % k for k in range(len(names))]
    good = good and names == [r["shard"] + ".tar" for r in rows]
    for row in rows:
        with tarfile.open(os.path.join(d, row["shard"] + ".tar")) as t:
            members = t.getmembers()
            good = good and [m.name for m in members] == ["%012d.txt" % k for k in range(row["num_sequences"])]
            for m in members:
                ids = json.loads(t.extractfile(m).read())
                good = good and len(ids) == 2**i + 1 and (m.mtime, m.uid, m.gid) == (0, 0, 0)
            n_seq += len(members)
    total += n_seq
    print("%s line: D_%d: %d sequences of 2^%d+1 ids, as the manifest says" % ("ok" if good and n_seq else "not ok", i, n_seq, i))
after = json.load(open("after.json"))
print("%s line: all sequences are in the shards" % ("ok" if total == after["sequences"] else "not ok"))
PY
have schedule || return 0
status "schedule reads the shard set" 0 schedule --trainer openlm shards

[ -n "$MORE" ] || return 0
# Records' ids may have 65535 bytes: frames are cut by them too, and batches hold few of them.
"$PYTHON" - <<'PY'
import json
with open("ids.jsonl", "w", encoding="utf-8") as f:
    for i in range(700):
        f.write(json.dumps({"text": chr(97 + i % 26), "id": "%05d" % i + "y" * 60000}) + "\n")
PY
status "documents with long ids" 0 tokenize -t bytes --id-field id ids.jsonl -o ids.tks
status "packed into one sequence" 0 pack --length 2048 ids.tks -o ids1.tks
status "shuffled" 0 shuffle -M 32M --stats s.json ids.tks -o ids2.tks
[ -n "${SAN:-}" ] || check "in little memory" test "$(json s.json 'd["peak_rss_bytes"]')" -le $((96 << 20))
for i in ids ids1 ids2; do
    check "$i: the independent reader agrees" tokstream --check --cuts --need-all $i.tks
done
same "no id is lost" "$(inspect --records ids.tks | sort | sha)" "$(inspect --records ids2.tks | sort | sha)"
rm -f ids*
