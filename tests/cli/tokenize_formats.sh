# shellcheck shell=bash disable=SC2154
# tokenize_formats.sh - the same documents from every compression, from files, folders, lists, pipes and archives, for
# any -T, -M, folder and part.
# check-more: whole

have tokenize inspect || return 0

sum() { inspect --json "${1:--}" | "$PYTHON" -c 'import json,sys; d=json.load(sys.stdin); print(d["checksum"], d["documents"])'; }
# what is traced: names of sources aside
trace() { inspect --records | sed 's/"source":"[^"]*"/"source":"?"/g' | sha; }

mkdir in
corpus c.jsonl "$(longer 400000 1500000)" 2
want=$(tokenize -t bytes --id-field id c.jsonl | trace)
gzip -k c.jsonl
zstd -q c.jsonl
xz -k c.jsonl
bzip2 -k c.jsonl
lz4 -q c.jsonl c.jsonl.lz4
for f in gz zst xz bz2 lz4; do
    same "$f" "$want" "$(tokenize -t bytes --id-field id c.jsonl.$f | trace)"
    same "$f from a pipe" "$want" "$(tokenize -t bytes --id-field id <c.jsonl.$f | trace)"
done
head -n 300 c.jsonl >half1
tail -n +301 c.jsonl >half2
for z in gzip 'zstd -q' xz bzip2 'lz4 -q'; do
    for p in half1 half2; do $z -c $p >$p.z; done
    cat half1.z half2.z >two.z
    same "two members of ${z%% *} behind one another" "$want" "$(tokenize -t bytes --id-field id --format jsonl two.z | trace)"
done
same "from a pipe" "$want" "$(tokenize -t bytes --id-field id <c.jsonl | trace)"
same "from - and by --format" "$want" "$(tokenize -t bytes --id-field id --format jsonl - <c.jsonl | trace)"

# -T, -M, folders
tokenize -t bytes --id-field id -o w.tks c.jsonl
for t in ${MORE:+1 2} 7; do
    for m in 32M ${MORE:+300M}; do
        tokenize -t bytes --id-field id -T $t -M $m -o v.tks c.jsonl
        same "-T $t -M $m" "$(sha w.tks)" "$(sha v.tks)"
    done
done
status "less than the stated floor" 2 tokenize -t bytes -M 31M -o v.tks c.jsonl
tokenize -t bytes --id-field id -o v.tks "$PWD/./c.jsonl"
same "an absolute path" "$(sha w.tks)" "$(sha v.tks)"

mkdir -p d/sub/x
cp c.jsonl.gz d/sub/b.jsonl.gz
head -n 100 c.jsonl >d/a.jsonl
tail -n 50 c.jsonl >d/sub/x/c.jsonl
cp -r d e
tokenize -t bytes -o v.tks d
tokenize -t bytes -o u.tks "$PWD/e/"
same "another folder" "$(sha v.tks)" "$(sha u.tks)"
tokenize -t bytes -o u.tks d/a.jsonl d/sub/b.jsonl.gz d/sub/x/c.jsonl
same "its files one by one" "$(sha v.tks)" "$(sha u.tks)"
find d -type f | sort >list
tokenize -t bytes -o u.tks --files-from list
same "a list" "$(sha v.tks)" "$(sha u.tks)"
tokenize -t bytes -o u.tks --files-from - <list
same "a list from a pipe" "$(sha v.tks)" "$(sha u.tks)"
same "names of sources" "a.jsonl sub/b.jsonl.gz sub/x/c.jsonl" \
    "$(inspect --records v.tks | "$PYTHON" -c 'import json,sys
print(*sorted({json.loads(l)["segments"][0]["source"] for l in sys.stdin}))')"
for n in 2 3 5 40; do
    i=0
    : >parts.tks
    while [ $i -lt $n ]; do
        tokenize -t bytes --part $i/$n d >>parts.tks
        i=$((i + 1))
    done
    same "$n parts one after another" "$(inspect --records v.tks | sha)" "$(inspect --records parts.tks | sha)"
    same "$n parts: checksum" "$(sum v.tks)" "$(sum parts.tks)"
done
tokenize -t bytes --part 0/1 -o u.tks d
same "part 0 of 1 is the whole" "$(sha v.tks)" "$(sha u.tks)"
status "parts of standard input" 2 tokenize -t bytes --part 0/2 -
status "--part auto without a scheduler" 2 tokenize -t bytes --part auto/2 d
SLURM_ARRAY_TASK_ID=6 tokenize -t bytes -f --part auto/3 --part-base 5 -o u.tks d
tokenize -t bytes --part 1/3 -o t.tks d
same "--part-base" "$(sha t.tks)" "$(sha u.tks)"
SLURM_ARRAY_TASK_ID=4
export SLURM_ARRAY_TASK_ID
status "an array task before --part-base" 2 tokenize -t bytes --part auto/3 --part-base 5 d
unset SLURM_ARRAY_TASK_ID

