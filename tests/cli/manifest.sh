# shellcheck shell=bash disable=SC2154
# manifest.sh - FILE.manifest.json: a complete output is not made again; each difference is named; an output that was
# cut, or has no manifest, is made again.

have tokenize dedup decompose inspect choose || return 0
corpus c.jsonl 60000 8
corpus d.jsonl 30000 9
cp c.jsonl first.jsonl
tok() { tokenize -t bytes -o t.tks --part 0/2 -v "$@"; }
tok c.jsonl d.jsonl 2>err
m=t.tks.manifest.json
check "a manifest beside the output" test -s $m
same "program, part, arguments and seed" '["tokenize", [0, 2], ["--tokenizer=bytes"], 0]' "$(json $m '[d[k] for k in ("program", "part", "arguments", "seed")]')"
same "its inputs" "c.jsonl $(wc -c <c.jsonl)" "$(json $m '"%s %d" % (d["inputs"][0]["name"], d["inputs"][0]["bytes"])')"
inspect --json t.tks >a
same "the output's checksum is the stream's" "$(json a 'd["checksum"]')" "$(json $m 'd["output"]["checksum"]')"
same "the account" "$(json a 'd["tokens"]')" "$(json $m 'd["tokens"]["out"]')"

# again MORE...: the same run; says whether it was made again.
again() {
    stamp=$(stat -c %i-%y t.tks 2>&1 || :)
    tok --stats s.json "$@" c.jsonl d.jsonl >out 2>err || { echo "status $?" && return; }
    [ "$stamp" = "$(stat -c %i-%y t.tks)" ] && echo skipped || echo made
}
before=$(sha t.tks $m)
same "the same once more" skipped "$(again)"
check "  says so in one line, with -v" shell 'grep -q "t.tks: is there already" err'
same "  --stats too" true "$(json s.json 'd["skipped"]')"
same "  with the counts of the earlier run" "$(json $m '[d["tokens"], d["documents"]]')" "$(json s.json '[d["tokens"], d["documents"]]')"
same "  and touches nothing" "$before" "$(sha t.tks $m)"
same "threads and memory do not matter" skipped "$(again -T 1 -M 64M)"
same "nor does a new time of an input" skipped "$(touch c.jsonl && again)"
same "-f makes it again" made "$(again -f)"
same "  the same bytes" "$(echo "$before" | sed -n 1p)" "$(sha t.tks)"
touch -d 2020-01-01 c.jsonl
tok -f c.jsonl d.jsonl 2>err

