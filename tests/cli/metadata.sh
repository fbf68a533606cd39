# shellcheck shell=bash disable=SC2154
# metadata.sh - fields that documents carry: from records through all programs, formats and stages, joined, dropped.
# check-more: longer

have inspect choose dedup decompose pack shuffle || return 0

cat >m.jsonl <<'J'
{"text":"hello world","lic":"mit","url":"http://a/1","q":0.5,"m":{"n":7}}
{"text":"two two two","lic":"apache","url":null,"q":3}
{"text":"3","lic":"mit","m":{"n":254}}
J
fields() { tokenize -q -t bytes --metadata lic,url=text,q=float,m.n=u8 "$@"; }
meta() { inspect --records "$@" | "$PYTHON" -c 'import json, sys
print(*[json.dumps(s.get("metadata"), sort_keys=True) for line in sys.stdin for s in json.loads(line)["segments"]], sep="\n")'; }
fields -o m.tks m.jsonl
same "the values of records" '{"lic": "mit", "m.n": 7, "q": 0.5, "url": "http://a/1"}
{"lic": "apache", "q": 3}
{"lic": "mit", "m.n": 254}' "$(meta m.tks)"
same "the header lists the fields" '[["lic", "name"], ["m.n", "u8"], ["q", "f64"], ["url", "text"]]' \
    "$(inspect --json m.tks | json /dev/stdin '[[f["name"], f["type"]] for f in d["metadata"]]')"
check "so does the summary" shell 'inspect m.tks | grep -cx "  metadata    lic (name), m.n (u8), q (f64), url (text)"'
check "--verify has their checksum" shell 'inspect --verify m.tks | grep -c ", of metadata [0-9a-f]\{32\}\$"'
check "the independent reader agrees" tokstream --check --cuts --need-all m.tks
tokstream --summary m.tks >k
same "and has the same checksum" "$(json k 'd["metadata_checksum"]')" "$(inspect --json m.tks | json /dev/stdin 'd["metadata_checksum"]')"
same "the records as it reads them" "$(tokstream m.tks | "$PYTHON" "$top/tests/cli/canonical.py")" \
    "$(inspect --records m.tks | "$PYTHON" "$top/tests/cli/canonical.py")"
tokenize -q -t bytes -o none.tks m.jsonl
fields --on-missing skip --stats s.json -o x.tks m.jsonl
same "--stats says how many have each" '[["lic", 3], ["m.n", 2], ["q", 2], ["url", 1]]' "$(json s.json '[[f["field"], f["have"]] for f in d["fields"] if f["option"] == "--metadata"]')"

# What does not fit, and what is no list of fields.
n=0
while IFS='|' read -r option record why; do
    n=$((n + 1))
    printf '%s\n' "$record" >bad.jsonl
    check "unfit $n: refused" shell '! tokenize -q -t bytes --metadata '"$option"' bad.jsonl -o y.tks 2>err'
    check "unfit $n: the message" grep -qF -- "$why" err
done <<'J'
x=u8|{"text":"a","x":255}|"x": expected an integer of 0 to 254, or a boolean, found 255
x=u8|{"text":"a","x":"1"}|"x": expected an integer of 0 to 254, or a boolean, found a string
x=int|{"text":"a","x":1.5}|"x": expected an integer of -2^63 + 1 to 2^63 - 1, found 1.5
x=int|{"text":"a","x":9223372036854775808}|found 9223372036854775808
x=int|{"text":"a","x":-9223372036854775808}|found -9223372036854775808
x=u64|{"text":"a","x":18446744073709551615}|found 18446744073709551615
x=u64|{"text":"a","x":-1}|"x": expected an integer of 0 to 2^64 - 2, found -1
x=f32|{"text":"a","x":1e39}|"x": expected a number that a float can hold
x|{"text":"a","x":[1]}|"x": expected a string of at most 65536 bytes without a NUL, or a number or boolean, found an array or object
x|{"text":"a","x":"a\u0000b"}|"x": expected a string of at most 65536 bytes without a NUL
x.y=text|{"text":"a","x":{"z":"1"}}|--metadata x.y: none of 1 document has a value there
x=word|{"text":"a"}|--metadata x=word: expected fields, with commas
x,|{"text":"a"}|--metadata x,: expected fields, with commas
x,y,x|{"text":"a"}|--metadata x,y,x: names 'x' twice
J
check "a record that does not fit is skipped" shell 'printf "{\"text\":\"a\",\"x\":1}\n{\"text\":\"b\",\"x\":[]}\n" | tokenize -q -t bytes --metadata x --on-error skip -o y.tks'
same "  the others stay" '{"x": "1"}' "$(meta y.tks)"
seq 65537 | sed 's/.*/{"text":"a","x":"v&"}/' >many.jsonl
status "too many names" 1 tokenize -q -t bytes --metadata x many.jsonl -o y.tks
check "  says what to give" grep -q "metadata 'x': fields of type name have more than 65536 values, .*--metadata x=text'" err
head -n 65536 many.jsonl >most.jsonl
check "so many are well" shell 'tokenize -q -t bytes --metadata x most.jsonl | inspect --verify >/dev/null'
check "as texts, all" shell 'tokenize -q -t bytes --metadata x=text many.jsonl | inspect --verify >/dev/null'

# Joined: the union by name.
tokenize -q -t bytes --source-prefix b --metadata lic=text m.jsonl -o other.tks
status "another type of the same name" 1 choose -q --length 1.. m.tks other.tks -o y.tks
check "  is named" grep -q "^choose: other.tks: the metadata field 'lic' has the type text here and name before; leave it out with --drop-metadata\$" err
tokenize -q -t bytes --source-prefix b --metadata lic,z=text <(sed 's/"q"/"z":"zed","q"/' m.jsonl) -o other.tks
choose -q --length 1.. none.tks m.tks other.tks -o both.tks
same "streams with and without fields" "$(printf 'null\nnull\nnull\n%s\n{"lic": "mit", "z": "zed"}\n{"lic": "apache", "z": "zed"}\n{"lic": "mit"}' "$(meta m.tks)")" "$(meta both.tks)"
check "the independent reader agrees" tokstream --check --cuts --need-all both.tks
cat none.tks m.tks >late.tks
status "a field that comes late in one file" 1 inspect --verify late.tks
check "  says so" grep -q "has the metadata field 'lic', and the streams before it do not; give this one first" err
check "the other way is well" shell 'cat m.tks none.tks | inspect -q --verify >/dev/null'

# Sixteen fields, of one program or of streams that are joined.
many_fields=$(seq -s , -f 'f%g=u8' 0 15)
echo "{\"text\":\"words\",\"z\":1,$(seq -s , -f '"f%g":1' 0 15)}" >wide.jsonl
tokenize -q -t bytes --metadata "$many_fields" wide.jsonl -o sixteen.tks
same "sixteen fields" 16 "$(inspect --json sixteen.tks | json /dev/stdin 'len(d["metadata"])')"
status "one more" 2 tokenize -t bytes --metadata "$many_fields,z=u8" wide.jsonl -o y.tks
check "  is named" grep -q "^tokenize: --metadata f0.*: the metadata field 'z' is one more than the 16 that a stream can have; name fewer with --metadata\$" err
tokenize -q -t bytes --metadata z=u8 wide.jsonl -o z.tks
status "one more by another stream" 1 dedup sixteen.tks z.tks -o y.tks
check "  is named" grep -q "^dedup: z.tks: the metadata field 'z' is one more than the 16 .*; leave some out with --drop-metadata\$" err
status "  unless some are dropped" 0 dedup -q --drop-metadata f3,f5 sixteen.tks z.tks -o y.tks
status "  or of another type" 0 choose -q --length 1.. --drop-metadata lic m.tks <(tokenize -q -t bytes --source-prefix b --metadata lic=text m.jsonl) -o y.tks

# Dropped.
choose -q --length 1.. --drop-metadata q,url --stats s.json m.tks -o less.tks
same "--drop-metadata" '{"lic": "mit", "m.n": 7}
{"lic": "apache"}
{"lic": "mit", "m.n": 254}' "$(meta less.tks)"
same "  counted" 3 "$(json s.json 'd["metadata_dropped"]')"
inspect --json less.tks >j
same "  in the provenance" "--length=1.. --drop-metadata=q,url" "$(json j 'd["provenance"][-1]["arguments"]')"
same "  all of them: no stream with metadata is left" "$(choose -q --length 1.. none.tks | inspect --json | json /dev/stdin '[d["trace_checksum"], d.get("metadata")]')" \
    "$(choose -q --length 1.. --drop-metadata lic,m.n,q,url m.tks | inspect --json | json /dev/stdin '[d["trace_checksum"], d.get("metadata")]')"
for p in dedup 'dedup --near' 'dedup --substring 50' 'dedup --ngrams' 'decompose --min 4 --max 16' 'pack --length 512' shuffle; do
    # shellcheck disable=SC2086 # words
    $p -q --drop-metadata q,url --stats s.json m.tks -o less.tks
    same "  by $p" "lic m.n, 3, True" "$(json s.json 'd["metadata_dropped"]' >n && inspect --json less.tks |
        json /dev/stdin '"%s, %s, %s" % (" ".join(m["name"] for m in d["metadata"]), open("n").read().strip(), d["provenance"][-1]["arguments"].endswith("--drop-metadata=q,url"))')"
