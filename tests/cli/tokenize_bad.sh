# shellcheck shell=sh disable=SC2154
# tokenize_bad.sh - every kind of bad record and bad file: one line that names file and place and exit 1, or, with
# --on-error skip, the reason counted and the record recoverable from --rejects.

have tokenize inspect || return 0

good='{"id": 1, "text": "good", "m": "web"}'
# bad NAME REASON PLACE BYTES: the second of three records is bad; BYTES are for printf.
bad() {
    name=$1 reason=$2 place=$3
    # shellcheck disable=SC2059 # escapes are meant
    printf "$4" >raw
    { echo "$good"; cat raw; echo; echo "$good"; } >bad.jsonl
    status "$name: exit 1" 1 tokenize -t bytes --id-field id --domain-field m -o x.tks bad.jsonl
    check "$name: one line" one_line err
    check "$name: file, line and byte" grep -q "^tokenize: bad.jsonl:2: byte $place: " err
    check "$name: no output is left" test ! -e x.tks
    status "$name: --on-error skip" 0 tokenize -t bytes --id-field id --domain-field m --on-error skip \
        --stats s.json -o x.tks bad.jsonl
    check "$name: the last line counts it" grep -q "^tokenize: 1 records were not taken ($reason 1)" err
    same "$name: two records stay" '[3, 2, 1]' "$(json s.json '[d["documents"]["in"], d["documents"]["out"], d["documents"]["dropped"]["'"$reason"'"]]')"
    status "$name: --rejects" 0 tokenize -t bytes --id-field id --domain-field m --rejects r.jsonl -o x.tks bad.jsonl
    same "$name: the raw record comes back" "$(sha raw)" "$("$PYTHON" -c 'import base64,json,sys
(line,)=open("r.jsonl")
d=json.loads(line)
assert d["source"]=="bad.jsonl" and d["reason"]==sys.argv[1], d
raw=open("bad.jsonl","rb").read()
b=base64.b64decode(d["raw"],validate=True)
assert raw[d["document"]:d["document"]+len(b)]==b
sys.stdout.buffer.write(b)' "$reason" | sha256sum | cut -c 1-64)"
    rm -f x.tks
}
bad "invalid UTF-8" invalid-utf8 16 '{"text": "sound \377", "id": "2", "m": ""}'
bad "an overlong sequence" invalid-utf8 10 '{"text": "\300\200", "id": "2", "m": ""}'
bad "invalid JSON" invalid-json 16 '{"text": "open" "id": 2}'
bad "two values on a line" invalid-json 37 '{"text": "a", "id": "2", "m": "web"} {}'
bad "a record cut short" invalid-json 15 '{"text": "short'
bad "a NUL byte" invalid-json 10 '{"text": "\000", "id": 2, "m": ""}'
bad "an array" not-an-object 0 '["text"]'
bad "no text" missing-field 0 '{"texts": "a", "id": 2, "m": "web"}'
bad "no id" missing-field 0 '{"text": "a", "m": "web"}'
bad "no domain" missing-field 0 '{"text": "a", "id": 2}'
bad "a text that is a number" not-a-string 9 '{"text": 12, "id": 2, "m": "web"}'
bad "a text that is null" not-a-string 9 '{"text": null, "id": 2, "m": "web"}'
bad "an id that is a fraction" not-a-string 20 '{"text": "a", "id": 2.5, "m": "web"}'
bad "a lone surrogate" lone-surrogate 10 '{"text": "\\ud800", "id": 2, "m": ""}'
bad "a lone surrogate elsewhere" lone-surrogate 41 '{"text": "a", "id": 2, "m": "web", "x": "\\udc00x"}'

# Rejects come in input order, whatever -T; without --rejects they are counted by reason.
"$PYTHON" -c 'for i in range(5000):
    print("{\"text\": \"%d %s\"%s" % (i, "x" * (i % 300), "" if i % 7 == 3 else "}"))' >many.jsonl
for t in 1 2 7; do
    tokenize -t bytes -q -T $t -M 32M --rejects r$t.jsonl -o m$t.tks many.jsonl
done
same "rejects: -T 1 and 2" "$(sha r1.jsonl)" "$(sha r2.jsonl)"
same "rejects: -T 1 and 7" "$(sha r1.jsonl)" "$(sha r7.jsonl)"
same "streams beside them" "$(sha m1.tks)" "$(sha m7.tks)"
same "all of them, in order" 714 "$("$PYTHON" -c 'import json
d=[json.loads(l)["document"] for l in open("r1.jsonl")]
assert d==sorted(d)
print(len(d))')"
status "--rejects to a folder that is not there" 1 tokenize -t bytes --rejects no/r -o x.tks many.jsonl
check "no output is left" test ! -e x.tks

