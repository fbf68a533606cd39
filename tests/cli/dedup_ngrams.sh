# shellcheck shell=bash disable=SC2154
# dedup_ngrams.sh - repeated n-grams: the same bytes for any -T and -M, from files and from a pipe; the filter has the
# rate that was asked for, or a message states the memory that it needs. tests/props/check_ngrams.py checks which text
# is dropped.
# check-more: whole

have tokenize dedup inspect || return 0

# Documents of numbered words in lines; a third of the lines and an eighth of the documents come again.
"$PYTHON" - <<'PY'
import json, random
random.seed(7)
words = ["w%d" % i for i in range(5000)]
pool, docs = [], []
for part in "ab":
    with open(part + ".jsonl", "w") as f:
        for i in range(2500):
            if docs and random.random() < 0.125:
                text = random.choice(docs)
            else:
                lines = []
                for _ in range(random.randrange(1, 12)):
                    if pool and random.random() < 0.33:
                        lines.append(random.choice(pool))
                    else:
                        lines.append(" ".join(random.choice(words) for _ in range(random.randrange(3, 40))))
                        pool.append(lines[-1])
                text = "\n".join(lines)
                docs.append(text)
            # the domains come in another order in the second file
            domain = random.choice(["books", "code", "web"] if part == "a" else ["web", "news", "books"])
            f.write(json.dumps({"text": text, "id": "%s%d" % (part, i), "domain": domain}) + "\n")
PY
tokenize --domain-field domain --id-field id -o a.tks a.jsonl
tokenize --domain-field domain --id-field id -o b.tks b.jsonl
for by in both paragraph document; do
    dedup --ngrams=$by -T 1 -M 1G --stats s.json --report want.jsonl -o want.tks a.tks b.tks
    want=$(sha want.tks want.jsonl)
    for t in 2 7; do
        dedup --ngrams=$by -T $t -M 32M --report got.jsonl -o got.tks a.tks b.tks
        same "$by: -T $t -M 32M" "$want" "$(sha got.tks got.jsonl)"
    done
    # shellcheck disable=SC2002 # a pipe it must be
    cat a.tks b.tks | dedup --ngrams=$by -T 3 -M 48M --tmpdir . --stats pipe.json --report got.jsonl >got.tks
    same "$by: from a pipe" "$want" "$(sha got.tks got.jsonl)"
    check "$by: which had to wait in a file" test "$(json pipe.json 'd["spill_bytes"]')" -gt 1000000
    same "$by: files do not" 0 "$(json s.json 'd["spill_bytes"]')"
    dedup --ngrams=$by a.tks - <b.tks >got.tks
    same "$by: one of each" "$(sha want.tks)" "$(sha got.tks)"
    check "$by: the filter is as good as was asked for" \
        test "$(json s.json '0.008 < d["filter_fp_rate"] <= 0.01 and 0.5 < d["filter_fill"] < 0.56')" = true
    check "$by: the estimate" \
        test "$(json s.json '0 < d["filter_bytes"] * 8 / 10.1 / d["distinct_ngrams_estimate"] - 1 < 0.03')" = true
    check "$by: something was dropped" test "$(json s.json 'sum(d["tokens"]["dropped"].values())')" -gt 100000
    same "$by: the sums of the report" \
        "$("$PYTHON" -c 'import json
n = {"document": 0, "paragraph": 0}
for line in open("want.jsonl"):
    r = json.loads(line)
    n[r["what"]] += r["tokens"]
    assert r["ngrams"] == 0 or r["seen"] >= 0.8 * r["ngrams"]
print(n["document"], n["paragraph"])')" \
        "$(json s.json '"%d %d" % tuple(d["tokens"]["dropped"].get("repeated-" + k, 0) for k in ("document", "paragraph"))')"
done
# Kept documents keep their ids, domains and sources. The second tokenization gives the expected names alone.
inspect --records want.tks >out.jsonl
cat a.jsonl b.jsonl >all.jsonl
same "records keep their ids and domains" ok "$("$PYTHON" -c 'import json
domain = {r["id"]: r["domain"] for r in map(json.loads, open("all.jsonl"))}
n = 0
for line in open("out.jsonl"):
    for g in json.loads(line)["segments"]:
        assert domain[g["id"]] == g["domain"], g
        n += 1
