# shellcheck shell=bash disable=SC2154
# dedup_index.sh - --save-index and --against of --exact and --near: two sets compared by an index give the result of
# one run over both, within memory and beyond; unsuitable indexes are refused.
# check-more: whole

have tokenize dedup inspect sluice-batch || return 0
n=3000
[ -z "$FULL" ] || n=100000
"$PYTHON" - $n <<'PY'
import json, random, sys
rng, seen = random.Random(9), []
for name, n in (("a", int(sys.argv[1])), ("b", int(sys.argv[1]) * 2 // 3)):
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
    }
    same "$what: --save-index changes nothing" "$(sha a1.tks)" "$(sha a2.tks)"
    same "$what: -T 1, and without --save-index, the same" "$(sha b2.tks)" "$(sha b3.tks)"
    case $mode in *longest) ;; *)
        same "$what: one set against the other gives the result of one run over both" "$(inspect --records ab.tks | sha)" \
            "$(cat a2.tks b2.tks | inspect --records | sha)" ;;
    esac
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
    tokenize -t builtin -o c.tks b.jsonl
    status "words of another tokenizer are words" 0 dedup $near --against a.idx -o y.tks c.tks
    dedup $near --unit token --save-index t.idx -o a2.tks a.tks
    status "ids of another are not" 1 dedup $near --unit token --against t.idx -o x.tks c.tks
    check "and it says so" grep -q "another tokenizer" "$TMP/err"
    status "--save-index to a full disk" 1 dedup $near --save-index /dev/full -o x.tks b.tks
    status "--save-index in a folder that does not exist" 1 dedup $near --save-index no/such -o x.tks b.tks
    check "neither left an output" test ! -e x.tks
    status "--against in a stage of exact" 2 dedup --exact --stage sign --part 0/1 --work w --against a.idx b.tks
    status "--save-index and -o are two files" 2 dedup $near --save-index x.tks -o x.tks b.tks
}
dedup --near --against a.idx --ngram 2 --bands 10 --rows 4 -o y.tks b.tks
mv a.idx elsewhere.idx
dedup --near --against elsewhere.idx --ngram 2 --bands 10 --rows 4 -o z.tks b.tks
same "where the index lies does not matter" "$(sha y.tks)" "$(sha z.tks)"

# In parts, by a recipe.
cat >recipe <<'EOF'
input = b.jsonl
tokenizer = bytes
parts = 3
dedup = --near --ngram 2 --bands 10 --rows 4 --against elsewhere.idx --save-index parts.idx
keep = needed
EOF
dedup --near --against elsewhere.idx --save-index one.idx --ngram 2 --bands 10 --rows 4 -o z.tks b.tks
status "a recipe with --against and --save-index" 0 sluice-batch --local 2 recipe batch
same "  the stream of one run" "$(records z.tks | sha)" "$(cat batch/stream/*.tks | records - | sha)"
same "  the index of one run" "$(sha one.idx)" "$(sha parts.idx)"
check "  no work files are left" test ! -e batch/work
