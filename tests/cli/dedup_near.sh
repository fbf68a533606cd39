# shellcheck shell=bash disable=SC2154
# dedup_near.sh - near duplicates: the same bytes and pairs for any -T and -M; planted copies are found; the account, the
# audit, and refused options. tests/props/check_near.py has the oracle.
# check-more: whole

have tokenize dedup decompose inspect || return 0

# 3000 texts of 40 to 400 words; of every tenth follow: a copy in capitals, one with a word changed in 120 (similar),
# and one with every twentieth word changed (not: 0.6).
"$PYTHON" - <<'PY'
import json, random
random.seed(16)
words = ["w%d" % i for i in range(5000)]
def change(t, every):
    return [w if i % every else "other%d" % i for i, w in enumerate(t)]
with open("c.jsonl", "w") as f:
    def put(kind, n, text):
        f.write(json.dumps({"id": "%s-%d" % (kind, n), "text": " ".join(text)}) + "\n")
    for n in range(3000):
        t = random.choices(words, k=random.randrange(40, 400))
        put("base", n, t)
        if n % 10 == 0:
            put("upper", n, [w.upper() for w in t])
            put("near", n, change(t, 120))
            put("far", n, change(t, 20))
    f.write('{"id":"empty","text":" "}\n{"id":"empty","text":"\\n"}\n{"id":"short","text":"a b"}\n'
            '{"id":"short-2","text":" A  b"}\n{"id":"short-3","text":"a b c"}\n')
PY
tokenize -t builtin --id-field id -o c.tks c.jsonl
dedup --near -T 1 -M 1G --pairs want.jsonl --stats s.json -o want.tks c.tks
want=$(sha want.tks)
want_pairs=$(sha want.jsonl)
for t in ${MORE:+1 2} 7; do
    dedup --near -T $t -M 128M --pairs pairs.jsonl -o out.tks c.tks
    same "-T $t: the stream" "$want" "$(sha out.tks)"
    same "-T $t: the pairs" "$want_pairs" "$(sha pairs.jsonl)"
done
dedup --near -T 3 -o out.tks c.tks
same "without pairs: the stream" "$want" "$(sha out.tks)"
inspect --records c.tks >in.jsonl
inspect --records want.tks >out.jsonl
check "the planted copies are dropped, and no others" "$PYTHON" - <<'PY'
import json, sys
def ids(f):
    return [json.loads(l)["segments"][0]["id"] for l in open(f)]
into, out = ids("in.jsonl"), ids("out.jsonl")
gone = set(into) - set(out)
want = {"%s-%d" % (k, n) for k in ("upper", "near") for n in range(0, 3000, 10)} | {"short-2"}
print("  not dropped: %s; dropped wrongly: %s" % (sorted(want - gone)[:5], sorted(gone - want)[:5]))
assert gone - want == set() and len(want - gone) <= 3
assert out == [i for i in into if i not in gone]  # order, and both texts without words
at = {json.loads(l)["segments"][0]["document"]: json.loads(l)["segments"][0]["id"] for l in open("in.jsonl")}
pairs = [json.loads(l) for l in open("want.jsonl")]
assert [at[p["dropped"]["document"]] for p in pairs] == [i for i in into if i in gone]
for p in pairs:
    d, k = at[p["dropped"]["document"]], at[p["kept"]["document"]]
    assert k == ("short" if d == "short-2" else "base-" + d.split("-")[1]), (d, k)
    assert p["similarity"] == 1 if d[0] in "us" else 0.8 <= p["similarity"] < 1, p
s = json.load(open("s.json"))
assert s["sequences"]["dropped"] == {"near-duplicate": len(gone)} and s["twins"] == 301, s
assert s["kept"] == s["sequences"]["out"] and s["without_words"] == 2
assert s["tokens"]["in"] == s["tokens"]["out"] + s["tokens"]["dropped"]["near-duplicate"]
PY

if [ -n "$MORE" ]; then
    # Past memory: 120,000 short texts, some equal, some similar, some with ids and domains, take more than -M 64M has.
    "$PYTHON" - <<'PY'
