# shellcheck shell=bash disable=SC2154,SC2002,SC2086
# tokens_rows.sh - X.npy with X.csv.gz beside it (dolma, OLMo-core): the rows define the documents and their ids;
# padding between documents is left out with a warning; rows that contradict the ids are reported in one line.
# check-more: whole

have tokenize decompose inspect shuffle || return 0
mk() { "$PYTHON" "$top/tests/cli/make_rows.py" "$@"; }
field() { cat "$1" | inspect --json >f.json && json f.json "d['$2']"; }

corpus c.jsonl 300000 6
tokenize -t bytes --no-eos --id-field id c.jsonl >c.tks
inspect --records c.tks >r.json
mk records r.json c 2
mk records r.json gap 2 13
mk records r.json wide 4

# ---- the same documents, without an id that ends them ----

sum=$(field c.tks checksum)
for f in "c.npy --token-bytes 2" "wide.npy --token-bytes 4" "wide.npy --token-bytes 4 --vocab-size 300" \
    "gap.npy --token-bytes 2" "c.npy --token-bytes 2 --eos-id 32"; do
    inspect --json -q $f >j.json
    same "$f: the same documents" "$sum $(wc -l <r.json)" "$(json j.json 'd["checksum"] + " %d" % d["documents"]')"
done
inspect --records --token-bytes 2 c.npy >n.json
check "ids and places" mk check r.json n.json
inspect --records -q --token-bytes 2 gap.npy >n.json
check "ids and places between padding" mk check r.json n.json 13
same "rows without an end token give no eos_id" null "$(inspect --json --token-bytes 2 c.npy | grep -o "\"eos_id\": [a-z0-9]*" | cut -d" " -f2)"
inspect --json --stats s.json --token-bytes 2 gap.npy >out 2>err
n=$(($(wc -l <r.json) / 5 * 13))
check "padding is said" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q "gap.npy: left out as padding, .* has them: $1 ids, all equal" err' - $n
decompose --plan c.tks >plan
decompose --plan --token-bytes 2 c.npy >plan2
check "--plan" cmp plan plan2
inspect --histogram c.tks >h1
inspect --histogram -q --token-bytes 2 c.npy gap.npy >h2
same "--histogram of two files" "$(awk '$1 ~ /^[0-9]/ {n += 2 * $2} END {print n}' h1)" \
    "$(awk '$1 ~ /^[0-9]/ {n += $2} END {print n}' h2)"
bytes=$(decompose --min 16 --max 512 -q --token-bytes 2 --vocab-size 300 gap.npy | sha)
for o in "-T 1" "-T 7" "-M 32M"; do
    same "the same bytes with $o" "$bytes" "$(decompose $o --min 16 --max 512 -q --token-bytes 2 --vocab-size 300 gap.npy | sha)"
done
# OLMo-core's own rows have two columns; an empty set of rows over padding alone is no document.
printf '\1\0\2\0\3\0\0\0' >two.npy
mk rows two.csv.gz "[[0, 1], [1, 3]]"
same "two columns" "[[1, 1], [2, 1]]" "$(inspect --json -q --token-bytes 2 two.npy >j.json; json j.json 'd["lengths"]')"
mk text two.csv.gz "'0,1\n1,3\n'"
same "lines that end as Unix's do" "[[1, 1], [2, 1]]" "$(inspect --json -q --token-bytes 2 two.npy >j.json; json j.json 'd["lengths"]')"
mk text two.csv.gz "'0,1\n1,1\n1,3\n'"
same "a document of no ids is left out" "[[1, 1], [2, 1]] 1" \
    "$(inspect --json -q --stats s.json --token-bytes 2 two.npy >j.json; json j.json 'd["lengths"]') $(json s.json 'd["empty_documents"]')"
printf '\0\0\0\0' >pad.npy
mk rows pad.csv.gz "[]"
same "no document at all" 0 "$(inspect --json -q --token-bytes 2 pad.npy two.npy >j.json; json j.json 'd["documents"] - 2')"

# ---- what does not fit ----

# bad WORDS TEXT: rows of that text beside three ids and a padding id.
bad() {
    mk text two.csv.gz "$2"
    for p in "inspect --json" "decompose --plan" decompose; do
        status "$p: $2" 1 $p --token-bytes 2 two.npy
        if one_line err && grep -qe "two.*$1" err; then ok "$p: $1"; else
            cat err
            not_ok "$p: $1"
        fi
    done
}
bad "row 1: ids 1 to 9 end after the file's last" "'1,9\n'"
bad "row 2: ids 1 to 3 begin before the last row's end" "'0,2\n1,3\n'"
bad "row 2: ids 3 to 2 end before they begin" "'0,2\n3,2\n'"
bad "row 1 does not begin with two numbers" "'start,end,id,src,loc\n0,3\n'"
bad "row 1 does not begin with two numbers" "'3\n'"
bad "row 1 does not begin with two numbers" "'0,99999999999999999999999\n'"
bad "row 1 does not begin with two numbers" "'0,3x\n'"
bad "the last row, 2, has no end of line" "'0,1\n1,3'"
bad "the last row, 1, has no end of line" "'0,1,\"a\n1,3\n'"
bad "row 1 is longer than 1 MiB" "'0,1,' + 'x' * 1200000"
bad "ids 0 to 4 are in no row" "''"
bad "ids 1 to 4 are in no row" "'0,1\n'"
mk rows two.csv.gz "[[0, 1, 'a%d' % i] for i in range(9)]"
head -c 30 two.csv.gz >short && mv short two.csv.gz
status "rows that were cut" 1 decompose --token-bytes 2 two.npy
check "are one line" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q "two.csv.gz.*ends early" err'
mk rows two.csv.gz "[[0, 3]]"
printf x >>two.csv.gz
status "something behind the rows" 1 decompose --token-bytes 2 two.npy
check "is one line" one_line err
printf 'no gzip at all, nor rows' >two.csv.gz
status "rows that are not gzip" 1 decompose --token-bytes 2 two.npy
check "is one line too" one_line err
rm two.csv.gz
status "without rows, and no id that ends documents" 2 decompose --token-bytes 2 c.npy two.npy
check "the file is named" shell '. "$top/tests/cli/lib.sh"; one_line err && grep -q "two.npy: .*--eos-id" err'
same "with it, files of both kinds go together" "$(($(wc -l <r.json) + 2))" \
    "$(inspect --json -q --token-bytes 2 --eos-id 3 c.npy two.npy >j.json; json j.json 'd["documents"]')"
