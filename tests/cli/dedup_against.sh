# shellcheck shell=bash disable=SC2154
# dedup_against.sh - indexes of n-grams, and documents compared with them: the same bytes for any -T, -M and paths;
# damaged, foreign and too large indexes are refused in one line. tests/props/check_against.py checks which documents
# are dropped.

have tokenize dedup inspect || return 0

"$PYTHON" - <<'PY'
import json, random
random.seed(5)
w = ["w%d" % i for i in range(4000)]
q = [" ".join(random.choice(w) for _ in range(random.randrange(3, 60))) for _ in range(3000)]
with open("eval.jsonl", "w") as f:
    for i, x in enumerate(q):
        f.write(json.dumps({"text": x, "id": "q%d" % i, "domain": "set%d" % (i % 4)}) + "\n")
with open("train.jsonl", "w") as f:
    for i in range(3000):
        p = [" ".join(random.choice(w) for _ in range(random.randrange(5, 90))) for _ in range(random.randrange(1, 9))]
        if i % 7 == 0:
            p.insert(random.randrange(len(p) + 1), random.choice(q))
        f.write(json.dumps({"text": "\n".join(p)}) + "\n")
PY
tokenize --no-provenance --id-field id --domain-field domain -o eval.tks eval.jsonl
tokenize -o train.tks train.jsonl
dedup --ngrams --save-index a.idx -T 1 -M 1G --stats s.json -o pass.tks --no-provenance eval.tks 2>err
same "items pass unchanged" "$(sha eval.tks)" "$(sha pass.tks)"
check "items without n-grams are said" grep -q 'items with fewer than 13 words' err
check "and counted" test "$(json s.json '0 < d["items_with_ngrams"] < d["items"] == 3000')" = true
mkdir other
for t in 2 7; do
    dedup --ngrams --save-index other/b.idx -T $t -M 32M -q <eval.tks >/dev/null
    same "the index, -T $t -M 32M" "$(sha a.idx)" "$(sha other/b.idx)"
done
for cut in "" "--cut --window 3"; do
    # shellcheck disable=SC2086 # several options
    dedup --against a.idx $cut -T 1 -M 1G --report want.jsonl --stats s.json -o want.tks train.tks
    check "${cut:-whole}: something was found" test "$(json s.json 'd["documents_matched"]')" -gt 200
    for t in 2 7; do
        # shellcheck disable=SC2086
        dedup --against other/b.idx $cut -T $t -M 32M --report got.jsonl <train.tks >got.tks
        same "${cut:-whole}: -T $t -M 32M, another path" "$(sha want.tks want.jsonl)" "$(sha got.tks got.jsonl)"
    done
    # shellcheck disable=SC2086
    dedup --against a.idx $cut --stats s.json -o again.tks want.tks
    same "${cut:-whole}: a second time nothing is found" 0 "$(json s.json 'd["documents_matched"]')"
done
inspect --json want.tks >j
check "the provenance has the index's contents, not its path" \
    test "$(json j 'len(d["provenance"]) == 2 and ".idx" not in str(d["provenance"]) and "--against=" in str(d["provenance"])')" = true

# What is counted is documents: a text that repeats what very many items have asks for these once, not at each place.
"$PYTHON" - <<'PY'
import json
with open("many.jsonl", "w") as f:
    for i in range(20000):
        f.write(json.dumps({"text": "x y " * 10 + "q%d" % i}) + "\n")
with open("same.jsonl", "w") as f:
    f.write(json.dumps({"text": "x y " * 300000}) + "\n")
    f.write(json.dumps({"text": "x y " * 30}) + "\n")
PY
tokenize -o many.tks many.jsonl
tokenize -o same.tks same.jsonl
dedup --ngrams --save-index many.idx many.tks >/dev/null
status "a text that repeats n-grams of many items takes less than 20 seconds" 0 \
    timeout 20 dedup --against many.idx -T 1 --report r.jsonl --stats s.json -o y.tks same.tks
same "and counts once for each" "2 20000" "$(json s.json 'd["documents_matched"], d["items_matched"]' | tr -d '[](),')"
check "in the report too" grep -q '"matched":2,.*"documents":2}' r.jsonl

# What is wrong with an index is one line, and no output.
n=$(wc -c <a.idx)
for at in 0 7 9 16 $((n / 3)) $((n / 2)) $((n - 300)) $((n - 40)) $((n - 1)); do
    "$PYTHON" - "$at" <<'PY'
