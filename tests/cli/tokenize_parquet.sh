# shellcheck shell=bash disable=SC2154
# tokenize_parquet.sh - reads Parquet. If the build has no Parquet (see `make arrow`), one line says so, and the other
# checks are skipped.
# check-more: longer

have tokenize inspect || return 0

corpus c.jsonl "$(longer 300000 600000)" 4
"$PYTHON" -c 'import json, sys
for i, line in enumerate(open("c.jsonl")):
    r = json.loads(line)
    print(json.dumps({"n": i - 7, "id": r["id"], "text": r["text"], "domain": ["web", "code", ""][i % 3]}))' >d.jsonl
parquet() { "$PYTHON" "$top/tests/cli/make_parquet.py" "$@"; }
parquet d.parquet --rows 30 --pages 7 <d.jsonl

# A program without its ../lib is as one that was built without Arrow.
mkdir alone
cp "$BIN/tokenize" alone/tokenize
status "a build without says so" 1 alone/tokenize -t bytes -o x.tks d.parquet
check "in one line" one_line err
check "with what to do" grep -q '^tokenize: d.parquet: this build has no Parquet, .*duckdb' err
status "with --format too" 1 alone/tokenize -t bytes --format parquet -o x.tks
check "in one line: --format" one_line err
status "everything else works" 0 alone/tokenize -t bytes -o x.tks d.jsonl
if ! tokenize -t bytes -o x.tks d.parquet 2>err && grep -q 'has no Parquet' err; then
    skip "Parquet in: this build has none (make arrow)"
    return 0
fi

