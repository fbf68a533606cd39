# shellcheck shell=bash disable=SC2154
# tokenize_refused.sh - parts of a tokenizer.json that are not reproduced: exit status 1, one line that names the file
# and the part, no output. Beside each stands a similar part that is reproduced.
# check-more: longer

have tokenize || return 0
printf '{"text": "a b"}\n' >one.jsonl

# file KEY=JSON...: t.json, a byte-level BPE whose members are replaced; "model.KEY" is one of its model's. KEY= takes it out.
file() {
    "$PYTHON" -c 'import json, sys
own = list(range(33, 127)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
others = [b for b in range(256) if b not in own]
d = {"normalizer": None, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "added_tokens": [],
     "model": {"type": "BPE", "vocab": {chr(b if b in own else 0x100 + others.index(b)): b for b in range(256)}, "merges": []}}
bytes_ = {"<0x%02X>" % b: b for b in range(256)}
for arg in sys.argv[1:]:
    key, value = arg.split("=", 1)
    at = d["model"] if key.startswith("model.") else d
    key = key.replace("model.", "")
    if value == "BYTES":
        at[key] = dict(bytes_, **{"\u2581": 256, "a": 257, "\u2581a": 258})
    elif value:
        at[key] = json.loads(value)
    else:
        del at[key]
json.dump(d, open("t.json", "w"))' "$@"
}
# refused WHAT WORDS MEMBER...: the line has WORDS.
refused() {
    what=$1 words=$2
    shift 2
    file "$@"
    status "$what" 1 tokenize -t t.json -o x.tks one.jsonl
    check "$what: one line" one_line err
    check "$what: names it" grep -qF "t.json: " err
    check "$what: names $words" grep -qF -- "$words" err
    check "$what: no output" test ! -e x.tks
}
taken() {
    what=$1
    shift
    file "$@"
    status "$what" 0 tokenize -t t.json --eos "${eos:-a}" -o x.tks one.jsonl
    rm -f x.tks
}
taken "the file by itself"

# A pattern that takes exponential time ends; one that takes a few steps a byte is not stopped.
split='pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "PATTERN"}, "behavior": "Isolated", "invert": false},
    {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]}'
printf '{"text": "%s"}\n' "$(printf 'a%.0s' {1..40})" >forty.jsonl
"$PYTHON" -c 'print("{\"text\": \"%s\"}" % ("a" * 4000000))' >long.jsonl
file "${split/PATTERN/(?:a+)+c|[\\\\s\\\\S]}"
status "a pattern that takes too long" 1 timeout 20 tokenize -t t.json --no-eos -o x.tks forty.jsonl
check "  says so in one line" one_line err
check "  and where" grep -qF "forty.jsonl: document 0: pre-tokenizer: byte 0 of a text of 40: its regular expression" err
file "${split/PATTERN/a+b|a+(?:(?=c)c|)|[\\\\s\\\\S]}"
status "a pattern that goes back over a long text" 0 timeout 20 tokenize -t t.json --no-eos -o x.tks long.jsonl
rm -f x.tks

for m in WordPiece WordLevel Unigram; do
    refused "model $m" "\"$m\"" "model.type=\"$m\"" model.merges=
done
refused "Unigram as it is" '"Unigram"' 'model={"type": "Unigram", "vocab": [["a", -1.5]], "unk_id": 0}'
refused "dropout" '"dropout"' model.dropout=0.1
refused "continuing_subword_prefix" '"continuing_subword_prefix"' 'model.continuing_subword_prefix="##"'
refused "end_of_word_suffix" '"end_of_word_suffix"' 'model.end_of_word_suffix="</w>"'

refused "BertNormalizer" '"BertNormalizer"' 'normalizer={"type": "BertNormalizer", "clean_text": true, "lowercase": true}'
refused "Precompiled" '"Precompiled"' 'normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}'
refused "Precompiled in a Sequence" '"Precompiled"' \
    'normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Precompiled"}]}'
