# shellcheck shell=bash disable=SC2154
# dedup_index.sh - --save-index and --against of --exact and --near: sets that are compared by an index, or several, give
# the result of one run over all, within memory and beyond; unsuitable indexes are refused.
# check-more: whole

have tokenize dedup inspect sluice-batch || return 0
n=3000
[ -z "$FULL" ] || n=100000
"$PYTHON" - $n <<'PY'
import json, random, sys
rng, seen = random.Random(9), []
for name, n in (("a", int(sys.argv[1])), ("b", int(sys.argv[1]) * 2 // 3), ("c", int(sys.argv[1]) // 3)):
    with open(name + ".jsonl", "w") as f:
        for _ in range(n):
            if seen and rng.random() < 0.4:
                d = list(rng.choice(seen))
                for _ in range(rng.choice((0, 0, 1, 2))):
                    d[rng.randrange(len(d))] = "x%d" % rng.randrange(5000)
            else:
                d = ["w%d" % rng.randrange(2000) for _ in range(rng.randrange(1, 14))]
            seen.append(d)
            f.write(json.dumps({"text": " ".join(d) if rng.random() < 0.98 else "  "}) + "\n")
PY
tokenize -t bytes -o a.tks a.jsonl
tokenize -t bytes --source-base 1 -o b.tks b.jsonl
tokenize -t bytes --source-base 2 -o c.tks c.jsonl
near="--near --ngram 2 --bands 10 --rows 4 --threshold 0.75"
records() { inspect --records "$@" | grep -o '"tokens":.*'; }

for mode in --exact "$near" "${near/ngram 2/ngram 8} --unit token" "$near --keep longest"; do
    what=$(echo "$mode" | sed 's/--ngram.*0.75 *//')
    # shellcheck disable=SC2086
    {
        dedup $mode -o ab.tks a.tks b.tks
        dedup $mode --save-index a.idx -o a2.tks a.tks
        dedup $mode --save-index b.idx --against a.idx --pairs p.jsonl --stats s.json -o b2.tks b.tks
        dedup $mode -o a1.tks a.tks
        dedup $mode --against a.idx -T 1 -o b3.tks b.tks
        dedup $mode --pairs all.jsonl -o abc.tks a.tks b.tks c.tks
        dedup $mode --against a.idx --against b.idx --pairs p3.jsonl -o c2.tks c.tks
        dedup $mode --against a.idx --against=b.idx -T 1 -M 64M -o c3.tks c.tks
        dedup $mode --against b.idx --against a.idx -o c4.tks c.tks
    }
    same "$what: --save-index changes nothing" "$(sha a1.tks)" "$(sha a2.tks)"
    same "$what: -T 1, and without --save-index, the same" "$(sha b2.tks)" "$(sha b3.tks)"
    case $mode in *longest) ;; *)
        same "$what: one set against the other gives the result of one run over both" "$(inspect --records ab.tks | sha)" \
            "$(cat a2.tks b2.tks | inspect --records | sha)"
        same "$what: a third month against two indexes gives that of one run over three" \
            "$(inspect --records abc.tks | sha)" "$(cat a2.tks b2.tks c2.tks | inspect --records | sha)"
        same "  in another order too" "$(records c2.tks | sha)" "$(records c4.tks | sha)" ;;
    esac
    same "$what: two indexes, -T 1 -M 64M: the same" "$(sha c2.tks)" "$(sha c3.tks)"
    check "$what: the index drops many sequences" test "$(grep -c '"kept":{"index":' p.jsonl)" -gt $((n / 20))
    # Both parts of the index, one after the other, know all of it.
    # shellcheck disable=SC2086
    dedup $mode --against b.idx -o none.tks b2.tks
    same "$what: of its own sequences, an index keeps only empty texts" 0 \
        "$(inspect --records --text none.tks | awk '!/"text":"  *[^ ]*"/ { n++ } END { print n + 0 }')"
    "$PYTHON" - "$what" <<'PY'
