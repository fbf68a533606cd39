# shellcheck shell=bash disable=SC2154
# needs.sh - the field `needs` of sluice-chat's records, and special tokens in the texts of others.

have tokenize inspect || return 0
"$PYTHON" "$top/tests/cli/make_tokenizer.py" >t.json
end='<|endoftext|>'
chat='{"needs": "chat1 0123abcd - <|endoftext|>", "text": "ab<|endoftext|>", "spans": [[1, 15]]}'
printf '%s\n' "$chat" >chat.jsonl
printf '{"text": "ab%s"}\n' "$end" >plain.jsonl
run() { tokenize -q -t t.json "$@"; }
ids() { inspect --records | json /dev/stdin '[d["tokens"], d.get("mask")]'; }

same "records say what they need" '[[97, 98, 257], [0, 1, 1]]' "$(run chat.jsonl | ids)"
same "from a pipe" '[[97, 98, 257], [0, 1, 1]]' "$(run <chat.jsonl | ids)"
same "compressed" '[[97, 98, 257], [0, 1, 1]]' "$(gzip <chat.jsonl | run | ids)"
same "as the options would" "$(run --no-provenance chat.jsonl | sha256sum)" "$(run --no-provenance --special parse --no-eos --spans-field spans chat.jsonl | sha256sum)"
for options in --bos "--special ordinary" "--spans-field other" --c4-lines; do
    # shellcheck disable=SC2086 # words
    status "$options" 2 run $options chat.jsonl -o x.tks
    check "$options: both are named" grep -qF -- "$options: is against the field \"needs\" of sluice-chat in chat.jsonl" err
done
printf '%s\n' "${chat/- </<|begin_of_text|> <}" >other.jsonl
status "another tokenizer's tokens" 1 run other.jsonl -o x.tks
check "are named" grep -qF 'other.jsonl:1: field "needs": the text is made for a tokenizer with the token "<|begin_of_text|>"' err
own='{"needs": "chat1 0123abcd - - <|endoftext|> <|eot_id|>", "text": "xy", "spans": [[1, 2]]}'
{
    printf '%s\n' "$own" "${own/xy/x<|endoftext|>}"
    printf '%s\n' "${own/xy/x<|eot_id|>y}"
} >own.jsonl
status "a token of the template itself" 1 run own.jsonl -o x.tks
check "is named where a text has it" grep -qF 'own.jsonl:3: field "needs": the text is made for a tokenizer with the token "<|eot_id|>"' err
check "unless the options say that its text is meant" run --special parse --no-eos --spans-field spans own.jsonl -o x.tks
cat plain.jsonl chat.jsonl >mixed.jsonl
echo text >0.txt
tar cf mixed.tar 0.txt chat.jsonl
status "a text, then dialogues, in an archive" 1 run mixed.tar -o x.tks
check "the member is named" grep -q 'mixed.tar: chat.jsonl:1: field "needs" of sluice-chat is' err
status "texts of others, then dialogues" 1 run mixed.jsonl -o x.tks
check "are told apart" grep -q 'mixed.jsonl:2: field "needs" of sluice-chat is' err
printf '{"text": "ab", "spans": [[0, 1]]}\n' | cat chat.jsonl - >mixed.jsonl
status "dialogues, then texts of others" 1 run mixed.jsonl -o x.tks
check "are told apart too" grep -q 'mixed.jsonl:2: has no field "needs"' err
check "unless the options say so" run --special parse --no-eos --spans-field spans mixed.jsonl -o x.tks
same "a field of that name with another value" '[[97, 257], null]' \
    "$(printf '{"needs": "work", "text": "a"}\n{"needs": 7, "text": ""}\n' | run | ids)"
same "or in the text" '[[99, 257], null]' "$(printf '{"x": "\\"needs\\": \\"chat1 0 - -\\"", "text": "c"}\n' | run | ids)"

# what would be trained on whole
printf '{"text": "abc", "spans": [[1, 2]]}\n' >spans.jsonl
tokenize -t bytes spans.jsonl -o x.tks 2>err
same "spans of others are named" 1 "$(grep -c 'has a field "spans", and all of its text is trained on; give --spans-field spans' err)"
tokenize -t bytes --spans-field spans spans.jsonl -o x.tks 2>err
printf '{"text": "\\"spans\\": [[1, 2]]", "spans": [], "x": "spans"}\n' | tokenize -t bytes -o x.tks 2>>err
check "and not where they are taken, or are none" shell '! grep -q "has a field" err'
printf '%s\n' "${chat/\"spans\"/\"other\": \"b\", \"spans\"}" | tokenize -t t.json --field other -o x.tks 2>err
check "another field of dialogues is named" grep -q -e '--field other reads another field than its text, without masks' err

