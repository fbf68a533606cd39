# shellcheck shell=bash disable=SC2154
# tokenize_replace.sh - --on-error replace: U+FFFD for what is not UTF-8, as Python has it, and for lone surrogates, in JSON
# lines, texts, archives and Parquet; counted. What else is wrong with JSON is named.

have tokenize inspect || return 0

cat >make.py <<'X'
import json, os, random, sys
r = random.Random(5)
parts = [b"a", b" b", "é".encode(), "日本".encode(), "😀".encode(), b"\xff", b"\xc3", b"\xe6\x97", b"\xe6", b"\xf0\x9f\x98", b"\xf0\x9f",
         b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\x80", b"\xf0\x80\x80", b"\xe0\x80", b"\xf1\x80\x80x", b"\xed\x9f"]
escapes = [b"\\ud83d\\ude00", b"\\ud83d", b"\\ude00\\ud83d", b"\\\\ud800", b"\\uDBFFx", b"\\ud800\\u0041", b"\\n", b"\\\"", b"\\uD800\\uD800\\uDC00"]
texts, lines, want = [], [], []
for i in range(400):
    t = b"".join(r.choice(parts) for _ in range(r.randrange(1, 30)))
    texts.append(t)
    e = b"".join(r.choice(parts + escapes) for _ in range(r.randrange(1, 30)))
    lines.append(b'{"id": %d, "text": "%s"}' % (i, e))
    # what Python makes of it, a lone surrogate after another
    s = json.loads(lines[-1].decode(errors="replace"))["text"]
    want.append("".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 else c for c in s))
os.mkdir("t")
for i, t in enumerate(texts): open("t/%03d.txt" % i, "wb").write(t)
open("x.jsonl", "wb").write(b"".join(l + b"\n" for l in lines))
json.dump([t.decode(errors="replace") for t in texts], open("texts.json", "w"))
json.dump(want, open("lines.json", "w"))
X
cat >compare.py <<'X'
import json, sys
got = [bytes(json.loads(l)["tokens"][:-1]).decode() for l in sys.stdin]
want = [t for t in json.load(open(sys.argv[1])) if t]
bad = [(i, g, w) for i, (g, w) in enumerate(zip(got, want)) if g != w]
print("ok" if got == want else (len(got), len(want), bad[:2]))
X
"$PYTHON" make.py
read_as() { inspect --records "$1" | "$PYTHON" compare.py "$2"; }
status "JSON lines" 0 tokenize -t bytes --on-error replace --stats s.json -o l.tks x.jsonl
same "  as Python replaces" ok "$(read_as l.tks lines.json)"
check "  counted by kind, in one line" grep -qE '^tokenize: [0-9]+ records have U\+FFFD .*\(invalid-utf8 [0-9]+, lone-surrogate [0-9]+\)' "$TMP/err"
same "  and in the report" true "$(json s.json 'd["replaced"]["records"] > 300 and d["replaced"]["invalid-utf8"] > 1000 and d["replaced"]["lone-surrogate"] > 500')"
printf '{"text": "a\xff"}\n{"text": "b"}\n{"text": "\\ud800\xfe\xfe"}\n' >few.jsonl
tokenize -q -t bytes --on-error replace few.jsonl -o few.tks
for i in 0 1; do tokenize -q -t bytes --on-error replace --part $i/2 few.jsonl; done >parts.tks
shuffle -q --documents --format mds -o replaced parts.tks
inspect --json few.tks >few.json
want='{"records": 2, "invalid-utf8": 3, "lone-surrogate": 1}'
same "  and in the account" "$want" "$(json few.json 'd["provenance"][0]["replaced"]')"
same "  of parts too, in a set, in all its steps" "$want $want" \
    "$(json replaced/report.json 'd["provenance"][0]["replaced"]') $(json replaced/report.json 'd["all_steps"]["replaced"]')"
