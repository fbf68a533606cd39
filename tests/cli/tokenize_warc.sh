# shellcheck shell=bash disable=SC2154
# tokenize_warc.sh - texts of WARC files: which records are documents, with which ids, fields and places; what is left out,
# by reason; damage.
# check-more: whole

have tokenize inspect || return 0
warc() { "$PYTHON" "$top/tests/cli/make_warc.py" "$@"; }
texts() { tokenize -q -t bytes "$@" | inspect --records | "$PYTHON" -c 'import json,sys
for l in sys.stdin: print(bytes(json.loads(l)["tokens"][:-1]).decode().replace("\r\n", "|").replace("\n", "|"))'; }
ids() { tokenize -q -t bytes "$@" | inspect --records | "$PYTHON" -c 'import json,sys
print(*(json.loads(l)["segments"][0]["id"] for l in sys.stdin))'; }

warc x.warc.wet wet
warc x.warc.wet.gz wet
cp x.warc.wet a.txt
wet=$'Ein schöner Tag.|\nWARC/1.0|WARC-Type: conversion|Content-Length: 3||abc||'
for f in x.warc.wet x.warc.wet.gz a.txt; do same "WET: $f" "$wet" "$(texts $f)"; done
same "WET: from a pipe" "$wet" "$(texts <x.warc.wet.gz)"
same "WET: --format warc" "$wet" "$(texts --format warc - <x.warc.wet)"
same "ids are WARC-Record-ID" "<urn:uuid:00000000-0000-0000-0000-000000000001> <urn:uuid:00000000-0000-0000-0000-000000000002>" "$(ids x.warc.wet)"
same "--id-field" "https://example.org/1 https://example.org/2" "$(ids --id-field url x.warc.wet)"
same "--domain-field" "deu eng" "$(tokenize -q -t bytes --domain-field language_first x.warc.wet | inspect --records | "$PYTHON" -c 'import json,sys
print(*(json.loads(l)["segments"][0]["domain"] for l in sys.stdin))')"
for w in 'language_first == "deu"' 'url == "https://example.org/1"' 'date < "2026-01-03"' \
    'type == "conversion" and len(text) < 20' 'language != null and startswith(url, "https://example.org/1")'; do
    same "--where $w" "Ein schöner Tag.|" "$(texts --where "$w" x.warc.wet | sed -n 1p)"
done
same "--where leaves out" "Ein schöner Tag.|" "$(texts --where 'language_first == "deu"' x.warc.wet)"
status "--where of a list" 1 tokenize -t bytes -o o.tks --where 'language == "deu"' x.warc.wet
status "--where of a field that WARC has not" 1 tokenize -t bytes -o o.tks --where 'lang == "deu"' x.warc.wet
echo https://example.org/1 >urls
same "--urls-drop" 1 "$(texts --urls-drop urls x.warc.wet | wc -l)"
echo '<urn:uuid:00000000-0000-0000-0000-000000000001>' >list
same "--ids-drop" 1 "$(texts --format warc --ids-drop list x.warc.wet | wc -l)"
mkdir d
cp x.warc.wet.gz d/0.warc.wet.gz
cp x.warc.wet d/1.warc.wet
echo read >d/README
tokenize -q -t bytes -o all.tks d 2>err
for n in 2 3; do
    for ((i = 0; i < n; i++)); do tokenize -q -t bytes --format warc --exclude README --part $i/$n d; done >parts.tks
    same "$n parts" "$(inspect --records all.tks | sha)" "$(inspect --records parts.tks | sha)"
done
"$PYTHON" -c 'import tarfile
with tarfile.open("w.tar", "w") as t: t.add("x.warc.wet.gz"); t.add("x.warc.wet")'
same "in an archive" "$wet"$'\n'"$wet" "$(texts w.tar)"

# What a crawl has
cat >check.py <<'X'
import base64, collections, json, subprocess, sys
sys.path.insert(0, sys.argv[1])
import make_warc
crawl = make_warc.crawl()
want, place, at = [], {}, 0
for record, text in crawl:
    place[at] = text
    if isinstance(text, bytes) and text:
        want.append((at, text))
    at += len(record)
stream, rejects, stats = sys.argv[2:]
lines = subprocess.run(["inspect", "--records", stream], stdout=subprocess.PIPE, check=True).stdout.splitlines()
got = [(r["segments"][0]["document"], bytes(r["tokens"][:-1])) for r in map(json.loads, lines)]
assert got == want, ([g[0] for g in got], [w[0] for w in want])
left = [json.loads(l) for l in open(rejects)]
assert [(l["document"], l["reason"]) for l in left] == [(a, t) for a, t in place.items() if isinstance(t, str)], left
dropped = json.load(open(stats))["documents"]["dropped"]
count = collections.Counter(t for t in place.values() if isinstance(t, str))
assert dropped == {**count, "empty": 1}, dropped
assert json.load(open(stats))["truncated"] == 1
X
warc c.warc crawl
warc c.warc.gz crawl
for f in c.warc c.warc.gz; do
    for t in 1 5; do
        status "a crawl: $f -T $t" 0 tokenize -t bytes -T $t --rejects r.jsonl --stats s.json -o o.tks $f
        check "a crawl: each record" "$PYTHON" check.py "$top/tests/cli" o.tks r.jsonl s.json
    done
done
check "counted by reason" grep -q "records of WARC without a plain text (warc-record 4, warc-html 3, warc-no-text 3, warc-encoded 4); extract the text of HTML" "$TMP/err"
check "truncated ones are counted" grep -q "1 text of WARC was cut short by the crawler" "$TMP/err"
same "and can be left out" "$(($(texts c.warc | wc -l) - 1))" "$(texts --where 'truncated == null' c.warc | wc -l)"
tokenize -q -t bytes -o o.tks c.warc.gz
tokenize -q -t bytes -M 32M -T 1 -o m.tks c.warc.gz
same "any memory" "$(sha o.tks)" "$(sha m.tks)"
"$PYTHON" -c 'import sys
sys.path.insert(0, sys.argv[1])
import make_warc as m
open("h.warc", "wb").write(m.response(b"<p>", 1, "text/html") * 3)
open("x.warc.wat", "wb").write(m.record("metadata", b"{}", 1, "application/json"))
open("wat", "wb").write(m.record("metadata", b"{}", 1, "application/json"))
good = m.record("conversion", b"good", 1, "text/plain")
bad = {"length": m.record("conversion", b"0123456789", 2, "text/plain", length=7),
       "long": m.record("conversion", b"0123456789", 2, "text/plain", length=700),
       "none": m.record("conversion", b"01", 2, "text/plain").replace(b"Content-Length", b"X-Length"),
       "words": m.record("conversion", b"01", 2, "text/plain", length="1x"),
       "twice": m.record("conversion", b"01", 2, "text/plain", CONTENT_LENGTH="3"),
       "version": m.record("conversion", b"01", 2, "text/plain", version="2.0"),
       "head": m.record("conversion", b"01", 2, "text/plain", X="x" * 70000),
       "cut": m.record("conversion", b"01", 2, "text/plain")[:60],
       "utf8": m.record("conversion", b"\xff", 2, "text/plain")}
for k, b in bad.items(): open(k + ".warc", "wb").write(good + b)
print(len(good))' "$top/tests/cli" >size
at=$(cat size)
status "HTML alone" 1 tokenize -t bytes -o o.tks h.warc
check "  is named, with what to do" grep -q "no record of WARC has a plain text (warc-html 3); extract the text" "$TMP/err"
for i in 0 1; do
    tokenize -q -t bytes --part $i/2 --stats p$i.json -o p$i.tks h.warc h.warc
done
status "  in parts: their reports together" 1 inspect --merge-stats p0.json p1.json
check "  say so" grep -q "none of 6 records could be taken" "$TMP/err"
status "WAT, by its name" 1 tokenize -t bytes -o o.tks x.warc.wat
check "  is named" grep -q "x.warc.wat: is a WAT file" "$TMP/err"
status "WAT, by its records" 1 tokenize -t bytes -o o.tks wat
for k in length long none words twice version head cut utf8; do
    status "damage: $k" 1 tokenize -t bytes -o o.tks $k.warc
    check "  in one line, with the place" shell 'grep -q "^tokenize: $1.warc: record at byte $2: " "$3" && [ "$(wc -l <"$3")" = 1 ]' sh $k \
        "$([ $k = length ] && sed -n 's/.*record at byte \([0-9]*\):.*/\1/p' "$TMP/err" || echo "$at")" "$TMP/err"
    same "  and the run can go on" good "$(texts --on-error skip $k.warc | sed -n 1p)"
done

# lengths that are not those of the records
for by in 3 2 -3; do
    "$PYTHON" -c 'import re, sys
print(re.sub(rb"Content-Length: (\d+)", lambda m: b"Content-Length: %d" % (int(m[1]) + int(sys.argv[1])), open("x.warc.wet", "rb").read(), count=1).decode("utf-8", "surrogateescape"), end="")' "$by" >long.wet
    status "a length that is $by off" 1 tokenize -q -t bytes -o o.tks long.wet
    check "  is named" grep -q 'long.wet: record at byte 0: no two line breaks are where its Content-Length ends' err
done
head -c -4 x.warc.wet >bare.wet
same "no line breaks at the end of the file" "$wet" "$(texts bare.wet)"
