# shellcheck shell=bash disable=SC2154
# masks.sh - streams whose tokens are trained on or not: no program loses a mask.

have inspect decompose dedup pack shuffle || return 0

# The example of the specification with masks: 4 and 2 tokens, of which 3 are trained on.
"$PYTHON" - "$top/formats/STREAM.md" <<'P' >example.tks
import re, sys
block = re.findall(r"```hex\n(.*?)```", open(sys.argv[1], encoding="utf-8").read(), re.S)[2]
sys.stdout.buffer.write(bytes.fromhex("".join(line[5:] for line in block.splitlines())))
P
same "inspect --records shows masks" "$(tokstream example.tks)" "$(inspect --records example.tks)"
inspect --json example.tks >j
same "inspect --json counts what is trained on" '[3, 6]' "$(json j '[d["loss_tokens"], d["tokens"]]')"
tokstream --need-all --summary example.tks >k
same "and has the checksum of the masks" "$(json k 'd["mask_checksum"]')" "$(json j 'd["mask_checksum"]')"
inspect example.tks >out
check "so does the summary" grep -q '^  trained on  3 tokens, 50.0 %$' out
check "inspect --verify" shell 'inspect --verify example.tks | grep -c "3 tokens trained on, checksum of masks"'
status "a shard format refuses what it would lose" 1 shuffle -q --format megatron -o set example.tks
check "and says why" grep -q "cannot carry masks" err
check "nothing is left" test ! -e set
check "dedup compares ids alone" shell 'cat example.tks example.tks | dedup -q --stats s.json | inspect --verify >out'
same "and counts the masks of what it drops" '{"exact-duplicate": 3}' "$(json s.json 'd["loss_tokens"]["dropped"]')"

