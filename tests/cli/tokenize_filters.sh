# shellcheck shell=bash disable=SC2154
# tokenize_filters.sh - documents that filters leave out: --where against Python, in all formats and ways to read them, its
# errors, and the account.

have tokenize inspect || return 0

# Records with fields of all types, some of them missing; every twentieth has a text beyond a MiB, which another parser
# reads, and every third has an object, which a third one reads.
"$PYTHON" - <<'P'
import json, random
rng = random.Random(7)
with open("c.jsonl", "w") as f:
    for i in range(300):
        r = {"text": " ".join(rng.choice(["alpha", "beta", "caf\u00e9", "\u4e2d\u6587", "a\"b\\c\n"]) for _ in range(rng.randrange(1, 30))), "id": i}
        for k, v in (("lang", rng.choice(["en", "de", "zh", None])), ("score", rng.choice([0, 1.5, 2, 2.5, -3e2])),
                     ("ok", rng.choice([True, False])), ("url", rng.choice(["http://a.example/x", "https://b.example/", ""]))):
            if rng.random() < 0.9:
                r[k] = v
        if i % 3 == 0:
            r["m"] = {"k": rng.randrange(5), "s": {"t": rng.choice(["x", "y"])}}
        if i % 20 == 0:
            r["pad"] = "x" * 1100000
        items = list(r.items())
        rng.shuffle(items)
        f.write(json.dumps(dict(items), ensure_ascii=rng.random() < 0.5) + "\n")
P
cat >want.py <<'P'
import json, re, sys
class Record(dict):
    def __getitem__(self, k):
        v = self
        for part in k.split("."):
            v = v.get(part) if isinstance(v, dict) else None
        return v
def matches(s, p): return re.search(p, s) is not None
def startswith(s, p): return s.startswith(p)
for line in open("c.jsonl"):
    g = Record(json.loads(line))
    if eval(sys.argv[1], {"r": g, "len": len, "matches": matches, "startswith": startswith}):
        print(g["id"])
