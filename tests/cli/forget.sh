# shellcheck shell=bash disable=SC2154,SC2016
# forget.sh - documents are taken out of sets of each format: what is left, what is read, what is refused; twice in a row;
# sets with padding between segments as inputs; the steps of a schedule that had them.
# check-more: longer

have tokenize decompose pack shuffle forget inspect schedule || return 0

"$PYTHON" "$top/tests/cli/make_tokenizer.py" | "$PYTHON" -c 'import json, sys
t = json.load(sys.stdin)
t["added_tokens"].append({**t["added_tokens"][0], "id": 258, "content": "<|pad|>"})
t["model"]["vocab"]["<|pad|>"] = 258
print(json.dumps(t))' >t.json
export PAD=258
"$PYTHON" -c 'import json, random
r = random.Random(7)
for i in range(700):
    text = " ".join(r.choice("the then that quick brown fox jumps over a lazy dog".split()) for _ in range(r.choice([2, 3, 5, 8, 30, 80])))
    print(json.dumps({"id": "d%d" % i, "text": text, "domain": "ab"[i % 2], "spans": [[0, len(text) // 2]]}))' >c.jsonl
printf 'd%s\n' 3 4 5 88 123 400 >one
printf 'd%s\n' 6 88 650 >two
cat one two >both
tok() { tokenize -q -t t.json --id-field id --domain-field domain c.jsonl "$@"; }
tok -o c.tks
tok --spans-field spans --no-eos -o m.tks
for f in c m; do
    decompose -q --min 32 --max 256 --tail keep $f.tks 2>err | pack -q --mix-domains --long split --length 256 -o $f.plain.tks
    decompose -q --min 32 --max 256 --tail keep --label-token $f.tks 2>err | pack -q --mix-domains --long split --length 256 -o $f.label.tks
done
# left OLD NEW IDS [LIST]: see forget.py.
left() {
    inspect --records "$1" >old.records
    inspect --records "$2" >new.records
    shift 2
    "$PYTHON" "$top/tests/cli/forget.py" old.records new.records "$@"
}

for format in wds megatron mds litdata olmo parquet megatron-sft; do
    case $format in wds) kind=label ;; *) kind=plain ;; esac
    for of in c m; do
        [ $format$of != megatronm ] || continue # it carries no masks
        name=$format
        [ $of = c ] || name="$format with masks"
        case $name in
        wds | 'mds with masks' | olmo) ;;
        *) [ -n "$MORE" ] || continue ;;
        esac
        set -- --shard-sequences 8
        case $format in
        wds) set -- "$@" --member json ;;
        mds) set -- "$@" --compress zstd:5 --license 'CC BY 4.0' ;;
        olmo) set -- "$@" --olmo-path /data/set ;;
        esac
        rm -rf old new again three
        if ! shuffle -q --seed 3 --format $format "$@" -o old $of.$kind.tks 2>err; then
            grep -q 'not built' err || not_ok "$name: $(head -n 1 err)"
            continue
        fi
        set --
        case $name in mds | litdata) set -- --accept-mismatch ;; esac
        status "$name: documents are taken out" 0 forget "$@" --pad-id 258 --ids-drop one --list gone -o new old
        check "$name: only they become padding" left old new one gone
        status "$name: the set is whole" 0 inspect --verify new
        same "$name: the counts" "$(grep -c . gone) $(json old/report.json 'd["tokens"]')" "$(json new/report.json 'str(d["forgotten"]["segments"]) + " " + str(d["tokens"])')"
        same "$name: what is out" '[6, 6]' "$(json new/report.json '[d["forgotten"]["documents"], d["all_steps"]["documents"]["dropped"]["ids-drop"]]')"

        # What has none of them is not read: zeros are in its place.
        rm -rf blank
        cp -r old blank
        changed=$("$PYTHON" -c 'import json
old = {r["file"]: r["xxh3_64"] for r in map(json.loads, open("old/manifest.jsonl")) if "shard" in r}
new = {r["file"]: r["xxh3_64"] for r in map(json.loads, open("new/manifest.jsonl")) if "shard" in r}
same = [f for f in old if new[f] == old[f]]
shards = {r["file"]: r["file"].split("/")[0] + str(r["shard"]) for r in map(json.loads, open("old/manifest.jsonl")) if "shard" in r}
touched = {shards[f] for f in old if f not in same}
for f in same:
    if shards[f] not in touched:
        n = len(open("blank/" + f, "rb").read())
        open("blank/" + f, "wb").write(bytes(n))
print(len(touched))')
        if [ "$name" != olmo ]; then
            same "$name: the changed shards" "$changed" "$(json new/report.json 'd["forgotten"]["shards"]')"
            status "$name: others are not read" 0 forget "$@" --pad-id 258 --ids-drop one -o three blank
            same "$name: nor are the lists other" "$(sha new/manifest.jsonl)" "$(sha three/manifest.jsonl)"
            rm -rf three
        fi

        status "$name: again" 0 forget "$@" -T 1 --ids-drop two -o again new
        check "$name: what is left then" left old again both
        same "$name: its places are those of both sets" '4' "$(json again/report.json 'len(d["forgotten"]["same_places"])')"
        status "$name: the second set is whole" 0 inspect --verify again
        rm -rf three
        status "$name: it is an input" 0 shuffle -q --order keep -o three.tks again
        same "$name: with all that it has" "$(inspect --records again | sha)" "$(inspect --records three.tks | sha)"
        [ "$name" != parquet ] || mv again parquet.again
    done
done

# ---- by what they are ----

"$PYTHON" -c 'import json, sys
for i, line in enumerate(open("c.jsonl")):
    more = {"n": i % 9} if i % 7 else {}
    print(json.dumps({**json.loads(line), **more, "lic": ["mit", "gpl", None][i % 3], "score": i / 4 if i % 2 else None}))' >w.jsonl
tokenize -q -t t.json --id-field id --domain-field domain --score-field score --metadata lic,n=u8 w.jsonl -o w.tks
decompose -q --min 32 --max 256 --tail keep w.tks | pack -q --mix-domains --long split --length 256 -o w.plain.tks
decompose -q --min 32 --max 256 --tail keep --label-token w.tks | pack -q --mix-domains --long split --length 256 -o w.label.tks
# ids_where EXPR: those that the expression in Python names.
ids_where() { "$PYTHON" -c 'import json, sys
rows = [{"n": None, **json.loads(line), "source": "w.jsonl"} for line in open("w.jsonl")]
print(*[r["id"] for r in rows if eval(sys.argv[1], {}, r)], sep="\n")' "$1"; }
for format in olmo parquet wds mds litdata megatron megatron-sft; do
    case $format in wds) kind=label ;; *) kind=plain ;; esac
    case $format in olmo | wds) ;; *) [ -n "$MORE" ] || continue ;; esac
    rm -rf wold
    shuffle -q --accept-mismatch --shard-sequences 8 --format $format -o wold w.$kind.tks 2>err || { check "$format: built" grep -q 'not built' err && continue; }
    while IFS='|' read -r expr python; do
        ids_where "${python:-$expr}" >some
        rm -rf wnew
        status "$format: --where $expr" 0 forget --accept-mismatch --pad-id 258 --where "$expr" --list gone -o wnew wold
        check "  only they become padding" left wold wnew some gone
        status "  the set is whole" 0 inspect --verify wnew
        same "  counted under it" "where $(json wold/report.json 'd["tokens"]')" "$(json wnew/report.json '" ".join(k for k in d["provenance"][-1]["documents"]["dropped"]) + " " + str(d["tokens"])')"
        [ $format = olmo ] || [ -n "$MORE" ] || break
    done <<'J'