# Spans of characters; tokens are bytes. Of the last character only the first byte is trained on, as transformers has it.
spans() { tokenize -q -t bytes --no-eos --spans-field spans "$@"; }
masks() { inspect --records | "$PYTHON" -c 'import json, sys
print([[k for k, v in enumerate(json.loads(line)["mask"]) if v] for line in sys.stdin])'; }
cat >t.jsonl <<'J'
{"text": "abcdef", "spans": [[0, 1], [4, 6]]}
{"spans": [ [ 1 , 3 ] ], "text": "\u00e9\u00e8\ud83d\ude00x"}
{"text": "abc", "spans": [[1, 1], [3, 3], [0, 0]]}
{"text": "abc", "spans": []}
{"text": "", "spans": []}
{"text": "a", "spans": [[0, 1]]}
J
same "spans by hand" "[[0, 4, 5], [2, 3, 4], [0]]" "$(spans t.jsonl | masks)"
same "EOS is not trained on" "[[0, 4, 5], [2, 3, 4], [0]]" "$(tokenize -q -t bytes --spans-field spans t.jsonl | masks)"
spans --stats s.json -o x.tks t.jsonl
same "dropped by reason" '{"documents": {"untrained": 2, "empty": 1}, "loss_tokens": {"untrained": 0, "empty": 0}}' \
    "$(json s.json '{k: d[k]["dropped"] for k in ("documents", "loss_tokens")}')"
same "the ids are those of the whole text" "$(sed '3,4d' t.jsonl | tokenize -q -t bytes --no-eos | inspect --json | json /dev/stdin 'd["checksum"]')" \
    "$(inspect --json x.tks | json /dev/stdin 'd["checksum"]')"
n=0
while IFS='|' read -r record why; do
    n=$((n + 1))
    printf '%s\n' "$record" >bad.jsonl
    status "bad record $n" 1 spans bad.jsonl -o y.tks
    check "bad record $n: the message" grep -qF -- "$why" err
done <<'J'
{"text": "abc"}|no field "spans"
{"text": "abc", "spans": "[[0, 1]]"}|field "spans" is not [[begin, end], ...]
{"text": "abc", "spans": null}|field "spans" is not [[begin, end], ...]
{"text": "abc", "spans": [1, 2]}|field "spans" is not [[begin, end], ...]
{"text": "abc", "spans": [[1, 2, 3]]}|field "spans" is not [[begin, end], ...]
{"text": "abc", "spans": [[1, 2],]}|not valid JSON
{"text": "abc", "spans": [[1, 2] [2, 3]]}|not valid JSON
{"text": "abc", "spans": [[2, 1]]}|field "spans" is not [[begin, end], ...]
{"text": "abc", "spans": [[-1, 1]]}|field "spans" is not [[begin, end], ...]
{"text": "abc", "spans": [[0, 1.0]]}|field "spans" is not [[begin, end], ...]
{"text": "abc", "spans": [[0, 1e0]]}|field "spans" is not [[begin, end], ...]
{"text": "abc", "spans": [[0, 99999999999999999999]]}|field "spans" is not [[begin, end], ...]
{"text": "\u00e9", "spans": [[0, 2]]}|field "spans" is not [[begin, end], ...]
{"text": "", "spans": [[0, 1]]}|field "spans" is not [[begin, end], ...]
{"text": "", "spans": [[5, 5]]}|field "spans" is not [[begin, end], ...]
J
printf 'text\n' >t.txt
status "a text has no spans" 1 spans t.txt -o y.tks
check "and the message says so" grep -q 'no field "spans"' err
"$PYTHON" -c 'import json
own = list(range(33, 127)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
others = [b for b in range(256) if b not in own]
vocab = {chr(b if b in own else 0x100 + others.index(b)): b for b in range(256)}
json.dump({"normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "added_tokens": [],
           "model": {"type": "BPE", "vocab": vocab, "merges": []}}, open("n.json", "w"))'
printf '{"text": "abc", "spans": [[0, 2]]}\n{"text": "abC", "spans": [[0, 2]]}\n' >n.jsonl
status "a normalizer that changes the text" 1 tokenize -t n.json --no-eos --spans-field spans n.jsonl -o y.tks
check "is named" grep -q 'n.jsonl:2: .*tokenizer changes the text' err
tokenize -q -t n.json --no-eos --spans-field spans --on-error skip --stats s.json n.jsonl -o y.tks 2>/dev/null
same "or the text is left out" '{"changed-text": 1}' "$(json s.json 'd["documents"]["dropped"]')"

# Texts that are changed before they are encoded: ids and masks are those of tokenizers 0.23.3 (tests/judges/spans.py has more).
# A line: the steps; the text; its ranges; ids and mask, or none where a range begins or ends with a character that has no token.
"$PYTHON" - <<'P' >changed.log 2>&1
import json, subprocess
def sequence(*steps):
    return {"normalizer": {"type": "Sequence", "normalizers": steps}, "pre_tokenizer": None}
def replace(a, b):
    return {"type": "Replace", "pattern": {"String": a}, "content": b}
prepend, spaces, nfc = {"type": "Prepend", "prepend": "\u2581"}, replace(" ", "\u2581"), {"type": "NFC"}
llama, composed, several = sequence(prepend, spaces), sequence(nfc, prepend, spaces), sequence(replace("bc", "a"), prepend, spaces)
lower = sequence({"type": "Lowercase"}, prepend, spaces)
def space(scheme, norm=None):
    return {"normalizer": norm, "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": False}}
metaspace, apart, joined = space("always"), sequence({"type": "NFD"}, spaces), sequence(nfc, spaces)
words = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)] + ["\u2581", "a", "b", "\u00e9", "c", "\u2581a", "ab", "\u2581ab", "cc"]
vocab = {w: i for i, w in enumerate(words)}
added = [{"id": i, "content": w, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False} for i, w in
         enumerate(words[:3])]
