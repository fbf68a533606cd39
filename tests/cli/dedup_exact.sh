# shellcheck shell=bash disable=SC2154
# dedup_exact.sh - exact duplicates: the same bytes and pairs for any -T, and for -M with room for all hashes and
# without; an oracle without hashes; failures to write.
# check-more: whole

have tokenize dedup decompose inspect || return 0

# 700,000 short records, a quarter of which repeat: more than a table of -M 32M holds with places.
"$PYTHON" - <<'PY'
import random
random.seed(4)
with open("short.jsonl", "w") as f:
    for i in range(700000):
        f.write('{"text":"%d"}\n' % random.randrange(1200000))
PY
tokenize -t bytes -o short.tks short.jsonl
dedup -M 1G -T 1 --pairs want.jsonl --stats s.json -o want.tks short.tks
same "nothing is spilled with -M 1G" 0 "$(json s.json 'd["spill_bytes"]')"
want=$(sha want.tks)
want_pairs=$(sha want.jsonl)
for t in ${MORE:+1 2} 7; do
    dedup -M 32M -T $t --pairs pairs.jsonl --stats s.json -o out.tks short.tks
    check "-M 32M -T $t spills" test "$(json s.json 'd["spill_bytes"]')" -gt 0
    same "-M 32M -T $t: the stream" "$want" "$(sha out.tks)"
    same "-M 32M -T $t: the pairs" "$want_pairs" "$(sha pairs.jsonl)"
    [ -n "${SAN:-}" ] || check "-M 32M -T $t: peak memory within 96 MiB" \
        test "$(json s.json 'd["peak_rss_bytes"]')" -le $((96 << 20))
done
if [ -n "$MORE" ]; then
    dedup -M 48M -T 3 -o out.tks short.tks
    same "-M 48M, no pairs: the stream" "$want" "$(sha out.tks)"
fi
same "each dropped sequence has a pair" "$(wc -l <want.jsonl)" \
    "$(json s.json 'd["sequences"]["dropped"]["exact-duplicate"]')"
check "ls of --tmpdir shows nothing left" shell 'mkdir t && dedup -M 32M --tmpdir t -o out.tks short.tks && test -z "$(ls -A t)"'

# The oracle: a dictionary of the tokens themselves, on texts with ids and domains, whole and cut.
corpus c.jsonl 1500000 12
tokenize -t bytes --id-field id --domain-field domain -o c.tks c.jsonl
decompose --min 16 --max 64 c.tks -o d.tks
for f in c.tks d.tks; do
    dedup --exact --pairs pairs.jsonl -o out.tks $f
    inspect --records $f >in.jsonl
    inspect --records out.tks >out.jsonl
    "$PYTHON" - $f <<'PY'
import json, sys
first, kept, pairs = {}, [], []
keys = ("source", "source_number", "document", "offset", "id")
for line in open("in.jsonl"):
    r = json.loads(line)
    place = {k: r["segments"][0][k] for k in keys if k in r["segments"][0]}
    t = tuple(r["tokens"])
    if t in first:
        pairs.append({"dropped": place, "kept": first[t], "similarity": 1})
    else:
        first[t] = place
        kept.append(line)
good = kept == open("out.jsonl").readlines()
print("%s dedup_exact: %s: what stays is what comes first" % ("ok" if good else "not ok", sys.argv[1]))
good = pairs and pairs == [json.loads(x) for x in open("pairs.jsonl")]
print("%s dedup_exact: %s: pairs, in stream order" % ("ok" if good else "not ok", sys.argv[1]))
PY
    dedup out.tks >again.tks --no-provenance
    dedup again.tks >third.tks --no-provenance
    same "$f: nothing to drop the second time" "$(sha again.tks)" "$(sha third.tks)"
done
dedup --stats s.json -o twice.tks c.tks c.tks
same "a stream twice is the stream once" "$(dedup c.tks | inspect --json - | "$PYTHON" -c 'import json,sys; print(json.load(sys.stdin)["checksum"])')" \
    "$(inspect --json twice.tks >j && json j 'd["checksum"]')"

status "-M below the floor" 2 dedup -M 16M c.tks -o x.tks
status "--pairs to a full disk" 1 dedup --pairs /dev/full c.tks -o x.tks
status "a spill folder that does not exist" 1 dedup -M 32M --tmpdir no/such --pairs p short.tks -o x.tks
check "and it is named" grep -q no/such "$TMP/err"
check "none of these left an output" test ! -e x.tks