import json, subprocess, sys
kept = [json.loads(x)["tokens"] for x in subprocess.run(["inspect", "--records", "a2.tks"], capture_output=True, check=True).stdout.splitlines()]
new = {}
for line in subprocess.run(["inspect", "--records", "b.tks"], capture_output=True, check=True).stdout.splitlines():
    r = json.loads(line)
    new[r["segments"][0]["document"]] = r["tokens"]
bad = n = 0
for line in open("p.jsonl"):
    p = json.loads(line)
    if "index" not in p["kept"]:
        continue
    n += 1
    a, b = (t[:-1] for t in (kept[p["kept"]["index"]], new[p["dropped"]["document"]]))
    words = [set(t if "token" in sys.argv[1] else bytes(t).split()) for t in (a, b)]
    bad += not words[0] & words[1] if p["similarity"] < 1 or "--exact" not in sys.argv[1] else a != b
print("%s dedup_index: %s: pairs name the index's documents by their place in its stream (%d)" % (
    "ok" if n and not bad else "not ok", sys.argv[1], n))

def place(at):
    return at["source_number"], at["document"]

def pairs(name):
    return [json.loads(line) for line in open(name)]

months = subprocess.run("cat a2.tks b2.tks | inspect --records", shell=True, capture_output=True, check=True).stdout.splitlines()
months = [place(json.loads(r)["segments"][0]) for r in months]
one = [(place(p["dropped"]), place(p["kept"])) for p in pairs("all.jsonl") if p["dropped"]["source_number"] == 2]
two = [(place(p["dropped"]), months[p["kept"]["index"]] if "index" in p["kept"] else place(p["kept"])) for p in pairs("p3.jsonl")]
from_both = {at[0] for _, at in two} >= {0, 1, 2}
print("%s dedup_index: %s: of two indexes the pairs name the document that one run names (%d)" % (
    "ok" if from_both and (one == two or "longest" in sys.argv[1]) else "not ok", sys.argv[1], len(two)))
PY
done
if [ -n "$FULL" ]; then
    # shellcheck disable=SC2086
    {
        dedup $near --save-index a.idx -o a2.tks a.tks
        dedup $near --against a.idx --pairs p.jsonl -o b2.tks -M 4G b.tks
        dedup $near --against a.idx --pairs q.jsonl -o b3.tks -M 64M --stats s.json b.tks
    }
    check "an index past memory spills" test "$(json s.json 'd["spill_bytes"]')" -gt 0
    same "and the stream is the same" "$(sha b2.tks)" "$(sha b3.tks)"
    same "and the pairs" "$(sha p.jsonl)" "$(sha q.jsonl)"
fi

