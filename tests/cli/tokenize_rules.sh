# shellcheck shell=bash disable=SC2154
# tokenize_rules.sh - tokenize --rules and --c4-lines: what is left out by which rule, in all formats and ways to read, the account, and
# errors. tests/unit/test_rules.c has each threshold, tests/judges/readers_rules.py datatrove's decisions.

have tokenize inspect || return 0

# Good texts, and texts that fail by one rule each, by what it says in their id; the texts of a class differ.
"$PYTHON" - <<'P'
import json, random
rng = random.Random(5)
words = "the quick word of some brown and plain text that have been with lazy dogs over seas under hills near old river towns".split()
def sentence(n=12):
    row = [rng.choice(words) for _ in range(n)]
    return " ".join(w + rng.choice(["", "s", "ly", "ed"]) if len(w) > 4 else w for w in row).capitalize() + "."
def good():
    return "\n".join(" ".join(sentence() for _ in range(3)) for _ in range(4))
made = {
    "good": good,
    "gopher-quality.min_doc_words": lambda: "the word of " + sentence(9),
    "gopher-quality.max_avg_word_length": lambda: " ".join("thewordof" * 2 + str(rng.random()) for _ in range(90)),
    "gopher-quality.max_hash_word_ratio": lambda: good().replace(" ", " # ", 40),
    "gopher-quality.max_bullet_lines_ratio": lambda: "- " + good().replace("\n", "\n- "),
    "gopher-quality.max_ellipsis_lines_ratio": lambda: good().replace(".\n", "...\n"),
    "gopher-quality.min_stop_words": lambda: " ".join(rng.choice("und oder aber nicht".split()) for _ in range(90)),
    "gopher-repetition.dup_line_char_frac": lambda: "\n".join([sentence(30)] * 2 + [sentence() for _ in range(4)]),
    "gopher-repetition.top_2_gram": lambda: " ".join(sentence(2)[:-1] + " of the" for _ in range(30)) + ".",
    "c4.curly_bracket": lambda: good() + "\nif the word of {x}.",
    "c4.lorem_ipsum": lambda: good() + "\nLorem Ipsum dolor sit.",
    "fineweb.line_punct_ratio": lambda: "\n".join([" ".join(sentence() for _ in range(5))] + [sentence()[:-1] for _ in range(9)]),
}
with open("c.jsonl", "w") as f:
    for i in range(240):
        name = list(made)[i % len(made)]
        r = {"id": "%s %d" % (name, i), "text": made[name](), "n": i}
        if i % 5 == 0:
            r["pad"] = {"x": "y" * (1100000 if i % 60 == 0 else 3)}
        f.write(json.dumps(r, ensure_ascii=rng.random() < 0.5) + "\n")
P
all=gopher-quality,gopher-repetition,c4,fineweb
kept() { inspect --records "$1" | "$PYTHON" -c 'import json, sys
for line in sys.stdin:
    print(json.loads(line)["segments"][0]["id"])'; }
dropped() { json "$1" 'json.dumps(d["documents"]["dropped"], sort_keys=True)'; }
status "all families" 0 tokenize -t bytes --id-field id --rules $all --rejects r.jsonl --stats s.json -o x.tks c.jsonl
empty "  say nothing" "$(told err)"
same "  --rejects has the rule of each document" ok "$("$PYTHON" -c 'import json
rows = [json.loads(l) for l in open("r.jsonl")]
of = {json.loads(l)["text"]: json.loads(l)["id"].split()[0] for l in open("c.jsonl")}
short = [r for r in rows if "text" in r]
bad = [r for r in short if json.loads(r["text"])["id"].split()[0] != r["reason"]]
print("ok" if not bad and len(short) > 180 else bad[:1])')"
same "  the account too" ok "$(json s.json '"ok" if len(d["documents"]["dropped"]) >= 9 and all(d["documents"]["dropped"].get(k) == 20 for k in
    ("gopher-quality.min_doc_words", "gopher-repetition.dup_line_char_frac", "c4.curly_bracket", "fineweb.line_punct_ratio")) else d["documents"]')"
