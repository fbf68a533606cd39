# shellcheck shell=bash disable=SC2154
# tokenize_choose.sh - the documents that are chosen: by --holdout and --sample by their text, by --max-tokens by their
# order; the same for any -T, -M, parts, files and tokenizer; the account; text and tokens by domain in the report.
# check-more: whole

have tokenize inspect || return 0
corpus c.jsonl 1500000 21
cat >look.py <<'PY'
"""look.py WHAT ARGUMENTS...: see each."""
import json, sys
what, args = sys.argv[1], sys.argv[2:]
texts = lambda f: [json.loads(l)["text"] for l in open(f)]
if what == "copies": # every text three times, in two files and orders, with other ids: c.jsonl -> p/a.jsonl p/b.jsonl
    rows = [t for t in texts("c.jsonl") if t]
    with open("p/a.jsonl", "w") as a, open("p/b.jsonl", "w") as b:
        for i, t in enumerate(rows):
            print(json.dumps({"text": t, "id": "a%d" % i}), file=a)
        for i, t in enumerate(rows[::-1] + rows):
            print(json.dumps({"n": 1, "id": "b%d" % i, "text": t}), file=b)
elif what == "apart": # two --jsonl outputs have no text in common
    m, h = set(texts(args[0])), set(texts(args[1]))
    assert m and h and not m & h, (len(m), len(h), len(m & h))
elif what == "sets":
    print(sorted({hash(t) for t in texts(args[0])}) == sorted({hash(t) for t in texts(args[1])}))
elif what == "within": # the texts of the first are among those of the second, and fewer
    m, h = set(texts(args[0])), set(texts(args[1]))
    assert m < h, (len(m), len(h), len(m - h))
elif what == "prefix": # ALL GOT N: the first whole documents of --records with at most N tokens
    n, have, want = int(args[2]), 0, []
    for l in open(args[0]):
        have += len(json.loads(l)["tokens"])
        if have > n:
            break
        want.append(l)
    got = open(args[1]).readlines()
    assert got == want, (len(got), len(want))
elif what == "books":
    d = json.load(open(args[0]))
    for row in ("tokens", "sequences", "documents"):
        r = d[row]
        assert r["in"] + r["created"] == r["out"] + sum(r["dropped"].values()), (row, r)
    assert sum(x["documents"] for x in d["domains"]) == d["documents"]["out"]
    assert sum(x["tokens"] for x in d["domains"]) == d["tokens"]["out"]
    held = d.get("holdout", {"documents": 0, "tokens": 0, "text_bytes": 0})
    assert held["documents"] == d["documents"]["dropped"].get("holdout", 0)
    assert held["tokens"] == d["tokens"]["dropped"].get("holdout", 0)
    assert sum(x.get("text_bytes", 0) for x in d["domains"]) + held["text_bytes"] == d["text_bytes"]
    for x in d["domains"]:
        assert abs(x["bytes_per_token"] - x["text_bytes"] / x["text_tokens"]) < 1e-4
PY
look() { "$PYTHON" look.py "$@"; }

# ---- copies of a text share their outcome
mkdir p
look copies
tokenize -t bytes --id-field id --seed 3 --holdout 20% --holdout-output h.tks --stats s.json -o m.tks p/a.jsonl p/b.jsonl
check "books" look books s.json
inspect --jsonl h.tks >h.jsonl
inspect --jsonl m.tks >m.jsonl
check "no text is on both sides" look apart m.jsonl h.jsonl
same "all copies of the held-out ones are held out" "$(inspect --jsonl h.tks | "$PYTHON" -c '
import collections, json, sys
n = collections.Counter(json.loads(l)["text"] for l in sys.stdin)
all = collections.Counter(json.loads(l)["text"] for f in ("p/a.jsonl", "p/b.jsonl") for l in open(f))
print(n == {t: all[t] for t in n})')" True
tokenize -t bytes --seed 3 --holdout 20% --holdout-output h2.tks -o /dev/null p/b.jsonl
inspect --jsonl h2.tks >h2.jsonl
same "another file, another order: the same texts" True "$(PYTHONHASHSEED=0 look sets h.jsonl h2.jsonl)"
tokenize --seed 3 --holdout 20% --holdout-output h2.tks -o /dev/null p/b.jsonl
inspect --jsonl h2.tks >h2.jsonl
same "another tokenizer: the same texts" True "$(PYTHONHASHSEED=0 look sets h.jsonl h2.jsonl)"
tokenize -t bytes --seed 4 --holdout 20% --holdout-output h2.tks -o /dev/null p/b.jsonl
inspect --jsonl h2.tks >h2.jsonl
same "another seed: others" False "$(PYTHONHASHSEED=0 look sets h.jsonl h2.jsonl)"