print("ok" if n > 3000 else n)')"
dedup --ngrams --min-words 1 -o once.tks a.tks
dedup --ngrams --min-words 1 --stats s.json -o twice.tks a.tks a.tks
same "a stream twice is the stream once" "$(inspect --json once.tks >j && json j 'd["checksum"]')" \
    "$(inspect --json twice.tks >j && json j 'd["checksum"]')"
check "the provenance has the options" shell \
    'dedup --ngrams --overlap 0.9 a.tks | inspect --json - | grep -c -- "--ngrams=both --overlap=0.9"'
dedup --ngrams --fp-rate 0.0001 --stats t.json a.tks >/dev/null
check "a lower rate, a larger filter" \
    test "$(json t.json 'd["filter_fp_rate"] <= 0.0001 and d["filter_bytes"] * 8 / d["distinct_ngrams_estimate"] > 23')" = true
dedup --ngrams --unit token --stats t.json a.tks >/dev/null
check "tokens as words" test "$(json t.json 'd["ngrams"]')" -gt "$(json s.json 'd["ngrams"] // 2')"

# 4 million different n-grams at 10^-6 are 26 MB of filter: -M 32M leaves 24M.
"$PYTHON" -c 'import random
random.seed(1)
for i in range(40):
    print("{\"text\":\"%s\"}" % "".join(chr(97 + random.randrange(26)) for _ in range(100000)))' >long.jsonl
tokenize -t bytes -o long.tks long.jsonl
set -- --ngrams=document --unit token --ngram 13 --fp-rate 0.000001 long.tks
status "a filter that -M does not hold" 1 dedup "$@" -M 32M -o x.tks
check "is one line" one_line "$TMP/err"
check "with what it takes and what to do" grep -qE 'filter of 2[0-9]M, and -M 32M leaves 24M.*give -M [0-9]+M' "$TMP/err"
check "and no output" test ! -e x.tks
more=$(sed 's/.*give -M \([0-9]*M\).*/\1/' "$TMP/err")
status "the -M that it names is enough" 0 dedup "$@" -M "$more" --stats s.json -o x.tks
[ -n "${SAN:-}" ] || check "peak memory within -M + 64M" \
    test "$(json s.json 'd["peak_rss_bytes"]')" -le $(((${more%M} + 64) << 20))
rm -f x.tks

tokenize --no-vocab -o bare.tks a.jsonl
status "paragraphs need a vocabulary" 1 dedup --ngrams bare.tks -o x.tks
check "the line says so" grep -q "vocabulary" "$TMP/err"
status "and so do words" 1 dedup --ngrams=document bare.tks -o x.tks
status "tokens of documents do not" 0 dedup --ngrams=document --unit token bare.tks -o bare.out
status "--overlap 0" 2 dedup --ngrams --overlap 0 a.tks -o x.tks
status "--overlap 1.1" 2 dedup --ngrams --overlap 1.1 a.tks -o x.tks
status "--overlap 0.8x" 2 dedup --ngrams --overlap 0.8x a.tks -o x.tks
status "--fp-rate 0" 2 dedup --ngrams --fp-rate 0 a.tks -o x.tks
status "--ngram 1025" 2 dedup --ngrams --ngram 1025 a.tks -o x.tks
status "--ngrams=word" 2 dedup --ngrams=word a.tks -o x.tks
status "two passes at once" 2 dedup --ngrams --exact a.tks -o x.tks
status "options of another pass" 2 dedup --overlap 0.5 a.tks -o x.tks
status "--pairs: refused, as there are no pairs" 2 dedup --ngrams --pairs p a.tks -o x.tks
status "--part: order is global" 2 dedup --ngrams --part 0/2 a.tks -o x.tks
status "--report to a full disk" 1 dedup --ngrams --report /dev/full a.tks -o x.tks
status "a spill folder that does not exist" 1 dedup --ngrams --tmpdir no/such a.tks -o x.tks
check "and it is named" grep -q no/such "$TMP/err"
head -c 1000000 a.tks >cut.tks
status "a stream that is cut off" 1 dedup --ngrams cut.tks -o x.tks
# shellcheck disable=SC2016 # expanded by the inner shell
check "and in a pipe" shell '! dedup --ngrams -o x.tks <cut.tks 2>err && test "$(wc -l <err)" = 1'
check "none of these left an output" test ! -e x.tks
printf '' | tokenize --on-error skip -q -o empty.tks
status "an empty stream" 0 dedup --ngrams --stats s.json empty.tks -o e.tks
same "is empty still" 0 "$(json s.json 'd["tokens"]["out"]')"
