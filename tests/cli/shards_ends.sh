# shellcheck shell=bash disable=SC2154,SC2086
# shards_ends.sh - OLMo-core finds whole documents by EOS and BOS, so shuffle --documents --format olmo refuses documents
# that end or begin otherwise or have EOS inside; with --accept-mismatch they are written. The card has the configuration.
# check-more: longer

have tokenize shuffle inspect || return 0
"$PYTHON" -c 'import base64
for i in range(256): print(base64.b64encode(bytes([i])).decode(), i)' >llama3.tiktoken
"$PYTHON" -c 'import base64
for i in range(256): print(base64.b64encode(bytes([i])).decode(), i)
for i in range(65536): print(base64.b64encode(bytes([i >> 8, i & 255])).decode(), 256 + i)' >wide.tiktoken
printf '{"text":"one two"}\n{"text":"three"}\n{"text":"four five six"}\n' >a.jsonl

write() { # TOKENIZE-OPTIONS -- SHUFFLE-OPTIONS
    local of=()
    while [ "$1" != -- ]; do of+=("$1") && shift; done
    shift
    tokenize -q "${of[@]}" -o t.tks && rm -rf set && shuffle -q --documents --order keep --format olmo "$@" -o set t.tks
}
refused() { # WHAT MESSAGE TOKENIZE-OPTIONS
    local title=$1 say=$2
    shift 2
    status "$title" 1 write "$@" --
    check "$title: one line with place, found, expected, option" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -qE -- "$0" err' \
        "format olmo: $say.*--accept-mismatch"
    check "$title: nothing is left" test ! -e set
    status "$title, accepted" 0 write "$@" -- --accept-mismatch
    status "$title, accepted: --verify" 0 inspect --verify set
    check "$title: the card says that nothing was checked" grep -q 'The documents were not checked' set/README.md
    same "$title: the stream's records" "$(inspect --records t.tks | sha)" "$(inspect --records set | sha)"
}
good() { # WHAT BOS TOKENIZE-OPTIONS
    local title=$1 bos=$2
    shift 2
    status "$title" 0 write "$@" --
    check "$title: the card" grep -qE "^TokenizerConfig\(.*, bos_token_id=$bos\)$" set/README.md
    check "$title: was checked" grep -q 'Each document was checked' set/README.md
}

good "EOS and no BOS" None -t bytes a.jsonl
good "EOS and BOS" 256 -t llama3.tiktoken --bos a.jsonl
good "BOS that is EOS" 256 -t llama3.tiktoken --bos --eos '<|begin_of_text|>' a.jsonl
good "ids of four bytes" 65792 -t wide.tiktoken --pattern llama3 --bos --eos '<|end_of_text|>' a.jsonl
check "the switch of each data set" shell 'grep -q "NumpyPackedFSLDatasetConfig.*use_array_if_local=False" set/README.md &&
    grep -q "NumpyPaddedFSLDatasetConfig.*OLMO_DATA_PREP_USE_ARRAY_IF_LOCAL=false" set/README.md'

refused "no EOS" 'a.jsonl: document 0: the last id is 111, not the EOS 256' -t bytes --no-eos a.jsonl
refused "no BOS" 'a.jsonl: document 0: the first id is 111, not the BOS 256' -t llama3.tiktoken a.jsonl
refused "no BOS where it is EOS" 'a.jsonl: document 0: the first id is 111, not the BOS 256' \
    -t llama3.tiktoken --eos '<|begin_of_text|>' a.jsonl
check "without BOS the configuration has none" grep -q 'bos_token_id=None)$' set/README.md

# EOS inside: at each place of a block, in the second document, with ids of two and of four bytes.
printf 'a<|endoftext|>b' >b.txt
refused "EOS inside" 'b.txt: document 0: id 2 of 4 is the EOS 256' -t bytes --special parse b.txt
# With masks: it is trained on, or not, and the last one is the other.
for spans in '[0, 15]' '[14, 15]'; do
    printf '{"text": "a<|endoftext|>b", "spans": [%s]}\n' "$spans" >m.jsonl
    refused "EOS inside, with the mask of $spans" 'm.jsonl: document 0: id 2 of 4 is the EOS 256' -t bytes --special parse --spans-field spans m.jsonl
