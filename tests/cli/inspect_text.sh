# shellcheck shell=bash disable=SC2154
# inspect_text.sh - bytes of text a token, in total and by domain, of streams, packed streams and shard sets.

have tokenize decompose pack shuffle inspect || return 0

# A byte-level BPE of two merges, and a special token of its own.
"$PYTHON" -c 'import json
own = list(range(33, 127)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
others = [b for b in range(256) if b not in own]
vocab = {chr(b if b in own else 0x100 + others.index(b)): b for b in range(256)}
vocab.update(ab=256, abc=257)
end = {"id": 258, "content": "<|end|>", "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
json.dump({"normalizer": None, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "added_tokens": [end],
           "model": {"type": "BPE", "vocab": vocab, "merges": ["a b", "ab c"]}}, open("t.json", "w"))'
# text -> tokens:   abc ab x    abc    \xc3 \xa9 ab    x
cat >b.jsonl <<'J'
{"text":"abcabx","domain":"web"}
{"text":"abc","domain":"web"}
{"text":"éab","domain":"code\u001b[1m"}
{"text":"x","domain":""}
J
tok() { tokenize -t t.json --eos '<|end|>' --domain-field domain "$@" b.jsonl; }
# 14 bytes of 8 tokens; web 9 of 4, code 4 of 3; with an eos each, 12 tokens
want='[1.75, ["web", 2, 6, 9, 4, 2.25], ["code\u001b[1m", 1, 4, 4, 3, 1.3333], [null, 1, 2, 1, 1, 1.0]]'
figures() { json "$1" '[d["bytes_per_token"]] + [[r[k] for k in ("domain", "documents", "tokens", "text_bytes", "text_tokens", "bytes_per_token")] for r in d["domains"]]'; }
tok -o b.tks
inspect --json b.tks >j
same "by hand" "$want" "$(figures j)"
tok --stats s.json -o x.tks
same "the figures of tokenize --stats" "$(figures s.json)" "$(figures j)"
inspect b.tks >out
check "the summary has them in all" grep -q '^  text  *14 bytes of 8 tokens, 1\.7500 bytes a token$' out
check "and by domain" grep -Eq '^ *"web" +2 +6 +2\.2500$' out
check "a name reaches no terminal as it is" grep -Fq '"code\u001b[1m"' out
check "documents without a domain" grep -Eq '^ *\(none\) +1 +2 +1\.0000$' out

# padding is not counted, nor are tokens that --special parse made
pack --length 16 --mix-domains -o p.tks b.tks
inspect --json p.tks >j
check "the stream has padding" test "$(json j 'd["padding"]')" -gt 0
same "packed, with padding" "$want" "$(figures j)"
printf '{"text":"abc<|end|>ab"}\n' | tokenize -t t.json --special parse --eos '<|end|>' | inspect --json >j
same "special tokens in the text" '[2.5, [null, 1, 4, 5, 2, 2.5]]' "$(figures j)"

# shard sets, several buckets, each with names of its own
shuffle -q --accept-mismatch --format wds -o set p.tks
inspect --json set >j
same "a shard set" "$want" "$(figures j)"
printf '{"text":"abcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabc","domain":"code\\u001b[1m"}\n{"text":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx","domain":"web"}\n' |
    tokenize -t t.json --eos '<|end|>' --domain-field domain -o c.tks
decompose --min 4 --max 16 --label-token c.tks b.tks | pack --method multi -o d.tks
inspect --json d.tks >j
shuffle -q --format wds -o set2 d.tks
inspect --json set2 >k
check "several buckets" test "$(json k 'len([b for b in d["buckets"] if b["sequences"]])')" -gt 2
same "several buckets: the set has the figures of its stream" "$(figures j)" "$(figures k)"

# nothing to say it by
tok --no-vocab | inspect --json >j
same "without a vocabulary" '[false, [["web", 2, 6], ["code\u001b[1m", 1, 4], [null, 1, 2]]]' \
    "$(json j '["bytes_per_token" in d, [[r["domain"], r["documents"], r["tokens"]] for r in d["domains"]]]')"
tok --no-vocab | inspect >out
check "nor in the summary" shell "! grep -q 'bytes a token\\|bytes/token' out && grep -q '\"web\"' out"

# many domains
"$PYTHON" -c '
import json
for i in range(1500):
    print(json.dumps({"text": "x" * (1500 - i), "d": "d%04d" % i}))' | tokenize -t bytes --domain-field d -o m.tks
inspect --json m.tks >j
same "the largest 1000, the others in a row" '[1001, "d0000", "d0999", 500]' \
    "$(json j '[len(d["domains"]), d["domains"][0]["domain"], d["domains"][999]["domain"], d["domains"][1000]["others"]]')"
check "the others of the summary" shell "inspect m.tks | grep -c '(1480 others)'"

# ---- options in the provenance, which a stream of others has too ----

tokenize -q -t bytes -o esc.tks --domain $'a\e[31m\x7f\xc2\x9b2J\xc3\xa9\nb' b.jsonl
inspect esc.tks >seen
same "no control character of the provenance reaches a terminal" '--domain=a\u001b[31m\u007f\u009b2Jé\u000ab, seed 0' "$(sed -n 's/.* \(--domain=.*\)/\1/p' seen)"

# Names of domains, in tables and messages: C1 controls and marks of direction, and names of other scripts.
printf '%s\n' '{"text":"a","d":"x\u009b31m\u202ey\u2066\u061c\u2028"}' '{"text":"b","d":"文書 ישן ü"}' | tokenize -q -t bytes --domain-field d -o d.tks
wild() { LC_ALL=C grep -nP '\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]' "$1"; }
status "a summary" 0 inspect d.tks
cp out seen
status "groups" 0 inspect --groups domain d.tks
cat out >>seen
status "a message with all domains" 1 shuffle --mix no=1 --max-tokens 10 d.tks -o x.tks
cat err >>seen
check "none of them controls a terminal" fails wild seen
same "readable ones stay" 3 "$(grep -c '文書 ישן ü' seen)"
same "the others are shown in tables" 2 "$(grep -cF '"x\u009b31m\u202ey\u2066\u061c\u2028"' seen)"
check "and in messages" grep -qF 'domains are x?31m?y???, 文書' seen