# differs WHAT PATTERN ARGUMENTS...: refused, and the one line says why
differs() {
    what=$1 pattern=$2
    shift 2
    before=$(sha t.tks $m)
    status "refused: $what" 1 tokenize -t bytes -o t.tks "$@"
    check "  one line" one_line "$TMP/err"
    check "  that names it" grep -q -e "t.tks: was made .*$pattern.*; remove it or use -f" "$TMP/err"
    same "  and touches nothing" "$before" "$(sha t.tks $m)"
}
differs "another option" 'without --no-eos, now --no-eos' --part 0/2 --no-eos c.jsonl d.jsonl
differs "another part" 'as part 0/2, now part 1/2' --part 1/2 c.jsonl d.jsonl
differs "another number of parts" 'as part 0/2, now part 0/3' --part 0/3 c.jsonl d.jsonl
differs "no parts" 'as part 0/2, now the whole' --manifest c.jsonl d.jsonl
differs "another seed" 'with --seed=0, now --seed=5' --part 0/2 --seed 5 c.jsonl d.jsonl
differs "compressed frames" 'without --zstd, now --zstd=3' --part 0/2 -z c.jsonl d.jsonl
differs "no vocabulary" 'without --no-vocab' --part 0/2 --no-vocab c.jsonl d.jsonl
differs "another input" 'from c.jsonl, now first.jsonl' --part 0/2 first.jsonl d.jsonl
cp first.jsonl moved.jsonl
sed 's/e/a/' first.jsonl >c.jsonl
differs "other contents of the same size" 'from other contents of c.jsonl' --part 0/2 c.jsonl d.jsonl
cat moved.jsonl moved.jsonl >c.jsonl
differs "a longer input" "from c.jsonl of $(wc -c <moved.jsonl) bytes, which now has $(wc -c <c.jsonl)" --part 0/2 c.jsonl d.jsonl
cp moved.jsonl c.jsonl
tokenize -t bytes --part 0/2 --domain web -o v.tks c.jsonl d.jsonl
status "refused: another value" 1 tokenize -t bytes --part 0/2 --domain code -o v.tks c.jsonl d.jsonl
check "  names both" grep -q 'v.tks: was made with --domain=web, now --domain=code; remove it or use -f' "$TMP/err"
status "refused: an option less" 1 tokenize -t bytes --part 0/2 -o v.tks c.jsonl d.jsonl
check "  names it" grep -q 'v.tks: was made with --domain=web, now without;' "$TMP/err"
sed -i 's/"version": "[^"]*"/"version": "0.0.1"/' v.tks.manifest.json
tokenize -t bytes --part 0/2 --domain web -v -o v.tks c.jsonl d.jsonl 2>err
check "another version that writes the same bytes: is there already" grep -q 'v.tks: is there already' err
for was in '"bytes": 0' '"was": 1'; do # and of versions that did not number them
    sed -i "s/\"bytes\": [0-9]*, \"part\"/$was, \"part\"/" v.tks.manifest.json
    status "refused: $was" 1 tokenize -t bytes --part 0/2 --domain web -o v.tks c.jsonl d.jsonl
    check "  names the version" grep -q 'by version 0.0.1, which writes other bytes than this one, [0-9.]*; remove it or use -f' "$TMP/err"
    sed -i "s/$was, \"part\"/\"bytes\": 0, \"part\"/" v.tks.manifest.json
done
status "refused: another program" 1 dedup --manifest -o v.tks t.tks
check "  names both" grep -q 'by tokenize, not dedup' "$TMP/err"
same "the refused run, with -f" 0 "$(dedup --manifest -f -o v.tks t.tks && echo $?)"

tokenize -t bytes --part 0/1 -o f.tks c.jsonl d.jsonl
status "refused: an input less" 1 tokenize -t bytes --part 0/1 -o f.tks c.jsonl
check "  names it" grep -q 'f.tks: was made from d.jsonl too; remove it or use -f' "$TMP/err"
status "refused: one more" 1 tokenize -t bytes --part 0/1 -o f.tks c.jsonl d.jsonl first.jsonl
check "  names it" grep -q 'f.tks: was made without first.jsonl; remove it or use -f' "$TMP/err"

# what is not whole is made again
same "the output still counts as complete" skipped "$(again)"
want=$(sha t.tks)
truncate -s -64 t.tks
same "an output that was cut" made "$(again)"
same "  is whole again" "$want" "$(sha t.tks)"
: >t.tks
same "an empty one" made "$(again)"
rm t.tks
same "none" made "$(again)"
rm $m
same "no manifest: stopped between the two" made "$(again)"
head -c 100 $m >half.json && mv half.json $m
same "half a manifest" made "$(again)"
check "  and it is whole again" "$PYTHON" -m json.tool $m out
same "and then the output counts as complete" skipped "$(again)"
sed -i '/"tokens"/s/"out": /"out": 1/' $m
same "a manifest whose counts do not balance" made "$(again)"
sed -i '/"documents"/s/"in": [0-9]*/"in": "x"/' $m
same "one with no number there" made "$(again)"
cp v.tks t.tks
status "another stream in its place" 1 tokenize -t bytes -o t.tks --part 0/2 c.jsonl d.jsonl
check "  is not touched" cmp -s v.tks t.tks
check "  one line" one_line "$TMP/err"
tok -f c.jsonl d.jsonl 2>err

# other outputs
tokenize -t bytes --part 0/2 --holdout 0.2 --holdout-output h.tks -v -o o.tks c.jsonl d.jsonl 2>err
tokenize -t bytes --part 0/2 --holdout 0.2 --holdout-output h.tks -v -o o.tks c.jsonl d.jsonl 2>err
check "another output is there too" grep -q 'o.tks: is there already' err
rm h.tks
tokenize -t bytes --part 0/2 --holdout 0.2 --holdout-output h.tks -v -o o.tks c.jsonl d.jsonl 2>err
check "without it both are made" shell '! grep -q already err && test -s h.tks'

