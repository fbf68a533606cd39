# shellcheck shell=bash disable=SC2154,SC2002
# decompose_mixture.sh - decompose --mixture: exactly the ratio that was asked for; dropped sequences counted by bucket;
# the same bytes for any threads and memory; the tables of arXiv 2405.13226, from corpora with the paper's histograms.
# check-more: whole

have tokenize decompose inspect || return 0
corpus c.jsonl 6000000 11
tokenize -t bytes --domain-field domain --id-field id c.jsonl >c.tks
mix="--min 64 --max 1024 --mixture 3,6,10,17,21"

# shellcheck disable=SC2086 # words
decompose $mix --stats s.json c.tks >m.tks
want=$(sha m.tks)
for o in "-T 1" "-T 7" "-M 32M" "-M 32M -T 1" "-M 1G" "--device cpu" "-v"; do
    # shellcheck disable=SC2086 # words
    same "the same bytes with $o" "$want" "$(decompose $mix $o c.tks 2>/dev/null | sha)"
done
# shellcheck disable=SC2086 # words
same "the same bytes from a pipe" "$want" "$(cat c.tks | decompose $mix | sha)"
# shellcheck disable=SC2086 # words
check "--seed matters" test "$want" != "$(decompose $mix --seed 1 c.tks | sha)"
# shellcheck disable=SC2086 # words
decompose $mix -M 32M --stats t.json c.tks >/dev/null
check "past -M it waits in --tmpdir" test "$(json t.json 'd["spill_bytes"]')" -gt 0
# shellcheck disable=SC2086 # words
status "a --tmpdir that does not exist" 1 decompose $mix -M 32M --tmpdir "$TMP/none" -o x.tks c.tks
check "  one line" one_line err

cat >ratio.py <<'PY'
"""ratio.py STATS W,W,...: the kept tokens are in the ratio, to within a sequence of each bucket, none too many."""
import json, sys
d = json.load(open(sys.argv[1]))
w = [float(x) for x in sys.argv[2].split(",")]
b = d["buckets"]
scale = min((x["tokens"] + x["dropped"]["tokens"]) / v for x, v in zip(b, w) if v)
for x, v in zip(b, w):
    assert 0 <= scale * v - x["tokens"] < x["length"], (x, v, scale)
t = d["tokens"]
assert t["dropped"]["mixture"] == sum(x["dropped"]["tokens"] for x in b) > 0
assert t["in"] == t["out"] + t["dropped"]["mixture"]
assert d["sequences"]["dropped"]["mixture"] == sum(x["dropped"]["sequences"] for x in b)
PY
check "the ratio, and the dropped sequences" "$PYTHON" ratio.py s.json 3,6,10,17,21
status "a weight of 1e0" 2 decompose --min 64 --max 1024 --mixture .5,0,1e0 c.tks
check "  one line" one_line err
decompose --min 64 --max 1024 --mixture 0,.5,0,1,0.25 --stats s.json c.tks >z.tks
check "weights 0 and fractions" "$PYTHON" ratio.py s.json 0,.5,0,1,0.25
inspect --json z.tks >j.json
same "a bucket without weight is gone" "[]" "$(json j.json '[n for n, _ in d["lengths"] if n in (64, 256)]')"

# What is kept is a part of what there was, in its order; tails all of it.
decompose --min 64 --max 1024 c.tks >all.tks
for f in all m; do inspect --records $f.tks >$f.rec; done
check "kept: some of the pieces, in their order, and all tails" "$PYTHON" -c '
import json
rows = lambda f: [json.dumps(json.loads(l)["segments"]) + l[-40:] for l in open(f)]
a, m = iter(rows("all.rec")), rows("m.rec")
assert all(any(x == y for x in a) for y in m)
tails = lambda f: sum(len(json.loads(l)["tokens"]) < 64 for l in open(f))
assert tails("all.rec") == tails("m.rec") > 0'
same "natural is everything" "$(sha all.tks)" "$(decompose --min 64 --max 1024 --mixture natural --no-provenance c.tks >n.tks
    decompose --min 64 --max 1024 --no-provenance c.tks | cmp - n.tks && sha all.tks)"
decompose --min 64 --max 1024 --mixture natural --mixture-tokens 1Mi --stats s.json c.tks >n.tks
check "--mixture-tokens: no more than that, the same share of each bucket" "$PYTHON" -c '
import json
b = json.load(open("s.json"))["buckets"]
had = [x["sequences"] + x["dropped"]["sequences"] for x in b]
tok = sum(x["tokens"] for x in b)
assert 2**20 - sum(x["length"] for x in b) < tok <= 2**20, tok
share = 2**20 / sum(n * x["length"] for n, x in zip(had, b))
assert all(0 <= n * share - x["sequences"] < 1 for n, x in zip(had, b))'
decompose --min 64 --max 1024 --mixture equal --mixture-tokens 100Ki --label-token --stats s.json --tail drop c.tks >n.tks
check "with label tokens: nominal tokens are counted" "$PYTHON" -c '
import json
d = json.load(open("s.json"))
for x in d["buckets"]:
    assert x["sequences"] == 102400 // 5 // x["length"], x
    assert x["tokens"] == x["sequences"] * (x["length"] + 1)
