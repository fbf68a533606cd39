# shellcheck shell=bash disable=SC2154
# tokenize_bad.sh - every kind of bad record and bad file: exit status 1 and one line that names file and position; or,
# with --on-error skip, the reason is counted and --rejects has the record.
# check-more: longer

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
    check "$name: the last line counts it" grep -q "^tokenize: 1 record was not taken ($reason 1)" err
    same "$name: two records stay" '[3, 2, 1]' "$(json s.json '[d["documents"]["in"], d["documents"]["out"], d["documents"]["dropped"]["'"$reason"'"]]')"
    status "$name: --rejects" 0 tokenize -t bytes --id-field id --domain-field m --rejects r.jsonl -o x.tks bad.jsonl
    same "$name: the raw record comes back" "$(sha raw)" "$("$PYTHON" -c 'import base64,json,sys
(line,)=open("r.jsonl")
d=json.loads(line)
assert d["source"]=="bad.jsonl" and d["reason"]==sys.argv[1] and d["line"]==2, d
raw=open("bad.jsonl","rb").read()
b=base64.b64decode(d["raw"],validate=True)
assert raw[d["document"]:d["document"]+len(b)]==b
assert ("text" in d)==(d["reason"]!="invalid-utf8") and d.get("text",b.decode(errors="replace"))==b.decode(errors="replace"), d
sys.stdout.buffer.write(b)' "$reason" | sha | cut -c 1-64)"
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
bad "an id that is an array" not-a-string 20 '{"text": "a", "id": [2], "m": "web"}'
bad "a domain that is null" not-a-string 28 '{"text": "a", "id": 2, "m": null}'
bad "a lone surrogate" lone-surrogate 10 '{"text": "\\ud800", "id": 2, "m": ""}'
bad "a lone surrogate elsewhere" lone-surrogate 41 '{"text": "a", "id": 2, "m": "web", "x": "\\udc00x"}'
bad "a NUL in a domain" nul-in-domain 0 '{"text": "a", "id": 2, "m": "web\\u0000one"}'
bad "a domain that is a NUL" nul-in-domain 0 '{"text": "a", "id": 2, "m": "\\u0000"}'
printf '%s\n' '{"text": "a\u0000b", "id": "x\u0000y"}' '{"text": "c", "id": "x\u0000z"}' >nul.jsonl
tokenize -t bytes --id-field id -o nul.tks nul.jsonl
same "a NUL in a text and in ids stays" '[["x\u0000y", 4], ["x\u0000z", 2]]' "$(inspect --records nul.tks | "$PYTHON" -c 'import json, sys
print(json.dumps([[r["segments"][0]["id"], len(r["tokens"])] for r in map(json.loads, sys.stdin)]))')"

# The text of a record stands beside its bytes, unless it is too long for that; a share does not know its lines.
"$PYTHON" -c 'print("{\"text\":\"ok\"}\n[\"%s\"]\n[\"%s\"]" % ("x" * 65532, "y" * 65533))' >wide.jsonl
status "long rejects" 0 tokenize -t bytes --rejects r.jsonl -o x.tks wide.jsonl
same "  the longest with a text" '[[2, 65536], [3, 0]]' "$("$PYTHON" -c 'import json
print([[d["line"], len(d.get("text", ""))] for d in map(json.loads, open("r.jsonl"))])')"
status "a share that begins in a file" 0 tokenize -t bytes --on-error skip --rejects r.jsonl --part 1/2 -o x.tks wide.jsonl
same "  has no lines" '[None]' "$("$PYTHON" -c 'import json; print([json.loads(l)["line"] for l in open("r.jsonl")])')"
rm x.tks

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
status "--rejects to a folder that does not exist" 1 tokenize -t bytes --rejects no/r -o x.tks many.jsonl
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
printf '%s\n' "$good" >one.jsonl
: >empty.jsonl
: >empty.tar
: >empty.txt
gzip -c empty.jsonl >none.jsonl.gz
for f in empty.jsonl empty.tar none.jsonl.gz; do
    status "$f" 1 tokenize -t bytes -o y.tks one.jsonl $f one.jsonl
    check "$f: one line says so, and what to do" \
        shell "test \$(wc -l <err) = 1 && grep -q '^tokenize: $f: is empty; .*--on-error skip' err"
    status "$f: --on-error skip" 0 tokenize -t bytes --rejects r.jsonl --stats s.json -o x.tks one.jsonl $f one.jsonl
    check "$f: a warning names it" grep -q "^tokenize: $f: is empty; .*empty-source" err
    same "$f: its neighbours stay" '[3, 2, 1]' \
        "$(json s.json '[d["documents"]["in"], d["documents"]["out"], d["documents"]["dropped"]["empty-source"]]')"
    same "$f: a row says which" "{\"source\":\"$f\",\"document\":0,\"line\":null,\"byte\":0,\"reason\":\"empty-source\",\"raw\":\"\"}" "$(cat r.jsonl)"
