# shellcheck shell=bash disable=SC2154,SC2086
# sets_empty.sh - a set without sequences as input: of each format, by each program, alone and before and behind a set
# that has some; the tokenizer stays.
# check-more: longer

have tokenize decompose pack shuffle dedup choose inspect || return 0

echo '{"text":""}' >none.jsonl
echo '{"text":"a few words","domain":"web"}' >some.jsonl
programs="
decompose
pack --length 64
dedup
dedup --near
dedup --ngrams
dedup --substring 20
choose --length 1..
shuffle
shuffle --order keep
shuffle --documents --format ds"
inspections="
--verify
--records
--jsonl
--histogram"
for f in none some; do
    tokenize -q -t bytes $f.jsonl -o $f.tks
    decompose -q --min 2 --tail drop $f.tks -o $f.plain.tks
    decompose -q --min 2 --tail drop --label-token $f.tks -o $f.label.tks
done
tokenize -q none.jsonl -o other.tks

# one PROGRAM INPUT...: a run, whose output is complete; what goes wrong is printed.
one() {
    rm -rf out
    code $1 -q --input-format set -o out "${@:2}" 2>err
    [ $ended = 0 ] || echo "$*: $ended, $(sed -n 1p err)"
    [ $ended != 0 ] || inspect --verify out >/dev/null 2>err || echo "$*: $(sed -n 1p err)"
}
for format in olmo ds megatron mds litdata parquet wds; do
    how="--documents --format $format" kind='' again="--documents --format ds"
    [ $format != wds ] || how="--format wds" kind=.label again="--format wds"
    shuffle -q $how -o none.$format none$kind.tks 2>err || {
        grep -q 'not built' err || not_ok "$format: $(head -n 1 err)"
        continue
    }
    shuffle -q $how -o some.$format some$kind.tks
    case $format in olmo | mds | wds) ;; *) [ -n "$MORE" ] || continue ;; esac
    while read -r program; do
        [ -n "$program" ] || continue
        case "$program $format" in decompose*wds | *documents*wds) continue ;; esac
        one "$program" none.$format
        one "$program" none.$format some.$format
        one "$program" some.$format none.$format
    done <<<"$programs" >said
    empty "$format: read by every program, alone and with another set" "$(cat said)"
    for how in $inspections; do
        code inspect $how none.$format >printed 2>err
        [ $ended = 0 ] || echo "$how: $ended, $(sed -n 1p err)"
    done >said
    empty "$format: inspected" "$(cat said)"
    same "$format: the tokenizer stays" "$(json some.$format/report.json 'd["tokenizer"]')" \
        "$(shuffle -q $again --input-format set -o back none.$format
        json back/report.json 'd["tokenizer"]')"
    rm -rf back
    same "$format: and its vocabulary" "$(shuffle -q --order keep --input-format set none.$format some.$format | inspect --jsonl)" \
        "$(shuffle -q --order keep --input-format set some.$format | inspect --jsonl)"
done
shuffle -q --format mds -o none.cut none.plain.tks
status "a set without pieces" 0 shuffle -q --order keep --input-format set -o x.tks none.cut
same "  is still one of pieces" "$(code decompose -o y.tks none.plain.tks 2>&1)" "$(code decompose -o y.tks x.tks 2>&1)"
echo '{"text":"","spans":[]}' | tokenize -q -t bytes --spans-field spans | shuffle -q --documents --format olmo -o none.masked
status "a set with masks and without sequences" 0 shuffle -q --order keep -o x.tks none.masked some.olmo

status "a set of another tokenizer" 1 shuffle --order keep -o x.tks none.ds other.tks
shuffle -q --documents --format ds -o other.ds other.tks
status "  as a set" 1 shuffle --order keep -o x.tks other.ds some.ds
print_of() { json $1/report.json 'd["tokenizer"]["fingerprint"][:16]'; }
check "  is named by the fingerprints in report.json" grep -q "some.ds: made with another tokenizer .*fingerprint $(print_of some.ds), before $(print_of other.ds))" err
rm none.ds/segments/documents.tks
status "an empty set of an earlier version" 1 shuffle --order keep -o x.tks none.ds
check "  says why it cannot be read" grep -q "none.ds: the set has no sequences, and no segments/documents.tks" err

# A set that is being replaced; with a format's own index, by which it could be taken for another kind of folder.
cp -r some.mds replaced
rm replaced/report.json
mkdir replaced/.partial
touch replaced/.partial/ready
cp replaced/*/index.json replaced/
while read -r program; do
    [ -n "$program" ] || continue
    code $program -q -o out replaced 2>err
    { [ $ended = 1 ] && grep -q 'replaced: the set is being replaced; run the command again' err; } || echo "$program: $ended, $(sed -n 1p err)"
done <<<"$programs" >said
empty "a set that is being replaced: every program says so" "$(cat said)"
