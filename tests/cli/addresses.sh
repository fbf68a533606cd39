# shellcheck shell=bash disable=SC2154
# addresses.sh - no program reads or writes an address as s3://bucket/x: each option that names a file or folder, each
# input, and each line of a list refuses it with the way by a pipe, and nothing is made on the disk.
# check-more: longer

have tokenize dedup choose decompose pack shuffle schedule inspect || return 0
echo '{"text": "a"}' >c.jsonl
tokenize -q -t bytes c.jsonl -o c.tks

# refused WHAT WORD COMMAND...: a usage error of one line that names the address, and no folder "s3:".
refused() {
    status "$1" 2 "${@:3}"
    check "$1: one line" one_line "$TMP/err"
    check "$1: it says so" grep -qE -e "$2.*: is an address" "$TMP/err"
    check "$1: nothing is made" test ! -e s3: -a ! -e gs: -a ! -e https: -a ! -e x-yz.1:
}

# From each program's help: options whose value is named FILE, DIR, INDEX, ..., but for those that name a thing of the
# trainer's, and what other words name.
for p in tokenize dedup choose decompose pack shuffle schedule inspect; do
    $p --help >help
    sed -nE 's/^ +(-., )?(--[a-z-]+)=(FILE|DIR|INDEX|LIST|TOKENIZER|W|RULES|MODEL:LABEL>=P)( .*)?$/\2/p' help |
        grep -v -e '--buckets' >list
    check "$p: --help has such options" grep -q -e --output list
    while read -r option; do
        refused "$p $option" "$option s3://" $p "$option" s3://bucket/x c.tks
        [ -z "$MORE" ] || refused "$p $option=" "$option gs://" $p "$option=gs://bucket/x" c.tks
    done <list
    for a in $(longer s3://bucket/x.tks "s3://bucket/x.tks https://host/x.jsonl.gz x-yz.1://host/x"); do
        refused "$p $a" "$a" $p c.tks $a
        check "$p $a: the way" grep -qF "| $p" "$TMP/err"
    done
done
refused "of several rules, the second" '--rules c4,s3://' tokenize --rules c4,s3://bucket/rules c.jsonl
refused "a model" '--fasttext https://' tokenize --fasttext 'https://host/m.bin:en>=0.5' c.jsonl
refused "a set" '--output s3://' shuffle --documents --format parquet -o s3://bucket/set c.tks
refused "a part's name" '--output s3://' tokenize --part 0/2 -o 's3://bucket/{part}.tks' c.jsonl
refused "--part: an input" 's3://bucket/\{part\}' decompose --part 0/2 -o 'x{part}.tks' 's3://bucket/{part}.tks'
check "the way by a pipe" grep -qF 'aws s3 cp s3://bucket/{part}.tks - | decompose' "$TMP/err"
status "file:" 2 tokenize -t bytes "file://$PWD/c.jsonl"
check "file: its path is named" grep -qF "write $PWD/c.jsonl" "$TMP/err"
printf 'c.jsonl\ns3://bucket/x.jsonl\n' >list
status "a line of a list" 1 tokenize -t bytes --files-from list -o x.tks
check "a line of a list: it says so" grep -qF 'list: "s3://bucket/x.jsonl": is an address' "$TMP/err"

# A name with a colon is a file; ./ in front takes any name as one.
mkdir -p ./s3:/b
cp c.jsonl a:b.jsonl
cp c.jsonl ./s3:/b/c.jsonl
status "a name with a colon" 0 tokenize -q -t bytes a:b.jsonl -o x.tks
status "./ in front" 0 tokenize -q -t bytes ./s3://b/c.jsonl -o x.tks
rm -r ./s3:

if have sluice-batch; then
    printf '%s\n' 'input = s3://bucket/*.jsonl' 'parts = 1' 'decompose = --min 64 --max 512 --label-token' 'pack =' 'shuffle = --format wds' >recipe
    status "sluice-batch: an input" 1 sluice-batch init recipe out
    check "sluice-batch: an input: it says so" grep -qF 'is an address' "$TMP/err"
    status "sluice-batch: the folder" 1 sluice-batch init recipe s3://bucket/out
    check "sluice-batch: the folder: it says so" grep -qF 's3://bucket/out: is an address' "$TMP/err"
    check "sluice-batch: nothing is made" test ! -e s3: -a ! -e out/recipe
fi
if have sluice-chat; then
    export SLUICE_PYTHON=$PYTHON
    for option in -t --template --rejects -o; do
        refused "sluice-chat $option" 's3://bucket/x' sluice-chat -t t "$option" s3://bucket/x c.jsonl
    done
    refused "sluice-chat: an input" 's3://bucket/x' sluice-chat -t t s3://bucket/x
fi
if "$PYTHON" -c 'import numpy' 2>/dev/null; then
    PYTHONPATH=$top/python "$PYTHON" -c 'import sluice
for f in (lambda: sluice.open("s3://bucket/set"), lambda: sluice.open("c.tks", index="s3://bucket/ids")):
    try: f(); print("opened")
    except sluice.SluiceError as e: print(e)' >said
    same "Python: open" 2 "$(grep -c 'is an address' said)"
fi