# ---- a share of nothing is a share
status "--holdout 0" 0 tokenize -t bytes --holdout 0 --holdout-output h0.tks --stats s.json -o m0.tks p/a.jsonl
same "  puts nothing aside" "0 0" "$(json s.json '"%d %d" % (d["holdout"]["documents"], d["documents"]["dropped"].get("holdout", 0))')"
status "  the stream exists, and is empty" 0 inspect --verify h0.tks
same "  all is in the other" "$(tokenize -t bytes p/a.jsonl | inspect --records | sha)" "$(inspect --records m0.tks | sha)"
status "--holdout 0 alone" 2 tokenize -t bytes --holdout 0 -o m0.tks p/a.jsonl
status "--holdout-output alone" 2 tokenize -t bytes --holdout-output h0.tks -o m0.tks p/a.jsonl

# ---- a text in parts chooses as one that is whole
"$PYTHON" -c '
import json, random
random.seed(2)
w = ["the", "of", "x1", "12345", "// a", "café", "文字", "。", "\n", "  "]
with open("whole.jsonl", "w") as f:
    for i in range(8):
        t = "".join(random.choice(w) + " " for _ in range(150000))
        open("t%d.txt" % i, "w", encoding="utf-8", newline="").write(t)
        print(json.dumps({"text": t}), file=f)'
for o in ${MORE:+"--holdout 0.5" "--sample 0.5"} "--sample 0.7 --holdout 0.3"; do
    case $o in *holdout*) h="--holdout-output h.tks" ;; *) h= ;; esac
    : >h.tks
    # shellcheck disable=SC2086 # options
    tokenize -q -M 1G $o $h --no-provenance --stats s.json -o m.tks whole.jsonl || not_ok "$o: whole"
    check "$o: books" look books s.json
    [ "$o" = "--sample 0.5" ] || check "$o: both sides have some" test -s h.tks
    tokens() { for x in m.tks h.tks; do [ ! -s $x ] || inspect --records $x | sed 's/.*"tokens"/"tokens"/' | sha; done; }
    want=$(tokens; json s.json '[d["tokens"], d["documents"], d["text_bytes"]]')
    for m in ${MORE:+"-T1 -M 32M" "-T2 -M 32M"} "-T5 -M 48M --on-error skip"; do
        # shellcheck disable=SC2086 # options
        tokenize -q $m $o $h --no-provenance --stats s.json -o m.tks t?.txt || not_ok "$o: $m"
        same "$o: in parts, $m" "$want" "$(tokens; json s.json '[d["tokens"], d["documents"], d["text_bytes"]]')"
    done
done

# ---- a sample
tokenize -t bytes --sample 10% -o a.tks --stats s.json c.jsonl
check "sample: books" look books s.json
tokenize -t bytes --sample 0.5 -o b.tks c.jsonl
inspect --jsonl a.tks >a.jsonl
inspect --jsonl b.tks >b.jsonl
check "a tenth is within the half" look within a.jsonl b.jsonl
for i in 0 1 2; do tokenize -t bytes --sample 0.5 --part $i/3 -o part$i.tks c.jsonl; done
same "parts sample the same" "$(inspect --records b.tks | sha)" "$(cat part0.tks part1.tks part2.tks | inspect --records | sha)"
tokenize -t bytes --sample 0.5 -T 7 -M 32M -o b7.tks c.jsonl
same "-T 7 too" "$(sha b.tks)" "$(sha b7.tks)"
tokenize -t bytes --sample 1 -o x.tks --no-provenance c.jsonl
tokenize -t bytes -o y.tks --no-provenance c.jsonl
same "--sample 1 is all" "$(sha x.tks)" "$(sha y.tks)"
tokenize -t bytes --sample 0 c.jsonl --stats s.json -o x.tks
same "--sample 0 is none" 0 "$(json s.json 'd["documents"]["out"]')"
tokenize -t bytes --sample 0.5 --holdout 0.5 --holdout-output h.tks -o m.tks c.jsonl
inspect --jsonl m.tks >m.jsonl
inspect --jsonl h.tks >h.jsonl
check "the draws of sample and holdout are two" look apart m.jsonl h.jsonl
same "held-out documents are from the sample" "$(inspect --records b.tks | sort | sha)" \
    "$({ inspect --records m.tks; inspect --records h.tks; } | sort | sha)"

# ---- --max-tokens
tokenize -t bytes -o all.tks --no-provenance c.jsonl
inspect --records all.tks >all.rec
n=$(inspect --json all.tks >j && json j 'd["tokens"]')
for most in 0 77777 $((n - 1)) "$n" ${MORE:+1 100 $((n / 2)) $((n + 1))}; do
    tokenize -q -t bytes --max-tokens $most --stats s.json -o x.tks c.jsonl || not_ok "--max-tokens $most"
    inspect --records x.tks >x.rec
    check "--max-tokens $most: the documents that fit" look prefix all.rec x.rec $most
    check "  books" look books s.json
    same "  says whether it ended early" "$([ $most -lt "$n" ] && echo true || echo false)" "$(json s.json '"ended_before" in d')"
    want=$(sha x.tks)
    for m in "-T1 -M 32M" "-T7 -M 64M"; do
        # shellcheck disable=SC2086 # options
        tokenize -q -t bytes $m --max-tokens $most -o x.tks c.jsonl || not_ok "--max-tokens $most $m"
        same "  the same with $m" "$want" "$(sha x.tks)"
    done
