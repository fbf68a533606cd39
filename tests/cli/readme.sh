# shellcheck shell=bash disable=SC2154
# readme.sh - the commands of README, "Your own data", as they are written: a block of lines each.

have tokenize dedup decompose pack shuffle schedule inspect || return 0
"$PYTHON" -c 'import json
own = list(range(33, 127)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
others = [b for b in range(256) if b not in own]
vocab = {chr(b if b in own else 0x100 + others.index(b)): b for b in range(256)}
end = {"id": 256, "content": "<|endoftext|>", "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
json.dump({"normalizer": None, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "added_tokens": [end],
           "model": {"type": "BPE", "vocab": vocab, "merges": []}}, open("tokenizer.json", "w"))'
mkdir corpus
corpus corpus/1.jsonl 1500000 1
corpus corpus/2.jsonl 500000 2
sed -n '/^## Your own data/,/^## /p' "$top/README.md" | awk '/^```/ { n += !on; on = !on; next } on { print >"block." n }'
blocks=$(find . -name 'block.*' | wc -l)
check "README has blocks of commands there" test "$blocks" -ge 2
for i in $(seq 1 "$blocks"); do
    # The number of tokens of a long training is for a large corpus.
    sed -i 's/--tokens [0-9]*/--tokens 500000/; s/--epochs 8 --world 8/--epochs 1 --world 1/' "block.$i"
    status "block $i: $(head -n 1 "block.$i")" 0 bash -e -o pipefail "block.$i"
done
