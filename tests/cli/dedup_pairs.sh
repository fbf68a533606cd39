# shellcheck shell=bash disable=SC2154
# dedup_pairs.sh - --pairs names the records' own ids, wherever their documents are in the stream.
# check-more: whole

have tokenize dedup inspect || return 0

"$PYTHON" -c 'import json, random
r = random.Random(4)
texts = [" ".join(r.choice("one two three four five six seven eight nine ten".split()) + str(r.randrange(300)) for _ in range(r.randrange(30, 120)))
         for _ in range(400)]
for i in range(3000):
    t = r.choice(texts)
    if i % 3 == 0:
        w = t.split()
        w[r.randrange(len(w))] = "x%d" % i
        t = " ".join(w) + " y" * r.randrange(3)
    d = {"text": t, "id": r.choice([i, "é%d" % i, "doc-%d" % i])}
    if i % 7 == 0:
        d["id"] = "" # none
    print(json.dumps(d))' >c.jsonl
head -c 300000 c.jsonl | sed '$d' >a.jsonl
tail -n +"$(($(wc -l <a.jsonl) + 1))" c.jsonl >b.jsonl
tokenize -t bytes --id-field id -o ids.tks a.jsonl b.jsonl
mkdir n
for f in a b; do sed "s/, \"id\": [^}]*//" $f.jsonl >n/$f.jsonl; done
tokenize -t bytes -o none.tks n/a.jsonl n/b.jsonl
inspect --records ids.tks >records
cat >look.py <<'E2'
import json, sys
have = {}
for line in open("records"):
    for s in json.loads(line)["segments"]:
        have[s["source_number"], s["document"]] = s.get("id")
n = 0
for line in open(sys.argv[1]):
    pair = json.loads(line)
    places = [pair["dropped"], pair["kept"]] if "kept" in pair else [pair, pair["first"]]
    for p in places:
        want = have[p["source_number"], p["document"]]
        assert p.get("id") == want, (p, want)
        n += want is not None
print(n > 100)
E2
for mode in "--exact" "--near --threshold 0.5" "--near --threshold 0.5 --keep longest" "--substring 60" "--substring 60 --annotate"; do
    # shellcheck disable=SC2086 # words
    {
        dedup $mode --pairs p.jsonl -o d.tks ids.tks
        dedup $mode --pairs q.jsonl -T 3 -M 64M -o e.tks ids.tks
        dedup $mode --pairs r.jsonl -o f.tks none.tks
        dedup $mode -o g.tks ids.tks
    } 2>err || cat err
    same "$mode: each place has its id" True "$("$PYTHON" look.py p.jsonl)"
    same "$mode: -T 3 -M 64M" "$(sha p.jsonl d.tks)" "$(sha q.jsonl e.tks)"
    check "$mode: no ids, none written" shell 'test -s r.jsonl && ! grep -q "\"id\"" r.jsonl'
    same "$mode: as many pairs" "$(wc -l <p.jsonl)" "$(wc -l <r.jsonl)"
done
