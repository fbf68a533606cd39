# shellcheck shell=bash disable=SC2154
# inspect_roundtrip.sh - tokenize, inspect --jsonl, tokenize: the same texts, ids and counts; and the cases in which
# they differ.

have tokenize decompose pack inspect || return 0

corpus c.jsonl 400000 9
"$PYTHON" -c 'import json
own = list(range(33, 127)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
others = [b for b in range(256) if b not in own]
vocab = {chr(b if b in own else 0x100 + others.index(b)): b for b in range(256)}
vocab.update({"ab": 256, "Ã©": 257, "Ġab": 258})
end = {"id": 259, "content": "<|end|>", "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
json.dump({"normalizer": None, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "added_tokens": [end],
           "model": {"type": "BPE", "vocab": vocab, "merges": ["a b", "Ã ©", "Ġ ab"]}}, open("t.json", "w"))
texts = [json.loads(l)["text"] for l in open("c.jsonl")]
texts += ["<|endoftext|>", "a<|end|>b <|eos|><|bos|><s></s>", "<|endoftext", " ", "\n", "\r\n", "\t \u00a0\u2028", "\0", "a\0b\0", "x",
          "é文😀", "e\u0301", "\ufffd", "\ufeffbom", "\U0010ffff", "ab ab  ab", "1234567 89", "\"\\\u007f\u0001", "z" * 70000]
with open("in.jsonl", "w") as f:
    for i, t in enumerate(t for t in texts if t):
        f.write(json.dumps({"text": t, "id": "no %d" % i, "domain": ["web", "é"][i % 2], "score": i / 7}, ensure_ascii=i % 3 == 0) + "\n")'
F="--id-field id --domain-field domain --score-field score"
# equal.py LEFT RIGHT: what the records have, but for where they come from
cat >equal.py <<'PY'
import json, sys
def rows(name):
    for l in open(name, encoding="utf-8"):
        r = json.loads(l)
        s = r["segments"][0]
        assert len(r["segments"]) == 1 and s["offset"] == 0
        yield s["length"], s["id"], s["domain"], s.get("score"), r["tokens"]
a, b = list(rows(sys.argv[1])), list(rows(sys.argv[2]))
assert len(a) > 100 and a == b, (len(a), len(b), [x[:4] for x, y in zip(a, b) if x != y][:3])
PY
cat >texts.py <<'PY'
import json, sys
key = lambda name: sorted((r["id"], r["domain"], r["text"]) for r in map(json.loads, open(name, encoding="utf-8")))
assert key(sys.argv[1]) == key(sys.argv[2])
PY
for t in builtin bytes t.json; do
    eos=
    [ $t != t.json ] || eos='--eos <|end|>'
    # shellcheck disable=SC2086 # words
    tokenize -q -t $t $F $eos -o a.tks in.jsonl
    inspect --jsonl a.tks >back.jsonl
    check "$t: the text comes back" "$PYTHON" texts.py in.jsonl back.jsonl
    # shellcheck disable=SC2086
    tokenize -q -t $t $F $eos -o b.tks back.jsonl
    inspect --records a.tks >a.rec
    inspect --records b.tks >b.rec
    check "$t: the ids too" "$PYTHON" equal.py a.rec b.rec
    figures='[d[k] for k in ("documents", "sequences", "tokens", "lengths", "bytes_per_token", "domains")]'
    inspect --json a.tks >a.js
    inspect --json b.tks >b.js
    same "$t: and the counts" "$(json a.js "$figures")" "$(json b.js "$figures")"
    pack --length 200000 --mix-domains -o p.tks a.tks
    inspect --jsonl p.tks >back.jsonl
    check "$t: documents that share sequences, with padding" "$PYTHON" texts.py in.jsonl back.jsonl
done

# pieces: what is cut between characters comes back piece by piece, what is cut within one shows U+FFFD on both sides
printf '{"text":"ab\\u00e9c"}\n' | tokenize -t bytes --no-eos | decompose --min 1 --max 2 -o d.tks
texts() { inspect --jsonl "$1" | "$PYTHON" -c 'import json, sys
print(ascii([json.loads(l)["text"] for l in sys.stdin]))'; }
same "cut at a character's end" "['ab', '\\xe9', 'c']" "$(texts d.tks)"
printf '{"text":"a\\u00e9bc"}\n' | tokenize -t bytes --no-eos | decompose --min 1 --max 2 -o d.tks
same "cut within a character" "['a\\ufffd', '\\ufffdb', 'c']" "$(texts d.tks)"
printf '{"text":"a<|end|>b"}\n' | tokenize -t t.json --eos '<|end|>' --special parse -o s.tks
same "special tokens stand for no text" "['ab']" "$(texts s.tks)"