done
status "nothing fits" 0 tokenize -t bytes --max-tokens 1 -o x.tks c.jsonl
check "  which is said" grep -q 'the stream is empty' err
rm -f want
for m in "-T1 -M 32M" ${MORE:+"-T1 -M 1G" "-T2"} "-T7 -M 64M"; do
    # shellcheck disable=SC2086 # options
    tokenize -q -t bytes $m --max-tokens 300000 --sample 0.8 --holdout 0.2 --holdout-output h.tks --stats s.json -o m.tks c.jsonl
    { sha m.tks h.tks; json s.json '[d["tokens"], d["documents"], d["ended_before"], d["holdout"], d["domains"]]'; } >got
    [ -f want ] || cp got want
    check "with the others, $m" cmp want got
    check "  books" look books s.json
done
# Faults behind the end are none; those before it are, whatever was read ahead.
"$PYTHON" -c '
rows = open("c.jsonl").read().split("\n")
open("late.jsonl", "w").write("\n".join(rows[:40] + ["{bad"] + rows[40:]))'
first=$(head -n 30 all.rec | "$PYTHON" -c 'import json,sys; print(sum(len(json.loads(l)["tokens"]) for l in sys.stdin))')
for m in "-T1 -M 32M" "-T7 -M 1G"; do
    # shellcheck disable=SC2086 # options
    status "a fault behind the end, $m" 0 tokenize -q -t bytes $m --max-tokens "$first" -o x.tks late.jsonl
    # shellcheck disable=SC2086 # options
    status "a fault before it, $m" 1 tokenize -q -t bytes $m --max-tokens $((n - 1)) -o y.tks late.jsonl
    check "  by name" grep -q 'late.jsonl:41' err
    # shellcheck disable=SC2086 # options
    tokenize -q -t bytes $m --max-tokens "$first" --rejects r.jsonl --stats s.json -o x.tks late.jsonl
    same "rejects behind the end are none, $m" "0 0" "$(json s.json 'd["rejected"]') $(wc -l <r.jsonl)"
    # shellcheck disable=SC2086 # options
    tokenize -q -t bytes $m --max-tokens $((n - 1)) --rejects r.jsonl --stats s.json -o x.tks late.jsonl
    same "rejects before it are, $m" "1 1" "$(json s.json 'd["rejected"]') $(wc -l <r.jsonl)"
    check "  books" look books s.json
done
# A text in parts that does not fit, between small ones.
printf 'first' >a.txt
printf 'behind' >z.txt
rm -f want
for m in "-T1 -M 32M" "-T1 -M 1G" "-T5 -M 48M"; do
    # shellcheck disable=SC2086 # options
    tokenize -q -t bytes $m --max-tokens 400Ki --stats s.json -o x.tks a.txt t0.txt z.txt
    { sha x.tks; json s.json '[d["documents"], d["tokens"], d["ended_before"]]'; } >got
    [ -f want ] || cp got want
    check "a text in parts that does not fit, $m" cmp want got
done
check "  ends the stream" grep -q '"source": "t0.txt"' want
# It stops early: an endless input ends.
status "an endless input" 0 timeout 60 sh -c "yes '{\"text\": \"abc\"}' | tokenize -q -t bytes --max-tokens 10000 -o x.tks"
same "  2500 documents" 2500 "$(inspect --json x.tks >j && json j 'd["documents"]')"
status "--max-tokens of a part" 2 tokenize -t bytes --max-tokens 10 --part 0/2 -o x.tks c.jsonl
check "  says what to do" grep -q 'use --sample' err
status "--sample 2" 2 tokenize -t bytes --sample 2 -o x.tks c.jsonl

# ---- many domains: the largest by name, the others as one
"$PYTHON" -c '
import json
for i in range(1500):
    print(json.dumps({"text": "x" * (1500 - i), "d": "d%04d" % i}))
print(json.dumps({"text": "none", "d": ""}))' >d.jsonl
tokenize -t bytes --domain-field d -T 3 --stats s.json -o x.tks d.jsonl
check "many domains: books" look books s.json
same "  the largest first, the others in a row" '[1001, "d0000", "d0999", 501]' \
    "$(json s.json '[len(d["domains"]), d["domains"][0]["domain"], d["domains"][999]["domain"], d["domains"][1000]["others"]]')"
same "bytes a token of bytes" 1 "$(json s.json 'd["bytes_per_token"]')"
rm -f ./*.tks ./*.rec ./*.jsonl ./*.txt