# An added token whose text is in the model under another id: the reference gives the model's, with and without a
# normalizer, be the token normalized or not. Beside each: the model's id, and a text that is not in the model.
clash='"id": 256, "content": "a"' same='"id": 97, "content": "a"' new='"id": 256, "content": "a b"'
for normalizer in null '{"type": "NFC"}' '{"type": "NFD"}' '{"type": "NFKC"}' '{"type": "NFKD"}' '{"type": "Lowercase"}' \
    '{"type": "StripAccents"}' '{"type": "Nmt"}' '{"type": "Strip", "strip_left": true, "strip_right": true}' \
    '{"type": "Prepend", "prepend": "x"}' '{"type": "Replace", "pattern": {"String": "a"}, "content": "c"}' \
    '{"type": "Replace", "pattern": {"Regex": "[ab]"}, "content": "c"}' \
    '{"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]}'; do
    for normalized in $(longer true "true false"); do
        refused "a clash under $normalizer, normalized $normalized" 'the added token "a" has id 256, but would be given 97' \
            "normalizer=$normalizer" "added_tokens=[{$clash, \"normalized\": $normalized}]"
        taken "the model's id under $normalizer, normalized $normalized" "normalizer=$normalizer" "added_tokens=[{$same, \"normalized\": $normalized}]"
        taken "a new text under $normalizer, normalized $normalized" "normalizer=$normalizer" "added_tokens=[{$new, \"normalized\": $normalized}]"
    done
done
refused "a clash under ByteLevel" 'the added token "a" has id 256, but would be given 97' pre_tokenizer=null 'normalizer={"type": "ByteLevel"}' \
    "added_tokens=[{$clash, \"normalized\": true}]"
refused "Replace of nothing" '"Replace"' 'normalizer={"type": "Replace", "pattern": {"String": ""}, "content": "a"}'
refused "Replace of what may be nothing" 'empty' 'normalizer={"type": "Replace", "pattern": {"Regex": "a*"}, "content": "a"}'
refused "a normalizer behind ByteLevel" '"NFC" after ByteLevel' pre_tokenizer=null \
    'normalizer={"type": "Sequence", "normalizers": [{"type": "ByteLevel"}, {"type": "NFC"}]}'
refused "ByteLevel twice" '"ByteLevel"' 'normalizer={"type": "ByteLevel"}'
for n in NFC NFD NFKC NFKD Lowercase StripAccents Nmt; do
    taken "normalizer $n" "normalizer={\"type\": \"$n\"}"
done
taken "normalizer ByteLevel" pre_tokenizer=null 'normalizer={"type": "ByteLevel"}'
taken "normalizer Strip" 'normalizer={"type": "Strip", "strip_left": true, "strip_right": false}'
taken "normalizers Prepend, Replace" 'normalizer={"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "x"},
    {"type": "Replace", "pattern": {"String": "x"}, "content": "y"}, {"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""}]}'

for p in CharDelimiterSplit BertPreTokenizer UnicodeScripts FixedLength; do
    refused "pre-tokenizer $p" "\"$p\"" "pre_tokenizer={\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"$p\", \"delimiter\": \"-\"},
        {\"type\": \"ByteLevel\", \"add_prefix_space\": false}]}"
done
refused "Metaspace before a byte-level model" '"Metaspace"' 'pre_tokenizer={"type": "Metaspace", "replacement": "\u2581"}'
refused "no pre-tokenizer" 'byte-level' pre_tokenizer=null

# SentencePiece's.
sp="model.vocab=BYTES model.byte_fallback=true pre_tokenizer=null"
fold='normalizer={"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}'
# shellcheck disable=SC2086 # words
{
    taken "byte_fallback" $sp "$fold" 'model.merges=["\u2581 a"]'
    taken "Metaspace" $sp 'pre_tokenizer={"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": false}'
    refused "another replacement" '"Metaspace" with another replacement' $sp 'pre_tokenizer={"type": "Metaspace", "replacement": "_"}'
    refused "Metaspace with an unknown scheme" '"prepend_scheme"' $sp \
        'pre_tokenizer={"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "last"}'
    refused "a Split of spaces that are there" '"Split"' $sp \
        'pre_tokenizer={"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": false}'
    refused "Whitespace before byte_fallback" '"Whitespace"' $sp "$fold" 'pre_tokenizer={"type": "Whitespace"}'
    refused "ignore_merges with byte_fallback" '"ignore_merges"' $sp model.ignore_merges=true
    refused "a merge of a byte" '"<0x41>"' $sp 'model.merges=["<0x41> a"]'
    refused "a byte that is missing" 'byte 0x80' $sp 'model.vocab={"a": 0, "\u2581": 1}'
    refused "no U+2581" 'U+2581' $sp "$fold" 'model.vocab={"a": 0}'
    refused "Strip before a first space" '"first"' $sp 'normalizer={"type": "Strip", "strip_left": true, "strip_right": false}' \
        'pre_tokenizer={"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first"}'
    refused "a clash where spaces are folded" 'has id 259, but would be given 257' $sp "$fold" \
        'added_tokens=[{"id": 259, "content": "a", "normalized": true}]'
    refused "a normalized token that strips" '"<x>"' $sp "$fold" \
        'added_tokens=[{"id": 259, "content": "<x>", "normalized": true, "lstrip": true}]'
}