cc = {**added[0], "id": vocab["cc"], "content": "cc", "normalized": True}
for steps, text, spans, want in [
        (llama, "ab a", [[0, 1]], ("\u2581ab \u2581a", [1, 0])), (llama, "ab a", [[1, 4]], ("\u2581ab \u2581a", [1, 1])),
        (llama, " ab", [[0, 1]], ("\u2581 \u2581ab", [1, 0])), (llama, " ab", [[1, 3]], ("\u2581 \u2581ab", [0, 1])),
        (llama, "b a\u00e9", [[0, 1]], ("\u2581 b \u2581a \u00e9", [1, 0, 0, 0])),
        (llama, "b a\u00e9", [[0, 2], [3, 4]], ("\u2581 b \u2581a \u00e9", [1, 1, 1, 1])),
        (llama, "</s>b ab", [[4, 5]], ("</s> \u2581 b \u2581ab", [0, 1, 0, 0])), (llama, "b</s>ab", [[0, 5]], ("\u2581 b </s> \u2581ab", [1, 1, 1, 0])),
        (llama, "\u65e5b", [[0, 1]], ("\u2581 <0xE6> <0x97> <0xA5> b", [1, 0, 0, 0, 0])),
        (llama, "b\u65e5b", [[1, 3]], ("\u2581 b <0xE6> <0x97> <0xA5> b", [0, 0, 1, 1, 1, 1])),
        (llama, "a\u2581b", [[1, 3]], ("\u2581a \u2581 b", [0, 1, 1])),
        (composed, "ae\u0301b", [[0, 2]], ("\u2581a \u00e9 b", [1, 1, 0])), (composed, "ae\u0301b", [[1, 3]], None),
        (composed, "ae\u0301b", [[3, 4]], ("\u2581a \u00e9 b", [0, 0, 1])), (composed, "e\u0301", [[0, 1]], ("\u2581 \u00e9", [1, 0])),
        (several, "bcb", [[1, 3]], ("\u2581ab", [1])), (several, "bcb", [[0, 1]], None), (several, "cbcb", [[0, 3]], ("\u2581 c ab", [1, 1, 1])),
        (metaspace, "ab a", [[0, 1]], ("\u2581ab \u2581a", [1, 0])), (metaspace, " ab", [[0, 1]], ("\u2581ab", [1])),
        (metaspace, "b a</s>ab", [[7, 9]], ("\u2581 b \u2581a </s> \u2581ab", [0, 0, 0, 0, 1])),
        (space("first"), "b</s>b", [[0, 1]], ("\u2581 b </s> b", [1, 0, 0, 0])), (space("first"), "b</s>b", [[5, 6]], ("\u2581 b </s> b", [0, 0, 0, 1])),
        (joined, "e\u0301bcc e\u0301b", [[3, 5]], ("\u00e9 b cc \u2581 \u00e9 b", [0, 0, 1, 0, 0, 0])),
        (joined, "e\u0301bcc e\u0301b", [[6, 7], [8, 9]], ("\u00e9 b cc \u2581 \u00e9 b", [0, 0, 0, 0, 1, 1])),
        (space("always", nfc), "be\u0301ccb\u2581b", [[0, 1], [5, 6]], ("\u2581 b \u00e9 cc \u2581 b \u2581 b", [1, 0, 0, 0, 1, 0, 0, 0])),
        (space("always", nfc), "be\u0301ccb\u2581b", [[3, 5], [6, 8]], ("\u2581 b \u00e9 cc \u2581 b \u2581 b", [0, 0, 0, 1, 0, 0, 1, 1])),
        (apart, "a\u00e9b", [[1, 2]], ("a <0x65> <0xCC> <0x81> b", [0, 1, 0, 0, 0])), (apart, "a\u00e9b", [[1, 3]], ("a <0x65> <0xCC> <0x81> b", [0, 1, 1, 1, 1])),
        (apart, "\u0958b", [[0, 2]], ("<0xE0> <0xA4> <0x95> <0xE0> <0xA4> <0xBC> b", [1] * 7)),
        (composed, "b " * 99 + "e\u0301 ab", [[198, 202]], ("\u2581 b " * 99 + "\u2581 \u00e9 \u2581ab", [0] * 199 + [1, 1])),
        (sequence(replace("c", "b" * 64)), "acb", [[2, 3]], ("ab" + " b" * 64, [0] * 64 + [1])),
        (lower, "AB", [[0, 1]], None), (lower, "ab b", [[0, 2]], ("\u2581ab \u2581 b", [1, 0, 0])),
        (composed, "ab", [[0, 3]], "bad-spans")]:
    json.dump({**steps, "added_tokens": added + [cc] * ("cc" in text), "model": {"type": "BPE", "vocab": vocab, "byte_fallback": True, "unk_token": "<unk>", "fuse_unk": True,
               "merges": [["\u2581", "a"], ["a", "b"], ["\u2581a", "b"]]}}, open("l.json", "w"))
    with open("l.jsonl", "w") as f:
        f.writelines(json.dumps({"text": x, "spans": y}) + "\n" for x, y in ((text, spans), ("a", [[0, 1]])))
    subprocess.run("tokenize -q -t l.json --no-eos --special parse --spans-field spans --rejects r.jsonl l.jsonl -f -o l.tks".split(), check=True)
    got = [json.loads(x) for x in subprocess.run(["inspect", "--records", "l.tks"], stdout=subprocess.PIPE, check=True).stdout.splitlines()]
    why = [json.loads(x)["reason"] for x in open("r.jsonl")]
    if isinstance(want, tuple):
        want = [[vocab[w] for w in want[0].split()], want[1]], []
    else:
        want = [], [want or "changed-text"]
    got = [[q[k] for k in ("tokens", "mask")] for q in got][0] if len(got) > 1 else []
    print("good" if (got, why) == want else "bad", ascii((text, spans, got, why, want)))
