# shellcheck shell=bash disable=SC2154
# tokenize_big.sh - documents that all threads encode together: the same bytes as one thread.
# check-more: whole

have tokenize || return 0
# Megabytes in which words, line ends, numbers and other scripts meet in many ways.
"$PYTHON" -c '
import json, random
random.seed(5)
w = ["the", "The", "of", "don\u0027t", "x1", "12345", "--", "// a", "(b)", "café", "文字", "。", "a.b", "  ", "\t",
     "é", "WORD", "_", "/"]
s = [" ", " ", " ", "\n", "\n\n", "\r\n", "\n ", ""]
t = "".join(random.choice(w) + random.choice(s) for _ in range(600000))
open("big.txt", "w", encoding="utf-8", newline="").write(t)
with open("big.jsonl", "w") as f:
    for text in ("small", t, "small", t[::-1], "x" * 2000000, "small", ""):
        print(json.dumps({"text": text}), file=f)'
for t in builtin bytes; do
    for f in big.txt big.jsonl; do
        tokenize -q -t $t -T1 -o one.tks $f || not_ok "-t $t -T1 $f"
        for o in "-T2" "-T2 -M 96M" "-T5 -M 128M"; do
            # shellcheck disable=SC2086 # options
            tokenize -q -t $t $o -o many.tks $f || not_ok "-t $t $o $f"
            same "-t $t $o $f" "$(sha one.tks)" "$(sha many.tks)"
        done
    done
done

# A text file comes in parts where it is larger than a block, which -M and -T decide. Its ids are those of a record that
# is encoded whole by one thread; and plain, compressed or through a pipe, it is the same stream.
sum() { inspect --json "$1" >j && json j 'd["checksum"]'; }
"$PYTHON" -c 'import json; print(json.dumps({"text": open("big.txt", encoding="utf-8", newline="").read()}))' >whole.jsonl
mkdir plain gz zst raw
mv big.txt plain
gzip -c plain/big.txt >gz/big.txt
zstd -q -c plain/big.txt >zst/big.txt 2>/dev/null || cp plain/big.txt zst
for t in builtin bytes; do
    tokenize -q -t $t -T1 -M 1G -o whole.tks whole.jsonl
    tokenize -q -t $t -T1 -M 1G -o one.tks plain/big.txt
    same "-t $t: in parts or whole: the same ids" "$(sum whole.tks)" "$(sum one.tks)"
    tokenize -q -t $t -T1 -M 1G --no-provenance -o one.tks plain/big.txt
    for o in "-T2 -M 32M" "-T5 -M 48M" ${MORE:+"-T1 -M 32M" "-T2 -M 32M --on-error skip"}; do
        for d in plain gz zst; do
            # shellcheck disable=SC2086 # options
            tokenize -q -t $t $o --no-provenance -o many.tks $d/big.txt || not_ok "-t $t $o $d"
            same "-t $t $o $d" "$(sha one.tks)" "$(sha many.tks)"
        done
    done
done
tokenize -q -T1 -M 1G --no-provenance -o one.tks - <plain/big.txt
# shellcheck disable=SC2002 # a pipe is meant
cat plain/big.txt | tokenize -q -T2 -M 32M --no-provenance -o many.tks --format text -
same "through a pipe" "$(sum one.tks)" "$(sum many.tks)"

# Nothing is cut inside a special token, wherever blocks end.
"$PYTHON" -c 'print("ab<|endoftext|>" * 300000, end="")' >special.txt
for m in "-T1 -M 1G" "-T1 -M 32M" "-T2 -M 32M" "-T5 -M 64M"; do
    # shellcheck disable=SC2086 # options
    tokenize -q -t bytes --special parse $m --stats s.json -o x.tks special.txt || not_ok "special tokens: $m"
    same "special tokens: $m" 900000 "$(json s.json 'd["tokens"]["in"]')"
done

