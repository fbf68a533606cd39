# shellcheck shell=bash disable=SC2154
# readme.sh - the commands of README, "Your own data", as they are written: a block of lines each.

have tokenize dedup decompose pack shuffle schedule inspect || return 0
"$PYTHON" -c 'import json
own = list(range(33, 127)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
others = [b for b in range(256) if b not in own]
vocab = {chr(b if b in own else 0x100 + others.index(b)): b for b in range(256)}
names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
added = [{"id": 256 + i, "content": name, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
         for i, name in enumerate(names)]
json.dump({"normalizer": None, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "added_tokens": added,
           "model": {"type": "BPE", "vocab": vocab, "merges": []}}, open("tokenizer.json", "w"))'
mkdir corpus
corpus corpus/1.jsonl 1500000 1
corpus corpus/2.jsonl 500000 2
printf %s '{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}' >chat_template.jinja
for i in $(seq 200); do
    echo '{"messages": [{"role": "user", "content": "What is '"$i"' + 1?"}, {"role": "assistant", "content": "'$((i + 1))'."}]}'
done >chats.jsonl
for python in "${SLUICE_PYTHON:-python3}" "$O/python/venv/bin/python"; do
    if "$python" -c 'import jinja2' 2>/dev/null; then
        export SLUICE_PYTHON=$python
        jinja2=1
        break
    fi
done
sed -n '/^## Your own data/,/^## /p' "$top/README.md" | awk '/^```/ { n += !on; on = !on; next } on { print >"block." n }'
blocks=$(find . -name 'block.*' | wc -l)
check "README has blocks of commands there, for buckets, whole documents and dialogues" test "$blocks" -ge 3
for i in $(seq 1 "$blocks"); do
    if [ -z "${jinja2:-}" ] && grep -q sluice-chat "block.$i"; then
        skip "block $i, of dialogues: no Python has jinja2 (make python)"
        continue
    fi
    # The number of tokens of a long training is for a large corpus.
    sed -i 's/--tokens [0-9]*/--tokens 500000/; s/--epochs 8 --world 8/--epochs 1 --world 1/' "block.$i"
    status "block $i: $(head -n 1 "block.$i")" 0 bash -e -o pipefail "block.$i"
done
if [ -n "${jinja2:-}" ]; then
    same "of the dialogues, the answers are trained on" "200 True" \
        "$(json dialogues/report.json '"%d %s" % (d["documents"], 200 < d["loss_tokens"] < d["tokens"] / 2)')"
fi
