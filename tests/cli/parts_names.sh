# shellcheck shell=bash disable=SC2154
# parts_names.sh - --part as an option of every program: {part} and {parts} in names, jobs that cannot be split,
# reports.

have tokenize dedup decompose pack shuffle schedule inspect || return 0
corpus c.jsonl 60000 7
tokenize -t bytes --rejects bad c.jsonl -o whole.tks
decompose --min 16 --max 64 whole.tks -o whole.dec
for i in 0 1 2; do
    SLURM_ARRAY_TASK_ID=$((i + 5)) tokenize -t bytes --part auto/3 --part-base 5 -o 'docs.{part}-of-{parts}.tks' \
        --stats 'tok.{part}.json' --rejects 'bad.{part}' c.jsonl || not_ok "tokenize part $i"
    decompose --min 16 --max 64 --part $i/3 -o 'dec.{part}' --stats 'dec.{part}.json' 'docs.{part}-of-{parts}.tks' ||
        not_ok "decompose part $i"
done
check "{part} and {parts} in -o" test -s docs.2-of-3.tks
check "in options' values" test -e bad.1
same "in --stats, which says which part it was" '[1, 3]' "$(json dec.1.json 'd["part"]')"
echo none >list.1
tokenize -q -t bytes --id-field id --part 1/3 --ids-drop 'list.{part}' -o listed.tks c.jsonl
dedup -q --exact --save-index index.0 -o u.tks docs.0-of-3.tks
mkdir work
dedup -q --exact --stage sign --work work --part 0/3 --against 'index.{part}' 'docs.{part}-of-3.tks'
check "in those of files that are read" test -s listed.tks -a -s work/sign.0-of-3
check "no report without --part has a part" shell 'inspect --stats s.json whole.tks >out && ! grep -q "\"part\"" s.json'
cat dec.0 dec.1 dec.2 >cat.dec
same "the parts are the run" "$(inspect --records whole.dec | sha)" "$(inspect --records cat.dec | sha)"
same "and the provenance, with its counts, is that of the run" "$(inspect --json whole.dec >a && json a 'd["provenance"]')" \
    "$(inspect --json cat.dec >a && json a 'd["provenance"]')"
decompose --min 16 --max 64 --part 1/3 <docs.1-of-3.tks >piped.dec
same "a part by pipe" "$(sha dec.1)" "$(sha piped.dec)"
status "inspect of a part" 0 inspect --json --part 2/3 'docs.{part}-of-{parts}.tks'
status "names without a part in them, with one part" 0 decompose --min 16 --max 64 --part 0/1 -o x whole.tks
rm -f x x.*
cp whole.tks 'a{part}b.tks'
status "without --part it is a name like any other" 0 inspect 'a{part}b.tks'

# what cannot be split, or would be read by every part
for bad in "decompose --part 0/2 whole.tks" "decompose --part 0/2 docs.{part}-of-3.tks whole.tks" "inspect --json --part 1/2 whole.tks" \
    "dedup --part 0/2 docs.{part}-of-3.tks" "dedup --near --part 0/1 docs.{part}-of-3.tks" "dedup --ngrams --part 0/2 docs.{part}-of-3.tks" \
    "pack --length 64 --part 0/2 docs.{part}-of-3.tks" "shuffle --part 0/2 docs.{part}-of-3.tks" "decompose --mixture equal --part 0/2 docs.{part}-of-3.tks" \
    "decompose --part 2/2 docs.{part}-of-3.tks" "decompose --part 0/0 docs.{part}-of-3.tks" "decompose --part auto/2 docs.{part}-of-3.tks"; do
    # shellcheck disable=SC2086 # words are meant
    status "refused: $bad" 2 $bad -o x
    check "  one line" one_line "$TMP/err"
done
status "refused: schedule" 2 schedule --part 0/2 --trainer generic --batch-tokens 64 -o x nowhere
check "  one line" one_line "$TMP/err"
check "and nothing was written" test ! -e x
status "two outputs that are one file once the part is known" 2 decompose --part 0/2 -o 'y.{part}' --stats y.0 'docs.{part}-of-3.tks'
status "an output over an input, likewise" 2 decompose --part 0/3 -o 'docs.{part}-of-{parts}.tks' docs.0-of-3.tks
status "a part that does not exist" 1 decompose --part 4/5 -o x 'docs.{part}-of-3.tks'
check "the message has the name with the part's number" grep -q 'docs\.4-of-3\.tks' "$TMP/err"