P
same "ranges of texts that are changed" 35 "$(grep -c '^good' changed.log)"
check "all of them" shell '! grep -v ^good changed.log'

# trim_offsets: a space at the end of a range has no token, except before the text with add_prefix_space.
post() { "$PYTHON" -c 'import json, sys
t = json.load(open("n.json"))
t["normalizer"] = None
t["post_processor"] = {"type": "ByteLevel", "trim_offsets": sys.argv[1] == "true", "add_prefix_space": sys.argv[2] == "true"}
if sys.argv[3:]:
    t["post_processor"] = {"type": "Sequence", "processors": [t["post_processor"]]}
v = t["model"]["vocab"]
v["\u0120a"] = 256
t["model"]["merges"] = [["\u0120", "a"]]
json.dump(t, open("p.json", "w"))' "$@"; }
# The masks of a text and of "z", which is never rejected.
trimmed() { printf '{"text": "%s", "spans": [%s]}\n' "$1" "$2" z '[0, 1]' | tokenize -q -t p.json --no-eos --spans-field spans --on-error skip | masks; }
post true false
same "trim_offsets: a range that begins with a space" "[[0]]" "$(trimmed 'x a' '[1, 3]' 2>/dev/null)"
printf '{"text": "x a", "spans": [[1, 3]]}\n' >p.jsonl
status "is refused" 1 tokenize -q -t p.json --no-eos --spans-field spans p.jsonl -o y.tks
check "by name" grep -q 'begins or ends with a space that .*trim_offsets' err
same "behind the space" "[[1], [0]]" "$(trimmed 'x a' '[2, 3]')"
same "a range that ends with a space" "[[0]]" "$(trimmed 'x ab' '[0, 2]' 2>/dev/null)"
same "a space within" "[[0, 1, 2], [0]]" "$(trimmed 'x ab' '[0, 4]')"
same "a space at the text's beginning" "[[0]]" "$(trimmed ' ab' '[0, 3]' 2>/dev/null)"
post true true
same "with add_prefix_space" "[[0, 1], [0]]" "$(trimmed ' ab' '[0, 3]')"
post true true in-a-sequence
same "in a sequence of processors" "[[0]]" "$(trimmed 'x a' '[1, 3]' 2>/dev/null)"
post false false
same "without trim_offsets" "[[1], [0]]" "$(trimmed 'x a' '[1, 3]')"
same "an empty range has no token" "[[0]]" "$(trimmed 'x a' '[2, 2], [1, 1], [3, 3]')"
# Added tokens that take in the white space beside them; of two that do, the first one has it.
"$PYTHON" -c 'import json
t, no = json.load(open("p.json")), {"single_word": False, "normalized": False, "lstrip": False, "rstrip": False}
t["added_tokens"] = [{"id": 257 + i, "content": c, **no, "special": i < 2, **{k: True for k in flags}} for i, (c, flags) in enumerate(
    [("<l>", ["lstrip"]), ("<r>", ["rstrip"]), ("<b>", ["lstrip", "rstrip"]), ("\n", ["lstrip", "rstrip"])])]
json.dump(t, open("s.json", "w"))'
stripped() { printf '{"text": "%s", "spans": [%s]}\n' "$@" | tokenize -q -t s.json --no-eos --special parse --spans-field spans | masks; }
same "a token with the space before it" "[[1]]" "$(stripped 'x  <l> a' '[1, 2]')"
same "or behind it" "[[1], [1, 2]]" "$(stripped 'x<r>  a' '[5, 6]' 'x<r>  a' '[5, 7]')"
same "or on both sides" "[[2], [1]]" "$(stripped 'x<r> <b> a' '[5, 9]' 'x<r> <b> a' '[4, 5]')"
same "special tokens that are text" "[[1, 2, 3], [2, 3]]" "$(printf '{"text": "x <b> a<l>", "spans": [[1, 8]]}\n{"text": "ab<l> ", "spans": [[2, 4]]}\n' |
    tokenize -q -t s.json --no-eos --spans-field spans | masks)"