done
status "standard input without a byte" 1 tokenize -t bytes -o y.tks
check "is named" grep -q '^tokenize: standard input: is empty; ' err
echo >blank.jsonl
status "white space only is not empty" 0 tokenize -t bytes -o x.tks blank.jsonl
status "an empty text is a document" 0 tokenize -t bytes --stats s.json -o x.tks empty.txt empty.jsonl --format text
same "which is dropped" '[2, 2]' "$(json s.json '[d["documents"]["in"], d["documents"]["dropped"]["empty"]]')"
mkdir odd odd/sub
mkfifo odd/b odd/sub/c odd/.d
ln -s /dev/zero odd/a
cp one.jsonl odd/z.jsonl
status "FIFOs and devices in a folder" 0 timeout 20 tokenize -t bytes odd -o odd.tks
same "  one warning, beside that of dots" "tokenize: left out of folders: 3 FIFOs, sockets or devices: odd/a, ..." \
    "$(grep FIFO err)"
same "  nothing else is lost" "$(tokenize -t bytes one.jsonl | inspect --records - | sed 's/one.jsonl/z.jsonl/' | sha)" \
    "$(inspect --records odd.tks | sha)"
mkdir none hidden
: >hidden/.x
for f in no-such-file none hidden; do
    case $f in no-such-file) code=1 ;; *) code=2 ;; esac
    status "$f" $code tokenize -t bytes -o y.tks $f
    check "$f is named in one line" shell "test \$(wc -l <err) = 1 && grep -q '^tokenize: $f' err"
done
echo no-such-file >list
status "a missing file in a list" 1 tokenize -t bytes -o y.tks --files-from list
status "parquet that is none" 1 tokenize -t bytes --format parquet -o y.tks many.jsonl
check "in one clear line" grep -qE 'has no Parquet|as a Parquet file does' err
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
# as texts: a file of JSON objects is one of records, whatever its name
head -c 100000 c.jsonl | tr '{' '(' >t/a.txt
head -c 5000 c.jsonl | tr '{' '(' >t/b.txt
tar -cf c.tar t
for f in c.jsonl.gz c.jsonl.zst c.jsonl.xz c.jsonl.bz2 c.jsonl.lz4 c.tar; do
    size=$(stat -c %s $f)
    for keep in $((size / 2)) ${MORE:+40} $((size - 1)); do
        [ $f != c.tar ] || [ $keep -lt $((size - 1)) ] || keep=$((512 * 206)) # between two members
        mkdir -p cut
        head -c "$keep" $f >cut/$f
        status "$f cut at $keep of $size" 1 tokenize -t bytes -o y.tks cut/$f
        check "$f cut at $keep: one line with file and byte" \
            shell "test \$(wc -l <err) = 1 && grep -q '^tokenize: cut/$f: .*byte [0-9]' err"
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
status "a wrong gzip CRC: --on-error skip" 0 tokenize -t bytes --rejects r.jsonl -o x.tks cut/c.jsonl.gz
same "all records stay, and a row says so" "$(stat -c %s c.jsonl) damaged-source " "$("$PYTHON" -c 'import json
(d,)=[r for r in map(json.loads,open("r.jsonl")) if "source" in r["reason"]]
print(d["document"],d["reason"],d["raw"])')"

# What a stream says of its dictionary is looked at before it is taken: a GiB, by one byte and its checksum.
"$PYTHON" -c 'import zlib
b = bytearray(open("c.jsonl.xz", "rb").read())
n = (b[12] + 1) * 4
at = b.index(b"\x21\x01", 12, 12 + n) + 2
b[at] = 36
b[12 + n - 4:12 + n] = zlib.crc32(bytes(b[12:12 + n - 4])).to_bytes(4, "little")
open("cut/gib.jsonl.xz", "wb").write(b)'
status "xz with a dictionary of a GiB" 1 tokenize -t bytes -M 64M -o y.tks cut/gib.jsonl.xz
check "the line says what it takes and what to do" grep -q '^tokenize: cut/gib.jsonl.xz: .*dictionary of 1024 MiB.*-M' err
status "and with as much memory" 0 tokenize -t bytes -M 8G -o /dev/null cut/gib.jsonl.xz
zstd -q --long=30 -o cut/window.jsonl.zst <c.jsonl
status "zstd with a window of a GiB" 1 tokenize -t bytes -M 64M -o y.tks cut/window.jsonl.zst
check "the line says so too" grep -q '^tokenize: cut/window.jsonl.zst: .*window.*-M' err