lic == "gpl" and n >= 5|lic == "gpl" and n is not None and n >= 5
domain == "a" and n == 3
id in ["d3", "d88", "d400"]
source == "w.jsonl" and lic == null|lic is None
n > 7|n is not None and n > 7
score >= 100 or score < 2|score is not None and (score >= 100 or score < 2)
J
done
rm -rf wnew wold
shuffle -q --shard-sequences 8 --format olmo -o wold w.plain.tks
ids_where 'n == 1' | sort - one | uniq >some
status "--ids-drop and --where" 0 forget --pad-id 258 --ids-drop one --where 'n == 1' -o wnew wold
check "  take out both" left wold wnew some
same "  each counted once" "{\"ids-drop\": 6, \"where\": $(($(wc -l <some) - 6))}" "$(json wnew/report.json 'd["provenance"][-1]["documents"]["dropped"]')"
same "  with the values of the others" "1 null" "$(inspect --records wnew | "$PYTHON" -c 'import json, sys
rows = [s for l in sys.stdin for s in json.loads(l)["segments"]]
print(int(any(s.get("metadata", {}).get("lic") == "gpl" for s in rows)), "null" if not any(s.get("metadata", {}).get("n") == 1 for s in rows) else "one")')"
rm -rf wagain
status "  again, by another" 0 forget --where 'lic == "mit"' --pad-id 258 -o wagain wnew
ids_where 'lic == "mit"' | sort - some | uniq >some-more
check "  what is left then" left wold wagain some-more
# refuses WHAT STATUS WORDS OPTION...
refuses() {
    what=$1 want=$2 words=$3
    shift 3
    status "$what" "$want" forget --pad-id 258 "$@" -o none wold
    check "  in one line" shell "grep -qF -- \"$words\" '$TMP/err' && [ \$(grep -c . '$TMP/err') = 1 ]"
    check "  and writes nothing" test ! -e none
}
refuses "--where of a field that is not there" 1 "forget: --where: no input has the metadata field 'nope'" --where 'nope == 1'
refuses "--where of another type" 1 "forget: --where: w.jsonl: document " --where 'lic > 1'
refuses "--where of the length" 2 "forget: --where: a set does not have the length of a document" --where 'length > 1'
refuses "--where without an end" 2 "forget: --where: column" --where 'lic =='
refuses "--where that is true of none" 1 "wold: --where is true of none of its documents" --where 'lic == "apache"'
echo d9999 >no
refuses "neither" 1 "none of its documents has one of the 1 id in no, and --where is true of none" --ids-drop no --where 'lic == "apache"'