# What is refused, in one line.
# shellcheck disable=SC2086
dedup $near --save-index a.idx -o a2.tks a.tks
no() {
    what=$1 say=$2
    shift 2
    status "$what" 1 dedup "$@" -o x.tks b.tks
    check "$what: in one line that says so" shell "grep -q -e '$say' '$TMP/err' && test \$(wc -l <'$TMP/err') = 1"
    check "$what: no output" test ! -e x.tks
}
# shellcheck disable=SC2086
{
    no "other bands" "bands=10, and this run has bands=9" $near --bands 9 --against a.idx
    no "another seed" "seed=0, and this run has seed=1" $near --seed 1 --against a.idx
    no "another mode" "dedup=near, and this run has dedup=exact" --exact --against a.idx
    no "no mode" "with an index of --near or --exact" --against a.idx
    no "an index that is not there" "gone.idx" $near --against gone.idx
    head -c 1000 a.idx >cut.idx
    no "a stream" "b.tks: not an index" $near --against b.tks
    no "an index that was cut" "cut.idx: truncated.*make the index again" $near --against cut.idx
    "$PYTHON" -c 'd=bytearray(open("a.idx","rb").read()); d[len(d)//2]^=4; open("bad.idx","wb").write(d)'
    no "a damaged index" "bad.idx: damaged; make .* again" $near --against bad.idx
    tokenize -t builtin -o d.tks b.jsonl
    status "words of another tokenizer are words" 0 dedup $near --against a.idx -o y.tks d.tks
    dedup $near --unit token --save-index t.idx -o a2.tks a.tks
    status "ids of another are not" 1 dedup $near --unit token --against t.idx -o x.tks d.tks
    check "and it says so" grep -q "another tokenizer" "$TMP/err"
    cp a.idx again.idx
    no "the same index twice" "again.idx: is the same index as a.idx; name each index once" $near --against a.idx --against again.idx
    dedup $near --bands 9 --save-index nine.idx -o a2.tks a.tks
    no "other bands in the second" "nine.idx: was made with bands=9, and this run has bands=10" $near --against a.idx --against nine.idx
    no "no mode with two" "a.idx: not an index of n-grams" --against a.idx --against nine.idx
    dedup --ngrams --save-index grams.idx -o a2.tks a.tks
    status "two indexes of n-grams" 2 dedup --against grams.idx --against grams.idx -o x.tks b.tks
    check "and it says so" grep -q "several passes; run them one after another" "$TMP/err"
    : >empty.jsonl
    tokenize -t bytes --on-error skip -o empty.tks empty.jsonl
    dedup $near --save-index none.idx -o x.tks empty.tks
    cp none.idx none2.idx
    rm x.tks
    status "months without documents are no mistake" 0 dedup $near --against none.idx --against a.idx --against none2.idx -o y.tks b.tks
    dedup $near --against a.idx -o z.tks b.tks
    same "  and change nothing" "$(records z.tks | sha)" "$(records y.tks | sha)"
    status "--save-index to a full disk" 1 dedup $near --save-index /dev/full -o x.tks b.tks
    status "--save-index in a folder that does not exist" 1 dedup $near --save-index no/such -o x.tks b.tks
    check "neither left an output" test ! -e x.tks
    status "--save-index and -o are two files" 2 dedup $near --save-index x.tks -o x.tks b.tks
}
dedup --near --against a.idx --ngram 2 --bands 10 --rows 4 --save-index b.idx -o y.tks b.tks
mv a.idx elsewhere.idx
dedup --near --against elsewhere.idx --ngram 2 --bands 10 --rows 4 -o z.tks b.tks
same "where the index lies does not matter" "$(sha y.tks)" "$(sha z.tks)"

# What a file was made from: each index, in order.
mode="--near --ngram 2 --bands 10 --rows 4 --manifest -o m.tks"
# shellcheck disable=SC2086
{
    dedup $mode --against elsewhere.idx --against b.idx c.tks
    dedup $mode --against elsewhere.idx --against b.idx --stats s.json c.tks
    same "--manifest: the same two indexes" true "$(json s.json 'd["skipped"]')"
    other() {
        status "--manifest: $1" 1 dedup $mode $3 c.tks
        check "  says so" grep -q "m.tks: was made $2; remove it or use -f" "$TMP/err"
    }
    other "another order" "with other contents of the file of --against" "--against b.idx --against elsewhere.idx"
    other "one fewer" "with more files of --against" "--against elsewhere.idx"
    other "one more" "with fewer files of --against" "--against elsewhere.idx --against b.idx --against none.idx"
    other "none" "with --against, now without" ""
}

# In parts, by a recipe.
cat >recipe <<'EOF'
input = c.jsonl
tokenizer = bytes
parts = 3
dedup = --near --ngram 2 --bands 10 --rows 4 --against elsewhere.idx --against b.idx --save-index parts.idx
keep = needed
EOF
dedup --near --against elsewhere.idx --against b.idx --save-index one.idx --ngram 2 --bands 10 --rows 4 -o z.tks c.tks
status "a recipe with two of --against and --save-index" 0 sluice-batch --local 2 recipe batch
same "  the stream of one run" "$(records z.tks | sha)" "$(cat batch/stream/*.tks | records - | sha)"
same "  the index of one run" "$(sha one.idx)" "$(sha parts.idx)"
check "  no work files are left" test ! -e batch/work