for of in "50% 50.0% 050%" "0.5% .50%" "20k 20000"; do # spellings
    for best in $of; do choose -q -v --top "$best" --by length --manifest -o "top.${of%% *}" o.tks 2>err; done
    check "another spelling of --top ${of%% *}" grep -q 'is there already' err
done
index() { dedup -q --exact --save-index h.idx --manifest -v -o k.tks o.tks 2>err; }
index
printf '%0*d' "$(wc -c <h.idx)" 0 | tee zeros >h.idx
index
check "another file of the same size: both are made" shell '! grep -q already err && ! cmp -s h.idx zeros'
index
check "  and are there then" grep -q 'k.tks: is there already' err

tokenize -t bytes --part 0/2 --rejects /dev/null -o n.tks c.jsonl d.jsonl
tokenize -t bytes --part 0/2 --rejects /dev/null -v -o n.tks c.jsonl d.jsonl 2>err
check "a device takes no other output's place" grep -q 'n.tks: is there already' err

# a part's sources have numbers and names of the whole list
for f in a b c; do zstd -q -c d.jsonl >$f.jsonl.zst; done
: >e.jsonl
mkdir sub
cp c.jsonl.zst sub
tokenize -t bytes --on-error skip --part 2/3 -o z.tks a.jsonl.zst b.jsonl.zst c.jsonl.zst
status "refused: another number of a source" 1 tokenize -t bytes --on-error skip --part 2/3 -o z.tks a.jsonl.zst e.jsonl b.jsonl.zst c.jsonl.zst
check "  names both" grep -q 'z.tks: was made from c.jsonl.zst as source 2, now 3; remove it or use -f' "$TMP/err"
status "refused: another name of a source" 1 tokenize -t bytes --on-error skip --part 2/3 -o z.tks a.jsonl.zst b.jsonl.zst sub/c.jsonl.zst
check "  names it" grep -q 'z.tks: was made from sub/c.jsonl.zst by the name of c.jsonl.zst, now sub/c.jsonl.zst;' "$TMP/err"

# a list that can be read only once
tokenize -t bytes --part 0/2 -o l.tks a.jsonl.zst d.jsonl
printf 'a.jsonl.zst\nd.jsonl\n' | tokenize -t bytes --part 0/2 --files-from - -o p.tks
check "names from standard input" cmp -s l.tks p.tks

# a source's domain is compared, however it is given
mkdir web code
cp a.jsonl.zst web
cp -p web/a.jsonl.zst code
for way in "--domain-from {}/*" "--list-domains --files-from list"; do
    rm -f n.tks*
    for d in web code; do
        case $way in
        *list) printf '%s\tweb/a.jsonl.zst\n' $d >list ;;
        *) way="--domain-from {}/* $d/a.jsonl.zst" ;;
        esac
        want=0
        [ $d = web ] || want=1
        # shellcheck disable=SC2086 # words
        status "$way: $d" $want tokenize -t bytes --part 0/1 -o n.tks $way
    done
    check "  names both domains" grep -q 'with the domain "web", now "code"; remove it or use -f' "$TMP/err"
done

# files that options name are known by their contents alone
"$PYTHON" "$top/tests/cli/make_tokenizer.py" >t.json
head -n 3 d.jsonl >few.jsonl
echo 1 >drop
own() { tokenize -q -v --id-field id --part 0/1 -o r.tks "$@" few.jsonl; }
own -t t.json --ids-drop drop
mv t.json t2.json
mv drop drop2
own -t t2.json --ids-drop drop2 2>err
check "a list and a tokenizer of other names" grep -q 'r.tks: is there already' err
sed -i 's/"th"/"ht"/; s/"t h"/"h t"/' t2.json
status "another tokenizer" 1 own -t t2.json --ids-drop drop2
check "  is named" grep -q 'r.tks: was made with other contents of the file of --tokenizer; remove it or use -f' "$TMP/err"
status "none" 1 own --ids-drop drop2
check "  is named" grep -q 'was made with --tokenizer, now without; remove it or use -f' "$TMP/err"