# The same documents as JSONL, but for the number of each and the name of the source.
rows() { inspect --records "$1" | "$PYTHON" -c 'import json, sys
for n, line in enumerate(sys.stdin):
    r = json.loads(line)
    s = r["segments"][0]
    print(s["document"] if len(sys.argv) > 1 else "", s.get("id"), s.get("domain"), r["tokens"])' ${2:+x}; }
F="--id-field id --domain-field domain"
# shellcheck disable=SC2086 # words
tokenize -t bytes $F -o want.tks d.jsonl
# shellcheck disable=SC2086
tokenize -t bytes $F -o got.tks d.parquet
same "ids, domains and tokens are those of JSONL" "$(rows want.tks | sha)" "$(rows got.tks | sha)"
same "a document is a row" ok "$(inspect --records got.tks | "$PYTHON" -c 'import json, sys
rows = [json.loads(l) for l in open("d.jsonl")]
good = all(rows[s["document"]]["id"] == s["id"] for s in (json.loads(l)["segments"][0] for l in sys.stdin))
print("ok" if good else "no")')"
for t in $(longer "1 7" "1 2 7"); do
    for m in $(longer 32M "32M 64M 300M"); do
        # shellcheck disable=SC2086
        tokenize -t bytes $F -T $t -M $m -o v.tks d.parquet
        same "-T $t -M $m" "$(sha got.tks)" "$(sha v.tks)"
    done
done
# The steps have the size of the file, which is another.
# shellcheck disable=SC2086
tokenize -t bytes $F --no-provenance -o got.tks d.parquet
for how in "--gzip" "--rows 1" "--rows 100000" "--rows 50 --pages 1 --gzip"; do
    # shellcheck disable=SC2086
    parquet v.parquet $how <d.jsonl
    mkdir -p v
    mv v.parquet v/d.parquet
    # shellcheck disable=SC2086
    tokenize -t bytes $F -T 3 --no-provenance -o v.tks v/d.parquet
    same "written with $how" "$(sha got.tks)" "$(sha v.tks)"
done
tokenize -t bytes --id-field n d.parquet -o n.tks
inspect --records=1 n.tks >one
check "an integer id" grep -q '"id":"-7"' one
# shellcheck disable=SC2086
tokenize -t bytes $F -o v.tks <d.parquet
same "standard input, a file" "$(rows got.tks | sha)" "$(rows v.tks | sha)"
# shellcheck disable=SC2086,SC2002 # words; a pipe is what is meant
status "a pipe" 1 shell 'cat d.parquet | tokenize -t bytes -o x.tks'
check "a pipe: one line" shell "test \$(wc -l <err) = 1 && grep -q 'from its end' err"
gzip -k d.parquet
status "compressed as a whole" 1 tokenize -t bytes -o x.tks d.parquet.gz
check "compressed: one line" shell "test \$(wc -l <err) = 1 && grep -q 'd.parquet.gz: a Parquet file within gzip' err"

# parts, files of several kinds
mkdir p
parquet p/a.parquet --rows 20 <d.jsonl
cp d.jsonl p/b.jsonl
parquet p/c.parquet --rows 1000 --gzip <d.jsonl
parquet p/e.parquet --first 0 <d.jsonl
status "several files, one without rows" 0 tokenize -t bytes -o whole.tks p
for n in $(longer 3 "2 3 5"); do
    i=0
    : >parts.tks
    while [ $i -lt $n ]; do
        tokenize -t bytes --part $i/$n p >>parts.tks
        i=$((i + 1))
    done
    same "$n parts" "$(inspect --records whole.tks | sha)" "$(inspect --records parts.tks | sha)"
done
# One file is shared by its row groups, each by one part; a part may have none.
# shellcheck disable=SC2086
for n in $(longer 7 "2 3 7 40"); do
    : >parts.tks
    most=0 input=0
    for ((i = 0; i < n; i++)); do
        tokenize -t bytes $F --part $i/$n --stats s.json -f -o part.tks d.parquet
        cat part.tks >>parts.tks
        here=$(json s.json 'd["documents"]["out"]')
        most=$((here > most ? here : most))
        input=$((input + $(json s.json 'd["input_bytes"]')))
    done
    same "one file in $n parts: the rows of one run" "$(rows got.tks documents | sha)" "$(rows parts.tks documents | sha)"
    all=$(rows got.tks | wc -l)
    check "  the largest part has $most of $all" test $most -lt $((all / n + 120))
    tokenize -t bytes $F --stats s.json -o x.tks d.parquet
    same "  and the bytes" "$(json s.json 'd["input_bytes"]')" "$input"
done
tokenize -t bytes --holdout 0.2 --holdout-output h1.tks -T 1 -o m1.tks p
tokenize -t bytes --holdout 0.2 --holdout-output h3.tks -T 3 -o m3.tks p
check "--holdout puts rows aside" test -s h1.tks
same "--holdout" "$(sha m1.tks) $(sha h1.tks)" "$(sha m3.tks) $(sha h3.tks)"

# scores: doubles, floats, integers, nulls; those of JSONL
cat >sc.jsonl <<'J'
{"text":"one","s":0.5,"n":-3}
{"text":"two","s":null,"n":4}
{"text":"three","s":-2.25,"n":null}
{"text":"four","s":3,"n":7}
J
score() { inspect --records "$@" | "$PYTHON" -c 'import json, sys
print([json.loads(l)["segments"][0].get("score") for l in sys.stdin])'; }
for small in "" --small; do
    # shellcheck disable=SC2086 # none, or a word
    parquet sc.parquet --rows 3 $small <sc.jsonl
    tokenize -t bytes --score-field s --stats s.json -o sc.tks sc.parquet
    same "--score-field${small:+, a float}" '[0.5, None, -2.25, 3]' "$(score sc.tks)"
    same "--score-field${small:+, a float}: counted" 3 "$(json s.json 'd["scored"]')"
    tokenize -t bytes --score-field n -o sc.tks sc.parquet
    same "--score-field: integers${small:+ of 32 bits}" '[-3, 4, None, 7]' "$(score sc.tks)"
done
tokenize -t bytes --score-field s -o scj.tks sc.jsonl
tokenize -t bytes --score-field s -o sc.tks sc.parquet
same "scores and tokens are those of JSONL" "$(score scj.tks) $(rows scj.tks | sha)" "$(score sc.tks) $(rows sc.tks | sha)"
for bad in 'text:holds no numbers' 'zzz:no column "zzz"'; do
    status "--score-field ${bad%%:*}" 1 tokenize -t bytes --score-field "${bad%%:*}" -o x.tks sc.parquet
    check "is said in one line" shell "test \$(wc -l <err) = 1 && grep -q '${bad#*:}' err"
done
printf '{"text":"one","s":1.5}\n{"text":"two","s":NaN}\n{"text":"three","s":-Infinity}\n' | parquet nan.parquet
status "a score that is NaN" 1 tokenize -t bytes --score-field s -o x.tks nan.parquet
check "names the row: a score" shell "test \$(wc -l <err) = 1 && grep -q 'nan.parquet: row 1: \"s\" is not a number; ' err"
tokenize -t bytes --score-field s --on-error skip --stats s.json -o sc.tks nan.parquet 2>err
same "is left out with --on-error skip" '{"not-a-number": 2}' "$(json s.json 'd["documents"]["dropped"]')"

# structs, nulls, empty texts, bytes that are no UTF-8
cat >n.jsonl <<'J'
{"a":{"b":"one","c":{"d":"deep"}},"i":1}
{"a":null,"i":2}
{"a":{"b":"MARKMARK","c":{}}}
{"a":{"b":"","c":{"d":"x"}},"i":4}
{"a":{"b":"last","c":null},"i":-5}
J
parquet n.parquet --rows 2 <n.jsonl
tokenize -t bytes --field a.b --on-error skip --rejects r.jsonl --stats s.json -o n.tks n.parquet 2>err
same "nulls are missing fields" '[5, [["empty", 1], ["missing-field", 1]], 3]' "$(json s.json '[d["documents"]["in"], sorted(d["documents"]["dropped"].items()), d["documents"]["out"]]')"
same "its place is kept" '{"source":"n.parquet","document":1,"line":null,"byte":null,"reason":"missing-field","raw":""}' "$(cat r.jsonl)"
status "a null ends the run" 1 tokenize -t bytes --field a.c.d -o x.tks n.parquet
check "names the row" shell "test \$(wc -l <err) = 1 && grep -q 'n.parquet: row 1: \"a.c.d\" is null; ' err"
status "a null id" 1 tokenize -t bytes --field a.b --id-field i -o x.tks n.parquet
tokenize -t bytes --field a.c.d --on-error skip -o n.tks n.parquet 2>err
same "a struct in a struct" '[0, 3]' "$(inspect --records n.tks | "$PYTHON" -c 'import json, sys
print([json.loads(l)["segments"][0]["document"] for l in sys.stdin])')"
"$PYTHON" -c 'b = open("n.parquet", "rb").read(); import sys
print(b.count(b"MARKMARK")); open("u.parquet", "wb").write(b.replace(b"MARKMARK", b"MA\xff\xfeRKMA"))' >/dev/null
status "a page whose checksum is wrong" 1 tokenize -t bytes --field a.b --on-error fail -o x.tks u.parquet
check "names the row group" shell "test \$(wc -l <err) = 1 && grep -q 'u.parquet: row group [01]: damaged' err"

# columns that cannot be read
for bad in 'a:struct or a list' 'zzz:no column "zzz"' 'i:holds no strings'; do
    status "--field ${bad%%:*}" 1 tokenize -t bytes --field "${bad%%:*}" -o x.tks n.parquet
    check "is said in one line" shell "test \$(wc -l <err) = 1 && grep -q '${bad#*:}' err"
done

# damage: every length of a small file, every byte of its footer
printf '{"text":"one"}\n{"text":"two"}\n{"text":"three"}\n' | parquet s.parquet --rows 2
size=$(wc -c <s.parquet)
"$PYTHON" - "$size" >cut.out <<'P'
import os, subprocess, sys
whole = open("s.parquet", "rb").read()
bad = 0
def run(data, what):
    global bad
    open("cut.parquet", "wb").write(data)
    p = subprocess.run(["tokenize", "-t", "bytes", "-o", "y.tks", "cut.parquet"], capture_output=True, text=True)
    good = p.returncode == 1 and p.stderr.count("\n") == 1 and p.stderr.startswith("tokenize: cut.parquet: ") or \
        what == "flip" and p.returncode == 0
    bad += not good
    if not good:
        print(what, p.returncode, p.stderr)
step = 1 if os.environ.get("FULL") else 7 if os.environ.get("MORE") else 41
for n in range(0, len(whole), step):
    run(whole[:n], "cut")
for i in range(0, len(whole), step):
    run(whole[:i] + bytes([whole[i] ^ 0x41]) + whole[i + 1:], "flip")
print("bad", bad)
P
same "cut at every length, and bytes that are wrong" "bad 0" "$(cat cut.out)"
mkdir q
cp d.parquet q/a.parquet
head -c 20000 d.parquet >q/b.parquet
cp d.parquet q/c.parquet
tokenize -t bytes --on-error skip --stats s.json -o q.tks q 2>err
check "--on-error skip goes on behind a file that was cut" grep -q 'truncated-source 1' err
same "with the other two" "$(($(inspect --json got.tks | "$PYTHON" -c 'import json,sys; print(json.load(sys.stdin)["documents"])') * 2))" "$(json s.json 'd["documents"]["out"]')"
# a row group in the middle is damaged: what is before it and the other row groups are kept
"$PYTHON" -c 'b = bytearray(open("d.parquet", "rb").read()); n = len(b) // 2
b[n:n + 64] = bytes(64); open("e.parquet", "wb").write(b)'
tokenize -t bytes --on-error skip -T 1 --stats s.json -o e1.tks e.parquet 2>err
check "a damaged row group is named" grep -q 'e.parquet: row group [1-9][0-9]*: damaged' err
tokenize -t bytes --on-error skip -T 4 -o e4.tks e.parquet 2>err
same "the records are the same for any -T" "$(sha e1.tks)" "$(sha e4.tks)"
n=$(inspect --json e1.tks | "$PYTHON" -c 'import json,sys; print(json.load(sys.stdin)["documents"])')
all=$(inspect --json got.tks | "$PYTHON" -c 'import json,sys; print(json.load(sys.stdin)["documents"])')
check "and all but those of a row group" test "$n" -ge $((all - 31)) -a "$n" -lt "$all"
same "one is counted" '{"damaged-source": 1}' "$(json s.json '{k: v for k, v in d["documents"]["dropped"].items() if k != "empty"}')"
: >parts.tks
for i in 0 1 2 3; do
    tokenize -t bytes --on-error skip --part $i/4 -f -o part.tks e.parquet 2>err.$i
    cat part.tks >>parts.tks
done
same "in parts too" "$(inspect --records e1.tks | sha)" "$(inspect --records parts.tks | sha)"
same "  where one part warns" 1 "$(cat err.[0-3] | grep -c 'e.parquet: row group' || :)"
: >parts.tks
for i in 0 1; do
    tokenize -t bytes --on-error skip --part $i/2 -f -o part.tks q/b.parquet 2>err.$i
    cat part.tks >>parts.tks
done
same "a file without its footer is one warning in all" 1 "$(cat err.[01] | grep -c "going on after it" || :)"

# Spans, as lists of lists and as structs: the masks are those of JSONL.
"$PYTHON" -c 'import json, random
r = random.Random(6)
for i in range(900 if __import__("os").environ.get("MORE") else 300):
    text = "".join(r.choice("ab c\u00e9\u65e5") for _ in range(r.choice([0, 1, 7, 40, 3000])))
    spans = [sorted(r.randrange(len(text) + 1) for _ in range(2)) for _ in range(r.choice([0, 1, 3, 700 if i % 100 == 0 else 5]))]
    print(json.dumps({"text": text, "id": "r%d" % i, "spans": spans}))
print(json.dumps({"text": "x" * 200000, "id": "long", "spans": [[5, 90000], [199999, 200000]]}))' >m.jsonl
masks() { inspect --records "$1" | "$PYTHON" -c 'import json, sys
for line in sys.stdin:
    r = json.loads(line)
    print(r["segments"][0]["id"], r["tokens"], r["mask"])'; }
S="-t bytes --id-field id --spans-field spans"
# shellcheck disable=SC2086
tokenize $S -o want.tks m.jsonl
for how in "" ${MORE:+"--structs" "--rows 100000 --pages 7 --gzip"} "--structs --rows 50 --pages 3"; do
    # shellcheck disable=SC2086
    parquet m.parquet $how <m.jsonl
    # shellcheck disable=SC2086
    tokenize $S -T 2 -o got.tks m.parquet
    same "spans: ${how:-lists}" "$(masks want.tks | sha)" "$(masks got.tks | sha)"
done
n=0
while IFS='|' read -r spans why; do
    n=$((n + 1))
    printf '{"text": "abc", "spans": [[0, 1]]}\n{"text": "abc", "spans": %s}\n{"text": "abc", "spans": [[1, 2]]}\n' "$spans" >b.jsonl
    for how in "" --structs; do
        # shellcheck disable=SC2086
        parquet b.parquet $how <b.jsonl 2>err || continue # not a list of pairs
        status "bad spans $n $how" 1 tokenize -q -t bytes --spans-field spans -o x.tks b.parquet
        check "bad spans $n $how: the message" grep -qF "tokenize: b.parquet: row 1: \"spans\" is $why" err
        tokenize -q -t bytes --spans-field spans --on-error skip -o x.tks b.parquet
        same "bad spans $n $how: the others" 2 "$(inspect --json x.tks | json /dev/stdin 'd["documents"]')"
    done
done <<'J'
[[2, 1]]|not [[begin, end], ...]
[[0, 4]]|not [[begin, end], ...]
[[-1, 1]]|not [[begin, end], ...]
[[null, 1]]|not [[begin, end], ...]
[[1]]|not [[begin, end], ...]
[[1], [0, 1]]|not [[begin, end], ...]
[[0, 1], []]|not [[begin, end], ...]
[[0, 1, 2]]|not [[begin, end], ...]
null|null; name another field with --spans-field
J
printf '{"text": "abc", "spans": 7}\n' | parquet b.parquet
status "a column of numbers" 1 tokenize -q -t bytes --spans-field spans -o x.tks b.parquet
check "is no column of spans" grep -q 'b.parquet: column "spans" is neither lists of \[begin, end\] nor of structs' err
status "a column that is missing" 1 tokenize -q -t bytes --spans-field no -o x.tks b.parquet
check "is named" grep -q 'b.parquet: no column "no"; name columns with .*--spans-field' err

# Rows without a byte are not decoded ahead without end: what is ahead is a share of -M, not a row group.
if [ -n "$FULL" ]; then
    "$PYTHON" -c 'print("{\"text\": \"\"}\n" * 1800000, end="")' | parquet empty.parquet --rows 600000 --pages 30000
    peak() {
        tokenize -t bytes -T "$1" -M 128M --stats s.json -o x.tks empty.parquet
        json s.json 'd["peak_rss_bytes"] >> 20'
    }
    one=$(peak 1) three=$(peak 3)
    check "rows of empty texts: $three MiB with three threads, $one with one" test "$three" -lt $((one + 40))
fi
