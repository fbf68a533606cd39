# shellcheck shell=bash disable=SC2154
# dedup_substring.sh - repeated passages: planted passages of every length around N; the same bytes for any -T, and for
# -M with and without room for the data; --annotate finds the passages that are cut; the account; runs of one token;
# refused options.
# check-more: whole

have tokenize dedup decompose pack inspect || return 0

# One byte is one token. Passages of 39, 40 and 41 tokens, at the ends of documents and inside, a document inside
# another, a run, a short period, whole duplicates.
"$PYTHON" - <<'PY'
import json, random
random.seed(7)
def text(n): return "".join(random.choice("abcdefghijklmnopqrstuvwxyz ") for _ in range(n))
p = [text(n) for n in (39, 40, 41, 200)]
docs = [text(300) + x + text(50) for x in p]
docs += [x + text(30) for x in p] + [text(30) + x for x in p] + [text(9) + x + text(11) for x in p]
docs += [docs[0][20:250], docs[1], "z" * 1000, "q" + "z" * 39, "z" * 40, "xyzzy" * 100, text(25) + "xyzzy" * 8, "short", "short"]
with open("planted.jsonl", "w") as f:
    for d in docs:
        f.write(json.dumps({"text": d}) + "\n")
PY
tokenize -t bytes -o planted.tks planted.jsonl
dedup --substring 40 --pairs passages.jsonl --stats s.json -o cut.tks planted.tks
dedup --substring 40 --annotate --pairs marked.jsonl -o marked.tks planted.tks
check "the same passages, annotated" cmp -s passages.jsonl marked.jsonl
same "annotated: the tokens are unchanged" "$(inspect --json planted.tks >j && json j 'd["trace_checksum"]')" \
    "$(inspect --json marked.tks >j && json j 'd["trace_checksum"]')"
inspect --records planted.tks >in.jsonl
inspect --records cut.tks >out.jsonl
"$PYTHON" - <<'PY'
import json
N = 40
docs, cut, want = {}, {}, []
for line in open("in.jsonl"):
    r = json.loads(line)
    docs[r["segments"][0]["document"]] = r["tokens"]
seen = {}
for d, t in docs.items():  # every window, by its tokens
    gone = set()
    text = t[:-1]  # without the end of text
    for i in range(len(text) - N + 1):
        first = seen.setdefault(tuple(text[i:i + N]), (d, i))
        if first[0] != d or first[1] + N <= i:
            gone.update(range(i, i + N))
    keep = [i for i in range(len(t)) if i not in gone]
    if gone and keep == [len(text)]:
        keep = []
    if keep:
        want.append([t[i] for i in keep])
got = [json.loads(x) for x in open("out.jsonl")]
def result(good, what): print("%s dedup_substring: %s" % ("ok" if good else "not ok", what))
result([r["tokens"] for r in got] == want, "what stays is what the definition says")
good = all(r["tokens"] == sum((docs[s["document"]][s["offset"]:s["offset"] + s["length"]] for s in r["segments"]), [])
           for r in got)
result(good, "segments say where it is from")
gone = {}
for line in open("passages.jsonl"):
    p = json.loads(line)
    here, first = docs[p["document"]], p["first"]
    a, b = here[p["offset"]:p["offset"] + N], docs[first["document"]][first["offset"]:first["offset"] + N]
    if a != b or seen[tuple(a)] != (first["document"], first["offset"]) or p["source"] != "planted.jsonl":
        result(False, "a passage's first occurrence: " + line)
    gone.setdefault(p["document"], set()).update(range(p["offset"], p["offset"] + p["length"]))
left = [[x for i, x in enumerate(t) if i not in gone.get(d, ())] for d, t in docs.items()]
result([x for x in left if len(x) > 1] == want, "the annotated passages are those that are cut")
s = json.load(open("s.json"))
n = sum(map(len, docs.values()))
result(s["tokens"]["in"] == n and s["tokens"]["out"] == sum(map(len, want)) and
       s["tokens"]["dropped"] == {"repeated-passage": n - sum(map(len, want))}, "the account: tokens")
result(s["sequences"]["out"] == len(want) and s["sequences"]["dropped"]["repeated-passage"] == len(docs) - len(want),
       "the account: sequences")
result(s["passages"] == sum(1 for _ in open("passages.jsonl")) > 10 and s["documents_gone"] == len(docs) - len(want),
       "the account: passages")