# streams as inputs are known by their ends, whatever their times
dec() { decompose --min 16 --max 64 --manifest -v -o d.tks "$@" 2>err; }
dec t.tks
touch -d 2019-01-01 t.tks
dec t.tks
check "a stream with another time" grep -q 'd.tks: is there already' err
tokenize -t bytes -o t.tks -f --part 0/2 --no-provenance c.jsonl d.jsonl
check "one with other bytes, and the same sequences, is another" shell '! decompose --min 16 --max 64 --manifest -o d.tks t.tks 2>err'
check "  one line" one_line err
check "  that names it" grep -q 't.tks' err
cat t.tks t.tks >two.tks
decompose --min 16 --max 64 --manifest -o two.dec two.tks
decompose --min 16 --max 64 --manifest -o two.dec -v two.tks 2>err
check "a stream of two members" grep -q 'already' err
cp t.tks p.tks
decompose --min 16 --max 64 --manifest -o p.dec <p.tks
decompose --min 16 --max 64 --manifest -v -o p.dec <p.tks 2>err
check "a pipe is read again" shell '! grep -q already err'
status "  but not by other options" 1 shell 'decompose --min 32 --max 64 --manifest -o p.dec <p.tks'
inspect --json --manifest -o text t.tks
inspect --json --manifest -v -o text t.tks 2>err
check "an output of text" grep -q 'text: is there already' err
echo more >>text
inspect --json --manifest -v -o text t.tks 2>err
check "  that was changed is made again" shell '! grep -q already err && ! grep -q more text'

inspect --json t.tks >a
dd if=/dev/zero of=ids.bin bs=64 count=1 2>err
"$PYTHON" -c 'import struct; open("ids.idx", "wb").write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 1, 2) + struct.pack("<iqqq", 32, 0, 0, 1))'
status "an argument that is the common beginning of two files' names" 0 decompose --min 8 --max 16 --manifest -o i.tks ids
decompose --min 8 --max 16 --manifest -v -o i.tks ids 2>err
check "  is there already" grep -q 'i.tks: is there already' err
touch -d 2021-01-01 ids.idx
printf 'a' | dd of=ids.bin conv=notrunc 2>err
status "  and refused with other ids" 1 decompose --min 8 --max 16 --manifest -o i.tks ids
check "  names them" grep -q 'from other contents of ids.bin' "$TMP/err"

# a set of shards
if have pack shuffle; then
    decompose --min 16 --max 64 t.tks | pack -o packed.tks
    shards() { shuffle -q --format mds --shard-sequences 64 -o set/ "$@"; }
    shards --manifest packed.tks
    check "a manifest beside a set" test -s set.manifest.json
    bytes=$(sha_tree set)
    shards --manifest -v packed.tks 2>err
    check "  which is there already" grep -q 'set/: is there already' err
    status "  refused: another seed" 1 shards --manifest --seed 1 packed.tks
    check "  names it" grep -q 'set/: was made with --seed=0, now --seed=1; remove it or use --replace-set' "$TMP/err"
    status "  refused: another size of shards" 1 shards --manifest --shard-sequences 65 packed.tks
    check "  names it" grep -q 'with --shard-sequences=64, now --shard-sequences=65;' "$TMP/err"
    status "  refused, as without a manifest" 1 shards packed.tks
    cp -r set other
    sed -i 's/"mds"/"mdS"/' set/report.json
    status "  refused: another set in its place" 1 shards --manifest packed.tks
    check "  names it" grep -q 'set/: this set differs from the one in its manifest' "$TMP/err"
    rm set/report.json
    status "  one without a report is refused" 1 shards --manifest packed.tks
    status "  and replaced" 0 shards --manifest --replace-set packed.tks
    same "  to the same bytes" "$bytes" "$(sha_tree set)"
    shards --replace-set --manifest --seed 1 packed.tks
    shards --replace-set --manifest --compress zstd packed.tks
    shards -v --manifest --compress zstd:3 packed.tks 2>err
    check "  which is there already by another word" grep -q 'set/: is there already' err
    shards --replace-set --manifest --seed 1 packed.tks
    shards -v --manifest --seed 1 packed.tks 2>err
    check "  --replace-set makes another" grep -q 'set/: is there already' err
    status "  a folder without a name" 2 shell 'cd set && shuffle --format mds --manifest -o .. ../packed.tks'
