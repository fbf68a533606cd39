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
same "as the options would" "$(run chat.jsonl | sha256sum)" "$(run --special parse --no-eos --spans-field spans chat.jsonl | sha256sum)"
for options in --bos "--special ordinary" "--spans-field other" --c4-lines; do
    # shellcheck disable=SC2086 # words
    status "$options" 2 run $options chat.jsonl -o x.tks
    check "$options: both are named" grep -qF -- "$options: is against the field \"needs\" of sluice-chat in chat.jsonl" err
done
printf '%s\n' "${chat/- </<|begin_of_text|> <}" >other.jsonl
status "another tokenizer's tokens" 1 run other.jsonl -o x.tks
check "are named" grep -qF 'other.jsonl:1: field "needs": the text is made for a tokenizer with the token "<|begin_of_text|>"' err
cat plain.jsonl chat.jsonl >mixed.jsonl
status "texts of others, then dialogues" 1 run mixed.jsonl -o x.tks
check "are told apart" grep -q 'mixed.jsonl:2: field "needs" of sluice-chat is' err
printf '{"text": "ab", "spans": [[0, 1]]}\n' | cat chat.jsonl - >mixed.jsonl
status "dialogues, then texts of others" 1 run mixed.jsonl -o x.tks
check "are told apart too" grep -q 'mixed.jsonl:2: has no field "needs"' err
check "unless the options say so" run --special parse --no-eos --spans-field spans mixed.jsonl -o x.tks
same "a field of that name with another value" '[[97, 257], null]' \
    "$(printf '{"needs": "work", "text": "a"}\n{"needs": 7, "text": ""}\n' | run | ids)"
same "or in the text" '[[99, 257], null]' "$(printf '{"x": "\\"needs\\": \\"chat1 0 - -\\"", "text": "c"}\n' | run | ids)"

# a warning, once, about special tokens in the texts of others
cat plain.jsonl plain.jsonl >two.jsonl
tokenize -t t.json two.jsonl -o x.tks 2>err
same "special tokens that stay text are counted" 1 "$(grep -c "2 times a text has the name of a special token, such as \"$end\"" err)"
for special in ordinary parse; do
    tokenize -t t.json --special $special two.jsonl -o x.tks 2>err
    check "--special $special: no warning" shell '! grep -q "special token" err'
done