# a warning, once, about special tokens in the texts of others
cat plain.jsonl plain.jsonl >two.jsonl
tokenize -t t.json two.jsonl -o x.tks 2>err
same "special tokens that stay text are counted" 1 "$(grep -c "2 times a text has the name of a special token, such as \"$end\"" err)"
for special in ordinary parse; do
    tokenize -t t.json --special $special two.jsonl -o x.tks 2>err
    check "--special $special: no warning" shell '! grep -q "special token" err'
done

# the provenance begins with the runs of sluice-chat
record() { # OPTIONS FILE TEXT
    printf '{"needs": "chat1 0123abcd - -", "text": "%s", "spans": [[0, 1]], "by": "sluice-chat 9.9 %s", "from": "%s"}\n' "$3" "$1" "$2"
}
{
    record --train=last b.jsonl:1 bb
    for i in 1 2 3; do record --train=all a.jsonl:$i aaa; done
} >1.jsonl
{
    record --train=all a.jsonl:4 aaa
    record --train=last b.jsonl:2 bb
    printf '{"needs": "chat1 0123abcd - -", "text": "c", "spans": [[0, 1]]}\n'
} >2.jsonl
steps() { json "$1" '[[s["program"], s["version"], s["arguments"], [[f["name"], f["documents"], f["tokens"]] for f in s["sources"]]] for s in d["provenance"] if s["program"] == "sluice-chat"]'; }
want='[["sluice-chat", "9.9", "--train=last", [["b.jsonl", 2, 4]]], ["sluice-chat", "9.9", "--train=all", [["a.jsonl", 4, 12]]], ["sluice-chat", "", "--template=0123abcd", [["", 1, 1]]]]'
run 1.jsonl 2.jsonl -o one.tks
inspect --json one.tks >one.json
same "steps and files of dialogues" "$want" "$(steps one.json)"
same "and their places as ids" '["b.jsonl:1", "a.jsonl:1", "a.jsonl:2", "a.jsonl:3", "a.jsonl:4", "b.jsonl:2", null]' \
    "$(inspect --records one.tks | "$PYTHON" -c 'import json, sys; print(json.dumps([json.loads(x)["segments"][0].get("id") for x in sys.stdin]))')"
same "for any threads" "$(sha256sum <one.tks)" "$(run -T8 1.jsonl 2.jsonl | sha256sum)"
for i in 0 1; do run 1.jsonl 2.jsonl --part $i/2 -o $i.tks; done
cat 0.tks 1.tks | inspect --json >parts.json
same "parts joined are one run" "$(json one.json 'd["provenance"]')" "$(json parts.json 'd["provenance"]')"
run 1.jsonl 2.jsonl --holdout 0.5 --holdout-output held.tks -o kept.tks
for side in kept held; do
    inspect --json $side.tks >$side.json
    same "a holdout has its own: $side" "$(json $side.json 'd["documents"]')" \
        "$(json $side.json 'sum(f["documents"] for s in d["provenance"] if s["program"] == "sluice-chat" for f in s["sources"])')"
done
shuffle -q --documents --format mds one.tks -o set
same "a set begins with them, too" "$want" "$(steps set/report.json)"
check "and its card" shell 'grep -q "^{ sluice-chat --train=last;" set/README.md && grep -q "^- fine-tuning" set/README.md &&
    grep -q "a.jsonl | not known | 4 | 12 " set/README.md && grep -q "of which trained on | 7 (41.18 %)" set/README.md'
shuffle -q --order keep set -o again.tks
inspect --json again.tks >again.json
same "and what is read from it" "$want" "$(steps again.json)"
printf '{"needs": "chat1 0 - -", "text": "a", "spans": [[0, 1]], "by": {}, "from": "a\\u0000b:1"}\n' >odd.jsonl
run odd.jsonl -o odd.tks
inspect --json odd.tks >odd.json
same "values of another kind are none" '[["sluice-chat", "", "--template=0", [["", 1, 1]]]]' "$(steps odd.json)"