same "none is left for a token of white space" '[97, 258, 98]' \
    "$(printf 'a<r> \\n\\n b' | sed 's/.*/{"text": "&"}/' | tokenize -q -t s.json --no-eos --special parse |
        inspect --records | json /dev/stdin 'd["tokens"]')"
# A record of very many ranges: a search for each from the text's beginning would take minutes.
"$PYTHON" -c 'import json
n = 400000
print(json.dumps({"text": "ab c " * n, "spans": [[5 * i, 5 * i + 3] for i in reversed(range(n))] + [[i, 2 * n - i] for i in range(n)]}))' >many.jsonl
check "many ranges" timeout 60 "$BIN/tokenize" -q -t bytes --no-eos --spans-field spans -o many.tks many.jsonl
same "are all marked" 1520000 "$(inspect --json many.tks | json /dev/stdin 'd["loss_tokens"]')"
mkdir cache
post true false
for i in 1 2; do
    same "compiled, load $i" "[[0]]" "$(SLUICE_CACHE_DIR=$PWD/cache trimmed 'x a' '[1, 3]' 2>/dev/null)"
done
check "there was a cache" test -n "$(ls cache)"

# Questions under one long prompt: dedup --near keeps one, and each with --on trained, but for the answer that is there twice.
"$PYTHON" -c 'import json, random
r = random.Random(3)
words = lambda n: " ".join("w%d" % r.randrange(1000) for _ in range(n))
system, last = words(600), words(20)
for i in range(200):
    head, answer = "%s\n%s\n" % (system, words(9)), last if i in (7, 90) else words(20)
    print(json.dumps({"text": head + answer, "spans": [[len(head), len(head) + len(answer)]]}))' >q.jsonl