# What is no fault.
printf '\357\273\277%s\r\n\n  \n%s' "$good" "$good" >odd.jsonl
status "byte order mark, CR LF, blank lines, no last newline" 0 tokenize -t bytes -o x.tks odd.jsonl
same "two records, at their places" '3 46' "$(inspect --records x.tks | "$PYTHON" -c 'import json,sys
print(*[json.loads(l)["segments"][0]["document"] for l in sys.stdin])')"
printf '{"text": "a\\u0000b", "big": 123456789012345678901234567890, "text": "last"}\n' >odd.jsonl
same "long integers; of equal keys the last" '[108, 97, 115, 116, 256]' \
    "$(tokenize -t bytes odd.jsonl | inspect --records | "$PYTHON" -c 'import json,sys; print(json.loads(sys.stdin.read())["tokens"])')"
"$PYTHON" -c 'print("{\"x\":" + "[" * 60000 + "]" * 60000 + ", \"text\": \"deep\"}")' >deep.jsonl
status "60,000 levels" 0 tokenize -t bytes -o x.tks deep.jsonl
"$PYTHON" -c 'print("{\"x\":" + "[" * 5000000)' >deep.jsonl
status "5 million open brackets" 1 tokenize -t bytes -M 256M -o y.tks deep.jsonl
check "in one line" one_line err

# Files.
: >empty.jsonl
status "an empty file" 0 tokenize -t bytes -v -o x.tks empty.jsonl
check "is mentioned with -v" grep -q 'empty.jsonl: empty' err
same "and has no records" 0 "$(inspect --json x.tks | "$PYTHON" -c 'import json,sys; print(json.load(sys.stdin)["documents"])')"
mkdir none hidden
: >hidden/.x
for f in no-such-file none hidden; do
    case $f in no-such-file) code=1 ;; *) code=2 ;; esac
    status "$f" $code tokenize -t bytes -o y.tks $f
    check "$f is named in one line" sh -c "test \$(wc -l <err) = 1 && grep -q '^tokenize: $f' err"
done
echo no-such-file >list
status "a missing file in a list" 1 tokenize -t bytes -o y.tks --files-from list
status "parquet is refused" 1 tokenize -t bytes --format parquet -o y.tks many.jsonl
check "in one clear line" grep -q 'no Parquet reader' err
cp many.jsonl many.parquet
status "parquet by name" 1 tokenize -t bytes -o y.tks many.parquet
mkdir unreadable
: >unreadable/f
ln -s nowhere unreadable/link
status "a link to nowhere" 1 tokenize -t bytes -o y.tks unreadable

corpus c.jsonl 300000 1
gzip -k c.jsonl
zstd -q c.jsonl
xz -k c.jsonl
bzip2 -k c.jsonl
lz4 -q c.jsonl c.jsonl.lz4
mkdir t
head -c 100000 c.jsonl >t/a.txt
head -c 5000 c.jsonl >t/b.txt
tar -cf c.tar t
for f in c.jsonl.gz c.jsonl.zst c.jsonl.xz c.jsonl.bz2 c.jsonl.lz4 c.tar; do
    size=$(stat -c %s $f)
    for keep in $((size / 2)) 40 $((size - 1)); do
        [ $f != c.tar ] || [ $keep -lt $((size - 1)) ] || keep=$((512 * 206)) # between two members
        mkdir -p cut
        head -c "$keep" $f >cut/$f
        status "$f cut at $keep of $size" 1 tokenize -t bytes -o y.tks cut/$f
        check "$f cut at $keep: one line with file and byte" \
            sh -c "test \$(wc -l <err) = 1 && grep -q '^tokenize: cut/$f: .*byte [0-9]' err"
    done
    { cat $f; head -c 3000 /bin/sh; } >cut/$f
    status "garbage behind $f" 1 tokenize -t bytes -o y.tks cut/$f
    check "garbage behind $f: file and byte" grep -q "^tokenize: cut/$f: .*byte [0-9]" err
    "$PYTHON" -c 'import sys
b=bytearray(open(sys.argv[1],"rb").read())
b[len(b)//2 if sys.argv[1]!="c.tar" else 150]^=16
open("cut/"+sys.argv[1],"wb").write(b)' $f
    status "a flipped bit in $f" 1 tokenize -t bytes -o y.tks cut/$f
    [ $f = c.tar ] && continue
    : >cut/$f
    status "$f of no bytes" 1 tokenize -t bytes -o y.tks cut/$f
    cp c.jsonl cut/$f
    status "$f that is not compressed" 1 tokenize -t bytes -o y.tks cut/$f
done
# gzip's checksum, which libarchive does not look at
"$PYTHON" -c 'b=bytearray(open("c.jsonl.gz","rb").read())
b[-8]^=1
open("cut/c.jsonl.gz","wb").write(b)'
status "a wrong gzip CRC" 1 tokenize -t bytes -o y.tks cut/c.jsonl.gz
check "none of these left an output" test ! -e y.tks