done
status "  a field that is not there" 2 choose -q --length 1.. --drop-metadata nope m.tks -o y.tks
check "  is named" grep -q "^choose: --drop-metadata nope: no input has the metadata field 'nope'" err

# Chosen by them.
docs() { inspect --records "$@" | "$PYTHON" -c 'import json, sys
print(*[json.loads(line)["segments"][0]["document"] for line in sys.stdin])'; }
where() { choose -q --where "$1" "${2:-m.tks}" | docs; }
while IFS='|' read -r expr want; do same "--where $expr" "$want" "$(where "$expr")"; done <<'J'
lic == "mit"|0 129
q > 1|74
not (q > 1)|0
q == null or q > 1|74 129
m.n >= 7 and lic in ["mit"]|0 129
url matches "^http:" and length == 12|0
source == "m.jsonl" and domain == null and id == null and score == null|0 74 129
J
status "--where of a field that is not there" 1 choose -q --where 'nope == 1' m.tks -o y.tks
check "  is named" grep -q "^choose: --where: no input has the metadata field 'nope'" err
status "--where of another type" 1 choose -q --where 'lic > 1' m.tks -o y.tks
check "  names the document" grep -q '^choose: --where: m.jsonl: document 0: column 1: "lic" is a string' err
status "--where without an end" 2 choose -q --where 'lic ==' m.tks -o y.tks
decompose -q --min 4 --max 16 m.tks | pack -q -o packed.tks
decompose -q --min 32 --max 64 m.tks | pack -q -o several.tks
status "--where of a sequence with several documents" 1 choose -q --where 'lic == "mit"' several.tks -o y.tks
check "  says by what they differ" grep -q 'of another lic; read documents or pieces' err
same "  of pieces, all is well" "$(choose -q --where 'lic != null' packed.tks | inspect --json | json /dev/stdin 'd["sequences"]')" "$(inspect --json packed.tks | json /dev/stdin 'd["sequences"]')"
choose -q --where 'lic == "mit"' --stats s.json -o y.tks m.tks
same "  counted" '{"where": 1}' "$(json s.json 'd["documents"]["dropped"]')"

# Integers of 64 bits, which no double tells apart; by the parsers of flat records and of others.
whole='{"text":"a","i":9007199254740993,"u":18446744073709551614,"n":-9007199254740993}
{"text":"b","o":{},"i":9007199254740992,"u":18446744073709551613,"n":-9007199254740992}'
printf '%s\n' "$whole" >whole.jsonl
tokenize -q -t bytes --metadata i=int,u=u64,n whole.jsonl -o whole.tks
same "integers of 64 bits" '{"i": 9007199254740993, "n": "-9007199254740993", "u": 18446744073709551614}
{"i": 9007199254740992, "n": "-9007199254740992", "u": 18446744073709551613}' "$(meta whole.tks)"
while IFS='|' read -r expr want; do
    same "--where $expr" "$want" "$(where "$expr" whole.tks)"
    same "  of records" "$want" "$(tokenize -q -t bytes --where "${expr/\"-9007199254740993\"/-9007199254740993}" whole.jsonl | docs)"
done <<'J'
i == 9007199254740993|0
i < 9007199254740993|81
u >= 18446744073709551614|0
u in [18446744073709551613, 3]|81
n == "-9007199254740993"|0
J
same "--mix-by them" 0 "$(shuffle -q --mix-by i --mix 9007199254740993=1 whole.tks | docs)"

# The best by a field, of each value; a stream for each value. tests/props/check_choose.py has the choices of --top.
same "--by a field" 74 "$(choose -q --top 1 --unit documents --by q m.tks | docs)"
same "  null comes last" "0 74" "$(choose -q --top 2 --unit documents --by q m.tks | docs)"
same "--per a field" "0 74" "$(choose -q --top 1 --unit documents --by q --per lic --stats s.json m.tks | docs)"
same "  as many groups as values" 2 "$(json s.json 'd["groups"]')"
same "  null is a group" "0 74 129" "$(choose -q --top 1 --unit documents --by length --per q m.tks | docs)"
status "--by of a text" 1 choose -q --top 1 --by url m.tks -o y.tks
check "  says so" grep -qx "choose: --by url: has the type text; the best are told by numbers" err
for o in "by" "by length --per"; do
    # shellcheck disable=SC2086 # words
    status "--$o of a field that is not there" 1 choose -q --top 1 --$o nope m.tks -o y.tks
    check "  is named" grep -q "^choose: --${o##*--}: no input has the metadata field 'nope'" err
    # shellcheck disable=SC2086
    status "--$o of a sequence with several documents" 1 choose -q --top 1 --$o q several.tks -o y.tks
    check "  says by what they differ" grep -q 'of another q; read documents or pieces' err
done
status "--per alone" 2 choose -q --length 1.. --per lic m.tks -o y.tks
parts() { "$PYTHON" -c 'import json, sys
print(*["%s %s %d" % (json.dumps(x["value"]), x["file"], x["documents"]) for x in json.load(open(sys.argv[1] + "/values.json"))], sep="\n")' "$1" | LC_ALL=C sort; }
choose -q --partition by-lic --per lic --stats s.json m.tks
same "a stream for each value" '"apache" apache.tks 1
"mit" mit.tks 2' "$(parts by-lic)"
same "  with its documents" "0 129" "$(docs by-lic/mit.tks)"
same "  and their metadata" "$(meta m.tks | sed 1d\;3d)" "$(meta by-lic/apache.tks)"
same "  counted" 2 "$(json s.json 'd["values"]')"
same "  the others are left out by name" '{"other-values": 1}' "$(inspect --json by-lic/mit.tks | json /dev/stdin 'd["provenance"][-1]["documents"]["dropped"]')"
choose -q --partition by-q --per q m.tks
same "numbers and null" '0.5 0.5.tks 1
3 3.tks 1
null _.tks 1' "$(parts by-q)"
tokenize -q -t bytes --metadata x=text <(printf '{"text":"a","x":"%s"}\n' '' . _ a/b 'a\u0000b' 'a\u0000c' null) -o odd.tks
choose -q --partition by-x --per x odd.tks
same "any text has a file of its own" '%.tks %2E.tks %5F.tks a%00b.tks a%00c.tks a%2Fb.tks null.tks' "$(cd by-x && echo *.tks)"
status "too many values" 1 choose -q --partition by-id --per x <(tokenize -q -t bytes --metadata x=text many.jsonl)
check "  says what to do" grep -q "^choose: --partition: 'x' has more than 65536 values, .* choose some of them by --where" err
check "  and writes none" shell '[ -z "$(ls by-id)" ]'
choose -q -M 32M -T 1 --top 1 --unit documents --by length --per x <(tokenize -q -t bytes --metadata x=text many.jsonl) >y.tks
same "of any number of values, the best of each" 65537 "$(inspect --json y.tks | json /dev/stdin 'd["sequences"]')"

# A set that a stopped run has begun is not continued with other values of the same documents.
if [ -n "$SHIM" ]; then
    seq 200 | sed 's/.*/{"text":"hello world number &","lic":"mit"}/' >begun.jsonl
    mkdir other
    sed 's/mit/bsd/' begun.jsonl >other/begun.jsonl
    tokenize -q -t bytes --no-provenance --metadata lic begun.jsonl -o begun.tks
    (cd other && tokenize -q -t bytes --no-provenance --metadata lic begun.jsonl -o ../others.tks)
    begin() { shuffle -q --no-provenance --documents --format mds --shard-size 1000 -T 1 -o begun "$@"; }
    SHIM_AT=name:30 LD_PRELOAD=$SHIM/fault.so code begin begun.tks >/dev/null 2>&1
    check "a set that was begun" test -e begun/.partial/journal
    status "  with other values" 1 begin others.tks
    check "  is refused" grep -q 'begun here was made from other input; run that command again' err
    status "  with the same ones" 0 begin begun.tks
    status "  is whole" 0 inspect --verify begun
fi

# Random records through random lines.
export lines=2
[ -z "$MORE" ] || lines=30
[ -z "$FULL" ] || lines=600
check "random lines" shell '"$PYTHON" "$top/tests/random/fields.py" --lines "$lines" -j 1 >log 2>&1 || { grep "^not ok" log >&2; false; }'
