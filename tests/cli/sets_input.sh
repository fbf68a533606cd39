# shellcheck shell=bash disable=SC2154,SC2016
# sets_input.sh - the sets that shuffle writes as input: merged, in other sizes and formats, mixed; of each format the same
# records, with segments, ids, domains and masks; sources that have the same number; damage; sets that do not suit.
# check-more: longer

have tokenize decompose pack shuffle inspect || return 0

corpus c.jsonl 600000 4
corpus d.jsonl 300000 5
tok() { tokenize -q -t bytes --id-field id --domain-field domain "$@"; }
tok c.jsonl -o c.tks
tok d.jsonl -o d.tks
for f in c d; do
    decompose -q --min 32 --max 256 --tail drop $f.tks -o $f.plain.tks
    decompose -q --min 32 --max 256 --tail drop --label-token $f.tks -o $f.label.tks
done
# Names of sources, not their numbers: these depend on what is joined.
records() { inspect --records "$@" | sed 's/"source_number":[0-9]*,*//g'; }

for format in wds olmo ds megatron mds litdata parquet; do
    case $format in wds | ds) kind=label ;; *) kind=plain ;; esac
    set -- --shard-sequences 50
    [ $format != olmo ] || set -- "$@" --olmo-path /data/set
    rm -rf c.set d.set both
    if ! shuffle -q --seed 3 --format $format "$@" -o c.set c.$kind.tks 2>err; then
        grep -q 'not built' err || not_ok "$format: $(head -n 1 err)"
        continue
    fi
    shuffle -q --seed 4 --format $format "$@" -o d.set d.$kind.tks
    status "$format: two sets are joined" 0 shuffle -q --order keep --input-format set -o both.tks c.set d.set
    same "$format: the records of both, in order" "$(cat <(records c.set) <(records d.set) | sha)" "$(records both.tks | sha)"
    status "$format: verified" 0 inspect --verify both.tks
done
for format in $(longer "megatron olmo mds" "megatron ds olmo mds litdata parquet"); do
    rm -rf one two none
    one=$format # of Megatron from others, and of others from their own
    [ $format != megatron ] || one=mds
    shuffle -q --documents --order keep --shard-size 100K --format $one -o one c.tks 2>err || {
        grep -q 'not built' err || not_ok "$format: $(head -n 1 err)"
        continue
    }
    shuffle -q --documents --order keep --shard-size 128K --format $format --input-format set -o two one
    rm -rf want
    shuffle -q --documents --order keep --shard-size 128K --format $format -o want c.tks
    same "a set in another size, as $format: the files of the stream" "$(sha_tree want/documents)" "$(sha_tree two/documents)"
    same "and its segments" "$(inspect --records want | sha)" "$(inspect --records two | sha)"
    same "and where its documents come from" "$(json want/report.json 'd["sources"]')" "$(json two/report.json 'd["sources"]')"
done
rm -rf one
shuffle -q --documents --order keep --shard-size 100K --format megatron -o one c.tks
same "documents that wait for a bin" "$(pack -q --length 300 c.tks | inspect --jsonl | sha)" "$(pack -q --length 300 one | inspect --jsonl | sha)"
same "the vocabulary comes along" "$(inspect --jsonl one | sha)" "$(shuffle -q --order keep one | inspect --jsonl | sha)"

# ---- masks ----

"$PYTHON" -c 'import json
for i in range(200):
    print(json.dumps({"text": "question and answer " * (i % 37 + 1), "spans": [[i % 15, i % 15 + 5]]}))' >m.jsonl
tokenize -q -t bytes --spans-field spans m.jsonl -o m.tks
shuffle -q --documents --order keep --format olmo -o masked m.tks
same "masks come along" "$(inspect --records m.tks | sha)" "$(shuffle -q --order keep masked | inspect --records | sha)"
status "with a set that has none" 0 shuffle -q --order keep -o with.tks masked one
trained() { inspect --json "$1" >j.json && json j.json 'd.get("loss_tokens", d["tokens"])'; }
same "which is trained on as a whole" $(($(trained masked) + $(trained one))) "$(trained with.tks)"

# ---- sources, mixes ----

shuffle -q --documents --seed 1 --format ds -o d.set --replace-set d.tks
shuffle -q --order keep -o joined.tks one d.set one
same "two sources of number 0, and the first again: two in all" '["c.jsonl", "d.jsonl"]' \
    "$(inspect --records joined.tks >r.json; "$PYTHON" -c 'import json
s = {(g["source_number"], g["source"]) for line in open("r.json") for g in json.loads(line)["segments"]}
print(json.dumps(sorted(n for _, n in s)))')"
for f in x y; do
    printf 'text of %s' $f >$f.txt
    tokenize -q -t bytes $f.txt | shuffle -q --documents --format ds -o $f.set
done
status "read by a program that hands on what it read" 0 dedup -q --exact x.set y.set -o kept.tks
status "whose stream is verified" 0 inspect --verify kept.tks
shuffle -q --documents --mix one=0.5,d.set=0.5 --mix-by input --format megatron -o mixed one d.set
check "sets are mixed by their paths" shell 'inspect --records mixed | grep -o "\"source\":\"[cd].jsonl\"" | sort | uniq -c |
    "$PYTHON" -c "import sys; assert len(sys.stdin.readlines()) == 2"'
status "the mix is verified" 0 inspect --verify mixed

# ---- refused ----

cp -r one bad
printf '\1' | dd of=bad/documents/shard-0000000.bin bs=1 seek=76 conv=notrunc 2>/dev/null
status "a damaged set" 1 shuffle -q --order keep -o no.tks bad
check "is seen by its sums" grep -q "the set is damaged" err
for format in megatron olmo; do
    rm -rf bad
    shuffle -q --documents --order keep --format $format -o bad c.tks
    for f in bad/documents/*.bin bad/documents/*.npy; do
        [ ! -e "$f" ] || printf '\376\377' | dd of="$f" bs=1 seek=76 conv=notrunc 2>/dev/null
    done
    status "$format: an id above all" 1 shuffle -q --order keep -o no.tks bad
    check "$format: is named" grep -q "id 65534 is not in the vocabulary" err
done
tokenize -q c.jsonl | shuffle -q --documents --format megatron -o other
status "a set of another tokenizer" 1 shuffle -q --order keep -o no.tks one other
check "is named" grep -q "other: made with another tokenizer" err
status "sets and streams together" 1 shuffle -q --order keep -o no.tks one c.tks
status "options of files of ids" 2 shuffle -q --order keep --eos-id 256 -o no.tks one
status "into itself" 2 shuffle -q --documents --replace-set --format megatron -o one one
status "which stays" 0 inspect --verify one
check "nothing was written" test ! -e no.tks

# A set of format mds is a set, though it has an index of MDS, too.
mkdir kinds
shuffle -q --order keep --format mds -o kinds/mds c.plain.tks
shuffle -q --order keep --format litdata -o kinds/litdata c.plain.tks
status "sets of two kinds" 0 shuffle -q --order keep kinds/mds kinds/litdata -o x.tks
inspect --json c.plain.tks >one.json
inspect --json x.tks >both.json
same "  with their documents" "$(json one.json 'd["documents"] * 2')" "$(json both.json 'd["documents"]')"
check "  and steps" grep -q -e --format=mds both.json
cp -r kinds/mds kinds/other
rm kinds/other/report.json
status "MDS of others beside a set" 1 shuffle --order keep kinds/other kinds/litdata -o x.tks
check "  is named" grep -qx "shuffle: kinds/other is read as mds, and kinds/litdata as set; give one kind at a time" err