same "  in all" "$(json s.json 'd["filtered"]')" "$(wc -l <r.jsonl)"
same "  the good ones are left" "$(seq 0 12 239 | sed 's/^/good /')" "$(kept x.tks)"
tokenize -q -t bytes --id-field id -o whole.tks c.jsonl
inspect --records whole.tks >whole.txt
inspect --records x.tks >x.txt
same "  and keep source, number and tokens" ok "$("$PYTHON" -c 'import json
key = lambda r: json.dumps([r["segments"], r["tokens"]])
all = {key(json.loads(l)) for l in open("whole.txt")}
print("ok" if all >= {key(json.loads(l)) for l in open("x.txt")} else "no")')"
inspect --json x.tks >x.json
check "  the stream says how it was made" grep -q -e "--rules.*$all" x.json
for o in "-T 1" "-T 3 -M 64M" "--rules gopher-repetition,c4 --rules fineweb"; do
    rules=$all
    [ "${o#--}" = "$o" ] || rules=gopher-quality
    # shellcheck disable=SC2086 # words
    tokenize -q -t bytes --id-field id --rules $rules $o --no-provenance -o v.tks c.jsonl
    tokenize -q -t bytes --id-field id --rules $all --no-provenance -o w.tks c.jsonl
    same "the same bytes with $o" "$(sha w.tks)" "$(sha v.tks)"
done
for i in 0 1 2; do
    tokenize -q -t bytes --id-field id --rules $all --part $i/3 --stats "s$i.json" -o "p$i.tks" c.jsonl
done
same "the reports of parts add up" "$(dropped s.json)" "$(inspect --merge-stats s0.json s1.json s2.json |
    "$PYTHON" -c 'import json, sys; print(json.dumps(json.load(sys.stdin)["programs"][0]["documents"]["dropped"], sort_keys=True))')"
tokenize -q -t bytes --rules fineweb,gopher-quality --stats s.json -o x.tks c.jsonl
check "the first family in the order given counts" [ "$(json s.json 'd["documents"]["dropped"]["fineweb.line_punct_ratio"]')" -gt 20 ]

# Files of thresholds.
tokenize --rules help >defaults
tokenize -q -t bytes --id-field id --rules defaults --no-provenance -o v.tks c.jsonl
same "the printed defaults are a file, and the defaults" "$(sha w.tks)" "$(sha v.tks)"
grep '=' defaults >list
empty "  which the manual has" "$(while read -r line; do
    grep -qxF ".It Li $line" "$top/man/tokenize.1" || echo "$line"
done <list)"
printf '# mine\ngopher-quality.min_doc_words = 5\ngopher-quality.min_stop_words = off\n' >mine
tokenize -q -t bytes --id-field id --rules mine --stats s.json -o x.tks c.jsonl
same "thresholds of one's own" 0 "$(json s.json 'd["documents"]["dropped"].get("gopher-quality.min_doc_words", 0) + d["documents"]["dropped"].get("gopher-quality.min_stop_words", 0)')"
inspect --json x.tks >x.json
check "  are in the provenance, not their file" grep -q 'gopher-quality gopher-quality.min_doc_words=5 gopher-quality.min_stop_words=off' x.json
tokenize -t bytes --rules mine --part 0/2 -q -o part.tks c.jsonl
check "  a part's manifest has the thresholds" grep -q 'rules=gopher-quality gopher-quality.min_doc_words=5' part.tks.manifest.json
cp mine again
tokenize -v -t bytes --rules again --part 0/2 -o part.tks c.jsonl 2>err
check "  a part that is made is not made again, whatever the file's name" grep -q 'part.tks: is there already' err
echo 'c4' >>mine
status "  with other thresholds it is refused" 1 tokenize -t bytes --rules mine --part 0/2 -o part.tks c.jsonl

# Errors.
refused() { # RULES MESSAGE STATUS
    status "--rules $1" "$3" tokenize -t bytes --rules "$1" -o x.tks c.jsonl
    same "  says so" "tokenize: --rules: $2" "$(cat err)"
}
refused gopher "'gopher' is no file and no family of rules (gopher-quality, gopher-repetition, c4, fineweb)" 2
refused c4,c4 "c4 comes twice" 2
printf 'c4\nc4.min_words_per_line = few\n' >bad
refused bad "bad: line 2: c4.min_words_per_line: 'few' is not a number from 0 on, or off" 1
refused c4,bad "bad: line 2: c4.min_words_per_line: 'few' is not a number from 0 on, or off" 1
printf 'c4.min_words = 3\n' >bad
refused bad "bad: line 1: 'c4.min_words' is no threshold" 1
"$PYTHON" -c 'print("{\"text\": \"" + "a b c d e f g h i j " * 100000 + "\"}")' >long.jsonl
status "a text whose n-grams do not fit" 1 tokenize -t bytes -M 64M --rules gopher-repetition -o x.tks long.jsonl
check "  is told by file and document" grep -q '^tokenize: long.jsonl: document 0: a text of 2000000 bytes: its lines or n-grams do not fit in memory; .*-M' err
status "  more memory has room" 0 tokenize -t bytes -T 1 -M 2G --rules gopher-repetition -o x.tks long.jsonl