# texts and archives: three documents
mkdir -p t/s
"$PYTHON" -c 'open("t/one.txt","w").write("one\n"*40000); open("t/s/two.md","w").write("{text: 2}\n")
open("t/zwölf.c","w").write("int main(void)\n{\n}\n"); open("t/s/empty.txt","w")'
tokenize -t bytes --include '*' -o t.tks t
same "texts" 3 "$(sum t.tks | cut -d ' ' -f 2)"
for format in auto text; do
    tokenize -t bytes --include '*' --format $format --stats s.json -o t.tks t
    same "an empty text is a document, dropped as empty: $format" '[4, 1, 3]' \
        "$(json s.json '[d["documents"]["in"], d["documents"]["dropped"]["empty"], d["documents"]["out"]]')"
done
checksum=$(sum t.tks)
tar -cf t.tar t
for f in --format=pax --format=gnu --format=ustar; do
    tar -c $f -f t.tar t
    same "tar $f" "$checksum" "$(tokenize -t bytes t.tar | sum)"
done
same "tar from a pipe" "$checksum" "$(tokenize -t bytes <t.tar | sum)"
tar -czf t.tgz t
same "tgz" "$checksum" "$(tokenize -t bytes t.tgz | sum)"
zstd -q t.tar
same "tar.zst" "$checksum" "$(tokenize -t bytes t.tar.zst | sum)"
"$PYTHON" -c 'import os, zipfile
with zipfile.ZipFile("t.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for d, _, fs in os.walk("t"):
        for f in fs: z.write(os.path.join(d, f))'
same "zip" "$checksum" "$(tokenize -t bytes t.zip | sum)"
same "zip from a pipe" "$checksum" "$(tokenize -t bytes <t.zip | sum)"
head -c -30 t.zip >cut.zip
status "zip cut short" 1 tokenize -t bytes -o x.tks cut.zip
same "a document of a tar is its header's place" ok "$(tokenize -t bytes t.tar | inspect --records | "$PYTHON" -c 'import json,sys,tarfile
want={m.offset for m in tarfile.open("t.tar") if m.isfile() and m.size}
got={json.loads(l)["segments"][0]["document"] for l in sys.stdin}
print("ok" if all(any(w-1024<=g<=w for g in got) for w in want) and len(got)==len(want) else (want,got))')"

# A folder as a hub's clone has it.
mkdir -p clone/data
printf '{"text": "one"}\n' >clone/data/a.jsonl
printf '{"text": "two"}\n' | gzip >clone/data/b.jsonl.gz
echo '# The card' >clone/README.md
echo '{"a setting": 1}' >clone/info.json
of_clone() { tokenize -t bytes "$@" clone 2>err | inspect --jsonl | "$PYTHON" -c 'import json, sys
print(*(json.loads(line)["text"].strip() for line in sys.stdin))'; }
same "data alone" "one two" "$(of_clone)"
same "  and a warning" "tokenize: left out of folders: 2 files, as others there have the names of data: clone/README.md, ...; --include '*' takes all" \
    "$(told err)"
same "the card alone" "# The card" "$(of_clone --include '*.md')"
empty "  without a warning" "$(told err)"
same "a glob of paths, another of names" "one" "$(of_clone --include 'data/*' --exclude '*.gz')"
same "a named format takes all" 4 "$(tokenize -q -t bytes --format text clone | inspect --json - | "$PYTHON" -c 'import json, sys
print(json.load(sys.stdin)["documents"])')"
unused() { echo "tokenize: $1: matches no file in a folder; for all files below a folder write 'FOLDER/*'"; }
empty "  none of which is in vain" "$(told err)"
same "a folder's name leaves nothing out" "one two" "$(of_clone --include '*.jsonl*' --exclude data)"
same "  and a warning says so" "$(unused "--exclude 'data'")" "$(told err)"
same "a glob of two that takes nothing" "one" "$(of_clone --include '*.jsonl,dta/*')"
same "  and a warning" "$(unused "--include 'dta/*'")" "$(told err)"
status "globs that leave nothing" 2 tokenize -t bytes --exclude '*' clone -o x.tks
check "  are named" grep -qF "clone: no file in this folder is left without those that match '*'; give --exclude other globs" err
status "globs that take nothing" 2 tokenize -t bytes --include '*.txt' --exclude '*' clone -o x.tks
check "  are named" grep -qF "clone: no file in this folder matches '*.txt'; give --include other globs, or leave it out" err
mkdir second
cp clone/README.md second/
status "  in a second folder" 2 tokenize -t bytes --include '*.jsonl' clone second -o x.tks
check "  which is named" grep -qF "second: no file in this folder matches '*.jsonl'" err