fi

# names and values that are no UTF-8, or have a line's end
odd=$(printf 'a\377\nb "{part}"')
cp d.jsonl "$odd.jsonl"
tokenize -t bytes --domain "$odd" --part 0/2 -o "$odd" "$odd.jsonl"
tokenize -t bytes --domain "$odd" --part 0/2 -v -o "$odd" "$odd.jsonl" 2>err
check "a name that is no UTF-8" grep -aq 'b "0": is there already' err
same "  says so in lines of ours" 0 "$(grep -acv '^tokenize: ' err || :)"
status "  and another value like it is refused" 1 tokenize -t bytes --domain "$odd." --part 0/2 -o "$odd" "$odd.jsonl"
check "  in one line" one_line "$TMP/err"

# usage
status "--manifest without -o" 2 decompose --min 16 --max 64 --manifest t.tks
status "--manifest -o -" 2 decompose --min 16 --max 64 --manifest -o - t.tks
check "no manifest without being asked for" shell 'decompose --min 16 --max 64 -o q t.tks && ! test -e q.manifest.json'
decompose --min 16 --max 64 --part 0/1 -o /dev/null t.tks
check "none of a device" test ! -e /dev/null.manifest.json
status "a name too long for a manifest" 2 decompose --min 16 --max 64 --part 0/1 -o "$(printf '%0245d' 0)" t.tks
check "no temporary files" test -z "$(find . -name '.*.tmp')"

# an option counts unless its row says that it decides nothing
tokenize -q -t bytes -f -o t.tks c.jsonl d.jsonl
for plan in "decompose --min 16 --max 64" "pack --length 64"; do
    $plan --plan --manifest -o plan.out t.tks 2>err
    status "refused: a stream where ${plan%% *} --plan was" 1 $plan --manifest -o plan.out t.tks
    check "  names it" grep -q 'plan.out: was made with --plan, now without; remove it or use -f' "$TMP/err"
    rm plan.out
done
dedup -q --ngrams --save-index ngrams.idx --manifest -o u.tks t.tks
status "refused: dedup --ngrams where an index was made, and nothing dropped" 1 dedup --ngrams --manifest -o u.tks t.tks
check "  names it" grep -q 'u.tks: was made with --save-index, now without; remove it or use -f' "$TMP/err"
if have shuffle; then
    olmo() { shuffle -q --format olmo --documents --manifest -o olmo "$@" t.tks; }
    olmo --olmo-path /a
    status "refused: another --olmo-path" 1 olmo --olmo-path /b
    check "  names both" grep -q 'olmo: was made with --olmo-path=/a, now --olmo-path=/b; remove it or use --replace-set' "$TMP/err"
    status "refused: another --olmo-tokenizer" 1 olmo --olmo-path /a --olmo-tokenizer 300,0,0
    check "  names it" grep -q 'olmo: was made without --olmo-tokenizer, now --olmo-tokenizer=300,0,0; remove it' "$TMP/err"
    # a set that is read is known by its contents, wherever it lies
    dedup -q --manifest -o of-set.tks olmo
    cp -r olmo moved
    status "a set that was moved" 0 dedup -q --manifest -o of-set.tks moved
    olmo --olmo-path /a --max-tokens 100 --replace-set
    status "refused: another set in its place" 1 dedup -q --manifest -o of-set.tks olmo
    check "  names it" grep -q 'of-set.tks: was made with other contents of set 1; remove it or use -f' "$TMP/err"
fi

