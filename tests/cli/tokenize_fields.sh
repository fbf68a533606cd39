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
same "  says so" "tokenize: --id-field id: none of 1 documents has an id there; name a field that they have, or leave the option out" "$(cat err)"
check "  and leaves no output" test ! -e x.tks
status "texts have no domains" 1 tokenize -t bytes --domain-field d -o x.tks t.txt
check "  says so" grep -q 'none of 1 documents has a domain there' err
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
    check "  says so" grep -qE "none of 40 documents has an? $f where --$f-field looks for it" err
    tokenize -t bytes --$f-field often --on-error skip --part 0/2 --stats q0.json -f -o x.tks q.jsonl 2>err
    status "one part has the $f" 0 inspect --merge-stats q0.json q1.json
done