P
kept() { inspect --records "$1" | "$PYTHON" -c 'import json, sys
for line in sys.stdin:
    print(json.loads(line)["segments"][0]["id"])'; }
n=0
while IFS='%' read -r expr want; do
    n=$((n + 1))
    "$PYTHON" want.py "$want" >want
    tokenize -q -t bytes --id-field id --where "$expr" --stats s.json -o x.tks c.jsonl
    same "$expr" "$(cat want)" "$(kept x.tks)"
    same "  the account have the others" "300 $((300 - $(wc -l <want)))" \
        "$(json s.json 'str(d["documents"]["in"]) + " " + str(d["documents"]["dropped"].get("where", 0))')"
done <<'W'
lang == "en"%r["lang"] == "en"
lang in ["en", "zh"] and score != null and score >= 1.5%r["lang"] in ["en", "zh"] and r["score"] is not None and r["score"] >= 1.5
lang not in ['en', null] or ok == true%r["lang"] not in ["en", None] or r["ok"] is True
not (score == 2 or score == null) and len(text) > 60%not (r["score"] == 2 or r["score"] is None) and len(r["text"]) > 60
url != null and startswith(url, "https:")%r["url"] is not None and startswith(r["url"], "https:")
text matches 'caf\x{e9} (alpha|beta)'%matches(r["text"], "caf\u00e9 (alpha|beta)")
m.k != null and (m.k >= 3 and m.s.t == "x" or m.k == 0)%r["m.k"] is not None and (r["m.k"] >= 3 and r["m.s.t"] == "x" or r["m.k"] == 0)
m.k != null and m.k < 2%r["m.k"] is not None and r["m.k"] < 2
text > "b" and text <= "caf"%r["text"].encode() > b"b" and r["text"].encode() <= b"caf"
id in [3, 17, 299] or id < 2%r["id"] in [3, 17, 299] or r["id"] < 2
ok != null and ok and pad == null%r["ok"] is True and r["pad"] is None
W
same "all of them ran" 11 "$n"

# The same bytes for any number of threads, any memory, and in parts; identities are those of the whole.
where='lang in ["en", "zh"] and score != null and score >= 1.5'
tokenize -q -t bytes --id-field id -o all.tks c.jsonl
tokenize -q -t bytes --id-field id --where "$where" --stats s.json -o w.tks c.jsonl
for o in "-T 1" "-T 3 -M 32M"; do
    # shellcheck disable=SC2086 # words
    tokenize -q -t bytes --id-field id --where "$where" $o -o v.tks c.jsonl
    same "$o" "$(sha w.tks)" "$(sha v.tks)"
done
for i in 0 1 2; do
    tokenize -q -t bytes --id-field id --where "$where" --part $i/3 --stats "s$i.json" -o "p$i.tks" c.jsonl
done
cat p0.tks p1.tks p2.tks >parts.tks
same "parts" "$(inspect --json w.tks | "$PYTHON" -c 'import json,sys; print(json.load(sys.stdin)["trace_checksum"])')" \
    "$(inspect --json parts.tks | "$PYTHON" -c 'import json,sys; print(json.load(sys.stdin)["trace_checksum"])')"
same "the reports of parts add up" "$(json s.json 'd["documents"]["dropped"]["where"]')" \
    "$(inspect --merge-stats s0.json s1.json s2.json | "$PYTHON" -c 'import json,sys; print(json.load(sys.stdin)["programs"][0]["documents"]["dropped"]["where"])')"
inspect --records all.tks >all.txt
inspect --records w.tks >w.txt
same "documents keep source, number and tokens" ok "$("$PYTHON" -c 'import json
key = lambda r: json.dumps([r["segments"], r["tokens"]])
all = {key(json.loads(l)) for l in open("all.txt")}
print("ok" if all >= {key(json.loads(l)) for l in open("w.txt")} else "no")')"
inspect --json w.tks >w.json
check "the stream says how it was made" grep -q -e '--where' w.json

# --rejects has the records, with the reason.
status "--rejects" 0 tokenize -t bytes --where "$where" --rejects r.jsonl --stats s.json -o x.tks c.jsonl
same "  has what was left out" ok "$("$PYTHON" -c 'import base64, json
lines = {json.loads(l)["id"]: l.rstrip("\n").encode() for l in open("c.jsonl")}
rows = [json.loads(l) for l in open("r.jsonl")]
kept = json.load(open("s.json"))["documents"]["out"]
print("ok" if len(rows) == 300 - kept and all(r["reason"] == "where" and base64.b64decode(r["raw"]) in lines.values() for r in rows) else "no")')"
empty "  which is no warning" "$(told err)"
same "  nor a rejected record" "0 $(json s.json 'd["documents"]["dropped"]["where"]')" "$(json s.json 'str(d["rejected"]) + " " + str(d["filtered"])')"

# Lists of ids and URLs, against sets in Python.
seq 0 7 400 >ids
printf '%s\n' '# hosts' a.example 'https://c.example/p?q=1' '' >urls
"$PYTHON" - <<'P'
import json
urls = ["http://a.example/x", "https://www.A.example:443/", "https://b.example/", "http://c.example/p?q=1#f", "http://c.example/p", None, "http://nota.example/"]
with open("u.jsonl", "w") as f:
    for i in range(300):
        f.write(json.dumps({"text": "t%d" % i, "id": i, "page": {"url": urls[i % 7]}}) + "\n")
ids = {int(l) for l in open("ids")}
keep = {"keep": lambda i: i in ids, "drop": lambda i: i not in ids, "urls": lambda i: i % 7 not in (0, 1, 3),
        "all": lambda i: i not in ids and i % 7 not in (0, 1, 3) and i > 9}
for name, good in keep.items():
    open("want." + name, "w").writelines("%d\n" % i for i in range(300) if good(i))
P
lists() { # NAME OPTION...
    name=$1
    shift
    tokenize -q -t bytes --id-field id "$@" --stats s.json -o x.tks u.jsonl
    same "$name" "$(cat "want.$name")" "$(kept x.tks)"
}
lists keep --ids-keep ids
lists drop --ids-drop ids
lists urls --urls-drop urls --url-field page.url
lists all --ids-drop ids --urls-drop urls --url-field page.url --where 'id > 9'
same "  each counts what it leaves out first" '{"ids-drop": 43, "urls-drop": 86, "where": 5}' "$(json s.json 'json.dumps(d["documents"]["dropped"], sort_keys=True)')"
cp urls other-name
sort -r ids >sorted
tokenize -q -t bytes --id-field id --ids-drop ids --urls-drop urls --url-field page.url -o one.tks u.jsonl
tokenize -q -t bytes --id-field id --ids-drop sorted --urls-drop other-name --url-field page.url -o two.tks u.jsonl
same "only what a list has matters, not its name or order" "$(sha one.tks)" "$(sha two.tks)"
part() { tokenize -t bytes --id-field id --ids-drop ids --urls-drop other-name --url-field page.url --part 0/2 -o part.tks "$@" u.jsonl; }
part -q
check "a part's manifest has the lists, by their contents" grep -qE -- '"--ids-drop=[0-9a-f]{32}", "--urls-drop=[0-9a-f]{32}"' part.tks.manifest.json
part -v 2>err
check "  with which the part is not made again" grep -q 'part.tks: is there already' err
echo b.example >>other-name
status "  with another list it is refused" 1 part
check "    by the option's name" grep -q 'part.tks: was made with other contents of the file of --urls-drop; remove it or use -f' err
status "  or made with -f" 0 part -f
status "ids without a field" 2 tokenize -t bytes --ids-keep ids -o x.tks u.jsonl
same "  says so" "tokenize: --ids-keep: needs --id-field, the field with the records' ids" "$(cat err)"
status "--url-field alone" 2 tokenize -t bytes --url-field u -o x.tks u.jsonl
status "a list that is not there" 1 tokenize -t bytes --urls-drop none -o x.tks u.jsonl
check "  in one line" one_line err
status "a URL that is a number" 1 tokenize -t bytes --urls-drop ids --url-field id -o x.tks u.jsonl
check "  a field that is no string is told by line" grep -q '^tokenize: u.jsonl:1: .*field "id" is not a string, so not a URL' err
printf 'a\nhttp:///x\n' >bad
status "a line without a host" 1 tokenize -t bytes --urls-drop bad -o x.tks u.jsonl
check "  is told by file and line" grep -q "^tokenize: bad: line 2: 'http:///x' has no host" err
status "no record has the URL's field" 1 tokenize -t bytes --urls-drop urls -o no.tks u.jsonl
same "  is an error" 'tokenize: --urls-drop: none of 300 documents has a field "url"; name theirs with --url-field, or leave --urls-drop out' "$(cat err)"
status "  which --url-field names" 1 tokenize -t bytes --urls-drop urls --url-field page.urll -o no.tks u.jsonl
same "  too" 'tokenize: --url-field: none of 300 documents has a field "page.urll"; name theirs with --url-field, or leave --urls-drop out' "$(cat err)"
check "  and nothing is written" test ! -e no.tks
seq 1 1200000 >many
status "a list beyond -M" 1 tokenize -t bytes -M 32M --id-field id --ids-drop many -o x.tks u.jsonl
check "  is told in one line" one_line err
seq 1 300000 >less
status "a list in half of a small -M would leave the rest too little" 1 tokenize -t bytes -M 32M --id-field id --ids-drop less -o x.tks u.jsonl
status "  a short list fits" 0 tokenize -t bytes -M 32M --id-field id --ids-drop ids -o x.tks u.jsonl
status "  from 64M on half of -M is theirs" 0 tokenize -t bytes -M 64M --id-field id --ids-drop less -o x.tks u.jsonl
status "  more memory has room for the long one" 0 tokenize -t bytes -M 128M --id-field id --ids-drop many -o x.tks u.jsonl
status "a text has no ids" 1 tokenize -t bytes --id-field id --ids-drop ids -o x.tks want.py

# Errors: of the expression, by column; of a record, by its line.
status "a bad expression" 2 tokenize -t bytes --where 'lang = "en"' -o x.tks c.jsonl
same "  is told by its column" "tokenize: --where: column 6: = is written ==" "$(cat err)"
printf '%s\n' '{"text":"a","s":1}' '{"text":"b","s":"x"}' '{"text":"c"}' '{"text":"d","s":3}' '{"text":"e","s":null}' >t.jsonl
status "a type that does not fit" 1 tokenize -t bytes --where 's > 1' -o x.tks t.jsonl
check "  is told by line and column" grep -q '^tokenize: t.jsonl:2: .*column 1: "s" is a string, and < <= > >= compare it with a number' err
check "  in one line" one_line err
status "--on-error skip" 0 tokenize -t bytes --where 's > 1' --on-error skip --stats s.json -o x.tks t.jsonl
same "  counts it" '{"unfit-field": 3, "where": 1} 3 1' "$(json s.json 'json.dumps(d["documents"]["dropped"], sort_keys=True) + " %d %d" % (d["rejected"], d["documents"]["out"])')"
printf '{"text":"%s"}\n' "$(printf 'a%.0s' $(seq 40))!" >evil.jsonl
for x in a*[bc] '^(?:a(?=a*)|b)+$'; do
    printf '{"text":"%s"}\n' "$(printf '%1400s' '' | tr ' ' a)" >under.jsonl
    printf '{"text":"%s"}\n' "$(printf '%1500s' '' | tr ' ' a)" >over.jsonl
    status "$x: a text just under the limit of steps" 0 tokenize -t bytes --where "text matches '$x' or true" -o x.tks under.jsonl
    status "  and over it" 1 tokenize -t bytes --where "text matches '$x' or true" -o x.tks over.jsonl
    check "  which is said" grep -q 'over.jsonl:1: .*column 6: matches gave up: match limit exceeded' err
done
"$PYTHON" -c 'print("{\"text\":\"%s\"}" % ("a" * 3000000))' >long.jsonl
check "megabytes of it end at once" timeout 5 bash -c '! tokenize -q -t bytes --where "text matches '"'a*[bc]'"'" -o x.tks long.jsonl 2>err'
status "a repeat that counts far" 2 tokenize -t bytes --where "text matches 'ba{1001}'" -o x.tks over.jsonl
check "  is refused" grep -qx "tokenize: --where: column 14: character 3 of the pattern: a repeat of more than 1000 times; expected at most 1000" err
status "a pattern without end" 1 tokenize -t bytes --where "text matches '(a+)+(a+)+\$'" -o x.tks evil.jsonl
check "  is told by line" grep -q '^tokenize: evil.jsonl:1: .*column 6: matches gave up: match limit exceeded' err
printf '{"text":"a","s":1,}\n' >bad.jsonl
status "a record is checked before the filter" 1 tokenize -t bytes --where 's == 2' -o x.tks bad.jsonl
echo text >t.txt
status "a text has no fields" 1 tokenize -t bytes --where 's == 2' -o x.tks t.txt
same "  says so" 'tokenize: t.txt: is text, which has no fields that a filter could look at' "$(cat err)"
status "a field that no record has" 1 tokenize -t bytes --where 'langg not in ["en"]' -o no.tks c.jsonl
same "  is an error" 'tokenize: --where: none of 300 documents has a field "langg"; name one that they have, or compare it with null too if it may be missing' "$(cat err)"
check "  and nothing is written" test ! -e no.tks
for expr in 'langg == null' 'null != langg or true' 'langg in ["en", null]' 'not (langg not in ["de", null])'; do
    status "  but not in $expr" 0 tokenize -t bytes --where "$expr" -o x.tks c.jsonl
    same "    which is a warning" 'tokenize: --where: none of 300 documents has a field "langg"' "$(told err)"
done
status "  null for another field is not meant" 1 tokenize -t bytes --where 'langg == "x" or lang == null' -o no.tks c.jsonl
status "  a filter that leaves all out" 0 tokenize -t bytes --where 'langg != null and langg > 2' -o x.tks c.jsonl
same "    says so" 'tokenize: --where: none of 300 documents has a field "langg"
tokenize: the filters left all 300 documents out' "$(told err)"
"$PYTHON" -c 'for i in range(40): print("{\"text\": \"t%d\"%s}" % (i, ", \"rare\": 1" if i == 7 else ""))' >rare.jsonl
status "a field that few records have" 0 tokenize -t bytes --where 'rare == 1' -o x.tks rare.jsonl
same "  is a warning with the number" 'tokenize: --where: 1 of 40 documents have a field "rare"' "$(told err)"
status "  unless it may be missing" 0 tokenize -t bytes --where 'rare == 1 or rare == null' -o x.tks rare.jsonl
empty "    without a word" "$(told err)"

# A part warns, as others may have the field; the merged report is the error.
for i in 0 1 2; do
    status "part $i of 3 without the field" 0 tokenize -t bytes --where 'langg == "en"' --part $i/3 --stats "s$i.json" -o "s$i.tks" c.jsonl
    check "  warns" grep -q '^tokenize: --where: none of [0-9]* documents has a field "langg"$' err
    tokenize -q -t bytes --where 'rare == 1' --part $i/3 --stats "r$i.json" -o "r$i.tks" rare.jsonl
    tokenize -q -t bytes --where 'rare == 2' --part $i/3 --stats "a$i.json" -o "a$i.tks" rare.jsonl
done
status "merged" 1 inspect --merge-stats s0.json s1.json s2.json
same "  is the error" 'inspect: tokenize: --where langg: none of 300 documents has a value there' "$(cat err)"
status "  one part has it" 0 inspect --merge-stats r0.json r1.json r2.json
status "  all are left out" 1 inspect --merge-stats a0.json a1.json a2.json
same "    says so" 'inspect: tokenize: the filters left all 40 documents out' "$(cat err)"

# What lies behind the end of the stream is not counted, so it does not depend on threads and memory.
status "with --max-tokens" 0 tokenize -t bytes --where "$where" --max-tokens 1000 --rejects r.jsonl -o x.tks c.jsonl
tokenize -q -t bytes --where "$where" --max-tokens 2000 -T 1 --stats m1.json -o x.tks c.jsonl
tokenize -q -t bytes --where "$where" --max-tokens 2000 -T 3 -M 32M --stats m3.json -o x.tks c.jsonl
same "  it counts the fields of the documents before" "$(json m1.json 'd["fields"]')" "$(json m3.json 'd["fields"]')"
same "    which are not all" true "$(json m1.json '0 < d["fields"][-1]["of"] < 300')"

# Parquet has the same rows and answers.
"$PYTHON" -c 'import json
for l in open("c.jsonl"):
    r = json.loads(l)
    r.pop("pad", None)
    s = r.get("score")
    print(json.dumps(dict(r, m=r.get("m", {"k": None, "s": {"t": None}}), score=None if s is None else float(s))))' >rows.jsonl
"$PYTHON" "$top/tests/cli/make_parquet.py" rows.parquet --rows 30 --pages 7 <rows.jsonl
if ! tokenize -q -t bytes -o x.tks rows.parquet 2>err && grep -q 'has no Parquet' err; then
    skip "Parquet: this build has none (make arrow)"
    return 0
fi
while read -r expr; do
    tokenize -q -t bytes --id-field id --where "$expr" -o want.tks rows.jsonl
    kept want.tks >want
    tokenize -q -t bytes --id-field id --where "$expr" -o x.tks rows.parquet
    same "Parquet: $expr" "$(cat want)" "$(kept x.tks)"
done <<'W'
lang in ["en", "zh"] and score != null and score >= 1.5
ok != null and ok and text matches 'caf\x{e9}'
m.k != null and m.k >= 2 and m.s.t == "x"
url == "" or id in [0, 299] or nothing != null and nothing == 3
W
status "Parquet: a type that does not fit" 1 tokenize -t bytes --where 'lang > 3' -o x.tks rows.parquet
check "  is told by row" grep -q '^tokenize: rows.parquet: row [0-9]*: column 1: "lang" is ' err
