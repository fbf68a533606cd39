# shellcheck shell=bash disable=SC2154
# batch_grow.sh - sluice-batch: months by `extends` have the documents of one run over all, byte for byte, and nothing of the
# folders before is written; `set` takes finished sets; what is refused.
# check-more: whole, and longer

have tokenize dedup decompose pack shuffle inspect sluice-batch || return 0
"$PYTHON" - <<'PY'
import json, random
rng, seen = random.Random(5), []
for month in range(1, 4):
    for name in ("a", "b"):
        with open("m%d-%s.jsonl" % (month, name), "w") as f:
            for i in range(120):
                if seen and rng.random() < 0.4:
                    d = list(rng.choice(seen))
                    for _ in range(rng.choice((0, 0, 1, 2))):
                        d[rng.randrange(len(d))] = "x%d" % rng.randrange(5000)
                else:
                    d = ["w%d" % rng.randrange(3000) for _ in range(rng.randrange(5, 60))]
                seen.append(d)
                text = " ".join(d) if rng.random() < 0.98 else " "
                f.write(json.dumps({"id": "%d%s%d" % (month, name, i), "text": text}) + "\n")
PY
steps() { printf '%s\n' 'tokenize = --id-field id' ${MORE:+'dedup ='} 'dedup = --near --threshold 0.7' 'seed = 3'; }
{ printf '%s\n' 'input = m1-*.jsonl' 'tokenizer = bytes' 'parts = 2' 'index = yes' && steps; } >r1
{ printf '%s\n' 'extends = m1' 'input = m2-a.jsonl' 'input = m2-b.jsonl' 'parts = 3' 'index = yes' && steps; } >r2
{ printf '%s\n' 'extends = m2' 'input = m3-*.jsonl' 'parts = 1' && steps; } >r3
months="1 2 ${MORE:+3}"
for i in $months; do printf 'input = m%s-*.jsonl\n' $i; done >rall
{ printf '%s\n' 'tokenizer = bytes' 'parts = 2' && steps; } >>rall
# what FOLDER...: what each file is, but for the times of access.
what() { find "$@" -printf '%p %y %s %T@\n' | sort; }
records() { cat "$@" | inspect --records; }