import json, random
random.seed(17)
words = ["w%d" % i for i in range(3000)]
old = []
with open("many.jsonl", "w") as f:
    for n in range(120000):
        t = random.choices(words, k=random.randrange(6, 14))
        if n % 5 == 4:
            t = list(random.choice(old))
            if n % 2:
                t += ["more"]
        if len(old) < 20000:
            old.append(t)
        f.write(json.dumps({"id": str(n), "domain": "abc"[n % 3], "text": " ".join(t)}) + "\n")
PY
    tokenize -t builtin --id-field id --domain-field domain -o many.tks many.jsonl
    dedup --near -M 1G -T 1 --threshold 0.7 --pairs many-pairs.jsonl --stats s.json -o many-out.tks many.tks
    same "nothing is spilled with -M 1G" 0 "$(json s.json 'd["spill_bytes"]')"
    check "and much is dropped" test "$(json s.json 'd["sequences"]["dropped"]["near-duplicate"]')" -gt 20000
    many=$(sha many-out.tks)
    for t in 1 2 7; do
        m=$((56 + 8 * t))M
        dedup --near -M $m -T $t --threshold 0.7 --pairs pairs.jsonl --stats s.json -o out.tks many.tks
        check "-M $m -T $t spills" test "$(json s.json 'd["spill_bytes"]')" -gt 1000000
        same "-M $m -T $t: the stream" "$many" "$(sha out.tks)"
        same "-M $m -T $t: the pairs" "$(sha many-pairs.jsonl)" "$(sha pairs.jsonl)"
        [ -n "${SAN:-}" ] || check "-M $m -T $t: peak memory within 64 MiB more" \
            test "$(json s.json 'd["peak_rss_bytes"]')" -le $((120 + 8 * t << 20))
    done
    dedup --near -M 64M -T 3 --threshold 0.7 -o out.tks many.tks
    same "without pairs: the stream" "$many" "$(sha out.tks)"
    same "without verification, past memory: the stream" "$(mkdir t && dedup --near --no-verify -M 64M --tmpdir t many.tks | sha)" \
        "$(dedup --near --no-verify -M 1G many.tks | sha)"
    dedup --near --audit=100 -M 64M --stats s.json -o out.tks many.tks 2>err
    check "an audit beyond memory counts dropped documents" \
        test "$(json s.json 'sum(d["audit"]["dropped_by_similarity"]) == d["sequences"]["dropped"]["near-duplicate"] > 0')" = true
    check "ls of --tmpdir shows nothing left" test -z "$(ls -A t)"
fi

# --keep: another one of the similar ones stays; the output is in the order of the stream.
cat >k.jsonl <<'J'
{"id":"a","domain":"web","text":"one two three four five six seven eight nine ten eleven twelve thirteen"}
{"id":"b","domain":"books","text":"One two three four five six seven eight nine ten eleven twelve thirteen fourteen"}
{"id":"c","domain":"x","text":"something else that is of no other kind and only stands between"}
{"id":"d","domain":"code","text":"one two three four five six seven eight nine ten eleven twelve thirteen"}
{"id":"e","domain":"books","text":"two three four five six seven eight nine ten eleven twelve thirteen"}
J
tokenize --id-field id --domain-field domain -t builtin -o k.tks k.jsonl
kept() { dedup --near --bands 60 --rows 3 "$@" k.tks | inspect --records - | sed 's/.*"id":"\([a-z]\)".*/\1/' | tr -d '\n'; }
same "--keep first" ac "$(kept)"
same "--keep longest" bc "$(kept --keep longest)"
same "--keep domain-order, books first" bc "$(kept --keep domain-order --domains books,code)"
same "code first" cd "$(kept --keep domain-order --domains code,books)"
same "none named: stream order" ac "$(kept --keep domain-order --domains y)"
dedup --near --bands 60 --rows 3 --keep longest --pairs p.jsonl k.tks -o out.tks
same "a witness may come later" b "$("$PYTHON" -c 'import json
lines = [json.loads(l) for l in open("p.jsonl")]
ids, at = {}, 0
for l in open("k.jsonl", "rb"):
    ids[at] = json.loads(l)["id"]
    at += len(l)