import sys
b = bytearray(open("a.idx", "rb").read())
b[int(sys.argv[1])] ^= 4
open("bad.idx", "wb").write(b)
PY
    status "a bit flipped at byte $at of $n" 1 dedup --against bad.idx train.tks -o x.tks
    check "byte $at: one line" one_line "$TMP/err"
done
for at in 0 1 15 100 $((n / 2)) $((n - 1)); do
    head -c "$at" a.idx >bad.idx
    status "cut off at byte $at" 1 dedup --against bad.idx train.tks -o x.tks
    check "cut at $at: one line" one_line "$TMP/err"
done
check "and says what to do" grep -q 'bad.idx: .*; make the index again' "$TMP/err"
status "a stream is no index" 1 dedup --against train.tks train.tks -o x.tks
check "and it says so" grep -q 'train.tks: not an index' "$TMP/err"
status "no such index" 1 dedup --against none.idx train.tks -o x.tks
check "and it is named" grep -q none.idx "$TMP/err"
"$PYTHON" -c 'import random
random.seed(2)
for i in range(30):
    print("{\"text\":\"%s\"}" % "".join(chr(97 + random.randrange(26)) for _ in range(50000)))' >long.jsonl
tokenize -t bytes -o long.tks long.jsonl
status "an index that -M does not hold" 1 dedup --ngrams --unit token --save-index big.idx -M 32M long.tks -o x.tks
check "is not made" test ! -e big.idx
dedup --ngrams --unit token --save-index big.idx -M 256M long.tks >/dev/null
status "nor used" 1 dedup --against big.idx -M 32M long.tks -o x.tks
check "the line says what it takes" grep -q 'takes 3[0-9]M' "$TMP/err"
check "none of these left an output" test ! -e x.tks
status "--report to a full disk" 1 dedup --against a.idx --report /dev/full train.tks -o x.tks
status "an index to a full disk" 1 dedup --ngrams --save-index /dev/full -q eval.tks -o x.tks
check "which is no success" test ! -e x.tks
status "--window without --cut" 2 dedup --against a.idx --window 3 train.tks -o x.tks
status "--cut without --against" 2 dedup --ngrams --cut train.tks -o x.tks
status "--save-index with --ngram 0" 2 dedup --ngrams --ngram 0 --save-index b.idx train.tks -o x.tks
status "--save-index and --report together" 2 dedup --ngrams --report r --save-index b.idx train.tks -o x.tks
for o in --ngrams=paragraph "--ngrams --overlap 0.5" "--ngrams --fp-rate 0.1"; do
    # shellcheck disable=SC2086 # several options
    status "$o asks for nothing where an index is saved" 2 dedup $o --save-index b.idx train.tks -o x.tks
    check "$o: one line" one_line "$TMP/err"
done
status "two passes at once" 2 dedup --ngrams --against a.idx train.tks -o x.tks
tokenize --no-vocab -o bare.tks train.jsonl
status "words need a vocabulary" 1 dedup --against a.idx bare.tks -o x.tks

# Items without spaces within longer text: one of 60 characters, one of 12, and one of 11, which is too short.
"$PYTHON" - <<'PY'
import json, random
draw = random.Random(2)
def text(n):
    return "".join(chr(draw.randrange(0x4E00, 0x9000)) for _ in range(n))
items = [text(60), text(12), "。" + text(11), text(11)]
with open("zh-items.jsonl", "w") as f, open("zh.jsonl", "w") as g:
    for i, item in enumerate(items):
        f.write(json.dumps({"text": item, "id": "q%d" % i}) + "\n")
        g.write(json.dumps({"text": text(200) + item + text(200), "id": "t%d" % i}) + "\n")
PY
tokenize --id-field id -o zh-items.tks zh-items.jsonl
tokenize --id-field id -o zh.tks zh.jsonl
dedup --ngrams --save-index zh.idx -q zh-items.tks >/dev/null
dedup --against zh.idx --report r.jsonl -o out.tks zh.tks
same "Chinese items of 12 characters and more are found" "q0 q1 q2" "$("$PYTHON" -c '
import json
print(*(t["item"]["id"] for t in map(json.loads, open("r.jsonl")) if t["documents"] == 1))')"
same "and nothing else goes" 1 "$(inspect --json out.tks | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["sequences"])')"