# ---- nothing is left: of a shard, of a bucket, of the set ----

head -n 150 c.jsonl >e.jsonl
for f in c m; do
    spans=()
    [ $f = c ] || spans=(--spans-field spans --no-eos)
    tokenize -q -t t.json --id-field id "${spans[@]}" e.jsonl -o e.$f.tks
    decompose -q --min 16 --max 128 --tail drop e.$f.tks -o e.$f.plain.tks
    decompose -q --min 16 --max 128 --tail drop --label-token e.$f.tks -o e.$f.label.tks
done
# ids_of WHAT: of the documents in the first shard, in the first bucket, in the set.
ids_of() {
    inspect --records old | "$PYTHON" -c 'import json, sys
rows = [json.loads(l) for l in sys.stdin]
n = {"shard": 4, "bucket": sum(len(r["tokens"]) == len(rows[0]["tokens"]) for r in rows), "set": len(rows)}[sys.argv[1]]
assert 4 < sum(len(r["tokens"]) == len(rows[0]["tokens"]) for r in rows) < len(rows)
print("\n".join({s["id"]: 0 for r in rows[:n] for s in r["segments"] if "id" in s}))' "$1"
}
for format in olmo parquet wds mds litdata megatron megatron-sft; do
    case $format in wds) kind=label ;; *) kind=plain ;; esac
    for of in c m; do
        case $format$of in
        megatronm) continue ;;
        olmom) ;;
        *) [ -n "$MORE" ] || continue ;;
        esac
        rm -rf old
        if ! shuffle -q --format $format --shard-sequences 4 -o old e.$of.$kind.tks 2>err; then
            grep -q 'not built' err || not_ok "$format: $(head -n 1 err)"
            continue
        fi
        for what in shard bucket set; do
            name="$format, $of: nothing of a $what is left"
            rm -rf new again
            ids_of $what >ids
            status "$name" 0 forget --accept-mismatch --pad-id 258 --ids-drop ids -o new old
            check "$name: as it was else" left old new ids
            status "$name: the set is whole" 0 inspect --verify new
            status "$name: and an input" 0 shuffle -q --order keep --format $format --accept-mismatch -o again new
            status "$name: and that is whole" 0 inspect --verify again
        done
        status "$format, $of: all is taken out" 0 forget --accept-mismatch --pad-id 258 --ids-drop ids -o said old
        check "$format, $of: which is 100 per cent" grep -q '; dropped: ids-drop .* (100.0 %);' err
        rm -rf said
    done
done

# ---- how the set was written: as report.json says, of this set and no other ----