# a lenient option changes nothing where nothing is rejected
head -n 3 c.jsonl >mild.jsonl
lenient() {
    rm -f mild.made
    tokenize -t bytes --manifest -v -o mild.tks "$@" mild.jsonl 2>err && ! grep -q 'mild.tks: is there already' err && : >mild.made
    [ ! -e mild.made ] && grep -q 'is there already' err && echo skipped && return
    [ -e mild.made ] && echo made || sed 's/.*mild.tks: //; s/;.*//' err
}
same "made with --on-error skip" made "$(lenient --on-error skip)"
same "  without it there already, since nothing was rejected" skipped "$(lenient)"
same "  with --on-missing skip too" skipped "$(lenient --on-missing skip)"
same "  not with replace" "was made with --on-error=skip, now --on-error=replace" "$(lenient --on-error replace)"
before=$(sha mild.tks)
same "made without" made "$(rm mild.tks && lenient)"
same "  the same bytes: the provenance has no lenient option" "$before" "$(sha mild.tks)"
same "  with --on-error skip there already" skipped "$(lenient --on-error skip)"
echo '{"text": 7}' >>mild.jsonl
rm mild.tks
tokenize -q -t bytes --manifest -o mild.tks --on-error skip mild.jsonl 2>err
same "a record was rejected: with --on-error skip there already" skipped "$(lenient --on-error skip)"
same "  and refused without" "was made with --on-error=skip, now without" "$(lenient)"
same "  --rejects, which implies it, makes its file" made "$(rm mild.tks && lenient --rejects bad)"
same "  and is refused without" "was made with --rejects, now without" "$(lenient)"

# A report says how it was made, and --compare which reports another command would make otherwise.
head -n 20 c.jsonl >drop.jsonl
echo 1 >drop
for i in 0 1; do tokenize -q --id-field id --ids-drop drop --part $i/2 --stats r.$i -o r.$i.tks c.jsonl drop.jsonl; done
printf '%s\n' '0 r.0' '1 r.1' >reports
compare() { tokenize --part 0/2 --compare reports "$@" 2>&1 | sed 1d; }
empty "reports of this command" "$(compare --id-field id --ids-drop drop c.jsonl drop.jsonl)"
empty "  also of its options alone, in another order" "$(compare --ids-drop drop --id-field id)"
empty "  and with lenient ones" "$(compare --ids-drop drop --id-field id --on-error skip c.jsonl drop.jsonl)"
same "  of another one" "0 was made with --id-field=id, now without|1 was made with --id-field=id, now without" "$(compare --ids-drop drop | paste -sd '|')"
echo 2 >>drop
same "  of another list" "0 was made with other contents of the file of --ids-drop" "$(compare --id-field id --ids-drop drop | sed -n 1p)"
echo 1 >drop
touch drop.jsonl
empty "  of inputs of another time" "$(compare --id-field id --ids-drop drop c.jsonl drop.jsonl)"
tail -n 20 c.jsonl >drop.jsonl
check "  of other inputs" shell 'tokenize --part 0/2 --compare reports --id-field id --ids-drop drop c.jsonl drop.jsonl | grep -cE "^1 was made from (another share of |)(c|drop).jsonl"'
tokenize --part 0/2 --ids-drop drop --compare reports c.jsonl >record
check "  and how this one would make it" grep -qE '^"program": "tokenize", "bytes": [0-9]+, "arguments": \[\], "contents": \["--ids-drop=[0-9a-f]{32}"\], "seed": 0, "all_inputs": "[0-9a-f]{32}"$' record
# outputs that options name, of each part
printf '%s\n' '0 r.0' '1 r.1' >reports
for i in 0 1; do tokenize -q -f --id-field id --ids-drop drop --rejects 'rj.{part}' --part $i/2 --stats r.$i -o r.$i.tks c.jsonl; done
rejects() { compare --id-field id --ids-drop drop --rejects "$@"; }
empty "outputs that are there" "$(rejects 'rj.{part}')"
touch rj.0
empty "  at another time" "$(rejects 'rj.{part}')"
mv rj.1 gone
same "  one that is gone" "1 rj.1, which it writes, is not there" "$(rejects 'rj.{part}')"
echo more >rj.1
same "  another file in its place" "1 rj.1 is not the file that it wrote for --rejects" "$(rejects 'rj.{part}')"
cp gone rj.1
same "  other names" "0 g.0, which it writes, is not there" "$(rejects 'g.{part}' | sed -n 1p)"
cp rj.0 g.0
cp rj.1 g.1
empty "  of files that are equal" "$(rejects 'g.{part}')"
echo '0 none' >reports
same "  a report that is not there" "0 none: cannot be opened: No such file or directory" "$(compare c.jsonl)"
