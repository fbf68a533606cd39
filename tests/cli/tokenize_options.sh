# shellcheck shell=bash disable=SC2154
# tokenize_options.sh - EOS and BOS, ids and domains, documents put aside, the provenance, and the account.
# check-more: longer

have tokenize inspect || return 0

tokens() { inspect --records | "$PYTHON" -c 'import json,sys
for l in sys.stdin: print(json.loads(l)["tokens"])'; }
books() { "$PYTHON" - "$1" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
for row in ("tokens", "sequences", "documents"):
    r = d[row]
    left = r["in"] + r["created"] + r.get("repeated", 0) + r.get("padding", 0)
    assert left == r["out"] + sum(r["dropped"].values()), (row, r)
PY
}

printf '{"text": "ab", "body": "c", "id": 7, "src": "web"}\n{"text": "", "body": "d", "id": "x", "src": "code"}\n' >a.jsonl
same "EOS by default" '[97, 98, 256]' "$(tokenize -t bytes a.jsonl | tokens)"
same "--no-eos" '[97, 98]' "$(tokenize -t bytes --no-eos a.jsonl | tokens)"
same "--field" '[99, 256]
[100, 256]' "$(tokenize -t bytes --field body a.jsonl | tokens)"
status "--bos with a tokenizer without BOS" 2 tokenize -t bytes --bos -o x.tks a.jsonl
status "--eos of a token that the vocabulary lacks" 2 tokenize -t bytes --eos '<no-such>' -o x.tks a.jsonl
same "--id-field and --domain-field" '7 web x code' "$(tokenize -t bytes --field body --id-field id --domain-field src a.jsonl |
    inspect --records | "$PYTHON" -c 'import json,sys
print(*[w for l in sys.stdin for s in json.loads(l)["segments"] for w in (s["id"], s["domain"])])')"
same "--domain" 'web' "$(tokenize -t bytes --domain web a.jsonl | inspect --records | "$PYTHON" -c 'import json,sys
print(json.loads(sys.stdin.read())["segments"][0]["domain"])')"
status "--domain and --domain-field" 2 tokenize -t bytes --domain a --domain-field b -o x.tks a.jsonl
tokenize -t bytes --stats s.json a.jsonl >x.tks
same "empty texts are dropped and counted" '[2, 1, 1, 1]' \
    "$(json s.json '[d["documents"]["in"], d["documents"]["dropped"]["empty"], d["documents"]["out"], d["tokens"]["created"]]')"
check "the account balances" books s.json
"$PYTHON" -c 'print("{\"text\": \"a\", \"id\": \"%s\"}" % ("i" * 70000))' >long.jsonl
status "an id of 70,000 bytes" 1 tokenize -t bytes --id-field id -o y.tks long.jsonl
check "is named" grep -q 'long.jsonl:1:.*"id" is longer' err

# held-out documents
corpus c.jsonl 800000 9
tokenize -t bytes --id-field id --seed 3 --holdout 10% --holdout-output h.tks --stats s.json -o m.tks c.jsonl
check "the account balance with a holdout" books s.json
"$PYTHON" - <<'PY' >n
import json
d = json.load(open("s.json"))["documents"]
print(d["dropped"]["holdout"], d["in"])
PY
read -r held all <n
check "about a tenth is held out ($held of $all)" test $((held * 20)) -gt "$all" -a $((held * 20)) -lt $((all * 3))
same "the two streams are the whole" "$(tokenize -t bytes --id-field id c.jsonl | inspect --records | sort | sha)" \
    "$({ inspect --records m.tks; inspect --records h.tks; } | sort | sha)"
tokenize -t bytes --id-field id --seed 3 --holdout 0.1 --holdout-output h7.tks -T 7 -M 32M -o m7.tks c.jsonl
same "-T 7: the same documents" "$(sha m.tks h.tks)" "$(sha m7.tks h7.tks)"
tokenize -t bytes --id-field id --seed 4 --holdout 0.1 --holdout-output h4.tks -o m4.tks c.jsonl
check "another seed, others" test "$(sha h.tks)" != "$(sha h4.tks)"
i=0
while [ $i -lt 3 ]; do
    tokenize -t bytes --id-field id --seed 3 --part $i/3 --holdout 0.1 --holdout-output h$i -o /dev/null c.jsonl
    i=$((i + 1))
done
same "parts hold out the same" "$(inspect --records h.tks | sha)" "$(cat h0 h1 h2 | inspect --records | sha)"
status "--holdout without its output" 2 tokenize -t bytes --holdout 0.1 -o x.tks c.jsonl
status "two outputs with one name" 2 tokenize -t bytes --holdout 0.1 --holdout-output x.tks -o x.tks c.jsonl
tokenize -t bytes --holdout 1 --holdout-output h.tks c.jsonl | inspect --json >s.json
same "--holdout 1" 0 "$(json s.json 'd["documents"]')"

# what is recorded
steps() { inspect --json "$1" | "$PYTHON" -c 'import json,sys
print([s["arguments"] for s in json.load(sys.stdin)["provenance"]])'; }
tokenize -t bytes -T 2 -M 64M -v --stats s.json -o x.tks c.jsonl 2>err
same "options that do not affect results are not recorded" "['--tokenizer=bytes']" "$(steps x.tks)"
"$PYTHON" -c 'import base64
for i in range(256): print(base64.b64encode(bytes([i])).decode(), i)' >one.tiktoken
mkdir -p folder && cp one.tiktoken folder/other.tiktoken
tokenize -t one.tiktoken --pattern gpt2 -o x.tks c.jsonl
tokenize -t folder/other.tiktoken --pattern gpt2 -o y.tks c.jsonl
same "a tokenizer's file name does not affect the stream" "$(sha <x.tks)" "$(sha <y.tks)"
same "but its family is recorded" "['--tokenizer=file:gpt2 --pattern=gpt2']" "$(steps x.tks)"
tokenize -t one.tiktoken --pattern gpt2 --stats s.json -o x.tks c.jsonl
same "--stats has the file, too" "one.tiktoken gpt2 $(inspect --json x.tks | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["fingerprint"])')" \
    "$(json s.json '" ".join(d["tokenizer"].values())')"
check "inspect shows the fingerprint" test "$(inspect x.tks | grep -c "tokenizer   family gpt2, from a file, fingerprint $(json s.json 'd["tokenizer"]["fingerprint"]')")" = 1
tokenize --special ordinary -o x.tks c.jsonl 2>err
same "no -t: one line" "2 tokenize: no -t: uses the built-in vocabulary of 32768 ids; give -t FILE for another one, or -t builtin" "$(wc -l <err) $(told err)"
same "and the vocabulary's name is recorded" "['--tokenizer=builtin']" "$(steps x.tks)"
for say in -q "-t builtin"; do
    # shellcheck disable=SC2086
    tokenize $say --special ordinary -o y.tks c.jsonl 2>err
    empty "$say: no line" "$(told err)"
    check "and the same stream" cmp x.tks y.tks
done

# One line a program says what went in and out, and what was dropped; -q silences.
printf '%s\n' '{"text": "ab"}' '{"text": ""}' '{"text": "cd"}' '{"text": "ab"}' '{"text": "e"}' >few.jsonl
tokenize -t bytes few.jsonl 2>err | dedup 2>err2 | decompose --min 1 --max 4 2>err3 >few.tks
same "tokenize says its counts" "tokenize: 5 documents, 7 tokens in; 4 documents, 11 tokens in 4 sequences out; dropped: empty 1 document; T s" \
    "$(sed 's/[0-9.]* s$/T s/' err)"
same "dedup, with the share that it dropped" \
    "dedup: 4 documents, 11 tokens in; 3 documents, 8 tokens in 3 sequences out; dropped: exact-duplicate 1 document with 3 tokens (27.3 %); T s" \
    "$(sed 's/[0-9.]* s$/T s/' err2)"
same "decompose" 1 "$(grep -c '^decompose: 3 documents, 8 tokens in; ' err3)"
tokenize -t bytes -q few.jsonl 2>err | dedup -q 2>err2 >few.tks
empty "-q: nothing" "$(cat err err2)"
inspect few.tks 2>err >out
empty "inspect, which prints: nothing" "$(cat err)"
tokenize -t bytes --no-provenance -o x.tks c.jsonl
same "--no-provenance" '[]' "$(steps x.tks)"
tokenize -t bytes -o x.tks c.jsonl
tokenize -t bytes --no-vocab -o y.tks c.jsonl
check "--no-vocab is smaller" test "$(stat -c %s y.tks)" -lt "$(stat -c %s x.tks)"

# a document larger than frames and than blocks, and one that -M does not allow
"$PYTHON" -c 'import json
for n in (5, 3000000, 7): print(json.dumps({"text": "\u00e9\n" * n}))' >big.jsonl
tokenize -t bytes -T 1 -o b1.tks big.jsonl
tokenize -t bytes -T 7 -M 200M -o b7.tks big.jsonl
same "a document of 9 million tokens: -T 1 and 7" "$(sha b1.tks)" "$(sha b7.tks)"
check "which is sound" inspect --verify b1.tks
"$PYTHON" -c 'import json
d=json.load(open("s.json"))' && tokenize -t bytes -M 256M --stats s.json -o b.tks big.jsonl
[ -n "${SAN:-}" ] || check "within -M and 64 MiB" test "$(json s.json 'd["peak_rss_bytes"]')" -lt $((320 << 20))
status "a record that -M does not allow" 1 tokenize -t bytes -M 32M -o y2.tks big.jsonl
check "is named with its place" grep -q '^tokenize: big.jsonl: byte [0-9]*: the record is larger than .*give more memory with -M' err
check "and no output is left" test ! -e y2.tks
status "output to a full disk" 1 tokenize -t bytes -o /dev/full c.jsonl

# More threads than there is memory for: fewer work.
"$PYTHON" -c 'for i in range('"$(longer 100000 300000)"'): print("{\"text\": \"%s\"}" % ("some words %d " % i * 12))' >many.jsonl
status "-T 1000 -M 32M" 0 tokenize -T 1000 -M 32M --stats s.json -o /dev/null many.jsonl
[ -n "${SAN:-}" ] || check "within 96 MiB" test "$(json s.json 'd["peak_rss_bytes"]')" -le $((96 << 20))
rm -f many.jsonl

# A special token, or the EOS, that ordinary text can become: the ids are those of the reference, and a warning names it.
"$PYTHON" - <<'PY'
import json
def alphabet():
    chars, n = {}, 0
    for b in range(256):
        own = 33 <= b <= 126 or 161 <= b <= 172 or b >= 174
        chars[b] = chr(b if own else 256 + n)
        n += not own
    return chars
def write(name, merges=(), special=True, in_vocab=True, **model):
    vocab = {c: b for b, c in alphabet().items()}
    for m in merges:
        vocab["".join(m)] = len(vocab)
    if in_vocab:
        vocab.setdefault("<s>", len(vocab))
    token = {"id": vocab.get("<s>", len(vocab)), "content": "<s>", "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": special}
    end = dict(token, id=max(len(vocab), token["id"] + 1), content="</s>", special=True)
    json.dump({"version": "1.0", "added_tokens": [token, end], "normalizer": None,
               "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                   {"type": "Split", "pattern": {"Regex": r"\s*\S+|\s+"}, "behavior": "Isolated", "invert": False},
                   {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]},
               "model": dict({"type": "BPE", "vocab": vocab, "merges": [" ".join(m) for m in merges]}, **model)}, open(name, "w"))
write("merged.json", [("<", "s"), ("<s", ">")])
write("whole.json", ignore_merges=True)
write("plain.json", special=False, in_vocab=False)
write("fine.json")
PY
printf '%s\n' '<s>' 'a <s> b' 'a<s>b' >leak.txt
leaks() { # WHAT TOKENIZER ID THERE WARNING [OPTION...]
    what_leaks=$1 t=$2 id=$3 there=$4 said=$5
    shift 5
    status "$what_leaks" 0 tokenize -t "$t" "$@" -o leak.tks leak.txt
    same "  the warning" "said: $said" "said: $(told err)"
    inspect --records leak.tks >leak.jsonl
    same "  and the id is there, or not" "$there" "$(grep -c "[[,]$id," leak.jsonl || :)"
    status "  -q" 0 tokenize -t "$t" "$@" -q -o leak.tks leak.txt
    empty "  says nothing" "$(cat err)"
}
tail_of="take such text out, or use another tokenizer"
leaks "a special token that merges make" merged.json 257 1 "tokenize: \"<s>\" in a text becomes id 257, a special token; $tail_of"
leaks "one that is a whole word of the model" whole.json 256 1 "tokenize: \"<s>\" in a text becomes id 256, a special token; $tail_of"
leaks "an EOS that is no special token" plain.json 256 1 \
    "tokenize: \"<s>\" in a text becomes id 256, which ends a document; $tail_of or --eos" --eos '<s>'
leaks "the same, which is not the EOS" plain.json 256 1 ""
leaks "a special token that nothing makes" fine.json 256 0 \
    "tokenize: 3 times a text has the name of a special token, such as \"<s>\", and it was encoded as ordinary text; give --special parse if tokens are meant, --special ordinary if text is"
leaks "the same, which is meant" fine.json 256 0 "" --special ordinary
leaks "special tokens that are asked for" fine.json 256 1 "" --special parse

# A score's field that is not there.
"$PYTHON" -c 'import json
for i in range(40): print(json.dumps({"text": "t%d" % i, "meta": {"q": i}, **({"rare": 1} if i < 3 else {}), **({"often": 1} if i < 4 else {})}))' >q.jsonl
status "no document has a score there" 1 tokenize -t bytes --score-field mata.q -o q.tks q.jsonl
same "  says so" "tokenize: --score-field mata.q: none of 40 documents has a score there; name a field that they have, or leave the option out" "$(cat err)"
check "  and leaves no output" test ! -e q.tks
status "few have one" 0 tokenize -t bytes --score-field rare -o q.tks q.jsonl
same "  says so" "tokenize: --score-field rare: 3 of 40 documents have a score there" "$(told err)"
status "a tenth has one" 0 tokenize -t bytes --score-field often -o q.tks q.jsonl
empty "  says nothing" "$(told err)"
for i in 0 1; do
    status "a part without scores" 0 tokenize -t bytes --score-field qq --part $i/2 --stats q$i.json -o q.tks -f q.jsonl
    check "  warns" grep -q '0 of [0-9]* documents have a score there' err
done
status "all parts without scores" 1 inspect --merge-stats q0.json q1.json
check "  says so" grep -q 'none of 40 documents has a score' err
echo >blank.jsonl
status "no documents at all" 0 tokenize -t bytes --score-field q -o q.tks -f blank.jsonl