assert [ids[p["dropped"]["document"]] for p in lines] == ["a", "d", "e"]
print("".join(sorted({ids[p["kept"]["document"]] for p in lines})))')"
if [ -n "$MORE" ]; then
    for k in longest domain-order; do
        d=$([ $k = longest ] || echo "--domains c,a")
        # shellcheck disable=SC2086 # two words or none
        {
            same "--keep $k: the stream is that of any -M" "$(dedup --near --threshold 0.7 --keep $k $d -M 64M -T 3 --pairs p1 many.tks | sha)" \
                "$(dedup --near --threshold 0.7 --keep $k $d -M 1G -T 1 --pairs p2 many.tks | sha)"
            check "and so are the pairs" cmp p1 p2
        }
    done
fi

# Options mean what they say.
count() { # of dropped sequences
    dedup --near --stats s.json "$@" -o out.tks c.tks 2>err
    json s.json 'd["sequences"]["dropped"].get("near-duplicate", 0)'
}
all=$(count)
check "--threshold 1: equal n-grams only" test "$(count --threshold 1)" = 301
check "--threshold 0.3 drops more" test "$(count --threshold 0.3 --bands 40 --rows 3)" -gt $((all + 200))
same "--threshold 80% is 0.8" "$want" "$(dedup --near --threshold 80% c.tks | sha)"
same "--threshold .800 is 0.8" "$want" "$(dedup --near --threshold .800 c.tks | sha)"
check "--no-verify drops no less" test "$(count --no-verify)" -ge "$all"
check "--no-verify with few rows drops dissimilar documents" test "$(count --no-verify --bands 50 --rows 1)" -gt $((all + 300))
check "--unit token: capitals are other tokens" test "$(count --unit token --ngram 13)" -le $((all - 250))
check "--ngram 1 finds more" test "$(count --ngram 1 --threshold 0.7)" -gt "$all"
check "--seed is the signatures' alone" test "$(count --seed 7)" -ge $((all - 5))
check "--band-cap 1 warns" shell 'dedup --near --rows 1 --band-cap 1 --stats s.json -o x.tks c.tks 2>err && grep -q "raise --band-cap" err'
check "and counts" test "$(json s.json 'd["capped_documents"]')" -gt 100
rm x.tks

# The audit.
dedup --near --no-verify --bands 50 --rows 1 --audit=400 --stats s.json -o out.tks c.tks 2>err
same "the audit has its sample" 400 "$(json s.json 'd["audit"]["sampled"]')"
check "and counts those dropped wrongly without verification" test "$(json s.json 'd["audit"]["below_threshold"]')" -gt 100
same "each dropped one is in a bin" "$(json s.json 'd["sequences"]["dropped"]["near-duplicate"]')" \
    "$(json s.json 'sum(d["audit"]["dropped_by_similarity"])')"
check "its lines are on standard error" grep -q '^dedup: audit: 400 documents sampled' err
dedup --near --audit --stats s.json -o out.tks c.tks 2>err
same "nothing is below the threshold with verification" 0 "$(json s.json 'd["audit"]["below_threshold"]')"
same "and the audit changes nothing" "$want" "$(sha out.tks)"
check "most similar pairs share a band" \
    test "$(json s.json '20 * d["audit"]["found"] >= 19 * d["audit"]["pairs"] > 0')" = true

# Again, in pieces, and from several streams.
same "nothing is left to drop" "$(dedup --near --no-provenance want.tks | dedup --near --no-provenance | sha)" \
    "$(dedup --near --no-provenance want.tks | sha)"
decompose --min 64 --max 64 --tail drop c.tks -o d.tks
dedup --near --stats s.json d.tks -o out.tks
check "pieces are sequences" test "$(json s.json 'd["sequences"]["dropped"]["near-duplicate"]')" -gt 300
dedup --near --stats s.json c.tks c.tks -o out.tks
same "of a stream read twice, only documents without words stay twice" 2 \
    "$(($(json s.json 'd["sequences"]["out"]') - $(inspect --json want.tks >j && json j 'd["sequences"]')))"
check "the provenance has the options that affect results" shell \
    'dedup --near --threshold 0.75 --bands 20 --seed 3 c.tks | inspect --json - >j && grep -q -e "--near --bands=20 --threshold=0.75" j'