sluice-batch --local 2 rall all >/dev/null
sluice-batch --local 2 r1 m1 >/dev/null
what m1 >before
status "a second month" 0 sluice-batch --local 2 r2 m2
[ -z "$MORE" ] || status "a third month" 0 sluice-batch --local 2 r3 m3
same "nothing of the first is written or made again" "$(cat before)" "$(what m1)"
of_months() { for i in $months; do cat m$i/stream/*.tks; done | inspect --records | sha; }
same "the documents of one run over all months, and their bytes" "$(records all/stream/*.tks | sha)" "$(of_months)"
check "  many are dropped for an older one" \
    test "$(json m2/report.json 'sum(p["documents"]["dropped"].get(r, 0) for p in d["programs"] for r in ("exact-duplicate", "near-duplicate"))')" -gt 60
same "the index and the number of sources are in the recipe" \
    "dedup = --near --threshold 0.7 --against '$PWD/m1/near.index' tokenize = --id-field id --source-base 2" \
    "$(grep '^dedup = --near' m2/state/extended) $(grep '^tokenize =' m2/state/extended)"
[ -z "$MORE" ] || same "  of both, the oldest first" "dedup = --exact --against '$PWD/m1/exact.index' --against '$PWD/m2/exact.index'" "$(grep '^dedup = --exact' m3/state/extended)"
status "the same again" 0 sluice-batch --local 2 r2 m2
same "  all is done" "$PWD/m2: all is done" "$(cat out)"

# What is refused, in one line that says so.
no() { # WHAT SAY LINE...: a recipe of these lines
    local say=$2 what=$1
    shift 2
    printf '%s\n' "$@" >bad
    status "$what" 1 sluice-batch --local 1 bad x
    check "  says so" shell "grep -q -e \"\$1\" err && test \$(wc -l <err) = 1" - "$say"
    check "  and makes nothing" test ! -e x
}
new=('input = m3-a.jsonl' 'parts = 1')
mkdir other
sluice-batch init r1 begun >/dev/null
no "no such folder" 'bad:1: extends = gone: there is no such folder' 'extends = gone' "${new[@]}"
no "a folder of somebody else" 'bad:1: .*/other: no folder of sluice-batch' 'extends = other' "${new[@]}"
no "a folder that is not finished" "bad:1: .*/begun: is not finished; 'sluice-batch resume .*/begun' goes on with it" 'extends = begun' "${new[@]}"
no "the best of the new ones" 'bad:4: choose --top: sees only the new documents, .*; write alone = yes if that is meant' \
    'extends = m2' "${new[@]}" 'choose = --top=10% --by length'
no "passages of the new ones" 'bad:4: dedup --substring: sees only the new documents' 'extends = m2' "${new[@]}" 'dedup = --substring 50'
no "alone without extends" 'bad:3: alone = yes: is for a recipe with extends' "${new[@]}" 'alone = yes'
no "an index of nothing" 'bad:3: index = yes: there is no dedup' "${new[@]}" 'index = yes'
no "an index by two lines" 'bad:4: --save-index: follows from index = yes' "${new[@]}" 'index = yes' 'dedup = --near --save-index=x'
no "numbers of sources by two lines" 'bad:4: --source-base: follows from extends' 'extends = m2' "${new[@]}" 'tokenize = --source-base 9'
no "without its seed" 'bad:4: dedup: .*/m1/near.index: was made with seed=3, and this run has seed=0' 'extends = m2' "${new[@]}" 'dedup = --near'
no "another seed" 'bad:4: dedup: m1/near.index: was made with seed=3, and this run has seed=4' "${new[@]}" 'seed = 4' 'dedup = --near --against m1/near.index'
no "sets beside texts" 'bad:1: input: is for texts, and line 3 reads sets' "${new[@]}" 'set = m1/shards'
no "no program for sets" 'bad:1: set: no line says what to do with it' 'set = m1' 'parts = 1'
no "a folder that is no set" 'bad:1: set = m1: is no finished set of shards; of a folder of sluice-batch it is shards' \
    'set = m1' 'parts = 1' 'shuffle = --format olmo'
if [ -n "$MORE" ]; then
    no "one without an index" "bad:4: dedup --exact: .*/m3 has no index of its documents; add the line 'index = yes' to its recipe" \
        'extends = m3' "${new[@]}" 'dedup ='
    no "another tokenizer" 'bad:4: tokenizer = builtin: is another than that of .*/m2' 'extends = m2' "${new[@]}" 'tokenizer = builtin'
    no "another unit" 'bad:4: dedup: .*/m1/near.index: was made with unit=word/2, and this run has unit=char' \
        'extends = m2' "${new[@]}" 'dedup = --near --unit char'
    printf '%s\n' 'extends = m2' "${new[@]}" 'choose = --top=10% --by length' 'alone = yes' >alone
    status "the best of the new ones, where alone = yes says so" 0 sluice-batch --local 2 alone best
    # An index of other contents is another recipe, as any file that an option names.
    sed -i 's/0.7/0.9/' r1
    status "the first month is made again in another way" 0 sluice-batch --local 2 r1 m1
    status "what extends it" 0 sluice-batch status m3
    check "  says so" grep -q "^sluice-batch: near-[a-z]*: was made with other contents of the file of --against; 'sluice-batch resume .*/m3' makes it again" err
    status "a third month of a second one that is not made again" 1 sluice-batch --local 2 r3 m3
    check "  is refused" grep -q "^sluice-batch: r3:1: .*/m2: is not what its recipe makes now: .*near-[a-z]* was made with other contents" err
    status "  nor does it go on" 1 sluice-batch resume --local 2 m3
    check "  for the same reason" grep -q "^sluice-batch: .*m3/recipe: .*/m2: is not what its recipe makes now: .*'sluice-batch resume .*/m2' makes it again" err
fi
if [ -n "$FULL" ]; then
    for i in 2 3; do sluice-batch --local 2 r$i m$i >/dev/null; done
    sed 's/0.7/0.9/' rall >rall2
    for i in 2 3; do sed -i 's/0.7/0.9/' r$i; done
    for i in 2 3; do sluice-batch --local 2 r$i m$i >/dev/null; done
    sluice-batch --local 2 rall2 all >/dev/null
    same "all made again: one run again" "$(records all/stream/*.tks | sha)" "$(of_months)"
fi
# A folder above that is not what its recipe makes now, where the one between is.
sed 's/tokenize =.*/& --ids-drop drop/' r1 >r1d
: >drop
sluice-batch --local 2 r1d m1 >/dev/null
sluice-batch --local 2 r2 m2 >/dev/null
seq -f '1a%g' 0 60 >drop
status "a list of the first month has changed: the second" 0 sluice-batch status m2
check "  names it" grep -q "^sluice-batch: .*m2/recipe: .*/m1: is not what its recipe makes now: tokenize: .*--ids-drop; 'sluice-batch resume .*/m1' makes it again" err
status "  does not go on" 1 sluice-batch resume --local 2 m2
check "  for the same reason" grep -q "^sluice-batch: .*m2/recipe: .*/m1: is not what its recipe makes now" err
check "  and the third names the first" shell 'printf "%s\n" "extends = m2" "input = m3-a.jsonl" "parts = 1" >r4 && ! sluice-batch init r4 m4 2>err && grep -q "^sluice-batch: r4:1: .*/m1: is not what" err'
: >drop
mv m1 moved
status "the first month was moved" 1 sluice-batch resume --local 2 m2
check "  is named" grep -q "^sluice-batch: .*m2/recipe: .*/m1: there is no such folder, and .*/m2 extends it; move it back, or give the recipe of .*/m2 again with its new name" err
sed 's/= m1$/= moved/' r2 >r2m
status "  its new name" 0 sluice-batch --local 2 r2m m2
same "  changes nothing" "$PWD/m2: all is done" "$(tail -n 1 out)"
check "  that was made" shell '! grep -q "made again" out'
mv moved m1

# What follows from the folder above follows it: its number of sources, its tokenizer, the folders that it extends itself.
mkdir above
head -n 3 m1-a.jsonl >above/a.jsonl
head -n 4 m2-a.jsonl >june.jsonl
exact() { printf '%s\n' 'dedup =' 'index = yes' 'parts = 1' "$@"; }
exact 'input = above/' 'tokenizer = bytes' >may
exact 'extends = M' 'input = june.jsonl' >june
exact 'input = m3-b.jsonl' 'tokenizer = bytes' >april
sluice-batch --local 1 may M >/dev/null
sluice-batch --local 1 june J >/dev/null
follows() { # WHAT WHY: by status, --pending and resume, to what a fresh folder has
    sluice-batch --local 1 may M >/dev/null
    status "$1" 0 sluice-batch status J
    check "  status says so" grep -q "^sluice-batch: $2.*; 'sluice-batch resume .*/J' makes it again" err
    check "  --pending too" shell 'sluice-batch --pending J 2>err | grep -cx "tokenize 0\|exact-sign 0"'
    status "  resume" 0 sluice-batch resume --local 1 J
    check "  makes it again" grep -q -e "^  $2" out
    rm -rf F
    sluice-batch --local 1 june F >/dev/null
    same "  to the set of a fresh folder" "$(records F/stream/*.tks | sha)" "$(records J/stream/*.tks | sha)"
    same "  and its recipe" "$(cat F/recipe F/state/extended)" "$(cat J/recipe J/state/extended)"
}
head -n 3 m1-b.jsonl >above/b.jsonl
follows "a file more above" "tokenize: was made with --source-base=1, now --source-base=2"
sed -i 's/bytes/builtin/' may april
follows "another tokenizer above" "tokenize: was made with --tokenizer=bytes, now --tokenizer=builtin"
sluice-batch --local 1 april A >/dev/null
sed -i 's/^tokenizer.*/extends = A/' may
follows "a folder above it" "tokenize: was made with --source-base=2, now --source-base=3"
same "  whose index is asked" "dedup = --exact --against '$PWD/A/exact.index' --against '$PWD/M/exact.index'" "$(grep ^dedup J/state/extended)"
mv M/exact.index kept-index
status "an index above is gone" 1 sluice-batch --local 1 june F
check "  says how it is made" grep -q "^sluice-batch: june:4: .*/M: is not what its recipe makes now: exact-index: .*/M/exact.index, which it writes, is not there; 'sluice-batch resume .*/M' makes it again" err
status "  so it is" 0 sluice-batch resume --local 1 M
same "  with the same bytes" "$(sha kept-index)" "$(sha M/exact.index)"
mv M/stream moved-stream
status "its stream is elsewhere" 0 sluice-batch --local 1 june F
status "the recipe in the folder is a recipe" 0 sluice-batch --local 1 J/recipe J
same "  and the same one" "$PWD/J: all is done" "$(cat out)"

# Sets of both, in parts as by one program.
for i in 1 2; do
    mkdir s$i
    tokenize -q -t bytes --source-base $i m$i-a.jsonl | decompose -q --min 16 --max 64 --tail drop | shuffle -q --format olmo -o s$i/shards
done
printf '%s\n' 'set = s1/shards' 'set = s2/shards' 'parts = 3' 'shuffle = --format olmo' >both
shuffle -q --format olmo -o one s1/shards s2/shards
status "a set of two sets" 0 sluice-batch --local 2 both b
rm -r one/olmo-cache b/shards/olmo-cache # has the folder's name
same "  has the bytes of shuffle" "$(sha_tree one)" "$(sha_tree b/shards)"
sed 's/parts = 3/parts = 2/' both >fewer
status "in fewer parts" 0 sluice-batch --local 2 fewer b
check "  the one part that reads them makes fewer ranges" grep -qx '  shuffle-scatter: was made with --ranges=3, now --ranges=2' out
rm -r b/shards/olmo-cache
same "  has the same bytes" "$(sha_tree one)" "$(sha_tree b/shards)"
ln -s b link
for s in b/shards link/shards "$PWD/b/shards/../shards"; do
    sed "1s|.*|set = $s|" both >own
    status "a set that reads itself, $s" 1 sluice-batch --local 2 own b
    check "  is refused" grep -q "^sluice-batch: own:1: set = $s: lies in .*/b, which this run writes; name another folder" err
done
sluice-batch --local 2 both b >/dev/null
tokenize -q m1-a.jsonl | decompose -q --min 16 --max 64 --tail drop | shuffle -q --format olmo -o s3
printf '%s\n' 'set = s1/shards' 'set = s3' 'parts = 2' 'shuffle = --format olmo' >bad
status "sets of two tokenizers" 1 sluice-batch --local 2 bad x
check "  are refused" grep -q '^sluice-batch: bad:2: set = s3: was made with another tokenizer than the sets before it' err
check "  and make nothing" test ! -e x
mv s1/shards gone
cp -r b begun-set
rm -rf begun-set/state/shuffle-scatter*
for c in "resume --local 2 b" "status b" "--local 2 both b"; do
    # shellcheck disable=SC2086 # words
    status "a set that was read is gone: $c" 0 sluice-batch $c
    check "  says so, and keeps what was made" shell 'grep -q "s1/shards: .*; what was made of it is kept$" err && test $(wc -l <err) = 1'
done
sed 's/olmo/olmo --shard-sequences 64/' both >both3
status "  later stages may change" 0 sluice-batch --local 2 both3 b
check "  with what was made of it" grep -qx '  kept: shuffle-scatter' out
sluice-batch --local 2 both b >/dev/null 2>&1
status "  if it is still to be read" 1 sluice-batch resume --local 2 begun-set
check "  it is needed" grep -q 's1/shards: gone, and it was there when this folder was made; not all' err
mv gone s1/shards
if [ -n "$MORE" ]; then
    mv s1/shards gone
    cp -r s2/shards s1
    status "another set in its place" 0 sluice-batch status b
    check "  is named" grep -q "^sluice-batch: shuffle-scatter: was made with other contents of set 1; 'sluice-batch resume " err
    status "  and read by the same recipe" 0 sluice-batch --local 2 both b
    shuffle -q --format olmo -o one2 s2/shards s2/shards
    rm -r one2/olmo-cache b/shards/olmo-cache s1/shards
    same "  to the set of both" "$(sha_tree one2)" "$(sha_tree b/shards)"
    mv gone s1/shards
fi
if [ -n "$MORE" ]; then
    sed 's/^shuffle/dedup = --near\ndecompose = --min 4 --max 8 --accept-mismatch\npack = --length 64\n&/' both >longer
    status "and through other programs" 0 sluice-batch --local 2 longer c
    dedup -q --near s1/shards s2/shards | decompose -q --min 4 --max 8 --accept-mismatch | pack -q --length 64 | shuffle -q --format olmo -o two
    same "  as by a pipe" "$(sha_tree two)" "$(sha_tree c/shards)"
fi