# Between small ones; BOS, no EOS, put aside.
printf 'first' >raw/a.txt
cp plain/big.txt raw/b.txt
printf 'between' >raw/c.txt
cp plain/big.txt raw/d.txt
: >raw/e.txt
cp plain/big.txt raw/f.txt
printf 'last' >raw/g.txt
"$PYTHON" -c 'import base64
for i in range(256): print(base64.b64encode(bytes([i])).decode(), i)' >llama3.tiktoken
for o in "" "-t llama3.tiktoken --bos --no-eos" "--holdout 0.5 --seed 3 --holdout-output h.tks" "-z"; do
    rm -f want
    for m in "-T1 -M 1G" "-T1 -M 32M" "-T2 -M 32M" "-T5 -M 64M"; do
        : >h.tks
        # shellcheck disable=SC2086 # options
        tokenize -q $o $m --no-provenance --stats s.json -o x.tks raw/*.txt || not_ok "between small ones: $o $m"
        { sha x.tks; [ ! -s h.tks ] || sha h.tks; json s.json '[d["tokens"], d["documents"], d["text_bytes"], d["input_bytes"]]'; } >got
        [ -f want ] || cp got want
        same "between small ones: $o $m" "$(cat want)" "$(cat got)"
    done
done

# A bad byte in the middle: named; or the text is given up as a whole, and comes back from --rejects.
"$PYTHON" -c 'b = open("plain/big.txt", "rb").read()
k = b.index(b"caf\xc3\xa9", 1500000)
open("raw/d.txt", "wb").write(b[:k + 4] + b[k + 5:] + b"\xff")
print(k + 3)' >where
tokenize -q --no-provenance -o good.tks raw/a.txt raw/b.txt raw/c.txt raw/e.txt raw/f.txt raw/g.txt
for m in "-T1 -M 1G" "-T1 -M 32M" "-T2 -M 32M" "-T5 -M 64M"; do
    # shellcheck disable=SC2086 # options
    {
        status "a bad byte: $m" 1 tokenize $m -o x.tks raw/*.txt
        check "is named: $m" grep -q "^tokenize: raw/d.txt: byte $(cat where): not valid UTF-8" err
        status "goes on: $m" 0 tokenize $m --on-error skip -o good2.tks raw/*.txt
        same "with the others: $m" "$(sum good.tks)" "$(sum good2.tks)"
        status "keeps it: $m" 0 tokenize $m --rejects "r.$m" --stats s.json -o good2.tks raw/*.txt
    }
    same "accounted: $m" '[7, 5, 1, 1]' "$(json s.json '[d["documents"]["in"], d["documents"]["out"], d["documents"]["dropped"]["invalid-utf8"], d["documents"]["dropped"]["empty"]]')"
    same "one reject: $m" "$(sha "r.-T1 -M 1G")" "$(sha "r.$m")"
done
same "the text comes back" "$(cat where) $(sha raw/d.txt)" "$("$PYTHON" -c 'import base64,hashlib,json
(d,)=map(json.loads, open("r.-T2 -M 32M"))
print(d["byte"], hashlib.sha256(base64.b64decode(d["raw"], validate=True)).hexdigest())')"

# Compressed data that breaks off.
size=$(wc -c <gz/big.txt)
head -c $((size - size / 4)) gz/big.txt >raw/d.txt
for m in "-T1 -M 1G" "-T2 -M 32M"; do
    # shellcheck disable=SC2086 # options
    {
        status "cut gzip: $m" 1 tokenize $m -o x.tks raw/*.txt
        check "is named: $m" grep -q "^tokenize: raw/d.txt: stored byte $((size - size / 4)): the gzip data ends early" err
        status "cut gzip, on: $m" 0 tokenize -q $m --rejects "r.$m" --stats s.json -o good2.tks raw/*.txt
    }
    same "with the others: $m" "$(sum good.tks)" "$(sum good2.tks)"
    same "one reject: $m" "$(sha "r.-T1 -M 1G")" "$(sha "r.$m")"
done
check "--rejects has the bytes that could be read" "$PYTHON" -c 'import base64,json
(d,)=map(json.loads, open("r.-T2 -M 32M"))
b = base64.b64decode(d["raw"], validate=True)
whole = open("plain/big.txt", "rb").read()
assert d["reason"] == "truncated-source" and d["byte"] == len(b) > len(whole) // 2 and whole.startswith(b), d["reason"]'

# Larger than all memory: 400 MB through a pipe within 32 MiB. The ids go on as they come; of their hash 16 bytes a KiB
# wait in --tmpdir, and with --rejects, where the text may yet be given up, ids and text do. Nothing is left there.
for kept in "" "--rejects r"; do
    # shellcheck disable=SC2086 # options
    "$PYTHON" -c 'import sys
b = open("plain/big.txt", "rb").read() + b"\n"
for i in range(400 * 10**6 // len(b)): sys.stdout.buffer.write(b)' |
        tokenize -q -t bytes -T2 -M 32M --tmpdir raw $kept --format text --stats s.json -o - - >/dev/null ||
        not_ok "400 MB through a pipe $kept"
    least=20000000 most=30000000
    [ -z "$kept" ] || least=1100000000 most=1300000000
    same "a large text spills $kept" true "$(json s.json "$least <= d['spill_bytes'] <= $most")"
    [ -n "${SAN:-}" ] || check "a large text: peak memory within 96 MiB $kept" \
        test "$(json s.json 'd["peak_rss_bytes"]')" -le $((96 << 20))
    same "nothing is left $kept" 7 "$(find raw -type f | wc -l)"
done
status "no room for it" 1 tokenize -t bytes -M 32M --tmpdir no/such --rejects r --format text -o x.tks \
    plain/big.txt plain/big.txt
# No place to cut: as large as a record can be, and no larger.
"$PYTHON" -c 'import sys; sys.stdout.write("x" * 9000000)' >x.txt
status "no place to cut" 1 tokenize -M 64M -o x.tks x.txt
check "is named" grep -q "^tokenize: x.txt: byte 0: the record is larger than 8388608 bytes" err
status "enough memory" 0 tokenize -M 128M -o x.tks x.txt