# Texts have no fields, but rules; a text larger than a block comes whole.
mkdir texts
"$PYTHON" - <<'P'
import json
for l in open("c.jsonl"):
    r = json.loads(l)
    open("texts/%03d.txt" % r["n"], "w").write(r["text"])
t = "\n".join("This is the line %d of a text that has %d words, with an end." % (i, i * 7919 % 10007) for i in range(60000))
open("long.txt", "w").write(t)
open("bad.txt", "w").write(t + "\n{ of the end.")
P
tokenize -q -t bytes --rules $all --stats t.json -o x.tks texts
tokenize -q -t bytes --rules $all --stats s.json -o y.tks c.jsonl
same "files of text are judged alike" "$(dropped s.json)" "$(dropped t.json)"
tokenize -q -t builtin --rules c4 --stats s.json -o x.tks long.txt bad.txt
same "a long text is judged whole" '{"c4.curly_bracket": 1} 1' "$(dropped s.json) $(json s.json 'd["documents"]["out"]')"

# --c4-lines edits.
"$PYTHON" - <<'P'
import json
rows = ["One two three.\nno mark at all\nFour five six!  \r\n\nWe use cookies a lot.\nSeven, eight nine?\nTen of these.[1]\nThat is enough.",
        "One two three.\nFour five six.\nSeven eight nine.\nTen and more.\nThat is enough.",
        "Too short.", "{ is code.\nOne of these.", "A good start.\nLorem ipsum dolor sit."]
with open("l.jsonl", "w") as f:
    for i, t in enumerate(rows):
        f.write(json.dumps({"text": t, "id": i}) + "\n")
P
status "--c4-lines" 0 tokenize -t bytes --no-eos --id-field id --c4-lines --rejects r.jsonl --stats s.json -o x.tks l.jsonl
same "  leaves lines out" "One two three.
Four five six!
Seven, eight nine?
Ten of these.
That is enough." "$(inspect --records x.tks | "$PYTHON" -c 'import json, sys; print(bytes(json.loads(sys.stdin.readline())["tokens"]).decode())')"
same "  the account say how much" '{"documents": 1, "lines": 3, "bytes": 44}' "$(json s.json 'json.dumps(d["edited"])')"
same "  and what was dropped" '{"c4.curly_bracket": 1, "c4.lorem_ipsum": 1, "c4.min_num_sentences": 1} 2' "$(dropped s.json) $(json s.json 'd["documents"]["out"]')"
same "  --rejects has them as they were" 3 "$(wc -l <r.jsonl)"
inspect --json x.tks >x.json
check "  the stream says that it is edited" grep -q -e '--c4-lines' x.json
tokenize -q -t bytes --c4-lines --max-tokens 10 --stats s.json -o x.tks l.jsonl
same "  edits after the end are not counted" '{"documents": 0, "lines": 0, "bytes": 0}' "$(json s.json 'json.dumps(d["edited"])')"
printf 'c4.min_num_sentences = off\nc4.no_terminal_punct = off\n' >mine
tokenize -q -t bytes --rules mine --c4-lines --stats s.json -o x.tks l.jsonl
same "  by a file's thresholds" '{"c4.curly_bracket": 1, "c4.lorem_ipsum": 1, "empty": 1} {"documents": 2, "lines": 3, "bytes": 39}' "$(dropped s.json) $(json s.json 'json.dumps(d["edited"])')"
status "with spans" 2 tokenize -t bytes --c4-lines --spans-field s -o x.tks l.jsonl
same "  is refused by name" "tokenize: --c4-lines changes texts, so the ranges of --spans-field would not be theirs; leave one of them out" "$(cat err)"

# Parquet has the same rows.
"$PYTHON" -c 'import json
for l in open("c.jsonl"):
    r = json.loads(l)
    print(json.dumps({"text": r["text"], "id": r["id"]}))' >rows.jsonl
"$PYTHON" "$top/tests/cli/make_parquet.py" rows.parquet --rows 30 --pages 7 <rows.jsonl
if ! tokenize -q -t bytes -o x.tks rows.parquet 2>err && grep -q 'has no Parquet' err; then
    skip "Parquet: this build has none (make arrow)"
    return 0
fi
tokenize -q -t bytes --id-field id --rules $all --c4-lines --stats t.json -o x.tks rows.parquet
tokenize -q -t bytes --id-field id --rules $all --c4-lines --stats s.json -o y.tks rows.jsonl
same "Parquet: the same are left" "$(kept y.tks)" "$(kept x.tks)"
same "  and left out" "$(dropped s.json)" "$(dropped t.json)"
