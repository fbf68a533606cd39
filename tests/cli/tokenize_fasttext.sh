# shellcheck shell=bash disable=SC2154
# tokenize_fasttext.sh - tokenize --fasttext beside the program fasttext: the same labels and probabilities; models that
# are cut or damaged.
# check-more: whole

have tokenize inspect || return 0
printf '{"text":"a"}\n' >one.jsonl
if ! command -v fasttext >/dev/null; then
    skip "needs the program fasttext (make deps-dev)"
    return 0
fi
if tokenize -q -t bytes --fasttext "$DATA/none:a>=1" -o x.tks one.jsonl 2>err || grep -q 'has no fastText' err; then
    check "what to install is said" grep -q 'install libfasttext-dev' err
    skip "this build has no fastText (make deps-dev)"
    return 0
fi
"$PYTHON" - <<'P'
import json, random
rng = random.Random(5)
words = {"en": "the of and house green water café time".split(), "de": "der und haus grün wasser zeit straße ist".split(),
         "c++": "int for while return struct { } ; naïve".split()}
def text(lang, n):
    other = rng.choice(sorted(words))
    return rng.choice([" ", "\n", "\t", "  "]).join(rng.choice(words[lang if rng.random() < 0.7 else other]) for _ in range(n))
with open("train", "w") as f:
    for i in range(3000):
        lang = rng.choice(sorted(words))
        f.write("__label__%s %s\n" % (lang, " ".join(text(lang, rng.randrange(1, 12)).split())))
