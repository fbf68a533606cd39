# shellcheck shell=bash disable=SC2154
# tokenize_archives.sh - members of archives are what files of their names would be: JSON lines, texts, samples of
# WebDataset; which are read, what is left out and counted, where documents are, and what messages name.
# check-more: longer

have tokenize inspect || return 0

# pack NAME.tar|NAME.zip MEMBER...: an archive of files in this order.
pack() {
    "$PYTHON" -c 'import os, sys, tarfile, zipfile
name, *files = sys.argv[1:]
if name.endswith(".zip"):
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as z:
        for f in files: z.write(f)
else:
    with tarfile.open(name, "w:gz" if name.endswith("gz") else "w", format=tarfile.GNU_FORMAT) as t:
        for f in files: t.add(f)' "$@"
}
# texts ARGUMENT...: the documents' texts, one a line.
texts() { tokenize -q -t bytes "$@" | inspect --records | "$PYTHON" -c 'import json,sys
for l in sys.stdin: print(bytes(json.loads(l)["tokens"][:-1]).decode().replace("\n", "|"))'; }
# places ARGUMENT...: the documents' numbers.
places() { tokenize -q -t bytes "$@" | inspect --records | "$PYTHON" -c 'import json,sys
print(*(json.loads(l)["segments"][0]["document"] for l in sys.stdin))'; }

printf '{"text": "one", "n": 1}\n{"text": "two", "n": 2}\n' >x.jsonl
gzip -k x.jsonl
printf 'a text' >b.txt
gzip -k b.txt
printf 'read me' >README.md
printf '{"text": "set"}\n' >settings.json
printf 'key,value\n' >t.csv
two=$'one\ntwo'

for a in $(longer "x.tgz x.zip" "x.tar x.tar.gz x.tgz x.zip"); do
    pack $a x.jsonl
    same "$a: JSON lines" "$two" "$(texts $a)"
    same "$a: JSON lines, from a pipe" "$two" "$(texts - <$a)"
    pack $a x.jsonl.gz
    same "$a: compressed JSON lines" "$two" "$(texts $a)"
    pack $a x.jsonl b.txt x.jsonl.gz b.txt.gz
    same "$a: one after another, by their names" "$two"$'\na text\n'"$two"$'\na text' "$(texts $a)"
    same "$a: filters reach their fields" two "$(pack $a x.jsonl; texts --where 'n == 2' $a)"
done
pack x.tar x.jsonl b.txt x.jsonl.gz b.txt
# A line is at its offset from the header of its member; what the compressed one has more than its header has room for
# moves nothing here.
offsets=$("$PYTHON" -c 'import tarfile
m = [i.offset for i in tarfile.open("x.tar")]
print(m[0], m[0] + 24, m[1], m[2], m[2] + 24, m[3])')
same "documents of a tar" "$offsets" "$(places x.tar)"
"$PYTHON" -c 'import gzip
with gzip.open("big.jsonl.gz", "wt") as f:
    for i in range(3000): f.write("{\"text\": \"%d\"}\n" % (i // 1000))'
pack big.tar big.jsonl.gz b.txt
pack big.zip b.txt big.jsonl.gz b.txt
for a in big.tar big.zip; do
    check "$a: documents ascend, and none is there twice" shell 'tokenize -q -t bytes "$1" | inspect --records |
        "$2" -c "import json,sys
d = [json.loads(l)[\"segments\"][0][\"document\"] for l in sys.stdin]
assert len(d) > 3000 and all(a < b for a, b in zip(d, d[1:])), d[-3:]"' sh $a "$PYTHON"
done
for t in 1 7; do
    tokenize -q -t bytes -T $t -M 32M -o "t$t.tks" big.tar big.zip x.tar
done
same "any number of threads" "$(sha t1.tks)" "$(sha t7.tks)"

# Which are read: those that a folder would leave out are left out behind records, and an error before them.
pack r.tar x.jsonl README.md settings.json b.txt
same "a README behind the records" "$two"$'\na text' "$(texts r.tar)"
tokenize -t bytes r.tar 2>err >o.tks
check "  a line says so" grep -q "left out of archives: 2 files, as others there have the names of data: r.tar: README.md, ..." err
pack r.tar README.md x.jsonl
status "a README before the records" 1 tokenize -t bytes -o o.tks r.tar
check "  one line names both" grep -q "r.tar: x.jsonl .* README.md .*--include" "$TMP/err"
same "  chosen by --include" "$two" "$(texts --include '*.jsonl' r.tar)"
same "  chosen by --exclude" "$two" "$(texts --exclude 'README*' r.tar)"
same "  all by --include" "read me"$'\n'"$two" "$(texts --include '*' r.tar)"
pack r.tar README.md b.txt
same "texts alone are all read" $'read me\na text' "$(texts r.tar)"
mkdir -p d/web d/__MACOSX d/.git
cp x.jsonl d/web/x.jsonl
cp b.txt d/web/.b.txt
cp b.txt d/__MACOSX/b.txt
cp b.txt d/.git/b.txt
pack r.zip d/web/.b.txt d/web/x.jsonl d/__MACOSX/b.txt d/.git/b.txt t.csv
same "hidden names, and other kinds" "$two" "$(texts r.zip)"
tokenize -t bytes r.zip 2>err >o.tks
check "  hidden names are counted" grep -q "left out of archives: 3 names with a dot in front: r.zip: d/web/.b.txt, ..." err
check "  other kinds are counted" grep -q "left out of archives: 1 file with names of other kinds than text: r.zip: t.csv$" err
same "a glob with a slash: the path in the archive" "$two" "$(texts --include 'd/web/*' r.zip)"
mkdir in
cp r.zip x.tar in
same "a glob with a slash: behind the archive's name" "$two" "$(texts --include '*.zip,r.zip/d/web/x*' in)"
same "a glob of archives chooses no members" "$two" "$(texts --include '*.zip' in)"
status "globs that no member matches" 2 tokenize -t bytes -o o.tks --include '*.nothing' r.zip
check "  are named" grep -q "'\*.nothing': no file of the archives matches" "$TMP/err"
pack r.tar t.csv
status "nothing but other kinds" 1 tokenize -t bytes -o o.tks r.tar
check "  says so in one line" one_line "$TMP/err"
pack r.tar x.tar
status "an archive in an archive" 1 tokenize -t bytes -o o.tks r.tar
check "  says so" grep -q "r.tar: x.tar: is an archive in an archive" "$TMP/err"

# Links
cp x.jsonl h.jsonl
ln h.jsonl i.jsonl
ln -s h.jsonl j.jsonl
pack l.tar h.jsonl i.jsonl j.jsonl
same "a hard link is no second copy" "$two" "$(texts l.tar)"
tokenize -t bytes l.tar 2>err >o.tks
check "  and counted, as other links" grep -q "left out of archives: 2 links: l.tar: i.jsonl, ..." err

# Messages name the member, also the first.
printf 'a\377b' >bad.txt
printf '{"text": "a"}\n{"text": 1}\n' >bad.jsonl
printf '[\n{"text": "a"}]\n' >array.json
pack m.tar bad.txt
status "a first member that is not UTF-8" 1 tokenize -t bytes -o o.tks m.tar
check "  is named" grep -q "m.tar: bad.txt: byte 1: not valid UTF-8" "$TMP/err"
pack m.zip b.txt bad.jsonl
status "a bad line of a member" 1 tokenize -t bytes -o o.tks m.zip
check "  is named" grep -q "m.zip: bad.jsonl:2: byte 9: field \"text\" is not a string" "$TMP/err"
pack m.tar array.json
status "an array" 1 tokenize -t bytes -o o.tks m.tar
check "  is named" grep -q "m.tar: array.json: is a JSON array" "$TMP/err"
head -c 30 x.jsonl.gz >cut.jsonl.gz
pack m.tar x.jsonl cut.jsonl.gz b.txt
status "a member that is cut short" 1 tokenize -t bytes -o o.tks m.tar
check "  is named" grep -q "m.tar: cut.jsonl.gz: .*ends early" "$TMP/err"
same "  and the run can go on behind it" "$two"$'\na text' "$(texts --on-error skip m.tar)"
cp x.jsonl not.jsonl.gz
pack m.tar x.jsonl not.jsonl.gz b.txt
same "a name that promises gzip: the run can go on" "$two"$'\na text' "$(texts --on-error skip m.tar)"

# WebDataset
mkdir w
for i in 0 1 2; do
    printf 'Text "%d"\nof it' $i >w/00$i.txt
    printf '{"id": "s%d",\n "score": %d}\n' $i $i >w/00$i.json
    echo $i >w/00$i.cls
done
want=$'Text "0"|of it\nText "1"|of it\nText "2"|of it'
pack w.tar w
same "wds: a record a sample" "$want" "$(texts --format wds w.tar)"
gzip -k w.tar
same "wds: compressed, from a pipe" "$want" "$(texts --format wds - <w.tar.gz)"
same "wds: fields of json" 'Text "2"|of it' "$(texts --format wds --where 'score > 1' w.tar)"
same "wds: ids of json" "s0 s1 s2" "$(tokenize -q -t bytes --format wds --id-field id w.tar | inspect --records | "$PYTHON" -c 'import json,sys
print(*(json.loads(l)["segments"][0]["id"] for l in sys.stdin))')"
same "wds: __key__" "w/000 w/001 w/002" "$(tokenize -q -t bytes --format wds --id-field __key__ w.tar | inspect --records | "$PYTHON" -c 'import json,sys
print(*(json.loads(l)["segments"][0]["id"] for l in sys.stdin))')"
same "wds: --member" $'0|\n1|\n2|' "$(texts --format wds --member cls w.tar)"
same "wds: a document is the place of its first member" "$("$PYTHON" -c 'import tarfile
first = {}
for m in tarfile.open("w.tar"):
    if m.isfile(): first.setdefault(m.name.split(".")[0], m.offset)
print(*first.values())')" "$(places --format wds w.tar)"
pack v.tar w/000.txt w/001.txt w/000.json w/001.json
status "wds: members that are not adjacent" 1 tokenize -t bytes --format wds -o o.tks v.tar
check "  are named" grep -q "v.tar: w/000.json: another member of this sample" "$TMP/err"
pack v.tar w/000.txt w/000.json w/001.json w/002.txt
status "wds: a sample without a text" 1 tokenize -t bytes --format wds -o o.tks v.tar
check "  is named" grep -q 'v.tar: w/001: byte 0: no field "text"' "$TMP/err"
same "wds: without json" 'Text "2"|of it' "$(pack v.tar w/002.txt; texts --format wds v.tar)"
printf '[1]' >w/001.json
pack v.tar w/001.txt w/001.json
status "wds: json that is no object" 1 tokenize -t bytes --format wds -o o.tks v.tar
check "  is named" grep -q 'v.tar: w/001: byte 0: JSON, but not an object' "$TMP/err"
printf 'a\377' >w/001.txt
pack v.tar w/001.txt
status "wds: text that is not UTF-8" 1 tokenize -t bytes --format wds -o o.tks v.tar
check "  is named" grep -q 'v.tar: w/001: byte .*: not valid UTF-8' "$TMP/err"
status "--member without wds" 2 tokenize -t bytes --member txt -o o.tks v.tar
pack v.tar w/000.cls w/000.json w/000.txt
status "samples without --format wds" 1 tokenize -t bytes -o o.tks v.tar
check "  are advised" grep -q -e '--format wds' "$TMP/err"

# Parquet
"$PYTHON" "$top/tests/cli/make_parquet.py" p.parquet --rows 1 <x.jsonl
gzip -k p.parquet
if ! tokenize -q -t bytes -o o.tks p.parquet 2>err && grep -q 'has no Parquet' err; then
    skip "Parquet in archives: this build has none (make arrow)"
    return 0
fi
for a in $(longer p.zip "p.tar p.tar.gz p.zip"); do
    pack $a p.parquet b.txt p.parquet.gz b.txt
    same "$a: rows of Parquet" "$two"$'\na text\n'"$two"$'\na text' "$(texts $a)"
    pack $a p.parquet p.parquet.gz
    same "$a: filters reach columns" $'two\ntwo' "$(texts --where 'n == 2' $a)"
done
pack p.tar p.parquet b.txt
same "documents of rows" "$("$PYTHON" -c 'import tarfile
m = [i.offset for i in tarfile.open("p.tar")]
print(m[0], m[0] + 1, m[1])')" "$(places p.tar)"
head -c -20 p.parquet >q.parquet
pack p.tar q.parquet
status "a damaged member" 1 tokenize -t bytes -o o.tks p.tar
check "  is named" grep -q "p.tar: q.parquet: " "$TMP/err"
