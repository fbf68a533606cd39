# shellcheck shell=bash disable=SC2154,SC2016,SC2034
# pack_related.sh - pack --order related: related documents share bins, and nothing else changes.
# tests/unit/test_related.c checks the chains.

have tokenize decompose pack inspect || return 0
# Documents of 40 topics with words of their own, in random order; half of them have names in folders.
"$PYTHON" -c '
import json, random
rng = random.Random(2312)
topics = [["w%dx%d" % (t, i) for i in range(15)] for t in range(40)]
common = ["the", "of", "and", "to", "in"]
for i in range(1500):
    t = rng.randrange(40)
    n = rng.randrange(20, 120)
    text = " ".join(rng.choice(common) if rng.random() < 0.3 else rng.choice(topics[t]) for _ in range(n))
    name = "repo/%d/f%d" % (t, i) if i % 2 else "doc%d" % i
    print(json.dumps({"text": text, "id": name, "topic": t, "domain": "ab"[t % 2]}))' >c.jsonl
tokenize -t bytes --id-field id --domain-field domain -o c.tks c.jsonl
pack --length 4096 --stats p.json -o p.tks c.tks
pack --length 4096 --order related --stats r.json -o r.tks c.tks
check "it verifies" inspect --verify r.tks
check "documents of a topic come together, every one once, domains apart, at hardly more bins" "$PYTHON" -c '
import collections, json, subprocess
topic, at = {}, 0
for line in open("c.jsonl", "rb"):
    topic[at] = json.loads(line)["topic"]
    at += len(line)
def look(name):
    got, together, pairs = collections.Counter(), 0, 0
    for line in subprocess.run(["inspect", "--records", name], stdout=subprocess.PIPE, check=True).stdout.splitlines():
        s = [x for x in json.loads(line)["segments"] if not x.get("padding")]
        assert len({x["domain"] for x in s}) == 1
        got.update((x["document"], x["offset"], x["length"]) for x in s)
        for i in range(len(s)):
            for j in range(i):
                pairs += 1
                together += topic[s[i]["document"]] == topic[s[j]["document"]]
    return got, together / pairs
(a, plan), (b, related) = look("p.tks"), look("r.tks")
assert a == b
p, r = json.load(open("p.json")), json.load(open("r.json"))
assert related > 0.6 > 0.2 > plan, (related, plan)
assert r["bins"] <= p["bins"] * 1.03 and r["related"] > 1200 and r["chains"] > 50, r
assert r["tokens"]["padding"] == r["bins"] * 4096 - sum(n for (_, _, n) in b.elements())'
for o in "-T 1" "-T 7" "-M 64M" "-M 1G" "--device cpu" "--seed 0"; do
    # shellcheck disable=SC2086 # words
    same "the same bytes with $o" "$(sha r.tks)" "$(pack --length 4096 --order related $o c.tks | sha)"
done
check "bins of several lengths" shell 'pack --order related --method multi --buckets 1Ki,4Ki c.tks | inspect --verify'
check "--mix-domains, --fill drop" shell 'pack --length 2Ki --order related --mix-domains --fill drop c.tks | inspect --verify'
check "long documents are cut" shell 'pack --length 256 --order related c.tks | inspect --verify'
check "behind decompose, label tokens" shell 'decompose --label-token --min 64 --max 256 c.tks | pack --order related | inspect --verify'
check "no vocabulary: ids instead of words" shell 'tokenize -t bytes --no-vocab c.jsonl | pack --length 4096 --order related | inspect --verify'
check "nothing waits" shell 'pack --order related p.tks | inspect --verify'
inspect --json r.tks >j.json
same "provenance" "--length=4096 --order=related" "$(json j.json 'd["provenance"][-1]["arguments"]')"

for o in "--method concat" "--plan" "--max-segments 2" "--save-plan x.plan" "--apply-plan x.plan"; do
    # shellcheck disable=SC2086 # words
    status "usage: --order related $o" 2 pack --length 4096 --order related -o x.tks $o c.tks
    check "  one line" one_line err
done
# 30 MB of tokens do not fit in half of 32M
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36; do cat c.jsonl; done >c36.jsonl
tokenize -t bytes -o c36.tks c36.jsonl
rm c36.jsonl
status "past the budget" 1 pack -M 32M --length 4096 --order related -o x.tks c36.tks
check "  one line that says what to do" shell 'grep -q -- "--order plan" err && [ $(wc -l <err) = 1 ]'