rm -rf old new again inner
shuffle -q --format mds --max-segments 80 --shard-sequences 8 -o inner m.plain.tks
shuffle -q --no-provenance --format mds --shard-sequences 8 --compress zstd:5 --license 'x --compress=none --max-segments=3' -o old inner
status "words of options in a licence, and no provenance" 0 forget --pad-id 258 --ids-drop one -o new old
check "  only the documents are out" left old new one
status "  the set is whole" 0 inspect --verify new
same "  its options are those of before" "$(json old/report.json 'd["format_options"], d["license"]')" "$(json new/report.json 'd["format_options"], d["license"]')"
rm -rf old new
# index SET: of which files and tokenizer OLMo-core's index is.
index() { "$PYTHON" -c 'import glob, json, sys
d = json.load(open(glob.glob(sys.argv[1] + "/olmo-cache/vsl-*.json")[0]))
print(d, *sorted(glob.glob("*", root_dir=sys.argv[1] + "/olmo-cache")))' "$1"; }
shuffle -q --format olmo --shard-sequences 8 --olmo-path s3://b/new/ --olmo-tokenizer 1000,256,256 -o old e.c.plain.tks
status "olmo with a path and a tokenizer" 0 forget --pad-id 258 --ids-drop one -o new old
same "  has the index of both" "$(index old)" "$(index new)"
status "  twice" 0 forget --ids-drop two -o again new
same "  too" "$(index old)" "$(index again)"
rm -rf old new again
shuffle -q --format olmo --shard-sequences 8 --olmo-path /a -o old e.m.plain.tks
status "the padding of olmo's tokenizer" 0 forget --pad-id 257 --ids-drop one -o new old
same "  is that of before, with any --pad-id" "$(index old)" "$(index new)"

# ---- whole documents ----

for format in megatron mds; do
    of=c
    [ $format != mds ] || of=m
    rm -rf old new
    shuffle -q --documents --shard-size 20K --format $format -o old $of.tks
    status "documents, $format: taken out" 0 forget --pad-id 258 --ids-drop one -o new old
    check "documents, $format: only they are padding" left old new one
    status "documents, $format: whole" 0 inspect --verify new
done
rm -rf old new
shuffle -q --documents --format olmo -o old c.tks
status "documents that a trainer finds by EOS" 1 forget --pad-id 258 --ids-drop one -o new old
check "it says what to do" grep -q 'leave them out with choose' err
check "nothing is left" [ ! -e new ]

# ---- a schedule ----

rm -rf old new
shuffle -q --format mds --shard-sequences 8 --license MIT -o old m.plain.tks
schedule -q --trainer generic --batch-tokens 2Ki --epochs 2 -o s.sched old
status "with a schedule" 0 forget --pad-id 258 --ids-drop one --list gone --schedule s.sched -o new old
inspect --records s.sched >steps
same "the steps that had them" "$("$PYTHON" -c 'import json
steps = [json.loads(l) for l in open("steps")]
for r in map(json.loads, open("gone")):
    n = 2 ** int(r["bucket"][2:])
    print([s["step"] for s in steps if s["length"] == n and r["sequence"] in s.get("numbers", range(s["first"], s["first"] + s["sequences"]))])')" "$("$PYTHON" -c 'import json
for r in map(json.loads, open("gone")): print(r["steps"])')"
status "the schedule is one of the new set" 0 inspect --verify s.sched new
empty "  whose order is known" "$(cat err)"
status "  and of a third" 0 forget --pad-id 258 --ids-drop two --list gone2 --schedule s.sched -o third new
check "  whose order is known" shell '! grep order err'
schedule -q --trainer generic --batch-tokens 2Ki -o new.sched new
status "that of the new set is none of the old one" 1 inspect --verify new.sched old
check "  which says why" grep -q 'new.sched: is a schedule of another set than old: of checksum' err
shuffle -q --seed 4 --format mds --shard-sequences 8 -o order m.plain.tks
status "the same documents in another order" 0 inspect --verify s.sched order
check "  are warned of" grep -q 's.sched: was made for a set of the same contents as order in other files; if their order is another' err
status "  by forget, too" 0 forget --pad-id 258 --ids-drop one --list gone2 --schedule s.sched -o third.order order
check "  which names both" grep -q 's.sched: was made for a set of the same contents in other files; if its order is not that of order, the steps' err
"$PYTHON" -c 'import json
r = json.load(open("old/report.json"))
del r["xxh3_64"]
json.dump(r, open("order/report.json", "w"))'
schedule -q --trainer generic --batch-tokens 2Ki --epochs 2 -o was.sched order
status "a schedule without the seal of its set, as earlier versions made them" 0 inspect --verify was.sched old
empty "  is sound" "$(cat err)"
status "  and forget" 0 forget --pad-id 258 --ids-drop one --list gone2 --schedule was.sched -o third.was old
check "  says that the order is not known" grep -q 'was.sched: was made by an earlier version, and does not say in which order' err
same "  with the steps of that of today" "$(cat gone)" "$(cat gone2)"
rm -rf third third.order third.was order gone2
echo d5 >ids
status "one document" 0 forget --pad-id 258 --ids-drop ids -o said old
check "  is one" grep -q '^forget: 1 document and [0-9]* tokens are out of ' err
rm -rf said
same "the licence stays" MIT "$(json new/report.json 'd["license"]')"
rm -rf other
shuffle -q --seed 9 --format mds --shard-sequences 8 -o other c.plain.tks
status "a schedule of another set" 1 forget --accept-mismatch --pad-id 258 --ids-drop one --list gone2 --schedule s.sched -o x other
check "it names both" grep -q 's.sched: is a schedule of another set than other' err
check "nothing is written" [ ! -e x ] && check "no list either" [ ! -e gone2 ]

# ---- sets whose padding has other ids ----

tokenize -q -t bytes --id-field id e.jsonl | decompose -q --min 16 --max 64 --tail drop --label-token -o l.tks
rm -rf A B A2 B2 A3 R
shuffle -q --format wds -o A l.tks
shuffle -q --format wds --seed 3 -o B l.tks
forget -q --pad-id 5 --accept-mismatch --ids-drop one -o A2 A
for sets in "A2 B" "B A2"; do
    rm -rf R
    status "padding in the place of text, and none: $sets" 0 shuffle --format wds --accept-mismatch -o R $sets
    check "  what the trainer must leave out is said" grep -q -e '--target-mask-individual 5, or' err
    status "  the set is whole" 0 inspect --verify R
    status "  and cut" 0 decompose -q --accept-mismatch --min 16 --max 32 -o d.tks $sets
done
shuffle -q --order keep -o a2.tks A2
shuffle -q --order keep -o b.tks B
status "concatenated streams" 0 shell 'cat a2.tks b.tks | inspect --verify'
status "  as the Python of the specification reads them" 0 shell 'cat a2.tks b.tks >ab.tks && "$PYTHON" "$top/tests/props/tokstream.py" ab.tks'
forget -q --pad-id 7 --accept-mismatch --ids-drop two -o B2 B
rm -rf x
several() {
    name=$1
    shift
    status "$name" 1 "$@"
    check "  is refused by a format that tells it by its id" grep -q 'format wds: .* by its id alone, and there are several ids .*; give each .forget. the --pad-id that padding has already$' err
    check "  nothing is written" [ ! -e x ]
}
several "padding of two ids" shuffle --format wds --accept-mismatch -o x A2 B2
several "a second id in one set" forget --pad-id 7 --accept-mismatch --ids-drop two -o x A2
several "padding of two ids, and a third set" shuffle --format wds --accept-mismatch -o x B A2 B2 A2
status "the first id again" 0 forget -q --accept-mismatch --ids-drop two -o A3 A2
shuffle -q --order keep -o two.tks A2 B2
several "a stream of both" shuffle --format wds --accept-mismatch -o x two.tks
status "padding of another id in a pipe" 1 shell 'cat a2.tks two.tks | inspect'
check "  is no other tokenizer" grep -q 'has padding of another id than the streams before it' err
shuffle -q --format wds -o P c.label.tks
several "another id than that of the padding at the ends" forget --pad-id 7 --accept-mismatch --ids-drop one -o x P

# ---- the same again ----

rm -rf a gone2 mds
cp -r old mds
again() { forget --manifest -v --pad-id 258 --list gone2 -o a --ids-drop "$@" mds; }
status "with a manifest" 0 again one
cp -r a b && cp -r gone2 gone3
status "  the same again" 0 again one
check "  is there already" grep -q 'a: is there already' err
same "  and does nothing" "$(sha_tree b) $(sha gone3)" "$(sha_tree a) $(sha gone2)"
status "  with another list" 1 again two
check "  is refused" grep -q 'a: was made with other contents of the file of --ids-drop; remove it$' err
mv a.manifest.json was.json
status "  without its manifest, as a run that was killed before it wrote that" 0 again one
check "  it is there, too" grep -q 'a: the set that this command makes is there already' err
same "  and has the same counts" "$(json was.json 'd["tokens"], d["documents"], d["sequences"]')" "$(json a.manifest.json 'd["tokens"], d["documents"], d["sequences"]')"
schedule -q --manifest --trainer generic --batch-tokens 2Ki -o m.sched mds
status "a schedule with a manifest" 0 schedule -v --manifest --trainer generic --batch-tokens 2Ki -o m.sched mds
check "  is there already" grep -q 'm.sched: is there already' err
shuffle -q --manifest --order keep -o m.tks mds
status "and a stream of a set" 0 shuffle -v --manifest --order keep -o m.tks mds
check "  is there already" grep -q 'm.tks: is there already' err
shuffle -q --replace-set --seed 4 --format mds --shard-sequences 8 --license MIT -o mds m.plain.tks
sha m.sched m.tks >sums
status "of another set in its place: forget" 1 again one
check "  is refused" grep -q 'a: was made from other contents of mds/report.json; remove it$' err
status "  schedule" 1 schedule -v --manifest --trainer generic --batch-tokens 2Ki -o m.sched mds
check "  is refused" grep -q 'm.sched: was made from other contents of mds/report.json; remove it or use -f' err
status "  shuffle" 1 shuffle -v --manifest --order keep -o m.tks mds
check "  is refused" grep -q 'm.tks: was made with other contents of set 1; remove it' err
same "  all are as before" "$(cat sums)" "$(sha m.sched m.tks)"

# ---- threads, memory ----

rm -rf a b
forget -q -T 1 -M 32M --pad-id 258 --ids-drop one -o a old
forget -q -T 4 -M 512M --pad-id 258 --ids-drop one -o b old
same "the same files for any number of threads" "$(sha_tree a)" "$(sha_tree b)"

# ---- refused ----

rm -rf x
refused() { # WHAT STATUS TEXT COMMAND...
    name=$1 want=$2 text=$3
    shift 3
    status "$name" "$want" "$@"
    check "$name: in one line that says why" shell 'grep -q -e "$1" err && [ "$(wc -l <err)" = 1 ]' _ "$text"
    check "$name: nothing is left" [ ! -e x ]
}
echo d9999 >none
mkdir full && touch full/foreign
refused "a folder that is not empty" 1 'not empty; name another folder, or remove the folder$' forget --pad-id 258 --ids-drop one -o full old
refused "ids that are not there" 1 'nothing is written' forget --ids-drop none -o x old
refused "no ids" 2 'ids-drop FILE or --where EXPR is needed' forget -o x old
refused "no folder" 2 'needs a folder' forget --ids-drop one old
refused "two sets" 2 'name one set' forget --ids-drop one -o x old old
refused "a folder in the set" 2 'old/x: lies in the input old; name another folder$' forget --pad-id 258 --ids-drop one -o old/x old
refused "  below folders that are not there" 2 'lies in the input' forget --pad-id 258 --ids-drop one -o "$PWD/old/x/y/" old
refused "parts" 2 'one run' forget --ids-drop one --part 0/2 -o x old
refused "a stream" 1 'a file, and a set of shards is a folder' forget --ids-drop one -o x c.tks
refused "padding beyond the vocabulary" 2 'not below the vocabulary size' forget --pad-id 259 --ids-drop one -o x old
refused "padding that texts have" 2 'is a token of texts' forget --pad-id 65 --ids-drop one -o x old
rm -rf ds mds wds unsaid
shuffle -q --format ds -o ds c.label.tks
refused "a format that cannot say it" 1 'format ds: the stream has padding between segments' forget --pad-id 258 --ids-drop one -o x ds
shuffle -q --format mds -o mds c.plain.tks
refused "masks that are not there" 1 'then use --accept-mismatch' forget --pad-id 258 --ids-drop one -o x mds
tokenize -q -t bytes --id-field id c.jsonl | decompose -q --min 32 --max 64 --tail drop --label-token | shuffle -q --format wds -o wds
refused "padding that is EOS" 1 'is EOS or BOS' forget --ids-drop one -o x wds
shuffle -q --format mds --shard-sequences 8 -o unsaid m.plain.tks
"$PYTHON" -c 'import json
r = json.load(open("unsaid/report.json"))
del r["format_options"]
json.dump(r, open("unsaid/report.json", "w"))'
refused "a set of an earlier version, which does not say how it was written" 1 'unsaid/report.json: has no format_options' forget --pad-id 258 --ids-drop one -o x unsaid
cp -r old forged
"$PYTHON" -c 'import json
rows = [json.loads(l) for l in open("old/manifest.jsonl")]
shards = [r for r in rows if "shard" in r]
empty = [{**shards[0], "sequences": 0, "tokens": 0, "shard": k} for k in range(2000)]
for r in shards:
    r["shard"] += len(empty)
open("forged/manifest.jsonl", "w").write("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in empty + rows))'
refused "a manifest with shards without sequences" 1 'forged/manifest.jsonl: shard 0 of a bucket has no sequences' forget --pad-id 258 --ids-drop one -o x forged
refused "programs that cannot keep it" 1 'has padding between segments' pack -q --length 64 -o x new
cp -r old damaged
file=$("$PYTHON" -c 'import json; print(next(s["bucket"] + "/shard.%05d.mds.zstd" % s["shard"] for s in map(json.loads, open("gone"))))')
printf x | dd of="damaged/$file" bs=1 seek=20 conv=notrunc status=none
refused "a shard that is not the manifest's" 1 "$file: is not the file that manifest.jsonl lists" forget --pad-id 258 --ids-drop one -o x damaged
status "decompose drops such padding" 0 decompose -q --accept-mismatch --min 32 --max 64 --stats s.json -o d.tks new
same "and counts it" "$(json new/report.json 'd["padding"]')" "$(json s.json 'd["tokens"]["dropped"]["padding"]')"

# Stopped: another list or set is another command, and the same one goes on; stopped while it published, it is done.
if fault=$(shim fault); then
    out() { forget -q --accept-mismatch --pad-id 258 -o stopped "$@"; }
    rm -rf mds stopped
    shuffle -q --seed 3 --format mds --shard-sequences 8 -o mds c.plain.tks
    shuffle -q --seed 4 --format mds --shard-sequences 8 -o mds4 c.plain.tks
    out --ids-drop one mds
    made=$(sha_tree stopped)
    rm -rf stopped
    SHIM_AT=name:12 LD_PRELOAD=$fault code out --ids-drop one -T 1 mds >/dev/null 2>&1
    same "killed while it writes" 137 $ended
    refused "with another list" 1 'begun here was made with other contents of the file of --ids-drop; run that command again' out --ids-drop two mds
    refused "with another set" 1 'begun here was made from other input' out --ids-drop one mds4
    status "the same" 0 out --ids-drop one mds
    same "  makes the set" "$made" "$(sha_tree stopped)"
    for ((at = 13; ; at += 3)); do
        rm -rf stopped
        SHIM_AT=name:$at LD_PRELOAD=$fault code out --ids-drop one -T 1 mds >/dev/null 2>&1
        { [ $ended = 137 ] && [ ! -e stopped/.partial/ready ]; } || break
    done
    cp -r stopped stopped.2
    refused "killed while it published, with another list" 1 'stopped: the folder is not empty' out --ids-drop two mds
    rm -rf stopped && mv stopped.2 stopped
    status "the same" 0 forget --accept-mismatch --pad-id 258 -o stopped --ids-drop one mds
    check "  says that it is done" grep -q 'stopped: the set that this command makes is there already' "$TMP/err"
    same "  and is" "$made" "$(sha_tree stopped)"
fi
if [ -n "$MORE" ] && [ -n "$SHIM" ]; then
    rm -rf mds stopped
    shuffle -q --format mds -o mds e.c.plain.tks
    out --ids-drop one mds
    made=$(sha_tree stopped)
    for ((at = 1, n = 0; ; at++)); do
        rm -rf stopped
        SHIM_AT=unlink:$at LD_PRELOAD=$fault code out --ids-drop one -T 1 mds >/dev/null 2>&1
        [ $ended = 137 ] || break
        { [ -e stopped/report.json ] && [ ! -e stopped/.partial/ready ]; } || continue
        n=$((n + 1))
        code out --ids-drop one mds >/dev/null 2>err
        { [ $ended = 0 ] && [ "$(sha_tree stopped)" = "$made" ]; } || echo "unlink $at: $ended $(cat err)"
    done >bad
    empty "killed behind publishing: it is done" "$(cat bad)"
    check "  some of these" [ $n -gt 0 ]
fi