# What is refused.
rm -f x.tks
tokenize -t builtin --no-vocab c.jsonl -o n.tks
status "words without a vocabulary" 1 dedup --near n.tks -o x.tks
check "one line that names --unit token" shell "grep -q -e '--unit token' '$TMP/err' && test \$(wc -l <'$TMP/err') = 1"
status "tokens need none" 0 dedup --near --unit token n.tks -o /dev/null
for bad in "--threshold 0" "--threshold 1.01" "--threshold 101%" "--threshold 0.0000000001" "--threshold x" "--threshold -1" \
    "--bands 0" "--rows 0" "--bands 20000" "--bands 2000 --rows 2 -M 256M" "--bands 1000 --rows 100" "--ngram 0" "--ngram 2000" "--band-cap 0" \
    "--unit letter" "-M 32M" "--exact" "--keep last" "--keep domain-order" "--domains a,b"; do
    # shellcheck disable=SC2086 # a list
    status "--near $bad" 2 dedup --near $bad c.tks -o x.tks
    check "in one line" test "$(wc -l <"$TMP/err")" = 1
done
for other in --keep=longest --domains=a --bands=3 --rows=3 --ngram=3 --threshold=0.9 --unit=token --no-verify --band-cap=9 --audit; do
    status "$other without --near" 2 dedup $other c.tks -o x.tks
done
check "the message names the mode of the option" grep -q -e '--audit needs --near' "$TMP/err"
"$PYTHON" -c 'print("{\"text\":\"%s\"}" % ("word " * 250000))' | tokenize -t bytes -o long.tks
status "a sequence too long for the budget" 1 dedup --near -M 64M long.tks -o x.tks
check "is named, with what to do" grep -q 'source 0, document 0: .* tokens is too long.*-M' "$TMP/err"
status "and passes with more" 0 dedup --near -M 128M long.tks -o /dev/null
status "--pairs to a full disk" 1 dedup --near --pairs /dev/full c.tks -o x.tks
check "none of these left an output" test ! -e x.tks

if [ -n "$MORE" ]; then
    # A sample of very many short documents keeps to the budget: what they take themselves counts.
    "$PYTHON" -c 'for i in range(60000): print("{\"text\":\"%d %d\"}" % (i, 7 * i))' | tokenize -t bytes -o short.tks
    dedup --near -M 64M --bands 40 --rows 1 --threshold 1 --no-verify --band-cap 1 --audit=60000 -T 1 --stats s.json -q short.tks >/dev/null
    check "--audit of short documents takes its quarter of -M" test "$(json s.json 'd["audit"]["sampled"]')" -lt 20000
fi

# Scripts without spaces: a character in a hundred is another, of Chinese four in 800; and Korean, which has spaces.
"$PYTHON" - <<'PY'
import json, random
draw = random.Random(9)
letters = {"ja": [chr(c) for c in [*range(0x3042, 0x3094), *range(0x30A2, 0x30F4), *range(0x4E00, 0x4E80)]],
           "zh": [chr(c) for c in range(0x4E00, 0x5600)], "th": [chr(c) for c in [*range(0xE01, 0xE2F), 0xE48, 0xE49]],
           "km": [chr(c) for c in [*range(0x1780, 0x17A3), 0x17B6, 0x17D2]]}
with open("scripts.jsonl", "w") as f:
    for name, some in letters.items():
        for i in range(40):
            text = draw.choices(some, k=800)
            copy = list(text)
            for at in draw.sample(range(800), 4 if name == "zh" else 8):
                copy[at] = draw.choice(some)
            f.write(json.dumps({"text": "".join(text)}) + "\n" + json.dumps({"text": "".join(copy)}) + "\n")
PY
tokenize -q -o scripts.tks scripts.jsonl
dedup --near --stats s.json -o out.tks scripts.tks
check "near copies of scripts without spaces go" test "$(json s.json 'd["sequences"]["dropped"]["near-duplicate"]')" -gt 155
dedup --near --unit char --ngram 10 --stats s.json -o out.tks scripts.tks
check "by characters too" test "$(json s.json 'd["sequences"]["dropped"]["near-duplicate"]')" -gt 120