check "  and its card" grep -q 'In 2 of the texts read U+FFFD stands for what is no text: invalid UTF-8 3 times, lone surrogates 1 times' replaced/README.md
same "  none is dropped" '{}' "$(json s.json 'd["documents"]["dropped"]')"
status "texts" 0 tokenize -t bytes --on-error replace --stats s2.json -o t.tks t
same "  as Python replaces" ok "$(read_as t.tks texts.json)"
"$PYTHON" -c 'import tarfile
with tarfile.open("t.tar", "w") as t: t.add("t")
with tarfile.open("x.tar", "w") as t: t.add("x.jsonl")'
tokenize -q -t bytes --on-error replace -o a.tks t.tar
same "texts of a tar" ok "$(read_as a.tks texts.json)"
tokenize -q -t bytes --on-error replace -o a.tks x.tar
same "JSON lines of a tar" ok "$(read_as a.tks lines.json)"
tokenize -q -t bytes --on-error replace -T 1 -M 32M -o a.tks x.jsonl
tokenize -q -t bytes --on-error replace -T 5 -o b.tks x.jsonl
same "-T and -M do not matter" "$(sha a.tks)" "$(sha b.tks)"
same "the counts are those of the replaced" "$("$PYTHON" -c 'import json
print(json.load(open("s2.json"))["replaced"]["invalid-utf8"])')" "$("$PYTHON" -c 'import json
print(sum(t.count("\ufffd") for t in json.load(open("texts.json"))))')"
"$PYTHON" -c 'open("big.txt", "wb").write(b"word \xff" * 200000)'
tokenize -q -t bytes --on-error replace -M 32M -o a.tks big.txt
tokenize -q -t bytes --on-error replace -M 1G -o b.tks big.txt
same "a text larger than a block" "$(sha a.tks)" "$(sha b.tks)"

# Fields, and what filters see
printf '{"id": "a\377", "text": "b", "k": "\\ud800"}\n' >f.jsonl
same "an id, and a field of a filter" "$(printf 'a\xef\xbf\xbd')" "$(tokenize -q -t bytes --on-error replace --id-field id --where 'k == "\ufffd"' f.jsonl |
    inspect --records | "$PYTHON" -c 'import json, sys
print(json.loads(sys.stdin.read())["segments"][0]["id"])')"
# What cannot be replaced stops the run, or is left out with --rejects.
printf '{"text": "a\377"}\n{"text": 1}\n{"text": \n' >m.jsonl
status "other bad records" 1 tokenize -t bytes --on-error replace -o o.tks m.jsonl
check "  are named" grep -q 'm.jsonl:2: byte .* not a string' "$TMP/err"
status "other bad records, with --rejects" 0 tokenize -t bytes --on-error replace --rejects r.jsonl -o o.tks m.jsonl
same "  are there" "not-a-string invalid-json" "$("$PYTHON" -c 'import json; print(*(json.loads(l)["reason"] for l in open("r.jsonl")))')"
status "it is advised" 1 tokenize -t bytes -o o.tks x.jsonl
check "  by name" grep -q -e '--on-error replace' "$TMP/err"
status "and not of --on-missing" 2 tokenize -t bytes --on-missing replace -o o.tks x.jsonl

# What JSON has not is named.
named() {
    printf '{"text": "first"}\n%b\n' "$2" >n.jsonl
    status "$1" 1 tokenize -t bytes -o o.tks n.jsonl
    check "$1: is named" grep -qF "n.jsonl:2: byte $3: not valid JSON: $4" "$TMP/err"
}
named NaN '{"text": NaN}' 9 'NaN, which JSON does not have'
named "NaN in another field" '{"text": "a", "n": [1, NaN]}' 23 'NaN, which'
named Infinity '{"text": "a", "n": Infinity}' 19 'Infinity, which'
named "-Infinity" '{"text": "a", "n": -Infinity}' 20 '-Infinity, which'
named "a byte order mark" '\xef\xbb\xbf{"text": "a"}' 0 'a byte order mark (BOM) in the middle'
named "Python's True" '{"text": "a", "b": True}' 19 'True, as Python prints'
named "Python's quotes" "{'text': 'a'}" 1 'a single quote, as Python prints'

# Parquet
printf '%s\n' '{"text": "a\udcffb", "id": "i\udcc3", "k": "\udce6\udc97"}' '{"text": "good", "id": "j", "k": "k"}' | # of surrogates, bytes
    "$PYTHON" "$top/tests/cli/make_parquet.py" p.parquet
if ! tokenize -q -t bytes -o o.tks p.parquet 2>err && grep -q 'has no Parquet' err; then
    skip "Parquet: this build has none (make arrow)"
    return 0
fi
same "texts, ids and fields of Parquet" "$(printf 'a\xef\xbf\xbdb i\xef\xbf\xbd|good j')" "$(tokenize -q -t bytes --on-error replace --id-field id \
    --where 'k in ["\ufffd", "k"]' p.parquet | inspect --records | "$PYTHON" -c 'import json, sys
d = [json.loads(l) for l in sys.stdin]
print("|".join("%s %s" % (bytes(r["tokens"][:-1]).decode(), r["segments"][0]["id"]) for r in d))')"