done
printf '{"text": "a<|endoftext|>", "spans": [[0, 14]]}\n' >m.jsonl
status "a last EOS that is trained on" 0 write -t bytes --no-eos --special parse --spans-field spans m.jsonl --
for n in 0 1 63 64 ${MORE:+62 65 126 127 128 200}; do
    "$PYTHON" -c "import json
print(json.dumps({'text': 'good'}))
print(json.dumps({'text': 'x' * $n + '<|end_of_text|>' + 'y' * 70}))" >c.jsonl
    status "EOS after $n ids" 1 write -t llama3.tiktoken --bos --special parse c.jsonl --
    check "  its place" grep -q "c.jsonl: document 17: id $((n + 2)) of $((n + 73)) is the EOS 257" err
    status "EOS after $n ids of four bytes" 1 write -t wide.tiktoken --pattern llama3 --eos '<|end_of_text|>' --bos --special parse c.jsonl --
    check "  its place" grep -qE "c.jsonl: document 17: id [0-9]+ of [0-9]+ is the EOS 65793" err
done
printf '<|end_of_text|>' >d.txt
printf "<|begin_of_text|>" >e.txt
status "nothing but EOS and its BOS" 1 write -t llama3.tiktoken --bos --special parse d.txt --
status "nothing but EOS, which is the BOS" 1 write -t llama3.tiktoken --eos "<|begin_of_text|>" --special parse e.txt --

# With masks, in other formats, of ids without a tokenizer.
printf '{"text":"one two","spans":[[0,3]]}\n' >m.jsonl
good "masks" None -t bytes --spans-field spans m.jsonl
status "masks without EOS" 1 write -t bytes --spans-field spans --no-eos m.jsonl --
tokenize -q -t bytes --no-eos a.jsonl -o none.tks
for f in megatron ds mds litdata; do
    status "$f finds documents without EOS" 0 shuffle -q --documents --format $f -o $f none.tks
done

# OLMo-core reads ids of one byte where its tokenizer has 256 or fewer; ours have two.
printf '\5\0\6\0\0\0\7\0\0\0' >few.npy
for n in 256 257; do
    shuffle -q --documents --format olmo --eos-id 0 --token-bytes 2 --vocab-size $n -o few$n few.npy
    same "$n ids: cards that name the width" $((n == 256)) "$(grep -c 'dtype=NumpyDatasetDType.uint16' few$n/README.md || true)"
    decompose -q --eos-id 0 --token-bytes 2 --vocab-size $n --buckets 1,2 few.npy | shuffle -q --format olmo -o cut$n
    same "  cut to lengths, too" $((n == 256)) "$(grep -c 'dtype=NumpyDatasetDType.uint16' cut$n/README.md || true)"
done

# Stages refuse the same, and a run that was stopped goes on only with the same answer.
stage() { shuffle -q --documents --format olmo --work w "$@"; }
rm -rf w && mkdir w
stage --stage scatter --part 0/1 none.tks
status "a gather" 1 stage --stage gather --part 0/1 -o parts
check "  the same message" grep -qE 'a.jsonl: document [0-9]+: the last id is [0-9]+, not the EOS 256' err
status "a gather, accepted" 0 stage --stage gather --part 0/1 --accept-mismatch -f --replace-set -o parts
status "a finish that accepts nothing" 1 stage --stage finish -o parts
status "a finish" 0 stage --stage finish --accept-mismatch -o parts
shuffle -q --documents --format olmo --accept-mismatch -o one none.tks
same "the set of one process" "$(sha_tree one)" "$(sha_tree parts)"
if shim fault >/dev/null; then
    rm -rf set
    SHIM_AT=name:3 LD_PRELOAD=$SHIM/fault.so code shuffle -q --documents --order keep --shard-sequences 1 --accept-mismatch \
        --format olmo -T 1 -o set none.tks >/dev/null 2>&1
    same "killed" 137 "$ended"
    status "going on without the option" 1 shuffle -q --documents --order keep --shard-sequences 1 --format olmo -o set none.tks
    status "going on" 0 shuffle -q --documents --order keep --shard-sequences 1 --accept-mismatch --format olmo -o set none.tks
fi