PY
same "of a run of one token the first N stay" "z40" "$(inspect --records cut.tks | "$PYTHON" -c 'import json, sys
for x in sys.stdin:
    t = json.loads(x)["tokens"]
    if t[:2] == [122, 122]: print("z%d" % (len(t) - 1))')"
dedup --substring 40 --stats s.json -o again.tks cut.tks
same "cutting twice changes nothing" "{} $(inspect --json cut.tks >j && json j 'd["trace_checksum"]')" \
    "$(json s.json 'd["tokens"]["dropped"]') $(inspect --json again.tks >j && json j 'd["trace_checksum"]')"
dedup --substring 40 --min-keep 20 --stats s.json -o kept.tks planted.tks
same "--min-keep drops short pieces beside passages, 9 and 11 tokens of three documents each, and no others" 60 \
    "$(json s.json 'd["tokens"]["dropped"]["too-short"]')"
check "and not short documents" shell "inspect --jsonl kept.tks | grep -c '\"short\"'"

# 11 million tokens of which a quarter repeats: blocks, questions and the sequences spill with -M 32M.
"$PYTHON" - <<'PY'
import random
random.seed(5)
words = ["%x" % random.getrandbits(24) for _ in range(400)]
kept = []
with open("long.jsonl", "w") as f:
    for i in range(4500):
        t = " ".join(random.choices(words, k=200))
        if kept and i % 2:
            old = random.choice(kept)
            a, n = random.randrange(len(old)), random.randrange(1500)
            t = t[:random.randrange(len(t))] + old[a:a + n] + t
        if i % 7 == 0:
            t += "=" * random.randrange(3000)
        if len(kept) < 900:
            kept.append(t)
        f.write('{"text":"%s"}\n' % t)
    f.write('{"text":"%s"}\n' % ("-" * 1500000))
PY
tokenize -t bytes -o long.tks long.jsonl
dedup --substring 50 -M 1G -T 1 --pairs want.jsonl --stats s.json -o want.tks long.tks
want=$(sha want.tks)
want_pairs=$(sha want.jsonl)
small=$(json s.json 'd["spill_bytes"]')
check "the questions' way is taken" test "$(json s.json 'd["asked_blocks"]')" -gt 10000
for t in 1 2 7; do
    dedup --substring 50 -M 32M -T $t --pairs pairs.jsonl --stats s.json -o out.tks long.tks
    check "-M 32M -T $t spills more than the sequences" test "$(json s.json 'd["spill_bytes"]')" -gt $((small + (4 << 20)))
    same "-M 32M -T $t: the stream" "$want" "$(sha out.tks)"
    same "-M 32M -T $t: the passages" "$want_pairs" "$(sha pairs.jsonl)"
    [ -n "${SAN:-}" ] || check "-M 32M -T $t: peak memory within 96 MiB" \
        test "$(json s.json 'd["peak_rss_bytes"]')" -le $((96 << 20))
done
dedup --substring 50 -M 48M -T 3 -o out.tks - <long.tks
same "-M 48M, from a pipe: the stream" "$want" "$(sha out.tks)"
check "ls of --tmpdir shows nothing left" shell 'mkdir t && dedup --substring 50 -M 32M --tmpdir t -o out.tks long.tks && test -z "$(ls -A t)"'

# Packed sequences are cut inside; windows do not cross documents.
decompose --min 64 --max 256 long.tks | pack --length 512 | dedup --substring 50 --stats s.json -o packed.tks
check "packed sequences are cut" test "$(json s.json 'd["passages"]')" -gt 1000
check "and are a sound stream" inspect --verify packed.tks

status "--substring 1" 2 dedup --substring 1 planted.tks -o x.tks
status "--substring 5000" 2 dedup --substring 5000 planted.tks -o x.tks
status "--annotate without --pairs" 2 dedup --substring 40 --annotate planted.tks -o x.tks
status "--annotate and --cut" 2 dedup --substring 40 --annotate --cut --pairs p planted.tks -o x.tks
status "--annotate and --min-keep" 2 dedup --substring 40 --annotate --min-keep 5 --pairs p planted.tks -o x.tks
status "--min-keep without --substring" 2 dedup --min-keep 5 planted.tks -o x.tks
status "two modes" 2 dedup --exact --substring 40 planted.tks -o x.tks
status "--pairs to a full disk" 1 dedup --substring 40 --pairs /dev/full planted.tks -o x.tks
status "a spill folder that does not exist" 1 dedup --substring 50 -M 32M --tmpdir no/such long.tks -o x.tks
check "and it is named" grep -q no/such "$TMP/err"
check "none of these left an output" test ! -e x.tks