tokenize -q -t bytes --spans-field spans q.jsonl -o q.tks
tokenize -q -t bytes q.jsonl -o unmasked.tks
left() { inspect --json "$1" | json /dev/stdin 'd["documents"]'; }
for mode in "--near 1" "--ngrams=document 1" "--exact 200"; do
    all=${mode#* } mode=${mode% *}
    status "dedup $mode" 0 dedup $mode -o x.tks q.tks
    same "dedup $mode: the prompts count" "$all" "$(left x.tks)"
    if [ $mode = --exact ]; then
        check "  which needs no warning, as whole dialogues are compared" shell '! grep masks err'
    else
        same "  with one warning that names the way" 1 "$(grep -c '^dedup: the stream has masks, .*--on trained' err)"
    fi
    status "dedup $mode --on all" 0 dedup $mode --on all -o y.tks q.tks
    check "  says that they do" shell '! grep masks err'
    same "  is the default" "$(sha x.tks)" "$(sha y.tks)"
    status "dedup $mode --on trained" 0 dedup $mode --on trained -o y.tks q.tks
    same "dedup $mode --on trained: the answers do" 199 "$(left y.tks)"
    check "  without a warning" shell '! grep masks err'
    dedup -q $mode --on trained -T 1 -M 64M -o z.tks <q.tks
    same "  the same for any -T and -M" "$(sha y.tks)" "$(sha z.tks)"
    same "  its provenance says so" 1 "$(inspect --json y.tks | grep -c '"arguments": "[^"]*--on=trained"')"
    status "  without masks" 1 dedup $mode --on trained -o z.tks unmasked.tks
    same "  is refused" "dedup: --on trained: the stream has no masks, which tell what is trained on (tokenize --spans-field);\
 leave --on out to compare all tokens" "$(cat err)"
done
status "dedup --substring cuts prompts" 0 dedup --substring 50 -o z.tks q.tks
check "  and says so" grep -q 'what repeats is cut out of prompts too' err
status "  --on" 2 dedup --substring 50 --on trained -o z.tks q.tks
check "  is not its option" grep -q -- '--on needs --exact or --near or --ngrams' err
status "an index of n-grams for --against" 2 dedup --ngrams --save-index g.idx --on trained -o z.tks q.tks
check "  has all tokens" grep -q -- '--on trained: nothing is dropped' err
for mode in --exact --near; do
    dedup -q $mode --on all --save-index all.idx -o z.tks -f q.tks
    dedup -q $mode --on trained --save-index trained.idx -o z.tks -f q.tks
    status "dedup $mode: an index of the other tokens" 1 dedup -q $mode --on trained --against all.idx -o z.tks q.tks
    same "  is refused" "dedup: all.idx: was made of all tokens, and this run compares those that are trained on" "$(cat err)"
    status "dedup $mode: and of the others" 1 dedup -q $mode --against trained.idx -o z.tks q.tks
    same "  is refused too" "dedup: trained.idx: was made of the tokens that are trained on, and this run compares all" "$(cat err)"
    dedup -q $mode --stage sign --work w$mode --on trained --part 0/1 q.tks
    status "dedup $mode: a stage with the other" 1 dedup -q $mode --stage group --work w$mode --part 0/1
    check "  is refused" grep -q "sign.0-of-1: was made with --on=trained, now without" err
    dedup -q $mode --stage sign --work v$mode --part 0/1 q.tks 2>err
    dedup $mode --stage sign --work u$mode --part 0/1 q.tks 2>err
    [ $mode = --exact ] || check "  the stage sign warns" grep -q 'one long prompt' err
    dedup $mode --stage group --work u$mode --part 0/1 2>err
    check "  and the next does not" shell '! grep masks err'
done

# the sum of the reports of a job
spans --stats 1.json t.jsonl | dedup -q --stats 2.json -o z.tks
inspect --merge-stats 1.json 2.json >m.json
same "merged reports have them" '["tokenize", 7, "dedup --exact", 7]' \
    "$(json m.json '[v for p in d["programs"] for v in (p["program"] if "mode" not in p else p["program"] + " --" + p["mode"], p["loss_tokens"]["out"])]')"
inspect --merge-stats --table 1.json 2.json >out
same "and a line of the table" 2 "$(grep -c '^ *trained on  *7 ' out)"

# Special tokens are shown, as they can be trained on; padding is not.
printf '{"text": "x<r> a<l>", "spans": [[1, 4], [5, 9]]}\n' | tokenize -q -t s.json --no-eos --eos '<l>' --special parse --spans-field spans |
    pack -q --length 16 --long error | inspect --records --text >out
same "inspect --records --text has special tokens" '["x<r>a<l>", ["<r>a<l>"]]' "$(json out '[d["text"], d["trained"]]')"

# Dialogues are not cut in silence.
spans -o short.tks t.jsonl
tokenize -q -t bytes --no-eos -o plain.tks t.jsonl
status "pack: masks without --long" 2 pack --length 16 -o y.tks short.tks
check "one line" one_line err
check "names the ways" grep -q "^pack: .* bin's 16 tokens: --long drop .* --long split .* --long error" err
status "so does its first stage" 2 pack --stage count --work none --length 16 --part 0/1 short.tks
check "which leaves nothing" test ! -e none/count.0-of-1
status "a stream with masks behind one without" 2 pack --length 16 -o y.tks plain.tks short.tks
status "--method multi" 2 pack --method multi --buckets 8,32 -o y.tks short.tks
check "its longest bin" grep -q "bin's 32 tokens" err
status "without masks" 0 pack --length 16 -o y.tks plain.tks
check "as ever" shell '! grep masks err'
status "--plan shows what it cuts" 0 pack --plan --length 2 short.tks
status "what is too long is dropped" 0 pack --length 5 --long drop --stats s.json -o y.tks short.tks
same "and counted" '{"too-long": 2}' "$(json s.json '{k: v for k, v in d["documents"]["dropped"].items() if v}')"
for program in "pack --length 4 --method concat" "decompose --min 2 --max 4"; do
    status "$program" 0 $program -o y.tks short.tks
    check "$program warns" grep -q "^${program%% *}: the stream has masks" err
    status "$program -q" 0 $program -q -o y.tks short.tks
    check "$program -q does not" test ! -s err
    status "$program without masks" 0 $program -o y.tks plain.tks
    check "$program without masks does not warn" shell '! grep masks err'
done

# Parts of which one has no masks: ids have four bytes with masks and without, and are not taken for one another.
"$PYTHON" "$top/tests/cli/make_tokenizer.py" | sed 's/257/70000/g' >wide.json
printf '{"text": "abc", "spans": [[0, 2]]}\n{"text": "abd", "spans": [[0, 2]]}\n' >parts.jsonl
wide() { tokenize -q -t wide.json --part "$@" parts.jsonl; }
wide 0/2 --spans-field spans -o with0.tks
wide 1/2 --spans-field spans -o with1.tks
wide 0/2 -o without0.tks
wide 1/2 -o without1.tks
# A set of ids of four bytes: one that is 2^31 too large is no mark of its token.
pack -q --length 4 --long error -o wide.tks with0.tks with1.tks
shuffle -q --format olmo -o wide.set wide.tks
shard=$(echo wide.set/D_2/*.npy)
cp "$shard" good.npy
poke() { printf '%b' "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }
poke "$shard" 3 '\0200'
status "a damaged id" 1 inspect --records wide.set
check "is named" grep -q "$shard: id 21474[0-9]* at 0 is damaged" err
cp good.npy "$shard"
poke "${shard%.npy}.label_mask" 1 '\0007'
status "a mask of another byte" 1 inspect --records wide.set
same "is named, with its file once" "inspect: $shard: byte 1 of the label_mask beside it is 7; expected 0 or 1" "$(cat err)"
for first in with without; do
    second=with
    [ $first = without ] || second=without
    for i in 0 1; do
        [ $i = 0 ] && stream=${first}0.tks || stream=${second}1.tks
        shuffle -q --stage scatter --work mixed-$first --part $i/2 --ranges 1 $stream
        pack -q --stage count --work packed-$first --length 16 --long error --part $i/2 $stream
    done
    status "shuffle: parts $first masks and $second" 1 shuffle -q --stage gather --work mixed-$first --part 0/1 -o y.tks
    check "are refused by name" grep -q "scatter.1-of-2: its stream has .* or has masks where they have none" err
    status "pack: parts $first masks and $second" 1 pack -q --stage plan --work packed-$first --length 16 --long error
    check "are refused by name too" grep -q "count.1-of-2: its stream has .* or has masks where they have none" err
done
