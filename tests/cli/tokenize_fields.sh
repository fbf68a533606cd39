# shellcheck shell=bash disable=SC2154
# tokenize_fields.sh - the fields of records: names with dots, numbers and booleans, fields that are missing.

have tokenize inspect || return 0

# fields STREAM: of each document its id, domain, score and text
fields() { inspect --records --text "$@" | "$PYTHON" -c 'import json, sys
for line in sys.stdin:
    r = json.loads(line)
    s = r["segments"][0]
    print(s.get("id"), s.get("domain"), s.get("score"), r["text"].replace("\u2400", ""))' | sed 's/ *$//'; }

# Names with dots. A record beyond a MiB goes to another parser.
cat >n.jsonl <<'J'
{"doc":{"body":{"text":"one"}},"meta":{"id":7,"lang":"en","q":{"s":0.5}}}
{"meta":{"q":{"s":2,"t":[{"s":9}]},"lang":"de","id":"x"},"doc":{"body":{"text":"two"},"x":1}}
{"doc.body.text":"three","doc":{"body":{"text":"no"}},"meta":{"id":1,"id":true,"lang":false,"q":{}}}
{"doc":{"body.text":"four"},"meta.id":2.50,"meta":{"id":3,"lang":1e3,"q":null}}
J
F="--field doc.body.text --id-field meta.id --domain-field meta.lang --score-field meta.q.s"
want='7 en 0.5 one
x de 2 two
true false None three
2.5 1000 None four'
# shellcheck disable=SC2086 # words
tokenize -t bytes $F -o n.tks n.jsonl
same "names with dots" "$want" "$(fields n.tks)"
"$PYTHON" -c 'print(open("n.jsonl").read().replace("}\n", ",\"pad\":\"" + "x" * 1100000 + "\"}\n"), end="")' >long.jsonl
# shellcheck disable=SC2086
tokenize -t bytes $F -o long.tks long.jsonl
same "long records" "$want" "$(fields long.tks)"
for t in 1 3; do
    # shellcheck disable=SC2086
    tokenize -t bytes $F -T $t -M 32M -o v.tks n.jsonl
    same "-T $t" "$(sha n.tks)" "$(sha v.tks)"
done
printf '{"a.b":"flat"}\n{"a":{"b":"deep"}}\n' >ab.jsonl
same "a key with a dot" 'flat deep' "$(tokenize -t bytes --field a.b ab.jsonl | inspect --records --text | "$PYTHON" -c 'import json, sys
print(*(json.loads(l)["text"].rstrip("\u2400") for l in sys.stdin))')"
for bad in '{"a":[{"b":"x"}]}' '{"a":"b"}' '{"b":"x"}' '{"x":{"a":{"b":"x"}}}' '{"a":{"b":"x"},"a":{}}'; do
    echo "$bad" >bad.jsonl
    status "$bad" 1 tokenize -t bytes --field a.b -o x.tks bad.jsonl
    check "  says what is missing" grep -q '^tokenize: bad.jsonl:1: byte 0: no field "a.b"; ' err
done

# Numbers and booleans.
cat >v.jsonl <<'J'
{"text":"a","v":0}
{"text":"b","v":-0.5}
{"text":"c","v":123456789012345678901234567890}
{"text":"d","v":18446744073709551615}
{"text":"e","v":1.0}
{"text":"f","v":1e21}
{"text":"g","v":false}
{"text":"h","v":0.1}
J
values='0 -0.5 123456789012345678901234567890 18446744073709551615 1 1e+21 false 0.1'
# shellcheck disable=SC2016 # a program of sed
tokenize -t bytes --id-field v --domain-field v -o v.tks v.jsonl
same "ids" "$values" "$(fields v.tks | cut -d' ' -f1 | xargs)"
same "domains" "$values" "$(fields v.tks | cut -d' ' -f2 | xargs)"
if "$PYTHON" "$top/tests/cli/make_parquet.py" v.parquet <<<'{"text":"a","i":3,"b":true,"d":0.1,"a":{"t":"deep"}}
{"text":"b","i":-4,"b":false,"d":1e21,"a":{"t":"er"}}' &&
    tokenize -t bytes -o p.tks v.parquet 2>err; then
    for f in "i:3 -4" "b:true false" "d:0.1 1e+21"; do
        tokenize -t bytes --id-field "${f%%:*}" --domain-field "${f%%:*}" -o p.tks v.parquet
        same "Parquet ${f%%:*}: ids" "${f#*:}" "$(fields p.tks | cut -d' ' -f1 | xargs)"
        same "Parquet ${f%%:*}: domains" "${f#*:}" "$(fields p.tks | cut -d' ' -f2 | xargs)"
    done
    "$PYTHON" "$top/tests/cli/make_parquet.py" v.parquet --small <<<'{"text":"a","d":0.1}'
    same "Parquet float" 0.1 "$(tokenize -t bytes --id-field d v.parquet | fields | cut -d' ' -f1)"
else
    check "this build has no Parquet" grep -q 'has no Parquet' err
    skip "ids of Parquet: this build has none (make arrow)"
fi

# A field that no document has is an error, one that few have a warning.
echo text >t.txt
status "texts have no ids" 1 tokenize -t bytes --id-field id -o x.tks t.txt
same "  says so" "tokenize: --id-field id: none of 1 document has an id there; name a field that they have, or leave the option out" "$(cat err)"
check "  and leaves no output" test ! -e x.tks
status "texts have no domains" 1 tokenize -t bytes --domain-field d -o x.tks t.txt
check "  says so" grep -q 'none of 1 document has a domain there' err
"$PYTHON" -c 'import json
for i in range(40): print(json.dumps({"text": "t%d" % i, **({"rare": "r"} if i < 3 else {}), **({"often": 1} if i < 4 else {})}))' >q.jsonl
for f in id domain; do
    status "no record has the $f" 1 tokenize -t bytes --$f-field nope --on-error skip -o x.tks q.jsonl
    check "  says so" grep -qE -- "--$f-field nope: none of 40 documents has an? $f there" err
    status "few have the $f" 0 tokenize -t bytes --$f-field rare --on-error skip -o x.tks q.jsonl
    check "  says so" grep -qE -- "^tokenize: --$f-field rare: 3 of 40 documents have an? $f there" err
    status "a tenth has the $f" 0 tokenize -t bytes --$f-field often --on-error skip -o x.tks q.jsonl
    check "  says nothing" shell '! grep -q "documents have" err'
    for i in 0 1; do
        status "a part without the $f" 0 tokenize -t bytes --$f-field nope --on-error skip --part $i/2 --stats q$i.json -f -o x.tks q.jsonl
        check "  warns" grep -q -- "--$f-field nope: 0 of " err
    done
    status "no part has the $f" 1 inspect --merge-stats q0.json q1.json
    check "  says so" grep -qE "^inspect: tokenize: --$f-field nope: none of 40 documents has an? $f there$" err
    for i in 0 1; do
        tokenize -t bytes --$f-field often --on-error skip --part $i/2 --stats q$i.json -f -o x.tks q.jsonl 2>err$i
    done
    check "another part warns" grep -q -- "--$f-field often: 0 of " err1
    status "one part has the $f" 0 inspect --merge-stats q0.json q1.json
done

# Domains: of the record, else of the path, else the default.
mkdir -p corpus/web corpus/code
printf '{"text":"a","d":"own"}\n{"text":"b"}\n{"text":"c","d":null}\n{"text":"d","d":""}\n' >corpus/web/x-1.jsonl
printf '{"text":"e","d":3}\n{"text":"f"}\n' >corpus/code/y.jsonl
echo text >corpus/top.txt
domains() { fields "$@" | cut -d' ' -f2 | xargs; }
# from WANT OPTION...: the domains of corpus/ in the order of its files: code/y.jsonl top.txt web/x-1.jsonl
from() {
    wanted=$1
    shift
    status "$*" 0 tokenize -t bytes "$@" -o d.tks corpus
    same "  gives" "$wanted" "$(domains d.tks)"
}
from "code code None web web web web" --domain-from '{}/*.jsonl'
from "code code None web web web web" --domain-from 'corpus/{}/*.jsonl'
from "y y top x-1 x-1 x-1 x-1" --domain-from '{}.*'
from "None None None x x x x" --domain-from '*/{}-*.jsonl'
from "code code web web web web" --domain-from '{}/[xy]*' --exclude top.txt
from "3 code None own web web web" --domain-from '{}/*.jsonl' --domain-field d
from "3 code rest own web web web" --domain-from '{}/*.jsonl' --domain-field d --domain-default rest
from "3 rest rest own rest rest rest" --domain-field d --domain-default rest
from "code code rest web web web web" --domain-from 'corpus/{}/*' --domain-default rest
check "files that do not match: a warning only if they stay without" shell '! grep -q "matches the paths" err'
tokenize -t bytes --domain-from 'corpus/{}/*' -o d.tks corpus 2>err
check "  which says how many" grep -q -- "--domain-from corpus/{}/\*: 1 of 3 files have no domain" err
(cd corpus && tokenize -t bytes --domain-from '{}/*.jsonl' -o ../e.tks web/x-1.jsonl && tokenize -t bytes --domain-from '{}/*.jsonl' -o ../f.tks "$PWD/web")
same "the path, however the file is named" "web web web web web web web web" "$(domains e.tks) $(domains f.tks)"
# A list with domains: colons, tabs and spaces in names, an empty domain, a folder.
cp corpus/code/y.jsonl $'a:b\tc d.jsonl'
printf '%s\t%s\n' 'the web' corpus/web '' corpus/top.txt a:b $'a:b\tc d.jsonl' >l
list() {
    wanted=$1
    shift
    status "--list-domains $*" 0 tokenize -t bytes --files-from l --list-domains "$@" -o d.tks
    same "  gives" "$wanted" "$(inspect --records d.tks | "$PYTHON" -c 'import json, sys
print(*(json.loads(l)["segments"][0].get("domain") for l in sys.stdin), sep=",")')"
}
list "the web,the web,the web,the web,None,a:b,a:b"
list "own,the web,the web,the web,None,3,a:b" --domain-field d
list "own,the web,the web,the web,top,3,a:b" --domain-field d --domain-from '{}.txt' --domain-default rest
list "own,the web,the web,the web,rest,3,a:b" --domain-field d --domain-default rest
status "files without a domain in the list and by the path" 0 tokenize -t bytes --files-from l --list-domains --domain-from '{}/y.*' -o d.tks
check "  are counted" grep -q '1 of 3 files have no domain' err
for bad in 'web' $'web\t'; do
    echo "$bad" >bad
    status "a line '$bad'" 1 tokenize -t bytes --files-from bad --list-domains -o x.tks
    check "  is refused" grep -q '^tokenize: bad: "web.*": expected a domain, a tab and a path' err
done
F="--domain-field d --domain-from {}/*.jsonl --domain-default rest"
# shellcheck disable=SC2086 # words
{
    tokenize -t bytes $F -o one.tks corpus
    tokenize -t bytes $F -T 5 -M 32M -o many.tks corpus
    for i in 0 1 2; do tokenize -q -t bytes $F --part $i/3 -o p$i.tks corpus; done
}
same "-T 5" "$(sha one.tks)" "$(sha many.tks)"
same "parts" "$(inspect --records one.tks | sha)" "$(cat p0.tks p1.tks p2.tks | inspect --records | sha)"
"$PYTHON" -c 'import sys; sys.stdout.write("some words of a long text. " * 400000)' >corpus/web/long.txt
tokenize -t builtin -M 32M --domain-from '{}/*.txt' -o long.tks corpus/web/long.txt
same "a text that comes in parts" web "$(inspect --records long.tks | "$PYTHON" -c 'import json, sys
print(json.loads(sys.stdin.readline())["segments"][0]["domain"])')"
rm corpus/web/long.txt
# refused INPUT: of lines "OPTIONS|WORDS" on standard input, the options are refused in one line that has the words.
refused() {
    while IFS='|' read -r bad words; do
        # shellcheck disable=SC2086 # words
        status "$bad" 2 tokenize -t bytes -o x.tks $bad $1
        check "  one line" one_line err
        check "  says: $words" grep -qF -- "$words" err
    done
}
refused corpus <<'J'
--domain a --domain-field d|--domain names the domain of all documents; it cannot be combined with --domain-field
--domain a --domain-from {}/*|it cannot be combined with --domain-from
--domain a --domain-default b|it cannot be combined with --domain-default
--domain a --list-domains --files-from l|it cannot be combined with --list-domains
--domain-default b|--domain-default is for documents without a domain; give --domain-field or --domain-from, or use --domain
--list-domains|--list-domains: is about the lines of a list; give --files-from
--domain-from web/*|--domain-from web/*: expected one {} in place of the domain
--domain-from {}/{}|--domain-from {}/{}: expected one {} in place of the domain
--domain-from {}/none/*|--domain-from {}/none/*: matches the end of no path, such as corpus/code/y.jsonl
J

# A text that is missing or null.
printf '{"text":"a"}\n{"n":1}\n{"text":null}\n{"text":"b"}\n' >m.jsonl
status "missing: the default" 1 tokenize -t bytes -o x.tks m.jsonl
check "  names the option" grep -q -- '^tokenize: m.jsonl:2: byte 0: no field "text"; .*--on-missing skip' err
status "missing: the default with --on-error skip" 0 tokenize -t bytes --on-error skip --stats s.json -o m.tks m.jsonl
same "  counts a null as no string" "{'missing-field': 1, 'not-a-string': 1}" "$("$PYTHON" -c 'import json; print(json.load(open("s.json"))["documents"]["dropped"])')"
status "--on-missing skip" 0 tokenize -t bytes --on-missing skip --stats s.json -o x.tks m.jsonl
same "  counts both" "{'missing-field': 2}" "$("$PYTHON" -c 'import json; print(json.load(open("s.json"))["documents"]["dropped"])')"
same "  the same documents" "$(inspect --records m.tks | sha)" "$(inspect --records x.tks | sha)"
status "--on-missing skip, with rejects" 0 tokenize -t bytes --on-missing skip --rejects r.jsonl -o x.tks m.jsonl
same "  has both" "missing-field missing-field" "$("$PYTHON" -c 'import json; print(*(json.loads(l)["reason"] for l in open("r.jsonl")))')"
echo '{"text":5}' >>m.jsonl
status "--on-missing skip: another fault" 1 tokenize -t bytes --on-missing skip -o x.tks m.jsonl
check "  is named" grep -q '^tokenize: m.jsonl:5: byte 8: field "text" is not a string; ' err
status "--on-missing fail" 1 tokenize -t bytes --on-missing fail --on-error skip -o x.tks m.jsonl
check "  names the record" grep -q '^tokenize: m.jsonl:2: byte 0: no field "text"; ' err
echo '{"text":null}' >null.jsonl
status "--on-missing fail: a null" 1 tokenize -t bytes --on-missing fail --on-error skip -o x.tks null.jsonl
check "  names the record" grep -q '^tokenize: null.jsonl:1: byte 8: field "text" is null; ' err
status "no record has a text" 1 tokenize -t bytes --on-missing skip -o x.tks null.jsonl
check "  is an error" grep -q -- "--field text: none of 1 document has a text there" err

# A field that some records lack: the advice is about that field.
printf '{"text": "a", "id": 1, "domain": "web"}\n{"text": "b"}\n' >few.jsonl
for f in "id|name another field with --id-field, leave that option out, or go on without such records with --on-error skip" \
    "domain|give such records a domain with --domain-default, or go on without them with --on-error skip"; do
    status "no ${f%%|*}" 1 tokenize -t bytes "--${f%%|*}-field" "${f%%|*}" -o x.tks few.jsonl
    check "  says what helps" grep -qF "few.jsonl:2: byte 0: no field \"${f%%|*}\"; " err
    check "  with its options" grep -qF -- "${f#*|}" err
    check "  not what does not" shell '! grep -q on-missing err'
done

# Names of files: a prefix, and the place of standard input.
names() { inspect --records "$@" | "$PYTHON" -c 'import json, sys
print(*("%s:%d:%d" % (s["source"], s["source_number"], s["document"]) for l in sys.stdin for s in json.loads(l)["segments"]))'; }
tokenize -t bytes --source-prefix v1 -o v1.tks corpus/code
tokenize -t bytes --source-prefix v2/ -o v2.tks corpus/code
same "--source-prefix" "v1/y.jsonl:0:0 v1/y.jsonl:0:19" "$(names v1.tks)"
same "two corpora with equal names stay two" "v1/y.jsonl:0:0 v1/y.jsonl:0:19 v2/y.jsonl:1:0 v2/y.jsonl:1:19" "$(cat v1.tks v2.tks | names)"
tokenize -t bytes --source-prefix in <m.jsonl --on-error skip -o x.tks 2>err
same "standard input has one too" "in/-:0:0 in/-:0:35" "$(names x.tks)"
mkdir pipes
for i in 0 1 2; do printf '{"text":"a%d","d":"x"}\n{"text":"b"}\n' $i >pipes/$i.jsonl; done
tokenize -t bytes --source-prefix s3 -o whole.tks pipes
for i in 0 1 2; do
    # shellcheck disable=SC2002 # a pipe is what is meant
    cat pipes/$i.jsonl | tokenize -q -t bytes --source-prefix s3 --source $i:$i.jsonl --part $i/3 --stats q$i.json -f -o q$i.tks
done
same "--source: pipes are the parts of the whole" "$(inspect --records whole.tks | sha)" "$(cat q0.tks q1.tks q2.tks | inspect --records | sha)"
status "  and their books" 0 inspect --merge-stats q0.json q1.json q2.json
same "--source without a name" "-:7:0 -:7:22" "$(tokenize -t bytes --source 7 <pipes/1.jsonl | names)"
tokenize -t bytes --domain-from '{}/*' --source 7:some/web/a.jsonl -o x.tks <pipes/1.jsonl
same "--source: a domain from its name" "some/web/a.jsonl:7:0 some/web/a.jsonl:7:22 web web" "$(names x.tks) $(domains x.tks)"
zstd -qc pipes/1.jsonl | tokenize -t bytes --source 5000000 --rejects r.jsonl -o x.tks
same "--source: a large number" "-:5000000:0 -:5000000:22" "$(names x.tks)"
# shellcheck disable=SC2016
status "--source: a large number, and no field" 1 shell 'echo text | tokenize -t bytes --format text --where a==1 --source 100000000:x -o y.tks'
check "  and it is said" grep -q 'is text, which has no field' err
tokenize -t bytes --source-prefix s3 -o old.tks pipes/0.jsonl
for i in 0 1; do tokenize -t bytes --source-prefix s3 --source-base 1 --part $i/2 -f -o new$i.tks pipes/1.jsonl pipes/2.jsonl; done
same "--source-base: files that are added, in parts" "$(inspect --records whole.tks | sha)" "$(cat old.tks new0.tks new1.tks | inspect --records | sha)"
refused "" <<'J'
--source 1 --source-base 2|--source-base: --source 1 says the number of standard input
--source x|--source x: expected N or N:NAME
--source 1:|--source 1:: expected N or N:NAME
--source -1|--source -1: expected N or N:NAME
--source 1 pipes|--source 1: is the place of standard input; name no files
--source 1 --files-from m.jsonl|--source 1: is the place of standard input; name no files
--source 1 - -|--source 1: is the place of standard input; name no files
J