assert d["tokens"]["dropped"]["tail"] > 0'
status "--mixture-tokens too few for a sequence" 0 decompose --min 64 --max 1024 --mixture-tokens 1 -o n.tks c.tks
told err >said
check "  a warning" shell 'grep -q "the mixture keeps none of the buckets. [0-9]* tokens: each bucket.s share is less than one sequence" said && [ $(wc -l <said) = 1 ]'
status "--mixture-tokens 0" 2 decompose --min 64 --max 1024 --mixture-tokens 0 -o n.tks c.tks
check "  one line" one_line err
status "a plan for a mixture that nothing can be kept in" 0 decompose --plan --min 64 --max 64Mi --mixture equal c.tks
check "  a warning too" shell 'grep -q "has no sequence" err && [ $(wc -l <err) = 1 ]'
status "--mixture-tokens above the tokens of the buckets" 0 decompose --min 64 --max 1024 --mixture equal --mixture-tokens 1Gi -o n.tks c.tks
told err >said
check "  a warning that names the bucket" shell 'grep -q "bucket [0-9]* has no more" said && [ $(wc -l <said) = 1 ]'
status "a mixture of a stream that is cut already" 0 decompose --min 64 --max 1024 --mixture equal -o n.tks all.tks
decompose --min 64 --max 1024 --mixture equal --no-provenance c.tks >o.tks
same "  the same sequences" "$(inspect --records o.tks | sha)" "$(inspect --records n.tks | sha)"

# shellcheck disable=SC2086 # words
decompose $mix --plan --stats p.json c.tks >plan
# shellcheck disable=SC2086 # words
decompose $mix --stats s.json c.tks >m.tks
same "--plan foresees it" "$(json s.json '[d["buckets"], d["mean_length"], d["mean_context"]]')" \
    "$(json p.json '[d["buckets"], d["mean_length"], d["mean_context"]]')"
check "--plan shows every mixture" shell 'grep -q "^ *natural " plan && grep -q "^ *equal " plan && grep -q "^  this one " plan'
for o in "1,2" "1,2,3,4,5,6" "0,0,0,0,0" "even" "1,2,3,4,x" "" "1,2,3,4,"; do
    status "usage: --mixture '$o'" 2 decompose --min 64 --max 1024 --mixture "$o" c.tks
    check "  one line" one_line err
done
status "a bucket without a sequence" 1 decompose --min 64 --max 1Mi --mixture equal --histogram x.csv -o x.tks c.tks
check "  one line that says what to do" shell 'grep -q "weight 0" err && [ $(wc -l <err) = 1 ]'
check "  and neither stream nor histogram" test ! -e x.tks -a ! -e x.csv
status "  --plan says it in the table" 0 decompose --min 64 --max 1Mi --mixture equal --plan c.tks
check "  so" grep -q "equal  bucket [0-9]* has no sequence" out
status "of nothing: nothing" 0 decompose --mixture equal --min-length 1Gi -o x.tks c.tks

# The paper's table: D6 ... D13 with 3 6 10 17 21 17 13 9 (times 2^30) tokens; here times 2^14, each document as long as
# its bucket. Means are of the mixture, not of its size, so they are the paper's.
"$PYTHON" - <<'PY'
import json, random
rows = [l for k, t in enumerate((3, 6, 10, 17, 21, 17, 13, 9)) for l in [64 << k] * (t * 2**14 // (64 << k))]
random.Random(1).shuffle(rows)
with open("paper.jsonl", "w") as f:
    for l in rows:
        f.write(json.dumps({"text": "x" * l}) + "\n")
PY
tokenize -t bytes --no-eos paper.jsonl >paper.tks
# paper NAME MIXTURE LENGTH CONTEXT: the printed figures, which are rounded to the nearest, halves up.
paper() {
    decompose --min 64 --max 8192 --mixture "$2" --stats s.json paper.tks >p.tks
    same "the paper's $1: mean length and mean context" "[$3, $4]" \
        "$(json s.json '[int(d["mean_length"] + .5), int(d["mean_context"] + .5)]')"
}
paper Natural natural 482 1018
paper Natural 3,6,10,17,21,17,13,9 482 1018
paper Equal equal 257 1020
paper 1k-only 0,0,0,0,1,0,0,0 1024 512
paper "<= 2k" 16,16,16,16,16,16,0,0 195 336
paper ">= 256" 0,0,16,16,16,16,16,16 780 1344
rm -f c.jsonl paper.jsonl ./*.tks ./*.rec