# broken WHAT FILE REASON: with --on-error skip, whole records before the damage are used, what was read of the next
# is in --rejects, and the next source goes on; the same bytes for any -T and -M.
cat >broken.py <<'EOF'
import base64, json, subprocess, sys, tarfile
name, reason = sys.argv[1:]
rows = [json.loads(l) for l in open("r1.jsonl")]
used = [json.loads(l)["segments"][0] for l in subprocess.check_output(["inspect", "--records", "x1.tks"]).splitlines()]
docs = json.load(open("s.json"))["documents"]
row = rows[-1]
assert row["reason"] in reason.split("|") and row["source"].endswith(name), row
assert docs["in"] == len(used) + sum(docs["dropped"].values()) and docs["dropped"][row["reason"]] == 1, docs
assert used[-1]["source_number"] == 1 and used[-1]["document"] == 0
raw = base64.b64decode(row["raw"], validate=True)
assert row["byte"] == len(raw)
have = [u["document"] for u in used if u["source_number"] == 0]
have = sorted(have + [r["document"] for r in rows[:-1]])
assert len(have) == len(set(have)) and (not have or have[-1] < row["document"])
if reason != "truncated-source":
    sys.exit() # what was read need not be what was written
if "tar" in name:
    want = [(m.offset, m.name) for m in tarfile.open("c.tar") if m.isfile()]
    assert have == [o for o, _ in want if o < row["document"]], (have, want)
    texts = [open(n, "rb").read() for o, n in want if o == row["document"]]
    assert texts[0].startswith(raw) if texts else not raw
else:
    whole = open("c.jsonl", "rb").read()
    assert whole[row["document"]:row["document"] + len(raw)] == raw
    assert row["document"] == 0 or whole[:row["document"]].endswith(b"\n")
    assert docs["in"] == whole[:row["document"]].count(b"\n") + 2, docs
EOF
broken() {
    status "$1 $2: --on-error skip" 0 tokenize -t bytes --rejects r1.jsonl --stats s.json -T 1 -o x1.tks "cut/$2" one.jsonl
    check "$1 $2: a warning at the time" grep -qE "^tokenize: cut/$2: .*byte [0-9].*($3)" err
    check "$1 $2: everything comes back" "$PYTHON" broken.py "$2" "$3"
    for o in ${MORE:+"-T 2 -M 64M"} "-T 7 -M 200M"; do
        # shellcheck disable=SC2086 # options
        tokenize -t bytes -q --rejects r2.jsonl $o -o x2.tks "cut/$2" one.jsonl
        same "$1 $2: $o" "$(sha x1.tks) $(sha r1.jsonl)" "$(sha x2.tks) $(sha r2.jsonl)"
    done
}
tar -czf c.tar.gz t
rm -f cut/*
for f in c.jsonl.gz c.jsonl.zst c.jsonl.xz c.jsonl.bz2 c.jsonl.lz4 c.tar c.tar.gz; do
    size=$(stat -c %s $f)
    for keep in $((size / 2)) ${MORE:+$((size - 1))}; do
        [ $f != c.tar ] || [ $keep -lt $((size - 1)) ] || keep=$((512 * 206)) # between two members
        head -c "$keep" $f >cut/$f
        status "cut at $keep of $size $f" 1 tokenize -t bytes -o y.tks cut/$f one.jsonl
        check "cut at $keep of $size $f: one line" one_line err
        broken "cut at $keep of $size" $f truncated-source
    done
    [ $f = c.tar ] && continue
    "$PYTHON" -c 'import sys
b=bytearray(open(sys.argv[1],"rb").read())
b[len(b)//2]^=16
open("cut/"+sys.argv[1],"wb").write(b)' $f
    status "flipped $f" 1 tokenize -t bytes -o y.tks cut/$f one.jsonl
    broken flipped $f 'damaged-source|truncated-source'
done
for i in 0 1 2; do # a share each, one of them the broken file
    tokenize -t bytes -q --on-error skip --part $i/3 -o p$i.tks one.jsonl cut/c.jsonl.zst one.jsonl
done
tokenize -t bytes -q --on-error skip -o x.tks one.jsonl cut/c.jsonl.zst one.jsonl
same "--part goes on too" "$(inspect --records x.tks | sha)" "$(cat p0.tks p1.tks p2.tks | inspect --records | sha)"
status "a missing file is no bad record" 1 tokenize -t bytes --on-error skip -o y.tks one.jsonl no-such-file
check "none of these left an output" test ! -e y.tks

# A fault that is met while the input is silent ends the program then, not when more comes.
mkfifo silent
"$PYTHON" -c 'import time
f = open("silent", "w")
f.write("{\"text\": \"a\"}\nnot JSON\n")
for i in range(3000): f.write("{\"text\": \"%d %s\"}\n" % (i, "x" * 100)) # a block and a bit
f.flush()
time.sleep(60)' 2>/dev/null &
writer=$!
began=$(date +%s)
code tokenize -t bytes -T2 -M 32M -o x.tks - <silent 2>err
same "silent input: exit status" 1 $ended
check "silent input: at once" test $(($(date +%s) - began)) -lt 40
check "silent input: says so" grep -q "input:2: byte" err
kill $writer 2>/dev/null || :
wait $writer 2>/dev/null || :