with open("c.jsonl", "w") as f, open("lines", "w", newline="") as lines:
    for i in range(400):
        t = text(rng.choice(sorted(words)), rng.randrange(1, 20)) if i % 20 else ["", "zzz", "\n", "__label__en", "a\n\nb\n"][i // 20 % 5]
        t = t if t else "q"
        f.write(json.dumps({"text": t, "id": i}) + "\n")
        lines.write(t.replace("\n", " ") + "\n")
P
options="-minCount 1 -epoch 5 -dim 16 -bucket 2000 -minn 2 -maxn 4 -wordNgrams 2 -thread 1 -verbose 0"
# shellcheck disable=SC2086 # words
fasttext supervised -input train -output soft $options >/dev/null 2>&1
# shellcheck disable=SC2086
fasttext supervised -input train -output tree $options -loss hs >/dev/null 2>&1
# shellcheck disable=SC2086
fasttext supervised -input train -output ova $options -loss ova >/dev/null 2>&1
fasttext quantize -input train -output soft -qnorm -retrain -epoch 1 -cutoff 800 -thread 1 -verbose 0 >/dev/null 2>&1
cat >judge.py <<'P'
"""judge.py MODEL: what --fasttext keeps, by the program's probabilities, and around them."""
import json, subprocess, sys
model = sys.argv[1]
rows = [dict(zip(x.split()[::2], map(float, x.split()[1::2]))) for x in
        subprocess.run(["fasttext", "predict-prob", model, "lines", "-1"], capture_output=True, text=True, check=True).stdout.split("\n")[:-1]]
assert len(rows) == 400
def kept(label, p):
    out = subprocess.run(["tokenize", "-q", "-t", "bytes", "--id-field", "id", "--fasttext", "%s:%s>=%.9f" % (model, label, p), "c.jsonl"],
                         capture_output=True, check=True).stdout
    return {int(json.loads(r)["segments"][0]["id"]) for r in subprocess.run(["inspect", "--records", "-"], input=out, capture_output=True,
                                                                           check=True).stdout.splitlines()}
bad = []
for label in "en", "__label__de", "c++":
    name = label if label.startswith("__") else "__label__" + label
    probs = [r.get(name, 0) for r in rows]
    for p in 0.05, 0.5, 0.9, 1.0:
        far = {i for i, x in enumerate(probs) if abs(x - p) > 1e-6}
        if kept(label, p) & far != {i for i in far if probs[i] >= p}:
            bad.append((label, p))
    for i in range(3, 400, 57):
        if 2e-6 < probs[i] < 1 - 2e-6 and (i not in kept(label, probs[i] - 1e-6) or i in kept(label, probs[i] + 1e-6)):
            bad.append((label, i, probs[i]))
print(bad or "ok", len({tuple(sorted(r)) for r in rows}) and "")
P
for model in soft.bin tree.bin ova.bin soft.ftz; do
    same "$model: as the program says" "ok " "$("$PYTHON" judge.py $model)"
done
tokenize -q -t bytes --fasttext 'soft.bin:en>=0.5' --stats s.json --rejects r.jsonl -o x.tks c.jsonl
check "it is counted" test "$(json s.json 'd["documents"]["dropped"]["fasttext"]')" -gt 50
same "  and the records are kept" "$(json s.json 'd["documents"]["dropped"]["fasttext"]')" "$(grep -c '"reason":"fasttext"' r.jsonl)"
tokenize -q -t bytes --fasttext 'soft.bin:en>=0.5' -o all.tks c.jsonl
for o in "-T 1" "-T 3 -M 32M"; do
    # shellcheck disable=SC2086 # words
    tokenize -q -t bytes --fasttext 'soft.bin:en>=0.5' $o -o v.tks c.jsonl
    same "$o" "$(sha all.tks)" "$(sha v.tks)"
done
cp soft.bin other:name.bin
tokenize -q -t bytes --fasttext 'other:name.bin:en>=0.5' -o v.tks c.jsonl
same "the model's name does not matter" "$(sha all.tks)" "$(sha v.tks)"

says() { # WHAT STATUS WORDS MODEL:CONDITION
    status "$1" "$2" tokenize -q -t bytes --fasttext "$4" -o x.tks c.jsonl
    check "  in one line" one_line err
    check "  that says why" grep -qF -- "$3" err
}
for bad in soft.bin soft.bin:en 'soft.bin:>=1' 'soft.bin:en>=0' 'soft.bin:en>=1.5' 'soft.bin:en>=x' ':en>=1'; do
    says "--fasttext $bad" 2 "is not MODEL:LABEL>=P" "$bad"
done
says "a label that is not there" 1 "the model has no label 'fr'" 'soft.bin:fr>=0.5'
says "a model that is not there" 1 "none.bin: " 'none.bin:en>=0.5'
says "a text as a model" 1 "is not a whole model" 'train:en>=0.5'
fasttext skipgram -input train -output skip -dim 4 -epoch 1 -bucket 100 -thread 1 -verbose 0 >/dev/null 2>&1
says "a model of vectors" 1 "is not a whole model" 'skip.bin:en>=0.5'
cat >damage.py <<'P'
"""damage.py MODEL: cut at many places, and with changed bytes: a message, or a run, but never a crash."""
import random, subprocess, sys
whole, rng, bad = open(sys.argv[1], "rb").read(), random.Random(3), []
def run(data, must):
    open("hurt", "wb").write(data)
    p = subprocess.run(["tokenize", "-q", "-t", "bytes", "--fasttext", "hurt:en>=0.5", "-o", "x.tks", "c.jsonl"], capture_output=True)
    if p.returncode not in ((1,) if must else (0, 1)) or (p.returncode and p.stderr.count(b"\n") != 1):
        bad.append((p.returncode, p.stderr[-200:]))
for n in [0, 1, 4, 8, 30, 56, 64, 80, 90] + [rng.randrange(len(whole)) for _ in range(15)] + [len(whole) - 1]:
    run(whole[:n], True)
run(whole + b"x", True)
for i in range(60):
    at = rng.randrange(100) if i % 2 else rng.randrange(len(whole))
    run(whole[:at] + bytes([rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])]) + whole[at + 1:], False)
print(bad or "ok")
P
for model in soft.bin tree.bin soft.ftz; do
    same "$model: cut and damaged" ok "$("$PYTHON" damage.py $model)"
done
